/* rows_ref.c: the floor of the table: every kernel in plain C, one element after the other.
 *
 * What rounds is done in double where that costs nothing to say, so that these are references of the faster kernels,
 * not their equals bit by bit.
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"

static void layer_norm_ref(float *y, const float *x, size_t n, const float *gamma, const float *beta, float eps)
{
    double sum = 0.0, sq = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        sq += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double rstd = 1.0 / sqrt(sq / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * rstd * (double)gamma[i] + (double)beta[i]);
}

static void add_ref(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void add3_ref(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void scale_ref(float *y, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= s;
}

static void relu_ref(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0.0f ? 0.0f : x[i]; /* this way round NaN stays */
}

static void gelu_ref(float *x, size_t n)
{
    const double sqrt_half = 0.70710678118654752440;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i];
        x[i] = isinf(v) ? (v > 0.0 ? x[i] : 0.0f)
                        : (float)(0.5 * v * (1.0 + erf(v * sqrt_half))); /* -inf * 0 would be NaN */
    }
}

static float max_ref(const float *x, size_t n)
{
    float best = x[0];
    for (size_t i = 1; i < n; i++) {
        if (!(x[i] <= best)) /* larger, or one of the two is NaN */
            best = isnan(best) ? best : x[i];
    }
    return best;
}

static float exp_sum_ref(float *x, size_t n, float shift)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const float d = x[i] - shift;
        x[i] = (float)exp((double)d);
        sum += (double)x[i];
    }
    return (float)sum;
}

static void rope_ref(float *x, const float *cs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float even = x[2 * i], odd = x[2 * i + 1];
        x[2 * i] = even * cs[2 * i] - odd * cs[2 * i + 1];
        x[2 * i + 1] = odd * cs[2 * i] + even * cs[2 * i + 1];
    }
}

static void moments_ref(const float *x, size_t n, double shift, double *sum, double *sq)
{
    double s = 0.0, q = 0.0;
    for (size_t i = 0; i < n; i++) {
        s += (double)x[i];
        q += ((double)x[i] - shift) * ((double)x[i] - shift);
    }
    *sum += s;
    *sq += q;
}

static void winograd_in_ref(float *v, size_t plane, const float *x, size_t row_ld, size_t col_ld, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float t[4][4];
        for (size_t c = 0; c < 4; c++) {
            const float *d = x + c * col_ld + i;
            t[0][c] = d[0] - d[2 * row_ld];
            t[1][c] = d[row_ld] + d[2 * row_ld];
            t[2][c] = d[2 * row_ld] - d[row_ld];
            t[3][c] = d[row_ld] - d[3 * row_ld];
        }
        for (size_t r = 0; r < 4; r++) {
            float *out = v + 4 * r * plane + i;
            out[0] = t[r][0] - t[r][2];
            out[plane] = t[r][1] + t[r][2];
            out[2 * plane] = t[r][2] - t[r][1];
            out[3 * plane] = t[r][1] - t[r][3];
        }
    }
}

static void winograd_out_ref(float *const y[4], const float *m, size_t plane, const float *bias, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float t[2][4];
        for (size_t c = 0; c < 4; c++) {
            const float *s = m + c * plane + i;
            t[0][c] = s[0] + s[4 * plane] + s[8 * plane];
            t[1][c] = s[4 * plane] - s[8 * plane] - s[12 * plane];
        }
        for (size_t r = 0; r < 2; r++) {
            if (y[2 * r])
                y[2 * r][i] = t[r][0] + t[r][1] + t[r][2] + bias[i];
            if (y[2 * r + 1])
                y[2 * r + 1][i] = t[r][1] - t[r][2] - t[r][3] + bias[i];
        }
    }
}

/* fp16: the exponent is rebased by one multiplication, which is exact for subnormal halves too. */
static float from_half(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7FFFu) << 13, sign = (uint32_t)(half & 0x8000u) << 16;
    float value;
    uint32_t bits;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void widen_ref(float *y, const uint16_t *x, size_t n, bool brain)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        if (brain)
            memcpy(&y[i], &bits, sizeof bits);
        else
            y[i] = from_half(x[i]);
    }
}

void st_kernels_set_ref(st_kernels *k)
{
    *k = (st_kernels){
        .level = "ref",
        .layer_norm = layer_norm_ref,
        .add = add_ref,
        .add3 = add3_ref,
        .scale = scale_ref,
        .relu = relu_ref,
        .gelu = gelu_ref,
        .max = max_ref,
        .exp_sum = exp_sum_ref,
        .widen = widen_ref,
        .rope = rope_ref,
        .moments = moments_ref,
        .winograd_in = winograd_in_ref,
        .winograd_out = winograd_out_ref,
    };
    st_kernels_set_gemm_ref(k);
    st_kernels_set_int8_ref(k);
}
