/* duplicates.h: two answers for one object, by different phrases of a class or, if asked for, by different classes. The
 * better score stands; the other is kept in the store and says what displaced it. Answers of one phrase are the model's
 * own and are never held against each other.
 */
#ifndef ST_LABEL_DUPLICATES_H
#define ST_LABEL_DUPLICATES_H

#include "label/labels.h"

/* Sets displaced_by of all objects: by falling score (ties: in order), an object is displaced when it shares more than
 * the threshold with a better one that is not displaced itself; of several, by the best. Masks are compared as runs,
 * where there are none, boxes. */
ST_MUSTCHECK st_status st_label_mark_duplicates(st_label_picture *picture, const st_label_duplicates *how,
                                                st_error *err);

#endif
