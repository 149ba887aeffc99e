/* interact.c: one call of the interactive head: prompt in, ranked candidates out. Mirrors `sam3/model/sam1_task_predictor.py` (predict).
 * Differences between the two references are one switch: token order, what an empty prompt becomes, hole filling, the clamp of the returned logits.
 */
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

enum { MAX_TOKENS = ST_MAX_POINTS + 3 }; /* two corners and the padding token */

static st_status check_point(const st_point *q, size_t i, const st_picture *p, st_error *err)
{
    if (!(q->x >= 0.0f && q->x <= (float)p->width && q->y >= 0.0f && q->y <= (float)p->height))
        return st_fail(err, ST_ERR_INVALID_ARG, "point %zu: %g,%g, expected a place in the picture of %u x %u pixels", i + 1, (double)q->x, (double)q->y, p->width, p->height);
    if (q->positive != 0 && q->positive != 1) return st_fail(err, ST_ERR_INVALID_ARG, "point %zu: label %d, expected 1 (on the object) or 0", i + 1, q->positive);
    return ST_OK;
}

static st_status check_input(const st_click_input *in, const st_picture *p, size_t n_logits, st_error *err)
{
    const float W = (float)p->width, H = (float)p->height;
    if (!in || in->struct_size < sizeof *in) return st_fail(err, ST_ERR_INVALID_ARG, "click: no prompt, or its struct_size is not set");
    if (in->n_points > ST_MAX_POINTS) return st_fail(err, ST_ERR_LIMIT, "click: %zu points, at most %d", in->n_points, ST_MAX_POINTS);
    if (in->n_points && !in->points) return st_fail(err, ST_ERR_INVALID_ARG, "click: %zu points announced, none given", in->n_points);
    if (!in->n_points && !in->region && !in->logits) return st_fail(err, ST_ERR_INVALID_ARG, "click: neither a point, nor a region, nor a mask");
    for (size_t i = 0; i < in->n_points; i++) {
        const st_status status = check_point(&in->points[i], i, p, err);
        if (status != ST_OK) return status;
    }
    const st_region *r = in->region;
    if (r && !(r->x0 < r->x1 && r->y0 < r->y1 && r->x0 >= 0.0f && r->y0 >= 0.0f && r->x1 <= W && r->y1 <= H))
        return st_fail(err, ST_ERR_INVALID_ARG, "region: %g,%g,%g,%g, expected x0 < x1 and y0 < y1 inside the picture of %u x %u pixels", (double)r->x0, (double)r->y0,
                       (double)r->x1, (double)r->y1, p->width, p->height);
    for (size_t i = 0; in->logits && i < n_logits; i++)
        if (!isfinite(in->logits[i])) return st_fail(err, ST_ERR_NONFINITE, "click: value %zu of the mask logits is not a finite number", i);
    return ST_OK;
}

/* Pixels -> input pixels + 0.5 -> fraction, each step in fp32. */
st_click_point st_place_click(const st_picture *p, float x, float y, int kind)
{
    const float side = (float)p->model->dims->image_size;
    return (st_click_point){(x / (float)p->width * side + 0.5f) / side, (y / (float)p->height * side + 0.5f) / side, kind};
}

/* Meta: corners, points, padding; nothing at all for a mask alone. Hugging Face: points, corners, padding; two padding tokens for a mask alone. */
static size_t make_tokens(st_click_point *out, const st_click_input *in, const st_picture *p, bool hf)
{
    size_t n = 0;
    const st_click_point pad = {0.0f, 0.0f, ST_CLICK_NOT_A_POINT};
    if (!hf && in->region) {
        out[n++] = st_place_click(p, in->region->x0, in->region->y0, 2);
        out[n++] = st_place_click(p, in->region->x1, in->region->y1, 3);
    }
    for (size_t i = 0; i < in->n_points; i++) out[n++] = st_place_click(p, in->points[i].x, in->points[i].y, in->points[i].positive ? 1 : 0);
    if (hf && in->region) {
        out[n++] = st_place_click(p, in->region->x0, in->region->y0, 2);
        out[n++] = st_place_click(p, in->region->x1, in->region->y1, 3);
    }
    if (hf && n == 0) out[n++] = pad;
    if (n) out[n++] = pad;
    return n;
}

