"""Everything mode: what Hugging Face's mask-generation pipeline makes of two models: the tiny one with random weights, and the demo model.

The pipeline runs as it is. Its filter is watched from outside and called one candidate at a time, so that each mask is kept with two more thresholds:
pixels whose logit is within `room` of 0 may fall on either side.

`everything.json`: `sets` of `model`, `picture` (paths from the root of the tree) and `cases`: `options` in Stencil's names, `n_points`, `n_passed` (candidates
before NMS), `masks` by falling predicted IoU: `iou`, `stability`, `box` (ends behind the last pixel), `area`, `crop`, `inner` and `outer` (COCO RLE of
logit > room and > -room). `nms` and `crops`: what torchvision and the image processor say of boxes and sizes.

Thresholds are put where no candidate is near them, and a case is only taken when rounding could not change which masks stay.
"""
import os
import random

import torch
from PIL import Image
from torchvision.transforms.v2.functional import _geometry

import pictures
from golden_set import coco_mask, versions, write_json

LOGIT, SCORE = 4e-5, 2e-6          # what fp32 may do to a logit, as a part of the mask's RMS, and to a predicted IoU
# name, clicks a side, layers of crops, NMS thresholds (the first that leaves enough masks), how many are enough, shares that the two cuts let through, of those before,
# overlap of crops if not the published one
NMS = (.7, .8, .9, .95, .98)
# The masks of random weights are noise that fills its crop, so all of a crop end at its edge: crops are the demo model's.
OF_TINY = [("candidates", 3, 0, (1.0,), 9, (.7, .7)), ("picture", 6, 0, NMS, 1, (.6, .6))]
OF_DEMO = [("crops", 4, 1, NMS, 2, (.65, .9)), ("demo candidates", 4, 0, (1.0,), 12, (.8, .9)), ("demo picture", 6, 0, NMS, 2, (.65, .9)),
           ("wide overlap", 3, 1, NMS[::-1], 4, (.65, .9), .5), ("narrow overlap", 5, 1, NMS, 2, (.65, .9), .1)]
TINY, DEMO, HERE = "tests/golden/data/tiny-hf-click", "models/demo", "tests/golden/data/everything"
SETS = [(TINY, HERE + "/square.png", OF_TINY), (DEMO, DEMO + "/check.png", OF_DEMO)]
SEED, SIDE = 3, 150                # of the square picture


class Watch:
    """Sits in place of the image processor's filter_masks; remembers every candidate that passed."""

    def __init__(self, processor):
        self.filter, self.processor = processor.filter_masks, processor
        processor.filter_masks = self
        self.start()

    def start(self, raw_only=False):
        self.raw, self.passed, self.raw_only = [], [], raw_only

    def __call__(self, masks, iou_scores, original_size, crop, pred_iou_thresh, stability_score_thresh, mask_threshold, offset):
        from transformers.models.sam3.image_processing_sam3 import _compute_stability_score, _pad_masks
        if self.raw_only:
            self.raw += zip(iou_scores.flatten().tolist(), masks.flatten(0, 1))
            masks, iou_scores = masks[:0], iou_scores[:0]
        runs, scores, boxes = [], [iou_scores.new_zeros(0)], [iou_scores.new_zeros(0, 4)]
        for logits, iou in zip(masks.flatten(0, 1), iou_scores.flatten()):
            stability = _compute_stability_score(logits[None], mask_threshold, offset).item()
            got = self.filter(logits[None, None], iou[None, None], original_size, crop, pred_iou_thresh, stability_score_thresh, mask_threshold, offset)
            runs, scores, boxes = runs + got[0], scores + [got[1]], boxes + [got[2]]
            if not got[0]:
                continue
            whole = lambda inside: _pad_masks(inside[None], crop, *original_size)[0]
            room = LOGIT * logits.square().mean().sqrt()
            inner, outer = whole(logits > room), whole(logits > -room)
            x0, y0, x1, y1 = got[2][0].tolist()
            self.passed.append({
                "iou": iou.item(), "stability": stability, "box": [x0, y0, x1 + 1, y1 + 1], "area": int((logits > 0).sum()),
                "crop": [int(v) for v in crop], "inner": coco_mask(inner)["counts"], "outer": coco_mask(outer)["counts"],
                "inner_box": box_of(inner), "outer_box": box_of(outer)})
        return runs, torch.cat(scores), torch.cat(boxes)


def box_of(inside):
    from transformers.models.sam3.image_processing_sam3 import _batched_mask_to_box
    return _batched_mask_to_box(inside[None])[0].tolist()


