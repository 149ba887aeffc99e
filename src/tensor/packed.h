/* packed.h: the second operand of matrix products, laid out once for all tiles of an operation (st_kernels.gemm_pack), in
 * scratch memory. It costs one pass over the weights and saves one in every tile of rows.
 */
#ifndef ST_TENSOR_PACKED_H
#define ST_TENSOR_PACKED_H

#include "tensor/run.h"
#include "weights/layers.h"

/* A layer's weights [n_out, n_in] packed; 16-bit ones become floats on the way. */
const float *st_pack_linear_run(const st_run *run, const st_linear *l);
/* n_matrices weight matrices [n, k], one after the other, packed by all threads. Matrix i lies from
 * i * st_packed_floats(run->k, n, k) floats on. Valid until the arena is rewound. */
const float *st_pack_run(const st_run *run, const float *weights, size_t n_matrices, size_t n, size_t k);
/* One int8 weight matrix [n, k]. */
const int8_t *st_pack_s8_run(const st_run *run, const int8_t *weights, size_t n, size_t k);

#endif
