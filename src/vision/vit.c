/* vit.c: the picture encoder's trunk: a plain ViT with windowed attention, global attention in a few blocks, and 2-D axial RoPE.
 * Mirrors `sam3/model/vitdet.py` (class ViT, Block, Attention). Pre-norm, no LayerScale, no final norm.
 */
#include "vision/vision.h"

#include <math.h>
#include <string.h>
#include "tensor/packed.h"

void st_vit_rope_table(float *table, size_t side, size_t head_width, float theta, float scale)
{
    const size_t quarter = head_width / 4;
    for (size_t t = 0; t < side * side; t++) {
        const float x = (float)(t % side) * scale, y = (float)(t / side) * scale;
        float *row = table + t * head_width;
        for (size_t k = 0; k < quarter; k++) {
            const float f = 1.0f / (float)pow((double)theta, (double)((float)(4 * k) / (float)head_width));
            row[2 * k] = cosf(x * f);
            row[2 * k + 1] = sinf(x * f);
            row[2 * (quarter + k)] = cosf(y * f);
            row[2 * (quarter + k) + 1] = sinf(y * f);
        }
    }
}

enum { PATCH_TOKENS = 96 };

typedef struct patch_job {
    const st_run *run;
    const st_vision *v;
    const float *px, *weight; /* weight: packed */
    float *x, *scratch;
} patch_job;

/* Patches of one block of tokens as rows [p*p*3] in the weights' order (channel, y, x), times the patch matrix, plus the tiled position table. */
static void patch_item(void *arg, size_t item, unsigned slot)
{
    const patch_job *job = arg;
    const st_vision *v = job->v;
    const size_t n = v->dims->grid, p = v->dims->patch, S = n * p, width = v->dims->vit_width, n_in = 3 * p * p, first = item * PATCH_TOKENS;
    const size_t n_tokens = n * n - first < PATCH_TOKENS ? n * n - first : PATCH_TOKENS;
    float *patches = job->scratch + slot * PATCH_TOKENS * n_in; /* [n_tokens, 3*p*p] */
    for (size_t t = 0; t < n_tokens; t++) {
        const size_t row = (first + t) / n * p, col = (first + t) % n * p;
        for (size_t c = 0; c < 3; c++)
            for (size_t i = 0; i < p * p; i++) patches[t * n_in + c * p * p + i] = job->px[((row + i / p) * S + col + i % p) * 3 + c];
    }
    job->run->k->gemm_packed(n_tokens, width, n_in, patches, n_in, job->weight, false, job->x + first * width, width);
    const size_t side = v->dims->pos_side;
    for (size_t t = 0; t < n_tokens; t++) { /* tiled, not interpolated */
        const size_t row = (first + t) / n % side, col = (first + t) % n % side;
        job->run->k->add(job->x + (first + t) * width, v->pos + (row * side + col) * width, width);
    }
}

/* px [S*S, 3] -> x [n*n, V]: patch embedding, positions, ln_pre. */
static void embed(const st_run *run, const st_vision *v, const float *px, float *x)
{
    const size_t mark = st_arena_mark(run->arena), n = v->dims->grid, p = v->dims->patch;
    patch_job job = {.run = run, .v = v, .px = px, .x = x};
    job.weight = st_pack_run(run, v->patch.weight, 1, v->dims->vit_width, 3 * p * p);
    job.scratch = st_run_floats(run, st_pool_size(run->pool), PATCH_TOKENS * 3 * p * p);
    st_run_count(run, n * n, v->dims->vit_width, 3 * p * p);
    if (!st_run_idle(run)) st_run_parallel(run, (n * n + PATCH_TOKENS - 1) / PATCH_TOKENS, patch_item, &job);
    st_norm_run(run, &v->ln_pre, x, n * n, x);
    st_arena_rewind(run->arena, mark);
}

/* Where token (row, col) of the grid stands when tokens are sorted by window; windows are padded to full size. */
static size_t window_row(size_t row, size_t col, size_t window, size_t n_windows)
{
    return (row / window * n_windows + col / window) * window * window + row % window * window + col % window;
}

typedef struct window_job {
    const st_run *run;
    const st_norm *norm; /* NULL: plain copy back to grid order */
    const float *from;
    float *to;
    size_t n, window, n_windows, width;
} window_job;

