/* encoder.h: from token ids to the phrase's tokens in the detector's width. Mirrors `sam3/model/text_encoder_ve.py`.
 *
 * Only the valid positions are computed: padding comes after them, is invisible inside (causal mask) and masked outside.
 * W = text width, D = detector width.
 */
#ifndef ST_TEXT_ENCODER_H
#define ST_TEXT_ENCODER_H

#include "tensor/tensor.h"

typedef struct st_text_block {
    st_norm ln1, ln2;
    st_mha attn;
    st_linear fc1, fc2; /* W -> mlp -> W */
} st_text_block;

typedef struct st_text {
    const st_dims *dims;    /* borrowed */
    bool bound;
    const float *token_embed; /* [vocab, W], or NULL: rows are read from `weights`, so that a 16-bit table stays as it is */
    const st_weights *weights;
    const float *pos;         /* [context, W] */
    st_text_block *blocks;    /* [text_depth] */
    st_norm ln_final;
    st_linear proj;           /* W -> D */
} st_text;

ST_MUSTCHECK st_status st_text_init(st_text *t, const st_dims *dims, st_error *err);

/* Values are checked for NaN and infinity here. weights NULL: sizes only (init does that). */
ST_MUSTCHECK st_status st_text_bind(st_text *t, st_weights *weights, st_error *err);
void st_text_free(st_text *t);

/* ids [n] -> out [n, D]. n <= context. */
ST_MUSTCHECK st_status st_text_encode(const st_run *run, const st_text *t, const uint32_t *ids, size_t n, float *out, st_error *err);

#endif
