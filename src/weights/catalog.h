/* catalog.h: the tensors that a checkpoint holds, whatever its container: name, type, shape and where the bytes
 * are. Nothing here knows what a tensor is for. A container reader promises for every entry that the bytes it
 * describes lie inside its blob.
 */
#ifndef ST_WEIGHTS_CATALOG_H
#define ST_WEIGHTS_CATALOG_H

#include <stdbool.h>
#include <stdint.h>
#include "base/file.h"
#include "weights/dtype.h"

#define ST_MAX_RANK 8
#define ST_MAX_TENSORS 65536   /* per checkpoint; the largest published one has 1,797 */
#define ST_MAX_TENSOR_NAME 512 /* bytes */
#define ST_MAX_SHARDS 1024

/* One run of bytes that tensors lie in: a safetensors data section, or a storage of a PyTorch archive. */
typedef struct st_blob {
    const unsigned char *data; /* in a map, or `heap`; NULL while still packed */
    size_t n;
    uint32_t map;                /* which file */
    const unsigned char *packed; /* raw deflate stream of a re-packed archive, else NULL */
    size_t n_packed;
    uint32_t crc;
    unsigned char *heap; /* owned */
} st_blob;

typedef struct st_entry {
    char *name;
    st_dtype dtype;
    uint32_t rank;
    uint64_t shape[ST_MAX_RANK];
    uint64_t stride[ST_MAX_RANK]; /* in elements */
    uint64_t n_elements;
    uint64_t offset; /* of element 0, in bytes from the blob's start */
    uint32_t blob;
    bool contiguous; /* row-major without gaps */
    bool used;       /* the manifest knows it */
} st_entry;

typedef struct st_catalog {
    const char *container; /* "safetensors", "safetensors (sharded)", "pytorch zip"; static */
    st_entry *entries;     /* sorted by name after st_catalog_finish */
    size_t n, room;
    st_blob *blobs;
    size_t n_blobs, blob_room;
    st_map *maps;
    char **map_names; /* file names without folder, for messages */
    size_t n_maps;
    char *about; /* value of the metadata entry "stencil": what our own files say of themselves; or NULL */
} st_catalog;

void st_catalog_free(st_catalog *cat); /* also closes the maps */
/* Takes over the map (closed by st_catalog_free, or here on failure). */
ST_MUSTCHECK st_status st_catalog_add_map(st_catalog *cat, st_map map, const char *path, uint32_t *index,
                                          st_error *err);
ST_MUSTCHECK st_status st_catalog_add_blob(st_catalog *cat, const st_blob *blob, uint32_t *index, st_error *err);
/* Copies `entry` under a name of n_name bytes (entry->name is ignored). Fills n_elements and `contiguous`; where
 * `contiguous` is set already, the strides are filled in too. Refuses names that are empty, too long or hold
 * control characters, and products that overflow. */
ST_MUSTCHECK st_status st_catalog_add(st_catalog *cat, const st_entry *entry, const char *name, size_t n_name,
                                      st_error *err);
/* Sorts; refuses two tensors of one name. */
ST_MUSTCHECK st_status st_catalog_finish(st_catalog *cat, st_error *err);
st_entry *st_catalog_find(const st_catalog *cat, const char *name); /* NULL when absent */
/* Index of the first entry whose name is not below `prefix`: entries with that prefix follow from there. */
size_t st_catalog_lower_bound(const st_catalog *cat, const char *prefix);

/* Tells the kernel that single pages are wanted from here and there (true), so that it does not read ahead around
 * each, or that all is as usual. */
void st_catalog_expect_random(const st_catalog *cat, bool random);

/* product(shape) without overflow; false when it does not fit. */
bool st_shape_product(uint64_t *out, const uint64_t *shape, uint32_t rank);
/* "[2, 3]" for messages, cut to fit. */
#define ST_SHAPE_TEXT 96
const char *st_shape_text(char text[ST_SHAPE_TEXT], const uint64_t *shape, uint32_t rank);

/* Reads `count` values from flat index `first` (row-major over the shape, whatever the strides) as fp32. The blob
 * must be expanded. Returns the index within [0, count) of the first non-finite value, or count. */
size_t st_entry_read(const st_catalog *cat, const st_entry *entry, uint64_t first, size_t count, float *out);
/* The same elements as they are stored, in the entry's own type, into `out`. */
void st_entry_copy(const st_catalog *cat, const st_entry *entry, uint64_t first, size_t count, void *out);
/* Expands a deflated blob once; nothing to do otherwise. Not thread-safe. */
ST_MUSTCHECK st_status st_blob_expand(st_blob *blob, const char *what, st_error *err);

#endif
