/* engine_test.c: the public objects on the demo model: same bits for any thread count and any company, limits, cancel, plan, out of memory. */
#include "engine/engine.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "base/mem.h"

#define DEMO ST_SOURCE_DIR "/models/demo"

static st_model *models[3]; /* 1, 2 and 3 threads */
static uint8_t pixels[150 * 200 * 3];
static const st_image image = {pixels, 200, 150, 200 * 3, ST_PIXEL_RGB8};

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        st_error err;
        st_model_options opts = ST_MODEL_OPTIONS_INIT;
        opts.n_threads = i + 1;
        if (st_model_open(&models[i], DEMO, &opts, &err) != ST_OK) {
            print_error("%s\n", err.message);
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof pixels; i++) {
        const size_t x = i / 3 % 200, y = i / 600;
        const bool inside = (x - 60) * (x - 60) + (y - 70) * (y - 70) < 1600; /* a red disc on a gradient */
        pixels[i] = inside ? (i % 3 == 0 ? 210 : 30) : (uint8_t)(x + y / 2);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) st_model_free(models[i]);
    return 0;
}

static st_session *session_on(st_model *m)
{
    st_session *s = NULL;
    assert_int_equal(st_session_new(&s, m, NULL, NULL), ST_OK);
    return s;
}

static st_picture *encoded(st_session *s)
{
    st_picture *p = NULL;
    st_error err;
    assert_int_equal(st_picture_encode(&p, s, &image, NULL, &err), ST_OK);
    return p;
}

/* Threshold 0: every query stays, so that results are never empty. */
static st_result *segmented(st_session *s, const st_picture *p, const char *phrase, const st_exemplar *boxes, size_t n_boxes)
{
    st_result *r = NULL;
    st_error err;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    prompt.phrase = phrase, prompt.boxes = boxes, prompt.n_boxes = n_boxes;
    opts.threshold = 0.0f;
    if (st_segment(&r, s, p, &prompt, &opts, &err) != ST_OK) fail_msg("%s", err.message);
    return r;
}

static void assert_same_result(const st_result *a, const st_result *b)
{
    assert_true(a->n_instances == b->n_instances && a->n_instances > 0);
    assert_memory_equal(&a->presence, &b->presence, sizeof a->presence);
    for (size_t i = 0; i < a->n_instances; i++) {
        const st_instance *x = &a->instances[i], *y = &b->instances[i];
        assert_memory_equal(&x->score, &y->score, sizeof x->score);
        assert_memory_equal(x->box, y->box, sizeof x->box);
        assert_true(x->query == y->query && x->area == y->area && x->mask.n_counts == y->mask.n_counts);
        assert_memory_equal(x->mask.counts, y->mask.counts, x->mask.n_counts * sizeof *x->mask.counts);
    }
}

static const char *const phrases[4] = {"apple", "red balloon", "a phrase that nobody trained", "!="};
static const st_exemplar two_boxes[2] = {{20, 30, 100, 110, 0}, {120, 20, 180, 90, 1}};

static void test_segment__same_bits_for_1_2_3_threads(void **state)
{
    (void)state;
    st_result *r[3][5];
    for (size_t i = 0; i < 3; i++) {
        st_session *s = session_on(models[i]);
        st_picture *p = encoded(s);
        for (size_t k = 0; k < 4; k++) r[i][k] = segmented(s, p, phrases[k], NULL, 0);
        r[i][4] = segmented(s, p, "apple", two_boxes, 2);
        st_picture_free(p);
        st_session_free(s);
    }
    for (size_t k = 0; k < 5; k++) {
        assert_same_result(r[0][k], r[1][k]);
        assert_same_result(r[0][k], r[2][k]);
        for (size_t i = 0; i < 3; i++) st_result_free(r[i][k]);
    }
    assert_true(st_pool_n_worked(models[1]->pool) >= 2 && st_pool_n_worked(models[2]->pool) >= 2); /* the threads really took part */
}

