/* resize.c: a picture to the model's input. Two published arithmetics share one filter geometry; they differ in where they round.
 *
 * The decision: rows are *pushed*. An item owns a few output rows and walks the input rows that they need in order: each is filtered horizontally once and added
 * to every output row that wants it. Scratch is a few rows whatever the picture's size, and each sum runs in the reference's order.
 */
#include "vision/vision.h"

#include <math.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

enum { OUT_ROWS = 16, PIXEL = 3 };

/* The filter of one axis: output i reads taps[i] inputs from first[i] on. */
typedef struct axis {
    size_t n_in, n_out, max_taps;
    uint32_t *first, *taps;  /* [n_out] */
    float *weight;           /* [n_out, max_taps], GPU arithmetic */
    int16_t *fixed;          /* [n_out, max_taps], CPU arithmetic: weight * 2^precision */
    unsigned precision;
} axis;

static void axis_free(axis *a)
{
    st_free(a->first);
    st_free(a->taps);
    st_free(a->weight);
    st_free(a->fixed);
    *a = (axis){0};
}

/* ATen UpSampleKernel.cpp, HelperInterpBase::_compute_indices_min_size_weights_aa, once in fp32 (GPU path) and once in fp64 (uint8 path). */
#define DEFINE_WEIGHTS(name, real, fabs_real)                                                                      \
    static void name(const axis *a, size_t i, uint32_t *first, uint32_t *taps, real *w)                           \
    {                                                                                                              \
        const real scale = (real)a->n_in / (real)a->n_out, support = scale >= 1 ? scale : 1;                      \
        const real inverse = scale >= 1 ? 1 / scale : 1, centre = scale * ((real)i + (real)0.5);                  \
        const int64_t low = (int64_t)(centre - support + (real)0.5), high = (int64_t)(centre + support + (real)0.5); \
        *first = (uint32_t)(low > 0 ? low : 0);                                                                    \
        *taps = (uint32_t)((high < (int64_t)a->n_in ? high : (int64_t)a->n_in) - (int64_t)*first);                \
        real total = 0;                                                                                            \
        for (uint32_t j = 0; j < *taps; j++) {                                                                     \
            const real x = fabs_real(((real)(j + *first) - centre + (real)0.5) * inverse);                        \
            w[j] = x < 1 ? 1 - x : 0;                                                                              \
            total += w[j];                                                                                         \
        }                                                                                                          \
        for (uint32_t j = 0; j < *taps; j++) w[j] /= total;                                                        \
    }
DEFINE_WEIGHTS(weights_f32, float, fabsf)
DEFINE_WEIGHTS(weights_f64, double, fabs)

/* ATen UpSampleKernel.cpp, _compute_index_ranges_int16_weights: the largest precision whose weights fit 16 bits. */
static void fix_weights(axis *a, const double *weights)
{
    double largest = 0.0;
    for (size_t i = 0; i < a->n_out * a->max_taps; i++) largest = weights[i] > largest ? weights[i] : largest;
    a->precision = 0;
    while (a->precision < 22 && (int)(0.5 + largest * (double)(1 << (a->precision + 1))) < 1 << 15) a->precision++;
    for (size_t i = 0; i < a->n_out * a->max_taps; i++) a->fixed[i] = (int16_t)(int)(0.5 + weights[i] * (double)(1 << a->precision));
}

static st_status axis_init(axis *a, size_t n_in, size_t n_out, st_resize how, st_error *err)
{
    st_status status = ST_OK;
    double *wide = NULL;
    *a = (axis){.n_in = n_in, .n_out = n_out};
    const double scale = (double)n_in / (double)n_out;
    a->max_taps = 2 * (size_t)ceil(scale >= 1.0 ? scale : 1.0) + 3;
    a->first = st_calloc(n_out, sizeof *a->first);
    a->taps = st_calloc(n_out, sizeof *a->taps);
    a->weight = st_calloc(n_out * a->max_taps, sizeof *a->weight);
    a->fixed = st_calloc(n_out * a->max_taps, sizeof *a->fixed);
    wide = how == ST_RESIZE_CPU ? st_calloc(n_out * a->max_taps, sizeof *wide) : NULL;
    if (!a->first || !a->taps || !a->weight || !a->fixed || (how == ST_RESIZE_CPU && !wide)) {
        status = st_fail(err, ST_ERR_NOMEM, "out of memory for the resize of %zu to %zu pixels", n_in, n_out);
        goto end;
    }
    for (size_t i = 0; i < n_out; i++) {
        if (wide) weights_f64(a, i, &a->first[i], &a->taps[i], wide + i * a->max_taps);
        else weights_f32(a, i, &a->first[i], &a->taps[i], a->weight + i * a->max_taps);
    }
    if (wide) fix_weights(a, wide);
end:
    st_free(wide);
    if (status != ST_OK) axis_free(a);
    return status;
}

