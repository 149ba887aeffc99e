#!/usr/bin/env python3
"""Recall and precision of the demo model as Stencil runs it, at mask IoU 0.5, on generated scenes whose seeds were kept out of training.

    python3 models/demo/score.py [--stencil build/stencil] [--scenes 60]

Needs numpy, Pillow and the font that scenes.py names. Three questions per scene, about a third of which have no answer in the picture.
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

FIRST_SEED = 8_000_000
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
    for phrase in phrases:
        command += ["--phrase", phrase]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    results = json.loads(done.stdout)["images"][0]["results"]
    return {r["prompt"]["phrase"]: [decode(it["mask"]) for it in r["instances"]] for r in results}


def match(truth, found):
    """IoU of each hit: every true object takes the best answer that is still free, if it overlaps by more than IOU."""
    free, hits = list(found), []
    for t in truth:
        best = max(((float((m & t).sum() / max((m | t).sum(), 1)), i) for i, m in enumerate(free)), default=(0, None))
        if best[0] > IOU:
            hits.append(best[0])
            free.pop(best[1])
    return hits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "stencil"))
    parser.add_argument("--model", default=HERE)
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--size", type=int, default=224, help="side of the pictures in pixels")
    parser.add_argument("--threshold", type=float, default=.5)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of words")
    args = parser.parse_args()
    hits, objects, answers, none, none_right = [], 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(FIRST_SEED, FIRST_SEED + args.scenes):
            rgb, placed = scenes.scene(seed, args.size)
            rng = random.Random(seed)
            questions = [scenes.question(rng, placed) for _ in range(QUESTIONS)]
            picture = os.path.join(scratch, "scene.png")
            Image.fromarray(rgb).save(picture)
            masks = ask(args, picture, list(dict.fromkeys(phrase for phrase, _ in questions)))
            for phrase, right in questions:
                truth, found = [placed[i][1] for i in right], masks[phrase]
                hits += match(truth, found)
                objects += len(truth)
                answers += len(found)
                none += not truth
                none_right += not truth and not found
    score = {"scenes": args.scenes, "questions": args.scenes * QUESTIONS, "threshold": args.threshold, "objects": objects, "answers": answers,
             "hits": len(hits), "recall": len(hits) / max(objects, 1), "precision": len(hits) / max(answers, 1),
             "mean_iou_of_hits": float(np.mean(hits)) if hits else 0.0, "nothing_there_right": none_right / max(none, 1)}
    if args.json:
        print(json.dumps(score))
        return
    print(f"{score['questions']} questions on {args.scenes} scenes (seeds {FIRST_SEED} and up), threshold {args.threshold}, mask IoU > {IOU}")
    print(f"  recall    {score['recall']:.3f}  ({len(hits)} of {objects} objects found)")
    print(f"  precision {score['precision']:.3f}  ({len(hits)} of {answers} answers right)")
    print(f"  mean IoU of hits {score['mean_iou_of_hits']:.3f}")
    print(f"  \"nothing there\" said rightly {score['nothing_there_right']:.3f}  ({none_right} of {none} questions without an answer)")


if __name__ == "__main__":
    main()
