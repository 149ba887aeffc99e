/* linear.c: linear layers and the chains made of them.
 *
 * The decision: products run on the published, mapped weights, unpacked. Cut into tiles of rows x columns, each computed by one thread in a single-threaded library call,
 * with bias and activation applied while the tile is still in cache. Tile sizes depend on shapes only, so bits do not depend on threads.
 */
#include "tensor/tensor.h"

#include "base/checked.h"
#include "tensor/linear_int8.h"

/* Tile of a product: measured (docs/SPEED.md, "Tiles"). Few rows: narrower columns, so that small products still have items for several threads. */
enum { TILE_ROWS = 288, TILE_COLS = 640, TILE_COLS_FEW_ROWS = 128, FEW_ROWS = 96 };
/* Rows of the hidden layer of a feed-forward that exist at one time. */
enum { HIDDEN_ROWS = 1152 };

typedef struct linear_job {
    const st_kernels *k;
    const st_linear *l;
    const float *x;
    float *y;
    size_t ldx, ldy, rows, tile_cols, n_col_tiles;
    st_act act;
    bool accumulate;
} linear_job;

static void finish_rows(const linear_job *job, float *y, size_t rows, size_t col, size_t cols)
{
    for (size_t r = 0; r < rows; r++) {
        float *row = y + r * job->ldy;
        if (job->l->bias) job->k->add(row, job->l->bias + col, cols);
        if (job->act == ST_ACT_RELU) job->k->relu(row, cols);
        if (job->act == ST_ACT_GELU) job->k->gelu(row, cols);
    }
}

static void linear_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const linear_job *job = arg;
    const size_t row = item / job->n_col_tiles * TILE_ROWS, col = item % job->n_col_tiles * job->tile_cols;
    const size_t rows = job->rows - row < TILE_ROWS ? job->rows - row : TILE_ROWS;
    const size_t cols = job->l->n_out - col < job->tile_cols ? job->l->n_out - col : job->tile_cols;
    const size_t k = job->l->n_in;
    float *y = job->y + row * job->ldy + col;
    job->k->gemm(true, rows, cols, k, job->x + row * job->ldx, job->ldx, job->l->weight + col * k, k, job->accumulate, y, job->ldy);
    finish_rows(job, y, rows, col, cols);
}

void st_linear_run(const st_run *run, const st_linear *l, const float *x, size_t ldx, size_t rows, float *y, size_t ldy, st_act act,
                   bool accumulate)
{
    st_run_count(run, rows, l->n_out, l->n_in);
    if (run->watch && !st_run_idle(run)) run->watch(run->watch_user, l, x, ldx, rows);
    if (l->int8.values || (run->int8 && st_run_planning(run))) {
        st_linear_int8_run(run, l, x, ldx, rows, y, ldy, act, accumulate);
        return;
    }
    if (st_run_idle(run) || rows == 0) return;
    const size_t widest = rows <= FEW_ROWS ? TILE_COLS_FEW_ROWS : TILE_COLS;
    const size_t n_col_tiles = (l->n_out + widest - 1) / widest;
    linear_job job = {run->k, l, x, y, ldx, ldy, rows, 0, n_col_tiles, act, accumulate};
    job.tile_cols = st_round_up((l->n_out + n_col_tiles - 1) / n_col_tiles, 16);
    job.n_col_tiles = (l->n_out + job.tile_cols - 1) / job.tile_cols;
    st_run_parallel(run, (rows + TILE_ROWS - 1) / TILE_ROWS * job.n_col_tiles, linear_item, &job);
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

void st_feed_forward(const st_run *run, const st_linear *fc1, const st_linear *fc2, st_act act, const float *x, size_t rows, float *y)
{
    const size_t mark = st_arena_mark(run->arena);
    float *hidden = st_run_floats(run, rows < HIDDEN_ROWS ? rows : HIDDEN_ROWS, fc1->n_out); /* [<= HIDDEN_ROWS, ffn] */
    for (size_t row = 0; row < rows; row += HIDDEN_ROWS) {
        const size_t n = rows - row < HIDDEN_ROWS ? rows - row : HIDDEN_ROWS;
        if (st_run_idle(run) && !st_run_planning(run)) break;
        st_linear_run(run, fc1, x + row * fc1->n_in, fc1->n_in, n, hidden, fc1->n_out, act, false);
        st_linear_run(run, fc2, hidden, fc2->n_in, n, y + row * fc2->n_out, fc2->n_out, ST_ACT_NONE, true);
    }
    st_arena_rewind(run->arena, mark);
}
