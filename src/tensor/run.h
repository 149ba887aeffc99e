/* run.h: what every stage of the model is handed: kernels, threads, scratch memory, the cancel flag, and the probe.
 *
 * A run in *planning* mode computes nothing: the stages are walked through, scratch memory is counted, every tensor operation returns at once. The
 * plan printed to the user is therefore the code's own, not an estimate kept beside it.
 */
#ifndef ST_TENSOR_RUN_H
#define ST_TENSOR_RUN_H

#include "base/arena.h"
#include "base/pool.h"
#include "kernels/kernels.h"

/* Sees a stage's output, as [rows][cols] row-major, and may overwrite it (tests feed the reference's own values to the next stage). */
typedef void st_probe_fn(void *user, const char *name, float *data, size_t rows, size_t cols);

/* Sees what goes into a linear layer: x, `rows` rows of ldx floats. */
struct st_linear;
typedef void st_watch_fn(void *user, const struct st_linear *layer, const float *x, size_t ldx, size_t rows);

/* Told that the weights whose canonical names start with `prefix` are not needed again before the next pass. */
typedef void st_let_go_fn(void *user, const char *prefix);

typedef struct st_run {
    const st_kernels *k;
    st_pool *pool;
    st_arena *arena;
    const st_cancel *cancel;
    st_progress_fn *progress;
    void *progress_user;
    st_probe_fn *probe; /* NULL outside tests and `stencil check` */
    void *probe_user;
    bool int8;          /* some layers are quantised: a planning run counts their scratch for every layer */
    bool half;          /* some are kept in 16 bits: the same */
    st_watch_fn *watch; /* NULL outside `stencil quantize` */
    void *watch_user;
    st_let_go_fn *let_go; /* NULL where the whole model may stay in memory */
    void *let_go_user;
    double *n_flop; /* counts what the products of a planning run would take; may be NULL */
} st_run;

static inline bool st_run_planning(const st_run *run) { return run->arena->planning; }
/* Nothing more needs computing: planning, cancelled, or out of scratch memory. Every operation asks this first. */
static inline bool st_run_idle(const st_run *run)
{
    return run->arena->planning || run->arena->overflowed || (run->cancel && st_cancel_is_set(run->cancel));
}
/* ST_OK, ST_ERR_CANCELLED, or ST_ERR_INTERNAL when the arena overflowed: called at the end of a stage. */
ST_MUSTCHECK st_status st_run_status(const st_run *run, st_error *err);
void st_run_progress(const st_run *run, const char *stage, size_t done, size_t total);
/* Scratch for [rows][cols] floats; valid until the arena is rewound. Never dereference it while st_run_idle. */
float *st_run_floats(const st_run *run, size_t rows, size_t cols);
/* Shows a stage's output to the probe, if there is one. The name is built like printf's. */
void st_run_probe(const st_run *run, float *data, size_t rows, size_t cols, const char *fmt, ...) ST_PRINTF(5, 6);
/* A block of the model has been computed: its weights may leave memory. The prefix is built like printf's. */
void st_run_let_go(const st_run *run, const char *fmt, ...) ST_PRINTF(2, 3);
/* A product [m, k] by [k, n] belongs to the pass. */
static inline void st_run_count(const st_run *run, size_t m, size_t n, size_t k)
{
    if (run->n_flop && st_run_planning(run)) *run->n_flop += 2.0 * (double)m * (double)n * (double)k;
}
/* Items of a job on the run's pool. */
static inline void st_run_parallel(const st_run *run, size_t n_items, st_pool_fn *fn, void *arg)
{
    st_pool_run(run->pool, n_items, fn, arg, run->cancel);
}

#endif
