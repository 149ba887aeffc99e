/* decoder.c: queries find the concept's instances. Mirrors `sam3/model/decoder.py` (class TransformerDecoder).
 * Post-norm; order self -> prompt -> picture -> feed-forward; row 0 of the state is the presence token, rows 1..Q are the queries; boxes are refined after every layer.
 * The box relative position bias is separable and never built whole.
 */
#include "detect/detect.h"

#include <math.h>
#include <string.h>

/* Scratch of one decoder run. T = Q + 1 tokens. */
typedef struct dec_state {
    float *x;            /* [T, D] */
    float *place;        /* [T, D] query positions, row 0 zero */
    float *ref;          /* [Q, 4] */
    float *keys;         /* [N, D] fused + pos */
    float *rpb_x, *rpb_y;/* [heads][T][n], row 0 of each head zero */
} dec_state;

/* [code of cy, cx, w, h], D/2 numbers each; `sam3/model/model_misc.py`, gen_sineembed_for_position. */
static void box_codes(const float *ref, size_t n, size_t D, float *out)
{
    static const size_t order[4] = {1, 0, 2, 3};
    for (size_t i = 0; i < n; i++)
        for (size_t part = 0; part < 4; part++)
            st_sine_code(out + i * 2 * D + part * (D / 2), D / 2, ref[4 * i + order[part]] * 6.283185307179586f);
}

static void place_queries(const st_run *run, const st_detect *d, dec_state *s)
{
    const size_t mark = st_arena_mark(run->arena), Q = d->dims->n_queries, D = d->dims->width;
    float *codes = st_run_floats(run, Q, 2 * D);
    if (!st_run_idle(run)) {
        box_codes(s->ref, Q, D, codes);
        memset(s->place, 0, D * sizeof *s->place);
    }
    st_mlp_run(run, d->dec.ref_head, 2, codes, Q, s->place + D);
    st_arena_rewind(run->arena, mark);
}

/* Signed log of the distance from a grid line to a box edge: sign(u) log2(|u| + 1) / log2(8), u = 8 (g - edge). */
static float log_distance(float grid, float edge)
{
    const float u = (grid - edge) * 8.0f;
    return copysignf(log2f(fabsf(u) + 1.0f), u) / 3.0f;
}

/* One axis of the bias: MLP of the distances to the box's two edges, [Q, n] x 2 -> heads; out [heads][T][n]. Grid lines are the tokens' left (top) edges. */
static void rpb_axis(const st_run *run, const st_detect *d, const st_linear *mlp, const float *ref, size_t axis, size_t layer, float *out)
{
    const size_t mark = st_arena_mark(run->arena), Q = d->dims->n_queries, n = d->dims->grid, heads = d->dims->dec_heads;
    float *distances = st_run_floats(run, Q * n, 2), *bias = st_run_floats(run, Q * n, heads);
    if (!st_run_idle(run))
        for (size_t q = 0; q < Q; q++) {
            const float centre = ref[4 * q + axis], half = 0.5f * ref[4 * q + 2 + axis];
            for (size_t i = 0; i < n; i++) {
                const float grid = (float)i / (float)n;
                distances[2 * (q * n + i)] = log_distance(grid, centre - half);
                distances[2 * (q * n + i) + 1] = log_distance(grid, centre + half);
            }
        }
    st_mlp_run(run, mlp, 2, distances, Q * n, bias);
    st_run_probe(run, bias, Q, n * heads, "dec.rpb.%c.%zu", axis == 0 ? 'x' : 'y', layer);
    if (!st_run_idle(run))
        for (size_t h = 0; h < heads; h++) {
            memset(out + h * (Q + 1) * n, 0, n * sizeof *out); /* the presence token has no box */
            for (size_t i = 0; i < Q * n; i++) out[(h * (Q + 1) + 1) * n + i] = bias[i * heads + h];
        }
    st_arena_rewind(run->arena, mark);
}