static void test_segment__a_phrase_in_company_equals_alone(void **state)
{
    (void)state;
    st_session *together = session_on(models[1]);
    st_picture *p = encoded(together);
    for (size_t k = 0; k < 4; k++) {
        st_result *in_company = segmented(together, p, phrases[k], NULL, 0);
        st_session *alone = session_on(models[1]);
        st_picture *own = encoded(alone);
        st_result *r = segmented(alone, own, phrases[k], NULL, 0);
        st_result *again = segmented(together, p, phrases[k], NULL, 0); /* from the phrase cache */
        assert_same_result(in_company, r);
        assert_same_result(in_company, again);
        st_result_free(in_company), st_result_free(r), st_result_free(again);
        st_picture_free(own);
        st_session_free(alone);
    }
    st_picture_free(p);
    st_session_free(together);
}

typedef struct worker {
    st_model *model;
    const st_picture *picture;
    const char *phrase;
    st_result *result;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    st_session *s = NULL;
    if (st_session_new(&s, w->model, NULL, NULL) != ST_OK) return NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    prompt.phrase = w->phrase;
    opts.threshold = 0.0f;
    if (st_segment(&w->result, s, w->picture, &prompt, &opts, NULL) != ST_OK) w->result = NULL;
    st_session_free(s);
    return NULL;
}

static void test_segment__concurrent_sessions_share_model_and_picture(void **state)
{
    (void)state;
    st_session *s = session_on(models[1]);
    st_picture *p = encoded(s);
    pthread_t threads[4];
    worker workers[4];
    for (size_t k = 0; k < 4; k++) {
        workers[k] = (worker){models[1], p, phrases[k], NULL};
        assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
    }
    for (size_t k = 0; k < 4; k++) pthread_join(threads[k], NULL);
    for (size_t k = 0; k < 4; k++) {
        assert_non_null(workers[k].result);
        st_result *alone = segmented(s, p, phrases[k], NULL, 0);
        assert_same_result(workers[k].result, alone);
        st_result_free(workers[k].result), st_result_free(alone);
    }
    st_picture_free(p);
    st_session_free(s);
}

static void test_segment__sorted_capped_and_flagged(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    st_picture *p = encoded(s);
    st_result *all = segmented(s, p, "apple", NULL, 0), *capped = NULL, *none = NULL;
    assert_int_equal(all->n_instances, models[0]->dims->n_queries);
    assert_true(all->warnings & ST_WARN_QUERY_LIMIT);
    for (size_t i = 1; i < all->n_instances; i++) assert_true(all->instances[i - 1].score >= all->instances[i].score);
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    prompt.phrase = "apple";
    opts.threshold = 0.0f;
    opts.max_detections = 3;
    assert_int_equal(st_segment(&capped, s, p, &prompt, &opts, NULL), ST_OK);
    assert_true(capped->n_instances == 3 && (capped->warnings & ST_WARN_DETECTION_CAP));
    for (size_t i = 0; i < 3; i++) assert_int_equal(capped->instances[i].query, all->instances[i].query);
    opts.threshold = 1.0f; /* nothing is strictly above */
    assert_int_equal(st_segment(&none, s, p, &prompt, &opts, NULL), ST_OK);
    assert_true(none->n_instances == 0 && none->warnings == ST_WARN_NOTHING_FOUND);
    st_result_free(all), st_result_free(capped), st_result_free(none);
    st_picture_free(p);
    st_session_free(s);
}

