/* picture_jpeg.c: JPEG in, through libjpeg-turbo with the settings Pillow leaves alone (slow integer IDCT, smooth
 * upsampling), so that pixels are equal to Pillow's bit for bit. CMYK is always taken as Adobe writes it, inverted, as
 * Pillow does (PIL/JpegImagePlugin.py).
 *
 * All state lives in one struct outside the function that calls setjmp, so that nothing is lost or leaked when the
 * library jumps.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

#define MAX_SCANS 100 /* progressive files have about 10; each further one costs a pass over the picture */

typedef struct reader {
    struct jpeg_error_mgr errors; /* first: libjpeg hands it back to us */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf jump;
    st_status status;
    char reason[JMSG_LENGTH_MAX];
    int damaged;
    st_pic *pic;
    const st_pic_input *in;
    uint8_t *row;  /* one row of CMYK */
    uint8_t *exif; /* joined from its segments */
    size_t n_exif;
    const uint8_t *xmp; /* inside libjpeg's memory */
    size_t n_xmp;
} reader;

static reader *reader_of(j_common_ptr jpeg)
{
    return (reader *)(void *)jpeg->err;
}

static void give_up(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    jpeg->err->format_message(jpeg, r->reason);
    longjmp(r->jump, 1);
}

static void on_error(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    if (jpeg->err->msg_code == JERR_IMAGE_TOO_BIG) {
        r->status = ST_ERR_LIMIT;
        snprintf(r->reason, sizeof r->reason, "picture is %u x %u pixels, more than libjpeg's limit of %u a side",
                 r->jpeg.image_width, r->jpeg.image_height, (unsigned)JPEG_MAX_DIMENSION);
        longjmp(r->jump, 1);
    }
    switch (jpeg->err->msg_code) {
    case JERR_OUT_OF_MEMORY: r->status = ST_ERR_NOMEM; break;
    case JERR_NO_BACKING_STORE: r->status = ST_ERR_LIMIT; break; /* more memory than max_memory_to_use */
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL: r->status = ST_ERR_UNSUPPORTED; break;
    default: r->status = ST_ERR_FORMAT; break;
    }
    give_up(jpeg);
}

/* level -1 is a warning about broken data; above are traces. A file that ends early is an error, the rest is drawn over
 * and noted. */
static void on_message(j_common_ptr jpeg, int level)
{
    reader *r = reader_of(jpeg);
    if (level >= 0) return;
    switch (jpeg->err->msg_code) {
    case JWRN_JPEG_EOF:
        r->status = ST_ERR_FORMAT;
        give_up(jpeg);
        break;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_NOT_SEQUENTIAL: r->damaged = 1; break;
    default: break; /* stray bytes between segments and odd version numbers harm no pixel */
    }
}

static void on_output(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void on_progress(j_common_ptr jpeg)
{
    reader *r = reader_of(jpeg);
    if (r->jpeg.input_scan_number <= MAX_SCANS) return;
    r->status = ST_ERR_LIMIT;
    snprintf(r->reason, sizeof r->reason, "more than %d scans", MAX_SCANS);
    longjmp(r->jump, 1);
}

/* EXIF may be split over several APP1 segments: the first has the prefix, the following ones go on without theirs. */
static st_status join_metadata(reader *r, st_error *err)
{
    static const char exif_tag[6] = "Exif\0", xmp_tag[29] = "http://ns.adobe.com/xap/1.0/";
    size_t n = 0;
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next) {
        if (m->data_length >= sizeof exif_tag && memcmp(m->data, exif_tag, sizeof exif_tag) == 0) n += m->data_length;
        if (m->data_length >= sizeof xmp_tag && memcmp(m->data, xmp_tag, sizeof xmp_tag) == 0) {
            r->xmp = m->data + sizeof xmp_tag;
            r->n_xmp = m->data_length - sizeof xmp_tag;
        }
    }
    if (!n) return ST_OK;
    r->exif = st_malloc(n);
    if (!r->exif) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for %zu bytes of EXIF", r->in->name, n);
    for (jpeg_saved_marker_ptr m = r->jpeg.marker_list; m; m = m->next) {
        if (m->data_length < sizeof exif_tag || memcmp(m->data, exif_tag, sizeof exif_tag) != 0) continue;
        const size_t skip = r->n_exif ? sizeof exif_tag : 0;
        memcpy(r->exif + r->n_exif, m->data + skip, m->data_length - skip);
        r->n_exif += m->data_length - skip;
    }
    return ST_OK;
}

