/* manifest_rows.c: the table itself. Names of Meta's files come from `sam3/model_builder.py` and the modules it builds; Hugging Face's from
 * `transformers/models/sam3*`. A packed q|k|v projection is three rows that share one published tensor. Generated per layer by '#'. */
#include "weights/manifest.h"

/* Sizes in shapes. */
#define S(name) (~(int)ST_SIZE_##name)
#define N_ANY S(ANY)

/* Which part of the network, below which root, how necessary, in which versions: one number, so that macros can hand it on. */
#define DETECT(part) ST_WHERE(ST_PART_##part, ST_ROOT_DETECTOR, ST_NEED_PART, ST_IN_BOTH)
#define DETECT_KNOWN(part) ST_WHERE(ST_PART_##part, ST_ROOT_DETECTOR, ST_NEED_KNOWN, ST_IN_BOTH)
#define NECK_B ST_WHERE(ST_PART_CLICK_NECK, ST_ROOT_NECK, ST_NEED_PART, ST_IN_SAM3)
#define NECK_B_KNOWN ST_WHERE(ST_PART_CLICK_NECK, ST_ROOT_NECK, ST_NEED_KNOWN, ST_IN_SAM3)
#define NECK_I ST_WHERE(ST_PART_CLICK_NECK, ST_ROOT_NECK, ST_NEED_PART, ST_IN_SAM31)
#define NECK_P ST_WHERE(ST_PART_TRACK_NECK, ST_ROOT_NECK, ST_NEED_PART, ST_IN_SAM31)
#define CLICK_3 ST_WHERE(ST_PART_CLICK, ST_ROOT_TRACKER, ST_NEED_PART, ST_IN_SAM3)
#define CLICK_31 ST_WHERE(ST_PART_CLICK, ST_ROOT_TRACKER, ST_NEED_PART, ST_IN_SAM31)
#define TRACK_3 ST_WHERE(ST_PART_TRACK, ST_ROOT_TRACKER, ST_NEED_PART, ST_IN_SAM3)
#define TRACK_3_OPTION ST_WHERE(ST_PART_TRACK, ST_ROOT_TRACKER, ST_NEED_OPTION, ST_IN_SAM3)
#define TRACK_31 ST_WHERE(ST_PART_TRACK, ST_ROOT_TRACKER, ST_NEED_PART, ST_IN_SAM31)

/* One tensor each. */
#define BARE1(canon, meta, hf, where, rep, a) { canon, meta, hf, where, rep, 0, 0, 0, 1, { a } }
#define BARE2(canon, meta, hf, where, rep, a, b) { canon, meta, hf, where, rep, 0, 0, 0, 2, { a, b } }
#define BARE3(canon, meta, hf, where, rep, a, b, c) { canon, meta, hf, where, rep, 0, 0, 0, 3, { a, b, c } }
#define BARE4(canon, meta, hf, where, rep, a, b, c, d) { canon, meta, hf, where, rep, 0, 0, 0, 4, { a, b, c, d } }

/* Weight and bias. */
#define NORM(canon, meta, hf, where, rep, n)                               \
    BARE1(canon ".weight", meta ".weight", hf ".weight", where, rep, n),   \
    BARE1(canon ".bias", meta ".bias", hf ".bias", where, rep, n)
#define LINEAR(canon, meta, hf, where, rep, out, in)                            \
    BARE2(canon ".weight", meta ".weight", hf ".weight", where, rep, out, in),  \
    BARE1(canon ".bias", meta ".bias", hf ".bias", where, rep, out)
#define CONV(canon, meta, hf, where, rep, out, in, k)                                 \
    BARE4(canon ".weight", meta ".weight", hf ".weight", where, rep, out, in, k, k),  \
    BARE1(canon ".bias", meta ".bias", hf ".bias", where, rep, out)
#define CONV_UP(canon, meta, hf, where, rep, in, out)                                 \
    BARE4(canon ".weight", meta ".weight", hf ".weight", where, rep, in, out, 2, 2),  \
    BARE1(canon ".bias", meta ".bias", hf ".bias", where, rep, out)
/* The same without Hugging Face's names (SAM 3.1 has only Meta's). */
#define NORM_M(canon, meta, where, rep, n)                         \
    BARE1(canon ".weight", meta ".weight", NULL, where, rep, n),   \
    BARE1(canon ".bias", meta ".bias", NULL, where, rep, n)
#define LINEAR_M(canon, meta, where, rep, out, in)                      \
    BARE2(canon ".weight", meta ".weight", NULL, where, rep, out, in),  \
    BARE1(canon ".bias", meta ".bias", NULL, where, rep, out)
#define CONV_M(canon, meta, where, rep, out, in, k)                           \
    BARE4(canon ".weight", meta ".weight", NULL, where, rep, out, in, k, k),  \
    BARE1(canon ".bias", meta ".bias", NULL, where, rep, out)
#define CONV_UP_M(canon, meta, where, rep, in, out)                           \
    BARE4(canon ".weight", meta ".weight", NULL, where, rep, in, out, 2, 2),  \
    BARE1(canon ".bias", meta ".bias", NULL, where, rep, out)

/* Third `i` of a packed projection in Meta's file, a linear layer of its own in Hugging Face's. */
#define PACKED(canon, meta_w, meta_b, hf, where, rep, i, n)                         \
    { canon ".weight", meta_w, hf ".weight", where, rep, 3, 0, i, 2, { n, n } },    \
    { canon ".bias", meta_b, hf ".bias", where, rep, 3, 0, i, 1, { n } }
#define MHA_PACKED(canon, meta, hf, hf_out, where, rep, n)                                                   \
    PACKED(canon ".q", meta ".in_proj_weight", meta ".in_proj_bias", hf ".q_proj", where, rep, 0, n),        \
    PACKED(canon ".k", meta ".in_proj_weight", meta ".in_proj_bias", hf ".k_proj", where, rep, 1, n),        \
    PACKED(canon ".v", meta ".in_proj_weight", meta ".in_proj_bias", hf ".v_proj", where, rep, 2, n),        \
    LINEAR(canon ".out", meta ".out_proj", hf hf_out, where, rep, n, n)
/* Separate projections in both: `inner` is the attention's width, keys and values come from `kv` channels. */
#define MHA(canon, meta, hf, where, rep, n, inner, kv)                                    \
    LINEAR(canon ".q", meta ".q_proj", hf ".q_proj", where, rep, inner, n),               \
    LINEAR(canon ".k", meta ".k_proj", hf ".k_proj", where, rep, inner, kv),              \
    LINEAR(canon ".v", meta ".v_proj", hf ".v_proj", where, rep, inner, kv),              \
    LINEAR(canon ".out", meta ".out_proj", hf ".o_proj", where, rep, n, inner)

