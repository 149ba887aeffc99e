/* report_coco.c: the report as one COCO instances file: images, categories (the phrases; "object" for clicks and everything mode),
 * annotations with score and run-length masks.
 *
 * Numbers start at 1. `bbox` is the model's box clamped to the picture, as COCO's tools expect; `segmentation` is a
 * compressed run-length mask of an object that is no crowd, which pycocotools reads. COCO has no place for pictures
 * that failed: they are listed under the added key "errors".
 */
#include "front/report.h"

#include <stdlib.h>
#include <string.h>

static float clamped(float v, uint32_t limit)
{
    return v < 0.0f ? 0.0f : v > (float)limit ? (float)limit : v;
}

static json_t *bbox_json(const st_picture_report *picture, const float box[4])
{
    const float x0 = clamped(box[0], picture->width), y0 = clamped(box[1], picture->height);
    const float x1 = clamped(box[2], picture->width), y1 = clamped(box[3], picture->height);
    return json_pack("[o,o,o,o]", st_json_float(x0), st_json_float(y0), st_json_float(x1 - x0), st_json_float(y1 - y0));
}

/* mask NULL: none was asked for. */
static json_t *annotation_json(const st_picture_report *picture, const size_t ids[3], const float box[4], float score,
                               const st_rle *mask, uint64_t area)
{
    json_t *json =
        json_pack("{s:I,s:I,s:I,s:o,s:i,s:o}", "id", (json_int_t)ids[0], "image_id", (json_int_t)ids[1], "category_id",
                  (json_int_t)ids[2], "bbox", bbox_json(picture, box), "iscrowd", 0, "score", st_json_float(score));
    if (!json || !mask) return json;
    int failed = json_object_set_new(json, "area", json_integer((json_int_t)area));
    failed |= json_object_set_new(json, "segmentation", st_json_mask(mask));
    if (!failed) return json;
    json_decref(json);
    return NULL;
}

/* One of the one category "object", scored by its predicted IoU. */
static json_t *object_json(const st_picture_report *picture, const st_rle *mask, float iou, uint64_t area,
                           const size_t ids[3])
{
    const st_box_px tight = st_rle_box(mask);
    const float box[4] = { (float)tight.x0, (float)tight.y0, (float)tight.x1, (float)tight.y1 };
    return annotation_json(picture, ids, box, iou, mask, area);
}

static bool add_masks(json_t *annotations, const st_picture_report *picture, size_t image_id)
{
    const st_everything_result *r = picture->masks->result;
    for (size_t i = 0; i < r->n_masks; i++) {
        const st_everything_mask *m = &r->masks[i];
        const size_t ids[3] = { json_array_size(annotations) + 1, image_id, 1 };
        if (json_array_append_new(annotations, object_json(picture, &m->mask, m->iou, m->area, ids)) != 0) return false;
    }
    return true;
}

/* Adds the annotations of one picture; false when out of memory. */
static bool add_annotations(json_t *annotations, const st_picture_report *picture, size_t image_id)
{
    for (size_t k = 0; k < picture->n_prompts; k++) {
        const st_prompt_report *p = &picture->prompts[k];
        for (size_t i = 0; i < p->result->n_instances; i++) {
            const st_instance *it = &p->result->instances[i];
            const size_t ids[3] = { json_array_size(annotations) + 1, image_id, k + 1 };
            if (json_array_append_new(annotations, annotation_json(picture, ids, it->box, it->score,
                                                                   p->boxes_only ? NULL : &it->mask, it->area)) != 0)
                return false;
        }
    }
    for (size_t k = 0; k < picture->n_objects; k++) {
        const st_candidate *best = picture->objects[k].result->candidates;
        const size_t ids[3] = { json_array_size(annotations) + 1, image_id, 1 };
        if (json_array_append_new(annotations, object_json(picture, &best->mask, best->iou, best->area, ids)) != 0)
            return false;
    }
    return !picture->masks || add_masks(annotations, picture, image_id);
}

static bool add_picture(json_t *images, json_t *annotations, json_t *errors, const st_picture_report *p, size_t id)
{
    if (p->error)
        return json_array_append_new(errors, json_pack("{s:o,s:o}", "file_name", st_json_text(p->file), "error",
                                                       st_json_text(p->error))) == 0;
    json_t *image = json_pack("{s:I,s:o,s:I,s:I}", "id", (json_int_t)id, "file_name", st_json_text(p->file), "width",
                              (json_int_t)p->width, "height", (json_int_t)p->height);
    return json_array_append_new(images, image) == 0 && add_annotations(annotations, p, id);
}

static bool add_categories(json_t *categories, const st_report *r)
{
    for (size_t k = 0; r->n_pictures && k < r->pictures[0].n_prompts; k++) {
        json_t *category =
            json_pack("{s:I,s:o}", "id", (json_int_t)(k + 1), "name", st_json_text(r->pictures[0].prompts[k].phrase));
        if (json_array_append_new(categories, category) != 0) return false;
    }
    if (r->n_pictures && (r->pictures[0].n_objects || r->pictures[0].masks))
        return json_array_append_new(categories, json_pack("{s:i,s:s}", "id", 1, "name", "object")) == 0;
    return true;
}

char *st_report_coco(const st_report *r)
{
    json_t *images = json_array(), *categories = json_array(), *annotations = json_array(), *errors = json_array();
    bool ok = add_categories(categories, r);
    for (size_t i = 0; ok && i < r->n_pictures; i++)
        ok = add_picture(images, annotations, errors, &r->pictures[i], i + 1);
    char description[128];
    snprintf(description, sizeof description, "Stencil %s, %s, model %.16s, %u pixels", st_version(), r->model_version,
             r->model_id, r->input_size);
    json_t *doc = json_pack("{s:{s:s},s:o,s:o,s:o}", "info", "description", description, "images", images, "categories",
                            categories, "annotations", annotations);
    if (!ok || !doc || (json_array_size(errors) && json_object_set(doc, "errors", errors) != 0)) {
        json_decref(doc);
        doc = NULL;
    }
    json_decref(errors);
    return st_json_line(doc);
}
