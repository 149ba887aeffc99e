/* layers.h: what the weights of a layer look like once bound: plain pointers into the checkpoint (mapped, or converted by the weights room), plus the few
 * re-ordered copies that convolutions need. A binder fetches them by canonical name; its first error sticks.
 */
#ifndef ST_WEIGHTS_LAYERS_H
#define ST_WEIGHTS_LAYERS_H

#include "weights/weights.h"

typedef struct st_linear {
    const float *weight; /* [n_out, n_in]; NULL when quantised or kept in 16 bits */
    const float *bias;   /* [n_out] or NULL */
    size_t n_in, n_out;
    st_half_view half;   /* values are NULL when not kept in 16 bits */
    st_int8_view int8;   /* values are NULL when not quantised */
    const char *name;    /* canonical name of the weight, once bound */
} st_linear;

typedef struct st_norm {
    const float *gamma, *beta; /* [n] */
    size_t n;
    float eps;
} st_norm;

/* 3x3, padding 1: the published [out, in, 3, 3] as Winograd's F(2x2, 3x3) wants it, G g Gᵀ, each of whose 16 values is one matrix (tensor/conv.c). */
typedef struct st_conv3x3 {
    float *filters;    /* [16, n_out, n_in], owned; 4*row + column */
    const float *bias; /* [n_out] */
    size_t n_in, n_out;
} st_conv3x3;

/* Transposed 2x2 with stride 2: the published [in, out, 2, 2] re-ordered; no overlap, so each of the four output cells is one matrix. */
typedef struct st_conv_up {
    float *cells;      /* [4, n_out, n_in], owned; cell = 2*row + column */
    const float *bias; /* [n_out] */
    size_t n_in, n_out;
} st_conv_up;

/* Multi-head attention with separate projections. */
typedef struct st_mha {
    st_linear q, k, v, out;
    size_t heads;
} st_mha;

typedef struct st_binder {
    st_weights *weights; /* NULL: fill in the sizes only, which is all that a planning run needs */
    st_error *err;    /* filled at the first failure */
    st_status status; /* ST_OK so far? */
} st_binder;

/* Each builds the canonical name like printf; after a failure they do nothing. n: elements expected. */
const float *st_bind_f32(st_binder *b, size_t n, const char *fmt, ...) ST_PRINTF(3, 4);
void st_bind_linear(st_binder *b, st_linear *out, size_t n_in, size_t n_out, const char *fmt, ...) ST_PRINTF(5, 6);
void st_bind_norm(st_binder *b, st_norm *out, size_t n, float eps, const char *fmt, ...) ST_PRINTF(5, 6);
/* The convolutions own their re-ordered copy: *out must be zeroed or bound before. */
void st_bind_conv3x3(st_binder *b, st_conv3x3 *out, size_t n_in, size_t n_out, const char *fmt, ...) ST_PRINTF(5, 6);
/* The [16, n_out, n_in] filters of published weights [n_out, n_in, 3, 3]. */
void st_conv3x3_filters(float *filters, const float *weight, size_t n_in, size_t n_out);
void st_bind_conv_up(st_binder *b, st_conv_up *out, size_t n_in, size_t n_out, const char *fmt, ...) ST_PRINTF(5, 6);
/* q, k, v, out below the stem: width -> inner -> width. */
void st_bind_mha(st_binder *b, st_mha *out, size_t width, size_t inner, size_t heads, const char *fmt, ...) ST_PRINTF(6, 7);
/* Linear layers stem.0 .. stem.(n-1): n_in -> n_hidden -> ... -> n_out. */
void st_bind_mlp(st_binder *b, st_linear *out, size_t n_layers, size_t n_in, size_t n_hidden, size_t n_out, const char *fmt, ...)
    ST_PRINTF(7, 8);

#endif
