"""The two tiny golden sets of the interactive head: Meta's layout and Hugging Face's. README.md describes the format.

Each is a complete small checkpoint, tracker included, of which the trunk, the second neck and the head are run. Weights that clicks do not read
are as few as they can be, and those of the memory, which one picture never runs, are zero.
"""
import importlib.metadata
import os
import re
import warnings

import numpy as np
import torch

import meta_on_cpu
import pictures
import random_weights
from double_mode import in_double
from golden_set import CLICK_SCRIPTS, coco_mask, save_tensors, scripts_sha256, versions, write_json
from stage import brief, measure
from tiny_goldens import hf_detector_config, meta_side_json, save_weights, tidy_tokens, write_picture

SPREAD = {"meta": 6, "hf": 8}  # of mask 0's logits: it is then stable for some prompts, not for others
OTHERS = 12                    # of the other masks' logits: real ones, too, reach the clamp at 32
OUTSIDE = .4                   # spreads that masks lie below 0: more outside than inside
REFERENCE_HOLES = 256          # cells, whatever the grid
SMALL_HOLES = 5                # about the same share of this grid


def soft_disc(n, cx, cy, r):
    """Logits of a disc, as a user's mask comes in: 10 inside, -10 outside, a soft edge."""
    y, x = (np.mgrid[0:n, 0:n] + .5) / n
    far = np.hypot(x - cx, y - cy) - r
    return torch.from_numpy(np.round(np.clip(-100 * far, -10, 10) * 64) / 64).float()


def prompts(width, height, mask_size):
    """{run: prompt}: what the head is asked. Every run is answered with and without multimask, but for the chain's."""
    at = lambda u, v, positive: (round(u * width * 4) / 4, round(v * height * 4) / 4, positive)
    several = [at(.3, .4, True), at(.62, .55, True), at(.8, .15, False)]
    region = tuple(round(f * side * 2) / 2 for f, side in zip((.14, .22, .71, .86), (width, height, width, height)))
    mask = soft_disc(mask_size, .4, .55, .27)
    corners = [(width - 1., 0., True), (0., height - 1., False), (width - 1., height - 1., True), (float(width), float(height), False)]
    ask = lambda points=(), region=None, mask=None: {"points": list(points), "region": region, "mask": mask}
    return {"point": ask([at(.45, .5, True)]), "points": ask(several), "region": ask((), region), "region-points": ask(several, region),
            "mask": ask((), None, mask), "points-mask": ask(several, None, mask), "all": ask(several[:2], region, mask), "edges": ask(corners)}


CHAIN = [(.52, .48, True), (.2, .7, False), (.66, .3, True), (.9, .9, False), (.35, .2, True)]


# ---------------------------------------------------------------- weights

@torch.no_grad()
def fill_clicks(model):
    """What random_weights.fill leaves out or does not know: Fourier matrices are buffers, the head has a LayerNorm2d of its own."""
    for name, buffer in model.named_buffers():
        if name.endswith(("positional_encoding_gaussian_matrix", "positional_embedding")):
            buffer.copy_(random_weights.normal(name, tuple(buffer.shape), 1, .8))
    for name, module in model.named_modules():
        if type(module).__name__ == "LayerNorm2d":
            module.weight.copy_(random_weights.uniform(name + ".weight", tuple(module.weight.shape), 1, .7, 1.3))
            module.bias.copy_(random_weights.normal(name + ".bias", tuple(module.bias.shape), 1, .1))


@torch.no_grad()
def settle(ref, got):
    """As random_weights.settle: masks centred and as large as real ones, predicted IoUs apart from each other. Changes are rounded."""
    step = lambda t: torch.round(t * 256) / 256
    last = lambda mlp: mlp.proj_out if hasattr(mlp, "proj_out") else mlp.layers[-1]
    mean = got["click.up.1"].mean((0, 2, 3))
    for i, mlp in enumerate(ref.parts().hyper):
        logits, out = got["click.masks"][0, i], last(mlp)
        spread = OTHERS if i else SPREAD[ref.layout]
        gain = float(step(spread / logits.std()))
        out.weight.mul_(gain)
        out.bias.mul_(gain)
        out.bias.sub_(step((logits.mean() * gain + OUTSIDE * spread) * mean / (mean @ mean)))
    last(ref.parts().iou).weight.mul_(4)
    last(ref.parts().score).weight.mul_(2)


