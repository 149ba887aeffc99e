/* int8_ref.c: the scalar int8 kernels. Integer sums are exact, and rounding to bytes is one fused multiply-add and one
 * rounding, so the faster levels must give the same bits.
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static void gemm_u8s8_ref(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                          int32_t *c, size_t ldc)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            const uint8_t *row = a + i * lda;
            const int8_t *col = b + j * ldb;
            int32_t sum = 0;
            for (size_t kk = 0; kk < k; kk++)
                sum += row[kk] * col[kk];
            c[i * ldc + j] = sum;
        }
    }
}

/* Packed by columns, one to a panel, with zeros up to the depth of a packed column. */
static void gemm_s8_pack_ref(void *packed, size_t n, size_t k, const int8_t *b, size_t ldb)
{
    const size_t depth = st_int8_depth(k);
    for (size_t j = 0; j < n; j++) {
        int8_t *column = (int8_t *)packed + j * depth;
        memcpy(column, b + j * ldb, k);
        memset(column + k, 0, depth - k);
    }
}

static void gemm_u8s8_packed_ref(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed,
                                 int32_t *c, size_t ldc)
{
    gemm_u8s8_ref(m, n, k, a, lda, packed, st_int8_depth(k), c, ldc);
}

static void quantize_ref(uint8_t *q, float *scale, int32_t *zero, const float *x, const float *smooth, size_t n,
                         int u8_max)
{
    float low = 0.0f, high = 0.0f;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        const float v = smooth ? x[i] * smooth[i] : x[i];
        low = v < low ? v : low;
        high = v > high ? v : high;
        finite = finite && isfinite(v);
    }
    const float step = st_int8_step(zero, low, finite ? high : NAN, u8_max);
    *scale = step;
    const float inverse = isnan(step) ? 0.0f : 1.0f / step, offset = (float)*zero;
    for (size_t i = 0; i < n; i++) {
        const float v = fminf(fmaxf(fmaf(smooth ? x[i] * smooth[i] : x[i], inverse, offset), 0.0f), (float)u8_max);
        q[i] = (uint8_t)lrintf(v);
    }
}

static void quantize_s8_ref(int8_t *q, float *scale, int32_t *sum, const float *x, size_t n)
{
    float peak = 0.0f;
    for (size_t i = 0; i < n; i++)
        peak = isnan(peak) || fabsf(x[i]) <= peak ? peak : fabsf(x[i]); /* NaN stays */
    *scale = st_int8_step_s8(peak);
    *sum = 0;
    const float inverse = *scale > 0.0f ? 1.0f / *scale : 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float v = fminf(fmaxf(fmaf(x[i], inverse, 128.0f), 1.0f), 255.0f);
        q[i] = (int8_t)(lrintf(v) - 128);
        *sum += q[i];
    }
}

static int32_t exp_u8_ref(uint8_t *q, const float *x, size_t n, float shift, int u8_max)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float d = x[i] - shift;
        q[i] = (uint8_t)lrintf(fminf(fmaxf((float)exp((double)d) * (float)u8_max, 0.0f), (float)u8_max));
        sum += q[i];
    }
    return sum;
}

static void peaks_ref(float *peak, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        peak[i] = isnan(peak[i]) || fabsf(x[i]) <= peak[i] ? peak[i] : fabsf(x[i]);
}

static void pack_values_ref(void *packed, size_t rows, size_t n, const float *x, size_t ld, const float *inverse)
{
    const size_t depth = st_int8_depth(rows);
    for (size_t j = 0; j < n; j++) {
        int8_t *column = (int8_t *)packed + j * depth;
        for (size_t r = 0; r < depth; r++) {
            const float v = r < rows ? x[r * ld + j] * inverse[j] : 0.0f;
            column[r] = (int8_t)lrintf(fminf(fmaxf(v, -127.0f), 127.0f));
        }
    }
}

static void dequantize_ref(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                           const int32_t *sums, const float *bias, bool accumulate)
{
    for (size_t j = 0; j < n; j++) {
        const float base = accumulate ? (bias ? y[j] + bias[j] : y[j]) : (bias ? bias[j] : 0.0f);
        y[j] = fmaf((float)(c[j] - zero * sums[j]), scale * col_scale[j], base);
    }
}

static float dequantize_max_ref(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                                const int32_t *sums)
{
    dequantize_ref(y, c, n, scale, zero, col_scale, sums, NULL, false);
    float most = y[0];
    for (size_t j = 1; j < n; j++)
        most = isnan(most) || y[j] <= most ? most : y[j]; /* NaN stays */
    return most;
}

void st_kernels_set_int8_ref(st_kernels *k)
{
    k->gemm_u8s8 = gemm_u8s8_ref;
    k->gemm_s8_pack = gemm_s8_pack_ref;
    k->gemm_u8s8_packed = gemm_u8s8_packed_ref;
    k->gemm_u8s8_name = "scalar";
    k->u8_max = 255;
    k->quantize = quantize_ref;
    k->quantize_s8 = quantize_s8_ref;
    k->exp_u8 = exp_u8_ref;
    k->peaks = peaks_ref;
    k->pack_values = pack_values_ref;
    k->dequantize_max = dequantize_max_ref;
    k->dequantize = dequantize_ref;
}
