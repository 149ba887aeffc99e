/* engine_size_test.c: one model at several input sizes: which sizes there are, what ids say, and that nothing made at one size passes for
 * something made at another. What the numbers are at another size is tests/golden's business (tiny-*-at-*). */
#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>
#include "temp_folder.h"
#include "base/mem.h"
#include "weights/manifest.h"

#define DEMO ST_SOURCE_DIR "/models/demo" /* 224 pixels, patch 14, window 8: at least 112 */
#define N 4

static const uint32_t sides[N] = {224, 168, 336, 112};
static st_model *models[N];
static st_session *sessions[N];
static st_picture *pictures[N]; /* encoded for clicks */
static temp_folder folder;
static uint8_t pixels[120 * 160 * 3];
static const st_image image = {pixels, 160, 120, 480, ST_PIXEL_RGB8};

static st_status open_at(st_model **m, uint32_t side, uint32_t n_threads, st_error *err)
{
    st_model_options o = ST_MODEL_OPTIONS_INIT;
    o.n_threads = n_threads;
    o.input_size = side;
    return st_model_open(m, DEMO, &o, err);
}

static st_picture *encoded(st_session *s)
{
    st_picture *p = NULL;
    st_error err;
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.for_clicks = 1;
    if (st_picture_encode(&p, s, &image, &how, &err) != ST_OK) fail_msg("%s", err.message);
    return p;
}

static int set_up(void **state)
{
    (void)state;
    st_error err;
    temp_folder_make(&folder);
    for (size_t i = 0; i < sizeof pixels; i++) {
        const size_t x = i / 3 % 160, y = i / 480;
        const bool inside = (x - 70) * (x - 70) + (y - 60) * (y - 60) < 900;
        pixels[i] = inside ? (i % 3 == 0 ? 210 : 30) : (uint8_t)(x + y / 2);
    }
    for (size_t i = 0; i < N; i++) {
        if (open_at(&models[i], i ? sides[i] : 0, 2, &err) != ST_OK || st_session_new(&sessions[i], models[i], NULL, &err) != ST_OK) {
            print_error("%s\n", err.message);
            return -1;
        }
        pictures[i] = encoded(sessions[i]);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        st_picture_free(pictures[i]);
        st_session_free(sessions[i]);
        st_model_free(models[i]);
    }
    temp_folder_remove(&folder);
    return 0;
}

static st_model_info info_of(const st_model *m)
{
    st_model_info info = ST_MODEL_INFO_INIT;
    assert_int_equal(st_model_get_info(m, &info, NULL), ST_OK);
    return info;
}

static st_status ask(st_result **r, st_session *s, const st_picture *p, const st_concept *concept_, st_error *err)
{
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options o = ST_SEGMENT_OPTIONS_INIT;
    o.threshold = 0.0f;
    prompt.phrase = concept_ ? NULL : "apple";
    prompt.concepts = &concept_;
    prompt.n_concepts = concept_ != NULL;
    return st_segment(r, s, p, &prompt, &o, err);
}

static st_concept *concept_at(size_t i)
{
    st_concept *c = NULL;
    st_error err;
    st_prompt prompt = ST_PROMPT_INIT;
    static const st_exemplar box = {40, 30, 100, 90, 0};
    prompt.phrase = "apple", prompt.boxes = &box, prompt.n_boxes = 1;
    if (st_concept_make(&c, sessions[i], pictures[i], &prompt, NULL, &err) != ST_OK) fail_msg("%s", err.message);
    return c;
}

/* ---- which sizes there are ---- */

static void refused(uint32_t side, const char *says)
{
    st_model *m = (st_model *)&side;
    st_error err;
    assert_int_equal(open_at(&m, side, 1, &err), ST_ERR_INVALID_ARG);
    assert_null(m);
    if (!strstr(err.message, says) || !strstr(err.message, DEMO)) fail_msg("%u: %s", side, err.message);
}

static void test_open__checks_the_size(void **state)
{
    (void)state;
    refused(225, "input size 225: no multiple of the model's patch of 14 pixels; next to it are 224 and 238");
    refused(167, "next to it are 154 and 168");
    refused(111, "input size 111: expected 112 (one attention window) to 7168, in steps of 14 (the model's patch); its own is 224");
    refused(1, "expected 112");
    refused(98, "expected 112");
    refused(7182, "to 7168");
    refused(UINT32_MAX, "to 7168");
}

