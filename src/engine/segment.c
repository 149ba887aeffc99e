/* segment.c: one prompt on an encoded picture: tokens, scores (prompt.c); then masks for the queries that survive, a few at a time, straight to runs. */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

/* ---- options ---- */

typedef struct settings {
    float threshold, mask_logit;
    uint32_t max_detections;
    bool hf_text_only, want_masks;
} settings;

static st_status read_settings(settings *out, const st_segment_options *opts, st_error *err)
{
    const st_segment_options defaults = ST_SEGMENT_OPTIONS_INIT;
    const st_segment_options *o = opts ? opts : &defaults;
    if (o->struct_size < sizeof *o) return st_fail(err, ST_ERR_INVALID_ARG, "segment options: struct_size is %zu, expected %zu", o->struct_size, sizeof *o);
    if (!(o->threshold >= 0.0f && o->threshold <= 1.0f)) return st_fail(err, ST_ERR_INVALID_ARG, "threshold: %g, expected 0 to 1", (double)o->threshold);
    if (!(o->mask_threshold > 0.0f && o->mask_threshold < 1.0f))
        return st_fail(err, ST_ERR_INVALID_ARG, "mask threshold: %g, expected more than 0 and less than 1", (double)o->mask_threshold);
    *out = (settings){o->threshold, 0.0f, o->max_detections, o->hf_text_only != 0, o->want_masks != 0};
    if (o->mask_threshold != 0.5f) out->mask_logit = (float)log((double)o->mask_threshold / (1.0 - (double)o->mask_threshold));
    return ST_OK;
}

st_status st_read_boxes(st_geo_box *out, const st_prompt *prompt, const st_picture *p, st_error *err)
{
    const float W = (float)p->width, H = (float)p->height;
    for (size_t i = 0; i < prompt->n_boxes; i++) {
        const st_exemplar *b = &prompt->boxes[i];
        if (!(b->x0 < b->x1 && b->y0 < b->y1 && b->x0 >= 0.0f && b->y0 >= 0.0f && b->x1 <= W && b->y1 <= H))
            return st_fail(err, ST_ERR_INVALID_ARG, "box %zu: %g,%g,%g,%g, expected x0 < x1 and y0 < y1 inside the picture of %u x %u pixels", i + 1,
                           (double)b->x0, (double)b->y0, (double)b->x1, (double)b->y1, p->width, p->height);
        /* Corners to [0, 1] first, then centre and size, as both references do. */
        const float x0 = b->x0 / W, y0 = b->y0 / H, x1 = b->x1 / W, y1 = b->y1 / H;
        out[i] = (st_geo_box){(x0 + x1) / 2.0f, (y0 + y1) / 2.0f, x1 - x0, y1 - y0, b->negative ? 0 : 1};
    }
    return ST_OK;
}

static st_status check_prompt(const st_prompt *prompt, st_error *err)
{
    if (!prompt || prompt->struct_size < sizeof *prompt) return st_fail(err, ST_ERR_INVALID_ARG, "prompt: missing, or struct_size is not set");
    if (!prompt->phrase && prompt->n_boxes == 0 && prompt->n_concepts == 0) return st_fail(err, ST_ERR_INVALID_ARG, "prompt: neither a phrase, nor a box, nor a concept");
    if (prompt->n_boxes > ST_MAX_EXEMPLARS) return st_fail(err, ST_ERR_LIMIT, "prompt: %zu boxes, at most %d", prompt->n_boxes, ST_MAX_EXEMPLARS);
    if (prompt->n_boxes && !prompt->boxes) return st_fail(err, ST_ERR_INVALID_ARG, "prompt: %zu boxes announced, none given", prompt->n_boxes);
    if (prompt->n_concepts > ST_MAX_CONCEPTS) return st_fail(err, ST_ERR_LIMIT, "prompt: %zu concepts, at most %d", prompt->n_concepts, ST_MAX_CONCEPTS);
    if (prompt->n_concepts && !prompt->concepts) return st_fail(err, ST_ERR_INVALID_ARG, "prompt: %zu concepts announced, none given", prompt->n_concepts);
    if (prompt->n_concepts && prompt->n_boxes)
        return st_fail(err, ST_ERR_INVALID_ARG, "prompt: boxes and concepts at once; make a concept of the boxes to combine them");
    return ST_OK;
}

