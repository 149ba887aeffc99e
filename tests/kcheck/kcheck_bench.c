/* kcheck_bench.c: times of one call per kernel and level, in CPU time of the calling thread, so that other work on the
 * machine costs cache only. Each figure is the best of 15 or more batches of at least 100 us each, 0.1 s in all, on data
 * in the cache as far as it fits; the sizes are the model's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kcheck.h"
#include "kcheck_run.h"

enum {
    ROW = 1024,
    KEYS = 576,
    HIDDEN = 592,
    LONG = 5184
}; /* floats: a token, a block of scores, a tile of the MLP, all tokens */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double batch(kc_bench_fn *fn, const st_kernels *k, void *arg, size_t n)
{
    const double start = seconds();
    for (size_t i = 0; i < n; i++)
        fn(k, arg);
    return seconds() - start;
}

void kc_bench(const char *name, double work, const char *unit, kc_bench_fn *fn, const st_kernels *k, void *arg)
{
    if (kc_opts.only && !strstr(name, kc_opts.only))
        return;
    size_t n = 1;
    while (batch(fn, k, arg, n) < 100e-6)
        n *= 2;
    double best = 1e30;
    const double end = seconds() + 0.1;
    for (int i = 0; i < 15 || seconds() < end; i++) {
        const double t = batch(fn, k, arg, n);
        if (t < best)
            best = t;
    }
    size_t at = 0;
    while (at < kc_result->n_bench && strcmp(kc_result->bench[at].name, name) != 0)
        at++;
    if (at == KC_MAX_BENCH)
        return;
    kc_bench_line *line = &kc_result->bench[at];
    if (at == kc_result->n_bench) {
        kc_result->n_bench++;
        snprintf(line->name, sizeof line->name, "%s", name);
        snprintf(line->unit, sizeof line->unit, "%s", unit);
        line->work = work;
    }
    line->ns[kc_result->level] = best / (double)n * 1e9;
}

/* ns per call, and how many times as fast as the first level measured; at the end units of work per second of the last
 * level. */
void kc_bench_print(const kc_shared *r)
{
    for (size_t i = 0; i < r->n_bench; i++) {
        const kc_bench_line *b = &r->bench[i];
        double base = 0.0, last = 0.0;
        printf("%-32s", b->name);
        for (size_t l = 0; l < KC_MAX_LEVELS; l++) {
            if (b->ns[l] <= 0.0)
                continue;
            base = base > 0.0 ? base : b->ns[l];
            last = b->ns[l];
            printf("  %s %10.0f ns (%6.2fx)", st_cpu_level_name((st_cpu_level)l), b->ns[l], base / b->ns[l]);
        }
        printf("  %8.2f %s\n", b->work / last, b->unit);
    }
}

/* ---------------------------------------------------------------- what is measured */

static float *x, *y, *saved, *gamma_row, *beta_row;
static uint8_t *small_bytes;
static double sink;

typedef struct gemm_size {
    bool trans_b;
    size_t m, n, k;
} gemm_size;

static void bench_layer_norm(const st_kernels *k, void *arg)
{
    (void)arg;
    k->layer_norm(y, x, ROW, gamma_row, beta_row, 1e-5f);
}
static void bench_add(const st_kernels *k, void *arg) { k->add(y, x, *(size_t *)arg); }
static void bench_add3(const st_kernels *k, void *arg) { k->add3(y, x, saved, *(size_t *)arg); }
static void bench_scale(const st_kernels *k, void *arg) { k->scale(y, 1.0f, *(size_t *)arg); }
static void bench_relu(const st_kernels *k, void *arg) { k->relu(y, *(size_t *)arg); }
static void bench_max(const st_kernels *k, void *arg) { sink += (double)k->max(x, *(size_t *)arg); }
static void bench_moments(const st_kernels *k, void *arg)
{
    double sum = 0.0, sq = 0.0;
    k->moments(x, *(size_t *)arg, 0.5, &sum, &sq);
    sink += sum + sq;
}
/* In place, so each call starts from a fresh copy, as the product leaves one; the copy is part of the time. */
static void bench_gelu(const st_kernels *k, void *arg)
{
    memcpy(y, x, *(size_t *)arg * sizeof *x);
    k->gelu(y, *(size_t *)arg);
}
static void bench_exp_sum(const st_kernels *k, void *arg)
{
    memcpy(y, x, *(size_t *)arg * sizeof *x);
    sink += (double)k->exp_sum(y, *(size_t *)arg, 4.0f);
}
static void bench_rope(const st_kernels *k, void *arg) { k->rope(y, gamma_row, *(size_t *)arg / 2); }
static void bench_gemm(const st_kernels *k, void *arg)
{
    const gemm_size *s = arg;
    k->gemm(s->trans_b, s->m, s->n, s->k, x, s->k, saved, s->trans_b ? s->k : s->n, false, y, s->n);
}

