/* packed.c: packs weights by all threads, some panels at a time. */
#include "tensor/packed.h"

enum { ITEM_COLS = 2 * ST_GEMM_PANELS };

typedef struct pack_job {
    const st_kernels *k;
    const float *weights;
    st_half_view half;   /* instead of weights */
    const int8_t *bytes; /* the same */
    float *widened;      /* per slot [ITEM_COLS, depth]; half only */
    float *packed;
    int8_t *packed_bytes;
    size_t n, depth, n_items; /* of one matrix */
} pack_job;

static void pack_item(void *arg, size_t item, unsigned slot)
{
    const pack_job *job = arg;
    const size_t matrix = item / job->n_items, col = item % job->n_items * ITEM_COLS, k = job->depth;
    const size_t n_cols = job->n - col < ITEM_COLS ? job->n - col : ITEM_COLS;
    if (job->bytes) {
        job->k->gemm_s8_pack(job->packed_bytes + col * st_int8_depth(k), n_cols, k, job->bytes + col * k, k);
    } else if (job->half.values) {
        float *rows = job->widened + slot * ITEM_COLS * k;
        job->k->widen(rows, job->half.values + col * k, n_cols * k, job->half.brain);
        job->k->gemm_pack(job->packed + col * k, true, n_cols, k, rows, k);
    } else {
        job->k->gemm_pack(job->packed + matrix * st_packed_floats(job->k, job->n, k) + col * k, true, n_cols, k,
                          job->weights + (matrix * job->n + col) * k, k);
    }
}

const float *st_pack_run(const st_run *run, const float *weights, size_t n_matrices, size_t n, size_t k)
{
    pack_job job = {.k = run->k, .weights = weights, .n = n, .depth = k, .n_items = (n + ITEM_COLS - 1) / ITEM_COLS};
    job.packed = st_run_floats(run, n_matrices, st_packed_floats(run->k, n, k));
    if (!st_run_idle(run)) st_run_parallel(run, n_matrices * job.n_items, pack_item, &job);
    return job.packed;
}

const float *st_pack_linear_run(const st_run *run, const st_linear *l)
{
    pack_job job = {.k = run->k, .weights = l->weight, .half = l->half, .n = l->n_out, .depth = l->n_in, .n_items = (l->n_out + ITEM_COLS - 1) / ITEM_COLS};
    job.packed = st_run_floats(run, 1, st_packed_floats(run->k, l->n_out, l->n_in));
    const size_t mark = st_arena_mark(run->arena);
    if (l->half.values || (run->half && st_run_planning(run))) job.widened = st_run_floats(run, st_pool_size(run->pool) * ITEM_COLS, l->n_in);
    if (!st_run_idle(run)) st_run_parallel(run, job.n_items, pack_item, &job);
    st_arena_rewind(run->arena, mark);
    return job.packed;
}

const int8_t *st_pack_s8_run(const st_run *run, const int8_t *weights, size_t n, size_t k)
{
    pack_job job = {.k = run->k, .bytes = weights, .n = n, .depth = k, .n_items = (n + ITEM_COLS - 1) / ITEM_COLS};
    job.packed_bytes = st_arena_alloc(run->arena, st_packed_floats(run->k, n, st_int8_depth(k) / 4), 4);
    if (!st_run_idle(run)) st_run_parallel(run, job.n_items, pack_item, &job);
    return job.packed_bytes;
}
