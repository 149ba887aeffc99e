/* mask_upsample_test.c: runs from logits must equal a dense resize and test, pixel for pixel, and PyTorch's
 * (tests/data/masks/upsample.json). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "mask_reference.h"

enum { MAX_LOGITS = 300 * 300, MAX_PIXELS = 1100 * 1100 };

static float logits[MAX_LOGITS];
static uint8_t expected[MAX_PIXELS];

static float random_unit(uint64_t *seed) /* [-1, 1) */
{
    return ((float)(ref_random(seed) >> 8) - 8388608.0f) / 8388608.0f;
}

/* Compares with the dense way, and says where the first difference is. Returns the number of runs. */
static size_t check(uint32_t rows, uint32_t cols, uint32_t width, uint32_t height, float threshold, const char *what)
{
    st_rle got, want;
    assert_true((size_t)rows * cols <= MAX_LOGITS && (size_t)width * height <= MAX_PIXELS);
    ref_upsample(expected, logits, rows, cols, width, height, threshold);
    assert_int_equal(st_rle_from_dense(&want, expected, width, height, width, NULL), ST_OK);
    assert_int_equal(st_rle_from_logits(&got, logits, rows, cols, width, height, threshold, NULL), ST_OK);
    assert_true(ref_is_canonical(&got));
    if (got.n_counts != want.n_counts || memcmp(got.counts, want.counts, got.n_counts * sizeof *got.counts) != 0) {
        uint64_t p = 0;
        for (size_t i = 0; i < want.n_counts && i < got.n_counts && got.counts[i] == want.counts[i]; i++)
            p += want.counts[i];
        fail_msg("%s: %u x %u logits to %u x %u, threshold %.9g: differs in the run that starts at column %u, row %u",
                 what, cols, rows, width, height, (double)threshold, (unsigned)(p / height), (unsigned)(p % height));
    }
    const size_t n_runs = got.n_counts;
    st_rle_free(&got);
    st_rle_free(&want);
    return n_runs;
}

/* ---- what the logits may look like ---- */

typedef void fill_fn(uint32_t rows, uint32_t cols, uint64_t *seed);

static void fill_noise(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = 8 * random_unit(seed);
}

static void fill_blobs(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = -6 + 0.1f * random_unit(seed);
    for (int blob = 0; blob < 3; blob++) {
        const float cx = (1 + random_unit(seed)) / 2 * (float)cols, cy = (1 + random_unit(seed)) / 2 * (float)rows;
        const float r2 = (0.02f + 0.05f * fabsf(random_unit(seed))) * (float)rows * (float)cols + 1;
        for (uint32_t y = 0; y < rows; y++) {
            for (uint32_t x = 0; x < cols; x++) {
                const float d2 = ((float)x - cx) * ((float)x - cx) + ((float)y - cy) * ((float)y - cy);
                if (d2 < 4 * r2) logits[(size_t)y * cols + x] += 12 * (1 - d2 / (4 * r2));
            }
        }
    }
}

static void fill_thin_lines(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = -3 - fabsf(random_unit(seed));
    for (int line = 0; line < 5; line++) {
        const float slope = 3 * random_unit(seed), start = random_unit(seed) * (float)cols;
        for (uint32_t y = 0; y < rows; y++) {
            const float x = start + slope * (float)y;
            if (x >= 0 && x < (float)cols) logits[(size_t)y * cols + (uint32_t)x] = 4;
        }
        const uint32_t across = ref_random(seed) % rows;
        for (uint32_t x = 0; x < cols; x++) logits[(size_t)across * cols + x] = 0.25f;
    }
}

static void fill_checkerboard(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    const float step = 1 + random_unit(seed);
    for (uint32_t y = 0; y < rows; y++) {
        for (uint32_t x = 0; x < cols; x++) logits[(size_t)y * cols + x] = (x + y) & 1 ? step : -step;
    }
}

static void fill_constant(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    static const float values[] = { 0, -0.0f, 1, -1, 0.85f, -0.85f, 1e-45f, -1e-45f, 1e-38f, 1e30f, -1e30f };
    const float value = values[ref_random(seed) % (sizeof values / sizeof *values)];
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = value;
}

/* Whole numbers around the thresholds: many blends are exactly the threshold. */
static void fill_whole_numbers(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = (float)(int)(ref_random(seed) % 5) - 2;
}

static void fill_zeros_and_ones(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        logits[i] = ref_random(seed) % 4 == 0 ? 1 : ref_random(seed) % 2 ? 0 : -0.0f;
}

