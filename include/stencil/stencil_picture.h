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

/* How pixels that are not 8-bit colour became 8-bit colour. */
typedef enum st_stretch {
    ST_STRETCH_AUTO = 0,   /* photographic 16-bit: divide by 257; 16-bit gray and float whose range says "sensor": percentiles */
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
    int orientation;        /* the EXIF orientation that was applied: 1..8, 1 = none */
    char format[8];         /* "jpeg", "png", "webp", "tiff", "heif" */
    int bits;               /* bits per sample in the file: 1..32 (32 = float) */
    int bands;              /* samples per pixel in the file */
    int stretched;          /* 1 when percentiles were used */
    float low, high;        /* the sample values that became 0 and 255 */
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

/* Draws one instance over a bitmap in place: tinted inside, a crisp outline, an optional label near the box's top left. */
typedef struct st_draw_style {
    uint8_t rgb[3];     /* colour */
    float fill;         /* 0..1 opacity inside the mask */
    uint32_t outline;   /* outline width in pixels, 0 = none */
    const float *box;   /* x0,y0,x1,y1 to draw as a thin rectangle, or NULL */
    const char *label;  /* UTF-8 (ASCII is drawn, the rest as '?'), or NULL */
} st_draw_style;
ST_API void st_draw_instance(st_bitmap *bitmap, const st_rle *mask, const st_draw_style *style);
/* The i-th colour of a palette whose neighbours are easy to tell apart. */
ST_API void st_draw_colour(size_t i, uint8_t rgb[3]);

/* Writes an 8-bit PNG: channels 1 (gray) or 3 (RGB). The file appears complete or not at all (temporary name, then rename). */
ST_API ST_MUSTCHECK st_status st_png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
                                           int channels, st_error *err);
/* The same for JPEG (RGB only), quality 1..100. */
ST_API ST_MUSTCHECK st_status st_jpeg_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height,
                                            int quality, st_error *err);

#ifdef __cplusplus
}
#endif
#endif