/* The phrase of a prompt: its own, its concepts' (which must agree), or "visual" for boxes alone, as `sam3/model/sam3_image_processor.py`. Also how many tokens the concepts bring. */
static st_status phrase_of(const char **phrase, size_t *n_extra, const st_model *m, const st_prompt *prompt, st_error *err)
{
    *phrase = prompt->phrase;
    *n_extra = 0;
    for (size_t i = 0; i < prompt->n_concepts; i++) {
        const st_concept *c = prompt->concepts[i];
        char what[64];
        snprintf(what, sizeof what, "concept %zu", i + 1);
        if (!c) return st_fail(err, ST_ERR_INVALID_ARG, "%s: none given", what);
        const st_status status = st_model_must_match(m, what, c->model_id, c->input_size, err);
        if (status != ST_OK) return status;
        if (c->width != m->dims->width) return st_fail(err, ST_ERR_FORMAT, "%s: tokens of width %u, the model's is %u", what, c->width, m->dims->width);
        if (*phrase && strcmp(*phrase, c->phrase) != 0)
            return st_fail(err, ST_ERR_INVALID_ARG, "%s: its phrase is \"%s\", expected \"%s\": phrases must agree", what, c->phrase, *phrase);
        *phrase = c->phrase;
        *n_extra += c->n_tokens;
    }
    if (!*phrase) *phrase = "visual";
    return ST_OK;
}

/* ---- scores ---- */

typedef struct ranked {
    float score;
    uint32_t query;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->query < y->query ? -1 : x->query > y->query;
}

/* `sam3/model/sam3_image_processor.py`; with joint_score SAM 3.1's detector folds presence into the logit first. */
static float score_of(const st_dims *dims, float logit, float presence)
{
    const float p = st_sigmoid(logit) * st_sigmoid(presence);
    if (!dims->joint_score) return p;
    return st_sigmoid(fminf(fmaxf(st_inverse_sigmoid(p), -10.0f), 10.0f));
}

/* Queries above the threshold, best first. `best` has room for all queries. Non-finite results are refused, never ranked. */
static st_status rank(ranked *best, size_t *n, const st_dims *dims, const st_queries *q, float threshold, st_error *err)
{
    *n = 0;
    for (uint32_t i = 0; i < dims->n_queries; i++) {
        const float score = score_of(dims, q->logits[i], q->presence);
        bool finite = isfinite(score);
        for (size_t c = 0; c < 4; c++) finite = finite && isfinite(q->boxes[4 * i + c]);
        if (!finite) return st_fail(err, ST_ERR_NONFINITE, "query %u: score or box is not a finite number", i);
        if (score > threshold) best[(*n)++] = (ranked){score, i};
    }
    qsort(best, *n, sizeof *best, by_score);
    return ST_OK;
}

static void place_box(float out[4], const float *box, const st_picture *p)
{
    const float W = (float)p->width, H = (float)p->height;
    out[0] = (box[0] - 0.5f * box[2]) * W;
    out[1] = (box[1] - 0.5f * box[3]) * H;
    out[2] = (box[0] + 0.5f * box[2]) * W;
    out[3] = (box[1] + 0.5f * box[3]) * H;
}

/* ---- masks ---- */

typedef struct mask_job {
    st_instance *instances; /* of this chunk */
    st_status *status;      /* one per instance */
    st_error *errors;
    const float *logits;    /* [chunk, side*side] */
    uint32_t side, width, height;
    float threshold;
} mask_job;

static void mask_item(void *arg, size_t i, unsigned slot)
{
    (void)slot;
    const mask_job *job = arg;
    const size_t n = (size_t)job->side * job->side;
    st_instance *inst = &job->instances[i];
    job->status[i] = st_rle_from_logits(&inst->mask, job->logits + i * n, job->side, job->side, job->width, job->height, job->threshold, &job->errors[i]);
    if (job->status[i] == ST_OK) inst->area = st_rle_area(&inst->mask);
}

