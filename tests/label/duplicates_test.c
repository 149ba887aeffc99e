/* duplicates_test.c: who displaces whom, against the rule written out the slow way on random objects; and what comes back
 * when a threshold takes the better one away.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "label/duplicates.h"

enum { SIDE = 60 };

static void add(st_label_picture *p, uint32_t class_id, uint32_t phrase, float score, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1)
{
    static uint8_t dense[SIDE * SIDE];
    memset(dense, 0, sizeof dense);
    for (uint32_t y = y0; y < y1; y++) memset(dense + y * SIDE + x0, 1, x1 - x0);
    st_label_object o = { .class_id = class_id, .phrase = phrase, .score = score, .box = { (float)x0, (float)y0, (float)x1, (float)y1 },
                          .displaced_by = 77, .n_pieces = 1 };
    assert_int_equal(st_rle_from_dense(&o.mask, dense, SIDE, SIDE, SIDE, NULL), ST_OK);
    o.area = st_rle_area(&o.mask);
    assert_int_equal(st_label_picture_add(p, &o, NULL), ST_OK);
    p->width = p->height = SIDE;
}

static void mark(st_label_picture *p, st_label_measure measure, float threshold, bool across)
{
    const st_label_duplicates how = { measure, threshold, across };
    assert_int_equal(st_label_mark_duplicates(p, &how, NULL), ST_OK);
}

static void expect(st_label_picture *p, const int32_t *displaced_by)
{
    for (size_t i = 0; i < p->n_objects; i++) assert_int_equal(p->objects[i].displaced_by, displaced_by[i]);
}

static void test_duplicates__across_phrases_of_a_class(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.6f, 10, 10, 30, 30);
    add(&p, 1, 1, 0.8f, 10, 10, 30, 29); /* better */
    add(&p, 1, 1, 0.7f, 40, 40, 50, 50); /* somewhere else */
    add(&p, 2, 0, 0.3f, 10, 10, 30, 30); /* another class */
    mark(&p, ST_LABEL_BY_IOU, 0.7f, false);
    expect(&p, (int32_t[]){ 1, -1, -1, -1 });
    mark(&p, ST_LABEL_BY_IOU, 0.7f, true);
    expect(&p, (int32_t[]){ 1, -1, -1, 1 });
    mark(&p, ST_LABEL_DUPLICATES_OFF, 0.7f, true);
    expect(&p, (int32_t[]){ -1, -1, -1, -1 });
    st_label_picture_free(&p);
}

static void test_duplicates__leave_one_phrase_alone(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.9f, 10, 10, 30, 30);
    add(&p, 1, 0, 0.8f, 10, 10, 30, 30);
    mark(&p, ST_LABEL_BY_SMALLER, 0.1f, true);
    expect(&p, (int32_t[]){ -1, -1 });
    st_label_picture_free(&p);
}

static void test_duplicates__by_the_smaller(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.9f, 0, 0, 40, 40);
    add(&p, 1, 1, 0.8f, 10, 10, 20, 20); /* inside: IoU 1/16 */
    mark(&p, ST_LABEL_BY_IOU, 0.5f, false);
    expect(&p, (int32_t[]){ -1, -1 });
    mark(&p, ST_LABEL_BY_SMALLER, 0.5f, false);
    expect(&p, (int32_t[]){ -1, 0 });
    st_label_picture_free(&p);
}

/* More than the threshold, not as much. 10 x 10 against 10 x 5: IoU 1/2. */
static void test_duplicates__threshold_is_exclusive(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.9f, 0, 0, 10, 10);
    add(&p, 1, 1, 0.8f, 0, 0, 10, 5);
    mark(&p, ST_LABEL_BY_IOU, 0.5f, false);
    expect(&p, (int32_t[]){ -1, -1 });
    mark(&p, ST_LABEL_BY_IOU, 0.499f, false);
    expect(&p, (int32_t[]){ -1, 0 });
    st_label_picture_free(&p);
}

