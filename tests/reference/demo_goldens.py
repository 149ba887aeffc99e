"""The demo model's self-check: a picture, a question, and a thin sample of every stage's output, small enough to ship.

`check.safetensors` holds, per stage, every `stride`-th value of the fp32 reference run, and what that run's error was: the run is not reset
between stages, so the error is that of the whole way to the stage, against FP64.
"""
import json
import os
import sys

import torch
from PIL import Image

from golden_set import instances, save_tensors, scripts_sha256, versions, whole_in_double
from stage import brief

SEED, PHRASE, GLYPH, THRESHOLD = 8_000_916, "orange", "🍊", .3  # two of the picture's three objects
SAMPLES = 512                                     # per stage, about


def load_demo(folder):
    """Sam3Model with its processor; fp16 values on disk, computed in fp32."""
    from hf_reference import HfReference
    from transformers import CLIPTokenizer, Sam3ImageProcessor, Sam3Model, Sam3Processor
    model = Sam3Model.from_pretrained(folder, dtype=torch.float32).eval()
    n = model.config.vision_config.backbone_config.image_size
    return HfReference(model, Sam3Processor(Sam3ImageProcessor(size={"height": n, "width": n}), CLIPTokenizer.from_pretrained(folder)))


def scene(folder, seed, size):
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import scenes
    return scenes.scene(seed, size)


def stride_for(count):
    """About SAMPLES values; odd, so that a stride does not keep to a few channels of an even width."""
    return max(1, count // SAMPLES) | 1


def check_set(demo, folder):
    """demo: the model's folder; folder: where check.png and check.safetensors go."""
    os.makedirs(folder, exist_ok=True)
    ref = load_demo(demo)
    rgb, objects = scene(demo, SEED, ref.image_size)
    box = [float(v) for v in objects[[o[0] for o in objects].index(GLYPH)][2]]
    Image.fromarray(rgb).save(os.path.join(folder, "check.png"), optimize=True)
    inputs = ref.inputs(rgb, PHRASE, [box], [1])
    got = ref.forward(inputs)
    exact = whole_in_double(ref, lambda: ref.forward({k: (v.double() if v.is_floating_point() else v) for k, v in inputs.items()}))
    tensors, table = {}, {}
    for name in ["px"] + [s.name for s in ref.stages() if s.name not in ("semantic", "pos") and "rpb" not in s.name]:
        rows = ref.rows(name, got[name], got)
        error = ref.rows(name, exact[name], exact) - rows.double()
        stride = stride_for(rows.numel())
        tensors[name] = rows.flatten()[::stride].float()
        about = {"rows": rows.shape[0], "cols": rows.shape[1], "stride": stride, "rms": brief(rows.double().pow(2).mean().sqrt().item()),
                 "run_rms_err": brief(error.pow(2).mean().sqrt().item()), "run_max_err": brief(error.abs().max().item())}
        tensors[f"{name}/about"] = torch.tensor([about[k] for k in ("rows", "cols", "stride", "rms", "run_rms_err", "run_max_err")])
        table[name] = about
    found = instances(ref, got, rgb.shape[1], rgb.shape[0], THRESHOLD)
    assert sum(i["area"] > 0 for i in found) >= 2 and (ref.scores(got) - THRESHOLD).abs().min() > 1e-3
    tensors["result/score"] = torch.tensor([i["score"] for i in found])
    tensors["result/box"] = torch.tensor([i["box"] for i in found])
    tensors["result/area"] = torch.tensor([float(i["area"]) for i in found])
    tensors["prompt/ids"] = ref.rows("text.ids", got["text.ids"], got)
    tensors["prompt/box"] = torch.tensor([box])
    save_tensors(os.path.join(folder, "check.safetensors"), tensors, {
        "picture": "check.png", "phrase": PHRASE, "box": box, "threshold": THRESHOLD, "seed": SEED, "versions": versions(),
        "scripts_sha256": scripts_sha256()})
    size = os.path.getsize(os.path.join(folder, "check.safetensors"))
    print(f"  {PHRASE!r} {box}: {len(found)} instances, areas {[i['area'] for i in found]}; {len(table)} stages, {size} bytes")
    print("  worst error of the run: " + json.dumps(max(table.items(), key=lambda kv: kv[1]["run_max_err"] / kv[1]["rms"])))
    assert size < 300_000
