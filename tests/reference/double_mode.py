"""Runs a module in FP64 on the input that its fp32 run had: the difference is fp32's own error.

Code that names fp32 outright (`x.float()`, `dtype=torch.float32`) is sent to FP64 by a torch function mode, and tables that a
module computed in fp32 when it was built (rotary angles, sine codes, cell edges) are computed anew in FP64 for the time of the run.
"""
import contextlib

import torch
from torch.overrides import TorchFunctionMode


class Fp32MeansFp64(TorchFunctionMode):
    def __torch_function__(self, func, types_, args=(), kwargs=None):
        if func is torch.Tensor.float:
            return args[0].double()
        swap = lambda a: torch.float64 if a is torch.float32 else a
        return func(*[swap(a) for a in args], **{k: swap(v) for k, v in (kwargs or {}).items()})


def _rebuild(module, undo):
    """Tables of one module, in FP64. `undo` gets what brings the fp32 tables back."""
    name = type(module).__name__
    if hasattr(module, "_setup_rope_freqs") and getattr(module, "freqs_cis", None) is not None:      # sam3 vitdet.Attention
        old = module.freqs_cis
        undo.append(lambda: module.register_buffer("freqs_cis", old))
        module._setup_rope_freqs()
    elif name == "Sam3ViTRotaryEmbedding":
        old = module.inv_freq
        undo.append(lambda: setattr(module, "inv_freq", old))
        module.inv_freq = module.compute_axial_rope_parameters(module.config)[0]
    elif name == "Sam3ViTLayer":
        old_ids = module.position_ids
        undo.append(lambda: setattr(module, "position_ids", old_ids))
        module.position_ids = module.precompute_positions(module.config, module.window_size)
    elif name == "PositionEmbeddingSine":
        cache = module.cache
        undo.append(lambda: setattr(module, "cache", cache))
        module.cache = {}
    elif hasattr(module, "compilable_cord_cache"):                                                   # sam3 TransformerDecoder
        kept = module.compilable_cord_cache, module.compilable_stored_size, module.coord_cache

        def back():
            module.compilable_cord_cache, module.compilable_stored_size, module.coord_cache = kept
        undo.append(back)
        module.compilable_cord_cache, module.compilable_stored_size, module.coord_cache = None, None, {}


@contextlib.contextmanager
def in_double(*modules):
    """The modules compute in FP64 inside this block. fp32 -> FP64 -> fp32 loses nothing, so they come back bit for bit."""
    undo, default = [], torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    mode = Fp32MeansFp64()
    mode.__enter__()
    try:
        for top in modules:
            for module in top.modules():
                _rebuild(module, undo)
            top.double()
        yield
    finally:
        mode.__exit__(None, None, None)
        torch.set_default_dtype(default)
        for top in modules:
            top.float()
        for step in reversed(undo):
            step()


def as_double(value):
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value
