/* click_golden_test.c: Stencil's interactive head against the reference modules, stage by stage and end to end.
 *
 *     click_golden_test --set FOLDER [--threads N] [--verbose] [--table] [--mutations]
 *
 * Stage by stage, as golden_test does it: each stage's output is compared and then overwritten by the golden, from the
 * trunk's last block on. What the answer is made of is then the reference's own: candidates must be the same to the
 * bit, their masks up to the pixels that rounding may decide (`near`).
 * End to end, nothing overwritten: the same candidates in the same order, predicted IoU and score within 1e-4,
 * low-resolution logits within 4 x PyTorch's own error against FP64, masks that differ only at `near`. A chain of
 * clicks is clicked through as an object, fed its own logits.
 * --mutations: breaks head, picture or question in one way after the other; the comparison must notice each.
 */
#include "golden/click_mutations.h"
#include "golden/golden_compare.h"
#include "golden/golden_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct click_case {
    const char *name, *run; /* run: which stages belong to it */
    click_question q;
    int chain; /* place in the chain of clicks; 0: none */
    json_t *json;
} click_case;

static bool is_hf(const golden_set *set)
{
    return strcmp(json_string_value(json_object_get(set->root, "layout")), "hf") == 0;
}

static float number(const json_t *array, size_t i)
{
    return (float)json_number_value(json_array_get(array, i));
}

static void read_case(click_case *c, const golden_set *set, json_t *json)
{
    *c = (click_case){ .json = json, .chain = (int)json_integer_value(json_object_get(json, "chain")) };
    c->name = json_string_value(json_object_get(json, "name"));
    c->run = json_string_value(json_object_get(json, "run"));
    const json_t *points = json_object_get(json, "points"), *region = json_object_get(json, "region");
    click_question *q = &c->q;
    q->n_points = json_array_size(points);
    if (q->n_points > sizeof q->points / sizeof *q->points) exit(1);
    for (size_t i = 0; i < q->n_points; i++) {
        const json_t *point = json_array_get(points, i), *xy = json_object_get(point, "xy");
        q->points[i] = (st_point){ number(xy, 0), number(xy, 1), json_is_true(json_object_get(point, "positive")) };
    }
    q->has_region = json_is_array(region);
    q->region = (st_region){ number(region, 0), number(region, 1), number(region, 2), number(region, 3) };
    if (json_is_true(json_object_get(json, "mask"))) {
        size_t cols = 0;
        q->mask = golden_tensor(set, c->run, "input.mask", &q->side, &cols);
        if (!q->mask || q->side != cols) exit(1);
    }
    q->multimask = json_is_true(json_object_get(json, "multimask"));
    q->hole_area = (int32_t)json_integer_value(json_object_get(json, "hole_area"));
    q->hf = is_hf(set);
}

static st_picture *encode(st_session *s, const golden_set *set)
{
    char path[1200];
    st_error err;
    st_bitmap bitmap;
    st_picture *picture = NULL;
    st_encode_options opts = ST_ENCODE_OPTIONS_INIT;
    opts.for_clicks = 1;
    opts.resize =
        strcmp(json_string_value(json_object_get(set->root, "resize")), "cpu") == 0 ? ST_RESIZE_CPU : ST_RESIZE_GPU;
    snprintf(path, sizeof path, "%s/%s", set->folder, json_string_value(json_object_get(set->root, "picture")));
    golden_stop_on(st_bitmap_load(&bitmap, path, NULL, &err), &err);
    const st_image image = { bitmap.rgb, bitmap.width, bitmap.height, 3 * (size_t)bitmap.width, ST_PIXEL_RGB8 };
    golden_stop_on(st_picture_encode(&picture, s, &image, &opts, &err), &err);
    st_bitmap_free(&bitmap);
    return picture;
}

