/* pack_tmpl.h: how the second operand B of a matrix product is laid out for it, in the words of simd_<level>.h, which comes
 * first. A word is 32 bits: one float, or four bytes of int8 that follow each other in k.
 *
 * A panel is GEMM_COLS columns of B: for each word of k, one word of every column, so that the product reads it from the
 * first byte to the last. Columns beyond the matrix and bytes beyond k are 0.
 */
#include <stdbool.h>
#include <string.h>

#if defined(__clang__)
#define GEMM_UNROLL _Pragma("unroll")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 32")
#endif

/* A block of k: as deep as a panel that stays in the L1 cache. Bits of a product depend on it. */
enum { GEMM_COLS = GEMM_VECS * VF_N, GEMM_K = ST_GEMM_BLOCK };

/* Lanes of row j: VF_N words, or the n_bytes < 4 VF_N that are left, and zeros. */
static inline vf FN(load_left)(const unsigned char *row, size_t n_bytes)
{
    float words[VF_N] = { 0 };
    memcpy(words, row, n_bytes);
    return vf_load(words);
}

/* VF_N columns of a panel, whose rows lie `step` words apart: column j is the row b + j ld_bytes of n_bytes bytes. Columns
 * from n_cols on, and words from the last byte up to n_words, are 0. */
static void FN(pack_turned)(float *panel, size_t step, const unsigned char *b, size_t ld_bytes, size_t n_cols,
                            size_t n_bytes, size_t n_words)
{
    for (size_t w = 0; w < n_words; w += VF_N) {
        vf r[VF_N];
        const size_t at = 4 * w, left = at < n_bytes ? n_bytes - at : 0;
        if (left >= 4 * VF_N && n_cols >= VF_N) {
            GEMM_UNROLL
            for (size_t j = 0; j < VF_N; j++) {
                __builtin_prefetch(b + (j + VF_N) * ld_bytes + at); /* the next columns: too many streams for the CPU to foresee */
                r[j] = vf_load_bits(b + j * ld_bytes + at);
            }
        } else {
            for (size_t j = 0; j < VF_N; j++)
                r[j] = j >= n_cols || left == 0 ? vf_set1(0.0f)
                       : left >= 4 * VF_N       ? vf_load_bits(b + j * ld_bytes + at)
                                                : FN(load_left)(b + j * ld_bytes + at, left);
        }
        vf_turn(r);
        if (n_words - w >= VF_N) {
            GEMM_UNROLL
            for (size_t i = 0; i < VF_N; i++)
                vf_store_bits(panel + (w + i) * step, r[i]);
        } else {
            for (size_t i = 0; i < n_words - w; i++)
                vf_store_bits(panel + (w + i) * step, r[i]);
        }
    }
}

/* A whole panel of Bᵀ [n_cols <= GEMM_COLS, n_bytes]. */
static void FN(pack_panel_turned)(float *panel, const unsigned char *b, size_t ld_bytes, size_t n_cols, size_t n_bytes,
                                  size_t n_words)
{
    for (size_t j = 0; j < GEMM_COLS; j += VF_N)
        FN(pack_turned)(panel + j, GEMM_COLS, b + j * ld_bytes, ld_bytes, n_cols > j ? n_cols - j : 0, n_bytes, n_words);
}

/* A whole panel of floats B [n_words, n_cols <= GEMM_COLS]. */
static void FN(pack_panel_rows)(float *panel, const float *b, size_t ldb, size_t n_cols, size_t n_words)
{
    if (n_cols == GEMM_COLS) {
        for (size_t w = 0; w < n_words; w++) {
            GEMM_UNROLL
            for (size_t v = 0; v < GEMM_VECS; v++)
                vf_store(panel + w * GEMM_COLS + v * VF_N, vf_load(b + w * ldb + v * VF_N));
        }
        return;
    }
    for (size_t w = 0; w < n_words; w++) {
        memcpy(panel + w * GEMM_COLS, b + w * ldb, n_cols * sizeof *panel);
        memset(panel + w * GEMM_COLS + n_cols, 0, (GEMM_COLS - n_cols) * sizeof *panel);
    }
}
