/* check_elementwise.c: kernels whose result at i depends on the operands at i (rope: on its pair).
 *
 * Three passes each: small integers, where every order of operations gives the same bits; reals, against double with a
 * bound from the number of roundings; special values.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kcheck.h"

typedef enum pass { EXACT, REAL, SPECIAL, N_PASSES } pass;
static const char *const pass_names[N_PASSES] = { "exact", "real", "special" };

enum { MAX_FLOATS = 2 * 5184 };
static float before[MAX_FLOATS], before2[MAX_FLOATS];
static const double eps = FLT_EPSILON; /* twice the largest relative error of one rounding */
static const double tiny = 0x1p-149;

/* The first 8 are safe to multiply without overflow. Elements `stride` apart walk through the list, so that two
 * operands with strides 1 and N_SPECIAL meet in all pairs. */
static const float special[] = { 0.0f,       -0.0f,   INFINITY, -INFINITY, NAN, 1e-40f,
                                 -0x1p-149f, FLT_MIN, FLT_MAX,  -FLT_MAX,  3.0f };
enum { N_SPECIAL = sizeof special / sizeof special[0], N_SAFE = 8 };

static void fill(float *p, size_t n, pass how, size_t stride, size_t n_special)
{
    if (how != SPECIAL) {
        kc_fill(p, n, how == EXACT);
        return;
    }
    for (size_t i = 0; i < n; i++)
        p[i] = special[i / stride % n_special];
}

static float *operand(float *copy, size_t n, pass how, size_t stride, size_t n_special)
{
    float *p = kc_floats(n);
    fill(p, n, how, stride, n_special);
    if (n > 0)
        memcpy(copy, p, n * sizeof *p);
    return p;
}

static void check_add(const st_kernels *k, size_t n, pass how)
{
    if (!kc_begin("add n=%zu %s", n, pass_names[how]))
        return;
    float *y = operand(before, n, how, 1, N_SPECIAL), *x = operand(before2, n, how, N_SPECIAL, N_SPECIAL);
    kc_seal(x);
    KC_CALL(k->add(y, x, n));
    for (size_t i = 0; i < n && kc_same(i, y[i], before[i] + before2[i]); i++)
        continue;
    kc_end();
}

typedef enum alias { APART, Y_IS_A, Y_IS_B, N_ALIASES } alias;

static void check_add3_as(const st_kernels *k, size_t n, pass how, const alias shared)
{
    if (!kc_begin("add3 n=%zu %s alias=%d", n, pass_names[how], (int)shared))
        return;
    float *const a = operand(before, n, how, 1, N_SPECIAL), *const b = operand(before2, n, how, N_SPECIAL, N_SPECIAL);
    float *const y = shared == Y_IS_A ? a : shared == Y_IS_B ? b : kc_floats(n);
    if (shared != Y_IS_A)
        kc_seal(a);
    if (shared != Y_IS_B)
        kc_seal(b);
    KC_CALL(k->add3(y, a, b, n));
    for (size_t i = 0; i < n && kc_same(i, y[i], before[i] + before2[i]); i++)
        continue;
    kc_end();
}

static void check_add3(const st_kernels *k, size_t n, pass how)
{
    for (int shared = APART; shared < N_ALIASES; shared++)
        check_add3_as(k, n, how, (alias)shared);
}

static void check_scale(const st_kernels *k, size_t n, pass how)
{
    static const float factors[] = { -0.5f, 0.0f, 1.7f };
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        if (!kc_begin("scale n=%zu %s by=%g", n, pass_names[how], (double)factors[f]))
            continue;
        float *y = operand(before, n, how, 1, N_SPECIAL);
        KC_CALL(k->scale(y, factors[f], n));
        for (size_t i = 0; i < n && kc_same(i, y[i], before[i] * factors[f]); i++)
            continue;
        kc_end();
    }
}

static void check_relu(const st_kernels *k, size_t n, pass how)
{
    if (!kc_begin("relu n=%zu %s", n, pass_names[how]))
        return;
    float *x = operand(before, n, how, 1, N_SPECIAL);
    KC_CALL(k->relu(x, n));
    for (size_t i = 0; i < n && kc_same(i, x[i], before[i] < 0.0f ? 0.0f : before[i]); i++)
        continue;
    kc_end();
}

