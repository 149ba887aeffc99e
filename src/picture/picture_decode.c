/* picture_decode.c: the way from a file to an upright 8-bit RGB picture. The format is decided by the first bytes,
 * never by the name. Caps are checked on the header, before memory for pixels is taken.
 */
#include <stddef.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

typedef st_status read_fn(st_pic *out, const st_pic_input *in, st_error *err);

/* A format that is told by `magic` at byte `at`. */
typedef struct signature {
    const char *magic;
    uint8_t n, at;
    const char *format; /* what st_bitmap.format says, or the name in the message when `read` is NULL */
    read_fn *read;
} signature;

#ifdef ST_HAVE_HEIF
#define READ_HEIF st_pic_read_heif
#else
#define READ_HEIF NULL
#endif

static const signature signatures[] = {
    { "\xff\xd8\xff", 3, 0, "jpeg", st_pic_read_jpeg },
    { "\x89PNG\r\n\x1a\n", 8, 0, "png", st_pic_read_png },
    { "II*\0", 4, 0, "tiff", st_pic_read_tiff },
    { "MM\0*", 4, 0, "tiff", st_pic_read_tiff },
    { "II+\0", 4, 0, "tiff", st_pic_read_tiff },
    { "MM\0+", 4, 0, "tiff", st_pic_read_tiff },
    { "WEBP", 4, 8, "webp", st_pic_read_webp }, /* after "RIFF" and a size */
    { "ftypheic", 8, 4, "heif", READ_HEIF },
    { "ftypheix", 8, 4, "heif", READ_HEIF },
    { "ftyphevc", 8, 4, "heif", READ_HEIF },
    { "ftypheim", 8, 4, "heif", READ_HEIF },
    { "ftypheis", 8, 4, "heif", READ_HEIF },
    { "ftypmif1", 8, 4, "heif", READ_HEIF },
    { "ftypmsf1", 8, 4, "heif", READ_HEIF },
    { "ftypavif", 8, 4, "heif", READ_HEIF },
    { "ftypavis", 8, 4, "heif", READ_HEIF },
    { "GIF8", 4, 0, "GIF", NULL },
    { "BM", 2, 0, "BMP", NULL },
    { "\xff\x0a", 2, 0, "JPEG XL", NULL },
    { "\0\0\0\x0cJXL ", 8, 0, "JPEG XL", NULL },
    { "\0\0\0\x0cjP  ", 8, 0, "JPEG 2000", NULL },
    { "%PDF", 4, 0, "PDF", NULL },
    { "8BPS", 4, 0, "Photoshop", NULL },
};
#define N_SIGNATURES (sizeof signatures / sizeof signatures[0])
#define READABLE "JPEG, PNG, WebP, TIFF"

static const signature *find_signature(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < N_SIGNATURES; i++) {
        const signature *s = &signatures[i];
        if (!st_range_fits(s->at, s->n, n) || memcmp(bytes + s->at, s->magic, s->n) != 0) continue;
        if (s->at == 8 && memcmp(bytes, "RIFF", 4) != 0) continue;
        return s;
    }
    return NULL;
}

int st_bitmap_can_read(const char *format)
{
    if (!format) return 0;
    for (size_t i = 0; i < N_SIGNATURES; i++)
        if (signatures[i].read && strcmp(signatures[i].format, format) == 0) return 1;
    return 0;
}

st_status st_pic_check_size(st_pic *pic, const st_pic_input *in, uint64_t width, uint64_t height, st_error *err)
{
    if (width == 0 || height == 0)
        return st_fail(err, ST_ERR_FORMAT, "%s: picture is %llu x %llu pixels, expected at least 1 x 1", in->name,
                       (unsigned long long)width, (unsigned long long)height);
    if (width > UINT32_MAX || height > UINT32_MAX || width * height > in->max_pixels)
        return st_fail(err, ST_ERR_LIMIT, "%s: picture is %llu x %llu pixels, more than the limit of %llu pixels",
                       in->name, (unsigned long long)width, (unsigned long long)height,
                       (unsigned long long)in->max_pixels);
    pic->width = (uint32_t)width;
    pic->height = (uint32_t)height;
    return ST_OK;
}

st_status st_pic_alloc(st_pic *pic, const st_pic_input *in, size_t n_bytes, st_error *err)
{
    size_t n_pixels, total;
    if (!st_mul_size(&n_pixels, pic->width, pic->height) || !st_mul_size(&total, n_pixels, n_bytes))
        return st_fail(err, ST_ERR_LIMIT, "%s: %u x %u pixels of %zu bytes do not fit into memory", in->name,
                       pic->width, pic->height, n_bytes);
    pic->samples = st_calloc(n_pixels, n_bytes);
    if (!pic->samples)
        return st_fail(err, ST_ERR_NOMEM, "%s: no memory for %u x %u pixels of %zu bytes", in->name, pic->width,
                       pic->height, n_bytes);
    return ST_OK;
}

void st_pic_free(st_pic *pic)
{
    st_free(pic->samples);
    memset(pic, 0, sizeof *pic);
}

