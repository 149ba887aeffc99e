/* linear.c: linear layers and the chains made of them.
 *
 * The decision: the published, mapped weights are packed for the products once per layer and pass, in scratch memory: a pass over 5,184 rows
 * costs a hundred times as much. A product is cut into tiles of rows x columns, each computed by one thread, with bias and activation
 * applied while the tile is still in cache. For a few rows the product packs as it goes.
 */
#include "tensor/tensor.h"

#include <string.h>
#include "base/checked.h"
#include "tensor/linear_int8.h"
#include "tensor/packed.h"

/* Tile of a product: measured (docs/SPEED.md, "Tiles"). Few rows: one row of tiles, with narrower columns, so that small products still have items for
 * several threads. */
enum { TILE_ROWS = 288, TILE_COLS = 512, TILE_COLS_FEW_ROWS = 128, FEW_ROWS = 96 };
/* Rows of the hidden layer of a feed-forward that exist at one time. */
enum { HIDDEN_ROWS = 1152 };

typedef struct linear_job {
    const st_kernels *k;
    const st_linear *l;
    const float *x;
    const float *packed; /* weights; NULL: few rows */
    float *y, *scratch;  /* scratch: per slot [tile_rows] rows of ld_tile floats */
    float *widened;      /* per slot [tile_cols, n_in] weights that are kept in 16 bits; few rows only */
    size_t ldx, ldy, rows, tile_rows, tile_cols, n_col_tiles, ld_tile;
    st_act act;
    bool accumulate;
} linear_job;

/* y (+)= act(sums + bias), one row of a tile. */
static void finish_row(const linear_job *job, float *y, const float *sums, size_t col, size_t cols)
{
    const st_kernels *k = job->k;
    const float *bias = job->l->bias ? job->l->bias + col : NULL;
    if (job->accumulate) {
        k->add(y, sums, cols);
        if (bias) k->add(y, bias, cols);
        return;
    }
    if (bias) k->add3(y, sums, bias, cols);
    else memcpy(y, sums, cols * sizeof *y);
    if (job->act == ST_ACT_RELU) k->relu(y, cols);
    if (job->act == ST_ACT_GELU) k->gelu(y, cols);
}

/* Rows col .. of the weights. */
static const float *weights_of_columns(const linear_job *job, size_t col, size_t cols, unsigned slot)
{
    const size_t k = job->l->n_in;
    if (!job->l->half.values) return job->l->weight + col * k;
    float *w = job->widened + slot * job->tile_cols * k;
    job->k->widen(w, job->l->half.values + col * k, cols * k, job->l->half.brain);
    return w;
}

static void linear_item(void *arg, size_t item, unsigned slot)
{
    const linear_job *job = arg;
    const size_t row = item / job->n_col_tiles * TILE_ROWS, col = item % job->n_col_tiles * job->tile_cols;
    const size_t rows = job->rows - row < TILE_ROWS ? job->rows - row : TILE_ROWS;
    const size_t cols = job->l->n_out - col < job->tile_cols ? job->l->n_out - col : job->tile_cols;
    const size_t k = job->l->n_in;
    const float *x = job->x + row * job->ldx;
    float *sums = job->scratch + slot * job->tile_rows * job->ld_tile;
    if (job->packed) {
        job->k->gemm_packed(rows, cols, k, x, job->ldx, job->packed + col * k, false, sums, job->ld_tile);
    } else {
        const float *w = weights_of_columns(job, col, cols, slot);
        if (job->rows <= ST_GEMM_FEW_ROWS) job->k->gemm_few(rows, cols, k, x, job->ldx, w, k, sums, job->ld_tile);
        else job->k->gemm(true, rows, cols, k, x, job->ldx, w, k, false, sums, job->ld_tile);
    }
    for (size_t r = 0; r < rows; r++) finish_row(job, job->y + (row + r) * job->ldy + col, sums + r * job->ld_tile, col, cols);
}

/* `packed`: the layer's weights, or NULL to pack what needs it. */
static void run_packed(const st_run *run, const st_linear *l, const float *packed, const float *x, size_t ldx, size_t rows, float *y, size_t ldy,
                       st_act act, bool accumulate)
{
    const size_t mark = st_arena_mark(run->arena), widest = rows <= FEW_ROWS ? TILE_COLS_FEW_ROWS : TILE_COLS;
    const size_t n_col_tiles = (l->n_out + widest - 1) / widest;
    linear_job job = {.k = run->k, .l = l, .x = x, .packed = packed, .y = y, .ldx = ldx, .ldy = ldy, .rows = rows, .act = act, .accumulate = accumulate};
    if (!packed && rows > FEW_ROWS) job.packed = st_pack_linear_run(run, l);
    job.tile_cols = st_round_up((l->n_out + n_col_tiles - 1) / n_col_tiles, ST_GEMM_PANELS);
    job.n_col_tiles = (l->n_out + job.tile_cols - 1) / job.tile_cols;
    job.ld_tile = job.tile_cols + 16; /* no power of two, in which rows would meet in the same lines of the cache */
    job.tile_rows = st_least(rows, TILE_ROWS);
    job.scratch = st_run_floats(run, st_pool_size(run->pool) * job.tile_rows, job.ld_tile);
    if (!job.packed && (l->half.values || (run->half && st_run_planning(run)))) job.widened = st_run_floats(run, st_pool_size(run->pool) * job.tile_cols, l->n_in);
    if (!st_run_idle(run)) st_run_parallel(run, (rows + TILE_ROWS - 1) / TILE_ROWS * job.n_col_tiles, linear_item, &job);
    st_arena_rewind(run->arena, mark);
}

