/* export_shapes_test.c: rings, rows, brush bytes and base64 against slow and obvious ways back to the mask. */
#include "label/export_rings.h"
#include "label/export_rows.h"
#include "label/label_masks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const shapes[] = {
    "#",                                             /* one pixel, all of the picture */
    "...../..#../.....",                             /* one pixel */
    "###",                                           /* one pixel high */
    "./#/#/.",                                       /* one pixel wide */
    "..../.##./.##.",                                /* at the border */
    "#####/#...#/#.#.#/#...#/#####",                 /* a part in a hole */
    "#########/#.##.##.#/#########/#.#.#.#.#/#########", /* holes side by side */
    "#..#/.##./.##./#..#",                           /* corners that touch */
    "##.##/##.##/...../##.##",                       /* four parts */
    ".#./###/.#.",                                   /* a cross */
    "######/#.#..#/##.#.#/#.##.#/######",            /* holes that touch at corners */
    "#.#.#/.#.#./#.#.#",                             /* a chessboard */
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static double *as_doubles(const st_label_ring *r)
{
    double *xy = calloc(2 * r->n, sizeof *xy);
    for (size_t i = 0; i < 2 * r->n; i++) xy[i] = r->xy[i];
    return xy;
}

static void draw(uint8_t *pixels, const st_rle *mask, const st_label_rings *rings, st_label_points points)
{
    for (size_t k = 0; k < rings->n; k++) {
        double *xy = as_doubles(&rings->items[k]);
        if (points == ST_LABEL_CENTRES)
            mask_fill_with_border(pixels, mask->width, mask->height, xy, rings->items[k].n);
        else mask_flip_ring(pixels, mask->width, mask->height, xy, rings->items[k].n, 0.5);
        free(xy);
    }
}

static void check_rings(const st_rle *mask, st_label_points points)
{
    st_label_rings rings;
    st_error err;
    uint8_t *pixels = calloc(mask->width, mask->height);
    assert_int_equal(st_label_rings_make(&rings, mask, points, true, &err), ST_OK);
    draw(pixels, mask, &rings, points);
    assert_true(mask_equals(mask, pixels));
    for (size_t k = 0; k < rings.n; k++)
        for (size_t i = 0; i < rings.items[k].n; i++) {
            const int32_t *p = rings.items[k].xy + 2 * i, over = points == ST_LABEL_EDGES;
            assert_in_range(p[0], 0, mask->width - 1 + (uint32_t)over);
            assert_in_range(p[1], 0, mask->height - 1 + (uint32_t)over);
        }
    st_label_rings_free(&rings);
    free(pixels);
}

static void test_rings_give_the_mask_back(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (size_t i = 0; i < N_SHAPES; i++) {
        st_rle mask = mask_of_text(shapes[i]);
        check_rings(&mask, ST_LABEL_EDGES);
        check_rings(&mask, ST_LABEL_CENTRES);
        st_rle_free(&mask);
    }
    for (unsigned i = 0; i < 300; i++) {
        st_rle mask = mask_at_random(&seed, 1 + ref_random(&seed) % 40, 1 + ref_random(&seed) % 40,
                                     64 + ref_random(&seed) % 180, i % 3);
        if (st_rle_area(&mask)) check_rings(&mask, ST_LABEL_EDGES), check_rings(&mask, ST_LABEL_CENTRES);
        st_rle_free(&mask);
    }
}

/* What cannot be reached from outside the picture without crossing the mask, diagonal steps allowed. */
static void fill_holes(uint8_t *out, const st_rle *mask)
{
    const uint32_t w = mask->width + 2, h = mask->height + 2;
    uint8_t *wide = calloc(w, h);
    uint32_t *labels = calloc((size_t)w * h, sizeof *labels);
    for (uint32_t y = 0; y < mask->height; y++)
        for (uint32_t x = 0; x < mask->width; x++) wide[(y + 1) * w + x + 1] = ref_pixel(mask, x, y);
    ref_label(labels, wide, w, h, 0, true);
    for (uint32_t y = 0; y < mask->height; y++)
        for (uint32_t x = 0; x < mask->width; x++)
            out[(size_t)y * mask->width + x] = labels[(y + 1) * w + x + 1] != labels[0];
    free(labels);
    free(wide);
}