/* One that is displaced itself displaces nobody: a chain of bars, each sharing much with the next only. */
static void test_duplicates__of_a_chain(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    for (uint32_t i = 0; i < 5; i++) add(&p, 1, i, 0.9f - 0.1f * (float)i, 5 * i, 0, 5 * i + 20, 10);
    mark(&p, ST_LABEL_BY_IOU, 0.5f, false);
    expect(&p, (int32_t[]){ -1, 0, -1, 2, -1 });
    st_label_picture_free(&p);
}

static void test_duplicates__equal_scores_go_by_order(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.5f, 10, 10, 30, 30);
    add(&p, 1, 1, 0.5f, 10, 10, 30, 30);
    mark(&p, ST_LABEL_BY_IOU, 0.5f, false);
    expect(&p, (int32_t[]){ -1, 0 });
    st_label_picture_free(&p);
}

static void test_duplicates__of_boxes(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    add(&p, 1, 0, 0.5f, 10, 10, 30, 30);
    add(&p, 1, 1, 0.6f, 10, 10, 30, 28);
    for (size_t i = 0; i < 2; i++) st_rle_free(&p.objects[i].mask);
    mark(&p, ST_LABEL_BY_IOU, 0.5f, false);
    expect(&p, (int32_t[]){ 1, -1 });
    st_label_picture_free(&p);
}

/* Kept in the store, it stands again when an export's threshold drops what displaced it. */
static void test_duplicates__come_back(void **state)
{
    (void)state;
    st_label_picture p = { 0 };
    st_label_class classes[2] = { { .id = 1, .threshold = 0.5f }, { .id = 2, .threshold = 0.3f } };
    bool kept[2];
    add(&p, 1, 0, 0.6f, 10, 10, 30, 30);
    add(&p, 2, 0, 0.4f, 10, 10, 30, 30);
    mark(&p, ST_LABEL_BY_IOU, 0.5f, true);
    assert_int_equal(st_label_select(kept, classes, 2, &p), 1);
    assert_true(kept[0] && !kept[1]);
    classes[0].threshold = 0.7f;
    assert_int_equal(st_label_select(kept, classes, 2, &p), 1);
    assert_true(!kept[0] && kept[1]);
    st_label_picture_free(&p);
}

/* ---- against the rule written out ---- */

static bool duplicate(const st_label_object *a, const st_label_object *b, const st_label_duplicates *how)
{
    if (a->class_id == b->class_id ? a->phrase == b->phrase : !how->across_classes) return false;
    const double both = (double)st_rle_intersection(&a->mask, &b->mask);
    const double smaller = (double)(a->area < b->area ? a->area : b->area);
    const double of = how->measure == ST_LABEL_BY_SMALLER ? smaller : (double)(a->area + b->area) - both;
    return both / of > (double)how->threshold;
}

static void check_slowly(const st_label_picture *p, const st_label_duplicates *how)
{
    int32_t want[64];
    bool done[64] = { false };
    for (size_t k = 0; k < p->n_objects; k++) {
        size_t best = p->n_objects;
        for (size_t i = 0; i < p->n_objects; i++)
            if (!done[i] && (best == p->n_objects || p->objects[i].score > p->objects[best].score)) best = i;
        want[best] = -1;
        for (size_t i = 0; i < p->n_objects; i++) {
            if (!done[i] || want[i] >= 0 || !duplicate(&p->objects[i], &p->objects[best], how)) continue;
            const int32_t now = want[best];
            if (now < 0 || p->objects[i].score > p->objects[now].score) want[best] = (int32_t)i;
        }
        done[best] = true;
    }
    for (size_t i = 0; i < p->n_objects; i++) assert_int_equal(p->objects[i].displaced_by, want[i]);
}

