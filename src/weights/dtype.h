/* dtype.h: element types met in checkpoints, and their values as fp32. Conversions look at every bit pattern once
 * and report the first value that is NaN or infinite (or, from F64, outside fp32's range), so that a broken weight
 * is named and never reaches a result.
 */
#ifndef ST_WEIGHTS_DTYPE_H
#define ST_WEIGHTS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum st_dtype {
    ST_DTYPE_F32 = 0,
    ST_DTYPE_F16,
    ST_DTYPE_BF16,
    ST_DTYPE_F64,
    ST_DTYPE_I64,
    ST_DTYPE_I32,
    ST_DTYPE_I16,
    ST_DTYPE_I8,
    ST_DTYPE_U64,
    ST_DTYPE_U32,
    ST_DTYPE_U16,
    ST_DTYPE_U8,
    ST_DTYPE_BOOL,
    ST_DTYPE_C64,
    ST_N_DTYPES
} st_dtype;

const char *st_dtype_name(st_dtype type); /* as safetensors writes it: "F32", "BF16", ... */
size_t st_dtype_size(st_dtype type);      /* bytes */
/* False when the name is not one of the above (the 8-bit floats, say). */
bool st_dtype_find(st_dtype *out, const char *name);
/* F32, F16, BF16, F64: what weights may be stored as. */
bool st_dtype_is_real(st_dtype type);

/* Index of the first value of in[0..n) that is not finite, or n. `in` is aligned for float. */
size_t st_f32_first_nonfinite(const float *in, size_t n);
/* out[0..n) from n little-endian elements of a real type, or of I8 as they are, at any alignment. Returns like st_f32_first_nonfinite;
 * `out` is complete in any case. */
size_t st_f32_from(float *out, const void *in, size_t n, st_dtype type);

#endif
