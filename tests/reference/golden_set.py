"""Writes one folder of goldens, and compares a fresh one with the committed one. README.md describes the format."""
import hashlib
import importlib.metadata
import json
import os

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from double_mode import as_double, in_double
from stage import brief, measure

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("torch", "torchvision", "transformers", "sam3", "open_clip_torch", "numpy", "pillow", "pycocotools", "ftfy")


def versions():
    return {name: importlib.metadata.version(name) for name in PACKAGES}


SCRIPTS = ("demo_goldens", "double_mode", "golden_set", "hf_reference", "meta_on_cpu", "meta_reference", "pictures", "random_weights",
           "resize_goldens", "stage", "tiny_goldens")

CLICK_SCRIPTS = SCRIPTS + ("click_goldens", "click_reference", "hf_click_reference", "meta_click_reference")


def scripts_sha256(names=SCRIPTS):
    """Over every script that has a part in the numbers."""
    total = hashlib.sha256()
    for name in names:
        with open(os.path.join(HERE, name + ".py"), "rb") as f:
            total.update(name.encode() + b"\0" + f.read())
    return total.hexdigest()


def save_tensors(path, tensors, about):
    """One metadata entry only: the library writes entries in no fixed order, and files must not differ from run to run. The scripts' hash
    stands in the JSON beside it alone: a new comment in a script must not change megabytes of tensors."""
    about = {k: v for k, v in about.items() if k != "scripts_sha256"}
    save_file({k: v.contiguous() for k, v in tensors.items()}, path, {"stencil": json.dumps(about, sort_keys=True)})
    os.chmod(path, 0o644)


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, sort_keys=True)
        f.write("\n")


def pick_threshold(scores, low=3, high=6, gap_least=4e-3):
    """Midway in the widest gap that keeps low..high of the queries, so that no score is near it, and no two of the kept ones are so close that
    rounding could swap them."""
    ordered = sorted(scores, reverse=True)
    apart = [a - b for a, b in zip(ordered, ordered[1:])]
    gap, k = max(((apart[k - 1], k) for k in range(low, high + 1) if min(apart[:k]) > 2e-5), default=(0, 0))
    assert gap > gap_least, ("scores too close together", ordered)
    return round((ordered[k - 1] + ordered[k]) / 2, 5 if gap < 4e-3 else 4)


def coco_mask(inside):
    from pycocotools import mask
    rle = mask.encode(np.asfortranarray(inside.numpy().astype(np.uint8)))
    return {"size": [int(v) for v in rle["size"]], "counts": rle["counts"].decode()}


def instances(reference, got, width, height, threshold):
    """What a user gets: by falling score, ties by query; mask = resized logits > 0."""
    scores = reference.scores(got)
    keep = torch.nonzero(scores > threshold).flatten().tolist()
    keep.sort(key=lambda q: (-scores[q].item(), q))
    if not keep:
        return []
    boxes = reference.pixel_boxes(got, width, height)
    inside = reference.full_logits(got, keep, width, height) > 0
    return [{"query": q, "score": scores[q].item(), "box": boxes[q].tolist(), "area": int(inside[i].sum()), "mask": coco_mask(inside[i])}
            for i, q in enumerate(keep)]


def end_to_end_error(reference, got, exact, width, height):
    """fp32 against FP64 when nothing is reset between stages: what the result bars of a whole run are measured with."""
    far = lambda a, b: brief((a.double() - b.double()).abs().max().item())
    return {"score": far(reference.scores(got), reference.scores(exact)), "presence": far(got["presence"], exact["presence"]),
            "box_px": far(reference.pixel_boxes(got, width, height), reference.pixel_boxes(exact, width, height)),
            "mask_logit": far(got["mask.logits"], exact["mask.logits"])}


