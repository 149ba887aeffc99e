/* golden_test.c: Stencil against the reference modules, stage by stage and end to end.
 *
 *     golden_test --set FOLDER [--weights PATH] [--threads N] [--verbose] [--table] [--mutations]
 *
 * Stage by stage: when a stage's probe fires, its output is compared with the golden and then overwritten by it, so that every stage is fed the reference's own input and the first
 * wrong one is named. Bars: RMS error <= max(2 x PyTorch-fp32's own RMS error against FP64, 1e-6 x RMS of the output); max error <= 4 x PyTorch's own, same floor.
 * End to end, nothing overwritten: the same instances, scores within 1e-4, boxes within 0.05 px, masks that differ only where the reference's logit is within 4 x its own error of 0.
 * --mutations: breaks the bound model in one way after the other and demands that the comparison notices each.
 */
#include "golden/golden_compare.h"
#include "golden/golden_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "golden/mutations.h"

/* ---- stages ---- */

typedef struct probing {
    const golden_set *set;
    const golden_case *c;
    golden_tally *t;
    size_t n_compared;
} probing;

static void probe(void *user, const char *name, float *data, size_t rows, size_t cols)
{
    probing *p = user;
    size_t r, c;
    float *want = golden_tensor(p->set, p->c->name, name, &r, &c);
    if (!want && strcmp(p->c->name, p->c->picture_case) != 0) want = golden_tensor(p->set, p->c->picture_case, name, &r, &c);
    if (!want) return;
    const json_t *own = json_object_get(json_object_get(p->c->json, "stages"), name);
    const bool whole = golden_stride(own) == 1;
    if (whole ? r * c != rows * cols : c != cols)
        golden_verdict(p->t, false, "%s/%s: shape [%zu, %zu], the reference has [%zu, %zu]", p->c->name, name, rows, cols, r, c);
    else {
        if (strcmp(name, "px") != 0) {
            p->n_compared++;
            if (whole) golden_compare_stage(p->t, p->c->name, name, own, data, want, rows * cols);
            else golden_compare_rows(p->t, p->c->name, name, own, data, rows, want, r, cols);
        }
        if (whole) memcpy(data, want, rows * cols * sizeof *data); /* of the others Stencil's own rows go on, as the reference's did */
    }
    free(want);
}

/* ids as the reference tokenised them, and which of them count. */
static size_t check_ids(const golden_set *set, const golden_case *c, golden_tally *t, uint32_t ids[32])
{
    size_t n = 0, rows, cols;
    st_error err;
    golden_stop_on(st_tokenize(c->phrase ? c->phrase : "visual", ids, 32, &n, NULL, &err), &err);
    float *want = golden_tensor(set, c->name, "text.ids", &rows, &cols);
    if (!want) return n;
    bool same = rows * cols == n;
    for (size_t i = 0; same && i < n; i++) same = (float)ids[i] == want[i];
    golden_verdict(t, same, "%s/text.ids", c->name);
    free(want);
    return n;
}

/* The case's picture file, resized by the arithmetic that the reference used. */
static st_picture *encode_file(st_session *s, const golden_set *set, const golden_case *c)
{
    char path[1200];
    st_error err;
    st_bitmap bitmap;
    st_picture *picture = NULL;
    st_encode_options opts = ST_ENCODE_OPTIONS_INIT;
    opts.resize = c->cpu_resize ? ST_RESIZE_CPU : ST_RESIZE_GPU;
    snprintf(path, sizeof path, "%s/%s", set->folder, c->picture);
    golden_stop_on(st_bitmap_load(&bitmap, path, NULL, &err), &err);
    const st_image image = {bitmap.rgb, bitmap.width, bitmap.height, 3 * (size_t)bitmap.width, ST_PIXEL_RGB8};
    golden_stop_on(st_picture_encode(&picture, s, &image, &opts, &err), &err);
    st_bitmap_free(&bitmap);
    return picture;
}

