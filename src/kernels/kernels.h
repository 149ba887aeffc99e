/* kernels.h: the arithmetic that the tensor operations run on, as one table of function pointers, filled from the floor
 * up: ref (plain C, complete, portable) first, then each level up to the CPU's (AVX2, AVX-512, VNNI, AMX; NEON) overwrites
 * what it does faster.
 *
 * Kernels are single-threaded, allocate nothing, and work on raw pointers: fp32, row-major, `n` elements, no alignment
 * asked for, nothing read or written outside what is stated. Every kernel of every level is checked against the scalar
 * one (tests/kcheck). Bounds stated here hold against exact (double) arithmetic. n = 0 is fine where no more is said:
 * nothing is touched.
 *
 * Inside one level a call gives the same bits for the same sizes and values, whatever the alignment, the thread, or
 * what ran before. What an elementwise kernel makes of an element depends on neither its place in the row nor n. Levels
 * differ from each other in the last bits.
 */
#ifndef ST_KERNELS_H
#define ST_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cpu.h"

typedef struct st_kernels {
    const char *level;     /* "ref", "avx2", ... */
    const char *gemm_name; /* "scalar", "FMA tiles 12x32" */

    /* c[m,n] = a[m,k] · B (+ c when `accumulate`). trans_b: b is [n,k] and B = bᵀ (a weight matrix), else b is [k,n].
     * lda, ldb, ldc: floats from row to row. c must not overlap a or b. With k = 0: zero or unchanged.
     * The bits of c[i][j] depend on k and on the numbers that make it: not on m or n, nor on what else is in a or b.
     * Products use up to 160 KB of stack. Rows of a that are ST_GEMM_STEP floats apart are read where they are; others
     * are copied, a block at a time. */
    void (*gemm)(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                 bool accumulate, float *c, size_t ldc);
    /* c[m,n] = a[m,k] · bᵀ for m <= ST_GEMM_FEW_ROWS: faster than gemm and added up in another order, so with other bits. */
    void (*gemm_few)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                     size_t ldc);
    /* gemm with a B laid out beforehand, which pays from about 100 rows of a on: the same bits. `packed` takes
     * st_packed_floats(k, n, depth) floats; 64-byte alignment is best. Columns j .. of B, j a multiple of gemm_panel, lie
     * from packed + j depth on, so that both packing and products can be cut there. */
    void (*gemm_pack)(float *packed, bool trans_b, size_t n, size_t k, const float *b, size_t ldb);
    void (*gemm_packed)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *packed, bool accumulate,
                        float *c, size_t ldc);
    size_t gemm_panel; /* columns that are packed together; divides ST_GEMM_PANELS */

    /* One row: y = (x - mean) / sqrt(var + eps) · gamma + beta; biased variance, two passes; y may be x. */
    void (*layer_norm)(float *y, const float *x, size_t n, const float *gamma, const float *beta, float eps);
    /* y += x */
    void (*add)(float *y, const float *x, size_t n);
    /* y = a + b; y may be a or b */
    void (*add3)(float *y, const float *a, const float *b, size_t n);
    /* y *= s */
    void (*scale)(float *y, float s, size_t n);
    /* x = max(x, 0); NaN stays NaN */
    void (*relu)(float *x, size_t n);
    /* x = x/2 (1 + erf(x/sqrt 2)); abs error <= 2e-7 · max(|x|, 1); NaN stays NaN; +-inf -> inf, 0 */
    void (*gelu)(float *x, size_t n);
    /* largest element; n >= 1; NaN anywhere gives NaN */
    float (*max)(const float *x, size_t n);
    /* x[i] = exp(x[i] - shift), returns their sum; shift >= max(x). The difference is rounded to float first, as the
     * reference's softmax does. Error of each <= 3 ulp; results below 2^-126 may be 0; -inf gives exactly 0; shift =
     * -inf must not occur. NaN stays NaN. */
    float (*exp_sum)(float *x, size_t n, float shift);
    /* Rotates n adjacent pairs: (x[2i], x[2i+1]) by the angle whose (cos, sin) = (cs[2i], cs[2i+1]). */
    void (*rope)(float *x, const float *cs, size_t n);
    /* sum and sum of squares of deviations need double: adds sum(x) to *sum, and sum((x-shift)^2) to *sq, in double. */
    void (*moments)(const float *x, size_t n, double shift, double *sum, double *sq);

    /* y[i] = x[i], which are fp16, or bf16 when `brain`: exact, for every finite value. */
    void (*widen)(float *y, const uint16_t *x, size_t n, bool brain);

    /* ---- 3x3 convolutions by Winograd's F(2x2, 3x3) (Lavin & Gray 2016): 16 products instead of 36 for four outputs.
     * Both work on n channels, each for itself. */

    /* v[j][i] for j = 4 row + col: B' x B of the 4x4 values x[row row_ld + col col_ld + i]. The planes v[j] lie `plane`
     * floats apart. */
    void (*winograd_in)(float *v, size_t plane, const float *x, size_t row_ld, size_t col_ld, size_t n);
    /* y[2 row + col][i] = (A' m A)[row][col] + bias[i] of the 16 planes m, `plane` floats apart. A y that is NULL is not
     * wanted. */
    void (*winograd_out)(float *const y[4], const float *m, size_t plane, const float *bias, size_t n);

    /* ---- int8: activations as unsigned bytes with a scale and a zero point per row, weights as signed bytes with a
     * scale per output. Integers are exact: the same bits at every level, for any tiling. */

    /* c[m,n] = a[m,k] · bᵀ, b is [n,k]. Bytes of a are at most u8_max. k <= ST_MAX_INT8_DEPTH, so c cannot overflow. */
    void (*gemm_u8s8)(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                      int32_t *c, size_t ldc);
    /* As gemm_pack and gemm_packed. Depth in bytes: st_int8_depth(k), so `packed` takes st_packed_floats(k, n,
     * st_int8_depth(k) / 4) words, and columns j .. lie from byte j st_int8_depth(k) on. */
    void (*gemm_s8_pack)(void *packed, size_t n, size_t k, const int8_t *b, size_t ldb);
    void (*gemm_u8s8_packed)(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed, int32_t *c,
                             size_t ldc);
    const char *gemm_u8s8_name; /* "VNNI", "AMX", ... */
    /* Largest activation that gemm_u8s8 takes: 255; or 127 where two products are added in 16 bits, which saturate:
     * 2 · 127 · 128 = 32,512 fits, 2 · 255 · 128 does not. */
    int u8_max;
    /* One row of activations: q[i] = round(x[i] smooth[i] / *scale) + *zero, in 0 .. u8_max, half to even, the range
     * being that of the row with 0. smooth may be NULL. NaN or an infinity anywhere makes *scale NaN, and so every
     * result of the row. */
    void (*quantize)(uint8_t *q, float *scale, int32_t *zero, const float *x, const float *smooth, size_t n,
                     int u8_max);
    /* The same without a zero point: q[i] = round(x[i] / *scale) in -127 .. 127, *sum the sum of q. */
    void (*quantize_s8)(int8_t *q, float *scale, int32_t *sum, const float *x, size_t n);
    /* q[i] = round(u8_max exp(x[i] - shift)), shift >= max(x): exp_sum's exponentials as bytes; returns their sum. NaN
     * gives any byte. */
    int32_t (*exp_u8)(uint8_t *q, const float *x, size_t n, float shift, int u8_max);
    /* peak[i] = max(peak[i], |x[i]|); NaN in either stays */
    void (*peaks)(float *peak, const float *x, size_t n);
    /* The values of attention as B [rows, n] of gemm_u8s8_packed: round(x[r][j] inverse[j]), which lies in -127 .. 127, NaN as
     * any byte; rows of x lie ld apart. `packed` as gemm_s8_pack leaves it for k = rows. */
    void (*pack_values)(void *packed, size_t rows, size_t n, const float *x, size_t ld, const float *inverse);
    /* One row of scores: y[j] = scale col_scale[j] (c[j] - zero sums[j]); returns the largest, NaN if there is one. n >= 1. */
    float (*dequantize_max)(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                            const int32_t *sums);
    /* One row of results: y[j] (+)= scale col_scale[j] (c[j] - zero sums[j]) + bias[j]; sums[j] is the sum of row j of
     * the weights; bias may be NULL. */
    void (*dequantize)(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                       const int32_t *sums, const float *bias, bool accumulate);
} st_kernels;

