"""The three tiny golden sets: Meta's layout, SAM 3.1's image part, Hugging Face's layout.

Each is a complete checkpoint of small, awkward sizes with random weights, and the tensors of every stage for a handful of prompts.
"""
import copy
import json
import os

import torch
from PIL import Image
from safetensors.torch import save_file

import meta_on_cpu
import pictures
import random_weights
import rekey
from golden_set import GoldenSet, as_double, pick_threshold, whole_in_double, write_json
from meta_reference import MetaReference, pixel_box

TABLE = "token_embedding"
LONG = "a very long phrase " * 9            # 38 tokens: cut to 32


def tidy_tokens(model, tokens):
    """Rows of the token table that no case reads are zero (they compress to nothing), and the others fit fp16, as the table is stored."""
    table = next(m for n, m in model.named_modules() if n.endswith(TABLE))
    with torch.no_grad():
        keep = torch.zeros(len(table.weight), 1)
        keep[sorted(tokens)] = 1
        table.weight.copy_((table.weight * keep).half().float())


def save_weights(state, folder, halve=True):
    """halve: the token table in fp16, which is all it holds."""
    path = os.path.join(folder, "model.safetensors")
    save_file({k: (v.half() if halve and TABLE in k else v).contiguous() for k, v in state.items()}, path, {"format": "pt"})
    os.chmod(path, 0o644)


def write_picture(folder, name, seed, width, height):
    rgb = pictures.synthetic(seed, width, height)
    os.makedirs(folder, exist_ok=True)
    Image.fromarray(rgb).save(os.path.join(folder, name), optimize=True)
    return rgb


# ---------------------------------------------------------------- Meta

def meta_side_json(sizes):
    """What tensor shapes do not tell, in the keys of a config.json, beside the weights."""
    heads = dict(num_attention_heads=sizes["MultiheadAttention"]["num_heads"])
    vit = sizes["ViT"]
    return {"detector_config": {
        "vision_config": {"backbone_config": {
            "image_size": vit["img_size"], "patch_size": 14, "num_attention_heads": vit["num_heads"], "window_size": vit["window_size"],
            "global_attn_indexes": list(vit["global_att_blocks"])}},
        "text_config": {"num_attention_heads": sizes["VETextEncoder"]["heads"]},
        "geometry_encoder_config": heads, "detr_encoder_config": heads, "mask_decoder_config": heads,
        "detr_decoder_config": dict(num_attention_heads=sizes["TransformerDecoderLayer"]["n_heads"])}}


def meta_state(model):
    """Names as in the released sam3.pt. The rotary tables are complex, which safetensors cannot hold; loaders recompute them anyway."""
    return {"detector." + k: v for k, v in model.state_dict().items() if not k.endswith("freqs_cis")}


META_CASES = [                                # name, phrase, boxes in pixels with their sign
    ("text", "a dog", []),
    ("zero-id", "!= fox", []),                # id 0 is a real token and counts as padding
    ("text-box", "a dog", [((40, 20, 91, 61), True)]),
    ("boxes", None, [((30.5, 8, 80, 47.25), True), ((101, 30, 165, 90), True), ((5, 55, 60, 92), False)]),
    ("cut", LONG, []),
]


def meta_forward(ref, px, phrase, boxes, size, reuse=None):
    rows = [pixel_box(b, *size) for b, _ in boxes]
    return ref.forward(px, phrase, rows, [int(p) for _, p in boxes], reuse)


def meta_model(seed, cases, px_of, sizes=meta_on_cpu.TINY):
    model = meta_on_cpu.build(sizes)
    random_weights.fill(model, seed, sizes["ViT"]["depth"], sizes["VETextEncoder"]["layers"])
    ref = MetaReference(model)
    tidy_tokens(model, {t for _, phrase, _ in cases for t in ref.tokens(phrase or "visual")[0].tolist()})
    random_weights.settle(ref, [ref.forward(px_of(ref), "a dog", [], [])])
    return ref


def tiny_meta(folder, seed=1):
    size = (173, 97)
    rgb = write_picture(folder, "picture.png", 5, *size)
    ref = meta_model(seed, META_CASES, lambda r: r.pixels(rgb, "gpu"))
    px = ref.pixels(rgb, "gpu")
    out = GoldenSet(folder, ref, seed)
    first = None
    for name, phrase, boxes in META_CASES:
        got = meta_forward(ref, px, phrase, boxes, size, first)
        exact = whole_in_double(ref, lambda: meta_forward(ref, px.double(), phrase, boxes, size))
        threshold = pick_threshold(ref.scores(got).tolist())
        ref.check_against_processor(got, size, threshold)
        out.add(name, got, exact, picture="picture.png", width=size[0], height=size[1], resize="gpu", phrase=phrase, boxes=boxes,
                threshold=threshold, picture_stages=None if first is None else META_CASES[0][0])
        first = first or got
    out.write()
    save_weights(meta_state(ref.model), folder)
    write_json(os.path.join(folder, "model.json"), meta_side_json(meta_on_cpu.TINY))


