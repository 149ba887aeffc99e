/* mask_rle_test.c: run lengths against dense maps and against pycocotools (tests/data/masks/rle.json). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "mask_reference.h"

#define MAX_SIDE 70

static uint8_t dense[MAX_SIDE * MAX_SIDE], other[MAX_SIDE * MAX_SIDE], result[MAX_SIDE * MAX_SIDE];

/* Noise of a density that changes from mask to mask, including none and all. */
static void fill_random(uint8_t *mask, size_t n, uint64_t *seed)
{
    const uint32_t density = ref_random(seed) % 11, grain = 1 + ref_random(seed) % 9;
    bool value = false;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || ref_random(seed) % grain == 0) value = ref_random(seed) % 10 < density;
        mask[i] = value ? (uint8_t)(1 + ref_random(seed) % 255) : 0;
    }
}

static st_rle from_dense(const uint8_t *mask, uint32_t width, uint32_t height)
{
    st_rle rle;
    assert_int_equal(st_rle_from_dense(&rle, mask, width, height, width, NULL), ST_OK);
    assert_true(ref_is_canonical(&rle));
    assert_int_equal(rle.width, width);
    assert_int_equal(rle.height, height);
    return rle;
}

static void assert_same(const st_rle *a, const st_rle *b)
{
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->height, b->height);
    assert_int_equal(a->n_counts, b->n_counts);
    assert_memory_equal(a->counts, b->counts, a->n_counts * sizeof *a->counts);
}

/* ---- against dense maps ---- */

static void check_measures(const st_rle *rle, const uint8_t *mask)
{
    uint64_t area = 0;
    st_box_px box = { UINT32_MAX, UINT32_MAX, 0, 0 };
    for (uint32_t y = 0; y < rle->height; y++) {
        for (uint32_t x = 0; x < rle->width; x++) {
            if (!mask[y * rle->width + x]) continue;
            area++;
            if (x < box.x0) box.x0 = x;
            if (y < box.y0) box.y0 = y;
            if (x >= box.x1) box.x1 = x + 1;
            if (y >= box.y1) box.y1 = y + 1;
        }
    }
    if (area == 0) memset(&box, 0, sizeof box);
    const st_box_px got = st_rle_box(rle);
    assert_int_equal(st_rle_area(rle), area);
    assert_memory_equal(&got, &box, sizeof box);
}

static void dense_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 11;
    size_t n_runs = 0;
    for (int i = 0; i < 3000; i++) {
        const uint32_t width = 1 + ref_random(&seed) % MAX_SIDE, height = 1 + ref_random(&seed) % MAX_SIDE;
        const size_t n = (size_t)width * height;
        fill_random(dense, n, &seed);
        st_rle rle = from_dense(dense, width, height);
        memset(result, 0x55, n);
        st_rle_to_dense(&rle, result, width, 1);
        for (size_t p = 0; p < n; p++) assert_int_equal(result[p], dense[p] != 0);
        check_measures(&rle, dense);
        n_runs += rle.n_counts;
        st_rle_free(&rle);
        assert_null(rle.counts);
    }
    assert_true(n_runs > 100000);
}

static void strides_and_values(void **state)
{
    (void)state;
    /* 3 x 2 picture in rows of 5 bytes; the bytes between belong to somebody else. */
    const uint8_t mask[] = { 0, 7, 0, 9, 9, 255, 0, 1, 9, 9 };
    st_rle rle;
    assert_int_equal(st_rle_from_dense(&rle, mask, 3, 2, 5, NULL), ST_OK);
    const uint32_t counts[] = { 1, 2, 2, 1 };
    assert_int_equal(rle.n_counts, 4);
    assert_memory_equal(rle.counts, counts, sizeof counts);
    uint8_t out[10];
    memset(out, 0x55, sizeof out);
    st_rle_to_dense(&rle, out, 5, 200);
    const uint8_t expected[] = { 0, 200, 0, 0x55, 0x55, 200, 0, 200, 0x55, 0x55 };
    assert_memory_equal(out, expected, sizeof out);
    st_rle_free(&rle);
    st_error err = { 0 };
    assert_int_equal(st_rle_from_dense(&rle, mask, 3, 2, 2, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "2 bytes"));
    assert_null(rle.counts);
}

