/* check_winograd.c: the two transforms of Winograd's F(2x2, 3x3), against the matrices B and A written out.
 *
 * Small integers: the same bits in any order. Reals: at most 4 roundings of sums of at most 16 terms.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kcheck.h"

static const double B[4][4] = { { 1, 0, -1, 0 }, { 0, 1, 1, 0 }, { 0, -1, 1, 0 }, { 0, 1, 0, -1 } };
static const double A[2][4] = { { 1, 1, 1, 0 }, { 0, 1, -1, -1 } };
static const double eps = FLT_EPSILON;

enum { GAP = 5 }; /* floats between rows, columns and planes that nobody may touch */

/* sum over (r, c) of left[r] right[c] x[r][c], and of the absolute values. */
static double both_sides(double *size, const double left[4], const double right[4], const float *const x[16], size_t i)
{
    double sum = 0.0;
    *size = 0.0;
    for (size_t j = 0; j < 16; j++) {
        const double term = left[j / 4] * right[j % 4] * (double)x[j][i];
        sum += term;
        *size += fabs(term);
    }
    return sum;
}

static void check_in(const st_kernels *k, size_t n, bool exact)
{
    if (!kc_begin("winograd_in n=%zu %s", n, exact ? "exact" : "real"))
        return;
    const size_t col_ld = n + GAP, row_ld = 4 * col_ld + GAP, plane = n + GAP;
    float *x = kc_floats(3 * row_ld + 3 * col_ld + n), *v = kc_floats(15 * plane + n);
    const float *tile[16];
    kc_fill(x, 3 * row_ld + 3 * col_ld + n, exact);
    kc_seal(x);
    for (size_t j = 0; j < 16; j++)
        tile[j] = x + j / 4 * row_ld + j % 4 * col_ld;
    KC_CALL(k->winograd_in(v, plane, x, row_ld, col_ld, n));
    for (size_t j = 0; j < 16 && !kc_failed(); j++)
        for (size_t i = 0; i < n && !kc_failed(); i++) {
            double size;
            const double want = both_sides(&size, B[j / 4], B[j % 4], tile, i);
            kc_near(j * plane + i, (double)v[j * plane + i], want, exact ? 0.0 : 2 * eps * size);
        }
    float untouched;
    memset(&untouched, 0x99, sizeof untouched);
    for (size_t j = 0; j < 15 && !kc_failed(); j++)
        if (memcmp(v + j * plane + n, &untouched, sizeof untouched) != 0)
            kc_fail("wrote beyond plane %zu", j);
    kc_end();
}

/* `wanted`: a bit per output. */
static void check_out(const st_kernels *k, size_t n, bool exact, unsigned wanted)
{
    if (!kc_begin("winograd_out n=%zu wanted=%u %s", n, wanted, exact ? "exact" : "real"))
        return;
    const size_t plane = n + GAP;
    float *m = kc_floats(15 * plane + n), *bias = kc_floats(n), *y[4];
    const float *planes[16];
    kc_fill(m, 15 * plane + n, exact);
    kc_fill(bias, n, exact);
    kc_seal(m);
    kc_seal(bias);
    for (size_t j = 0; j < 16; j++)
        planes[j] = m + j * plane;
    for (size_t j = 0; j < 4; j++)
        y[j] = wanted >> j & 1 ? kc_floats(n) : NULL;
    KC_CALL(k->winograd_out(y, m, plane, bias, n));
    for (size_t j = 0; j < 4 && !kc_failed(); j++)
        for (size_t i = 0; y[j] && i < n && !kc_failed(); i++) {
            double size;
            const double want = both_sides(&size, A[j / 2], A[j % 2], planes, i) + (double)bias[i];
            kc_near(i, (double)y[j][i], want, exact ? 0.0 : 3 * eps * (size + fabs((double)bias[i])));
        }
    kc_end();
}

void kc_winograd(const st_kernels *k)
{
    static const unsigned wanted[] = { 15, 1, 3, 5 }; /* whole tiles, and those at the end of an odd map */
    for (int place = 0; place < KC_N_PLACES; place++) {
        kc_set_place((kc_place)place);
        for (size_t s = 0; s <= kc_n_sizes; s++) {
            const size_t n = s == kc_n_sizes ? 0 : kc_sizes[s];
            for (int exact = 0; exact < 2; exact++) {
                check_in(k, n, exact != 0);
                for (size_t w = 0; w < sizeof wanted / sizeof wanted[0]; w++)
                    check_out(k, n, exact != 0, wanted[w]);
            }
        }
    }
}