/* A neck: levels of 4x, 2x, 1x the token grid. */
#define NECK(canon, meta, hf, where)                                                                    \
    CONV_UP(canon ".0.up0", meta ".0.dconv_2x2_0", hf ".0.scale_layers.0", where, 0, S(V), S(V_2)),     \
    CONV_UP(canon ".0.up1", meta ".0.dconv_2x2_1", hf ".0.scale_layers.2", where, 0, S(V_2), S(V_4)),   \
    CONV_UP(canon ".1.up0", meta ".1.dconv_2x2", hf ".1.scale_layers.0", where, 0, S(V), S(V_2)),       \
    CONV(canon ".0.proj1", meta ".0.conv_1x1", hf ".0.proj1", where, 0, S(D), S(V_4), 1),               \
    CONV(canon ".1.proj1", meta ".1.conv_1x1", hf ".1.proj1", where, 0, S(D), S(V_2), 1),               \
    CONV(canon ".2.proj1", meta ".2.conv_1x1", hf ".2.proj1", where, 0, S(D), S(V), 1),                 \
    CONV(canon ".0.proj2", meta ".0.conv_3x3", hf ".0.proj2", where, 0, S(D), S(D), 3),                 \
    CONV(canon ".1.proj2", meta ".1.conv_3x3", hf ".1.proj2", where, 0, S(D), S(D), 3),                 \
    CONV(canon ".2.proj2", meta ".2.conv_3x3", hf ".2.proj2", where, 0, S(D), S(D), 3)
#define NECK_LAST(canon, meta, hf, where)                                                 \
    CONV(canon ".3.proj1", meta ".3.conv_1x1", hf ".3.proj1", where, 0, S(D), S(V), 1),   \
    CONV(canon ".3.proj2", meta ".3.conv_3x3", hf ".3.proj2", where, 0, S(D), S(D), 3)

/* Two-way transformer and heads of the interactive mask decoder, under both of Meta's prefixes. */
#define CLICK_DECODER(meta, where)                                                                                                                    \
    MHA("click.layers.#.self", meta "transformer.layers.#.self_attn", "mask_decoder.transformer.layers.#.self_attn", where,                           \
        ST_SIZE_CLICK_LAYERS, S(D), S(D), S(D)),                                                                                                      \
    MHA("click.layers.#.token_to_image", meta "transformer.layers.#.cross_attn_token_to_image",                                                       \
        "mask_decoder.transformer.layers.#.cross_attn_token_to_image", where, ST_SIZE_CLICK_LAYERS, S(D), S(CLICK_INNER), S(D)),                      \
    MHA("click.layers.#.image_to_token", meta "transformer.layers.#.cross_attn_image_to_token",                                                       \
        "mask_decoder.transformer.layers.#.cross_attn_image_to_token", where, ST_SIZE_CLICK_LAYERS, S(D), S(CLICK_INNER), S(D)),                      \
    LINEAR("click.layers.#.ffn1", meta "transformer.layers.#.mlp.lin1", "mask_decoder.transformer.layers.#.mlp.proj_in", where,                       \
           ST_SIZE_CLICK_LAYERS, S(CLICK_MLP), S(D)),                                                                                                 \
    LINEAR("click.layers.#.ffn2", meta "transformer.layers.#.mlp.lin2", "mask_decoder.transformer.layers.#.mlp.proj_out", where,                      \
           ST_SIZE_CLICK_LAYERS, S(D), S(CLICK_MLP)),                                                                                                 \
    NORM("click.layers.#.norm1", meta "transformer.layers.#.norm1", "mask_decoder.transformer.layers.#.layer_norm1", where, ST_SIZE_CLICK_LAYERS, S(D)), \
    NORM("click.layers.#.norm2", meta "transformer.layers.#.norm2", "mask_decoder.transformer.layers.#.layer_norm2", where, ST_SIZE_CLICK_LAYERS, S(D)), \
    NORM("click.layers.#.norm3", meta "transformer.layers.#.norm3", "mask_decoder.transformer.layers.#.layer_norm3", where, ST_SIZE_CLICK_LAYERS, S(D)), \
    NORM("click.layers.#.norm4", meta "transformer.layers.#.norm4", "mask_decoder.transformer.layers.#.layer_norm4", where, ST_SIZE_CLICK_LAYERS, S(D)), \
    MHA("click.final", meta "transformer.final_attn_token_to_image", "mask_decoder.transformer.final_attn_token_to_image", where, 0, S(D),            \
        S(CLICK_INNER), S(D)),                                                                                                                        \
    NORM("click.final_norm", meta "transformer.norm_final_attn", "mask_decoder.transformer.layer_norm_final_attn", where, 0, S(D)),                   \
    BARE2("click.iou_token", meta "iou_token.weight", "mask_decoder.iou_token.weight", where, 0, 1, S(D)),                                            \
    BARE2("click.mask_tokens", meta "mask_tokens.weight", "mask_decoder.mask_tokens.weight", where, 0, S(CLICK_TOKENS), S(D)),                        \
    BARE2("click.score_token", meta "obj_score_token.weight", "mask_decoder.obj_score_token.weight", where, 0, 1, S(D)),                              \
    CONV_UP("click.up0", meta "output_upscaling.0", "mask_decoder.upscale_conv1", where, 0, S(D), S(D_4)),                                            \
    NORM("click.up_norm", meta "output_upscaling.1", "mask_decoder.upscale_layer_norm", where, 0, S(D_4)),                                            \
    CONV_UP("click.up1", meta "output_upscaling.3", "mask_decoder.upscale_conv2", where, 0, S(D_4), S(D_8)),                                          \
    CONV("click.skip0", meta "conv_s0", "mask_decoder.conv_s0", where, 0, S(D_8), S(D), 1),                                                           \
    CONV("click.skip1", meta "conv_s1", "mask_decoder.conv_s1", where, 0, S(D_4), S(D), 1),                                                           \
    LINEAR("click.hyper.#.0", meta "output_hypernetworks_mlps.#.layers.0", "mask_decoder.output_hypernetworks_mlps.#.proj_in", where,                 \
           ST_SIZE_CLICK_TOKENS, S(D), S(D)),                                                                                                         \
    LINEAR("click.hyper.#.1", meta "output_hypernetworks_mlps.#.layers.1", "mask_decoder.output_hypernetworks_mlps.#.layers.0", where,                \
           ST_SIZE_CLICK_TOKENS, S(D), S(D)),                                                                                                         \
    LINEAR("click.hyper.#.2", meta "output_hypernetworks_mlps.#.layers.2", "mask_decoder.output_hypernetworks_mlps.#.proj_out", where,                \
           ST_SIZE_CLICK_TOKENS, S(D_8), S(D)),                                                                                                       \
    LINEAR("click.iou.0", meta "iou_prediction_head.layers.0", "mask_decoder.iou_prediction_head.proj_in", where, 0, S(CLICK_IOU), S(D)),             \
    LINEAR("click.iou.1", meta "iou_prediction_head.layers.1", "mask_decoder.iou_prediction_head.layers.0", where, 0, S(CLICK_IOU), S(CLICK_IOU)),    \
    LINEAR("click.iou.2", meta "iou_prediction_head.layers.2", "mask_decoder.iou_prediction_head.proj_out", where, 0, S(CLICK_TOKENS), S(CLICK_IOU)), \
    LINEAR("click.score.0", meta "pred_obj_score_head.layers.0", "mask_decoder.pred_obj_score_head.proj_in", where, 0, S(D), S(D)),                   \
    LINEAR("click.score.1", meta "pred_obj_score_head.layers.1", "mask_decoder.pred_obj_score_head.layers.0", where, 0, S(D), S(D)),                  \
    LINEAR("click.score.2", meta "pred_obj_score_head.layers.2", "mask_decoder.pred_obj_score_head.proj_out", where, 0, 1, S(D))

