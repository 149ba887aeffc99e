/* vision_resize_test.c: both published resize arithmetics, byte for byte, against torchvision's and ATen's own output (tests/golden/data/resize). */
#include "vision/vision.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "weights/catalog.h"
#include "weights/safetensors.h"

static st_catalog set;
static st_arena arena;
static st_pool *pool;

static int set_up(void **state)
{
    (void)state;
    st_map map;
    uint32_t index;
    st_error err;
    if (st_map_open(&map, ST_SOURCE_DIR "/tests/golden/data/resize/resize.safetensors", &err) != ST_OK ||
        st_catalog_add_map(&set, map, "resize.safetensors", &index, &err) != ST_OK || st_safetensors_read(&set, index, &err) != ST_OK ||
        st_catalog_finish(&set, &err) != ST_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    return st_pool_new(&pool, 2, NULL) != ST_OK || st_arena_init(&arena, 1 << 20, NULL) != ST_OK;
}

static int tear_down(void **state)
{
    (void)state;
    st_catalog_free(&set);
    st_pool_free(pool);
    st_arena_free(&arena);
    return 0;
}

static const uint8_t *bytes_of(const char *name, size_t n, const char *what, const st_entry **entry)
{
    char key[256];
    snprintf(key, sizeof key, "%.*s/%s", (int)n, name, what);
    *entry = st_catalog_find(&set, key);
    return *entry ? set.blobs[(*entry)->blob].data + (*entry)->offset : NULL;
}

/* One axis of the filter in double: the weight of input j in output i, 0 outside. */
static double weight_at(size_t n_in, size_t n_out, size_t i, size_t j)
{
    const double scale = (double)n_in / (double)n_out, support = fmax(scale, 1.0), centre = scale * ((double)i + 0.5);
    const double low = floor(fmax(centre - support + 0.5, 0.0)), high = floor(fmin(centre + support + 0.5, (double)n_in));
    double total = 0.0, wanted = 0.0;
    for (double t = low; t < high; t += 1.0) {
        const double w = fmax(0.0, 1.0 - fabs((t - centre + 0.5) / support));
        total += w;
        if (t == (double)j) wanted = w;
    }
    return wanted / total;
}

/* True when the exact value of byte `at` lies so near a half that fp32 may round either way. */
static bool is_tie(const st_image *image, size_t side, size_t at)
{
    double value = 0.0;
    const size_t row = at / (3 * side), col = at / 3 % side;
    for (size_t y = 0; y < image->height; y++) {
        const double wy = weight_at(image->height, side, row, y);
        for (size_t x = 0; wy > 0.0 && x < image->width; x++) value += wy * weight_at(image->width, side, col, x) * image->data[y * image->stride + 3 * x + at % 3];
    }
    return fabs(value - floor(value) - 0.5) < 5e-5;
}

static void test_resize__byte_for_byte(void **state)
{
    (void)state;
    size_t n_ties = 0;
    size_t n_compared = 0;
    const st_run run = {.k = st_kernels_best(), .pool = pool, .arena = &arena};
    for (size_t e = 0; e < set.n; e++) {
        const char *slash = strrchr(set.entries[e].name, '/');
        if (!slash || strcmp(slash, "/in") != 0) continue;
        const size_t n_name = (size_t)(slash - set.entries[e].name);
        for (int how = 0; how < 2; how++) {
            const st_entry *in, *want_entry;
            const uint8_t *pixels = bytes_of(set.entries[e].name, n_name, "in", &in);
            const uint8_t *want = bytes_of(set.entries[e].name, n_name, how == ST_RESIZE_GPU ? "gpu" : "cpu", &want_entry);
            if (!want) continue;
            const size_t side = (size_t)want_entry->shape[0], n = side * side * 3;
            const st_image image = {pixels, (uint32_t)in->shape[1], (uint32_t)in->shape[0], (size_t)in->shape[1] * 3, ST_PIXEL_RGB8};
            uint8_t *got = malloc(n);
            assert_non_null(got);
            assert_int_equal(st_resize_bytes(&run, &image, (st_resize)how, side, got, NULL), ST_OK);
            for (size_t i = 0; i < n; i++) {
                if (got[i] == want[i]) continue;
                /* Integer arithmetic leaves no choice; fp32 may fall either way on a half, and only there. */
                if (how == ST_RESIZE_CPU || abs(got[i] - want[i]) > 1 || !is_tie(&image, side, i))
                    fail_msg("%s, %s: byte %zu is %d, expected %d", set.entries[e].name, how ? "cpu" : "gpu", i, got[i], want[i]);
                n_ties++;
            }
            free(got);
            n_compared++;
        }
    }
    assert_true(n_compared >= 18 && n_ties <= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_resize__byte_for_byte)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
