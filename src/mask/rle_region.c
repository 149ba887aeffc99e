/* rle_region.c: connected parts of a mask, and a mask put into a larger picture. All on runs: cost is that of runs and
 * columns. Small parts go as in SAM 2's `sam2/utils/amg.py` (remove_small_regions), whose parts are 8-connected both
 * inside and outside of the mask.
 *
 * A run is cut at the ends of columns into strokes; strokes of neighbouring columns that touch, also by a corner, are
 * joined in a forest (union-find). The root of a part is its first stroke, so parts are found in one order always.
 */
#include "base/error.h"
#include "base/mem.h"
#include "mask/runs.h"

typedef struct stroke {
    uint32_t from, to; /* rows of one column */
    uint32_t parent;   /* a stroke of the same part that comes before it, or itself */
    uint32_t column;
    uint64_t area;     /* of the part, at its root */
} stroke;

static uint32_t root_of(stroke *strokes, uint32_t i)
{
    while (strokes[i].parent != i) {
        strokes[i].parent = strokes[strokes[i].parent].parent;
        i = strokes[i].parent;
    }
    return i;
}

static void join(stroke *strokes, uint32_t a, uint32_t b)
{
    uint32_t ra = root_of(strokes, a), rb = root_of(strokes, b);
    if (ra == rb) return;
    if (ra > rb) {
        const uint32_t swap = ra;
        ra = rb, rb = swap;
    }
    strokes[rb].parent = ra;
    strokes[ra].area += strokes[rb].area;
}

/* Strokes of one value, or with strokes NULL only their number, which fits 32 bits as the pixels do. */
static size_t cut_strokes(stroke *strokes, const st_rle *mask, bool value)
{
    uint64_t at = 0;
    size_t n = 0;
    for (size_t i = 0; i < mask->n_counts; i++) {
        const uint64_t end = at + mask->counts[i];
        for (uint64_t to; value == (bool)(i & 1) && at < end; at = to) {
            const uint64_t column = at / mask->height, top = column * mask->height;
            to = end < top + mask->height ? end : top + mask->height;
            if (strokes)
                strokes[n] = (stroke){ (uint32_t)(at - top), (uint32_t)(to - top), (uint32_t)n, (uint32_t)column, to - at };
            n++;
        }
        at = end;
    }
    return n;
}

/* `before` runs through the strokes of the column to the left, which are sorted as those of this column are. */
static void join_neighbours(stroke *strokes, size_t n)
{
    size_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const stroke *s = &strokes[i];
        while (before < i && strokes[before].column + 1 < s->column) before++;
        while (before < i && strokes[before].column + 1 == s->column && strokes[before].to < s->from) before++;
        for (size_t k = before; k < i && strokes[k].column + 1 == s->column && strokes[k].from <= s->to; k++)
            join(strokes, (uint32_t)k, (uint32_t)i);
    }
}

/* The mask again, with every pixel of a stroke whose part fails the test turned over. */
static st_status redraw(st_rle *out, const st_rle *mask, bool value, stroke *strokes, size_t n, uint64_t min_area,
                        uint32_t spared, st_error *err)
{
    st_runs runs = { 0 };
    uint64_t at = 0;
    for (size_t i = 0; i < n && !runs.failed; i++) {
        const stroke *s = &strokes[i];
        const uint32_t root = root_of(strokes, (uint32_t)i);
        const bool small = strokes[root].area < min_area && root != spared;
        const uint64_t from = (uint64_t)s->column * mask->height + s->from;
        st_runs_add(&runs, !value, (uint32_t)(from - at));
        st_runs_add(&runs, value != small, s->to - s->from);
        at = from + s->to - s->from;
    }
    st_runs_add(&runs, !value, (uint32_t)((uint64_t)mask->width * mask->height - at));
    return st_runs_finish(&runs, out, mask->width, mask->height, err);
}

static st_status remove_small(st_rle *out, int *changed, const st_rle *mask, bool value, uint64_t min_area, st_error *err)
{
    const size_t n = cut_strokes(NULL, mask, value);
    stroke *strokes = st_realloc_array(NULL, n, sizeof *strokes);
    if (!strokes) return st_fail(err, ST_ERR_NOMEM, "small parts of a mask: out of memory for %zu strokes", n);
    cut_strokes(strokes, mask, value);
    join_neighbours(strokes, n);
    size_t n_small = 0, n_parts = 0;
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (strokes[i].parent != i) continue;
        n_parts++;
        n_small += strokes[i].area < min_area;
        if (strokes[i].area > strokes[largest].area) largest = i;
    }
    /* A mask of small islands only keeps the largest; small holes all go. */
    const bool spare = value && n_small == n_parts && n_parts > 0;
    st_status status;
    *changed = n_small > 0 && !(spare && n_small == 1);
    if (*changed) status = redraw(out, mask, value, strokes, n, min_area, spare ? largest : UINT32_MAX, err);
    else status = st_rle_copy(out, mask, err);
    st_free(strokes);
    return status;
}

st_status st_rle_remove_small(st_rle *out, int *changed, const st_rle *mask, st_small what, uint64_t min_area,
                              st_error *err)
{
    int own;
    *out = (st_rle){ 0 };
    if (!changed) changed = &own;
    *changed = 0;
    if ((unsigned)what > ST_SMALL_HOLES) return st_fail(err, ST_ERR_INVALID_ARG, "small parts: no kind %u", (unsigned)what);
    st_status status = st_mask_check_size(mask->width, mask->height, "small parts", err);
    if (status != ST_OK) return status;
    /* Runs that do not fill the picture exactly are somebody's nonsense. */
    st_rle sound;
    status = st_rle_from_counts(&sound, mask->counts, mask->n_counts, mask->width, mask->height, err);
    if (status != ST_OK) return status;
    status = remove_small(out, changed, &sound, what == ST_SMALL_ISLANDS, min_area, err);
    st_rle_free(&sound);
    return status;
}

st_status st_rle_place(st_rle *out, const st_rle *mask, uint32_t x, uint32_t y, uint32_t width, uint32_t height,
                       st_error *err)
{
    *out = (st_rle){ 0 };
    st_status status = st_mask_check_size(width, height, "mask to place", err);
    if (status == ST_OK) status = st_mask_check_size(mask->width, mask->height, "mask to place", err);
    if (status != ST_OK) return status;
    if ((uint64_t)x + mask->width > width || (uint64_t)y + mask->height > height) {
        return st_fail(err, ST_ERR_INVALID_ARG, "mask of %u x %u at %u,%u: outside the picture of %u x %u",
                       (unsigned)mask->width, (unsigned)mask->height, (unsigned)x, (unsigned)y, (unsigned)width,
                       (unsigned)height);
    }
    const uint32_t below = height - y - mask->height;
    st_runs runs = { 0 };
    st_run_reader reader = st_run_reader_start(mask);
    st_runs_add(&runs, false, x * height);
    for (uint32_t column = 0; column < mask->width && !runs.failed; column++) {
        st_runs_add(&runs, false, y);
        for (uint32_t left = mask->height; left > 0;) {
            const uint32_t step = reader.left < left ? (uint32_t)reader.left : left;
            st_runs_add(&runs, reader.value, step);
            st_run_reader_take(&reader, step);
            left -= step;
        }
        st_runs_add(&runs, false, below);
    }
    st_runs_add(&runs, false, (width - x - mask->width) * height);
    return st_runs_finish(&runs, out, width, height, err);
}