static void test_open__programs_built_before_the_option(void **state)
{
    (void)state;
    st_model *m = NULL;
    st_model_options o = ST_MODEL_OPTIONS_INIT;
    o.struct_size = offsetof(st_model_options, input_size);
    o.input_size = 225; /* not theirs: never read */
    assert_int_equal(st_model_open(&m, DEMO, &o, NULL), ST_OK);
    assert_int_equal(info_of(m).input_size, 224);
    st_model_free(m);
}

/* Sizes of other models than the demo's: another patch, and a size below its own window. */
static void test_dims__any_patch_and_window(void **state)
{
    (void)state;
    st_dims d;
    st_error err;
    st_dims_published(&d);
    assert_int_equal(st_dims_finish(&d, &err), ST_OK);
    static const uint32_t published[] = {336, 504, 672, 1008, 1344, 4032, 7168};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        assert_int_equal(st_dims_set_input_size(&d, published[i], &err), ST_OK);
        assert_true(d.image_size == published[i] && d.grid == published[i] / 14 && d.own_size == 1008);
    }
    assert_int_equal(st_dims_set_input_size(&d, 322, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_dims_set_input_size(&d, 0, &err), ST_OK);
    assert_true(d.image_size == 1008 && d.grid == 72);
    d.patch = 16, d.image_size = 1024;
    assert_int_equal(st_dims_finish(&d, &err), ST_OK);
    assert_int_equal(st_dims_set_input_size(&d, 512, &err), ST_OK);
    assert_int_equal(d.grid, 32);
    assert_int_equal(st_dims_set_input_size(&d, 504, &err), ST_ERR_INVALID_ARG);
    d.patch = 256, d.window = 4096, d.image_size = 1024; /* its own size is fine whatever the window; no other one is */
    assert_int_equal(st_dims_finish(&d, &err), ST_OK);
    assert_int_equal(st_dims_set_input_size(&d, 1024, &err), ST_OK);
    assert_int_equal(st_dims_set_input_size(&d, 2048, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_dims_set_input_size(&d, 16384, &err), ST_ERR_INVALID_ARG);
}

static void test_info__tells_the_size(void **state)
{
    (void)state;
    char id[96];
    const st_model_info own = info_of(models[0]);
    assert_true(own.input_size == 224 && own.own_input_size == 224 && own.mask_size == 64 && strlen(own.id) == 64);
    for (size_t i = 1; i < N; i++) {
        const st_model_info info = info_of(models[i]);
        snprintf(id, sizeof id, "%s@%u", own.id, sides[i]);
        assert_string_equal(info.id, id);
        assert_true(info.input_size == sides[i] && info.own_input_size == 224 && info.mask_size == 4 * sides[i] / 14);
    }
    st_model *m = NULL;
    assert_int_equal(open_at(&m, 224, 1, NULL), ST_OK); /* its own, said outright */
    assert_string_equal(info_of(m).id, own.id);
    st_model_free(m);
}

/* ---- the plan ---- */

static void test_plan__follows_the_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        const st_plan *plan = &models[i]->plan;
        st_session *s = NULL;
        st_result *r = NULL;
        assert_int_equal(st_session_new(&s, models[i], NULL, NULL), ST_OK);
        st_picture_free(encoded(s));
        assert_int_equal(s->arena.peak, plan->click_encode_scratch);
        st_session_free(s);
        assert_int_equal(st_session_new(&s, models[i], NULL, NULL), ST_OK);
        assert_int_equal(ask(&r, s, pictures[i], NULL, NULL), ST_OK);
        assert_true(r->n_instances > 0 && s->arena.peak <= plan->segment_scratch);
        st_result_free(r);
        st_session_free(s);
    }
    const st_plan *small = &models[3]->plan, *own = &models[0]->plan, *large = &models[2]->plan;
    const double quarter = (double)small->features / (double)own->features, more = (double)large->features / (double)own->features;
    assert_true(quarter > 0.25 && quarter < 0.2502 && more < 2.25 && more > 2.249); /* but for a token that every picture has */
    assert_true(small->encode_scratch < own->encode_scratch && own->encode_scratch < large->encode_scratch);
    assert_true(info_of(models[3]).plan_peak < info_of(models[0]).plan_peak && info_of(models[0]).plan_peak < info_of(models[2]).plan_peak);
}