/* Without bridges a hole is filled with all that is in it, and nothing else changes, also when the parts are joined. */
static void test_rings_without_bridges_fill_holes(void **state)
{
    (void)state;
    uint64_t seed = 11;
    size_t n_holes = 0;
    for (unsigned i = 0; i < 90; i++) {
        st_rle mask = i < N_SHAPES ? mask_of_text(shapes[i]) : mask_at_random(&seed, 30, 25, 120 + i, i % 3), filled;
        const size_t n = (size_t)mask.width * mask.height;
        uint8_t *pixels = calloc(n, 1), *want = calloc(n, 1);
        st_label_rings rings;
        fill_holes(want, &mask);
        assert_int_equal(st_rle_from_dense(&filled, want, mask.width, mask.height, mask.width, NULL), ST_OK);
        for (int points = 0; points < 2; points++) {
            memset(pixels, 0, n);
            assert_int_equal(st_label_rings_make(&rings, &mask, (st_label_points)points, false, NULL), ST_OK);
            n_holes += rings.n_holes;
            draw(pixels, &mask, &rings, (st_label_points)points);
            assert_true(mask_equals(&filled, pixels));
            st_label_rings_free(&rings);
        }
        assert_int_equal(st_label_rings_make(&rings, &mask, ST_LABEL_EDGES, false, NULL), ST_OK);
        assert_int_equal(st_label_rings_join(&rings, NULL), ST_OK);
        memset(pixels, 0, n);
        draw(pixels, &mask, &rings, ST_LABEL_EDGES);
        assert_true(mask_equals(&filled, pixels));
        st_label_rings_free(&rings);
        st_rle_free(&filled);
        st_rle_free(&mask);
        free(pixels);
        free(want);
    }
    assert_true(n_holes > 100);
}

/* Joined parts: an even-odd fill of pixel centres gives the mask back; one that draws the border adds the lines only. */
static void test_joined_parts(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t n_joined = 0;
    for (unsigned i = 0; i < 60; i++) {
        st_rle mask = i < N_SHAPES ? mask_of_text(shapes[i]) : mask_at_random(&seed, 60, 50, 100 + i, 2);
        uint8_t *pixels = calloc(mask.width, mask.height), *bordered = calloc(mask.width, mask.height);
        st_label_rings rings;
        if (st_rle_area(&mask)) {
            assert_int_equal(st_label_rings_make(&rings, &mask, ST_LABEL_EDGES, true, NULL), ST_OK);
            n_joined += rings.n > 1;
            assert_int_equal(st_label_rings_join(&rings, NULL), ST_OK);
            assert_int_equal(rings.n, 1);
            draw(pixels, &mask, &rings, ST_LABEL_EDGES);
            assert_true(mask_equals(&mask, pixels));
            st_label_rings_free(&rings);
            assert_int_equal(st_label_rings_make(&rings, &mask, ST_LABEL_CENTRES, true, NULL), ST_OK);
            assert_int_equal(st_label_rings_join(&rings, NULL), ST_OK);
            draw(bordered, &mask, &rings, ST_LABEL_CENTRES);
            for (uint32_t y = 0; y < mask.height; y++)
                for (uint32_t x = 0; x < mask.width; x++)
                    if (ref_pixel(&mask, x, y)) assert_true(bordered[y * mask.width + x]);
            st_label_rings_free(&rings);
        }
        st_rle_free(&mask);
        free(pixels);
        free(bordered);
    }
    assert_true(n_joined > 20);
}

