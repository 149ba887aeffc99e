/* labels.c: jobs, classes, pictures and objects in memory, and which objects go out (see labels.h). */
#include "label/labels.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

/* ---- classes ---- */

static void free_texts(char **texts, size_t n)
{
    for (size_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
}

void st_label_classes_free(st_label_class *classes, size_t n)
{
    for (size_t i = 0; classes && i < n; i++) {
        free_texts(classes[i].phrases, classes[i].n_phrases);
        free_texts(classes[i].concepts, classes[i].n_phrases);
        free_texts(classes[i].digests, classes[i].n_phrases);
        free(classes[i].name);
    }
    free(classes);
}

static char **copy_texts(char *const *texts, size_t n)
{
    char **copy = calloc(n ? n : 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        if (!texts[i] || (copy[i] = strdup(texts[i]))) continue;
        free_texts(copy, n);
        return NULL;
    }
    return copy;
}

static bool copy_class(st_label_class *out, const st_label_class *from)
{
    *out = *from;
    out->name = strdup(from->name);
    out->phrases = copy_texts(from->phrases, from->n_phrases);
    out->concepts = copy_texts(from->concepts, from->n_phrases);
    out->digests = copy_texts(from->digests, from->n_phrases);
    return out->name && out->phrases && out->concepts && out->digests;
}

st_label_class *st_label_classes_copy(const st_label_class *classes, size_t n)
{
    st_label_class *copy = calloc(n ? n : 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        if (copy_class(&copy[i], &classes[i])) continue;
        st_label_classes_free(copy, i + 1);
        return NULL;
    }
    return copy;
}

static const st_label_class *by_id(const st_label_class *classes, size_t n, uint32_t id)
{
    size_t low = 0, high = n; /* they rise by id */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (classes[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low < n && classes[low].id == id ? &classes[low] : NULL;
}

const st_label_class *st_label_class_by_id(const st_label_job *job, uint32_t id)
{
    return by_id(job->classes, job->n_classes, id);
}

const st_label_class *st_label_class_by_name(const st_label_job *job, const char *name)
{
    for (size_t i = 0; i < job->n_classes; i++)
        if (strcmp(job->classes[i].name, name) == 0) return &job->classes[i];
    return NULL;
}

/* ---- the job ---- */

void st_label_options_default(st_label_options *options)
{
    const st_bitmap_options bitmap = ST_BITMAP_OPTIONS_INIT;
    *options = (st_label_options){ .floor = 0.15f, .mask_threshold = 0.5f, .resize = ST_RESIZE_GPU, .bitmap = bitmap };
    options->tiling.whole = true;
    options->duplicates = (st_label_duplicates){ ST_LABEL_BY_IOU, 0.7f, false };
}

void st_label_job_free(st_label_job *job)
{
    free(job->stencil);
    free(job->model_id);
    free(job->model_version);
    free(job->precision);
    st_label_classes_free(job->classes, job->n_classes);
    st_label_classes_free(job->retired, job->n_retired);
    free_texts(job->names, job->n_names);
    *job = (st_label_job){ 0 };
}

/* ---- pictures ---- */

void st_label_picture_free(st_label_picture *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_objects; i++) st_rle_free(&p->objects[i].mask);
    free(p->objects);
    free(p->answers);
    free(p->name);
    free(p->file);
    free(p->error);
    *p = (st_label_picture){ 0 };
}

st_status st_label_picture_add(st_label_picture *p, st_label_object *object, st_error *err)
{
    const size_t n = p->n_objects;
    if ((n & (n - 1)) == 0) { /* room doubles at powers of two, so that it need not be kept */
        st_label_object *objects = reallocarray(p->objects, n ? 2 * n : 1, sizeof *objects);
        if (!objects) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name ? p->name : "picture");
        p->objects = objects;
    }
    p->objects[p->n_objects++] = *object;
    *object = (st_label_object){ 0 };
    return ST_OK;
}

/* ---- choosing what goes out ---- */

static double bound(const st_label_area *area, const st_label_picture *p)
{
    return area->is_share ? area->value * (double)p->width * (double)p->height : area->value;
}

bool st_label_passes(const st_label_class *cls, const st_label_object *object, const st_label_picture *picture)
{
    if (!(object->score > cls->threshold)) return false;
    if ((double)object->area < bound(&cls->min_area, picture)) return false;
    return !(cls->max_area.value > 0 && (double)object->area > bound(&cls->max_area, picture));
}

/* Whether one that displaced the object, directly or through others, passes itself. Chains end: reading a store and
 * making one see to it that nothing is displaced by itself; the count of steps guards all the same. `kept` may already
 * have lost some that pass, but whatever they lost to passes, too, and lies further up the same chain. */
static bool is_displaced(const bool *kept, const st_label_picture *p, size_t object)
{
    size_t steps = 0;
    for (int32_t by = p->objects[object].displaced_by; by >= 0 && steps < p->n_objects; steps++) {
        if (kept[by]) return true;
        by = p->objects[by].displaced_by;
    }
    return false;
}

size_t st_label_select(bool *kept, const st_label_class *classes, size_t n_classes, const st_label_picture *picture)
{
    size_t n = 0;
    for (size_t i = 0; i < picture->n_objects; i++) {
        const st_label_class *cls = by_id(classes, n_classes, picture->objects[i].class_id);
        kept[i] = cls && st_label_passes(cls, &picture->objects[i], picture);
    }
    for (size_t i = 0; i < picture->n_objects; i++) {
        if (kept[i] && is_displaced(kept, picture, i)) kept[i] = false;
        n += kept[i];
    }
    return n;
}
