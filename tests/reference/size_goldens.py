"""Goldens at other input sizes than the checkpoint's own: the tiny models of tiny_goldens.py and click_goldens.py, their committed weights unchanged,
in modules that are built for another size. README.md describes the format.

What changes with the size, in both references alike: stored positions are tiled again (`get_abs_pos`, `_tile_position_embeddings`), rotary angles of
global blocks are computed anew with window / grid as their scale (`_setup_rope_freqs`, `precompute_positions`), the last windows are padded where the
window does not divide the grid, and maps, sine codes, box bias and the interactive head's grid follow the grid. Meta's own entry points cannot be
told the size (`Sam3Processor(resolution=...)` on a model built for 1008 stops at an assertion about the rotary table; the interactive predictor names the sizes of
its maps outright), so that the model is built anew, by Meta's own builder; in Hugging Face's port it is `config.image_size`.

The large maps are kept as every k-th row ("stride" in cases.json), and pixels are not kept at all: they are the resized picture, byte for byte.
"""
import copy
import os

import torch
from safetensors.torch import load_file

import click_goldens
import meta_on_cpu
import pictures
import random_weights
import rekey
import tiny_goldens
from click_goldens import ClickSet
from double_mode import as_double, in_double
from golden_set import CLICK_SCRIPTS, GoldenSet, pick_threshold, scripts_sha256, whole_in_double
from stage import Doubled, brief

SCRIPTS = CLICK_SCRIPTS + ("size_goldens",)
STRIDES = {"neck.0": 23, "neck.1": 7, "mask.pix.0": 7, "mask.pix.1": 23, "semantic": 5, "click_neck.0": 23, "click_neck.1": 7, "click.skip0": 23,
           "click.skip1": 7, "click.up.0": 7, "click.up.1": 23}         # prime to every grid used here: rows in all columns


class Chained(Doubled):
    """As Doubled, but stages that are not kept whole come from FP64, too: Stencil's own values go on from there."""

    def __init__(self, got):
        super().__init__(got)
        self.exact = {}

    def __getitem__(self, name):
        return self.exact[name] if name in self.exact else super().__getitem__(name)


@torch.no_grad()
def measure(reference, got, names=None):
    """stage.measure for sets with STRIDES: fp32's own error of a stage since the last tensors that are kept whole."""
    out, view = {}, Chained(got)
    for stage in reference.stages():
        if stage.name not in got or not torch.is_tensor(got[stage.name]) or not got[stage.name].numel():
            continue
        with in_double(*stage.modules):
            exact = stage.run(view)
        assert exact.dtype == torch.float64, stage.name
        if stage.name in STRIDES:
            view.exact[stage.name] = exact
        if names is not None and stage.name not in names:
            continue
        rows = reference.rows(stage.name, got[stage.name].double(), got)
        error = reference.rows(stage.name, exact, got) - rows
        out[stage.name] = {"rms": brief(rows.pow(2).mean().sqrt().item()), "rms_err": brief(error.pow(2).mean().sqrt().item()),
                           "max_err": brief(error.abs().max().item())}
    return out


def thin(tensors, stages_of):
    """Every k-th row of the large maps, and no pixels."""
    for key in list(tensors):
        owner, stage = key.split("/")
        if stage == "px":
            del tensors[key]
        elif stage in STRIDES:
            tensors[key] = tensors[key][::STRIDES[stage]].clone()
            stages_of(owner)[stage]["stride"] = STRIDES[stage]


class SizeSet(GoldenSet):
    """A golden set of a model that lies elsewhere, at another input size."""

    def __init__(self, folder, reference, home, seed, weights):
        super().__init__(folder, reference, seed, weights=os.path.normpath(os.path.join("..", home, weights)))
        self.about["scripts_sha256"] = scripts_sha256(SCRIPTS)
        self.head["input_size"] = reference.image_size

    def write(self):
        stages = {c["name"]: c["stages"] for c in self.cases}
        thin(self.tensors, lambda name: stages[name])
        super().write()


