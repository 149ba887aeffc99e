/* golden_compare.h: counting verdicts, and the one rule by which a stage is compared with the reference's. */
#ifndef GOLDEN_COMPARE_H
#define GOLDEN_COMPARE_H

#include <jansson.h>
#include "base/error.h"

/* A stage of a few numbers, over all cases of a set: one case's error there is luck, the reference's own too. */
typedef struct golden_pool {
    char stage[64];
    size_t n;
    double sq, sq_want, sq_own; /* sums of squares: errors, wanted numbers, the reference's own errors */
} golden_pool;

enum { GOLDEN_FEW = 8, GOLDEN_POOLS = 16 };

typedef struct golden_tally {
    size_t passed, failed;
    bool quiet, verbose, table;
    golden_pool pools[GOLDEN_POOLS];
} golden_tally;

void golden_verdict(golden_tally *t, bool ok, const char *fmt, ...) ST_PRINTF(3, 4);
/* Bars: RMS error <= max(2 x PyTorch-fp32's own RMS error against FP64, 1e-6 x RMS of the output); max error <= 4 x
 * PyTorch's own, same floor. own: {"rms_err", "max_err"}. With fewer than GOLDEN_FEW numbers the bar on the RMS error is
 * that of the stage over the whole set: golden_compare_pools. */
void golden_compare_stage(golden_tally *t, const char *case_name, const char *stage, const json_t *own,
                          const float *got, const float *want, size_t n);
/* After the last case of a set. */
void golden_compare_pools(golden_tally *t);
/* golden_compare_stage for a stage of [rows, cols], of which the set may keep every k-th row only ("stride" in `own`): `want` then has
 * want_rows. False, after a verdict, when the shapes do not fit. */
bool golden_compare_rows(golden_tally *t, const char *case_name, const char *stage, const json_t *own,
                         const float *got, size_t rows, const float *want, size_t want_rows, size_t cols);
/* 1: the set keeps the whole stage. */
size_t golden_stride(const json_t *own);
/* Ends the program with the message unless the status is ST_OK. */
void golden_stop_on(st_status status, const st_error *err);

#endif
