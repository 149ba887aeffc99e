/* tiles_test.c: where tiles lie, and pieces of drawn objects joined again: an object cut by one, two or four tiles comes
 * back as it was drawn; different objects stay apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "label/tiles.h"

enum { WIDTH = 300, HEIGHT = 240, SIDE = 100, SHARED = 24 };
static const st_label_tiling with_whole = { true, SIDE, SHARED, true }, tiles_only = { true, SIDE, SHARED, false };

static uint8_t canvas[HEIGHT][WIDTH];

/* ---- drawing ---- */

static void clear(void)
{
    memset(canvas, 0, sizeof canvas);
}

static void rectangle(int x0, int y0, int x1, int y1)
{
    for (int y = y0 < 0 ? 0 : y0; y < y1 && y < HEIGHT; y++)
        for (int x = x0 < 0 ? 0 : x0; x < x1 && x < WIDTH; x++) canvas[y][x] = 1;
}

static void disc(int cx, int cy, int r)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            if ((x - cx) * (x - cx) + (y - cy) * (y - cy) <= r * r) canvas[y][x] = 1;
}

static st_rle drawn(void)
{
    st_rle mask;
    assert_int_equal(st_rle_from_dense(&mask, &canvas[0][0], WIDTH, HEIGHT, WIDTH, NULL), ST_OK);
    return mask;
}

static bool same_mask(const st_rle *a, const st_rle *b)
{
    return a->width == b->width && a->height == b->height && a->n_counts == b->n_counts &&
           memcmp(a->counts, b->counts, a->n_counts * sizeof *a->counts) == 0;
}

static st_label_layout layout_of(const st_label_tiling *tiling)
{
    st_label_layout layout;
    st_error err = { ST_OK, "" };
    assert_int_equal(st_label_layout_make(&layout, WIDTH, HEIGHT, tiling, 64, &err), ST_OK);
    return layout;
}

/* What is on the canvas, as a model would find it in one view. */
static void see(st_label_pieces *pieces, const st_label_layout *l, uint32_t view, uint32_t phrase, float score)
{
    const st_box_px *v = &l->views[view];
    st_instance found = { .score = score };
    assert_int_equal(st_rle_from_dense(&found.mask, &canvas[v->y0][v->x0], v->x1 - v->x0, v->y1 - v->y0, WIDTH, NULL), ST_OK);
    found.area = st_rle_area(&found.mask);
    const st_box_px b = st_rle_box(&found.mask);
    const float box[4] = { (float)b.x0, (float)b.y0, (float)b.x1, (float)b.y1 };
    memcpy(found.box, box, sizeof box);
    assert_int_equal(st_label_pieces_add(pieces, l, view, phrase, &found, NULL), ST_OK);
    st_rle_free(&found.mask);
}

/* In all tiles, the later ones surer of it. */
static void see_tiles(st_label_pieces *pieces, const st_label_layout *l, uint32_t phrase)
{
    for (uint32_t v = 0; v < l->n_columns * l->n_rows; v++) see(pieces, l, v, phrase, 0.5f + 0.01f * (float)v);
}

static void join(st_label_pieces *pieces, const st_label_layout *l)
{
    st_error err = { ST_OK, "" };
    assert_int_equal(st_label_join(pieces, l, NULL, &err), ST_OK);
    for (size_t i = 0; i < pieces->n; i++) {
        const st_label_piece *p = &pieces->items[i];
        const st_box_px tight = st_rle_box(&p->mask);
        assert_int_equal(p->area, st_rle_area(&p->mask));
        assert_memory_equal(&p->tight, &tight, sizeof tight);
        if (i > 0 && p[-1].phrase == p->phrase) assert_true(p[-1].score >= p->score);
    }
}

static size_t count_of(const st_label_pieces *pieces, const st_rle *mask)
{
    size_t n = 0;
    for (size_t i = 0; i < pieces->n; i++) n += same_mask(&pieces->items[i].mask, mask);
    return n;
}

