"""Writes tests/data/weights: small files by torch.save itself, so that the archive reader is tested on what PyTorch writes and not on what we think it writes.

    python tests/reference/make_weight_files.py

Beside the archives lies expected.safetensors: the tensors of plain.pt and wrapped.pt, contiguous, written by the safetensors package.
"""
import collections
import os
import zipfile

import torch
from safetensors.torch import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "weights")


def ramp(*shape):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.float32) * 0.37 - 5).reshape(shape)


def tensors():
    base = ramp(6, 8)
    t = collections.OrderedDict()
    t["f32"] = ramp(3, 5)
    t["f16"] = ramp(7).half()
    t["bf16"] = ramp(7).bfloat16()
    t["f64"] = ramp(2, 2).double()
    t["i64"] = torch.arange(4)
    t["i32"] = torch.arange(3, dtype=torch.int32)
    t["i16"] = torch.arange(3, dtype=torch.int16)
    t["i8"] = torch.arange(3, dtype=torch.int8)
    t["u8"] = torch.arange(3, dtype=torch.uint8)
    t["bool"] = torch.tensor([True, False, True])
    t["scalar"] = torch.tensor(2.5)
    t["empty"] = torch.zeros(0, 4)
    t["transposed"] = base.t()                                 # strides (1, 8): not contiguous
    t["rows"] = base[2:4]                                      # a part of a shared storage
    t["columns"] = base[:, 3:5]                                # the same storage, strided
    t["every_other"] = base[::2, ::3]
    t["permuted"] = ramp(2, 3, 4).permute(2, 0, 1)
    t["unit_side"] = ramp(4, 6)[:, :1].t()                     # shape (1, 4), strides (1, 6)
    t["parameter"] = torch.nn.Parameter(ramp(2, 3))
    t["same_as_f32"] = t["f32"]                                # one view under two names
    return t


def repack(source, target, compression):
    """The same entries, written by another program: unaligned, and deflated on request."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compression) as new:
        for item in old.infolist():
            new.writestr(zipfile.ZipInfo(item.filename), old.read(item.filename), compression)


def main():
    os.makedirs(HERE, exist_ok=True)
    path = lambda name: os.path.join(HERE, name)
    t = tensors()
    t["complex"] = torch.complex(ramp(2, 2), -ramp(2, 2))
    torch.save(t, path("plain.pt"))
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    torch.save({"epoch": 3, "model": t, "optimizer": optimizer.state_dict(), "args": {"lr": 1e-3, "names": ["a", "b"], "none": None, "size": torch.Size([3, 4]),
                "dtype": torch.float32, "big": 1 << 40, "huge": 1 << 100, "neg": -5}}, path("wrapped.pt"))
    torch.save(model.state_dict(), path("module.pt"))          # OrderedDict with _metadata: BUILD
    repack(path("plain.pt"), path("unaligned.pt"), zipfile.ZIP_STORED)
    repack(path("plain.pt"), path("deflated.pt"), zipfile.ZIP_DEFLATED)
    torch.save(t, path("legacy.pt"), _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.Linear(2, 2)).save(path("script.pt"))
    torch.save({"wide": ramp(1, 3).expand(4, 3)}, path("expanded.pt"))
    torch.save({"eight": torch.zeros(3).to(torch.float8_e4m3fn)}, path("float8.pt"))
    torch.save(model, path("whole_module.pt"))
    torch.save([ramp(2)], path("list.pt"))
    torch.save({"a": {"b": ramp(2)}}, path("nested.pt"))
    torch.save({"x": ramp(2), "loss": __import__("numpy").float64(1.5)}, path("numpy.pt"))
    del t["complex"]                                           # safetensors for Python has no complex numbers
    save_file({k: v.detach().contiguous().clone() for k, v in t.items()}, path("expected.safetensors"))


main()
