/* check_int8.c: the int8 kernels: every level must give the scalar ones' bits, and the product must be exact at its
 * extremes, where instructions that add pairs in 16 bits would saturate.
 */
#include <math.h>
#include <string.h>

#include "kcheck.h"

static const st_kernels *scalar(void) { return st_kernels_get(ST_CPU_REF); }

/* A buffer of n elements of `size` bytes with the guards of kc_floats. */
static void *bytes(size_t n, size_t size) { return kc_floats((n * size + sizeof(float) - 1) / sizeof(float)); }

typedef enum fill { FILL_RANDOM, FILL_LOWEST, FILL_HIGHEST, FILL_MIXED, FILL_ODD, N_FILLS } fill;

static void fill_product(uint8_t *a, size_t n_a, int8_t *b, size_t n_b, int u8_max, fill how)
{
    for (size_t i = 0; i < n_a; i++)
        a[i] = (uint8_t)(how == FILL_RANDOM ? kc_int(0, u8_max) : u8_max);
    for (size_t i = 0; i < n_b; i++) {
        const int extreme = how == FILL_LOWEST || (how == FILL_MIXED && i % 3) ? -128 : 127;
        b[i] = (int8_t)(how == FILL_RANDOM ? kc_int(-128, 127) : extreme);
        if (how == FILL_ODD && i % 5 == 0) /* sums that no float holds, once they are above 2^24 */
            b[i] = 126;
    }
}

/* What lies between rows of c keeps its filler. */
static void kc_gaps(const int32_t *c, size_t m, size_t n, size_t ldc)
{
    static const unsigned char filler[sizeof *c] = { 0x99, 0x99, 0x99, 0x99 };
    for (size_t i = 0; i + 1 < m && !kc_failed(); i++) {
        for (size_t j = n; j < ldc; j++)
            if (memcmp(c + i * ldc + j, filler, sizeof filler) != 0) kc_fail("c: the gap after row %zu was written", i);
    }
}

/* With B packed, in two pieces where it has more than one panel: the same. */
static void check_packed_product(const st_kernels *k, size_t m, size_t n, size_t depth, const uint8_t *a, size_t lda, const int8_t *b,
                                 size_t ldb, const int32_t *want, size_t ldc)
{
    const size_t n_c = (m - 1) * ldc + n, column = st_int8_depth(depth), half = (n / 2 + k->gemm_panel - 1) / k->gemm_panel * k->gemm_panel;
    const size_t split = half < n ? half : n;
    int8_t *packed = bytes(st_packed_floats(k, n, column / 4), 4);
    int32_t *c = bytes(n_c, sizeof *c);
    KC_CALL(k->gemm_s8_pack(packed, split, depth, b, ldb));
    if (split < n)
        KC_CALL(k->gemm_s8_pack(packed + split * column, n - split, depth, b + split * ldb, ldb));
    KC_CALL(k->gemm_u8s8_packed(m, split, depth, a, lda, packed, c, ldc));
    if (split < n)
        KC_CALL(k->gemm_u8s8_packed(m, n - split, depth, a, lda, packed + split * column, c + split, ldc));
    kc_gaps(c, m, n, ldc);
    for (size_t i = 0; i < n_c && !kc_failed(); i++) {
        if (i % ldc < n && c[i] != want[i])
            kc_fail("packed, at %zu, %zu: got %d, want %d", i / ldc, i % ldc, (int)c[i], (int)want[i]);
    }
}

