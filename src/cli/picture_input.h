/* picture_input.h: where a command's picture comes from: a file that is decoded and encoded, or an encoding that
 * `stencil encode` saved, which says itself how its picture was read. */
#ifndef ST_CLI_PICTURE_INPUT_H
#define ST_CLI_PICTURE_INPUT_H

#include "front/report.h"

typedef struct st_picture_input {
    const char *file;     /* a picture, or NULL */
    const char *features; /* a saved encoding, or NULL; a picture beside it gives pixels only and must have its size */
    st_bitmap_options bitmap;
    st_encode_options encode; /* without a source: that is made here */
} st_picture_input;

typedef struct st_picture_opened {
    st_picture *picture;
    st_bitmap bitmap; /* empty without a picture file */
    char *name;       /* of the picture that a saved encoding was made of, or NULL */
} st_picture_opened;

/* Fills `about` (its file must be set; half says how it will be saved), too, as far as it gets. On failure *out is
 * zeroed. st_picture_opened_free is fine in any state. */
ST_MUSTCHECK st_status st_picture_input_open(st_picture_opened *out, st_picture_report *about,
                                             const st_picture_input *in, st_model *model, st_session *session,
                                             st_error *err);
void st_picture_opened_free(st_picture_opened *o);

#endif
