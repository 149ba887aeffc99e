/* labels.h: what `stencil label` knows about a job: the classes that are asked for, the pictures, the objects found, and
 * the results store on disk that holds them.
 *
 * A job's folder holds job.json (classes, options, model), manifest.jsonl (one line per picture, sorted), store/ (one
 * JSON file per finished picture), errors.jsonl and sources.json (where the pictures lie, relative to the folder: the
 * only file that may differ between machines). Everything streams: a reader hands out one picture at a time, by name.
 * Everything above a low floor is kept with its score, also what a duplicate rule displaced; thresholds come later.
 */
#ifndef ST_LABEL_LABELS_H
#define ST_LABEL_LABELS_H

#include <stdbool.h>
#include <stencil/stencil.h>

/* ---- classes ---- */

/* One question to the model: a phrase, or examples saved by `stencil concept`. */
typedef struct st_label_phrase {
    char *text;    /* what the model is asked; for examples their own phrase */
    char *concept; /* file of the examples as given, or NULL */
} st_label_phrase;

/* A bound on an object's area. */
typedef struct st_label_area {
    double value;  /* pixels, or with is_share a share of the picture; 0 = no bound */
    bool is_share; /* on the command line: a number below 1 */
} st_label_area;

typedef struct st_label_class {
    uint32_t id;  /* from 1, never reused: stays when classes are added or taken away. COCO's category id. */
    char *name;   /* UTF-8, unique in the job, may hold anything but control characters */
    st_label_phrase *phrases; /* [n_phrases] */
    size_t n_phrases;
    float threshold; /* an export keeps score > threshold; 0.5 unless given */
    st_label_area min_area, max_area;
    bool retired; /* asked for by an earlier run of this folder: its id stays taken, it has no phrases and no objects */
} st_label_class;

typedef struct st_label_classes {
    st_label_class *items; /* [n] by rising id */
    size_t n;
} st_label_classes;

void st_label_classes_free(st_label_classes *classes);
/* The class of an id or name, or NULL; retired ones are found by id only. */
const st_label_class *st_label_class_of_id(const st_label_classes *classes, uint32_t id);
const st_label_class *st_label_class_of_name(const st_label_classes *classes, const char *name);
/* Whether an area lies within the bounds of a class, for a picture of width x height. */
bool st_label_area_fits(const st_label_class *c, uint64_t area, uint32_t width, uint32_t height);

/* ---- what was asked for, beside the classes ---- */

typedef struct st_label_tiling {
    bool on;
    uint32_t size;    /* side of a tile in pixels; 0 = the model's input size */
    uint32_t overlap; /* pixels that neighbours share at least; 0 = a fifth of the side */
    bool whole;       /* also a pass over the whole picture */
} st_label_tiling;

/* How two masks are held against each other: not at all, intersection over union, or over the smaller one. */
typedef enum st_label_measure {
    ST_LABEL_MEASURE_NONE = 0,
    ST_LABEL_MEASURE_IOU = 1,
    ST_LABEL_MEASURE_SMALLER = 2
} st_label_measure;
typedef struct st_label_duplicates {
    st_label_measure measure;
    double within; /* phrases of one class: displaced at this measure or above; 0 = never */
    double across; /* classes; 0 = never */
} st_label_duplicates;

typedef struct st_label_options {
    float floor;          /* objects are stored when score > floor */
    float mask_threshold;
    bool boxes_only;      /* no masks: an object's mask is all zero, its area that of the box cut to the picture */
    bool hf_text_only;
    st_resize resize;
    st_stretch stretch;
    uint64_t max_pixels;
    st_label_tiling tiling;
    st_label_duplicates duplicates;
} st_label_options;
/* floor 0.15, masks at 0.5, no tiles, duplicates within a class at IoU 0.7. */
void st_label_options_init(st_label_options *o);

/* ---- pictures and objects ---- */

