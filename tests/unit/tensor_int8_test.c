/* tensor_int8_test.c: linear layers and attention in int8 against plain code in double, within bounds that follow from the steps of rounding: a value that becomes a
 * byte moves by at most half a step. Then what must be exact: threads, batches, and products asked for by several threads at once.
 */
#include "tensor/tensor.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "tensor/attention_int8.h"
#include "tensor/linear_int8.h"

/* Half a step, and what rounding in fp32 adds to it. */
#define HALF 0.502

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

static void *room(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    assert_non_null(p);
    return p;
}

static uint32_t seed = 1;
static float uniform(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1.0f;
}
static float *noise(size_t n)
{
    float *x = room(n, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = uniform();
    return x;
}

/* ---------------------------------------------------------------- linear layers */

typedef struct layer {
    int8_t *values;
    float *scale, *smooth, *bias;
    int32_t *sums;
    st_linear l;
} layer;

static layer make_layer(size_t n_in, size_t n_out, bool smoothed)
{
    layer m = {room(n_in * n_out, 1), noise(n_out), smoothed ? noise(n_in) : NULL, noise(n_out), room(n_out, sizeof(int32_t)), {0}};
    for (size_t r = 0; r < n_out; r++) {
        m.scale[r] = 0.01f + 0.005f * m.scale[r];
        for (size_t c = 0; c < n_in; c++) {
            m.values[r * n_in + c] = (int8_t)lrintf(127.0f * uniform());
            m.sums[r] += m.values[r * n_in + c];
        }
    }
    for (size_t c = 0; smoothed && c < n_in; c++) m.smooth[c] = 1.5f + m.smooth[c];
    m.l = (st_linear){.bias = m.bias, .n_in = n_in, .n_out = n_out, .int8 = {m.values, m.scale, m.smooth, m.sums}};
    return m;
}

static void free_layer(layer *m)
{
    free(m->values), free(m->scale), free(m->smooth), free(m->bias), free(m->sums);
}

static double activated(double y, st_act act)
{
    return act == ST_ACT_RELU ? fmax(y, 0.0) : act == ST_ACT_GELU ? y / 2.0 * (1.0 + erf(y / sqrt(2.0))) : y;
}

/* Element (row, o) of the exact result, and how far half a step of every input can move it. GELU's slope is below 1.13. */
static double exact(const layer *m, const float *x, size_t o, double step, double *bound)
{
    double sum = 0.0, reach = 0.0, size = 0.0;
    for (size_t i = 0; i < m->l.n_in; i++) {
        const double w = (double)m->values[o * m->l.n_in + i] * (double)m->scale[o];
        const double v = (double)x[i] * (m->smooth ? (double)m->smooth[i] : 1.0);
        sum += w * v;
        reach += fabs(w);
        size += fabs(w * v);
    }
    *bound = 1.13 * (HALF * step * reach + 8.0 * (double)FLT_EPSILON * (size + 1.0));
    return sum;
}

static double step_of(const layer *m, const float *x)
{
    double low = 0.0, high = 0.0;
    for (size_t i = 0; i < m->l.n_in; i++) {
        const double v = (double)x[i] * (m->smooth ? (double)m->smooth[i] : 1.0);
        low = fmin(low, v);
        high = fmax(high, v);
    }
    return (high - low) / (double)st_kernels_best()->u8_max;
}

static void check_linear(const layer *m, const float *x, size_t ldx, size_t rows, const float *base, const float *y, size_t ldy, st_act act)
{
    for (size_t r = 0; r < rows; r++) {
        const double step = step_of(m, x + r * ldx);
        for (size_t o = 0; o < m->l.n_out; o++) {
            double bound;
            double want = exact(m, x + r * ldx, o, step, &bound) + (m->l.bias ? (double)m->l.bias[o] : 0.0);
            want = activated(want + (base ? (double)base[r * ldy + o] : 0.0), act);
            const double got = (double)y[r * ldy + o];
            if (!(fabs(got - want) <= bound)) fail_msg("row %zu, output %zu: %.7g, expected %.7g (bound %.3g)", r, o, got, want, bound);
        }
    }
}

typedef struct way {
    st_act act;
    bool accumulate, with_bias;
} way;
static const way ways[] = {{ST_ACT_NONE, 0, 1}, {ST_ACT_RELU, 0, 1}, {ST_ACT_GELU, 0, 1}, {ST_ACT_NONE, 1, 1}, {ST_ACT_NONE, 1, 0}, {ST_ACT_NONE, 0, 0}};

/* A layer run by 1 and by 3 threads, and row by row: the same bits; and within the bound of the exact result. */
static void check_layer(layer *m, size_t rows, way how)
{
    const size_t n_in = m->l.n_in, n_out = m->l.n_out, ldx = n_in + 3, ldy = n_out + 5;
    float *x = noise(rows * ldx), *base = noise(rows * ldy), *y[3];
    for (size_t i = 0; i < rows * ldx; i += 7) x[i] *= 20.0f; /* outliers */
    m->l.bias = how.with_bias ? m->bias : NULL;
    for (size_t p = 0; p < 3; p++) {
        y[p] = room(rows * ldy, sizeof(float));
        memcpy(y[p], base, rows * ldy * sizeof(float));
        const st_run run = run_on(p == 1);
        for (size_t r = 0; r < (p == 2 ? rows : 1); r++)
            st_linear_run(&run, &m->l, x + r * ldx, ldx, p == 2 ? 1 : rows, y[p] + r * ldy, ldy, how.act, how.accumulate);
        assert_false(arena.overflowed);
        assert_int_equal(arena.used, 0);
        if (p) assert_memory_equal(y[0], y[p], rows * ldy * sizeof(float)); /* the gaps between rows, too: they keep what was there */
    }
    check_linear(m, x, ldx, rows, how.accumulate ? base : NULL, y[0], ldy, how.act);
    free(x), free(base), free(y[0]), free(y[1]), free(y[2]);
}

static void test_linear__within_the_steps_of_rounding(void **state)
{
    (void)state;
    /* Rows around 32 (AMX's tiles), 96 (few rows) and 288 (the highest block); outputs around 128 (a tile); inputs around 64. */
    static const size_t shapes[][3] = {{1, 32, 32},   {1, 1, 1},      {7, 33, 130},  {31, 64, 128}, {32, 40, 127}, {33, 65, 129}, {96, 16, 257},
                                       {97, 48, 511}, {97, 17, 513}, {289, 65, 130}, {575, 20, 40}, {576, 64, 16}, {577, 21, 33}, {1153, 9, 5}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            layer m = make_layer(shapes[s][1], shapes[s][2], (s + w) % 2);
            check_layer(&m, shapes[s][0], ways[w]);
            free_layer(&m);
        }
    }
}

