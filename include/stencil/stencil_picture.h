/* stencil_picture.h: picture files in, overlays and PNG out. Independent of any model.
 *
 * Thread rule: functions may be called from any thread on different objects.
 */
#ifndef STENCIL_PICTURE_H
#define STENCIL_PICTURE_H

#include <stencil/stencil_base.h>
#include <stencil/stencil_mask.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How pixels that are not 8-bit colour became 8-bit colour. By the full range: integers keep their high byte (for
 * 16-bit data that was made from 8 bits this is division by 257; it is what Pillow does), floats map 0..1 to 0..255.
 * docs/preprocessing.md has the exact rules. */
typedef enum st_stretch {
    ST_STRETCH_AUTO = 0,   /* gray above 8 bits, and floats, whose range says "sensor": percentiles; all else by the full range */
    ST_STRETCH_NEVER = 1,  /* always by the type's full range */
    ST_STRETCH_ALWAYS = 2  /* percentiles even for 8-bit */
} st_stretch;

typedef struct st_bitmap_options {
    size_t struct_size;   /* set by ST_BITMAP_OPTIONS_INIT */
    uint64_t max_pixels;  /* refuse larger pictures before allocating; default 300 million */
    uint64_t max_bytes;   /* refuse larger files; default 1 GiB */
    st_stretch stretch;   /* default ST_STRETCH_AUTO */
    float low_percent;    /* percentiles of the stretch; defaults 0.5 and 99.5 */
    float high_percent;
} st_bitmap_options;
#define ST_BITMAP_OPTIONS_INIT { sizeof(st_bitmap_options), 300000000u, 1u << 30, ST_STRETCH_AUTO, 0.5f, 99.5f }

/* A decoded picture as shown: EXIF orientation already applied, alpha dropped, 8-bit RGB. */
typedef struct st_bitmap {
    uint32_t width, height; /* as shown */
    uint8_t *rgb;           /* [height][width][3], rows without padding */
    int orientation;        /* the EXIF orientation that was applied: 1..8, 1 = none (HEIF: always 1, libheif turns it) */
    char format[8];         /* "jpeg", "png", "webp", "tiff", "heif" */
    int bits;               /* bits per sample in the file: 1..64 */
    int bands;              /* samples per pixel in the file */
    int stretched;          /* 1 when percentiles were used */
    float low, high;        /* the sample values that became 0 and 255 */
    int is_float;           /* 1: the file's samples are floating point */
    int damaged;            /* 1: the decoder met broken data and drew over it, as Pillow does (JPEG only; a file that
                             * ends early is an error) */
} st_bitmap;

/* Reads a picture file (first page or frame). On failure *out is zeroed and err names file and reason. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_bitmap_load(st_bitmap *out, const char *path, const st_bitmap_options *opts,
                                             st_error *err);
/* The same from memory; `name` is used in messages only. */
ST_API ST_MUSTCHECK st_status st_bitmap_decode(st_bitmap *out, const void *bytes, size_t n_bytes, const char *name,
                                               const st_bitmap_options *opts, st_error *err);
ST_API void st_bitmap_free(st_bitmap *bitmap); /* frees rgb and zeroes; NULL is fine */
/* 1 when this build reads `format` ("heif", ...). */
ST_API int st_bitmap_can_read(const char *format);

/* Draws one instance over a bitmap in place: tinted inside, a crisp outline, an optional label near the box's top left.
 * Everything is clipped to the bitmap; a mask of another size is not drawn; nothing is allocated. */
typedef struct st_draw_style {
    uint8_t rgb[3];     /* colour */
    float fill;         /* 0..1 opacity inside the mask */
    uint32_t outline;   /* outline width in pixels, 0 = none; at most 64 */
    const float *box;   /* x0,y0,x1,y1 to draw as a thin rectangle, or NULL */
    const char *label;  /* UTF-8 (ASCII is drawn, the rest as '?'), or NULL */
} st_draw_style;
ST_API void st_draw_instance(st_bitmap *bitmap, const st_rle *mask, const st_draw_style *style);
/* The i-th colour of a palette whose neighbours are easy to tell apart, also with colour-blind eyes. */
ST_API void st_draw_colour(size_t i, uint8_t rgb[3]);

/* Writes an 8-bit PNG: channels 1 (gray) or 3 (RGB). The file appears complete or not at all (temporary name, then rename). */
ST_API ST_MUSTCHECK st_status st_png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
                                           int channels, st_error *err);
/* The same for JPEG (RGB only), quality 1..100. */
ST_API ST_MUSTCHECK st_status st_jpeg_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height,
                                            int quality, st_error *err);

/* A PNG to be made in memory. */
typedef struct st_png_picture {
    size_t struct_size;     /* ST_PNG_PICTURE_INIT */
    const void *pixels;     /* [height][width * channels] uint8_t, or uint16_t with bits 16, rows without padding */
    uint32_t width, height;
    int channels;           /* 1 (gray) or 3 (RGB) */
    int bits;               /* 8, or 16 with one channel */
    const uint8_t *palette; /* [n_palette][3], or NULL: then the pixels, of one channel and 8 bits, are colours */
    uint32_t n_palette;     /* at most 256; a pixel beyond it is ST_ERR_INVALID_ARG */
} st_png_picture;
#define ST_PNG_PICTURE_INIT { sizeof(st_png_picture), NULL, 0, 0, 1, 8, NULL, 0 }
/* *bytes belongs to the caller: st_bytes_free. On failure it is NULL. */
ST_API ST_MUSTCHECK st_status st_png_encode(uint8_t **bytes, size_t *n_bytes, const st_png_picture *picture,
                                            st_error *err);
ST_API ST_MUSTCHECK st_status st_jpeg_encode(uint8_t **bytes, size_t *n_bytes, const uint8_t *rgb, uint32_t width,
                                             uint32_t height, int quality, st_error *err);
ST_API void st_bytes_free(uint8_t *bytes); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
