/* int8.h: quantised matrices in a checkpoint. A matrix W [rows, columns] of the published layout is stored under its own
 * name as I8, with a companion NAME_scale [rows], and where its inputs were smoothed NAME_smooth [pieces, columns] (a
 * published matrix may hold several layers, one below the other, with inputs of their own):
 *   W[r][c] = int8[r][c] * scale[r] * smooth[piece of r][c]
 * so a layer computes scale[r] * sum over c of int8[r][c] * (smooth[c] x[c]). `stencil quantize` writes such files.
 */
#ifndef ST_WEIGHTS_INT8_H
#define ST_WEIGHTS_INT8_H

#include "weights/manifest.h"

#define ST_INT8_SCALE "_scale"
#define ST_INT8_SMOOTH "_smooth"
#define ST_MAX_INT8_SUFFIX 8
#define ST_MAX_INT8_COLUMNS 32768u /* what the kernels can add up */

/* One layer's weights as they are used. */
typedef struct st_int8_view {
    const int8_t *values; /* [n_out, n_in] in the file; NULL: not quantised */
    const float *scale;   /* [n_out] */
    const float *smooth;  /* [n_in] or NULL */
    const int32_t *sums;  /* [n_out] sum of each row of values */
} st_int8_view;

/* The slot's view; its companions are copied, checked for non-finite values, into *heap (st_free). The blobs must be
 * expanded. */
ST_MUSTCHECK st_status st_int8_prepare(st_int8_view *out, void **heap, const st_catalog *cat, const st_slot *slot,
                                       st_error *err);
/* values [n_out, n_in], read as plain numbers, become the matrix that they stand for. Returns the index of the first
 * product that fp32 cannot hold, or n_out n_in. */
size_t st_int8_expand(float *values, const st_int8_view *view, size_t n_out, size_t n_in);

#endif
