/* mask_region_test.c: small parts and placed masks against dense maps, flooded pixel by pixel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/mem.h"
#include "mask_reference.h"

enum { SIDE = 40 };

static uint8_t dense[SIDE * SIDE], want[SIDE * SIDE], got[SIDE * SIDE];

/* The part of pixel (x, y), 8-connected; marks it in `part` and returns its area. */
static size_t flood(uint8_t *part, const uint8_t *mask, int width, int height, int x, int y)
{
    static int stack[SIDE * SIDE];
    const uint8_t value = mask[y * width + x];
    size_t n = 0, area = 0;
    memset(part, 0, SIDE * SIDE);
    stack[n++] = y * width + x;
    part[y * width + x] = 1;
    while (n > 0) {
        const int at = stack[--n];
        area++;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++) {
                const int px = at % width + dx, py = at / width + dy;
                if (px < 0 || py < 0 || px >= width || py >= height) continue;
                if (part[py * width + px] || mask[py * width + px] != value) continue;
                part[py * width + px] = 1;
                stack[n++] = py * width + px;
            }
    }
    return area;
}

/* SAM 2's rule, the slow way: parts met column by column. */
static void remove_slowly(uint8_t *out, const uint8_t *mask, int width, int height, uint8_t value, size_t min_area)
{
    static uint8_t part[SIDE * SIDE], largest[SIDE * SIDE], seen[SIDE * SIDE];
    size_t n_kept = 0, best = 0;
    memset(seen, 0, sizeof seen);
    memcpy(out, mask, (size_t)(width * height));
    for (int x = 0; x < width; x++)
        for (int y = 0; y < height; y++) {
            if (mask[y * width + x] != value || seen[y * width + x]) continue;
            const size_t area = flood(part, mask, width, height, x, y);
            if (area > best) best = area, memcpy(largest, part, sizeof part);
            n_kept += area >= min_area;
            for (int i = 0; i < width * height; i++) {
                if (!part[i]) continue;
                seen[i] = 1;
                if (area < min_area) out[i] = !value;
            }
        }
    for (int i = 0; value == 1 && n_kept == 0 && best > 0 && i < width * height; i++)
        if (largest[i]) out[i] = 1;
}

static void fill_random(uint8_t *mask, size_t n, uint64_t *seed)
{
    const uint32_t density = ref_random(seed) % 11, grain = 1 + ref_random(seed) % 9;
    uint8_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || ref_random(seed) % grain == 0) value = ref_random(seed) % 10 < density;
        mask[i] = value;
    }
}

static void test_small_parts__as_flooding_finds_them(void **state)
{
    (void)state;
    uint64_t seed = 11;
    size_t n_changed = 0;
    for (int round = 0; round < 3000; round++) {
        const int width = 1 + (int)(ref_random(&seed) % SIDE), height = 1 + (int)(ref_random(&seed) % SIDE);
        const size_t n = (size_t)(width * height), min_area = ref_random(&seed) % (1 + n / 4);
        const st_small what = round % 2 ? ST_SMALL_HOLES : ST_SMALL_ISLANDS;
        st_rle mask, clean;
        int changed = -1;
        fill_random(dense, n, &seed);
        assert_int_equal(st_rle_from_dense(&mask, dense, (uint32_t)width, (uint32_t)height, (size_t)width, NULL),
                         ST_OK);
        assert_int_equal(st_rle_remove_small(&clean, &changed, &mask, what, min_area, NULL), ST_OK);
        assert_true(ref_is_canonical(&clean));
        remove_slowly(want, dense, width, height, what == ST_SMALL_ISLANDS, min_area);
        st_rle_to_dense(&clean, got, (size_t)width, 1);
        assert_memory_equal(got, want, n);
        assert_int_equal(changed, memcmp(want, dense, n) != 0);
        n_changed += (size_t)changed;
        st_rle_free(&mask), st_rle_free(&clean);
    }
    assert_true(n_changed > 500);
}

