/* picture_turn.c: the eight EXIF orientations. One walk for all of them: the source position of output pixel (x, y) is
 * linear in x and y. */
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

#define BLOCK 64 /* rows and columns swap places in blocks that fit the cache */

/* Copies one block of the output; `src` is the source of output pixel (0, 0), dx and dy are the source steps in bytes.
 */
static void turn_block(uint8_t *out, const uint8_t *src, ptrdiff_t dx, ptrdiff_t dy, uint32_t x0, uint32_t x1,
                       uint32_t y0, uint32_t y1, size_t stride)
{
    for (uint32_t y = y0; y < y1; y++) {
        uint8_t *d = out + (size_t)y * stride + (size_t)x0 * 3;
        const uint8_t *s = src + (ptrdiff_t)y * dy + (ptrdiff_t)x0 * dx;
        for (uint32_t x = x0; x < x1; x++, d += 3, s += dx) {
            d[0] = s[0];
            d[1] = s[1];
            d[2] = s[2];
        }
    }
}

st_status st_bitmap_turn(st_bitmap *out, int orientation, const char *name, st_error *err)
{
    out->orientation = orientation;
    if (orientation < 2 || orientation > 8) return ST_OK;
    const uint32_t w = out->width, h = out->height; /* as stored */
    const bool swap = orientation >= 5;
    const uint32_t ow = swap ? h : w, oh = swap ? w : h;
    size_t n;
    uint8_t *rgb = st_mul_size(&n, (size_t)w * h, 3) ? st_malloc(n) : NULL;
    if (!rgb) return st_fail(err, ST_ERR_NOMEM, "%s: no memory to turn %u x %u pixels upright", name, w, h);

    /* Where output x runs to in the source, and whether each source axis is mirrored. */
    const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const ptrdiff_t row = (ptrdiff_t)w * 3;
    const ptrdiff_t step_x = mirror_x ? -3 : 3, step_y = mirror_y ? -row : row;
    const uint8_t *src = out->rgb + (mirror_x ? row - 3 : 0) + (mirror_y ? (ptrdiff_t)(h - 1) * row : 0);
    const ptrdiff_t dx = swap ? step_y : step_x, dy = swap ? step_x : step_y;
    for (uint32_t y = 0; y < oh; y += BLOCK)
        for (uint32_t x = 0; x < ow; x += BLOCK)
            turn_block(rgb, src, dx, dy, x, ow - x < BLOCK ? ow : x + BLOCK, y, oh - y < BLOCK ? oh : y + BLOCK,
                       (size_t)ow * 3);
    st_free(out->rgb);
    out->rgb = rgb;
    out->width = ow;
    out->height = oh;
    return ST_OK;
}
