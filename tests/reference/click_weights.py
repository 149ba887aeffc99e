"""A full-size file that can be clicked at, for `stencil bench click`: the file that speed.py made, and every tensor of the released one that it lacks, seeded.

    python click_weights.py ~/.cache/stencil-parity/speed-meta.pt full-click.safetensors

How long a click takes does not depend on values, so nothing is settled here: masks are noise, whose run lengths are the longest there can be. fp16 on disk.
"""
import os
import sys

import torch
from safetensors.torch import save_file

INVENTORY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "inventory", "sam3-meta.tsv")


def main():
    source, target = sys.argv[1:]
    known = torch.load(source, mmap=True, map_location="cpu", weights_only=True)["model"]
    tensors = {name: value.half() if value.dtype == torch.float32 else value.clone() for name, value in known.items()}
    generator, added = torch.Generator().manual_seed(5), 0
    with open(INVENTORY) as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    for name, shape, kind in (row[:3] for row in rows):
        if name in tensors:
            continue
        assert kind == "float32", (name, kind)
        value = torch.randn([int(n) for n in shape.split(",")], generator=generator)
        if value.dim() > 1:
            value /= max(1, value[0].numel()) ** .5
        else:
            value = .1 * value + ("norm" in name and name.endswith("weight"))
        tensors[name] = value.half()
        added += 1
    assert added, "this file has everything already"
    save_file(tensors, target)
    print(f"{added} tensors added to {len(known)}")


if __name__ == "__main__":
    main()
