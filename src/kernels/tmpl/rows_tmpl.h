/* rows_tmpl.h: every kernel but the matrix product, written once in the words of simd_<level>.h, which comes first and
 * gives
 *   FN(op)             the name of an operation at this level
 *   VF_N, vf, vf_*     the vector of floats
 *   VD_N, vd, vd_*     the vector of doubles, half as many
 *   vmax, vmax_*       the running maximum
 * Legal with simd_avx2.h, simd_avx512.h and simd_neon.h.
 *
 * Elementwise kernels treat the tail as one more vector with some lanes off, so an element's bits depend on neither its
 * place in the row nor the row's length. Sums go over four running vectors, then over lanes: an order that depends on n
 * alone.
 */
#include <float.h>
#include <math.h>

/* exp(d), d <= 0: d = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by a polynomial (minimax, relative error 3.1e-9), times
 * 2^n. Below ln(2^-126) the answer is 0, which keeps denormals, slow on many CPUs, out. At most 0.89 ulp from exact
 * (every third float from -90 to 0 was tried). */
static inline vf FN(exp_neg)(vf d)
{
    /* 1.5 * 2^23: what is added to it is rounded to an integer; 127: what vf_scale_pow2 wants */
    const vf to_int = vf_set1(12582912.0f + 127.0f);
    const vf biased = vf_fma(d, vf_set1(0x1.715476p+0f), to_int);
    const vf n = vf_sub(biased, to_int);
    vf r = vf_fma(n, vf_set1(-0x1.62e4p-1f), d); /* ln 2 in two parts; the first has 15 bits, so n * it is exact */
    r = vf_fma(n, vf_set1(-0x1.7f7d1cp-20f), r);
    vf p = vf_set1(0x1.6a2438p-10f);
    p = vf_fma(p, r, vf_set1(0x1.1239e2p-7f));
    p = vf_fma(p, r, vf_set1(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set1(0x1.555492p-3f));
    p = vf_fma(p, r, vf_set1(0x1.fffffcp-2f));
    p = vf_fma(p, r, vf_set1(1.0f));
    p = vf_fma(p, r, vf_set1(1.0f));
    return vf_zero_below(vf_scale_pow2(p, n, biased), d, vf_set1(-0x1.5d589ep+6f));
}

static float FN(exp_sum)(float *x, size_t n, float shift)
{
    const vf s = vf_set1(shift);
    vf sum0 = vf_set1(0.0f), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    size_t i = 0;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N) {
        const vf e0 = FN(exp_neg)(vf_sub(vf_load(x + i), s)), e1 = FN(exp_neg)(vf_sub(vf_load(x + i + VF_N), s));
        const vf e2 = FN(exp_neg)(vf_sub(vf_load(x + i + 2 * VF_N), s)),
                 e3 = FN(exp_neg)(vf_sub(vf_load(x + i + 3 * VF_N), s));
        vf_store(x + i, e0);
        vf_store(x + i + VF_N, e1);
        vf_store(x + i + 2 * VF_N, e2);
        vf_store(x + i + 3 * VF_N, e3);
        sum0 = vf_add(sum0, e0);
        sum1 = vf_add(sum1, e1);
        sum2 = vf_add(sum2, e2);
        sum3 = vf_add(sum3, e3);
    }
    for (; i + VF_N <= n; i += VF_N) {
        const vf e = FN(exp_neg)(vf_sub(vf_load(x + i), s));
        vf_store(x + i, e);
        sum0 = vf_add(sum0, e);
    }
    if (i < n) {
        const vf e = FN(exp_neg)(vf_sub(vf_load_n(x + i, n - i), s));
        vf_store_n(x + i, e, n - i);
        sum1 = vf_add(sum1, vf_first_n(e, n - i));
    }
    return vf_sum(vf_add(vf_add(sum0, sum1), vf_add(sum2, sum3)));
}

/* x Phi(x), Phi(x) = 1/2 + x R(x^2). R on [0, 5.2^2] is a polynomial in t = x^2 / (5.2^2 / 2) - 1, where its
 * coefficients add up to R(0): no cancellation. Minimax for an error of Phi below 1.4e-8; rounding brings the whole
 * to 1.67e-7 max(|x|, 1) (every third float was tried). Beyond 5.2, x R is clamped, and Phi is 0 or 1. */
