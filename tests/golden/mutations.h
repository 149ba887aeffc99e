/* mutations.h: ways to break a bound model. A parity test that does not notice one of them proves nothing. */
#ifndef MUTATIONS_H
#define MUTATIONS_H

#include "engine/engine.h"

typedef struct mutation {
    const char *name;
    void (*model)(st_model *m); /* swaps pointers and numbers of the bound model; may be NULL */
    void (*undo)(st_model *m);  /* gives back what the model frees by itself; may be NULL */
    void (*box)(st_geo_box *box);
    bool drop_cls;
} mutation;

extern const mutation mutations[]; /* ends with a NULL name */

#endif