/* ---- the same bits ---- */

static void test_run__same_bits_for_1_2_3_threads(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads += 2) {
        st_model *m = NULL;
        st_session *s = NULL;
        st_result *a = NULL, *b = NULL;
        assert_int_equal(open_at(&m, 168, threads, NULL), ST_OK);
        assert_int_equal(st_session_new(&s, m, NULL, NULL), ST_OK);
        st_picture *p = encoded(s);
        assert_int_equal(ask(&a, s, p, NULL, NULL), ST_OK);
        assert_int_equal(ask(&b, sessions[1], pictures[1], NULL, NULL), ST_OK);
        assert_true(a->n_instances == b->n_instances && a->n_instances > 0);
        for (size_t i = 0; i < a->n_instances; i++) {
            const st_instance *x = &a->instances[i], *y = &b->instances[i];
            assert_true(x->query == y->query && x->area == y->area && memcmp(&x->score, &y->score, sizeof x->score) == 0);
            assert_memory_equal(x->box, y->box, sizeof x->box);
        }
        st_result_free(a), st_result_free(b);
        st_picture_free(p);
        st_session_free(s);
        st_model_free(m);
    }
}

/* ---- nothing made at one size passes for something made at another ---- */

static void assert_says_sizes(const st_error *err, size_t made, size_t reads)
{
    char says[128];
    snprintf(says, sizeof says, "made at an input size of %u pixels, this model reads %u", sides[made], sides[reads]);
    if (!strstr(err->message, says)) fail_msg("%s", err->message);
}

static void test_concept__of_another_size_is_refused(void **state)
{
    (void)state;
    st_error err;
    for (size_t made = 0; made < N; made++) {
        st_concept *c = concept_at(made), *again = NULL;
        char *path = temp_path(&folder, "a.concept");
        assert_int_equal(st_concept_save(c, path, &err), ST_OK);
        assert_int_equal(st_concept_load(&again, path, &err), ST_OK);
        st_concept_info info = ST_CONCEPT_INFO_INIT;
        assert_int_equal(st_concept_get_info(again, &info, &err), ST_OK);
        assert_string_equal(info.model_id, info_of(models[made]).id);
        assert_int_equal(info.input_size, sides[made]);
        for (size_t at = 0; at < N; at++) {
            st_result *r = NULL;
            const st_status status = ask(&r, sessions[at], pictures[at], again, &err);
            assert_int_equal(status, at == made ? ST_OK : ST_ERR_INVALID_ARG);
            if (at != made) assert_says_sizes(&err, made, at);
            st_result_free(r);
        }
        st_concept_free(c), st_concept_free(again);
        remove(path);
        free(path);
    }
}

static void test_picture__saved_at_another_size_is_refused(void **state)
{
    (void)state;
    st_error err;
    for (size_t made = 0; made < N; made++) {
        char *path = temp_path(&folder, "a.features");
        assert_int_equal(st_picture_save(pictures[made], path, 0, &err), ST_OK);
        for (size_t at = 0; at < N; at++) {
            st_picture *p = NULL;
            st_result *r = NULL;
            const st_status status = st_picture_load(&p, models[at], path, &err);
            assert_int_equal(status, at == made ? ST_OK : ST_ERR_INVALID_ARG);
            if (at != made) assert_says_sizes(&err, made, at);
            else assert_int_equal(ask(&r, sessions[at], p, NULL, &err), ST_OK);
            st_result_free(r);
            st_picture_free(p);
        }
        remove(path);
        free(path);
    }
}

