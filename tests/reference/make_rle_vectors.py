#!/usr/bin/env python3
"""Writes tests/data/masks/rle.json and upsample.json: what pycocotools and PyTorch say about masks.

Needs numpy, torch and pycocotools. Not needed to run the tests.
rle.json: masks as run lengths (counted here, by numpy) with pycocotools' string, area and box [x, y, width, height].
upsample.json: logits (integers, to be divided by 2^20) enlarged and reduced by PyTorch on the CPU, tested against thresholds that are results
themselves, so that one wrong last bit shows, and the mask as pycocotools' string. PyTorch's kernels with fused multiply-add are wanted.
"""
import hashlib
import importlib.metadata
import json
import os

import numpy as np
import torch
from pycocotools import mask as coco

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "masks")
rng = np.random.default_rng(20260102)


def run_lengths(mask):
    """Column by column, zeros first."""
    flat = mask.T.reshape(-1).astype(np.int8)
    edges = np.flatnonzero(np.diff(flat)) + 1
    counts = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return ([0] if flat[0] else []) + counts


def origin():
    with open(__file__, "rb") as f:
        script = hashlib.sha256(f.read()).hexdigest()
    return {"script": os.path.basename(__file__), "sha256": script, "pycocotools": importlib.metadata.version("pycocotools"), "torch": torch.__version__,
            "numpy": np.__version__, "cpu": torch.backends.cpu.get_cpu_capability()}


def dense_masks():
    def disc(h, w, cx, cy, r2):
        y, x = np.mgrid[:h, :w]
        return (x - cx) ** 2 + (y - cy) ** 2 < r2

    yield "inner square", np.pad(np.ones((1, 2)), ((1, 1), (1, 1)))
    yield "middle square", np.array([[0, 0, 0, 0], [0, 1, 1, 0], [0, 1, 1, 0]])
    yield "starts set", np.array([[1, 1, 0], [1, 0, 0]])
    yield "empty", np.zeros((3, 4))
    yield "full", np.ones((3, 4))
    big = np.zeros((1008, 1008))
    big[100:900, 200:203] = 1
    big[500, 600] = 1
    yield "bars and a pixel", big
    yield "disc", disc(120, 100, 40, 50, 900)
    ring = disc(97, 131, 60, 47, 1600).astype(int)
    ring[disc(97, 131, 66, 44, 300)] = 0
    yield "ring", ring
    yield "one column", np.array([[0], [1], [1], [0], [1]])
    yield "one row", np.array([[1, 0, 0, 1, 1, 0]])
    yield "one pixel set", np.ones((1, 1))
    yield "one pixel clear", np.zeros((1, 1))
    last = np.zeros((5, 7))
    last[4, 6] = 1
    yield "last pixel", last
    yield "first pixel", last[::-1, ::-1]
    yield "checkerboard", np.indices((7, 9)).sum(0) % 2
    yield "checkerboard, other phase", 1 - np.indices((6, 9)).sum(0) % 2
    yield "vertical stripes", np.indices((11, 8))[1] % 2
    yield "horizontal stripes", np.indices((11, 8))[0] % 2
    wide = np.zeros((2100, 1500))
    wide[3:2000, 10:1400] = 1
    wide[:, 700] = 1
    yield "runs over 2^10", wide
    huge = np.zeros((4000, 3000), np.uint8)
    huge[:, 500:2500] = 1
    huge[7, 2900] = 1
    yield "runs over 2^22", huge
    for i, density in enumerate([0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98]):
        yield f"noise {density}", rng.random((13 + 2 * i, 31 - 3 * i)) < density


# Too large for a dense map: [height, width], run lengths.
SPARSE = [
    (65535, 65535, [4294836225]),
    (65535, 65535, [0, 4294836225]),
    (65535, 65535, [0, 1, 4294836223, 1]),
    (65535, 65535, [2147483647, 1, 2147352577]),
    (65535, 65535, [1, 2147483648, 1, 2, 2147352573]),
    (1, 4294967295, [5, 4294967285, 5]),
    (4294967295, 1, [4294967290, 5]),
    (50000, 80000, [0, 2000000000, 1999999990, 3, 7]),
]


