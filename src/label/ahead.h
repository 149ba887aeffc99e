/* ahead.h: pictures read and decoded by a thread, one ahead of the one that is being looked at. At most two decoded
 * pictures are in memory.
 */
#ifndef ST_LABEL_AHEAD_H
#define ST_LABEL_AHEAD_H

#include "label/labels.h"

typedef struct st_label_loaded {
    st_status status; /* of reading and decoding; the sentence names the picture by its name, never by its path */
    st_error err;
    uint64_t n_bytes;
    char sha256[65]; /* "" when it could not be read */
    st_bitmap bitmap;
} st_label_loaded;
/* In the calling thread. */
void st_label_load(st_label_loaded *out, const char *root, const char *name, const st_bitmap_options *how);

typedef struct st_label_ahead st_label_ahead;
/* Everything given is borrowed until the stop. */
ST_MUSTCHECK st_status st_label_ahead_start(st_label_ahead **out, const char *root, char *const *names,
                                            const size_t *todo, size_t n_todo, const st_bitmap_options *how,
                                            st_error *err);
/* The next of todo, in order; waits for it. The bitmap is the caller's. Not to be called more than n_todo times. */
void st_label_ahead_next(st_label_ahead *ahead, st_label_loaded *out);
void st_label_ahead_stop(st_label_ahead *ahead); /* NULL is fine */

#endif
