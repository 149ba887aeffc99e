"""Meta's tensor names to Hugging Face's, and to SAM 3.1's: renames, splits of packed projections, one transpose, one dropped row."""
import re

import torch

VIT, NECK, TEXT = "backbone.vision_backbone.trunk.", "backbone.vision_backbone.convs.", "backbone.language_backbone."
RULES = [                                              # (Meta's name, Hugging Face's), first match wins; names without `detector.`
    (VIT + r"patch_embed\.proj\.", "vision_encoder.backbone.embeddings.patch_embeddings.projection."),
    (VIT + r"ln_pre\.", "vision_encoder.backbone.layer_norm."),
    (VIT + r"blocks\.(\d+)\.norm(\d)\.", r"vision_encoder.backbone.layers.\1.layer_norm\2."),
    (VIT + r"blocks\.(\d+)\.attn\.proj\.", r"vision_encoder.backbone.layers.\1.attention.o_proj."),
    (VIT + r"blocks\.(\d+)\.attn\.qkv\.(.*)", r"vision_encoder.backbone.layers.\1.attention.{}_proj.\2"),
    (VIT + r"blocks\.(\d+)\.mlp\.", r"vision_encoder.backbone.layers.\1.mlp."),
    (NECK + r"(\d)\.dconv_2x2(?:_0)?\.", r"vision_encoder.neck.fpn_layers.\1.scale_layers.0."),
    (NECK + r"(\d)\.dconv_2x2_1\.", r"vision_encoder.neck.fpn_layers.\1.scale_layers.2."),
    (NECK + r"(\d)\.conv_1x1\.", r"vision_encoder.neck.fpn_layers.\1.proj1."),
    (NECK + r"(\d)\.conv_3x3\.", r"vision_encoder.neck.fpn_layers.\1.proj2."),
    (TEXT + r"encoder\.positional_embedding", "text_encoder.text_model.embeddings.position_embedding.weight"),
    (TEXT + r"encoder\.token_embedding\.", "text_encoder.text_model.embeddings.token_embedding."),
    (TEXT + r"encoder\.transformer\.resblocks\.(\d+)\.attn\.in_proj_(.*)", r"text_encoder.text_model.encoder.layers.\1.self_attn.{}_proj.\2"),
    (TEXT + r"encoder\.transformer\.resblocks\.(\d+)\.attn\.out_proj\.", r"text_encoder.text_model.encoder.layers.\1.self_attn.out_proj."),
    (TEXT + r"encoder\.transformer\.resblocks\.(\d+)\.ln_(\d)\.", r"text_encoder.text_model.encoder.layers.\1.layer_norm\2."),
    (TEXT + r"encoder\.transformer\.resblocks\.(\d+)\.mlp\.c_fc\.", r"text_encoder.text_model.encoder.layers.\1.mlp.fc1."),
    (TEXT + r"encoder\.transformer\.resblocks\.(\d+)\.mlp\.c_proj\.", r"text_encoder.text_model.encoder.layers.\1.mlp.fc2."),
    (TEXT + r"encoder\.ln_final\.", "text_encoder.text_model.final_layer_norm."),
    (TEXT + r"resizer\.", "text_projection."),
    (r"geometry_encoder\.norm\.", "geometry_encoder.prompt_layer_norm."),
    (r"geometry_encoder\.img_pre_norm\.", "geometry_encoder.vision_layer_norm."),
    (r"geometry_encoder\.encode_norm\.", "geometry_encoder.output_layer_norm."),
    (r"geometry_encoder\.encode\.", "geometry_encoder.layers."),
    (r"transformer\.encoder\.", "detr_encoder."),
    (r"transformer\.decoder\.norm\.", "detr_decoder.output_layer_norm."),
    (r"transformer\.decoder\.bbox_embed\.", "detr_decoder.box_head."),
    (r"transformer\.decoder\.boxRPB_embed_", "detr_decoder.box_rpb_embed_"),
    (r"transformer\.decoder\.presence_token_head\.", "detr_decoder.presence_head."),
    (r"transformer\.decoder\.presence_token_out_norm\.", "detr_decoder.presence_layer_norm."),
    (r"transformer\.decoder\.", "detr_decoder."),
    (r"segmentation_head\.mask_predictor\.mask_embed\.", "mask_decoder.mask_embedder."),
    (r"segmentation_head\.cross_attend_prompt\.", "mask_decoder.prompt_cross_attn."),
    (r"segmentation_head\.cross_attn_norm\.", "mask_decoder.prompt_cross_attn_norm."),
    (r"segmentation_head\.semantic_seg_head\.", "mask_decoder.semantic_projection."),
    (r"segmentation_head\.instance_seg_head\.", "mask_decoder.instance_projection."),
    (r"segmentation_head\.", "mask_decoder."),
    (r"dot_prod_scoring\.prompt_mlp\.out_norm\.", "dot_product_scoring.text_mlp_out_norm."),
    (r"dot_prod_scoring\.prompt_mlp\.", "dot_product_scoring.text_mlp."),
    (r"dot_prod_scoring\.prompt_proj\.", "dot_product_scoring.text_proj."),
    (r"dot_prod_scoring\.hs_proj\.", "dot_product_scoring.query_proj."),
]
SECOND = [                                             # inside the detector's transformers, after the rules above
    (r"\.in_proj_(weight|bias)", r".{}_proj.\1"),
    (r"(geometry_encoder|detr_encoder)(.*)\.cross_attn_image\.", r"\1\2.cross_attn."),
    (r"(geometry_encoder|detr_encoder)(.*)\.norm(\d)\.", r"\1\2.layer_norm\3."),
    (r"(geometry_encoder|detr_encoder|detr_decoder)(.*)\.linear(\d)\.", r"\1\2.mlp.fc\3."),
    (r"(geometry_encoder|detr_encoder|detr_decoder|mask_decoder)(.*)\.out_proj\.", r"\1\2.o_proj."),
    (r"detr_decoder\.layers\.(\d+)\.cross_attn\.", r"detr_decoder.layers.\1.vision_cross_attn."),
    (r"detr_decoder\.layers\.(\d+)\.ca_text\.", r"detr_decoder.layers.\1.text_cross_attn."),
    (r"detr_decoder\.layers\.(\d+)\.norm1\.", r"detr_decoder.layers.\1.vision_cross_attn_layer_norm."),
    (r"detr_decoder\.layers\.(\d+)\.norm2\.", r"detr_decoder.layers.\1.self_attn_layer_norm."),
    (r"detr_decoder\.layers\.(\d+)\.norm3\.", r"detr_decoder.layers.\1.mlp_layer_norm."),
    (r"detr_decoder\.layers\.(\d+)\.catext_norm\.", r"detr_decoder.layers.\1.text_cross_attn_layer_norm."),
]
NUMBERED = re.compile(r"(detr_decoder\.\w+|dot_product_scoring\.text_mlp)\.layers\.(\d)\.")      # layers.0 -> layer1


