/* concept.c: exemplar tokens that travel. A concept holds what the exemplar encoder made of boxes on one picture, CLS included; another picture uses the tokens unchanged. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "engine/own_file.h"

void st_concept_free(st_concept *c)
{
    if (!c) return;
    st_free(c->model_id);
    st_free(c->phrase);
    st_free(c->source);
    st_free(c->boxes);
    st_free(c->tokens);
    st_free(c);
}

/* An empty concept with room for its boxes and tokens. */
static st_concept *concept_new(const char *model_id, const char *phrase, const char *source, size_t n_boxes, size_t width)
{
    st_concept *c = st_calloc(1, sizeof *c);
    if (!c) return NULL;
    c->model_id = st_strdup(model_id);
    c->phrase = st_strdup(phrase);
    c->source = source ? st_strdup(source) : NULL;
    c->boxes = st_calloc(n_boxes + 1, sizeof *c->boxes);
    c->tokens = st_calloc((n_boxes + 1) * width, sizeof *c->tokens);
    c->n_boxes = n_boxes;
    c->n_tokens = (uint32_t)n_boxes + 1;
    c->width = (uint32_t)width;
    if (c->model_id && c->phrase && (c->source || !source) && c->boxes && c->tokens) return c;
    st_concept_free(c);
    return NULL;
}

st_status st_concept_make(st_concept **out, st_session *s, const st_picture *p, const st_prompt *prompt, const char *source, st_error *err)
{
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "concept: no place for the result given");
    *out = NULL;
    if (!s || !p) return st_fail(err, ST_ERR_INVALID_ARG, "concept: no session or no picture given");
    if (!prompt || prompt->struct_size < sizeof *prompt || prompt->n_concepts) return st_fail(err, ST_ERR_INVALID_ARG, "concept: a phrase and boxes are expected");
    if (!prompt->boxes || !prompt->n_boxes || prompt->n_boxes > ST_MAX_EXEMPLARS)
        return st_fail(err, ST_ERR_INVALID_ARG, "concept: %zu boxes, expected 1 to %d", prompt->n_boxes, ST_MAX_EXEMPLARS);
    st_status status = st_picture_must_be_of(p, s->model, "concept: the picture", err);
    if (status == ST_OK) status = st_own_check_text("concept phrase", prompt->phrase, ST_MAX_PHRASE_BYTES, err);
    if (status == ST_OK) status = st_own_check_text("concept source", source, ST_MAX_SOURCE_BYTES, err);
    if (status != ST_OK) return status;
    const st_model *m = s->model;
    st_geo_box *boxes = st_calloc(prompt->n_boxes, sizeof *boxes);
    st_concept *c = concept_new(m->id, prompt->phrase ? prompt->phrase : "visual", source, prompt->n_boxes, m->dims->width);
    st_run run;
    size_t scratch = 0;
    status = boxes && c ? ST_OK : st_fail(err, ST_ERR_NOMEM, "concept: out of memory");
    if (status == ST_OK) status = st_model_bind_detect(s->model, err);
    if (status == ST_OK) status = st_read_boxes(boxes, prompt, p, err);
    if (status == ST_OK) status = st_plan_segment(&scratch, m, m->dims->context, prompt->n_boxes, err);
    if (status == ST_OK) status = st_session_run(s, &run, scratch, err);
    if (status == ST_OK) {
        c->input_size = m->dims->image_size;
        c->picture_width = p->width;
        c->picture_height = p->height;
        memcpy(c->boxes, prompt->boxes, prompt->n_boxes * sizeof *c->boxes);
        st_geo_run(&run, &m->detect, p->features.level[2], boxes, prompt->n_boxes, c->tokens);
        status = st_run_status(&run, err);
    }
    st_free(boxes);
    if (status != ST_OK) {
        st_concept_free(c);
        return status;
    }
    *out = c;
    return ST_OK;
}

st_status st_concept_get_info(const st_concept *c, st_concept_info *info, st_error *err)
{
    if (!c || !info || info->struct_size < sizeof *info) return st_fail(err, ST_ERR_INVALID_ARG, "concept info: no concept, or struct_size is not set");
    *info = (st_concept_info){sizeof *info, c->model_id, c->phrase, c->source, c->input_size, c->width, c->n_tokens, c->picture_width, c->picture_height, c->boxes, c->n_boxes};
    return ST_OK;
}

/* ---- files ---- */

