/* detect.h: concept segmentation on encoded features: exemplar encoder, fusion encoder, decoder, scores, mask head.
 *
 * n = grid side, N = n*n tokens, D = width, L = prompt tokens, Q = queries. Maps are token-major.
 * A prompt is the phrase's valid tokens followed by the exemplar tokens, compacted: padding is a masked key everywhere, so leaving it out is exact.
 */
#ifndef ST_DETECT_H
#define ST_DETECT_H

#include "tensor/tensor.h"

#define ST_GROUP_NORM_GROUPS 8

/* Exemplar box, normalised to [0, 1] by the picture's width and height. */
typedef struct st_geo_box {
    float cx, cy, w, h;
    uint32_t label; /* 1 positive, 0 negative */
} st_geo_box;

/* ---- exemplar (geometry) encoder: `sam3/model/geometry_encoders.py` ---- */
typedef struct st_geo_layer {
    st_norm norm1, norm2, norm3;
    st_mha self, image;
    st_linear ffn1, ffn2;
} st_geo_layer;

typedef struct st_geo {
    const float *label_embed, *cls; /* [2, D], [1, D] */
    st_linear box_direct;           /* 4 -> D */
    st_linear box_pool;             /* D*R*R -> D: a convolution that covers its whole input */
    st_linear box_pos;              /* D+2 -> D */
    st_linear proj;
    st_norm norm, img_norm, out_norm;
    st_geo_layer *layers;
} st_geo;

/* ---- fusion encoder: `sam3/model/encoder.py` ---- */
typedef struct st_fusion_layer {
    st_norm norm1, norm2, norm3;
    st_mha self, prompt;
    st_linear ffn1, ffn2;
} st_fusion_layer;

/* ---- decoder: `sam3/model/decoder.py` ---- */
typedef struct st_dec_layer {
    st_mha self, text, image;
    st_norm norm_self, norm_text, norm_image, norm_ffn;
    st_linear ffn1, ffn2;
} st_dec_layer;

typedef struct st_decoder {
    st_dec_layer *layers;
    st_norm norm, presence_norm;
    st_linear box_head[3], presence_head[3], ref_head[2], rpb_x[2], rpb_y[2];
    const float *query_embed, *ref_points, *presence_token; /* [Q, D], [Q, 4], [1, D] */
} st_decoder;

/* ---- scoring and mask head: `sam3/model/model_misc.py`, `sam3/model/maskformer_segmentation.py` ---- */
typedef struct st_scorer {
    st_linear mlp[2], prompt_proj, query_proj;
    st_norm norm;
} st_scorer;

typedef struct st_mask_head {
    st_mha prompt;
    st_norm prompt_norm;
    st_conv3x3 conv[2];
    st_norm gn[2];
    st_linear embed[3];
    st_linear instance; /* 1x1, D -> D */
} st_mask_head;

typedef struct st_detect {
    const st_dims *dims; /* borrowed */
    bool bound;
    float *pos;          /* [N, D] sine positions of the grid */
    st_geo geo;
    st_fusion_layer *fusion;
    st_decoder dec;
    st_scorer score;
    st_mask_head mask;
} st_detect;

ST_MUSTCHECK st_status st_detect_init(st_detect *d, const st_dims *dims, st_error *err);
/* Values are checked for NaN and infinity here. weights NULL: sizes only (init does that). */
ST_MUSTCHECK st_status st_detect_bind(st_detect *d, st_weights *weights, st_error *err);
void st_detect_free(st_detect *d);

/* Exemplar boxes and the CLS token, which comes last: out [n_boxes + 1, D]. `p1` is the [N, D] neck level. */
void st_geo_run(const st_run *run, const st_detect *d, const float *p1, const st_geo_box *boxes, size_t n_boxes, float *out);
/* What no prompt changes: p1 after the first fusion layer's self-attention, shared [N, D]. */
void st_fusion_share(const st_run *run, const st_detect *d, const float *p1, float *shared);
/* x [N, D] = the encoded picture in the light of prompt [L, D]. */
void st_fusion_run(const st_run *run, const st_detect *d, const float *shared, const float *prompt, size_t n_prompt, float *x);
/* What the decoder says of every query. */
typedef struct st_queries {
    float *state;  /* [Q, D] after the shared norm */
    float *boxes;  /* [Q, 4] cx, cy, w, h in [0, 1] */
    float *logits; /* [Q] */
    float presence;/* logit */
} st_queries;
void st_decoder_run(const st_run *run, const st_detect *d, const float *fused, const float *prompt, size_t n_prompt, st_queries *out);
void st_score_run(const st_run *run, const st_detect *d, const float *prompt, size_t n_prompt, const float *state, float *logits);

/* The pixel half of the mask head: pixels [16 N, D], before the instance projection. levels are the neck's 4n and 2n maps. */
void st_mask_pixels(const st_run *run, const st_detect *d, const float *fused, const float *prompt, size_t n_prompt, const float *level_2n,
                    const float *level_4n, float *pixels);
/* Mask logits [n, 16 N] of n query states [n, D]. */
void st_mask_logits(const st_run *run, const st_detect *d, const float *pixels, const float *states, size_t n, float *logits);

#endif