/* Masks of instances first .. first+n-1. */
static st_status mask_chunk(const st_run *run, const st_model *m, const st_picture *p, const float *pixels, const float *states, st_result *r, size_t first, size_t n,
                            float threshold, st_error *err)
{
    const size_t mark = st_arena_mark(run->arena), D = m->dims->width, n_pixels = 16 * (size_t)m->dims->grid * m->dims->grid;
    float *kept = st_run_floats(run, n, D), *logits = st_run_floats(run, n, n_pixels);
    if (!st_run_idle(run))
        for (size_t i = 0; i < n; i++) memcpy(kept + i * D, states + r->instances[first + i].query * D, D * sizeof *kept);
    st_mask_logits(run, &m->detect, pixels, kept, n, logits);
    st_status status = st_run_status(run, err);
    if (status != ST_OK) return status;
    st_status each[ST_MASK_CHUNK] = {ST_OK};
    st_error errors[ST_MASK_CHUNK];
    mask_job job = {r->instances + first, each, errors, logits, 4 * m->dims->grid, p->width, p->height, threshold};
    st_run_parallel(run, n, mask_item, &job);
    if ((status = st_run_status(run, err)) != ST_OK) return status;
    for (size_t i = 0; i < n; i++)
        if (each[i] != ST_OK) return st_fail(err, each[i], "%s", errors[i].message);
    st_arena_rewind(run->arena, mark);
    return ST_OK;
}

static st_status make_masks(const st_run *run, const st_model *m, const st_picture *p, const st_detection *found, st_result *r, float threshold, st_error *err)
{
    const size_t n = m->dims->grid;
    float *pixels = st_run_floats(run, 16 * n * n, m->dims->width);
    st_mask_pixels(run, &m->detect, found->fused, found->prompt, found->n_prompt, p->features.level[1], p->features.level[0], pixels);
    st_status status = st_run_status(run, err);
    for (size_t first = 0; status == ST_OK && first < r->n_instances; first += ST_MASK_CHUNK) {
        const size_t left = r->n_instances - first;
        status = mask_chunk(run, m, p, pixels, found->queries.state, r, first, left < ST_MASK_CHUNK ? left : ST_MASK_CHUNK, threshold, err);
    }
    return status;
}

/* ---- the call ---- */

static st_status make_instances(st_result *r, const st_model *m, const st_picture *p, const st_detection *found, const settings *set, st_error *err)
{
    const size_t Q = m->dims->n_queries;
    size_t n = 0;
    ranked *best = st_calloc(Q, sizeof *best);
    if (!best) return st_fail(err, ST_ERR_NOMEM, "segment: out of memory");
    st_status status = rank(best, &n, m->dims, &found->queries, set->threshold, err);
    if (status != ST_OK) goto end;
    if (n == 0) r->warnings |= ST_WARN_NOTHING_FOUND;
    if (n == Q) r->warnings |= ST_WARN_QUERY_LIMIT;
    if (set->max_detections && n > set->max_detections) {
        n = set->max_detections;
        r->warnings |= ST_WARN_DETECTION_CAP;
    }
    r->instances = st_calloc(n ? n : 1, sizeof *r->instances);
    if (!r->instances) {
        status = st_fail(err, ST_ERR_NOMEM, "segment: out of memory for %zu instances", n);
        goto end;
    }
    r->n_instances = n;
    for (size_t i = 0; i < n; i++) {
        r->instances[i].score = best[i].score;
        r->instances[i].query = best[i].query;
        place_box(r->instances[i].box, found->queries.boxes + 4 * best[i].query, p);
    }
end:
    st_free(best);
    return status;
}

