/* linear_int8.c: a linear layer whose weights are int8 (weights/int8.h): activations become bytes with a scale and a zero
 * point per row ("dynamic, per token"), products are added in 32-bit integers, and the sums become floats tile by tile
 * while they are in cache. A row's bytes depend on that row alone and integer sums are exact, so results depend on
 * neither tiling nor threads nor what else is in the batch.
 */
#include "tensor/linear_int8.h"

#include "base/checked.h"
#include "tensor/packed.h"

enum { TILE_ROWS = 576, TILE_COLS = 512, TILE_COLS_FEW_ROWS = 128, FEW_ROWS = 96, QUANTIZE_ROWS = 32 };

typedef struct int8_job {
    const st_kernels *k;
    const st_linear *l;
    const float *x;
    float *y;
    size_t ldx, ldy, rows, tile_cols, n_col_tiles;
    st_act act;
    bool accumulate;
    const int8_t *packed; /* weights; NULL: few rows */
    uint8_t *bytes; /* [rows, n_in] */
    float *scale;   /* [rows] */
    int32_t *zero;  /* [rows] */
    int32_t *sums;  /* per slot [TILE_ROWS, tile_cols] */
} int8_job;

static void quantize_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const int8_job *job = arg;
    const size_t n = job->l->n_in,
                 end = (item + 1) * QUANTIZE_ROWS < job->rows ? (item + 1) * QUANTIZE_ROWS : job->rows;
    for (size_t r = item * QUANTIZE_ROWS; r < end; r++)
        job->k->quantize(job->bytes + r * n, &job->scale[r], &job->zero[r], job->x + r * job->ldx, job->l->int8.smooth,
                         n, job->k->u8_max);
}

static void product_item(void *arg, size_t item, unsigned slot)
{
    const int8_job *job = arg;
    const st_int8_view *w = &job->l->int8;
    const size_t row = item / job->n_col_tiles * TILE_ROWS, col = item % job->n_col_tiles * job->tile_cols;
    const size_t rows = job->rows - row < TILE_ROWS ? job->rows - row : TILE_ROWS;
    const size_t cols = job->l->n_out - col < job->tile_cols ? job->l->n_out - col : job->tile_cols;
    const size_t k = job->l->n_in;
    int32_t *sums = job->sums + slot * TILE_ROWS * job->tile_cols;
    if (job->packed)
        job->k->gemm_u8s8_packed(rows, cols, k, job->bytes + row * k, k, job->packed + col * st_int8_depth(k), sums, cols);
    else
        job->k->gemm_u8s8(rows, cols, k, job->bytes + row * k, k, w->values + col * k, k, sums, cols);
    for (size_t r = 0; r < rows; r++) {
        float *y = job->y + (row + r) * job->ldy + col;
        job->k->dequantize(y, sums + r * cols, cols, job->scale[row + r], job->zero[row + r], w->scale + col,
                           w->sums + col, job->l->bias ? job->l->bias + col : NULL, job->accumulate);
        if (job->act == ST_ACT_RELU) job->k->relu(y, cols);
        if (job->act == ST_ACT_GELU) job->k->gelu(y, cols);
    }
}

/* Widths are whole panels, and a row of tiles is about evenly cut. */
static void cut_columns(int8_job *job)
{
    const size_t n_out = job->l->n_out, widest = job->rows <= FEW_ROWS ? TILE_COLS_FEW_ROWS : TILE_COLS;
    const size_t n_tiles = (n_out + widest - 1) / widest;
    job->tile_cols = st_round_up((n_out + n_tiles - 1) / n_tiles, ST_GEMM_PANELS);
    job->n_col_tiles = (n_out + job->tile_cols - 1) / job->tile_cols;
}

void st_linear_int8_run(const st_run *run, const st_linear *l, const float *x, size_t ldx, size_t rows, float *y,
                        size_t ldy, st_act act, bool accumulate)
{
    if (rows == 0) return;
    const size_t mark = st_arena_mark(run->arena);
    int8_job job = {
        .k = run->k, .l = l, .x = x, .y = y, .ldx = ldx, .ldy = ldy, .rows = rows, .act = act, .accumulate = accumulate
    };
    cut_columns(&job);
    job.packed = rows > FEW_ROWS ? st_pack_s8_run(run, l->int8.values, l->n_out, l->n_in) : NULL;
    job.bytes = st_arena_alloc(run->arena, rows * l->n_in, 1);
    job.scale = st_run_floats(run, rows, 1);
    job.zero = st_arena_alloc(run->arena, rows, sizeof *job.zero);
    job.sums = st_arena_alloc(run->arena, st_pool_size(run->pool) * TILE_ROWS * job.tile_cols, sizeof *job.sums);
    if (!st_run_idle(run)) {
        st_run_parallel(run, (rows + QUANTIZE_ROWS - 1) / QUANTIZE_ROWS, quantize_item, &job);
        st_run_parallel(run, (rows + TILE_ROWS - 1) / TILE_ROWS * job.n_col_tiles, product_item, &job);
    }
    st_arena_rewind(run->arena, mark);
}