static void test_small_parts__by_hand(void **state)
{
    (void)state;
    static const uint8_t picture[6 * 7] = {
        1, 1, 1, 1, 0, 0, 0, /* a ring with a hole of one, */
        1, 0, 1, 1, 0, 1, 0, /* an island of two that touches nothing, */
        1, 1, 1, 1, 0, 1, 0, /**/
        1, 1, 1, 1, 0, 0, 0, /**/
        0, 0, 0, 0, 1, 0, 0, /* and a pixel that hangs on by its corner */
        0, 0, 0, 0, 0, 0, 0, /**/
    };
    st_rle mask, clean;
    int changed;
    assert_int_equal(st_rle_from_dense(&mask, picture, 7, 6, 7, NULL), ST_OK);
    assert_int_equal(st_rle_remove_small(&clean, &changed, &mask, ST_SMALL_HOLES, 2, NULL), ST_OK);
    assert_true(changed && st_rle_area(&clean) == st_rle_area(&mask) + 1);
    st_rle_free(&clean);
    assert_int_equal(st_rle_remove_small(&clean, &changed, &mask, ST_SMALL_ISLANDS, 3, NULL), ST_OK);
    assert_true(changed && st_rle_area(&clean) == st_rle_area(&mask) - 2);
    assert_true(ref_pixel(&clean, 4, 4)); /* the corner counts */
    st_rle_free(&clean);
    assert_int_equal(st_rle_remove_small(&clean, NULL, &mask, ST_SMALL_ISLANDS, 1000, NULL), ST_OK);
    assert_int_equal(st_rle_area(&clean), st_rle_area(&mask) - 2); /* all small: the largest stays */
    st_rle_free(&clean);
    assert_int_equal(st_rle_remove_small(&clean, NULL, &mask, ST_SMALL_HOLES, 1000, NULL), ST_OK);
    assert_int_equal(st_rle_area(&clean), 42); /* the outside is small too */
    st_rle_free(&clean), st_rle_free(&mask);
}

static void test_place__every_pixel_where_it_belongs(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 1000; round++) {
        const uint32_t w = 1 + ref_random(&seed) % 12, h = 1 + ref_random(&seed) % 12;
        const uint32_t x = ref_random(&seed) % 10, y = ref_random(&seed) % 10;
        const uint32_t width = x + w + ref_random(&seed) % 9, height = y + h + ref_random(&seed) % 9;
        st_rle mask, whole;
        fill_random(dense, (size_t)w * h, &seed);
        assert_int_equal(st_rle_from_dense(&mask, dense, w, h, w, NULL), ST_OK);
        assert_int_equal(st_rle_place(&whole, &mask, x, y, width, height, NULL), ST_OK);
        assert_true(ref_is_canonical(&whole) && whole.width == width && whole.height == height);
        for (uint32_t py = 0; py < height; py++)
            for (uint32_t px = 0; px < width; px++) {
                const bool inside = px >= x && py >= y && px < x + w && py < y + h;
                assert_int_equal(ref_pixel(&whole, px, py), inside && dense[(py - y) * w + px - x]);
            }
        st_rle_free(&mask), st_rle_free(&whole);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    uint32_t counts[2] = { 3, 4 };
    st_rle mask = { 3, 3, counts, 2 }, out;
    st_error err;
    assert_int_equal(st_rle_remove_small(&out, NULL, &mask, ST_SMALL_HOLES, 2, &err),
                     ST_ERR_FORMAT); /* 7 of 9 pixels */
    assert_null(out.counts);
    counts[1] = 6;
    assert_int_equal(st_rle_remove_small(&out, NULL, &mask, (st_small)2, 2, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_rle_place(&out, &mask, 1, 0, 3, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_rle_place(&out, &mask, 0, UINT32_MAX, 3, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_rle_place(&out, &mask, 0, 0, 0, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_rle_place(&out, &mask, 0, 0, 70000, 70000, &err), ST_ERR_LIMIT);
    assert_null(out.counts);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    uint32_t counts[5] = { 1, 1, 1, 1, 5 };
    const st_rle mask = { 3, 3, counts, 5 };
    st_rle out;
    for (int which = 0; which < 2; which++) {
        st_status status = ST_ERR_NOMEM;
        for (uint64_t k = 1; status != ST_OK; k++) {
            st_mem_fail_after(k);
            status = which ? st_rle_place(&out, &mask, 1, 1, 9, 9, NULL)
                           : st_rle_remove_small(&out, NULL, &mask, ST_SMALL_ISLANDS, 2, NULL);
            st_mem_fail_after(0);
            if (status != ST_OK) assert_true(status == ST_ERR_NOMEM && !out.counts);
            assert_true(k < 20);
        }
        st_rle_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_parts__as_flooding_finds_them),
        cmocka_unit_test(test_small_parts__by_hand),
        cmocka_unit_test(test_place__every_pixel_where_it_belongs),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
