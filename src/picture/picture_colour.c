/* picture_colour.c: colour arithmetic that must equal Pillow's to the last bit. */
#include "picture/picture_internal.h"

/* round(a * b / 255) by shifts; libImaging/ImagingUtils.h, MULDIV255. */
static unsigned muldiv255(unsigned a, unsigned b)
{
    const unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

void st_cmyk_to_rgb(uint8_t *out, const uint8_t *in, size_t n_pixels)
{
    for (size_t i = 0; i < n_pixels; i++, in += 4, out += 3) {
        const unsigned white = 255u - in[3];
        const unsigned c = in[0], m = in[1], y = in[2];
        out[0] = (uint8_t)(white - muldiv255(c, white));
        out[1] = (uint8_t)(white - muldiv255(m, white));
        out[2] = (uint8_t)(white - muldiv255(y, white));
    }
}

static uint8_t unmultiply(unsigned v, unsigned alpha)
{
    if (alpha == 0) return 0;
    const unsigned u = v * 255 / alpha;
    return (uint8_t)(u > 255 ? 255 : u);
}

void st_rgba_unmultiply(uint8_t *out, const uint8_t *in, size_t n_pixels)
{
    for (size_t i = 0; i < n_pixels; i++, in += 4, out += 3) {
        const unsigned r = in[0], g = in[1], b = in[2], a = in[3];
        out[0] = unmultiply(r, a);
        out[1] = unmultiply(g, a);
        out[2] = unmultiply(b, a);
    }
}
