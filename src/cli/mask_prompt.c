/* mask_prompt.c: logits as they are, or a picture of a mask through the library's 20 m - 10. */
#include "cli/mask_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/npy.h"

static st_status fail(st_error *err, st_status status, const char *path, const char *what)
{
    if (err) {
        err->status = status;
        snprintf(err->message, sizeof err->message, "%s: %s", path, what);
    }
    return status;
}

static st_status read_logits(float **logits, const char *path, uint32_t side, st_error *err)
{
    size_t rows, cols;
    char what[96];
    const st_status status = st_npy_read(path, (size_t)side * side, logits, &rows, &cols, err);
    if (status != ST_OK || (rows == side && cols == side)) return status;
    free(*logits);
    *logits = NULL;
    snprintf(what, sizeof what, "an array of %zu x %zu, expected the mask grid, %u x %u", rows, cols, side, side);
    return fail(err, ST_ERR_INVALID_ARG, path, what);
}

static st_status read_picture(float **logits, const st_model *model, const char *path, uint32_t side, uint32_t width, uint32_t height, st_error *err)
{
    st_bitmap mask;
    char what[96];
    st_status status = st_bitmap_load(&mask, path, NULL, err);
    if (status != ST_OK) return status;
    uint8_t *gray = malloc((size_t)mask.width * mask.height);
    *logits = malloc((size_t)side * side * sizeof **logits);
    if (mask.width != width || mask.height != height) {
        snprintf(what, sizeof what, "a mask of %u x %u pixels, the picture has %u x %u", mask.width, mask.height, width, height);
        status = fail(err, ST_ERR_INVALID_ARG, path, what);
    } else if (!gray || !*logits) status = fail(err, ST_ERR_NOMEM, path, "out of memory");
    else {
        for (size_t i = 0; i < (size_t)mask.width * mask.height; i++) gray[i] = mask.rgb[3 * i];
        status = st_click_mask_logits(*logits, model, gray, mask.width, mask.height, mask.width, err);
    }
    if (status != ST_OK) {
        free(*logits);
        *logits = NULL;
    }
    free(gray);
    st_bitmap_free(&mask);
    return status;
}

st_status st_mask_prompt_read(float **logits, const st_model *model, const char *path, uint32_t width, uint32_t height, st_error *err)
{
    st_model_info info = ST_MODEL_INFO_INIT;
    *logits = NULL;
    const st_status status = st_model_get_info(model, &info, err);
    if (status != ST_OK) return status;
    const size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".npy") == 0) return read_logits(logits, path, info.mask_size, err);
    return read_picture(logits, model, path, info.mask_size, width, height, err);
}
