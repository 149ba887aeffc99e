/* report.h: what a run over pictures found, for prompts (every instance) or for clicks (one object each), and its three
 * spellings: JSON, COCO, a table for people.
 *
 * The JSON is a contract: keys keep their order, later versions only add. A float is printed with the fewest digits
 * that give it back exactly.
 */
#ifndef ST_FRONT_REPORT_H
#define ST_FRONT_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stencil/stencil.h>

/* A concept that stands in a prompt. */
typedef struct st_concept_report {
    const char *file, *phrase;
    uint32_t n_tokens;
} st_concept_report;

/* One prompt on one picture. All but the result is filled for every picture, also for those that failed. */
typedef struct st_prompt_report {
    const char *phrase;       /* what the model was asked, "visual" when only boxes were given */
    const st_exemplar *boxes; /* [n_boxes] */
    size_t n_boxes;
    float threshold, mask_threshold;
    bool boxes_only;                   /* masks were not asked for */
    st_result *result;                 /* owned; NULL while not done */
    char **mask_files;                 /* [result->n_instances] owned, or NULL: names written by --format png */
    const st_concept_report *concepts; /* [n_concepts] */
    size_t n_concepts;
} st_prompt_report;

/* One object that was clicked at. All but the result is filled also when the picture failed. */
typedef struct st_object_report {
    const st_point *points; /* [n_points] */
    size_t n_points;
    const st_region *region; /* or NULL */
    const char *mask;        /* the file of a mask prompt, or NULL */
    bool hf;                 /* as Hugging Face's port does it */
    st_click_result *result; /* owned; NULL while not done */
    char **mask_files;       /* [result->n_candidates] owned, or NULL */
} st_object_report;

/* Masks without a prompt. All but the result is filled also when the picture failed. */
typedef struct st_masks_report {
    st_everything_options options;
    st_everything_result *result; /* owned; NULL while not done */
    char **mask_files;            /* [result->n_masks] owned, or NULL */
} st_masks_report;

typedef struct st_picture_report {
    const char *file;
    char *error;            /* owned; NULL = fine. If set, nothing below holds but what was asked. */
    uint32_t width, height; /* as shown */
    int orientation;
    char format[8];
    int bits, is_float, bands, stretched, damaged;
    float low, high;
    const char *resize;        /* "gpu" or "cpu" */
    st_prompt_report *prompts; /* [n_prompts] owned */
    size_t n_prompts;
    st_object_report *objects; /* [n_objects] owned; a report holds prompts, objects or masks */
    size_t n_objects;
    st_masks_report *masks;    /* owned, or NULL */
    bool undescribed;          /* a saved encoding that does not say how its picture was read */
    bool half;                 /* a saved encoding in 16-bit floats */
} st_picture_report;

typedef struct st_report {
    const char *model_id, *model_version, *model_precision;
    st_picture_report *pictures; /* [n_pictures] owned */
    size_t n_pictures;
    uint32_t input_size; /* of the model */
} st_report;

/* Makes room; false when out of memory. st_report_free is fine in any state. */
bool st_report_init(st_report *r, size_t n_pictures, size_t n_prompts);
void st_report_free(st_report *r);
bool st_report_make_objects(st_picture_report *p, size_t n_objects); /* the same for clicks */

bool st_report_make_masks(st_picture_report *p, const st_everything_options *options); /* and without a prompt */

/* How a picture was read, as one JSON text that st_picture_save keeps (st_encode_options.source): from malloc, NULL
 * when out of memory. */
char *st_report_source(const st_picture_report *p);
/* Reads it back: fills all but size, prompts and objects. *file is the picture's name, from malloc. False when it is
 * none of st_report_source's: then `p` is as before. */
bool st_report_read_source(st_picture_report *p, char **file, const char *source);

/* Documents as text, from malloc; NULL when out of memory. */
char *st_report_json(const st_report *r);
char *st_report_coco(const st_report *r);
/* Readable lines of one picture. */
void st_report_table(const st_picture_report *p, FILE *to);
char *st_report_table_text(const st_report *r); /* of all of them, from malloc; NULL when out of memory */
void st_report_masks_table(const st_masks_report *m, FILE *to); /* its part for everything mode */

/* Bits of st_result.warnings, one at a time: the name in the JSON and a sentence. NULL past the last. */
const char *st_warning_name(size_t i, uint32_t *bit);
const char *st_warning_sentence(size_t i);

/* Writes text without its control characters. */
void st_print_plain(FILE *to, const char *text);

/* JSON values; NULL when out of memory. */
json_t *st_json_float(float value);     /* shortest decimal that gives the float back; null when not finite */
json_t *st_json_text(const char *text); /* what is not UTF-8 (a file name may be) becomes U+FFFD */
json_t *st_json_mask(const st_rle *mask);
json_t *st_json_click_prompt(const st_point *points, size_t n_points, const st_region *region, const char *mask);
/* rank from 0; without masks: nothing but rank, index and predicted IoU. mask_file may be NULL. */
json_t *st_json_candidate(const st_candidate *c, size_t rank, bool with_mask, const char *mask_file);
json_t *st_json_box(const st_box_px *box);
json_t *st_json_warnings(uint32_t bits);
/* Adds what everything mode found to a picture's object; 0, or -1 when out of memory. */
int st_json_add_masks(json_t *picture, const st_masks_report *m);
/* Serialises in one line with a line end, from malloc; steals `doc`; NULL when doc is NULL or memory is out. */
char *st_json_line(json_t *doc);

#endif
