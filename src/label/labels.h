/* labels.h: what `stencil label` knows of a job, its classes, its pictures and the objects in them, and how the results
 * store is read. Formats, sheets, the sweep and duplicates are written against this header.
 *
 * A job of 40,000 pictures is never in memory: names are, pictures come one at a time, in bytewise order of their names.
 * Nothing here holds a time, a host's name or an absolute path, but for st_label_picture.file, which is not stored.
 *
 * The output folder:
 *   job.json       options, classes with their ids, model, version, and the names of the pictures in order
 *   store/xx/...   one file per picture, complete or absent: what was found, or why the picture could not be read
 *   errors.jsonl   one line per picture that could not be read, in order
 *   root.json      where the pictures lie, seen from this folder; the only file that is about this machine
 *   .lock          empty; a running process holds it by a lock that dies with the process
 */
#ifndef ST_LABEL_LABELS_H
#define ST_LABEL_LABELS_H

#include <stdbool.h>
#include <stdio.h>
#include <stencil/stencil.h>

/* ---- classes ---- */

/* A bound on the area of an object's mask. Below 1 in a command line or file: a share of the picture; from 1: pixels. */
typedef struct st_label_area {
    double value; /* 0: no bound */
    bool is_share;
} st_label_area;

/* One kind of thing to label. Phrases are asked one by one; every answer is of this class. Threshold and area bounds
 * choose what is exported; they change nothing in the store. */
typedef struct st_label_class {
    uint32_t id; /* from 1; stays with the name when classes are added, moved or dropped */
    char *name;
    char **phrases; /* [n_phrases] UTF-8; st_label_object.phrase counts these */
    char **concepts; /* [n_phrases] a file of examples that is asked for in place of the phrase, or NULL */
    char **digests;  /* [n_phrases] SHA-256 of that file, or NULL */
    size_t n_phrases;
    float threshold;                  /* export what scores more; default 0.5 */
    st_label_area min_area, max_area; /* default none */
} st_label_class;

/* ---- options that change results ---- */

/* Overlapping crops at the model's own size (tiles.h). */
typedef struct st_label_tiling {
    bool on;
    uint32_t size;    /* side of a crop in pixels; 0 = the model's input size */
    uint32_t overlap; /* pixels shared by neighbours; 0 = a fifth of the size */
    bool whole;       /* also look at the picture as a whole */
} st_label_tiling;

/* When two objects of one picture are one and the same (duplicates.h). */
typedef enum st_label_measure {
    ST_LABEL_DUPLICATES_OFF = 0,
    ST_LABEL_BY_IOU = 1,    /* intersection over union */
    ST_LABEL_BY_SMALLER = 2 /* intersection over the smaller one */
} st_label_measure;
typedef struct st_label_duplicates {
    st_label_measure measure;
    float threshold;     /* displaced when more is shared */
    bool across_classes; /* also between objects of different classes */
} st_label_duplicates;

typedef struct st_label_options {
    float floor;          /* objects that score more are stored; default 0.15 */
    float mask_threshold; /* as st_segment_options */
    bool hf_text_only;    /* as st_segment_options */
    bool boxes_only;      /* no masks: st_label_object.mask is all zero, the area that of the box in the picture */
    st_resize resize;
    st_bitmap_options bitmap;
    st_label_tiling tiling;
    st_label_duplicates duplicates;
} st_label_options;
void st_label_options_default(st_label_options *options);

/* ---- the job ---- */

typedef struct st_label_job {
    char *stencil;   /* version that wrote the job */
    char *model_id;  /* st_model_info.id */
    char *model_version; /* st_model_info.version */
    char *precision; /* st_model_info.precision */
    uint32_t model_size; /* st_model_info.input_size: smaller pictures were enlarged */
    st_label_options options;
    st_label_class *classes; /* [n_classes] by rising id; ids may have gaps */
    size_t n_classes;
    uint32_t shard, n_shards; /* this part holds shard `shard` (from 1) of n_shards; 1 of 1: everything */
    char **names;             /* [n_names] pictures of the job, by rising bytes; some may not be done yet */
    size_t n_names;
    st_label_class *retired; /* [n_retired] classes that an earlier run had: their ids stay taken; without phrases */
    size_t n_retired;
    uint64_t n_all;     /* pictures of all shards together */
    char all_sha256[65]; /* of all their names, so that shards can tell that they mean the same pictures */
    char recipe[65];    /* SHA-256 of all that decides what is in the store */
} st_label_job;
void st_label_job_free(st_label_job *job); /* frees what it owns and zeroes it */

/* NULL when no class has the id or the name. */
const st_label_class *st_label_class_by_id(const st_label_job *job, uint32_t id);
const st_label_class *st_label_class_by_name(const st_label_job *job, const char *name);

/* ---- a picture of the store ---- */

/* An object found. Everything above the floor is kept, also what a duplicate rule displaced. In order of class id,
 * phrase, falling score. */
typedef struct st_label_object {
    uint32_t class_id;
    uint32_t phrase; /* index into the class's phrases */
    float score;
    float box[4]; /* the model's own: x0, y0, x1, y1 in pixels of the picture as shown; joined pieces: of the mask */
    uint64_t area; /* pixels of the mask; with boxes_only of the box */
    st_rle mask;   /* width x height of the picture; never empty, but all zero in a job with boxes_only */
    int32_t displaced_by; /* index of the object of this picture that stands for it, too; -1: none */
    uint32_t n_pieces;    /* pieces of tiles that it was joined from; 1: it is whole */
} st_label_object;