/* In one program: a picture that another st_model of the same weights encoded. */
static void test_picture__of_another_size_in_memory_is_refused(void **state)
{
    (void)state;
    st_error err;
    st_result *r = NULL;
    st_click_result *c = NULL;
    st_object *o = NULL;
    st_concept *made = NULL;
    st_everything_result *e = NULL;
    st_click_input in = ST_CLICK_INPUT_INIT;
    st_prompt prompt = ST_PROMPT_INIT;
    static const st_point point = {70, 60, 1};
    static const st_exemplar box = {40, 30, 100, 90, 0};
    in.points = &point, in.n_points = 1;
    prompt.boxes = &box, prompt.n_boxes = 1;
    assert_int_equal(ask(&r, sessions[0], pictures[1], NULL, &err), ST_ERR_INVALID_ARG);
    assert_says_sizes(&err, 1, 0);
    assert_int_equal(st_click(&c, sessions[1], pictures[2], &in, NULL, &err), ST_ERR_INVALID_ARG);
    assert_says_sizes(&err, 2, 1);
    assert_int_equal(st_object_new(&o, sessions[2], pictures[0], NULL, &err), ST_ERR_INVALID_ARG);
    assert_says_sizes(&err, 0, 2);
    assert_int_equal(st_everything(&e, sessions[0], pictures[2], NULL, NULL, &err), ST_ERR_INVALID_ARG);
    assert_says_sizes(&err, 2, 0);
    assert_int_equal(st_concept_make(&made, sessions[0], pictures[3], &prompt, NULL, &err), ST_ERR_INVALID_ARG);
    assert_says_sizes(&err, 3, 0);
    assert_true(!r && !c && !o && !e && !made);
    st_model *twin = NULL;
    st_session *s = NULL;
    assert_int_equal(open_at(&twin, 0, 1, NULL), ST_OK);
    assert_int_equal(st_session_new(&s, twin, NULL, NULL), ST_OK);
    assert_int_equal(ask(&r, s, pictures[0], NULL, &err), ST_ERR_INVALID_ARG); /* same weights, same size, another st_model */
    assert_non_null(strstr(err.message, "opened another time"));
    st_session_free(s);
    st_model_free(twin);
}

/* ---- the rest of the API ---- */

static void test_click__at_other_sizes(void **state)
{
    (void)state;
    st_click_input in = ST_CLICK_INPUT_INIT;
    static const st_point point = {70, 60, 1};
    in.points = &point, in.n_points = 1;
    for (size_t i = 0; i < N; i++) {
        st_click_result *r = NULL, *next = NULL;
        st_error err;
        assert_int_equal(st_click(&r, sessions[i], pictures[i], &in, NULL, &err), ST_OK);
        assert_true(r->mask_size == 4 * sides[i] / 14 && r->n_candidates == 3 && r->candidates[0].mask.width == 160);
        assert_int_equal(r->hole_area, st_click_hole_area(r->mask_size)); /* scaled to the grid */
        in.logits = r->candidates[0].logits;
        assert_int_equal(st_click(&next, sessions[i], pictures[i], &in, NULL, &err), ST_OK);
        in.logits = NULL;
        st_click_result_free(r), st_click_result_free(next);
    }
}

static void count_line(void *user, const st_check_line *line)
{
    size_t *n = user;
    n[0]++;
    n[1] += strcmp(line->what, "max error") == 0; /* stored references were looked at */
}

/* The demo model's stored references are of its own size: at another one it is checked like any model. */
static void test_check__references_are_of_the_own_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t n[2] = {0}, n_failed = 9;
        st_error err;
        assert_int_equal(st_model_check(sessions[i], count_line, n, &n_failed, &err), ST_OK);
        assert_true(n_failed == 0 && n[0] > 20 && (n[1] > 20) == (i == 0));
    }
}

/* Memory runs out at every allocation of opening at another size once. */
static void test_memory__every_failure_is_an_error(void **state)
{
    (void)state;
    for (uint64_t k = 1;; k += 7) {
        st_model *m = NULL;
        st_mem_fail_after(k);
        const st_status status = open_at(&m, 168, 1, NULL);
        st_mem_fail_after(0);
        st_model_free(m);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_true(k < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open__checks_the_size),
        cmocka_unit_test(test_open__programs_built_before_the_option),
        cmocka_unit_test(test_dims__any_patch_and_window),
        cmocka_unit_test(test_info__tells_the_size),
        cmocka_unit_test(test_plan__follows_the_size),
        cmocka_unit_test(test_run__same_bits_for_1_2_3_threads),
        cmocka_unit_test(test_concept__of_another_size_is_refused),
        cmocka_unit_test(test_picture__saved_at_another_size_is_refused),
        cmocka_unit_test(test_picture__of_another_size_in_memory_is_refused),
        cmocka_unit_test(test_click__at_other_sizes),
        cmocka_unit_test(test_check__references_are_of_the_own_size),
        cmocka_unit_test(test_memory__every_failure_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
