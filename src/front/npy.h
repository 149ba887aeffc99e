/* npy.h: NumPy's .npy files, as far as mask logits need them: little-endian float32 or float64 in C order, two-
 * dimensional, with or without leading dimensions of 1. */
#ifndef ST_FRONT_NPY_H
#define ST_FRONT_NPY_H

#include <stencil/stencil_base.h>

/* *values [rows*cols] from malloc, of an array that has this shape; any other is refused before memory is taken, and so
 * is a value that is not finite. On failure *values is NULL. */
ST_MUSTCHECK st_status st_npy_read(float **values, const char *path, size_t rows, size_t cols, st_error *err);
/* float32 [rows, cols]; the file appears complete or not at all. */
ST_MUSTCHECK st_status st_npy_write(const char *path, const float *values, size_t rows, size_t cols, st_error *err);

#endif
