/* picture_tiff_samples.c: rows and tiles of any sample type to an st_pic.
 *
 * A canvas of 1, 3 or 4 channels takes the samples; gray and palette bytes are spread to RGB as they arrive, CMYK and
 * premultiplied RGBA are brought to RGB in place once all planes are there. Strips are read row by row and tiles one at
 * a time, so memory does not depend on the strip's size.
 */
#include <math.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_tiff.h"

/* What put_run writes into. */
typedef struct canvas {
    int channels;          /* samples taken per pixel: 1, 3 or 4 */
    uint8_t table[256][3]; /* palette or gray to RGB; used with 1 channel of bytes */
} canvas;

/* ------------------------------------------------------------------ samples */

/* Sample i of a row of packed unsigned samples; libtiff has brought bytes and words into this machine's order, and bits
 * most significant first. */
static uint32_t get_uint(const uint8_t *row, size_t i, unsigned bits)
{
    uint16_t half;
    uint32_t word, v = 0;
    switch (bits) {
    case 8: return row[i];
    case 16: memcpy(&half, row + 2 * i, 2); return half;
    case 32: memcpy(&word, row + 4 * i, 4); return word;
    default: break;
    }
    for (size_t bit = i * bits, end = bit + bits; bit < end; bit++)
        v = v << 1 | ((uint32_t)row[bit >> 3] >> (7 - (bit & 7)) & 1u);
    return v;
}

/* binary16 to float, subnormals, infinities and NaN included. */
static float from_half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    float v;
    if (exponent == 31) v = fraction ? NAN : INFINITY;
    else if (exponent) v = ldexpf((float)(fraction + 1024), exponent - 25);
    else v = ldexpf((float)fraction, -24);
    return h & 0x8000 ? -v : v;
}

static float get_float(const uint8_t *row, size_t i, st_tiff_sample type, unsigned bits)
{
    int16_t i16;
    int32_t i32;
    float f;
    double d;
    if (type == ST_TIFF_UINT) return (float)get_uint(row, i, bits);
    if (type == ST_TIFF_INT && bits == 16) {
        memcpy(&i16, row + 2 * i, 2);
        return (float)i16;
    }
    if (type == ST_TIFF_INT) {
        memcpy(&i32, row + 4 * i, 4);
        return (float)i32;
    }
    if (bits == 16) return from_half((uint16_t)get_uint(row, i, 16));
    if (bits == 32) {
        memcpy(&f, row + 4 * i, 4);
        return f;
    }
    memcpy(&d, row + 8 * i, 8);
    return (float)d;
}

/* 1 to 8 bits by their full range; more bits lose their low ones. */
static uint8_t to_byte(uint32_t v, unsigned bits)
{
    const uint32_t top = bits < 8 ? (1u << bits) - 1 : 255;
    return (uint8_t)(bits > 8 ? v >> (bits - 8) : bits == 8 ? v : (v * 255 + top / 2) / top);
}

/* n samples src[first + i*step] to dst[i*channels]. */
static void bytes_run(uint8_t *dst, int channels, const uint8_t *src, size_t first, size_t step, size_t n,
                      const st_tiff *t)
{
    const uint8_t flip = t->inverted ? 255 : 0;
    for (size_t i = 0; i < n; i++)
        dst[i * (size_t)channels] = to_byte(get_uint(src, first + i * step, t->bits), t->bits) ^ flip;
}

static void words_run(uint16_t *dst, int channels, const uint8_t *src, size_t first, size_t step, size_t n,
                      const st_tiff *t)
{
    const uint32_t top = (1u << t->bits) - 1, flip = t->inverted ? top : 0;
    for (size_t i = 0; i < n; i++)
        dst[i * (size_t)channels] = (uint16_t)(get_uint(src, first + i * step, t->bits) ^ flip);
}

static void floats_run(float *dst, int channels, const uint8_t *src, size_t first, size_t step, size_t n,
                       const st_tiff *t)
{
    const float sum = t->pic->full_low + t->pic->full_high;
    for (size_t i = 0; i < n; i++) {
        const float v = get_float(src, first + i * step, t->sample, t->bits);
        dst[i * (size_t)channels] = t->inverted ? sum - v : v;
    }
}

static void table_run(uint8_t *dst, const canvas *c, const uint8_t *src, size_t step, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i++) memcpy(dst + 3 * i, c->table[get_uint(src, i * step, bits)], 3);
}