static int by_iou(const void *a, const void *b)
{
    const st_candidate *x = a, *y = b;
    if (x->iou != y->iou) return x->iou > y->iou ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Which mask tokens become candidates: all but the first, or one chosen by stability. `sam3/sam/mask_decoder.py`, _dynamic_multimask_via_stability. */
static size_t choose(uint32_t *out, const st_click_output *net, size_t n_masks, size_t n_pixels, bool multimask)
{
    if (multimask) {
        for (uint32_t i = 1; i < n_masks; i++) out[i - 1] = i;
        return n_masks - 1;
    }
    out[0] = 0;
    if (st_click_stability(net->masks, n_pixels, 0.05f) >= 0.98f) return 1;
    out[0] = 1;
    for (uint32_t i = 2; i < n_masks; i++)
        if (net->iou[i] > net->iou[out[0]]) out[0] = i;
    return 1;
}

static st_status make_candidate(st_candidate *c, const float *masks, uint32_t index, float iou, size_t n_pixels, bool hf, st_error *err)
{
    if (!isfinite(iou)) return st_fail(err, ST_ERR_NONFINITE, "click: the predicted IoU is not a finite number");
    c->iou = iou;
    c->index = index;
    c->logits = st_calloc(n_pixels, sizeof *c->logits);
    if (!c->logits) return st_fail(err, ST_ERR_NOMEM, "click: out of memory");
    for (size_t i = 0; i < n_pixels; i++) {
        const float v = masks[index * n_pixels + i];
        c->logits[i] = hf ? v : fminf(fmaxf(v, -32.0f), 32.0f);
    }
    return ST_OK;
}

typedef struct click_call {
    const st_model *m;
    const st_picture *p;
    const st_click_input *in;
    st_click_options o;
    size_t n_pixels, hole_area;
} click_call;

/* Full-size mask of a candidate, from the unclamped logits with small holes filled. */
static st_status make_mask(const st_run *run, const click_call *call, st_candidate *c, const float *masks, st_error *err)
{
    const size_t mark = st_arena_mark(run->arena), n = call->n_pixels, side = 4 * (size_t)call->m->dims->grid;
    float *filled = st_run_floats(run, 1, n);
    uint32_t *scratch = (uint32_t *)(void *)st_run_floats(run, 2, n);
    st_status status = st_run_status(run, err);
    if (status != ST_OK) return status;
    memcpy(filled, masks + c->index * n, n * sizeof *filled);
    if (call->hole_area) st_click_fill_holes(filled, side, call->hole_area, scratch);
    status = st_rle_from_logits(&c->mask, filled, (uint32_t)side, (uint32_t)side, call->p->width, call->p->height, 0.0f, err);
    if (status == ST_OK) c->area = st_rle_area(&c->mask);
    st_arena_rewind(run->arena, mark);
    return status;
}

static st_status click(st_click_result *r, st_session *s, const click_call *call, st_error *err)
{
    const st_dims *d = call->m->dims;
    st_click_point tokens[MAX_TOKENS];
    const bool hf = call->o.hf != 0;
    const size_t n_tokens = make_tokens(tokens, call->in, call->p, hf);
    const bool lone = call->in->n_points == 1 && !call->in->region && !call->in->logits;
    const bool multimask = call->o.multimask == ST_MULTIMASK_ON || (call->o.multimask == ST_MULTIMASK_AUTO && lone);
    st_run run;
    size_t scratch = 0;
    st_status status = st_plan_click(&scratch, call->m, n_tokens, err);
    if (status == ST_OK) status = st_session_run(s, &run, scratch, err);
    if (status != ST_OK) return status;
    st_click_output net = {.masks = st_run_floats(&run, d->click_mask_tokens, call->n_pixels)};
    st_click_run(&run, &call->m->click, &call->p->click, tokens, n_tokens, call->in->logits, !hf, &net);
    if ((status = st_run_status(&run, err)) != ST_OK) return status;
    uint32_t chosen[ST_CLICK_MAX_MASKS] = {0};
    const size_t n = choose(chosen, &net, d->click_mask_tokens, call->n_pixels, multimask);
    r->candidates = st_calloc(n, sizeof *r->candidates);
    if (!r->candidates) return st_fail(err, ST_ERR_NOMEM, "click: out of memory");
    r->n_candidates = n;
    r->object_score = net.score;
    r->multimask = multimask;
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = make_candidate(&r->candidates[i], net.masks, chosen[i], net.iou[chosen[i]], call->n_pixels, hf, err);
    if (status != ST_OK) return status;
    qsort(r->candidates, n, sizeof *r->candidates, by_iou);
    for (size_t i = 0; status == ST_OK && i < n && i < call->o.n_masks; i++) status = make_mask(&run, call, &r->candidates[i], net.masks, err);
    return status;
}

static st_status read_options(st_click_options *out, const st_click_options *opts, st_error *err)
{
    const st_click_options defaults = ST_CLICK_OPTIONS_INIT;
    *out = opts ? *opts : defaults;
    if (out->struct_size < sizeof *out) return st_fail(err, ST_ERR_INVALID_ARG, "click options: struct_size is %zu, expected %zu", out->struct_size, sizeof *out);
    if ((unsigned)out->multimask > ST_MULTIMASK_OFF) return st_fail(err, ST_ERR_INVALID_ARG, "multimask: %d, expected 0, 1 or 2", (int)out->multimask);
    if (out->hole_area < -1) return st_fail(err, ST_ERR_INVALID_ARG, "hole area: %d, expected -1 or more", out->hole_area);
    return ST_OK;
}

/* The reference fills 256 cells of its 288 x 288 grid. */
size_t st_click_hole_area(uint32_t side) { return (size_t)lround(256.0 * ((double)side / 288.0) * ((double)side / 288.0)); }

st_status st_click(st_click_result **out, st_session *s, const st_picture *p, const st_click_input *in, const st_click_options *opts, st_error *err)
{
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "click: no place for the result given");
    *out = NULL;
    if (!s || !p) return st_fail(err, ST_ERR_INVALID_ARG, "click: no session or no picture given");
    st_status status = st_picture_must_be_of(p, s->model, "click: the picture", err);
    if (status != ST_OK) return status;
    if (!p->for_clicks) return st_fail(err, ST_ERR_INVALID_ARG, "click: the picture was not encoded for clicks (st_encode_options.for_clicks)");
    const uint32_t side = 4 * s->model->dims->grid;
    click_call call = {s->model, p, in, ST_CLICK_OPTIONS_INIT, (size_t)side * side, 0};
    status = read_options(&call.o, opts, err);
    if (status == ST_OK) status = check_input(in, p, call.n_pixels, err);
    if (status != ST_OK) return status;
    if (call.o.hole_area < 0) call.hole_area = st_click_hole_area(side);
    else call.hole_area = (size_t)call.o.hole_area;
    if (call.o.hf) call.hole_area = 0;
    st_click_result *r = st_calloc(1, sizeof *r);
    if (!r) return st_fail(err, ST_ERR_NOMEM, "click: out of memory");
    *r = (st_click_result){.width = p->width, .height = p->height, .mask_size = side, .hole_area = (uint32_t)call.hole_area};
    status = click(r, s, &call, err);
    if (status != ST_OK) {
        st_click_result_free(r);
        return status;
    }
    *out = r;
    return ST_OK;
}