/* ---- layout ---- */

static void check_side(const st_label_layout *l, uint32_t length, uint32_t side, uint32_t shared, bool across)
{
    const size_t n = across ? l->n_columns : l->n_rows, step = across ? 1 : l->n_columns;
    uint32_t end = 0;
    for (size_t i = 0; i < n; i++) {
        const st_box_px *v = &l->views[i * step];
        const uint32_t low = across ? v->x0 : v->y0, high = across ? v->x1 : v->y1;
        assert_int_equal(high - low, side < length ? side : length);
        if (i == 0) assert_int_equal(low, 0);
        else assert_true(low > end - side && end - low >= shared && end > low);
        end = high;
    }
    assert_int_equal(end, length);
    /* one tile less would not do */
    if (n > 1) assert_true((uint64_t)side + (n - 2) * (uint64_t)(side - shared) < length);
}

static void test_layout__covers_with_the_overlap(void **state)
{
    (void)state;
    const uint32_t sides[] = { 32, 33, 100, 224 }, shares[] = { 1, 5, 16 };
    for (size_t s = 0; s < 4; s++)
        for (size_t o = 0; o < 3; o++)
            for (uint32_t length = sides[s] + 1; length < sides[s] + 700; length += 7) {
                const st_label_tiling t = { true, sides[s], shares[o], length % 2 == 0 };
                st_label_layout l;
                assert_int_equal(st_label_layout_make(&l, length, length / 2 + 1, &t, 1008, NULL), ST_OK);
                assert_int_equal(l.n_views, l.n_columns * l.n_rows + t.whole);
                check_side(&l, length, sides[s], shares[o], true);
                check_side(&l, length / 2 + 1, sides[s], shares[o], false);
                st_label_layout_free(&l);
            }
}

static void test_layout__of_small_pictures_is_one_view(void **state)
{
    (void)state;
    const st_label_tiling off = { false, 0, 0, false }, native = { true, 0, 0, false };
    const uint32_t sizes[][2] = { { 1, 1 }, { 64, 64 }, { 10, 64 }, { 64, 3 } };
    for (size_t i = 0; i < 8; i++) {
        st_label_layout l;
        const uint32_t w = sizes[i / 2][0], h = sizes[i / 2][1];
        assert_int_equal(st_label_layout_make(&l, w, h, i % 2 ? &off : &native, 64, NULL), ST_OK);
        assert_int_equal(l.n_views, 1);
        assert_true(l.whole && l.n_columns == 0 && l.n_rows == 0);
        assert_true(l.views[0].x1 == w && l.views[0].y1 == h);
        st_label_layout_free(&l);
    }
    st_label_layout l;
    assert_int_equal(st_label_layout_make(&l, 65, 64, &native, 64, NULL), ST_OK);
    assert_true(!l.whole && l.n_views == 2 && l.n_columns == 2); /* of the model's size, a fifth shared or more */
    st_label_layout_free(&l);
}

static void test_layout__refuses(void **state)
{
    (void)state;
    const struct {
        st_label_tiling tiling;
        uint32_t width, height;
        const char *says;
        st_status status;
    } rows[] = {
        { { true, 31, 4, false }, 300, 300, "31", ST_ERR_INVALID_ARG },
        { { true, 100, 51, false }, 300, 300, "at most half, 50", ST_ERR_INVALID_ARG },
        { { true, 100, 20, false }, 0, 300, "no pixels", ST_ERR_INVALID_ARG },
        { { true, 32, 16, false }, 60000, 60000, "at most", ST_ERR_LIMIT },
        { { true, 32, 16, false }, UINT32_MAX, 1, "at most", ST_ERR_LIMIT },
        { { true, 32, 16, true }, UINT32_MAX, UINT32_MAX, "at most", ST_ERR_LIMIT },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        st_label_layout l;
        st_error err = { ST_OK, "" };
        assert_int_equal(st_label_layout_make(&l, rows[i].width, rows[i].height, &rows[i].tiling, 64, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].says));
        assert_null(l.views);
    }
}

