/* engine_everything_test.c: everything mode: parity with Hugging Face's mask-generation pipeline, its parts one by one,
 * and what every option does. The demo model's click head may be trained little, so thresholds are low wherever results
 * are needed. tests/reference/regenerate.sh --write everything makes the goldens anew.
 */
#include "engine/everything.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include "base/mem.h"

#define DEMO ST_SOURCE_DIR "/models/demo"
#define GOLDEN ST_SOURCE_DIR "/tests/golden/data/everything/everything.json"

typedef struct bench {
    st_model *model;
    st_session *session;
    st_picture *picture;
} bench;

static bench demo;
static st_bitmap scene;
static st_image image;
static json_t *golden;

static bool open_bench(bench *b, uint32_t n_threads, const st_session_options *how)
{
    st_error err;
    st_model_options model = ST_MODEL_OPTIONS_INIT;
    st_encode_options encode = ST_ENCODE_OPTIONS_INIT;
    model.n_threads = n_threads;
    encode.for_clicks = 1;
    if (st_model_open(&b->model, DEMO, &model, &err) == ST_OK &&
        st_session_new(&b->session, b->model, how, &err) == ST_OK &&
        st_picture_encode(&b->picture, b->session, &image, &encode, &err) == ST_OK)
        return true;
    print_error("%s\n", err.message);
    return false;
}

static void close_bench(bench *b)
{
    st_picture_free(b->picture);
    st_session_free(b->session);
    st_model_free(b->model);
}

static int set_up(void **state)
{
    (void)state;
    st_error err;
    json_error_t problem;
    golden = json_load_file(GOLDEN, 0, &problem);
    if (!golden) {
        print_error("%s: %s\n", GOLDEN, problem.text);
        return -1;
    }
    if (st_bitmap_load(&scene, DEMO "/check.png", NULL, &err) != ST_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    image = (st_image){ scene.rgb, scene.width, scene.height, 3 * (size_t)scene.width, ST_PIXEL_RGB8 };
    return open_bench(&demo, 2, NULL) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    close_bench(&demo);
    st_bitmap_free(&scene);
    json_decref(golden);
    return 0;
}

/* Few clicks, low thresholds: many candidates. */
static st_everything_options few(uint32_t points_per_side)
{
    st_everything_options o = ST_EVERYTHING_OPTIONS_INIT;
    o.points_per_side = points_per_side;
    o.pred_iou_thresh = o.stability_score_thresh = 0.0f;
    o.box_nms_thresh = o.crop_nms_thresh = 1.0f;
    return o;
}

static st_everything_result *seen(const bench *b, const st_everything_options *o)
{
    st_everything_result *r = NULL;
    st_error err;
    if (st_everything(&r, b->session, b->picture, &image, o, &err) != ST_OK) fail_msg("%s", err.message);
    return r;
}

static bool same_rle(const st_rle *a, const st_rle *b)
{
    return a->width == b->width && a->height == b->height && a->n_counts == b->n_counts &&
           memcmp(a->counts, b->counts, a->n_counts * sizeof *a->counts) == 0;
}

static bool same_result(const st_everything_result *a, const st_everything_result *b)
{
    if (a->n_masks != b->n_masks || a->n_passed != b->n_passed || a->n_points != b->n_points) return false;
    for (size_t i = 0; i < a->n_masks; i++) {
        const st_everything_mask *x = &a->masks[i], *y = &b->masks[i];
        if (memcmp(&x->iou, &y->iou, sizeof x->iou) != 0 ||
            memcmp(&x->stability, &y->stability, sizeof x->stability) != 0 || x->x != y->x || x->y != y->y ||
            memcmp(&x->box, &y->box, sizeof x->box) != 0 || x->area != y->area || !same_rle(&x->mask, &y->mask))
            return false;
    }
    return true;
}

/* ---- the reference ---- */

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static double element(const json_t *array, size_t i)
{
    return json_number_value(json_array_get(array, i));
}

static st_rle golden_mask(const json_t *json, const char *key, uint32_t width, uint32_t height)
{
    st_rle rle;
    const char *counts = json_string_value(json_object_get(json, key));
    assert_non_null(counts);
    assert_int_equal(st_rle_from_string(&rle, counts, strlen(counts), width, height, NULL), ST_OK);
    return rle;
}

/* Between the reference's masks at logit > room and > -room, which rounding may not leave. */
static bool same_mask(const st_everything_mask *got, const json_t *want)
{
    st_rle inner = golden_mask(want, "inner", got->mask.width, got->mask.height),
           outer = golden_mask(want, "outer", got->mask.width, got->mask.height);
    bool same = fabs((double)got->iou - number(want, "iou")) <= 1e-4 &&
                fabs((double)got->stability - number(want, "stability")) <= 1e-3;
    same = same && st_rle_intersection(&got->mask, &inner) == st_rle_area(&inner) &&
           st_rle_intersection(&got->mask, &outer) == got->area;
    if (same && st_rle_area(&inner) == st_rle_area(&outer)) { /* nothing is unsure */
        const json_t *box = json_object_get(want, "box");
        same = got->box.x0 == element(box, 0) && got->box.y0 == element(box, 1) && got->box.x1 == element(box, 2) &&
               got->box.y1 == element(box, 3) && (double)got->area == number(want, "area");
    }
    const json_t *crop = json_object_get(want, "crop");
    same = same && got->crop.x0 == element(crop, 0) && got->crop.y0 == element(crop, 1) &&
           got->crop.x1 == element(crop, 2) && got->crop.y1 == element(crop, 3);
    st_rle_free(&inner), st_rle_free(&outer);
    return same;
}

static st_everything_options golden_options(const json_t *c)
{
    const json_t *o = json_object_get(c, "options");
    st_everything_options out = ST_EVERYTHING_OPTIONS_INIT;
    out.points_per_side = (uint32_t)number(o, "points_per_side");
    out.crop_n_layers = (uint32_t)number(o, "crop_n_layers");
    out.crop_nms_thresh = (float)number(o, "crop_nms_thresh");
    if (json_object_get(o, "crop_overlap_ratio")) out.crop_overlap_ratio = number(o, "crop_overlap_ratio");
    out.pred_iou_thresh = (float)number(o, "pred_iou_thresh");
    out.stability_score_thresh = (float)number(o, "stability_score_thresh");
    out.stability_score_offset = (float)number(o, "stability_score_offset");
    out.resize = ST_RESIZE_CPU;
    out.hf = 1;
    return out;
}

/* How many of the reference's masks were found in their place; scores that rounding could swap may be swapped. */
static size_t n_matching(const st_everything_result *r, const json_t *c)
{
    const json_t *masks = json_object_get(c, "masks");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(masks); i++) {
        const json_t *want = json_array_get(masks, i);
        bool found = false;
        for (size_t k = 0; !found && k < r->n_masks; k++) {
            const bool place = k == i || (k < json_array_size(masks) &&
                                          fabs(number(want, "iou") - number(json_array_get(masks, k), "iou")) < 1e-5);
            found = place && same_mask(&r->masks[k], want);
        }
        n += found;
    }
    return n;
}