/* One row of one plane (or of all samples, interleaved) to pixels x0 .. x0+n-1 of row y. */
static void put_run(const st_tiff *t, const canvas *c, uint32_t x0, uint32_t y, size_t n, const uint8_t *row,
                    unsigned plane)
{
    const size_t at = (size_t)y * t->pic->width + x0, step = t->planar ? 1 : t->bands;
    const unsigned first = t->planar ? plane : 0, last = t->planar ? plane + 1 : (unsigned)c->channels;
    if (t->pic->kind == ST_PIC_RGB8 && c->channels == 1) {
        table_run((uint8_t *)t->pic->samples + at * 3, c, row, step, n, t->bits);
        return;
    }
    for (unsigned ch = first; ch < last; ch++) {
        const size_t to = at * (size_t)c->channels + ch, from = t->planar ? 0 : ch;
        switch (t->pic->kind) {
        case ST_PIC_RGB8: bytes_run((uint8_t *)t->pic->samples + to, c->channels, row, from, step, n, t); break;
        case ST_PIC_U16: words_run((uint16_t *)t->pic->samples + to, c->channels, row, from, step, n, t); break;
        case ST_PIC_F32: floats_run((float *)t->pic->samples + to, c->channels, row, from, step, n, t); break;
        }
    }
}

/* ------------------------------------------------------------------ strips and tiles */

static st_status fail_part(const st_tiff *t, const char *what, uint32_t x, uint32_t y, st_error *err)
{
    char doing[64];
    snprintf(doing, sizeof doing, "%s at column %u, row %u", what, x, y);
    return st_tiff_fail(t, doing, err);
}

static st_status read_strips(st_tiff *t, const canvas *c, unsigned plane, st_error *err)
{
    for (uint32_t y = 0; y < t->pic->height; y++) {
        if (TIFFReadScanline(t->tif, t->buffer, y, (uint16_t)plane) != 1) return fail_part(t, "a row", 0, y, err);
        put_run(t, c, 0, y, t->pic->width, t->buffer, plane);
    }
    return ST_OK;
}

static void put_tile(const st_tiff *t, const canvas *c, uint32_t x, uint32_t y, unsigned plane)
{
    const uint32_t right = t->pic->width - x, below = t->pic->height - y;
    const uint32_t n = right < t->tile_width ? right : t->tile_width,
                   rows = below < t->tile_height ? below : t->tile_height;
    for (uint32_t i = 0; i < rows; i++) put_run(t, c, x, y + i, n, t->buffer + (size_t)i * t->n_row, plane);
}

static st_status read_tiles(st_tiff *t, const canvas *c, unsigned plane, st_error *err)
{
    for (uint64_t y = 0; y < t->pic->height; y += t->tile_height)
        for (uint64_t x = 0; x < t->pic->width; x += t->tile_width) {
            memset(t->buffer, 0, t->n_buffer); /* a codec may stop early without saying so */
            if (TIFFReadTile(t->tif, t->buffer, (uint32_t)x, (uint32_t)y, 0, (uint16_t)plane) < 0)
                return fail_part(t, "a tile", (uint32_t)x, (uint32_t)y, err);
            put_tile(t, c, (uint32_t)x, (uint32_t)y, plane);
        }
    return ST_OK;
}

/* ------------------------------------------------------------------ the picture */

static st_status make_table(canvas *c, const st_tiff *t, st_error *err)
{
    uint16_t *rgb[3] = { NULL, NULL, NULL };
    const unsigned n = t->bits <= 8 ? 1u << t->bits : 0;
    if (t->colour == ST_TIFF_PALETTE) {
        if (!TIFFGetField(t->tif, TIFFTAG_COLORMAP, &rgb[0], &rgb[1], &rgb[2]) || !rgb[0] || !rgb[1] || !rgb[2])
            return st_fail(err, ST_ERR_FORMAT, "%s: TIFF: a palette picture without a colour map", t->in->name);
        for (unsigned i = 0; i < n; i++)
            for (int ch = 0; ch < 3; ch++) c->table[i][ch] = (uint8_t)(rgb[ch][i] >> 8);
        return ST_OK;
    }
    for (unsigned i = 0; i < n; i++) memset(c->table[i], to_byte(i, t->bits) ^ (t->inverted ? 255 : 0), 3);
    return ST_OK;
}