static void test_linear__rows_of_zeros_and_of_one_sign(void **state)
{
    (void)state;
    layer m = make_layer(70, 50, true);
    float *x = noise(3 * 70), *y = room(3 * 50, sizeof *y);
    for (size_t i = 0; i < 70; i++) {
        x[i] = 0.0f;
        x[70 + i] = fabsf(x[70 + i]) + 0.5f;
        x[140 + i] = -fabsf(x[140 + i]) - 0.5f;
    }
    const st_run run = run_on(0);
    st_linear_run(&run, &m.l, x, 70, 3, y, 50, ST_ACT_NONE, false);
    for (size_t o = 0; o < 50; o++) assert_true(y[o] == m.bias[o]);
    check_linear(&m, x, 70, 3, NULL, y, 50, ST_ACT_NONE);
    free(x), free(y);
    free_layer(&m);
}

static void test_linear__nan_and_infinity_spoil_their_row_only(void **state)
{
    (void)state;
    const size_t n_in = 61, n_out = 40, rows = 40;
    layer m = make_layer(n_in, n_out, true);
    for (int act = ST_ACT_NONE; act <= ST_ACT_GELU; act++) {
        float *x = noise(rows * n_in), *y = room(rows * n_out, sizeof *y);
        x[3 * n_in + 60] = NAN;
        x[17 * n_in] = INFINITY;
        x[33 * n_in + 30] = -INFINITY;
        const st_run run = run_on(1);
        st_linear_run(&run, &m.l, x, n_in, rows, y, n_out, (st_act)act, false);
        for (size_t r = 0; r < rows; r++)
            for (size_t o = 0; o < n_out; o++) assert_true(isnan(y[r * n_out + o]) == (r == 3 || r == 17 || r == 33));
        free(x), free(y);
    }
    free_layer(&m);
}

