/* attention_int8.h: st_attention_run with both products in int8: for attention over a picture's own tokens. */
#ifndef ST_TENSOR_ATTENTION_INT8_H
#define ST_TENSOR_ATTENTION_INT8_H

#include "tensor/tensor.h"

/* Whether there is an int8 form of this attention: as many queries as keys, no mask, no bias. */
bool st_attention_int8_can(const st_attention *a);
void st_attention_int8_run(const st_run *run, const st_attention *a);

#endif