/* x = LN(x + MHA(x + place, keys, values)); `self`: keys are x + place, values x. */
static void attend(const st_run *run, const st_mha *mha, const st_norm *norm, dec_state *s, size_t T, const float *keys, const float *values, size_t n_keys,
                   const st_attention *extra)
{
    const size_t mark = st_arena_mark(run->arena), D = norm->n;
    float *placed = st_run_floats(run, T, D), *before = st_run_floats(run, T, D);
    st_add_run(run, placed, s->x, s->place, T * D);
    if (!st_run_idle(run)) memcpy(before, s->x, T * D * sizeof *before);
    if (keys) st_mha_run(run, mha, placed, T, keys, values, n_keys, s->x, extra);
    else st_mha_run(run, mha, placed, T, placed, before, T, s->x, extra);
    st_norm_run(run, norm, s->x, T, s->x);
    st_arena_rewind(run->arena, mark);
}

static void layer_run(const st_run *run, const st_detect *d, const st_dec_layer *l, const float *fused, const float *prompt, size_t n_prompt, dec_state *s)
{
    const size_t mark = st_arena_mark(run->arena), T = (size_t)d->dims->n_queries + 1, D = d->dims->width, n = d->dims->grid;
    attend(run, &l->self, &l->norm_self, s, T, NULL, NULL, 0, NULL);
    attend(run, &l->text, &l->norm_text, s, T, prompt, prompt, n_prompt, NULL);
    attend(run, &l->image, &l->norm_image, s, T, s->keys, fused, n * n, &(st_attention){.rpb_x = s->rpb_x, .rpb_y = s->rpb_y, .grid = n});
    float *before = st_run_floats(run, T, D);
    if (!st_run_idle(run)) memcpy(before, s->x, T * D * sizeof *before);
    st_feed_forward(run, &l->ffn1, &l->ffn2, ST_ACT_RELU, before, T, s->x);
    st_norm_run(run, &l->norm_ffn, s->x, T, s->x);
    st_arena_rewind(run->arena, mark);
}

/* ref = sigmoid(box_head(o) + inverse_sigmoid(ref)). */
static void refine_boxes(const st_run *run, const st_detect *d, const float *normed, float *ref)
{
    const size_t mark = st_arena_mark(run->arena), Q = d->dims->n_queries;
    float *delta = st_run_floats(run, Q, 4);
    st_mlp_run(run, d->dec.box_head, 3, normed, Q, delta);
    if (!st_run_idle(run))
        for (size_t i = 0; i < 4 * Q; i++) ref[i] = st_sigmoid(delta[i] + st_inverse_sigmoid(ref[i]));
    st_arena_rewind(run->arena, mark);
}

static float presence_logit(const st_run *run, const st_detect *d, const float *token)
{
    const size_t mark = st_arena_mark(run->arena), D = d->dims->width;
    float *normed = st_run_floats(run, 1, D), *logit = st_run_floats(run, 1, 1);
    st_norm_run(run, &d->dec.presence_norm, token, 1, normed);
    st_mlp_run(run, d->dec.presence_head, 3, normed, 1, logit);
    /* Meta computes this clamp and throws it away; Hugging Face's port really clamps. */
    if (d->dims->clamp_presence && !st_run_idle(run)) *logit = fminf(fmaxf(*logit, -10.0f), 10.0f);
    st_run_probe(run, logit, 1, 1, "presence");
    const float value = st_run_idle(run) ? 0.0f : *logit;
    st_arena_rewind(run->arena, mark);
    return value;
}

