/* click.c: the interactive head: features of a picture, the pass from prompt to candidate masks, and binding. Mirrors `sam3/sam/mask_decoder.py` (MaskDecoder). */
#include "click/click.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

void st_click_features_run(const st_run *run, const st_click_head *c, const float *x, const st_click_features *out)
{
    const size_t mark = st_arena_mark(run->arena), n = c->dims->grid, D = c->dims->width, N = n * n;
    const st_features maps = {{st_run_floats(run, 16 * N, D), st_run_floats(run, 4 * N, D), out->tokens}};
    st_neck_run(run, &c->neck, c->dims, "click_neck", x, &maps);
    st_linear_run(run, &c->skip0, maps.level[0], D, 16 * N, out->skip0, D / 8, ST_ACT_NONE, false);
    st_linear_run(run, &c->skip1, maps.level[1], D, 4 * N, out->skip1, D / 4, ST_ACT_NONE, false);
    st_run_probe(run, out->skip0, 16 * N, D / 8, "click.skip0");
    st_run_probe(run, out->skip1, 4 * N, D / 4, "click.skip1");
    st_arena_rewind(run->arena, mark);
}

/* [score token; IoU token; mask tokens; prompt tokens] */
static void assemble(const st_run *run, const st_click_head *c, const st_click_point *points, size_t n_points, float *q)
{
    const size_t D = c->dims->width, n_masks = c->dims->click_mask_tokens;
    if (!st_run_idle(run)) {
        memcpy(q, c->score_token, D * sizeof *q);
        memcpy(q + D, c->iou_token, D * sizeof *q);
        memcpy(q + 2 * D, c->mask_tokens, n_masks * D * sizeof *q);
    }
    float *sparse = q ? q + (2 + n_masks) * D : NULL;
    st_click_embed_points(run, c, points, n_points, sparse);
    if (n_points) st_run_probe(run, sparse, n_points, D, "click.sparse");
}

/* k [N, D] = (picture tokens + no_memory) + dense prompt. */
static void add_dense(const st_run *run, const st_click_head *c, const st_click_features *f, const float *mask, bool no_memory, float *k)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)c->dims->grid * c->dims->grid, D = c->dims->width;
    float *dense = st_run_floats(run, N, D);
    if (mask) st_click_embed_mask(run, c, mask, dense);
    else if (!st_run_idle(run))
        for (size_t t = 0; t < N; t++) memcpy(dense + t * D, c->prompt.no_mask, D * sizeof *dense);
    st_run_probe(run, dense, N, D, "click.dense");
    if (!st_run_idle(run)) {
        memcpy(k, f->tokens, N * D * sizeof *k);
        for (size_t t = 0; no_memory && t < N; t++) run->k->add(k + t * D, c->no_memory, D);
    }
    st_run_probe(run, k, N, D, "click.features");
    st_add_run(run, k, k, dense, N * D);
    st_arena_rewind(run->arena, mark);
}

typedef struct tail_job {
    const st_run *run;
    const float *skip;
    float *x;
    const st_norm *norm; /* NULL: none */
    size_t width, rows;
} tail_job;

enum { TAIL_ROWS = 256 };

static void tail_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const tail_job *job = arg;
    const st_kernels *k = job->run->k;
    const size_t end = (item + 1) * TAIL_ROWS < job->rows ? (item + 1) * TAIL_ROWS : job->rows;
    for (size_t r = item * TAIL_ROWS; r < end; r++) {
        float *x = job->x + r * job->width;
        k->add(x, job->skip + r * job->width, job->width);
        if (job->norm) k->layer_norm(x, x, job->width, job->norm->gamma, job->norm->beta, job->norm->eps);
        k->gelu(x, job->width);
    }
}

/* x = GELU(norm(x + skip)) */
static void add_skip(const st_run *run, float *x, const float *skip, const st_norm *norm, size_t rows, size_t width)
{
    if (st_run_idle(run)) return;
    tail_job job = {run, skip, x, norm, width, rows};
    st_run_parallel(run, (rows + TAIL_ROWS - 1) / TAIL_ROWS, tail_item, &job);
}

