"""`stencil label` on generated scenes, scored by pycocotools beside Hugging Face's Sam3Model on the same scenes.

    python label_parity.py --stencil build/stencil [--scenes 300]

The demo model, one phrase per class, everything above a low floor. Stencil's side is the whole way: pictures on disk, the results store,
the COCO export, read back by pycocotools as polygons and as run lengths. The reference's side is the model's outputs with Meta's rule for
masks (logits resized, then > 0). Bar: mask AP, and AP of every class, equal within 0.002.
"""
import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from demo_goldens import load_demo, scene
from golden_set import instances

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST_SEED = 8_300_000
CLASSES = ["fruit", "vegetable", "food", "animal", "vehicle", "ball", "flower", "plant",        # the groups of scenes.py: most glyphs are in one
           "apple", "watermelon", "donut", "panda", "butterfly", "bus", "basketball", "mushroom"]
BAR = .002
NAMES = ["AP", "AP50", "AP75", "AP small", "AP medium", "AP large", "AR 1", "AR 10", "AR 100", "AR small", "AR medium", "AR large"]


def side_of(i, native):
    return native if i % 5 else native + 100 - 3 * (i % 60)          # every fifth picture has to be resized


def runs_of(inside):
    rle = coco_mask.encode(np.asfortranarray(inside.astype(np.uint8)))
    return {"size": [int(v) for v in rle["size"]], "counts": rle["counts"].decode()}


def draw(args, folder, scenes, native):
    """The pictures, and the truth as a COCO document."""
    doc = {"images": [], "annotations": [], "categories": [{"id": k + 1, "name": name} for k, name in enumerate(CLASSES)]}
    for i in range(args.scenes):
        size = side_of(i, native)
        rgb, objects = scene(args.model, FIRST_SEED + i, size)
        name = f"{i:04}.png"
        Image.fromarray(rgb).save(os.path.join(folder, name))
        doc["images"].append({"id": i + 1, "file_name": name, "width": size, "height": size})
        for glyph, inside, box in objects:
            for k, group in enumerate(CLASSES):
                if glyph in scenes.PHRASES[group]:
                    x0, y0, x1, y1 = map(float, box)
                    doc["annotations"].append({
                        "id": len(doc["annotations"]) + 1, "image_id": i + 1, "category_id": k + 1, "iscrowd": 0, "area": int(inside.sum()),
                        "bbox": [x0, y0, x1 - x0, y1 - y0], "segmentation": runs_of(inside)})
    return doc


def reference(args, folder, doc, ref):
    """What Sam3Model answers, as COCO results."""
    results = []
    for image in doc["images"]:
        rgb, reuse = np.asarray(Image.open(os.path.join(folder, image["file_name"])).convert("RGB")), None
        for k, phrase in enumerate(CLASSES):
            got = ref.forward(ref.inputs(rgb, phrase, [], []), reuse)
            reuse = reuse or got
            for it in instances(ref, got, image["width"], image["height"], args.floor):
                if it["area"]:
                    results.append({"image_id": image["id"], "category_id": k + 1, "segmentation": it["mask"], "score": it["score"]})
        if sys.stderr.isatty():
            print(f"\r{image['id']}/{len(doc['images'])}", end="", file=sys.stderr)
    return results


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")


def exported(args, job, into, *options):
    """The export's annotations as pycocotools reads them: {(file name, class, score): [run lengths]} in order."""
    run([args.stencil, "label", "export", job, "--format", "coco", "--threshold", str(args.floor), "-o", into, "--images", "none", *options])
    (path,) = [os.path.join(folder, f) for folder, _, files in os.walk(into) for f in files if f.endswith(".json")]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(path)
    names = {c["id"]: c["name"] for c in coco.dataset["categories"]}
    found = []
    for image in coco.dataset["images"]:
        for a in coco.loadAnns(coco.getAnnIds([image["id"]])):
            rle = coco.annToRLE(a)
            counts = rle["counts"].decode() if isinstance(rle["counts"], bytes) else rle["counts"]
            found.append((os.path.basename(image["file_name"]), names[a["category_id"]], a["score"], {"size": rle["size"], "counts": counts}))
    return found, {os.path.basename(i["file_name"]) for i in coco.dataset["images"]}


def mine(args, folder, doc, scratch):
    """What `stencil label` and its COCO export give, as COCO results; and whether polygons and run lengths are the same masks."""
    job = os.path.join(scratch, "job")
    command = [args.stencil, "label", folder, "-m", args.model, "-o", job, "--floor", str(args.floor), "--resize", "cpu", "--hf-text-only", "--quiet"]
    for name in CLASSES:
        command += ["--class", name]
    run(command)
    found, listed = exported(args, job, os.path.join(scratch, "rle"), "--rle")
    drawn, _ = exported(args, job, os.path.join(scratch, "polygons"))
    assert listed == {i["file_name"] for i in doc["images"]}, "the export does not list every picture"
    ids, differ = {i["file_name"]: i["id"] for i in doc["images"]}, sum(a != b for a, b in zip(found, drawn)) + abs(len(found) - len(drawn))
    return [{"image_id": ids[f], "category_id": CLASSES.index(c) + 1, "score": s, "segmentation": m} for f, c, s, m in found], differ


def evaluate(truth, results):
    """The twelve numbers, and AP per class."""
    with contextlib.redirect_stdout(io.StringIO()):
        scored = COCOeval(truth, truth.loadRes(results), "segm")
        scored.evaluate()
        scored.accumulate()
        scored.summarize()
    precision = scored.eval["precision"][:, :, :, 0, 2]                # [IoU, recall, class], all areas, 100 answers
    per_class = [float(p[p > -1].mean()) if (p > -1).any() else -1.0 for p in (precision[:, :, k] for k in range(precision.shape[2]))]
    return [float(v) for v in scored.stats], per_class


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(ROOT, "build", "stencil"))
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "demo"))
    parser.add_argument("--scenes", type=int, default=300)
    parser.add_argument("--floor", type=float, default=.05)
    parser.add_argument("--threads", type=int, default=1, help="more is slower on models this small")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ref = load_demo(args.model)
    scene(args.model, 0, 64)
    import scenes
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "scenes")
        os.makedirs(folder)
        doc = draw(args, folder, scenes, ref.image_size)
        truth = COCO()
        truth.dataset = doc
        with contextlib.redirect_stdout(io.StringIO()):
            truth.createIndex()
        want = reference(args, folder, doc, ref)
        got, differ = mine(args, folder, doc, scratch)
    if not want or not got:
        sys.exit(f"label parity: FAILED: nothing to compare: {len(want)} answers of the reference, {len(got)} of Stencil")
    (stats, classes), (my_stats, my_classes) = evaluate(truth, want), evaluate(truth, got)
    print(f"{args.scenes} scenes, {len(doc['annotations'])} objects, {len(CLASSES)} classes, floor {args.floor}: "
          f"{len(want)} answers of the reference, {len(got)} of Stencil, {differ} masks whose polygons are not their run lengths")
    print(f"{'':12} {'reference':>10} {'stencil':>10} {'apart':>9}")
    worst = 0.0
    for name, a, b in list(zip(NAMES, stats, my_stats)) + list(zip(CLASSES, classes, my_classes)):
        worst = max(worst, abs(a - b))
        print(f"{name:12} {a:10.4f} {b:10.4f} {abs(a - b):9.4f}")
    failed = worst > BAR or stats[0] <= 0 or differ
    print("label parity:", "FAILED" if failed else "passed", f"(largest difference {worst:.4f}, bar {BAR})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
