/* gemm_ref.c: the scalar matrix product, and the floor under every other one.
 *
 * The yardstick of the fast ones, so it adds little error of its own: products are added in floats SHORT at a time, these
 * short sums in double, and each block of K_BLOCK is rounded to float once. The order depends on nothing but k.
 * Blocked just enough for the tests: a panel of B is copied so that the inner loop reads it in order whether or not B is
 * transposed, and ROWS x COLS sums live in registers.
 */
#include "kernels/kernels.h"

enum { ROWS = 4, COLS = 8, K_BLOCK = 256, SHORT = 16 };

/* panel[kk][jj] = B[kk][jj] for kk < n_k, jj < n_cols; columns beyond are 0. */
static void copy_panel(float panel[K_BLOCK][COLS], bool trans_b, const float *b, size_t ldb, size_t n_k, size_t n_cols)
{
    for (size_t kk = 0; kk < n_k; kk++) {
        for (size_t jj = 0; jj < COLS; jj++)
            panel[kk][jj] = jj >= n_cols ? 0.0f : trans_b ? b[jj * ldb + kk] : b[kk * ldb + jj];
    }
}

/* long_sums[ii][jj] += sum over kk of a[ii][kk] * panel[kk][jj], kk < n_k <= SHORT, for all ROWS rows */
static void add_full(double long_sums[ROWS][COLS], const float *a, size_t lda, float (*panel)[COLS], size_t n_k)
{
    const float *a0 = a, *a1 = a + lda, *a2 = a + 2 * lda, *a3 = a + 3 * lda;
    float s0[COLS] = { 0 }, s1[COLS] = { 0 }, s2[COLS] = { 0 }, s3[COLS] = { 0 };
    for (size_t kk = 0; kk < n_k; kk++) {
        const float *p = panel[kk];
        for (size_t jj = 0; jj < COLS; jj++) {
            s0[jj] += a0[kk] * p[jj];
            s1[jj] += a1[kk] * p[jj];
            s2[jj] += a2[kk] * p[jj];
            s3[jj] += a3[kk] * p[jj];
        }
    }
    for (size_t jj = 0; jj < COLS; jj++) {
        long_sums[0][jj] += (double)s0[jj];
        long_sums[1][jj] += (double)s1[jj];
        long_sums[2][jj] += (double)s2[jj];
        long_sums[3][jj] += (double)s3[jj];
    }
}

static void add_rows(double long_sums[ROWS][COLS], const float *a, size_t lda, float (*panel)[COLS], size_t n_k,
                     size_t n_rows)
{
    for (size_t ii = 0; ii < n_rows; ii++) {
        float s[COLS] = { 0 };
        for (size_t kk = 0; kk < n_k; kk++) {
            for (size_t jj = 0; jj < COLS; jj++)
                s[jj] += a[ii * lda + kk] * panel[kk][jj];
        }
        for (size_t jj = 0; jj < COLS; jj++)
            long_sums[ii][jj] += (double)s[jj];
    }
}

/* sums[ii][jj] = sum over kk of a[ii][kk] * panel[kk][jj] for n_rows rows */
static void tile(float sums[ROWS][COLS], const float *a, size_t lda, float panel[K_BLOCK][COLS], size_t n_k,
                 size_t n_rows)
{
    double long_sums[ROWS][COLS] = { { 0 } };
    for (size_t kk = 0; kk < n_k; kk += SHORT) {
        const size_t n = n_k - kk < SHORT ? n_k - kk : SHORT;
        if (n_rows == ROWS)
            add_full(long_sums, a + kk, lda, panel + kk, n);
        else
            add_rows(long_sums, a + kk, lda, panel + kk, n, n_rows);
    }
    for (size_t ii = 0; ii < n_rows; ii++) {
        for (size_t jj = 0; jj < COLS; jj++)
            sums[ii][jj] = (float)long_sums[ii][jj];
    }
}

static void store_tile(float *c, size_t ldc, float sums[ROWS][COLS], size_t n_rows, size_t n_cols, bool add)
{
    for (size_t ii = 0; ii < n_rows; ii++) {
        for (size_t jj = 0; jj < n_cols; jj++)
            c[ii * ldc + jj] = add ? c[ii * ldc + jj] + sums[ii][jj] : sums[ii][jj];
    }
}

static void zero_rows(float *c, size_t ldc, size_t m, size_t n)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++)
            c[i * ldc + j] = 0.0f;
    }
}

static void gemm_ref(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                     bool accumulate, float *c, size_t ldc)
{
    if (k == 0 && !accumulate)
        zero_rows(c, ldc, m, n);
    float panel[K_BLOCK][COLS], sums[ROWS][COLS];
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        const size_t n_k = k - k0 < K_BLOCK ? k - k0 : K_BLOCK;
        for (size_t j0 = 0; j0 < n; j0 += COLS) {
            const size_t n_cols = n - j0 < COLS ? n - j0 : COLS;
            copy_panel(panel, trans_b, trans_b ? b + j0 * ldb + k0 : b + k0 * ldb + j0, ldb, n_k, n_cols);
            for (size_t i0 = 0; i0 < m; i0 += ROWS) {
                const size_t n_rows = m - i0 < ROWS ? m - i0 : ROWS;
                tile(sums, a + i0 * lda + k0, lda, panel, n_k, n_rows);
                store_tile(c + i0 * ldc + j0, ldc, sums, n_rows, n_cols, accumulate || k0 != 0);
            }
        }
    }
}

static void gemm_few_ref(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                         size_t ldc)
{
    gemm_ref(true, m, n, k, a, lda, b, ldb, false, c, ldc);
}

/* Packed by columns, one to a panel: bᵀ without gaps. */
static void gemm_pack_ref(float *packed, bool trans_b, size_t n, size_t k, const float *b, size_t ldb)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t kk = 0; kk < k; kk++)
            packed[j * k + kk] = trans_b ? b[j * ldb + kk] : b[kk * ldb + j];
    }
}

static void gemm_packed_ref(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *packed,
                            bool accumulate, float *c, size_t ldc)
{
    gemm_ref(true, m, n, k, a, lda, packed, k, accumulate, c, ldc);
}

void st_kernels_set_gemm_ref(st_kernels *k)
{
    k->gemm = gemm_ref;
    k->gemm_few = gemm_few_ref;
    k->gemm_pack = gemm_pack_ref;
    k->gemm_packed = gemm_packed_ref;
    k->gemm_panel = 1;
    k->gemm_name = "scalar";
}