# ---------------------------------------------------------------- SAM 3.1: the same image part under its own names, joint score

def sam31_state(model, seed):
    """As sam3.1_multiplex.pt names it: three necks of three levels each, no fourth level."""
    state = {k: v for k, v in meta_state(model).items() if ".convs.3." not in k}
    for other in ("interactive_convs", "propagation_convs"):
        for k, v in list(state.items()):
            if ".vision_backbone.convs." in k:
                name = k.replace(".convs.", f".{other}.")
                state[name] = random_weights.normal(name, tuple(v.shape), seed, .1)
    return state


def tiny_sam31(folder, seed=3):
    size = (97, 140)
    rgb = write_picture(folder, "picture.png", 7, *size)
    ref = meta_model(seed, META_CASES[:3], lambda r: r.pixels(rgb, "gpu"))
    ref = MetaReference(ref.model, joint_score=True)
    px = ref.pixels(rgb, "gpu")
    out = GoldenSet(folder, ref, seed, version="sam3.1")
    for name, phrase, boxes in (("text", "a dog", []), ("text-box", "a dog", [((20, 30, 71, 101), True)])):
        got = meta_forward(ref, px, phrase, boxes, size)
        exact = whole_in_double(ref, lambda: meta_forward(ref, px.double(), phrase, boxes, size))
        out.add(name, got, exact, picture="picture.png", width=size[0], height=size[1], resize="gpu", phrase=phrase, boxes=boxes,
                threshold=pick_threshold(ref.scores(got).tolist()), only={"text.ids", "presence", "logits"})
    out.write()
    save_weights(sam31_state(ref.model, seed), folder)
    write_json(os.path.join(folder, "model.json"), meta_side_json(meta_on_cpu.TINY))


# ---------------------------------------------------------------- Hugging Face

def hf_detector_config(**over):
    """Sizes like TINY's, but with a head count and a hidden width of its own for every module, which this layout allows."""
    config = dict(
        vision_config=dict(
            backbone_config=dict(model_type="sam3_vit_model", image_size=140, hidden_size=48, intermediate_size=120, num_hidden_layers=4,
                                 num_attention_heads=3, patch_size=14, window_size=4, global_attn_indexes=[1, 3],
                                 pretrain_image_size=42),
            fpn_hidden_size=32, backbone_feature_sizes=[[40, 40], [20, 20], [10, 10]]),
        text_config=dict(model_type="clip_text_model", vocab_size=49408, hidden_size=24, intermediate_size=88, projection_dim=20,
                         num_hidden_layers=3, num_attention_heads=3, max_position_embeddings=32, hidden_act="gelu"),
        geometry_encoder_config=dict(hidden_size=32, num_layers=2, num_attention_heads=2, intermediate_size=40, roi_size=5),
        detr_encoder_config=dict(hidden_size=32, num_layers=2, num_attention_heads=4, intermediate_size=56),
        detr_decoder_config=dict(hidden_size=32, num_layers=3, num_attention_heads=8, intermediate_size=72, num_queries=9),
        mask_decoder_config=dict(hidden_size=32, num_attention_heads=1))
    config.update(over)
    return config


def hf_tokenizer(tokens_folder):
    from transformers import CLIPTokenizer
    return CLIPTokenizer.from_pretrained(tokens_folder)


def hf_reference(detector_config, tokens_folder):
    from hf_reference import HfReference
    from transformers import Sam3Config, Sam3ImageProcessor, Sam3Model, Sam3Processor
    config = Sam3Config(**detector_config)
    n = config.vision_config.backbone_config.image_size
    images = Sam3ImageProcessor(size={"height": n, "width": n}, mask_size={"height": 4 * n // 14, "width": 4 * n // 14})
    return HfReference(Sam3Model(config).eval(), Sam3Processor(images, hf_tokenizer(tokens_folder)))


def hf_save(ref, folder, halve=True):
    """The published layout: Sam3VideoModel's names and config, of which this issue's part is the detector."""
    from transformers import Sam3VideoConfig
    config = json.loads(Sam3VideoConfig(detector_config=ref.model.config.to_dict()).to_json_string())
    del config["tracker_config"]
    for part in (config, config["detector_config"]):
        part.pop("transformers_version", None)
        part.pop("_name_or_path", None)
    config["architectures"] = ["Sam3VideoModel"]
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "preprocessor_config.json"), {
        "image_processor_type": "Sam3ImageProcessor", "do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
        "image_mean": [.5, .5, .5], "image_std": [.5, .5, .5], "rescale_factor": 1 / 255, "resample": 2,
        "size": {"height": ref.image_size, "width": ref.image_size}})
    save_weights({"detector_model." + k: v for k, v in ref.model.state_dict().items()}, folder, halve)