/* Takes over what the caller's struct_size covers; the rest keeps its default. */
static st_status check_options(st_bitmap_options *out, const st_bitmap_options *opts, st_error *err)
{
    *out = (st_bitmap_options)ST_BITMAP_OPTIONS_INIT;
    if (!opts) return ST_OK;
    if (opts->struct_size < offsetof(st_bitmap_options, max_bytes))
        return st_fail(err, ST_ERR_INVALID_ARG,
                       "st_bitmap_options: struct_size is %zu, expected %zu (use ST_BITMAP_OPTIONS_INIT)",
                       opts->struct_size, sizeof *opts);
    memcpy(out, opts, opts->struct_size < sizeof *out ? opts->struct_size : sizeof *out);
    if ((int)out->stretch < ST_STRETCH_AUTO || (int)out->stretch > ST_STRETCH_ALWAYS)
        return st_fail(err, ST_ERR_INVALID_ARG, "st_bitmap_options: stretch is %d, expected 0, 1 or 2",
                       (int)out->stretch);
    if (!(out->low_percent >= 0 && out->low_percent < out->high_percent && out->high_percent <= 100))
        return st_fail(err, ST_ERR_INVALID_ARG,
                       "st_bitmap_options: percentiles are %g and %g, expected 0 <= low < high <= 100",
                       (double)out->low_percent, (double)out->high_percent);
    return ST_OK;
}

static st_status check_bytes(uint64_t n, const char *name, const st_bitmap_options *opts, st_error *err)
{
    if (n > opts->max_bytes)
        return st_fail(err, ST_ERR_LIMIT, "%s: file has %llu bytes, more than the limit of %llu", name,
                       (unsigned long long)n, (unsigned long long)opts->max_bytes);
    return ST_OK;
}

static st_status fail_unknown(const uint8_t *b, size_t n, const char *name, const signature *s, st_error *err)
{
    if (s && strcmp(s->format, "heif") == 0)
        return st_fail(err, ST_ERR_UNSUPPORTED,
                       "%s: is HEIF or AVIF, which this build does not read (it was built without libheif)", name);
    if (s)
        return st_fail(err, ST_ERR_UNSUPPORTED, "%s: is %s, which is not supported; expected %s or HEIF", name,
                       s->format, READABLE);
    if (n == 0) return st_fail(err, ST_ERR_FORMAT, "%s: file is empty, expected a picture", name);
    const uint8_t c[4] = { b[0], n > 1 ? b[1] : 0, n > 2 ? b[2] : 0, n > 3 ? b[3] : 0 };
    return st_fail(
        err, ST_ERR_FORMAT,
        "%s: not a picture: expected %s or HEIF, got a file of %zu bytes that begins with %02x %02x %02x %02x", name,
        READABLE, n, c[0], c[1], c[2], c[3]);
}

static st_status decode(st_bitmap *out, const uint8_t *bytes, size_t n, const char *name, const st_bitmap_options *opts,
                        st_error *err)
{
    st_pic pic = { 0 };
    const st_pic_input in = { bytes, n, name, opts->max_pixels, opts->stretch == ST_STRETCH_ALWAYS };
    const signature *s = n ? find_signature(bytes, n) : NULL;
    if (!s || !s->read) return fail_unknown(bytes, n, name, s, err);
    pic.format = s->format;
    pic.orientation = 1;
    st_status status = s->read(&pic, &in, err);
    if (status != ST_OK) goto done;
    out->bits = pic.bits;
    out->bands = pic.bands;
    out->is_float = pic.is_float;
    out->damaged = pic.damaged;
    memcpy(out->format, s->format, strlen(s->format) + 1);
    status = st_pic_to_rgb(out, &pic, opts, name, err);
    if (status == ST_OK) status = st_bitmap_turn(out, pic.orientation, name, err);
done:
    st_pic_free(&pic);
    if (status != ST_OK) st_bitmap_free(out);
    return status;
}

st_status st_bitmap_decode(st_bitmap *out, const void *bytes, size_t n_bytes, const char *name,
                           const st_bitmap_options *opts, st_error *err)
{
    st_bitmap_options o;
    memset(out, 0, sizeof *out);
    st_status status = check_options(&o, opts, err);
    if (status == ST_OK && n_bytes && !bytes)
        status = st_fail(err, ST_ERR_INVALID_ARG, "st_bitmap_decode: bytes is NULL");
    name = name ? name : "(memory)";
    if (status == ST_OK) status = check_bytes(n_bytes, name, &o, err);
    return status == ST_OK ? decode(out, bytes, n_bytes, name, &o, err) : status;
}

st_status st_bitmap_load(st_bitmap *out, const char *path, const st_bitmap_options *opts, st_error *err)
{
    st_bitmap_options o;
    memset(out, 0, sizeof *out);
    st_status status = check_options(&o, opts, err);
    if (status == ST_OK && !path) status = st_fail(err, ST_ERR_INVALID_ARG, "st_bitmap_load: path is NULL");
    if (status != ST_OK) return status;
    char *bytes = NULL;
    size_t n = 0;
    status = st_file_read(&bytes, &n, path, o.max_bytes, err);
    if (status == ST_OK) status = decode(out, (const uint8_t *)bytes, n, path, &o, err);
    st_free(bytes);
    return status;
}

void st_bitmap_free(st_bitmap *bitmap)
{
    if (!bitmap) return;
    st_free(bitmap->rgb);
    memset(bitmap, 0, sizeof *bitmap);
}
