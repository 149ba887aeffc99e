/* linear_int8.c: linear layers whose weights are int8 (weights/int8.h): activations become bytes with a scale and a zero
 * point per row ("dynamic, per token"), products are added in 32-bit integers, and the sums become floats tile by tile
 * while they are in cache. A row's bytes depend on that row alone and integer sums are exact, so results depend on
 * neither tiling nor threads nor what else is in the batch: here the cut of the work may follow the number of threads.
 *
 * Many rows: an item is a block of rows, which become bytes and go through all columns of one layer or of several, with the
 * weights packed once. Few rows: the rows become bytes, then an item is some columns.
 */
#include "tensor/linear_int8.h"

#include "base/checked.h"
#include "tensor/packed.h"

/* Blocks are high enough to use a weight often while it is in cache: measured (docs/SPEED.md, "int8: blocks of rows"). */
enum { MOST_ROWS = 288, LEAST_ROWS = 64, TILE_COLS = 128, FEW_ROWS = 96, MOST_LAYERS = 3 };

/* Rows as one layer wants them. */
typedef struct quantized {
    uint8_t *bytes; /* [rows, n_in] */
    float *scale;   /* [rows] */
    int32_t *zero;  /* [rows] */
} quantized;

/* One thread's room for one block of rows. */
typedef struct desk {
    quantized in[MOST_LAYERS]; /* per layer; a feed-forward has one for both of its layers */
    int32_t *sums;             /* [rows, TILE_COLS] */
    float *hidden;             /* [rows, n_hidden]; feed-forward only */
} desk;

typedef struct int8_job {
    const st_kernels *k;
    const st_linear *layer[MOST_LAYERS]; /* a feed-forward's two, one after the other; else side by side */
    const int8_t *packed[MOST_LAYERS];
    float *y[MOST_LAYERS];
    size_t n_layers;
    const float *x;
    size_t ldx, ldy, rows, block_rows;
    st_act act;
    bool accumulate;
    quantized few[MOST_LAYERS]; /* few rows: as each layer wants them */
    desk *desks;                /* per slot */
} int8_job;

static void quantize_row(const st_kernels *k, const st_linear *l, const quantized *q, size_t r, const float *x)
{
    k->quantize(q->bytes + r * l->n_in, &q->scale[r], &q->zero[r], x, l->int8.smooth, l->n_in, k->u8_max);
}

/* A tile of sums [rows, cols] of columns col .. becomes y. */
static void finish(const st_kernels *k, const st_linear *l, const quantized *q, const int32_t *sums, size_t rows, size_t col, size_t cols, float *y,
                   size_t ldy, st_act act, bool accumulate)
{
    const st_int8_view *w = &l->int8;
    for (size_t r = 0; r < rows; r++) {
        float *row = y + r * ldy + col;
        k->dequantize(row, sums + r * cols, cols, q->scale[r], q->zero[r], w->scale + col, w->sums + col, l->bias ? l->bias + col : NULL, accumulate);
        if (act == ST_ACT_RELU) k->relu(row, cols);
        if (act == ST_ACT_GELU) k->gelu(row, cols);
    }
}

/* A block of quantised rows through all columns of a layer. */
static void rows_through(const st_kernels *k, const st_linear *l, const int8_t *packed, const quantized *q, int32_t *sums, size_t rows, float *y,
                         size_t ldy, st_act act, bool accumulate)
{
    for (size_t col = 0; col < l->n_out; col += TILE_COLS) {
        const size_t cols = st_least(TILE_COLS, l->n_out - col);
        k->gemm_u8s8_packed(rows, cols, l->n_in, q->bytes, l->n_in, packed + col * st_int8_depth(l->n_in), sums, cols);
        finish(k, l, q, sums, rows, col, cols, y, ldy, act, accumulate);
    }
}

/* Each row of x is read once, for all layers. */
static void block_item(void *arg, size_t item, unsigned slot)
{
    const int8_job *job = arg;
    const desk *d = &job->desks[slot];
    const size_t row = item * job->block_rows, rows = st_least(job->block_rows, job->rows - row);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < job->n_layers; i++) quantize_row(job->k, job->layer[i], &d->in[i], r, job->x + (row + r) * job->ldx);
    for (size_t i = 0; i < job->n_layers; i++)
        rows_through(job->k, job->layer[i], job->packed[i], &d->in[i], d->sums, rows, job->y[i] + row * job->ldy, job->ldy, job->act, job->accumulate);
}

static void feed_forward_item(void *arg, size_t item, unsigned slot)
{
    const int8_job *job = arg;
    const desk *d = &job->desks[slot];
    const st_linear *fc1 = job->layer[0], *fc2 = job->layer[1];
    const size_t row = item * job->block_rows, rows = st_least(job->block_rows, job->rows - row), n_hidden = fc1->n_out;
    for (size_t r = 0; r < rows; r++) quantize_row(job->k, fc1, &d->in[0], r, job->x + (row + r) * job->ldx);
    rows_through(job->k, fc1, job->packed[0], &d->in[0], d->sums, rows, d->hidden, n_hidden, job->act, false);
    for (size_t r = 0; r < rows; r++) quantize_row(job->k, fc2, &d->in[0], r, d->hidden + r * n_hidden);
    rows_through(job->k, fc2, job->packed[1], &d->in[0], d->sums, rows, job->y[0] + row * job->ldy, job->ldy, ST_ACT_NONE, true);
}

