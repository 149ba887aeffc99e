/* int8_tmpl.h: the int8 kernels but the products, in the words of simd_<level>.h, which comes first (see rows_tmpl.h). The tail of a row
 * goes through a full vector on the stack, so that every element is treated alike.
 */
#include <math.h>
#include <string.h>

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

static int32_t FN(exp_u8)(uint8_t *q, const float *x, size_t n, float shift, int u8_max)
{
    /* NaN becomes 0, so that the sum stays that of bytes */
    const vf s = vf_set1(shift), most = vf_set1((float)u8_max), none = vf_set1(0.0f);
    const size_t whole = n / VF_N * VF_N;
    vi sums = vi_set1(0);
    for (size_t i = 0; i < whole; i += VF_N) {
        const vf e = vf_mul(FN(exp_neg)(vf_sub(vf_load(x + i), s)), most);
        const vi bytes = vf_round(vf_min_keep(most, vf_max_keep(e, none)));
        vi_store_u8(q + i, bytes);
        sums = vi_add(sums, bytes);
    }
    int32_t lanes[VF_N], sum = 0;
    vi_store(lanes, sums);
    for (size_t i = 0; i < VF_N; i++)
        sum += lanes[i];
    if (whole < n) {
        uint8_t last[VF_N];
        const vf e = vf_mul(FN(exp_neg)(vf_sub(vf_load_n(x + whole, n - whole), s)), most);
        vf_store_u8(last, vf_min_keep(most, vf_max_keep(e, none)));
        memcpy(q + whole, last, n - whole);
        for (size_t i = 0; i < n - whole; i++)
            sum += last[i];
    }
    return sum;
}

static void FN(peaks)(float *peak, const float *x, size_t n)
{
    const vf none = vf_set1(0.0f);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        const vf v = vf_load(x + i), old = vf_load(peak + i); /* x86 keeps the second operand when one is NaN */
        vf_store(peak + i, vf_keep_nan(old, vf_max_keep(old, vf_max_keep(vf_sub(none, v), v))));
    }
    for (; i < n; i++)
        peak[i] = isnan(peak[i]) || fabsf(x[i]) <= peak[i] ? peak[i] : fabsf(x[i]);
}

/* One word of VF_N columns: the bytes of four rows of x, those beyond `rows` being 0. */
static inline vi FN(four_values)(const float *x, size_t ld, size_t rows, vf inverse)
{
    vi word = vi_set1(0);
    const vf least = vf_set1(-127.0f), most = vf_set1(127.0f);
    for (size_t r = 0; r < rows && r < 4; r++) {
        const vf v = vf_min_keep(most, vf_max_keep(least, vf_mul(vf_load(x + r * ld), inverse)));
        word = vi_put_byte(word, vf_round(v), r);
    }
    return word;
}

static void FN(pack_values)(void *packed, size_t rows, size_t n, const float *x, size_t ld, const float *inverse)
{
    const size_t n_words = st_int8_depth(rows) / 4;
    for (size_t j0 = 0; j0 < n; j0 += GEMM_COLS) {
        int32_t *panel = (int32_t *)packed + j0 * n_words;
        for (size_t j = 0; j < GEMM_COLS; j += VF_N) {
            const size_t left = n > j0 + j ? n - (j0 + j) : 0;
            const vf by = left >= VF_N ? vf_load(inverse + j0 + j) : left > 0 ? vf_load_n(inverse + j0 + j, left) : vf_set1(0.0f);
            for (size_t w = 0; w < n_words; w++) {
                const size_t there = rows > 4 * w ? rows - 4 * w : 0;
                vi word = vi_set1(0);
                if (left >= VF_N) {
                    word = FN(four_values)(x + 4 * w * ld + j0 + j, ld, there, by);
                } else if (left > 0) {
                    float some[4 * VF_N] = { 0 };
                    for (size_t r = 0; r < there && r < 4; r++)
                        memcpy(some + r * VF_N, x + (4 * w + r) * ld + j0 + j, left * sizeof *some);
                    word = FN(four_values)(some, VF_N, there, by);
                }
                vi_store(panel + w * GEMM_COLS + j, word);
            }
        }
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

static float FN(dequantize_max)(float *y, const int32_t *c, size_t n, float scale, int32_t zero, const float *col_scale,
                                const int32_t *sums)
{
    const size_t whole = n / VF_N * VF_N;
    if (whole == 0) {
        FN(dequantize)(y, c, n, scale, zero, col_scale, sums, NULL, false);
        return FN(max)(y, n);
    }
    const vf step = vf_set1(scale), base = vf_set1(0.0f);
    vmax most = vmax_start(vf_set1(-INFINITY));
    for (size_t j = 0; j < whole; j += VF_N) {
        const vf v = vf_fma(vf_from_dots(c + j, sums + j, zero), vf_mul(step, vf_load(col_scale + j)), base);
        vf_store(y + j, v);
        most = vmax_with(most, v);
    }
    if (whole < n) {
        FN(dequantize)(y + whole, c + whole, n - whole, scale, zero, col_scale + whole, sums + whole, NULL, false);
        most = vmax_join(most, vmax_start(vf_set1(FN(max)(y + whole, n - whole))));
    }
    return vmax_end(most);
}

static void FN(set_int8)(st_kernels *k)
{
    k->quantize = FN(quantize);
    k->quantize_s8 = FN(quantize_s8);
    k->exp_u8 = FN(exp_u8);
    k->peaks = FN(peaks);
    k->pack_values = FN(pack_values);
    k->dequantize_max = FN(dequantize_max);
    k->dequantize = FN(dequantize);
}
