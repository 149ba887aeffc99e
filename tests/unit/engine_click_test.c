/* engine_click_test.c: clicks, portable concepts and saved pictures on the demo model: exactness, refusals, and the traps that click interfaces fall into. */
#include "engine/engine.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/file.h"
#include "base/mem.h"

#define DEMO ST_SOURCE_DIR "/models/demo"

static st_model *model;
static st_session *session;
static st_picture *picture; /* encoded for clicks, 224 x 224 */
static char folder[] = "/tmp/stencil-click-XXXXXX";
static char path[4096];

static int set_up(void **state)
{
    (void)state;
    st_error err;
    st_bitmap scene;
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.for_clicks = 1;
    how.source = "check.png, as it is";
    if (!mkdtemp(folder)) return -1;
    if (st_model_open(&model, DEMO, NULL, &err) != ST_OK || st_session_new(&session, model, NULL, &err) != ST_OK ||
        st_bitmap_load(&scene, DEMO "/check.png", NULL, &err) != ST_OK ||
        st_picture_encode(&picture, session, &(st_image){scene.rgb, scene.width, scene.height, 3 * (size_t)scene.width, ST_PIXEL_RGB8}, &how, &err) != ST_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    st_bitmap_free(&scene);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    st_picture_free(picture);
    st_session_free(session);
    st_model_free(model);
    return rmdir(folder); /* every test removes its files */
}

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static st_click_result *clicked(const st_picture *p, const st_click_input *in, const st_click_options *opts)
{
    st_click_result *r = NULL;
    st_error err;
    if (st_click(&r, session, p, in, opts, &err) != ST_OK) fail_msg("%s", err.message);
    return r;
}

static bool same_click(const st_click_result *a, const st_click_result *b)
{
    if (a->n_candidates != b->n_candidates || memcmp(&a->object_score, &b->object_score, sizeof(float)) != 0) return false;
    for (size_t i = 0; i < a->n_candidates; i++) {
        const st_candidate *x = &a->candidates[i], *y = &b->candidates[i];
        if (x->index != y->index || memcmp(&x->iou, &y->iou, sizeof(float)) != 0 || x->area != y->area) return false;
        if (memcmp(x->logits, y->logits, (size_t)a->mask_size * a->mask_size * sizeof(float)) != 0) return false;
    }
    return true;
}

static const st_point points[3] = {{140, 175, 1}, {90, 120, 0}, {150, 190, 1}};
static const st_region region = {113, 151, 162, 203};

static st_click_input with_points(size_t n)
{
    st_click_input in = ST_CLICK_INPUT_INIT;
    in.points = points;
    in.n_points = n;
    return in;
}

static void test_click__multimask_as_the_reference(void **state)
{
    (void)state;
    st_click_options opts = ST_CLICK_OPTIONS_INIT;
    st_click_input in = with_points(1);
    st_click_result *r = clicked(picture, &in, NULL);
    assert_int_equal(r->n_candidates, 3); /* one lone click */
    assert_true(r->multimask && r->hole_area == 13); /* 256 cells of 288 x 288, on 64 x 64 */
    for (size_t i = 1; i < 3; i++) assert_true(r->candidates[i - 1].iou >= r->candidates[i].iou);
    assert_true(r->candidates[0].index >= 1 && r->mask_size == 64 && r->candidates[0].mask.width == 224);
    st_click_result_free(r);
    in = with_points(2);
    opts.hole_area = 0;
    r = clicked(picture, &in, &opts);
    assert_int_equal(r->n_candidates, 1);
    assert_true(!r->multimask && r->hole_area == 0);
    opts.hole_area = -1;
    st_click_result_free(r);
    opts.multimask = ST_MULTIMASK_ON;
    opts.n_masks = 1;
    r = clicked(picture, &in, &opts);
    assert_true(r->n_candidates == 3 && r->candidates[0].mask.counts && !r->candidates[1].mask.counts);
    st_click_result_free(r);
    in = with_points(1);
    opts.multimask = ST_MULTIMASK_OFF;
    r = clicked(picture, &in, &opts);
    assert_int_equal(r->n_candidates, 1);
    st_click_result_free(r);
}

/* Every field of the prompt changes the output. */
static void test_click__every_field_counts(void **state)
{
    (void)state;
    float *logits = calloc(64 * 64, sizeof *logits);
    assert_non_null(logits);
    for (size_t i = 0; i < 64 * 64; i++) logits[i] = i / 64 > 40 && i % 64 > 30 && i % 64 < 50 ? 9.0f : -9.0f;
    st_point other[2] = {points[0], points[1]};
    st_click_input in[8];
    for (size_t i = 0; i < 8; i++) in[i] = with_points(2);
    other[0].x += 1.0f;
    in[1].points = other;
    st_point label[2] = {points[0], points[1]};
    label[1].positive = 1;
    in[2].points = label;
    in[3].region = &region;
    const st_region moved = {113, 151, 162, 204};
    in[4].region = &moved;
    in[5].logits = logits;
    st_point y[2] = {points[0], points[1]};
    y[0].y -= 1.0f;
    in[6].points = y;
    in[7].n_points = 1;
    st_click_options one = ST_CLICK_OPTIONS_INIT;
    one.multimask = ST_MULTIMASK_ON;
    st_click_result *r[8];
    for (size_t i = 0; i < 8; i++) r[i] = clicked(picture, &in[i], &one);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = i + 1; j < 8; j++) assert_false(same_click(r[i], r[j]));
    for (size_t i = 0; i < 8; i++) st_click_result_free(r[i]);
    free(logits);
}

