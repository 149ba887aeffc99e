/* linear_int8.h: linear layers whose weights are int8. */
#ifndef ST_TENSOR_LINEAR_INT8_H
#define ST_TENSOR_LINEAR_INT8_H

#include "tensor/tensor.h"

/* st_linear_run for n <= 3 quantised layers of the same n_in, which see the same x: each row is read once for all of them. Their outputs y[0] .. y[n-1]
 * have rows of ldy floats. */
void st_linear_int8_run(const st_run *run, size_t n, const st_linear *const *layers, const float *x, size_t ldx, size_t rows, float *const *y,
                        size_t ldy, st_act act, bool accumulate);
/* st_feed_forward for quantised layers: the hidden rows of a block stay with the thread that makes them. */
void st_feed_forward_int8(const st_run *run, const st_linear *fc1, const st_linear *fc2, st_act act, const float *x, size_t rows, float *y);

#endif
