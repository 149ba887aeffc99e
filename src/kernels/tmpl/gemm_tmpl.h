/* gemm_tmpl.h: the matrix product where no library does it, in the words of simd_<level>.h, which comes first and gives
 *   FN(op), VF_N, vf, vf_*
 *   GEMM_ROWS, GEMM_VECS   the tile: GEMM_ROWS rows of c by GEMM_VECS vectors of columns, all in registers with room
 *                          for B's vectors and one of A
 * Legal with simd_avx2.h, simd_avx512.h and simd_neon.h.
 *
 * A panel of B (a block of k, one tile wide) is copied to the stack, which also pads its last columns; A is read in
 * place. Each c[i][j] is a sum of blocks of products, each in order of k with fused multiply-adds, then the blocks in
 * order: bits depend on k alone, not on m, n or the tile.
 */
#include <stdbool.h>

#if defined(__clang__)
#define GEMM_UNROLL _Pragma("unroll")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 16")
#endif

enum { GEMM_COLS = GEMM_VECS * VF_N, GEMM_K = 256 };

/* panel[kk][jj] = B[kk][jj] for kk < n_k, jj < n_cols; columns beyond are 0. */
static void FN(gemm_copy)(float panel[GEMM_K][GEMM_COLS], bool trans_b, const float *b, size_t ldb, size_t n_k,
                          size_t n_cols)
{
    for (size_t jj = 0; trans_b && jj < n_cols; jj++) {
        for (size_t kk = 0; kk < n_k; kk++)
            panel[kk][jj] = b[jj * ldb + kk];
    }
    for (size_t kk = 0; !trans_b && kk < n_k; kk++) {
        for (size_t jj = 0; jj < n_cols; jj++)
            panel[kk][jj] = b[kk * ldb + jj];
    }
    for (size_t kk = 0; n_cols < GEMM_COLS && kk < n_k; kk++) {
        for (size_t jj = n_cols; jj < GEMM_COLS; jj++)
            panel[kk][jj] = 0.0f;
    }
}

/* n_rows rows of c, n_cols columns; n_rows is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void FN(gemm_tile)(size_t n_rows, float *c, size_t ldc, size_t n_cols,
                                                                const float *a, size_t lda,
                                                                float panel[GEMM_K][GEMM_COLS], size_t n_k, bool add)
{
    vf acc[GEMM_ROWS][GEMM_VECS];
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++)
            acc[i][v] = vf_set1(0.0f);
    }
    for (size_t kk = 0; kk < n_k; kk++) {
        vf bv[GEMM_VECS];
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++)
            bv[v] = vf_load(&panel[kk][v * VF_N]);
        GEMM_UNROLL
        for (size_t i = 0; i < n_rows; i++) {
            const vf av = vf_set1(a[i * lda + kk]);
            GEMM_UNROLL
            for (size_t v = 0; v < GEMM_VECS; v++)
                acc[i][v] = vf_fma(av, bv[v], acc[i][v]);
        }
    }
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++) {
            float *out = c + i * ldc + v * VF_N;
            if (n_cols >= (v + 1) * VF_N) {
                vf_store(out, add ? vf_add(vf_load(out), acc[i][v]) : acc[i][v]);
            } else if (n_cols > v * VF_N) {
                const size_t n = n_cols - v * VF_N;
                vf_store_n(out, add ? vf_add(vf_load_n(out, n), acc[i][v]) : acc[i][v], n);
            }
        }
    }
}

/* All m rows of one panel's columns. */
static void FN(gemm_panel)(size_t m, float *c, size_t ldc, size_t n_cols, const float *a, size_t lda,
                           float panel[GEMM_K][GEMM_COLS], size_t n_k, bool add)
{
    size_t i = 0;
    for (; i + GEMM_ROWS <= m; i += GEMM_ROWS)
        FN(gemm_tile)(GEMM_ROWS, c + i * ldc, ldc, n_cols, a + i * lda, lda, panel, n_k, add);
    for (; i + 4 <= m; i += 4)
        FN(gemm_tile)(4, c + i * ldc, ldc, n_cols, a + i * lda, lda, panel, n_k, add);
    for (; i < m; i++)
        FN(gemm_tile)(1, c + i * ldc, ldc, n_cols, a + i * lda, lda, panel, n_k, add);
}

static void FN(gemm)(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                     bool accumulate, float *c, size_t ldc)
{
    for (size_t i = 0; k == 0 && !accumulate && i < m; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = 0.0f;
    }
    float panel[GEMM_K][GEMM_COLS] __attribute__((aligned(64)));
    for (size_t k0 = 0; k0 < k; k0 += GEMM_K) {
        const size_t n_k = k - k0 < GEMM_K ? k - k0 : GEMM_K;
        for (size_t j0 = 0; j0 < n; j0 += GEMM_COLS) {
            const size_t n_cols = n - j0 < GEMM_COLS ? n - j0 : GEMM_COLS;
            FN(gemm_copy)(panel, trans_b, trans_b ? b + j0 * ldb + k0 : b + k0 * ldb + j0, ldb, n_k, n_cols);
            FN(gemm_panel)(m, c + j0, ldc, n_cols, a + k0, lda, panel, n_k, accumulate || k0 != 0);
        }
    }
}