/* Meta keeps one Fourier matrix and four point embeddings; Hugging Face two copies of the matrix and one table of embeddings. */
#define CLICK_PROMPTS(meta, where)                                                                                                              \
    BARE2("click.point_fourier", meta "pe_layer.positional_encoding_gaussian_matrix", "prompt_encoder.shared_embedding.positional_embedding",   \
          where, 0, 2, S(D_2)),                                                                                                                 \
    BARE2("click.grid_fourier", meta "pe_layer.positional_encoding_gaussian_matrix", "shared_image_embedding.positional_embedding", where, 0, 2, \
          S(D_2)),                                                                                                                              \
    { "click.point.#", meta "point_embeddings.#.weight", "prompt_encoder.point_embed.weight", where, ST_SIZE_CLICK_POINTS, 0,                    \
      ST_ROW_BY_INDEX, ST_ROW_BY_INDEX, 2, { 1, S(D) } },                                                                                       \
    BARE2("click.not_a_point", meta "not_a_point_embed.weight", "prompt_encoder.not_a_point_embed.weight", where, 0, 1, S(D)),                  \
    BARE2("click.no_mask", meta "no_mask_embed.weight", "prompt_encoder.no_mask_embed.weight", where, 0, 1, S(D)),                              \
    CONV("click.mask_in.0", meta "mask_downscaling.0", "prompt_encoder.mask_embed.conv1", where, 0, S(MASK_IN_4), 1, 2),                        \
    NORM("click.mask_norm.0", meta "mask_downscaling.1", "prompt_encoder.mask_embed.layer_norm1", where, 0, S(MASK_IN_4)),                      \
    CONV("click.mask_in.1", meta "mask_downscaling.3", "prompt_encoder.mask_embed.conv2", where, 0, S(MASK_IN), S(MASK_IN_4), 2),               \
    NORM("click.mask_norm.1", meta "mask_downscaling.4", "prompt_encoder.mask_embed.layer_norm2", where, 0, S(MASK_IN)),                        \
    CONV("click.mask_in.2", meta "mask_downscaling.6", "prompt_encoder.mask_embed.conv3", where, 0, S(D), S(MASK_IN), 1)

#define TRUNK "backbone.vision_backbone.trunk."
#define HF_VIT "vision_encoder.backbone."
#define TEXT "backbone.language_backbone.encoder."
#define RES TEXT "transformer.resblocks.#."
#define HF_TEXT "text_encoder.text_model."
#define GEO "geometry_encoder."
#define ENC "transformer.encoder.layers.#."
#define DEC "transformer.decoder."
#define SEG "segmentation_head."
#define MEM "transformer.encoder.layers.#."
#define MEMB "maskmem_backbone."