static void stages_of_case(st_session *s, const golden_set *set, const golden_case *c, const float *px, golden_tally *t, const mutation *mut)
{
    st_model *m = s->model;
    const st_dims *d = m->dims;
    st_error err;
    st_run run;
    probing p = {set, c, t, 0};
    uint32_t ids[32];
    st_picture *picture = NULL;
    const size_t n_ids = check_ids(set, c, t, ids), D = d->width, side = 4 * (size_t)d->grid;
    s->probe = probe;
    s->probe_user = &p;
    if (px) golden_stop_on(st_picture_encode_px(&picture, s, px, c->width, c->height, false, &err), &err);
    else picture = encode_file(s, set, c);
    golden_stop_on(st_model_bind_detect(m, &err), &err);
    size_t scratch = 0;
    golden_stop_on(st_plan_segment(&scratch, m, d->context, c->n_boxes, &err), &err);
    const size_t masks = (size_t)d->n_queries * (side * side + D) * sizeof(float) + (1 << 20);
    golden_stop_on(st_session_run(s, &run, scratch + masks, &err), &err);
    float *tokens = st_run_floats(&run, 32, D);
    golden_stop_on(st_text_encode(&run, &m->text, ids, n_ids, tokens, &err), &err);
    size_t n_valid = 0;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] != 0) memmove(tokens + n_valid++ * D, tokens + i * D, D * sizeof *tokens);
    st_geo_box boxes[8];
    for (size_t i = 0; i < c->n_boxes; i++) {
        const st_exemplar *b = &c->boxes[i];
        const float W = (float)c->width, H = (float)c->height, x0 = b->x0 / W, x1 = b->x1 / W, y0 = b->y0 / H, y1 = b->y1 / H;
        boxes[i] = (st_geo_box){(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0, b->negative ? 0 : 1};
        if (mut && mut->box) mut->box(&boxes[i]);
    }
    st_detection found;
    const bool with_geo = !c->hf_text_only && !(mut && mut->drop_cls && c->n_boxes == 0);
    st_detect_prompt(&run, &m->detect, &picture->features, NULL, tokens, n_valid, boxes, c->n_boxes, with_geo, &found);
    float *pixels = st_run_floats(&run, side * side, D), *logits = st_run_floats(&run, d->n_queries, side * side);
    st_mask_pixels(&run, &m->detect, found.fused, found.prompt, found.n_prompt, picture->features.level[1], picture->features.level[0], pixels);
    st_mask_logits(&run, &m->detect, pixels, found.queries.state, d->n_queries, logits);
    golden_stop_on(st_run_status(&run, &err), &err);
    s->probe = NULL;
    st_picture_free(picture);
    /* Nobody asks for the semantic map, so it is never computed. */
    const json_t *stages = json_object_get(c->json, "stages");
    const size_t least = json_object_size(stages) - (json_object_get(stages, "semantic") != NULL);
    golden_verdict(t, p.n_compared >= least && least > 0, "%s: %zu stages compared, at least %zu expected", c->name, p.n_compared, least);
}

/* ---- end to end ---- */

/* Pixels where the masks differ although the reference's logit is clearly on one side. */
static size_t clear_differences(const golden_set *set, const golden_case *c, const st_instance *got, const st_rle *want, double own, size_t *differing)
{
    size_t rows, cols, clear = 0;
    const size_t n = (size_t)want->width * want->height;
    float *logits = golden_tensor(set, c->name, "mask.logits", &rows, &cols);
    uint8_t *a = malloc(n), *b = malloc(n);
    if (!a || !b) exit(1);
    st_rle_to_dense(&got->mask, a, want->width, 1);
    st_rle_to_dense(want, b, want->width, 1);
    *differing = 0;
    const size_t side = logits ? (size_t)lround(sqrt((double)cols)) : 0;
    for (size_t i = 0; i < n; i++) {
        if (a[i] == b[i]) continue;
        ++*differing;
        const uint32_t x = (uint32_t)(i % want->width), y = (uint32_t)(i / want->width);
        if (!logits || fabs((double)golden_resized(logits + got->query * cols, side, side, want->width, want->height, x, y)) >= 4.0 * own) clear++;
    }
    free(a), free(b), free(logits);
    return clear;
}

static void compare_instance(const golden_set *set, const golden_case *c, const st_instance *got, json_t *want, golden_tally *t, size_t i)
{
    st_error err;
    st_rle mask = {0};
    double box_error = 0.0;
    const json_t *box = json_object_get(want, "box");
    for (size_t k = 0; k < 4; k++) box_error = fmax(box_error, fabs((double)got->box[k] - json_number_value(json_array_get(box, k))));
    const double score_error = fabs((double)got->score - json_number_value(json_object_get(want, "score")));
    golden_verdict(t, (json_int_t)got->query == json_integer_value(json_object_get(want, "query")), "%s: instance %zu is query %u", c->name, i, got->query);
    golden_verdict(t, score_error <= 1e-4, "%s: instance %zu: score differs by %.3g (bar 1e-4)", c->name, i, score_error);
    golden_verdict(t, box_error <= 0.05, "%s: instance %zu: box differs by %.3g px (bar 0.05)", c->name, i, box_error);
    const char *counts = json_string_value(json_object_get(json_object_get(want, "mask"), "counts"));
    golden_stop_on(st_rle_from_string(&mask, counts, strlen(counts), c->width, c->height, &err), &err);
    const double own = json_number_value(json_object_get(json_object_get(c->json, "end_to_end"), "mask_logit"));
    size_t differing = 0;
    const size_t clear = clear_differences(set, c, got, &mask, own, &differing);
    golden_verdict(t, clear == 0, "%s: instance %zu: %zu mask pixels differ, %zu of them clearly", c->name, i, differing, clear);
    st_rle_free(&mask);
}