static void check_pair(uint32_t width, uint32_t height)
{
    static const st_rle_op ops[] = { ST_RLE_UNION, ST_RLE_INTERSECT, ST_RLE_SUBTRACT };
    const size_t n = (size_t)width * height;
    st_rle a = from_dense(dense, width, height), b = from_dense(other, width, height);
    uint64_t both = 0, either = 0;
    for (size_t p = 0; p < n; p++) both += dense[p] && other[p], either += dense[p] || other[p];
    assert_int_equal(st_rle_intersection(&a, &b), both);
    assert_true(st_rle_iou(&a, &b) == (either ? (double)both / (double)either : 0.0));
    assert_true(st_rle_iou(&b, &a) == st_rle_iou(&a, &b));
    for (size_t k = 0; k < 3; k++) {
        for (size_t p = 0; p < n; p++) {
            const bool in = k == 0 ? dense[p] || other[p] : k == 1 ? dense[p] && other[p] : dense[p] && !other[p];
            result[p] = in;
        }
        st_rle expected = from_dense(result, width, height), got;
        assert_int_equal(st_rle_combine(&got, &a, &b, ops[k], NULL), ST_OK);
        assert_same(&got, &expected);
        st_rle_free(&got);
        st_rle_free(&expected);
    }
    st_rle_free(&a);
    st_rle_free(&b);
}

static void overlap_and_combinations(void **state)
{
    (void)state;
    uint64_t seed = 12;
    for (int i = 0; i < 2000; i++) {
        const uint32_t width = 1 + ref_random(&seed) % MAX_SIDE, height = 1 + ref_random(&seed) % MAX_SIDE;
        fill_random(dense, (size_t)width * height, &seed);
        fill_random(other, (size_t)width * height, &seed);
        check_pair(width, height);
    }
}

static void different_sizes_do_not_mix(void **state)
{
    (void)state;
    memset(dense, 1, sizeof dense);
    st_rle a = from_dense(dense, 4, 6), b = from_dense(dense, 6, 4), out = { 0 };
    st_error err = { 0 };
    assert_int_equal(st_rle_intersection(&a, &b), 0);
    assert_true(st_rle_iou(&a, &b) == 0);
    assert_int_equal(st_rle_combine(&out, &a, &b, ST_RLE_UNION, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "4 x 6 and 6 x 4"));
    assert_int_equal(st_rle_combine(&out, &a, &a, (st_rle_op)3, &err), ST_ERR_INVALID_ARG);
    assert_null(out.counts);
    st_rle_free(&a);
    st_rle_free(&b);
}

/* A struct that nobody filled, and one whose runs do not reach the end, are empty where they say nothing. */
static void odd_structs_are_harmless(void **state)
{
    (void)state;
    st_rle none = { 0 }, copy;
    st_error err = { 0 };
    assert_int_equal(st_rle_area(&none), 0);
    assert_int_equal(st_rle_box(&none).x1, 0);
    assert_int_equal(st_rle_intersection(&none, &none), 0);
    assert_true(st_rle_iou(&none, &none) == 0);
    assert_int_equal(st_rle_copy(&copy, &none, NULL), ST_OK);
    assert_null(copy.counts);
    assert_int_equal(st_rle_combine(&copy, &none, &none, ST_RLE_UNION, &err), ST_ERR_INVALID_ARG);
    st_rle_to_dense(&none, dense, 1, 1);
    st_rle_free(&none);
    st_rle_free(NULL);

    uint32_t too_few[] = { 1, 2, 0, 1 }, too_many[] = { 0, 4, 4000000000u, 4000000000u, 1 };
    const st_rle few = { 3, 3, too_few, 4 }, many = { 3, 3, too_many, 5 };
    memset(result, 0x55, sizeof result);
    st_rle_to_dense(&many, result, 3, 1);
    assert_int_equal(result[9], 0x55);
    uint32_t past_the_end[] = { 1, 100 };
    const st_rle long_run = { 3, 3, past_the_end, 2 };
    st_rle_to_dense(&long_run, result, 3, 1);
    assert_int_equal(result[8], 1);
    assert_int_equal(result[9], 0x55);
    assert_int_equal(st_rle_intersection(&few, &many), 3);
    st_rle both;
    assert_int_equal(st_rle_combine(&both, &few, &many, ST_RLE_UNION, NULL), ST_OK);
    assert_true(ref_is_canonical(&both));
    assert_int_equal(st_rle_area(&both), 4);
    st_rle_free(&both);
}

static void copies_stand_alone(void **state)
{
    (void)state;
    uint64_t seed = 13;
    fill_random(dense, 30 * 20, &seed);
    st_rle rle = from_dense(dense, 30, 20), copy;
    assert_int_equal(st_rle_copy(&copy, &rle, NULL), ST_OK);
    assert_same(&rle, &copy);
    assert_ptr_not_equal(rle.counts, copy.counts);
    st_rle_free(&rle);
    assert_true(ref_is_canonical(&copy));
    st_rle_free(&copy);
}

