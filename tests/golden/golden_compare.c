/* golden_compare.c: verdicts. */
#include "golden/golden_compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void golden_verdict(golden_tally *t, bool ok, const char *fmt, ...)
{
    *(ok ? &t->passed : &t->failed) += 1;
    if (t->quiet || (ok && !t->verbose)) return;
    va_list args;
    va_start(args, fmt);
    printf("%s ", ok ? "ok  " : "FAIL");
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

static golden_pool *pool_of(golden_tally *t, const char *stage)
{
    for (size_t i = 0; i < GOLDEN_POOLS; i++) {
        golden_pool *p = &t->pools[i];
        if (!p->n) snprintf(p->stage, sizeof p->stage, "%s", stage);
        if (strcmp(p->stage, stage) == 0) return p;
    }
    fprintf(stderr, "golden: more than %d stages of a few numbers\n", GOLDEN_POOLS);
    exit(1);
}

void golden_compare_pools(golden_tally *t)
{
    for (size_t i = 0; i < GOLDEN_POOLS && t->pools[i].n; i++) {
        const golden_pool *p = &t->pools[i];
        const double n = (double)p->n, rms_err = sqrt(p->sq / n), bar = fmax(2.0 * sqrt(p->sq_own / n), 1e-6 * sqrt(p->sq_want / n));
        golden_verdict(t, rms_err <= bar, "all cases/%s: rms error %.3g (bar %.3g) of %zu numbers", p->stage, rms_err, bar, p->n);
    }
}

void golden_compare_stage(golden_tally *t, const char *case_name, const char *stage, const json_t *own,
                          const float *got, const float *want, size_t n)
{
    double sq = 0.0, worst = 0.0, sq_want = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double e = fabs((double)got[i] - (double)want[i]);
        if (!(e <= worst)) worst = e;
        sq += e * e;
        sq_want += (double)want[i] * (double)want[i];
    }
    const double rms_err = sqrt(sq / (double)n), rms = sqrt(sq_want / (double)n);
    const double own_rms = json_number_value(json_object_get(own, "rms_err")),
                 own_max = json_number_value(json_object_get(own, "max_err"));
    const double bar_rms = fmax(2.0 * own_rms, 1e-6 * rms), bar_max = fmax(4.0 * own_max, 4e-6 * rms);
    if (t->table)
        printf("| %s | %s | %.3g | %.3g | %.3g | %.3g | %.3g |\n", case_name, stage, rms, rms_err, own_rms, worst,
               own_max);
    if (n > 0 && n < GOLDEN_FEW) {
        golden_pool *p = pool_of(t, stage);
        p->n += n;
        p->sq += sq;
        p->sq_want += sq_want;
        p->sq_own += own_rms * own_rms * (double)n;
    }
    golden_verdict(t, n > 0 && (rms_err <= bar_rms || n < GOLDEN_FEW) && worst <= bar_max,
                   "%s/%s: rms error %.3g (bar %.3g), max error %.3g (bar %.3g), rms %.3g", case_name, stage, rms_err,
                   bar_rms, worst, bar_max, rms);
}

size_t golden_stride(const json_t *own)
{
    const json_int_t stride = json_integer_value(json_object_get(own, "stride"));
    return stride > 1 ? (size_t)stride : 1;
}

bool golden_compare_rows(golden_tally *t, const char *case_name, const char *stage, const json_t *own,
                         const float *got, size_t rows, const float *want, size_t want_rows, size_t cols)
{
    const size_t stride = golden_stride(own);
    if (want_rows != (rows + stride - 1) / stride) {
        golden_verdict(t, false, "%s/%s: %zu rows, of which the reference has %zu, one of %zu", case_name, stage, rows,
                       want_rows, stride);
        return false;
    }
    float *some = malloc(want_rows * cols * sizeof *some + 1);
    if (!some) exit(1);
    for (size_t r = 0; r < want_rows; r++) memcpy(some + r * cols, got + r * stride * cols, cols * sizeof *some);
    golden_compare_stage(t, case_name, stage, own, some, want, want_rows * cols);
    free(some);
    return true;
}

void golden_stop_on(st_status status, const st_error *err)
{
    if (status == ST_OK) return;
    fprintf(stderr, "golden: %s\n", err->message);
    exit(1);
}
