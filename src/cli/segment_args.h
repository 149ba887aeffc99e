/* segment_args.h: the command line of `stencil segment`, read and checked before any work is done. */
#ifndef ST_CLI_SEGMENT_ARGS_H
#define ST_CLI_SEGMENT_ARGS_H

#include "cli/cli.h"

typedef enum st_output_format { ST_FORMAT_AUTO, ST_FORMAT_TABLE, ST_FORMAT_JSON, ST_FORMAT_COCO, ST_FORMAT_PNG } st_output_format;

typedef struct st_segment_args {
    const char **pictures;       /* [n_pictures] */
    size_t n_pictures;
    const char **phrases;        /* [n_phrases]; the word "visual" when only boxes were given */
    float *thresholds;           /* [n_phrases] */
    size_t n_phrases;
    bool visual;                 /* no phrase was given, only boxes */
    st_exemplar *boxes;          /* [n_boxes] */
    size_t n_boxes;
    const char *model, *output, *overlay;
    st_output_format format;
    st_segment_options segment;  /* all but the threshold */
    st_encode_options encode;
    st_bitmap_options bitmap;
    uint32_t n_threads;
    int verbosity;
    bool help;
} st_segment_args;

/* ST_EXIT_OK, or ST_EXIT_USAGE after a message. st_segment_args_free is fine in any case. */
int st_segment_args_read(st_segment_args *a, int argc, char **argv);
void st_segment_args_free(st_segment_args *a);

/* Whether a word is meant to name a picture: it has a picture's suffix or a '/'. */
bool st_looks_like_picture(const char *word);

#endif
