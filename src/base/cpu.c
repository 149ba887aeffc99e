/* cpu.c: which kernels this process may run. A level counts only when the CPU has the instructions (CPUID) *and* the operating system saves
 * their registers (XCR0): a hypervisor or kernel may offer the one without the other. This is the only file that reads the environment
 * (ST_CPU_MASK), once; what was found then never changes. */
#include "base/cpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

typedef struct facts {
    st_cpu_level best;      /* after the mask */
    unsigned supported;     /* bit per st_cpu_level; the mask does not count, but AMX is not there when it names a lower level */
    st_error mask_error;    /* status ST_OK: the mask is fine or absent */
    char name[128];
} facts;

static const char *const level_names[] = { "ref", "avx2", "avx2-vnni", "avx512", "avx512-vnni", "amx", "neon", "neon-dot" };
#define N_LEVELS (sizeof level_names / sizeof level_names[0])
_Static_assert(N_LEVELS == ST_CPU_N_LEVELS, "a name for every level");

#if defined(__x86_64__)
static uint64_t read_xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Asks Linux for AMX's tiles, for all threads of this process; refused where the kernel does not know them, or where a thread's signal
 * stack is too small for their registers. Once lent, small signal stacks are refused: so they are not asked for where the mask names another level. */
static int may_use_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static unsigned supported_levels(bool tiles_too)
{
    const unsigned ref = 1u << ST_CPU_REF;
    const uint64_t ymm_state = 0x6, zmm_state = 0xE6, tile_state = 0x60000; /* XCR0: xmm + ymm; and opmask, zmm upper halves, zmm16-31; AMX */
    const unsigned avx512_bits = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* leaf 7 ebx: F, DQ, BW, VL */
    const unsigned amx_bits = 1u << 24 | 1u << 25;                          /* leaf 7 edx: TILE, INT8 */
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return ref;
    const unsigned osxsave = ecx >> 27 & 1, avx = ecx >> 28 & 1, fma = ecx >> 12 & 1, f16c = ecx >> 29 & 1;
    if (!osxsave || !avx || !fma || !f16c) return ref;
    const uint64_t xcr0 = read_xcr0();
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return ref;
    if ((xcr0 & ymm_state) != ymm_state || !(ebx >> 5 & 1)) return ref;
    unsigned levels = ref | 1u << ST_CPU_AVX2, eax1 = 0, unused[3];
    if (eax >= 1 && __get_cpuid_count(7, 1, &eax1, &unused[0], &unused[1], &unused[2]) && (eax1 >> 4 & 1)) levels |= 1u << ST_CPU_AVX2_VNNI;
    if ((xcr0 & zmm_state) != zmm_state || (ebx & avx512_bits) != avx512_bits) return levels;
    levels |= 1u << ST_CPU_AVX512;
    if (!(ecx >> 11 & 1)) return levels;
    levels |= 1u << ST_CPU_AVX512_VNNI;
    if ((edx & amx_bits) == amx_bits && (xcr0 & tile_state) == tile_state && tiles_too && may_use_tiles()) levels |= 1u << ST_CPU_AMX;
    return levels;
}
#elif defined(__aarch64__)
static unsigned supported_levels(bool tiles_too)
{
    (void)tiles_too;
    const unsigned base = 1u << ST_CPU_REF | 1u << ST_CPU_NEON; /* NEON belongs to the base architecture */
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? base | 1u << ST_CPU_NEON_DOT : base;
}
#else
static unsigned supported_levels(bool tiles_too)
{
    (void)tiles_too;
    return 1u << ST_CPU_REF;
}
#endif

/* The value of the first "model name : ..." line of /proc/cpuinfo. */
static void read_name(char *name, size_t size)
{
    char line[512];
    snprintf(name, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *value = strchr(line, ':');
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
        st_text_clean(name);
        break;
    }
    if (f) fclose(f);
}

/* The level that the mask names; N_LEVELS: none. */
static size_t level_called(const char *mask)
{
    size_t level = 0;
    while (level < N_LEVELS && strcmp(mask, level_names[level]) != 0) level++;
    return level;
}

static void apply_mask(facts *f, const char *mask)
{
    const size_t level = level_called(mask);
    if (level == N_LEVELS) {
        (void)!st_fail(&f->mask_error, ST_ERR_INVALID_ARG,
                       "ST_CPU_MASK is ignored: expected ref, avx2, avx2-vnni, avx512, avx512-vnni, amx, neon or neon-dot, got \"%s\"", mask);
    } else if (!(f->supported >> level & 1)) {
        (void)!st_fail(&f->mask_error, ST_ERR_UNSUPPORTED, "ST_CPU_MASK is ignored: this CPU cannot run %s", mask);
    } else {
        f->best = (st_cpu_level)level; /* supported levels above it exist or not: either way this one is not higher than the best */
    }
}

static facts found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void)
{
    const char *mask = getenv("ST_CPU_MASK");
    const bool masked = mask && *mask;
    const unsigned without_tiles = supported_levels(false);
    const size_t level = masked ? level_called(mask) : N_LEVELS;
    const bool lowers = level < N_LEVELS && (without_tiles >> level & 1); /* then nobody will use the tiles */
    found.supported = lowers ? without_tiles : supported_levels(true);
    for (unsigned i = 0; i < N_LEVELS; i++)
        if (found.supported >> i & 1) found.best = (st_cpu_level)i;
    read_name(found.name, sizeof found.name);
    if (masked) apply_mask(&found, mask);
}

static const facts *get(void)
{
    pthread_once(&once, find);
    return &found;
}

st_cpu_level st_cpu_best(void)
{
    return get()->best;
}

const char *st_cpu_mask_error(void)
{
    return get()->mask_error.status == ST_OK ? NULL : get()->mask_error.message;
}

const char *st_cpu_level_name(st_cpu_level level)
{
    return (size_t)level < N_LEVELS ? level_names[level] : "unknown";
}

int st_cpu_supports(st_cpu_level level)
{
    return (size_t)level < N_LEVELS && (get()->supported >> level & 1);
}

const char *st_cpu_name(void)
{
    return get()->name;
}