static json_t *describe(const st_concept *c)
{
    json_t *about = st_own_about("concept"), *boxes = json_array();
    if (!about || !boxes) {
        json_decref(about);
        json_decref(boxes);
        return NULL;
    }
    for (size_t i = 0; i < c->n_boxes; i++) {
        const st_exemplar *b = &c->boxes[i];
        json_array_append_new(boxes, json_pack("{s:[f,f,f,f],s:b}", "box", (double)b->x0, (double)b->y0, (double)b->x1, (double)b->y1, "negative", b->negative != 0));
    }
    json_object_set_new(about, "model", json_string(c->model_id));
    json_object_set_new(about, "input_size", json_integer(c->input_size));
    json_object_set_new(about, "phrase", json_string(c->phrase));
    if (c->source) json_object_set_new(about, "source", json_string(c->source));
    json_object_set_new(about, "picture_width", json_integer(c->picture_width));
    json_object_set_new(about, "picture_height", json_integer(c->picture_height));
    json_object_set_new(about, "boxes", boxes);
    return about;
}

st_status st_concept_save(const st_concept *c, const char *path, st_error *err)
{
    if (!c || !path) return st_fail(err, ST_ERR_INVALID_ARG, "concept: no concept or no path given");
    json_t *about = describe(c);
    char *text = about ? json_dumps(about, JSON_COMPACT) : NULL;
    json_decref(about);
    if (!text) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    const st_tensor_out tokens = {"tokens", 2, {c->n_tokens, c->width}, c->tokens};
    const st_status status = st_safetensors_write(path, &tokens, 1, false, text, err);
    free(text); /* allocated by jansson */
    return status;
}

static st_status read_box(st_exemplar *out, const json_t *json, const char *path, size_t i, st_error *err)
{
    const json_t *box = json_object_get(json, "box");
    float v[4];
    for (size_t k = 0; k < 4; k++) {
        v[k] = (float)json_number_value(json_array_get(box, k));
        if (json_array_size(box) != 4 || !json_is_number(json_array_get(box, k)) || !isfinite(v[k])) return st_fail(err, ST_ERR_FORMAT, "%s: box %zu is not four numbers", path, i + 1);
    }
    *out = (st_exemplar){v[0], v[1], v[2], v[3], json_is_true(json_object_get(json, "negative"))};
    return ST_OK;
}

static st_status load(st_concept **out, const st_own_file *f, const char *path, st_error *err)
{
    const char *id, *phrase;
    uint32_t input, width, height;
    const json_t *boxes = json_object_get(f->about, "boxes");
    const st_entry *tokens = st_catalog_find(&f->tensors, "tokens");
    st_status status = st_own_text(f, path, "model", &id, err);
    if (status == ST_OK) status = st_own_text(f, path, "phrase", &phrase, err);
    if (status == ST_OK) status = st_own_count(f, path, "input_size", 1, UINT32_MAX, &input, err);
    if (status == ST_OK) status = st_own_count(f, path, "picture_width", 1, UINT32_MAX, &width, err);
    if (status == ST_OK) status = st_own_count(f, path, "picture_height", 1, UINT32_MAX, &height, err);
    if (status != ST_OK) return status;
    const size_t n = json_array_size(boxes);
    if (n < 1 || n > ST_MAX_EXEMPLARS) return st_fail(err, ST_ERR_FORMAT, "%s: %zu boxes, expected 1 to %d", path, n, ST_MAX_EXEMPLARS);
    if (!tokens || tokens->rank != 2 || tokens->shape[1] < 1 || tokens->shape[1] > 65536) return st_fail(err, ST_ERR_FORMAT, "%s: no tokens of a plausible width", path);
    st_concept *c = concept_new(id, phrase, json_string_value(json_object_get(f->about, "source")), n, (size_t)tokens->shape[1]);
    if (!c) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    c->input_size = input, c->picture_width = width, c->picture_height = height;
    for (size_t i = 0; status == ST_OK && i < n; i++) status = read_box(&c->boxes[i], json_array_get(boxes, i), path, i, err);
    if (status == ST_OK) status = st_own_read(f, path, "tokens", c->n_tokens, c->width, c->tokens, err);
    if (status != ST_OK) {
        st_concept_free(c);
        return status;
    }
    *out = c;
    return ST_OK;
}

st_status st_concept_load(st_concept **out, const char *path, st_error *err)
{
    st_own_file f;
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "concept: no place for the result given");
    *out = NULL;
    if (!path) return st_fail(err, ST_ERR_INVALID_ARG, "concept: no path given");
    st_status status = st_own_open(&f, path, "concept", err);
    if (status != ST_OK) return status;
    status = load(out, &f, path, err);
    st_own_close(&f);
    return status;
}
