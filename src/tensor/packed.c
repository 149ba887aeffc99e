/* packed.c: packs weights by all threads, some panels at a time. */
#include "tensor/packed.h"

enum { ITEM_COLS = 2 * ST_GEMM_PANELS };

typedef struct pack_job {
    const st_kernels *k;
    const float *weights;
    const int8_t *bytes; /* instead of weights */
    float *packed;
    int8_t *packed_bytes;
    size_t n, depth, n_items; /* of one matrix */
} pack_job;

static void pack_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const pack_job *job = arg;
    const size_t matrix = item / job->n_items, col = item % job->n_items * ITEM_COLS, k = job->depth;
    const size_t n_cols = job->n - col < ITEM_COLS ? job->n - col : ITEM_COLS;
    if (job->bytes)
        job->k->gemm_s8_pack(job->packed_bytes + col * st_int8_depth(k), n_cols, k, job->bytes + col * k, k);
    else
        job->k->gemm_pack(job->packed + matrix * st_packed_floats(job->k, job->n, k) + col * k, true, n_cols, k,
                          job->weights + (matrix * job->n + col) * k, k);
}

const float *st_pack_run(const st_run *run, const float *weights, size_t n_matrices, size_t n, size_t k)
{
    pack_job job = {.k = run->k, .weights = weights, .n = n, .depth = k, .n_items = (n + ITEM_COLS - 1) / ITEM_COLS};
    job.packed = st_run_floats(run, n_matrices, st_packed_floats(run->k, n, k));
    if (!st_run_idle(run)) st_run_parallel(run, n_matrices * job.n_items, pack_item, &job);
    return job.packed;
}

const int8_t *st_pack_s8_run(const st_run *run, const int8_t *weights, size_t n, size_t k)
{
    pack_job job = {.k = run->k, .bytes = weights, .n = n, .depth = k, .n_items = (n + ITEM_COLS - 1) / ITEM_COLS};
    job.packed_bytes = st_arena_alloc(run->arena, st_packed_floats(run->k, n, st_int8_depth(k) / 4), 4);
    if (!st_run_idle(run)) st_run_parallel(run, job.n_items, pack_item, &job);
    return job.packed_bytes;
}
