/* onednn_rate.h: how fast oneDNN multiplies on this machine, as a yardstick beside Stencil's own products. */
#ifndef ONEDNN_RATE_H
#define ONEDNN_RATE_H

#include "base/pool.h"

/* Seconds of one c [rows, n] = a [rows, k] · bᵀ, b [n, k], in fp32, cut into tiles for the pool's threads, each a single-threaded
 * call. 0 when the build found no oneDNN, or the library refuses. */
double onednn_seconds(st_pool *pool, size_t rows, size_t n, size_t k, const float *a, const float *b, float *c);

#endif