static void whole_case(st_session *s, const golden_set *set, const golden_case *c, golden_tally *t)
{
    st_error err;
    st_picture *picture = NULL;
    st_result *r = NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options opts = ST_SEGMENT_OPTIONS_INIT;
    prompt.phrase = c->phrase;
    prompt.boxes = c->boxes;
    prompt.n_boxes = c->n_boxes;
    opts.threshold = c->threshold;
    opts.hf_text_only = c->hf_text_only;
    picture = encode_file(s, set, c);
    golden_stop_on(st_segment(&r, s, picture, &prompt, &opts, &err), &err);
    json_t *want = json_object_get(c->json, "instances");
    const double presence = json_number_value(json_object_get(c->json, "presence"));
    golden_verdict(t, fabs((double)r->presence - presence) <= 1e-4, "%s: presence %.6f, expected %.6f", c->name, (double)r->presence, presence);
    golden_verdict(t, r->n_instances == json_array_size(want) && r->n_instances > 0, "%s: %zu instances, expected %zu", c->name, r->n_instances, json_array_size(want));
    for (size_t i = 0; i < r->n_instances && i < json_array_size(want); i++) compare_instance(set, c, &r->instances[i], json_array_get(want, i), t, i);
    st_result_free(r);
    st_picture_free(picture);
}

/* ---- a set ---- */

static void run_set(st_session *s, const golden_set *set, golden_tally *t, const mutation *mut)
{
    size_t i, rows, cols;
    json_t *json;
    json_array_foreach(json_object_get(set->root, "cases"), i, json) {
        golden_case c;
        golden_read_case(&c, json);
        float *px = golden_tensor(set, c.picture_case, "px", &rows, &cols);
        const size_t side = s->model->dims->image_size;
        if (px && rows * cols != side * side * 3) {
            golden_verdict(t, false, "%s: the input is [%zu, %zu], the model reads %zu x %zu pixels", c.name, rows, cols, side, side);
            free(px);
            continue;
        }
        uint32_t ids[32];
        if (px || set->input_size) stages_of_case(s, set, &c, px, t, mut); /* without the reference's stages, only the whole run can be compared */
        else if (!mut) check_ids(set, &c, t, ids);
        if (!mut) whole_case(s, set, &c, t);
        free(px);
    }
    golden_compare_pools(t);
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

/* Whether a case leaves all but the CLS token of the exemplars out: only it notices that one missing. */
static bool asks_text_alone(const golden_set *set)
{
    size_t i;
    json_t *json;
    json_array_foreach(json_object_get(set->root, "cases"), i, json)
        if (json_array_size(json_object_get(json, "boxes")) == 0 && !json_is_true(json_object_get(json, "hf_text_only"))) return true;
    return false;
}

/* Every mutation must be noticed by at least one comparison. */
static void run_mutations(const golden_set *set, unsigned threads, golden_tally *t)
{
    for (const mutation *mut = mutations; mut->name; mut++) {
        if (mut->drop_cls && set->input_size && !asks_text_alone(set)) continue;
        st_error err;
        st_session *s = open_session(set, threads);
        golden_tally inner = {.quiet = true};
        golden_stop_on(st_model_bind_vision(s->model, &err), &err);
        golden_stop_on(st_model_bind_detect(s->model, &err), &err);
        if (mut->model) mut->model(s->model);
        run_set(s, set, &inner, mut);
        if (mut->undo) mut->undo(s->model);
        golden_verdict(t, inner.failed > 0, "mutation \"%s\": noticed by %zu comparisons", mut->name, inner.failed);
        st_session_free(s);
    }
}

int main(int argc, char **argv)
{
    const char *folder = NULL, *weights = NULL;
    unsigned threads = 0;
    bool mutate = false;
    golden_tally t = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--set") == 0 && i + 1 < argc) folder = argv[++i];
        else if (strcmp(argv[i], "--weights") == 0 && i + 1 < argc) weights = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--verbose") == 0) t.verbose = true;
        else if (strcmp(argv[i], "--table") == 0) t.table = true;
        else if (strcmp(argv[i], "--mutations") == 0) mutate = true;
        else folder = NULL, i = argc;
    }
    if (!folder) {
        fprintf(stderr, "usage: golden_test --set FOLDER [--weights PATH] [--threads N] [--verbose] [--table] [--mutations]\n");
        return 2;
    }
    golden_set set;
    golden_open(&set, folder, weights);
    const json_t *least = json_object_get(set.root, "least");
    if (t.table) printf("| case | stage | rms | rms error | PyTorch's | max error | PyTorch's |\n|---|---|---|---|---|---|---|\n");
    if (mutate) run_mutations(&set, threads, &t);
    else {
        st_session *s = open_session(&set, threads);
        run_set(s, &set, &t, NULL);
        st_session_free(s);
        golden_verdict(&t, (json_int_t)json_array_size(json_object_get(set.root, "cases")) >= json_integer_value(json_object_get(least, "cases")), "number of cases");
    }
    golden_close(&set);
    printf("%zu passed, %zu failed\n", t.passed, t.failed);
    return t.failed == 0 && t.passed > 0 ? 0 : 1;
}
