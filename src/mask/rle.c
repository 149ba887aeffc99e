/* rle.c: run lists made, copied, drawn and measured.
 *
 * Runs are the only form a mask has in this library; a dense map exists only where a caller brings one or asks for one.
 * Run i (zeros first) of a mask covers pixels [start, start + counts[i]) of the picture read column by column, pixel p
 * being column p / height, row p % height.
 */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "mask/runs.h"

/* Columns that a dense map is read by: a cache line of them. */
enum { STRIP = 64 };

st_status st_mask_check_size(uint32_t width, uint32_t height, const char *what, st_error *err)
{
    if (width == 0 || height == 0) {
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: a picture of %u x %u has no pixels", what, (unsigned)width,
                       (unsigned)height);
    }
    if ((uint64_t)width * height > UINT32_MAX) {
        return st_fail(err, ST_ERR_LIMIT, "%s: a picture of %u x %u has more pixels than a run length can count (%u)",
                       what, (unsigned)width, (unsigned)height, (unsigned)UINT32_MAX);
    }
    return ST_OK;
}

void st_runs_close(st_runs *r)
{
    if (r->failed) return;
    if (r->n == r->room) {
        const size_t room = r->room ? 2 * r->room : 64;
        uint32_t *grown = st_realloc_array(r->counts, room, sizeof *grown);
        if (!grown) {
            r->failed = true;
            return;
        }
        r->counts = grown;
        r->room = room;
    }
    r->counts[r->n++] = r->open;
    r->open = 0;
}

void st_runs_free(st_runs *r)
{
    st_free(r->counts);
    *r = (st_runs){ 0 };
}

st_status st_runs_finish(st_runs *r, st_rle *out, uint32_t width, uint32_t height, st_error *err)
{
    *out = (st_rle){ 0 };
    st_runs_close(r);
    if (r->failed) {
        st_runs_free(r);
        return st_fail(err, ST_ERR_NOMEM, "mask of %u x %u: out of memory for its runs", (unsigned)width,
                       (unsigned)height);
    }
    /* A result may live long: give back what doubling took too much. When that fails, the larger block is as good. */
    uint32_t *trimmed = r->n < r->room ? st_realloc_array(r->counts, r->n, sizeof *trimmed) : NULL;
    *out = (st_rle){ .width = width, .height = height, .counts = trimmed ? trimmed : r->counts, .n_counts = r->n };
    *r = (st_runs){ 0 };
    return ST_OK;
}

void st_rle_free(st_rle *mask)
{
    if (!mask) return;
    st_free(mask->counts);
    *mask = (st_rle){ 0 };
}

st_status st_rle_copy(st_rle *out, const st_rle *mask, st_error *err)
{
    *out = (st_rle){ 0 };
    uint32_t *counts = NULL;
    if (mask->n_counts > 0) {
        counts = st_realloc_array(NULL, mask->n_counts, sizeof *counts);
        if (!counts) return st_fail(err, ST_ERR_NOMEM, "copy of a mask: out of memory for %zu runs", mask->n_counts);
        memcpy(counts, mask->counts, mask->n_counts * sizeof *counts);
    }
    *out = (st_rle){ .width = mask->width, .height = mask->height, .counts = counts, .n_counts = mask->n_counts };
    return ST_OK;
}

st_status st_rle_from_counts(st_rle *out, const uint32_t *counts, size_t n_counts, uint32_t width, uint32_t height,
                             st_error *err)
{
    *out = (st_rle){ 0 };
    const st_status status = st_mask_check_size(width, height, "run lengths", err);
    if (status != ST_OK) return status;
    const uint64_t area = (uint64_t)width * height;
    uint64_t total = 0;
    st_runs runs = { 0 };
    for (size_t i = 0; i < n_counts && total <= area; i++) {
        total += counts[i];
        if (total <= area) st_runs_add(&runs, i & 1, counts[i]);
    }
    if (total != area) {
        st_runs_free(&runs);
        return st_fail(err, ST_ERR_FORMAT, "run lengths: they add up to %s pixels than the %u x %u of the picture",
                       total > area ? "more" : "fewer", (unsigned)width, (unsigned)height);
    }
    return st_runs_finish(&runs, out, width, height, err);
}

