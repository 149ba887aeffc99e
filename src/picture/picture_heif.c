/* picture_heif.c: HEIF and AVIF in, through libheif, when the build found it. libheif applies the file's own turns and
 * crops, which is what EXIF repeats as a hint: the EXIF orientation is therefore not applied again. 10 and 12 bits are
 * brought to 8 by libheif.
 */
#ifdef ST_HAVE_HEIF
#include <libheif/heif.h>
#include <string.h>
#include "base/error.h"
#include "picture/picture_internal.h"

static st_status fail_heif(struct heif_error e, const st_pic_input *in, st_error *err)
{
    st_status status = ST_ERR_FORMAT;
    if (e.code == heif_error_Unsupported_filetype || e.code == heif_error_Unsupported_feature)
        status = ST_ERR_UNSUPPORTED;
    if (e.code == heif_error_Memory_allocation_error)
        status = e.subcode == heif_suberror_Security_limit_exceeded ? ST_ERR_LIMIT : ST_ERR_NOMEM;
    return st_fail(err, status, "%s: HEIF: %s", in->name, e.message ? e.message : "cannot be read");
}

static st_status copy_pixels(st_pic *out, const struct heif_image *image, const st_pic_input *in, st_error *err)
{
    int stride = 0;
    const uint8_t *src = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
    const int w = heif_image_get_width(image, heif_channel_interleaved),
              h = heif_image_get_height(image, heif_channel_interleaved);
    if (!src || w < 1 || h < 1 || stride < 0 || (size_t)stride < (size_t)w * 3)
        return st_fail(err, ST_ERR_FORMAT, "%s: HEIF: the decoder gave no RGB pixels", in->name);
    st_status status =
        st_pic_check_size(out, in, (uint64_t)w, (uint64_t)h, err); /* may differ from the header's promise */
    if (status == ST_OK) status = st_pic_alloc(out, in, 3, err);
    if (status != ST_OK) return status;
    const size_t row = (size_t)w * 3;
    for (size_t y = 0; y < (size_t)h; y++) memcpy((uint8_t *)out->samples + y * row, src + y * (size_t)stride, row);
    return ST_OK;
}

static st_status decode(st_pic *out, const struct heif_image_handle *handle, const st_pic_input *in, st_error *err)
{
    struct heif_image *image = NULL;
    struct heif_decoding_options *options = heif_decoding_options_alloc();
    st_status status;
    if (!options) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a HEIF decoder", in->name);
    options->convert_hdr_to_8bit = 1;
    options->strict_decoding = 1;
    const struct heif_error e =
        heif_decode_image(handle, &image, heif_colorspace_RGB, heif_chroma_interleaved_RGB, options);
    if (e.code != heif_error_Ok) status = fail_heif(e, in, err);
    else status = copy_pixels(out, image, in, err);
    if (image) heif_image_release(image);
    heif_decoding_options_free(options);
    return status;
}

/* libheif's limit is one side of a square. Coded pictures are padded, so small limits get some room; the exact check
 * follows. */
static int largest_side(uint64_t max_pixels)
{
    return max_pixels < 4096 ? 4096 : max_pixels > 65535 ? 65535 : (int)max_pixels;
}

st_status st_pic_read_heif(st_pic *out, const st_pic_input *in, st_error *err)
{
    struct heif_image_handle *handle = NULL;
    st_status status;
    out->channels = 3;
    struct heif_context *context = heif_context_alloc();
    if (!context) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for a HEIF decoder", in->name);
    heif_context_set_maximum_image_size_limit(context, largest_side(in->max_pixels));
    heif_context_set_max_decoding_threads(context, 0);
    struct heif_error e = heif_context_read_from_memory_without_copy(context, in->bytes, in->n, NULL);
    if (e.code == heif_error_Ok) e = heif_context_get_primary_image_handle(context, &handle);
    if (e.code != heif_error_Ok) {
        status = fail_heif(e, in, err);
        goto done;
    }
    const int w = heif_image_handle_get_width(handle), h = heif_image_handle_get_height(handle);
    status = st_pic_check_size(out, in, w > 0 ? (uint64_t)w : 0, h > 0 ? (uint64_t)h : 0, err);
    if (status != ST_OK) goto done;
    const int bits = heif_image_handle_get_luma_bits_per_pixel(handle);
    out->bits = bits > 0 ? bits : 8;
    out->bands = heif_image_handle_has_alpha_channel(handle) ? 4 : 3;
    out->full_high = (float)((1u << (out->bits < 16 ? out->bits : 16)) - 1);
    status = decode(out, handle, in, err);
done:
    if (handle) heif_image_handle_release(handle);
    heif_context_free(context);
    return status;
}
#else
typedef int st_no_heif; /* ISO C wants something in every file */
#endif