/* gap: bytes between rows of a. */
static void check_product(const st_kernels *k, size_t m, size_t n, size_t depth, size_t gap, fill how)
{
    if (kc_opts.small && m * n * depth > KC_SMALL) {
        kc_left_out();
        return;
    }
    if (!kc_begin("gemm_u8s8 m=%zu n=%zu k=%zu gap=%zu fill=%d", m, n, depth, gap, (int)how))
        return;
    const size_t lda = depth + gap, ldb = depth + 5, ldc = n + 1;
    uint8_t *a = bytes((m - 1) * lda + depth, 1);
    int8_t *b = bytes(n * ldb, 1);
    int32_t *c = bytes((m - 1) * ldc + n, sizeof *c);
    fill_product(a, (m - 1) * lda + depth, b, n * ldb, k->u8_max, how);
    KC_CALL(k->gemm_u8s8(m, n, depth, a, lda, b, ldb, c, ldc));
    for (size_t i = 0; i < m && !kc_failed(); i++) {
        for (size_t j = 0; j < n && !kc_failed(); j++) {
            int64_t want = 0;
            for (size_t kk = 0; kk < depth; kk++)
                want += a[i * lda + kk] * b[j * ldb + kk];
            if (c[i * ldc + j] != want)
                kc_fail("at %zu, %zu: got %d, want %lld", i, j, (int)c[i * ldc + j], (long long)want);
        }
    }
    kc_gaps(c, m, n, ldc);
    check_packed_product(k, m, n, depth, a, lda, b, ldb, c, ldc);
    kc_end();
}

static void check_quantize(const st_kernels *k, size_t n, bool smooth_too)
{
    if (!kc_begin("quantize n=%zu smooth=%d", n, (int)smooth_too))
        return;
    float *x = kc_floats(n), *smooth = kc_floats(n);
    uint8_t *got = bytes(n, 1), *want = bytes(n, 1);
    for (int shape = 0; shape < 5 && !kc_failed(); shape++) {
        kc_fill(x, n, false);
        kc_fill(smooth, n, false);
        for (size_t i = 0; i < n; i++) {
            if (shape == 1) x[i] = fabsf(x[i]);         /* as after ReLU */
            if (shape == 2) x[i] = 0.0f;
            if (shape == 3) x[i] = i % 7 ? x[i] : 50.0f * x[i]; /* outlier channels */
        }
        if (shape == 4) x[n - 1] = n % 2 ? NAN : INFINITY;
        float got_scale = 0.0f, want_scale = 0.0f;
        int32_t got_zero = -1, want_zero = -1;
        KC_CALL(k->quantize(got, &got_scale, &got_zero, x, smooth_too ? smooth : NULL, n, k->u8_max));
        scalar()->quantize(want, &want_scale, &want_zero, x, smooth_too ? smooth : NULL, n, k->u8_max);
        kc_same(n, got_scale, want_scale);
        if (shape == 4) {
            if (!isnan(got_scale)) kc_fail("NaN or infinity came out as scale %g", (double)got_scale);
            continue;
        }
        if (got_zero != want_zero) kc_fail("zero point %d, want %d", (int)got_zero, (int)want_zero);
        for (size_t i = 0; i < n && !kc_failed(); i++) {
            const float v = smooth_too ? x[i] * smooth[i] : x[i], back = got_scale * (float)(got[i] - got_zero);
            if (got[i] != want[i] || got[i] > k->u8_max) kc_fail("at %zu: got %u, want %u", i, got[i], want[i]);
            kc_near(i, (double)back, (double)v, 0.502 * (double)got_scale);
        }
    }
    kc_end();
}

static void check_quantize_s8(const st_kernels *k, size_t n)
{
    if (!kc_begin("quantize_s8 n=%zu", n))
        return;
    float *x = kc_floats(n);
    int8_t *got = bytes(n, 1), *want = bytes(n, 1);
    for (int shape = 0; shape < 4 && !kc_failed(); shape++) {
        float got_scale = 0.0f, want_scale = 0.0f;
        int32_t got_sum = 0, want_sum = 0;
        kc_fill(x, n, false);
        for (size_t i = 0; i < n && shape == 1; i++) x[i] = 0.0f;
        for (size_t i = 0; i < n && shape == 2; i++) x[i] = i % 7 ? x[i] : -50.0f * x[i];
        if (shape == 3) x[n / 2] = n % 2 ? NAN : -INFINITY;
        KC_CALL(k->quantize_s8(got, &got_scale, &got_sum, x, n));
        scalar()->quantize_s8(want, &want_scale, &want_sum, x, n);
        kc_same(n, got_scale, want_scale);
        if (shape == 3) {
            if (!isnan(got_scale)) kc_fail("NaN or infinity came out as scale %g", (double)got_scale);
            continue;
        }
        if (got_sum != want_sum) kc_fail("sum %d, want %d", (int)got_sum, (int)want_sum);
        for (size_t i = 0; i < n && !kc_failed(); i++) {
            if (got[i] != want[i] || got[i] == -128) kc_fail("at %zu: got %d, want %d", i, got[i], want[i]);
            kc_near(i, (double)got_scale * got[i], (double)x[i], 0.502 * (double)got_scale);
        }
    }
    kc_end();
}