/* ---- one object ---- */

/* SIDE 100 with 24 or more shared in 300 x 240: columns at 0, 67, 133, 200; rows at 0, 70, 140. */
typedef void draw_fn(void);
static void in_one_tile(void) { disc(30, 30, 20); }
static void over_two_tiles(void) { disc(83, 30, 26); }
static void over_two_rows(void) { disc(30, 85, 26); }
static void at_four_tiles(void) { disc(83, 85, 30); }
static void over_many_tiles(void) { disc(150, 120, 110); }
static void frame(void) /* tall: two bars to the tile in the middle, one thing to those above and below */
{
    rectangle(120, 20, 160, 220);
    for (int y = 28; y < 212; y++) memset(&canvas[y][128], 0, 24);
}

static void test_join__gives_objects_back(void **state)
{
    (void)state;
    draw_fn *const draw[] = { in_one_tile, over_two_tiles, over_two_rows, at_four_tiles, over_many_tiles };
    const size_t cut_by[] = { 1, 2, 2, 4, 12 };
    for (size_t i = 0; i < 2 * sizeof draw / sizeof *draw; i++) {
        st_label_layout l = layout_of(i % 2 ? &with_whole : &tiles_only);
        st_label_pieces pieces = { 0 };
        clear();
        draw[i / 2]();
        st_rle whole = drawn();
        const st_box_px box = st_rle_box(&whole);
        see_tiles(&pieces, &l, 7);
        assert_int_equal(pieces.n, cut_by[i / 2]);
        if (l.whole) see(&pieces, &l, (uint32_t)l.n_views - 1, 7, 0.2f);
        const float best = pieces.items[pieces.n - 1 - l.whole].score;
        join(&pieces, &l);
        assert_int_equal(pieces.n, 1);
        assert_true(same_mask(&pieces.items[0].mask, &whole));
        assert_int_equal(pieces.items[0].n_pieces, cut_by[i / 2] + l.whole);
        assert_true(pieces.items[0].score == best);
        assert_true(pieces.items[0].box[0] == (float)box.x0 && pieces.items[0].box[3] == (float)box.y1);
        assert_int_equal(pieces.items[0].phrase, 7);
        st_rle_free(&whole);
        st_label_pieces_free(&pieces);
        st_label_layout_free(&l);
    }
}