const st_row st_manifest_rows[] = {
    /* ---- ViT trunk */
    BARE4("vit.patch.weight", TRUNK "patch_embed.proj.weight", HF_VIT "embeddings.patch_embeddings.projection.weight", DETECT(VIT), 0, S(V), 3, S(PATCH),
          S(PATCH)),
    { "vit.pos", TRUNK "pos_embed", HF_VIT "embeddings.position_embeddings", DETECT(VIT), 0, ST_ROW_POSITIONS, ST_ROW_POSITIONS, 0, 2, { S(POS), S(V) } },
    NORM("vit.ln_pre", TRUNK "ln_pre", HF_VIT "layer_norm", DETECT(VIT), 0, S(V)),
    NORM("vit.blocks.#.norm1", TRUNK "blocks.#.norm1", HF_VIT "layers.#.layer_norm1", DETECT(VIT), ST_SIZE_BLOCKS, S(V)),
    NORM("vit.blocks.#.norm2", TRUNK "blocks.#.norm2", HF_VIT "layers.#.layer_norm2", DETECT(VIT), ST_SIZE_BLOCKS, S(V)),
    PACKED("vit.blocks.#.attn.q", TRUNK "blocks.#.attn.qkv.weight", TRUNK "blocks.#.attn.qkv.bias", HF_VIT "layers.#.attention.q_proj", DETECT(VIT),
           ST_SIZE_BLOCKS, 0, S(V)),
    PACKED("vit.blocks.#.attn.k", TRUNK "blocks.#.attn.qkv.weight", TRUNK "blocks.#.attn.qkv.bias", HF_VIT "layers.#.attention.k_proj", DETECT(VIT),
           ST_SIZE_BLOCKS, 1, S(V)),
    PACKED("vit.blocks.#.attn.v", TRUNK "blocks.#.attn.qkv.weight", TRUNK "blocks.#.attn.qkv.bias", HF_VIT "layers.#.attention.v_proj", DETECT(VIT),
           ST_SIZE_BLOCKS, 2, S(V)),
    LINEAR("vit.blocks.#.attn.proj", TRUNK "blocks.#.attn.proj", HF_VIT "layers.#.attention.o_proj", DETECT(VIT), ST_SIZE_BLOCKS, S(V), S(V)),
    LINEAR("vit.blocks.#.mlp.fc1", TRUNK "blocks.#.mlp.fc1", HF_VIT "layers.#.mlp.fc1", DETECT(VIT), ST_SIZE_BLOCKS, S(V_MLP), S(V)),
    LINEAR("vit.blocks.#.mlp.fc2", TRUNK "blocks.#.mlp.fc2", HF_VIT "layers.#.mlp.fc2", DETECT(VIT), ST_SIZE_BLOCKS, S(V), S(V_MLP)),
    { NULL, TRUNK "blocks.#.attn.freqs_cis", NULL, DETECT_KNOWN(VIT), ST_SIZE_BLOCKS, 0, 0, 0, 0, { 0 } }, /* complex, or pairs of reals */

    /* ---- necks */
    NECK("neck", "backbone.vision_backbone.convs", "vision_encoder.neck.fpn_layers", DETECT(NECK)),
    NECK_LAST("neck", "backbone.vision_backbone.convs", "vision_encoder.neck.fpn_layers", DETECT_KNOWN(NECK)),
    NECK("click_neck", "backbone.vision_backbone.sam2_convs", "fpn_layers", NECK_B),
    NECK_LAST("click_neck", "backbone.vision_backbone.sam2_convs", "fpn_layers", NECK_B_KNOWN),
    NECK("click_neck", "backbone.vision_backbone.interactive_convs", "fpn_layers", NECK_I),
    NECK("track_neck", "backbone.vision_backbone.propagation_convs", "fpn_layers", NECK_P),

    /* ---- text encoder */
    BARE2("text.token_embed", TEXT "token_embedding.weight", HF_TEXT "embeddings.token_embedding.weight", DETECT(TEXT), 0, S(VOCAB), S(T)),
    BARE2("text.pos", TEXT "positional_embedding", HF_TEXT "embeddings.position_embedding.weight", DETECT(TEXT), 0, S(CONTEXT), S(T)),
    NORM("text.blocks.#.ln1", RES "ln_1", HF_TEXT "encoder.layers.#.layer_norm1", DETECT(TEXT), ST_SIZE_T_BLOCKS, S(T)),
    NORM("text.blocks.#.ln2", RES "ln_2", HF_TEXT "encoder.layers.#.layer_norm2", DETECT(TEXT), ST_SIZE_T_BLOCKS, S(T)),
    MHA_PACKED("text.blocks.#.attn", RES "attn", HF_TEXT "encoder.layers.#.self_attn", ".out_proj", DETECT(TEXT), ST_SIZE_T_BLOCKS, S(T)),
    LINEAR("text.blocks.#.mlp.fc1", RES "mlp.c_fc", HF_TEXT "encoder.layers.#.mlp.fc1", DETECT(TEXT), ST_SIZE_T_BLOCKS, S(T_MLP), S(T)),
    LINEAR("text.blocks.#.mlp.fc2", RES "mlp.c_proj", HF_TEXT "encoder.layers.#.mlp.fc2", DETECT(TEXT), ST_SIZE_T_BLOCKS, S(T), S(T_MLP)),
    NORM("text.ln_final", TEXT "ln_final", HF_TEXT "final_layer_norm", DETECT(TEXT), 0, S(T)),
    LINEAR("text.proj", "backbone.language_backbone.resizer", "text_projection", DETECT(TEXT), 0, S(D), S(T)),
    BARE2(NULL, TEXT "text_projection", NULL, DETECT_KNOWN(TEXT), 0, S(T), N_ANY), /* CLIP's own: never applied; transposed in the other layout */
    BARE2(NULL, NULL, "text_encoder.text_projection.weight", DETECT_KNOWN(TEXT), 0, N_ANY, S(T)),
    BARE2(NULL, NULL, HF_TEXT "embeddings.position_ids", DETECT_KNOWN(TEXT), 0, 1, S(CONTEXT)),

    /* ---- geometry encoder */
    BARE2("geo.label_embed", GEO "label_embed.weight", GEO "label_embed.weight", DETECT(GEOMETRY), 0, 2, S(D)),
    BARE2("geo.cls", GEO "cls_embed.weight", GEO "cls_embed.weight", DETECT(GEOMETRY), 0, 1, S(D)),
    LINEAR("geo.box_direct", GEO "boxes_direct_project", GEO "boxes_direct_project", DETECT(GEOMETRY), 0, S(D), 4),
    CONV("geo.box_pool", GEO "boxes_pool_project", GEO "boxes_pool_project", DETECT(GEOMETRY), 0, S(D), S(D), S(ROI)),
    LINEAR("geo.box_pos", GEO "boxes_pos_enc_project", GEO "boxes_pos_enc_project", DETECT(GEOMETRY), 0, S(D), S(D_PLUS_2)),
    LINEAR("geo.proj", GEO "final_proj", GEO "final_proj", DETECT(GEOMETRY), 0, S(D), S(D)),
    NORM("geo.norm", GEO "norm", GEO "prompt_layer_norm", DETECT(GEOMETRY), 0, S(D)),
    NORM("geo.img_norm", GEO "img_pre_norm", GEO "vision_layer_norm", DETECT(GEOMETRY), 0, S(D)),
    MHA_PACKED("geo.layers.#.self", GEO "encode.#.self_attn", GEO "layers.#.self_attn", ".o_proj", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D)),
    MHA_PACKED("geo.layers.#.image", GEO "encode.#.cross_attn_image", GEO "layers.#.cross_attn", ".o_proj", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D)),
    LINEAR("geo.layers.#.ffn1", GEO "encode.#.linear1", GEO "layers.#.mlp.fc1", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(GEO_FFN), S(D)),
    LINEAR("geo.layers.#.ffn2", GEO "encode.#.linear2", GEO "layers.#.mlp.fc2", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D), S(GEO_FFN)),
    NORM("geo.layers.#.norm1", GEO "encode.#.norm1", GEO "layers.#.layer_norm1", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D)),
    NORM("geo.layers.#.norm2", GEO "encode.#.norm2", GEO "layers.#.layer_norm2", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D)),
    NORM("geo.layers.#.norm3", GEO "encode.#.norm3", GEO "layers.#.layer_norm3", DETECT(GEOMETRY), ST_SIZE_GEO_LAYERS, S(D)),
    NORM("geo.out_norm", GEO "encode_norm", GEO "output_layer_norm", DETECT(GEOMETRY), 0, S(D)),
    BARE2(NULL, GEO "points_direct_project.weight", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D), 2),
    BARE1(NULL, GEO "points_direct_project.bias", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D)),
    BARE2(NULL, GEO "points_pool_project.weight", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D), S(D)),
    BARE1(NULL, GEO "points_pool_project.bias", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D)),
    BARE2(NULL, GEO "points_pos_enc_project.weight", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D), S(D)),
    BARE1(NULL, GEO "points_pos_enc_project.bias", NULL, DETECT_KNOWN(GEOMETRY), 0, S(D)),

    /* ---- fusion encoder */
    MHA_PACKED("fusion.layers.#.self", ENC "self_attn", "detr_encoder.layers.#.self_attn", ".o_proj", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D)),
    MHA_PACKED("fusion.layers.#.prompt", ENC "cross_attn_image", "detr_encoder.layers.#.cross_attn", ".o_proj", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D)),
    LINEAR("fusion.layers.#.ffn1", ENC "linear1", "detr_encoder.layers.#.mlp.fc1", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(FUSION_FFN), S(D)),
    LINEAR("fusion.layers.#.ffn2", ENC "linear2", "detr_encoder.layers.#.mlp.fc2", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D), S(FUSION_FFN)),
    NORM("fusion.layers.#.norm1", ENC "norm1", "detr_encoder.layers.#.layer_norm1", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D)),
    NORM("fusion.layers.#.norm2", ENC "norm2", "detr_encoder.layers.#.layer_norm2", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D)),
    NORM("fusion.layers.#.norm3", ENC "norm3", "detr_encoder.layers.#.layer_norm3", DETECT(FUSION), ST_SIZE_FUSION_LAYERS, S(D)),

    /* ---- decoder */
    MHA_PACKED("dec.layers.#.image", DEC "layers.#.cross_attn", "detr_decoder.layers.#.vision_cross_attn", ".o_proj", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    MHA_PACKED("dec.layers.#.text", DEC "layers.#.ca_text", "detr_decoder.layers.#.text_cross_attn", ".o_proj", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    MHA_PACKED("dec.layers.#.self", DEC "layers.#.self_attn", "detr_decoder.layers.#.self_attn", ".o_proj", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    NORM("dec.layers.#.norm_image", DEC "layers.#.norm1", "detr_decoder.layers.#.vision_cross_attn_layer_norm", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    NORM("dec.layers.#.norm_text", DEC "layers.#.catext_norm", "detr_decoder.layers.#.text_cross_attn_layer_norm", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    NORM("dec.layers.#.norm_self", DEC "layers.#.norm2", "detr_decoder.layers.#.self_attn_layer_norm", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    NORM("dec.layers.#.norm_ffn", DEC "layers.#.norm3", "detr_decoder.layers.#.mlp_layer_norm", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D)),
    LINEAR("dec.layers.#.ffn1", DEC "layers.#.linear1", "detr_decoder.layers.#.mlp.fc1", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(DEC_FFN), S(D)),
    LINEAR("dec.layers.#.ffn2", DEC "layers.#.linear2", "detr_decoder.layers.#.mlp.fc2", DETECT(DECODER), ST_SIZE_DEC_LAYERS, S(D), S(DEC_FFN)),
    NORM("dec.norm", DEC "norm", "detr_decoder.output_layer_norm", DETECT(DECODER), 0, S(D)),
    LINEAR("dec.box_head.0", DEC "bbox_embed.layers.0", "detr_decoder.box_head.layer1", DETECT(DECODER), 0, S(D), S(D)),
    LINEAR("dec.box_head.1", DEC "bbox_embed.layers.1", "detr_decoder.box_head.layer2", DETECT(DECODER), 0, S(D), S(D)),
    LINEAR("dec.box_head.2", DEC "bbox_embed.layers.2", "detr_decoder.box_head.layer3", DETECT(DECODER), 0, 4, S(D)),
    BARE2("dec.query_embed", DEC "query_embed.weight", "detr_decoder.query_embed.weight", DETECT(DECODER), 0, S(QUERIES), S(D)),
    BARE2("dec.ref_points", DEC "reference_points.weight", "detr_decoder.reference_points.weight", DETECT(DECODER), 0, S(QUERIES), 4),
    LINEAR("dec.rpb_x.0", DEC "boxRPB_embed_x.layers.0", "detr_decoder.box_rpb_embed_x.layer1", DETECT(DECODER), 0, S(RPB), 2),
    LINEAR("dec.rpb_x.1", DEC "boxRPB_embed_x.layers.1", "detr_decoder.box_rpb_embed_x.layer2", DETECT(DECODER), 0, S(DEC_HEADS), S(RPB)),
    LINEAR("dec.rpb_y.0", DEC "boxRPB_embed_y.layers.0", "detr_decoder.box_rpb_embed_y.layer1", DETECT(DECODER), 0, S(RPB), 2),
    LINEAR("dec.rpb_y.1", DEC "boxRPB_embed_y.layers.1", "detr_decoder.box_rpb_embed_y.layer2", DETECT(DECODER), 0, S(DEC_HEADS), S(RPB)),
    BARE2("dec.presence_token", DEC "presence_token.weight", "detr_decoder.presence_token.weight", DETECT(DECODER), 0, 1, S(D)),
    LINEAR("dec.presence_head.0", DEC "presence_token_head.layers.0", "detr_decoder.presence_head.layer1", DETECT(DECODER), 0, S(D), S(D)),
    LINEAR("dec.presence_head.1", DEC "presence_token_head.layers.1", "detr_decoder.presence_head.layer2", DETECT(DECODER), 0, S(D), S(D)),
    LINEAR("dec.presence_head.2", DEC "presence_token_head.layers.2", "detr_decoder.presence_head.layer3", DETECT(DECODER), 0, 1, S(D)),
    NORM("dec.presence_norm", DEC "presence_token_out_norm", "detr_decoder.presence_layer_norm", DETECT(DECODER), 0, S(D)),
    LINEAR("dec.ref_head.0", DEC "ref_point_head.layers.0", "detr_decoder.ref_point_head.layer1", DETECT(DECODER), 0, S(D), S(2D)),
    LINEAR("dec.ref_head.1", DEC "ref_point_head.layers.1", "detr_decoder.ref_point_head.layer2", DETECT(DECODER), 0, S(D), S(D)),

    /* ---- mask head: the third convolution and norm are never reached */
    CONV("mask.conv.0", SEG "pixel_decoder.conv_layers.0", "mask_decoder.pixel_decoder.conv_layers.0", DETECT(MASK), 0, S(D), S(D), 3),
    CONV("mask.conv.1", SEG "pixel_decoder.conv_layers.1", "mask_decoder.pixel_decoder.conv_layers.1", DETECT(MASK), 0, S(D), S(D), 3),
    CONV("mask.conv.2", SEG "pixel_decoder.conv_layers.2", "mask_decoder.pixel_decoder.conv_layers.2", DETECT_KNOWN(MASK), 0, S(D), S(D), 3),
    NORM("mask.gn.0", SEG "pixel_decoder.norms.0", "mask_decoder.pixel_decoder.norms.0", DETECT(MASK), 0, S(D)),
    NORM("mask.gn.1", SEG "pixel_decoder.norms.1", "mask_decoder.pixel_decoder.norms.1", DETECT(MASK), 0, S(D)),
    NORM("mask.gn.2", SEG "pixel_decoder.norms.2", "mask_decoder.pixel_decoder.norms.2", DETECT_KNOWN(MASK), 0, S(D)),
    LINEAR("mask.embed.0", SEG "mask_predictor.mask_embed.layers.0", "mask_decoder.mask_embedder.layers.0", DETECT(MASK), 0, S(D), S(D)),
    LINEAR("mask.embed.1", SEG "mask_predictor.mask_embed.layers.1", "mask_decoder.mask_embedder.layers.1", DETECT(MASK), 0, S(D), S(D)),
    LINEAR("mask.embed.2", SEG "mask_predictor.mask_embed.layers.2", "mask_decoder.mask_embedder.layers.2", DETECT(MASK), 0, S(D), S(D)),
    MHA_PACKED("mask.prompt", SEG "cross_attend_prompt", "mask_decoder.prompt_cross_attn", ".o_proj", DETECT(MASK), 0, S(D)),
    NORM("mask.prompt_norm", SEG "cross_attn_norm", "mask_decoder.prompt_cross_attn_norm", DETECT(MASK), 0, S(D)),
    CONV("mask.semantic", SEG "semantic_seg_head", "mask_decoder.semantic_projection", DETECT(MASK), 0, 1, S(D), 1),
    CONV("mask.instance", SEG "instance_seg_head", "mask_decoder.instance_projection", DETECT(MASK), 0, S(D), S(D), 1),

    /* ---- scoring */
    LINEAR("score.mlp.0", "dot_prod_scoring.prompt_mlp.layers.0", "dot_product_scoring.text_mlp.layer1", DETECT(SCORE), 0, S(SCORE_FFN), S(D)),
    LINEAR("score.mlp.1", "dot_prod_scoring.prompt_mlp.layers.1", "dot_product_scoring.text_mlp.layer2", DETECT(SCORE), 0, S(D), S(SCORE_FFN)),
    NORM("score.norm", "dot_prod_scoring.prompt_mlp.out_norm", "dot_product_scoring.text_mlp_out_norm", DETECT(SCORE), 0, S(D)),
    LINEAR("score.prompt_proj", "dot_prod_scoring.prompt_proj", "dot_product_scoring.text_proj", DETECT(SCORE), 0, S(D), S(D)),
    LINEAR("score.query_proj", "dot_prod_scoring.hs_proj", "dot_product_scoring.query_proj", DETECT(SCORE), 0, S(D), S(D)),

    /* ---- interactive head */
    CLICK_PROMPTS("sam_prompt_encoder.", CLICK_3),
    CLICK_DECODER("sam_mask_decoder.", CLICK_3),
    BARE3("click.no_memory", "no_mem_embed", "no_memory_embedding", CLICK_3, 0, 1, 1, S(D)),
    CLICK_PROMPTS("interactive_sam_prompt_encoder.", CLICK_31),
    CLICK_DECODER("interactive_sam_mask_decoder.", CLICK_31),
    BARE3("click.no_memory", "interactivity_no_mem_embed", NULL, CLICK_31, 0, 1, 1, S(D)),

    /* ---- SAM 3's tracker */
    BARE4("track.time", "maskmem_tpos_enc", "memory_temporal_positional_encoding", TRACK_3, 0, S(MEM_SLOTS), 1, 1, S(MEM)),
    BARE3("track.no_memory_pos", "no_mem_pos_enc", "no_memory_positional_encoding", TRACK_3, 0, 1, 1, S(D)),
    BARE2("track.no_pointer", "no_obj_ptr", "no_object_pointer", TRACK_3, 0, 1, S(D)),
    BARE2("track.absent", "no_obj_embed_spatial", "occlusion_spatial_embedding_parameter", TRACK_3_OPTION, 0, 1, S(MEM)),
    CONV("track.mask_prompt", "mask_downsample", "mask_downsample", TRACK_3, 0, 1, 1, 4),
    MHA("track.layers.#.self", MEM "self_attn", "memory_attention.layers.#.self_attn", TRACK_3, ST_SIZE_MEM_LAYERS, S(D), S(MEM_INNER), S(D)),
    MHA("track.layers.#.memory", MEM "cross_attn_image", "memory_attention.layers.#.cross_attn_image", TRACK_3, ST_SIZE_MEM_LAYERS, S(D), S(MEM_INNER), S(MEM)),
    LINEAR("track.layers.#.ffn1", MEM "linear1", "memory_attention.layers.#.linear1", TRACK_3, ST_SIZE_MEM_LAYERS, S(MEM_FFN), S(D)),
    LINEAR("track.layers.#.ffn2", MEM "linear2", "memory_attention.layers.#.linear2", TRACK_3, ST_SIZE_MEM_LAYERS, S(D), S(MEM_FFN)),
    NORM("track.layers.#.norm1", MEM "norm1", "memory_attention.layers.#.layer_norm1", TRACK_3, ST_SIZE_MEM_LAYERS, S(D)),
    NORM("track.layers.#.norm2", MEM "norm2", "memory_attention.layers.#.layer_norm2", TRACK_3, ST_SIZE_MEM_LAYERS, S(D)),
    NORM("track.layers.#.norm3", MEM "norm3", "memory_attention.layers.#.layer_norm3", TRACK_3, ST_SIZE_MEM_LAYERS, S(D)),
    NORM("track.norm", "transformer.encoder.norm", "memory_attention.layer_norm", TRACK_3, 0, S(D)),
    CONV("track.down.0", MEMB "mask_downsampler.encoder.0", "memory_encoder.mask_downsampler.layers.0.conv", TRACK_3, 0, 4, 1, S(DOWN_KERNEL)),
    NORM("track.down_norm.0", MEMB "mask_downsampler.encoder.1", "memory_encoder.mask_downsampler.layers.0.layer_norm", TRACK_3, 0, 4),
    CONV("track.down.1", MEMB "mask_downsampler.encoder.3", "memory_encoder.mask_downsampler.layers.1.conv", TRACK_3, 0, 16, 4, S(DOWN_KERNEL)),
    NORM("track.down_norm.1", MEMB "mask_downsampler.encoder.4", "memory_encoder.mask_downsampler.layers.1.layer_norm", TRACK_3, 0, 16),
    CONV("track.down.2", MEMB "mask_downsampler.encoder.6", "memory_encoder.mask_downsampler.layers.2.conv", TRACK_3, 0, 64, 16, S(DOWN_KERNEL)),
    NORM("track.down_norm.2", MEMB "mask_downsampler.encoder.7", "memory_encoder.mask_downsampler.layers.2.layer_norm", TRACK_3, 0, 64),
    CONV("track.down.3", MEMB "mask_downsampler.encoder.9", "memory_encoder.mask_downsampler.layers.3.conv", TRACK_3, 0, 256, 64, S(DOWN_KERNEL)),
    NORM("track.down_norm.3", MEMB "mask_downsampler.encoder.10", "memory_encoder.mask_downsampler.layers.3.layer_norm", TRACK_3, 0, 256),
    CONV("track.down_proj", MEMB "mask_downsampler.encoder.12", "memory_encoder.mask_downsampler.final_conv", TRACK_3, 0, S(D), 256, 1),
    CONV("track.feature_proj", MEMB "pix_feat_proj", "memory_encoder.feature_projection", TRACK_3, 0, S(D), S(D), 1),
    BARE1("track.fuser.#.scale", MEMB "fuser.layers.#.gamma", "memory_encoder.memory_fuser.layers.#.scale", TRACK_3, ST_SIZE_FUSER_LAYERS, S(D)),
    CONV("track.fuser.#.depthwise", MEMB "fuser.layers.#.dwconv", "memory_encoder.memory_fuser.layers.#.depthwise_conv", TRACK_3, ST_SIZE_FUSER_LAYERS, S(D), 1,
         S(FUSER_KERNEL)),
    NORM("track.fuser.#.norm", MEMB "fuser.layers.#.norm", "memory_encoder.memory_fuser.layers.#.layer_norm", TRACK_3, ST_SIZE_FUSER_LAYERS, S(D)),
    LINEAR("track.fuser.#.fc1", MEMB "fuser.layers.#.pwconv1", "memory_encoder.memory_fuser.layers.#.pointwise_conv1", TRACK_3, ST_SIZE_FUSER_LAYERS,
           S(FUSER_FFN), S(D)),
    LINEAR("track.fuser.#.fc2", MEMB "fuser.layers.#.pwconv2", "memory_encoder.memory_fuser.layers.#.pointwise_conv2", TRACK_3, ST_SIZE_FUSER_LAYERS, S(D),
           S(FUSER_FFN)),
    CONV("track.memory_proj", MEMB "out_proj", "memory_encoder.projection", TRACK_3_OPTION, 0, S(MEM), S(D), 1), /* absent when memory is as wide as the model */
    LINEAR("track.pointer.0", "obj_ptr_proj.layers.0", "object_pointer_proj.proj_in", TRACK_3, 0, S(D), S(D)),
    LINEAR("track.pointer.1", "obj_ptr_proj.layers.1", "object_pointer_proj.layers.0", TRACK_3, 0, S(D), S(D)),
    LINEAR("track.pointer.2", "obj_ptr_proj.layers.2", "object_pointer_proj.proj_out", TRACK_3, 0, S(D), S(D)),
    LINEAR("track.pointer_time", "obj_ptr_tpos_proj", "temporal_positional_encoding_projection_layer", TRACK_3_OPTION, 0, S(MEM), S(D)),

    /* ---- SAM 3.1's tracker */
    BARE4("track.time", "maskmem_tpos_enc", NULL, TRACK_31, 0, S(MEM_SLOTS), 1, 1, S(D)),
    BARE2("track.absent", "no_obj_embed_spatial", NULL, TRACK_31, 0, S(MUX), S(D)),
    BARE2("track.slot_valid", "output_valid_embed", NULL, TRACK_31, 0, S(MUX), S(D)),
    BARE2("track.slot_invalid", "output_invalid_embed", NULL, TRACK_31, 0, S(MUX), S(D)),
    CONV_M("track.mask_prompt", "interactive_mask_downsample", TRACK_31, 0, 1, 1, 4),
    LINEAR_M("track.layers.#.self.q", MEM "self_attn_q_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.self.k", MEM "self_attn_k_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.self.v", MEM "self_attn_v_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.self.out", MEM "self_attn_out_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.memory.q", MEM "cross_attn_q_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.memory.k", MEM "cross_attn_k_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.memory.v", MEM "cross_attn_v_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.memory.out", MEM "cross_attn_out_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.image.q", MEM "image_cross_attn_q_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.image.k", MEM "image_cross_attn_k_proj", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(D)),
    LINEAR_M("track.layers.#.ffn1", MEM "linear1", TRACK_31, ST_SIZE_MEM_LAYERS, S(MEM_FFN), S(D)),
    LINEAR_M("track.layers.#.ffn2", MEM "linear2", TRACK_31, ST_SIZE_MEM_LAYERS, S(D), S(MEM_FFN)),
    NORM_M("track.layers.#.norm1", MEM "norm1", TRACK_31, ST_SIZE_MEM_LAYERS, S(D)),
    NORM_M("track.layers.#.norm2", MEM "norm2", TRACK_31, ST_SIZE_MEM_LAYERS, S(D)),
    NORM_M("track.layers.#.norm3", MEM "norm3", TRACK_31, ST_SIZE_MEM_LAYERS, S(D)),
    NORM_M("track.norm", "transformer.encoder.norm", TRACK_31, 0, S(D)),
    CONV_M("track.down.0", MEMB "mask_downsampler.encoder.0", TRACK_31, 0, S(DOWN), S(2MUX), S(DOWN_KERNEL)),
    NORM_M("track.down_norm.0", MEMB "mask_downsampler.encoder.1", TRACK_31, 0, S(DOWN)),
    CONV_M("track.down.1", MEMB "mask_downsampler.encoder.3", TRACK_31, 0, S(4DOWN), S(DOWN), S(DOWN_KERNEL)),
    NORM_M("track.down_norm.1", MEMB "mask_downsampler.encoder.4", TRACK_31, 0, S(4DOWN)),
    CONV_M("track.down.2", MEMB "mask_downsampler.encoder.6", TRACK_31, 0, S(16DOWN), S(4DOWN), S(DOWN_KERNEL)),
    NORM_M("track.down_norm.2", MEMB "mask_downsampler.encoder.7", TRACK_31, 0, S(16DOWN)),
    CONV_M("track.down.3", MEMB "mask_downsampler.encoder.9", TRACK_31, 0, S(64DOWN), S(16DOWN), S(DOWN_KERNEL)),
    NORM_M("track.down_norm.3", MEMB "mask_downsampler.encoder.10", TRACK_31, 0, S(64DOWN)),
    CONV_M("track.down_proj", MEMB "mask_downsampler.encoder.12", TRACK_31, 0, S(D), S(64DOWN), 1),
    CONV_M("track.feature_proj", MEMB "pix_feat_proj", TRACK_31, 0, S(D), S(D), 1),
    BARE1("track.fuser.#.scale", MEMB "fuser.layers.#.gamma", NULL, TRACK_31, ST_SIZE_FUSER_LAYERS, S(D)),
    CONV_M("track.fuser.#.depthwise", MEMB "fuser.layers.#.dwconv", TRACK_31, ST_SIZE_FUSER_LAYERS, S(D), 1, S(FUSER_KERNEL)),
    NORM_M("track.fuser.#.norm", MEMB "fuser.layers.#.norm", TRACK_31, ST_SIZE_FUSER_LAYERS, S(D)),
    LINEAR_M("track.fuser.#.fc1", MEMB "fuser.layers.#.pwconv1", TRACK_31, ST_SIZE_FUSER_LAYERS, S(FUSER_FFN), S(D)),
    LINEAR_M("track.fuser.#.fc2", MEMB "fuser.layers.#.pwconv2", TRACK_31, ST_SIZE_FUSER_LAYERS, S(D), S(FUSER_FFN)),
    LINEAR_M("track.no_pointer", "no_obj_ptr_linear", TRACK_31, 0, S(D), S(D)),
    BARE2("track.grid_fourier", "image_pe_layer.positional_encoding_gaussian_matrix", NULL, TRACK_31, 0, 2, S(D_2)),
    LINEAR_M("track.pointer.0", "obj_ptr_proj.layers.0", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.pointer.1", "obj_ptr_proj.layers.1", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.pointer.2", "obj_ptr_proj.layers.2", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.click_pointer.0", "interactive_obj_ptr_proj.layers.0", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.click_pointer.1", "interactive_obj_ptr_proj.layers.1", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.click_pointer.2", "interactive_obj_ptr_proj.layers.2", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.pointer_time", "obj_ptr_tpos_proj", TRACK_31, 0, S(D), S(D)),
#define PROP "sam_mask_decoder."
#define PROP_MHA(canon, meta, rep, inner)                                            \
    LINEAR_M(canon ".q", PROP meta ".q_proj", TRACK_31, rep, inner, S(D)),           \
    LINEAR_M(canon ".k", PROP meta ".k_proj", TRACK_31, rep, inner, S(D)),           \
    LINEAR_M(canon ".v", PROP meta ".v_proj", TRACK_31, rep, inner, S(D)),           \
    LINEAR_M(canon ".out", PROP meta ".out_proj", TRACK_31, rep, S(D), inner)
    PROP_MHA("track.dec.layers.#.self", "transformer.layers.#.self_attn", ST_SIZE_PROP_LAYERS, S(D)),
    PROP_MHA("track.dec.layers.#.token_to_image", "transformer.layers.#.cross_attn_token_to_image", ST_SIZE_PROP_LAYERS, S(PROP_INNER)),
    PROP_MHA("track.dec.layers.#.image_to_token", "transformer.layers.#.cross_attn_image_to_token", ST_SIZE_PROP_LAYERS, S(PROP_INNER)),
    LINEAR_M("track.dec.layers.#.ffn1", PROP "transformer.layers.#.mlp.lin1", TRACK_31, ST_SIZE_PROP_LAYERS, S(PROP_MLP), S(D)),
    LINEAR_M("track.dec.layers.#.ffn2", PROP "transformer.layers.#.mlp.lin2", TRACK_31, ST_SIZE_PROP_LAYERS, S(D), S(PROP_MLP)),
    NORM_M("track.dec.layers.#.norm1", PROP "transformer.layers.#.norm1", TRACK_31, ST_SIZE_PROP_LAYERS, S(D)),
    NORM_M("track.dec.layers.#.norm2", PROP "transformer.layers.#.norm2", TRACK_31, ST_SIZE_PROP_LAYERS, S(D)),
    NORM_M("track.dec.layers.#.norm3", PROP "transformer.layers.#.norm3", TRACK_31, ST_SIZE_PROP_LAYERS, S(D)),
    NORM_M("track.dec.layers.#.norm4", PROP "transformer.layers.#.norm4", TRACK_31, ST_SIZE_PROP_LAYERS, S(D)),
    PROP_MHA("track.dec.final", "transformer.final_attn_token_to_image", 0, S(PROP_INNER)),
    NORM_M("track.dec.final_norm", PROP "transformer.norm_final_attn", TRACK_31, 0, S(D)),
    BARE2("track.dec.iou_token", PROP "iou_token.weight", NULL, TRACK_31, 0, S(MUX), S(D)),
    BARE2("track.dec.score_token", PROP "obj_score_token.weight", NULL, TRACK_31, 0, S(MUX), S(D)),
    BARE2("track.dec.mask_tokens", PROP "mask_tokens.weight", NULL, TRACK_31, 0, S(MUX_TOKENS), S(D)),
    CONV_UP_M("track.dec.up0", PROP "output_upscaling.0", TRACK_31, 0, S(D), S(D_4)),
    NORM_M("track.dec.up_norm", PROP "output_upscaling.1", TRACK_31, 0, S(D_4)),
    CONV_UP_M("track.dec.up1", PROP "output_upscaling.3", TRACK_31, 0, S(D_4), S(D_8)),
    CONV_M("track.dec.skip0", PROP "conv_s0", TRACK_31, 0, S(D_8), S(D), 1),
    CONV_M("track.dec.skip1", PROP "conv_s1", TRACK_31, 0, S(D_4), S(D), 1),
    LINEAR_M("track.dec.hyper.#.0", PROP "output_hypernetworks_mlps.#.layers.0", TRACK_31, ST_SIZE_CANDIDATES, S(D), S(D)),
    LINEAR_M("track.dec.hyper.#.1", PROP "output_hypernetworks_mlps.#.layers.1", TRACK_31, ST_SIZE_CANDIDATES, S(D), S(D)),
    LINEAR_M("track.dec.hyper.#.2", PROP "output_hypernetworks_mlps.#.layers.2", TRACK_31, ST_SIZE_CANDIDATES, S(D_8), S(D)),
    LINEAR_M("track.dec.iou.0", PROP "iou_prediction_head.layers.0", TRACK_31, 0, S(PROP_IOU), S(D)),
    LINEAR_M("track.dec.iou.1", PROP "iou_prediction_head.layers.1", TRACK_31, 0, S(PROP_IOU), S(PROP_IOU)),
    LINEAR_M("track.dec.iou.2", PROP "iou_prediction_head.layers.2", TRACK_31, 0, S(CANDIDATES), S(PROP_IOU)),
    LINEAR_M("track.dec.score.0", PROP "pred_obj_score_head.layers.0", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.dec.score.1", PROP "pred_obj_score_head.layers.1", TRACK_31, 0, S(D), S(D)),
    LINEAR_M("track.dec.score.2", PROP "pred_obj_score_head.layers.2", TRACK_31, 0, 1, S(D)),
};
const size_t st_n_manifest_rows = sizeof st_manifest_rows / sizeof *st_manifest_rows;
