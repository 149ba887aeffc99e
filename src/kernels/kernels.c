/* kernels.c: chooses the kernels. One table per CPU level, filled from the floor up the first time it is asked for and
 * immutable from then on.
 *
 * A table never runs an instruction above its level. That holds for the matrix library too: oneDNN's limit is set once
 * per process, so a table that comes after a higher one keeps its own gemm (see dnnl/gemm_dnnl.c).
 */
#include "kernels/kernels.h"

#include <pthread.h>

static void fill(st_kernels *k, st_cpu_level level)
{
    st_kernels_set_ref(k);
    if (level == ST_CPU_REF)
        return;
#if defined(ST_ARCH_X86)
    st_kernels_set_avx2(k);
    if (level == ST_CPU_AVX512)
        st_kernels_set_avx512(k);
#elif defined(ST_ARCH_ARM)
    st_kernels_set_neon(k);
#endif
    k->level = st_cpu_level_name(level);
#if defined(ST_HAVE_DNNL)
    st_kernels_set_dnnl(k, level);
#elif defined(ST_HAVE_CBLAS)
    st_kernels_set_cblas(k);
#endif
}

static st_kernels ref_table, avx2_table, avx512_table, neon_table;
static void fill_ref(void) { fill(&ref_table, ST_CPU_REF); }
static void fill_avx2(void) { fill(&avx2_table, ST_CPU_AVX2); }
static void fill_avx512(void) { fill(&avx512_table, ST_CPU_AVX512); }
static void fill_neon(void) { fill(&neon_table, ST_CPU_NEON); }

/* The best level that this CPU runs and that is not above `level`. NEON's number is above AVX-512's, but it is no
 * superset of it. */
static st_cpu_level at_most(st_cpu_level level)
{
    if (st_cpu_supports(level))
        return level;
    if (level == ST_CPU_AVX512 && st_cpu_supports(ST_CPU_AVX2))
        return ST_CPU_AVX2;
    return ST_CPU_REF;
}

const st_kernels *st_kernels_get(st_cpu_level level)
{
    static pthread_once_t ref_once = PTHREAD_ONCE_INIT, avx2_once = PTHREAD_ONCE_INIT;
    static pthread_once_t avx512_once = PTHREAD_ONCE_INIT, neon_once = PTHREAD_ONCE_INIT;
    switch (at_most(level)) {
    case ST_CPU_AVX2: pthread_once(&avx2_once, fill_avx2); return &avx2_table;
    case ST_CPU_AVX512: pthread_once(&avx512_once, fill_avx512); return &avx512_table;
    case ST_CPU_NEON: pthread_once(&neon_once, fill_neon); return &neon_table;
    case ST_CPU_REF: break;
    }
    pthread_once(&ref_once, fill_ref);
    return &ref_table;
}

const st_kernels *st_kernels_best(void) { return st_kernels_get(st_cpu_best()); }
