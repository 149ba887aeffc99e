/* checkpoint.h: from a path to a catalogue: which container it is, which files belong to it, and which JSON
 * describes its sizes. */
#ifndef ST_WEIGHTS_CHECKPOINT_H
#define ST_WEIGHTS_CHECKPOINT_H

#include "weights/catalog.h"

#define ST_MAX_CONFIG_BYTES (4u << 20)

typedef struct st_checkpoint {
    st_catalog catalog;
    char *config; /* path of the config.json that belongs to Hugging Face weights, or NULL */
    char *side;   /* path of NAME.json beside a lone file NAME.pt or NAME.safetensors, or NULL */
} st_checkpoint;

/* Opens a file or folder by its content, not its name. On failure *out is zeroed. */
ST_MUSTCHECK st_status st_checkpoint_open(st_checkpoint *out, const char *path, st_error *err);
void st_checkpoint_free(st_checkpoint *c);

#endif
