/* click_talk.h: the conversation of `stencil click`: one JSON command in, one JSON reply out (docs/click.md). */
#ifndef ST_CLI_CLICK_TALK_H
#define ST_CLI_CLICK_TALK_H

#include "cli/picture_input.h"

/* What the head was asked after a verb: the effective prompt. */
typedef struct st_click_said {
    size_t n_points; /* of st_click_talk.points */
    bool has_region;
    st_region region;
    char *mask;  /* the file of a mask prompt, "" for one given as runs, or NULL; owned */
    int refines; /* rank of the candidate whose logits went in, or -1 */
} st_click_said;

typedef struct st_click_talk {
    st_model *model; /* borrowed, like the session */
    st_session *session;
    st_click_options options;
    st_picture_input how; /* how pictures are read; file and features are those of the present one, owned */
    st_picture_opened opened;
    st_object *object;
    uint32_t width, height;
    st_point points[ST_MAX_POINTS];
    st_click_said said[ST_MAX_POINTS + 1]; /* by number of verbs; the first is empty */
} st_click_talk;

/* Opens a picture, or a saved encoding, in place of the present one, which stays when that fails. */
ST_MUSTCHECK st_status st_click_talk_open(st_click_talk *t, const char *file, const char *features, st_error *err);
void st_click_talk_close(st_click_talk *t);

/* Replies; NULL when out of memory. */
json_t *st_click_talk_opened(const st_click_talk *t);
json_t *st_click_talk_fault(const char *code, const char *message);
json_t *st_click_talk_answer(st_click_talk *t, const json_t *command);

#endif