/* A frame leaves a tile and comes back: that tile sees two bars, which are two things to the model. */
static void test_join__follows_an_object_that_comes_back(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    clear();
    frame();
    st_rle whole = drawn();
    for (uint32_t v = 0; v < l.n_views; v++) {
        const bool split = l.views[v].x0 == 67 && l.views[v].y0 == 70;
        for (int bar = 0; bar <= split; bar++) {
            clear();
            frame();
            for (int y = 0; split && y < HEIGHT; y++) memset(&canvas[y][bar ? 0 : 140], 0, 140);
            see(&pieces, &l, v, 0, 0.5f);
        }
    }
    const size_t n = pieces.n;
    join(&pieces, &l);
    assert_int_equal(pieces.n, 1);
    assert_int_equal(pieces.items[0].n_pieces, n);
    assert_true(same_mask(&pieces.items[0].mask, &whole));
    st_rle_free(&whole);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* Masks are never the same twice: one tile draws it a pixel fatter, the next one thinner. */
static void test_join__takes_pieces_that_differ_a_little(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    for (uint32_t v = 0; v < l.n_views; v++) {
        clear();
        disc(83, 85, v % 2 ? 31 : 29);
        see(&pieces, &l, v, 0, 0.5f);
    }
    assert_int_equal(pieces.n, 4);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 1);
    clear();
    disc(83, 85, 31);
    st_rle fat = drawn();
    assert_true(st_rle_iou(&fat, &pieces.items[0].mask) > 0.9);
    st_rle_free(&fat);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* ---- different objects ---- */

static void test_join__leaves_touching_objects_apart(void **state)
{
    (void)state;
    /* pairs that share a border: side by side and one over the other, cut by two tiles and by four */
    const int pairs[][2][4] = {
        { { 50, 10, 84, 60 }, { 84, 10, 118, 60 } },   { { 40, 10, 120, 35 }, { 40, 35, 120, 60 } },
        { { 50, 50, 84, 120 }, { 84, 50, 118, 120 } }, { { 40, 50, 120, 85 }, { 40, 85, 120, 120 } },
        { { 60, 60, 99, 110 }, { 99, 60, 140, 110 } }, { { 30, 40, 67, 120 }, { 67, 40, 130, 120 } },
    };
    for (size_t i = 0; i < 2 * sizeof pairs / sizeof *pairs; i++) {
        st_label_layout l = layout_of(i % 2 ? &with_whole : &tiles_only);
        st_label_pieces pieces = { 0 };
        st_rle whole[2];
        for (int k = 0; k < 2; k++) {
            const int *r = pairs[i / 2][k];
            clear();
            rectangle(r[0], r[1], r[2], r[3]);
            whole[k] = drawn();
            see_tiles(&pieces, &l, 0);
            if (l.whole) see(&pieces, &l, (uint32_t)l.n_views - 1, 0, 0.9f);
        }
        join(&pieces, &l);
        assert_int_equal(pieces.n, 2);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(count_of(&pieces, &whole[k]), 1);
            st_rle_free(&whole[k]);
        }
        st_label_pieces_free(&pieces);
        st_label_layout_free(&l);
    }
}

static void test_join__keeps_phrases_apart(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    clear();
    at_four_tiles();
    see(&pieces, &l, 0, 1, 0.5f);
    see(&pieces, &l, 1, 2, 0.5f);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 2);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* Two answers of one view for one object: duplicates are not pieces. Both are joined with their likes. */
static void test_join__leaves_duplicates_of_a_view(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    st_rle whole[2];
    for (int k = 0; k < 4; k++) { /* the views name them in different order */
        clear();
        disc(83, 30, k % 2 ? 20 : 26);
        if (k < 2) whole[k] = drawn();
        see(&pieces, &l, k == 0 || k == 3 ? 0 : 1, 0, 0.5f);
    }
    assert_int_equal(pieces.n, 4);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 2);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(count_of(&pieces, &whole[k]), 1);
        st_rle_free(&whole[k]);
    }
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* Objects that agree on less than half of what both views saw. */
static void test_join__needs_half(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    for (int off = 0; off <= 20; off++) { /* two bars in the band 67..100 of the first two tiles, 20 high, off by so much */
        st_label_pieces pieces = { 0 };
        clear();
        rectangle(50, 10, 100, 30);
        see(&pieces, &l, 0, 0, 0.5f);
        clear();
        rectangle(67, 10 + off, 120, 30 + off);
        see(&pieces, &l, 1, 0, 0.5f);
        join(&pieces, &l);
        const double iou = (20.0 - off) / (20.0 + off);
        assert_int_equal(pieces.n, iou >= ST_LABEL_JOIN_IOU ? 1 : 2);
        st_label_pieces_free(&pieces);
    }
    st_label_layout_free(&l);
}

/* The first tile saw an object to its end; the second takes it and what lies beside it for one. They agree in the band. */
static void test_join__heeds_an_end(void **state)
{
    (void)state;
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        st_label_layout l = layout_of(&tiles_only);
        st_label_pieces pieces = { 0 };
        st_rle small;
        clear();
        if (mirrored) rectangle(72, 10, 110, 40);
        else rectangle(60, 10, 95, 40);
        small = drawn();
        see(&pieces, &l, mirrored ? 1 : 0, 0, 0.5f);
        clear();
        if (mirrored) rectangle(30, 10, 110, 40);
        else rectangle(60, 10, 140, 40);
        see(&pieces, &l, mirrored ? 0 : 1, 0, 0.9f);
        join(&pieces, &l);
        assert_int_equal(pieces.n, 2);
        assert_int_equal(count_of(&pieces, &small), 1);
        st_rle_free(&small);
        st_label_pieces_free(&pieces);
        st_label_layout_free(&l);
    }
}