static inline vf FN(gelu_one)(vf x)
{
    static const float r[] = { 0x1.b0d21ep-13f, -0x1.28a5c4p-11f, 0x1.34f06ap-11f, -0x1.fbda12p-11f, 0x1.5ea410p-9f,
                               -0x1.4cc8b0p-8f, 0x1.06407ap-7f,   -0x1.949f00p-7f, 0x1.2922b8p-6f,   -0x1.95becep-6f,
                               0x1.05d566p-5f,  -0x1.47115ap-5f,  0x1.99d060p-5f,  -0x1.157a88p-4f,  0x1.166cf2p-3f };
    x = vf_max_keep(vf_set1(-FLT_MAX), x); /* -inf times Phi = 0 would be NaN */
    const vf t = vf_fma(vf_min_keep(vf_set1(0x1.b0a3d8p+4f), vf_mul(x, x)), vf_set1(0x1.2ef566p-4f), vf_set1(-1.0f));
    vf p = vf_set1(r[0]);
    for (size_t i = 1; i < sizeof r / sizeof r[0]; i++)
        p = vf_fma(p, t, vf_set1(r[i]));
    const vf h = vf_min_keep(vf_set1(0.5f), vf_max_keep(vf_set1(-0.5f), vf_mul(x, p)));
    return vf_mul(x, vf_add(h, vf_set1(0.5f)));
}

static void FN(gelu)(float *x, size_t n)
{
    size_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        const vf g0 = FN(gelu_one)(vf_load(x + i)), g1 = FN(gelu_one)(vf_load(x + i + VF_N));
        vf_store(x + i, g0);
        vf_store(x + i + VF_N, g1);
    }
    for (; i + VF_N <= n; i += VF_N)
        vf_store(x + i, FN(gelu_one)(vf_load(x + i)));
    if (i < n)
        vf_store_n(x + i, FN(gelu_one)(vf_load_n(x + i, n - i)), n - i);
}

static float FN(row_sum)(const float *x, size_t n)
{
    vf sum0 = vf_set1(0.0f), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    size_t i = 0;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N) {
        sum0 = vf_add(sum0, vf_load(x + i));
        sum1 = vf_add(sum1, vf_load(x + i + VF_N));
        sum2 = vf_add(sum2, vf_load(x + i + 2 * VF_N));
        sum3 = vf_add(sum3, vf_load(x + i + 3 * VF_N));
    }
    for (; i + VF_N <= n; i += VF_N)
        sum0 = vf_add(sum0, vf_load(x + i));
    if (i < n)
        sum1 = vf_add(sum1, vf_load_n(x + i, n - i));
    return vf_sum(vf_add(vf_add(sum0, sum1), vf_add(sum2, sum3)));
}

/* *sum = sum of x - c, *sq = sum of its square */
static void FN(row_deviations)(float *sum, float *sq, const float *x, size_t n, float c)
{
    const vf mean = vf_set1(c);
    vf s0 = vf_set1(0.0f), s1 = s0, q0 = s0, q1 = s0;
    size_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        const vf d0 = vf_sub(vf_load(x + i), mean), d1 = vf_sub(vf_load(x + i + VF_N), mean);
        s0 = vf_add(s0, d0);
        s1 = vf_add(s1, d1);
        q0 = vf_fma(d0, d0, q0);
        q1 = vf_fma(d1, d1, q1);
    }
    for (; i < n; i += VF_N) {
        const vf d =
            i + VF_N <= n ? vf_sub(vf_load(x + i), mean) : vf_first_n(vf_sub(vf_load_n(x + i, n - i), mean), n - i);
        s0 = vf_add(s0, d);
        q0 = vf_fma(d, d, q0);
    }
    *sum = vf_sum(vf_add(s0, s1));
    *sq = vf_sum(vf_add(q0, q1));
}

static inline vf FN(normalised)(vf x, vf mean, vf rest, vf rstd, vf gamma, vf beta)
{
    return vf_fma(vf_mul(vf_sub(vf_sub(x, mean), rest), rstd), gamma, beta);
}

/* The mean that a float sum gives is off by its rounding; `rest`, the mean of the deviations from it, makes up for
 * that. */
