/* rate.c: what a forward pass multiplies, and how fast this machine multiplies, so that a benchmark can say what share of
 * the machine a pass uses. Products are counted by the passes themselves, in planning mode (st_run_count); the rate is that
 * of one large product, cut into tiles for all threads as the model's own layers are.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

enum { ROWS = 5184, COLS = 1024, DEPTH = 1024, TILE_ROWS = 288, TILE_COLS = 512, REPEATS = 9 };
enum { N_TILES = ROWS / TILE_ROWS * (COLS / TILE_COLS) };

typedef struct product {
    const st_kernels *k;
    const float *a, *b; /* [ROWS, DEPTH], [COLS, DEPTH] packed */
    float *c;           /* [ROWS, COLS] */
    const uint8_t *a8;  /* the same shapes; NULL: fp32 */
    const int8_t *b8;
    int32_t *c8;
} product;

static void tile(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const product *p = arg;
    const size_t row = item / (COLS / TILE_COLS) * TILE_ROWS, col = item % (COLS / TILE_COLS) * TILE_COLS;
    if (p->a8) p->k->gemm_u8s8_packed(TILE_ROWS, TILE_COLS, DEPTH, p->a8 + row * DEPTH, DEPTH, p->b8 + col * DEPTH, p->c8 + row * COLS + col, COLS);
    else p->k->gemm_packed(TILE_ROWS, TILE_COLS, DEPTH, p->a + row * DEPTH, DEPTH, p->b + col * DEPTH, false, p->c + row * COLS + col, COLS);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 10^9 operations a second, the median of some repeats: what the machine keeps up, not what it does for a moment. */
static double rate_of(st_pool *pool, product *p)
{
    double rates[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        const double started = st_clock_seconds();
        st_pool_run(pool, N_TILES, tile, p, NULL);
        rates[i] = 2e-9 * ROWS * COLS * DEPTH / (st_clock_seconds() - started);
    }
    qsort(rates, REPEATS, sizeof rates[0], by_value);
    return rates[REPEATS / 2];
}

static st_status measure(const st_model *m, st_rate *out, st_error *err)
{
    const st_kernels *k = m->kernels;
    const size_t n_a = (size_t)ROWS * DEPTH, n_b = (size_t)COLS * DEPTH, n_c = (size_t)ROWS * COLS;
    float *block = st_aligned((n_a + 2 * n_b + n_c) * sizeof *block, 64);
    if (!block) return st_fail(err, ST_ERR_NOMEM, "rate: out of memory for a product of %zu bytes", (n_a + 2 * n_b + n_c) * sizeof *block);
    float *weights = block + n_a, *packed = weights + n_b;
    product p = {.k = k, .a = block, .b = packed, .c = packed + n_b};
    for (size_t i = 0; i < n_a + n_b; i++) block[i] = (float)(i % 17) - 8.0f;
    k->gemm_pack(packed, true, COLS, DEPTH, weights, DEPTH);
    out->fp32_gflops = rate_of(m->pool, &p);
    if (m->weights_info.n_int8 > 0) {
        uint8_t *a8 = (uint8_t *)block; /* bytes fit into the room of floats */
        int8_t *b8 = (int8_t *)weights;
        for (size_t i = 0; i < n_a; i++) a8[i] = (uint8_t)(i % 101);
        for (size_t i = 0; i < n_b; i++) b8[i] = (int8_t)((int)(i % 103) - 51);
        k->gemm_s8_pack(packed, COLS, DEPTH, b8, DEPTH);
        p.a8 = a8, p.b8 = (const int8_t *)packed, p.c8 = (int32_t *)(void *)p.c;
        out->int8_gops = rate_of(m->pool, &p);
    }
    st_free(block);
    return ST_OK;
}

st_status st_model_rate(const st_model *m, uint32_t n_tokens, st_rate *out, st_error *err)
{
    if (!m || !out || out->struct_size < sizeof *out) return st_fail(err, ST_ERR_INVALID_ARG, "rate: no model, or struct_size is not set");
    if (n_tokens < 1 || n_tokens > m->dims->context) return st_fail(err, ST_ERR_INVALID_ARG, "rate: %u tokens, expected 1 to %u", n_tokens, m->dims->context);
    *out = (st_rate){.struct_size = sizeof *out};
    const st_status status = st_plan_work(&out->encode_gflop, &out->phrase_gflop, m, n_tokens, err);
    return status == ST_OK ? measure(m, out, err) : status;
}
