/* int8_tmpl.h: the int8 kernels in the words of simd_<level>.h, which comes first (see rows_tmpl.h). The tail of a row
 * goes through a full vector on the stack, so that every element is treated alike.
 */
#include <string.h>

/* Exact sums in 32 bits, left to the compiler: what runs where no library does it. */
static void FN(gemm_u8s8)(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                          int32_t *c, size_t ldc)
{
    for (size_t j = 0; j < n; j++) {
        const int8_t *col = b + j * ldb;
        for (size_t i = 0; i < m; i++) {
            const uint8_t *row = a + i * lda;
            int32_t sum = 0;
            for (size_t kk = 0; kk < k; kk++)
                sum += (int16_t)row[kk] * (int16_t)col[kk];
            c[i * ldc + j] = sum;
        }
    }
}

static inline vf FN(smoothed)(const float *x, const float *smooth)
{
    return smooth ? vf_mul(vf_load(x), vf_load(smooth)) : vf_load(x);
}
static inline vf FN(smoothed_n)(const float *x, const float *smooth, size_t n)
{
    return smooth ? vf_mul(vf_load_n(x, n), vf_load_n(smooth, n)) : vf_load_n(x, n);
}

static void FN(quantize)(uint8_t *q, float *scale, int32_t *zero, const float *x, const float *smooth, size_t n,
                         int u8_max)
{
    const vf none = vf_set1(0.0f);
    vmax high = vmax_start(none), low = high; /* of x and of -x; they remember NaN */
    const size_t whole = n / VF_N * VF_N;
    for (size_t i = 0; i < whole; i += VF_N) {
        const vf v = FN(smoothed)(x + i, smooth ? smooth + i : NULL);
        high = vmax_with(high, v);
        low = vmax_with(low, vf_sub(none, v));
    }
    if (whole < n) {
        const vf v = FN(smoothed_n)(x + whole, smooth ? smooth + whole : NULL, n - whole);
        high = vmax_with(high, v);
        low = vmax_with(low, vf_sub(none, v));
    }
    *scale = st_int8_step(zero, -vmax_end(low), vmax_end(high), u8_max);
    const vf inverse = vf_set1(*scale > 0.0f ? 1.0f / *scale : 0.0f), offset = vf_set1((float)*zero);
    const vf most = vf_set1((float)u8_max);
    for (size_t i = 0; i < whole; i += VF_N) {
        const vf v = vf_fma(FN(smoothed)(x + i, smooth ? smooth + i : NULL), inverse, offset);
        vf_store_u8(q + i, vf_min_keep(most, vf_max_keep(none, v)));
    }
    if (whole < n) {
        uint8_t last[VF_N];
        const vf v =
            vf_fma(FN(smoothed_n)(x + whole, smooth ? smooth + whole : NULL, n - whole), inverse, offset);
        vf_store_u8(last, vf_min_keep(most, vf_max_keep(none, v)));
        memcpy(q + whole, last, n - whole);
    }
}

static void FN(quantize_s8)(int8_t *q, float *scale, int32_t *sum, const float *x, size_t n)
{
    const vf none = vf_set1(0.0f);
    vmax peak = vmax_start(none); /* of x and of -x; it remembers NaN */
    const size_t whole = n / VF_N * VF_N;
    for (size_t i = 0; i < whole; i += VF_N)
        peak = vmax_with(vmax_with(peak, vf_load(x + i)), vf_sub(none, vf_load(x + i)));
    if (whole < n) {
        const vf v = vf_load_n(x + whole, n - whole);
        peak = vmax_with(vmax_with(peak, v), vf_sub(none, v));
    }
    *scale = st_int8_step_s8(vmax_end(peak));
    const vf inverse = vf_set1(*scale > 0.0f ? 1.0f / *scale : 0.0f), middle = vf_set1(128.0f);
    const vf least = vf_set1(1.0f), most = vf_set1(255.0f);
    int32_t total = 0;
    for (size_t i = 0; i < n; i += VF_N) {
        uint8_t bytes[VF_N];
        const size_t m = n - i < VF_N ? n - i : VF_N;
        const vf v = m == VF_N ? vf_load(x + i) : vf_load_n(x + i, m);
        vf_store_u8(bytes, vf_min_keep(most, vf_max_keep(least, vf_fma(v, inverse, middle))));
        for (size_t j = 0; j < m; j++) {
            q[i + j] = (int8_t)(bytes[j] - 128);
            total += bytes[j] - 128;
        }
    }
    *sum = total;
}

static void FN(exp_u8)(uint8_t *q, const float *x, size_t n, float shift, int u8_max)
{
    const vf s = vf_set1(shift), most = vf_set1((float)u8_max), none = vf_set1(0.0f);
    const size_t whole = n / VF_N * VF_N;
    for (size_t i = 0; i < whole; i += VF_N) {
        const vf e = vf_mul(FN(exp_neg)(vf_sub(vf_load(x + i), s)), most);
        vf_store_u8(q + i, vf_min_keep(most, vf_max_keep(none, e)));
    }
    if (whole < n) {
        uint8_t last[VF_N];
        const vf e = vf_mul(FN(exp_neg)(vf_sub(vf_load_n(x + whole, n - whole), s)), most);
        vf_store_u8(last, vf_min_keep(most, vf_max_keep(none, e)));
        memcpy(q + whole, last, n - whole);
    }
}

static inline void FN(dequantize_one)(float *y, const int32_t *c, float scale, int32_t zero, const float *col_scale,
                                      const int32_t *sums, vf base)
{
    vf_store(y, vf_fma(vf_from_dots(c, sums, zero), vf_mul(vf_set1(scale), vf_load(col_scale)), base));
}

static void FN(dequantize)(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                           const int32_t *sums, const float *bias, bool accumulate)
{
    const size_t whole = n / VF_N * VF_N, rest = n - whole;
    for (size_t j = 0; j < whole; j += VF_N) {
        vf base = bias ? vf_load(bias + j) : vf_set1(0.0f);
        if (accumulate)
            base = bias ? vf_add(vf_load(y + j), base) : vf_load(y + j);
        FN(dequantize_one)(y + j, c + j, scale, zero, col_scale + j, sums + j, base);
    }
    if (rest == 0)
        return;
    float last_y[VF_N] = { 0 }, last_scale[VF_N] = { 0 };
    int32_t last_c[VF_N] = { 0 }, last_sums[VF_N] = { 0 };
    memcpy(last_c, c + whole, rest * sizeof *c);
    memcpy(last_sums, sums + whole, rest * sizeof *sums);
    memcpy(last_scale, col_scale + whole, rest * sizeof *col_scale);
    vf base = bias ? vf_load_n(bias + whole, rest) : vf_set1(0.0f);
    if (accumulate)
        base = bias ? vf_add(vf_load_n(y + whole, rest), base) : vf_load_n(y + whole, rest);
    FN(dequantize_one)(last_y, last_c, scale, zero, last_scale, last_sums, base);
    memcpy(y + whole, last_y, rest * sizeof *y);
}

static void FN(set_int8)(st_kernels *k)
{
    k->gemm_u8s8 = FN(gemm_u8s8);
    k->u8_max = 255;
    k->quantize = FN(quantize);
    k->quantize_s8 = FN(quantize_s8);
    k->exp_u8 = FN(exp_u8);
    k->dequantize = FN(dequantize);
}
