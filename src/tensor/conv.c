/* conv.c: the two convolutions of the model, on token-major maps.
 *
 * The decision: no im2col. A strip of output rows reads a strip of input with a border of zeros, copied once into per-thread scratch; because the padded rows lie one after the
 * other, each of the nine taps is one matrix product over the whole strip, shifted by (ky, kx), added up in place. The two border columns of each row come out as garbage and are
 * skipped when the strip is written out.
 */
#include "tensor/tensor.h"

#include <string.h>
#include "base/checked.h"

enum { STRIP_TOKENS = 576, UP_ROWS = 288 };

typedef struct conv_job {
    const st_kernels *k;
    const st_conv3x3 *conv;
    const st_conv_input *in;
    float *y, *scratch;
    size_t strip, slot_floats; /* output rows per item; floats of scratch per slot */
} conv_job;

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* One row of the input, or zeros above and below the map, with a zero token at both ends: dst [width + 2, n_in]. */
static void load_row(const conv_job *job, float *dst, size_t row_plus_1)
{
    const st_conv_input *in = job->in;
    const size_t c = job->conv->n_in, w = in->width;
    if (row_plus_1 == 0 || row_plus_1 > in->height) {
        memset(dst, 0, (w + 2) * c * sizeof *dst);
        return;
    }
    const size_t row = row_plus_1 - 1;
    memset(dst, 0, c * sizeof *dst);
    memset(dst + (w + 1) * c, 0, c * sizeof *dst);
    if (!in->skip) {
        memcpy(dst + c, in->x + row * w * c, w * c * sizeof *dst);
        return;
    }
    const float *low = in->x + row / 2 * (w / 2) * c, *skip = in->skip + row * w * c;
    for (size_t col = 0; col < w; col++) job->k->add3(dst + (col + 1) * c, low + col / 2 * c, skip + col * c, c);
}

static void conv_item(void *arg, size_t item, unsigned slot)
{
    const conv_job *job = arg;
    const st_conv3x3 *conv = job->conv;
    const size_t w = job->in->width, n_in = conv->n_in, n_out = conv->n_out, first = item * job->strip;
    const size_t rows = least(job->strip, job->in->height - first);
    const size_t n_tokens = rows * (w + 2) - 2; /* from the first to the last wanted token, garbage between rows included */
    float *padded = job->scratch + slot * job->slot_floats; /* [rows + 2, w + 2, n_in] */
    float *sum = padded + (job->strip + 2) * (w + 2) * n_in; /* [rows, w + 2, n_out] */
    for (size_t r = 0; r < rows + 2; r++) load_row(job, padded + r * (w + 2) * n_in, first + r);
    for (size_t tap = 0; tap < 9; tap++) {
        const float *shifted = padded + (tap / 3 * (w + 2) + tap % 3) * n_in;
        job->k->gemm(true, n_tokens, n_out, n_in, shifted, n_in, conv->taps + tap * n_out * n_in, n_in, tap != 0, sum, n_out);
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t col = 0; col < w; col++)
            job->k->add3(job->y + ((first + r) * w + col) * n_out, sum + (r * (w + 2) + col) * n_out, conv->bias, n_out);
}

void st_conv3x3_run(const st_run *run, const st_conv3x3 *conv, const st_conv_input *in, float *y)
{
    const size_t mark = st_arena_mark(run->arena);
    conv_job job = {.k = run->k, .conv = conv, .in = in, .y = y};
    job.strip = STRIP_TOKENS / in->width > 0 ? least(STRIP_TOKENS / in->width, in->height) : 1;
    job.slot_floats = st_round_up((in->width + 2) * ((job.strip + 2) * conv->n_in + job.strip * conv->n_out), 16);
    job.scratch = st_run_floats(run, st_pool_size(run->pool), job.slot_floats);
    if (!st_run_idle(run)) st_run_parallel(run, (in->height + job.strip - 1) / job.strip, conv_item, &job);
    st_arena_rewind(run->arena, mark);
}

typedef struct up_job {
    const st_kernels *k;
    const st_conv_up *conv;
    const float *x;
    float *y, *scratch;
    size_t height, width;
    st_act act;
} up_job;

static void up_item(void *arg, size_t item, unsigned slot)
{
    const up_job *job = arg;
    const size_t n_in = job->conv->n_in, n_out = job->conv->n_out, first = item * UP_ROWS, w = job->width;
    const size_t n = least(UP_ROWS, job->height * w - first);
    float *cell = job->scratch + slot * UP_ROWS * n_out; /* [n, n_out] */
    for (size_t c = 0; c < 4; c++) {
        job->k->gemm(true, n, n_out, n_in, job->x + first * n_in, n_in, job->conv->cells + c * n_out * n_in, n_in, false, cell, n_out);
        for (size_t i = 0; i < n; i++) {
            const size_t row = (first + i) / w, col = (first + i) % w;
            float *y = job->y + ((2 * row + c / 2) * 2 * w + 2 * col + c % 2) * n_out;
            job->k->add3(y, cell + i * n_out, job->conv->bias, n_out);
            if (job->act == ST_ACT_RELU) job->k->relu(y, n_out);
            if (job->act == ST_ACT_GELU) job->k->gelu(y, n_out);
        }
    }
}

void st_conv_up_run(const st_run *run, const st_conv_up *conv, const float *x, size_t height, size_t width, float *y, st_act act)
{
    const size_t mark = st_arena_mark(run->arena);
    up_job job = {run->k, conv, x, y, NULL, height, width, act};
    job.scratch = st_run_floats(run, st_pool_size(run->pool), UP_ROWS * conv->n_out);
    if (!st_run_idle(run)) st_run_parallel(run, (height * width + UP_ROWS - 1) / UP_ROWS, up_item, &job);
    st_arena_rewind(run->arena, mark);
}