def zero_rest(state, run):
    """Tensors of the tracker that a click does not read."""
    for name, value in state.items():
        if re.match(r"(tracker|tracker_model)\.", name) and not re.match(run, name):
            value.zero_()


# ---------------------------------------------------------------- one set

def sure(ref, masks, err, prompt, multimask):
    """Whether rounding could change which mask a lone answer is."""
    if multimask:
        return True
    ratio = lambda d, e: (masks[0] > d + e).sum().item() / max((masks[0] > -d - e).sum().item(), 1)
    return (ratio(.05, err) >= .98) == (ratio(.05, -err) >= .98)


class ClickSet:
    def __init__(self, folder, ref, seed, picture, size, resize, weights):
        self.folder, self.ref, self.size = folder, ref, size
        labelling = {"scikit-image": importlib.metadata.version("scikit-image")}
        self.about = {"seed": seed, "versions": {**versions(), **labelling}, "scripts_sha256": scripts_sha256(CLICK_SCRIPTS)}
        self.head = {"format": 1, "layout": ref.layout, "version": "sam3", "weights": weights, "golden": "golden.safetensors",
                     "picture": picture, "width": size[0], "height": size[1], "resize": resize}
        self.tensors, self.runs, self.cases = {}, {}, []

    def store(self, run, got, only):
        for stage in [self.ref.top] + [s.name for s in self.ref.stages()]:
            if stage in only:
                self.tensors[f"{run}/{stage}"] = self.ref.rows(stage, got[stage], got).float()

    def add_picture(self, got):
        own = {s.name for s in self.ref.stages() if s.of_picture}
        self.picture_stages = own
        self.store("picture", got, own | {self.ref.top})
        self.runs["picture"] = measure(self.ref, got, own)

    def add_run(self, run, got):
        stages = {s.name for s in self.ref.stages()} - self.picture_stages
        self.store(run, got, stages - ({"click.sparse"} if not got["click.sparse"].numel() else set()))
        if got["mask"] is not None:
            self.tensors[f"{run}/input.mask"] = got["mask"].clone()
        self.runs[run] = measure(self.ref, got, {s for s in stages if got[s].numel()})

    def undecided(self, mask, whole, room):
        """Pixels of the full-size mask that may fall on either side when no logit of the small one is off by more than room."""
        either = whole.abs() < room
        for moved in (room, -room):
            either |= (self.ref.full(torch.where(mask.abs() < room, moved, mask)[None], *self.size)[0] > 0) != (whole > 0)
        return torch.nonzero(either.flatten()).flatten().tolist()

    def add(self, name, run, got, exact, prompt, multimask, hole_area, chain=0):
        ref, masks = self.ref, got["click.masks"][0]
        far = lambda stage: (got[stage].double() - exact[stage]).abs().max().item()
        err = {"iou": brief(far("click.iou")), "logit": brief(far("click.masks")), "score": brief(far("click.score"))}
        room, found = 4 * err["logit"], []
        assert sure(ref, masks, room, prompt, multimask), (name, "the choice hangs on a rounding")
        for index, iou, low, whole in ref.candidates(got, prompt, multimask, hole_area):
            near = self.undecided(masks[index], whole, room)
            assert len(near) <= 20, (name, index, "holes hang on a rounding")
            filled = (ref.full(masks[index:index + 1], *masks.shape[1:]) != masks[index]).sum()
            found.append({"index": index, "iou": iou, "area": int((whole > 0).sum()), "mask": coco_mask(whole > 0), "near": near,
                          "filled": int(filled), "clamped": int((masks[index].abs() > 32).sum())})
        gaps = got["click.iou"][0].sort().values.diff()
        assert gaps.min() > 1e-3, (name, "two predicted IoUs are too close")
        self.cases.append({
            "name": name, "run": run, "points": [{"xy": [x, y], "positive": bool(p)} for x, y, p in prompt["points"]],
            "region": list(prompt["region"]) if prompt["region"] else None, "mask": prompt["mask"] is not None, "multimask": multimask,
            "hole_area": hole_area, "chain": chain, "score": got["click.score"].item(), "candidates": found, "end_to_end": err})
        column = lambda key: [round(c[key], 3) for c in found]
        print(f"  {name}: masks {column('index')} IoU {column('iou')} area {column('area')} filled {column('filled')} clamped {column('clamped')}")

    def pool(self):
        """One number's own error is luck: stages of a few numbers get that of all runs."""
        for stage in ("click.iou", "click.score"):
            own = [run[stage] for name, run in self.runs.items() if name != "picture"]
            rms, most = brief(float(np.sqrt(np.mean([o["rms_err"] ** 2 for o in own])))), max(o["max_err"] for o in own)
            for o in own:
                o.update(rms_err=rms, max_err=most)

    def check(self):
        """A set whose answers are all of one kind would not notice mistakes."""
        every = [c for case in self.cases for c in case["candidates"]]
        pixels = self.size[0] * self.size[1]
        assert sum(.05 < c["area"] / pixels < .95 for c in every) >= .8 * len(every), "masks that are nearly all or nothing"
        lone = [case["candidates"][0]["index"] for case in self.cases if not case["multimask"]]
        assert min(lone) == 0 and max(lone) > 0 and min(lone.count(0), len(lone) - lone.count(0)) >= 2, lone
        assert any([c["index"] for c in case["candidates"]] != sorted(c["index"] for c in case["candidates"]) for case in self.cases)
        if self.ref.layout == "meta":
            assert sum(c["filled"] > 0 for c in every) >= 3 and sum(c["clamped"] > 0 for c in every) >= 3
            small, large = ([c["filled"] for c in case["candidates"]] for name in ("region/small-holes", "region/three")
                            for case in self.cases if case["name"] == name)
            assert any(0 < a < b for a, b in zip(small, large)), (small, large)
        for key, t in self.tensors.items():
            spread, wide = t.std(unbiased=False).item(), 25 if key.endswith(("click.masks", "input.mask")) else 6
            assert t.numel() == 1 or .05 < spread < wide, (key, spread)

    def write(self):
        self.check()
        self.pool()
        save_tensors(os.path.join(self.folder, "golden.safetensors"), self.tensors, self.about)
        least = {"cases": len(self.cases), "runs": len(self.runs) - 1, "candidates": sum(len(c["candidates"]) for c in self.cases)}
        write_json(os.path.join(self.folder, "cases.json"), {**self.head, **self.about, "least": least, "cases": self.cases, "runs": self.runs})