/* Matrix products: rows of a copied block of a lie this many words apart; words of k that are added up before they meet c;
 * a common multiple of all levels' gemm_panel; the rows that gemm_few takes. */
enum { ST_GEMM_STEP = 272, ST_GEMM_BLOCK = 256, ST_GEMM_PANELS = 32, ST_GEMM_FEW_ROWS = 4 };

/* Floats of a packed B of n columns. */
static inline size_t st_packed_floats(const st_kernels *k, size_t n, size_t depth)
{
    return (n + k->gemm_panel - 1) / k->gemm_panel * k->gemm_panel * depth;
}
/* Bytes of a packed column of int8: whole tiles of AMX. */
static inline size_t st_int8_depth(size_t k) { return (k + 63) / 64 * 64; }

#define ST_MAX_INT8_DEPTH 32768u /* 255 · 128 · k < 2^30, twice: c - zero sums */

/* The table for `level`, or for the best level at most `level` that this CPU supports. Filled once; immutable
 * afterwards. */
const st_kernels *st_kernels_get(st_cpu_level level);
/* st_kernels_get(st_cpu_best()). */
const st_kernels *st_kernels_best(void);

/* The step and zero point of a row of activations in [low, high], low <= 0 <= high; NaN when the range is. */
static inline float st_int8_step(int32_t *zero, float low, float high, int u8_max)
{
    const float range = high - low;
    if (!(range <= 3.0e38f)) { /* NaN and infinities too */
        *zero = 0;
        return __builtin_nanf("");
    }
    const float step = range > 1.0e-30f ? range / (float)u8_max : 1.0f;
    *zero = (int32_t)(-low / step + 0.5f);
    if (*zero > u8_max) *zero = u8_max;
    return step;
}

/* The step of a row without a zero point, whose largest magnitude is `peak`. */
static inline float st_int8_step_s8(float peak)
{
    return !(peak <= 3.0e38f) ? __builtin_nanf("") : peak > 1.0e-30f ? peak / 127.0f : 1.0f;
}

/* Each level's part (defined in its own folder; overwrites only what it does faster than the levels below it). */
void st_kernels_set_ref(st_kernels *k);
void st_kernels_set_gemm_ref(st_kernels *k); /* these two are called by the one above */
void st_kernels_set_int8_ref(st_kernels *k);
void st_kernels_set_avx2(st_kernels *k);
void st_kernels_set_avx2_vnni(st_kernels *k);
void st_kernels_set_avx512(st_kernels *k);
void st_kernels_set_avx512_vnni(st_kernels *k);
void st_kernels_set_amx(st_kernels *k);
/* AVX-512 VNNI's gemm_u8s8_packed: AMX leaves it the rows that fill no tile. */
void st_gemm_u8s8_packed_vnni(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed, int32_t *c,
                              size_t ldc);
void st_kernels_set_neon(st_kernels *k);
void st_kernels_set_neon_dot(st_kernels *k);

#endif
