/* picture_write.c: PNG and JPEG out, to files and to memory. Files appear under their name complete or not at all
 * (base/file.h, st_out).
 *
 * As in the readers, everything that must survive the library's longjmp lives in a struct outside the function that
 * calls setjmp.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include <png.h>
#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

/* ------------------------------------------------------------------ PNG */

typedef struct png_writer {
    png_structp png;
    png_infop info;
    jmp_buf jump;
    bool out_of_memory;
    char reason[128];
    FILE *f;
    st_png_picture picture;
} png_writer;

static void on_png_error(png_structp png, png_const_charp text)
{
    png_writer *w = png_get_error_ptr(png);
    snprintf(w->reason, sizeof w->reason, "%s", text);
    longjmp(w->jump, 1);
}

static void on_png_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static png_voidp png_alloc(png_structp png, png_alloc_size_t n)
{
    png_writer *w = png_get_mem_ptr(png);
    void *p = st_malloc(n);
    if (!p) w->out_of_memory = true;
    return p;
}

static void png_release(png_structp png, png_voidp p)
{
    (void)png;
    st_free(p);
}

static void on_png_write(png_structp png, png_bytep data, size_t n)
{
    png_writer *w = png_get_io_ptr(png);
    if (fwrite(data, 1, n, w->f) != n) png_error(png, "cannot write: disk full or file lost");
}

static void on_png_flush(png_structp png)
{
    (void)png;
}

_Static_assert(sizeof(png_color) == 3, "palettes are [n][3] bytes");

static int colour_type(const st_png_picture *p)
{
    return p->palette ? PNG_COLOR_TYPE_PALETTE : p->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
}

static st_status encode_png(png_writer *w, const char *path, st_error *err)
{
    if (setjmp(w->jump)) {
        if (w->out_of_memory) return st_fail(err, ST_ERR_NOMEM, "%s: PNG: no memory to encode", path);
        return st_fail(err, ST_ERR_IO, "%s: PNG: %s", path, w->reason);
    }
    w->png =
        png_create_write_struct_2(PNG_LIBPNG_VER_STRING, w, on_png_error, on_png_warning, w, png_alloc, png_release);
    w->info = w->png ? png_create_info_struct(w->png) : NULL;
    if (!w->info) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a PNG encoder", path);
    png_set_write_fn(w->png, w, on_png_write, on_png_flush);
    png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_compression_level(w->png, 5); /* on photographs the size of 6 in half the time */
    const st_png_picture *p = &w->picture;
    png_set_IHDR(w->png, w->info, p->width, p->height, p->bits, colour_type(p), PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (p->palette) png_set_PLTE(w->png, w->info, (png_const_colorp)p->palette, (int)p->n_palette);
    png_write_info(w->png, w->info);
    if (p->bits == 16 && *(const uint8_t *)&(const uint16_t){ 1 } == 1) png_set_swap(w->png); /* PNG: high byte first */
    const size_t stride = (size_t)p->width * (size_t)p->channels * (size_t)(p->bits / 8);
    for (uint32_t y = 0; y < p->height; y++) png_write_row(w->png, (const uint8_t *)p->pixels + y * stride);
    png_write_end(w->png, NULL);
    return ST_OK;
}

static st_status check_arguments(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height,
                                 uint32_t most, st_error *err)
{
    if (!path || !pixels)
        return st_fail(err, ST_ERR_INVALID_ARG, "picture to write: %s is NULL", path ? "pixels" : "path");
    if (width == 0 || height == 0 || width > most || height > most)
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: picture to write is %u x %u pixels, expected 1 to %u a side", path,
                       width, height, most);
    return ST_OK;
}

st_status st_png_write(const char *path, const uint8_t *pixels, uint32_t width, uint32_t height, int channels,
                       st_error *err)
{
    st_out out = { 0 };
    st_status status = check_arguments(path, pixels, width, height, PNG_UINT_31_MAX, err);
    if (status != ST_OK) return status;
    if (channels != 1 && channels != 3)
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: PNG to write has %d channels, expected 1 or 3", path, channels);
    png_writer *w = st_calloc(1, sizeof *w);
    if (!w) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a PNG encoder", path);
    status = st_out_open(&out, path, err);
    if (status == ST_OK) {
        w->f = out.f;
        w->picture = (st_png_picture){ .pixels = pixels, .width = width, .height = height, .channels = channels, .bits = 8 };
        status = encode_png(w, path, err);
        png_destroy_write_struct(&w->png, &w->info);
    }
    if (status == ST_OK) status = st_out_commit(&out, err);
    else st_out_abort(&out);
    st_free(w);
    return status;
}

