/* sweep_test.c: counts per class and threshold, medians, specks, and how often phrases fire where they should not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "label/sweep.h"

static char *phrases[] = { "cat", "kitten", "dog" };
static char *nothing[2];
static st_label_class classes[] = {
    { .id = 2, .name = "cat", .phrases = phrases, .n_phrases = 2, .concepts = nothing, .digests = nothing,
      .threshold = 0.4f },
    { .id = 5, .name = "dog", .phrases = phrases + 2, .n_phrases = 1, .concepts = nothing, .digests = nothing,
      .threshold = 0.6f, .max_area = { 0.5, true } },
};
static const st_label_job job = { .classes = classes, .n_classes = 2 };
static const float thresholds[] = { 0.2f, 0.5f, 0.7f };
enum { N = 3 };

static void add(st_label_picture *p, uint32_t class_id, uint32_t phrase, float score, uint64_t area, int32_t displaced_by)
{
    st_label_object o = { .class_id = class_id, .phrase = phrase, .score = score, .area = area, .displaced_by = displaced_by };
    assert_int_equal(st_label_picture_add(p, &o, NULL), ST_OK);
    p->width = 100;
    p->height = 100;
}

static void expect(const st_label_sweep_row *row, float threshold, uint64_t n, uint64_t none, uint64_t specks, double share)
{
    assert_true(row->threshold == threshold);
    assert_int_equal(row->n_instances, n);
    assert_int_equal(row->n_none, none);
    assert_int_equal(row->n_specks, specks);
    assert_true(row->median_share >= 0.99 * share && row->median_share <= 1.01 * share);
}

static void test_sweep__counts(void **state)
{
    (void)state;
    st_label_sweep s;
    st_label_picture p[3] = { { 0 }, { 0 }, { .error = phrases[0] } };
    add(&p[0], 2, 0, 0.90f, 1000, -1);
    add(&p[0], 2, 0, 0.45f, 10, -1); /* a speck */
    add(&p[0], 2, 1, 0.80f, 1000, 0); /* a duplicate of the first */
    add(&p[0], 5, 0, 0.65f, 400, -1);
    add(&p[0], 5, 0, 0.95f, 6000, -1); /* more than half of the picture */
    add(&p[1], 2, 1, 0.30f, 2000, -1);
    assert_int_equal(st_label_sweep_begin(&s, &job, thresholds, N, ST_LABEL_SPECK, NULL), ST_OK);
    for (size_t i = 0; i < 3; i++) assert_int_equal(st_label_sweep_add(&s, &p[i], NULL), ST_OK);
    st_label_sweep_end(&s);
    assert_int_equal(s.n_pictures, 2);
    assert_int_equal(s.n_failed, 1);
    expect(&s.rows[0], 0.2f, 3, 0, 1, 0.10);
    expect(&s.rows[1], 0.5f, 1, 1, 0, 0.10);
    expect(&s.rows[2], 0.7f, 1, 1, 0, 0.10);
    expect(&s.rows[3], 0.4f, 2, 1, 1, 0.001);
    expect(&s.rows[4], 0.2f, 1, 1, 0, 0.04);
    expect(&s.rows[5], 0.5f, 1, 1, 0, 0.04);
    expect(&s.rows[6], 0.7f, 0, 2, 0, 0);
    expect(&s.rows[7], 0.6f, 1, 1, 0, 0.04);
    st_label_sweep_free(&s);
    st_label_picture_free(&p[0]);
    st_label_picture_free(&p[1]);
}

/* What displaced it falls away at its own class's threshold: what was displaced counts. */
static void test_sweep__own_thresholds_settle_duplicates(void **state)
{
    (void)state;
    st_label_sweep s;
    st_label_picture p = { 0 };
    add(&p, 2, 0, 0.45f, 1000, 1);
    add(&p, 5, 0, 0.55f, 1000, -1);
    assert_int_equal(st_label_sweep_begin(&s, &job, thresholds, N, ST_LABEL_SPECK, NULL), ST_OK);
    assert_int_equal(st_label_sweep_add(&s, &p, NULL), ST_OK);
    st_label_sweep_end(&s);
    assert_int_equal(s.rows[0].n_instances, 0);
    assert_int_equal(s.rows[3].n_instances, 1);
    assert_int_equal(s.rows[4].n_instances, 1);
    assert_int_equal(s.rows[7].n_instances, 0);
    st_label_sweep_free(&s);
    st_label_picture_free(&p);
}