/* ---- the whole picture's pass ---- */

/* Its mask is coarse: of what tiles saw, theirs is kept. */
static void test_join__keeps_fine_masks(void **state)
{
    (void)state;
    draw_fn *const draw[] = { in_one_tile, at_four_tiles };
    for (size_t i = 0; i < 2; i++) {
        st_label_layout l = layout_of(&with_whole);
        st_label_pieces pieces = { 0 };
        clear();
        draw[i]();
        st_rle fine = drawn();
        see_tiles(&pieces, &l, 0);
        clear();
        if (i == 0) rectangle(8, 8, 54, 54);
        else rectangle(50, 50, 116, 118);
        see(&pieces, &l, (uint32_t)l.n_views - 1, 0, 0.9f);
        join(&pieces, &l);
        assert_int_equal(pieces.n, 1);
        assert_true(same_mask(&pieces.items[0].mask, &fine));
        assert_true(pieces.items[0].score == 0.9f);
        st_rle_free(&fine);
        st_label_pieces_free(&pieces);
        st_label_layout_free(&l);
    }
}

/* A large object that some tiles did not recognise is whole all the same. */
static void test_join__fills_what_tiles_missed(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&with_whole);
    st_label_pieces pieces = { 0 };
    clear();
    over_many_tiles();
    st_rle whole = drawn();
    for (uint32_t v = 0; v < 12; v += 5) see(&pieces, &l, v, 0, 0.5f);
    see(&pieces, &l, 12, 0, 0.4f);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 1);
    assert_true(same_mask(&pieces.items[0].mask, &whole));
    st_rle_free(&whole);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* One blur over two small objects, each seen to the end in its own tile, does not make them one. */
static void test_join__is_not_misled_by_a_blur(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&with_whole);
    st_label_pieces pieces = { 0 };
    clear();
    rectangle(20, 20, 66, 50); /* in the first column only */
    see_tiles(&pieces, &l, 0);
    clear();
    rectangle(101, 20, 133, 50); /* in the second */
    see_tiles(&pieces, &l, 0);
    assert_int_equal(pieces.n, 2);
    clear();
    rectangle(20, 20, 133, 50); /* more than half of what the first tile sees of it */
    see(&pieces, &l, (uint32_t)l.n_views - 1, 0, 0.4f);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 3);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

/* ---- all the rest ---- */

static void test_join__does_not_depend_on_order(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&with_whole);
    st_label_pieces first = { 0 };
    uint32_t seed = 1;
    for (int turn = 0; turn < 20; turn++) {
        st_label_pieces pieces = { 0 };
        uint32_t order[13];
        for (uint32_t i = 0; i < 13; i++) order[i] = i;
        for (uint32_t i = 12; turn > 0 && i > 0; i--) {
            seed = seed * 1664525u + 1013904223u;
            const uint32_t k = (seed >> 8) % (i + 1), held = order[i];
            order[i] = order[k];
            order[k] = held;
        }
        for (int i = 0; i < 13; i++)
            for (int k = 0; k < 8; k++) {
                clear();
                disc(30 + 35 * k, 120 + (k % 3 - 1) * 40, 20 + (int)(order[i] % 5) + k);
                see(&pieces, &l, order[i], 0, 0.5f + 0.01f * (float)k);
            }
        join(&pieces, &l);
        if (turn == 0) {
            first = pieces;
            continue;
        }
        assert_int_equal(pieces.n, first.n);
        for (size_t i = 0; i < pieces.n; i++) {
            assert_true(same_mask(&pieces.items[i].mask, &first.items[i].mask));
            assert_true(pieces.items[i].score == first.items[i].score);
        }
        st_label_pieces_free(&pieces);
    }
    assert_true(first.n >= 8 && first.n < 40);
    st_label_pieces_free(&first);
    st_label_layout_free(&l);
}

