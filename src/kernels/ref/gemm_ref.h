/* gemm_ref.h: the scalar matrix product, shared with the matrix libraries' files, which fall back to it. */
#ifndef ST_KERNELS_GEMM_REF_H
#define ST_KERNELS_GEMM_REF_H

#include <stdbool.h>
#include <stddef.h>

void st_gemm_ref(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                 bool accumulate, float *c, size_t ldc);

#endif
