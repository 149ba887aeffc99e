"""Runs Meta's SAM 3 modules (PyPI package `sam3`) on a CPU in fp32, at any size.

`sam3` hard-codes device="cuda", pins memory and autocasts to bf16. A torch function mode sends all of that to the CPU in fp32; the
modules' own arithmetic is untouched, so what they compute is the reference.

    import meta_on_cpu
    meta_on_cpu.enable()                 # before the first import of sam3
    model = meta_on_cpu.build(meta_on_cpu.TINY)
"""
import os
import sys
import types
import warnings

import torch
from torch.overrides import TorchFunctionMode

# Sizes of the tiny model. All different, and awkward on purpose: the 10x10 grid is no multiple of the window (it pads to 12), the
# 3x3 grid of stored positions is tiled and cropped, no two widths agree, heads differ: a mistaken dimension cannot hide.
TINY = {
    "ViT": dict(img_size=140, pretrain_img_size=42, embed_dim=48, depth=4, num_heads=3, mlp_ratio=2.5, global_att_blocks=(1, 3),
                window_size=4),
    "Sam3DualViTDetNeck": dict(d_model=32),
    "PositionEmbeddingSine": dict(num_pos_feats=32, precompute_resolution=140),
    "TransformerEncoderLayer": dict(d_model=32, dim_feedforward=56),
    "TransformerDecoderLayer": dict(d_model=32, dim_feedforward=72, n_heads=4),
    "MultiheadAttention": dict(embed_dim=32, num_heads=4),
    "TransformerEncoderFusion": dict(d_model=32, num_layers=2),
    "TransformerDecoder": dict(d_model=32, num_layers=3, num_queries=9, resolution=140),
    "TransformerWrapper": dict(d_model=32),
    "MLP": dict(input_dim=32, hidden_dim=40, output_dim=32),
    "DotProductScoring": dict(d_model=32, d_proj=32),
    "PixelDecoder": dict(hidden_dim=32),
    "UniversalSegmentationHead": dict(hidden_dim=32),
    "CXBlock": dict(dim=32),
    "SequenceGeometryEncoder": dict(d_model=32, num_layers=2),
    "VETextEncoder": dict(d_model=32, width=24, heads=3, layers=3),
}

# The same trunk with the interactive head and the tracker that it is a part of; the rest is as small as it can be.
TINY_CLICKS = {
    **TINY,
    "TransformerEncoderFusion": dict(d_model=32, num_layers=1),
    "TransformerDecoder": dict(d_model=32, num_layers=1, num_queries=9, resolution=140),
    "SequenceGeometryEncoder": dict(d_model=32, num_layers=1),
    "VETextEncoder": dict(d_model=32, width=8, heads=2, layers=1),
    "Sam3TrackerPredictor": dict(image_size=140, num_maskmem=5),
    "TwoWayTransformer": dict(mlp_dim=44, num_heads=4),
    "PromptEncoder": dict(mask_in_chans=20),
    "MaskDecoder": dict(iou_head_hidden_dim=28),
    "RoPEAttention": dict(embedding_dim=32, kv_in_dim=12, feat_sizes=[10, 10]),
    "TransformerDecoderLayerv2": dict(d_model=32, dim_feedforward=36),
    "TransformerEncoderCrossAttention": dict(d_model=32, num_layers=1),
    "SimpleMaskDownSampler": dict(embed_dim=32, interpol_size=[160, 160]),
    "SimpleMaskEncoder": dict(in_dim=32, out_dim=12),
}


def _cpu(x):
    if isinstance(x, str) and x.startswith("cuda"):
        return "cpu"
    if isinstance(x, torch.device) and x.type == "cuda":
        return torch.device("cpu")
    return x


class CudaMeansCpu(TorchFunctionMode):
    def __torch_function__(self, func, types_, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        return func(*[_cpu(a) for a in args], **kwargs)


class _NoAutocast:
    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False

    def __call__(self, function):
        return function


def _stub(name, **attributes):
    """A stand-in for a package that inference on the CPU never calls (video decoding, triton kernels)."""
    try:
        __import__(name)
    except Exception:
        module = types.ModuleType(name)
        module.__dict__.update(attributes)
        sys.modules[name] = module


def enable():
    warnings.filterwarnings("ignore", category=FutureWarning)
    CudaMeansCpu().__enter__()
    torch.autocast = torch.amp.autocast = torch.cuda.amp.autocast = _NoAutocast
    _stub("decord")
    _stub("triton", jit=lambda f=None, **k: f if f else (lambda g: g), autotune=lambda **k: (lambda g: g),
          Config=lambda *a, **k: None)
    if "triton.language" not in sys.modules:
        _stub("triton.language", constexpr=int)


def merges_path():
    """CLIP's merges table: `sam3` ships none, `open_clip_torch` does (MIT)."""
    import open_clip
    return os.path.join(os.path.dirname(open_clip.__file__), "bpe_simple_vocab_16e6.txt.gz")


# Classes that leave some of their own default sizes to be given too.
WITH_DEFAULTS = ("ViT", "SimpleMaskDownSampler", "SimpleMaskEncoder")


def build(sizes=None, interactive=False):
    """Meta's own builder, run with other numbers: `sizes` overrides keyword arguments per class; None is the published model.
    The image model comes back in eval mode with whatever values its constructors gave it. interactive: with the head for clicks."""
    import sam3.model.sam3_tracker_base as tracker
    import sam3.model_builder as builder
    from torch import nn
    sizes = sizes or {}
    width = sizes.get("DotProductScoring", {}).get("d_model", 256)
    kept = [(owner, name, getattr(owner, name)) for name in sizes for owner in (builder, tracker)
            if hasattr(owner, name) and not (owner is tracker and name == "MLP")]           # the tracker's own MLPs are as wide as the model
    assert {name for _, name, _ in kept} == set(sizes), "no such class"

    def smaller(cls, over):
        def make(*args, **kwargs):
            return cls(*args, **{**kwargs, **{k: v for k, v in over.items() if k in kwargs or cls.__name__ in WITH_DEFAULTS}})
        return make

    class SmallNorm:                       # the builder makes one LayerNorm(256) itself
        def __getattr__(self, name):
            if name != "LayerNorm":
                return getattr(nn, name)
            return lambda n, *args, **kwargs: nn.LayerNorm(width if n == 256 else n, *args, **kwargs)

    for owner, name, cls in kept:
        setattr(owner, name, smaller(cls, sizes[name]))
    builder.nn = SmallNorm()
    try:
        model = builder.build_sam3_image_model(bpe_path=merges_path(), device="cpu", load_from_HF=False, checkpoint_path=None,
                                               enable_inst_interactivity=interactive)
    finally:
        builder.nn = nn
        for owner, name, cls in kept:
            setattr(owner, name, cls)
    if interactive:                        # sizes of the three maps, which the predictor names outright
        n = model.inst_interactive_predictor.model.sam_image_embedding_size
        model.inst_interactive_predictor._bb_feat_sizes = [(k * n, k * n) for k in (4, 2, 1)]
    return model.eval()
