#!/usr/bin/env python3
"""What int8 changes: the demo model as it is against `stencil quantize` of it, on generated scenes that were kept out of training.

    python3 models/demo/int8_score.py [--stencil build/stencil] [--scenes 500]

A scene counts as the same when every phrase has the same instances: as many, each overlapping one of the other model's by more than half; an
instance whose score lies within 0.01 of the threshold may be there or not. Needs numpy, Pillow and the font that scenes.py names.
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
    sys.exit(f"int8_score.py: {missing}; it needs numpy and Pillow (Debian: python3-numpy, python3-pil) and fonts-noto-color-emoji")

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import scenes  # noqa: E402
from score import FIRST_SEED, decode  # noqa: E402

QUESTIONS = 3
NEAR = .01
BATCH = 25


def ask(args, model, pictures, phrases):
    """[picture][phrase] -> [(score, mask)] of one run of the program over some pictures."""
    command = [args.stencil, "segment", "-m", model, "--threshold", str(args.threshold - NEAR), "--format", "json", "--quiet"]
    for picture in pictures:
        command += ["--picture", picture]
    for phrase in phrases:
        command += ["--phrase", phrase]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return [{r["prompt"]["phrase"]: [(i["score"], decode(i["mask"])) for i in r["instances"]] for r in image["results"]}
            for image in json.loads(done.stdout)["images"]]


def iou(a, b):
    union = int((a | b).sum())
    return float((a & b).sum()) / union if union else 1.0


def pair(threshold, plain, small):
    """IoUs of the pairs, and whether the two lists say the same."""
    free, ious, same = list(range(len(small))), [], True
    for score, mask in plain:
        best = max(((iou(mask, small[i][1]), i) for i in free), default=(0.0, None))
        if best[0] > .5:
            free.remove(best[1])
            if score > threshold:
                ious.append(best[0])
        else:
            same = same and score <= threshold + NEAR
    return ious, same and all(small[i][0] <= threshold + NEAR for i in free)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "stencil"))
    parser.add_argument("--model", default=HERE)
    parser.add_argument("--int8", help="a quantised model; without: made here, measured on the first scenes before the scored ones")
    parser.add_argument("--scenes", type=int, default=500)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threshold", type=float, default=.5)
    args = parser.parse_args()
    ious, same, differences = [], 0, []
    with tempfile.TemporaryDirectory() as scratch:
        small = args.int8 or os.path.join(scratch, "int8.safetensors")
        if not args.int8:
            folder = os.path.join(scratch, "calibrate")
            os.mkdir(folder)
            for seed in range(FIRST_SEED - 4, FIRST_SEED):
                Image.fromarray(scenes.scene(seed, args.size)[0]).save(os.path.join(folder, f"{seed}.png"))
            subprocess.run([args.stencil, "quantize", args.model, "--calibrate", folder, "-o", small, "--quiet"], check=True)
        for first in range(FIRST_SEED, FIRST_SEED + args.scenes, BATCH):
            seeds = range(first, min(first + BATCH, FIRST_SEED + args.scenes))
            pictures, phrases = [], []
            for seed in seeds:
                rgb, placed = scenes.scene(seed, args.size)
                rng = random.Random(seed)
                phrases += [scenes.question(rng, placed)[0] for _ in range(QUESTIONS)] if len(phrases) < 2 * QUESTIONS else []
                pictures.append(os.path.join(scratch, f"{seed}.png"))
                Image.fromarray(rgb).save(pictures[-1])
            phrases = list(dict.fromkeys(phrases))
            for seed, a, b in zip(seeds, ask(args, args.model, pictures, phrases), ask(args, small, pictures, phrases)):
                fine = True
                for phrase in phrases:
                    found, equal = pair(args.threshold, a[phrase], b[phrase])
                    ious += found
                    fine = fine and equal
                same += fine
                if not fine:
                    differences.append(seed)
    print(f"{args.scenes} scenes (seeds {FIRST_SEED} and up), threshold {args.threshold}: {len(ious)} instances in both")
    print(f"  the same instances on {same} scenes ({100 * same / args.scenes:.1f} %)")
    print(f"  mean mask IoU {np.mean(ious) if ious else 0:.4f}, lowest {min(ious, default=0):.3f}")
    if differences:
        print("  others: seeds " + " ".join(str(s) for s in differences[:20]) + (" ..." if len(differences) > 20 else ""))


if __name__ == "__main__":
    main()
