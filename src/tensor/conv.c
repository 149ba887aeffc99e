/* conv.c: the two convolutions of the model, on token-major maps.
 *
 * The decision: 3x3 by Winograd's F(2x2, 3x3) (Lavin & Gray 2016): 2x2 outputs come of a 4x4 tile of inputs by 16 products
 * instead of 36, and the transforms only add and subtract, so fp32 loses next to nothing. No im2col: an item is a strip of
 * tile rows. Its input with a border of zeros is copied once into per-thread scratch and becomes 16 planes [tiles, n_in];
 * each is one matrix product with one plane of the filters.
 */
#include "tensor/tensor.h"

#include <string.h>
#include "base/checked.h"
#include "tensor/packed.h"

enum { STRIP_TILES = 144, UP_ROWS = 288 };

typedef struct conv_job {
    const st_kernels *k;
    const st_conv3x3 *conv;
    const st_conv_input *in;
    const float *filters; /* packed */
    float *y, *scratch;
    size_t across, down;              /* tiles of 2x2 outputs of the map */
    size_t strip;                     /* tile rows per item */
    size_t n_padded, n_in_plane, n_out_plane; /* floats of the padded strip and of a plane of each kind */
} conv_job;

/* One row of the input, or zeros above and below the map, with zero tokens at both ends: dst [2 across + 2, n_in]. */
static void load_row(const conv_job *job, float *dst, size_t row_plus_1)
{
    const st_conv_input *in = job->in;
    const size_t c = job->conv->n_in, w = in->width, n_tokens = 2 * job->across + 2;
    if (row_plus_1 == 0 || row_plus_1 > in->height) {
        memset(dst, 0, n_tokens * c * sizeof *dst);
        return;
    }
    const size_t row = row_plus_1 - 1;
    memset(dst, 0, c * sizeof *dst);
    memset(dst + (w + 1) * c, 0, (n_tokens - w - 1) * c * sizeof *dst);
    if (!in->skip) {
        memcpy(dst + c, in->x + row * w * c, w * c * sizeof *dst);
        return;
    }
    const float *low = in->x + row / 2 * (w / 2) * c, *skip = in->skip + row * w * c;
    for (size_t col = 0; col < w; col++) job->k->add3(dst + (col + 1) * c, low + col / 2 * c, skip + col * c, c);
}

/* The 2x2 outputs of tile (row, col) of the map; an odd map has no second row or column at its end. */
static void store_tile(const conv_job *job, size_t row, size_t col, const float *sums)
{
    const size_t w = job->in->width, n = job->conv->n_out;
    const bool right = 2 * col + 1 < w, below = 2 * row + 1 < job->in->height;
    float *at = job->y + (2 * row * w + 2 * col) * n;
    float *const y[4] = {at, right ? at + n : NULL, below ? at + w * n : NULL, right && below ? at + (w + 1) * n : NULL};
    job->k->winograd_out(y, sums, job->n_out_plane, job->conv->bias, n);
}

static void conv_item(void *arg, size_t item, unsigned slot)
{
    const conv_job *job = arg;
    const st_conv3x3 *conv = job->conv;
    const size_t first = item * job->strip, rows = st_least(job->strip, job->down - first), n_tiles = rows * job->across;
    const size_t n_in = conv->n_in, n_out = conv->n_out, padded_row = (2 * job->across + 2) * n_in;
    float *padded = job->scratch + slot * (job->n_padded + 16 * (job->n_in_plane + job->n_out_plane)); /* [2 rows + 2, 2 across + 2, n_in] */
    float *planes = padded + job->n_padded, *sums = planes + 16 * job->n_in_plane;                     /* [16][n_tiles, n_in], [16][n_tiles, n_out] */
    for (size_t r = 0; r < 2 * rows + 2; r++) load_row(job, padded + r * padded_row, 2 * first + r);
    for (size_t t = 0; t < n_tiles; t++)
        job->k->winograd_in(planes + t * n_in, job->n_in_plane, padded + t / job->across * 2 * padded_row + t % job->across * 2 * n_in, padded_row, n_in, n_in);
    for (size_t j = 0; j < 16; j++)
        job->k->gemm_packed(n_tiles, n_out, n_in, planes + j * job->n_in_plane, n_in, job->filters + j * st_packed_floats(job->k, n_out, n_in), false, sums + j * job->n_out_plane, n_out);
    for (size_t t = 0; t < n_tiles; t++) store_tile(job, first + t / job->across, t % job->across, sums + t * n_out);
}

void st_conv3x3_run(const st_run *run, const st_conv3x3 *conv, const st_conv_input *in, float *y)
{
    const size_t mark = st_arena_mark(run->arena);
    conv_job job = {.k = run->k, .conv = conv, .in = in, .y = y, .across = (in->width + 1) / 2, .down = (in->height + 1) / 2};
    job.strip = STRIP_TILES / job.across > 0 ? st_least(STRIP_TILES / job.across, job.down) : 1;
    job.n_padded = st_round_up((2 * job.strip + 2) * (2 * job.across + 2) * conv->n_in, 16);
    job.n_in_plane = st_round_up(job.strip * job.across * conv->n_in, 16);
    job.n_out_plane = st_round_up(job.strip * job.across * conv->n_out, 16);
    job.filters = st_pack_run(run, conv->filters, 16, conv->n_out, conv->n_in);
    job.scratch = st_run_floats(run, st_pool_size(run->pool), job.n_padded + 16 * (job.n_in_plane + job.n_out_plane));
    st_run_count(run, 16 * job.across * job.down, conv->n_out, conv->n_in);
    if (!st_run_idle(run)) st_run_parallel(run, (job.down + job.strip - 1) / job.strip, conv_item, &job);
    st_arena_rewind(run->arena, mark);
}

typedef struct up_job {
    const st_kernels *k;
    const st_conv_up *conv;
    const float *x, *cells; /* cells: packed */
    float *y, *scratch;
    size_t height, width;
    st_act act;
} up_job;

static void up_item(void *arg, size_t item, unsigned slot)
{
    const up_job *job = arg;
    const size_t n_in = job->conv->n_in, n_out = job->conv->n_out, first = item * UP_ROWS, w = job->width;
    const size_t n = st_least(UP_ROWS, job->height * w - first);
    float *cell = job->scratch + slot * UP_ROWS * n_out; /* [n, n_out] */
    for (size_t c = 0; c < 4; c++) {
        job->k->gemm_packed(n, n_out, n_in, job->x + first * n_in, n_in, job->cells + c * st_packed_floats(job->k, n_out, n_in), false, cell, n_out);
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
    up_job job = {.k = run->k, .conv = conv, .x = x, .y = y, .height = height, .width = width, .act = act};
    job.cells = st_pack_run(run, conv->cells, 4, conv->n_out, conv->n_in);
    job.scratch = st_run_floats(run, st_pool_size(run->pool), UP_ROWS * conv->n_out);
    st_run_count(run, 4 * height * width, conv->n_out, conv->n_in);
    if (!st_run_idle(run)) st_run_parallel(run, (height * width + UP_ROWS - 1) / UP_ROWS, up_item, &job);
    st_arena_rewind(run->arena, mark);
}