/* What one phrase said of the picture. */
typedef struct st_label_answer {
    uint32_t class_id, phrase;
    float presence;    /* as st_result; tiles: the largest */
    uint32_t warnings; /* ST_WARN_*, but for NOTHING_FOUND */
} st_label_answer;

/* Strings and arrays are owned: st_label_picture_free. */
typedef struct st_label_picture {
    char *name; /* path from the job's root with '/', unique, the sort key; any bytes but NUL (st_label_text for JSON) */
    char *file; /* where it lies on this machine; NULL where that is not known */
    char *error; /* why it could not be read; NULL = fine. If set, all below is zero. */
    uint32_t width, height; /* as shown: EXIF orientation applied */
    int orientation;        /* that was applied, 1..8; 1 = none */
    char format[8];         /* "jpeg", "png", ... */
    bool damaged;           /* broken data was drawn over */
    bool stretched;         /* 16-bit or float samples were mapped by percentiles */
    float low, high;        /* sample values that became 0 and 255 */
    bool enlarged;          /* both sides are below the model's input size */
    uint64_t n_bytes;       /* of the file */
    char sha256[65];        /* of the file */
    st_label_answer *answers; /* [n_answers] by class id, then phrase */
    size_t n_answers;
    st_label_object *objects; /* [n_objects] */
    size_t n_objects;
} st_label_picture;
void st_label_picture_free(st_label_picture *picture); /* frees what it owns and zeroes it; NULL is fine */

/* ---- choosing what goes out ---- */

/* Whether the object passes the class's threshold and area bounds, whatever duplicates say. */
bool st_label_passes(const st_label_class *cls, const st_label_object *object, const st_label_picture *picture);
/* kept[n_objects]: passes, and is not displaced by one that is kept. (When the better one falls to a threshold of its
 * class, the displaced one stands again.) Classes come from `job`; a caller that wants other thresholds changes a copy of
 * them: st_label_classes_copy. Returns how many are kept. */
size_t st_label_select(bool *kept, const st_label_class *classes, size_t n_classes, const st_label_picture *picture);
/* A copy to change; NULL when out of memory. */
st_label_class *st_label_classes_copy(const st_label_class *classes, size_t n);
void st_label_classes_free(st_label_class *classes, size_t n); /* NULL is fine */

/* ---- reading a store ---- */

typedef struct st_label_store st_label_store;
/* Opens the output folder of a job for reading. On failure *out is NULL. */
ST_MUSTCHECK st_status st_label_store_open(st_label_store **out, const char *folder, st_error *err);
void st_label_store_close(st_label_store *store); /* NULL is fine */
const st_label_job *st_label_store_job(const st_label_store *store);
/* The next picture that is done, in order of names; also those that could not be read (`error` is set). Overwrites
 * *picture without freeing it. *more is false, and *picture zeroed, behind the last one. Pictures that are not done, or
 * were done with other options, are passed over. */
ST_MUSTCHECK st_status st_label_store_next(st_label_store *store, st_label_picture *picture, bool *more, st_error *err);
void st_label_store_rewind(st_label_store *store);
/* How many of the job's pictures were passed over since the last rewind. */
size_t st_label_store_missing(const st_label_store *store);

/* Holds the output folder for this process, so that two do not write to it: *out is to be given to st_label_unlock. Fails
 * with ST_ERR_IO and a sentence when another process holds it. The hold ends with the process, however that ends. */
ST_MUSTCHECK st_status st_label_lock(int *out, const char *folder, st_error *err);
void st_label_unlock(int lock);

/* ---- names and files ---- */

/* A picture's name as UTF-8 for JSON, XML and text: as it is when it is UTF-8, else with each byte that is not as %XX.
 * From malloc; NULL when out of memory. */
char *st_label_text(const char *name);
/* SHA-256 in 64 small hex digits. */
void st_label_sha256(char out[65], const void *bytes, size_t n);

/* ---- one picture ---- */

/* What a run needs for every picture. */
typedef struct st_label_engine {
    st_session *session;
    const st_label_job *job;
    st_concept *const *concepts; /* one per phrase of all classes in order, or NULL where a phrase is asked for; or NULL */
} st_label_engine;

/* Called with the answer to each phrase in order of class and phrase; `flat` counts phrases over all classes. */
typedef st_status st_label_answer_fn(void *user, const st_label_class *cls, uint32_t phrase, size_t flat,
                                     st_result *result, st_error *err);
/* Asks every phrase on one encoding of `image`, a picture or a part of one. A failing answer ends it. */
ST_MUSTCHECK st_status st_label_ask(const st_label_engine *engine, const st_image *image, st_label_answer_fn *answer,
                                    void *user, st_error *err);
/* Takes over what *object holds (it is zeroed) and appends it; on failure *object is as before. */
ST_MUSTCHECK st_status st_label_picture_add(st_label_picture *picture, st_label_object *object, st_error *err);

/* Fills picture->answers and picture->objects (no duplicates marked) from the pixels: every phrase of every class on one
 * encoding of the whole picture. tiles.h has the same for crops. On failure the picture is as it was. */
ST_MUSTCHECK st_status st_label_find(st_label_picture *picture, const st_label_engine *engine, const st_bitmap *pixels,
                                     st_error *err);

#endif