static void test_join__works_on_boxes(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    const st_instance left = { .score = 0.4f, .box = { 50.5f, 10, 101, 40 } }, right = { .score = 0.6f, .box = { -3, 10, 40, 40 } };
    const st_instance outside = { .score = 0.9f, .box = { 120, 10, 140, 40 } }, broken = { .score = 0.9f, .box = { 40, 10, 20, 40 } };
    assert_int_equal(st_label_pieces_add(&pieces, &l, 0, 0, &left, NULL), ST_OK);
    assert_int_equal(st_label_pieces_add(&pieces, &l, 1, 0, &right, NULL), ST_OK);
    assert_int_equal(st_label_pieces_add(&pieces, &l, 0, 0, &outside, NULL), ST_OK); /* of its view */
    assert_int_equal(st_label_pieces_add(&pieces, &l, 0, 0, &broken, NULL), ST_OK);
    assert_int_equal(pieces.n, 2);
    join(&pieces, &l);
    assert_int_equal(pieces.n, 1);
    const float want[4] = { 50.5f, 10, 107, 40 };
    assert_memory_equal(pieces.items[0].box, want, sizeof want);
    assert_true(pieces.items[0].score == 0.6f);
    assert_int_equal(pieces.items[0].area, (107 - 50) * 30);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

static void test_join__says_when_memory_runs_out(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&with_whole);
    st_status status = ST_ERR_NOMEM;
    for (uint64_t k = 1; status != ST_OK; k++) {
        st_label_pieces pieces = { 0 };
        clear();
        over_many_tiles();
        see_tiles(&pieces, &l, 0);
        see(&pieces, &l, 12, 0, 0.4f);
        st_error err = { ST_OK, "" };
        st_mem_fail_after(k);
        status = st_label_join(&pieces, &l, NULL, &err);
        st_mem_fail_after(0);
        if (status != ST_OK) assert_int_equal(status, ST_ERR_NOMEM);
        assert_true(k < 10000);
        st_label_pieces_free(&pieces);
    }
    st_label_layout_free(&l);
}

static void test_join__stops_when_cancelled(void **state)
{
    (void)state;
    st_label_layout l = layout_of(&tiles_only);
    st_label_pieces pieces = { 0 };
    st_cancel *cancel = st_cancel_new();
    clear();
    at_four_tiles();
    see_tiles(&pieces, &l, 0);
    st_cancel_set(cancel);
    assert_int_equal(st_label_join(&pieces, &l, cancel, NULL), ST_ERR_CANCELLED);
    st_cancel_free(cancel);
    st_label_pieces_free(&pieces);
    st_label_layout_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout__covers_with_the_overlap),
        cmocka_unit_test(test_layout__of_small_pictures_is_one_view),
        cmocka_unit_test(test_layout__refuses),
        cmocka_unit_test(test_join__gives_objects_back),
        cmocka_unit_test(test_join__follows_an_object_that_comes_back),
        cmocka_unit_test(test_join__takes_pieces_that_differ_a_little),
        cmocka_unit_test(test_join__leaves_touching_objects_apart),
        cmocka_unit_test(test_join__keeps_phrases_apart),
        cmocka_unit_test(test_join__leaves_duplicates_of_a_view),
        cmocka_unit_test(test_join__needs_half),
        cmocka_unit_test(test_join__heeds_an_end),
        cmocka_unit_test(test_join__keeps_fine_masks),
        cmocka_unit_test(test_join__fills_what_tiles_missed),
        cmocka_unit_test(test_join__is_not_misled_by_a_blur),
        cmocka_unit_test(test_join__does_not_depend_on_order),
        cmocka_unit_test(test_join__works_on_boxes),
        cmocka_unit_test(test_join__says_when_memory_runs_out),
        cmocka_unit_test(test_join__stops_when_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