/* Decides what is kept of a sample and how many there are, and takes the canvas. */
static st_status make_canvas(canvas *c, st_tiff *t, st_error *err)
{
    st_pic *pic = t->pic;
    const bool gray = t->colour == ST_TIFF_GRAY, single = gray || t->colour == ST_TIFF_PALETTE;
    const bool four = t->colour == ST_TIFF_CMYK || t->colour == ST_TIFF_RGB_MULTIPLIED;
    c->channels = single ? 1 : four ? 4 : 3;
    if (t->sample != ST_TIFF_UINT || t->bits > 16) pic->kind = ST_PIC_F32;
    else if (t->bits > 8 && !four && (gray || t->in->keep_wide)) pic->kind = ST_PIC_U16;
    else pic->kind = ST_PIC_RGB8;
    const bool wide = pic->kind != ST_PIC_RGB8;
    pic->channels = wide ? c->channels : 3;
    const size_t n_bytes = wide ? (size_t)c->channels * (pic->kind == ST_PIC_U16 ? 2 : 4) : four ? 4 : 3;
    st_status status = st_pic_alloc(pic, t->in, n_bytes, err);
    if (status != ST_OK) return status;
    t->buffer = st_calloc(t->n_buffer, 1);
    if (!t->buffer)
        return st_fail(err, ST_ERR_NOMEM, "%s: TIFF: no memory for %zu bytes of samples", t->in->name, t->n_buffer);
    return single && !wide ? make_table(c, t, err) : ST_OK;
}

/* YCbCr with its subsampling is libtiff's own business: [height][width] of packed RGBA. Its idea of orientation is
 * taken out: turning comes later. */
static st_status read_by_rgba(st_tiff *t, st_error *err)
{
    TIFFRGBAImage image;
    char text[1024] = "";
    st_pic *pic = t->pic;
    size_t n;
    if (!TIFFRGBAImageOK(t->tif, text) || !TIFFRGBAImageBegin(&image, t->tif, 1, text))
        return st_fail(err, ST_ERR_UNSUPPORTED, "%s: TIFF: %s", t->in->name, text);
    image.orientation = image.req_orientation = ORIENTATION_TOPLEFT;
    st_status status = ST_OK;
    n = (size_t)pic->width * pic->height;
    uint32_t *raster = st_calloc(n, sizeof *raster);
    if (!raster)
        status =
            st_fail(err, ST_ERR_NOMEM, "%s: TIFF: no memory for %u x %u pixels", t->in->name, pic->width, pic->height);
    if (status == ST_OK && !TIFFRGBAImageGet(&image, raster, pic->width, pic->height))
        status = st_tiff_fail(t, "its pixels", err);
    if (status == ST_OK) status = st_pic_alloc(pic, t->in, 3, err);
    uint8_t *rgb = pic->samples;
    for (size_t i = 0; status == ST_OK && i < n; i++, rgb += 3) {
        rgb[0] = (uint8_t)TIFFGetR(raster[i]);
        rgb[1] = (uint8_t)TIFFGetG(raster[i]);
        rgb[2] = (uint8_t)TIFFGetB(raster[i]);
    }
    pic->channels = 3;
    TIFFRGBAImageEnd(&image);
    st_free(raster);
    return status;
}

st_status st_tiff_read_pixels(st_tiff *t, st_error *err)
{
    if (t->colour == ST_TIFF_RGBA_INTERFACE) return read_by_rgba(t, err);
    canvas c = { 0 };
    st_status status = make_canvas(&c, t, err);
    const unsigned n_planes = t->planar ? (unsigned)c.channels : 1;
    for (unsigned plane = 0; status == ST_OK && plane < n_planes; plane++)
        status = t->tile_width ? read_tiles(t, &c, plane, err) : read_strips(t, &c, plane, err);
    if (status != ST_OK) return status;
    const size_t n = (size_t)t->pic->width * t->pic->height;
    if (t->colour == ST_TIFF_CMYK) st_cmyk_to_rgb(t->pic->samples, t->pic->samples, n);
    if (t->colour == ST_TIFF_RGB_MULTIPLIED) st_rgba_unmultiply(t->pic->samples, t->pic->samples, n);
    return ST_OK;
}