/* Within a few rounding errors of one value, on both sides. */
static void fill_near_threshold(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    static const float thresholds[] = { 0.85f, -0.85f, 3, -1e-3f };
    const float t = thresholds[ref_random(seed) % 4];
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        logits[i] = t * (1 + (float)((int)(ref_random(seed) % 33) - 16) * FLT_EPSILON / 2);
}

/* Large beside tiny, denormal, infinite, not a number. */
static void fill_extremes(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    static const float values[] = { 0,     -0.0f,  1e-45f,   -1e-45f,   1e-40f, -1e-40f, FLT_MIN, -FLT_MIN,
                                    1,     -1,     1e-7f,    -1e-7f,    1e9f,   -1e9f,   FLT_MAX, -FLT_MAX,
                                    1e38f, -1e38f, INFINITY, -INFINITY, NAN,    0.85f };
    const uint32_t n_values =
        ref_random(seed) % 2 ? sizeof values / sizeof *values : 14; /* half of the time nothing near infinity */
    for (size_t i = 0; i < (size_t)rows * cols; i++) logits[i] = values[ref_random(seed) % n_values];
}

static void fill_overflowing(uint32_t rows, uint32_t cols, uint64_t *seed)
{
    const float sign = ref_random(seed) % 2 ? 1 : -1;
    for (size_t i = 0; i < (size_t)rows * cols; i++)
        logits[i] = sign * FLT_MAX * (1 - (float)(ref_random(seed) % 3) * FLT_EPSILON);
}

static const struct {
    const char *name;
    fill_fn *fill;
} kinds[] = {
    { "noise", fill_noise },
    { "blobs", fill_blobs },
    { "thin lines", fill_thin_lines },
    { "checkerboard", fill_checkerboard },
    { "constant", fill_constant },
    { "whole numbers", fill_whole_numbers },
    { "zeros and ones", fill_zeros_and_ones },
    { "near the threshold", fill_near_threshold },
    { "extremes", fill_extremes },
    { "overflowing", fill_overflowing },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
static const float thresholds[] = { 0,     -0.0f,  0.85f,  -0.85f,  1,      -1,   3,       -3.5f,
                                    1e-7f, -1e-3f, 1e-45f, -1e-45f, 1e-39f, 1e9f, FLT_MAX, -FLT_MAX };
enum { N_THRESHOLDS = sizeof thresholds / sizeof *thresholds };

/* ---- tests ---- */

static void all_kinds_small(void **state)
{
    (void)state;
    /* logits rows, cols; result width, height: enlarged, reduced, mixed, equal on one or both axes, one-pixel sides,
     * primes. */
    static const uint32_t sizes[][4] = {
        { 12, 9, 83, 101 }, { 9, 12, 40, 7 },   { 8, 8, 8, 8 },     { 8, 11, 11, 29 },  { 8, 11, 30, 8 },
        { 1, 1, 1, 1 },     { 1, 1, 17, 13 },   { 1, 9, 31, 5 },    { 9, 1, 5, 31 },    { 5, 7, 1, 1 },
        { 5, 7, 1, 64 },    { 5, 7, 64, 1 },    { 13, 17, 19, 23 }, { 17, 13, 5, 3 },   { 2, 2, 97, 89 },
        { 2, 3, 2, 3 },     { 31, 29, 10, 10 }, { 3, 3, 300, 200 }, { 16, 16, 32, 32 }, { 16, 16, 48, 80 },
        { 10, 10, 11, 11 }, { 10, 10, 9, 9 },   { 20, 1, 1, 7 },    { 1, 20, 7, 1 },
    };
    size_t n_runs = 0;
    for (size_t k = 0; k < N_KINDS; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t t = 0; t < N_THRESHOLDS; t++) {
                uint64_t seed = 1 + k * 1000003 + i * 1009 + t;
                kinds[k].fill(sizes[i][0], sizes[i][1], &seed);
                n_runs += check(sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], thresholds[t], kinds[k].name);
            }
        }
    }
    assert_true(n_runs > 100000);
}

