/* sheet.h: labels to look at: for every class the objects that were least sure, as one picture (sheet-NAME.png) and all
 * classes as one page (sheet.html) that needs nothing else; and overlays of whole pictures.
 *
 * FOLDER/sheets and FOLDER/overlays appear complete or not at all; unlike labels, they replace what was there.
 */
#ifndef ST_LABEL_SHEET_H
#define ST_LABEL_SHEET_H

#include "label/labels.h"

typedef struct st_label_sheet_options {
    const char *folder;
    const st_label_class *classes; /* [n_classes] the job's, or the job's with other bounds; NULL: the job's */
    size_t n_classes;
    uint32_t most; /* objects per class: those with the lowest scores; 1 to 2000, default 200 */
    uint32_t side; /* of a cut-out, in pixels; 64 to 512, default 160 */
    bool overlays; /* every picture with objects, in place of sheets */
    const st_cancel *cancel;  /* may be NULL */
    st_progress_fn *progress; /* may be NULL */
    void *progress_user;
} st_label_sheet_options;
void st_label_sheet_options_init(st_label_sheet_options *o);

typedef struct st_label_sheet_report {
    uint64_t n_objects;  /* on sheets, or drawn */
    uint64_t n_sheets;   /* or overlays */
    uint64_t n_absent;   /* pictures that are not where they were: on sheets their masks stand alone */
} st_label_sheet_report;

ST_MUSTCHECK st_status st_label_sheets(st_label_sheet_report *report, st_label_store *store,
                                       const st_label_sheet_options *options, st_error *err);

/* ---- its parts ---- */

/* An object cut out: what stands on a sheet. */
typedef struct st_label_cutout {
    float score;
    size_t picture, object; /* places in the store: the picture-th handed out, its object-th object */
    char *name;             /* of the picture, as UTF-8 */
    const char *phrase;     /* the job's */
    uint8_t *jpeg;          /* [n_bytes] side x side pixels; NULL until cut */
    size_t n_bytes;
} st_label_cutout;

typedef struct st_label_pile {
    const st_label_class *cls;
    st_label_cutout *items; /* [n] by rising score, ties as in the store */
    size_t n;
} st_label_pile;

/* Cuts one object out of a picture: its box with a margin, side x side, the mask drawn on it. `bitmap` may be empty: gray
 * stands for the picture then. */
ST_MUSTCHECK st_status st_label_cut(st_label_cutout *c, const st_label_object *object, const st_label_picture *picture,
                                    const st_bitmap *bitmap, uint32_t side, const uint8_t rgb[3], st_error *err);
/* Writes a pile as one picture, folder/name. */
ST_MUSTCHECK st_status st_label_pile_save(const st_label_pile *pile, uint32_t side, const char *folder, const char *name,
                                          st_error *err);
/* Writes folder/sheet.html. */
ST_MUSTCHECK st_status st_label_page_save(const st_label_pile *piles, size_t n, const char *title, const char *folder,
                                          st_error *err);
/* One picture with its objects drawn on it, folder/NAME.jpg. bitmap is drawn on. */
ST_MUSTCHECK st_status st_label_overlay_save(st_bitmap *bitmap, const st_label_picture *picture, const char *name,
                                             const bool *kept, const st_label_class *classes, size_t n_classes,
                                             const char *folder, st_error *err);

#endif
