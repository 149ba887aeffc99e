/* onednn_rate.c: dnnl_sgemm, tile by tile. */
#include "onednn_rate.h"

#if defined(BENCH_ONEDNN)
#include <dnnl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/clock.h"

/* From libgomp, which oneDNN is linked with; acts on the calling thread only. */
void omp_set_num_threads(int n);

enum { TILE_ROWS = 288, TILE_COLS = 512 };

typedef struct product {
    size_t rows, n, k;
    const float *a, *b;
    float *c;
    atomic_bool refused;
} product;

static size_t n_tiles(size_t n, size_t tile) { return (n + tile - 1) / tile; }

static void multiply(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    product *p = arg;
    const size_t row = item / n_tiles(p->n, TILE_COLS) * TILE_ROWS, col = item % n_tiles(p->n, TILE_COLS) * TILE_COLS;
    const size_t rows = p->rows - row < TILE_ROWS ? p->rows - row : TILE_ROWS, cols = p->n - col < TILE_COLS ? p->n - col : TILE_COLS;
    omp_set_num_threads(1);
    if (dnnl_sgemm('N', 'T', (dnnl_dim_t)rows, (dnnl_dim_t)cols, (dnnl_dim_t)p->k, 1.0f, p->a + row * p->k, (dnnl_dim_t)p->k, p->b + col * p->k,
                   (dnnl_dim_t)p->k, 0.0f, p->c + row * p->n + col, (dnnl_dim_t)p->n) != dnnl_success)
        atomic_store(&p->refused, true);
}

double onednn_seconds(st_pool *pool, size_t rows, size_t n, size_t k, const float *a, const float *b, float *c)
{
    product p = {.rows = rows, .n = n, .k = k, .a = a, .b = b, .c = c};
    const double start = st_clock_seconds();
    st_pool_run(pool, n_tiles(rows, TILE_ROWS) * n_tiles(n, TILE_COLS), multiply, &p, NULL);
    return atomic_load(&p.refused) ? 0.0 : st_clock_seconds() - start;
}
#else
double onednn_seconds(st_pool *pool, size_t rows, size_t n, size_t k, const float *a, const float *b, float *c)
{
    (void)pool, (void)rows, (void)n, (void)k, (void)a, (void)b, (void)c;
    return 0.0;
}
#endif