static double gelu_exact(double x)
{
    if (isinf(x))
        return x > 0.0 ? x : 0.0;
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* Integers from 16 on have a GELU that is exact in float: themselves or 0. */
static void compare_gelu(const float *x, size_t n, pass how)
{
    for (size_t i = 0; i < n; i++) {
        const double v = (double)before[i], exact = gelu_exact(v);
        const double want = how == EXACT ? (double)(float)exact : exact,
                     bound = how == EXACT ? 0.0 : 2e-7 * fmax(fabs(v), 1.0);
        if (!kc_near(i, (double)x[i], want, isfinite(v) ? bound : 0.0))
            return;
    }
}

static void check_gelu(const st_kernels *k, size_t n, pass how)
{
    if (!kc_begin("gelu n=%zu %s", n, pass_names[how]))
        return;
    float *x = operand(before, n, how, 1, N_SPECIAL);
    for (size_t i = 0; how != SPECIAL && i < n; i++)
        before[i] = x[i] =
            how == EXACT ? (float)(kc_int(0, 1) ? kc_int(16, 1000) : -kc_int(16, 1000)) : (float)kc_uniform(-7.0, 7.0);
    KC_CALL(k->gelu(x, n));
    compare_gelu(x, n, how);
    kc_end();
}

/* The same number gives the same bits wherever in the row it lies. */
static void check_gelu_places(const st_kernels *k, size_t n)
{
    if (!kc_begin("gelu n=%zu places", n))
        return;
    float *x = kc_floats(n), *alone = kc_floats(7);
    for (size_t i = 0; i < 7; i++)
        alone[i] = before[i] = (float)kc_uniform(-6.0, 6.0);
    for (size_t i = 0; i < n; i++)
        x[i] = before[i % 7];
    KC_CALL(k->gelu(x, n); for (size_t i = 0; i < 7; i++) k->gelu(alone + i, 1));
    for (size_t i = 0; i < n && kc_same(i, x[i], alone[i % 7]); i++)
        continue;
    kc_end();
}

static void check_rope(const st_kernels *k, size_t n, pass how)
{
    if (!kc_begin("rope n=%zu %s", n, pass_names[how]))
        return;
    float *x = operand(before, 2 * n, how, 1, N_SAFE), *cs = operand(before2, 2 * n, how, N_SAFE, N_SAFE);
    kc_seal(cs);
    KC_CALL(k->rope(x, cs, n));
    for (size_t i = 0; i < 2 * n; i++) {
        const double even = (double)before[i & ~(size_t)1], odd = (double)before[i | 1];
        const double c = (double)before2[i & ~(size_t)1], s = (double)before2[i | 1];
        const double p = i % 2 == 0 ? even * c : odd * c, q = i % 2 == 0 ? -odd * s : even * s;
        /* both products and the sum are rounded: eps/2 each, |p + q| <= |p| + |q| */
        const double bound = how == EXACT ? 0.0 : eps * 1.001 * (fabs(p) + fabs(q)) + 2 * tiny;
        if (!kc_near(i, (double)x[i], p + q, bound))
            break;
    }
    kc_end();
}

/* Every number of 16 bits but NaN, which must stay one. */
static void check_widen(const st_kernels *k, size_t n, bool brain)
{
    if (!kc_begin("widen n=%zu %s", n, brain ? "bf16" : "fp16"))
        return;
    uint16_t *x = (uint16_t *)(void *)kc_floats((n + 1) / 2);
    float *got = kc_floats(n), *want = kc_floats(n);
    for (size_t at = 0; at < 65536 && !kc_failed(); at += n) {
        for (size_t i = 0; i < n; i++)
            x[i] = (uint16_t)(at + i);
        KC_CALL(k->widen(got, x, n, brain));
        st_kernels_get(ST_CPU_REF)->widen(want, x, n, brain);
        for (size_t i = 0; i < n; i++) {
            const bool no_number = brain ? (x[i] & 0x7F80u) == 0x7F80u : (x[i] & 0x7C00u) == 0x7C00u;
            if (!no_number && !kc_same(i, got[i], want[i]))
                break;
        }
    }
    kc_end();
}

void kc_elementwise(const st_kernels *k)
{
    for (int brain = 0; brain < 2; brain++) {
        check_widen(k, 4096, brain);
        check_widen(k, 77, brain);
        check_widen(k, 3, brain);
    }
    static void (*const checks[])(const st_kernels *, size_t, pass) = { check_add,  check_add3, check_scale,
                                                                        check_relu, check_gelu, check_rope };
    for (int place = 0; place < KC_N_PLACES; place++) {
        kc_set_place((kc_place)place);
        for (size_t s = 0; s <= kc_n_sizes; s++) {
            const size_t n = s == kc_n_sizes ? 0 : kc_sizes[s];
            for (size_t c = 0; c < sizeof checks / sizeof checks[0]; c++) {
                for (int how = EXACT; how < N_PASSES; how++)
                    checks[c](k, n, (pass)how);
            }
            check_gelu_places(k, n);
        }
    }
}
