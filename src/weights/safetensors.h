/* safetensors.h: one safetensors file, already mapped, into a catalogue. */
#ifndef ST_WEIGHTS_SAFETENSORS_H
#define ST_WEIGHTS_SAFETENSORS_H

#include "weights/catalog.h"

#define ST_MAX_SAFETENSORS_HEADER (100u << 20) /* bytes, as in the format's own readers */

/* Adds the file's tensors, which lie in map `map` of the catalogue. Messages do not name the file. */
ST_MUSTCHECK st_status st_safetensors_read(st_catalog *cat, uint32_t map, st_error *err);

/* ---- writing ---- */

typedef struct st_tensor_out {
    const char *name;
    uint32_t rank;
    uint64_t shape[4];
    const float *data; /* row-major */
} st_tensor_out;

/* Writes fp32 tensors, as fp32 or (with `half`) rounded to fp16; a value that fp16 cannot hold is refused by name.
 * `about` becomes the metadata entry "stencil". The file appears complete or not at all. */
ST_MUSTCHECK st_status st_safetensors_write(const char *path, const st_tensor_out *tensors, size_t n, bool half,
                                            const char *about, st_error *err);

#endif