/* A byte may differ from the scalar one's where the exponential lies within its error of a half. */
static void check_exp_u8(const st_kernels *k, size_t n)
{
    if (!kc_begin("exp_u8 n=%zu", n))
        return;
    float *x = kc_floats(n);
    uint8_t *got = bytes(n, 1);
    float most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)kc_uniform(-9.0, 3.0);
        most = x[i] > most ? x[i] : most;
    }
    if (n > 1) x[0] = -INFINITY;
    int32_t sum = 0, want = 0;
    KC_CALL(sum = k->exp_u8(got, x, n, most, k->u8_max));
    for (size_t i = 0; i < n && !kc_failed(); i++) {
        kc_near(i, (double)got[i], (double)k->u8_max * exp((double)(x[i] - most)), 0.5001);
        want += got[i];
    }
    if (sum != want) kc_fail("the bytes' sum is %d, not %d", (int)want, (int)sum);
    for (size_t i = 0; i < n; i++)
        x[i] = NAN; /* any bytes, but their sum */
    KC_CALL(sum = k->exp_u8(got, x, n, NAN, k->u8_max));
    want = 0;
    for (size_t i = 0; i < n; i++)
        want += got[i];
    if (sum != want) kc_fail("of NaN: the bytes' sum is %d, not %d", (int)want, (int)sum);
    kc_end();
}

/* Exact: a magnitude, or NaN, is one of its inputs'. */
static void check_peaks(const st_kernels *k, size_t n)
{
    if (!kc_begin("peaks n=%zu", n))
        return;
    float *x = kc_floats(n), *got = kc_floats(n), *want = kc_floats(n);
    kc_fill(x, n, false);
    kc_fill(want, n, false);
    for (size_t i = 0; i < n; i++)
        want[i] = fabsf(want[i]);
    x[n / 2] = n % 2 ? NAN : -INFINITY;
    if (n > 3) want[n - 2] = NAN;
    memcpy(got, want, n * sizeof *got);
    KC_CALL(k->peaks(got, x, n));
    scalar()->peaks(want, x, n);
    for (size_t i = 0; i < n; i++)
        if (!kc_same(i, got[i], want[i]))
            break;
    kc_end();
}

/* What a product with the packed values gives is what one with the scalar level's bytes gives. */
static void check_pack_values(const st_kernels *k, size_t rows, size_t n)
{
    if (!kc_begin("pack_values %zux%zu", rows, n))
        return;
    const size_t ld = n + 3, depth = st_int8_depth(rows);
    float *x = kc_floats((rows - 1) * ld + n), *inverse = kc_floats(n);
    uint8_t *ones = bytes(depth * depth, 1);
    int8_t *packed = bytes(st_packed_floats(k, n, depth), 1), *want = bytes(n * depth, 1);
    int32_t *got = bytes(rows * n, sizeof *got);
    kc_fill(x, (rows - 1) * ld + n, false);
    for (size_t j = 0; j < n; j++)
        inverse[j] = (float)kc_uniform(1.0, 127.0);
    for (size_t i = 0; i < rows; i++) { /* the unit matrix: the product is the bytes */
        for (size_t r = 0; r < rows; r++)
            ones[i * rows + r] = i == r;
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < n; j++)
            x[i * ld + j] = (float)kc_uniform(-1.0, 1.0) * 127.0f / inverse[j];
    }
    KC_CALL(k->pack_values(packed, rows, n, x, ld, inverse));
    scalar()->pack_values(want, rows, n, x, ld, inverse);
    KC_CALL(k->gemm_u8s8_packed(rows, n, rows, ones, rows, packed, got, n));
    for (size_t i = 0; i < rows * n && !kc_failed(); i++) {
        if (got[i] != want[i % n * depth + i / n]) kc_fail("row %zu, channel %zu: %d, want %d", i / n, i % n, (int)got[i], want[i % n * depth + i / n]);
    }
    kc_end();
}