/* A set's model and picture, its pixels too. */
typedef struct golden_bench {
    bench b;
    st_bitmap bitmap;
    st_image image;
} golden_bench;

static void open_golden(golden_bench *g, const json_t *set)
{
    char path[4096];
    st_error err = { ST_OK, "" };
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.for_clicks = 1;
    how.resize = ST_RESIZE_CPU;
    snprintf(path, sizeof path, "%s/%s", ST_SOURCE_DIR, json_string_value(json_object_get(set, "picture")));
    st_status status = st_bitmap_load(&g->bitmap, path, NULL, &err);
    g->image =
        (st_image){ g->bitmap.rgb, g->bitmap.width, g->bitmap.height, 3 * (size_t)g->bitmap.width, ST_PIXEL_RGB8 };
    snprintf(path, sizeof path, "%s/%s", ST_SOURCE_DIR, json_string_value(json_object_get(set, "model")));
    if (status == ST_OK) status = st_model_open(&g->b.model, path, NULL, &err);
    if (status == ST_OK) status = st_session_new(&g->b.session, g->b.model, NULL, &err);
    if (status == ST_OK) status = st_picture_encode(&g->b.picture, g->b.session, &g->image, &how, &err);
    if (status != ST_OK) fail_msg("%s", err.message);
}

static void close_golden(golden_bench *g)
{
    close_bench(&g->b);
    st_bitmap_free(&g->bitmap);
}