static void start(const st_run *run, const st_detect *d, const float *fused, dec_state *s)
{
    const size_t Q = d->dims->n_queries, D = d->dims->width, n = d->dims->grid;
    s->x = st_run_floats(run, Q + 1, D);
    s->place = st_run_floats(run, Q + 1, D);
    s->ref = st_run_floats(run, Q, 4);
    s->keys = st_run_floats(run, n * n, D);
    s->rpb_x = st_run_floats(run, d->dims->dec_heads * (Q + 1), n);
    s->rpb_y = st_run_floats(run, d->dims->dec_heads * (Q + 1), n);
    st_add_run(run, s->keys, fused, d->pos, n * n * D);
    if (st_run_idle(run)) return;
    memcpy(s->x, d->dec.presence_token, D * sizeof *s->x);
    memcpy(s->x + D, d->dec.query_embed, Q * D * sizeof *s->x);
    for (size_t i = 0; i < 4 * Q; i++) s->ref[i] = st_sigmoid(d->dec.ref_points[i]);
}

void st_decoder_run(const st_run *run, const st_detect *d, const float *fused, const float *prompt, size_t n_prompt, st_queries *out)
{
    const size_t mark = st_arena_mark(run->arena), Q = d->dims->n_queries, D = d->dims->width;
    dec_state s;
    start(run, d, fused, &s);
    for (size_t i = 0; i < d->dims->dec_layers; i++) {
        place_queries(run, d, &s);
        rpb_axis(run, d, d->dec.rpb_x, s.ref, 0, i, s.rpb_x);
        rpb_axis(run, d, d->dec.rpb_y, s.ref, 1, i, s.rpb_y);
        layer_run(run, d, &d->dec.layers[i], fused, prompt, n_prompt, &s);
        st_run_probe(run, s.x, Q + 1, D, "dec.layer.%zu", i);
        st_norm_run(run, &d->dec.norm, s.x + D, Q, out->state);
        st_run_probe(run, out->state, Q, D, "dec.norm.%zu", i);
        refine_boxes(run, d, out->state, s.ref);
        st_run_probe(run, s.ref, Q, 4, "dec.ref.%zu", i);
    }
    if (!st_run_idle(run)) memcpy(out->boxes, s.ref, 4 * Q * sizeof *s.ref);
    out->presence = presence_logit(run, d, s.x);
    st_arena_rewind(run->arena, mark);
    st_score_run(run, d, prompt, n_prompt, out->state, out->logits);
}

/* logit_q = clamp(query_proj(o_q) . prompt_proj(mean of prompt tokens) / sqrt(D), +-12); `sam3/model/model_misc.py`, DotProductScoring. */
void st_score_run(const st_run *run, const st_detect *d, const float *prompt, size_t n_prompt, const float *state, float *logits)
{
    const st_scorer *sc = &d->score;
    const size_t mark = st_arena_mark(run->arena), Q = d->dims->n_queries, D = d->dims->width;
    float *p = st_run_floats(run, n_prompt, D), *mean = st_run_floats(run, 1, D), *key = st_run_floats(run, 1, D), *queries = st_run_floats(run, Q, D);
    st_mlp_run(run, sc->mlp, 2, prompt, n_prompt, p);
    st_add_run(run, p, p, prompt, n_prompt * D);
    st_norm_run(run, &sc->norm, p, n_prompt, p);
    if (!st_run_idle(run))
        for (size_t c = 0; c < D; c++) {
            float sum = 0.0f;
            for (size_t i = 0; i < n_prompt; i++) sum += p[i * D + c];
            mean[c] = sum / (float)n_prompt;
        }
    st_linear_run(run, &sc->prompt_proj, mean, D, 1, key, D, ST_ACT_NONE, false);
    st_linear_run(run, &sc->query_proj, state, D, Q, queries, D, ST_ACT_NONE, false);
    if (!st_run_idle(run)) {
        run->k->gemm(true, Q, 1, D, queries, D, key, D, false, logits, 1);
        const float scale = 1.0f / sqrtf((float)D);
        for (size_t q = 0; q < Q; q++) logits[q] = fminf(fmaxf(logits[q] * scale, -12.0f), 12.0f);
    }
    st_run_probe(run, logits, Q, 1, "logits");
    st_arena_rewind(run->arena, mark);
}