static st_click_result *ask(st_session *s, const st_picture *p, const click_question *q)
{
    st_error err;
    st_click_result *r = NULL;
    st_click_input in = ST_CLICK_INPUT_INIT;
    st_click_options opts = ST_CLICK_OPTIONS_INIT;
    in.points = q->points;
    in.n_points = q->n_points;
    in.region = q->has_region ? &q->region : NULL;
    in.logits = q->mask;
    opts.multimask = q->multimask ? ST_MULTIMASK_ON : ST_MULTIMASK_OFF;
    opts.hole_area = q->hole_area;
    opts.hf = q->hf;
    golden_stop_on(st_click(&r, s, p, &in, &opts, &err), &err);
    return r;
}

/* ---- stages ---- */

typedef struct probing {
    const golden_set *set;
    const char *run;
    golden_tally *t;
    bool compares; /* false: only overwrites */
    size_t n_compared;
} probing;

static void probe(void *user, const char *name, float *data, size_t rows, size_t cols)
{
    probing *p = user;
    size_t r, c;
    const char *owner = p->run;
    float *want = golden_tensor(p->set, owner, name, &r, &c);
    if (!want) want = golden_tensor(p->set, owner = "picture", name, &r, &c);
    if (!want) return;
    /* the trunk's output is only the input here: other sets compare it */
    const json_t *own = json_object_get(json_object_get(json_object_get(p->set->root, "runs"), owner), name);
    const bool whole = golden_stride(own) == 1;
    if (whole ? r != rows || c != cols : c != cols)
        golden_verdict(p->t, false, "%s/%s: shape [%zu, %zu], the reference has [%zu, %zu]", p->run, name, rows, cols,
                       r, c);
    else {
        if (own && p->compares) {
            p->n_compared++;
            golden_compare_rows(p->t, p->run, name, own, data, rows, want, r, cols);
        }
        if (whole) memcpy(data, want, rows * cols * sizeof *data);
    }
    free(want);
}

static size_t n_stages(const golden_set *set, const char *run)
{
    return json_object_size(json_object_get(json_object_get(set->root, "runs"), run));
}

/* ---- candidates ---- */

/* Pixels in which the masks differ although no rounding could explain it. */
static size_t clear_differences(const st_rle *got, const json_t *want_json, size_t *differing)
{
    st_error err;
    st_rle want = { 0 };
    size_t clear = 0;
    const char *counts = json_string_value(json_object_get(json_object_get(want_json, "mask"), "counts"));
    golden_stop_on(st_rle_from_string(&want, counts, strlen(counts), got->width, got->height, &err), &err);
    const size_t n = (size_t)got->width * got->height;
    uint8_t *a = malloc(n), *b = malloc(n);
    if (!a || !b) exit(1);
    st_rle_to_dense(got, a, got->width, 1);
    st_rle_to_dense(&want, b, got->width, 1);
    *differing = 0;
    for (size_t i = 0; i < n; i++) *differing += a[i] != b[i];
    const json_t *near = json_object_get(want_json, "near");
    for (size_t i = 0; i < json_array_size(near); i++) {
        const size_t at = (size_t)json_integer_value(json_array_get(near, i));
        if (at < n) b[at] = a[at];
    }
    for (size_t i = 0; i < n; i++) clear += a[i] != b[i];
    free(a), free(b);
    st_rle_free(&want);
    return clear;
}

/* Largest distance of the low-resolution logits from the reference's, as it returns them. */
static double logits_apart(const golden_set *set, const click_case *c, const st_candidate *got, size_t n)
{
    size_t rows, cols;
    double worst = 0.0;
    float *masks = golden_tensor(set, c->run, "click.masks", &rows, &cols);
    if (!masks || cols != n || got->index >= rows) exit(1);
    for (size_t i = 0; i < n; i++) {
        const float v = masks[got->index * n + i], want = is_hf(set) ? v : fminf(fmaxf(v, -32.0f), 32.0f);
        worst = fmax(worst, fabs((double)got->logits[i] - (double)want));
    }
    free(masks);
    return worst;
}

