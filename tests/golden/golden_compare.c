/* golden_compare.c: verdicts. */
#include "golden/golden_compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
    golden_verdict(t, rms_err <= bar_rms && worst <= bar_max,
                   "%s/%s: rms error %.3g (bar %.3g), max error %.3g (bar %.3g), rms %.3g", case_name, stage, rms_err,
                   bar_rms, worst, bar_max, rms);
}

void golden_stop_on(st_status status, const st_error *err)
{
    if (status == ST_OK) return;
    fprintf(stderr, "golden: %s\n", err->message);
    exit(1);
}
