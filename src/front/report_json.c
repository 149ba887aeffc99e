/* report_json.c: the report as Stencil's own JSON (docs/cli.md lists the keys). A value that could not be made for lack
 * of memory makes the whole NULL: jansson's *_new functions take NULL and fail, so there is one check at the end. */
#include "front/report.h"

#include <stdlib.h>
#include <string.h>

static json_t *box_json(const float box[4])
{
    return json_pack("[o,o,o,o]", st_json_float(box[0]), st_json_float(box[1]), st_json_float(box[2]),
                     st_json_float(box[3]));
}

static json_t *concepts_json(const st_prompt_report *p)
{
    json_t *concepts = json_array();
    for (size_t i = 0; i < p->n_concepts; i++) {
        const st_concept_report *c = &p->concepts[i];
        json_t *json = json_pack("{s:o,s:o,s:I}", "file", st_json_text(c->file), "phrase", st_json_text(c->phrase),
                                 "tokens", (json_int_t)c->n_tokens);
        if (json_array_append_new(concepts, json) == 0) continue;
        json_decref(concepts);
        return NULL;
    }
    return concepts;
}

static json_t *prompt_json(const st_prompt_report *p)
{
    json_t *boxes = json_array();
    for (size_t i = 0; i < p->n_boxes; i++) {
        const float corners[4] = { p->boxes[i].x0, p->boxes[i].y0, p->boxes[i].x1, p->boxes[i].y1 };
        if (json_array_append_new(
                boxes, json_pack("{s:o,s:b}", "box", box_json(corners), "negative", p->boxes[i].negative != 0)) != 0) {
            json_decref(boxes);
            return NULL;
        }
    }
    json_t *json = json_pack("{s:o,s:o}", "phrase", st_json_text(p->phrase), "boxes", boxes);
    if (!p->n_concepts || json_object_set_new(json, "concepts", concepts_json(p)) == 0) return json;
    json_decref(json);
    return NULL;
}

static json_t *instance_json(const st_prompt_report *p, size_t i)
{
    const st_instance *it = &p->result->instances[i];
    json_t *json = json_pack("{s:o,s:o}", "score", st_json_float(it->score), "box", box_json(it->box));
    if (!json || p->boxes_only) return json;
    int failed = json_object_set_new(json, "area", json_integer((json_int_t)it->area));
    failed |= json_object_set_new(json, "mask", st_json_mask(&it->mask));
    if (p->mask_files && p->mask_files[i])
        failed |= json_object_set_new(json, "mask_file", st_json_text(p->mask_files[i]));
    if (!failed) return json;
    json_decref(json);
    return NULL;
}

json_t *st_json_warnings(uint32_t bits)
{
    json_t *json = json_array();
    uint32_t bit;
    const char *name;
    for (size_t i = 0; (name = st_warning_name(i, &bit)) != NULL; i++)
        if ((bits & bit) && json_array_append_new(json, json_string(name)) != 0) {
            json_decref(json);
            return NULL;
        }
    return json;
}

static json_t *result_json(const st_prompt_report *p)
{
    json_t *instances = json_array();
    for (size_t i = 0; i < p->result->n_instances; i++)
        if (json_array_append_new(instances, instance_json(p, i)) != 0) {
            json_decref(instances);
            return NULL;
        }
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "prompt", prompt_json(p), "presence",
                     st_json_float(p->result->presence), "instances", instances, "warnings",
                     st_json_warnings(p->result->warnings), "threshold", st_json_float(p->threshold), "mask_threshold",
                     st_json_float(p->mask_threshold));
}

static json_t *object_json(const st_object_report *o)
{
    const st_click_result *r = o->result;
    json_t *candidates = json_array();
    for (size_t i = 0; i < r->n_candidates; i++)
        if (json_array_append_new(candidates, st_json_candidate(&r->candidates[i], i, true,
                                                                o->mask_files ? o->mask_files[i] : NULL)) != 0) {
            json_decref(candidates);
            return NULL;
        }
    return json_pack("{s:o,s:o,s:o,s:b,s:I,s:b}", "prompt",
                     st_json_click_prompt(o->points, o->n_points, o->region, o->mask), "object_score",
                     st_json_float(r->object_score), "candidates", candidates, "multimask", r->multimask, "hole_area",
                     (json_int_t)r->hole_area, "hf", o->hf);
}

