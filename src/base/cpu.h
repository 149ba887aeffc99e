/* cpu.h: what this CPU and this process may use. Read once. */
#ifndef ST_BASE_CPU_H
#define ST_BASE_CPU_H

#include <stdint.h>

typedef enum st_cpu_level { ST_CPU_REF = 0, ST_CPU_AVX2 = 1, ST_CPU_AVX512 = 2, ST_CPU_NEON = 3 } st_cpu_level;

/* The best level that CPU *and* operating system support (CPUID and XCR0): AVX2 means AVX2+FMA; AVX512 means F+BW+DQ+VL. The environment
 * variable ST_CPU_MASK=ref|avx2|avx512|neon lowers it; an unknown name, or a level this CPU lacks, is ignored with a log line
 * by the caller (st_cpu_mask_error). */
st_cpu_level st_cpu_best(void);
const char *st_cpu_mask_error(void); /* NULL, or why ST_CPU_MASK was ignored */
const char *st_cpu_level_name(st_cpu_level level);
/* 1 when this CPU can run `level` (ignores the mask). */
int st_cpu_supports(st_cpu_level level);
/* Threads worth starting: CPU affinity, lowered by the cgroup's CPU quota (v1 and v2), at least 1. */
unsigned st_cpu_default_threads(void);
/* "Intel(R) Xeon(R) ..." or "unknown". */
const char *st_cpu_name(void);

#endif
