"""The demo model's clicks: Stencil (`stencil click --hf`) beside Hugging Face's Sam3TrackerModel, on generated scenes.

    python demo_clicks.py --stencil build/stencil [--scenes 100]

One object of each scene is asked for by one click in its middle, by its box, and by one click and three corrective ones: each in the middle of the
largest error of the reference's mask, fed the best low-resolution logits of the call before. Both get the same clicks. Printed: mean IoU with the true
mask on either side. Bar: the two IoUs of every question agree within 0.002, unless the reference's two best candidates, or its choice by stability, are so
close that rounding decides.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from scipy import ndimage

from click_goldens import hf_click_reference
from demo_goldens import scene

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST_SEED = 8_200_000
KINDS = ("one click", "one box", "three corrective clicks")
AGREE, CLOSE, LEAST_AREA = .002, 1e-4, 60


def middle(mask):
    """(x, y) of the pixel farthest from the edge of the largest part."""
    labels, n = ndimage.label(mask)
    part = labels == 1 + np.argmax(ndimage.sum(mask, labels, range(1, n + 1)))
    far = ndimage.distance_transform_edt(np.pad(part, 1))[1:-1, 1:-1]
    y, x = np.unravel_index(np.argmax(far), far.shape)
    return int(x), int(y)


def iou(a, b):
    return float((a & b).sum() / max((a | b).sum(), 1))


class Asked:
    """The reference's answer to one prompt."""

    def __init__(self, ref, prompt, multimask):
        scores, low, full = ref.predict(prompt, multimask, 0)
        best = int(torch.argmax(scores))
        ordered = scores.sort(descending=True).values
        self.mask, self.low, self.score = (full[best] > 0).numpy(), low[best].clone(), scores[best].item()
        self.close = multimask and (ordered[0] - ordered[1]).item() < CLOSE
        if not multimask:                              # the single mask's stability, a little off either way
            single = ref.forward({}, prompt)["click.masks"][0, 0]
            ratio = lambda e: (single > .05 + e).sum().item() / max((single > -.05 - e).sum().item(), 1)
            self.close = (ratio(CLOSE) >= .98) != (ratio(-CLOSE) >= .98)


def questions(ref, truth, box):
    """(kind, what Stencil is told, the reference's answer)."""
    prompt = lambda points=(), region=None, mask=None: {"points": list(points), "region": region, "mask": mask}
    x, y = middle(truth)
    points, tell = [(x, y, True)], [{"op": "point", "x": x, "y": y, "label": 1}]
    answer = Asked(ref, prompt(points), True)
    yield KINDS[0], list(tell), answer
    region = tuple(float(v) for v in box)
    yield KINDS[1], [{"op": "region", "box": list(region)}], Asked(ref, prompt((), region), False)
    close = answer.close
    for _ in range(3):
        wrong = answer.mask != truth
        if not wrong.any():
            break
        x, y = middle(wrong)
        points = points + [(x, y, bool(truth[y, x]))]
        tell.append({"op": "point", "x": x, "y": y, "label": int(truth[y, x])})
        answer = Asked(ref, prompt(points, None, answer.low), False)
        close = close or answer.close                  # a click that hangs on rounding spoils those after it
    answer.close = close
    yield KINDS[2], tell, answer


def stencil_answers(args, picture, todo):
    """The chosen mask after each question's last verb: one conversation, a reset between questions."""
    from pycocotools import mask
    lines = [verb for _, verbs, _ in todo for verb in [{"op": "reset"}] + verbs]
    command = [args.stencil, "click", "--hf", "--resize", "cpu", "--quiet", "-m", args.model, picture]
    done = subprocess.run(command, input="".join(json.dumps(line) + "\n" for line in lines), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    replies = [json.loads(line) for line in done.stdout.splitlines()][1:]        # the first says that the picture is open
    assert len(replies) == len(lines), (len(replies), len(lines), done.stderr)
    bad = [r for r in replies if not r["ok"]]
    assert not bad, bad[:2]
    at = -1
    for _, verbs, _ in todo:
        at += 1 + len(verbs)
        best = replies[at]["candidates"][replies[at]["chosen"]]
        yield mask.decode(best["mask"]).astype(bool), best["predicted_iou"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(ROOT, "build", "stencil"))
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "demo"))
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1, help="more is slower on models this small")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    ref, seed, n = hf_click_reference(args.model), FIRST_SEED, 0
    rows, wrong = {kind: [] for kind in KINDS}, []
    with tempfile.TemporaryDirectory() as scratch:
        while n < args.scenes:
            seed += 1
            rgb, objects = scene(args.model, seed, ref.image_size)
            objects = [o for o in objects if o[1].sum() >= LEAST_AREA]
            if not objects:
                continue
            n += 1
            _, truth, box = objects[seed % len(objects)]
            truth = np.asarray(truth, bool)
            ref.set_picture(ref.pixels(rgb), rgb.shape[1], rgb.shape[0])
            todo = list(questions(ref, truth, box))
            picture = os.path.join(scratch, "scene.png")
            Image.fromarray(rgb).save(picture)
            for (kind, _, theirs), (mask, score) in zip(todo, stencil_answers(args, picture, todo)):
                a, b = iou(theirs.mask, truth), iou(mask, truth)
                rows[kind].append((a, b, int((theirs.mask != mask).sum()), abs(theirs.score - score), theirs.close))
                if abs(a - b) > AGREE and not theirs.close:
                    wrong.append(f"scene {seed}, {kind}: IoU {a:.4f} and {b:.4f}, predicted {theirs.score:.5f} and {score:.5f}")
    print(f"{'asked by':24} {'scenes':>7} {'HF IoU':>8} {'Stencil':>8} {'apart':>8} {'mask px':>8} {'score':>9} {'close':>6}")
    for kind, found in rows.items():
        a, b = np.mean([r[0] for r in found]), np.mean([r[1] for r in found])
        clear = [r for r in found if not r[4]]
        print(f"{kind:24} {len(found):7} {a:8.4f} {b:8.4f} {max(abs(r[0] - r[1]) for r in clear):8.1e} {sum(r[2] for r in clear):8} "
              f"{max(r[3] for r in clear):9.1e} {len(found) - len(clear):6}")
        if abs(a - b) > AGREE or len(clear) < .9 * len(found):
            wrong.append(f"{kind}: means {a:.4f} and {b:.4f}, {len(clear)} of {len(found)} questions that no rounding decides")
    print("\n".join(wrong[:40]))
    print("demo clicks:", "FAILED" if wrong else "passed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
