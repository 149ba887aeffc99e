/* object.c: a line of clicks on one object. Every verb is a step that keeps its own result, so that undo is exact: it shows the step before, nothing is computed again. */
#include "engine/engine.h"

#include <string.h>
#include "base/error.h"
#include "base/mem.h"

typedef struct step {
    st_click_result *result;
    size_t chosen;     /* candidate that the next step goes on from */
    size_t n_points;   /* points said up to and with this step */
    bool has_region;
    st_region region;
    float *mask;       /* logits that the user gave, [mask_size^2], or NULL: owned by this step */
} step;

struct st_object {
    st_session *session;
    st_picture *picture;
    st_click_options opts;
    st_point points[ST_MAX_POINTS];
    step steps[ST_MAX_POINTS];
    size_t n_steps;
};

st_status st_object_new(st_object **out, st_session *s, st_picture *p, const st_click_options *opts, st_error *err)
{
    const st_click_options defaults = ST_CLICK_OPTIONS_INIT;
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "object: no place for the result given");
    *out = NULL;
    if (!s || !p) return st_fail(err, ST_ERR_INVALID_ARG, "object: no session or no picture given");
    if (opts && opts->struct_size < sizeof *opts) return st_fail(err, ST_ERR_INVALID_ARG, "click options: struct_size is %zu, expected %zu", opts->struct_size, sizeof *opts);
    const st_status status = st_picture_must_be_of(p, s->model, "object: the picture", err);
    if (status != ST_OK) return status;
    if (!p->for_clicks) return st_fail(err, ST_ERR_INVALID_ARG, "object: the picture was not encoded for clicks (st_encode_options.for_clicks)");
    st_object *o = st_calloc(1, sizeof *o);
    if (!o) return st_fail(err, ST_ERR_NOMEM, "object: out of memory");
    o->session = s;
    o->picture = st_picture_ref(p);
    o->opts = opts ? *opts : defaults;
    *out = o;
    return ST_OK;
}

static void drop_last(st_object *o)
{
    step *last = &o->steps[--o->n_steps];
    st_click_result_free(last->result);
    st_free(last->mask);
    *last = (step){0};
}

void st_object_reset(st_object *o)
{
    while (o && o->n_steps) drop_last(o);
}

void st_object_free(st_object *o)
{
    if (!o) return;
    st_object_reset(o);
    st_picture_free(o->picture);
    st_free(o);
}

static step *last_step(st_object *o) { return o->n_steps ? &o->steps[o->n_steps - 1] : NULL; }

/* Appends a step that starts from the state of the last one; NULL when there is no room. */
static step *next_step(st_object *o, st_error *err, st_status *status)
{
    if (o->n_steps == ST_MAX_POINTS) {
        *status = st_fail(err, ST_ERR_LIMIT, "object: %d verbs already, undo or reset", ST_MAX_POINTS);
        return NULL;
    }
    const step *before = last_step(o);
    step *s = &o->steps[o->n_steps];
    *s = (step){0};
    if (before) s->n_points = before->n_points, s->has_region = before->has_region, s->region = before->region;
    return s;
}

/* Runs the head for the step that next_step returned and keeps it, or gives it up. */
static st_status run_step(st_object *o, step *s, st_error *err)
{
    const step *before = last_step(o);
    st_click_input in = ST_CLICK_INPUT_INIT;
    in.points = o->points;
    in.n_points = s->n_points;
    in.region = s->has_region ? &s->region : NULL;
    if (s->mask) in.logits = s->mask;
    else if (before) in.logits = before->result->candidates[before->chosen].logits;
    const st_status status = st_click(&s->result, o->session, o->picture, &in, &o->opts, err);
    if (status != ST_OK) {
        st_free(s->mask);
        *s = (step){0};
        return status;
    }
    o->n_steps++;
    return ST_OK;
}

st_status st_object_point(st_object *o, const st_point *point, st_error *err)
{
    st_status status = ST_OK;
    if (!o || !point) return st_fail(err, ST_ERR_INVALID_ARG, "object: no object or no point given");
    step *s = next_step(o, err, &status);
    if (!s) return status;
    o->points[s->n_points++] = *point;
    return run_step(o, s, err);
}

st_status st_object_region(st_object *o, const st_region *region, st_error *err)
{
    st_status status = ST_OK;
    if (!o || !region) return st_fail(err, ST_ERR_INVALID_ARG, "object: no object or no region given");
    step *s = next_step(o, err, &status);
    if (!s) return status;
    s->has_region = true;
    s->region = *region;
    return run_step(o, s, err);
}

st_status st_object_mask(st_object *o, const float *logits, st_error *err)
{
    st_status status = ST_OK;
    if (!o || !logits) return st_fail(err, ST_ERR_INVALID_ARG, "object: no object or no mask given");
    step *s = next_step(o, err, &status);
    if (!s) return status;
    const size_t n = 16 * (size_t)o->session->model->dims->grid * o->session->model->dims->grid;
    s->mask = st_calloc(n, sizeof *s->mask);
    if (!s->mask) return st_fail(err, ST_ERR_NOMEM, "object: out of memory for a mask");
    memcpy(s->mask, logits, n * sizeof *logits);
    return run_step(o, s, err);
}

st_status st_object_choose(st_object *o, size_t i, st_error *err)
{
    step *s = o ? last_step(o) : NULL;
    if (!s) return st_fail(err, ST_ERR_INVALID_ARG, "object: nothing to choose from yet");
    if (i >= s->result->n_candidates) return st_fail(err, ST_ERR_INVALID_ARG, "object: candidate %zu, there are %zu", i, s->result->n_candidates);
    s->chosen = i;
    return ST_OK;
}

st_status st_object_undo(st_object *o, st_error *err)
{
    if (!o || !o->n_steps) return st_fail(err, ST_ERR_INVALID_ARG, "object: nothing to undo");
    drop_last(o);
    return ST_OK;
}

const st_click_result *st_object_result(const st_object *o) { return o && o->n_steps ? o->steps[o->n_steps - 1].result : NULL; }

size_t st_object_chosen(const st_object *o) { return o && o->n_steps ? o->steps[o->n_steps - 1].chosen : 0; }

size_t st_object_n_verbs(const st_object *o) { return o ? o->n_steps : 0; }
