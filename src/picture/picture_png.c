/* picture_png.c: PNG in, through libpng. The chunk list is walked here first: it gives the caps, the EXIF and XMP
 * blocks (which may lie behind the pixels) and finds a file that was cut, all without decoding; libpng is then told to
 * ignore everything but header, palette and pixels, so no profile or text chunk can make it work. Alpha and tRNS are
 * dropped, colours never composited or gamma-corrected, as in Pillow.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <png.h>
#include <zlib.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

#define MAX_TEXT (1u << 20) /* of one inflated text chunk */
#define MAX_DEFLATE 1032u   /* no deflate stream grows by more than this */

typedef struct reader {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    bool out_of_memory;
    char reason[128];
    st_pic *pic;
    const st_pic_input *in;
    size_t at; /* how far libpng has read */
    /* from the chunk list */
    uint32_t width, height;
    uint8_t depth, colour;
    uint64_t n_idat;
    const uint8_t *exif, *xmp;
    size_t n_exif, n_xmp;
    uint8_t *inflated; /* owner of the XMP or profile when it was compressed */
    uint8_t *profile;  /* EXIF from a "Raw profile type exif" text, decoded from hex */
    size_t n_profile;
} reader;

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ------------------------------------------------------------------ the chunk list */

static voidpf zlib_alloc(voidpf user, uInt n, uInt size)
{
    (void)user;
    return st_calloc(n, size);
}

static void zlib_free(voidpf user, voidpf p)
{
    (void)user;
    st_free(p);
}

/* Inflates at most MAX_TEXT bytes into r->inflated. A broken stream gives what came before the break, like a text that
 * was cut. */