static void test_linear__planning_counts_what_the_run_needs(void **state)
{
    (void)state;
    layer m = make_layer(48, 600, false);
    float *x = noise(700 * 48), *y = room(700 * 600, sizeof *y);
    st_arena planned;
    st_arena_plan(&planned);
    const st_run plan = {.k = st_kernels_best(), .pool = pools[1], .arena = &planned, .int8 = true};
    const st_linear sizes_only = {.n_in = 48, .n_out = 600};
    st_linear_run(&plan, &sizes_only, x, 48, 700, y, 600, ST_ACT_NONE, false);
    /* A quantised model may keep the layer in fp32, so the plan is the larger of both kinds. */
    const st_run run = run_on(1);
    st_linear plain = m.l;
    size_t peaks[2];
    float *w = noise(48 * 600);
    plain.weight = w;
    plain.int8 = (st_int8_view){.values = NULL};
    for (int kind = 0; kind < 2; kind++) {
        arena.peak = 0;
        st_linear_run(&run, kind ? &plain : &m.l, x, 48, 700, y, 600, ST_ACT_NONE, false);
        peaks[kind] = arena.peak;
    }
    assert_true(planned.peak > 0);
    assert_int_equal(planned.peak, peaks[0] > peaks[1] ? peaks[0] : peaks[1]);
    free(w);
    free(x), free(y);
    free_layer(&m);
}

/* What st_qkv_run and st_feed_forward need, planned as for a model of int8 and fp32 layers, is what a run needs at most. */
static size_t planned_peak(void (*work)(const st_run *run, void *arg), void *arg, size_t pool)
{
    st_arena planned;
    st_arena_plan(&planned);
    const st_run plan = {.k = st_kernels_best(), .pool = pools[pool], .arena = &planned, .int8 = true};
    work(&plan, arg);
    return planned.peak;
}

typedef struct three {
    layer *m;    /* [3] */
    float *x, *y[3];
    size_t rows;
} three;

static void run_qkv(const st_run *run, void *arg)
{
    const three *t = arg;
    st_qkv_run(run, &t->m[0].l, &t->m[1].l, &t->m[2].l, t->x, t->rows, t->y);
}

/* q, k and v together give what each gives alone, one of them in fp32 too, by 1 and by 3 threads; and fit the plan. */
static void test_qkv__the_same_as_one_by_one(void **state)
{
    (void)state;
    static const size_t rows_of[] = {1, 5, 96, 97, 300, 1153};
    for (size_t t = 0; t < sizeof rows_of / sizeof *rows_of; t++)
        for (int mixed = 0; mixed < 2; mixed++) {
            const size_t rows = rows_of[t], n_in = 72, n_out = 136;
            layer m[3] = {make_layer(n_in, n_out, true), make_layer(n_in, n_out, false), make_layer(n_in, n_out, true)};
            float *w = noise(n_in * n_out), *want = room(rows * n_out, 4);
            three work = {m, noise(rows * n_in), {room(rows * n_out, 4), room(rows * n_out, 4), room(rows * n_out, 4)}, rows};
            if (rows > 3) work.x[3 * n_in + 5] = NAN;
            if (mixed) m[1].l.int8 = (st_int8_view){.values = NULL}, m[1].l.weight = w;
            for (size_t p = 0; p < 2; p++) {
                const st_run run = run_on(p);
                arena.peak = 0;
                run_qkv(&run, &work);
                assert_false(arena.overflowed);
                assert_true(arena.peak <= planned_peak(run_qkv, &work, p));
                for (size_t i = 0; i < 3; i++) {
                    st_linear_run(&run, &m[i].l, work.x, n_in, rows, want, n_out, ST_ACT_NONE, false);
                    assert_memory_equal(want, work.y[i], rows * n_out * sizeof *want);
                    for (size_t r = 0; r < rows; r++) assert_true(isnan(want[r * n_out]) == (r == 3));
                }
            }
            for (size_t i = 0; i < 3; i++) free_layer(&m[i]), free(work.y[i]);
            free(w), free(want), free(work.x);
        }
}

static void run_feed_forward(const st_run *run, void *arg)
{
    const three *t = arg;
    st_feed_forward(run, &t->m[0].l, &t->m[1].l, ST_ACT_GELU, t->x, t->rows, t->y[0]);
}

