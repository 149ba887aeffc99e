/* gemm_ref.c: the scalar matrix product, and the floor under every other one.
 *
 * The yardstick of the fast ones, so it adds no error of its own: products are exact in double, each c[i][j] is a sum of
 * blocks of K_BLOCK of them in order of k, and a block is rounded to float once. The order depends on nothing but k.
 * Blocked just enough for the tests: a panel of B is copied so that the inner loop reads it in order whether or not B is
 * transposed, and ROWS x COLS sums live in registers.
 */
#include "kernels/ref/gemm_ref.h"

enum { ROWS = 4, COLS = 4, K_BLOCK = 256 };

/* panel[kk][jj] = B[kk][jj] for kk < n_k, jj < n_cols; columns beyond are 0. */
static void copy_panel(double panel[K_BLOCK][COLS], bool trans_b, const float *b, size_t ldb, size_t n_k, size_t n_cols)
{
    for (size_t kk = 0; kk < n_k; kk++) {
        for (size_t jj = 0; jj < COLS; jj++)
            panel[kk][jj] = jj >= n_cols ? 0.0 : (double)(trans_b ? b[jj * ldb + kk] : b[kk * ldb + jj]);
    }
}

/* sums[ii][jj] = sum over kk of a[ii][kk] * panel[kk][jj], for all ROWS rows */
static void tile_full(float sums[ROWS][COLS], const float *a, size_t lda, double panel[K_BLOCK][COLS], size_t n_k)
{
    const float *a0 = a, *a1 = a + lda, *a2 = a + 2 * lda, *a3 = a + 3 * lda;
    double s0[COLS] = { 0 }, s1[COLS] = { 0 }, s2[COLS] = { 0 }, s3[COLS] = { 0 };
    for (size_t kk = 0; kk < n_k; kk++) {
        const double *p = panel[kk];
        for (size_t jj = 0; jj < COLS; jj++) {
            s0[jj] += (double)a0[kk] * p[jj];
            s1[jj] += (double)a1[kk] * p[jj];
            s2[jj] += (double)a2[kk] * p[jj];
            s3[jj] += (double)a3[kk] * p[jj];
        }
    }
    for (size_t jj = 0; jj < COLS; jj++) {
        sums[0][jj] = (float)s0[jj];
        sums[1][jj] = (float)s1[jj];
        sums[2][jj] = (float)s2[jj];
        sums[3][jj] = (float)s3[jj];
    }
}

static void tile_rows(float sums[ROWS][COLS], const float *a, size_t lda, double panel[K_BLOCK][COLS], size_t n_k,
                      size_t n_rows)
{
    for (size_t ii = 0; ii < n_rows; ii++) {
        double s[COLS] = { 0 };
        for (size_t kk = 0; kk < n_k; kk++) {
            for (size_t jj = 0; jj < COLS; jj++)
                s[jj] += (double)a[ii * lda + kk] * panel[kk][jj];
        }
        for (size_t jj = 0; jj < COLS; jj++)
            sums[ii][jj] = (float)s[jj];
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

void st_gemm_ref(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                 bool accumulate, float *c, size_t ldc)
{
    if (k == 0 && !accumulate)
        zero_rows(c, ldc, m, n);
    double panel[K_BLOCK][COLS];
    float sums[ROWS][COLS];
    for (size_t k0 = 0; k0 < k; k0 += K_BLOCK) {
        const size_t n_k = k - k0 < K_BLOCK ? k - k0 : K_BLOCK;
        for (size_t j0 = 0; j0 < n; j0 += COLS) {
            const size_t n_cols = n - j0 < COLS ? n - j0 : COLS;
            copy_panel(panel, trans_b, trans_b ? b + j0 * ldb + k0 : b + k0 * ldb + j0, ldb, n_k, n_cols);
            for (size_t i0 = 0; i0 < m; i0 += ROWS) {
                const size_t n_rows = m - i0 < ROWS ? m - i0 : ROWS;
                if (n_rows == ROWS)
                    tile_full(sums, a + i0 * lda + k0, lda, panel, n_k);
                else
                    tile_rows(sums, a + i0 * lda + k0, lda, panel, n_k, n_rows);
                store_tile(c + i0 * ldc + j0, ldc, sums, n_rows, n_cols, accumulate || k0 != 0);
            }
        }
    }
}
