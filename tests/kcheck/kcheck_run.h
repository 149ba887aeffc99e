/* kcheck_run.h: what kcheck.c and the harness share but the checks need not see. */
#ifndef KCHECK_RUN_H
#define KCHECK_RUN_H

#include "kcheck.h"

enum { KC_MAX_BENCH = 96, KC_MAX_LEVELS = ST_CPU_N_LEVELS };

typedef struct kc_bench_line {
    char name[48];
    double work; /* per call, in units */
    char unit[16];
    double ns[KC_MAX_LEVELS]; /* per call; 0 = not measured */
} kc_bench_line;

/* Lives in memory that parent and children share. */
typedef struct kc_shared {
    size_t n_passed, n_failed, n_left_out;
    size_t level; /* index of the level that runs */
    char gemm_name[96];
    char running[96]; /* the check that began last */
    size_t n_bench;
    kc_bench_line bench[KC_MAX_BENCH];
} kc_shared;
extern kc_shared *kc_result;

void kc_catch_signals(void);
void kc_bench_print(const kc_shared *r);

#endif
