/* picture_tiff.h: a TIFF page between its tags (picture_tiff.c) and its pixels (picture_tiff_samples.c). */
#ifndef ST_PICTURE_TIFF_H
#define ST_PICTURE_TIFF_H

#include <tiffio.h>
#include "picture/picture_internal.h"

typedef enum st_tiff_sample { ST_TIFF_UINT = 0, ST_TIFF_INT = 1, ST_TIFF_FLOAT = 2 } st_tiff_sample;
typedef enum st_tiff_colour {
    ST_TIFF_GRAY = 0,           /* the first sample */
    ST_TIFF_RGB = 1,            /* the first three */
    ST_TIFF_RGB_MULTIPLIED = 2, /* 8 or 16 bits, the fourth is alpha and the colours are multiplied by it */
    ST_TIFF_PALETTE = 3,        /* the first sample, an index */
    ST_TIFF_CMYK = 4,           /* the first four, 8 or 16 bits, 0 = no ink */
    ST_TIFF_RGBA_INTERFACE = 5  /* left to libtiff: YCbCr that is not in a JPEG stream */
} st_tiff_colour;

typedef struct st_tiff {
    TIFF *tif;
    st_pic *pic;
    const st_pic_input *in;
    char reason[256];     /* libtiff's first complaint */
    unsigned bits, bands; /* per sample, per pixel */
    bool planar;          /* each sample in a plane of its own */
    bool inverted;        /* white is 0 */
    st_tiff_sample sample;
    st_tiff_colour colour;
    uint32_t tile_width, tile_height; /* 0: strips */
    size_t n_buffer;                  /* bytes of a tile, or of a row of a strip */
    size_t n_row;                     /* bytes of one row of it */
    uint8_t *buffer;                  /* [n_buffer] */
} st_tiff;

ST_MUSTCHECK st_status st_tiff_read_pixels(st_tiff *t, st_error *err);
ST_MUSTCHECK st_status st_tiff_fail(const st_tiff *t, const char *doing, st_error *err);

#endif
