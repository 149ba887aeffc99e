/* check_reductions.c: kernels that look at a whole row: max, exp_sum, layer_norm, moments.
 *
 * Bounds of sums of n terms t are (2 + 2 sqrt n) eps sum |t|, the statistical form of the error of adding in any order.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kcheck.h"

enum { MAX_FLOATS = 5184 };
static float before[MAX_FLOATS];
static const double eps = FLT_EPSILON;
static double sum_factor(size_t n) { return (2.0 + 2.0 * sqrt((double)n)) * eps; }

/* ---------------------------------------------------------------- max */

static float max_of(const st_kernels *k, const float *x, size_t n)
{
    volatile float got = 0.0f;
    KC_CALL(got = k->max(x, n));
    return got;
}

/* The largest element at every place in turn (a few places in long rows). */
static void check_max(const st_kernels *k, size_t n)
{
    if (!kc_begin("max n=%zu", n))
        return;
    float *x = kc_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)kc_uniform(-9.0, -5.0);
    const size_t step = n > 128 ? n / 61 : 1;
    for (size_t at = 0; at < n; at += step) {
        const float old = x[at];
        x[at] = (float)kc_uniform(-4.0, -1.0);
        if (!kc_same(at, max_of(k, x, n), x[at]))
            break;
        x[at] = NAN;
        if (!kc_same(at, max_of(k, x, n), NAN))
            break;
        x[at] = INFINITY;
        if (!kc_same(at, max_of(k, x, n), INFINITY))
            break;
        x[at] = old;
    }
    for (size_t i = 0; i < n; i++)
        x[i] = -INFINITY;
    kc_same(0, max_of(k, x, n), -INFINITY);
    for (size_t i = 0; i < n; i++)
        x[i] = i % 2 ? -0.0f : -0x1p-149f;
    kc_same(0, max_of(k, x, n), n > 1 ? 0.0f : -0x1p-149f);
    kc_end();
}

/* ---------------------------------------------------------------- exp_sum */

static double ulp_of(double v)
{
    int e;
    frexp(v, &e);
    return ldexp(1.0, (e < -125 ? -125 : e) - FLT_MANT_DIG);
}

/* Compares x, the result, with exp of `before` - shift; the sum with what was stored. */
static void compare_exp(const float *x, size_t n, float shift, float sum, double max_ulp)
{
    double total = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double want = exp((double)(before[i] - shift));
        const bool flushed = want < 0x1p-126 && x[i] == 0.0f;
        total += (double)x[i];
        if (!flushed && !kc_near(i, (double)x[i], want, max_ulp * ulp_of(want)))
            return;
    }
    kc_near(n, (double)sum, total, max_ulp > 0.0 ? sum_factor(n) * total : 0.0);
}

static void run_exp_sum(const st_kernels *k, float *x, size_t n, float shift, double max_ulp)
{
    volatile float sum = 0.0f;
    if (n > 0)
        memcpy(before, x, n * sizeof *x);
    KC_CALL(sum = k->exp_sum(x, n, shift));
    compare_exp(x, n, shift, sum, max_ulp);
}

/* Exact: elements are shift or -inf, so results are 1 or 0 and their sum is a count. */
static void check_exp_sum_exact(const st_kernels *k, size_t n)
{
    if (!kc_begin("exp_sum n=%zu exact", n))
        return;
    float *x = kc_floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = kc_int(0, 1) ? 3.25f : -INFINITY;
    run_exp_sum(k, x, n, 3.25f, 0.0);
    kc_end();
}

static void check_exp_sum_real(const st_kernels *k, size_t n)
{
    static const double depths[] = { 1.0, 20.0, 90.0, 200.0 };
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
        if (!kc_begin("exp_sum n=%zu depth=%g", n, depths[d]))
            continue;
        float *x = kc_floats(n);
        const float shift = (float)kc_uniform(-5.0, 5.0);
        for (size_t i = 0; i < n; i++)
            x[i] = shift - (float)kc_uniform(0.0, depths[d]);
        run_exp_sum(k, x, n, shift, 3.0);
        kc_end();
    }
}

/* One large value among small ones; the values around where the result leaves the normal numbers; infinity; NaN stays
 * in its place. */