/* A feed-forward gives what its two layers give one after the other, by 1 and by 3 threads; and fits the plan. */
static void test_feed_forward__the_same_as_its_layers(void **state)
{
    (void)state;
    static const size_t rows_of[] = {1, 96, 97, 300, 1153};
    for (size_t t = 0; t < sizeof rows_of / sizeof *rows_of; t++)
        for (int mixed = 0; mixed < 2; mixed++) {
            const size_t rows = rows_of[t], width = 40, n_hidden = 150;
            layer m[2] = {make_layer(width, n_hidden, true), make_layer(n_hidden, width, true)};
            float *w = noise(width * n_hidden), *hidden = room(rows * n_hidden, 4), *want = noise(rows * width), *base = room(rows * width, 4);
            memcpy(base, want, rows * width * sizeof *base);
            three work = {m, noise(rows * width), {room(rows * width, 4)}, rows};
            if (rows > 3) work.x[3 * width + 5] = INFINITY;
            if (mixed) m[1].l.int8 = (st_int8_view){.values = NULL}, m[1].l.weight = w;
            const st_run alone = run_on(0);
            st_linear_run(&alone, &m[0].l, work.x, width, rows, hidden, n_hidden, ST_ACT_GELU, false);
            st_linear_run(&alone, &m[1].l, hidden, n_hidden, rows, want, width, ST_ACT_NONE, true);
            for (size_t p = 0; p < 2; p++) {
                const st_run run = run_on(p);
                arena.peak = 0;
                memcpy(work.y[0], base, rows * width * sizeof *base);
                run_feed_forward(&run, &work);
                assert_false(arena.overflowed);
                assert_true(arena.peak <= planned_peak(run_feed_forward, &work, p));
                for (size_t i = 0; i < rows * width; i++)
                    assert_true(isnan(want[i]) ? isnan(work.y[0][i]) : want[i] == work.y[0][i]);
                for (size_t r = 0; r < rows; r++) assert_true(isnan(want[r * width]) == (r == 3));
            }
            free_layer(&m[0]), free_layer(&m[1]);
            free(w), free(hidden), free(want), free(base), free(work.x), free(work.y[0]);
        }
}

/* ---------------------------------------------------------------- attention */

typedef struct attention_case {
    size_t n_seq, n, heads, d;
} attention_case;

/* One head of one sequence: inputs as [n][ld], taken at the head's columns. */
typedef struct head {
    const float *q, *k, *v;
    size_t n, d, ld, key_block;
    double *mean;        /* [d] of the keys */
    double *key_step;    /* [n] */
    double *key_size;    /* [n] sum of magnitudes, mean taken off */
    double *value_step;  /* [d] */
    double *weight, *rounding; /* [n] of one query: exp(score - largest), and how far a byte may be off */
} head;

static head prepare_head(const float *q, const float *k, const float *v, size_t n, size_t d, size_t ld)
{
    const size_t n_blocks = (n + 575) / 576;
    head h = {q, k, v, n, d, ld, ((n + n_blocks - 1) / n_blocks + 31) / 32 * 32, room(d, 8), room(n, 8), room(n, 8), room(d, 8), room(n, 8), room(n, 8)};
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < d; c++) {
            h.mean[c] += (double)k[j * ld + c] / (double)n;
            h.value_step[c] = fmax(h.value_step[c], fabs((double)v[j * ld + c]) / 127.0);
        }
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < d; c++) {
            const double centred = fabs((double)k[j * ld + c] - h.mean[c]);
            h.key_step[j] = fmax(h.key_step[j], centred / 127.0);
            h.key_size[j] += centred;
        }
    return h;
}

static void free_head(head *h)
{
    free(h->mean), free(h->key_step), free(h->key_size), free(h->value_step), free(h->weight), free(h->rounding);
}

