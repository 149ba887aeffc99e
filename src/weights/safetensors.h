/* safetensors.h: one safetensors file, already mapped, into a catalogue. */
#ifndef ST_WEIGHTS_SAFETENSORS_H
#define ST_WEIGHTS_SAFETENSORS_H

#include "weights/catalog.h"

#define ST_MAX_SAFETENSORS_HEADER (100u << 20) /* bytes, as in the format's own readers */

/* Adds the file's tensors, which lie in map `map` of the catalogue. Messages do not name the file. */
ST_MUSTCHECK st_status st_safetensors_read(st_catalog *cat, uint32_t map, st_error *err);

#endif