typedef struct resize_job {
    const st_image *image;
    st_resize how;
    axis x, y;
    size_t samples;     /* bytes per pixel of the image */
    size_t source[3];   /* which sample is red, green, blue */
    float *px;          /* [n_out*n_out, 3] or NULL */
    uint8_t *bytes;     /* the same, or NULL */
    float lut[256];
    int32_t *scratch;   /* per slot: one filtered row and OUT_ROWS sums, 4-byte elements */
    size_t slot_elements;
} resize_job;

/* One input row through the horizontal filter, GPU arithmetic: fp32, fused multiply-add as the reference is compiled, no rounding between the passes. out [n_out, 3]. */
static void filter_row_f32(const resize_job *job, const uint8_t *row, float *out)
{
    for (size_t i = 0; i < job->x.n_out; i++) {
        const float *w = job->x.weight + i * job->x.max_taps;
        const uint8_t *from = row + job->x.first[i] * job->samples;
        float sum[PIXEL] = {0.0f, 0.0f, 0.0f};
        for (uint32_t j = 0; j < job->x.taps[i]; j++, from += job->samples)
            for (size_t c = 0; c < PIXEL; c++) sum[c] = fmaf(w[j], (float)from[job->source[c]], sum[c]);
        memcpy(out + i * PIXEL, sum, sizeof sum);
    }
}

