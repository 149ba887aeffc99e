/* label_masks.h: masks for the tests of exports, and fills that turn polygons back into masks. */
#ifndef LABEL_MASKS_H
#define LABEL_MASKS_H

#include "unit/mask_reference.h"

#include <string.h>

/* Any mask as a picture of characters, rows parted by '/': '#' is inside. */
static inline st_rle mask_of_text(const char *text)
{
    const uint32_t width = (uint32_t)strcspn(text, "/"), height = (uint32_t)((strlen(text) + 1) / (width + 1));
    uint8_t *pixels = calloc(width, height);
    st_rle mask;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) pixels[y * width + x] = text[y * (width + 1) + x] == '#';
    if (st_rle_from_dense(&mask, pixels, width, height, width, NULL) != ST_OK) abort();
    free(pixels);
    return mask;
}

/* Blobs, holes in them and specks; `fill` of 256 pixels set before smoothing. */
static inline st_rle mask_at_random(uint64_t *state, uint32_t width, uint32_t height, uint32_t fill, unsigned smooth)
{
    uint8_t *pixels = calloc(width, height), *next = calloc(width, height);
    for (size_t i = 0; i < (size_t)width * height; i++) pixels[i] = (ref_random(state) & 255) < fill;
    for (unsigned k = 0; k < smooth; k++) {
        for (uint32_t y = 0; y < height; y++)
            for (uint32_t x = 0; x < width; x++) {
                unsigned n = 0, of = 0;
                for (uint32_t v = y ? y - 1 : 0; v <= y + 1 && v < height; v++)
                    for (uint32_t u = x ? x - 1 : 0; u <= x + 1 && u < width; u++) n += pixels[v * width + u], of++;
                next[y * width + x] = 2 * n > of;
            }
        memcpy(pixels, next, (size_t)width * height);
    }
    st_rle mask;
    if (st_rle_from_dense(&mask, pixels, width, height, width, NULL) != ST_OK) abort();
    free(pixels);
    free(next);
    return mask;
}

/* Even-odd fill, tested at the points (x + shift, y + shift): with edges 0.5; with centres 0, where points on the ring
 * are left to mask_draw_border. xy are doubles of pixels. */
static inline void mask_flip_ring(uint8_t *pixels, uint32_t width, uint32_t height, const double *xy, size_t n,
                                  double shift)
{
    for (uint32_t y = 0; y < height; y++)
        for (size_t i = 0; i < n; i++) {
            const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n), v = y + shift;
            if (a[1] > b[1] || (a[1] == b[1] && a[0] > b[0])) { /* there and back must cancel to the last bit */
                const double *t = a;
                a = b, b = t;
            }
            if ((a[1] <= v) == (b[1] <= v)) continue;
            const double cross = a[0] + (v - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
            for (uint32_t x = 0; x < width; x++)
                if (x + shift < cross) pixels[(size_t)y * width + x] ^= 1;
        }
}

/* The pixels under a ring's lines. */
static inline void mask_draw_border(uint8_t *pixels, uint32_t width, uint32_t height, const double *xy, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double *a = xy + 2 * i, *b = xy + 2 * ((i + 1) % n);
        const double dx = b[0] - a[0], dy = b[1] - a[1], steps = fmax(fmax(fabs(dx), fabs(dy)), 1);
        for (double k = 0; k <= steps; k++) {
            const long x = lround(a[0] + dx * k / steps), y = lround(a[1] + dy * k / steps);
            if (x >= 0 && y >= 0 && x < (long)width && y < (long)height)
                pixels[(size_t)y * width + (size_t)x] = 1;
        }
    }
}

/* Filled as OpenCV's fillPoly and Pillow's polygon with outline do. */
static inline void mask_fill_with_border(uint8_t *pixels, uint32_t width, uint32_t height, const double *xy, size_t n)
{
    uint8_t *inside = calloc(width, height);
    mask_flip_ring(inside, width, height, xy, n, 0);
    mask_draw_border(inside, width, height, xy, n);
    for (size_t i = 0; i < (size_t)width * height; i++) pixels[i] |= inside[i];
    free(inside);
}

static inline bool mask_equals(const st_rle *mask, const uint8_t *pixels)
{
    st_rle got;
    if (st_rle_from_dense(&got, pixels, mask->width, mask->height, mask->width, NULL) != ST_OK) abort();
    const bool same = got.n_counts == mask->n_counts && !memcmp(got.counts, mask->counts, got.n_counts * sizeof(uint32_t));
    st_rle_free(&got);
    return same;
}

static inline double mask_iou_with(const st_rle *mask, const uint8_t *pixels)
{
    st_rle got;
    if (st_rle_from_dense(&got, pixels, mask->width, mask->height, mask->width, NULL) != ST_OK) abort();
    const double iou = st_rle_iou(&got, mask);
    st_rle_free(&got);
    return iou;
}

#endif
