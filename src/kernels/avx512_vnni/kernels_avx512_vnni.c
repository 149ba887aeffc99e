/* kernels_avx512_vnni.c: the int8 products by AVX-512 VNNI, which adds four products of bytes to a 32-bit sum. All else is as in the
 * level below. Compiled with this level's instructions, so nothing here may run before the CPU check.
 */
#include "kernels/kernels.h"

#include "kernels/avx512/simd_avx512.h"
/* the words above first */
#include "kernels/tmpl/pack_tmpl.h"
/* after pack_tmpl.h, whose panels it multiplies */
#define GEMM_INT8
#include "kernels/tmpl/gemm_tmpl.h"

void st_gemm_u8s8_packed_vnni(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed, int32_t *c,
                              size_t ldc)
{
    FN(gemm_u8s8_packed)(m, n, k, a, lda, packed, c, ldc);
}

void st_kernels_set_avx512_vnni(st_kernels *k) { FN(set_gemm_u8s8)(k, "AVX-512 VNNI", 255); }