static void counts_are_checked_and_joined(void **state)
{
    (void)state;
    const uint32_t counts[] = { 2, 0, 1, 3, 0, 1, 2, 0, 0, 0 }, joined[] = { 3, 4, 2 };
    st_rle rle;
    st_error err = { 0 };
    assert_int_equal(st_rle_from_counts(&rle, counts, 10, 3, 3, NULL), ST_OK);
    assert_int_equal(rle.n_counts, 3);
    assert_memory_equal(rle.counts, joined, sizeof joined);
    st_rle_free(&rle);
    const uint32_t leading[] = { 0, 0, 0, 9 };
    assert_int_equal(st_rle_from_counts(&rle, leading, 4, 3, 3, NULL), ST_OK);
    assert_int_equal(rle.n_counts, 2);
    assert_int_equal(rle.counts[0], 0);
    st_rle_free(&rle);
    assert_int_equal(st_rle_from_counts(&rle, counts, 10, 3, 4, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "fewer"));
    assert_int_equal(st_rle_from_counts(&rle, counts, 10, 2, 4, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "more"));
    const uint32_t wrapping[] = { UINT32_MAX, UINT32_MAX, 11 };
    assert_int_equal(st_rle_from_counts(&rle, wrapping, 3, 3, 3, &err), ST_ERR_FORMAT);
    assert_int_equal(st_rle_from_counts(&rle, NULL, 0, 3, 3, &err), ST_ERR_FORMAT);
    assert_null(rle.counts);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    static const struct {
        uint32_t width, height;
        st_status status;
    } sizes[] = {
        { 0, 5, ST_ERR_INVALID_ARG },
        { 5, 0, ST_ERR_INVALID_ARG },
        { 0, 0, ST_ERR_INVALID_ARG },
        { 65536, 65536, ST_ERR_LIMIT },
        { UINT32_MAX, UINT32_MAX, ST_ERR_LIMIT },
        { UINT32_MAX, 2, ST_ERR_LIMIT },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t w = sizes[i].width, h = sizes[i].height, count = 1;
        const float logit = 1;
        st_rle rle;
        st_error err = { 0 };
        assert_int_equal(st_rle_from_string(&rle, "0", 1, w, h, &err), sizes[i].status);
        assert_int_equal(err.status, sizes[i].status);
        assert_int_equal(st_rle_from_counts(&rle, &count, 1, w, h, NULL), sizes[i].status);
        assert_int_equal(st_rle_from_dense(&rle, dense, w, h, w, NULL), sizes[i].status);
        assert_int_equal(st_rle_from_logits(&rle, &logit, 1, 1, w, h, 0, NULL), sizes[i].status);
        assert_null(rle.counts);
    }
}

/* ---- strings ---- */

static json_t *load(const char *name)
{
    json_error_t error;
    json_t *root = json_load_file(name, 0, &error);
    if (!root) fail_msg("%s: %s", name, error.text);
    return root;
}

static uint32_t number_at(const json_t *array, size_t i)
{
    assert_true(json_is_integer(json_array_get(array, i)));
    return (uint32_t)json_integer_value(json_array_get(array, i));
}

static st_rle from_string(const json_t *string, uint32_t width, uint32_t height)
{
    st_rle rle;
    assert_int_equal(
        st_rle_from_string(&rle, json_string_value(string), json_string_length(string), width, height, NULL), ST_OK);
    assert_true(ref_is_canonical(&rle));
    return rle;
}

static void assert_string(const st_rle *rle, const json_t *expected)
{
    char *string;
    assert_int_equal(st_rle_to_string(&string, rle, NULL), ST_OK);
    assert_string_equal(string, json_string_value(expected));
    st_string_free(string);
}

static void check_vector(const json_t *vector)
{
    const json_t *size = json_object_get(vector, "size"), *counts = json_object_get(vector, "counts"),
                 *box = json_object_get(vector, "box");
    const uint32_t height = number_at(size, 0), width = number_at(size, 1);
    st_rle rle = from_string(json_object_get(vector, "string"), width, height);
    assert_int_equal(rle.n_counts, json_array_size(counts));
    for (size_t i = 0; i < rle.n_counts; i++) assert_int_equal(rle.counts[i], number_at(counts, i));
    assert_string(&rle, json_object_get(vector, "string"));
    assert_int_equal(st_rle_area(&rle), json_integer_value(json_object_get(vector, "area")));
    if (box) {
        const st_box_px got = st_rle_box(&rle);
        assert_int_equal(got.x0, number_at(box, 0));
        assert_int_equal(got.y0, number_at(box, 1));
        assert_int_equal(got.x1 - got.x0, number_at(box, 2));
        assert_int_equal(got.y1 - got.y0, number_at(box, 3));
    }
    st_rle_free(&rle);
}

