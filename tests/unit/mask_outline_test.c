/* mask_outline_test.c: outlines filled again must give the mask, and parts, holes and parents must be those of a
 * flood fill. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "mask_reference.h"

#define MAX_SIDE 64

typedef struct scene {
    uint32_t width, height;
    uint8_t mask[MAX_SIDE * MAX_SIDE], filled[MAX_SIDE * MAX_SIDE];
    uint32_t parts[MAX_SIDE * MAX_SIDE];
    uint8_t padded[(MAX_SIDE + 2) * (MAX_SIDE + 2)];
    uint32_t outside[(MAX_SIDE + 2) * (MAX_SIDE + 2)];
    uint8_t seen[MAX_SIDE * MAX_SIDE + 1]; /* parts that an outer outline was found for */
} scene;

static scene s;

static st_polygons trace(void)
{
    st_rle rle;
    st_polygons outlines;
    assert_int_equal(st_rle_from_dense(&rle, s.mask, s.width, s.height, s.width, NULL), ST_OK);
    assert_int_equal(st_rle_to_polygons(&outlines, &rle, NULL), ST_OK);
    st_rle_free(&rle);
    return outlines;
}

/* Right angles at every point, inside the picture, no point twice in a row: horizontal and vertical edges take
 * turns. */
static void check_shape(const st_polygon *p)
{
    assert_true(p->n_points >= 4 && p->n_points % 2 == 0);
    for (size_t i = 0; i < p->n_points; i++) {
        const int32_t *a = p->xy + 2 * i, *b = p->xy + 2 * ((i + 1) % p->n_points),
                      *c = p->xy + 2 * ((i + 2) % p->n_points);
        assert_true(a[0] >= 0 && a[1] >= 0 && a[0] <= (int32_t)s.width && a[1] <= (int32_t)s.height);
        assert_true((a[0] == b[0]) != (a[1] == b[1]));
        assert_true((a[0] == b[0]) != (b[0] == c[0]));
    }
}

/* The outer outline with its holes filled must be exactly one 4-connected part, each part once. */
static void check_part(const st_polygons *outlines, size_t outer)
{
    const size_t n = (size_t)s.width * s.height;
    memset(s.filled, 0, n);
    for (size_t i = outer; i < outlines->n; i++) {
        if (i == outer || outlines->items[i].parent == (int32_t)outer)
            ref_flip_polygon(s.filled, &outlines->items[i], s.width);
    }
    uint32_t part = 0;
    for (size_t p = 0; p < n && part == 0; p++) {
        if (s.filled[p]) part = s.parts[p];
    }
    assert_true(part > 0);
    assert_false(s.seen[part]);
    s.seen[part] = 1;
    for (size_t p = 0; p < n; p++) assert_int_equal(s.filled[p], s.parts[p] == part);
}

/* How many 8-connected pieces of background do not reach the outside of the picture. */
static uint32_t count_holes(void)
{
    const uint32_t w = s.width + 2;
    memset(s.padded, 0, (size_t)w * (s.height + 2));
    for (uint32_t y = 0; y < s.height; y++)
        memcpy(s.padded + (size_t)(y + 1) * w + 1, s.mask + (size_t)y * s.width, s.width);
    return ref_label(s.outside, s.padded, w, s.height + 2, 0, true) - 1;
}

/* Everything that stencil_mask.h says about outlines. Returns how many there were. */
static size_t check_outlines(void)
{
    const size_t n = (size_t)s.width * s.height;
    st_polygons outlines = trace();
    memset(s.filled, 0, n);
    for (size_t i = 0; i < outlines.n; i++) {
        check_shape(&outlines.items[i]);
        ref_flip_polygon(s.filled, &outlines.items[i], s.width);
    }
    assert_memory_equal(s.filled, s.mask, n);

    const uint32_t n_parts = ref_label(s.parts, s.mask, s.width, s.height, 1, false);
    memset(s.seen, 0, n_parts + 1);
    size_t n_outer = 0, n_holes = 0;
    for (size_t i = 0; i < outlines.n; i++) {
        const st_polygon *p = &outlines.items[i];
        if (p->parent < 0) {
            assert_int_equal(p->parent, -1);
            assert_true(ref_signed_area2(p) > 0);
            check_part(&outlines, i);
            n_outer++;
        } else {
            assert_true((size_t)p->parent < i);
            assert_int_equal(outlines.items[p->parent].parent, -1);
            assert_true(ref_signed_area2(p) < 0);
            n_holes++;
        }
    }
    assert_int_equal(n_outer, n_parts);
    assert_int_equal(n_holes, count_holes());
    const size_t n_outlines = outlines.n;
    st_polygons_free(&outlines);
    assert_null(outlines.items);
    return n_outlines;
}

