/* rowwise.c: operations whose rows are independent: LayerNorm, addition, GroupNorm's second half; and GroupNorm's statistics. */
#include "tensor/tensor.h"

#include <math.h>
#include "base/checked.h"

enum { CHUNK_ROWS = 64, CHUNK_FLOATS = 16384, MOMENT_ROWS = 1024, MAX_GROUPS = 8 };

typedef struct norm_job {
    const st_kernels *k;
    const st_norm *norm;
    const float *x;
    float *y;
    size_t rows;
} norm_job;

static void norm_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const norm_job *job = arg;
    const st_norm *norm = job->norm;
    const size_t end = st_least((item + 1) * CHUNK_ROWS, job->rows);
    for (size_t r = item * CHUNK_ROWS; r < end; r++)
        job->k->layer_norm(job->y + r * norm->n, job->x + r * norm->n, norm->n, norm->gamma, norm->beta, norm->eps);
}

void st_norm_run(const st_run *run, const st_norm *norm, const float *x, size_t rows, float *y)
{
    if (st_run_idle(run)) return;
    norm_job job = {run->k, norm, x, y, rows};
    st_run_parallel(run, (rows + CHUNK_ROWS - 1) / CHUNK_ROWS, norm_item, &job);
}

typedef struct add_job {
    const st_kernels *k;
    float *y;
    const float *a, *b;
    size_t n;
} add_job;

static void add_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const add_job *job = arg;
    const size_t i = item * CHUNK_FLOATS;
    job->k->add3(job->y + i, job->a + i, job->b + i, st_least(CHUNK_FLOATS, job->n - i));
}

void st_add_run(const st_run *run, float *y, const float *a, const float *b, size_t n)
{
    if (st_run_idle(run)) return;
    add_job job = {run->k, y, a, b, n};
    st_run_parallel(run, (n + CHUNK_FLOATS - 1) / CHUNK_FLOATS, add_item, &job);
}

typedef struct group_job {
    const st_kernels *k;
    const st_norm *norm;
    size_t n_groups, rows;
    float *x;
    double *partial;               /* [n_chunks][n_groups] of this pass */
    double mean[MAX_GROUPS];       /* after the first pass */
    float scale_of[MAX_GROUPS];    /* 1 / sqrt(var + eps) */
    bool squares;                  /* second pass: sum of squared deviations */
} group_job;

static void moments_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    group_job *job = arg;
    const size_t width = job->norm->n / job->n_groups, end = st_least((item + 1) * MOMENT_ROWS, job->rows);
    for (size_t g = 0; g < job->n_groups; g++) {
        double sum = 0.0, sq = 0.0;
        for (size_t r = item * MOMENT_ROWS; r < end; r++)
            job->k->moments(job->x + r * job->norm->n + g * width, width, job->mean[g], &sum, &sq);
        job->partial[item * job->n_groups + g] = job->squares ? sq : sum;
    }
}

/* Adds the chunks in their order, so that the sum does not depend on who computed them. */
static double total_of_group(const group_job *job, size_t n_chunks, size_t g)
{
    double total = 0.0;
    for (size_t c = 0; c < n_chunks; c++) total += job->partial[c * job->n_groups + g];
    return total / ((double)job->rows * (double)(job->norm->n / job->n_groups));
}

static void normalise_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const group_job *job = arg;
    const size_t n = job->norm->n, width = n / job->n_groups, end = st_least((item + 1) * CHUNK_ROWS, job->rows);
    for (size_t r = item * CHUNK_ROWS; r < end; r++) {
        float *x = job->x + r * n;
        for (size_t g = 0, c = 0; g < job->n_groups; g++) {
            const float mean = (float)job->mean[g], scale = job->scale_of[g];
            for (size_t i = 0; i < width; i++, c++) x[c] = (x[c] - mean) * scale * job->norm->gamma[c] + job->norm->beta[c];
        }
        job->k->relu(x, n);
    }
}

void st_group_norm_relu_run(const st_run *run, const st_norm *norm, size_t n_groups, float *x, size_t rows)
{
    const size_t mark = st_arena_mark(run->arena), n_chunks = (rows + MOMENT_ROWS - 1) / MOMENT_ROWS;
    group_job job = {.k = run->k, .norm = norm, .n_groups = n_groups, .rows = rows, .x = x};
    job.partial = st_arena_alloc(run->arena, n_chunks * n_groups, sizeof(double));
    if (!st_run_idle(run)) {
        st_run_parallel(run, n_chunks, moments_item, &job);
        for (size_t g = 0; g < n_groups; g++) job.mean[g] = total_of_group(&job, n_chunks, g);
        job.squares = true;
        st_run_parallel(run, n_chunks, moments_item, &job);
        for (size_t g = 0; g < n_groups; g++) job.scale_of[g] = (float)(1.0 / sqrt(total_of_group(&job, n_chunks, g) + (double)norm->eps));
        st_run_parallel(run, (rows + CHUNK_ROWS - 1) / CHUNK_ROWS, normalise_item, &job);
    }
    st_arena_rewind(run->arena, mark);
}
