/* fusion.c: the picture's tokens look at each other and at the prompt. Mirrors `sam3/model/encoder.py` (class TransformerEncoderFusion).
 * Pre-norm; positions on queries and keys of the self-attention only; no final norm; the prompt leaves unchanged.
 */
#include "detect/detect.h"

#include <string.h>

static void layer_run(const st_run *run, const st_detect *d, const st_fusion_layer *l, const float *prompt, size_t n_prompt, float *x)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    float *y = st_run_floats(run, N, D);
    st_norm_run(run, &l->norm1, x, N, y);
    const size_t inner = st_arena_mark(run->arena);
    float *placed = st_run_floats(run, N, D); /* y + pos */
    st_add_run(run, placed, y, d->pos, N * D);
    st_mha_run(run, &l->self, placed, N, placed, y, N, x, &(st_attention){.int8 = st_run_int8(run, &l->self.q)});
    st_arena_rewind(run->arena, inner);
    st_norm_run(run, &l->norm2, x, N, y);
    st_mha_run(run, &l->prompt, y, N, prompt, prompt, n_prompt, x, NULL);
    st_norm_run(run, &l->norm3, x, N, y);
    st_feed_forward(run, &l->ffn1, &l->ffn2, ST_ACT_RELU, y, N, x);
    st_arena_rewind(run->arena, mark);
}

void st_fusion_run(const st_run *run, const st_detect *d, const float *p1, const float *prompt, size_t n_prompt, float *x)
{
    const size_t N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    if (!st_run_idle(run)) memcpy(x, p1, N * D * sizeof *x);
    for (size_t i = 0; i < d->dims->fusion_layers; i++) {
        layer_run(run, d, &d->fusion[i], prompt, n_prompt, x);
        st_run_probe(run, x, N, D, "fusion.layer.%zu", i);
    }
}