def answers(ref, px, size, hole_area):
    """{run: (prompt, tensors)} of every prompt; a chain's step is fed the best low-resolution logits of the step before."""
    of_picture = ref.set_picture(px, *size)
    out = {run: (prompt, ref.forward(of_picture, prompt)) for run, prompt in prompts(*size, ref.mask_size).items()}
    points, mask = [], None
    for k, (u, v, positive) in enumerate(CHAIN, 1):
        points = points + [(round(u * size[0]), round(v * size[1]), positive)]
        prompt = {"points": points, "region": None, "mask": mask}
        got = ref.forward(of_picture, prompt)
        out[f"chain.{k}"] = prompt, got
        mask = ref.candidates(got, prompt, k == 1, hole_area)[0][2]
    return of_picture, out


def make_set(folder, ref, seed, picture, rgb, resize, weights, hole_area):
    warnings.simplefilter("error", UserWarning)        # hole filling is skipped with a warning where no labelling of components is installed
    size, px = (rgb.shape[1], rgb.shape[0]), ref.pixels(rgb)
    with in_double(ref.model):
        _, exact = answers(ref, px.double(), size, hole_area)
    of_picture, runs = answers(ref, px, size, hole_area)
    out = ClickSet(folder, ref, seed, picture, size, resize, weights)
    out.add_picture(next(iter(runs.values()))[1])
    for run, (prompt, got) in runs.items():
        out.add_run(run, got)
        step = int(run.split(".")[1]) if run.startswith("chain.") else 0
        for multimask in ([step == 1] if step else [True, False]):
            name = run if step else f"{run}/{'three' if multimask else 'one'}"
            out.add(name, run, got, exact[run][1], prompt, multimask, hole_area, step)
    if hole_area:                                      # smaller holes than the reference's own limit: some stay
        prompt, got = runs["region"]
        out.add("region/small-holes", "region", got, exact["region"][1], prompt, True, SMALL_HOLES)
    out.write()
    return out