static void check_exp_sum_special(const st_kernels *k, size_t n)
{
    static const float special[] = { -0.0f,      0.0f,      -FLT_MIN,     -1e-40f,     -87.3365f,  -87.33654f,
                                     -87.33655f, -88.0f,    -103.9f,      -104.0f,     -1000.0f,   -1e30f,
                                     -FLT_MAX,   -INFINITY, -0.34657359f, -0.6931472f, -1.0397208f };
    if (kc_begin("exp_sum n=%zu special", n)) {
        float *x = kc_floats(n);
        for (size_t i = 0; i < n; i++)
            x[i] = special[i % (sizeof special / sizeof special[0])];
        run_exp_sum(k, x, n, 0.0f, 3.0);
        kc_end();
    }
    if (kc_begin("exp_sum n=%zu nan", n)) {
        float *x = kc_floats(n);
        const size_t at = n ? (size_t)kc_int(0, (int)n - 1) : 0;
        for (size_t i = 0; i < n; i++)
            x[i] = i == at ? NAN : -1.0f;
        run_exp_sum(k, x, n, 0.0f, 3.0);
        kc_end();
    }
    if (kc_begin("exp_sum n=%zu one large", n)) {
        float *x = kc_floats(n);
        for (size_t i = 0; i < n; i++)
            x[i] = i == n / 2 ? 1e30f : (float)kc_uniform(-1.0, 1.0);
        run_exp_sum(k, x, n, 1e30f, 0.0);
        kc_end();
    }
}

/* The same number gives the same bits wherever in the row it lies. */
static void check_exp_sum_places(const st_kernels *k, size_t n)
{
    if (!kc_begin("exp_sum n=%zu places", n))
        return;
    float *x = kc_floats(n), *alone = kc_floats(7);
    for (size_t i = 0; i < 7; i++)
        alone[i] = before[i] = (float)kc_uniform(-20.0, 0.0);
    for (size_t i = 0; i < n; i++)
        x[i] = before[i % 7];
    KC_CALL(k->exp_sum(x, n, 0.0f); for (size_t i = 0; i < 7; i++) k->exp_sum(alone + i, 1, 0.0f));
    for (size_t i = 0; i < n && kc_same(i, x[i], alone[i % 7]); i++)
        continue;
    kc_end();
}

/* ---------------------------------------------------------------- layer_norm */

/* Errors of float arithmetic on the deviations d = x - mean, u = d / sqrt(var + eps): the mean is off by sum_factor
 * mean |d| (its rest is added back), var relatively by sum_factor + 3 roundings, so u by half of that, and there are
 * four more roundings of u gamma, one of the result. */
static void compare_layer_norm(const float *y, const float *x, size_t n, const float *gamma, const float *beta,
                               double var_eps)
{
    double mean = 0.0, var = 0.0, mean_abs = 0.0;
    for (size_t i = 0; i < n; i++)
        mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        var += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        mean_abs += fabs((double)x[i] - mean) / (double)n;
    }
    const double rstd = 1.0 / sqrt(var + var_eps);
    for (size_t i = 0; i < n; i++) {
        const double g = (double)gamma[i], u = ((double)x[i] - mean) * rstd, want = u * g + (double)beta[i];
        const double off = sum_factor(n) * mean_abs * rstd + (sum_factor(n) / 2 + 6 * eps) * fabs(u);
        if (!kc_near(i, (double)y[i], want, fabs(g) * off + eps * fabs(want)))
            return;
    }
}

static void check_layer_norm_at(const st_kernels *k, size_t n, double offset, const bool in_place)
{
    if (!kc_begin("layer_norm n=%zu offset=%g%s", n, offset, in_place ? " in place" : ""))
        return;
    float *const x = kc_floats(n), *const y = in_place ? x : kc_floats(n), *const gamma = kc_floats(n),
                 *const beta = kc_floats(n);
    kc_fill(gamma, n, false);
    kc_fill(beta, n, false);
    for (size_t i = 0; i < n; i++)
        before[i] = x[i] = (float)(offset + kc_uniform(-2.0, 2.0));
    if (!in_place)
        kc_seal(x);
    kc_seal(gamma);
    kc_seal(beta);
    KC_CALL(k->layer_norm(y, x, n, gamma, beta, 1e-5f));
    compare_layer_norm(y, before, n, gamma, beta, (double)1e-5f);
    kc_end();
}

static void check_layer_norm_real(const st_kernels *k, size_t n)
{
    static const double offsets[] = { 0.0, 3.0, -1000.0 }; /* a mean that is large beside the deviations */
    for (size_t o = 0; o < sizeof offsets / sizeof offsets[0]; o++) {
        check_layer_norm_at(k, n, offsets[o], false);
        check_layer_norm_at(k, n, offsets[o], true);
    }
}