/* The phrase's tokens once, then each concept's: [n_valid + n_extra, D] in the arena. */
static const float *append_concepts(const st_run *run, const st_model *m, const st_phrase *phrase, const st_prompt *prompt, size_t n_extra)
{
    const size_t D = m->dims->width;
    float *tokens = st_run_floats(run, phrase->n_valid + n_extra, D);
    if (st_run_idle(run)) return tokens;
    memcpy(tokens, phrase->tokens, phrase->n_valid * D * sizeof *tokens);
    float *at = tokens + phrase->n_valid * D;
    for (size_t i = 0; i < prompt->n_concepts; i++) {
        const st_concept *c = prompt->concepts[i];
        memcpy(at, c->tokens, c->n_tokens * D * sizeof *at);
        at += c->n_tokens * D;
    }
    return tokens;
}

static st_status segment(st_result *r, st_session *s, const st_picture *p, const st_prompt *prompt, const st_geo_box *boxes, const settings *set, st_error *err)
{
    const st_model *m = s->model;
    const st_phrase *phrase = NULL;
    const char *text;
    st_run run;
    size_t scratch = 0, n_extra;
    st_status status = phrase_of(&text, &n_extra, m, prompt, err);
    if (status == ST_OK) status = st_session_phrase(s, &phrase, text, err);
    if (status != ST_OK) return status;
    r->n_tokens = phrase->n_ids;
    if (phrase->cut) r->warnings |= ST_WARN_PROMPT_CUT;
    if ((status = st_plan_segment(&scratch, m, m->dims->context + n_extra, prompt->n_boxes, err)) != ST_OK) return status;
    if ((status = st_session_run(s, &run, scratch, err)) != ST_OK) return status;
    st_detection found;
    const float *tokens = phrase->tokens;
    if (n_extra) tokens = append_concepts(&run, m, phrase, prompt, n_extra);
    /* Concepts bring a CLS of their own. */
    const bool with_geo = prompt->n_boxes > 0 || (n_extra == 0 && !set->hf_text_only);
    const bool watched = run.probe || run.watch; /* who looks on sees every stage of every prompt */
    if (!watched && (status = st_picture_share(p, &run, err)) != ST_OK) return status;
    st_detect_prompt(&run, &m->detect, &p->features, watched ? NULL : p->shared, tokens, phrase->n_valid + n_extra, boxes, prompt->n_boxes, with_geo, &found);
    if ((status = st_run_status(&run, err)) != ST_OK) return status;
    r->presence = st_sigmoid(found.queries.presence);
    if ((status = make_instances(r, m, p, &found, set, err)) != ST_OK) return status;
    if (set->want_masks && r->n_instances) status = make_masks(&run, m, p, &found, r, set->mask_logit, err);
    if (status == ST_OK) st_run_progress(&run, "phrase", 4, 4);
    return status;
}

st_status st_segment(st_result **out, st_session *s, const st_picture *p, const st_prompt *prompt, const st_segment_options *opts, st_error *err)
{
    settings set = {0};
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "segment: no place for the result given");
    *out = NULL;
    if (!s || !p) return st_fail(err, ST_ERR_INVALID_ARG, "segment: no session or no picture given");
    st_status status = st_picture_must_be_of(p, s->model, "segment: the picture", err);
    if (status == ST_OK) status = check_prompt(prompt, err);
    if (status == ST_OK) status = read_settings(&set, opts, err);
    if (status == ST_OK) status = st_model_bind_detect(s->model, err);
    if (status != ST_OK) return status;
    st_result *r = st_calloc(1, sizeof *r);
    st_geo_box *boxes = st_calloc(prompt->n_boxes ? prompt->n_boxes : 1, sizeof *boxes);
    if (r && boxes) {
        r->width = p->width;
        r->height = p->height;
        status = st_read_boxes(boxes, prompt, p, err);
        if (status == ST_OK) status = segment(r, s, p, prompt, boxes, &set, err);
    } else {
        status = st_fail(err, ST_ERR_NOMEM, "segment: out of memory");
    }
    st_free(boxes);
    if (status != ST_OK) {
        st_result_free(r);
        return status;
    }
    *out = r;
    return ST_OK;
}

void st_result_free(st_result *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_instances; i++) st_rle_free(&r->instances[i].mask);
    st_free(r->instances);
    st_free(r);
}
