/* picture_webp.c: WebP in, through libwebp; libwebpdemux finds the first frame of an animation and the EXIF and XMP
 * blocks. Colours are those stored, alpha is dropped. What an animation's first frame leaves open is black, as in
 * Pillow (a transparent canvas without its alpha).
 */
#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>
#include "base/checked.h"
#include "base/error.h"
#include "picture/picture_internal.h"

static st_status fail_webp(VP8StatusCode code, const st_pic_input *in, st_error *err)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY: return st_fail(err, ST_ERR_NOMEM, "%s: WebP: no memory to decode", in->name);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return st_fail(err, ST_ERR_UNSUPPORTED, "%s: WebP: unsupported feature", in->name);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return st_fail(err, ST_ERR_FORMAT, "%s: WebP: file is truncated", in->name);
    default: return st_fail(err, ST_ERR_FORMAT, "%s: WebP: broken picture data", in->name);
    }
}

static st_status read_orientation(st_pic *out, const WebPDemuxer *demux, const st_pic_input *in, st_error *err)
{
    WebPChunkIterator exif = { 0 }, xmp = { 0 };
    const int has_exif = WebPDemuxGetChunk(demux, "EXIF", 1, &exif),
              has_xmp = WebPDemuxGetChunk(demux, "XMP ", 1, &xmp);
    const st_status status = st_exif_orientation(&out->orientation, has_exif ? exif.chunk.bytes : NULL, exif.chunk.size,
                                                 has_xmp ? xmp.chunk.bytes : NULL, xmp.chunk.size, in->name, err);
    WebPDemuxReleaseChunkIterator(&exif);
    WebPDemuxReleaseChunkIterator(&xmp);
    return status;
}

static st_status read_frame(st_pic *out, const WebPIterator *frame, const st_pic_input *in, st_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return st_fail(err, ST_ERR_INTERNAL, "%s: WebP: library and header versions differ", in->name);
    VP8StatusCode code = WebPGetFeatures(frame->fragment.bytes, frame->fragment.size, &config.input);
    if (code != VP8_STATUS_OK) return fail_webp(code, in, err);
    const int w = config.input.width, h = config.input.height;
    if (w != frame->width || h != frame->height || w < 1 || h < 1 || frame->x_offset < 0 || frame->y_offset < 0 ||
        !st_range_fits((uint64_t)frame->x_offset, (uint64_t)w, out->width) ||
        !st_range_fits((uint64_t)frame->y_offset, (uint64_t)h, out->height))
        return st_fail(err, ST_ERR_FORMAT, "%s: WebP: frame of %d x %d at %d, %d does not fit the canvas of %u x %u",
                       in->name, w, h, frame->x_offset, frame->y_offset, out->width, out->height);
    out->bits = 8;
    out->bands = config.input.has_alpha ? 4 : 3;
    out->full_high = 255;
    st_status status = st_pic_alloc(out, in, 3, err);
    if (status != ST_OK) return status;
    const size_t stride = (size_t)out->width * 3;
    const size_t skip = (size_t)frame->y_offset * stride + (size_t)frame->x_offset * 3;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = (uint8_t *)out->samples + skip;
    config.output.u.RGBA.stride = (int)stride; /* at most 3 * 2^24 */
    config.output.u.RGBA.size = stride * out->height - skip;
    code = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? ST_OK : fail_webp(code, in, err);
}

static uint32_t le24(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

/* The canvas of the extended format, read before the demuxer compares it with the frames: whoever announces 65,535 x
 * 65,535 pixels hears about the limit. The simple formats hold at most 16,384 x 16,384 and are checked through the
 * demuxer. */
static st_status check_canvas(st_pic *out, const st_pic_input *in, st_error *err)
{
    const uint8_t *b = in->bytes;
    if (in->n < 30 || memcmp(b + 12, "VP8X", 4) != 0) return ST_OK;
    return st_pic_check_size(out, in, (uint64_t)le24(b + 24) + 1, (uint64_t)le24(b + 27) + 1, err);
}

st_status st_pic_read_webp(st_pic *out, const st_pic_input *in, st_error *err)
{
    const WebPData data = { in->bytes, in->n };
    WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
    WebPIterator frame = { 0 };
    out->channels = 3;
    st_status status = check_canvas(out, in, err);
    if (status != ST_OK) return status;
    WebPDemuxer *demux = WebPDemuxPartial(&data, &state);
    if (!demux || state <= WEBP_DEMUX_PARSING_HEADER) {
        status = st_fail(err, ST_ERR_FORMAT, "%s: WebP: %s", in->name,
                         state == WEBP_DEMUX_PARSING_HEADER ? "file is truncated inside its header"
                                                            : "broken header or chunk list");
        goto done;
    }
    status = st_pic_check_size(out, in, WebPDemuxGetI(demux, WEBP_FF_CANVAS_WIDTH),
                               WebPDemuxGetI(demux, WEBP_FF_CANVAS_HEIGHT), err);
    if (status != ST_OK) goto done;
    if (state != WEBP_DEMUX_DONE || !WebPDemuxGetFrame(demux, 1, &frame) || !frame.complete) {
        status =
            st_fail(err, ST_ERR_FORMAT, "%s: WebP: file is truncated: %zu bytes do not hold what its header announces",
                    in->name, in->n);
        goto done;
    }
    status = read_orientation(out, demux, in, err);
    if (status == ST_OK) status = read_frame(out, &frame, in, err);
done:
    WebPDemuxReleaseIterator(&frame);
    WebPDemuxDelete(demux);
    return status;
}