/* ------------------------------------------------------------------ memory */

void st_bytes_free(uint8_t *bytes)
{
    st_free(bytes);
}

static ssize_t add_encoded(void *cookie, const char *bytes, size_t n)
{
    return st_buf_add(cookie, bytes, n) ? (ssize_t)n : 0;
}

/* Not open_memstream: what it had no memory for is missing, and its fclose does not tell. */
static FILE *open_stream(st_buf *buf)
{
    st_buf_init(buf, PTRDIFF_MAX);
    return fopencookie(buf, "w", (cookie_io_functions_t){ .write = add_encoded });
}

/* Closes the stream; what it took in, when all went well so far. */
static st_status take_stream(uint8_t **bytes, size_t *n, FILE *f, st_buf *buf, st_status so_far, st_error *err)
{
    const bool whole = fclose(f) == 0 && !buf->failed;
    if (so_far == ST_OK && whole) {
        *n = buf->n;
        *bytes = (uint8_t *)st_buf_take(buf);
    }
    st_buf_free(buf);
    if (so_far != ST_OK && whole) return so_far;
    return *bytes ? ST_OK : st_fail(err, ST_ERR_NOMEM, "no memory for an encoded picture");
}

static st_status check_png(const st_png_picture *p, st_error *err)
{
    if (p->channels != 1 && p->channels != 3)
        return st_fail(err, ST_ERR_INVALID_ARG, "PNG to encode has %d channels, expected 1 or 3", p->channels);
    if (p->bits != 8 && (p->bits != 16 || p->channels != 1))
        return st_fail(err, ST_ERR_INVALID_ARG, "PNG to encode has %d bits in %d channels, expected 8, or 16 in one",
                       p->bits, p->channels);
    if (!p->palette) return ST_OK;
    if (p->bits != 8 || p->channels != 1 || p->n_palette == 0 || p->n_palette > 256)
        return st_fail(err, ST_ERR_INVALID_ARG, "PNG to encode: a palette of %u colours, expected 1 to 256 and 8-bit "
                       "pixels of one channel", p->n_palette);
    const uint8_t *pixels = p->pixels;
    for (size_t i = 0; i < (size_t)p->width * p->height; i++)
        if (pixels[i] >= p->n_palette)
            return st_fail(err, ST_ERR_INVALID_ARG, "PNG to encode: a pixel has colour %u of %u", pixels[i],
                           p->n_palette);
    return ST_OK;
}

st_status st_png_encode(uint8_t **bytes, size_t *n_bytes, const st_png_picture *picture, st_error *err)
{
    st_buf buf;
    *bytes = NULL;
    *n_bytes = 0;
    st_status status =
        check_arguments("PNG", picture->pixels, picture->width, picture->height, PNG_UINT_31_MAX, err);
    if (status == ST_OK) status = check_png(picture, err);
    if (status != ST_OK) return status;
    png_writer *w = st_calloc(1, sizeof *w);
    if (!w) return st_fail(err, ST_ERR_NOMEM, "no memory for a PNG encoder");
    w->f = open_stream(&buf);
    w->picture = *picture;
    if (!w->f) {
        st_free(w);
        return st_fail(err, ST_ERR_NOMEM, "no memory for a PNG encoder");
    }
    status = encode_png(w, "PNG", err);
    png_destroy_write_struct(&w->png, &w->info);
    status = take_stream(bytes, n_bytes, w->f, &buf, status, err);
    st_free(w);
    return status;
}

/* ------------------------------------------------------------------ JPEG */

typedef struct jpeg_writer {
    struct jpeg_error_mgr errors; /* first */
    struct jpeg_compress_struct jpeg;
    jmp_buf jump;
    st_status status;
    char reason[JMSG_LENGTH_MAX];
} jpeg_writer;