class SizeClickSet(ClickSet):
    def __init__(self, folder, ref, home, seed, size, resize, weights):
        super().__init__(folder, ref, seed, os.path.join("..", home, "picture.png"), size, resize,
                         os.path.normpath(os.path.join("..", home, weights)))
        self.about["scripts_sha256"] = scripts_sha256(SCRIPTS)
        self.head["input_size"] = ref.image_size
        os.makedirs(folder, exist_ok=True)

    def add_picture(self, got):
        super().add_picture(got)
        self.runs["picture"] = measure(self.ref, got, self.picture_stages)

    def add_run(self, run, got):
        super().add_run(run, got)
        self.runs[run] = measure(self.ref, got, {s.name for s in self.ref.stages()} - self.picture_stages)

    def pool(self):
        """Over all prompts, of which few are kept. Two fp32 results of one number are apart by more than twice the RMS of either's error one time in
        six, and there is no average over rows here: what bounds the maximum (4 x) is all that can be asked, and stands for the RMS (2 x), too."""
        for stage in ("click.iou", "click.score"):
            most = max(errors[stage]["max_err"] for errors in self.all_errors)
            for name, run in self.runs.items():
                if name != "picture":
                    run[stage].update(rms_err=2 * most, max_err=most)

    def check(self):
        """The sets at the models' own size notice mistakes of every kind; here masks must not be empty."""
        every = [c for case in self.cases for c in case["candidates"]]
        pixels = self.size[0] * self.size[1]
        assert sum(.02 < c["area"] / pixels < .98 for c in every) >= .7 * len(every), "masks that are nearly all or nothing"

    def write(self):
        thin(self.tensors, lambda name: self.runs[name])
        super().write()


# ---------------------------------------------------------------- the models at another size

def meta_sizes(base, side):
    sizes = copy.deepcopy(base)
    sizes["ViT"]["img_size"] = sizes["PositionEmbeddingSine"]["precompute_resolution"] = sizes["TransformerDecoder"]["resolution"] = side
    if "Sam3TrackerPredictor" in sizes:
        sizes["Sam3TrackerPredictor"]["image_size"] = side
    return sizes


def load_meta(model, path, rename=lambda name: name[len("detector."):]):
    """The committed file into a model of another size: all but the rotary tables, which the model has computed itself."""
    state = {rename(name): value.float() for name, value in load_file(path).items()}
    left = model.load_state_dict(state, strict=False)
    assert not left.unexpected_keys and all(k.endswith("freqs_cis") for k in left.missing_keys), left
    return model


def meta_at(path, side):
    from meta_reference import MetaReference
    ref = MetaReference(load_meta(meta_on_cpu.build(meta_sizes(meta_on_cpu.TINY, side)), path))
    assert ref.image_size == side
    return ref


def meta_clicks_at(path, side):
    from meta_click_reference import MetaClickReference
    model = meta_on_cpu.build(meta_sizes(meta_on_cpu.TINY_CLICKS, side), interactive=True)
    head = "inst_interactive_predictor.model."
    rename = lambda name: head + name[len("tracker."):] if name.startswith("tracker.") else name[len("detector."):]
    ref = MetaClickReference(load_meta(model, path, rename))
    assert ref.image_size == side and ref.mask_size == 4 * side // 14
    return ref


def hf_config(folder, side):
    """As transformers documents it: the video model's configuration, whose image_size reaches detector and tracker."""
    import transformers
    transformers.logging.set_verbosity_error()           # of the video model's file under a part of it
    transformers.logging.disable_progress_bar()
    config = transformers.Sam3VideoConfig.from_pretrained(folder)
    config.image_size = side
    return config