static json_t *preprocess_json(const st_picture_report *p)
{
    json_t *json = json_pack("{s:s,s:i,s:b,s:i,s:{s:o,s:o,s:b},s:b,s:s}", "format", p->format, "bits", p->bits, "float",
                             p->is_float != 0, "bands", p->bands, "scale", "low", st_json_float(p->low), "high",
                             st_json_float(p->high), "stretched", p->stretched != 0, "damaged", p->damaged != 0,
                             "resize", p->resize);
    if (!p->half || json_object_set_new(json, "saved_as", json_string("fp16")) == 0) return json;
    json_decref(json);
    return NULL;
}

/* One entry for each prompt or object. */
static json_t *results_json(const st_picture_report *p)
{
    json_t *results = json_array();
    for (size_t i = 0; i < p->n_prompts; i++)
        if (json_array_append_new(results, result_json(&p->prompts[i])) != 0) {
            json_decref(results);
            return NULL;
        }
    for (size_t i = 0; i < p->n_objects; i++)
        if (json_array_append_new(results, object_json(&p->objects[i])) != 0) {
            json_decref(results);
            return NULL;
        }
    return results;
}

static json_t *picture_json(const st_picture_report *p)
{
    if (p->error) return json_pack("{s:o,s:o}", "file", st_json_text(p->file), "error", st_json_text(p->error));
    json_t *json =
        json_pack("{s:o,s:I,s:I,s:o,s:o}", "file", st_json_text(p->file), "width", (json_int_t)p->width, "height",
                  (json_int_t)p->height, "orientation", p->undescribed ? json_null() : json_integer(p->orientation),
                  "preprocess", p->undescribed ? json_null() : preprocess_json(p));
    const int failed =
        p->masks ? st_json_add_masks(json, p->masks) : json_object_set_new(json, "results", results_json(p));
    if (!failed) return json;
    json_decref(json);
    return NULL;
}

char *st_report_source(const st_picture_report *p)
{
    json_t *json = json_pack("{s:o,s:i,s:o}", "file", st_json_text(p->file), "orientation", p->orientation,
                             "preprocess", preprocess_json(p));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

bool st_report_read_source(st_picture_report *p, char **file, const char *source)
{
    st_picture_report q = *p;
    const char *name, *format, *resize, *saved = NULL;
    double low, high;
    json_t *json = source ? json_loads(source, JSON_REJECT_DUPLICATES, NULL) : NULL;
    bool ok =
        json && json_unpack(json, "{s:s,s:i,s:{s:s,s:i,s:b,s:i,s:{s:F,s:F,s:b},s:b,s:s,s?s}}", "file", &name,
                            "orientation", &q.orientation, "preprocess", "format", &format, "bits", &q.bits, "float",
                            &q.is_float, "bands", &q.bands, "scale", "low", &low, "high", &high, "stretched",
                            &q.stretched, "damaged", &q.damaged, "resize", &resize, "saved_as", &saved) == 0;
    ok = ok && strlen(format) < sizeof q.format && (strcmp(resize, "cpu") == 0 || strcmp(resize, "gpu") == 0);
    *file = ok ? strdup(name) : NULL;
    if (*file) {
        snprintf(q.format, sizeof q.format, "%s", format);
        q.low = (float)low, q.high = (float)high;
        q.resize = strcmp(resize, "cpu") == 0 ? "cpu" : "gpu";
        q.half = saved != NULL;
        *p = q;
    }
    json_decref(json);
    return *file != NULL;
}

char *st_report_json(const st_report *r)
{
    json_t *images = json_array();
    for (size_t i = 0; i < r->n_pictures; i++)
        if (json_array_append_new(images, picture_json(&r->pictures[i])) != 0) {
            json_decref(images);
            return NULL;
        }
    return st_json_line(json_pack("{s:s,s:{s:s,s:s,s:s,s:I},s:o}", "stencil", st_version(), "model", "id", r->model_id,
                                  "version", r->model_version, "precision", r->model_precision, "input_size",
                                  (json_int_t)r->input_size, "images", images));
}
