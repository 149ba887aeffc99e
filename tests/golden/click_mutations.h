/* click_mutations.h: ways to break the interactive head, its prompt or its picture. A parity test that does not notice
 * one of them proves nothing.
 */
#ifndef CLICK_MUTATIONS_H
#define CLICK_MUTATIONS_H

#include "engine/engine.h"

/* One question to the head, as a test may spoil it. */
typedef struct click_question {
    st_point points[16];
    size_t n_points;
    bool has_region;
    st_region region;
    float *mask; /* [side*side] or NULL; owned by the test */
    size_t side;
    bool multimask, hf;
    int32_t hole_area;
} click_question;

typedef enum click_layout { CLICK_EITHER = 0, CLICK_META, CLICK_HF } click_layout;

typedef struct click_mutation {
    const char *name;
    void (*head)(st_click_head *c); /* swaps pointers and numbers of the bound head; may be NULL */
    void (*picture)(st_picture *p); /* after the encode; may be NULL */
    void (*question)(click_question *q, const st_picture *p); /* may be NULL */
    click_layout only;                                        /* the layout in which it makes a difference */
} click_mutation;

extern const click_mutation click_mutations[]; /* ends with a NULL name */

#endif