def hf_images(side):
    from transformers import Sam3ImageProcessor
    return Sam3ImageProcessor(size={"height": side, "width": side}, mask_size={"height": 4 * side // 14, "width": 4 * side // 14})


def hf_at(folder, tokens_folder, side):
    from hf_reference import HfReference
    from transformers import Sam3Model, Sam3Processor
    model = Sam3Model.from_pretrained(folder, config=hf_config(folder, side), dtype=torch.float32).eval()
    ref = HfReference(model, Sam3Processor(hf_images(side), tiny_goldens.hf_tokenizer(tokens_folder)))
    assert ref.image_size == side
    return ref


def hf_clicks_at(folder, side):
    from hf_click_reference import HfClickReference
    from transformers import Sam3TrackerModel, Sam3TrackerProcessor
    model = Sam3TrackerModel.from_pretrained(folder, config=hf_config(folder, side), dtype=torch.float32).eval()
    ref = HfClickReference(model, Sam3TrackerProcessor(hf_images(side)))
    assert ref.image_size == side and ref.mask_size == 4 * side // 14
    return ref


# ---------------------------------------------------------------- sets

def picture_of(data, home):
    from PIL import Image
    import numpy as np
    return np.asarray(Image.open(os.path.join(data, home, "picture.png")).convert("RGB"))


def add_case(out, ref, got, name, exact, size, resize, home, **case):
    scores = ref.scores(got).tolist()
    of_picture = {s.name for s in ref.stages() if s.of_picture} if case.get("picture_stages") else set()
    errors = measure(ref, got, {s.name for s in ref.stages()} - of_picture)
    out.add(name, got, exact, picture=os.path.join("..", home, "picture.png"), width=size[0], height=size[1], resize=resize,
            threshold=pick_threshold(scores), errors=errors, **case)


def tiny_meta_at(data, folder, side, cases):
    home = "tiny-meta"
    rgb, ref = picture_of(data, home), meta_at(os.path.join(data, home, "model.safetensors"), side)
    size = rgb.shape[1], rgb.shape[0]
    px, out, first = ref.pixels(rgb, "gpu"), SizeSet(folder, ref, home, 1, "model.safetensors"), None
    for name, phrase, boxes in (c for c in tiny_goldens.META_CASES if c[0] in cases):
        got = tiny_goldens.meta_forward(ref, px, phrase, boxes, size, first)
        exact = whole_in_double(ref, lambda: tiny_goldens.meta_forward(ref, px.double(), phrase, boxes, size))
        add_case(out, ref, got, name, exact, size, "gpu", home, phrase=phrase, boxes=boxes, picture_stages=cases[0] if first else None)
        first = first or got
    out.write()


def tiny_hf_at(data, folder, side, cases, tokens_folder):
    home = "tiny-hf"
    rgb, ref = picture_of(data, home), hf_at(os.path.join(data, home), tokens_folder, side)
    size = rgb.shape[1], rgb.shape[0]
    out, first = SizeSet(folder, ref, home, 2, ""), None
    for name, phrase, boxes in (c for c in tiny_goldens.HF_CASES if c[0] in cases):
        inputs = ref.inputs(rgb, phrase, [b for b, _ in boxes], [p for _, p in boxes])
        got = ref.forward(inputs, first)
        exact = whole_in_double(ref, lambda: ref.forward({k: as_double(v) for k, v in inputs.items()}))
        real = [(b, p == 1) for b, p in boxes if p != -10]
        add_case(out, ref, got, name, exact, size, "cpu", home, phrase=phrase, boxes=real, hf_text_only=not boxes,
                 picture_stages=cases[0] if first else None)
        first = first or got
    out.write()


def click_set(folder, ref, home, seed, rgb, resize, weights, hole_area, kept):
    size, px = (rgb.shape[1], rgb.shape[0]), ref.pixels(rgb)
    prompts = lambda: click_goldens.prompts(*size, ref.mask_size).items()
    with in_double(ref.model):
        of_picture = ref.set_picture(px.double(), *size)
        exact = {run: ref.forward(of_picture, prompt) for run, prompt in prompts() if run in kept}
    of_picture = ref.set_picture(px, *size)
    runs = {run: (prompt, ref.forward(of_picture, prompt)) for run, prompt in prompts()}
    out = SizeClickSet(folder, ref, home, seed, size, resize, weights)
    out.all_errors = [measure(ref, got, {"click.iou", "click.score"}) for _, got in runs.values()]
    out.add_picture(runs[kept[0]][1])
    for run in kept:
        prompt, got = runs[run]
        out.add_run(run, got)
        for multimask in (True, False):
            out.add(f"{run}/{'three' if multimask else 'one'}", run, got, exact[run], prompt, multimask, hole_area)
    out.write()


KEPT = ("point", "region-points", "points-mask")


def meta_click_at(data, folder, side):
    home = "tiny-meta-click"
    ref = meta_clicks_at(os.path.join(data, home, "model.safetensors"), side)
    click_set(folder, ref, home, 11, picture_of(data, home), "gpu", "model.safetensors", click_goldens.REFERENCE_HOLES, KEPT)


def hf_click_at(data, folder, side):
    home = "tiny-hf-click"
    click_set(folder, hf_clicks_at(os.path.join(data, home), side), home, 12, picture_of(data, home), "cpu", "", 0, KEPT)


def sets(data, tokens_folder):
    """{folder: what makes it}. Own size 140: grid 10, window 4, stored positions 3 x 3."""
    return {
        "tiny-meta-at-70": lambda folder: tiny_meta_at(data, folder, 70, ("text", "text-box")),         # grid 5: padded to 8
        "tiny-meta-at-168": lambda folder: tiny_meta_at(data, folder, 168, ("text-box",)),              # grid 12: nothing is padded
        "tiny-hf-at-98": lambda folder: tiny_hf_at(data, folder, 98, ("hf-text", "boxes"), tokens_folder),      # grid 7: padded to 8
        "tiny-hf-at-182": lambda folder: tiny_hf_at(data, folder, 182, ("text-box",), tokens_folder),           # grid 13: padded to 16
        "tiny-meta-click-at-98": lambda folder: meta_click_at(data, folder, 98),
        "tiny-hf-click-at-168": lambda folder: hf_click_at(data, folder, 168),
    }


# ---------------------------------------------------------------- both references on the same weights

def layouts_agree(tokens_folder, seed=4, sides=(42, 70, 154, 168, 224)):
    """Meta's modules and Hugging Face's, given the same values, agree at every size: smaller than a window, padded and not, larger."""
    from meta_reference import MetaReference
    worst = 0
    for side in sides:
        sizes, config = meta_sizes(meta_on_cpu.TINY, side), tiny_goldens.hf_detector_config()
        sizes["MLP"]["hidden_dim"] = sizes["TransformerDecoderLayer"]["dim_feedforward"]
        config["vision_config"]["backbone_config"].update(image_size=side, layer_norm_eps=1e-5)
        config["geometry_encoder_config"].update(num_attention_heads=4, intermediate_size=56, roi_size=7)
        config["detr_decoder_config"].update(num_attention_heads=4)
        config["mask_decoder_config"].update(num_attention_heads=4)
        config["text_config"].update(intermediate_size=96, projection_dim=512)
        meta = MetaReference(random_weights.fill(meta_on_cpu.build(sizes), seed, 4, 3))
        hf = tiny_goldens.hf_reference(config, tokens_folder)
        rekey.load_into(hf.model, meta.model.state_dict())
        size, box = (150, 111), (20, 30, 71, 101)
        rgb = pictures.synthetic(9, *size)
        ours = tiny_goldens.meta_forward(meta, meta.pixels(rgb, "cpu"), "a dog", [(box, 1)], size)
        theirs = hf.forward(hf.inputs(rgb, "a dog", [box], [1]))
        for stage in meta.stages():
            a, b = meta.rows(stage.name, ours[stage.name], ours), hf.rows(stage.name, theirs[stage.name], theirs)
            worst = max(worst, ((a - b).abs().max() / a.pow(2).mean().sqrt()).item())
    assert worst < 1e-4, worst
    print(f"the same at sizes {', '.join(map(str, sides))}: {worst:.1e} apart at most")
