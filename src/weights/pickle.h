/* pickle.h: what a state dict's pickle says, found out without running anything. A pickle is a program; this reader
 * knows the opcodes and names that a state dict needs, turns them into plain values, and refuses every other opcode
 * and name by name. Nothing is imported, looked up or called.
 */
#ifndef ST_WEIGHTS_PICKLE_H
#define ST_WEIGHTS_PICKLE_H

#include "weights/catalog.h"

#define ST_MAX_PICKLE_BYTES (32u << 20) /* the published files' are below 1 MiB */
#define ST_MAX_PICKLE_VALUES (1u << 22)
#define ST_MAX_PICKLE_TENSORS (4 * ST_MAX_TENSORS) /* an optimizer's count too */

/* A storage: bytes of another archive entry. */
typedef struct st_pickle_storage {
    st_dtype dtype;
    const char *key; /* n_key bytes in the pickle: the entry's name below data/ */
    uint32_t n_key;
    uint64_t n_elements;
} st_pickle_storage;

/* A named view of a storage. Every element lies inside it: offset + sum((shape - 1) * stride) < n_elements, in
 * elements. */
typedef struct st_pickle_tensor {
    const char *name; /* n_name bytes in the pickle */
    uint32_t n_name;
    uint32_t storage;
    uint32_t rank;
    uint64_t offset;
    uint64_t shape[ST_MAX_RANK], stride[ST_MAX_RANK];
} st_pickle_tensor;

typedef struct st_pickle {
    st_pickle_storage *storages;
    size_t n_storages, storage_room;
    st_pickle_tensor *tensors; /* those of the state dict; one view may stand here under two names */
    size_t n_tensors, tensor_room;
} st_pickle;

/* The state dict is the top-level dict, or its entry "model" when that is a dict. On failure *out is zeroed. Names
 * point into `bytes`. */
ST_MUSTCHECK st_status st_pickle_read(st_pickle *out, const unsigned char *bytes, size_t n, st_error *err);
void st_pickle_free(st_pickle *p);

#endif
