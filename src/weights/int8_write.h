/* int8_write.h: a checkpoint written again with int8 matrices (int8.h says how they are stored). What becomes int8 is the
 * caller's choice, layer by layer; all else is copied as it is, name by name, so the file has its source's layout.
 */
#ifndef ST_WEIGHTS_INT8_WRITE_H
#define ST_WEIGHTS_INT8_WRITE_H

#include <jansson.h>
#include "weights/weights.h"

/* One row of a matrix: q = round(w[i] / smooth[i] / *scale) in -127 .. 127; smooth may be NULL. */
void st_int8_quantize_row(int8_t *q, float *scale, const float *w, const float *smooth, size_t n);

/* What becomes int8. A published matrix that holds several layers does when it is wanted for all of them. */
typedef struct st_quantizer {
    /* Whether the layer comes into question: its values are read only then. */
    bool (*wants)(void *user, const char *canonical);
    /* Asked once for each such layer: w [n_out, n_in]. Fills smooth [n_in], which comes as all 1 and must stay positive
     * and finite, and says whether the layer shall be int8. */
    bool (*choose)(void *user, const char *canonical, const float *w, size_t n_out, size_t n_in, float *smooth);
    /* Told once for each layer that was asked about, after the last one of its published matrix: what became of it. */
    void (*settled)(void *user, const char *canonical, bool int8);
    /* What the file says of itself, asked after the last choice: an object that the writer takes over, NULL without
     * memory. The writer adds "config", the model's description, where it has one. */
    json_t *(*about)(void *user);
    void *user;
    const st_cancel *cancel; /* may be NULL */
} st_quantizer;

/* The file appears complete or not at all. */
ST_MUSTCHECK st_status st_weights_write_int8(st_weights *w, const char *path, const st_quantizer *how, st_error *err);

#endif