def to_hf(state):
    """A state dict of Sam3Image as Sam3Model's. No value is changed."""
    out = {}
    for name, value in state.items():
        if name.endswith("freqs_cis") or ".points_" in name:
            continue
        if name == VIT + "pos_embed":
            out["vision_encoder.backbone.embeddings.position_embeddings"] = value[:, 1:]          # the class row
            continue
        if name == TEXT + "encoder.text_projection":
            out["text_encoder.text_projection.weight"] = value.t()
            continue
        new = name
        for pattern, replacement in RULES:
            new, n = re.subn("^" + pattern, replacement, name)
            if n:
                break
        if new.startswith(("geometry_encoder", "detr_", "mask_decoder")):
            for pattern, replacement in SECOND:
                new = re.sub(pattern, replacement, new)
        if not re.match(r"detr_decoder\.layers\.", new):
            new = NUMBERED.sub(lambda m: f"{m.group(1)}.layer{int(m.group(2)) + 1}.", new)
        if "{}" in new:
            for part, piece in zip("qkv", value.chunk(3)):
                out[new.format(part)] = piece
        else:
            out[new] = value
    return out


CLICK_RULES = [                                        # the interactive head, names without `tracker.`
    (r"sam_prompt_encoder\.mask_downscaling\.0\.", "prompt_encoder.mask_embed.conv1."),
    (r"sam_prompt_encoder\.mask_downscaling\.1\.", "prompt_encoder.mask_embed.layer_norm1."),
    (r"sam_prompt_encoder\.mask_downscaling\.3\.", "prompt_encoder.mask_embed.conv2."),
    (r"sam_prompt_encoder\.mask_downscaling\.4\.", "prompt_encoder.mask_embed.layer_norm2."),
    (r"sam_prompt_encoder\.mask_downscaling\.6\.", "prompt_encoder.mask_embed.conv3."),
    (r"sam_prompt_encoder\.", "prompt_encoder."),
    (r"sam_mask_decoder\.output_upscaling\.0\.", "mask_decoder.upscale_conv1."),
    (r"sam_mask_decoder\.output_upscaling\.1\.", "mask_decoder.upscale_layer_norm."),
    (r"sam_mask_decoder\.output_upscaling\.3\.", "mask_decoder.upscale_conv2."),
    (r"sam_mask_decoder\.(.*(?:mlps\.\d|_head))\.layers\.0\.", r"mask_decoder.\1.proj_in."),
    (r"sam_mask_decoder\.(.*(?:mlps\.\d|_head))\.layers\.1\.", r"mask_decoder.\1.layers.0."),
    (r"sam_mask_decoder\.(.*(?:mlps\.\d|_head))\.layers\.2\.", r"mask_decoder.\1.proj_out."),
    (r"sam_mask_decoder\.(.*)\.out_proj\.", r"mask_decoder.\1.o_proj."),
    (r"sam_mask_decoder\.(.*)\.norm(\d)\.", r"mask_decoder.\1.layer_norm\2."),
    (r"sam_mask_decoder\.(.*)\.norm_final_attn\.", r"mask_decoder.\1.layer_norm_final_attn."),
    (r"sam_mask_decoder\.(.*)\.lin1\.", r"mask_decoder.\1.proj_in."),
    (r"sam_mask_decoder\.(.*)\.lin2\.", r"mask_decoder.\1.proj_out."),
    (r"sam_mask_decoder\.", "mask_decoder."),
    (r"no_mem_embed$", "no_memory_embedding"),
]