static void check_dequantize_max(const st_kernels *k, size_t n)
{
    if (!kc_begin("dequantize_max n=%zu", n))
        return;
    int32_t *c = bytes(n, 4), *sums = bytes(n, 4);
    float *scale = kc_floats(n), *got = kc_floats(n), *want = kc_floats(n);
    for (int shape = 0; shape < 3 && !kc_failed(); shape++) {
        kc_fill(scale, n, false);
        for (size_t i = 0; i < n; i++) {
            c[i] = kc_int(-(1 << 28), shape == 1 ? -1000000 : 1 << 28);
            sums[i] = kc_int(-(1 << 10), 1 << 10);
        }
        if (shape == 2) scale[n / 2] = NAN;
        volatile float most = 0.0f; /* volatile: KC_CALL may jump */
        KC_CALL(most = k->dequantize_max(got, c, n, 0.01f, 131, scale, sums));
        const float want_most = scalar()->dequantize_max(want, c, n, 0.01f, 131, scale, sums);
        if (shape == 2) {
            if (!isnan(most)) kc_fail("NaN came out as %g", (double)most);
            continue;
        }
        kc_same(n, most, want_most);
        for (size_t i = 0; i < n; i++)
            if (!kc_same(i, got[i], want[i]))
                break;
    }
    kc_end();
}

static void check_dequantize(const st_kernels *k, size_t n, bool accumulate, bool with_bias)
{
    if (!kc_begin("dequantize n=%zu accumulate=%d bias=%d", n, (int)accumulate, (int)with_bias))
        return;
    int32_t *c = bytes(n, 4), *sums = bytes(n, 4);
    float *scale = kc_floats(n), *bias = kc_floats(n), *got = kc_floats(n), *want = kc_floats(n);
    kc_fill(scale, n, false);
    kc_fill(bias, n, false);
    kc_fill(want, n, false);
    memcpy(got, want, n * sizeof *got);
    for (size_t i = 0; i < n; i++) {
        c[i] = kc_int(-(1 << 28), 1 << 28);
        sums[i] = kc_int(-(1 << 20), 1 << 20);
    }
    KC_CALL(k->dequantize(got, c, n, 0.01f, 131, scale, sums, with_bias ? bias : NULL, accumulate));
    scalar()->dequantize(want, c, n, 0.01f, 131, scale, sums, with_bias ? bias : NULL, accumulate);
    for (size_t i = 0; i < n; i++)
        if (!kc_same(i, got[i], want[i]))
            break;
    kc_end();
}

void kc_int8(const st_kernels *k)
{
    static const size_t shapes[][3] = { { 1, 1, 1 },    { 1, 64, 7 },     { 3, 5, 31 },      { 17, 33, 128 },
                                        { 48, 96, 64 }, { 33, 40, 65 },   { 65, 48, 1024 },  { 64, 33, 1090 },
                                        { 130, 70, 4736 }, { 2, 3, ST_MAX_INT8_DEPTH } };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int how = 0; how < N_FILLS; how++)
            check_product(k, shapes[i][0], shapes[i][1], shapes[i][2], how % 2 ? 3 : 0, (fill)how);
    }
    for (int place = 0; place < KC_N_PLACES; place++) { /* rows that lie as far apart as copied ones, anywhere */
        kc_set_place((kc_place)place);
        check_product(k, 37, 33, 4 * ST_GEMM_STEP - 64, 64, FILL_RANDOM);
        check_product(k, 33, 65, 128, 0, FILL_ODD);
    }
    kc_set_place(KC_AT_END);
    for (size_t i = 0; i < kc_n_sizes; i++) {
        check_quantize(k, kc_sizes[i], i % 2);
        check_quantize(k, kc_sizes[i], i % 2 == 0);
        check_quantize_s8(k, kc_sizes[i]);
        check_exp_u8(k, kc_sizes[i]);
        check_peaks(k, kc_sizes[i]);
        check_dequantize_max(k, kc_sizes[i]);
        if (kc_sizes[i] < 200) check_pack_values(k, kc_sizes[i], kc_sizes[kc_n_sizes - 1 - i] % 90 + 1);
        for (int way = 0; way < 4; way++)
            check_dequantize(k, kc_sizes[i], way % 2, way / 2);
    }
}
