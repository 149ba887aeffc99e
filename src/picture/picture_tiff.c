/* picture_tiff.c: the first page of a TIFF, through libtiff: what the tags say, and the caps. How samples become pixels
 * is in picture_tiff_samples.c.
 *
 * libtiff reads from memory through callbacks. Errors and warnings come back through the handle (libtiff 4.5), never
 * through its process-wide handlers and never on stderr. libtiff's own allocations are capped.
 */
#include "picture/picture_tiff.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

#define MAX_ALLOC ((tmsize_t)256 << 20) /* one allocation of libtiff, or the file's size when that is more */
#define MAX_ROW ((uint64_t)256 << 20)   /* bytes of one row with all its samples */
#define MAX_TILE ((uint64_t)1 << 30)    /* bytes of one tile */

/* ------------------------------------------------------------------ the file in memory */

typedef struct memory_file {
    const uint8_t *bytes;
    uint64_t n, at;
} memory_file;

static tmsize_t on_read(thandle_t handle, void *out, tmsize_t n)
{
    memory_file *f = handle;
    if (n <= 0 || f->at >= f->n) return 0;
    const uint64_t left = f->n - f->at;
    const size_t take = (uint64_t)n < left ? (size_t)n : (size_t)left;
    memcpy(out, f->bytes + f->at, take);
    f->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t handle, void *data, tmsize_t n)
{
    (void)handle;
    (void)data;
    (void)n;
    return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence)
{
    memory_file *f = handle;
    if (whence == SEEK_CUR) offset += f->at; /* unsigned: a negative step wraps back, as in libtiff's own tif_unix.c */
    else if (whence == SEEK_END) offset += f->n;
    f->at = offset;
    return offset;
}

static toff_t on_size(thandle_t handle)
{
    return ((memory_file *)handle)->n;
}
static int on_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static int on_map(thandle_t handle, void **base, toff_t *size)
{
    const memory_file *f = handle;
    *base = (void *)(uintptr_t)f->bytes; /* libtiff only reads: the handle is opened "r" */
    *size = f->n;
    return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size)
{
    (void)handle;
    (void)base;
    (void)size;
}

/* Keeps the first complaint: later ones follow from it. */
static int on_error(TIFF *tif, void *user, const char *module, const char *fmt, va_list args)
{
    st_tiff *t = user;
    (void)tif;
    (void)module;
    if (!t->reason[0]) vsnprintf(t->reason, sizeof t->reason, fmt, args);
    return 1;
}

static int on_warning(TIFF *tif, void *user, const char *module, const char *fmt, va_list args)
{
    (void)tif;
    (void)user;
    (void)module;
    (void)fmt;
    (void)args;
    return 1;
}

static TIFF *open_memory(st_tiff *t, memory_file *f)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)f->n > MAX_ALLOC ? (tmsize_t)f->n : MAX_ALLOC);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, t);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, t);
    TIFF *tif =
        TIFFClientOpenExt("picture", "r", f, on_read, on_write, on_seek, on_close, on_size, on_map, on_unmap, options);
    TIFFOpenOptionsFree(options);
    return tif;
}

st_status st_tiff_fail(const st_tiff *t, const char *doing, st_error *err)
{
    const bool memory = strstr(t->reason, "ut of memory") != NULL;
    return st_fail(err, memory ? ST_ERR_NOMEM : ST_ERR_FORMAT, "%s: TIFF: cannot read %s%s%s", t->in->name, doing,
                   t->reason[0] ? ": " : "", t->reason);
}

/* ------------------------------------------------------------------ tags */

static st_status unsupported(const st_tiff *t, const char *what, unsigned got, const char *expected, st_error *err)
{
    return st_fail(err, ST_ERR_UNSUPPORTED, "%s: TIFF: %s %u is not supported, expected %s", t->in->name, what, got,
                   expected);
}

/* How the samples are stored: sets t->sample and the range of the type. */
static st_status read_sample_type(st_tiff *t, st_error *err)
{
    uint16_t format = SAMPLEFORMAT_UINT;
    TIFFGetFieldDefaulted(t->tif, TIFFTAG_SAMPLEFORMAT, &format);
    const unsigned bits = t->bits;
    t->pic->full_low = 0;
    if (format == SAMPLEFORMAT_IEEEFP) {
        if (bits != 16 && bits != 32 && bits != 64)
            return unsupported(t, "float sample size", bits, "16, 32 or 64 bits", err);
        t->sample = ST_TIFF_FLOAT;
        t->pic->is_float = 1;
        t->pic->full_high = 1; /* by convention */
        return ST_OK;
    }
    if (format == SAMPLEFORMAT_INT && bits > 8) {
        if (bits != 16 && bits != 32) return unsupported(t, "signed sample size", bits, "8, 16 or 32 bits", err);
        t->sample = ST_TIFF_INT;
        t->pic->full_low = bits == 16 ? -32768.0f : -2147483648.0f;
        t->pic->full_high = bits == 16 ? 32767.0f : 2147483648.0f;
        return ST_OK;
    }
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID && format != SAMPLEFORMAT_INT)
        return unsupported(t, "sample format", format, "unsigned (1), signed (2) or float (3)", err);
    if (bits < 1 || (bits > 16 && bits != 32)) return unsupported(t, "sample size", bits, "1 to 16, or 32 bits", err);
    t->sample = ST_TIFF_UINT;
    t->pic->full_high = bits <= 8 ? 255.0f : bits == 32 ? 4294967296.0f : (float)((1u << bits) - 1);
    return ST_OK;
}

