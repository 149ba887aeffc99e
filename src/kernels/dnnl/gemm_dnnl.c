/* gemm_dnnl.c: the matrix products, fp32 and int8, by oneDNN (2.x and 3.x share this much of the C API).
 *
 * Called from several threads at once, each call on one thread: the caller's OpenMP team is told to be 1 around it. The
 * instruction limit is a setting of the whole process that only counts before oneDNN's first use, so the first table
 * that asks decides; a table of a lower level that comes later is left with the gemm it has.
 *
 * Signals wait until a product is done: oneDNN's generated code takes the stack pointer for one of its work buffers on
 * the heap, and a handler that ran then would write its frame over what lies before that buffer.
 */
#include "kernels/kernels.h"

#include <dnnl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "kernels/dnnl/matmul_dnnl.h"
#include "kernels/ref/gemm_ref.h"

/* From libgomp, which oneDNN is linked with; omp.h is not there for every compiler. Both act on the calling thread
 * only. */
int omp_get_max_threads(void);
void omp_set_num_threads(int n);

typedef struct caller {
    int team;
    sigset_t signals;
} caller;

/* What a fault raises comes through at all times: blocked, it would end the process without its handler. */
static void enter_library(caller *c)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    sigset_t waiting;
    sigfillset(&waiting);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&waiting, faults[i]);
    pthread_sigmask(SIG_BLOCK, &waiting, &c->signals);
    c->team = omp_get_max_threads();
    if (c->team != 1)
        omp_set_num_threads(1);
}

static void leave_library(const caller *c)
{
    if (c->team != 1)
        omp_set_num_threads(c->team);
    pthread_sigmask(SIG_SETMASK, &c->signals, NULL);
}

static void gemm_dnnl(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
                      size_t ldb, bool accumulate, float *c, size_t ldc)
{
    if (m == 0 || n == 0)
        return;
    dnnl_status_t status = dnnl_invalid_arguments;
    if (k > 0) { /* oneDNN leaves c alone, or refuses, when k is 0 */
        caller before;
        enter_library(&before);
        status = dnnl_sgemm('N', trans_b ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1.0f, a,
                            (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, accumulate ? 1.0f : 0.0f, c, (dnnl_dim_t)ldc);
        leave_library(&before);
    }
    if (status != dnnl_success)
        st_gemm_ref(trans_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
}

/* With fewer rows than this AMX's tiles stay empty. */
enum { AMX_ROWS = 32 };
static bool has_amx; /* set before the first table is handed out */

/* What serves the calls that the library refuses. Set before the first table is handed out. */
static void (*built_in_u8s8)(size_t, size_t, size_t, const uint8_t *, size_t, const int8_t *, size_t, int32_t *,
                             size_t);

/* oneDNN's int8 product wants A and B as they are, row-major, and adds no zero points here: they are worked in when
 * the sums become floats. Exact: integers, and no saturation up to u8_max. */
static void gemm_u8s8_dnnl(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                           int32_t *c, size_t ldc)
{
    if (m == 0 || n == 0)
        return;
    const int32_t no_offset = 0;
    dnnl_status_t status = dnnl_invalid_arguments;
    caller before;
    enter_library(&before);
    if (has_amx && m >= AMX_ROWS && k > 0 && st_matmul_u8s8_dnnl(m, n, k, a, lda, b, ldb, c, ldc))
        status = dnnl_success;
    else if (k > 0)
        status = dnnl_gemm_u8s8s32('N', 'T', 'F', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1.0f, a,
                                   (dnnl_dim_t)lda, 0, b, (dnnl_dim_t)ldb, 0, 0.0f, c, (dnnl_dim_t)ldc, &no_offset);
    leave_library(&before);
    if (status != dnnl_success)
        built_in_u8s8(m, n, k, a, lda, b, ldb, c, ldc);
}

/* Numbers: the same in 2.x and 3.x. VNNI and AMX add int8 and 16-bit instructions and change no fp32 result. */
enum { ISA_AVX512 = 0x27, ISA_VNNI = 0x67, ISA_BF16 = 0xe7, ISA_AMX = 0x3e7 };

static const char *isa_name(dnnl_cpu_isa_t isa)
{
    switch ((int)isa) {
    case 0x1: return "sse41";
    case 0x3: return "avx";
    case 0x7: return "avx2";
    case ISA_AVX512: return "avx512_core";
    case ISA_VNNI: return "avx512_core_vnni";
    case ISA_BF16: return "avx512_core_bf16";
    case ISA_AMX: return "avx512_core_amx";
    default: return ((int)isa & ISA_VNNI) == ISA_VNNI ? "avx512_core_vnni and more" : "other"; /* newer names of 3.x */
    }
}

static char name[64];
static void write_name(void)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(name, sizeof name, "oneDNN %d.%d.%d (%s)", v->major, v->minor, v->patch,
             isa_name(dnnl_get_effective_cpu_isa()));
}

void st_kernels_set_dnnl(st_kernels *k, st_cpu_level level)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const dnnl_cpu_isa_t limit = level == ST_CPU_AVX512 ? dnnl_cpu_isa_avx512_core_amx : dnnl_cpu_isa_avx2;
    (void)dnnl_set_max_cpu_isa(limit); /* refused after the first use: what counts is what is in force */
    if (((int)dnnl_get_effective_cpu_isa() & ~(int)limit) != 0)
        return;
    pthread_once(&once, write_name);
    k->gemm = gemm_dnnl;
    k->gemm_name = name;
    if (!built_in_u8s8)
        built_in_u8s8 = k->gemm_u8s8;
    k->gemm_u8s8 = gemm_u8s8_dnnl;
    /* oneDNN 3's primitive takes sums above 2^24 through a float (3.2: off by one), so AMX is for 2.x only. */
    has_amx = DNNL_VERSION_MAJOR == 2 && dnnl_version()->major == 2 &&
              ((int)dnnl_get_effective_cpu_isa() & ISA_AMX) == ISA_AMX;
    /* Without VNNI the library adds pairs of products in 16 bits. */
    k->u8_max = ((int)dnnl_get_effective_cpu_isa() & ISA_VNNI) == ISA_VNNI ? 255 : 127;
}
