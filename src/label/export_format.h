/* export_format.h: what a format is to the exporter: a row of functions that take one picture after another. Formats keep
 * nothing of a picture but what their own end needs. */
#ifndef ST_LABEL_EXPORT_FORMAT_H
#define ST_LABEL_EXPORT_FORMAT_H

#include "label/export.h"
#include "label/export_rings.h"

/* Where a format writes. */
typedef struct st_label_sink {
    const st_label_export_options *options;
    const st_label_job *job;
    const st_label_class *classes; /* [n_classes] by rising id */
    size_t n_classes;
    const char *folder;
    st_label_losses *losses;
    void *state; /* [state_size] the format's own, zero at the start */
} st_label_sink;

/* A picture, and which of its objects go out. */
typedef struct st_label_shown {
    const st_label_picture *picture;
    const char *name;   /* the picture's, as UTF-8 */
    const size_t *kept; /* [n] indices of objects, rising */
    size_t n;
} st_label_shown;

typedef struct st_label_format {
    const char *name, *summary;
    size_t state_size;
    bool needs_masks; /* has no way to hold a box */
    st_status (*begin)(st_label_sink *s, st_error *err);
    st_status (*picture)(st_label_sink *s, const st_label_shown *shown, st_error *err);
    st_status (*end)(st_label_sink *s, st_error *err);
    void (*drop)(st_label_sink *s); /* frees the state, whatever happened; may be NULL */
} st_label_format;

extern const st_label_format st_label_coco, st_label_yolo, st_label_labelme, st_label_cvat, st_label_studio,
    st_label_voc, st_label_masks, st_label_jsonl;

static inline const st_label_object *st_label_shown_object(const st_label_shown *s, size_t i)
{
    return &s->picture->objects[s->kept[i]];
}

/* Whether an object goes out as its box. */
static inline bool st_label_as_box(const st_label_sink *s, const st_label_object *o)
{
    return s->options->boxes_only || !o->mask.counts;
}

/* left, top, right, bottom in hundredths of a pixel, right and bottom exclusive: tight around the mask, or the model's
 * box cut to the picture. False, and counted, when nothing is left of it. */
bool st_label_tight_box(int64_t box[4], const st_label_sink *s, const st_label_shown *shown, const st_label_object *o);

/* Rings of an object as the options want them, holes counted. */
ST_MUSTCHECK st_status st_label_object_rings(st_label_rings *out, const st_label_sink *s, const st_label_object *o,
                                             st_label_points points, st_error *err);

/* The class of an object; the exporter has checked that there is one. */
const st_label_class *st_label_class_shown(const st_label_sink *s, const st_label_object *o);

/* "train", "val" or "test": from the name and the seed alone, so that neither a new picture nor a new run moves it. */
typedef enum st_label_split { ST_LABEL_TRAIN = 0, ST_LABEL_VAL = 1, ST_LABEL_TEST = 2 } st_label_split;
st_label_split st_label_split_of(const st_label_export_options *o, const char *name);
const char *st_label_split_name(st_label_split split);

#endif