static st_status read_header(reader *r, st_error *err)
{
    struct jpeg_decompress_struct *j = &r->jpeg;
    st_pic *pic = r->pic;
    jpeg_mem_src(j, r->in->bytes, (unsigned long)r->in->n);
    jpeg_save_markers(j, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(j, TRUE);
    st_status status = st_pic_check_size(pic, r->in, j->image_width, j->image_height, err);
    if (status != ST_OK) return status;
    const int c = j->num_components;
    if (c != 1 && c != 3 && c != 4)
        return st_fail(err, ST_ERR_UNSUPPORTED, "%s: JPEG with %d components, expected 1, 3 or 4", r->in->name, c);
    pic->bits = 8;
    pic->bands = c;
    pic->full_high = 255;
    j->out_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
    /* A progressive picture holds two bytes of coefficients per sample, padded to whole blocks of up to 4 x 4 samples'
     * difference. */
    const uint64_t cap =
        ((uint64_t)j->image_width + 64) * ((uint64_t)j->image_height + 64) * 2 * (uint64_t)c + (64u << 20);
    j->mem->max_memory_to_use = cap > INT64_MAX ? INT64_MAX : (long)cap;
    status = join_metadata(r, err);
    if (status != ST_OK) return status;
    return st_exif_orientation(&pic->orientation, r->exif, r->n_exif, r->xmp, r->n_xmp, r->in->name, err);
}

static void invert(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(255 - p[i]);
}

static void gray_to_rgb(uint8_t *rgb, size_t n) /* the gray row lies at the front of the RGB row */
{
    for (size_t i = n; i-- > 0;) {
        const uint8_t v = rgb[i];
        rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = v;
    }
}

static void read_rows(reader *r)
{
    struct jpeg_decompress_struct *j = &r->jpeg;
    const size_t w = r->pic->width;
    while (j->output_scanline < j->output_height) {
        uint8_t *rgb = (uint8_t *)r->pic->samples + (size_t)j->output_scanline * w * 3;
        uint8_t *row = r->row ? r->row : rgb;
        jpeg_read_scanlines(j, &row, 1);
        if (r->row) {
            invert(r->row, w * 4);
            st_cmyk_to_rgb(rgb, r->row, w);
        } else if (j->out_color_space == JCS_GRAYSCALE) {
            gray_to_rgb(rgb, w);
        }
    }
}

static st_status decode(reader *r, st_error *err)
{
    struct jpeg_decompress_struct *j = &r->jpeg;
    if (setjmp(r->jump)) return st_fail(err, r->status, "%s: JPEG: %s", r->in->name, r->reason);
    jpeg_create_decompress(j);
    j->progress = &r->progress;
    st_status status = read_header(r, err);
    if (status != ST_OK) return status;
    /* Reads all of a progressive file: the pixels' own memory is taken after it. */
    jpeg_start_decompress(j);
    if (j->output_width != r->pic->width || j->output_height != r->pic->height)
        return st_fail(err, ST_ERR_INTERNAL, "%s: JPEG decoder gives %u x %u pixels, expected %u x %u", r->in->name,
                       j->output_width, j->output_height, r->pic->width, r->pic->height);
    status = st_pic_alloc(r->pic, r->in, 3, err);
    if (status != ST_OK) return status;
    if (j->out_color_space == JCS_CMYK && !(r->row = st_malloc((size_t)r->pic->width * 4)))
        return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a row of %u pixels", r->in->name, r->pic->width);
    read_rows(r);
    jpeg_finish_decompress(j); /* meets the end marker, or finds it missing */
    return ST_OK;
}

st_status st_pic_read_jpeg(st_pic *out, const st_pic_input *in, st_error *err)
{
    reader *r = st_calloc(1, sizeof *r);
    if (!r) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a JPEG decoder", in->name);
    r->pic = out;
    r->in = in;
    r->status = ST_ERR_FORMAT;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->errors.output_message = on_output;
    r->progress.progress_monitor = on_progress;
    out->channels = 3;
    const st_status status = decode(r, err);
    out->damaged = r->damaged;
    jpeg_destroy_decompress(&r->jpeg);
    st_free(r->row);
    st_free(r->exif);
    st_free(r);
    return status;
}
