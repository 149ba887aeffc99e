/* labels.c: classes, pictures and objects in memory (see labels.h). */
#include "label/labels.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

/* ---- classes ---- */

static void free_class(st_label_class *c)
{
    for (size_t i = 0; i < c->n_phrases; i++) {
        free(c->phrases[i].text);
        free(c->phrases[i].concept);
    }
    free(c->phrases);
    free(c->name);
}

void st_label_classes_free(st_label_classes *classes)
{
    for (size_t i = 0; i < classes->n; i++) free_class(&classes->items[i]);
    free(classes->items);
    *classes = (st_label_classes){ 0 };
}

const st_label_class *st_label_class_of_id(const st_label_classes *classes, uint32_t id)
{
    size_t low = 0, high = classes->n; /* items rise by id */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (classes->items[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low < classes->n && classes->items[low].id == id ? &classes->items[low] : NULL;
}

const st_label_class *st_label_class_of_name(const st_label_classes *classes, const char *name)
{
    for (size_t i = 0; i < classes->n; i++)
        if (!classes->items[i].retired && strcmp(classes->items[i].name, name) == 0) return &classes->items[i];
    return NULL;
}

static double bound(const st_label_area *area, uint32_t width, uint32_t height)
{
    return area->is_share ? area->value * (double)width * (double)height : area->value;
}

bool st_label_area_fits(const st_label_class *c, uint64_t area, uint32_t width, uint32_t height)
{
    const double low = bound(&c->min_area, width, height), high = bound(&c->max_area, width, height);
    return (double)area >= low && (c->max_area.value == 0 || (double)area <= high);
}

void st_label_options_init(st_label_options *o)
{
    *o = (st_label_options){ .floor = 0.15f, .mask_threshold = 0.5f, .resize = ST_RESIZE_GPU,
                             .stretch = ST_STRETCH_AUTO, .max_pixels = 300000000u };
    o->tiling.whole = true;
    o->duplicates = (st_label_duplicates){ ST_LABEL_MEASURE_IOU, 0.7, 0 };
}

/* ---- pictures ---- */

void st_label_object_free(st_label_object *o)
{
    st_rle_free(&o->mask);
    *o = (st_label_object){ 0 };
}

void st_label_picture_free(st_label_picture *p)
{
    for (size_t i = 0; i < p->n_objects; i++) st_label_object_free(&p->objects[i]);
    free(p->objects);
    free(p->answers);
    free(p->name);
    free(p->file);
    free(p->error);
    *p = (st_label_picture){ 0 };
}

st_status st_label_picture_add(st_label_picture *p, st_label_object *o, st_error *err)
{
    const size_t n = p->n_objects;
    if ((n & (n - 1)) == 0) { /* room doubles at powers of two, so that none need be kept */
        st_label_object *objects = reallocarray(p->objects, n ? 2 * n : 1, sizeof *objects);
        if (!objects) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name ? p->name : "picture");
        p->objects = objects;
    }
    p->objects[p->n_objects++] = *o;
    *o = (st_label_object){ 0 };
    return ST_OK;
}

static bool passes(const st_label_picture *p, const st_label_object *o, const st_label_classes *classes,
                   const float *thresholds)
{
    const st_label_class *c = st_label_class_of_id(classes, o->class_id);
    return c && o->score > thresholds[c - classes->items] && st_label_area_fits(c, o->area, p->width, p->height);
}

/* What displaced an object may have been displaced itself; the chain ends because the better one never points back
 * (reading a store checks it). */
bool st_label_keeps(const st_label_picture *p, size_t object, const st_label_classes *classes, const float *thresholds)
{
    if (!passes(p, &p->objects[object], classes, thresholds)) return false;
    size_t steps = 0;
    for (int32_t by = p->objects[object].displaced_by; by >= 0 && steps < p->n_objects; steps++) {
        if (passes(p, &p->objects[by], classes, thresholds)) return false;
        by = p->objects[by].displaced_by;
    }
    return true;
}

void st_label_job_free(st_label_job *job)
{
    free(job->stencil);
    free(job->model_id);
    free(job->model_version);
    free(job->model_precision);
    st_label_classes_free(&job->classes);
    *job = (st_label_job){ 0 };
}
