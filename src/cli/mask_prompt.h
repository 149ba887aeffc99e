/* mask_prompt.h: a mask from a file as a prompt for the interactive head. */
#ifndef ST_CLI_MASK_PROMPT_H
#define ST_CLI_MASK_PROMPT_H

#include <stencil/stencil.h>

/* NAME.npy: raw logits of the mask grid; any other name: a picture, 0 outside and 255 inside, of the size of the picture it belongs to (width x height).
 * *logits [mask_size*mask_size] from malloc. */
ST_MUSTCHECK st_status st_mask_prompt_read(float **logits, const st_model *model, const char *path, uint32_t width, uint32_t height, st_error *err);

#endif