def random_head(ref, px, size, run="points"):
    of_picture = ref.set_picture(px, *size)
    settle(ref, ref.forward(of_picture, prompts(*size, ref.mask_size)[run]))


# ---------------------------------------------------------------- Meta

def meta_click_model(seed):
    from meta_click_reference import MetaClickReference
    model = meta_on_cpu.build(meta_on_cpu.TINY_CLICKS, interactive=True)
    random_weights.fill(model, seed, 4, 1)
    fill_clicks(model)
    tidy_tokens(model, [])
    return MetaClickReference(model)


def meta_names(model):
    """As the released sam3.pt has them: the predictor's model is the tracker."""
    head = "inst_interactive_predictor.model."
    renamed = lambda k: "tracker." + k[len(head):] if k.startswith(head) else "detector." + k
    return {renamed(k): v for k, v in model.state_dict().items() if not k.endswith("freqs_cis")}


def tiny_meta_click(folder, seed=11):
    size = (167, 101)
    rgb = write_picture(folder, "picture.png", 8, *size)
    ref = meta_click_model(seed)
    random_head(ref, ref.pixels(rgb), size)
    make_set(folder, ref, seed, "picture.png", rgb, "gpu", "model.safetensors", REFERENCE_HOLES)
    state = meta_names(ref.model)
    zero_rest(state, r"tracker\.(sam_prompt_encoder|sam_mask_decoder|no_mem_embed)")
    save_weights(state, folder)
    sizes = meta_on_cpu.TINY_CLICKS
    side = meta_side_json(sizes)
    side["tracker_config"] = {"mask_decoder_config": {"num_attention_heads": sizes["TwoWayTransformer"]["num_heads"]}}
    write_json(os.path.join(folder, "model.json"), side)


# ---------------------------------------------------------------- Hugging Face

def hf_click_config():
    """Other sizes than Meta's, among them a fourth candidate and another attention rate. transformers 5.24 writes a memory width of 64 into its
    attention, whatever the config says."""
    detector = hf_detector_config(
        text_config=dict(model_type="clip_text_model", vocab_size=49408, hidden_size=8, intermediate_size=36, projection_dim=20,
                         num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=32, hidden_act="gelu"),
        geometry_encoder_config=dict(hidden_size=32, num_layers=1, num_attention_heads=2, intermediate_size=40, roi_size=5),
        detr_encoder_config=dict(hidden_size=32, num_layers=1, num_attention_heads=4, intermediate_size=56),
        detr_decoder_config=dict(hidden_size=32, num_layers=1, num_attention_heads=8, intermediate_size=72, num_queries=9))
    tracker = dict(
        vision_config=dict(model_type="sam3_vision_model", **detector["vision_config"]), image_size=140,
        prompt_encoder_config=dict(hidden_size=32, image_size=140, patch_size=14, mask_input_channels=12),
        mask_decoder_config=dict(hidden_size=32, mlp_dim=52, num_attention_heads=2, attention_downsample_rate=4, num_multimask_outputs=4,
                                 iou_head_hidden_dim=24),
        num_maskmem=5, memory_attention_hidden_size=32, memory_attention_num_layers=1, memory_attention_feed_forward_hidden_size=36,
        memory_attention_rope_feat_sizes=[10, 10], memory_encoder_hidden_size=32, memory_encoder_output_channels=64,
        mask_downsampler_embed_dim=32, memory_fuser_embed_dim=32, memory_fuser_intermediate_dim=44)
    return detector, tracker


def hf_click_save(model, folder):
    """The published layout: Sam3VideoModel's names and config."""
    import json
    config = json.loads(model.config.to_json_string())
    for part in (config, config["detector_config"], config["tracker_config"]):
        part.pop("transformers_version", None)
        part.pop("_name_or_path", None)
    config["architectures"] = ["Sam3VideoModel"]
    n = model.config.image_size
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "preprocessor_config.json"), {
        "image_processor_type": "Sam3ImageProcessor", "do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
        "image_mean": [.5, .5, .5], "image_std": [.5, .5, .5], "rescale_factor": 1 / 255, "resample": 2,
        "size": {"height": n, "width": n}})
    save_weights(model.state_dict(), folder)