/* Exact: half the row is 4 above, half 4 below 16, eps is 0: y = +-gamma + beta. Only for even n. */
static void check_layer_norm_exact(const st_kernels *k, size_t n)
{
    if (n % 2 != 0 || !kc_begin("layer_norm n=%zu exact", n))
        return;
    float *x = kc_floats(n), *y = kc_floats(n), *gamma = kc_floats(n), *beta = kc_floats(n);
    kc_fill(gamma, n, true);
    kc_fill(beta, n, true);
    for (size_t i = 0; i < n; i++)
        x[i] = i % 2 ? 20.0f : 12.0f;
    for (size_t i = 0; i < n; i++) { /* shuffled */
        const size_t j = (size_t)kc_int(0, (int)n - 1);
        const float t = x[i];
        x[i] = x[j];
        x[j] = t;
    }
    kc_seal(x);
    KC_CALL(k->layer_norm(y, x, n, gamma, beta, 0.0f));
    for (size_t i = 0; i < n && kc_same(i, y[i], (x[i] > 16.0f ? gamma[i] : -gamma[i]) + beta[i]); i++)
        continue;
    kc_end();
}

/* Equal values have no deviation: y = beta. NaN or infinity anywhere makes the whole row NaN. */
static void check_layer_norm_special(const st_kernels *k, size_t n)
{
    static const float fills[] = { 0.0f, 7.0f, -3e4f, NAN, INFINITY };
    for (size_t f = 0; f < sizeof fills / sizeof fills[0]; f++) {
        if (!kc_begin("layer_norm n=%zu of %g", n, (double)fills[f]))
            continue;
        float *x = kc_floats(n), *y = kc_floats(n), *gamma = kc_floats(n), *beta = kc_floats(n);
        kc_fill(gamma, n, false);
        kc_fill(beta, n, false);
        for (size_t i = 0; i < n; i++)
            x[i] = isfinite(fills[f]) ? fills[f] : 1.0f;
        x[(size_t)kc_int(0, (int)n - 1)] = fills[f];
        KC_CALL(k->layer_norm(y, x, n, gamma, beta, 1e-5f));
        for (size_t i = 0; i < n && kc_same(i, y[i], isfinite(fills[f]) ? beta[i] : NAN); i++)
            continue;
        kc_end();
    }
}

/* ---------------------------------------------------------------- moments */

static void compare_moments(const float *x, size_t n, bool exact, double shift, double sum, double sq)
{
    long double want = 11.0L, want_sq = -5.0L, mag = 11.0L, mag_sq = 5.0L;
    for (size_t i = 0; i < n; i++) {
        const long double d = (long double)x[i] - (long double)shift;
        want += (long double)x[i];
        mag += fabsl((long double)x[i]);
        want_sq += d * d;
        mag_sq += d * d;
    }
    const double bound = exact ? 0.0 : (2.0 + 2.0 * sqrt((double)n + 1.0)) * DBL_EPSILON;
    kc_near(0, sum, (double)want, bound * (double)mag);
    kc_near(1, sq, (double)want_sq, bound * (double)mag_sq);
}

/* Adds to what is there: 11 and -5. */
static void check_moments_pass(const st_kernels *k, size_t n, bool exact, double shift)
{
    if (!kc_begin("moments n=%zu %s", n, exact ? "exact" : "real"))
        return;
    float *x = kc_floats(n);
    kc_fill(x, n, exact);
    kc_seal(x);
    double sum = 11.0, sq = -5.0;
    KC_CALL(k->moments(x, n, shift, &sum, &sq));
    compare_moments(x, n, exact, shift, sum, sq);
    kc_end();
}

static void check_moments(const st_kernels *k, size_t n)
{
    check_moments_pass(k, n, true, 3.0);
    check_moments_pass(k, n, false, 0.3);
}

void kc_reductions(const st_kernels *k)
{
    for (int place = 0; place < KC_N_PLACES; place++) {
        kc_set_place((kc_place)place);
        for (size_t s = 0; s < kc_n_sizes; s++) {
            const size_t n = kc_sizes[s];
            check_max(k, n);
            check_exp_sum_exact(k, n);
            check_exp_sum_real(k, n);
            check_exp_sum_special(k, n);
            check_exp_sum_places(k, n);
            check_layer_norm_exact(k, n);
            check_layer_norm_real(k, n);
            check_layer_norm_special(k, n);
            check_moments(k, n);
        }
        check_exp_sum_exact(k, 0);
        check_moments(k, 0);
    }
}