HF_CASES = [                                  # name, phrase, boxes with label (-10: a box that is masked out, only CLS remains), as HF is
    ("hf-text", "a dog", []),                 # no exemplar: Hugging Face leaves the CLS token out
    ("text", "a dog", [((0, 0, 1, 1), -10)]),
    ("text-box", "red fox", [((25, 40, 88.5, 130), 1)]),
    ("boxes", None, [((12, 10, 60, 71), 1), ((50, 100, 110, 180), 0)]),
]


def tiny_hf(folder, tokens_folder, seed=2):
    size = (121, 190)
    rgb = write_picture(folder, "picture.png", 6, *size)
    ref = hf_reference(hf_detector_config(), tokens_folder)
    random_weights.fill(ref.model, seed, 4, 3)
    run_inputs = lambda phrase, boxes: ref.inputs(rgb, phrase, [b for b, _ in boxes], [p for _, p in boxes])
    tidy_tokens(ref.model, {t for _, phrase, _ in HF_CASES for t in run_inputs(phrase, [])["input_ids"][0].tolist()})
    random_weights.settle(ref, [ref.forward(run_inputs("a dog", [((0, 0, 1, 1), -10)]))])
    out = GoldenSet(folder, ref, seed, weights=".")
    first = None
    for name, phrase, boxes in HF_CASES:
        inputs = run_inputs(phrase, boxes)
        got = ref.forward(inputs, first)
        doubled = {k: as_double(v) for k, v in inputs.items()}
        exact = whole_in_double(ref, lambda: ref.forward(doubled))
        real = [(b, p == 1) for b, p in boxes if p != -10]
        out.add(name, got, exact, picture="picture.png", width=size[0], height=size[1], resize="cpu", phrase=phrase, boxes=real,
                threshold=pick_threshold(ref.scores(got).tolist()), hf_text_only=not boxes,
                picture_stages=None if first is None else HF_CASES[0][0])
        first = first or got
    out.write()
    hf_save(ref, folder)
    loads_in_transformers(folder, ref)


def loads_in_transformers(folder, ref):
    from transformers import Sam3Model
    again = Sam3Model.from_pretrained(folder, dtype=torch.float32).state_dict()
    for name, value in ref.model.state_dict().items():
        assert torch.equal(again[name], value), name


# ---------------------------------------------------------------- both references on the same weights

def layouts_agree(tokens_folder, seed=4):
    """Meta's modules and Hugging Face's, given the same values under their own names, agree stage by stage: a check of the scripts, of the
    name map, and of what Hugging Face's dummy box stands for. Sizes are those that both can have."""
    sizes = copy.deepcopy(meta_on_cpu.TINY)
    sizes["MLP"]["hidden_dim"] = sizes["TransformerDecoderLayer"]["dim_feedforward"]
    config = hf_detector_config()
    config["geometry_encoder_config"].update(num_attention_heads=4, intermediate_size=56, roi_size=7)
    config["detr_decoder_config"].update(num_attention_heads=4)
    config["mask_decoder_config"].update(num_attention_heads=4)
    config["text_config"].update(intermediate_size=96, projection_dim=512)
    config["vision_config"]["backbone_config"]["layer_norm_eps"] = 1e-5
    meta = MetaReference(random_weights.fill(meta_on_cpu.build(sizes), seed, 4, 3))
    hf = hf_reference(config, tokens_folder)
    rekey.load_into(hf.model, meta.model.state_dict())
    size = (150, 111)
    rgb, worst = pictures.synthetic(9, *size), 0
    box, other = (20, 30, 71, 101), (80, 5, 120, 55)
    for phrase, boxes in (("a dog", []), ("a dog", [(box, 1)]), (None, [(box, 1), (other, 0)])):
        ours = meta_forward(meta, meta.pixels(rgb, "cpu"), phrase, boxes, size)
        asked = boxes or [((0, 0, 1, 1), -10)]
        theirs = hf.forward(hf.inputs(rgb, phrase, [b for b, _ in asked], [p for _, p in asked]))
        for stage in meta.stages():
            a, b = meta.rows(stage.name, ours[stage.name], ours), hf.rows(stage.name, theirs[stage.name], theirs)
            worst = max(worst, ((a - b).abs().max() / a.pow(2).mean().sqrt()).item())
    assert worst < 1e-4, worst
    print(f"Meta's and Hugging Face's modules on the same weights: {worst:.1e} apart at most, relative to a stage's spread")
