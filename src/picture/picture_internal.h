/* picture_internal.h: what the files of the picture room share.
 *
 * A reader turns a file in memory into an st_pic: the samples as stored (not upright), either finished 8-bit RGB or
 * "wide" samples that st_pic_to_rgb still has to bring down to 8 bits. Readers check sizes through st_pic_alloc before
 * any pixel memory is taken.
 */
#ifndef ST_PICTURE_INTERNAL_H
#define ST_PICTURE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stencil/stencil_picture.h>

typedef enum st_pic_kind {
    ST_PIC_RGB8 = 0, /* uint8_t [height][width][3] */
    ST_PIC_U16 = 1,  /* uint16_t [height][width][channels] */
    ST_PIC_F32 = 2   /* float [height][width][channels] */
} st_pic_kind;

typedef struct st_pic {
    uint32_t width, height; /* as stored */
    st_pic_kind kind;
    int channels;              /* 3; or 1 for wide gray */
    void *samples;             /* from st_malloc */
    float full_low, full_high; /* the full range of the file's sample type */
    const char *format;        /* "jpeg", ... */
    int bits, bands;           /* in the file */
    int orientation;           /* EXIF, 1..8 */
    int is_float, damaged;
} st_pic;

typedef struct st_pic_input {
    const uint8_t *bytes;
    size_t n;
    const char *name; /* for messages */
    uint64_t max_pixels;
    bool keep_wide; /* keep more than 8 bits also where the full range would do: the stretch is forced */
} st_pic_input;

/* Every reader fills a zeroed st_pic; on failure the caller frees what it holds (st_pic_free). */
ST_MUSTCHECK st_status st_pic_read_jpeg(st_pic *out, const st_pic_input *in, st_error *err);
ST_MUSTCHECK st_status st_pic_read_png(st_pic *out, const st_pic_input *in, st_error *err);
ST_MUSTCHECK st_status st_pic_read_webp(st_pic *out, const st_pic_input *in, st_error *err);
ST_MUSTCHECK st_status st_pic_read_tiff(st_pic *out, const st_pic_input *in, st_error *err);
ST_MUSTCHECK st_status st_pic_read_heif(st_pic *out, const st_pic_input *in, st_error *err);

/* Refuses 0 x 0 and more than max_pixels; sets width and height. */
ST_MUSTCHECK st_status st_pic_check_size(st_pic *pic, const st_pic_input *in, uint64_t width, uint64_t height,
                                         st_error *err);
/* Takes memory for pic->width x height pixels of `n_bytes` each, zeroed. */
ST_MUSTCHECK st_status st_pic_alloc(st_pic *pic, const st_pic_input *in, size_t n_bytes, st_error *err);
void st_pic_free(st_pic *pic); /* zeroes */

/* EXIF orientation, 1..8, from an EXIF block (with or without its "Exif\0\0") and an XMP packet, either may be NULL.
 * Like Pillow: EXIF decides if it has the tag at all, else XMP's tiff:Orientation; what is not 2..8 means 1. Broken
 * blocks mean 1. */
ST_MUSTCHECK st_status st_exif_orientation(int *orientation, const uint8_t *exif, size_t n_exif, const uint8_t *xmp,
                                           size_t n_xmp, const char *name, st_error *err);

/* CMYK (0 = no ink) to RGB with Pillow's arithmetic (libImaging/Convert.c, cmyk2rgb). out may be in. */
void st_cmyk_to_rgb(uint8_t *out, const uint8_t *in, size_t n_pixels);
/* RGB multiplied by alpha, to RGB (libImaging/Unpack.c, unpackRGBa). out may be in. */
void st_rgba_unmultiply(uint8_t *out, const uint8_t *in, size_t n_pixels);

/* Wide samples to 8-bit RGB in bitmap->rgb, or the forced stretch of 8-bit RGB in place; takes pic->samples over. Fills
 * stretched, low, high. */
ST_MUSTCHECK st_status st_pic_to_rgb(st_bitmap *out, st_pic *pic, const st_bitmap_options *opts, const char *name,
                                     st_error *err);
/* Turns out->rgb upright: swaps width and height for 5..8. */
ST_MUSTCHECK st_status st_bitmap_turn(st_bitmap *out, int orientation, const char *name, st_error *err);

/* The label font: 7 rows of 5 bits each (bit 4 = left) of a printable ASCII character; anything else gives '?'. */
#define ST_FONT_WIDTH 5
#define ST_FONT_HEIGHT 7
#define ST_FONT_DROP 2 /* rows below the line */
const uint8_t *st_font_glyph(char c);
unsigned st_font_drop(char c); /* rows by which the glyph hangs below the line: 0 or ST_FONT_DROP */

#endif
