/* npy.h: NumPy's .npy files, as far as mask logits need them: two-dimensional, C order, little-endian float32 or float64. */
#ifndef ST_FRONT_NPY_H
#define ST_FRONT_NPY_H

#include <stencil/stencil_base.h>

/* values [rows*cols] from malloc. Refuses files of more than max_values. On failure *values is NULL. */
ST_MUSTCHECK st_status st_npy_read(const char *path, size_t max_values, float **values, size_t *rows, size_t *cols, st_error *err);

#endif
