/* upsample_runs.c: low-resolution logits straight to runs of the enlarged (or reduced) mask. There is no map of the
 * large size at any time.
 *
 * What is computed, bit for bit, is PyTorch's CPU `upsample_bilinear2d` (`aten/src/ATen/native/cpu/UpSampleKernel.cpp`,
 * half-pixel centres) as its AVX2 and AVX-512 builds do it, then `> T`, the threshold. Per axis, each step rounded:
 *     src = max((dst + 0.5) * (in / out) - 0.5, 0)    i = min(floor(src), in - 1)    l = min(src - i, 1)
 * and then, columns first,
 *     row[i] = fma(logit[i][j], 1 - lx, round(logit[i][j+1] * lx))    value = fma(row[i], 1 - ly, round(row[i+1] * ly))
 * where i+1 and j+1 stop at the edge, and are i and j on an axis that keeps its size. PyTorch's build without fma, its
 * second kernel for results of height + width <= 128, and its CUDA kernel differ in the last bit of `value`.
 *
 * Most pixels need no value. Let u = 2^-24, and call a logit x
 *     in    when high < x <= 2^126, high = T(1+8u) + 2^-140 for T >= 0, -max(|T|(1-8u) - 2^-140, 0) for T < 0
 *     out   when x <= low,          low = max(T(1-8u) - 2^-140, 0) for T >= 0, -(|T|(1+8u) + 2^-140) for T < 0;
 *           or when x is NaN, which makes every blend NaN, and NaN > T is false
 * and unsure otherwise. CLAIM: between four neighbours (or two) that are all in, every value is in; likewise out.
 *
 * Proof for T >= 0. Rounding is monotone, so values only fall when all four are replaced by their minimum m > high > 0;
 * then nothing cancels, nothing overflows, and each of the two blends loses at most a factor (1-u)^2 and 2^-149; so
 * value >= m(1-4u) - 2^-148 > T. For out, take M = max(0, maximum) <= low. If M = 0, all products are <= 0 and so is
 * their sum (or it is NaN, from 0 * -inf); else value <= M(1+4u+8u^2) + 2^-148 <= T. For T < 0 mirror the signs.
 * (8u instead of 4u leaves room for the rounding of high and low themselves.)
 *
 * Where a column crosses a cell with ends A = row[i], B = row[i+1] that are finite and not of one sign, the value is
 * monotone in y: l grows with y and 1-l falls, hence, if A >= 0 >= B, both A(1-l) and round(Bl) fall or stay, and so
 * does their rounded sum; mirrored for A <= 0 <= B. There the end of the run is found by bisection, and with T = 0 that
 * is every crossing. Other unsure cells (T != 0, infinities) are computed pixel by pixel.
 */
#include <math.h>

#include "base/error.h"
#include "base/mem.h"
#include "mask/runs.h"

/* Row and column numbers, and their halves, must be exact in fp32. */
#define MAX_LOGITS_SIDE (1u << 23)
/* Far enough below overflow that no blend of such values becomes infinite. */
#define MAX_SURE 0x1p126f

enum { OUT, IN, UNSURE };

typedef struct axis {
    uint32_t n_in, n_out;
    float scale; /* n_in / n_out */
} axis;

/* Part of a column of cells, [from, to) in rows of the result: of one kind, or a single cell to look into. */
typedef struct segment {
    uint32_t from, to;
    uint32_t kind;
    uint32_t row;     /* the cell's upper row of logits */
    float corners[4]; /* of an unsure cell: logits upper left, upper right, lower left, lower right */
} segment;

typedef struct upsampler {
    axis x, y;
    const float *logits; /* [y.n_in][x.n_in] */
    float threshold, low, high;
    uint32_t *first_y; /* [y.n_in + 1]: where the rows of the result start that lie below logit row i */
    segment *segments; /* [y.n_in]: what the present column of cells consists of */
    size_t n_segments;
    st_runs runs;
} upsampler;

/* In rows of logits; never falls as dst grows. */
static float source(const axis *a, uint32_t dst)
{
    const float src = ((float)dst + 0.5f) * a->scale - 0.5f;
    return src > 0 ? src : 0;
}