/* Extra samples are alpha (1 = colours are multiplied by it, 2 = not) or of unknown meaning (0). */
static void count_extra(const st_tiff *t, unsigned *n_alpha, bool *multiplied)
{
    uint16_t n = 0, *kinds = NULL;
    *n_alpha = 0;
    *multiplied = false;
    if (!TIFFGetField(t->tif, TIFFTAG_EXTRASAMPLES, &n, &kinds) || !kinds) return;
    for (uint16_t i = 0; i < n; i++) *n_alpha += kinds[i] != EXTRASAMPLE_UNSPECIFIED;
    *multiplied = n > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
}

/* Needs bands and bits. */
static st_status read_colour(st_tiff *t, st_error *err)
{
    uint16_t photometric, compression = COMPRESSION_NONE, inks = INKSET_CMYK;
    unsigned n_alpha;
    bool multiplied;
    if (!TIFFGetField(t->tif, TIFFTAG_PHOTOMETRIC, &photometric))
        photometric = t->bands >= 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISWHITE;
    TIFFGetFieldDefaulted(t->tif, TIFFTAG_COMPRESSION, &compression);
    count_extra(t, &n_alpha, &multiplied);
    const bool bytes = t->sample == ST_TIFF_UINT && (t->bits == 8 || t->bits == 16);
    if (compression == COMPRESSION_OJPEG) photometric = PHOTOMETRIC_YCBCR; /* as Pillow does: old-style JPEG is YCbCr */
    switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        t->inverted = photometric == PHOTOMETRIC_MINISWHITE;
        t->colour = t->bands - n_alpha >= 3 && t->bands > n_alpha ? ST_TIFF_RGB : ST_TIFF_GRAY;
        return ST_OK;
    case PHOTOMETRIC_RGB:
        t->colour = multiplied && bytes && t->bands >= 4 ? ST_TIFF_RGB_MULTIPLIED : ST_TIFF_RGB;
        if (t->bands < 3) return unsupported(t, "RGB with samples per pixel of", t->bands, "at least 3", err);
        return ST_OK;
    case PHOTOMETRIC_PALETTE:
        t->colour = ST_TIFF_PALETTE;
        if (t->sample != ST_TIFF_UINT || t->bits > 8)
            return unsupported(t, "palette sample size", t->bits, "1 to 8 bits", err);
        return ST_OK;
    case PHOTOMETRIC_SEPARATED:
        t->colour = ST_TIFF_CMYK;
        TIFFGetFieldDefaulted(t->tif, TIFFTAG_INKSET, &inks);
        if (inks != INKSET_CMYK || t->bands < 4) return unsupported(t, "ink set", inks, "CMYK (1) with 4 samples", err);
        if (!bytes) return unsupported(t, "CMYK sample size", t->bits, "8 or 16 bits", err);
        return ST_OK;
    case PHOTOMETRIC_YCBCR:
        t->colour = ST_TIFF_RGBA_INTERFACE;
        if (t->bits != 8 || t->sample != ST_TIFF_UINT)
            return unsupported(t, "YCbCr sample size", t->bits, "8 bits", err);
        if (compression == COMPRESSION_JPEG && !t->planar) { /* the JPEG codec turns it into RGB itself */
            TIFFSetField(t->tif, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
            t->colour = ST_TIFF_RGB;
            if (t->bands < 3) return unsupported(t, "YCbCr with samples per pixel of", t->bands, "3", err);
        }
        return ST_OK;
    default:
        return unsupported(t, "colour model (photometric interpretation)", photometric,
                           "gray, RGB, palette, CMYK or YCbCr", err);
    }
}

/* A tile may reach beyond the picture, but not make a small picture cost a lot. */
static st_status check_tiles(st_tiff *t, st_error *err)
{
    uint32_t w = 0, h = 0;
    TIFFGetField(t->tif, TIFFTAG_TILEWIDTH, &w);
    TIFFGetField(t->tif, TIFFTAG_TILELENGTH, &h);
    const uint64_t pixels = (uint64_t)w * h, n_bytes = TIFFTileSize64(t->tif), rows = TIFFTileRowSize64(t->tif);
    if (!w || !h || !n_bytes || !rows)
        return st_fail(err, ST_ERR_FORMAT, "%s: TIFF: tiles of %u x %u pixels", t->in->name, w, h);
    if (pixels > 4 * (uint64_t)t->pic->width * t->pic->height + ((uint64_t)16 << 20) || n_bytes > MAX_TILE)
        return st_fail(err, ST_ERR_LIMIT,
                       "%s: TIFF: tiles of %u x %u pixels, %" PRIu64 " bytes each, for a picture of %u x %u",
                       t->in->name, w, h, n_bytes, t->pic->width, t->pic->height);
    t->tile_width = w;
    t->tile_height = h;
    t->n_buffer = (size_t)n_bytes;
    t->n_row = (size_t)rows;
    return ST_OK;
}