/* Fills weight and rounding of query i. Returns the most that a score can be off, all roundings at their worst. */
static double weigh(head *h, size_t i)
{
    const double u8_max = (double)st_kernels_best()->u8_max, scale = 1.0 / sqrt((double)h->d);
    double low = 0.0, high = 0.0, size = 0.0, worst = 0.0, max = -INFINITY;
    for (size_t c = 0; c < h->d; c++) {
        const double v = (double)h->q[i * h->ld + c];
        low = fmin(low, v), high = fmax(high, v), size += fabs(v);
    }
    const double step = HALF * (high - low) / u8_max;
    for (size_t j = 0; j < h->n; j++) {
        const double key_step = HALF * h->key_step[j];
        double score = 0.0;
        for (size_t c = 0; c < h->d; c++) score += (double)h->q[i * h->ld + c] * ((double)h->k[j * h->ld + c] - h->mean[c]);
        h->weight[j] = score * scale;
        max = fmax(max, score * scale);
        worst = fmax(worst, scale * (size * key_step + h->key_size[j] * step + (double)h->d * key_step * step));
    }
    worst += 1e-5 * (1.0 + fabs(max));
    for (size_t j0 = 0; j0 < h->n; j0 += h->key_block) {
        const size_t end = j0 + h->key_block < h->n ? j0 + h->key_block : h->n;
        double block_max = -INFINITY;
        for (size_t j = j0; j < end; j++) block_max = fmax(block_max, h->weight[j]);
        for (size_t j = j0; j < end; j++) /* a small weight becomes 0, and is off by itself */
            h->rounding[j] = fmin(HALF / u8_max * exp(block_max + worst - max), exp(h->weight[j] + worst - max));
    }
    for (size_t j = 0; j < h->n; j++) h->weight[j] = exp(h->weight[j] - max);
    return worst;
}

/* With scores off by at most e, weights off by at most r and values by half a step:
 *   |out' - out| <= (sum w |v - out| (exp(e) - 1) + sum r |v - out|) / (sum w exp(-e) - sum r) + half a step.
 * Sums of roundings that do not know of each other stay far below their worst case: their RMS below a quarter of it. */
static void check_head(head *h, const float *out, double sums[2])
{
    for (size_t i = 0; i < h->n; i++) {
        const double e = weigh(h, i);
        double total = 0.0, rounding = 0.0;
        for (size_t j = 0; j < h->n; j++) total += h->weight[j], rounding += h->rounding[j];
        assert_true(total * exp(-e) > 2.0 * rounding); /* else the bound says little */
        for (size_t c = 0; c < h->d; c++) {
            double want = 0.0, off = 0.0;
            for (size_t j = 0; j < h->n; j++) want += h->weight[j] * (double)h->v[j * h->ld + c] / total;
            for (size_t j = 0; j < h->n; j++)
                off += (h->weight[j] * (exp(e) - 1.0) + h->rounding[j]) * fabs((double)h->v[j * h->ld + c] - want);
            const double bound = off / (total * exp(-e) - rounding) + HALF * h->value_step[c] + 1e-6, wrong = (double)out[i * h->ld + c] - want;
            if (!(fabs(wrong) <= bound)) fail_msg("query %zu, channel %zu: %.6g, expected %.6g (bound %.3g)", i, c, (double)out[i * h->ld + c], want, bound);
            sums[0] += wrong * wrong;
            sums[1] += bound * bound;
        }
    }
}

static st_attention attention_of(const attention_case *c, const float *q, const float *k, const float *v, float *out)
{
    const size_t width = c->heads * c->d;
    return (st_attention){.q = q, .k = k, .v = v, .out = out, .ld_q = width, .ld_k = width, .ld_v = width, .ld_out = width,
                          .heads = c->heads, .head_width = c->d, .n_seq = c->n_seq, .n_q = c->n, .n_k = c->n, .int8 = true};
}

static void check_attention(const attention_case *c, float spread)
{
    const size_t width = c->heads * c->d, all = c->n_seq * c->n * width;
    float *q = noise(all), *k = noise(all), *v = noise(all), *y[3];
    for (size_t i = 0; i < all; i++) q[i] *= spread;
    for (size_t i = 0; i < all; i += width) k[i] += 9.0f; /* a channel that is large for all keys: the mean takes it off */
    for (size_t p = 0; p < 3; p++) {
        y[p] = room(all, sizeof(float));
        const st_run run = run_on(p == 1);
        st_attention whole = attention_of(c, q, k, v, y[p]);
        if (p == 2) { /* one sequence at a time */
            whole.n_seq = 1;
            for (size_t s = 0; s < c->n_seq; s++) {
                const size_t at = s * c->n * width;
                whole.q = q + at, whole.k = k + at, whole.v = v + at, whole.out = y[p] + at;
                st_attention_run(&run, &whole);
            }
        } else {
            assert_true(st_attention_int8_can(&whole));
            st_attention_run(&run, &whole);
        }
        assert_false(arena.overflowed);
        if (p) assert_memory_equal(y[0], y[p], all * sizeof(float));
    }
    double sums[2] = {0.0, 0.0};
    for (size_t s = 0; s < c->n_seq; s++)
        for (size_t g = 0; g < c->heads; g++) {
            const size_t at = s * c->n * width + g * c->d;
            head h = prepare_head(q + at, k + at, v + at, c->n, c->d, width);
            check_head(&h, y[0] + at, sums);
            free_head(&h);
        }
    assert_true(sums[0] > 0.0); /* it did run in int8 */
    assert_true(sqrt(sums[0]) <= 0.25 * sqrt(sums[1]));
    free(q), free(k), free(v), free(y[0]), free(y[1]), free(y[2]);
}

