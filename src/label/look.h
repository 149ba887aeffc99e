/* look.h: one picture, every phrase: pixels in, objects above the floor out. The picture is encoded once whatever the
 * number of phrases.
 */
#ifndef ST_LABEL_LOOK_H
#define ST_LABEL_LOOK_H

#include "label/labels.h"

typedef struct st_label_asker {
    st_session *session;
    const st_label_classes *classes;
    const st_label_options *options;
    st_concept **concepts; /* one per phrase of all classes in order; NULL where a phrase stands for itself */
    uint32_t input_size;   /* of the model */
} st_label_asker;

/* One pass over `image`, which may be a part of a picture: answers and objects are appended to *p, in pixels of the
 * image; nothing else of *p is touched. Empty masks are left out. */
ST_MUSTCHECK st_status st_label_ask(st_label_picture *p, const st_label_asker *asker, const st_image *image,
                                    st_error *err);
/* The whole picture as the options want it: tiles, pieces joined, duplicates displaced. Fills size, orientation and
 * format of *p, too; its name must be set. On failure *p holds its name, file and bytes only. */
ST_MUSTCHECK st_status st_label_look(st_label_picture *p, const st_label_asker *asker, const st_bitmap *bitmap,
                                     st_error *err);

#endif