/* Parts that touch at corners become one ring, and nothing else does: as many rings as 8-connected parts, and the mask. */
static void test_touching_parts(void **state)
{
    (void)state;
    uint64_t seed = 23;
    size_t n_joined = 0;
    for (unsigned i = 0; i < 200; i++) {
        st_rle mask = i < N_SHAPES ? mask_of_text(shapes[i]) : mask_at_random(&seed, 1 + i % 47, 1 + i % 31, 60 + i, i % 3);
        uint8_t *pixels = calloc(mask.width, mask.height);
        uint32_t *labels = calloc((size_t)mask.width * mask.height, sizeof *labels);
        st_label_rings rings;
        assert_int_equal(st_label_rings_make(&rings, &mask, ST_LABEL_CENTRES, true, NULL), ST_OK);
        const size_t before = rings.n, n_holes = rings.n_holes;
        assert_int_equal(st_label_rings_touch(&rings, NULL), ST_OK);
        n_joined += before - rings.n;
        draw(pixels, &mask, &rings, ST_LABEL_CENTRES);
        assert_true(mask_equals(&mask, pixels));
        assert_int_equal(rings.n, ref_label(labels, pixels, mask.width, mask.height, 1, true));
        assert_int_equal(rings.n_holes, n_holes);
        st_label_rings_free(&rings);
        st_rle_free(&mask);
        free(labels);
        free(pixels);
    }
    assert_true(n_joined > 100);
}

static void test_crop_and_runs(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned i = 0; i < 80; i++) {
        st_rle mask = i < N_SHAPES ? mask_of_text(shapes[i]) : mask_at_random(&seed, 1 + i, 33, 100, 1);
        st_label_crop crop;
        uint32_t *runs;
        size_t n, at = 0;
        assert_int_equal(st_label_crop_make(&crop, &mask, NULL), ST_OK);
        assert_int_equal(st_label_crop_runs(&runs, &n, &crop, NULL), ST_OK);
        for (size_t k = 0; k < n; k++)
            for (uint32_t j = 0; j < runs[k]; j++, at++) {
                const uint32_t x = crop.box.x0 + (uint32_t)(at % crop.width), y = crop.box.y0 + (uint32_t)(at / crop.width);
                assert_int_equal(ref_pixel(&mask, x, y), k & 1);
            }
        assert_int_equal(at, (size_t)crop.width * crop.height);
        free(runs);
        st_label_crop_free(&crop);
        st_rle_free(&mask);
    }
}

/* As CVAT counts: rows "110/100" are 0, 3, 1 in the box of 2 x 2. */
static void test_runs_of_cvat(void **state)
{
    (void)state;
    st_rle mask = mask_of_text("##./#..");
    st_label_crop crop;
    uint32_t *runs;
    size_t n;
    assert_int_equal(st_label_crop_make(&crop, &mask, NULL), ST_OK);
    assert_int_equal(st_label_crop_runs(&runs, &n, &crop, NULL), ST_OK);
    assert_int_equal(n, 3);
    assert_int_equal(runs[0], 0);
    assert_int_equal(runs[1], 3);
    assert_int_equal(runs[2], 1);
    free(runs);
    st_label_crop_free(&crop);
    st_rle_free(&mask);
}

/* ---- brush ---- */

static uint64_t take(const uint8_t *bytes, size_t *at, unsigned n)
{
    uint64_t value = 0;
    while (n-- > 0) {
        value = value << 1 | ((bytes[*at / 8] >> (7 - *at % 8)) & 1);
        ++*at;
    }
    return value;
}

