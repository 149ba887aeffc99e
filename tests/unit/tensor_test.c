/* tensor_test.c: every tensor operation against the plainest code that says the same thing in double, for 1 and 3 threads, at shapes that straddle the tiles. */
#include "tensor/tensor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"

static st_arena arena;
static st_pool *pools[2];

static st_run run_on(size_t pool)
{
    st_arena_rewind(&arena, 0);
    return (st_run){.k = st_kernels_best(), .pool = pools[pool], .arena = &arena};
}

static int set_up(void **state)
{
    (void)state;
    if (st_arena_init(&arena, 64u << 20, NULL) != ST_OK) return -1;
    return st_pool_new(&pools[0], 1, NULL) != ST_OK || st_pool_new(&pools[1], 3, NULL) != ST_OK;
}

static int tear_down(void **state)
{
    (void)state;
    st_pool_free(pools[0]);
    st_pool_free(pools[1]);
    st_arena_free(&arena);
    return 0;
}

static uint32_t seed = 1;
static float *noise(size_t n)
{
    float *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    return x;
}

/* |got - want| <= bound for every element; `bound` comes from the length of the sums. */
static void assert_near(const float *got, const double *want, size_t n, double bound)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound)) fail_msg("element %zu: %.9g, expected %.9g (bound %.3g)", i, (double)got[i], want[i], bound);
}

/* Products of numbers in [-1, 1]: the statistical form of the rounding error of a sum of n. */
static double sum_bound(size_t n) { return (4.0 + 2.0 * sqrt((double)n)) * 1.2e-7 * (double)n * 0.5 + 1e-6; }

static void test_linear__against_double(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 5, 3}, {7, 33, 130}, {97, 64, 48}, {289, 17, 700}, {600, 40, 641}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const size_t rows = shapes[s][0], n_in = shapes[s][1], n_out = shapes[s][2];
        float *x = noise(rows * n_in), *w = noise(n_out * n_in), *b = noise(n_out), *base = noise(rows * n_out);
        const st_linear l = {.weight = w, .bias = b, .n_in = n_in, .n_out = n_out};
        double *want = malloc(rows * n_out * sizeof *want);
        assert_non_null(want);
        float *y[2];
        for (int mode = 0; mode < 3; mode++) { /* plain, ReLU, accumulate */
            for (size_t r = 0; r < rows; r++)
                for (size_t o = 0; o < n_out; o++) {
                    double sum = b[o];
                    for (size_t i = 0; i < n_in; i++) sum += (double)x[r * n_in + i] * (double)w[o * n_in + i];
                    want[r * n_out + o] = mode == 1 ? fmax(sum, 0.0) : mode == 2 ? sum + (double)base[r * n_out + o] : sum;
                }
            for (size_t p = 0; p < 2; p++) {
                const st_run run = run_on(p);
                y[p] = malloc(rows * n_out * sizeof *y[p]);
                assert_non_null(y[p]);
                memcpy(y[p], base, rows * n_out * sizeof *base);
                st_linear_run(&run, &l, x, n_in, rows, y[p], n_out, mode == 1 ? ST_ACT_RELU : ST_ACT_NONE, mode == 2);
                assert_near(y[p], want, rows * n_out, sum_bound(n_in));
            }
            assert_memory_equal(y[0], y[1], rows * n_out * sizeof(float)); /* the same bits for 1 and 3 threads */
            free(y[0]), free(y[1]);
        }
        free(x), free(w), free(b), free(base), free(want);
    }
}