def hf_click_reference(folder):
    """Also of the demo model. It is the video model's file, which is what transformers warns of."""
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    from hf_click_reference import HfClickReference
    from transformers import Sam3ImageProcessor, Sam3TrackerModel, Sam3TrackerProcessor
    model = Sam3TrackerModel.from_pretrained(folder, dtype=torch.float32).eval()
    n, patch = model.config.prompt_encoder_config.image_size, model.config.prompt_encoder_config.patch_size
    images = Sam3ImageProcessor(size={"height": n, "width": n}, mask_size={"height": 4 * n // patch, "width": 4 * n // patch})
    return HfClickReference(model, Sam3TrackerProcessor(images))


def tiny_hf_click(folder, seed=12):
    from transformers import Sam3VideoConfig, Sam3VideoModel
    size = (113, 181)
    rgb = write_picture(folder, "picture.png", 10, *size)
    detector, tracker = hf_click_config()
    whole = Sam3VideoModel(Sam3VideoConfig(detector_config=detector, tracker_config=tracker)).eval()
    random_weights.fill(whole, seed, 4, 1)
    fill_clicks(whole)
    tidy_tokens(whole, [])
    run = ("prompt_encoder", "mask_decoder", "shared_image_embedding", "no_memory_embedding")
    zero_rest(whole.state_dict(), rf"tracker_model\.({'|'.join(run)})")
    hf_click_save(whole, folder)
    ref = hf_click_reference(folder)                   # loaded as a user does, from the video model's file
    random_head(ref, ref.pixels(rgb), size)
    whole.tracker_model.mask_decoder.load_state_dict(ref.decoder.state_dict())
    hf_click_save(whole, folder)
    again, state = hf_click_reference(folder).model.state_dict(), ref.model.state_dict()
    assert all(torch.equal(again[name], value) for name, value in state.items())
    make_set(folder, ref, seed, "picture.png", rgb, "cpu", ".", 0)


# ---------------------------------------------------------------- both references on the same weights

@torch.no_grad()
def heads_agree(seed=13):
    """Meta's head and Hugging Face's, given the same values, agree stage by stage: a check of the scripts and of the name map. Meta's no-memory
    embedding is set to zero meanwhile: in Hugging Face's port it has no effect, whatever it is."""
    import rekey
    from hf_click_reference import HfClickReference
    from transformers import Sam3ImageProcessor, Sam3TrackerConfig, Sam3TrackerModel, Sam3TrackerProcessor
    meta = meta_click_model(seed)
    _, tracker = hf_click_config()
    tracker["mask_decoder_config"] = dict(hidden_size=32, mlp_dim=44, num_attention_heads=4, iou_head_hidden_dim=28)
    tracker["prompt_encoder_config"]["mask_input_channels"] = 20
    tracker["vision_config"]["backbone_config"]["layer_norm_eps"] = 1e-5
    model = Sam3TrackerModel(Sam3TrackerConfig(**{k: v for k, v in tracker.items() if k.endswith("_config")})).eval()
    state = rekey.clicks_to_hf(meta.model.state_dict(), meta.tracker.state_dict())
    rekey.same_tensors(state, model.state_dict())
    model.load_state_dict(state)
    assert model.no_memory_embedding.abs().max() > .1
    meta.tracker.no_mem_embed.zero_()
    images = Sam3ImageProcessor(size={"height": 140, "width": 140}, mask_size={"height": 40, "width": 40})
    hf = HfClickReference(model, Sam3TrackerProcessor(images))
    size, worst = (150, 111), 0
    px = hf.pixels(pictures.synthetic(9, *size))
    pictures_of = [ref.set_picture(px, *size) for ref in (meta, hf)]
    asked = prompts(*size, meta.mask_size)
    for run in ("point", "points", "region", "points-mask", "edges"):          # the others have tokens in another order, or more of them
        ours, theirs = (ref.forward(of, asked[run]) for ref, of in zip((meta, hf), pictures_of))
        for stage in meta.stages():
            a, b = meta.rows(stage.name, ours[stage.name], ours), hf.rows(stage.name, theirs[stage.name], theirs)
            worst = max(worst, ((a - b).abs().max() / a.pow(2).mean().sqrt()).item())
    assert worst < 1e-4, worst
    print(f"Meta's and Hugging Face's interactive heads on the same weights: {worst:.1e} apart at most, relative to a stage's spread")
