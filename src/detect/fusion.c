/* fusion.c: the picture's tokens look at each other and at the prompt. Mirrors `sam3/model/encoder.py` (class TransformerEncoderFusion).
 * Pre-norm; positions on queries and keys of the self-attention only; no final norm; the prompt leaves unchanged.
 * The first layer's self-attention has not seen the prompt: it belongs to the picture and is made once (st_fusion_share).
 */
#include "detect/detect.h"

#include <string.h>

/* x += SelfAttention(LN(x)), positions on queries and keys: [N, D]. */
static void look_around(const st_run *run, const st_detect *d, const st_fusion_layer *l, float *x)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    float *y = st_run_floats(run, N, D), *placed = st_run_floats(run, N, D); /* LN(x), LN(x) + pos */
    st_norm_run(run, &l->norm1, x, N, y);
    st_add_run(run, placed, y, d->pos, N * D);
    st_mha_run(run, &l->self, placed, N, placed, y, N, x, &(st_attention){.int8 = st_run_int8(run, &l->self.q)});
    st_arena_rewind(run->arena, mark);
}

/* x += Attention(LN(x), prompt), then the feed-forward half. */
static void look_at_prompt(const st_run *run, const st_detect *d, const st_fusion_layer *l, const float *prompt, size_t n_prompt, float *x)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    float *y = st_run_floats(run, N, D);
    st_norm_run(run, &l->norm2, x, N, y);
    st_mha_run(run, &l->prompt, y, N, prompt, prompt, n_prompt, x, NULL);
    st_norm_run(run, &l->norm3, x, N, y);
    st_feed_forward(run, &l->ffn1, &l->ffn2, ST_ACT_RELU, y, N, x);
    st_arena_rewind(run->arena, mark);
}

void st_fusion_share(const st_run *run, const st_detect *d, const float *p1, float *shared)
{
    if (!st_run_idle(run)) memcpy(shared, p1, (size_t)d->dims->grid * d->dims->grid * d->dims->width * sizeof *shared);
    look_around(run, d, &d->fusion[0], shared);
}

void st_fusion_run(const st_run *run, const st_detect *d, const float *shared, const float *prompt, size_t n_prompt, float *x)
{
    const size_t N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    if (!st_run_idle(run)) memcpy(x, shared, N * D * sizeof *x);
    for (size_t i = 0; i < d->dims->fusion_layers; i++) {
        if (i > 0) look_around(run, d, &d->fusion[i], x);
        look_at_prompt(run, d, &d->fusion[i], prompt, n_prompt, x);
        st_run_probe(run, x, N, D, "fusion.layer.%zu", i);
    }
}