static void bench_gemm_packed(const st_kernels *k, void *arg)
{
    const gemm_size *s = arg;
    k->gemm_packed(s->m, s->n, s->k, x, s->k, saved, false, y, s->n);
}
static void bench_gemm_pack(const st_kernels *k, void *arg)
{
    const gemm_size *s = arg;
    k->gemm_pack(y, s->trans_b, s->n, s->k, x, s->trans_b ? s->k : s->n);
}
/* Bytes within 0 .. 127, whatever the floats there say. */
static void bench_u8s8_packed(const st_kernels *k, void *arg)
{
    const gemm_size *s = arg;
    k->gemm_u8s8_packed(s->m, s->n, s->k, small_bytes, s->k, small_bytes, (int32_t *)(void *)y, s->n);
}

static void bench_gemms(const st_kernels *k)
{
    /* linear layers' tiles; attention's scores and values; a window's; decoder rows; few rows; a plane of a 3x3
     * convolution */
    static gemm_size sizes[] = { { true, 288, 640, 1024 }, { true, 288, 592, 1024 }, { true, 288, 512, 4736 },
                                 { true, 96, 576, 64 },    { false, 96, 64, 576 },   { true, 201, 128, 256 },
                                 { true, 32, 128, 1024 },  { true, 8, 128, 1024 },   { true, 1, 128, 256 },
                                 { true, 144, 256, 256 } };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const gemm_size *s = &sizes[i];
        const double work = 2.0 * (double)(s->m * s->n * s->k);
        char shape[32], name[48];
        snprintf(shape, sizeof shape, "%c %zux%zux%zu", s->trans_b ? 'T' : 'N', s->m, s->n, s->k);
        snprintf(name, sizeof name, "gemm %s", shape);
        kc_bench(name, work, "GFLOP/s", bench_gemm, k, &sizes[i]);
        snprintf(name, sizeof name, "packed %s", shape);
        kc_bench(name, work, "GFLOP/s", bench_gemm_packed, k, &sizes[i]);
        snprintf(name, sizeof name, "pack %s", shape);
        kc_bench(name, (double)(s->n * s->k), "G/s", bench_gemm_pack, k, &sizes[i]);
        snprintf(name, sizeof name, "int8 packed %s", shape);
        kc_bench(name, work, "GOP/s", bench_u8s8_packed, k, &sizes[i]);
    }
}

static float *filled(size_t n)
{
    float *p = aligned_alloc(64, n * sizeof(float) / 64 * 64 + 64);
    if (!p)
        abort();
    for (size_t i = 0; i < n; i++)
        p[i] = (float)kc_uniform(-3.0, 3.0);
    return p;
}

void kc_bench_all(const st_kernels *k)
{
    static size_t row = ROW, keys = KEYS, hidden = HIDDEN, longest = LONG;
    const size_t large = (size_t)6 << 20;
    x = filled(large);
    y = filled(large);
    saved = filled(large);
    small_bytes = aligned_alloc(64, large);
    if (!small_bytes)
        abort();
    for (size_t i = 0; i < large; i++)
        small_bytes[i] = (uint8_t)(i % 119);
    gamma_row = filled(2 * LONG);
    beta_row = filled(2 * LONG);
    for (size_t i = 0; i < LONG; i++) { /* unit rotations: repeated calls keep their size */
        gamma_row[2 * i] = 0.8f;
        gamma_row[2 * i + 1] = 0.6f;
    }
    kc_bench("layer_norm 1024", ROW, "G/s", bench_layer_norm, k, &row);
    kc_bench("add 1024", ROW, "G/s", bench_add, k, &row);
    kc_bench("add3 1024", ROW, "G/s", bench_add3, k, &row);
    kc_bench("scale 576", KEYS, "G/s", bench_scale, k, &keys);
    kc_bench("relu 1024", ROW, "G/s", bench_relu, k, &row);
    kc_bench("max 576", KEYS, "G/s", bench_max, k, &keys);
    kc_bench("max 5184", LONG, "G/s", bench_max, k, &longest);
    kc_bench("moments 5184", LONG, "G/s", bench_moments, k, &longest);
    kc_bench("gelu 592 (with copy)", HIDDEN, "G/s", bench_gelu, k, &hidden);
    kc_bench("exp_sum 576 (with copy)", KEYS, "G/s", bench_exp_sum, k, &keys);
    kc_bench("exp_sum 5184 (with copy)", LONG, "G/s", bench_exp_sum, k, &longest);
    kc_bench("rope 1024", ROW, "G/s", bench_rope, k, &row);
    bench_gemms(k);
    free(small_bytes);
    free(x);
    free(y);
    free(saved);
    free(gamma_row);
    free(beta_row);
}