static size_t check_case(const golden_bench *g, const json_t *c)
{
    const st_everything_options o = golden_options(c);
    const size_t n = json_array_size(json_object_get(c, "masks"));
    st_everything_result *r = NULL;
    st_error err;
    if (st_everything(&r, g->b.session, g->b.picture, &g->image, &o, &err) != ST_OK) fail_msg("%s", err.message);
    print_message("%s: %zu masks, %zu passed\n", json_string_value(json_object_get(c, "name")), r->n_masks,
                  r->n_passed);
    assert_int_equal(r->n_points, (size_t)number(c, "n_points"));
    assert_int_equal(r->n_passed, (size_t)number(c, "n_passed"));
    assert_true(n > 0);
    assert_int_equal(r->n_masks, n);
    assert_int_equal(n_matching(r, c), n);
    st_everything_result_free(r);
    return n;
}

static void test_reference__same_masks_in_the_same_order(void **state)
{
    (void)state;
    size_t i, k, n_cases[2] = { 0 }, n_masks[2] = { 0 };
    json_t *set, *c;
    assert_int_equal(json_array_size(json_object_get(golden, "sets")), 2); /* the tiny model and the demo model */
    json_array_foreach(json_object_get(golden, "sets"), i, set)
    {
        golden_bench g = { 0 };
        open_golden(&g, set);
        json_array_foreach(json_object_get(set, "cases"), k, c) n_masks[i] += check_case(&g, c);
        n_cases[i] = k;
        close_golden(&g);
    }
    assert_true(n_cases[0] == 2 && n_masks[0] >= 10);
    assert_true(n_cases[1] == 5 && n_masks[1] >= 20);
}

/* A comparison that nothing can fail proves nothing. */
static void test_reference__mistakes_are_noticed(void **state)
{
    (void)state;
    const json_t *set = json_array_get(json_object_get(golden, "sets"), 0),
                 *c = json_array_get(json_object_get(set, "cases"), 0);
    const size_t n = json_array_size(json_object_get(c, "masks"));
    golden_bench g = { 0 };
    open_golden(&g, set);
    enum { NOT_HF, MORE_POINTS, OTHER_OFFSET, OTHER_NMS, LOWER_CUT, MIRRORED, N_MISTAKES };
    for (int mistake = 0; mistake < N_MISTAKES; mistake++) {
        st_everything_options o = golden_options(c);
        st_encode_options how = ST_ENCODE_OPTIONS_INIT;
        st_picture *turned = NULL;
        st_everything_result *r = NULL;
        how.for_clicks = 1;
        how.resize = ST_RESIZE_CPU;
        if (mistake == NOT_HF) o.hf = 0, o.box_nms_thresh = 1.0f;
        if (mistake == MORE_POINTS) o.points_per_side++;
        if (mistake == OTHER_OFFSET) o.stability_score_offset *= 1.1f;
        if (mistake == OTHER_NMS) o.crop_nms_thresh = 0.9f;
        if (mistake == LOWER_CUT) o.pred_iou_thresh -= 0.1f;
        if (mistake == MIRRORED) { /* rows from the last to the first */
            uint8_t *pixels = malloc(g.image.stride * g.image.height);
            assert_non_null(pixels);
            for (size_t y = 0; y < g.image.height; y++)
                memcpy(pixels + y * g.image.stride, g.image.data + (g.image.height - 1 - y) * g.image.stride,
                       g.image.stride);
            st_image image_turned = g.image;
            image_turned.data = pixels;
            assert_int_equal(st_picture_encode(&turned, g.b.session, &image_turned, &how, NULL), ST_OK);
            free(pixels);
        }
        assert_int_equal(st_everything(&r, g.b.session, turned ? turned : g.b.picture, NULL, &o, NULL), ST_OK);
        if (r->n_masks == n && n_matching(r, c) == n) fail_msg("mistake %d went unnoticed", mistake);
        st_everything_result_free(r);
        st_picture_free(turned);
    }
    close_golden(&g);
}