typedef struct dot_job {
    const st_run *run;
    const float *weights, *pixels; /* [n, width], [n_pixels, width] */
    float *masks;                  /* [n, n_pixels] */
    size_t n, width, n_pixels;
} dot_job;

enum { DOT_PIXELS = 4096 };

static void dot_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const dot_job *job = arg;
    const size_t first = item * DOT_PIXELS, left = job->n_pixels - first, count = left < DOT_PIXELS ? left : DOT_PIXELS;
    job->run->k->gemm(true, job->n, count, job->width, job->weights, job->width, job->pixels + first * job->width, job->width, false, job->masks + first,
                      job->n_pixels);
}

/* masks [n_masks, M*M] from the picture tokens k and the mask tokens. */
static void decode_masks(const st_run *run, const st_click_head *c, const st_click_features *f, const float *k, const float *mask_tokens, float *masks)
{
    const size_t mark = st_arena_mark(run->arena), n = c->dims->grid, D = c->dims->width, N = n * n, n_masks = c->dims->click_mask_tokens;
    float *half = st_run_floats(run, 4 * N, D / 4), *fine = st_run_floats(run, 16 * N, D / 8), *weights = st_run_floats(run, n_masks, D / 8);
    st_conv_up_run(run, &c->up0, k, n, n, half, ST_ACT_NONE);
    add_skip(run, half, f->skip1, &c->up_norm, 4 * N, D / 4);
    st_run_probe(run, half, 4 * N, D / 4, "click.up.0");
    st_conv_up_run(run, &c->up1, half, 2 * n, 2 * n, fine, ST_ACT_NONE);
    add_skip(run, fine, f->skip0, NULL, 16 * N, D / 8);
    st_run_probe(run, fine, 16 * N, D / 8, "click.up.1");
    for (size_t i = 0; i < n_masks; i++) st_mlp_run(run, c->hyper[i], 3, st_run_idle(run) ? NULL : mask_tokens + i * D, 1, st_run_idle(run) ? NULL : weights + i * (D / 8));
    if (!st_run_idle(run)) {
        dot_job job = {run, weights, fine, masks, n_masks, D / 8, 16 * N};
        st_run_parallel(run, (16 * N + DOT_PIXELS - 1) / DOT_PIXELS, dot_item, &job);
    }
    st_run_probe(run, masks, n_masks, 16 * N, "click.masks");
    st_arena_rewind(run->arena, mark);
}

/* Masks are a good quarter of the work: not for candidates that nobody will look at. */
static bool wanted(const st_click_output *out, size_t n_masks)
{
    for (size_t i = 1; i < n_masks; i++)
        if (!(out->iou[i] <= out->wanted)) return true; /* NaN is for the caller to see */
    return out->wanted <= 0.0f;
}

void st_click_run(const st_run *run, const st_click_head *c, const st_click_features *f, const st_click_point *points, size_t n_points, const float *mask,
                  bool no_memory, st_click_output *out)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)c->dims->grid * c->dims->grid, D = c->dims->width, n_masks = c->dims->click_mask_tokens;
    const size_t T = 2 + n_masks + n_points;
    float *q = st_run_floats(run, T, D), *k = st_run_floats(run, N, D), *iou = st_run_floats(run, 1, n_masks), *score = st_run_floats(run, 1, 1);
    assemble(run, c, points, n_points, q);
    add_dense(run, c, f, mask, no_memory, k);
    st_click_two_way(run, c, q, T, k);
    st_mlp_run(run, c->score, 3, q, 1, score);
    st_mlp_run(run, c->iou, 3, st_run_idle(run) ? NULL : q + D, 1, iou);
    if (!st_run_idle(run)) {
        for (size_t i = 0; i < n_masks; i++) iou[i] = st_sigmoid(iou[i]);
        st_run_probe(run, iou, 1, n_masks, "click.iou");
        st_run_probe(run, score, 1, 1, "click.score");
        memcpy(out->iou, iou, n_masks * sizeof *iou);
        out->score = *score;
    }
    if (st_run_idle(run) || wanted(out, n_masks)) decode_masks(run, c, f, k, st_run_idle(run) ? NULL : q + 2 * D, out->masks);
    st_arena_rewind(run->arena, mark);
}

