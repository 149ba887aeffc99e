/* gemm_cblas.c: the matrix product by OpenBLAS, for builds without oneDNN.
 *
 * OpenBLAS is told to run on one thread, in the whole process: threads are our pool's business, and a product split by
 * thread count would not give the same bits for every count.
 */
#include "kernels/kernels.h"

#include <cblas.h>
#include <limits.h>

#include "kernels/ref/gemm_ref.h"

static void gemm_cblas(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b,
                       size_t ldb, bool accumulate, float *c, size_t ldc)
{
    if (m == 0 || n == 0)
        return;
    const size_t max = INT_MAX; /* CBLAS counts in int */
    if (k == 0 || m > max || n > max || k > max || lda > max || ldb > max || ldc > max) {
        st_gemm_ref(trans_b, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1.0f, a,
                (int)lda, b, (int)ldb, accumulate ? 1.0f : 0.0f, c, (int)ldc);
}

void st_kernels_set_cblas(st_kernels *k)
{
    openblas_set_num_threads(1);
    k->gemm = gemm_cblas;
    k->gemm_name = "CBLAS";
}