static void test_crops__as_the_reference_cuts(void **state)
{
    (void)state;
    static st_crop crops[ST_MAX_CROPS];
    size_t i, n_crops = 0;
    json_t *v;
    json_array_foreach(json_object_get(golden, "crops"), i, v)
    {
        const json_t *want = json_object_get(v, "crops");
        const size_t n = st_everything_crops(crops, (uint32_t)number(v, "width"), (uint32_t)number(v, "height"),
                                             (uint32_t)number(v, "layers"), number(v, "ratio"));
        assert_int_equal(n, json_array_size(want));
        for (size_t k = 0; k < n; k++, n_crops++) {
            const json_t *box = json_array_get(want, k);
            assert_true(crops[k].box.x0 == element(box, 0) && crops[k].box.y0 == element(box, 1) &&
                        crops[k].box.x1 == element(box, 2) && crops[k].box.y1 == element(box, 3));
            assert_true(crops[k].layer == element(box, 4));
        }
    }
    assert_true(n_crops > 100);
    assert_int_equal(st_everything_crops(crops, 3, 5, 4, 0.3), 0);
    assert_int_equal(st_everything_crops(crops, 3, 5, 0, 0.3), 1);
    const st_everything_options o = ST_EVERYTHING_OPTIONS_INIT;
    assert_int_equal(st_everything_crops(crops, 1500, 1500, o.crop_n_layers + 1, o.crop_overlap_ratio), 5);
    assert_int_equal(crops[1].box.x1 - crops[3].box.x0, 512); /* as the ratio is meant; a rounded 0.34133 gives 511 */
}

static void test_nms__as_the_reference(void **state)
{
    (void)state;
    size_t i, n_gone = 0;
    json_t *v;
    json_array_foreach(json_object_get(golden, "nms"), i, v)
    {
        const json_t *boxes = json_object_get(v, "boxes"), *scores = json_object_get(v, "scores"),
                     *want = json_object_get(v, "kept");
        const size_t n = json_array_size(boxes);
        float box[4 * 128];
        double score[128];
        size_t kept[128], n_kept = 0;
        assert_true(n <= 128);
        for (size_t k = 0; k < 4 * n; k++) box[k] = (float)element(json_array_get(boxes, k / 4), k % 4);
        for (size_t k = 0; k < n; k++) score[k] = element(scores, k);
        assert_int_equal(st_nms(kept, &n_kept, box, score, n, (float)number(v, "threshold"), NULL, NULL), ST_OK);
        assert_int_equal(n_kept, json_array_size(want));
        for (size_t k = 0; k < n_kept; k++) assert_true((double)kept[k] == element(want, k));
        n_gone += n - n_kept;
    }
    assert_int_equal(i, 6);
    assert_true(n_gone > 50);
}

/* ---- the clicks ---- */

static void test_points__each_mask_is_that_of_a_click(void **state)
{
    (void)state;
    const st_everything_options o = few(3);
    st_everything_result *r = seen(&demo, &o);
    assert_int_equal(r->n_points, 9);
    assert_true(r->n_passed == r->n_masks && r->n_masks > 9 && r->n_masks <= 27);
    st_click_options three = ST_CLICK_OPTIONS_INIT;
    three.multimask = ST_MULTIMASK_ON;
    for (size_t i = 0; i < r->n_masks; i++) {
        const st_everything_mask *m = &r->masks[i];
        const st_point point = { m->x, m->y, 1 };
        st_click_input in = ST_CLICK_INPUT_INIT;
        st_click_result *click = NULL;
        in.points = &point, in.n_points = 1;
        assert_int_equal(st_click(&click, demo.session, demo.picture, &in, &three, NULL), ST_OK);
        bool found = false;
        for (size_t k = 0; k < click->n_candidates; k++)
            found = found || (click->candidates[k].iou == m->iou && click->candidates[k].area == m->area &&
                              same_rle(&click->candidates[k].mask, &m->mask));
        assert_true(found);
        st_click_result_free(click);
        if (i > 0) assert_true(r->masks[i - 1].iou >= m->iou);
        const st_box_px box = st_rle_box(&m->mask);
        assert_true(m->area == st_rle_area(&m->mask) && m->area > 0 && memcmp(&box, &m->box, sizeof box) == 0);
        assert_true(m->stability >= 0.0f && m->stability <= 1.0f);
        assert_true(m->crop.x0 == 0 && m->crop.x1 == 224 && m->crop.y1 == 224);
    }
    st_everything_result_free(r);
}

/* Hugging Face misplaces the points of pictures that are not square; Stencil does not. */
static void test_points__lie_on_the_grid_of_any_picture(void **state)
{
    (void)state;
    bench b = demo;
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.for_clicks = 1;
    const st_image wide = { scene.rgb, 200, 80, 3 * (size_t)scene.width, ST_PIXEL_RGB8 };
    assert_int_equal(st_picture_encode(&b.picture, b.session, &wide, &how, NULL), ST_OK);
    const st_everything_options o = few(2);
    st_everything_result *r = seen(&b, &o);
    bool met[4] = { false, false, false, false };
    assert_true(r->n_masks >= 4);
    for (size_t i = 0; i < r->n_masks; i++) {
        const st_everything_mask *m = &r->masks[i];
        assert_true((m->x == 50.0f || m->x == 150.0f) && (m->y == 20.0f || m->y == 60.0f));
        met[(m->x > 100.0f) + 2 * (m->y > 40.0f)] = true;
        assert_true(m->mask.width == 200 && m->mask.height == 80);
    }
    assert_true(met[0] && met[1] && met[2] && met[3]);
    st_everything_result_free(r);
    st_picture_free(b.picture);
}