static void test_attention__within_the_steps_of_rounding(void **state)
{
    (void)state;
    /* 192 queries are one item, 576 keys one block; 605 and 1225 are cut into blocks of 320 and 416. */
    static const attention_case cases[] = {{1, 2, 1, 32}, {3, 25, 2, 32}, {2, 191, 2, 64}, {2, 193, 1, 64}, {1, 576, 2, 64}, {1, 577, 1, 32}, {2, 605, 1, 64}, {1, 1225, 1, 32}, {2, 49, 1, 8}, {1, 70, 3, 40}, {1, 600, 1, 80}, {1, 40, 1, 255}};
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) check_attention(&cases[t], t % 2 ? 4.0f : 1.0f);
}

static void test_attention__one_key_is_its_value(void **state)
{
    (void)state;
    const attention_case c = {5, 1, 2, 32};
    float *q = noise(320), *k = noise(320), *v = noise(320), *y = room(320, sizeof *y);
    const st_run run = run_on(0);
    const st_attention a = attention_of(&c, q, k, v, y);
    st_attention_run(&run, &a);
    for (size_t i = 0; i < 320; i++) assert_true(fabsf(y[i] - v[i]) <= 1e-6f * fabsf(v[i])); /* each is its channel's peak */
    free(q), free(k), free(v), free(y);
}

/* Softmax of what is no number is no number; other queries, heads and sequences do not notice. */
static void test_attention__nan_comes_out_as_nan(void **state)
{
    (void)state;
    const attention_case c = {2, 600, 2, 32};
    const size_t width = 64, all = 2 * 600 * 64;
    static const float bad[] = {NAN, INFINITY};
    for (size_t t = 0; t < 12; t++) {
        const size_t which = t % 3, at = t < 6 ? 599 : 7; /* the input; the row of sequence 0; head 1, channel 8 */
        float *x[3] = {noise(all), noise(all), noise(all)}, *y = room(all, sizeof *y);
        x[which][at * width + 40] = bad[t / 3 % 2];
        const st_run run = run_on(1);
        const st_attention a = attention_of(&c, x[0], x[1], x[2], y);
        st_attention_run(&run, &a);
        for (size_t i = 0; i < all; i++) {
            const size_t row = i / width, col = i % width;
            const bool touched = row < 600 && col >= 32 && (which == 1 || (which == 0 && row == at) || (which == 2 && col == 40));
            if ((bool)isnan(y[i]) != touched) fail_msg("input %zu: row %zu, column %zu is %g", which, row, col, (double)y[i]);
        }
        free(x[0]), free(x[1]), free(x[2]), free(y);
    }
}

static void test_attention__scores_that_overflow_are_no_numbers(void **state)
{
    (void)state;
    const attention_case c = {1, 4, 1, 32};
    float *q = noise(128), *k = noise(128), *v = noise(128), *y = room(128, sizeof *y);
    for (size_t i = 0; i < 128; i++) q[i] *= 1e30f, k[i] *= 1e30f;
    const st_run run = run_on(0);
    const st_attention a = attention_of(&c, q, k, v, y);
    st_attention_run(&run, &a);
    for (size_t i = 0; i < 128; i++) assert_true(isnan(y[i]));
    free(q), free(k), free(v), free(y);
}