typedef struct st_label_object {
    uint32_t class_id;
    uint32_t phrase; /* index in the class */
    float score;
    float box[4];    /* x0, y0, x1, y1 of the model, pixels of the picture as shown, not clamped */
    st_rle mask;     /* of the picture's size; never empty, but all zero with boxes_only */
    uint64_t area;   /* pixels */
    int32_t displaced_by; /* index of the better object of this picture, -1: none */
    uint32_t n_pieces;    /* pieces of tiles it was joined from; 1 = seen in one piece */
} st_label_object;

/* How one phrase did on one picture. */
typedef struct st_label_answer {
    uint32_t class_id, phrase;
    float presence;    /* with tiles: the largest of all passes */
    uint32_t warnings; /* ST_WARN_*; with tiles: all bits of all passes */
} st_label_answer;

typedef struct st_label_picture {
    char *name;  /* path relative to the root, with '/': unique, valid UTF-8 (other bytes stand as %XX), the sort key */
    char *file;  /* where it lies now, any bytes; NULL when the job does not know */
    uint64_t bytes; /* size of the file */
    uint32_t width, height; /* as shown */
    int orientation;        /* EXIF, 1..8; 1 = the file's pixels lie as shown */
    char format[8];         /* "jpeg", "png", ... */
    bool enlarged;   /* smaller than the model's input on both sides */
    uint32_t n_tiles; /* passes over parts of the picture; 0 = none */
    st_label_answer *answers; /* [n_answers] by class, then phrase */
    size_t n_answers;
    st_label_object *objects; /* [n_objects] by class, phrase, falling score, then as the model gave them */
    size_t n_objects;
    char *error; /* set: the picture could not be labelled, and all below `bytes` is zero */
} st_label_picture;

/* Frees what it holds and zeroes it. */
void st_label_picture_free(st_label_picture *p);
void st_label_object_free(st_label_object *o);
/* Takes over what *o holds (which is zeroed) and appends it; on failure *o is as before. */
ST_MUSTCHECK st_status st_label_picture_add(st_label_picture *p, st_label_object *o, st_error *err);
/* Whether an export of this threshold keeps an object: not displaced, score above, area within the class's bounds. A
 * displaced object comes back when what displaced it is itself below its threshold: thresholds [n] run beside
 * classes->items. */
bool st_label_keeps(const st_label_picture *p, size_t object, const st_label_classes *classes, const float *thresholds);

/* ---- the job on disk ---- */

typedef struct st_label_job {
    char *stencil;   /* version that made it */
    char *model_id, *model_version, *model_precision;
    uint32_t input_size;      /* the model's */
    st_label_classes classes;
    st_label_options options;
    uint32_t shard, n_shards; /* 1-based I of N; 0 of 0: the whole job */
    uint64_t n_pictures;      /* in this folder's manifest */
} st_label_job;
void st_label_job_free(st_label_job *job);

/* Reads the store of a job's folder, in order of names, for any number of readers at once. Pictures of the manifest
 * that are not done yet are left out; those that failed are handed out with `error` set. */
typedef struct st_label_reader st_label_reader;
/* images: folder to look for pictures in, instead of where they lay when they were labelled; or NULL. */
ST_MUSTCHECK st_status st_label_reader_open(st_label_reader **out, const char *folder, const char *images,
                                            st_error *err);
const st_label_job *st_label_reader_job(const st_label_reader *r); /* belongs to the reader */
/* *got false at the end. *out is overwritten, not freed: it is the caller's. A broken file of the store is
 * ST_ERR_FORMAT. */
ST_MUSTCHECK st_status st_label_reader_next(st_label_reader *r, st_label_picture *out, bool *got, st_error *err);
ST_MUSTCHECK st_status st_label_reader_rewind(st_label_reader *r, st_error *err); /* from the first picture again */
uint64_t st_label_reader_missing(const st_label_reader *r); /* pictures left out so far since the last rewind */
void st_label_reader_close(st_label_reader *r); /* NULL is fine */

#endif
