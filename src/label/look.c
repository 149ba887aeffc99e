/* look.c: one picture, every phrase (see look.h). */
#include "label/look.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

/* Pixels of the box inside the picture: what stands for an area where masks were not asked for. */
static uint64_t box_area(const float box[4], uint32_t width, uint32_t height)
{
    const double x0 = fmax(0.0, floor((double)box[0])), y0 = fmax(0.0, floor((double)box[1]));
    const double x1 = fmin(width, ceil((double)box[2])), y1 = fmin(height, ceil((double)box[3]));
    return x1 > x0 && y1 > y0 ? (uint64_t)((x1 - x0) * (y1 - y0)) : 0;
}

/* Moves what one phrase found into the picture. */
static st_status take(st_label_picture *p, const st_label_asker *a, const st_label_class *c, uint32_t phrase,
                      st_result *result, st_error *err)
{
    for (size_t i = 0; i < result->n_instances; i++) {
        st_instance *in = &result->instances[i];
        st_label_object o = { .class_id = c->id, .phrase = phrase, .score = in->score, .displaced_by = -1,
                              .n_pieces = 1, .mask = in->mask, .area = in->area };
        memcpy(o.box, in->box, sizeof o.box);
        if (a->options->boxes_only) o.area = box_area(o.box, result->width, result->height);
        if (o.area == 0) continue;
        const st_status status = st_label_picture_add(p, &o, err);
        if (status != ST_OK) return status;
        in->mask = (st_rle){ 0 };
    }
    return ST_OK;
}

static st_status add_answer(st_label_picture *p, const st_label_class *c, uint32_t phrase, const st_result *result,
                            st_error *err)
{
    st_label_answer *answers = reallocarray(p->answers, p->n_answers + 1, sizeof *answers);
    if (!answers) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    p->answers = answers;
    answers[p->n_answers++] = (st_label_answer){ c->id, phrase, result->presence,
                                                 result->warnings & ~(uint32_t)ST_WARN_NOTHING_FOUND };
    return ST_OK;
}

static st_status ask_phrase(st_label_picture *p, const st_label_asker *a, const st_picture *features,
                            const st_label_class *c, uint32_t phrase, const st_concept *concept_, st_error *err)
{
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options how = ST_SEGMENT_OPTIONS_INIT;
    st_result *result = NULL;
    if (concept_) {
        prompt.concepts = &concept_;
        prompt.n_concepts = 1;
    } else prompt.phrase = c->phrases[phrase].text;
    how.threshold = a->options->floor;
    how.mask_threshold = a->options->mask_threshold;
    how.hf_text_only = a->options->hf_text_only;
    how.want_masks = !a->options->boxes_only;
    st_status status = st_segment(&result, a->session, features, &prompt, &how, err);
    if (status == ST_OK) status = add_answer(p, c, phrase, result, err);
    if (status == ST_OK) status = take(p, a, c, phrase, result, err);
    st_result_free(result);
    return status;
}

st_status st_label_ask(st_label_picture *p, const st_label_asker *a, const st_image *image, st_error *err)
{
    st_picture *features = NULL;
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.resize = a->options->resize;
    st_status status = st_picture_encode(&features, a->session, image, &how, err);
    size_t at = 0; /* in asker->concepts */
    for (size_t k = 0; status == ST_OK && k < a->classes->n; k++) {
        const st_label_class *c = &a->classes->items[k];
        for (uint32_t i = 0; status == ST_OK && i < c->n_phrases; i++, at++)
            status = ask_phrase(p, a, features, c, i, a->concepts ? a->concepts[at] : NULL, err);
    }
    st_picture_free(features);
    return status;
}

/* Back to what a picture was before it was looked at. */
static void forget(st_label_picture *p)
{
    st_label_picture kept = { .name = p->name, .file = p->file, .bytes = p->bytes };
    p->name = p->file = NULL;
    st_label_picture_free(p);
    *p = kept;
}

st_status st_label_look(st_label_picture *p, const st_label_asker *a, const st_bitmap *bitmap, st_error *err)
{
    const st_image image = { bitmap->rgb, bitmap->width, bitmap->height, (size_t)bitmap->width * 3, ST_PIXEL_RGB8 };
    p->width = bitmap->width;
    p->height = bitmap->height;
    p->orientation = bitmap->orientation;
    memcpy(p->format, bitmap->format, sizeof p->format);
    p->enlarged = bitmap->width < a->input_size && bitmap->height < a->input_size;
    const st_status status = st_label_ask(p, a, &image, err);
    if (status != ST_OK) forget(p);
    return status;
}