void st_click_result_free(st_click_result *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_candidates; i++) {
        st_free(r->candidates[i].logits);
        st_rle_free(&r->candidates[i].mask);
    }
    st_free(r->candidates);
    st_free(r);
}

/* The value of one output cell of an antialiased triangle filter, in double: mask prompts are small, exactness of rounding does not matter. */
static double filtered(const uint8_t *mask, uint32_t width, uint32_t height, size_t stride, size_t side, size_t row, size_t col)
{
    const double sx = (double)width / (double)side, sy = (double)height / (double)side, rx = fmax(sx, 1.0), ry = fmax(sy, 1.0);
    const double cx = sx * ((double)col + 0.5), cy = sy * ((double)row + 0.5);
    const size_t x0 = (size_t)fmax(cx - rx + 0.5, 0.0), x1 = (size_t)fmin(cx + rx + 0.5, (double)width);
    const size_t y0 = (size_t)fmax(cy - ry + 0.5, 0.0), y1 = (size_t)fmin(cy + ry + 0.5, (double)height);
    double total = 0.0, sum = 0.0;
    for (size_t y = y0; y < y1; y++) {
        const double wy = fmax(0.0, 1.0 - fabs(((double)y - cy + 0.5) / ry));
        for (size_t x = x0; x < x1; x++) {
            const double w = wy * fmax(0.0, 1.0 - fabs(((double)x - cx + 0.5) / rx));
            total += w;
            sum += w * mask[y * stride + x];
        }
    }
    return total > 0.0 ? sum / total : 0.0;
}

st_status st_click_mask_logits(float *out, const st_model *m, const uint8_t *mask, uint32_t width, uint32_t height, size_t stride, st_error *err)
{
    if (!out || !m || !mask || !width || !height || stride < width) return st_fail(err, ST_ERR_INVALID_ARG, "mask prompt: no pixels (%u x %u, stride %zu)", width, height, stride);
    const size_t side = 4 * (size_t)m->dims->grid;
    for (size_t i = 0; i < side * side; i++) out[i] = (float)(20.0 * filtered(mask, width, height, stride, side, i / side, i % side) / 255.0 - 10.0);
    return ST_OK;
}