static void test_click__same_prompt_same_bits_and_sessions_apart(void **state)
{
    (void)state;
    st_session *other = NULL;
    assert_int_equal(st_session_new(&other, model, NULL, NULL), ST_OK);
    st_click_input in = with_points(3);
    in.region = &region;
    st_click_result *a = clicked(picture, &in, NULL), *b = NULL, *c = NULL;
    st_click_input elsewhere = with_points(1);
    assert_int_equal(st_click(&b, other, picture, &elsewhere, NULL, NULL), ST_OK);
    c = clicked(picture, &in, NULL);
    assert_true(same_click(a, c));
    assert_false(same_click(a, b));
    st_click_result_free(a), st_click_result_free(b), st_click_result_free(c);
    st_session_free(other);
}

/* Ten clicks in a session of its own; what each gave as one number. */
typedef struct clicker {
    st_picture *picture;
    float scores[10];
    uint64_t areas[10];
    size_t first; /* place in the line of clicks */
    bool failed;
} clicker;

static void *click_ten_times(void *user)
{
    clicker *c = user;
    st_session *own = NULL;
    st_object *o = NULL;
    c->failed = st_session_new(&own, model, NULL, NULL) != ST_OK || st_object_new(&o, own, c->picture, NULL, NULL) != ST_OK;
    for (size_t i = 0; i < 10 && !c->failed; i++) {
        const size_t k = c->first + i;
        const st_point p = { (float)(20 + 17 * k % 190), (float)(200 - 23 * k % 180), k % 3 != 0 };
        c->failed = st_object_point(o, &p, NULL) != ST_OK;
        if (c->failed) break;
        c->scores[i] = st_object_result(o)->object_score;
        c->areas[i] = st_object_result(o)->candidates[0].area;
    }
    st_object_free(o);
    st_session_free(own);
    return NULL;
}

static void test_click__two_sessions_on_one_picture_at_once(void **state)
{
    (void)state;
    clicker alone[2] = { { .picture = picture }, { .picture = picture, .first = 7 } }, both[2] = { alone[0], alone[1] };
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) click_ten_times(&alone[i]);
    for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, click_ten_times, &both[i]), 0);
    for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_false(alone[i].failed || both[i].failed);
        assert_memory_equal(alone[i].scores, both[i].scores, sizeof alone[i].scores);
        assert_memory_equal(alone[i].areas, both[i].areas, sizeof alone[i].areas);
    }
    assert_true(alone[0].scores[9] != alone[1].scores[9]);
}