static void test_feed_forward__chunks_rows(void **state)
{
    (void)state;
    const size_t rows = 1200, width = 6, hidden = 10; /* more rows than one chunk of hidden rows */
    float *x = noise(rows * width), *w1 = noise(hidden * width), *b1 = noise(hidden), *w2 = noise(width * hidden), *b2 = noise(width);
    float *y = noise(rows * width);
    const st_linear fc1 = {.weight = w1, .bias = b1, .n_in = width, .n_out = hidden}, fc2 = {.weight = w2, .bias = b2, .n_in = hidden, .n_out = width};
    double *want = malloc(rows * width * sizeof *want);
    assert_non_null(want);
    for (size_t r = 0; r < rows; r++) {
        double h[10];
        for (size_t j = 0; j < hidden; j++) {
            h[j] = b1[j];
            for (size_t i = 0; i < width; i++) h[j] += (double)x[r * width + i] * (double)w1[j * width + i];
            h[j] = h[j] / 2.0 * (1.0 + erf(h[j] / sqrt(2.0)));
        }
        for (size_t i = 0; i < width; i++) {
            double sum = (double)y[r * width + i] + (double)b2[i];
            for (size_t j = 0; j < hidden; j++) sum += h[j] * (double)w2[i * hidden + j];
            want[r * width + i] = sum;
        }
    }
    const st_run run = run_on(1);
    st_feed_forward(&run, &fc1, &fc2, ST_ACT_GELU, x, rows, y);
    assert_near(y, want, rows * width, 2e-5);
    free(x), free(w1), free(b1), free(w2), free(b2), free(y), free(want);
}

typedef struct attention_case {
    size_t n_seq, n_q, n_k, heads, d;
    bool causal, rpb;
} attention_case;

static void attention_reference(const attention_case *c, const float *q, const float *k, const float *v, const float *bx, const float *by, size_t grid,
                                double *out)
{
    const size_t width = c->heads * c->d;
    double *p = malloc(c->n_k * sizeof *p);
    assert_non_null(p);
    for (size_t s = 0; s < c->n_seq; s++)
        for (size_t h = 0; h < c->heads; h++)
            for (size_t i = 0; i < c->n_q; i++) {
                double max = -INFINITY, total = 0.0;
                for (size_t j = 0; j < c->n_k; j++) {
                    p[j] = 0.0;
                    for (size_t e = 0; e < c->d; e++)
                        p[j] += (double)q[(s * c->n_q + i) * width + h * c->d + e] * (double)k[(s * c->n_k + j) * width + h * c->d + e];
                    p[j] /= sqrt((double)c->d);
                    if (c->rpb) p[j] += (double)by[(h * c->n_q + i) * grid + j / grid] + (double)bx[(h * c->n_q + i) * grid + j % grid];
                    if (c->causal && j > i) p[j] = -INFINITY;
                    max = fmax(max, p[j]);
                }
                for (size_t j = 0; j < c->n_k; j++) total += p[j] = exp(p[j] - max);
                for (size_t e = 0; e < c->d; e++) {
                    double sum = 0.0;
                    for (size_t j = 0; j < c->n_k; j++) sum += p[j] * (double)v[(s * c->n_k + j) * width + h * c->d + e];
                    out[(s * c->n_q + i) * width + h * c->d + e] = sum / total;
                }
            }
    free(p);
}

static void test_attention__against_double(void **state)
{
    (void)state;
    /* 1225 keys: three blocks of keys, cut inside a row of the 35 x 35 grid. */
    static const attention_case cases[] = {{1, 1, 1, 1, 4, 0, 0}, {3, 16, 16, 3, 16, 0, 0}, {1, 97, 600, 2, 8, 0, 0}, {1, 32, 32, 3, 8, 1, 0},
                                           {1, 700, 700, 1, 4, 1, 0}, {1, 10, 1225, 4, 8, 0, 1}};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const attention_case *c = &cases[t];
        const size_t width = c->heads * c->d, grid = (size_t)lround(sqrt((double)c->n_k)), nq = c->n_seq * c->n_q, nk = c->n_seq * c->n_k;
        float *q = noise(nq * width), *k = noise(nk * width), *v = noise(nk * width), *bx = noise(c->heads * c->n_q * grid), *by = noise(c->heads * c->n_q * grid);
        for (size_t i = 0; i < nq * width; i++) q[i] *= 6.0f; /* peaked rows too */
        double *want = malloc(nq * width * sizeof *want);
        float *y[2] = {malloc(nq * width * sizeof(float)), malloc(nq * width * sizeof(float))};
        assert_true(want && y[0] && y[1]);
        attention_reference(c, q, k, v, bx, by, grid, want);
        for (size_t p = 0; p < 2; p++) {
            const st_run run = run_on(p);
            st_attention_run(&run, &(st_attention){.q = q, .k = k, .v = v, .out = y[p], .ld_q = width, .ld_k = width, .ld_v = width, .ld_out = width,
                                                   .heads = c->heads, .head_width = c->d, .n_seq = c->n_seq, .n_q = c->n_q, .n_k = c->n_k, .causal = c->causal,
                                                   .rpb_x = c->rpb ? bx : NULL, .rpb_y = c->rpb ? by : NULL, .grid = grid});
            assert_near(y[p], want, nq * width, 1e-5);
        }
        assert_memory_equal(y[0], y[1], nq * width * sizeof(float));
        free(q), free(k), free(v), free(bx), free(by), free(want), free(y[0]), free(y[1]);
    }
}