static void on_jpeg_error(j_common_ptr jpeg)
{
    jpeg_writer *w = (jpeg_writer *)(void *)jpeg->err;
    w->status = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? ST_ERR_NOMEM : ST_ERR_IO;
    jpeg->err->format_message(jpeg, w->reason);
    longjmp(w->jump, 1);
}

static void on_jpeg_message(j_common_ptr jpeg, int level)
{
    (void)jpeg;
    (void)level;
}

static void on_jpeg_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static st_status encode_jpeg(jpeg_writer *w, const char *path, FILE *f, const uint8_t *rgb, uint32_t width,
                             uint32_t height, int quality, st_error *err)
{
    struct jpeg_compress_struct *j = &w->jpeg;
    if (setjmp(w->jump)) return st_fail(err, w->status, "%s: JPEG: %s", path, w->reason);
    jpeg_create_compress(j);
    jpeg_stdio_dest(j, f);
    j->image_width = width;
    j->image_height = height;
    j->input_components = 3;
    j->in_color_space = JCS_RGB;
    jpeg_set_defaults(j);
    jpeg_set_quality(j, quality, TRUE);
    if (quality >= 90)
        j->comp_info[0].h_samp_factor = j->comp_info[0].v_samp_factor =
            1; /* full colour resolution: outlines stay crisp */
    jpeg_start_compress(j, TRUE);
    while (j->next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + (size_t)j->next_scanline * width * 3); /* libjpeg only reads it */
        jpeg_write_scanlines(j, &row, 1);
    }
    jpeg_finish_compress(j);
    return ST_OK;
}

static st_status check_jpeg(const char *name, const uint8_t *rgb, uint32_t width, uint32_t height, int quality,
                            st_error *err)
{
    const st_status status = check_arguments(name, rgb, width, height, JPEG_MAX_DIMENSION, err);
    if (status != ST_OK) return status;
    if (quality < 1 || quality > 100)
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: JPEG quality is %d, expected 1 to 100", name, quality);
    return ST_OK;
}

static jpeg_writer *new_jpeg_writer(void)
{
    jpeg_writer *w = st_calloc(1, sizeof *w);
    if (!w) return NULL;
    w->jpeg.err = jpeg_std_error(&w->errors);
    w->errors.error_exit = on_jpeg_error;
    w->errors.emit_message = on_jpeg_message;
    w->errors.output_message = on_jpeg_output;
    return w;
}

st_status st_jpeg_encode(uint8_t **bytes, size_t *n_bytes, const uint8_t *rgb, uint32_t width, uint32_t height,
                         int quality, st_error *err)
{
    st_buf buf;
    *bytes = NULL;
    *n_bytes = 0;
    st_status status = check_jpeg("JPEG", rgb, width, height, quality, err);
    if (status != ST_OK) return status;
    jpeg_writer *w = new_jpeg_writer();
    FILE *f = w ? open_stream(&buf) : NULL;
    if (!f) {
        st_free(w);
        return st_fail(err, ST_ERR_NOMEM, "no memory for a JPEG encoder");
    }
    status = encode_jpeg(w, "JPEG", f, rgb, width, height, quality, err);
    jpeg_destroy_compress(&w->jpeg);
    status = take_stream(bytes, n_bytes, f, &buf, status, err);
    st_free(w);
    return status;
}

st_status st_jpeg_write(const char *path, const uint8_t *rgb, uint32_t width, uint32_t height, int quality,
                        st_error *err)
{
    st_out out = { 0 };
    st_status status = check_jpeg(path, rgb, width, height, quality, err);
    if (status != ST_OK) return status;
    jpeg_writer *w = new_jpeg_writer();
    if (!w) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a JPEG encoder", path);
    status = st_out_open(&out, path, err);
    if (status == ST_OK) {
        status = encode_jpeg(w, path, out.f, rgb, width, height, quality, err);
        jpeg_destroy_compress(&w->jpeg);
    }
    if (status == ST_OK) status = st_out_commit(&out, err);
    else st_out_abort(&out);
    st_free(w);
    return status;
}