static void FN(layer_norm)(float *y, const float *x, size_t n, const float *gamma, const float *beta, float eps)
{
    const double count = (double)n;
    const float mean = (float)((double)FN(row_sum)(x, n) / count);
    float sum, sq;
    FN(row_deviations)(&sum, &sq, x, n, mean);
    const double rest = (double)sum / count;
    const double var = (double)sq / count - rest * rest;
    const float rstd = (float)(1.0 / sqrt((var > 0.0 ? var : 0.0) + (double)eps));
    const vf vm = vf_set1(mean), vr = vf_set1((float)rest), vs = vf_set1(rstd);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(y + i, FN(normalised)(vf_load(x + i), vm, vr, vs, vf_load(gamma + i), vf_load(beta + i)));
    if (i < n) {
        const size_t m = n - i;
        const vf last =
            FN(normalised)(vf_load_n(x + i, m), vm, vr, vs, vf_load_n(gamma + i, m), vf_load_n(beta + i, m));
        vf_store_n(y + i, last, m);
    }
}

static void FN(add3)(float *y, const float *a, const float *b, size_t n)
{
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(y + i, vf_add(vf_load(a + i), vf_load(b + i)));
    if (i < n)
        vf_store_n(y + i, vf_add(vf_load_n(a + i, n - i), vf_load_n(b + i, n - i)), n - i);
}

static void FN(add)(float *y, const float *x, size_t n) { FN(add3)(y, y, x, n); }

static void FN(scale)(float *y, float s, size_t n)
{
    const vf vs = vf_set1(s);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(y + i, vf_mul(vf_load(y + i), vs));
    if (i < n)
        vf_store_n(y + i, vf_mul(vf_load_n(y + i, n - i), vs), n - i);
}

static void FN(relu)(float *x, size_t n)
{
    const vf zero = vf_set1(0.0f);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(x + i, vf_max_keep(zero, vf_load(x + i)));
    if (i < n)
        vf_store_n(x + i, vf_max_keep(zero, vf_load_n(x + i, n - i)), n - i);
}

/* The last vector overlaps the one before: a maximum does not mind. */
static float FN(max)(const float *x, size_t n)
{
    if (n < VF_N) {
        float best = x[0];
        for (size_t i = 1; i < n; i++)
            best = x[i] <= best || isnan(best) ? best : x[i];
        return best;
    }
    vmax m0 = vmax_start(vf_load(x)), m1 = m0, m2 = m0, m3 = m0;
    size_t i = VF_N;
    for (; i + 4 * VF_N <= n; i += 4 * VF_N) {
        m0 = vmax_with(m0, vf_load(x + i));
        m1 = vmax_with(m1, vf_load(x + i + VF_N));
        m2 = vmax_with(m2, vf_load(x + i + 2 * VF_N));
        m3 = vmax_with(m3, vf_load(x + i + 3 * VF_N));
    }
    for (; i + VF_N <= n; i += VF_N)
        m0 = vmax_with(m0, vf_load(x + i));
    m1 = vmax_with(m1, vf_load(x + n - VF_N));
    return vmax_end(vmax_join(vmax_join(m0, m1), vmax_join(m2, m3)));
}

static void FN(rope)(float *x, const float *cs, size_t n)
{
    const size_t n_floats = 2 * n;
    size_t i = 0;
    for (; i + VF_N <= n_floats; i += VF_N)
        vf_store(x + i, vf_rotate(vf_load(x + i), vf_load(cs + i)));
    if (i < n_floats) {
        const size_t m = n_floats - i;
        vf_store_n(x + i, vf_rotate(vf_load_n(x + i, m), vf_load_n(cs + i, m)), m);
    }
}

static void FN(moments)(const float *x, size_t n, double shift, double *sum, double *sq)
{
    const vd c = vd_set1(shift);
    vd s0 = vd_set1(0.0), s1 = s0, q0 = s0, q1 = s0;
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        const vf v = vf_load(x + i);
        const vd low = vd_low(v), high = vd_high(v), d0 = vd_sub(low, c), d1 = vd_sub(high, c);
        s0 = vd_add(s0, low);
        s1 = vd_add(s1, high);
        q0 = vd_fma(d0, d0, q0);
        q1 = vd_fma(d1, d1, q1);
    }
    double s = vd_sum(vd_add(s0, s1)), q = vd_sum(vd_add(q0, q1));
    for (; i < n; i++) {
        const double d = (double)x[i] - shift;
        s += (double)x[i];
        q += d * d;
    }
    *sum += s;
    *sq += q;
}

