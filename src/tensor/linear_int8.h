/* linear_int8.h: st_linear_run for a quantised layer. */
#ifndef ST_TENSOR_LINEAR_INT8_H
#define ST_TENSOR_LINEAR_INT8_H

#include "tensor/tensor.h"

void st_linear_int8_run(const st_run *run, const st_linear *l, const float *x, size_t ldx, size_t rows, float *y,
                        size_t ldy, st_act act, bool accumulate);

#endif