static uint8_t fixed_to_byte(int32_t sum, unsigned precision)
{
    const int32_t v = (sum + (1 << (precision - 1))) >> precision;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* The same in CPU arithmetic: 16-bit weights, rounded to bytes. */
static void filter_row_u8(const resize_job *job, const uint8_t *row, int32_t *out)
{
    for (size_t i = 0; i < job->x.n_out; i++) {
        const int16_t *w = job->x.fixed + i * job->x.max_taps;
        const uint8_t *from = row + job->x.first[i] * job->samples;
        int32_t sum[PIXEL] = {0, 0, 0};
        for (uint32_t j = 0; j < job->x.taps[i]; j++, from += job->samples)
            for (size_t c = 0; c < PIXEL; c++) sum[c] += w[j] * from[job->source[c]];
        for (size_t c = 0; c < PIXEL; c++) out[i * PIXEL + c] = fixed_to_byte(sum[c], job->x.precision);
    }
}

static void store_row(const resize_job *job, size_t row, const int32_t *sum)
{
    const size_t n = job->x.n_out * PIXEL;
    for (size_t i = 0; i < n; i++) {
        uint8_t byte;
        if (job->how == ST_RESIZE_CPU) byte = fixed_to_byte(sum[i], job->y.precision);
        else byte = (uint8_t)rintf(((const float *)(const void *)sum)[i]); /* half to even; weights sum to 1, so inside 0..255 */
        if (job->bytes) job->bytes[row * n + i] = byte;
        if (job->px) job->px[row * n + i] = job->lut[byte];
    }
}

/* sums[o] += weight of `row` in output row o, for the item's output rows. */
static void push_row(const resize_job *job, size_t row, size_t out0, size_t n_rows, const int32_t *filtered, int32_t *sums)
{
    const size_t n = job->x.n_out * PIXEL;
    for (size_t o = 0; o < n_rows; o++) {
        const size_t i = out0 + o;
        if (row < job->y.first[i] || row >= (size_t)job->y.first[i] + job->y.taps[i]) continue;
        const size_t tap = i * job->y.max_taps + row - job->y.first[i];
        if (job->how == ST_RESIZE_CPU) {
            int32_t *sum = sums + o * n;
            for (size_t j = 0; j < n; j++) sum[j] += job->y.fixed[tap] * filtered[j];
        } else {
            float *sum = (float *)(void *)(sums + o * n);
            const float *in = (const float *)(const void *)filtered, w = job->y.weight[tap];
            for (size_t j = 0; j < n; j++) sum[j] = fmaf(w, in[j], sum[j]);
        }
    }
}

static void resize_item(void *arg, size_t item, unsigned slot)
{
    const resize_job *job = arg;
    const size_t n = job->x.n_out * PIXEL, out0 = item * OUT_ROWS, left = job->y.n_out - out0, n_rows = left < OUT_ROWS ? left : OUT_ROWS;
    int32_t *filtered = job->scratch + slot * job->slot_elements, *sums = filtered + n;
    memset(sums, 0, n_rows * n * sizeof *sums); /* all bits zero is 0.0f too */
    const size_t last = out0 + n_rows - 1, end = (size_t)job->y.first[last] + job->y.taps[last];
    for (size_t row = job->y.first[out0]; row < end; row++) {
        const uint8_t *from = job->image->data + row * job->image->stride;
        if (job->how == ST_RESIZE_CPU) filter_row_u8(job, from, filtered);
        else filter_row_f32(job, from, (float *)(void *)filtered);
        push_row(job, row, out0, n_rows, filtered, sums);
    }
    for (size_t o = 0; o < n_rows; o++) store_row(job, out0 + o, sums + o * n);
}

static st_status describe_pixels(resize_job *job, const st_image *image, st_error *err)
{
    static const size_t samples[] = {3, 3, 4, 1}, order[4][3] = {{0, 1, 2}, {2, 1, 0}, {0, 1, 2}, {0, 0, 0}};
    if ((unsigned)image->format > ST_PIXEL_GRAY8) return st_fail(err, ST_ERR_INVALID_ARG, "image: unknown pixel format %d", (int)image->format);
    job->samples = samples[image->format];
    memcpy(job->source, order[image->format], sizeof job->source);
    if (!image->data || image->width == 0 || image->height == 0) return st_fail(err, ST_ERR_INVALID_ARG, "image: no pixels (%u x %u)", image->width, image->height);
    if (image->stride / job->samples < image->width)
        return st_fail(err, ST_ERR_INVALID_ARG, "image: stride of %zu bytes is shorter than %u pixels of %zu bytes", image->stride, image->width, job->samples);
    return ST_OK;
}

static st_status resize(const st_run *run, const st_image *image, st_resize how, size_t side, float *px, uint8_t *bytes, st_error *err)
{
    resize_job job = {.image = image, .how = how, .px = px, .bytes = bytes};
    st_status status = describe_pixels(&job, image, err);
    if (status != ST_OK) return status;
    if ((status = axis_init(&job.x, image->width, side, how, err)) != ST_OK) return status;
    if ((status = axis_init(&job.y, image->height, side, how, err)) != ST_OK) goto end;
    /* `sam3/model/sam3_image_processor.py`: bytes * fl(1/255), - 0.5, / 0.5, each rounded to fp32. */
    for (int b = 0; b < 256; b++) job.lut[b] = ((float)b * (1.0f / 255.0f) - 0.5f) / 0.5f;
    job.slot_elements = st_round_up((OUT_ROWS + 1) * side * PIXEL, 16);
    job.scratch = st_malloc(st_pool_size(run->pool) * job.slot_elements * sizeof *job.scratch);
    if (!job.scratch) status = st_fail(err, ST_ERR_NOMEM, "out of memory for the resize");
    else st_run_parallel(run, (side + OUT_ROWS - 1) / OUT_ROWS, resize_item, &job);
end:
    st_free(job.scratch);
    axis_free(&job.x);
    axis_free(&job.y);
    return status;
}

st_status st_resize_normalise(const st_run *run, const st_image *image, st_resize how, size_t side, float *px, st_error *err)
{
    return resize(run, image, how, side, px, NULL, err);
}

st_status st_resize_bytes(const st_run *run, const st_image *image, st_resize how, size_t side, uint8_t *out, st_error *err)
{
    return resize(run, image, how, side, NULL, out, err);
}
