/* mask_reference.h: masks the slow and obvious way, for tests and the fuzz target: dense maps, one pixel at a time. */
#ifndef MASK_REFERENCE_H
#define MASK_REFERENCE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <stencil/stencil_mask.h>

/* xorshift64*: the same numbers everywhere. */
static inline uint32_t ref_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

/* Canonical as stencil_mask.h says. */
static inline bool ref_is_canonical(const st_rle *mask)
{
    uint64_t total = 0;
    if (mask->n_counts == 0 || !mask->counts) return false;
    for (size_t i = 0; i < mask->n_counts; i++) {
        if (i > 0 && mask->counts[i] == 0) return false;
        total += mask->counts[i];
    }
    return total == (uint64_t)mask->width * mask->height;
}

/* Pixel (x, y) looked up in the runs. */
static inline bool ref_pixel(const st_rle *mask, uint32_t x, uint32_t y)
{
    uint64_t p = (uint64_t)x * mask->height + y;
    for (size_t i = 0; i < mask->n_counts; i++) {
        if (p < mask->counts[i]) return i & 1;
        p -= mask->counts[i];
    }
    return false;
}

/* One axis of PyTorch's bilinear resize: aten/src/ATen/native/UpSample.h, area_pixel_compute_source_index and
 * guard_index_and_lambda. */
static inline void ref_source(uint32_t *i0, uint32_t *i1, float *l0, float *l1, uint32_t dst, uint32_t n_in,
                              uint32_t n_out)
{
    const float scale = (float)n_in / (float)n_out;
    float src = scale * ((float)dst + 0.5f);
    src = src - 0.5f;
    if (src < 0) src = 0;
    if (n_in == n_out) {
        *i0 = *i1 = dst, *l0 = 1, *l1 = 0;
        return;
    }
    *i0 = (uint32_t)floorf(src);
    if (*i0 > n_in - 1) *i0 = n_in - 1;
    *l1 = src - (float)*i0;
    if (*l1 > 1) *l1 = 1;
    *i1 = *i0 + (*i0 < n_in - 1);
    *l0 = 1.0f - *l1;
}

/* One pixel of the resize: columns first, then rows; the first product is the fused one. */
static inline float ref_resized(const float *logits, uint32_t rows, uint32_t cols, uint32_t width, uint32_t height,
                                uint32_t x, uint32_t y)
{
    uint32_t i0, i1, j0, j1;
    float h0, h1, w0, w1;
    ref_source(&i0, &i1, &h0, &h1, y, rows, height);
    ref_source(&j0, &j1, &w0, &w1, x, cols, width);
    const float *upper = logits + (size_t)i0 * cols, *lower = logits + (size_t)i1 * cols;
    const float a = fmaf(upper[j0], w0, upper[j1] * w1), b = fmaf(lower[j0], w0, lower[j1] * w1);
    return fmaf(a, h0, b * h1);
}

static inline void ref_upsample(uint8_t *out, const float *logits, uint32_t rows, uint32_t cols, uint32_t width,
                                uint32_t height, float threshold)
{
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++) {
            out[(size_t)y * width + x] = ref_resized(logits, rows, cols, width, height, x, y) > threshold;
        }
    }
}

/* Even-odd fill of pixel centres: each vertical edge flips all pixels to its right. `out` [height][width] is only
 * flipped, not cleared. */
static inline void ref_flip_polygon(uint8_t *out, const st_polygon *p, uint32_t width)
{
    for (size_t i = 0; i < p->n_points; i++) {
        const int32_t *a = p->xy + 2 * i, *b = p->xy + 2 * ((i + 1) % p->n_points);
        if (a[0] != b[0]) continue;
        const int32_t y0 = a[1] < b[1] ? a[1] : b[1], y1 = a[1] < b[1] ? b[1] : a[1];
        for (int32_t y = y0; y < y1; y++) {
            for (int32_t x = a[0]; x < (int32_t)width; x++) out[(size_t)y * width + (size_t)x] ^= 1;
        }
    }
}

/* Twice the signed area; positive for clockwise on screen (y down). */
static inline int64_t ref_signed_area2(const st_polygon *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->n_points; i++) {
        const int32_t *a = p->xy + 2 * i, *b = p->xy + 2 * ((i + 1) % p->n_points);
        sum += (int64_t)a[0] * b[1] - (int64_t)b[0] * a[1];
    }
    return sum;
}

/* Labels of the parts of pixels equal to `value`, from 1; other pixels are 0. Returns how many. `out`
 * [height][width]. */
static inline uint32_t ref_label(uint32_t *out, const uint8_t *mask, uint32_t width, uint32_t height, uint8_t value,
                                 bool diagonal)
{
    const size_t n = (size_t)width * height;
    uint32_t n_labels = 0;
    size_t *stack = malloc(n * sizeof *stack);
    if (!stack) abort();
    for (size_t i = 0; i < n; i++) out[i] = 0;
    for (size_t first = 0; first < n; first++) {
        if (mask[first] != value || out[first]) continue;
        size_t depth = 0;
        out[first] = ++n_labels;
        stack[depth++] = first;
        while (depth > 0) {
            const size_t p = stack[--depth];
            const int64_t px = (int64_t)(p % width), py = (int64_t)(p / width);
            for (int64_t dy = -1; dy <= 1; dy++) {
                for (int64_t dx = -1; dx <= 1; dx++) {
                    const int64_t x = px + dx, y = py + dy;
                    if ((!diagonal && dx != 0 && dy != 0) || x < 0 || y < 0 || x >= width || y >= height) continue;
                    const size_t q = (size_t)y * width + (size_t)x;
                    if (mask[q] != value || out[q]) continue;
                    out[q] = n_labels;
                    stack[depth++] = q;
                }
            }
        }
    }
    free(stack);
    return n_labels;
}

#endif
