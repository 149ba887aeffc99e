#!/usr/bin/env python3
"""Do examples travel? Recall at mask IoU 0.5 of a concept made on one generated scene and asked for on another, beside the phrase's, with the demo model.

    python3 models/demo/score_concepts.py [--stencil build/stencil] [--scenes 100]

For each scene, one kind of thing in it that another scene shows as well; there, the box around its largest specimen is the example. Four ways of asking: the phrase, the
concept alone (its phrase is then "visual"), the concept with the phrase, two concepts with the phrase (where a third scene has the kind). Nothing has to be reached: the
model was not trained across pictures. Seeds and what is needed are those of score.py.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from score import FIRST_SEED, HERE, IOU, Image, decode, match, scenes

WAYS = ("phrase", "concept", "concept and phrase", "two concepts and phrase")


def stencil(args, *words):
    command = [args.stencil, *words, "-m", args.model, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def found(args, picture, *words):
    result, = json.loads(stencil(args, "segment", "--picture", picture, *words, "--threshold", str(args.threshold), "--format", "json"))["images"][0]["results"]
    return [decode(it["mask"]) for it in result["instances"]]


def make(args, picture, placed, kind, name, *words):
    """A concept of the kind's largest specimen there."""
    box = max((o for o in placed if o[0] == kind), key=lambda o: o[1].sum())[2]
    stencil(args, "concept", "make", picture, "--box", ",".join(str(v) for v in box), *words, "-o", name)
    return "--concept", name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "stencil"))
    parser.add_argument("--model", default=HERE)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--size", type=int, default=224, help="side of the pictures in pixels")
    parser.add_argument("--threshold", type=float, default=.5)
    args = parser.parse_args()
    tally = {way: [0, 0, 0] for way in WAYS}           # hits, objects, answers
    asked = 0
    with tempfile.TemporaryDirectory() as scratch:
        shown = []                                     # (picture, objects)
        for seed in range(FIRST_SEED, FIRST_SEED + args.scenes):
            rgb, placed = scenes.scene(seed, args.size)
            shown.append((os.path.join(scratch, f"{seed}.png"), placed))
            Image.fromarray(rgb).save(shown[-1][0])
        for k, (picture, placed) in enumerate(shown):
            elsewhere = lambda kind: [s for s in shown[k + 1:] + shown[:k] if any(o[0] == kind for o in s[1])]
            kinds = sorted(kind for kind in {o[0] for o in placed} if elsewhere(kind))
            if not kinds:
                continue
            kind = random.Random(FIRST_SEED + k).choice(kinds)
            phrase, others, c = scenes.CONCEPTS[kind][0][0], elsewhere(kind), os.path.join(scratch, "c")
            truth = [o[1] for o in placed if o[0] == kind]
            alone = make(args, *others[0], kind, c + "0")
            named = make(args, *others[0], kind, c + "1", "--phrase", phrase)
            answers = {WAYS[0]: found(args, picture, "--phrase", phrase), WAYS[1]: found(args, picture, *alone), WAYS[2]: found(args, picture, *named)}
            if len(others) > 1:
                answers[WAYS[3]] = found(args, picture, *named, *make(args, *others[1], kind, c + "2", "--phrase", phrase))
            for way, masks in answers.items():
                for i, n in enumerate((len(match(truth, masks)), len(truth), len(masks))):
                    tally[way][i] += n
            asked += 1
    print(f"{asked} kinds on as many scenes (seeds {FIRST_SEED} and up), examples from other scenes, threshold {args.threshold}, mask IoU > {IOU}")
    for way, (hits, objects, n) in tally.items():
        print(f"  {way:24} recall {hits / max(objects, 1):.3f}  ({hits} of {objects} objects found)  precision {hits / max(n, 1):.3f}  ({n} answers)")


if __name__ == "__main__":
    main()
