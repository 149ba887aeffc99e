/* weights_inside.h: an opened checkpoint from the inside, for the files of this room. */
#ifndef ST_WEIGHTS_INSIDE_H
#define ST_WEIGHTS_INSIDE_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include "weights/checkpoint.h"
#include "weights/manifest.h"
#include "weights/weights.h"
#include "weights/weights_id.h"

/* Per slot of the binding. */
typedef struct st_values {
    _Atomic(const float *) ready; /* NULL until checked */
    float *heap;                  /* the converted copy, if there is one */
    st_int8_view int8;            /* of a quantised matrix, complete once int8_ready */
    void *int8_heap;
    atomic_bool int8_ready;
    atomic_bool half_ready;       /* 16-bit values have been looked through */
} st_values;

struct st_weights {
    st_checkpoint checkpoint;
    st_naming naming;
    st_dims dims;
    json_t *config; /* what a quantised file says of its model's sizes, or NULL */
    json_t *side_config; /* the same, of NAME.json beside its source */
    st_binding binding;
    st_values *values; /* [binding.n] */
    pthread_mutex_t lock;
    bool has_lock;
    bool streaming; /* st_weights_stream */
    char id[ST_ID_TEXT];
    char *dtypes;
    const char **unused;
    size_t n_unused;
    st_model_part parts[ST_N_PARTS];
    size_t n_parts;
    st_weights_info info;
};

#endif
