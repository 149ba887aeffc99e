/* export.h: labels written as data sets, from a results store, without a model.
 *
 * Each format is a folder of its own, FOLDER/coco, FOLDER/yolo ..., that appears complete or not at all: it is written
 * as FOLDER/.coco.partial and renamed at the end. A folder that is there already is left alone when it holds the same
 * bytes, and refused when it does not, unless `overwrite` says to replace it. Nothing written depends on when, where or
 * by how many machines the labels were made.
 */
#ifndef ST_LABEL_EXPORT_H
#define ST_LABEL_EXPORT_H

#include "label/labels.h"

enum { ST_LABEL_N_FORMATS = 8 };
/* The i-th format: its name, which is that of its folder, and one line on it. */
const char *st_label_format_name(size_t i);
const char *st_label_format_summary(size_t i);
/* "coco,yolo" as bits, 1 << i. False, with the sentence's end in `problem`, when it is not a list of formats. */
bool st_label_formats_read(uint32_t *formats, const char *list, char problem[256]);

/* How pictures come into the folders of formats that want them there. */
typedef enum st_label_images {
    ST_LABEL_IMAGES_LINK = 0, /* a hard link, or a copy where the file system allows none */
    ST_LABEL_IMAGES_SYMLINK = 1,
    ST_LABEL_IMAGES_COPY = 2,
    ST_LABEL_IMAGES_NONE = 3
} st_label_images;

/* Objects of several parts, in a format of one ring per object. */
typedef enum st_label_parts {
    ST_LABEL_PARTS_JOIN = 0,    /* by lines between nearest points */
    ST_LABEL_PARTS_LARGEST = 1, /* keep the largest */
    ST_LABEL_PARTS_SPLIT = 2    /* one object per part */
} st_label_parts;

typedef struct st_label_export_options {
    uint32_t formats;   /* bits */
    const char *folder; /* where the formats' folders go */
    const st_label_class *classes; /* [n_classes] the job's, or the job's with other bounds; NULL: the job's */
    size_t n_classes;
    st_label_images images;
    st_label_parts parts;
    bool fill_holes;     /* polygons without bridges to their holes */
    bool rle;            /* COCO: run lengths instead of polygons */
    bool labelme_masks;  /* LabelMe: mask shapes instead of polygons */
    bool boxes_only;     /* also where there are masks */
    bool overwrite;
    double val, test;    /* shares of the split; the rest is for training */
    uint64_t seed;
    const char *image_prefix; /* Label Studio: what stands before a picture's name; NULL: that of local files */
    const st_cancel *cancel;  /* may be NULL */
    st_progress_fn *progress; /* may be NULL */
    void *progress_user;
} st_label_export_options;
/* No format, split 80 : 20, the rest zero. */
void st_label_export_options_init(st_label_export_options *o);

/* What one format could not hold, or held in another way. Counts of objects, but for the pictures. */
typedef struct st_label_losses {
    uint64_t holes_bridged, holes_filled;
    uint64_t parts_joined, parts_dropped, parts_split;
    uint64_t overlapped;    /* lost pixels to a better object */
    uint64_t left_out;      /* beyond what a picture of masks can count */
    uint64_t boxes_empty;   /* a box outside the picture */
    uint64_t images_absent; /* pictures that are not where they were */
    uint64_t images_turned; /* written anew, upright */
    uint64_t images_copied; /* where a link was asked for */
    uint64_t images_rotated; /* left as they are, though their labels are those of the upright picture */
    bool no_val;            /* the split left nothing for validation */
} st_label_losses;

typedef struct st_label_format_report {
    const char *name;
    bool unchanged; /* the folder held the same already */
    st_label_losses losses;
} st_label_format_report;

typedef struct st_label_export_report {
    uint64_t n_pictures, n_empty, n_failed, n_missing; /* labelled; of them without objects; not readable; not done yet */
    uint64_t n_objects;
    st_label_format_report formats[ST_LABEL_N_FORMATS];
    size_t n_formats;
} st_label_export_report;

/* On failure nothing changed, but for formats that were finished before the one that failed. */
ST_MUSTCHECK st_status st_label_export(st_label_export_report *report, st_label_store *store,
                                       const st_label_export_options *options, st_error *err);

/* The i-th sentence on losses of a format, in `line`; false when there are no more. */
bool st_label_losses_line(char line[256], const st_label_format_report *f, size_t i);

#endif
