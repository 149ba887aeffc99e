/* pytorch.h: a PyTorch .pt archive, already mapped, into a catalogue. Nothing in it is executed. */
#ifndef ST_WEIGHTS_PYTORCH_H
#define ST_WEIGHTS_PYTORCH_H

#include "weights/catalog.h"

/* Adds the archive's tensors, which lie in map `map` of the catalogue. Messages do not name the file. */
ST_MUSTCHECK st_status st_pytorch_read(st_catalog *cat, uint32_t map, st_error *err);
/* A file that starts like a bare pickle: says which kind it is and that it is not read. Never ST_OK. */
ST_MUSTCHECK st_status st_pytorch_refuse_legacy(const st_map *map, st_error *err);

#endif