static quantized make_quantized(const st_run *run, size_t rows, size_t n_in)
{
    return (quantized){.bytes = st_arena_alloc(run->arena, rows * n_in, 1), .scale = st_run_floats(run, rows, 1),
                       .zero = st_arena_alloc(run->arena, rows, sizeof(int32_t))};
}

/* n_in: 0 where the rows are quantised elsewhere; n_hidden: 0 without a hidden layer. */
static void make_desks(const st_run *run, int8_job *job, size_t n_in, size_t n_hidden)
{
    const size_t n = st_pool_size(run->pool), rows = job->block_rows;
    job->desks = st_arena_alloc(run->arena, n, sizeof *job->desks);
    for (size_t slot = 0; slot < n; slot++) {
        desk d = {.sums = st_arena_alloc(run->arena, rows * TILE_COLS, sizeof(int32_t)), .hidden = n_hidden ? st_run_floats(run, rows, n_hidden) : NULL};
        for (size_t i = 0; i < job->n_layers && n_in > 0; i++) d.in[i] = make_quantized(run, rows, n_in);
        if (!st_run_planning(run) && !run->arena->overflowed) job->desks[slot] = d;
    }
}

/* About two blocks for each thread, in whole tiles of AMX. */
static size_t rows_of_a_block(const st_run *run, size_t rows)
{
    const size_t share = st_round_up((rows + 2 * st_pool_size(run->pool) - 1) / (2 * st_pool_size(run->pool)), 32);
    return st_least(share > LEAST_ROWS ? share : LEAST_ROWS, MOST_ROWS);
}

/* Few rows: TILE_COLS columns of one of the layers. */
static void columns_item(void *arg, size_t item, unsigned slot)
{
    const int8_job *job = arg;
    size_t i = 0, tile = item;
    while (tile >= (job->layer[i]->n_out + TILE_COLS - 1) / TILE_COLS) tile -= (job->layer[i++]->n_out + TILE_COLS - 1) / TILE_COLS;
    const st_linear *l = job->layer[i];
    int32_t *sums = job->desks[slot].sums;
    const size_t col = tile * TILE_COLS, cols = st_least(TILE_COLS, l->n_out - col), k = l->n_in;
    job->k->gemm_u8s8(job->rows, cols, k, job->few[i].bytes, k, l->int8.values + col * k, k, sums, cols);
    finish(job->k, l, &job->few[i], sums, job->rows, col, cols, job->y[i], job->ldy, job->act, job->accumulate);
}

static void run_few_rows(const st_run *run, int8_job *job)
{
    size_t n_items = 0;
    job->block_rows = job->rows;
    make_desks(run, job, 0, 0);
    for (size_t i = 0; i < job->n_layers; i++) {
        job->few[i] = make_quantized(run, job->rows, job->layer[i]->n_in);
        n_items += (job->layer[i]->n_out + TILE_COLS - 1) / TILE_COLS;
    }
    if (st_run_idle(run)) return;
    for (size_t r = 0; r < job->rows; r++)
        for (size_t i = 0; i < job->n_layers; i++) quantize_row(run->k, job->layer[i], &job->few[i], r, job->x + r * job->ldx);
    st_run_parallel(run, n_items, columns_item, job);
}

void st_linear_int8_run(const st_run *run, size_t n, const st_linear *const *layers, const float *x, size_t ldx, size_t rows, float *const *y,
                        size_t ldy, st_act act, bool accumulate)
{
    const size_t mark = st_arena_mark(run->arena);
    int8_job job = {.k = run->k, .n_layers = n, .x = x, .ldx = ldx, .ldy = ldy, .rows = rows, .act = act, .accumulate = accumulate};
    for (size_t i = 0; i < n; i++) job.layer[i] = layers[i], job.y[i] = y[i];
    if (rows <= FEW_ROWS) {
        run_few_rows(run, &job);
    } else {
        for (size_t i = 0; i < n; i++) job.packed[i] = st_pack_s8_run(run, layers[i]->int8.values, layers[i]->n_out, layers[i]->n_in);
        job.block_rows = rows_of_a_block(run, rows);
        make_desks(run, &job, layers[0]->n_in, 0);
        if (!st_run_idle(run)) st_run_parallel(run, (rows + job.block_rows - 1) / job.block_rows, block_item, &job);
    }
    st_arena_rewind(run->arena, mark);
}

void st_feed_forward_int8(const st_run *run, const st_linear *fc1, const st_linear *fc2, st_act act, const float *x, size_t rows, float *y)
{
    const size_t mark = st_arena_mark(run->arena);
    int8_job job = {.k = run->k, .layer = {fc1, fc2}, .n_layers = 1, .y = {y}, .x = x, .ldx = fc1->n_in, .ldy = fc2->n_out, .rows = rows, .act = act};
    job.packed[0] = st_pack_s8_run(run, fc1->int8.values, fc1->n_out, fc1->n_in);
    job.packed[1] = st_pack_s8_run(run, fc2->int8.values, fc2->n_out, fc2->n_in);
    job.block_rows = rows_of_a_block(run, rows);
    make_desks(run, &job, fc1->n_in > fc2->n_in ? fc1->n_in : fc2->n_in, fc1->n_out);
    if (!st_run_idle(run)) st_run_parallel(run, (rows + job.block_rows - 1) / job.block_rows, feed_forward_item, &job);
    st_arena_rewind(run->arena, mark);
}