static uint32_t source_index(const axis *a, uint32_t dst)
{
    const float src = source(a, dst);
    return src >= (float)(a->n_in - 1) ? a->n_in - 1 : (uint32_t)src;
}

static float source_weight(const axis *a, uint32_t dst, uint32_t index)
{
    const float l = source(a, dst) - (float)index;
    return l > 1 ? 1 : l;
}

static uint32_t source_neighbour(const axis *a, uint32_t index)
{
    return index + 1 < a->n_in && a->n_in != a->n_out ? index + 1 : index;
}

/* The first dst >= from whose source index is at least `index`; n_out if there is none. source_index never falls. */
static uint32_t first_with_source(const axis *a, uint32_t index, uint32_t from)
{
    uint32_t to = a->n_out;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (source_index(a, middle) < index) from = middle + 1;
        else to = middle;
    }
    return from;
}

static float blend(float a, float b, float weight_of_b)
{
    return fmaf(a, 1.0f - weight_of_b, b * weight_of_b);
}

static void set_threshold(upsampler *u, float threshold)
{
    const float t = fabsf(threshold);
    const float more = t * (1 + 0x1p-21f) + 0x1p-140f, less = fmaxf(t * (1 - 0x1p-21f) - 0x1p-140f, 0);
    u->threshold = threshold;
    u->low = threshold < 0 ? -more : less;
    u->high = threshold < 0 ? -less : more;
}

static uint32_t kind_of(const upsampler *u, float logit)
{
    if (!(logit > u->low)) return OUT; /* NaN too */
    return logit > u->high && logit <= MAX_SURE ? IN : UNSURE;
}

static uint32_t kind_of_row(const upsampler *u, const float *left, const float *right)
{
    const uint32_t kind = kind_of(u, *left);
    return kind == kind_of(u, *right) ? kind : UNSURE;
}

/* The rows of the result below logit row i: more of the last segment, or a new one, which is returned. */
static segment *add_segment(upsampler *u, uint32_t i, uint32_t kind)
{
    segment *last = u->n_segments > 0 ? &u->segments[u->n_segments - 1] : NULL;
    if (last && last->kind == kind && kind != UNSURE) {
        last->to = u->first_y[i + 1];
        return last;
    }
    segment *s = &u->segments[u->n_segments++];
    *s = (segment){ .from = u->first_y[i], .to = u->first_y[i + 1], .kind = kind, .row = i };
    return s;
}

/* Cuts the cells between logit columns j and its right neighbour into segments; cells without a row of the result do
 * not appear. On an axis that keeps its size a cell's lower row has no weight: a cell may be unsure without need. */
static void find_segments(upsampler *u, uint32_t j)
{
    const size_t right = source_neighbour(&u->x, j) - j, stride = u->x.n_in;
    const float *upper = u->logits + j;
    uint32_t upper_kind = kind_of_row(u, upper, upper + right);
    u->n_segments = 0;
    for (uint32_t i = 0; i < u->y.n_in; i++) {
        const float *next = i + 1 < u->y.n_in ? upper + stride : upper;
        const uint32_t next_kind = kind_of_row(u, next, next + right);
        const uint32_t kind = upper_kind == next_kind ? upper_kind : UNSURE;
        segment *s = u->first_y[i] < u->first_y[i + 1] ? add_segment(u, i, kind) : NULL;
        if (s && kind == UNSURE) {
            const float *lower = source_neighbour(&u->y, i) > i ? next : upper;
            s->corners[0] = upper[0], s->corners[1] = upper[right];
            s->corners[2] = lower[0], s->corners[3] = lower[right];
        }
        upper = next;
        upper_kind = next_kind;
    }
}

/* Whether pixel y is in, between rows `upper` and `lower` of the present column. */
static bool is_in(const upsampler *u, const segment *s, float upper, float lower, uint32_t y)
{
    return blend(upper, lower, source_weight(&u->y, y, s->row)) > u->threshold;
}

static void add_monotone(upsampler *u, const segment *s, float upper, float lower)
{
    const bool first = is_in(u, s, upper, lower, s->from);
    uint32_t from = s->from + 1, to = s->to; /* the first pixel that differs, or the end, lies here */
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (is_in(u, s, upper, lower, middle) == first) from = middle + 1;
        else to = middle;
    }
    st_runs_add(&u->runs, first, from - s->from);
    st_runs_add(&u->runs, !first, s->to - from);
}