def write_rle():
    masks = []
    for name, mask in dense_masks():
        mask = np.asfortranarray(mask, dtype=np.uint8)
        counts = run_lengths(mask)
        rle = coco.encode(mask)
        masks.append({"name": name, "size": list(mask.shape), "counts": counts, "string": rle["counts"].decode(),
                      "area": int(mask.sum()), "box": [int(v) for v in coco.toBbox(rle)]})
        assert (coco.decode(rle) == mask).all() and coco.area(rle) == mask.sum()
    for h, w, counts in SPARSE:
        assert sum(counts) == h * w
        rle = coco.frPyObjects({"size": [h, w], "counts": counts}, h, w)
        masks.append({"name": f"sparse {counts}", "size": [h, w], "counts": counts, "string": rle["counts"].decode(),
                      "area": sum(counts[1::2])})
    pairs = []
    for height, width, a, b in [(19, 23, 0.3, 0.6), (31, 17, 0.05, 0.9), (8, 8, 1.1, 0.5), (8, 9, 0, 0.5), (6, 5, 0, 0), (40, 40, 0.5, 0.5)]:
        rles = [coco.encode(np.asfortranarray(rng.random((height, width)) < d, dtype=np.uint8)) for d in (a, b)]
        pairs.append({"size": [height, width], "a": rles[0]["counts"].decode(), "b": rles[1]["counts"].decode(),
                      "union": coco.merge(rles)["counts"].decode(), "intersection": coco.merge(rles, intersect=True)["counts"].decode(),
                      "iou": float(coco.iou(rles[:1], rles[1:], [0])[0, 0])})
    with open(os.path.join(OUT, "rle.json"), "w") as f:
        json.dump({"origin": origin(), "masks": masks, "pairs": pairs}, f, separators=(",", ":"))
        f.write("\n")


def write_upsample():
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"), "the kernels without fma round differently"
    shapes = [(12, 9, 101, 83), (9, 12, 83, 200), (24, 24, 96, 140), (17, 31, 200, 13), (40, 37, 100, 31), (7, 9, 7, 150), (11, 60, 90, 60),
              (1, 1, 65, 70), (1, 13, 90, 61), (13, 1, 90, 61), (30, 30, 67, 71), (2, 2, 129, 1), (5, 5, 1, 128)]
    cases = []
    for rows, cols, height, width in shapes:
        ints = rng.integers(-(1 << 23), 1 << 23, (rows, cols))
        if (rows, cols) == (24, 24):  # a smooth one
            y, x = np.mgrid[:rows, :cols]
            ints = (90 - (x - 11) ** 2 - (y - 12) ** 2) * 71993 + rng.integers(-5000, 5000, (rows, cols))
            ints = np.clip(ints, -(1 << 23), (1 << 23) - 1)
        logits = torch.from_numpy(ints.astype(np.float32) / np.float32(1 << 20))
        large = torch.nn.functional.interpolate(logits[None, None], size=(height, width), mode="bilinear", align_corners=False)[0, 0].numpy()
        thresholds = [0.0] + [float(v) for v in rng.choice(large.reshape(-1), 7)]
        masks = []
        for t in thresholds:
            mask = np.asfortranarray(large > np.float32(t), dtype=np.uint8)
            masks.append({"threshold": t, "string": coco.encode(mask)["counts"].decode()})
        cases.append({"rows": rows, "cols": cols, "height": height, "width": width, "logits": ints.reshape(-1).tolist(), "masks": masks})
    with open(os.path.join(OUT, "upsample.json"), "w") as f:
        json.dump({"origin": origin(), "cases": cases}, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    write_rle()
    write_upsample()
