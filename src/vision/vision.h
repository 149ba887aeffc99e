/* vision.h: from pixels to features: resize and normalise, ViT trunk, necks. One pass per picture, whatever the number of prompts.
 *
 * Sizes: n = grid side in tokens, V = trunk width, D = detector width. Maps are token-major.
 */
#ifndef ST_VISION_H
#define ST_VISION_H

#include "tensor/tensor.h"

/* ---- resize (`torchvision/transforms/v2/functional/_geometry.py`; ATen UpSampleKernel.cpp) ---- */

/* Resizes to side x side with an antialiased triangle filter, rounds to bytes as the reference does, normalises to [-1, 1]: px [side*side, 3].
 * The aspect ratio is not kept. Both published arithmetics, see docs/preprocessing.md. */
ST_MUSTCHECK st_status st_resize_normalise(const st_run *run, const st_image *image, st_resize how, size_t side, float *px, st_error *err);
/* The same, up to the bytes: out [side*side, 3]. For tests. */
ST_MUSTCHECK st_status st_resize_bytes(const st_run *run, const st_image *image, st_resize how, size_t side, uint8_t *out, st_error *err);

/* ---- trunk and neck ---- */

typedef struct st_vit_block {
    st_norm norm1, norm2;          /* [V] */
    st_linear q, k, v, proj;       /* V -> V */
    st_linear fc1, fc2;            /* V -> mlp -> V */
} st_vit_block;

/* A feature pyramid on the trunk's output. SAM 3 has two of one shape (detection, clicks), SAM 3.1 three. */
typedef struct st_neck {
    st_conv_up up[2][2];           /* level 0: V -> V/2 -> V/4; level 1: V -> V/2 */
    st_linear proj1[3];            /* 1x1: V/4, V/2, V -> D */
    st_conv3x3 proj2[3];           /* 3x3: D -> D */
} st_neck;

typedef struct st_vision {
    const st_dims *dims;           /* borrowed */
    bool bound;
    st_linear patch;               /* [V, 3*p*p], no bias */
    const float *pos;              /* [pos_side*pos_side, V] */
    st_norm ln_pre;
    st_vit_block *blocks;          /* [vit_depth] */
    float *rope_window;            /* [window*window][d/2][2] */
    float *rope_global;            /* [n*n][d/2][2] */
    st_neck neck;                  /* the one that feeds detection */
} st_vision;

/* Feature maps of one picture: levels 4n, 2n, n. Owned by whoever allocated the arrays. */
typedef struct st_features {
    float *level[3]; /* [16 n*n, D], [4 n*n, D], [n*n, D] */
} st_features;

ST_MUSTCHECK st_status st_vision_init(st_vision *v, const st_dims *dims, st_error *err);
/* Values are checked for NaN and infinity here. weights NULL: sizes only (init does that). */
ST_MUSTCHECK st_status st_vision_bind(st_vision *v, st_weights *weights, st_error *err);
void st_vision_free(st_vision *v);

/* px [S*S, 3] -> the trunk's output x [n*n, V] and the three levels. In planning mode nothing is read or written. */
ST_MUSTCHECK st_status st_vision_encode(const st_run *run, const st_vision *v, float *px, float *x, const st_features *out, st_error *err);

/* [side*side][d/2][2]: cos and sin of scale * x * f_k for the first half of the pairs, of scale * y * f_k for the second.
 * `sam3/model/vitdet.py`, compute_axial_cis: pairs are adjacent channels, x (column) comes first. */
void st_vit_rope_table(float *table, size_t side, size_t head_width, float theta, float scale);

/* The trunk alone: px -> x [n*n, V], the raw residual stream after the last block (no final norm). */
void st_vit_run(const st_run *run, const st_vision *v, const float *px, float *x);
/* A neck on the trunk's output x [n*n, V]. `name` ("neck", "click_neck") is what its probes and its weights are called. */
void st_neck_run(const st_run *run, const st_neck *neck, const st_dims *dims, const char *name, const float *x, const st_features *out);
void st_neck_bind(st_binder *b, st_neck *neck, const st_dims *dims, const char *name);
void st_neck_free(st_neck *neck);

#endif
