#!/usr/bin/env python3
"""Recall and precision of the demo model as Stencil runs it, at mask IoU 0.5, on generated scenes whose seeds were kept out of training.

    python3 models/demo/score.py [--stencil build/stencil] [--scenes 60]
    python3 models/demo/score.py --set unlike [--tile]         # scenes_unlike.py: crowds of small and large things before other backgrounds
    python3 models/demo/score.py --set looks                   # its backgrounds and its camera alone, things as in training

Needs numpy, Pillow and the font that scenes.py names. Three questions per scene, about a third of which have no answer in the picture. The unlike sets are
scored by background, crowd and size, too; sizes are the longer side of a box: of what is visible of an object for recall, of an answer for precision.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import numpy as np
    from PIL import Image
except ImportError as missing:
    sys.exit(f"score.py: {missing}; it needs numpy and Pillow (Debian: python3-numpy, python3-pil) and fonts-noto-color-emoji")

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import scenes  # noqa: E402
import scenes_unlike  # noqa: E402

FIRST_SEED = 8_000_000
SETS = {"held-out": (FIRST_SEED, 224), "unlike": (8_400_000, scenes_unlike.SIDE), "looks": (8_500_000, 224)}      # first seed, picture's side
QUESTIONS = 3
IOU = .5


def decode(mask):
    """COCO's compressed run lengths -> bool [height, width]: base 32 from '0', sign in bit 4, each count after the second a difference."""
    counts, value, shift = [], 0, 0
    for c in mask["counts"].encode():
        c -= 48
        value |= (c & 31) << shift
        shift += 5
        if not c & 32:
            if c & 16:
                value -= 1 << shift
            counts.append(value + counts[-2] if len(counts) > 2 else value)
            value, shift = 0, 0
    height, width = mask["size"]
    flat = np.repeat(np.arange(len(counts)) % 2 == 1, counts)
    return flat.reshape(width, height).T


def ask(args, picture, phrases):
    """{phrase: [mask]} from one run of the program."""
    command = [args.stencil, "segment", "--picture", picture, "-m", args.model, "--threshold", str(args.threshold), "--format", "json", "--quiet"]
    command += ["--size", str(args.input_size)] if args.input_size else []
    for phrase in phrases:
        command += ["--phrase", phrase]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    results = json.loads(done.stdout)["images"][0]["results"]
    return {r["prompt"]["phrase"]: [decode(it["mask"]) for it in r["instances"]] for r in results}


def ask_tiles(args, picture, phrases):
    """The same from `stencil label --tile`."""
    import tile_score
    found, = tile_score.label(args, picture, phrases, "--tile").values()
    with Image.open(picture) as opened:
        width = opened.width
    return {phrase: [f.whole(width) for f in found[phrase] if f.score > args.threshold] for phrase in phrases}


def box_of(mask):
    ys, xs = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return (int(xs[0]), int(ys[0]), int(xs[-1]) + 1, int(ys[-1]) + 1) if len(xs) else (0, 0, 0, 0)


def pairs(truth, found):
    """(true object, answer, IoU) of each hit: every true object takes the best answer that is still free, if it overlaps by more than IOU."""
    free, hits, areas = dict(enumerate(found)), [], [int(m.sum()) for m in found]
    for k, t in enumerate(truth):
        x0, y0, x1, y1 = box_of(t)
        area, best = int(t.sum()), (0, None)
        for i, m in free.items():
            both = int((m[y0:y1, x0:x1] & t[y0:y1, x0:x1]).sum())
            best = max(best, (both / max(area + areas[i] - both, 1), i), key=lambda b: b[0])
        if best[0] > IOU:
            hits.append((k, best[1], best[0]))
            del free[best[1]]
    return hits


def match(truth, found):
    """IoU of each hit."""
    return [iou for _, _, iou in pairs(truth, found)]