static void test_segment__mask_threshold_shrinks_masks(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    st_bitmap scene;
    st_picture *p = NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    assert_int_equal(st_bitmap_load(&scene, DEMO "/check.png", NULL, NULL), ST_OK);
    assert_int_equal(st_picture_encode(&p, s, &(st_image){scene.rgb, scene.width, scene.height, 3 * (size_t)scene.width, ST_PIXEL_RGB8}, NULL, NULL), ST_OK);
    st_bitmap_free(&scene);
    uint64_t area[3] = {0, 0, 0};
    static const float at[3] = {0.1f, 0.5f, 0.9f};
    prompt.phrase = "present"; /* there is one in the picture */
    opts.threshold = 0.0f;
    for (size_t k = 0; k < 3; k++) {
        st_result *r = NULL;
        opts.mask_threshold = at[k];
        assert_int_equal(st_segment(&r, s, p, &prompt, &opts, NULL), ST_OK);
        for (size_t i = 0; i < r->n_instances; i++) area[k] += r->instances[i].area;
        st_result_free(r);
    }
    if (!(area[0] > area[1] && area[1] > area[2])) fail_msg("areas %llu %llu %llu", (unsigned long long)area[0], (unsigned long long)area[1], (unsigned long long)area[2]);
    opts.want_masks = 0;
    st_result *r = NULL;
    assert_int_equal(st_segment(&r, s, p, &prompt, &opts, NULL), ST_OK);
    assert_true(r->n_instances > 0 && r->instances[0].mask.counts == NULL && r->instances[0].area == 0);
    st_result_free(r);
    st_picture_free(p);
    st_session_free(s);
}

static void test_segment__refuses_nonsense(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]), *other = session_on(models[1]);
    st_picture *p = encoded(s);
    st_result *r = NULL;
    st_error err;
    static const st_exemplar bad[] = {{50, 10, 20, 60, 0}, {10, 10, 10, 60, 0}, {-1, 10, 20, 60, 0}, {10, 10, 201, 60, 0}, {10, NAN, 20, 60, 0}, {10, 10, INFINITY, 60, 0}};
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    assert_int_equal(st_segment(&r, s, p, &prompt, NULL, &err), ST_ERR_INVALID_ARG); /* neither phrase nor box */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        prompt.boxes = &bad[i], prompt.n_boxes = 1;
        assert_int_equal(st_segment(&r, s, p, &prompt, NULL, &err), ST_ERR_INVALID_ARG);
        assert_non_null(strstr(err.message, "box 1"));
        assert_null(r);
    }
    prompt.n_boxes = ST_MAX_EXEMPLARS + 1;
    assert_int_equal(st_segment(&r, s, p, &prompt, NULL, &err), ST_ERR_LIMIT);
    prompt = (st_prompt)ST_PROMPT_INIT;
    prompt.phrase = "\xff\xfe";
    assert_int_not_equal(st_segment(&r, s, p, &prompt, NULL, &err), ST_OK);
    prompt.phrase = "cat";
    assert_int_equal(st_segment(&r, other, p, &prompt, NULL, &err), ST_ERR_INVALID_ARG); /* another model's picture */
    static const float thresholds[] = {-0.1f, 1.1f, NAN};
    for (size_t i = 0; i < 3; i++) {
        opts.threshold = thresholds[i];
        assert_int_equal(st_segment(&r, s, p, &prompt, &opts, &err), ST_ERR_INVALID_ARG);
    }
    opts.threshold = 0.5f;
    static const float mask_thresholds[] = {0.0f, 1.0f, NAN};
    for (size_t i = 0; i < 3; i++) {
        opts.mask_threshold = mask_thresholds[i];
        assert_int_equal(st_segment(&r, s, p, &prompt, &opts, &err), ST_ERR_INVALID_ARG);
    }
    st_picture_free(p);
    st_session_free(s), st_session_free(other);
}

static void test_segment__long_and_odd_phrases(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    st_picture *p = encoded(s);
    char text[2000] = "";
    for (size_t i = 0; i < 200; i++) strcat(text, "cat ");
    st_result *r = segmented(s, p, text, NULL, 0);
    assert_true(r->n_tokens == 32 && (r->warnings & ST_WARN_PROMPT_CUT));
    st_result_free(r);
    r = segmented(s, p, "", NULL, 0); /* start and end only, as the reference */
    assert_true(r->n_tokens == 2 && !(r->warnings & ST_WARN_PROMPT_CUT));
    st_result_free(r);
    r = segmented(s, p, "\xe7\x8c\xab caf\xc3\xa9", NULL, 0);
    assert_true(r->n_tokens > 3);
    st_result_free(r);
    st_picture_free(p);
    st_session_free(s);
}