class GoldenSet:
    def __init__(self, folder, reference, seed, version="sam3", weights="model.safetensors"):
        self.folder, self.reference = folder, reference
        self.about = {"seed": seed, "versions": versions(), "scripts_sha256": scripts_sha256()}
        self.head = {"format": 1, "layout": reference.layout, "version": version, "weights": weights, "golden": "golden.safetensors"}
        self.tensors, self.cases, self.errors = {}, [], {}
        os.makedirs(folder, exist_ok=True)

    def add(self, name, got, exact, *, picture, width, height, resize, phrase, boxes, threshold, hf_text_only=False, picture_stages=None,
            only=None, errors=None):
        """One case. boxes: [(xyxy in pixels, positive)]. picture_stages: the case that holds this picture's own stages, when it is not
        this one. only: keep these stages' tensors. errors: {stage: ...} measured elsewhere."""
        picture_stages = picture_stages or name
        of_picture = {s.name for s in self.reference.stages() if s.of_picture} | {"px"}
        shared = of_picture if picture_stages != name else set()
        if errors is None:
            errors = measure(self.reference, got, {s.name for s in self.reference.stages()} - shared)
        stages = {}
        for stage in ["px", "text.ids"] + [s.name for s in self.reference.stages()]:
            if stage not in got or (only is not None and stage not in only):
                continue
            if stage in shared:                            # stored once, but each case says what its error may be
                if stage in self.errors[picture_stages]:
                    stages[stage] = self.errors[picture_stages][stage]
                continue
            rows = self.reference.rows(stage, got[stage], got)
            self.tensors[f"{name}/{stage}"] = rows.to(torch.int64 if stage == "text.ids" else torch.float32)
            if stage in errors:
                stages[stage] = errors[stage]
        self.errors[name] = stages
        found = instances(self.reference, got, width, height, threshold)
        scores = self.reference.scores(got)
        assert found and all(i["area"] > 0 for i in found), (name, "a case needs results that are not empty")
        assert (scores - threshold).abs().min() > 1e-3, (name, "a score is too near the threshold")
        self.cases.append({
            "name": name, "picture": picture, "width": width, "height": height, "resize": resize, "phrase": phrase,
            "boxes": [{"xyxy": list(map(float, b)), "positive": bool(p)} for b, p in boxes], "hf_text_only": hf_text_only,
            "threshold": threshold, "picture_stages": picture_stages, "presence": got["presence"].sigmoid().item(), "instances": found,
            "scores": [round(v, 6) for v in scores.tolist()], "stages": stages,
            "end_to_end": end_to_end_error(self.reference, got, exact, width, height) if exact is not None else None})
        print(f"  {name}: {len(found)} instances above {threshold}, presence {self.cases[-1]['presence']:.3f}, "
              f"mask area {[i['area'] for i in found]} of {width * height}")

    def write(self):
        save_tensors(os.path.join(self.folder, "golden.safetensors"), self.tensors, self.about)
        least = {"cases": len(self.cases), "instances": sum(len(c["instances"]) for c in self.cases)}
        write_json(os.path.join(self.folder, "cases.json"), {**self.head, **self.about, "least": least, "cases": self.cases})
        self.spread()

    def spread(self):
        """The brief account of what the random weights do: a stage whose output has no spread would hide errors."""
        lines = {}
        for key, t in self.tensors.items():
            stage = key.split("/")[1]
            if t.is_floating_point() and t.numel() > 1:
                lines.setdefault(stage, []).append(t.std(unbiased=False).item())
        low, high = min((min(v), k) for k, v in lines.items()), max((max(v), k) for k, v in lines.items())
        print(f"  spread of the stages' outputs: {low[0]:.2f} ({low[1]}) to {high[0]:.2f} ({high[1]})")
        assert low[0] > .1 and high[0] < 6, (low, high)


def whole_in_double(reference, run):
    """run() with the whole model in FP64."""
    with in_double(reference.model):
        return run()


# ---------------------------------------------------------------- comparison with what is committed

def _tensors(path):
    with safe_open(path, "pt") as f:
        return {k: f.get_tensor(k) for k in f.keys()}


def _same_json(old, new, where, bad):
    """Equal, but for numbers in the last digits (another CPU rounds otherwise) and for who made them."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            if key in ("scripts_sha256", "versions", "stages", "end_to_end", "near"):
                continue
            if key not in old or key not in new:
                bad.append(f"{where}.{key}: only in one of them")
            else:
                _same_json(old[key], new[key], f"{where}.{key}", bad)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new)):
            _same_json(a, b, f"{where}[{i}]", bad)
    elif isinstance(old, float) and isinstance(new, float):
        if not abs(old - new) <= 1e-4 * max(1, abs(old)):
            bad.append(f"{where}: {old} and {new}")
    elif old != new:
        bad.append(f"{where}: {str(old)[:60]} and {str(new)[:60]}")


def compare(committed, fresh, subset=False):
    """Differences between two folders of goldens, as sentences. Weights, ids and pixels must be equal; stages may differ by a few
    roundings. subset: the committed folder holds other files too."""
    bad = []
    names = [sorted(f for f in os.listdir(d) if not f.endswith(".md")) for d in (committed, fresh)]
    if subset:
        names[0] = [f for f in names[0] if f in names[1]]
    if names[0] != names[1]:
        return [f"{committed}: files {names[0]}, regenerated {names[1]}"]
    for name in names[0]:
        old, new = os.path.join(committed, name), os.path.join(fresh, name)
        if name.endswith(".json"):
            _same_json(json.load(open(old)), json.load(open(new)), name, bad)
        elif name.endswith(".safetensors"):
            a, b = _tensors(old), _tensors(new)
            if sorted(a) != sorted(b):
                bad.append(f"{name}: tensors {sorted(set(a) ^ set(b))[:6]} are in one of them only")
                continue
            for key in a:
                if a[key].shape != b[key].shape or a[key].dtype != b[key].dtype:
                    bad.append(f"{name}: {key}: {a[key].dtype}{list(a[key].shape)} and {b[key].dtype}{list(b[key].shape)}")
                elif name.startswith("model") or not a[key].is_floating_point():
                    if not torch.equal(a[key], b[key]):
                        bad.append(f"{name}: {key}: values differ")
                elif a[key].numel() and not key.endswith("/about"):          # measured errors are not reproducible to the digit
                    apart, size = (a[key] - b[key]).abs().max().item(), a[key].pow(2).mean().sqrt().item()
                    if not apart <= 2e-4 * max(size, .1):
                        bad.append(f"{name}: {key}: {apart:.3g} apart, spread {size:.3g}")
        elif open(old, "rb").read() != open(new, "rb").read():
            bad.append(f"{name}: bytes differ")
    return bad


__all__ = ["GoldenSet", "as_double", "compare", "instances", "pick_threshold", "save_tensors", "whole_in_double", "write_json"]
