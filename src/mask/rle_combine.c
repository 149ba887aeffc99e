/* rle_combine.c: two masks met run by run: overlap, IoU, union, intersection, difference. Cost is the number of runs,
 * never of pixels. IoU is that of `maskApi.c` (rleIou without crowd), in double.
 */
#include "base/error.h"
#include "mask/runs.h"

static bool same_size(const st_rle *a, const st_rle *b)
{
    return a->width == b->width && a->height == b->height;
}

static uint64_t shortest(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

uint64_t st_rle_intersection(const st_rle *a, const st_rle *b)
{
    if (!same_size(a, b)) return 0;
    st_run_reader ra = st_run_reader_start(a), rb = st_run_reader_start(b);
    uint64_t left = (uint64_t)a->width * a->height, both = 0;
    while (left > 0) {
        const uint64_t step = shortest(ra.left, rb.left, left);
        if (ra.value && rb.value) both += step;
        left -= step;
        st_run_reader_take(&ra, step);
        st_run_reader_take(&rb, step);
    }
    return both;
}

double st_rle_iou(const st_rle *a, const st_rle *b)
{
    if (!same_size(a, b)) return 0;
    const uint64_t both = st_rle_intersection(a, b), either = st_rle_area(a) + st_rle_area(b) - both;
    return either > 0 ? (double)both / (double)either : 0;
}

static bool combined(st_rle_op op, bool a, bool b)
{
    switch (op) {
    case ST_RLE_UNION: return a || b;
    case ST_RLE_INTERSECT: return a && b;
    case ST_RLE_SUBTRACT: return a && !b;
    }
    return false;
}

st_status st_rle_combine(st_rle *out, const st_rle *a, const st_rle *b, st_rle_op op, st_error *err)
{
    *out = (st_rle){ 0 };
    if (!same_size(a, b)) {
        return st_fail(err, ST_ERR_INVALID_ARG, "two masks to combine: sizes differ, %u x %u and %u x %u",
                       (unsigned)a->width, (unsigned)a->height, (unsigned)b->width, (unsigned)b->height);
    }
    if ((unsigned)op > ST_RLE_SUBTRACT)
        return st_fail(err, ST_ERR_INVALID_ARG, "two masks to combine: no operation %u", (unsigned)op);
    const st_status status = st_mask_check_size(a->width, a->height, "two masks to combine", err);
    if (status != ST_OK) return status;

    st_run_reader ra = st_run_reader_start(a), rb = st_run_reader_start(b);
    uint64_t left = (uint64_t)a->width * a->height;
    st_runs runs = { 0 };
    while (left > 0 && !runs.failed) {
        const uint64_t step = shortest(ra.left, rb.left, left);
        st_runs_add(&runs, combined(op, ra.value, rb.value), (uint32_t)step);
        left -= step;
        st_run_reader_take(&ra, step);
        st_run_reader_take(&rb, step);
    }
    return st_runs_finish(&runs, out, a->width, a->height, err);
}