/* ---- after the network ---- */

float st_click_stability(const float *logits, size_t n, float offset)
{
    size_t inner = 0, outer = 0;
    for (size_t i = 0; i < n; i++) {
        inner += logits[i] > offset;
        outer += logits[i] > -offset;
    }
    return outer ? (float)inner / (float)outer : 1.0f;
}

/* Marks the 8-connected outside part that holds `seed`; returns its size, its cells in `stack`. */
static size_t flood(const float *logits, size_t side, size_t seed, uint32_t *seen, uint32_t *stack)
{
    size_t n = 1;
    stack[0] = (uint32_t)seed;
    seen[seed] = 1;
    for (size_t at = 0; at < n; at++) {
        const size_t row = stack[at] / side, col = stack[at] % side;
        const size_t r0 = row ? row - 1 : 0, r1 = row + 1 < side ? row + 1 : row, c0 = col ? col - 1 : 0, c1 = col + 1 < side ? col + 1 : col;
        for (size_t r = r0; r <= r1; r++)
            for (size_t c = c0; c <= c1; c++) {
                const size_t i = r * side + c;
                if (seen[i] || logits[i] > 0.0f) continue;
                seen[i] = 1;
                stack[n++] = (uint32_t)i;
            }
    }
    return n;
}

void st_click_fill_holes(float *logits, size_t side, size_t max_area, uint32_t *scratch)
{
    uint32_t *seen = scratch, *stack = scratch + side * side;
    memset(seen, 0, side * side * sizeof *seen);
    for (size_t i = 0; i < side * side; i++) {
        if (seen[i] || logits[i] > 0.0f) continue;
        const size_t n = flood(logits, side, i, seen, stack);
        for (size_t j = 0; n <= max_area && j < n; j++) logits[stack[j]] = 10.0f;
    }
}

/* ---- weights ---- */

st_status st_click_init(st_click_head *c, const st_dims *dims, st_error *err)
{
    *c = (st_click_head){.dims = dims};
    if (!dims->has_click) return ST_OK;
    if (dims->click_layers > ST_CLICK_MAX_LAYERS || dims->click_mask_tokens > ST_CLICK_MAX_MASKS || dims->click_points != ST_CLICK_POINT_KINDS)
        return st_fail(err, ST_ERR_UNSUPPORTED, "interactive head: %u layers, %u masks, %u kinds of points; this build takes %d, %d, %d", dims->click_layers,
                       dims->click_mask_tokens, dims->click_points, ST_CLICK_MAX_LAYERS, ST_CLICK_MAX_MASKS, ST_CLICK_POINT_KINDS);
    c->grid_code = st_realloc_array(NULL, (size_t)dims->grid * dims->grid, dims->width * sizeof *c->grid_code);
    if (!c->grid_code) return st_fail(err, ST_ERR_NOMEM, "out of memory for the interactive head");
    return st_click_bind(c, NULL, err);
}

void st_click_free(st_click_head *c)
{
    st_neck_free(&c->neck);
    st_free(c->grid_code);
    st_free(c->up0.cells);
    st_free(c->up1.cells);
    *c = (st_click_head){0};
}

