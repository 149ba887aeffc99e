/* kernels.c: chooses the kernels. One table per CPU level, filled from the floor up; all of them are made the first time one
 * is asked for and are immutable from then on. A table never runs an instruction above its level.
 */
#include "kernels/kernels.h"

#include <pthread.h>

/* What a level grows from, and what it adds. */
typedef struct step {
    st_cpu_level from;
    void (*set)(st_kernels *k);
} step;

static const step steps[ST_CPU_N_LEVELS] = {
    [ST_CPU_REF] = { ST_CPU_REF, st_kernels_set_ref },
#if defined(ST_ARCH_X86)
    [ST_CPU_AVX2] = { ST_CPU_REF, st_kernels_set_avx2 },
    [ST_CPU_AVX2_VNNI] = { ST_CPU_AVX2, st_kernels_set_avx2_vnni },
    [ST_CPU_AVX512] = { ST_CPU_AVX2, st_kernels_set_avx512 },
    [ST_CPU_AVX512_VNNI] = { ST_CPU_AVX512, st_kernels_set_avx512_vnni },
    [ST_CPU_AMX] = { ST_CPU_AVX512_VNNI, st_kernels_set_amx },
#elif defined(ST_ARCH_ARM)
    [ST_CPU_NEON] = { ST_CPU_REF, st_kernels_set_neon },
    [ST_CPU_NEON_DOT] = { ST_CPU_NEON, st_kernels_set_neon_dot },
#endif
};

static st_kernels tables[ST_CPU_N_LEVELS];

static bool runs(st_cpu_level level) { return st_cpu_supports(level) && steps[level].set; }

/* Levels come after those they grow from. A setter is compiled for its level, so only those that run here are called. */
static void fill_all(void)
{
    for (int i = 0; i < ST_CPU_N_LEVELS; i++) {
        const st_cpu_level level = (st_cpu_level)i;
        if (!runs(level))
            continue;
        tables[level] = tables[steps[level].from];
        steps[level].set(&tables[level]);
        tables[level].level = st_cpu_level_name(level);
    }
}

const st_kernels *st_kernels_get(st_cpu_level level)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_all);
    while (level != ST_CPU_REF && !runs(level))
        level = steps[level].from;
    return &tables[level];
}

const st_kernels *st_kernels_best(void) { return st_kernels_get(st_cpu_best()); }