/* rows: '#' inside, '/' ends a row. */
static void draw(const char *rows)
{
    s.width = (uint32_t)strcspn(rows, "/");
    s.height = 0;
    for (const char *row = rows; *row; row += s.width + (row[s.width] == '/')) {
        for (uint32_t x = 0; x < s.width; x++) s.mask[s.height * s.width + x] = row[x] == '#';
        s.height++;
    }
}

static void every_small_mask(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = { { 1, 1 }, { 1, 5 }, { 5, 1 }, { 2, 2 }, { 3, 3 },
                                         { 2, 5 }, { 5, 2 }, { 4, 4 }, { 3, 5 }, { 5, 3 } };
    size_t n_outlines = 0;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        s.width = sizes[k][0], s.height = sizes[k][1];
        const uint32_t n = s.width * s.height;
        for (uint32_t bits = 0; bits < 1u << n; bits++) {
            for (uint32_t p = 0; p < n; p++) s.mask[p] = bits >> p & 1;
            n_outlines += check_outlines();
        }
    }
    assert_true(n_outlines > 200000);
}

static void random_masks(void **state)
{
    (void)state;
    uint64_t seed = 21;
    size_t n_outlines = 0;
    for (int i = 0; i < 2000; i++) {
        s.width = 1 + ref_random(&seed) % MAX_SIDE, s.height = 1 + ref_random(&seed) % MAX_SIDE;
        const uint32_t density = 5 + ref_random(&seed) % 90, grain = 1 + ref_random(&seed) % 6;
        for (uint32_t y = 0; y < s.height; y++) {
            for (uint32_t x = 0; x < s.width; x++) {
                uint64_t cell =
                    UINT64_C(0x9e3779b97f4a7c15) * (1 + y / grain * 1000 + x / grain + (uint64_t)i * 1000000);
                s.mask[y * s.width + x] = ref_random(&cell) % 100 < density;
            }
        }
        n_outlines += check_outlines();
    }
    assert_true(n_outlines > 20000);
}

/* Rings in rings: parts inside holes inside parts, as many levels as fit. */
static void nested_rings(void **state)
{
    (void)state;
    for (uint32_t side = 1; side <= MAX_SIDE; side += 3) {
        s.width = s.height = side;
        for (uint32_t y = 0; y < side; y++) {
            for (uint32_t x = 0; x < side; x++) {
                const uint32_t dx = x < side - 1 - x ? x : side - 1 - x, dy = y < side - 1 - y ? y : side - 1 - y;
                s.mask[y * side + x] = !((dx < dy ? dx : dy) & 1);
            }
        }
        assert_int_equal(check_outlines(), (side + 1) / 2);
    }
}

static void assert_points(const st_polygon *p, const int32_t *xy, size_t n_points)
{
    assert_int_equal(p->n_points, n_points);
    assert_memory_equal(p->xy, xy, n_points * 2 * sizeof *xy);
}

static void one_pixel(void **state)
{
    (void)state;
    draw("..../.#../....");
    st_polygons outlines = trace();
    assert_int_equal(outlines.n, 1);
    assert_points(&outlines.items[0], (const int32_t[]){ 1, 1, 2, 1, 2, 2, 1, 2 }, 4);
    assert_int_equal(outlines.items[0].parent, -1);
    st_polygons_free(&outlines);
}

static void full_and_empty(void **state)
{
    (void)state;
    draw("###/###");
    st_polygons outlines = trace();
    assert_int_equal(outlines.n, 1);
    assert_points(&outlines.items[0], (const int32_t[]){ 0, 0, 3, 0, 3, 2, 0, 2 }, 4);
    st_polygons_free(&outlines);
    draw(".../...");
    outlines = trace();
    assert_int_equal(outlines.n, 0);
    assert_null(outlines.items);
    st_polygons_free(&outlines);
    st_polygons_free(NULL);
    const st_rle unfilled = { 0 };
    assert_int_equal(st_rle_to_polygons(&outlines, &unfilled, NULL), ST_OK);
    assert_int_equal(outlines.n, 0);
}

static void hole_and_its_parent(void **state)
{
    (void)state;
    draw("#......./..#####./..#...#./..#.#.#./..#...#./..#####.");
    st_polygons outlines = trace();
    assert_int_equal(outlines.n, 4); /* the pixel, the ring, its hole, the pixel in the hole */
    assert_points(&outlines.items[0], (const int32_t[]){ 0, 0, 1, 0, 1, 1, 0, 1 }, 4);
    assert_points(&outlines.items[1], (const int32_t[]){ 2, 1, 7, 1, 7, 6, 2, 6 }, 4);
    assert_points(&outlines.items[2], (const int32_t[]){ 3, 2, 3, 5, 6, 5, 6, 2 }, 4);
    assert_points(&outlines.items[3], (const int32_t[]){ 4, 3, 5, 3, 5, 4, 4, 4 }, 4);
    static const int32_t parents[] = { -1, -1, 1, -1 };
    for (size_t i = 0; i < 4; i++) assert_int_equal(outlines.items[i].parent, parents[i]);
    st_polygons_free(&outlines);
}