static void check_brush(const st_rle *mask)
{
    uint8_t *bytes;
    size_t n, at = 0, n_elements = 0;
    unsigned sizes[4];
    assert_int_equal(st_label_brush(&bytes, &n, mask, NULL), ST_OK);
    const size_t total = take(bytes, &at, 32), word = take(bytes, &at, 5) + 1;
    assert_int_equal(total, 4 * (size_t)mask->width * mask->height);
    assert_int_equal(word, 8);
    for (unsigned i = 0; i < 4; i++) sizes[i] = (unsigned)take(bytes, &at, 4) + 1;
    uint8_t *pixels = calloc(mask->width, mask->height);
    while (n_elements < total) {
        assert_true(at < 8 * n);
        const uint64_t repeated = take(bytes, &at, 1), which = take(bytes, &at, 2);
        const uint64_t length = take(bytes, &at, sizes[which]) + 1;
        assert_true(repeated);
        const uint64_t value = take(bytes, &at, 8);
        for (uint64_t k = 0; k < length; k++, n_elements++)
            if (n_elements % 4 == 3) pixels[n_elements / 4] = value != 0;
    }
    assert_true(at <= 8 * n && 8 * n - at <= 8);
    assert_true(mask_equals(mask, pixels));
    free(pixels);
    free(bytes);
}

static void test_brush(void **state)
{
    (void)state;
    uint64_t seed = 17;
    for (unsigned i = 0; i < 60; i++) {
        st_rle mask = i < N_SHAPES ? mask_of_text(shapes[i]) : mask_at_random(&seed, 1 + 3 * i, 50, 120, i % 3);
        check_brush(&mask);
        st_rle_free(&mask);
    }
    const uint32_t counts[3] = { 40000, 30000, 50000 }; /* runs beyond 65,536 elements */
    st_rle tall;
    assert_int_equal(st_rle_from_counts(&tall, counts, 3, 1, 120000, NULL), ST_OK);
    check_brush(&tall);
    st_rle_free(&tall);
}

/* Bytes of label_studio_sdk.converter.brush.mask2rle. */
static void test_brush_as_label_studio(void **state)
{
    (void)state;
    static const uint8_t small[] = { 0, 0, 0, 48, 57, 27, 254, 19, 0, 159, 254, 112, 9, 255, 227, 0, 0 };
    static const uint8_t empty[] = { 0, 1, 0, 0, 57, 27, 255, 255, 255, 0, 0 };
    st_rle mask = mask_of_text("..../.##./.##.");
    const uint32_t none = 128 * 128;
    uint8_t *bytes;
    size_t n;
    assert_int_equal(st_label_brush(&bytes, &n, &mask, NULL), ST_OK);
    assert_int_equal(n, sizeof small);
    assert_memory_equal(bytes, small, n);
    free(bytes);
    st_rle_free(&mask);
    assert_int_equal(st_rle_from_counts(&mask, &none, 1, 128, 128, NULL), ST_OK);
    assert_int_equal(st_label_brush(&bytes, &n, &mask, NULL), ST_OK);
    assert_int_equal(n, sizeof empty);
    assert_memory_equal(bytes, empty, n);
    free(bytes);
    st_rle_free(&mask);
}

static void test_brush_refuses_what_it_cannot_count(void **state)
{
    (void)state;
    const uint32_t none = 40000u * 40000u;
    st_rle mask;
    uint8_t *bytes;
    size_t n;
    st_error err;
    assert_int_equal(st_rle_from_counts(&mask, &none, 1, 40000, 40000, NULL), ST_OK);
    assert_int_equal(st_label_brush(&bytes, &n, &mask, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "40000 x 40000"));
    st_rle_free(&mask);
}

static void test_base64(void **state)
{
    (void)state;
    static const char *const pairs[][2] = { { "", "" },         { "f", "Zg==" },         { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },  { "foob", "Zm9vYg==" },  { "fooba", "Zm9vYmE=" },
                                            { "\xff\xfe\x3e", "//4+" } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *text = st_label_base64((const uint8_t *)pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text, pairs[i][1]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rings_give_the_mask_back),
        cmocka_unit_test(test_rings_without_bridges_fill_holes),
        cmocka_unit_test(test_joined_parts),
        cmocka_unit_test(test_touching_parts),
        cmocka_unit_test(test_crop_and_runs),
        cmocka_unit_test(test_runs_of_cvat),
        cmocka_unit_test(test_brush),
        cmocka_unit_test(test_brush_as_label_studio),
        cmocka_unit_test(test_brush_refuses_what_it_cannot_count),
        cmocka_unit_test(test_base64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
