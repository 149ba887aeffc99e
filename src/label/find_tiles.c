/* find_tiles.c: one picture, every phrase, in tiles (tiles.h). A tile is a window into the picture's pixels, encoded
 * once whatever the number of phrases; only runs are kept of what is found in it.
 */
#include "label/tiles.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

typedef struct search {
    const st_label_engine *engine;
    st_label_layout layout;
    st_label_pieces pieces; /* a piece's phrase counts over all classes, as answers do */
    st_label_picture found; /* only answers and objects */
    uint32_t view;
} search;

static st_status take_answer(void *user, const st_label_class *cls, uint32_t phrase, size_t flat, st_result *result,
                             st_error *err)
{
    search *s = user;
    if (flat == s->found.n_answers) {
        st_label_answer *grown = reallocarray(s->found.answers, flat + 1, sizeof *grown);
        if (!grown) return st_fault(err, ST_ERR_NOMEM, "out of memory for the answers of a picture");
        grown[flat] = (st_label_answer){ cls->id, phrase, result->presence, 0 };
        s->found.answers = grown;
        s->found.n_answers++;
    }
    st_label_answer *a = &s->found.answers[flat];
    if (result->presence > a->presence) a->presence = result->presence;
    a->warnings |= result->warnings & ~(uint32_t)ST_WARN_NOTHING_FOUND;
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < result->n_instances; i++)
        status = st_label_pieces_add(&s->pieces, &s->layout, s->view, (uint32_t)flat, &result->instances[i], err);
    return status;
}

static st_status look(search *s, const st_bitmap *pixels, st_error *err)
{
    st_status status = ST_OK;
    const size_t stride = (size_t)pixels->width * 3;
    for (s->view = 0; status == ST_OK && s->view < s->layout.n_views; s->view++) {
        const st_box_px *v = &s->layout.views[s->view];
        const st_image image = { pixels->rgb + v->y0 * stride + (size_t)v->x0 * 3, v->x1 - v->x0, v->y1 - v->y0, stride,
                                 ST_PIXEL_RGB8 };
        status = st_label_ask(s->engine, &image, take_answer, s, err);
    }
    return status;
}

/* Joined pieces by class, phrase and falling score are the objects. */
static st_status keep(search *s, st_error *err)
{
    const bool boxes = s->engine->job->options.boxes_only;
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < s->pieces.n; i++) {
        st_label_piece *p = &s->pieces.items[i];
        const st_label_answer *a = &s->found.answers[p->phrase];
        st_label_object o = { .class_id = a->class_id, .phrase = a->phrase, .score = p->score, .area = p->area,
                              .displaced_by = -1, .n_pieces = p->n_pieces };
        const float tight[4] = { (float)p->tight.x0, (float)p->tight.y0, (float)p->tight.x1, (float)p->tight.y1 };
        memcpy(o.box, p->n_pieces > 1 && !boxes ? tight : p->box, sizeof o.box);
        if (!boxes) o.mask = p->mask;
        status = st_label_picture_add(&s->found, &o, err);
        if (status == ST_OK && !boxes) p->mask = (st_rle){ 0 };
    }
    return status;
}

st_status st_label_find_tiles(st_label_picture *picture, const st_label_engine *engine, const st_bitmap *pixels,
                              st_error *err)
{
    search s = { .engine = engine };
    st_status status = st_label_layout_make(&s.layout, pixels->width, pixels->height, &engine->job->options.tiling,
                                            engine->job->model_size, err);
    if (status == ST_OK && s.layout.n_views == 1) {
        st_label_layout_free(&s.layout);
        return st_label_find(picture, engine, pixels, err);
    }
    if (status == ST_OK) status = look(&s, pixels, err);
    if (status == ST_OK) status = st_label_join(&s.pieces, &s.layout, NULL, err);
    if (status == ST_OK) status = keep(&s, err);
    if (status == ST_OK) {
        picture->answers = s.found.answers;
        picture->n_answers = s.found.n_answers;
        picture->objects = s.found.objects;
        picture->n_objects = s.found.n_objects;
        s.found = (st_label_picture){ 0 };
    }
    st_label_picture_free(&s.found);
    st_label_pieces_free(&s.pieces);
    st_label_layout_free(&s.layout);
    return status;
}
