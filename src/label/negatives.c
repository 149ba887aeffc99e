/* negatives.c: how often phrases fire on pictures that hold none of what they ask for (sweep.h). */
#include "label/sweep.h"

#include <math.h>
#include <stdlib.h>
#include "front/fault.h"

const st_label_class *st_label_phrase_at(size_t *phrase, const st_label_job *job, size_t flat)
{
    for (size_t c = 0; c < job->n_classes; c++) {
        if (flat < job->classes[c].n_phrases) {
            *phrase = flat;
            return &job->classes[c];
        }
        flat -= job->classes[c].n_phrases;
    }
    return NULL;
}

st_status st_label_negatives_begin(st_label_negatives *out, const st_label_job *job, const float *thresholds, size_t n,
                                   st_error *err)
{
    *out = (st_label_negatives){ .job = job, .n_thresholds = n };
    for (size_t c = 0; c < job->n_classes; c++) out->n_phrases += job->classes[c].n_phrases;
    out->fired = calloc(out->n_phrases * (n + 1) + 1, sizeof *out->fired);
    out->thresholds = calloc(n + 1, sizeof *out->thresholds);
    if (!out->fired || !out->thresholds) {
        st_label_negatives_free(out);
        return st_fault(err, ST_ERR_NOMEM, "negatives: out of memory");
    }
    for (size_t i = 0; i < n; i++) out->thresholds[i] = thresholds[i];
    return ST_OK;
}

void st_label_negatives_free(st_label_negatives *negatives)
{
    free(negatives->fired);
    free(negatives->thresholds);
    *negatives = (st_label_negatives){ 0 };
}

/* The best score of a phrase within the area bounds; below all thresholds when there is none. */
static float best_of(const st_label_class *cls, size_t phrase, const st_label_picture *p)
{
    st_label_class any = *cls;
    float best = -INFINITY;
    any.threshold = -INFINITY;
    for (size_t i = 0; i < p->n_objects; i++) {
        const st_label_object *o = &p->objects[i];
        if (o->class_id != cls->id || o->phrase != phrase || !(o->score > best)) continue;
        if (st_label_passes(&any, o, p)) best = o->score;
    }
    return best;
}

void st_label_negatives_add(st_label_negatives *negatives, const st_label_picture *picture)
{
    const st_label_job *job = negatives->job;
    if (picture->error) {
        negatives->n_failed++;
        return;
    }
    negatives->n_pictures++;
    uint64_t *fired = negatives->fired;
    for (size_t c = 0; c < job->n_classes; c++)
        for (size_t k = 0; k < job->classes[c].n_phrases; k++, fired += negatives->n_thresholds + 1) {
            const float best = best_of(&job->classes[c], k, picture);
            for (size_t t = 0; t < negatives->n_thresholds; t++) fired[t] += best > negatives->thresholds[t];
            fired[negatives->n_thresholds] += best > job->classes[c].threshold;
        }
}

double st_label_false_rate(const st_label_negatives *negatives, size_t flat, size_t at)
{
    const uint64_t fired = negatives->fired[flat * (negatives->n_thresholds + 1) + at];
    return negatives->n_pictures ? (double)fired / (double)negatives->n_pictures : 0;
}
