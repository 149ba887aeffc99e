/* segment_args.h: the command line of `stencil segment`, read and checked before any work is done. It asks either for
 * every instance (phrases, exemplar boxes, concepts) or for objects (points, regions, a mask), never for both.
 */
#ifndef ST_CLI_SEGMENT_ARGS_H
#define ST_CLI_SEGMENT_ARGS_H

#include "cli/choices.h"
#include "cli/cli.h"
#include "front/report.h"

typedef struct st_segment_args {
    const char **pictures; /* [n_pictures]; the saved encoding itself when no picture stands beside it */
    size_t n_pictures;
    const char *features; /* a saved encoding, or NULL */
    bool features_only;   /* no picture stands beside it */
    const char **phrases; /* [n_phrases]; "visual" when only boxes were given, the concepts' when only those were */
    float *thresholds;  /* [n_phrases] */
    size_t n_phrases;   /* 0 with objects */
    bool visual;        /* no phrase was given, only boxes */
    st_exemplar *boxes; /* [n_boxes] */
    size_t n_boxes;
    st_concept **concepts;            /* [n_concepts] owned */
    st_concept_report *concept_files; /* [n_concepts] what they are */
    size_t n_concepts;
    st_point *points; /* [n_points] */
    size_t n_points;
    st_region *regions; /* [n_regions] several regions are several objects */
    size_t n_regions;
    const char *mask; /* the file of a mask prompt, or NULL */
    size_t n_objects; /* 0 with phrases */
    st_click_options click;
    const char *model, *output, *overlay;
    st_output_format format;
    st_segment_options segment; /* all but the threshold */
    st_encode_options encode;
    st_bitmap_options bitmap;
    st_model_wish wish;
    int verbosity;
    bool help;
} st_segment_args;

/* ST_EXIT_OK, or ST_EXIT_USAGE after a message. st_segment_args_free is fine in any case. */
int st_segment_args_read(st_segment_args *a, int argc, char **argv);
void st_segment_args_free(st_segment_args *a);

/* Whether a word is meant to name a picture: it has a picture's suffix or a '/'. */
bool st_looks_like_picture(const char *word);

#endif