static void test_encode__refuses_bad_images(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    st_picture *p = NULL;
    st_error err;
    st_image bad = image;
    bad.width = 0;
    assert_int_equal(st_picture_encode(&p, s, &bad, NULL, &err), ST_ERR_INVALID_ARG);
    bad = image, bad.stride = 10;
    assert_int_equal(st_picture_encode(&p, s, &bad, NULL, &err), ST_ERR_INVALID_ARG);
    bad = image, bad.format = (st_pixel_format)9;
    assert_int_equal(st_picture_encode(&p, s, &bad, NULL, &err), ST_ERR_INVALID_ARG);
    bad = image, bad.data = NULL;
    assert_int_equal(st_picture_encode(&p, s, &bad, NULL, &err), ST_ERR_INVALID_ARG);
    assert_null(p);
    /* refused for their size, before a pixel is read */
    const uint32_t sizes[][2] = {{(1u << 24) + 1, 1}, {1, (1u << 24) + 1}, {UINT32_MAX, 1}, {1u << 20, 1u << 20}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        bad = image, bad.width = sizes[i][0], bad.height = sizes[i][1], bad.stride = 3 * (size_t)bad.width;
        assert_int_equal(st_picture_encode(&p, s, &bad, NULL, &err), ST_ERR_LIMIT);
        assert_null(p);
    }
    const uint8_t dot[1] = {77};
    const st_image tiny = {dot, 1, 1, 1, ST_PIXEL_GRAY8}; /* one gray pixel is a picture */
    assert_int_equal(st_picture_encode(&p, s, &tiny, NULL, &err), ST_OK);
    st_picture_free(p);
    st_session_free(s);
}