static void test_sweep__medians(void **state)
{
    (void)state;
    const uint64_t areas[] = { 1, 2, 3, 50, 700, 9000, 10000, 10000 };
    for (size_t n = 1; n <= 8; n++) {
        st_label_sweep s;
        st_label_picture p = { 0 };
        for (size_t i = 0; i < n; i++) add(&p, 2, 0, 0.9f, areas[(i * 5) % n], -1);
        uint64_t sorted[8];
        for (size_t i = 0; i < n; i++) sorted[i] = p.objects[i].area;
        for (size_t i = 0; i < n; i++)
            for (size_t k = i + 1; k < n; k++)
                if (sorted[k] < sorted[i]) {
                    const uint64_t held = sorted[i];
                    sorted[i] = sorted[k];
                    sorted[k] = held;
                }
        assert_int_equal(st_label_sweep_begin(&s, &job, thresholds, N, ST_LABEL_SPECK, NULL), ST_OK);
        assert_int_equal(st_label_sweep_add(&s, &p, NULL), ST_OK);
        st_label_sweep_end(&s);
        const double want = (double)sorted[(n - 1) / 2] / 10000.0;
        assert_true(s.rows[0].median_share >= 0.99 * want && s.rows[0].median_share <= 1.01 * want);
        st_label_sweep_free(&s);
        st_label_picture_free(&p);
    }
}

static void test_sweep__thresholds(void **state)
{
    (void)state;
    float t[20];
    assert_int_equal(st_label_sweep_thresholds(t, 0.15f), 17);
    assert_true(t[0] == 0.15f && t[1] == 0.2f && t[16] == 0.95f);
    assert_int_equal(st_label_sweep_thresholds(t, 0.0f), 20);
    assert_int_equal(st_label_sweep_thresholds(t, 0.97f), 1);
    st_label_sweep s;
    assert_int_equal(st_label_sweep_begin(&s, &job, t, 0, 1, NULL), ST_ERR_INVALID_ARG);
    assert_int_equal(st_label_sweep_begin(&s, &job, t, 101, 1, NULL), ST_ERR_INVALID_ARG);
    assert_null(s.rows);
}

static void test_negatives__rates(void **state)
{
    (void)state;
    st_label_negatives g;
    st_label_picture p[4] = { { 0 }, { 0 }, { 0 }, { .error = phrases[0] } };
    add(&p[0], 2, 0, 0.45f, 100, -1);
    add(&p[0], 2, 0, 0.75f, 100, -1); /* twice in one picture counts once */
    add(&p[0], 2, 1, 0.60f, 100, 1);  /* a duplicate fires all the same */
    add(&p[1], 5, 0, 0.90f, 9000, -1); /* too large to be exported */
    add(&p[1], 5, 0, 0.30f, 100, -1);
    assert_int_equal(st_label_negatives_begin(&g, &job, thresholds, N, NULL), ST_OK);
    assert_int_equal(g.n_phrases, 3);
    assert_true(st_label_false_rate(&g, 0, 0) == 0);
    for (size_t i = 0; i < 4; i++) st_label_negatives_add(&g, &p[i]);
    assert_int_equal(g.n_pictures, 3);
    assert_int_equal(g.n_failed, 1);
    const double third = 1.0 / 3.0, want[3][4] = { { third, third, third, third }, { third, third, 0, third }, { third, 0, 0, 0 } };
    for (size_t k = 0; k < 3; k++)
        for (size_t t = 0; t <= N; t++) assert_true(st_label_false_rate(&g, k, t) == want[k][t]);
    size_t phrase = 9;
    assert_ptr_equal(st_label_phrase_at(&phrase, &job, 1), &classes[0]);
    assert_int_equal(phrase, 1);
    assert_ptr_equal(st_label_phrase_at(&phrase, &job, 2), &classes[1]);
    assert_int_equal(phrase, 0);
    assert_null(st_label_phrase_at(&phrase, &job, 3));
    st_label_negatives_free(&g);
    for (size_t i = 0; i < 3; i++) st_label_picture_free(&p[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sweep__counts),
        cmocka_unit_test(test_sweep__own_thresholds_settle_duplicates),
        cmocka_unit_test(test_sweep__medians),
        cmocka_unit_test(test_sweep__thresholds),
        cmocka_unit_test(test_negatives__rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
