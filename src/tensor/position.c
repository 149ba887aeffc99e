/* position.c: sine codes, RoIAlign and the two sigmoids: small, serial, in the reference's own order of operations. */
#include "tensor/tensor.h"

#include <math.h>

void st_sine_code(float *out, size_t n, float v)
{
    /* `sam3/model/position_encoding.py`: t_j in fp32, then v / t_j. */
    for (size_t j = 0; j < n; j++) {
        const float t = powf(10000.0f, 2.0f * (float)(j / 2) / (float)n);
        out[j] = j % 2 == 0 ? sinf(v / t) : cosf(v / t);
    }
}

void st_sine_grid(float *out, size_t side, size_t width)
{
    const size_t half = width / 2;
    const float step = (float)side + 1e-6f, turn = 6.283185307179586f;
    for (size_t r = 0; r < side; r++)
        for (size_t c = 0; c < side; c++) {
            float *token = out + (r * side + c) * width;
            if (c == 0) st_sine_code(token, half, (float)(r + 1) / step * turn);
            else for (size_t j = 0; j < half; j++) token[j] = out[r * side * width + j];
            if (r == 0) st_sine_code(token + half, half, (float)(c + 1) / step * turn);
            else for (size_t j = 0; j < half; j++) token[half + j] = out[c * width + half + j];
        }
}

/* Bilinear sample of one channel-vector at (y, x), added to acc; `torchvision/csrc/ops/cpu/roi_align_common.h`. */
static void add_sample(float *acc, const float *map, size_t side, size_t channels, float y, float x)
{
    const float last = (float)side;
    if (y < -1.0f || y > last || x < -1.0f || x > last) return;
    y = y > 0.0f ? y : 0.0f;
    x = x > 0.0f ? x : 0.0f;
    size_t y0 = (size_t)y, x0 = (size_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= side - 1) y0 = y1 = side - 1, y = (float)y0;
    if (x0 >= side - 1) x0 = x1 = side - 1, x = (float)x0;
    const float ly = y - (float)y0, lx = x - (float)x0, hy = 1.0f - ly, hx = 1.0f - lx;
    const float w00 = hy * hx, w01 = hy * lx, w10 = ly * hx, w11 = ly * lx;
    const float *p00 = map + (y0 * side + x0) * channels, *p01 = map + (y0 * side + x1) * channels;
    const float *p10 = map + (y1 * side + x0) * channels, *p11 = map + (y1 * side + x1) * channels;
    for (size_t c = 0; c < channels; c++) acc[c] += w00 * p00[c] + w01 * p01[c] + w10 * p10[c] + w11 * p11[c];
}

/* Samples per cell: ceil of the cell's size, as the reference; a box far larger than the map is bounded by it. */
static size_t samples(float size, size_t side)
{
    const float n = ceilf(size);
    return n < (float)(4 * side) ? (size_t)(n > 1.0f ? n : 1.0f) : 4 * side;
}

void st_roi_align(float *out, size_t r, const float *map, size_t side, size_t channels, const float box[4])
{
    const float width = fmaxf(box[2] - box[0], 1.0f), height = fmaxf(box[3] - box[1], 1.0f);
    const float cell_w = width / (float)r, cell_h = height / (float)r;
    const size_t n_x = samples(cell_w, side), n_y = samples(cell_h, side);
    for (size_t cell = 0; cell < r * r; cell++) {
        float *sum = out + cell * channels;
        const float top = box[1] + (float)(cell / r) * cell_h, left = box[0] + (float)(cell % r) * cell_w;
        for (size_t c = 0; c < channels; c++) sum[c] = 0.0f;
        for (size_t s = 0; s < n_y * n_x; s++)
            add_sample(sum, map, side, channels, top + ((float)(s / n_x) + 0.5f) * cell_h / (float)n_y,
                       left + ((float)(s % n_x) + 0.5f) * cell_w / (float)n_x);
        for (size_t c = 0; c < channels; c++) sum[c] /= (float)(n_y * n_x);
    }
}

float st_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

float st_inverse_sigmoid(float x)
{
    x = fminf(fmaxf(x, 0.0f), 1.0f);
    return logf(fmaxf(x, 1e-3f) / fmaxf(1.0f - x, 1e-3f));
}