/* Nothing to work on, or nowhere to put the result: a sentence, with an error object and without. */
static void test_api__nulls_are_refused(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    st_picture *p = encoded(s);
    st_prompt prompt = ST_PROMPT_INIT;
    prompt.phrase = "present";
    st_result *r = NULL;
    uint32_t width = 7, height = 7;
    for (int with = 0; with < 2; with++) {
        st_error err = {ST_OK, ""}, *e = with ? &err : NULL;
        assert_int_equal(st_model_open(NULL, DEMO, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_session_new(NULL, models[0], NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_picture_encode(NULL, s, &image, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_picture_load(NULL, models[0], "x", e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_picture_save(NULL, "x", 0, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_segment(NULL, s, p, &prompt, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_segment(&r, s, p, NULL, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_concept_make(NULL, s, p, &prompt, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_concept_load(NULL, "x", e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_concept_save(NULL, "x", e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_click(NULL, s, p, NULL, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_object_new(NULL, s, p, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_everything(NULL, s, p, NULL, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_model_check(NULL, NULL, NULL, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_model_get_info(models[0], NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_tokenize(NULL, NULL, 0, NULL, NULL, e), ST_ERR_INVALID_ARG);
        assert_int_equal(st_file_write(NULL, "x", 1, e), ST_ERR_INVALID_ARG);
        const st_concept *none = NULL;
        st_prompt with_none = ST_PROMPT_INIT;
        with_none.concepts = &none;
        with_none.n_concepts = 1;
        assert_int_equal(st_segment(&r, s, p, &with_none, NULL, e), ST_ERR_INVALID_ARG);
        assert_null(r);
        if (with) assert_non_null(strstr(err.message, "concept 1"));
    }
    st_picture_size(NULL, &width, &height);
    assert_true(width == 0 && height == 0);
    st_picture_size(p, NULL, &height);
    assert_int_equal(height, image.height);
    assert_int_equal(st_picture_for_clicks(NULL), 0);
    assert_null(st_picture_source(NULL));
    st_picture_free(p);
    st_session_free(s);
}

static void test_encode__pixel_formats_agree(void **state)
{
    (void)state;
    st_session *s = session_on(models[0]);
    static uint8_t bgr[sizeof pixels], rgba[150 * 200 * 4];
    for (size_t i = 0; i < 150 * 200; i++)
        for (size_t c = 0; c < 3; c++) {
            bgr[3 * i + c] = pixels[3 * i + 2 - c];
            rgba[4 * i + c] = pixels[3 * i + c];
            rgba[4 * i + 3] = (uint8_t)i; /* ignored */
        }
    const st_image other[2] = {{bgr, 200, 150, 600, ST_PIXEL_BGR8}, {rgba, 200, 150, 800, ST_PIXEL_RGBA8}};
    st_picture *p = encoded(s);
    const size_t n = 21 * (size_t)s->model->dims->grid * s->model->dims->grid * s->model->dims->width;
    for (size_t i = 0; i < 2; i++) {
        st_picture *q = NULL;
        assert_int_equal(st_picture_encode(&q, s, &other[i], NULL, NULL), ST_OK);
        assert_memory_equal(p->block, q->block, n * sizeof(float));
        st_picture_free(q);
    }
    st_picture_free(p);
    st_session_free(s);
}

static void cancel_soon(void *user, const char *stage, size_t done, size_t total)
{
    (void)total;
    if (strcmp(stage, "picture") == 0 && done == 2) st_cancel_set(user);
}

static void test_cancel__stops_and_can_be_reset(void **state)
{
    (void)state;
    st_cancel *cancel = st_cancel_new();
    st_session_options opts = ST_SESSION_OPTIONS_INIT;
    st_session *s = NULL;
    st_picture *p = NULL;
    st_error err;
    opts.cancel = cancel, opts.progress = cancel_soon, opts.progress_user = cancel;
    assert_int_equal(st_session_new(&s, models[1], &opts, NULL), ST_OK);
    const double t = st_clock_seconds();
    assert_int_equal(st_picture_encode(&p, s, &image, NULL, &err), ST_ERR_CANCELLED);
    assert_true(p == NULL && st_clock_seconds() - t < 60.0);
    s->progress = NULL;
    st_cancel_reset(cancel);
    assert_int_equal(st_picture_encode(&p, s, &image, NULL, &err), ST_OK);
    st_cancel_set(cancel);
    st_prompt prompt = ST_PROMPT_INIT;
    st_result *r = NULL;
    prompt.phrase = "cat";
    assert_int_equal(st_segment(&r, s, p, &prompt, NULL, &err), ST_ERR_CANCELLED);
    assert_null(r);
    st_picture_free(p);
    st_session_free(s);
    st_cancel_free(cancel);
}

static void cancel_at_once(void *user, const char *stage, size_t done, size_t total)
{
    (void)total;
    if (strcmp(stage, "phrase") == 0 && done == 1) st_cancel_set(user);
}

static void look_away(void *user, const char *name, float *data, size_t rows, size_t cols)
{
    (void)data, (void)rows, (void)cols;
    if (strcmp(name, "geo.out") == 0) ++*(size_t *)user;
}

/* What prompts share is made by the first that gets through, and changes no bit: a session with a probe makes it anew. */
static void test_segment__shares_what_no_prompt_changes(void **state)
{
    (void)state;
    st_cancel *cancel = st_cancel_new();
    st_session_options opts = ST_SESSION_OPTIONS_INIT;
    st_session *first = NULL, *s = session_on(models[0]);
    st_prompt prompt = ST_PROMPT_INIT;
    st_result *r = NULL;
    size_t n_seen = 0;
    opts.cancel = cancel, opts.progress = cancel_at_once, opts.progress_user = cancel;
    assert_int_equal(st_session_new(&first, models[0], &opts, NULL), ST_OK);
    st_picture *p = encoded(s);
    prompt.phrase = "apple";
    assert_false(p->shared->made);
    st_cancel_set(cancel);
    assert_int_equal(st_segment(&r, first, p, &prompt, NULL, NULL), ST_ERR_CANCELLED);
    assert_false(p->shared->made);
    st_cancel_reset(cancel);
    assert_int_equal(st_segment(&r, first, p, &prompt, NULL, NULL), ST_ERR_CANCELLED); /* after it was made */
    assert_true(p->shared->made);
    for (size_t k = 0; k < 4; k++) {
        s->probe = NULL;
        st_result *shared = segmented(s, p, phrases[k], NULL, 0);
        s->probe = look_away, s->probe_user = &n_seen;
        st_result *anew = segmented(s, p, phrases[k], NULL, 0);
        assert_same_result(shared, anew);
        st_result_free(shared), st_result_free(anew);
    }
    assert_int_equal(n_seen, 4);
    st_picture_free(p);
    st_session_free(first), st_session_free(s);
    st_cancel_free(cancel);
}

static void test_plan__is_what_the_run_uses(void **state)
{
    (void)state;
    st_session *s = session_on(models[1]);
    const st_plan *plan = &models[1]->plan;
    st_picture *p = encoded(s);
    assert_int_equal(s->arena.peak, plan->encode_scratch);
    st_session *t = session_on(models[1]);
    st_result *r = segmented(t, p, phrases[2], NULL, 0);
    assert_true(t->arena.peak <= plan->segment_scratch && t->arena.peak * 10 > plan->segment_scratch * 9);
    st_result_free(r);
    st_picture_free(p);
    st_session_free(s), st_session_free(t);
    st_model_info info = ST_MODEL_INFO_INIT;
    assert_int_equal(st_model_get_info(models[1], &info, NULL), ST_OK);
    assert_true(info.n_plan >= 5 && info.plan_peak > plan->encode_scratch && strlen(info.id) == 64 && info.input_size == 224 && info.n_threads == 2);
}

#define TINY ST_SOURCE_DIR "/tests/golden/data/tiny-meta/model.safetensors" /* fp32: read straight from the file */

static st_result *answer_within(uint64_t limit, st_model_info *info)
{
    st_model_options opts = ST_MODEL_OPTIONS_INIT;
    st_model *m = NULL;
    st_result *r = NULL;
    st_picture *p = NULL;
    st_session *s = NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options ask = ST_SEGMENT_OPTIONS_INIT;
    opts.n_threads = 2;
    opts.memory_limit = limit;
    assert_int_equal(st_model_open(&m, TINY, &opts, NULL), ST_OK);
    assert_int_equal(st_model_get_info(m, info, NULL), ST_OK);
    assert_int_equal(m->streaming, limit != 0);
    s = session_on(m);
    prompt.phrase = "cat", ask.threshold = 0.0f;
    for (int round = 0; round < 2; round++) { /* the second computes with weights that have left memory before */
        st_picture_free(p), st_result_free(r);
        assert_int_equal(st_picture_encode(&p, s, &image, NULL, NULL), ST_OK);
        st_session_forget_phrases(s);
        assert_int_equal(st_segment(&r, s, p, &prompt, &ask, NULL), ST_OK);
    }
    st_picture_free(p), st_session_free(s), st_model_free(m);
    return r;
}

static void test_memory_limit__another_plan_the_same_answer(void **state)
{
    (void)state;
    st_model_info whole = ST_MODEL_INFO_INIT, small = ST_MODEL_INFO_INIT;
    st_result *a = answer_within(0, &whole);
    st_result *b = answer_within(whole.plan_peak - 1, &small);
    assert_true(a->n_instances > 0);
    assert_same_result(a, b);
    assert_true(small.plan_peak < whole.plan_peak);
    st_model_options opts = ST_MODEL_OPTIONS_INIT;
    st_model *m = NULL;
    st_error err;
    opts.memory_limit = small.plan_peak;
    assert_int_equal(st_model_open(&m, TINY, &opts, &err), ST_OK);
    st_model_free(m);
    opts.memory_limit = small.plan_peak - 1;
    assert_int_equal(st_model_open(&m, TINY, &opts, &err), ST_ERR_LIMIT);
    assert_null(m);
    assert_non_null(strstr(err.message, "the smallest plan needs"));
    opts.struct_size = offsetof(st_model_options, memory_limit); /* a caller who does not know of limits has none */
    assert_int_equal(st_model_open(&m, TINY, &opts, &err), ST_OK);
    st_model_free(m);
    st_result_free(a), st_result_free(b);
}

/* A product that only adds up what it was asked. */
static double n_multiplied;
static void count_gemm(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, bool accumulate, float *c, size_t ldc)
{
    (void)trans_b, (void)a, (void)lda, (void)b, (void)ldb, (void)accumulate, (void)c, (void)ldc;
    n_multiplied += (double)m * (double)n * (double)k;
}

static void count_gemm_packed(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *packed, bool accumulate, float *c, size_t ldc)
{
    count_gemm(true, m, n, k, a, lda, packed, k, accumulate, c, ldc);
}

/* What the plan says a pass multiplies is what it does multiply. */
static void test_rate__counts_what_the_passes_multiply(void **state)
{
    (void)state;
    st_model *m = models[0];
    const st_kernels *own = m->kernels;
    st_kernels counting = *own;
    st_rate rate = ST_RATE_INIT, wrong = {0};
    st_session *s = session_on(m);
    st_picture *p = encoded(s);
    assert_int_equal(st_model_rate(m, 4, &rate, NULL), ST_OK);
    assert_true(rate.fp32_gflops > 0.0 && rate.int8_gops == 0.0);
    st_picture_free(p);
    counting.gemm = count_gemm;
    counting.gemm_packed = count_gemm_packed;
    m->kernels = &counting;
    n_multiplied = 0.0;
    p = encoded(s);
    m->kernels = own;
    assert_true(fabs(2e-9 * n_multiplied - rate.encode_gflop) < 1e-9 * rate.encode_gflop);
    assert_true(rate.phrase_gflop > 0.0);
    assert_int_equal(st_model_rate(m, 0, &rate, NULL), ST_ERR_INVALID_ARG);
    assert_int_equal(st_model_rate(m, m->dims->context + 1, &rate, NULL), ST_ERR_INVALID_ARG);
    assert_int_equal(st_model_rate(m, 4, &wrong, NULL), ST_ERR_INVALID_ARG);
    assert_int_equal(st_model_rate(NULL, 4, &rate, NULL), ST_ERR_INVALID_ARG);
    st_picture_free(p);
    st_session_free(s);
}

/* What stencil.h says a caller's thread needs; sanitizers' frames are larger. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ST_FUZZ_BUILD) || defined(__has_feature)
enum { CALLER_STACK = 2 << 20 };
#else
enum { CALLER_STACK = 256 << 10 };
#endif

static void *encode_and_ask(void *arg)
{
    st_session *s = session_on(arg);
    st_picture *p = encoded(s);
    st_result *r = segmented(s, p, "cat", NULL, 0);
    st_result_free(r), st_picture_free(p), st_session_free(s);
    return NULL;
}

static void test_threads__a_small_stack_is_enough(void **state)
{
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, CALLER_STACK), 0);
    for (size_t i = 0; i < 2; i++) { /* all items on this thread, and some */
        assert_int_equal(pthread_create(&thread, &attr, encode_and_ask, models[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    pthread_attr_destroy(&attr);
}

static void test_lifetimes__any_order(void **state)
{
    (void)state;
    st_model *m = NULL;
    assert_int_equal(st_model_open(&m, DEMO, NULL, NULL), ST_OK);
    st_session *s = session_on(m);
    st_model_free(m); /* the session keeps it */
    st_picture *p = encoded(s), *second = st_picture_ref(p);
    st_picture_free(p);
    st_result *r = segmented(s, second, "cat", NULL, 0);
    st_session_free(s);
    uint32_t w, h;
    st_picture_size(second, &w, &h);
    assert_true(w == 200 && h == 150);
    st_picture_free(second);
    assert_true(r->instances[0].mask.width == 200);
    st_result_free(r);
    st_model_free(NULL), st_session_free(NULL), st_picture_free(NULL), st_result_free(NULL);
}

/* Every allocation of a call fails once: an error, no crash, no leak (the sanitizer build looks). */
static void test_memory__every_failure_is_an_error(void **state)
{
    (void)state;
    st_session *warm = session_on(models[0]);
    st_picture *p = encoded(warm);
    size_t n_failures = 0;
    for (uint64_t k = 1;; k++) {
        st_session *s = NULL;
        st_picture *q = NULL;
        st_result *r = NULL;
        st_prompt prompt = ST_PROMPT_INIT;
        st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
        prompt.phrase = "cat", prompt.boxes = two_boxes, prompt.n_boxes = 2;
        opts.threshold = 0.0f, opts.max_detections = 2;
        st_mem_fail_after(k);
        st_status status = st_session_new(&s, models[0], NULL, NULL);
        if (status == ST_OK) status = st_segment(&r, s, p, &prompt, &opts, NULL);
        st_mem_fail_after(0);
        st_result_free(r);
        st_picture_free(q);
        st_session_free(s);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        n_failures++;
        assert_true(k < 1000);
    }
    assert_true(n_failures >= 8);
    for (uint64_t k = 1;; k++) {
        st_session *s = session_on(models[0]);
        st_picture *q = NULL;
        st_mem_fail_after(k);
        const st_status status = st_picture_encode(&q, s, &image, NULL, NULL);
        st_mem_fail_after(0);
        st_picture_free(q);
        st_session_free(s);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_true(k < 100);
    }
    st_picture_free(p);
    st_session_free(warm);
}

static void test_tokenize__as_documented(void **state)
{
    (void)state;
    uint32_t ids[32];
    size_t n = 0;
    int cut = 7;
    assert_int_equal(st_tokenize("yellow school bus", ids, 32, &n, &cut, NULL), ST_OK);
    static const uint32_t want[5] = {49406, 4481, 1228, 2840, 49407};
    assert_true(n == 5 && cut == 0);
    assert_memory_equal(ids, want, sizeof want);
    assert_int_equal(st_tokenize("yellow school bus", ids, 1, &n, NULL, NULL), ST_OK); /* a short array is filled as far as it goes */
    assert_int_equal(n, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segment__same_bits_for_1_2_3_threads),
        cmocka_unit_test(test_segment__a_phrase_in_company_equals_alone),
        cmocka_unit_test(test_segment__concurrent_sessions_share_model_and_picture),
        cmocka_unit_test(test_segment__sorted_capped_and_flagged),
        cmocka_unit_test(test_segment__mask_threshold_shrinks_masks),
        cmocka_unit_test(test_segment__refuses_nonsense),
        cmocka_unit_test(test_segment__long_and_odd_phrases),
        cmocka_unit_test(test_encode__refuses_bad_images),
        cmocka_unit_test(test_api__nulls_are_refused),
        cmocka_unit_test(test_encode__pixel_formats_agree),
        cmocka_unit_test(test_cancel__stops_and_can_be_reset),
        cmocka_unit_test(test_segment__shares_what_no_prompt_changes),
        cmocka_unit_test(test_plan__is_what_the_run_uses),
        cmocka_unit_test(test_memory_limit__another_plan_the_same_answer),
        cmocka_unit_test(test_rate__counts_what_the_passes_multiply),
        cmocka_unit_test(test_threads__a_small_stack_is_enough),
        cmocka_unit_test(test_lifetimes__any_order),
        cmocka_unit_test(test_memory__every_failure_is_an_error),
        cmocka_unit_test(test_tokenize__as_documented),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