/* exact: the head's outputs were overwritten by the reference's. */
static void check_candidates(const golden_set *set, const click_case *c, const st_click_result *r, golden_tally *t,
                             bool exact)
{
    const json_t *want = json_object_get(c->json, "candidates"), *own = json_object_get(c->json, "end_to_end");
    const double bar = exact ? 0.0 : 1e-4,
                 logit_bar = exact ? 0.0 : 4.0 * json_number_value(json_object_get(own, "logit"));
    const double score_error = fabs((double)r->object_score - json_number_value(json_object_get(c->json, "score")));
    const char *how = exact ? "of the reference's own outputs" : "end to end";
    golden_verdict(t, score_error <= bar, "%s %s: object score differs by %.3g (bar %.3g)", c->name, how, score_error,
                   bar);
    golden_verdict(t, r->n_candidates == json_array_size(want) && r->n_candidates > 0,
                   "%s %s: %zu candidates, expected %zu", c->name, how, r->n_candidates, json_array_size(want));
    for (size_t i = 0; i < r->n_candidates && i < json_array_size(want); i++) {
        const st_candidate *got = &r->candidates[i];
        const json_t *w = json_array_get(want, i);
        size_t differing = 0;
        const size_t clear = clear_differences(&got->mask, w, &differing);
        const double iou_error = fabs((double)got->iou - json_number_value(json_object_get(w, "iou")));
        golden_verdict(t, (json_int_t)got->index == json_integer_value(json_object_get(w, "index")),
                       "%s %s: candidate %zu is mask %u", c->name, how, i, got->index);
        golden_verdict(t, iou_error <= bar, "%s %s: candidate %zu: predicted IoU differs by %.3g (bar %.3g)", c->name,
                       how, i, iou_error, bar);
        golden_verdict(t, clear == 0, "%s %s: candidate %zu: %zu mask pixels differ, %zu of them clearly", c->name, how,
                       i, differing, clear);
        golden_verdict(t, got->area == st_rle_area(&got->mask), "%s %s: candidate %zu: area %llu is not the mask's",
                       c->name, how, i, (unsigned long long)got->area);
        const double apart = logits_apart(set, c, got, (size_t)r->mask_size * r->mask_size);
        golden_verdict(t, apart <= logit_bar, "%s %s: candidate %zu: logits differ by %.3g (bar %.3g)", c->name, how, i,
                       apart, logit_bar);
    }
}

/* ---- a set ---- */

static void stages_of_set(st_session *s, const golden_set *set, golden_tally *t, const click_mutation *mut)
{
    size_t i;
    json_t *json;
    const char *last = "";
    probing p = { .set = set, .run = "picture", .t = t, .compares = true };
    s->probe = probe;
    s->probe_user = &p;
    st_picture *picture = encode(s, set);
    golden_verdict(t, p.n_compared == n_stages(set, "picture") - 1, "picture: %zu stages compared, %zu expected",
                   p.n_compared, n_stages(set, "picture") - 1);
    if (mut && mut->picture) mut->picture(picture);
    json_array_foreach(json_object_get(set->root, "cases"), i, json)
    {
        click_case c;
        read_case(&c, set, json);
        p = (probing){ .set = set, .run = c.run, .t = t, .compares = strcmp(c.run, last) != 0 };
        click_question asked = c.q;
        if (mut && mut->question) mut->question(&asked, picture);
        st_click_result *r = ask(s, picture, &asked);
        /* click.features is the picture's, but made anew by each call */
        if (p.compares)
            golden_verdict(t, p.n_compared == n_stages(set, c.run) + 1, "%s: %zu stages compared, %zu expected", c.run,
                           p.n_compared, n_stages(set, c.run) + 1);
        check_candidates(set, &c, r, t, true);
        last = c.run;
        st_click_result_free(r);
        free(c.q.mask);
    }
    golden_compare_pools(t);
    s->probe = NULL;
    st_picture_free(picture);
}