static void diagonal_neighbours(void **state)
{
    (void)state;
    static const struct {
        const char *rows;
        size_t n_outlines;
    } cases[] = {
        { "#./.#", 2 },
        { ".#/#.", 2 },               /* insides part */
        { "####/#.##/##.#/####", 2 }, /* outsides join: one hole that touches itself */
        { "####/##.#/#.##/####", 2 },
        { ".##/#.#/##.", 2 }, /* the middle is no hole: it reaches the outside over a corner */
        { "#####/#.#.#/#####", 3 },
        { "#.#/.#./#.#", 5 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        draw(cases[i].rows);
        assert_int_equal(check_outlines(), cases[i].n_outlines);
    }
}

/* The parent of a lower hole is found past the hole above it. */
static void holes_under_holes(void **state)
{
    (void)state;
    draw("#.####/..#.##/..####/..#.##/..#.##/..####/..#..#/..####");
    st_polygons outlines = trace();
    assert_int_equal(outlines.n, 5);
    assert_int_equal(outlines.items[0].parent, -1);
    assert_int_equal(outlines.items[1].parent, -1);
    for (size_t i = 2; i < 5; i++) assert_int_equal(outlines.items[i].parent, 1);
    st_polygons_free(&outlines);
    assert_int_equal(check_outlines(), 5);
}

/* Long runs that cover many columns take no time per column, and coordinates go up to the corner. */
static void huge_masks(void **state)
{
    (void)state;
    const uint32_t h = 65535;
    uint32_t counts[] = { 10 * h, 20000 * h, 5, 1, h - 6 + 45000u * h, 524 * h };
    const st_rle mask = { 65535, h, counts, 6 };
    st_polygons outlines;
    assert_int_equal(st_rle_to_polygons(&outlines, &mask, NULL), ST_OK);
    assert_int_equal(outlines.n, 2);
    assert_points(&outlines.items[0],
                  (const int32_t[]){ 10, 0, 20010, 0, 20010, 5, 20011, 5, 20011, 6, 20010, 6, 20010, 65535, 10, 65535 },
                  8);
    assert_points(&outlines.items[1], (const int32_t[]){ 65011, 0, 65535, 0, 65535, 65535, 65011, 65535 }, 4);
    st_polygons_free(&outlines);

    uint32_t line_counts[] = { 7, 2147483630, 10 };
    const st_rle line = { 2147483647, 1, line_counts, 3 };
    assert_int_equal(st_rle_to_polygons(&outlines, &line, NULL), ST_OK);
    assert_int_equal(outlines.n, 1);
    assert_points(&outlines.items[0], (const int32_t[]){ 7, 0, 2147483637, 0, 2147483637, 1, 7, 1 }, 4);
    st_polygons_free(&outlines);
}

static void what_is_refused(void **state)
{
    (void)state;
    uint32_t middle_empty[] = { 1, 0, 8 }, too_few[] = { 1, 7 }, too_many[] = { 1, 9 }, line[] = { 0, 2147483648u };
    const struct {
        st_rle mask;
        st_status status;
    } bad[] = {
        { { 3, 3, middle_empty, 3 }, ST_ERR_INVALID_ARG }, { { 3, 3, too_few, 2 }, ST_ERR_INVALID_ARG },
        { { 3, 3, too_many, 2 }, ST_ERR_INVALID_ARG },     { { 3, 3, NULL, 0 }, ST_ERR_INVALID_ARG },
        { { 2147483648u, 1, line, 2 }, ST_ERR_LIMIT },     { { 1, 2147483648u, line, 2 }, ST_ERR_LIMIT },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        st_polygons outlines;
        st_error err = { 0 };
        assert_int_equal(st_rle_to_polygons(&outlines, &bad[i].mask, &err), bad[i].status);
        assert_true(strlen(err.message) > 20);
        assert_null(outlines.items);
        assert_int_equal(outlines.n, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_mask),    cmocka_unit_test(random_masks),
        cmocka_unit_test(nested_rings),        cmocka_unit_test(one_pixel),
        cmocka_unit_test(full_and_empty),      cmocka_unit_test(hole_and_its_parent),
        cmocka_unit_test(diagonal_neighbours), cmocka_unit_test(holes_under_holes),
        cmocka_unit_test(huge_masks),          cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests_name("mask_outline", tests, NULL, NULL);
}
