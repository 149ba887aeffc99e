"""Seeded random weights under which every stage's output keeps a spread near one.

Values come from NumPy's generator (the same bits on every machine; torch's depend on the CPU), one stream per tensor name, so that a
tensor does not depend on which others exist. Matrices are N(0, 1/fan-in); queries and keys are a little larger, so that attention is
not flat and an error in positions, scale or masks is visible; the last matrix of each residual branch shrinks with depth, so that
the residual stream of 32 blocks does not grow away.
"""
import math
import re
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SHARP = 1.5          # on queries and keys: scores with a spread of about 2
GAINS = (            # (part of a parameter's name, factor): what N(0, 1/fan-in) alone would leave too small, too large or too much alike
    (r"(bbox_embed\.layers\.2|box_head\.layer3)\.", .6),
    (r"(boxRPB_embed_.\.layers\.1|box_rpb_embed_.\.layer2)\.", 2.0),
    (r"(query_embed|presence_token)\.", 3.0),
    (r"reference_points\.", 2.0),
    (r"decoder\.layers\.\d+\..*(out_proj|o_proj|linear2|fc2)\.", .6),
    (r"(encode\.\d|encoder\.layers\.\d+|geometry_encoder\.layers\.\d+|detr_encoder\.layers\.\d+)\..*(out_proj|o_proj|linear2|fc2)\.", .6),
    (r"(mask_embed\.layers\.2|mask_embedder\.layers\.2)\.", 1.2),
    (r"(hs_proj|query_proj|prompt_proj|dot_product_scoring\.text_proj)\.", 2.2),
)


def normal(name, shape, seed, scale):
    stream = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    return torch.from_numpy(stream.standard_normal(shape, dtype=np.float32)).mul_(scale)


def uniform(name, shape, seed, low, high):
    stream = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
    return torch.from_numpy(stream.random(shape, dtype=np.float32)).mul_(high - low).add_(low)


def _fan_in(module):
    if isinstance(module, nn.ConvTranspose2d):
        return module.in_channels                      # kernel 2, stride 2: each output sees one tap
    return module.weight[0].numel()


def _is_branch_end(name):
    return name.endswith((".proj", ".fc2", ".c_proj", ".out_proj", ".o_proj", ".linear2"))


@torch.no_grad()
def fill(model, seed, vit_depth, text_depth):
    """Every parameter of a reference model, Meta's or Hugging Face's, whatever its size."""
    done = set()

    def put(name, parameter, value):
        for pattern, gain in GAINS:
            if re.search(pattern, name):
                value.mul_(gain)
        parameter.copy_(value)
        done.add(name)

    for name, module in model.named_modules():
        at = lambda leaf: f"{name}.{leaf}"
        if isinstance(module, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
            scale = 1 / math.sqrt(_fan_in(module))
            if ".blocks." in name or ".backbone.layers." in name:
                scale *= min(1, math.sqrt(2 / vit_depth)) if _is_branch_end(name) else 1
            elif "resblocks" in name or "text_model.encoder" in name:
                scale *= min(1, math.sqrt(2 / text_depth)) if _is_branch_end(name) else 1
            if name.endswith((".q_proj", ".k_proj")):
                scale *= SHARP
            value = normal(at("weight"), tuple(module.weight.shape), seed, scale)
            if name.endswith(".attn.qkv"):
                value[: 2 * value.shape[0] // 3] *= SHARP
            put(at("weight"), module.weight, value)
            if module.bias is not None:
                put(at("bias"), module.bias, normal(at("bias"), tuple(module.bias.shape), seed, .1))
        elif isinstance(module, (nn.LayerNorm, nn.GroupNorm)):
            put(at("weight"), module.weight, uniform(at("weight"), tuple(module.weight.shape), seed, .7, 1.3))
            put(at("bias"), module.bias, normal(at("bias"), tuple(module.bias.shape), seed, .1))
        elif isinstance(module, nn.Embedding):
            put(at("weight"), module.weight, normal(at("weight"), tuple(module.weight.shape), seed, .7))
        elif isinstance(module, nn.MultiheadAttention):
            value = normal(at("in_proj_weight"), tuple(module.in_proj_weight.shape), seed, 1 / math.sqrt(module.embed_dim))
            value[: 2 * value.shape[0] // 3] *= SHARP
            put(at("in_proj_weight"), module.in_proj_weight, value)
            put(at("in_proj_bias"), module.in_proj_bias, normal(at("in_proj_bias"), tuple(module.in_proj_bias.shape), seed, .1))
    for name, parameter in model.named_parameters():               # bare parameters: position tables, text projection
        if name not in done:
            put(name, parameter, normal(name, tuple(parameter.shape), seed, .5))
    return model


@torch.no_grad()
def settle(reference, runs, presence=1.5, spread=1.2, mask_spread=None):
    """Centres what a random head leaves off centre, seen on the tensors of a few runs: masks that are nearly all inside or all outside,
    scores of all queries on one side or saturated, a concept that is not present. Changes are rounded, so that they are the same on every machine."""
    knobs = reference.knobs()
    step = lambda t: torch.round(t * 256) / 256
    instance = F.conv2d(runs[0]["mask.pix.1"], knobs["instance"].weight, knobs["instance"].bias)
    knobs["instance"].bias.sub_(step(instance.mean((0, 2, 3))))
    if mask_spread is not None:                        # a sum over the width: grows with it
        gain = min(1.0, float(step(mask_spread / runs[0]["mask.logits"].std())))
        knobs["mask"].weight.mul_(gain)
        knobs["mask"].bias.mul_(gain)
    knobs["presence"].bias.add_(step(presence - runs[0]["presence"].flatten()))
    query = knobs["query"]
    gain = min(1.0, float(step(spread / runs[0]["logits"].std())))
    query.weight.mul_(gain)
    query.bias.mul_(gain)
    # logit_q = (W o_q + b) . p / sqrt(D): the b that takes each run's mean logit away
    pooled = torch.stack([knobs["pooled"](got) for got in runs])
    means = torch.stack([got["logits"].mean() for got in runs]) * gain * math.sqrt(pooled.shape[1])
    query.bias.sub_(step(pooled.t() @ torch.linalg.solve(pooled @ pooled.t(), means)))