/* ---- options ---- */

static void expect_refusal(st_status status, const char *says, const st_everything_options *o)
{
    st_everything_result *r = (void *)&status; /* anything but NULL */
    st_error err = { ST_OK, "" };
    assert_int_equal(st_everything(&r, demo.session, demo.picture, &image, o, &err), status);
    assert_null(r);
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

#define REFUSED(field, bad)                                                                                            \
    do {                                                                                                               \
        st_everything_options o = ST_EVERYTHING_OPTIONS_INIT;                                                          \
        o.field = bad;                                                                                                 \
        expect_refusal(ST_ERR_INVALID_ARG, #field, &o);                                                                \
    } while (0)

static void test_options__refused(void **state)
{
    (void)state;
    REFUSED(struct_size, 8);
    REFUSED(points_per_side, 0);
    REFUSED(points_per_side, 257);
    REFUSED(points_per_batch, 0);
    REFUSED(pred_iou_thresh, -0.1f);
    REFUSED(pred_iou_thresh, NAN);
    REFUSED(pred_iou_thresh, 1.5f);
    REFUSED(stability_score_thresh, 1.1f);
    REFUSED(stability_score_thresh, NAN);
    REFUSED(stability_score_offset, -1.0f);
    REFUSED(stability_score_offset, NAN);
    REFUSED(stability_score_offset, INFINITY);
    REFUSED(box_nms_thresh, 2.0f);
    REFUSED(crop_nms_thresh, NAN);
    REFUSED(crop_n_layers, 5);
    REFUSED(crop_overlap_ratio, 1.0);
    REFUSED(crop_overlap_ratio, (double)NAN);
    REFUSED(crop_n_points_downscale_factor, 0);
    REFUSED(overlap_thresh, -1.0f);
    REFUSED(resize, (st_resize)7);
    st_everything_options o = ST_EVERYTHING_OPTIONS_INIT;
    o.crop_n_layers = 2, o.points_per_side = 8, o.crop_n_points_downscale_factor = 3;
    expect_refusal(ST_ERR_INVALID_ARG, "leaves no point", &o);
}

static void test_pictures__refused(void **state)
{
    (void)state;
    st_everything_result *r = NULL;
    st_error err;
    st_everything_options crops = few(1);
    crops.crop_n_layers = 1;
    st_image other = image;
    assert_int_equal(st_everything(&r, NULL, demo.picture, NULL, NULL, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_everything(&r, demo.session, NULL, NULL, NULL, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_everything(&r, demo.session, demo.picture, NULL, &crops, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "crops need the picture's pixels"));
    other.height--;
    assert_int_equal(st_everything(&r, demo.session, demo.picture, &other, &crops, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "224 x 223"));
    other = image, other.format = (st_pixel_format)9;
    assert_int_equal(st_everything(&r, demo.session, demo.picture, &other, &crops, &err), ST_ERR_INVALID_ARG);
    other = image, other.stride = 100;
    assert_int_equal(st_everything(&r, demo.session, demo.picture, &other, &crops, &err), ST_ERR_INVALID_ARG);
    other.stride = 500; /* a crop's row of 150 pixels fits, the picture's does not */
    assert_int_equal(st_everything(&r, demo.session, demo.picture, &other, &crops, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "stride of 500 bytes is shorter than 224 pixels"));
    st_picture *plain = NULL;
    assert_int_equal(st_picture_encode(&plain, demo.session, &image, NULL, NULL), ST_OK);
    assert_int_equal(st_everything(&r, demo.session, plain, NULL, NULL, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "for_clicks"));
    assert_null(r);
    st_picture_free(plain);
}

static void test_options__each_changes_the_result(void **state)
{
    (void)state;
    st_everything_options base = few(3);
    base.crop_n_layers = 1;
    base.stability_score_offset = 0.05f;
    st_everything_result *first = seen(&demo, &base);
    st_everything_result *again = seen(&demo, &base);
    assert_true(same_result(first, again));
    st_everything_result_free(again);
    const float middle = first->masks[first->n_masks / 2].iou;
    for (int which = 0; which < 13; which++) {
        st_everything_options o = base;
        switch (which) {
        case 0: o.points_per_side = 4; break;
        case 1: o.pred_iou_thresh = middle; break;
        case 2: o.stability_score_thresh = 0.4f; break;
        case 3: o.stability_score_offset = 0.1f; break;
        case 4: o.box_nms_thresh = 0.5f; break;
        case 5: o.crop_n_layers = 0; break;
        case 6: o.crop_nms_thresh = 0.5f; break;
        case 7: o.crop_overlap_ratio = 0.2; break;
        case 8: o.crop_n_points_downscale_factor = 2; break;
        case 9: o.min_mask_region_area = 100; break;
        case 10: o.overlap_thresh = 0.9f; break;
        case 11: o.max_masks = 5; break;
        default: o.hf = 1; break;
        }
        st_everything_result *r = seen(&demo, &o);
        if (same_result(first, r)) fail_msg("option %d changes nothing", which);
        if (which == 1) assert_true(r->n_masks > 0 && r->masks[r->n_masks - 1].iou > middle);
        if (which == 11)
            assert_true(r->n_masks == 5 && r->warnings == ST_WARN_DETECTION_CAP &&
                        same_rle(&r->masks[4].mask, &first->masks[4].mask));
        st_everything_result_free(r);
    }
    assert_int_equal(first->warnings, 0);
    st_everything_options none = few(1), batch = base;
    none.pred_iou_thresh = 1.0f;
    again = seen(&demo, &none);
    assert_true(again->n_masks == 0 && again->n_passed == 0 && again->warnings == ST_WARN_NOTHING_FOUND);
    st_everything_result_free(again);
    batch.points_per_batch = 1; /* the one that must not matter */
    again = seen(&demo, &batch);
    assert_true(same_result(first, again));
    st_everything_result_free(again), st_everything_result_free(first);
}

static void test_overlap__no_two_share_more(void **state)
{
    (void)state;
    st_everything_options o = few(4);
    st_everything_result *all = seen(&demo, &o);
    o.overlap_thresh = 0.3f;
    st_everything_result *r = seen(&demo, &o);
    assert_true(r->n_masks >= 1 && r->n_masks < all->n_masks && same_rle(&r->masks[0].mask, &all->masks[0].mask));
    for (size_t i = 0; i < r->n_masks; i++)
        for (size_t k = 0; k < i; k++) {
            const uint64_t smaller = r->masks[i].area < r->masks[k].area ? r->masks[i].area : r->masks[k].area;
            assert_true((double)st_rle_intersection(&r->masks[i].mask, &r->masks[k].mask) <=
                        (double)0.3f * (double)smaller);
        }
    st_everything_result_free(all), st_everything_result_free(r);
}

static void test_region_area__no_small_part_is_left(void **state)
{
    (void)state;
    st_everything_options o = few(3);
    o.min_mask_region_area = 60;
    st_everything_result *r = seen(&demo, &o);
    assert_true(r->n_masks > 0);
    for (size_t i = 0; i < r->n_masks; i++) {
        const st_everything_mask *m = &r->masks[i];
        const st_box_px box = st_rle_box(&m->mask);
        st_rle clean;
        int holes, islands;
        assert_true(m->area == st_rle_area(&m->mask) && memcmp(&box, &m->box, sizeof box) == 0);
        assert_int_equal(st_rle_remove_small(&clean, &holes, &m->mask, ST_SMALL_HOLES, 60, NULL), ST_OK);
        st_rle_free(&clean);
        assert_int_equal(st_rle_remove_small(&clean, &islands, &m->mask, ST_SMALL_ISLANDS, 60, NULL), ST_OK);
        st_rle_free(&clean);
        assert_true(!holes && !islands);
    }
    st_everything_result_free(r);
}

/* ---- which masks stay, by hand ---- */

/* A rectangle on a picture of 100 x 100, with a hole of one pixel when asked for. */
static void add_rectangle(st_mask_list *list, float iou, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1,
                          uint32_t crop_side, bool hole)
{
    static uint8_t dense[100 * 100];
    st_everything_mask m = { .iou = iou, .box = { x0, y0, x1, y1 }, .crop = { 0, 0, crop_side, crop_side } };
    memset(dense, 0, sizeof dense);
    for (uint32_t y = y0; y < y1; y++) memset(dense + 100 * y + x0, 1, x1 - x0);
    if (hole) dense[100 * (y0 + 2) + x0 + 2] = 0;
    assert_int_equal(st_rle_from_dense(&m.mask, dense, 100, 100, 100, NULL), ST_OK);
    m.area = st_rle_area(&m.mask);
    assert_int_equal(st_mask_list_add(list, &m, NULL), ST_OK);
}

static void test_ranks__who_wins(void **state)
{
    (void)state;
    st_mask_list list = { 0 };
    add_rectangle(&list, 0.9f, 10, 10, 50, 50, 100, true);
    add_rectangle(&list, 0.8f, 11, 10, 50, 50, 60, false); /* nearly the first, from a smaller crop */
    add_rectangle(&list, 0.7f, 70, 70, 90, 90, 100, false);
    assert_int_equal(st_mask_list_nms(&list, 0, ST_RANK_SMALL_CROP, NULL, 0.7f, NULL, NULL), ST_OK);
    assert_true(list.n == 2 && list.items[0].iou == 0.8f && list.items[1].iou == 0.7f);
    st_mask_list_free(&list);
    assert_true(list.n_bytes == 0);

    add_rectangle(&list, 0.9f, 10, 10, 50, 50, 100, true);
    add_rectangle(&list, 0.8f, 11, 10, 50, 50, 60, false);
    assert_int_equal(st_mask_list_nms(&list, 1, ST_RANK_IOU, NULL, 0.7f, NULL, NULL), ST_OK);
    assert_int_equal(list.n, 2); /* the first is not asked */
    assert_int_equal(st_mask_list_nms(&list, 0, ST_RANK_IOU, NULL, 0.7f, NULL, NULL), ST_OK);
    assert_true(list.n == 1 && list.items[0].iou == 0.9f);
    st_mask_list_free(&list);

    add_rectangle(&list, 0.9f, 10, 10, 50, 50, 100, true);
    add_rectangle(&list, 0.8f, 11, 10, 50, 50, 60, false);
    assert_int_equal(st_mask_list_clean(&list, 2, 0.7f, NULL, NULL), ST_OK);
    assert_true(list.n == 1 && list.items[0].iou == 0.8f); /* the one that needed no cleaning */
    st_mask_list_free(&list);

    add_rectangle(&list, 0.9f, 10, 10, 50, 50, 100, true);
    assert_int_equal(st_mask_list_clean(&list, 2, 0.7f, NULL, NULL), ST_OK);
    assert_true(list.n == 1 && list.items[0].area == 1600 &&
                list.n_bytes == list.items[0].mask.n_counts * sizeof(uint32_t));
    add_rectangle(&list, 0.95f, 20, 20, 24, 24, 100,
                  false); /* inside the other: covered, though their boxes' IoU is small */
    assert_int_equal(st_mask_list_sort(&list, NULL), ST_OK);
    assert_true(list.items[0].iou == 0.95f);
    assert_int_equal(st_mask_list_dedup(&list, 0.99f, NULL, NULL), ST_OK);
    assert_true(list.n == 1 && list.items[0].iou == 0.95f);
    st_mask_list_free(&list);
}

/* ---- threads, cancel, memory ---- */

static void test_threads__same_bits(void **state)
{
    (void)state;
    st_everything_options o = few(3);
    o.crop_n_layers = 1;
    o.box_nms_thresh = o.crop_nms_thresh = 0.9f;
    st_everything_result *want = seen(&demo, &o);
    assert_true(want->n_masks > 1);
    for (uint32_t n = 1; n <= 3; n++) {
        bench b;
        assert_true(open_bench(&b, n, NULL));
        st_everything_result *got = seen(&b, &o);
        assert_true(same_result(want, got));
        st_everything_result_free(got);
        close_bench(&b);
    }
    st_everything_result_free(want);
}

typedef struct watcher {
    st_cancel *cancel;
    size_t stop_at, n_calls, last, total;
    bool in_order;
} watcher;

static void watch(void *user, const char *stage, size_t done, size_t total)
{
    watcher *w = user;
    if (strcmp(stage, "points") != 0) return;
    w->in_order = w->in_order && done > w->last && done <= total && (w->total == 0 || w->total == total);
    w->n_calls++;
    w->last = done;
    w->total = total;
    if (w->stop_at && done >= w->stop_at) st_cancel_set(w->cancel);
}

static void test_progress_and_cancel(void **state)
{
    (void)state;
    watcher w = { .cancel = st_cancel_new(), .in_order = true };
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    how.cancel = w.cancel, how.progress = watch, how.progress_user = &w;
    bench b;
    assert_true(open_bench(&b, 2, &how));
    st_everything_options o = few(3);
    o.crop_n_layers = 1;
    o.points_per_batch = 4;
    st_everything_result *r = seen(&b, &o);
    assert_true(w.in_order && w.total == 45 && w.last == 45);
    assert_int_equal(w.n_calls, 5 * 3); /* 9 clicks a crop in batches of 4 */
    st_everything_result_free(r);
    static const size_t stops[] = { 4, 9, 13, 45 }; /* in a crop, at its end, in the next, behind the last point */
    for (size_t i = 0; i < 4; i++) {
        st_error err;
        w = (watcher){ .cancel = w.cancel, .in_order = true, .stop_at = stops[i] };
        st_cancel_reset(w.cancel);
        assert_int_equal(st_everything(&r, b.session, b.picture, &image, &o, &err), ST_ERR_CANCELLED);
        assert_null(r);
        assert_int_equal(w.last, stops[i]);
    }
    st_cancel_reset(w.cancel);
    w.stop_at = 0;
    r = seen(&b, &o);
    st_everything_result_free(r);
    close_bench(&b);
    st_cancel_free(w.cancel);
}

static void test_memory__bounded(void **state)
{
    (void)state;
    st_everything_options o = few(2);
    bench fresh = demo; /* has encoded nothing: its scratch is what clicks were planned to need */
    assert_int_equal(st_session_new(&fresh.session, demo.model, NULL, NULL), ST_OK);
    st_everything_result *r = seen(&fresh, &o);
    const size_t scratch = fresh.session->arena.size;
    assert_true(scratch < demo.session->arena.size);
    o.points_per_side = 9;
    o.pred_iou_thresh = 0.999f; /* nothing passes: nothing is kept */
    st_everything_result *none = seen(&fresh, &o);
    assert_true(none->n_points == 81 && none->n_masks == 0);
    assert_int_equal(fresh.session->arena.size, scratch);
    st_everything_result_free(none);
    st_session_free(fresh.session);
    size_t bytes = 0;
    for (size_t i = 0; i < r->n_masks; i++) bytes += r->masks[i].mask.n_counts * sizeof(uint32_t);
    o = few(2);
    o.max_mask_bytes = bytes;
    st_everything_result *fits = seen(&demo, &o);
    assert_true(same_result(r, fits));
    st_everything_result_free(fits);
    o.max_mask_bytes = bytes - 1;
    expect_refusal(ST_ERR_LIMIT, "pred_iou_thresh", &o);
    st_everything_result_free(r);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    st_everything_options o = few(1);
    o.crop_n_layers = 1;
    o.min_mask_region_area = 10;
    o.overlap_thresh = 0.9f;
    st_everything_result *r = seen(&demo, &o);
    st_everything_result_free(r);
    size_t n_failed = 0;
    for (uint64_t k = 1;; k += 1 + k / 8) {
        st_error err;
        st_mem_fail_after(k);
        const st_status status = st_everything(&r, demo.session, demo.picture, &image, &o, &err);
        st_mem_fail_after(0);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_null(r);
        n_failed++;
    }
    assert_true(n_failed > 10);
    st_everything_result_free(r);
    st_everything_result_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference__same_masks_in_the_same_order),
        cmocka_unit_test(test_reference__mistakes_are_noticed),
        cmocka_unit_test(test_crops__as_the_reference_cuts),
        cmocka_unit_test(test_nms__as_the_reference),
        cmocka_unit_test(test_points__each_mask_is_that_of_a_click),
        cmocka_unit_test(test_points__lie_on_the_grid_of_any_picture),
        cmocka_unit_test(test_options__refused),
        cmocka_unit_test(test_pictures__refused),
        cmocka_unit_test(test_options__each_changes_the_result),
        cmocka_unit_test(test_overlap__no_two_share_more),
        cmocka_unit_test(test_region_area__no_small_part_is_left),
        cmocka_unit_test(test_ranks__who_wins),
        cmocka_unit_test(test_threads__same_bits),
        cmocka_unit_test(test_progress_and_cancel),
        cmocka_unit_test(test_memory__bounded),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