static void run_linear(const st_run *run, const st_linear *l, const float *packed, const float *x, size_t ldx, size_t rows, float *y, size_t ldy,
                       st_act act, bool accumulate)
{
    if (rows == 0) return;
    st_run_count(run, rows, l->n_out, l->n_in);
    if (run->watch && !st_run_idle(run)) run->watch(run->watch_user, l, x, ldx, rows);
    if (st_run_int8(run, l)) st_linear_int8_run(run, 1, &l, x, ldx, rows, &y, ldy, act, accumulate);
    if (!l->int8.values || st_run_planning(run)) run_packed(run, l, packed, x, ldx, rows, y, ldy, act, accumulate); /* the plan is for layers of both kinds */
}

void st_linear_run(const st_run *run, const st_linear *l, const float *x, size_t ldx, size_t rows, float *y, size_t ldy, st_act act, bool accumulate)
{
    run_linear(run, l, NULL, x, ldx, rows, y, ldy, act, accumulate);
}

void st_qkv_run(const st_run *run, const st_linear *q, const st_linear *k, const st_linear *v, const float *x, size_t rows, float *const y[3])
{
    const st_linear *const layers[3] = {q, k, v};
    const size_t width = q->n_out;
    bool together = rows > 0;
    for (size_t i = 0; i < 3; i++) together = together && st_run_int8(run, layers[i]) && layers[i]->n_out == width;
    if (together) st_linear_int8_run(run, 3, layers, x, q->n_in, rows, y, width, ST_ACT_NONE, false);
    for (size_t i = 0; i < 3 && (!together || st_run_planning(run)); i++)
        run_linear(run, layers[i], NULL, x, q->n_in, rows, y[i], width, ST_ACT_NONE, false);
}

void st_mlp_run(const st_run *run, const st_linear *layers, size_t n_layers, const float *x, size_t rows, float *y)
{
    const size_t mark = st_arena_mark(run->arena);
    const float *in = x;
    for (size_t i = 0; i < n_layers; i++) {
        const bool last = i + 1 == n_layers;
        float *out = last ? y : st_run_floats(run, rows, layers[i].n_out);
        st_linear_run(run, &layers[i], in, layers[i].n_in, rows, out, layers[i].n_out, last ? ST_ACT_NONE : ST_ACT_RELU, false);
        in = out;
    }
    st_arena_rewind(run->arena, mark);
}

/* A layer's weights packed for all chunks of rows; NULL where it packs as it goes. */
static const float *pack_for_chunks(const st_run *run, const st_linear *l, size_t rows)
{
    return rows > HIDDEN_ROWS && (!l->int8.values || st_run_planning(run)) ? st_pack_linear_run(run, l) : NULL;
}

void st_feed_forward(const st_run *run, const st_linear *fc1, const st_linear *fc2, st_act act, const float *x, size_t rows, float *y)
{
    if (rows > FEW_ROWS && st_run_int8(run, fc1) && st_run_int8(run, fc2)) {
        st_feed_forward_int8(run, fc1, fc2, act, x, rows, y);
        if (!st_run_planning(run)) return; /* the plan is for layers of both kinds */
    }
    const size_t mark = st_arena_mark(run->arena);
    float *hidden = st_run_floats(run, rows < HIDDEN_ROWS ? rows : HIDDEN_ROWS, fc1->n_out); /* [<= HIDDEN_ROWS, ffn] */
    const float *packed1 = pack_for_chunks(run, fc1, rows), *packed2 = pack_for_chunks(run, fc2, rows);
    for (size_t row = 0; row < rows; row += HIDDEN_ROWS) {
        const size_t n = rows - row < HIDDEN_ROWS ? rows - row : HIDDEN_ROWS;
        if (st_run_idle(run) && !st_run_planning(run)) break;
        run_linear(run, fc1, packed1, x + row * fc1->n_in, fc1->n_in, n, hidden, fc1->n_out, act, false);
        run_linear(run, fc2, packed2, hidden, fc2->n_in, n, y + row * fc2->n_out, fc2->n_out, ST_ACT_NONE, true);
    }
    st_arena_rewind(run->arena, mark);
}
