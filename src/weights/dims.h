/* dims.h: every size of one model. Read from config.json or from tensor shapes (docs/architecture.md, "Where sizes come from"); no other room has a
 * size constant of its own.
 */
#ifndef ST_WEIGHTS_DIMS_H
#define ST_WEIGHTS_DIMS_H

#include <stdbool.h>
#include <stdint.h>

#define ST_MAX_VIT_BLOCKS 128
/* Most tokens per side that may be asked for. Of the published model, the largest map then has 16 * 512^2 * 256 = 2^30 values, and the tables made
 * when a model is opened (rotary angles, sine codes, the interactive head's grid) take 0.6 GiB: beyond it plans stop being ones a machine can have. */
#define ST_MAX_GRID 512

typedef struct st_dims {
    /* picture */
    uint32_t image_size; /* side in pixels that pictures are resized to */
    uint32_t own_size;   /* the checkpoint's: image_size unless another was asked for (dims_size.c) */
    uint32_t patch;      /* side in pixels */
    uint32_t grid;       /* n = image_size / patch tokens per side */
    /* ViT trunk */
    uint32_t vit_width, vit_heads, vit_depth, vit_mlp;
    uint32_t window;     /* side in tokens */
    bool vit_global[ST_MAX_VIT_BLOCKS]; /* block attends to the whole grid */
    uint32_t pos_side;   /* side of the stored position grid */
    float vit_eps, rope_theta;
    /* text encoder */
    uint32_t vocab, context, text_width, text_heads, text_depth, text_mlp;
    float text_eps;
    /* detector */
    uint32_t width;      /* D */
    uint32_t geo_layers, geo_heads, geo_ffn, roi_size;
    uint32_t fusion_layers, fusion_heads, fusion_ffn;
    uint32_t dec_layers, dec_heads, dec_ffn, n_queries, rpb_hidden;
    uint32_t score_ffn;  /* hidden width of the scorer's prompt MLP */
    uint32_t mask_heads;
    uint32_t n_upsample; /* mask head stages present in the file (3; two are used) */
    uint32_t neck_levels;/* levels present in the file: 4 (SAM 3) or 3 (SAM 3.1) */
    bool joint_score;    /* SAM 3.1: logit' = clamp(invsigmoid(sigmoid(logit) sigmoid(presence)), +-10) */
    bool clamp_presence; /* HF layout: presence logit clamped to +-10 */
    bool has_click, has_track;
    /* interactive head and tracker: filled when present (the published values are in config.json or the tensor shapes) */
    uint32_t click_heads, click_mlp, click_layers, click_downsample, click_mask_channels, click_mask_tokens;
    uint32_t click_iou_hidden, click_points;
    uint32_t mem_layers, mem_heads, mem_ffn, mem_channels, mem_fuser_layers, mem_fuser_ffn, num_maskmem;
    uint32_t mem_downsample, mem_kernel, mem_fuser_kernel; /* attention rate; kernels of the mask down-sampler and of the fuser */
    uint32_t track_image_size; /* the side that a config.json gives the tracker; 0 when none does */
    /* SAM 3.1: objects per memory slot group, mask candidates per object, propagation decoder, width of the first down-sampler stage */
    uint32_t mux_slots, mux_candidates, prop_heads, prop_layers, prop_mlp, prop_downsample, prop_iou_hidden, mem_down_width;
} st_dims;

#endif