static void strings_equal_pycocotools(void **state)
{
    (void)state;
    json_t *root = load(ST_SOURCE_DIR "/tests/data/masks/rle.json");
    const json_t *masks = json_object_get(root, "masks");
    assert_true(json_array_size(masks) >= 35);
    for (size_t i = 0; i < json_array_size(masks); i++) check_vector(json_array_get(masks, i));
    json_decref(root);
}

static void pairs_equal_pycocotools(void **state)
{
    (void)state;
    json_t *root = load(ST_SOURCE_DIR "/tests/data/masks/rle.json");
    const json_t *pairs = json_object_get(root, "pairs");
    assert_true(json_array_size(pairs) >= 6);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i), *size = json_object_get(pair, "size");
        st_rle a = from_string(json_object_get(pair, "a"), number_at(size, 1), number_at(size, 0)), out;
        st_rle b = from_string(json_object_get(pair, "b"), number_at(size, 1), number_at(size, 0));
        assert_int_equal(st_rle_combine(&out, &a, &b, ST_RLE_UNION, NULL), ST_OK);
        assert_string(&out, json_object_get(pair, "union"));
        st_rle_free(&out);
        assert_int_equal(st_rle_combine(&out, &a, &b, ST_RLE_INTERSECT, NULL), ST_OK);
        assert_string(&out, json_object_get(pair, "intersection"));
        st_rle_free(&out);
        assert_true(st_rle_iou(&a, &b) == json_real_value(json_object_get(pair, "iou")));
        st_rle_free(&a);
        st_rle_free(&b);
    }
    json_decref(root);
}

static void strings_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 14;
    for (int i = 0; i < 2000; i++) {
        const uint32_t width = 1 + ref_random(&seed) % MAX_SIDE, height = 1 + ref_random(&seed) % MAX_SIDE;
        fill_random(dense, (size_t)width * height, &seed);
        st_rle rle = from_dense(dense, width, height), back;
        char *string;
        assert_int_equal(st_rle_to_string(&string, &rle, NULL), ST_OK);
        assert_int_equal(st_rle_from_string(&back, string, strlen(string), width, height, NULL), ST_OK);
        assert_same(&rle, &back);
        st_rle_free(&back);
        /* One pixel more or less, or cut anywhere, is another size's string. */
        assert_int_equal(st_rle_from_string(&back, string, strlen(string), width + 1, height, NULL), ST_ERR_FORMAT);
        if (width > 1)
            assert_int_equal(st_rle_from_string(&back, string, strlen(string), width - 1, height, NULL), ST_ERR_FORMAT);
        assert_int_equal(st_rle_from_string(&back, string, strlen(string) - 1, width, height, NULL), ST_ERR_FORMAT);
        st_string_free(string);
        st_rle_free(&rle);
    }
}