static st_status check_rows(st_tiff *t, st_error *err)
{
    const uint64_t n_bytes = TIFFScanlineSize64(t->tif);
    if (!n_bytes) return st_tiff_fail(t, "the size of a row", err);
    if (n_bytes > MAX_ROW)
        return st_fail(err, ST_ERR_LIMIT, "%s: TIFF: rows of %" PRIu64 " bytes, more than the limit of %" PRIu64,
                       t->in->name, n_bytes, MAX_ROW);
    t->n_buffer = t->n_row = (size_t)n_bytes;
    return ST_OK;
}

/* All bytes that will be decoded. Parts of a file may share their data and hold bands that nobody looks at, so a small
 * file could ask for days of work. */
static st_status check_work(const st_tiff *t, st_error *err)
{
    const uint64_t pixels = (uint64_t)t->pic->width * t->pic->height, floor_bytes = (uint64_t)4 << 30;
    const uint64_t cap = 64 * pixels > floor_bytes ? 64 * pixels : floor_bytes;
    const uint64_t across = t->tile_width ? ((uint64_t)t->pic->width + t->tile_width - 1) / t->tile_width : 1;
    const uint64_t down =
        t->tile_width ? ((uint64_t)t->pic->height + t->tile_height - 1) / t->tile_height : t->pic->height;
    const uint64_t planes = t->planar ? (t->bands < 4 ? t->bands : 4) : 1;
    uint64_t total;
    if (__builtin_mul_overflow(across * down * planes, (uint64_t)t->n_buffer, &total) || total > cap)
        return st_fail(err, ST_ERR_LIMIT,
                       "%s: TIFF: %u x %u pixels of %u samples need more than the limit of %" PRIu64 " bytes decoded",
                       t->in->name, t->pic->width, t->pic->height, t->bands, cap);
    return ST_OK;
}

static st_status read_orientation(st_tiff *t, st_error *err)
{
    uint16_t orientation;
    uint32_t n = 0;
    void *xmp = NULL;
    if (TIFFGetField(t->tif, TIFFTAG_ORIENTATION, &orientation)) {
        t->pic->orientation = orientation >= 1 && orientation <= 8 ? orientation : 1;
        return ST_OK;
    }
    if (!TIFFGetField(t->tif, TIFFTAG_XMLPACKET, &n, &xmp) || !xmp) return ST_OK;
    return st_exif_orientation(&t->pic->orientation, NULL, 0, xmp, n, t->in->name, err);
}

static st_status read_tags(st_tiff *t, st_error *err)
{
    uint32_t w = 0, h = 0;
    uint16_t bits = 1, bands = 1, planar = PLANARCONFIG_CONTIG;
    TIFFGetField(t->tif, TIFFTAG_IMAGEWIDTH, &w);
    TIFFGetField(t->tif, TIFFTAG_IMAGELENGTH, &h);
    st_status status = st_pic_check_size(t->pic, t->in, w, h, err);
    if (status != ST_OK) return status;
    TIFFGetFieldDefaulted(t->tif, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(t->tif, TIFFTAG_SAMPLESPERPIXEL, &bands);
    TIFFGetFieldDefaulted(t->tif, TIFFTAG_PLANARCONFIG, &planar);
    if (bands < 1) return unsupported(t, "samples per pixel of", bands, "at least 1", err);
    t->bits = bits;
    t->bands = bands;
    t->planar = planar == PLANARCONFIG_SEPARATE && bands > 1;
    t->pic->bits = bits;
    t->pic->bands = bands;
    status = read_sample_type(t, err);
    if (status == ST_OK) status = read_colour(t, err);
    if (status == ST_OK) status = TIFFIsTiled(t->tif) ? check_tiles(t, err) : check_rows(t, err);
    if (status == ST_OK) status = check_work(t, err);
    return status == ST_OK ? read_orientation(t, err) : status;
}

st_status st_pic_read_tiff(st_pic *out, const st_pic_input *in, st_error *err)
{
    memory_file file = { in->bytes, in->n, 0 };
    st_tiff t = { .pic = out, .in = in };
    st_status status;
    t.tif = open_memory(&t, &file);
    if (!t.tif) return st_tiff_fail(&t, "the header or first directory", err);
    status = read_tags(&t, err);
    if (status == ST_OK) status = st_tiff_read_pixels(&t, err);
    TIFFClose(t.tif);
    st_free(t.buffer);
    return status;
}