/* B' d of four values a row or a column apart, in place. */
static inline void FN(winograd_b)(vf *d0, vf *d1, vf *d2, vf *d3)
{
    const vf a = vf_sub(*d0, *d2), b = vf_add(*d1, *d2), c = vf_sub(*d2, *d1), d = vf_sub(*d1, *d3);
    *d0 = a, *d1 = b, *d2 = c, *d3 = d;
}

/* m is VF_N or the rest of the row. */
static inline vf FN(load_some)(const float *p, size_t m) { return m == VF_N ? vf_load(p) : vf_load_n(p, m); }
static inline void FN(store_some)(float *p, vf v, size_t m)
{
    if (m == VF_N)
        vf_store(p, v);
    else
        vf_store_n(p, v, m);
}

static inline void FN(winograd_in_some)(float *v, size_t plane, const float *x, size_t row_ld, size_t col_ld, size_t m)
{
    vf t[4][4];
    for (size_t c = 0; c < 4; c++) {
        for (size_t r = 0; r < 4; r++)
            t[r][c] = FN(load_some)(x + r * row_ld + c * col_ld, m);
        FN(winograd_b)(&t[0][c], &t[1][c], &t[2][c], &t[3][c]);
    }
    for (size_t r = 0; r < 4; r++) {
        FN(winograd_b)(&t[r][0], &t[r][1], &t[r][2], &t[r][3]);
        for (size_t c = 0; c < 4; c++)
            FN(store_some)(v + (4 * r + c) * plane, t[r][c], m);
    }
}

static void FN(winograd_in)(float *v, size_t plane, const float *x, size_t row_ld, size_t col_ld, size_t n)
{
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        FN(winograd_in_some)(v + i, plane, x + i, row_ld, col_ld, VF_N);
    if (i < n)
        FN(winograd_in_some)(v + i, plane, x + i, row_ld, col_ld, n - i);
}

static inline void FN(winograd_out_some)(float *const y[4], size_t i, const float *s, size_t plane, vf bias, size_t m)
{
    vf t[2][4];
    for (size_t c = 0; c < 4; c++) {
        const vf s1 = FN(load_some)(s + (4 + c) * plane, m), s2 = FN(load_some)(s + (8 + c) * plane, m);
        t[0][c] = vf_add(vf_add(FN(load_some)(s + c * plane, m), s1), s2);
        t[1][c] = vf_sub(vf_sub(s1, s2), FN(load_some)(s + (12 + c) * plane, m));
    }
    for (size_t r = 0; r < 2; r++) {
        if (y[2 * r])
            FN(store_some)(y[2 * r] + i, vf_add(vf_add(vf_add(t[r][0], t[r][1]), t[r][2]), bias), m);
        if (y[2 * r + 1])
            FN(store_some)(y[2 * r + 1] + i, vf_add(vf_sub(vf_sub(t[r][1], t[r][2]), t[r][3]), bias), m);
    }
}

static void FN(winograd_out)(float *const y[4], const float *m, size_t plane, const float *bias, size_t n)
{
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        FN(winograd_out_some)(y, i, m + i, plane, vf_load(bias + i), VF_N);
    if (i < n)
        FN(winograd_out_some)(y, i, m + i, plane, vf_load_n(bias + i, n - i), n - i);
}

static void FN(widen)(float *y, const uint16_t *x, size_t n, bool brain)
{
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(y + i, brain ? vf_from_brain(x + i) : vf_from_half(x + i));
    if (i < n) {
        uint16_t last[VF_N] = { 0 };
        memcpy(last, x + i, (n - i) * sizeof *x);
        vf_store_n(y + i, brain ? vf_from_brain(last) : vf_from_half(last), n - i);
    }
}

static void FN(set_rows)(st_kernels *k)
{
    k->layer_norm = FN(layer_norm);
    k->add = FN(add);
    k->add3 = FN(add3);
    k->scale = FN(scale);
    k->relu = FN(relu);
    k->gelu = FN(gelu);
    k->max = FN(max);
    k->exp_sum = FN(exp_sum);
    k->widen = FN(widen);
    k->rope = FN(rope);
    k->moments = FN(moments);
    k->winograd_in = FN(winograd_in);
    k->winograd_out = FN(winograd_out);
}
