/* matmul_dnnl.h: oneDNN's int8 matrix product as a primitive, which uses AMX where its plain function does not. */
#ifndef ST_KERNELS_MATMUL_DNNL_H
#define ST_KERNELS_MATMUL_DNNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c = a · bᵀ as st_kernels.gemm_u8s8; false when the library refuses, and c is then unspecified. May be called from any
 * thread, with the caller's OpenMP team set to 1. */
bool st_matmul_u8s8_dnnl(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                         int32_t *c, size_t ldc);

#endif