static void random_sizes(void **state)
{
    (void)state;
    uint64_t seed = 31;
    for (int i = 0; i < 4000; i++) {
        const uint32_t rows = 1 + ref_random(&seed) % 20, cols = 1 + ref_random(&seed) % 20;
        const uint32_t width = 1 + ref_random(&seed) % 60, height = 1 + ref_random(&seed) % 90;
        const size_t k = ref_random(&seed) % N_KINDS;
        kinds[k].fill(rows, cols, &seed);
        float threshold = thresholds[ref_random(&seed) % N_THRESHOLDS];
        if (i % 3 == 0) { /* a value that occurs: exactly at the threshold is out */
            threshold =
                ref_resized(logits, rows, cols, width, height, ref_random(&seed) % width, ref_random(&seed) % height);
            if (!isfinite(threshold)) threshold = 0;
        }
        check(rows, cols, width, height, threshold, kinds[k].name);
    }
}

/* All logits the same, and the threshold on it or a rounding error beside it, where shortcuts by sign or size would be
 * tempted to go wrong. Also the largest floats, whose blends could overflow. */
static void constants_at_the_threshold(void **state)
{
    (void)state;
    uint64_t seed = 35;
    for (int i = 0; i < 3000; i++) {
        const uint32_t rows = 1 + ref_random(&seed) % 9, cols = 1 + ref_random(&seed) % 9;
        const uint32_t width = 1 + ref_random(&seed) % 40, height = 1 + ref_random(&seed) % 40;
        float value = ldexpf(2 - (float)(1 + ref_random(&seed) % 1000000) * 0x1p-23f, (int)(ref_random(&seed) % 9) - 4);
        if (ref_random(&seed) % 2) value = -value;
        if (i % 10 == 0) value = i % 20 ? FLT_MAX : -FLT_MAX;
        for (size_t k = 0; k < (size_t)rows * cols; k++) logits[k] = value;
        check(rows, cols, width, height, value, "constant");
        check(rows, cols, width, height, nextafterf(value, 0), "constant");
        check(rows, cols, width, height, 0, "constant");
    }
}

/* The model's own size, to pictures of usual sizes and smaller. */
static void full_size_logits(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = { { 1000, 1000 }, { 1100, 733 }, { 288, 288 }, { 100, 100 },
                                         { 287, 289 },   { 288, 1009 }, { 997, 288 }, { 576, 864 } };
    static const size_t some[] = { 0, 1, 2, 3, 8 };
    size_t n_runs = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
            uint64_t seed = 32 + i * 10 + k;
            kinds[some[k]].fill(288, 288, &seed);
            n_runs += check(288, 288, sizes[i][0], sizes[i][1], 0, kinds[some[k]].name);
            check(288, 288, sizes[i][0], sizes[i][1], 1.3862944f, kinds[some[k]].name);
        }
    }
    assert_true(n_runs > 1000000);
}

static void equals_pytorch(void **state)
{
    (void)state;
    json_error_t error;
    json_t *root = json_load_file(ST_SOURCE_DIR "/tests/data/masks/upsample.json", 0, &error);
    if (!root) fail_msg("%s", error.text);
    const json_t *cases = json_object_get(root, "cases");
    size_t n_masks = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i), *values = json_object_get(c, "logits"),
                     *masks = json_object_get(c, "masks");
        const uint32_t rows = (uint32_t)json_integer_value(json_object_get(c, "rows")),
                       cols = (uint32_t)json_integer_value(json_object_get(c, "cols"));
        const uint32_t width = (uint32_t)json_integer_value(json_object_get(c, "width"));
        const uint32_t height = (uint32_t)json_integer_value(json_object_get(c, "height"));
        assert_int_equal(json_array_size(values), rows * cols);
        for (size_t k = 0; k < json_array_size(values); k++)
            logits[k] = (float)json_integer_value(json_array_get(values, k)) / 1048576.0f;
        for (size_t k = 0; k < json_array_size(masks); k++, n_masks++) {
            const json_t *mask = json_array_get(masks, k);
            st_rle rle;
            char *string;
            const float threshold = (float)json_number_value(json_object_get(mask, "threshold"));
            assert_int_equal(st_rle_from_logits(&rle, logits, rows, cols, width, height, threshold, NULL), ST_OK);
            assert_int_equal(st_rle_to_string(&string, &rle, NULL), ST_OK);
            assert_string_equal(string, json_string_value(json_object_get(mask, "string")));
            st_string_free(string);
            st_rle_free(&rle);
            check(rows, cols, width, height, threshold, "PyTorch's");
        }
    }
    assert_true(n_masks >= 100);
    json_decref(root);
}