/* Every case on its own; the chain as one object, which remembers its logits by itself. */
static void whole_set(st_session *s, const golden_set *set, golden_tally *t)
{
    size_t i;
    json_t *json;
    st_error err;
    st_object *object = NULL;
    st_click_options opts = ST_CLICK_OPTIONS_INIT;
    st_picture *picture = encode(s, set);
    int n_chain = 0;
    json_array_foreach(json_object_get(set->root, "cases"), i, json)
    {
        click_case c;
        read_case(&c, set, json);
        if (c.chain) {
            opts.hole_area = c.q.hole_area;
            opts.hf = c.q.hf;
            if (!object) golden_stop_on(st_object_new(&object, s, picture, &opts, &err), &err);
            n_chain++;
            golden_verdict(t, c.chain == n_chain && c.q.n_points == (size_t)c.chain,
                           "%s: link %d of the chain, %zu clicks", c.name, n_chain, c.q.n_points);
            golden_stop_on(st_object_point(object, &c.q.points[c.q.n_points - 1], &err), &err);
            check_candidates(set, &c, st_object_result(object), t, false);
        } else {
            st_click_result *r = ask(s, picture, &c.q);
            check_candidates(set, &c, r, t, false);
            st_click_result_free(r);
        }
        free(c.q.mask);
    }
    st_object_free(object);
    st_picture_free(picture);
    const int expected = set->input_size ? 0 : 5; /* sets at other sizes ask less */
    golden_verdict(t, n_chain == expected, "a chain of %d clicks, expected %d", n_chain, expected);
}

static st_session *open_session(const golden_set *set, unsigned threads)
{
    st_error err;
    st_model *model = NULL;
    st_session *s = NULL;
    st_model_options opts = ST_MODEL_OPTIONS_INIT;
    opts.n_threads = threads;
    opts.input_size = set->input_size;
    golden_stop_on(st_model_open(&model, set->weights, &opts, &err), &err);
    golden_stop_on(st_session_new(&s, model, NULL, &err), &err);
    st_model_free(model);
    return s;
}

/* Every mutation must be noticed by at least one comparison. */
static void run_mutations(const golden_set *set, unsigned threads, golden_tally *t)
{
    const click_layout other = is_hf(set) ? CLICK_META : CLICK_HF;
    for (const click_mutation *mut = click_mutations; mut->name; mut++) {
        if (mut->only == other) continue;
        st_error err;
        st_session *s = open_session(set, threads);
        golden_tally inner = { .quiet = true };
        golden_stop_on(st_model_bind_vision(s->model, &err), &err);
        golden_stop_on(st_model_bind_click(s->model, &err), &err);
        if (mut->head) mut->head(&s->model->click);
        stages_of_set(s, set, &inner, mut);
        golden_verdict(t, inner.failed > 0, "mutation \"%s\": noticed by %zu comparisons of %zu", mut->name,
                       inner.failed, inner.failed + inner.passed);
        st_session_free(s);
    }
}

static void check_least(const golden_set *set, golden_tally *t)
{
    const json_t *least = json_object_get(set->root, "least"), *cases = json_object_get(set->root, "cases");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(cases); i++)
        n += json_array_size(json_object_get(json_array_get(cases, i), "candidates"));
    golden_verdict(t, (json_int_t)json_array_size(cases) >= json_integer_value(json_object_get(least, "cases")),
                   "number of cases");
    golden_verdict(t, (json_int_t)n >= json_integer_value(json_object_get(least, "candidates")) && n > 0,
                   "number of candidates");
}

int main(int argc, char **argv)
{
    const char *folder = NULL;
    unsigned threads = 0;
    bool mutate = false;
    golden_tally t = { 0 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--set") == 0 && i + 1 < argc) folder = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--verbose") == 0) t.verbose = true;
        else if (strcmp(argv[i], "--table") == 0) t.table = true;
        else if (strcmp(argv[i], "--mutations") == 0) mutate = true;
        else folder = NULL, i = argc;
    }
    if (!folder) {
        fprintf(stderr, "usage: click_golden_test --set FOLDER [--threads N] [--verbose] [--table] [--mutations]\n");
        return 2;
    }
    golden_set set;
    golden_open(&set, folder, NULL);
    if (t.table)
        printf(
            "| case | stage | rms | rms error | PyTorch's | max error | PyTorch's |\n|---|---|---|---|---|---|---|\n");
    if (mutate) run_mutations(&set, threads, &t);
    else {
        st_session *s = open_session(&set, threads);
        stages_of_set(s, &set, &t, NULL);
        whole_set(s, &set, &t);
        st_session_free(s);
        check_least(&set, &t);
    }
    golden_close(&set);
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    return t.failed == 0 && t.passed > 0 ? 0 : 1;
}