static void test_attention__huge_scores_stay_finite(void **state)
{
    (void)state;
    float q[4] = {1e4f, 0, 0, 0}, k[8] = {1e4f, 0, 0, 0, -1e4f, 0, 0, 0}, v[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[4];
    const st_run run = run_on(0);
    st_attention_run(&run, &(st_attention){.q = q, .k = k, .v = v, .out = y, .ld_q = 4, .ld_k = 4, .ld_v = 4, .ld_out = 4, .heads = 1, .head_width = 4, .n_seq = 1,
                                           .n_q = 1, .n_k = 2});
    for (size_t i = 0; i < 4; i++) assert_true(y[i] == v[i]); /* all weight on the first key */
}

static void conv_reference(const float *x, size_t h, size_t w, size_t n_in, const float *taps, const float *bias, size_t n_out, double *y)
{
    for (size_t r = 0; r < h; r++)
        for (size_t c = 0; c < w; c++)
            for (size_t o = 0; o < n_out; o++) {
                double sum = bias[o];
                for (size_t t = 0; t < 9; t++) {
                    const size_t rr = r + t / 3, cc = c + t % 3; /* one more than the row and column read */
                    if (rr < 1 || cc < 1 || rr > h || cc > w) continue;
                    for (size_t i = 0; i < n_in; i++) sum += (double)x[((rr - 1) * w + cc - 1) * n_in + i] * (double)taps[(t * n_out + o) * n_in + i];
                }
                y[(r * w + c) * n_out + o] = sum;
            }
}

/* What the binder makes of taps [9, n_out, n_in]. */
static float *filters_of(const float *taps, size_t n_in, size_t n_out)
{
    const size_t n = n_out * n_in;
    float *published = malloc(9 * n * sizeof *published), *filters = malloc(16 * n * sizeof *filters);
    assert_non_null(published);
    assert_non_null(filters);
    for (size_t i = 0; i < 9 * n; i++) published[i % n * 9 + i / n] = taps[i];
    st_conv3x3_filters(filters, published, n_in, n_out);
    free(published);
    return filters;
}

static void test_conv3x3__against_double(void **state)
{
    (void)state;
    static const size_t shapes[][4] = {{1, 1, 3, 2}, {2, 3, 4, 5}, {40, 40, 8, 6}, {6, 600, 3, 4}};
    for (size_t s = 0; s < 4; s++) {
        const size_t h = shapes[s][0], w = shapes[s][1], n_in = shapes[s][2], n_out = shapes[s][3];
        float *x = noise(h * w * n_in), *taps = noise(9 * n_in * n_out), *bias = noise(n_out), *y = noise(h * w * n_out);
        double *want = malloc(h * w * n_out * sizeof *want);
        assert_non_null(want);
        conv_reference(x, h, w, n_in, taps, bias, n_out, want);
        const st_run run = run_on(1);
        float *filters = filters_of(taps, n_in, n_out);
        st_conv3x3_run(&run, &(st_conv3x3){filters, bias, n_in, n_out}, &(st_conv_input){x, NULL, h, w}, y);
        assert_near(y, want, h * w * n_out, sum_bound(9 * n_in));
        free(x), free(taps), free(filters), free(bias), free(y), free(want);
    }
}

static void test_conv3x3__reads_upsampled_plus_skip(void **state)
{
    (void)state;
    const size_t h = 12, w = 8, n = 4;
    float *low = noise(h / 2 * (w / 2) * n), *skip = noise(h * w * n), *taps = noise(9 * n * n), *bias = noise(n), *y = noise(h * w * n), *x = noise(h * w * n);
    double *want = malloc(h * w * n * sizeof *want);
    assert_non_null(want);
    for (size_t r = 0; r < h; r++)
        for (size_t c = 0; c < w; c++)
            for (size_t i = 0; i < n; i++) x[(r * w + c) * n + i] = low[(r / 2 * (w / 2) + c / 2) * n + i] + skip[(r * w + c) * n + i];
    conv_reference(x, h, w, n, taps, bias, n, want);
    const st_run run = run_on(1);
    float *filters = filters_of(taps, n, n);
    st_conv3x3_run(&run, &(st_conv3x3){filters, bias, n, n}, &(st_conv_input){low, skip, h, w}, y);
    assert_near(y, want, h * w * n, sum_bound(9 * n));
    free(low), free(skip), free(taps), free(filters), free(bias), free(y), free(x), free(want);
}

static void test_conv_up__cells_go_where_they_belong(void **state)
{
    (void)state;
    const size_t h = 3, w = 200, n_in = 5, n_out = 3;
    float *x = noise(h * w * n_in), *cells = noise(4 * n_out * n_in), *bias = noise(n_out), *y = noise(4 * h * w * n_out);
    const st_run run = run_on(1);
    st_conv_up_run(&run, &(st_conv_up){cells, bias, n_in, n_out}, x, h, w, y, ST_ACT_NONE);
    for (size_t r = 0; r < 2 * h; r++)
        for (size_t c = 0; c < 2 * w; c++)
            for (size_t o = 0; o < n_out; o++) {
                double sum = bias[o];
                for (size_t i = 0; i < n_in; i++)
                    sum += (double)x[(r / 2 * w + c / 2) * n_in + i] * (double)cells[((r % 2 * 2 + c % 2) * n_out + o) * n_in + i];
                assert_true(fabs(sum - (double)y[(r * 2 * w + c) * n_out + o]) < 1e-5);
            }
    free(x), free(cells), free(bias), free(y);
}

static void test_group_norm__against_double(void **state)
{
    (void)state;
    const size_t rows = 3000, n = 24, groups = 8, width = n / groups;
    float *x = noise(rows * n), *gamma = noise(n), *beta = noise(n), *y[2];
    for (size_t i = 0; i < rows * n; i++) x[i] = x[i] * 3.0f + 100.0f; /* a mean far from zero */
    for (size_t p = 0; p < 2; p++) {
        const st_run run = run_on(p);
        y[p] = malloc(rows * n * sizeof(float));
        assert_non_null(y[p]);
        memcpy(y[p], x, rows * n * sizeof *x);
        st_group_norm_relu_run(&run, &(st_norm){gamma, beta, n, 1e-5f}, groups, y[p], rows);
    }
    assert_memory_equal(y[0], y[1], rows * n * sizeof(float));
    for (size_t g = 0; g < groups; g++) {
        double sum = 0.0, sq = 0.0;
        for (size_t i = 0; i < rows * width; i++) sum += (double)x[i / width * n + g * width + i % width];
        const double mean = sum / (double)(rows * width);
        for (size_t i = 0; i < rows * width; i++) sq += pow((double)x[i / width * n + g * width + i % width] - mean, 2.0);
        const double scale = 1.0 / sqrt(sq / (double)(rows * width) + 1e-5);
        for (size_t i = 0; i < rows * width; i++) {
            const size_t c = g * width + i % width, at = i / width * n + c;
            const double want = fmax(((double)x[at] - mean) * scale * (double)gamma[c] + (double)beta[c], 0.0);
            assert_true(fabs(want - (double)y[0][at]) < 2e-5);
        }
    }
    free(x), free(gamma), free(beta), free(y[0]), free(y[1]);
}

/* ---- constants of the reference ---- */

static void test_sine_grid__published_values(void **state)
{
    (void)state;
    float *pos = malloc(72 * 72 * 256 * sizeof *pos);
    assert_non_null(pos);
    st_sine_grid(pos, 72, 256);
    static const float first[4] = {.087156f, .996195f, .075498f, .997146f};
    for (size_t c = 0; c < 4; c++) assert_true(fabsf(pos[c] - first[c]) < 2e-6f);
    assert_true(fabsf(pos[126] - 1e-5f) < 5e-6f && pos[127] == 1.0f);
    assert_true(fabsf(pos[128] - .087156f) < 2e-6f && fabsf(pos[129] - .996195f) < 2e-6f);
    const float *t = pos + (10 * 72 + 50) * 256;
    assert_true(fabsf(t[0] - .819152f) < 2e-6f && fabsf(t[1] - .573576f) < 2e-6f);
    assert_true(fabsf(t[128] + .965926f) < 2e-6f && fabsf(t[129] + .258819f) < 2e-6f);
    free(pos);
}

static void test_roi_align__ramp(void **state)
{
    (void)state;
    float *map = malloc(72 * 72 * sizeof *map), out[49];
    assert_non_null(map);
    for (size_t i = 0; i < 72 * 72; i++) map[i] = (float)(i % 72);
    static const struct { float box[4], want[7]; } cases[] = {
        {{10, 20, 24, 34}, {11, 13, 15, 17, 19, 21, 23}},
        {{-3, 0, 4, 7}, {0, 0, 0, .5f, 1.5f, 2.5f, 3.5f}},
        {{68, 0, 75, 7}, {68.5f, 69.5f, 70.5f, 71, 0, 0, 0}},
        {{10, 20, 10.5f, 20.25f}, {10.0714f, 10.2143f, 10.3571f, 10.5f, 10.6429f, 10.7857f, 10.9286f}},
    };
    for (size_t c = 0; c < 4; c++) {
        st_roi_align(out, 7, map, 72, 1, cases[c].box);
        for (size_t i = 0; i < 49; i++) assert_true(fabsf(out[i] - cases[c].want[i % 7]) < 1e-4f);
    }
    free(map);
}

static void test_roi_align__huge_box_is_bounded(void **state)
{
    (void)state;
    float map[4] = {1, 2, 3, 4}, out[4];
    const float box[4] = {-1e9f, -1e9f, 1e9f, 1e9f};
    st_roi_align(out, 2, map, 2, 1, box); /* returns soon: the number of samples is capped by the map */
    for (size_t i = 0; i < 4; i++) assert_true(isfinite(out[i]));
}

static void test_inverse_sigmoid__published_values(void **state)
{
    (void)state;
    static const float cases[][2] = {{0, -6.907755f}, {1e-3f, -6.906755f}, {.999f, 6.906754f}, {1, 6.907755f}, {-3, -6.907755f}, {2, 6.907755f}};
    for (size_t i = 0; i < 6; i++) assert_true(fabsf(st_inverse_sigmoid(cases[i][0]) - cases[i][1]) < 2e-5f);
    assert_true(st_sigmoid(-200.0f) == 0.0f && st_sigmoid(200.0f) == 1.0f && st_sigmoid(0.0f) == 0.5f);
}

static void test_run__cancel_stops_everything(void **state)
{
    (void)state;
    st_run run = run_on(1);
    st_cancel *cancel = st_cancel_new();
    assert_non_null(cancel);
    float x[4] = {1, 2, 3, 4}, w[4] = {1, 0, 0, 1}, y[4] = {9, 9, 9, 9};
    run.cancel = cancel;
    st_cancel_set(cancel);
    st_linear_run(&run, &(st_linear){.weight = w, .n_in = 2, .n_out = 2}, x, 2, 2, y, 2, ST_ACT_NONE, false);
    st_error err;
    assert_true(y[0] == 9.0f && st_run_status(&run, &err) == ST_ERR_CANCELLED);
    st_cancel_free(cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear__against_double),
        cmocka_unit_test(test_feed_forward__chunks_rows),
        cmocka_unit_test(test_attention__against_double),
        cmocka_unit_test(test_attention__huge_scores_stay_finite),
        cmocka_unit_test(test_conv3x3__against_double),
        cmocka_unit_test(test_conv3x3__reads_upsampled_plus_skip),
        cmocka_unit_test(test_conv_up__cells_go_where_they_belong),
        cmocka_unit_test(test_group_norm__against_double),
        cmocka_unit_test(test_sine_grid__published_values),
        cmocka_unit_test(test_roi_align__ramp),
        cmocka_unit_test(test_roi_align__huge_box_is_bounded),
        cmocka_unit_test(test_inverse_sigmoid__published_values),
        cmocka_unit_test(test_run__cancel_stops_everything),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