static void nan_is_outside(void **state)
{
    (void)state;
    for (size_t i = 0; i < 16; i++) logits[i] = 5;
    logits[5] = NAN;
    st_rle rle;
    assert_int_equal(st_rle_from_logits(&rle, logits, 4, 4, 4, 4, 0, NULL), ST_OK);
    assert_int_equal(st_rle_area(&rle), 15);
    assert_false(ref_pixel(&rle, 1, 1));
    st_rle_free(&rle);
    assert_int_equal(st_rle_from_logits(&rle, logits, 4, 4, 40, 40, -100, NULL), ST_OK);
    assert_false(ref_pixel(&rle, 15, 15));
    assert_true(ref_pixel(&rle, 35, 35));
    st_rle_free(&rle);
    for (size_t i = 0; i < 16; i++) logits[i] = NAN;
    assert_int_equal(st_rle_from_logits(&rle, logits, 4, 4, 40, 40, -100, NULL), ST_OK);
    assert_int_equal(rle.n_counts, 1);
    st_rle_free(&rle);
}

static void what_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t rows, cols;
        float threshold;
        st_status status;
    } bad[] = {
        { 0, 4, 0, ST_ERR_INVALID_ARG },         { 4, 0, 0, ST_ERR_INVALID_ARG },
        { 4, 4, NAN, ST_ERR_INVALID_ARG },       { 4, 4, INFINITY, ST_ERR_INVALID_ARG },
        { 4, 4, -INFINITY, ST_ERR_INVALID_ARG }, { 8388609, 1, 0, ST_ERR_LIMIT },
        { 1, 8388609, 0, ST_ERR_LIMIT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        st_rle rle;
        st_error err = { 0 };
        assert_int_equal(st_rle_from_logits(&rle, logits, bad[i].rows, bad[i].cols, 8, 8, bad[i].threshold, &err),
                         bad[i].status);
        assert_true(strlen(err.message) > 20);
        assert_null(rle.counts);
    }
}

/* Spot checks where no dense map fits: a disc of 6.5e4 pixels across, and pictures of one row or column. */
static void huge_results(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = { { 65535, 65535 }, { 65535, 3 }, { 3, 65535 }, { 1, 4294967295u } };
    uint64_t seed = 33;
    fill_blobs(48, 48, &seed);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint32_t width = sizes[i][0], height = sizes[i][1];
        st_rle rle;
        assert_int_equal(st_rle_from_logits(&rle, logits, 48, 48, width, height, 0, NULL), ST_OK);
        assert_true(ref_is_canonical(&rle));
        assert_true(rle.n_counts > 2 && rle.n_counts < 2000000);
        for (int k = 0; k < 300; k++) {
            const uint32_t x = ref_random(&seed) % width, y = ref_random(&seed) % height;
            assert_int_equal(ref_pixel(&rle, x, y), ref_resized(logits, 48, 48, width, height, x, y) > 0);
        }
        uint64_t p = 0; /* and at the ends of some runs, where it matters */
        for (size_t k = 0; k + 1 < rle.n_counts; k++) {
            p += rle.counts[k];
            if (k % (1 + rle.n_counts / 2000) != 0) continue;
            const float before = p > 0 ? ref_resized(logits, 48, 48, width, height, (uint32_t)((p - 1) / height),
                                                     (uint32_t)((p - 1) % height))
                                       : 0;
            const float behind =
                ref_resized(logits, 48, 48, width, height, (uint32_t)(p / height), (uint32_t)(p % height));
            assert_int_equal(before > 0, k & 1);
            assert_int_equal(behind > 0, !(k & 1));
        }
        st_rle_free(&rle);
    }
}

/* Few allocations, however large the picture: scratch for the rows, and the runs as they double. */
static void allocates_little(void **state)
{
    (void)state;
    uint64_t seed = 34;
    fill_blobs(288, 288, &seed);
    st_rle rle;
    const uint64_t before = st_mem_n_calls();
    assert_int_equal(st_rle_from_logits(&rle, logits, 288, 288, 4032, 4032, 0, NULL), ST_OK);
    assert_true(st_mem_n_calls() - before < 20);
    st_rle_free(&rle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_small),  cmocka_unit_test(random_sizes),
        cmocka_unit_test(full_size_logits), cmocka_unit_test(constants_at_the_threshold),
        cmocka_unit_test(equals_pytorch),   cmocka_unit_test(nan_is_outside),
        cmocka_unit_test(what_is_refused),  cmocka_unit_test(huge_results),
        cmocka_unit_test(allocates_little),
    };
    return cmocka_run_group_tests_name("mask_upsample", tests, NULL, NULL);
}
