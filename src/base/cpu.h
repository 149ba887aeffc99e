/* cpu.h: what this CPU and this process may use. Read once. */
#ifndef ST_BASE_CPU_H
#define ST_BASE_CPU_H

#include <stdint.h>

/* Each level has all of the level it grows from (kernels.c). VNNI, AMX and DOT add int8 products only. */
typedef enum st_cpu_level {
    ST_CPU_REF = 0,
    ST_CPU_AVX2,        /* AVX2, FMA, F16C */
    ST_CPU_AVX2_VNNI,   /* AVX-VNNI */
    ST_CPU_AVX512,      /* F, BW, DQ, VL */
    ST_CPU_AVX512_VNNI,
    ST_CPU_AMX,         /* AMX-TILE and AMX-INT8 */
    ST_CPU_NEON,
    ST_CPU_NEON_DOT,    /* SDOT */
    ST_CPU_N_LEVELS
} st_cpu_level;

/* The best level that CPU *and* operating system support (CPUID and XCR0; AMX's tiles are asked for by a system call). The environment
 * variable ST_CPU_MASK=LEVEL lowers it (names: st_cpu_level_name); an unknown name, or a level this CPU lacks, is ignored with a log line
 * by the caller (st_cpu_mask_error). */
st_cpu_level st_cpu_best(void);
const char *st_cpu_mask_error(void); /* NULL, or why ST_CPU_MASK was ignored */
const char *st_cpu_level_name(st_cpu_level level);
/* 1 when this CPU can run `level`. ST_CPU_MASK does not count, but for AMX: its tiles are not asked for where a lower level will do. */
int st_cpu_supports(st_cpu_level level);
/* Threads worth starting: CPU affinity, lowered by the cgroup's CPU quota (v1 and v2), at least 1. */
unsigned st_cpu_default_threads(void);
/* "Intel(R) Xeon(R) ..." or "unknown". */
const char *st_cpu_name(void);

#endif