def load(folder):
    from transformers import Sam3ImageProcessor, Sam3TrackerModel, pipeline
    model = Sam3TrackerModel.from_pretrained(folder, dtype=torch.float32).eval()
    n, mask = model.config.vision_config.backbone_config.image_size, model.config.vision_config.backbone_config.patch_size
    processor = Sam3ImageProcessor(size={"height": n, "width": n}, mask_size={"height": 4 * n // mask, "width": 4 * n // mask})
    _geometry._do_native_uint8_resize_on_cpu = lambda interpolation: True  # what a CPU with AVX2 does, on any machine: --resize cpu
    return pipeline("mask-generation", model=model, image_processor=processor), Watch(processor)


def gap(values, share):
    """The middle of the widest gap near the place that lets `share` of the values through, and half its width."""
    ordered = sorted(values, reverse=True)
    about = range(max(1, int(len(ordered) * share * .8)), min(len(ordered), int(len(ordered) * share * 1.2) + 1))
    width, k = max((ordered[i - 1] - ordered[i], i) for i in about)
    return (ordered[k - 1] + ordered[k]) / 2, width / 2


def survivors(passed, threshold, rng=None):
    """Which masks NMS leaves; with rng, after rounding did its worst."""
    from torchvision.ops import nms
    side = lambda m, i: m["box"][i] - (i >= 2) if rng is None else rng.choice((m["inner_box"][i], m["outer_box"][i]))
    boxes = torch.tensor([[float(side(m, i)) for i in range(4)] for m in passed])
    scores = torch.tensor([m["iou"] + (rng.uniform(-SCORE, SCORE) if rng else 0) for m in passed])
    return nms(boxes, scores, threshold).tolist()


def pick_offset(raw):
    """1 as published, less for a model whose logits are all near 0: most candidates must have some stability."""
    for offset in (1.0, .5, .25, .125, .0625, .03125, .015625, .0078125):
        stability = [((l > offset).sum() / (l > -offset).sum().clamp(min=1)).item() for _, l in raw]
        if sum(s > .2 for s in stability) >= .5 * len(raw):
            return offset
    raise AssertionError("this model's masks are all near 0")


def settled(passed, thresholds, enough):
    """The first NMS threshold that leaves enough masks, the same ones whatever rounding does."""
    for threshold in thresholds:
        kept, rng = survivors(passed, threshold), random.Random(1)
        if len(kept) >= enough and all(sorted(survivors(passed, threshold, rng)) == sorted(kept) for _ in range(100)):
            return threshold, kept
    raise AssertionError("no NMS threshold leaves enough masks that rounding could not change")


def make_case(generate, watch, image, name, side, layers, thresholds, enough, shares, overlap=None):
    ask = dict(points_per_batch=16, points_per_crop=side, crops_n_layers=layers, **({"crop_overlap_ratio": overlap} if overlap else {}))
    watch.start(raw_only=True)
    generate(image, **ask)
    raw, n_points = watch.raw, side * side * sum(4 ** i for i in range(layers + 1))
    offset = pick_offset(raw)
    iou, iou_room = gap([i for i, _ in raw], shares[0])
    above = [((l > offset).sum() / (l > -offset).sum()).item() for i, l in raw if i > iou]
    stability, stability_room = gap([s for s in above if s == s], shares[1])
    assert iou_room > 5 * SCORE and stability_room > 1e-4 and stability > 0, (name, iou_room, stability_room, stability)
    cuts = {"pred_iou_thresh": iou, "stability_score_thresh": stability, "stability_score_offset": offset}
    watch.start()
    generate(image, **cuts, **ask)
    passed = list(watch.passed)
    threshold, kept = settled(passed, thresholds, enough)
    out = generate(image, **cuts, **ask, crops_nms_thresh=threshold)
    assert out["scores"].tolist() == [passed[i]["iou"] for i in kept], name
    masks = [{k: v for k, v in passed[i].items() if not k.endswith("_box")} for i in kept]
    print(f"  {name}: {n_points} clicks, offset {offset}, IoU > {iou:.4f}, stability > {stability:.4f}: {len(passed)} of {len(raw)} pass, {len(masks)} stay "
          f"at {threshold}, areas {[m['area'] for m in masks][:8]}")
    return {"name": name, "n_points": n_points, "n_passed": len(passed), "masks": masks,
            "options": {"points_per_side": side, "crop_n_layers": layers, "crop_nms_thresh": threshold, **({"crop_overlap_ratio": overlap} if overlap else {}), **cuts}}


def nms_vectors(seed=3):
    """torchvision's nms on whole-pixel boxes, some without area, with scores that tie."""
    from torchvision.ops import nms
    rng, vectors = random.Random(seed), []
    for n, threshold in ((1, .5), (40, .3), (60, .5), (80, .7), (30, 0.), (30, 1.)):
        boxes = []
        for _ in range(n):
            x, y = rng.randrange(20), rng.randrange(20)
            boxes.append([x, y, x + rng.randrange(40), y + rng.randrange(40)])
        scores = [rng.randrange(n // 3 + 1) / 64 for _ in range(n)]
        kept = nms(torch.tensor(boxes, dtype=torch.float32), torch.tensor(scores), threshold).tolist()
        vectors.append({"boxes": boxes, "scores": scores, "threshold": threshold, "kept": kept})
    return vectors


def crop_vectors():
    """The crops that the pipeline makes of pictures of awkward sizes."""
    from transformers.models.sam3.image_processing_sam3 import _generate_per_layer_crops
    asked = ((224, 224, 1, 512 / 1500), (1500, 1500, 1, 512 / 1500), (301, 97, 2, 512 / 1500), (640, 481, 3, .1), (50, 50, 1, 0.))
    return [{"width": w, "height": h, "layers": n, "ratio": ratio, "crops": [[*box, layer] for box, layer in zip(*_generate_per_layer_crops(n, ratio, (h, w)))]}
            for w, h, n, ratio in asked]


def everything_set(root, folder):
    """root: of the tree; folder: where everything.json and square.png go."""
    os.makedirs(folder, exist_ok=True)
    Image.fromarray(pictures.synthetic(SEED, SIDE, SIDE)).save(os.path.join(folder, "square.png"), optimize=True)
    sets = []
    for model, picture, cases in SETS:
        generate, watch = load(os.path.join(root, model))
        image = Image.open(os.path.join(folder, "square.png") if picture.startswith(HERE) else os.path.join(root, picture)).convert("RGB")
        sets.append({"model": model, "picture": picture, "cases": [make_case(generate, watch, image, *case) for case in cases]})
    path = os.path.join(folder, "everything.json")
    write_json(path, {"versions": versions(), "nms": nms_vectors(), "crops": crop_vectors(), "sets": sets})
    print(f"  {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    import sys
    everything_set(*sys.argv[1:3])
