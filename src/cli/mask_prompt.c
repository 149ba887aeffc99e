/* mask_prompt.c: logits as they are, or a picture of a mask through the library's 20 m - 10. A picture that cannot be
 * meant as a mask is refused: colours, or nothing of it near 255, as masks of 0 and 1 have it that were saved without a
 * thought.
 */
#include "cli/mask_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/npy.h"

/* One of three samples, [height*width], in place of the colours. */
static st_status take_gray(uint8_t *gray, uint8_t *brightest, const st_bitmap *mask, const char *path, st_error *err)
{
    *brightest = 0;
    for (size_t i = 0; i < (size_t)mask->width * mask->height; i++) {
        const uint8_t *p = mask->rgb + 3 * i;
        if (p[0] != p[1] || p[0] != p[2])
            return st_fault(err, ST_ERR_INVALID_ARG,
                            "%s: pixel %zu,%zu is coloured; a mask is gray, 0 outside and 255 inside", path,
                            i % mask->width, i / mask->width);
        gray[i] = p[0];
        if (p[0] > *brightest) *brightest = p[0];
    }
    return ST_OK;
}

static st_status read_picture(float **logits, const st_model *model, const char *path, size_t side, uint32_t width,
                              uint32_t height, st_error *err)
{
    st_bitmap mask;
    st_bitmap_options how = ST_BITMAP_OPTIONS_INIT;
    how.stretch = ST_STRETCH_NEVER;
    st_status status = st_bitmap_load(&mask, path, &how, err);
    if (status != ST_OK) return status;
    if (mask.width != width || mask.height != height) {
        status = st_fault(err, ST_ERR_INVALID_ARG, "%s: a mask of %u x %u pixels, the picture has %u x %u", path,
                          mask.width, mask.height, width, height);
        st_bitmap_free(&mask);
        return status;
    }
    uint8_t brightest = 0, *gray = malloc((size_t)width * height);
    *logits = malloc(side * side * sizeof **logits);
    if (!gray || !*logits) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
    if (status == ST_OK) status = take_gray(gray, &brightest, &mask, path, err);
    if (status == ST_OK && brightest < 128)
        status = st_fault(err, ST_ERR_INVALID_ARG,
                          "%s: the brightest pixel is %d of 255; a mask has 0 outside and 255 inside", path, brightest);
    if (status == ST_OK) status = st_click_mask_logits(*logits, model, gray, width, height, width, err);
    free(gray);
    st_bitmap_free(&mask);
    return status;
}

static st_status mask_side(size_t *side, const st_model *model, st_error *err)
{
    st_model_info info = ST_MODEL_INFO_INIT;
    const st_status status = st_model_get_info(model, &info, err);
    *side = info.mask_size;
    return status;
}

static st_status keep_only_success(float **logits, st_status status)
{
    if (status == ST_OK) return status;
    free(*logits);
    *logits = NULL;
    return status;
}

bool st_is_npy(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npy") == 0;
}

st_status st_mask_prompt_read(float **logits, const st_model *model, const char *path, uint32_t width, uint32_t height,
                              st_error *err)
{
    size_t side = 0;
    *logits = NULL;
    st_status status = mask_side(&side, model, err);
    if (status != ST_OK) return status;
    if (st_is_npy(path)) return st_npy_read(logits, path, side, side, err);
    return keep_only_success(logits, read_picture(logits, model, path, side, width, height, err));
}

st_status st_mask_prompt_from_runs(float **logits, const st_model *model, const st_rle *mask, st_error *err)
{
    size_t side = 0;
    st_status status = mask_side(&side, model, err);
    uint8_t *pixels = malloc((size_t)mask->width * mask->height);
    *logits = malloc(side * side * sizeof **logits);
    if (status == ST_OK && (!pixels || !*logits)) status = st_fault(err, ST_ERR_NOMEM, "mask: out of memory");
    if (status == ST_OK) {
        st_rle_to_dense(mask, pixels, mask->width, 255);
        status = st_click_mask_logits(*logits, model, pixels, mask->width, mask->height, mask->width, err);
    }
    free(pixels);
    return keep_only_success(logits, status);
}
