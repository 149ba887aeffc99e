"""The demo model's scores, Hugging Face's Sam3Model and Sam3TrackerModel beside Stencil, on scenes whose seeds were kept out of training.

    python demo_scores.py --stencil build/stencil [--scenes 100] [--size 336] [--model-size 336]

Both get the same pictures and the same prompts: three phrases a scene, one example box, negative boxes on what is asked for and on something else, one
click, one box, and one click with three corrective ones (in the middle of the largest error of the reference's mask). Both use the rule that a mask is where
resized logits are above 0, and the CPU's resize. Bar: no score differs by more than 0.002. Other bars are what the model was to reach; they are only shown.

Sam3TrackerModel does not add the no-memory embedding to what the mask decoder sees; Meta's code and this model's training do. Clicks are therefore scored a
second time as Stencil answers them by default, each corrective click where its own mask is wrong; there is nothing of Hugging Face's to set beside that.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from click_goldens import hf_click_reference
from demo_clicks import KINDS as CLICKS, LEAST_AREA, iou, middle, questions as click_questions, stencil_answers as stencil_clicks
from demo_goldens import load_demo

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "models", "demo"))
import model_at  # noqa: E402
import scenes  # noqa: E402
from score import FIRST_SEED, IOU, QUESTIONS, decode, pairs  # noqa: E402

AGREE = .002
DUMMY = [((0, 0, 1, 1), -10)]                     # no example, but the exemplar encoder's CLS token: how Meta's code asks a phrase
WAYS = ("phrase", "phrase, as HF asks", "example box")
BARS = {"phrase recall": .9, "phrase precision": .9, "phrase mean IoU of hits": .85, "phrase nothing right": .95, "example box recall": .8,
        "example box precision": .8, "negative box removes its kind": .8, "one click mean IoU": .85, "one box mean IoU": .9,
        "three corrective clicks mean IoU": .93}


class Side:
    """What one implementation came to."""

    def __init__(self):
        self.n = {way: dict(objects=0, answers=0, none=0, none_right=0, ious=[]) for way in WAYS}
        self.removed, self.kept, self.clicks, self.by_default = [0, 0], [0, 0], {kind: [] for kind in CLICKS}, {kind: [] for kind in CLICKS}

    def question(self, way, truth, found):
        n = self.n[way]
        n["ious"] += [v for _, _, v in pairs(truth, found)]
        n["objects"] += len(truth)
        n["answers"] += len(found)
        n["none"] += not truth
        n["none_right"] += not truth and not found

    def negative(self, tally, truth, before, after, all_gone):
        """Of the kind that was found before: is it gone; or, asked the other way, how many objects are still found."""
        was, still = ({k for k, _, _ in pairs(truth, found)} for found in (before, after))
        tally[0] += bool(was) if all_gone else len(was)
        tally[1] += bool(was) and not still if all_gone else len(was & still)

    def scores(self):
        """name -> (value, out of how many)."""
        out = {}
        for way, n in self.n.items():
            hits = len(n["ious"])
            out[f"{way} recall"] = hits / max(n["objects"], 1), n["objects"]
            out[f"{way} precision"] = hits / max(n["answers"], 1), n["answers"]
            out[f"{way} mean IoU of hits"] = float(np.mean(n["ious"] or [0])), hits
            if n["none"]:
                out[f"{way} nothing right"] = n["none_right"] / n["none"], n["none"]
        out["negative box removes its kind"] = self.removed[1] / max(self.removed[0], 1), self.removed[0]
        out["negative box leaves the rest"] = self.kept[1] / max(self.kept[0], 1), self.kept[0]
        out.update({f"{kind} mean IoU": (float(np.mean(v or [0])), len(v)) for kind, v in self.clicks.items()})
        return out


class Reference:
    """Sam3Model on one picture, with nothing watched."""

    def __init__(self, ref, threshold):
        self.ref, self.threshold = ref, threshold

    def picture(self, rgb):
        self.rgb, self.seen = rgb, None

    @torch.no_grad()
    def ask(self, phrases, boxes, text_only=False):
        """[[bool mask] by falling score], one list a phrase; boxes are [((x0, y0, x1, y1), label)]."""
        model, (height, width), out = self.ref.model, self.rgb.shape[:2], []
        boxes = boxes if boxes or text_only else DUMMY
        for phrase in phrases:
            inputs = self.ref.inputs(self.rgb, phrase, [b for b, _ in boxes], [label for _, label in boxes])
            pixels = inputs.pop("pixel_values")
            self.seen = self.seen or model.get_vision_features(pixels)
            got = model(vision_embeds=self.seen, **{k: v for k, v in inputs.items() if k != "original_sizes"})
            scores = (got.pred_logits.sigmoid() * got.presence_logits.sigmoid())[0]
            keep = [q for q in scores.argsort(descending=True).tolist() if scores[q] > self.threshold]
            full = F.interpolate(got.pred_masks[0, keep][:, None], size=(height, width), mode="bilinear", align_corners=False)[:, 0] if keep else []
            out.append([m.numpy() > 0 for m in full])
        return out


class Stencil:
    """The program on one picture."""

    def __init__(self, args, scratch):
        self.args, self.path = args, os.path.join(scratch, "scene.png")

    def picture(self, rgb):
        Image.fromarray(rgb).save(self.path, compress_level=1)

    def ask(self, phrases, boxes, text_only=False):
        command = [self.args.stencil, "segment", "--picture", self.path, "-m", self.args.model, "--threshold", str(self.args.threshold), "--format", "json",
                   "--resize", "cpu", "--quiet"] + (["--hf-text-only"] if text_only else [])
        for phrase in phrases:
            command += ["--phrase", phrase] if phrase is not None else []
        for box, label in boxes:
            command += ["--box", ",".join(f"{v:g}" for v in box) + ("" if label else ":neg")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
        results = json.loads(done.stdout)["images"][0]["results"]
        assert [r["prompt"]["phrase"] for r in results] == [p if p is not None else "visual" for p in phrases], (phrases, results)
        return [[decode(it["mask"]) for it in r["instances"]] for r in results]


def prompts(seed, objects):
    """What is asked about one scene, beside its phrases: (what, phrase, box, true objects)."""
    rng = random.Random(seed + 1)
    if not objects:
        return
    first = rng.choice(objects)
    same = lambda glyph: [o[1] for o in objects if o[0] == glyph]
    yield "example", None, (tuple(map(float, first[2])), 1), same(first[0])
    glyph = rng.choice(sorted({o[0] for o in objects}))
    names, groups = scenes.CONCEPTS[glyph]
    box = rng.choice([o[2] for o in objects if o[0] == glyph])
    yield "removes", rng.choice(groups or names), (tuple(map(float, box)), 0), same(glyph)
    phrase = rng.choice(names)
    others = [o[2] for o in objects if o[0] not in scenes.PHRASES[phrase]]
    if others:
        yield "leaves", phrase, (tuple(map(float, rng.choice(others))), 0), same(glyph)


def ask_scene(who, side, seed, rgb, objects):
    rng = random.Random(seed)
    asked, more = [scenes.question(rng, objects) for _ in range(QUESTIONS)], list(prompts(seed, objects))
    phrases = list(dict.fromkeys(phrase for phrase, _ in asked))
    every = list(dict.fromkeys(phrases + [phrase for _, phrase, _, _ in more if phrase is not None]))
    who.picture(rgb)
    plain, as_hf = dict(zip(every, who.ask(every, []))), dict(zip(phrases, who.ask(phrases, [], True)))
    for phrase, right in asked:
        truth = [objects[i][1] for i in right]
        side.question(WAYS[0], truth, plain[phrase])
        side.question(WAYS[1], truth, as_hf[phrase])
    for what, phrase, box, truth in more:
        found, = who.ask([phrase], [box])
        if what == "example":
            side.question(WAYS[2], truth, found)
        else:
            side.negative(side.removed if what == "removes" else side.kept, truth, plain[phrase], found, what == "removes")


def by_default(args, picture, truth, box):
    """(kind, IoU) of `stencil click` as it is without --hf, one conversation."""
    command = [args.stencil, "click", "--resize", "cpu", "--quiet", "-m", args.model, picture]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        def say(verb):
            program.stdin.write(json.dumps(verb) + "\n")
            program.stdin.flush()
            reply = json.loads(program.stdout.readline())
            assert reply["ok"], reply
            return decode(reply["candidates"][reply["chosen"]]["mask"]) if reply.get("candidates") else None

        def click(x, y):
            return say({"op": "point", "x": x, "y": y, "label": int(truth[y, x])})
        program.stdout.readline()                 # the picture is open
        yield CLICKS[1], iou(say({"op": "region", "box": [float(v) for v in box]}), truth)
        say({"op": "reset"})
        mask = click(*middle(truth))
        yield CLICKS[0], iou(mask, truth)
        for _ in range(3):
            if (mask != truth).any():
                mask = click(*middle(mask != truth))
        yield CLICKS[2], iou(mask, truth)
        program.stdin.close()


def click_scene(args, ref, sides, seed, rgb, objects, picture):
    objects = [o for o in objects if o[1].sum() >= LEAST_AREA]
    if not objects:
        return
    _, truth, box = objects[seed % len(objects)]
    ref.set_picture(ref.pixels(rgb), rgb.shape[1], rgb.shape[0])
    todo = list(click_questions(ref, truth, box))
    for (kind, _, theirs), (mask, _) in zip(todo, stencil_clicks(args, picture, todo)):
        sides[0].clicks[kind].append(iou(theirs.mask, truth))
        sides[1].clicks[kind].append(iou(mask, truth))
    for kind, value in by_default(args, picture, truth, box):
        sides[1].by_default[kind].append(value)


def show(sides):
    """The table; the largest difference."""
    theirs, mine = (side.scores() for side in sides)
    print(f"{'':38} {'of':>6} {'HF':>8} {'Stencil':>8} {'apart':>8} {'bar':>6}")
    for name, (value, n) in theirs.items():
        bar = f"{BARS[name]:6.2f}" + ("" if min(value, mine[name][0]) >= BARS[name] else "  not reached") if name in BARS else ""
        print(f"{name:38} {n:6} {value:8.4f} {mine[name][0]:8.4f} {abs(value - mine[name][0]):8.1e} {bar}")
    for kind, v in sides[1].by_default.items():
        value, bar = float(np.mean(v or [0])), BARS[f"{kind} mean IoU"]
        print(f"{kind + ', by default':38} {len(v):6} {'-':>8} {value:8.4f} {'-':>8} {bar:6.2f}{'' if value >= bar else '  not reached'}")
    return max(abs(theirs[name][0] - mine[name][0]) for name in theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(ROOT, "build", "stencil"))
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "demo"))
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--size", type=int, default=336, help="side of the pictures in pixels")
    parser.add_argument("--model-size", type=int, help="what the model looks at (default: its own size, to which pictures are reduced)")
    parser.add_argument("--threshold", type=float, default=.5)
    parser.add_argument("--threads", type=int, default=1, help="more is slower on models this small")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as scratch:
        if args.model_size:
            args.model = model_at.model_at(args.model_size, os.path.join(scratch, "model"), args.model)
        reference, clicks, mine, sides = Reference(load_demo(args.model), args.threshold), hf_click_reference(args.model), Stencil(args, scratch), (Side(), Side())
        for seed in range(FIRST_SEED, FIRST_SEED + args.scenes):
            rgb, objects = scenes.scene(seed, args.size)
            for who, side in zip((reference, mine), sides):
                ask_scene(who, side, seed, rgb, objects)
            click_scene(args, clicks, sides, seed, rgb, objects, mine.path)
            if sys.stderr.isatty():
                print(f"\r{seed - FIRST_SEED + 1}/{args.scenes}", end="", file=sys.stderr)
        print(f"{args.scenes} scenes of {args.size} pixels (seeds {FIRST_SEED} and up), model for {reference.ref.image_size}, threshold {args.threshold}, "
              f"mask IoU > {IOU}")
    apart = show(sides)
    print(f"demo scores: {'passed' if apart <= AGREE else 'FAILED'}: largest difference {apart:.2g}, bar {AGREE:g}")
    sys.exit(0 if apart <= AGREE else 1)


if __name__ == "__main__":
    main()