static void test_click__last_row_and_column_are_in(void **state)
{
    (void)state;
    const st_point corner[3] = {{223, 223, 1}, {224, 224, 1}, {0, 0, 1}};
    for (size_t i = 0; i < 3; i++) {
        st_click_input in = ST_CLICK_INPUT_INIT;
        in.points = &corner[i];
        in.n_points = 1;
        st_click_result *r = clicked(picture, &in, NULL);
        assert_int_equal(r->n_candidates, 3);
        st_click_result_free(r);
    }
}

static void test_click__refuses_nonsense(void **state)
{
    (void)state;
    st_click_result *r = NULL;
    st_error err;
    st_click_input in = ST_CLICK_INPUT_INIT;
    assert_int_equal(st_click(&r, session, picture, &in, NULL, &err), ST_ERR_INVALID_ARG); /* empty */
    const st_point bad[] = {{-1, 5, 1}, {5, -0.5f, 1}, {225, 5, 1}, {5, 224.5f, 1}, {NAN, 5, 1}, {5, INFINITY, 1}, {5, 5, 2}, {5, 5, -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        in.points = &bad[i];
        in.n_points = 1;
        assert_int_equal(st_click(&r, session, picture, &in, NULL, &err), ST_ERR_INVALID_ARG);
        assert_non_null(strstr(err.message, "point 1"));
    }
    in = (st_click_input)ST_CLICK_INPUT_INIT;
    const st_region swapped[] = {{60, 10, 20, 50}, {10, 60, 50, 20}, {10, 10, 10, 50}, {-1, 10, 20, 30}, {10, 10, 225, 30}, {10, NAN, 20, 30}};
    for (size_t i = 0; i < sizeof swapped / sizeof *swapped; i++) {
        in.region = &swapped[i];
        assert_int_equal(st_click(&r, session, picture, &in, NULL, &err), ST_ERR_INVALID_ARG);
        assert_non_null(strstr(err.message, "region"));
    }
    float *logits = calloc(64 * 64, sizeof *logits);
    assert_non_null(logits);
    logits[77] = NAN;
    in = (st_click_input)ST_CLICK_INPUT_INIT;
    in.logits = logits;
    assert_int_equal(st_click(&r, session, picture, &in, NULL, &err), ST_ERR_NONFINITE);
    free(logits);
    st_picture *plain = NULL; /* encoded without for_clicks */
    uint8_t gray[4] = {1, 2, 3, 4};
    assert_int_equal(st_picture_encode(&plain, session, &(st_image){gray, 2, 2, 2, ST_PIXEL_GRAY8}, NULL, NULL), ST_OK);
    assert_true(!st_picture_source(plain) && !st_picture_for_clicks(plain));
    const st_point dot = {1, 1, 1};
    in = (st_click_input)ST_CLICK_INPUT_INIT;
    in.points = &dot, in.n_points = 1;
    assert_int_equal(st_click(&r, session, plain, &in, NULL, &err), ST_ERR_INVALID_ARG);
    st_object *o = NULL;
    assert_int_equal(st_object_new(&o, session, plain, NULL, &err), ST_ERR_INVALID_ARG);
    st_picture_free(plain);
    assert_true(r == NULL && o == NULL);
}

static void test_holes__small_ones_are_filled(void **state)
{
    (void)state;
    enum { SIDE = 12 };
    float map[SIDE * SIDE];
    uint32_t scratch[2 * SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++) map[i] = 3.0f;
    map[2 * SIDE + 2] = map[3 * SIDE + 3] = -1.0f;                   /* two cells joined by a corner: one part of 2 */
    for (size_t i = 0; i < 5; i++) map[8 * SIDE + 3 + i] = -2.0f;    /* a part of 5 */
    map[0] = 0.0f;                                                    /* on the border, logit exactly 0: outside */
    st_click_fill_holes(map, SIDE, 2, scratch);
    assert_true(map[2 * SIDE + 2] == 10.0f && map[3 * SIDE + 3] == 10.0f && map[0] == 10.0f);
    for (size_t i = 0; i < 5; i++) assert_true(map[8 * SIDE + 3 + i] == -2.0f);
    assert_true(map[5 * SIDE + 5] == 3.0f);
    float logits[4] = {1.0f, 0.04f, -0.04f, -1.0f};
    assert_true(fabsf(st_click_stability(logits, 4, 0.05f) - 1.0f / 3.0f) < 1e-6f);
    float none[2] = {-1.0f, -2.0f};
    assert_true(st_click_stability(none, 2, 0.05f) == 1.0f);
}

static void test_object__refines_undoes_and_resets(void **state)
{
    (void)state;
    st_object *o = NULL, *fresh = NULL;
    st_error err;
    assert_int_equal(st_object_new(&o, session, picture, NULL, NULL), ST_OK);
    assert_null(st_object_result(o));
    assert_int_equal(st_object_undo(o, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_object_point(o, &points[0], NULL), ST_OK);
    /* The first verb is the plain call; the second goes on from its best candidate. */
    st_click_input in = with_points(1);
    st_click_result *first = clicked(picture, &in, NULL);
    assert_true(same_click(st_object_result(o), first));
    assert_int_equal(st_object_point(o, &points[1], NULL), ST_OK);
    in = with_points(2);
    in.logits = first->candidates[0].logits;
    st_click_result *second = clicked(picture, &in, NULL);
    assert_true(same_click(st_object_result(o), second));
    /* Undo shows the step before; another choice changes what follows. */
    assert_int_equal(st_object_undo(o, NULL), ST_OK);
    assert_true(same_click(st_object_result(o), first));
    assert_int_equal(st_object_choose(o, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_object_choose(o, 2, NULL), ST_OK);
    assert_int_equal(st_object_point(o, &points[1], NULL), ST_OK);
    assert_false(same_click(st_object_result(o), second));
    /* A verb that fails changes nothing. */
    const st_point outside = {900, 10, 1};
    const size_t n = st_object_n_verbs(o);
    assert_int_equal(st_object_point(o, &outside, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_object_n_verbs(o), n);
    /* Undo to zero equals a fresh object. */
    while (st_object_n_verbs(o)) assert_int_equal(st_object_undo(o, NULL), ST_OK);
    assert_int_equal(st_object_new(&fresh, session, picture, NULL, NULL), ST_OK);
    assert_int_equal(st_object_region(o, &region, NULL), ST_OK);
    assert_int_equal(st_object_region(fresh, &region, NULL), ST_OK);
    assert_true(same_click(st_object_result(o), st_object_result(fresh)));
    st_object_reset(o);
    assert_true(st_object_result(o) == NULL && st_object_n_verbs(o) == 0);
    st_object_free(o), st_object_free(fresh), st_object_free(NULL);
    st_click_result_free(first), st_click_result_free(second);
}

static void test_object__twenty_clicks_keep_their_order(void **state)
{
    (void)state;
    st_object *o = NULL;
    st_point said[20];
    assert_int_equal(st_object_new(&o, session, picture, NULL, NULL), ST_OK);
    const float *before = NULL;
    float *kept = malloc(64 * 64 * sizeof *kept);
    assert_non_null(kept);
    for (size_t i = 0; i < 20; i++) {
        said[i] = (st_point){(float)(20 + 9 * i), (float)(200 - 7 * i), i % 3 != 0};
        st_click_input in = ST_CLICK_INPUT_INIT;
        in.points = said, in.n_points = i + 1, in.logits = before;
        st_click_result *direct = clicked(picture, &in, NULL);
        assert_int_equal(st_object_point(o, &said[i], NULL), ST_OK);
        assert_true(same_click(direct, st_object_result(o)));
        memcpy(kept, direct->candidates[0].logits, 64 * 64 * sizeof *kept);
        before = kept;
        st_click_result_free(direct);
    }
    /* All taken back, and said again: the same bits. */
    st_object *fresh = NULL;
    assert_int_equal(st_object_new(&fresh, session, picture, NULL, NULL), ST_OK);
    while (st_object_n_verbs(o)) assert_int_equal(st_object_undo(o, NULL), ST_OK);
    assert_null(st_object_result(o));
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(st_object_point(o, &said[19 - i], NULL), ST_OK);
        assert_int_equal(st_object_point(fresh, &said[19 - i], NULL), ST_OK);
        assert_true(same_click(st_object_result(o), st_object_result(fresh)));
    }
    free(kept);
    st_object_free(o), st_object_free(fresh);
}

static void test_mask_prompt__from_a_picture(void **state)
{
    (void)state;
    uint8_t mask[128 * 128];
    float *logits = malloc(64 * 64 * sizeof *logits);
    assert_non_null(logits);
    for (size_t i = 0; i < sizeof mask; i++) mask[i] = i % 128 < 64 ? 255 : 0;
    assert_int_equal(st_click_mask_logits(logits, model, mask, 128, 128, 128, NULL), ST_OK);
    assert_true(fabsf(logits[0] - 10.0f) < 1e-5f && fabsf(logits[63] + 10.0f) < 1e-5f);
    assert_true(logits[31] < 10.0f && logits[31] > 0.0f && fabsf(logits[31] + logits[32]) < 1e-4f); /* antialiased edge */
    st_click_input in = ST_CLICK_INPUT_INIT;
    in.logits = logits;
    st_click_result *r = clicked(picture, &in, NULL);
    assert_int_equal(r->n_candidates, 1);
    st_click_result_free(r);
    free(logits);
}

/* ---- concepts ---- */

static st_result *segmented(const st_picture *p, const st_prompt *prompt)
{
    st_result *r = NULL;
    st_error err;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    opts.threshold = 0.0f;
    if (st_segment(&r, session, p, prompt, &opts, &err) != ST_OK) fail_msg("%s", err.message);
    return r;
}

static bool same_result(const st_result *a, const st_result *b)
{
    if (a->n_instances != b->n_instances || memcmp(&a->presence, &b->presence, sizeof(float)) != 0) return false;
    for (size_t i = 0; i < a->n_instances; i++)
        if (memcmp(&a->instances[i].score, &b->instances[i].score, sizeof(float)) != 0 || memcmp(a->instances[i].box, b->instances[i].box, 4 * sizeof(float)) != 0 ||
            a->instances[i].mask.n_counts != b->instances[i].mask.n_counts ||
            memcmp(a->instances[i].mask.counts, b->instances[i].mask.counts, a->instances[i].mask.n_counts * sizeof(uint32_t)) != 0)
            return false;
    return true;
}

static const st_exemplar boxes[2] = {{113, 151, 162, 203, 0}, {60, 90, 130, 150, 1}};

static void test_concept__equals_the_direct_call_and_survives_a_file(void **state)
{
    (void)state;
    st_concept *c = NULL, *back = NULL;
    st_error err;
    st_prompt direct = ST_PROMPT_INIT, asked = ST_PROMPT_INIT;
    direct.phrase = "present", direct.boxes = boxes, direct.n_boxes = 2;
    assert_int_equal(st_concept_make(&c, session, picture, &direct, "check.png", NULL), ST_OK);
    assert_int_equal(st_concept_save(c, in_folder("c.concept"), NULL), ST_OK);
    if (st_concept_load(&back, path, &err) != ST_OK) fail_msg("%s", err.message);
    unlink(path);
    st_concept_info info = ST_CONCEPT_INFO_INIT;
    assert_int_equal(st_concept_get_info(back, &info, NULL), ST_OK);
    assert_true(info.n_tokens == 3 && info.n_boxes == 2 && info.boxes[1].negative && info.picture_width == 224 && info.input_size == 224);
    assert_string_equal(info.phrase, "present");
    assert_string_equal(info.source, "check.png");
    st_result *want = segmented(picture, &direct), *got;
    const st_concept *made[1] = {c}, *read[1] = {back};
    asked.concepts = made, asked.n_concepts = 1;
    got = segmented(picture, &asked);
    assert_true(same_result(want, got));
    st_result_free(got);
    asked.concepts = read;
    asked.phrase = "present";
    got = segmented(picture, &asked);
    assert_true(same_result(want, got));
    st_result_free(got), st_result_free(want);
    st_concept_free(c), st_concept_free(back), st_concept_free(NULL);
}

static void test_concept__combines_and_refuses(void **state)
{
    (void)state;
    st_concept *a = NULL, *b = NULL, *other = NULL;
    st_result *r = NULL;
    st_error err;
    st_prompt make = ST_PROMPT_INIT, ask = ST_PROMPT_INIT;
    assert_int_equal(st_concept_make(&a, session, picture, &make, NULL, &err), ST_ERR_INVALID_ARG); /* no box */
    make.boxes = boxes, make.n_boxes = 1;
    make.phrase = "caf\xE9"; /* what a file could not hold is refused at once */
    assert_int_equal(st_concept_make(&a, session, picture, &make, NULL, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "not UTF-8"));
    make.phrase = NULL;
    assert_int_equal(st_concept_make(&a, session, picture, &make, "\xFF", &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_concept_make(&a, session, picture, &make, NULL, NULL), ST_OK);
    make.n_boxes = 2;
    assert_int_equal(st_concept_make(&b, session, picture, &make, NULL, NULL), ST_OK);
    make.phrase = "apple";
    assert_int_equal(st_concept_make(&other, session, picture, &make, NULL, NULL), ST_OK);
    const st_concept *two[2] = {a, b}, *one[1] = {a}, *unlike[2] = {a, other};
    ask.concepts = two, ask.n_concepts = 2;
    st_result *both = segmented(picture, &ask);
    ask.concepts = one, ask.n_concepts = 1;
    st_result *single = segmented(picture, &ask);
    assert_false(same_result(both, single));
    ask.concepts = unlike, ask.n_concepts = 2;
    assert_int_equal(st_segment(&r, session, picture, &ask, NULL, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "must agree"));
    ask.concepts = one, ask.n_concepts = 1, ask.phrase = "cat"; /* the concept says "visual" */
    assert_int_equal(st_segment(&r, session, picture, &ask, NULL, &err), ST_ERR_INVALID_ARG);
    ask.phrase = NULL, ask.boxes = boxes, ask.n_boxes = 1;
    assert_int_equal(st_segment(&r, session, picture, &ask, NULL, &err), ST_ERR_INVALID_ARG);
    a->model_id[0] = a->model_id[0] == 'f' ? 'e' : 'f'; /* as if other weights had made it */
    ask.boxes = NULL, ask.n_boxes = 0;
    assert_int_equal(st_segment(&r, session, picture, &ask, NULL, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "made by model"));
    b->input_size++;
    const st_concept *resized[1] = {b};
    ask.concepts = resized;
    assert_int_equal(st_segment(&r, session, picture, &ask, NULL, &err), ST_ERR_INVALID_ARG);
    assert_null(r);
    st_result_free(both), st_result_free(single);
    st_concept_free(a), st_concept_free(b), st_concept_free(other);
}

/* ---- saved pictures ---- */

static void test_picture_file__same_results_and_refusals(void **state)
{
    (void)state;
    st_picture *back = NULL, *half = NULL, *bad = NULL;
    st_error err;
    st_prompt prompt = ST_PROMPT_INIT;
    prompt.phrase = "present";
    assert_int_equal(st_picture_save(picture, in_folder("p.features"), 0, NULL), ST_OK);
    if (st_picture_load(&back, model, path, &err) != ST_OK) fail_msg("%s", err.message);
    assert_string_equal(st_picture_source(back), "check.png, as it is");
    assert_true(st_picture_for_clicks(back));
    st_result *want = segmented(picture, &prompt), *got = segmented(back, &prompt);
    assert_true(same_result(want, got));
    st_click_input in = with_points(1);
    st_click_result *a = clicked(picture, &in, NULL), *b = clicked(back, &in, NULL);
    assert_true(same_click(a, b));
    st_click_result_free(a), st_click_result_free(b), st_result_free(got);
    assert_int_equal(st_picture_save(picture, path, 1, NULL), ST_OK); /* replaces the file */
    assert_int_equal(st_picture_load(&half, model, path, NULL), ST_OK);
    got = segmented(half, &prompt);
    for (size_t i = 0; i < 3; i++) assert_true(fabsf(got->instances[i].score - want->instances[i].score) < 1e-2f);
    st_result_free(got), st_result_free(want);
    /* Every cut of the file, and every damaged byte of its header, is an error or the same picture; never a crash. */
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(st_file_read(&bytes, &n, path, 1u << 30, NULL), ST_OK);
    for (size_t cut = 0; cut < n; cut += cut < 900 ? 7 : n / 17) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, cut, f), cut);
        fclose(f);
        assert_int_not_equal(st_picture_load(&bad, model, path, &err), ST_OK);
        assert_null(bad);
    }
    for (size_t at = 0; at < 600; at += 3) {
        char kept = bytes[at];
        bytes[at] = (char)(bytes[at] ^ 0x15);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fclose(f);
        if (st_picture_load(&bad, model, path, &err) == ST_OK) st_picture_free(bad);
        bad = NULL;
        bytes[at] = kept;
    }
    st_concept *no_concept = NULL;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    assert_int_equal(st_concept_load(&no_concept, path, &err), ST_ERR_FORMAT); /* a picture is no concept */
    assert_int_equal(st_picture_load(&bad, model, DEMO "/check.safetensors", &err), ST_ERR_FORMAT);
    unlink(path);
    st_free(bytes);
    st_picture_free(back), st_picture_free(half);
}

/* A file made by hand may claim anything. */
static void test_picture_file__impossible_claims(void **state)
{
    (void)state;
    st_picture *bad = NULL;
    st_error err;
    const uint32_t sizes[][2] = {{UINT32_MAX, 1}, {1, UINT32_MAX}, {(1u << 24) + 1, 1}, {65536, 65536}};
    const uint32_t width = picture->width, height = picture->height;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        picture->width = sizes[i][0], picture->height = sizes[i][1];
        assert_int_equal(st_picture_save(picture, in_folder("p.features"), 0, NULL), ST_OK);
        assert_int_equal(st_picture_load(&bad, model, path, &err), ST_ERR_LIMIT);
        assert_non_null(strstr(err.message, path));
        assert_null(bad);
    }
    picture->width = width, picture->height = height;
    const float kept = picture->features.level[1][5];
    picture->features.level[1][5] = NAN;
    assert_int_equal(st_picture_save(picture, path, 0, NULL), ST_OK);
    assert_int_equal(st_picture_load(&bad, model, path, &err), ST_ERR_FORMAT); /* the file is broken, not the weights */
    assert_non_null(strstr(err.message, "value 5 is not a finite number"));
    picture->features.level[1][5] = kept;
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_click__multimask_as_the_reference),
        cmocka_unit_test(test_click__every_field_counts),
        cmocka_unit_test(test_click__same_prompt_same_bits_and_sessions_apart),
        cmocka_unit_test(test_click__two_sessions_on_one_picture_at_once),
        cmocka_unit_test(test_click__last_row_and_column_are_in),
        cmocka_unit_test(test_click__refuses_nonsense),
        cmocka_unit_test(test_holes__small_ones_are_filled),
        cmocka_unit_test(test_object__refines_undoes_and_resets),
        cmocka_unit_test(test_object__twenty_clicks_keep_their_order),
        cmocka_unit_test(test_mask_prompt__from_a_picture),
        cmocka_unit_test(test_concept__equals_the_direct_call_and_survives_a_file),
        cmocka_unit_test(test_concept__combines_and_refuses),
        cmocka_unit_test(test_picture_file__same_results_and_refusals),
        cmocka_unit_test(test_picture_file__impossible_claims),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
