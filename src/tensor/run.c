/* run.c: the few functions of a run that are not one line. */
#include "tensor/run.h"

#include <stdarg.h>
#include <stdio.h>
#include "base/error.h"

st_status st_run_status(const st_run *run, st_error *err)
{
    if (run->arena->overflowed)
        return st_fail(err, ST_ERR_INTERNAL, "scratch memory: the plan of %zu bytes was too small", run->arena->size);
    if (run->cancel && st_cancel_is_set(run->cancel)) return st_fail(err, ST_ERR_CANCELLED, "cancelled");
    return ST_OK;
}

void st_run_progress(const st_run *run, const char *stage, size_t done, size_t total)
{
    if (run->progress && !run->arena->planning) run->progress(run->progress_user, stage, done, total);
}

float *st_run_floats(const st_run *run, size_t rows, size_t cols)
{
    size_t n;
    if (__builtin_mul_overflow(rows, cols, &n)) {
        run->arena->overflowed = true;
        return NULL;
    }
    return st_arena_alloc(run->arena, n, sizeof(float));
}

void st_run_probe(const st_run *run, float *data, size_t rows, size_t cols, const char *fmt, ...)
{
    if (!run->probe || st_run_idle(run)) return;
    char name[96];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    run->probe(run->probe_user, name, data, rows, cols);
}

void st_run_let_go(const st_run *run, const char *fmt, ...)
{
    if (!run->let_go || st_run_planning(run)) return;
    char prefix[96];
    va_list args;
    va_start(args, fmt);
    vsnprintf(prefix, sizeof prefix, fmt, args);
    va_end(args);
    run->let_go(run->let_go_user, prefix);
}