static void test_attention__only_of_a_picture_with_itself(void **state)
{
    (void)state;
    st_attention a = {.heads = 1, .head_width = 64, .n_seq = 1, .n_q = 8, .n_k = 8};
    float bias[8] = {0};
    assert_true(st_attention_int8_can(&a));
    a.causal = true;
    assert_false(st_attention_int8_can(&a));
    a.causal = false, a.rpb_x = bias;
    assert_false(st_attention_int8_can(&a));
    a.rpb_x = NULL, a.n_k = 9;
    assert_false(st_attention_int8_can(&a));
    a.n_k = 8, a.head_width = 256;
    assert_false(st_attention_int8_can(&a));
}

/* ---------------------------------------------------------------- products from several threads */

typedef struct product {
    size_t m, n, k;
    uint8_t *a;
    int8_t *b;
    int32_t *want;
} product;

/* The first ones are large enough for AMX. */
enum { N_PRODUCTS = 60, N_THREADS = 3 };

static product make_product(size_t m, size_t n, size_t k)
{
    product p = {m, n, k, room(m * k, 1), room(n * k, 1), room(m * n, sizeof(int32_t))};
    for (size_t i = 0; i < m * k; i++) p.a[i] = (uint8_t)((double)(uniform() + 1.0f) / 2.0 * (double)st_kernels_best()->u8_max);
    for (size_t i = 0; i < n * k; i++) p.b[i] = (int8_t)(127.0f * uniform());
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t c = 0; c < k; c++) p.want[i * n + j] += p.a[i * k + c] * p.b[j * k + c];
    return p;
}

typedef struct worker {
    const product *products;
    size_t first, n_wrong, n_done;
} worker;

static void *multiply_all(void *arg)
{
    worker *w = arg;
    const st_kernels *k = st_kernels_best();
    for (size_t t = 0; t < N_PRODUCTS; t++) {
        const product *p = &w->products[(w->first + t) % N_PRODUCTS];
        int32_t *c = calloc(p->m * p->n, sizeof *c);
        if (!c) return NULL;
        int8_t *packed = malloc(st_packed_floats(k, p->n, st_int8_depth(p->k)));
        if (!packed) return NULL;
        k->gemm_s8_pack(packed, p->n, p->k, p->b, p->k);
        k->gemm_u8s8_packed(p->m, p->n, p->k, p->a, p->k, packed, c, p->n);
        free(packed);
        w->n_wrong += memcmp(c, p->want, p->m * p->n * sizeof *c) != 0;
        w->n_done++;
        free(c);
    }
    return NULL;
}

static void test_products__exact_from_many_threads(void **state)
{
    (void)state;
    product *products = room(N_PRODUCTS, sizeof *products);
    for (size_t i = 0; i < N_PRODUCTS; i++) products[i] = make_product(i < 20 ? 33 + 16 * i : 32 + i % 7, 1 + i, i < 20 ? 64 + 3 * i : 8 + i % 5);
    worker workers[N_THREADS];
    pthread_t threads[N_THREADS];
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < N_THREADS; i++) {
            workers[i] = (worker){products, round * N_PRODUCTS / 2 + 5 * i, 0, 0}; /* at almost the same shapes at the same time */
            assert_int_equal(pthread_create(&threads[i], NULL, multiply_all, &workers[i]), 0);
        }
        for (size_t i = 0; i < N_THREADS; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(workers[i].n_done, N_PRODUCTS);
            assert_int_equal(workers[i].n_wrong, 0);
        }
    }
    for (size_t i = 0; i < N_PRODUCTS; i++) free(products[i].a), free(products[i].b), free(products[i].want);
    free(products);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear__within_the_steps_of_rounding),
        cmocka_unit_test(test_linear__rows_of_zeros_and_of_one_sign),
        cmocka_unit_test(test_linear__nan_and_infinity_spoil_their_row_only),
        cmocka_unit_test(test_linear__planning_counts_what_the_run_needs),
        cmocka_unit_test(test_qkv__the_same_as_one_by_one),
        cmocka_unit_test(test_feed_forward__the_same_as_its_layers),
        cmocka_unit_test(test_attention__within_the_steps_of_rounding),
        cmocka_unit_test(test_attention__one_key_is_its_value),
        cmocka_unit_test(test_attention__nan_comes_out_as_nan),
        cmocka_unit_test(test_attention__scores_that_overflow_are_no_numbers),
        cmocka_unit_test(test_attention__only_of_a_picture_with_itself),
        cmocka_unit_test(test_products__exact_from_many_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
