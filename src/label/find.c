/* find.c: one picture, every phrase. The picture is encoded once whatever the number of phrases; a phrase's own encoding
 * is kept by the session from picture to picture.
 */
#include "label/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

/* ---- asking ---- */

static st_status ask_phrase(const st_label_engine *e, const st_picture *features, const st_label_class *cls,
                            uint32_t phrase, size_t flat, st_label_answer_fn *answer, void *user, st_error *err)
{
    const st_label_options *o = &e->job->options;
    const st_concept *examples = e->concepts ? e->concepts[flat] : NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options how = ST_SEGMENT_OPTIONS_INIT;
    st_result *result = NULL;
    if (examples) {
        prompt.concepts = &examples;
        prompt.n_concepts = 1;
    } else prompt.phrase = cls->phrases[phrase];
    how.threshold = o->floor;
    how.mask_threshold = o->mask_threshold;
    how.hf_text_only = o->hf_text_only;
    how.want_masks = !o->boxes_only;
    st_status status = st_segment(&result, e->session, features, &prompt, &how, err);
    if (status == ST_OK) status = answer(user, cls, phrase, flat, result, err);
    st_result_free(result);
    return status;
}

st_status st_label_ask(const st_label_engine *e, const st_image *image, st_label_answer_fn *answer, void *user,
                       st_error *err)
{
    st_picture *features = NULL;
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.resize = e->job->options.resize;
    st_status status = st_picture_encode(&features, e->session, image, &how, err);
    size_t flat = 0;
    for (size_t k = 0; status == ST_OK && k < e->job->n_classes; k++) {
        const st_label_class *cls = &e->job->classes[k];
        for (uint32_t i = 0; status == ST_OK && i < cls->n_phrases; i++, flat++)
            status = ask_phrase(e, features, cls, i, flat, answer, user, err);
    }
    st_picture_free(features);
    return status;
}

/* ---- a whole picture ---- */

/* Pixels of the box inside the picture: what stands for an area where masks were not asked for. */
static uint64_t box_area(const float box[4], uint32_t width, uint32_t height)
{
    const double x0 = fmax(0.0, floor((double)box[0])), y0 = fmax(0.0, floor((double)box[1]));
    const double x1 = fmin(width, ceil((double)box[2])), y1 = fmin(height, ceil((double)box[3]));
    return x1 > x0 && y1 > y0 ? (uint64_t)((x1 - x0) * (y1 - y0)) : 0;
}

typedef struct finding {
    st_label_picture found; /* only answers and objects */
    const st_label_options *options;
} finding;

static st_status keep_object(finding *f, const st_label_class *cls, uint32_t phrase, const st_result *result,
                             st_instance *in, st_error *err)
{
    st_label_object o = { .class_id = cls->id, .phrase = phrase, .score = in->score, .mask = in->mask,
                          .area = in->area, .displaced_by = -1, .n_pieces = 1 };
    memcpy(o.box, in->box, sizeof o.box);
    if (f->options->boxes_only) o.area = box_area(o.box, result->width, result->height);
    if (o.area == 0) return ST_OK; /* an empty mask is no object */
    const st_status status = st_label_picture_add(&f->found, &o, err);
    if (status == ST_OK) in->mask = (st_rle){ 0 };
    return status;
}

static st_status keep_answer(void *user, const st_label_class *cls, uint32_t phrase, size_t flat, st_result *result,
                             st_error *err)
{
    finding *f = user;
    (void)flat;
    st_label_answer *answers = reallocarray(f->found.answers, f->found.n_answers + 1, sizeof *answers);
    if (!answers) return st_fault(err, ST_ERR_NOMEM, "out of memory for the answers of a picture");
    f->found.answers = answers;
    answers[f->found.n_answers++] = (st_label_answer){ cls->id, phrase, result->presence,
                                                       result->warnings & ~(uint32_t)ST_WARN_NOTHING_FOUND };
    for (size_t i = 0; i < result->n_instances; i++) {
        const st_status status = keep_object(f, cls, phrase, result, &result->instances[i], err);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

st_status st_label_find(st_label_picture *picture, const st_label_engine *engine, const st_bitmap *pixels,
                        st_error *err)
{
    finding f = { .options = &engine->job->options };
    const st_image image = { pixels->rgb, pixels->width, pixels->height, (size_t)pixels->width * 3, ST_PIXEL_RGB8 };
    const st_status status = st_label_ask(engine, &image, keep_answer, &f, err);
    if (status != ST_OK) {
        st_label_picture_free(&f.found);
        return status;
    }
    picture->answers = f.found.answers;
    picture->n_answers = f.found.n_answers;
    picture->objects = f.found.objects;
    picture->n_objects = f.found.n_objects;
    return ST_OK;
}
