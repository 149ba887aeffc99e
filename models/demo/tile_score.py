#!/usr/bin/env python3
"""What tiles are for: recall on large pictures with small objects, without and with `stencil label --tile`, beside that on pictures of the
model's own size with objects of the same size.

    python3 models/demo/tile_score.py [--stencil build/stencil] [--large 1] [--side 4000] [--check]

Needs numpy, Pillow and the font that scenes.py names. --check fails unless the plain run finds less than a twentieth and --tile comes
within three points of the native pictures' recall.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    sys.exit(f"tile_score.py: {missing}; it needs numpy and Pillow (Debian: python3-numpy, python3-pil) and fonts-noto-color-emoji")

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import large_scenes  # noqa: E402
import scenes  # noqa: E402

FIRST_SEED = 8_200_000
IOU, ALMOST_NOTHING, POINTS = .5, .05, .03


def runs(text):
    """COCO's compressed run lengths as starts and ends of the runs of ones."""
    counts, value, shift = [], 0, 0
    for c in text.encode():
        c -= 48
        value |= (c & 31) << shift
        shift += 5
        if not c & 32:
            if c & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value, shift = 0, 0
    edges = np.cumsum(counts)
    return edges[0:len(counts) - 1:2], edges[1::2]


class Found:
    """An object of the store; its pixels only where they are asked for."""

    def __init__(self, line, height):
        self.score, self.area, self.height, self.pieces = line["score"], line["area"], height, line.get("pieces", 1)
        self.starts, self.ends = runs(line["mask"])
        x0, x1 = int(self.starts[0] // height), int((self.ends[-1] - 1) // height) + 1
        self.columns = x0, x1

    def inside(self, box):
        """bool [h, w] of a box."""
        x0, y0, x1, y1 = box
        out, h = np.zeros((x1 - x0, y1 - y0), bool), self.height
        for start, end in zip(self.starts, self.ends):
            for x in range(max(int(start // h), x0), min(int((end - 1) // h) + 1, x1)):
                low, high = max(int(start) - x * h, y0), min(int(end) - x * h, y1)
                if low < high:
                    out[x - x0, low - y0:high - y0] = True
        return out.T

    def whole(self, width):
        """bool [height, width], for pictures that are small enough."""
        out = np.zeros(width * self.height, bool)
        for start, end in zip(self.starts, self.ends):
            out[start:end] = True
        return out.reshape(width, self.height).T

    def iou(self, box, mask):
        if self.columns[0] >= box[2] or self.columns[1] <= box[0]:
            return 0.0
        both = int((self.inside(box) & mask).sum())
        return both / (int(mask.sum()) + self.area - both)


def label(args, pictures, phrases, *options):
    """{picture's name: {phrase: [Found]}} from one run of the program into a folder of its own."""
    with tempfile.TemporaryDirectory() as out:
        command = [args.stencil, "label", pictures, "-m", args.model, "-o", os.path.join(out, "job"), "--quiet", *options]
        for phrase in phrases:
            command += ["--class", phrase]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
        names = {c["id"]: c["name"] for c in json.load(open(os.path.join(out, "job", "job.json")))["classes"]}
        results = {}
        for path in glob.glob(os.path.join(out, "job", "store", "*", "*")):
            first, *rest = [json.loads(line) for line in open(path)]
            mine = results.setdefault(first["name"], {name: [] for name in names.values()})
            for line in rest:
                if "displaced_by" not in line:
                    mine[names[line["class"]]].append(Found(line, first["height"]))
        return results


def recall(results, truth, threshold):
    """(found, objects, answers): every true object takes the best answer that is still free."""
    hits = objects = answers = 0
    for name, placed in truth.items():
        for phrase, found in results[name].items():
            free = [f for f in found if f.score > threshold]
            answers += len(free)
            for glyph, box, mask in placed:
                if scenes.CONCEPTS[glyph][0][0] != phrase:
                    continue
                objects += 1
                best = max(((f.iou(box, mask), i) for i, f in enumerate(free)), default=(0, None))
                if best[0] > IOU:
                    hits += 1
                    free.pop(best[1])
    return hits, objects, answers


def draw(folder, seeds, glyphs, side, size, density):
    os.makedirs(folder)
    truth = {}
    for seed in seeds:
        rgb, truth[f"{seed}.png"] = large_scenes.scene(seed, glyphs, side, size, density)
        Image.fromarray(rgb).save(os.path.join(folder, f"{seed}.png"), compress_level=1)
    return truth


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "stencil"))
    parser.add_argument("--model", default=HERE)
    parser.add_argument("--large", type=int, default=1, help="large pictures")
    parser.add_argument("--side", type=int, default=4000, help="of a large picture in pixels")
    parser.add_argument("--size", type=int, default=40, help="of an object in pixels")
    parser.add_argument("--density", type=float, default=3.0, help="objects per 224 x 224 pixels")
    parser.add_argument("--glyphs", type=int, default=5, help="kinds of objects, all asked for by name")
    parser.add_argument("--overlap", type=int, default=0, help="--tile-overlap in pixels (default: the program's)")
    parser.add_argument("--thresholds", default=".15,.3,.5")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    glyphs = large_scenes.pool(FIRST_SEED, args.glyphs)
    phrases = [scenes.CONCEPTS[g][0][0] for g in glyphs]
    n_native = max(1, round(args.large * (args.side / large_scenes.NATIVE) ** 2))
    thresholds, table, joined = [float(t) for t in args.thresholds.split(",")], {}, 0
    with tempfile.TemporaryDirectory() as scratch:
        large, native = os.path.join(scratch, "large"), os.path.join(scratch, "native")
        truth = {"large": draw(large, range(FIRST_SEED, FIRST_SEED + args.large), glyphs, args.side, args.size, args.density)}
        truth["native"] = draw(native, range(FIRST_SEED + 1000, FIRST_SEED + 1000 + n_native), glyphs, large_scenes.NATIVE, args.size, args.density)
        tile = ["--tile"] + (["--tile-overlap", str(args.overlap)] if args.overlap else [])
        for name, which, options in (("plain", "large", []), ("--tile", "large", tile), ("tiles only", "large", tile + ["--tiles-only"]),
                                     ("native", "native", [])):
            results = label(args, large if which == "large" else native, phrases, *options)
            table[name] = [recall(results, truth[which], t) for t in thresholds]
            joined += sum(f.pieces > 1 for r in results.values() for found in r.values() for f in found)
    print(f"{args.large} of {args.side} pixels, {n_native} of {large_scenes.NATIVE}; objects of {args.size}; asked for: {', '.join(phrases)}; "
          f"{joined} joined from pieces")
    print(f"{'':11}" + "".join(f"  above {t:<5g} recall answers/object" for t in thresholds))
    for name, rows in table.items():
        print(f"{name:11}" + "".join(f"  {h:5} of {o:5}  {h / max(o, 1):.3f} {a / max(o, 1):9.2f}" for h, o, a in rows))
    if args.check:
        share = {name: rows[-1][0] / max(rows[-1][1], 1) for name, rows in table.items()}
        failed = share["plain"] >= ALMOST_NOTHING or share["--tile"] < share["native"] - POINTS or joined == 0
        print("tiles:", "FAILED" if failed else "passed", f"(at {thresholds[-1]:g})")
        sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