/* One column of a dense map, `stride` bytes from pixel to pixel. */
static void add_dense_column(st_runs *runs, const uint8_t *pixel, uint32_t height, size_t stride)
{
    bool value = *pixel != 0;
    uint32_t from = 0;
    for (uint32_t y = 1; y < height; y++) {
        pixel += stride;
        if ((*pixel != 0) == value) continue;
        st_runs_add(runs, value, y - from);
        from = y;
        value = !value;
    }
    st_runs_add(runs, value, height - from);
}

st_status st_rle_from_dense(st_rle *out, const uint8_t *mask, uint32_t width, uint32_t height, size_t stride,
                            st_error *err)
{
    *out = (st_rle){ 0 };
    const st_status status = st_mask_check_size(width, height, "dense mask", err);
    if (status != ST_OK) return status;
    if (stride < width) {
        return st_fail(err, ST_ERR_INVALID_ARG, "dense mask: rows of %zu bytes cannot hold %u pixels", stride,
                       (unsigned)width);
    }
    /* A walk down a large map touches another page at each pixel: columns are first copied together, a few at a time. */
    uint8_t *strip = st_malloc((size_t)(width < STRIP ? width : STRIP) * height);
    if (!strip) return st_fail(err, ST_ERR_NOMEM, "dense mask: out of memory for columns of %u", (unsigned)height);
    st_runs runs = { 0 };
    for (uint32_t x = 0, n; x < width && !runs.failed; x += n) {
        n = width - x < STRIP ? width - x : STRIP;
        for (uint32_t y = 0; y < height; y++) memcpy(strip + (size_t)y * n, mask + y * stride + x, n);
        for (uint32_t k = 0; k < n; k++) add_dense_column(&runs, strip + k, height, n);
    }
    st_free(strip);
    return st_runs_finish(&runs, out, width, height, err);
}

/* Each column is first marked only where its value changes; then every row takes over what the row above it holds. That
 * goes along rows, many pixels at a time. */
void st_rle_to_dense(const st_rle *mask, uint8_t *out, size_t stride, uint8_t value)
{
    const uint64_t h = mask->height, area = h * mask->width;
    for (uint64_t y = 0; y < h; y++) memset(out + y * stride, 0, mask->width);
    uint64_t start = 0;
    for (size_t i = 0; i < mask->n_counts && start < area; i++) {
        const uint64_t sum = start + mask->counts[i], end = sum < area ? sum : area;
        for (uint64_t p = start, column_end; i & 1 && p < end; p = column_end) {
            const uint64_t x = p / h, y = p % h;
            column_end = p - y + h;
            out[y * stride + x] ^= value;
            if (end < column_end) out[(end - x * h) * stride + x] ^= value;
        }
        start = end;
    }
    for (uint64_t y = 1; y < h; y++) {
        uint8_t *row = out + y * stride;
        const uint8_t *above = row - stride;
        for (uint32_t x = 0; x < mask->width; x++) row[x] ^= above[x];
    }
}

uint64_t st_rle_area(const st_rle *mask)
{
    uint64_t area = 0;
    for (size_t i = 1; i < mask->n_counts; i += 2) area += mask->counts[i];
    return area;
}

st_box_px st_rle_box(const st_rle *mask)
{
    st_box_px box = { UINT32_MAX, UINT32_MAX, 0, 0 };
    const uint64_t h = mask->height;
    uint64_t start = 0;
    for (size_t i = 0; i < mask->n_counts && h > 0; start += mask->counts[i], i++) {
        if (!(i & 1) || mask->counts[i] == 0) continue;
        const uint64_t last = start + mask->counts[i] - 1;
        const uint32_t x0 = (uint32_t)(start / h), x1 = (uint32_t)(last / h);
        /* A run that goes on in the next column holds the bottom row of one and the top row of the other. */
        const uint32_t y0 = x0 == x1 ? (uint32_t)(start % h) : 0;
        const uint32_t y1 = x0 == x1 ? (uint32_t)(last % h) : mask->height - 1;
        if (x0 < box.x0) box.x0 = x0;
        if (y0 < box.y0) box.y0 = y0;
        if (x1 >= box.x1) box.x1 = x1 + 1;
        if (y1 >= box.y1) box.y1 = y1 + 1;
    }
    return box.x1 == 0 ? (st_box_px){ 0 } : box;
}