def clicks_to_hf(detector, tracker):
    """State dicts of Sam3Image and of its tracker as Sam3TrackerModel's: trunk, second neck, interactive head."""
    neck = {name.replace("sam2_convs", "convs"): value for name, value in detector.items() if name.startswith(VIT) or ".sam2_convs." in name}
    out, prompts = to_hf(neck), "sam_prompt_encoder."
    out["prompt_encoder.point_embed.weight"] = torch.cat([tracker[f"{prompts}point_embeddings.{i}.weight"] for i in range(4)])
    for name in ("prompt_encoder.shared_embedding", "shared_image_embedding"):
        out[name + ".positional_embedding"] = tracker[prompts + "pe_layer.positional_encoding_gaussian_matrix"]
    for name, value in tracker.items():
        if "point_embeddings" in name or "pe_layer" in name or not name.startswith((prompts, "sam_mask_decoder.", "no_mem_embed")):
            continue
        new = next(re.sub("^" + pattern, replacement, name) for pattern, replacement in CLICK_RULES if re.match(pattern, name))
        out[new] = value
    return out


def same_tensors(a, b):
    """Names and shapes agree."""
    missing, extra = sorted(set(b) - set(a)), sorted(set(a) - set(b))
    assert not missing and not extra, (missing[:5], extra[:5])
    for name in a:
        assert a[name].shape == b[name].shape, (name, a[name].shape, b[name].shape)


@torch.no_grad()
def load_into(hf_model, meta_state):
    mapped = to_hf(meta_state)
    same_tensors(mapped, hf_model.state_dict())
    hf_model.load_state_dict(mapped)