static st_status inflate_text(reader *r, const uint8_t *data, size_t n, size_t *n_out, st_error *err)
{
    z_stream z = { .zalloc = zlib_alloc, .zfree = zlib_free };
    *n_out = 0;
    if (r->inflated) return ST_OK; /* one is enough */
    r->inflated = st_malloc(MAX_TEXT);
    if (!r->inflated || inflateInit(&z) != Z_OK)
        return st_fail(err, ST_ERR_NOMEM, "%s: no memory to inflate a text chunk", r->in->name);
    z.next_in = (z_const Bytef *)data;
    z.avail_in = n < UINT32_MAX ? (uInt)n : UINT32_MAX;
    z.next_out = r->inflated;
    z.avail_out = MAX_TEXT;
    const int rc = inflate(&z, Z_FINISH);
    *n_out = MAX_TEXT - z.avail_out;
    inflateEnd(&z);
    return rc == Z_MEM_ERROR ? st_fail(err, ST_ERR_NOMEM, "%s: no memory to inflate a text chunk", r->in->name) : ST_OK;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* ImageMagick's text form of EXIF: newline, name, newline, length, newline, hex digits broken into lines. */
static st_status take_profile(reader *r, const uint8_t *text, size_t n, st_error *err)
{
    size_t at = 0;
    for (int lines = 0; at < n && lines < 3; at++) lines += text[at] == '\n';
    if (r->profile || at >= n) return ST_OK;
    r->profile = st_malloc((n - at) / 2 + 1);
    if (!r->profile) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for an EXIF profile", r->in->name);
    int high = -1;
    for (; at < n; at++) {
        const int digit = hex_digit(text[at]);
        if (digit < 0) continue;
        if (high < 0) {
            high = digit;
            continue;
        }
        r->profile[r->n_profile++] = (uint8_t)(high << 4 | digit);
        high = -1;
    }
    return ST_OK;
}

static bool has_keyword(const uint8_t *data, size_t n, const char *keyword)
{
    const size_t n_key = strlen(keyword) + 1;
    return n >= n_key && memcmp(data, keyword, n_key) == 0;
}

/* keyword 0, flag, method, language 0, translated keyword 0, text */
static st_status take_itxt(reader *r, const uint8_t *data, size_t n, st_error *err)
{
    static const char keyword[] = "XML:com.adobe.xmp";
    if (!has_keyword(data, n, keyword) || n < sizeof keyword + 2 || r->xmp) return ST_OK;
    const int compressed = data[sizeof keyword];
    const uint8_t *p = data + sizeof keyword + 2, *end = data + n;
    for (int i = 0; i < 2; i++) {
        p = memchr(p, 0, (size_t)(end - p));
        if (!p) return ST_OK;
        p++;
    }
    r->xmp = p;
    r->n_xmp = (size_t)(end - p);
    if (!compressed) return ST_OK;
    r->xmp = NULL;
    const st_status status = inflate_text(r, p, (size_t)(end - p), &r->n_xmp, err);
    if (status == ST_OK && r->n_xmp) r->xmp = r->inflated;
    return status;
}

static bool checksum_fits(const uint8_t *kind, const uint8_t *data, size_t n) /* n is below 2^31 */
{
#ifdef ST_FUZZ_BUILD
    (void)kind, (void)data, (void)n;
    return true;
#else
    return crc32(crc32(0, kind, 4), data, (uInt)n) == be32(data + n);
#endif
}

static st_status take_chunk(reader *r, const uint8_t *kind, const uint8_t *data, size_t n, st_error *err)
{
    static const char profile[] = "Raw profile type exif";
    if (memcmp(kind, "IDAT", 4) == 0) r->n_idat += n;
    const bool wanted = memcmp(kind, "eXIf", 4) == 0 || memcmp(kind, "iTXt", 4) == 0 || memcmp(kind, "tEXt", 4) == 0 ||
                        memcmp(kind, "zTXt", 4) == 0;
    if (!wanted || !checksum_fits(kind, data, n)) return ST_OK;
    if (memcmp(kind, "eXIf", 4) == 0) {
        r->exif = data;
        r->n_exif = n;
    } else if (memcmp(kind, "iTXt", 4) == 0) {
        return take_itxt(r, data, n, err);
    } else if (has_keyword(data, n, profile)) {
        if (memcmp(kind, "tEXt", 4) == 0) return take_profile(r, data + sizeof profile, n - sizeof profile, err);
        size_t n_text;
        if (n < sizeof profile + 1) return ST_OK;
        const st_status status = inflate_text(r, data + sizeof profile + 1, n - sizeof profile - 1, &n_text, err);
        return status == ST_OK && n_text ? take_profile(r, r->inflated, n_text, err) : status;
    }
    return ST_OK;
}

/* length 4, kind 4, data, crc 4; the first is IHDR, the last IEND. */
static st_status walk_chunks(reader *r, st_error *err)
{
    const uint8_t *b = r->in->bytes;
    const size_t n = r->in->n;
    if (n < 33 || be32(b + 8) != 13 || memcmp(b + 12, "IHDR", 4) != 0)
        return st_fail(err, ST_ERR_FORMAT, "%s: PNG: expected a header chunk (IHDR) of 13 bytes first", r->in->name);
    r->width = be32(b + 16);
    r->height = be32(b + 20);
    r->depth = b[24];
    r->colour = b[25];
    st_status status = st_pic_check_size(r->pic, r->in, r->width, r->height, err);
    if (status != ST_OK) return status;
    for (size_t at = 8;;) {
        if (!st_range_fits(at, 12, n))
            return st_fail(err, ST_ERR_FORMAT, "%s: PNG: file is truncated: no end chunk (IEND) in %zu bytes",
                           r->in->name, n);
        const uint32_t length = be32(b + at);
        if (length > INT32_MAX || !st_range_fits(at + 12, length, n))
            return st_fail(err, ST_ERR_FORMAT,
                           "%s: PNG: file is truncated: chunk at byte %zu says %u bytes, the file has %zu left",
                           r->in->name, at, length, n - at - 12);
        if (memcmp(b + at + 4, "IEND", 4) == 0) return ST_OK;
        status = take_chunk(r, b + at + 4, b + at + 8, length, err);
        if (status != ST_OK) return status;
        at += 12 + (size_t)length;
    }
}

/* ------------------------------------------------------------------ pixels */

static void on_error(png_structp png, png_const_charp text)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->reason, sizeof r->reason, "%s", text);
    longjmp(r->jump, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp png_alloc(png_structp png, png_alloc_size_t n)
{
    reader *r = png_get_mem_ptr(png);
    void *p = st_malloc(n);
    if (!p) r->out_of_memory = true;
    return p;
}

static void png_release(png_structp png, png_voidp p)
{
    (void)png;
    st_free(p);
}

static void on_read(png_structp png, png_bytep out, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (!st_range_fits(r->at, n, r->in->n)) png_error(png, "file is truncated");
    memcpy(out, r->in->bytes + r->at, n);
    r->at += n;
}

static void set_conversions(reader *r)
{
    png_structp png = r->png;
    st_pic *pic = r->pic;
    const bool gray = !(r->colour & PNG_COLOR_MASK_COLOR);
    const bool wide = r->depth == 16 && (gray || r->in->keep_wide);
    pic->kind = wide ? ST_PIC_U16 : ST_PIC_RGB8;
    pic->channels = wide && gray ? 1 : 3;
    pic->bits = r->depth;
    pic->bands = png_get_channels(png, r->info);
    pic->full_high = r->depth == 16 ? 65535 : 255;
    if (r->colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (gray && r->depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);                           /* a palette's tRNS becomes alpha too */
    if (r->depth == 16 && !wide) png_set_strip_16(png); /* keeps the high byte, as Pillow does (RGB;16B) */
    if (gray && !wide) png_set_gray_to_rgb(png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (wide) png_set_swap(png);
#endif
}

/* Every row costs one byte and its samples: when the data could not fill them at deflate's best ratio, it was cut. */
static bool data_can_fill(const reader *r)
{
    const uint64_t row = ((uint64_t)r->width * png_get_channels(r->png, r->info) * r->depth + 7) / 8 + 1;
    uint64_t raw;
    return !__builtin_mul_overflow(row, r->height, &raw) && raw / MAX_DEFLATE <= r->n_idat;
}

static st_status decode(reader *r, st_error *err)
{
    st_pic *pic = r->pic;
    if (setjmp(r->jump)) {
        if (r->out_of_memory) return st_fail(err, ST_ERR_NOMEM, "%s: PNG: no memory to decode", r->in->name);
        return st_fail(err, ST_ERR_FORMAT, "%s: PNG: %s", r->in->name, r->reason);
    }
    r->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, on_error, on_warning, r, png_alloc, png_release);
    r->info = r->png ? png_create_info_struct(r->png) : NULL;
    if (!r->info) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a PNG decoder", r->in->name);
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* checked above, by pixels */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
#ifdef ST_FUZZ_BUILD
    png_set_crc_action(r->png, PNG_CRC_QUIET_USE,
                       PNG_CRC_QUIET_USE); /* or no mutation would get beyond the checksums */
#endif
    png_read_info(r->png, r->info);
    if (!data_can_fill(r))
        return st_fail(err, ST_ERR_FORMAT, "%s: PNG: file is truncated: %llu bytes of data cannot hold %u x %u pixels",
                       r->in->name, (unsigned long long)r->n_idat, r->width, r->height);
    set_conversions(r);
    const int n_passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    const size_t n_bytes = (size_t)pic->channels * (pic->kind == ST_PIC_U16 ? 2 : 1);
    const size_t stride = (size_t)pic->width * n_bytes;
    if (png_get_rowbytes(r->png, r->info) != stride)
        return st_fail(err, ST_ERR_INTERNAL, "%s: PNG decoder gives rows of %zu bytes, expected %zu", r->in->name,
                       png_get_rowbytes(r->png, r->info), stride);
    const st_status status = st_pic_alloc(pic, r->in, n_bytes, err);
    if (status != ST_OK) return status;
    for (int pass = 0; pass < n_passes; pass++)
        for (uint32_t y = 0; y < pic->height; y++) png_read_row(r->png, (png_bytep)pic->samples + y * stride, NULL);
    png_read_end(r->png, NULL);
    return ST_OK;
}

static st_status read_orientation(reader *r, st_error *err)
{
    const uint8_t *exif = r->exif ? r->exif : r->profile;
    return st_exif_orientation(&r->pic->orientation, exif, r->exif ? r->n_exif : r->n_profile, r->xmp, r->n_xmp,
                               r->in->name, err);
}

st_status st_pic_read_png(st_pic *out, const st_pic_input *in, st_error *err)
{
    reader *r = st_calloc(1, sizeof *r);
    if (!r) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a PNG decoder", in->name);
    r->pic = out;
    r->in = in;
    st_status status = walk_chunks(r, err);
    if (status == ST_OK) status = read_orientation(r, err);
    if (status == ST_OK) status = decode(r, err);
    png_destroy_read_struct(&r->png, &r->info, NULL);
    st_free(r->inflated);
    st_free(r->profile);
    st_free(r);
    return status;
}
