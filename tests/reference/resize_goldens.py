"""Resize vectors: bytes of both published arithmetics for pictures that shrink, grow, and change in one direction only."""
import hashlib
import os

import numpy as np
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import _geometry

import pictures
from golden_set import save_tensors, scripts_sha256, versions, write_json

CASES = [                     # name, width, height, side of the result
    ("mixed", 173, 97, 140),
    ("enlarge", 61, 47, 140),
    ("shrink", 260, 190, 42),
    ("strong", 1100, 37, 28),
    ("only-height", 84, 200, 84),
    ("only-width", 200, 84, 84),
    ("same", 56, 56, 56),
    ("dot", 1, 1, 28),
    ("line", 3, 120, 56),
]
FULL = [("full-shrink", 1333, 1777, 1008), ("full-enlarge", 640, 427, 1008)]      # too big to commit: made by a formula, hashes only
FORMULA = "byte(x, y, c) = ((3*x*x + 5*y*y + 7*x*y) / 64 + 85*c) mod 256, integer division"


def by_formula(width, height):
    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    return ((3 * x * x + 5 * y * y + 7 * x * y) // 64 + 85 * c).astype(np.uint8)


def resized(rgb, side, path):
    _geometry._do_native_uint8_resize_on_cpu = lambda interpolation: path == "cpu"
    out = v2.Resize(size=(side, side))(v2.functional.to_image(Image.fromarray(rgb)))
    return out.permute(1, 2, 0).contiguous()


def resize_set(folder, seed=100):
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        raise SystemExit("the uint8 resize kernel needs a CPU with AVX2")
    os.makedirs(folder, exist_ok=True)
    tensors, cases = {}, []
    for i, (name, width, height, side) in enumerate(CASES + FULL):
        full = (name, width, height, side) in FULL
        rgb = by_formula(width, height) if full else pictures.synthetic(seed + i, width, height)
        both = {path: resized(rgb, side, path) for path in ("gpu", "cpu")}
        apart = (both["gpu"].int() - both["cpu"].int()).abs()
        case = {"name": name, "width": width, "height": height, "side": side, "differ": int((apart > 0).sum())}
        if full:
            case["formula"] = FORMULA
            case.update({f"{path}_sha256": hashlib.sha256(t.numpy().tobytes()).hexdigest() for path, t in both.items()})
        else:
            tensors[f"{name}/in"] = torch.from_numpy(rgb)
            tensors.update({f"{name}/{path}": t for path, t in both.items()})
        assert apart.max() <= 1
        print(f"  {name}: {width}x{height} -> {side}: {case['differ']} of {side * side * 3} bytes differ between the two arithmetics")
        cases.append(case)
    about = {"seed": seed, "versions": versions(), "scripts_sha256": scripts_sha256()}
    save_tensors(os.path.join(folder, "resize.safetensors"), tensors, about)
    write_json(os.path.join(folder, "cases.json"), {"format": 1, "tensors": "resize.safetensors", **about, "cases": cases})