class Tally:
    """Counts of one kind of scenes, or of objects and answers of one size."""

    def __init__(self):
        self.ious, self.right_answers, self.objects, self.answers, self.none, self.none_right = [], 0, 0, 0, 0, 0

    def scores(self):
        return {"objects": self.objects, "answers": self.answers, "hits": len(self.ious), "recall": len(self.ious) / max(self.objects, 1),
                "precision": self.right_answers / max(self.answers, 1), "mean_iou_of_hits": float(np.mean(self.ious)) if self.ious else 0.0,
                "nothing_there_right": self.none_right / max(self.none, 1), "nothing_there": self.none}

    def line(self):
        s = self.scores()
        share = lambda a, b: f"{a / b:.3f}  ({a} of {b})" if b else "-"
        return (f"{share(s['hits'], self.objects):24} {share(self.right_answers, self.answers):24} "
                f"{s['mean_iou_of_hits']:.3f}    {share(self.none_right, self.none)}")


def count(tally, groups, truth, found, hits):
    """One question into the tallies of its scene's kinds; each object and each answer also into that of its size."""
    longer = lambda mask: (lambda b: max(b[2] - b[0], b[3] - b[1]))(box_of(mask))
    of_size = lambda mask: tally.setdefault(f"size {scenes_unlike.band(scenes_unlike.SIZES, longer(mask))}", Tally())
    for name in groups:
        t = tally.setdefault(name, Tally())
        t.ious += [iou for _, _, iou in hits]
        t.right_answers += len(hits)
        t.objects += len(truth)
        t.answers += len(found)
        t.none += not truth
        t.none_right += not truth and not found
    if len(groups) == 1:
        return
    for mask in truth:
        of_size(mask).objects += 1
    for mask in found:
        of_size(mask).answers += 1
    for k, i, iou in hits:
        of_size(truth[k]).ious.append(iou)
        of_size(found[i]).right_answers += 1


def draw(args, seed):
    """Picture, objects and the names of what kinds of scene it is."""
    if args.set == "held-out":
        return *scenes.scene(seed, args.size), ["all"]
    rgb, placed, about = scenes_unlike.scene(seed, args.size) if args.set == "unlike" else scenes_unlike.like_training(seed, args.size)
    kinds = ["all", f"background {about['background']}"]
    return rgb, placed, kinds + ([f"crowd {scenes_unlike.band(scenes_unlike.CROWDS, len(placed))}"] if args.set == "unlike" else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "stencil"))
    parser.add_argument("--model", default=HERE)
    parser.add_argument("--set", choices=SETS, default="held-out")
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--size", type=int, help="side of the pictures in pixels (default: 224; unlike: 1344)")
    parser.add_argument("--input-size", type=int, help="side that the model resizes pictures to (`stencil segment --size`; not with --tile)")
    parser.add_argument("--threshold", type=float, default=.5)
    parser.add_argument("--tile", action="store_true", help="ask with `stencil label --tile`, as one would about large pictures")
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of words")
    args = parser.parse_args()
    if args.input_size and args.tile:
        parser.error("--tile has the model's own size")
    first, size = SETS[args.set]
    args.size = args.size or size
    tally = {"all": Tally()}
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first, first + args.scenes):
            rgb, placed, kinds = draw(args, seed)
            rng = random.Random(seed)
            questions = [scenes.question(rng, placed) for _ in range(QUESTIONS)]
            picture = os.path.join(scratch, "scene.png")
            Image.fromarray(rgb).save(picture, compress_level=1)
            masks = (ask_tiles if args.tile else ask)(args, picture, list(dict.fromkeys(phrase for phrase, _ in questions)))
            for phrase, right in questions:
                truth, found = [placed[i][1] for i in right], masks[phrase]
                count(tally, kinds, truth, found, pairs(truth, found))
    if args.json:
        print(json.dumps({"set": args.set, "scenes": args.scenes, "questions": args.scenes * QUESTIONS, "threshold": args.threshold,
                          **tally["all"].scores(), "kinds": {k: t.scores() for k, t in sorted(tally.items()) if k != "all"}}))
        return
    print(f"{args.scenes * QUESTIONS} questions on {args.scenes} scenes of {args.size} pixels (seeds {first} and up), threshold {args.threshold}, mask IoU > {IOU}")
    print(f"  {'':18} {'recall':24} {'precision':24} mean IoU \"nothing there\" said rightly")
    limits = [str(v) for v in scenes_unlike.SIZES + scenes_unlike.CROWDS]
    order = lambda k: (k != "all", k.split()[0], "under" not in k, next((limits.index(w) for w in k.split() if w in limits), 0), k)
    for kind in sorted(tally, key=order):
        print(f"  {kind:18} {tally[kind].line()}")


if __name__ == "__main__":
    main()
