/* export_rows.h: a mask row by row, and the encodings made from that: CVAT's run list, Label Studio's brush, bytes as
 * base64. */
#ifndef ST_LABEL_EXPORT_ROWS_H
#define ST_LABEL_EXPORT_ROWS_H

#include <stencil/stencil_mask.h>

/* The pixels of a mask's tight box, 0 and 1; all zero for an empty mask. */
typedef struct st_label_crop {
    st_box_px box;
    uint32_t width, height; /* of the box */
    uint8_t *pixels;        /* [height][width] */
} st_label_crop;
ST_MUSTCHECK st_status st_label_crop_make(st_label_crop *out, const st_rle *mask, st_error *err);
void st_label_crop_free(st_label_crop *crop);

/* Run lengths of a crop in row-major order, zeros first, 0 when it starts inside; sum = width * height. From malloc. */
ST_MUSTCHECK st_status st_label_crop_runs(uint32_t **runs, size_t *n, const st_label_crop *crop, st_error *err);

/* Label Studio's brush bytes (label_studio_sdk/converter/brush.py, encode_rle): rle-pack of the whole picture as RGBA
 * with 255 inside. From malloc. */
ST_MUSTCHECK st_status st_label_brush(uint8_t **bytes, size_t *n, const st_rle *mask, st_error *err);

/* Base64 with padding, NUL-terminated, from malloc; NULL when out of memory. */
char *st_label_base64(const uint8_t *bytes, size_t n);

#endif
