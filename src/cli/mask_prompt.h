/* mask_prompt.h: a mask as a prompt for the interactive head. */
#ifndef ST_CLI_MASK_PROMPT_H
#define ST_CLI_MASK_PROMPT_H

#include <stdbool.h>
#include <stencil/stencil.h>

/* NAME.npy: raw logits of the mask grid; any other name: a gray picture, 0 outside and 255 inside, of the size of the
 * picture it belongs to (width x height).
 * *logits [mask_size*mask_size] from malloc; NULL on failure. */
ST_MUSTCHECK st_status st_mask_prompt_read(float **logits, const st_model *model, const char *path, uint32_t width,
                                           uint32_t height, st_error *err);
/* The same from runs. */
ST_MUSTCHECK st_status st_mask_prompt_from_runs(float **logits, const st_model *model, const st_rle *mask,
                                                st_error *err);
bool st_is_npy(const char *path);

#endif
