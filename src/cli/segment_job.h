/* segment_job.h: one run of `stencil segment`, shared by its files. */
#ifndef ST_CLI_SEGMENT_JOB_H
#define ST_CLI_SEGMENT_JOB_H

#include "cli/picture_input.h"
#include "cli/segment_args.h"
#include "front/save.h"

typedef struct st_segment_job {
    st_segment_args args;
    st_console console;
    st_cancel *cancel;
    st_model *model;
    st_session *session;
    st_report report;
    st_names names;       /* of overlays and masks */
    const char *overlays; /* the folder for overlays, or NULL: args.overlay is the file */
    char *name;           /* of the picture that a saved encoding was made of, or NULL */
    bool to_table;        /* a table goes to standard output */
    int code;             /* ends the run when it is neither OK nor PARTLY */
    bool output_failed;   /* an overlay or a mask could not be written; the run goes on: its results are not lost */
} st_segment_job;

double st_segment_now(void); /* seconds */

/* Every prompt, or every object, on one opened picture. */
ST_MUSTCHECK st_status st_segment_run(st_segment_job *j, st_picture_report *p, const st_picture *picture,
                                      st_error *err);

/* Files per picture. */
ST_MUSTCHECK st_status st_segment_write_masks(st_segment_job *j, st_picture_report *p, st_error *err);
ST_MUSTCHECK st_status st_segment_write_overlay(st_segment_job *j, const st_picture_report *p, st_bitmap *bitmap,
                                                st_error *err);

#endif