static void window_item(void *arg, size_t row, unsigned slot)
{
    (void)slot;
    const window_job *job = arg;
    const size_t w = job->width;
    for (size_t col = 0; col < job->n; col++) {
        const size_t in_grid = row * job->n + col, in_windows = window_row(row, col, job->window, job->n_windows);
        if (job->norm) job->run->k->layer_norm(job->to + in_windows * w, job->from + in_grid * w, w, job->norm->gamma, job->norm->beta, job->norm->eps);
        else memcpy(job->to + in_grid * w, job->from + in_windows * w, w * sizeof(float));
    }
}

/* The attention half of one block: x [n*n, V] += Proj(Attn(LN(x))). Windowed blocks sort tokens by window first; where the window does not divide the grid, zero tokens are
 * appended after the norm and take part as ordinary keys (`sam3/model/vitdet.py`, window_partition). */
static void attend(const st_run *run, const st_vision *v, const st_vit_block *b, bool global, float *x)
{
    const st_dims *d = v->dims;
    const size_t mark = st_arena_mark(run->arena), n = d->grid, V = d->vit_width, head = V / d->vit_heads;
    const size_t window = global ? n : d->window, n_windows = (n + window - 1) / window;
    const size_t n_seq = n_windows * n_windows, len = window * window, rows = n_seq * len;
    float *y = st_run_floats(run, rows, V); /* [windows * tokens of a window, V] */
    float *q = st_run_floats(run, rows, V), *k = st_run_floats(run, rows, V), *val = st_run_floats(run, rows, V);
    window_job sort = {run, &b->norm1, x, y, n, window, n_windows, V};
    if (!st_run_idle(run)) {
        if (rows != n * n) memset(y, 0, rows * V * sizeof *y);
        st_run_parallel(run, n, window_item, &sort);
    }
    st_qkv_run(run, &b->q, &b->k, &b->v, y, rows, (float *const[]){q, k, val});
    const float *table = global ? v->rope_global : v->rope_window;
    st_rope_run(run, q, V, rows, d->vit_heads, head, table, len);
    st_rope_run(run, k, V, rows, d->vit_heads, head, table, len);
    st_attention_run(run, &(st_attention){.q = q, .k = k, .v = val, .out = y, .ld_q = V, .ld_k = V, .ld_v = V, .ld_out = V, .heads = d->vit_heads,
                                          .head_width = head, .n_seq = n_seq, .n_q = len, .n_k = len,
                                          .int8 = st_run_int8(run, &b->q)});
    window_job back = {run, NULL, y, q, n, window, n_windows, V};
    if (!st_run_idle(run)) st_run_parallel(run, n, window_item, &back);
    st_linear_run(run, &b->proj, q, V, n * n, x, V, ST_ACT_NONE, true);
    st_arena_rewind(run->arena, mark);
}

/* The MLP half: x += fc2(GELU(fc1(LN(x)))). */
static void feed_forward(const st_run *run, const st_vision *v, const st_vit_block *b, float *x)
{
    const size_t mark = st_arena_mark(run->arena), rows = (size_t)v->dims->grid * v->dims->grid;
    float *y = st_run_floats(run, rows, v->dims->vit_width);
    st_norm_run(run, &b->norm2, x, rows, y);
    st_feed_forward(run, &b->fc1, &b->fc2, ST_ACT_GELU, y, rows, x);
    st_arena_rewind(run->arena, mark);
}

void st_vit_run(const st_run *run, const st_vision *v, const float *px, float *x)
{
    const size_t rows = (size_t)v->dims->grid * v->dims->grid, V = v->dims->vit_width, depth = v->dims->vit_depth;
    embed(run, v, px, x);
    st_run_probe(run, x, rows, V, "vit.embed");
    for (size_t i = 0; i < depth; i++) {
        attend(run, v, &v->blocks[i], v->dims->vit_global[i], x);
        feed_forward(run, v, &v->blocks[i], x);
        st_run_probe(run, x, rows, V, "vit.block.%zu", i);
        st_run_let_go(run, "vit.blocks.%zu.", i);
        st_run_progress(run, "picture", i + 1, depth + 1);
    }
}
