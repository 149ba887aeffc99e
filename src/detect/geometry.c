/* geometry.c: example boxes as prompt tokens. Mirrors `sam3/model/geometry_encoders.py` (class SequenceGeometryEncoder).
 * Runs for every prompt: without boxes it yields one token, the encoded CLS.
 */
#include "detect/detect.h"

#include <string.h>

/* The box as the reference's 258-vector (D + 2): code of cy, code of cx, h, w. The order is the reference's. */
static void box_code(const st_geo_box *box, size_t D, float *code)
{
    const float turn = 6.283185307179586f;
    st_sine_code(code, D / 2, box->cy * turn);
    st_sine_code(code + D / 2, D / 2, box->cx * turn);
    code[D] = box->h;
    code[D + 1] = box->w;
}

/* RoIAlign of the normed map under the box, in the pooling weights' order [channel][R*R]; `cells` is scratch [R*R, D]. */
static void pool_box(const st_geo_box *box, const float *normed, size_t n, size_t D, size_t roi, float *cells, float *out)
{
    const float s = (float)n;
    const float corners[4] = {(box->cx - 0.5f * box->w) * s, (box->cy - 0.5f * box->h) * s, (box->cx + 0.5f * box->w) * s, (box->cy + 0.5f * box->h) * s};
    st_roi_align(cells, roi, normed, n, D, corners);
    for (size_t c = 0; c < D; c++)
        for (size_t i = 0; i < roi * roi; i++) out[c * roi * roi + i] = cells[i * D + c];
}

/* tokens [n_boxes, D] = label + ((direct + pooled) + position), in the reference's order of addition. */
static void embed_boxes(const st_run *run, const st_detect *d, const float *p1, const st_geo_box *boxes, size_t n_boxes, float *tokens)
{
    const st_geo *geo = &d->geo;
    const size_t mark = st_arena_mark(run->arena), n = d->dims->grid, D = d->dims->width, roi = d->dims->roi_size;
    float *normed = st_run_floats(run, n * n, D), *cells = st_run_floats(run, roi * roi, D);
    float *raw = st_run_floats(run, n_boxes, 4), *code = st_run_floats(run, n_boxes, D + 2), *pooled = st_run_floats(run, n_boxes, D * roi * roi);
    st_norm_run(run, &geo->img_norm, p1, n * n, normed);
    if (!st_run_idle(run))
        for (size_t i = 0; i < n_boxes; i++) {
            memcpy(raw + 4 * i, (float[4]){boxes[i].cx, boxes[i].cy, boxes[i].w, boxes[i].h}, 4 * sizeof *raw);
            box_code(&boxes[i], D, code + i * (D + 2));
            pool_box(&boxes[i], normed, n, D, roi, cells, pooled + i * D * roi * roi);
        }
    st_linear_run(run, &geo->box_direct, raw, 4, n_boxes, tokens, D, ST_ACT_NONE, false);
    st_linear_run(run, &geo->box_pool, pooled, D * roi * roi, n_boxes, tokens, D, ST_ACT_NONE, true);
    st_linear_run(run, &geo->box_pos, code, D + 2, n_boxes, tokens, D, ST_ACT_NONE, true);
    if (!st_run_idle(run))
        for (size_t i = 0; i < n_boxes; i++) run->k->add(tokens + i * D, geo->label_embed + boxes[i].label * D, D);
    st_arena_rewind(run->arena, mark);
}

/* One pre-norm layer: among the tokens, to the picture (positions on its keys only), feed-forward. */
static void layer_run(const st_run *run, const st_detect *d, const st_geo_layer *l, const float *p1, const float *keys, float *x, size_t n_tokens)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    float *y = st_run_floats(run, n_tokens, D);
    st_norm_run(run, &l->norm1, x, n_tokens, y);
    st_mha_run(run, &l->self, y, n_tokens, y, y, n_tokens, x, NULL);
    st_norm_run(run, &l->norm2, x, n_tokens, y);
    st_mha_run(run, &l->image, y, n_tokens, keys, p1, N, x, NULL);
    st_norm_run(run, &l->norm3, x, n_tokens, y);
    st_feed_forward(run, &l->ffn1, &l->ffn2, ST_ACT_RELU, y, n_tokens, x);
    st_arena_rewind(run->arena, mark);
}

void st_geo_run(const st_run *run, const st_detect *d, const float *p1, const st_geo_box *boxes, size_t n_boxes, float *out)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width, n_tokens = n_boxes + 1;
    float *tokens = st_run_floats(run, n_tokens, D), *x = st_run_floats(run, n_tokens, D), *keys = st_run_floats(run, N, D);
    if (n_boxes) embed_boxes(run, d, p1, boxes, n_boxes, tokens);
    if (!st_run_idle(run)) memcpy(tokens + n_boxes * D, d->geo.cls, D * sizeof *tokens);
    st_run_probe(run, tokens, n_tokens, D, "geo.tokens");
    st_linear_run(run, &d->geo.proj, tokens, D, n_tokens, x, D, ST_ACT_NONE, false);
    st_norm_run(run, &d->geo.norm, x, n_tokens, x);
    st_add_run(run, keys, p1, d->pos, N * D);
    for (size_t i = 0; i < d->dims->geo_layers; i++) {
        layer_run(run, d, &d->geo.layers[i], p1, keys, x, n_tokens);
        st_run_probe(run, x, n_tokens, D, "geo.layer.%zu", i);
    }
    st_norm_run(run, &d->geo.out_norm, x, n_tokens, out);
    st_run_probe(run, out, n_tokens, D, "geo.out");
    st_arena_rewind(run->arena, mark);
}