/* The pixels of one column in a cell that is not of one kind; `weight` is the column's, of the right-hand logits. */
static void add_cell(upsampler *u, const segment *s, float weight)
{
    const float upper = blend(s->corners[0], s->corners[1], weight);
    const float lower = blend(s->corners[2], s->corners[3], weight);
    const uint32_t kind = kind_of(u, upper);
    if (kind != UNSURE && kind == kind_of(u, lower)) {
        st_runs_add(&u->runs, kind == IN, s->to - s->from);
    } else if (isfinite(upper) && isfinite(lower) && (upper >= 0 ? lower <= 0 : lower >= 0)) {
        add_monotone(u, s, upper, lower);
    } else {
        for (uint32_t y = s->from; y < s->to; y++) st_runs_add(&u->runs, is_in(u, s, upper, lower, y), 1);
    }
}

/* Columns [from, to) of the result, which lie between logit columns j and its right neighbour. */
static void add_columns(upsampler *u, uint32_t j, uint32_t from, uint32_t to)
{
    find_segments(u, j);
    if (u->n_segments == 1 && u->segments[0].kind != UNSURE) {
        st_runs_add(&u->runs, u->segments[0].kind == IN, (to - from) * u->y.n_out);
        return;
    }
    for (uint32_t x = from; x < to && !u->runs.failed; x++) {
        const float weight = source_weight(&u->x, x, j);
        for (size_t k = 0; k < u->n_segments; k++) {
            const segment *s = &u->segments[k];
            if (s->kind == UNSURE) add_cell(u, s, weight);
            else st_runs_add(&u->runs, s->kind == IN, s->to - s->from);
        }
    }
}

static st_status check_logits(uint32_t rows, uint32_t cols, float threshold, st_error *err)
{
    if (rows == 0 || cols == 0) {
        return st_fail(err, ST_ERR_INVALID_ARG, "mask from logits: %u x %u logits are none", (unsigned)rows,
                       (unsigned)cols);
    }
    if (rows > MAX_LOGITS_SIDE || cols > MAX_LOGITS_SIDE) {
        return st_fail(err, ST_ERR_LIMIT, "mask from logits: a side of %u x %u logits is over %u", (unsigned)rows,
                       (unsigned)cols, MAX_LOGITS_SIDE);
    }
    if (!isfinite(threshold)) {
        return st_fail(err, ST_ERR_INVALID_ARG, "mask from logits: the threshold %g is not finite", (double)threshold);
    }
    return ST_OK;
}

st_status st_rle_from_logits(st_rle *out, const float *logits, uint32_t rows, uint32_t cols, uint32_t width,
                             uint32_t height, float threshold, st_error *err)
{
    *out = (st_rle){ 0 };
    st_status status = st_mask_check_size(width, height, "mask from logits", err);
    if (status == ST_OK) status = check_logits(rows, cols, threshold, err);
    if (status != ST_OK) return status;

    upsampler u = { .x = { cols, width, (float)cols / (float)width },
                    .y = { rows, height, (float)rows / (float)height },
                    .logits = logits };
    set_threshold(&u, threshold);
    u.first_y = st_realloc_array(NULL, (size_t)rows + 1, sizeof *u.first_y);
    u.segments = st_realloc_array(NULL, rows, sizeof *u.segments);
    if (!u.first_y || !u.segments) {
        status = st_fail(err, ST_ERR_NOMEM, "mask from logits: out of memory for %u rows", (unsigned)rows);
        goto done;
    }
    u.first_y[0] = 0;
    for (uint32_t i = 1; i < rows; i++) u.first_y[i] = first_with_source(&u.y, i, u.first_y[i - 1]);
    u.first_y[rows] = height;
    for (uint32_t j = 0, from = 0; from < width && !u.runs.failed; j++) {
        const uint32_t to = j + 1 < cols ? first_with_source(&u.x, j + 1, from) : width;
        if (from < to) add_columns(&u, j, from, to);
        from = to;
    }
    status = st_runs_finish(&u.runs, out, width, height, err);
done:
    st_free(u.first_y);
    st_free(u.segments);
    return status;
}