static uint32_t next_random(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

static void test_duplicates__as_the_rule_says(void **state)
{
    (void)state;
    uint32_t seed = 5;
    size_t n_displaced = 0;
    for (int turn = 0; turn < 200; turn++) {
        st_label_picture p = { 0 };
        const uint32_t n = 2 + next_random(&seed, 40);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t x = next_random(&seed, 40), y = next_random(&seed, 40);
            const uint32_t w = 4 + next_random(&seed, 16), h = 4 + next_random(&seed, 16);
            const float score = (float)next_random(&seed, 20) / 20.0f; /* with ties */
            add(&p, 1 + next_random(&seed, 3), next_random(&seed, 2), score, x, y, x + w, y + h);
        }
        const st_label_duplicates how = { turn % 2 ? ST_LABEL_BY_IOU : ST_LABEL_BY_SMALLER, 0.1f * (float)(1 + turn % 7), turn % 3 > 0 };
        mark(&p, how.measure, how.threshold, how.across_classes);
        check_slowly(&p, &how);
        for (size_t i = 0; i < n; i++) n_displaced += p.objects[i].displaced_by >= 0;
        st_label_picture_free(&p);
    }
    assert_true(n_displaced > 500);
}

/* Noise of thousands of runs, some of it a copy with so many pixels changed that what is shared lies about the threshold: whether two are one shows
 * late in the walk over their runs, early, or at once by their areas. */
static void test_duplicates__of_noise(void **state)
{
    (void)state;
    static uint8_t base[SIDE * SIDE], dense[SIDE * SIDE];
    uint32_t seed = 11;
    size_t n_displaced = 0, n_standing = 0;
    for (int turn = 0; turn < 60; turn++) {
        st_label_picture p = { .width = SIDE, .height = SIDE };
        const uint32_t density = 20 + next_random(&seed, 70);
        for (size_t k = 0; k < sizeof base; k++) base[k] = next_random(&seed, 100) < density;
        for (uint32_t i = 0; i < 12; i++) {
            const uint32_t changed = next_random(&seed, 40), from = next_random(&seed, 2) * SIDE * SIDE / 2;
            const uint32_t other = 10 + next_random(&seed, 90);
            for (uint32_t k = 0; k < sizeof dense; k++)
                dense[k] = k >= from && next_random(&seed, 100) < changed ? next_random(&seed, 100) < other : base[k];
            st_label_object o = { .class_id = 1 + i % 2, .phrase = next_random(&seed, 2), .score = (float)next_random(&seed, 1000) / 1000.0f };
            assert_int_equal(st_rle_from_dense(&o.mask, dense, SIDE, SIDE, SIDE, NULL), ST_OK);
            o.area = st_rle_area(&o.mask);
            assert_int_equal(st_label_picture_add(&p, &o, NULL), ST_OK);
        }
        assert_true(p.objects[0].mask.n_counts > 500);
        const st_label_duplicates how = { turn % 2 ? ST_LABEL_BY_IOU : ST_LABEL_BY_SMALLER, 0.7f + 0.05f * (float)(turn % 5), turn % 3 > 0 };
        mark(&p, how.measure, how.threshold, how.across_classes);
        check_slowly(&p, &how);
        for (size_t i = 0; i < p.n_objects; i++) *(p.objects[i].displaced_by >= 0 ? &n_displaced : &n_standing) += 1;
        st_label_picture_free(&p);
    }
    assert_true(n_displaced > 100 && n_standing > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_duplicates__across_phrases_of_a_class),
        cmocka_unit_test(test_duplicates__leave_one_phrase_alone),
        cmocka_unit_test(test_duplicates__by_the_smaller),
        cmocka_unit_test(test_duplicates__threshold_is_exclusive),
        cmocka_unit_test(test_duplicates__of_a_chain),
        cmocka_unit_test(test_duplicates__equal_scores_go_by_order),
        cmocka_unit_test(test_duplicates__of_boxes),
        cmocka_unit_test(test_duplicates__come_back),
        cmocka_unit_test(test_duplicates__as_the_rule_says),
        cmocka_unit_test(test_duplicates__of_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
