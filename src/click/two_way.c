/* two_way.c: prompt tokens and picture tokens attend to each other. Mirrors `sam3/sam/transformer.py` (TwoWayTransformer).
 * Post-norm; the initial tokens are the query positions throughout, the grid code those of the picture; the first layer's self-attention has neither positions nor a residual.
 */
#include "click/click.h"

#include <string.h>

static void copy(const st_run *run, float *to, const float *from, size_t n)
{
    if (!st_run_idle(run)) memcpy(to, from, n * sizeof *to);
}

typedef struct two_way {
    float *q, *k;          /* [T, D], [N, D] */
    float *start;          /* [T, D] the initial tokens */
    float *placed_q, *placed_k; /* q + start, k + grid code */
    size_t T, N, D;
} two_way;

static void place(const st_run *run, const st_click_head *c, two_way *w)
{
    st_add_run(run, w->placed_q, w->q, w->start, w->T * w->D);
    st_add_run(run, w->placed_k, w->k, c->grid_code, w->N * w->D);
}

static void self_attend(const st_run *run, const st_click_layer *l, two_way *w, bool first)
{
    const size_t mark = st_arena_mark(run->arena);
    float *before = st_run_floats(run, w->T, w->D);
    copy(run, before, w->q, w->T * w->D);
    if (first) {
        if (!st_run_idle(run)) memset(w->q, 0, w->T * w->D * sizeof *w->q);
        st_mha_run(run, &l->self, before, w->T, before, before, w->T, w->q, NULL);
    } else {
        st_add_run(run, w->placed_q, w->q, w->start, w->T * w->D);
        st_mha_run(run, &l->self, w->placed_q, w->T, w->placed_q, before, w->T, w->q, NULL);
    }
    st_norm_run(run, &l->norm1, w->q, w->T, w->q);
    st_arena_rewind(run->arena, mark);
}

static void layer_run(const st_run *run, const st_click_head *c, const st_click_layer *l, two_way *w, bool first)
{
    const size_t mark = st_arena_mark(run->arena);
    float *before = st_run_floats(run, w->T, w->D);
    self_attend(run, l, w, first);
    place(run, c, w);
    st_mha_run(run, &l->token_to_image, w->placed_q, w->T, w->placed_k, w->k, w->N, w->q, NULL);
    st_norm_run(run, &l->norm2, w->q, w->T, w->q);
    copy(run, before, w->q, w->T * w->D);
    st_feed_forward(run, &l->ffn1, &l->ffn2, ST_ACT_RELU, before, w->T, w->q);
    st_norm_run(run, &l->norm3, w->q, w->T, w->q);
    place(run, c, w);
    st_mha_run(run, &l->image_to_token, w->placed_k, w->N, w->placed_q, w->q, w->T, w->k, NULL);
    st_norm_run(run, &l->norm4, w->k, w->N, w->k);
    st_arena_rewind(run->arena, mark);
}

void st_click_two_way(const st_run *run, const st_click_head *c, float *q, size_t n_tokens, float *k)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)c->dims->grid * c->dims->grid, D = c->dims->width;
    two_way w = {.q = q, .k = k, .T = n_tokens, .N = N, .D = D};
    w.start = st_run_floats(run, n_tokens, D);
    w.placed_q = st_run_floats(run, n_tokens, D);
    w.placed_k = st_run_floats(run, N, D);
    copy(run, w.start, q, n_tokens * D);
    for (size_t i = 0; i < c->dims->click_layers; i++) {
        layer_run(run, c, &c->layers[i], &w, i == 0);
        st_run_probe(run, q, n_tokens, D, "click.tokens.%zu", i);
        st_run_probe(run, k, N, D, "click.image.%zu", i);
    }
    place(run, c, &w);
    st_mha_run(run, &c->final, w.placed_q, n_tokens, w.placed_k, w.k, N, w.q, NULL);
    st_norm_run(run, &c->final_norm, q, n_tokens, q);
    st_run_probe(run, q, n_tokens, D, "click.tokens.final");
    st_arena_rewind(run->arena, mark);
}