static void bind_prompt(st_binder *b, const st_dims *d, st_click_prompt_weights *p)
{
    const size_t D = d->width, m = d->click_mask_channels;
    p->point_fourier = st_bind_f32(b, D, "click.point_fourier");
    p->grid_fourier = st_bind_f32(b, D, "click.grid_fourier");
    for (size_t i = 0; i < ST_CLICK_POINT_KINDS; i++) p->kinds[i] = st_bind_f32(b, D, "click.point.%zu", i);
    p->not_a_point = st_bind_f32(b, D, "click.not_a_point");
    p->no_mask = st_bind_f32(b, D, "click.no_mask");
    st_bind_linear(b, &p->mask_in[0], 4, m / 4, "click.mask_in.0");
    st_bind_linear(b, &p->mask_in[1], m, m, "click.mask_in.1");
    st_bind_linear(b, &p->mask_in[2], m, D, "click.mask_in.2");
    st_bind_norm(b, &p->mask_norm[0], m / 4, 1e-6f, "click.mask_norm.0");
    st_bind_norm(b, &p->mask_norm[1], m, 1e-6f, "click.mask_norm.1");
}

static void bind_layer(st_binder *b, const st_dims *d, st_click_layer *l, size_t i)
{
    const size_t D = d->width, inner = D / d->click_downsample, heads = d->click_heads;
    st_norm *norms[4] = {&l->norm1, &l->norm2, &l->norm3, &l->norm4};
    st_bind_mha(b, &l->self, D, D, heads, "click.layers.%zu.self", i);
    st_bind_mha(b, &l->token_to_image, D, inner, heads, "click.layers.%zu.token_to_image", i);
    st_bind_mha(b, &l->image_to_token, D, inner, heads, "click.layers.%zu.image_to_token", i);
    for (size_t k = 0; k < 4; k++) st_bind_norm(b, norms[k], D, 1e-5f, "click.layers.%zu.norm%zu", i, k + 1);
    st_bind_linear(b, &l->ffn1, D, d->click_mlp, "click.layers.%zu.ffn1", i);
    st_bind_linear(b, &l->ffn2, d->click_mlp, D, "click.layers.%zu.ffn2", i);
}

static void bind_heads(st_binder *b, const st_dims *d, st_click_head *c)
{
    const size_t D = d->width, n = d->click_mask_tokens;
    c->iou_token = st_bind_f32(b, D, "click.iou_token");
    c->mask_tokens = st_bind_f32(b, n * D, "click.mask_tokens");
    c->score_token = st_bind_f32(b, D, "click.score_token");
    st_bind_conv_up(b, &c->up0, D, D / 4, "click.up0");
    st_bind_conv_up(b, &c->up1, D / 4, D / 8, "click.up1");
    st_bind_norm(b, &c->up_norm, D / 4, 1e-6f, "click.up_norm");
    st_bind_linear(b, &c->skip0, D, D / 8, "click.skip0");
    st_bind_linear(b, &c->skip1, D, D / 4, "click.skip1");
    for (size_t i = 0; i < n; i++) st_bind_mlp(b, c->hyper[i], 3, D, D, D / 8, "click.hyper.%zu", i);
    st_bind_mlp(b, c->iou, 3, D, d->click_iou_hidden, n, "click.iou");
    st_bind_mlp(b, c->score, 3, D, D, 1, "click.score");
}

st_status st_click_bind(st_click_head *c, st_weights *weights, st_error *err)
{
    if (c->bound) return ST_OK;
    if (!c->dims->has_click) return st_fail(err, ST_ERR_UNSUPPORTED, "this checkpoint has no interactive head: clicks need the full model, with its tracker part");
    const st_dims *d = c->dims;
    st_binder b = {weights, err, ST_OK};
    st_neck_bind(&b, &c->neck, d, "click_neck");
    c->no_memory = st_bind_f32(&b, d->width, "click.no_memory");
    bind_prompt(&b, d, &c->prompt);
    for (size_t i = 0; i < d->click_layers; i++) bind_layer(&b, d, &c->layers[i], i);
    st_bind_mha(&b, &c->final, d->width, d->width / d->click_downsample, d->click_heads, "click.final");
    st_bind_norm(&b, &c->final_norm, d->width, 1e-5f, "click.final_norm");
    bind_heads(&b, d, c);
    if (weights && b.status == ST_OK) st_click_grid_code(c);
    c->bound = weights && b.status == ST_OK;
    return b.status;
}