static void malformed_strings(void **state)
{
    (void)state;
    static const struct {
        const char *string;
        uint32_t width, height;
        const char *says;
    } bad[] = {
        { "", 3, 4, "add up to 0" },             /* nothing at all */
        { ";", 3, 4, "add up to 11" },           /* too few */
        { "=", 3, 4, "run 0 goes past the 12" }, /* too many */
        { "4210", 3, 4, "add up to 9" },         /* cut after a run */
        { "42102\\", 3, 4, "ends within" },      /* 0x5c: another group should follow */
        { "P", 1, 1, "ends within" },            /* one group, says that more come */
        { "4 102", 3, 4, "byte 1 is 0x20" },     /* under '0' */
        { "4p102", 3, 4, "byte 1 is 0x70" },     /* over 'o' */
        { "421\xff", 3, 4, "byte 3 is 0xff" },
        { "O", 3, 4, "run 0 has a negative length" },    /* -1 */
        { "421M", 3, 4, "run 3 has a negative length" }, /* 2 - 3 */
        { "PPPPPPPP0", 3, 4, "takes more than 7" },
        { "ooooooo0", 3, 4, "takes more than 7" },
        { "oooooo?", 3, 4, "goes past" }, /* 2^34 - 1 and like: large, but no overflow */
        { "PPPPPP@", 3, 4, "negative" },  /* -2^34 */
        { "<<", 3, 4, "run 1 goes past" },
        { "QPPloo3", 65535, 65534, "goes past" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        st_rle rle = { 1, 1, NULL, 7 };
        st_error err = { 0 };
        const st_status status =
            st_rle_from_string(&rle, bad[i].string, strlen(bad[i].string), bad[i].width, bad[i].height, &err);
        if (status != ST_ERR_FORMAT || !strstr(err.message, bad[i].says)) {
            fail_msg("\"%s\": status %d, \"%s\", expected \"%s\"", bad[i].string, (int)status, err.message,
                     bad[i].says);
        }
        assert_null(rle.counts);
        assert_int_equal(rle.n_counts, 0);
    }
    /* A NUL is a byte like any other that does not belong. */
    st_rle rle;
    assert_int_equal(st_rle_from_string(&rle,
                                        "42\0"
                                        "02",
                                        5, 4, 3, NULL),
                     ST_ERR_FORMAT);
}

/* Accepted though no writer of ours makes them: empty runs, and values in more groups than they need. */
static void loose_strings_become_canonical(void **state)
{
    (void)state;
    static const struct {
        const char *string, *canonical;
    } loose[] = {
        { "<0", "<" },      /* 12 0 */
        { "0<0", "0<" },    /* 0 12 0 */
        { "00<", "<" },     /* 0 0 12 */
        { "408", "<" },     /* 4 0 8 */
        { "340L5", "345" }, /* 3 4 0 0 5 */
        { "\\0", "<" },     /* 12 in two groups */
        { "\\P0", "<" },    /* and in three */
    };
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++) {
        st_rle rle;
        char *string;
        assert_int_equal(st_rle_from_string(&rle, loose[i].string, strlen(loose[i].string), 3, 4, NULL), ST_OK);
        assert_true(ref_is_canonical(&rle));
        assert_int_equal(st_rle_to_string(&string, &rle, NULL), ST_OK);
        assert_string_equal(string, loose[i].canonical);
        st_string_free(string);
        st_rle_free(&rle);
    }
}

/* ---- sizes that no dense map could have ---- */

static void huge_pictures(void **state)
{
    (void)state;
    const uint64_t area = UINT64_C(65535) * 65535;
    const uint32_t full_counts[] = { 0, (uint32_t)area },
                   cross_counts[] = { 65535u * 30000u + 17, 65535u, 65535u * 35534u - 17 };
    st_rle full, cross, out;
    assert_int_equal(st_rle_from_counts(&full, full_counts, 2, 65535, 65535, NULL), ST_OK);
    assert_int_equal(st_rle_from_counts(&cross, cross_counts, 3, 65535, 65535, NULL), ST_OK);
    assert_true(st_rle_area(&full) == area);
    const st_box_px box = st_rle_box(&full), cross_box = st_rle_box(&cross);
    assert_true(box.x1 == 65535 && box.y1 == 65535 && box.x0 == 0 && box.y0 == 0);
    assert_true(cross_box.x0 == 30000 && cross_box.x1 == 30002 && cross_box.y0 == 0 && cross_box.y1 == 65535);
    assert_true(st_rle_intersection(&full, &cross) == 65535);
    assert_true(st_rle_iou(&full, &cross) == 65535.0 / (double)area);
    assert_int_equal(st_rle_combine(&out, &full, &cross, ST_RLE_SUBTRACT, NULL), ST_OK);
    assert_true(st_rle_area(&out) == area - 65535);
    st_rle_free(&out);
    assert_int_equal(st_rle_combine(&out, &full, &cross, ST_RLE_UNION, NULL), ST_OK);
    assert_same(&out, &full);
    st_polygons outlines;
    assert_int_equal(st_rle_to_polygons(&outlines, &cross, NULL), ST_OK);
    assert_int_equal(outlines.n,
                     2); /* the lower part of one column, the upper part of the next: they share a corner only */
    st_polygons_free(&outlines);
    st_rle_free(&out);
    st_rle_free(&full);
    st_rle_free(&cross);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_round_trip),
        cmocka_unit_test(strides_and_values),
        cmocka_unit_test(overlap_and_combinations),
        cmocka_unit_test(different_sizes_do_not_mix),
        cmocka_unit_test(odd_structs_are_harmless),
        cmocka_unit_test(copies_stand_alone),
        cmocka_unit_test(counts_are_checked_and_joined),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(strings_equal_pycocotools),
        cmocka_unit_test(pairs_equal_pycocotools),
        cmocka_unit_test(strings_round_trip),
        cmocka_unit_test(malformed_strings),
        cmocka_unit_test(loose_strings_become_canonical),
        cmocka_unit_test(huge_pictures),
    };
    return cmocka_run_group_tests_name("mask_rle", tests, NULL, NULL);
}
