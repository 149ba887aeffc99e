/* outline.c: the exact outlines of a mask, traced from its runs. Time and memory go with runs and columns, not with
 * pixels.
 *
 * A sweep from left to right keeps the horizontal edges ("strands") of the column last seen, top to bottom: even ones
 * have the inside below (top edges of a run), odd ones above. On the line between two columns, a strand that both
 * columns have goes straight on; every other end of a strand is a corner. Between the corners of one line, paired from
 * the top, lie exactly the vertical edges. So each corner has one horizontal and one vertical edge, and walking with
 * the inside to the right leaves it by one of them: `next`.
 *
 * Where two pixels touch only at a corner, two corners share the place. "Inside above" sorts before "inside below", so
 * each vertical edge meets the strand of its own pixel: insides part there (4-connected), outsides join (8-connected),
 * and no two outlines cross.
 */
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "mask/runs.h"

#define NONE UINT32_MAX

typedef struct corner {
    int32_t x, y;
    uint32_t next;  /* the corner that follows, inside to the right */
    uint32_t above; /* at the left end of an odd strand: the left end of the strand above, else NONE */
    uint32_t loop;  /* outline that it belongs to, once walked */
} corner;

typedef struct strand {
    uint32_t y, corner; /* corner: its left end */
} strand;

typedef struct strands {
    strand *items;
    size_t n, room;
} strands;

typedef struct tracer {
    const st_rle *mask;
    size_t run; /* run that the sweep stands in */
    uint64_t run_start;
    strands left, right; /* of the column before the line, and behind it */
    corner *corners;
    size_t n_corners, room;
} tracer;

static bool make_room(void **items, size_t *room, size_t n, size_t size)
{
    if (n < *room) return true;
    const size_t more = *room ? 2 * *room : 64;
    void *grown = st_realloc_array(*items, more, size);
    if (!grown) return false;
    *items = grown;
    *room = more;
    return true;
}

static bool add_strand(strands *s, uint64_t y)
{
    void *items = s->items;
    const bool ok = make_room(&items, &s->room, s->n, sizeof *s->items);
    s->items = items;
    if (ok) s->items[s->n++] = (strand){ (uint32_t)y, NONE };
    return ok;
}

/* NONE when out of memory or out of numbers. */
static uint32_t add_corner(tracer *t, uint32_t x, uint32_t y)
{
    void *corners = t->corners;
    const bool ok = t->n_corners < NONE && make_room(&corners, &t->room, t->n_corners, sizeof *t->corners);
    t->corners = corners;
    if (!ok) return NONE;
    t->corners[t->n_corners] = (corner){ (int32_t)x, (int32_t)y, NONE, NONE, NONE };
    return (uint32_t)t->n_corners++;
}

/* Fills t->right with the edges of column x. *same_until: the last column of those from x on that one run fills. */
static bool read_column(tracer *t, uint32_t x, uint32_t *same_until)
{
    const uint64_t h = t->mask->height, begin = x * h, end = begin + h;
    t->right.n = 0;
    *same_until = x;
    for (; t->run < t->mask->n_counts; t->run_start += t->mask->counts[t->run++]) {
        const uint64_t from = t->run_start, to = from + t->mask->counts[t->run];
        if (t->run & 1 && to > begin) {
            if (!add_strand(&t->right, (from > begin ? from : begin) - begin)) return false;
            if (!add_strand(&t->right, (to < end ? to : end) - begin)) return false;
        }
        if (from <= begin && to > end) *same_until = (uint32_t)(to / h) - 1;
        if (to >= end) break; /* also when it ends here: the next one is the next column's */
    }
    return true;
}

/* Top to bottom; at one height, inside above before inside below. */
static uint64_t strand_order(const strands *s, size_t i)
{
    return i < s->n ? 2 * (uint64_t)s->items[i].y + !(i & 1) : UINT64_MAX;
}

/* Ends and begins strands on the line between columns x-1 and x, and joins the corners that this makes. */
static bool join_line(tracer *t, uint32_t x)
{
    strands *left = &t->left, *right = &t->right;
    uint32_t upper = NONE; /* corner above, whose vertical edge comes down to the next one */
    bool inside_right = false;
    for (size_t l = 0, r = 0; l < left->n || r < right->n;) {
        const uint64_t at_left = strand_order(left, l), at_right = strand_order(right, r);
        if (at_left == at_right) {
            right->items[r++].corner = left->items[l++].corner;
            continue;
        }
        const bool begins = at_right < at_left, top_edge = !((begins ? r : l) & 1);
        const uint32_t c = add_corner(t, x, begins ? right->items[r].y : left->items[l].y);
        if (c == NONE) return false;
        if (begins) {
            if (!top_edge) t->corners[c].above = right->items[r - 1].corner;
            right->items[r++].corner = c;
        } else {
            const uint32_t start = left->items[l++].corner;
            t->corners[top_edge ? start : c].next = top_edge ? c : start; /* rightwards along top edges only */
        }
        if (upper == NONE) {
            upper = c;
            inside_right = begins == top_edge;
        } else {
            t->corners[inside_right ? c : upper].next = inside_right ? upper : c;
            upper = NONE;
        }
    }
    return true;
}

static bool sweep(tracer *t)
{
    const uint32_t width = t->mask->width;
    for (uint32_t x = 0; x < width; x++) {
        uint32_t same_until;
        if (!read_column(t, x, &same_until) || !join_line(t, x)) return false;
        const strands done = t->left;
        t->left = t->right;
        t->right = done;
        x = same_until; /* columns that are like this one make no corners */
    }
    t->right.n = 0;
    return join_line(t, width);
}

/* Numbers the outlines in the order of their first corners; returns how many. */
static size_t mark_loops(tracer *t)
{
    size_t n = 0;
    for (size_t first = 0; first < t->n_corners; first++) {
        if (t->corners[first].loop != NONE) continue;
        for (size_t c = first; t->corners[c].loop == NONE; c = t->corners[c].next) t->corners[c].loop = (uint32_t)n;
        n++;
    }
    return n;
}

/* The first corner of an outline is the top of its leftmost edge, so it begins a strand: a top edge if the inside of
 * the mask is inside the outline, else the edge above a hole. The strand above such a one belongs to the same part
 * of the mask: to the outline wanted, or to a hole in the same part whose first corner came earlier, and whose
 * parent is therefore known. */
static int32_t parent_of(const tracer *t, const st_polygon *items, size_t first)
{
    const uint32_t above = t->corners[first].above;
    if (above == NONE) return -1;
    const uint32_t loop = t->corners[above].loop;
    return items[loop].parent < 0 ? (int32_t)loop : items[loop].parent;
}

/* One block holds the items and, behind them, all points. */
static st_status write_polygons(st_polygons *out, const tracer *t, size_t n_loops, st_error *err)
{
    size_t n_items_bytes, n_xy_bytes, n_bytes;
    if (n_loops > INT32_MAX || !st_mul_size(&n_items_bytes, n_loops, sizeof *out->items) ||
        !st_mul_size(&n_xy_bytes, t->n_corners, 2 * sizeof(int32_t)) ||
        !st_add_size(&n_bytes, n_items_bytes, n_xy_bytes)) {
        return st_fail(err, ST_ERR_LIMIT, "outlines of a mask: %zu outlines with %zu points are too many", n_loops,
                       t->n_corners);
    }
    st_polygon *items = st_malloc(n_bytes);
    if (!items) return st_fail(err, ST_ERR_NOMEM, "outlines of a mask: out of memory for %zu bytes", n_bytes);
    int32_t *xy = (int32_t *)(void *)(items + n_loops);
    size_t n = 0;
    for (size_t first = 0; first < t->n_corners; first++) {
        if (t->corners[first].loop != n) continue;
        items[n] = (st_polygon){ .xy = xy, .n_points = 0, .parent = parent_of(t, items, first) };
        size_t c = first;
        do {
            *xy++ = t->corners[c].x;
            *xy++ = t->corners[c].y;
            items[n].n_points++;
            c = t->corners[c].next;
        } while (c != first);
        n++;
    }
    *out = (st_polygons){ .items = items, .n = n };
    return ST_OK;
}

/* What the sweep relies on: runs that add up, none of them empty but the first. */
static st_status check_canonical(const st_rle *mask, st_error *err)
{
    if (mask->width > INT32_MAX || mask->height > INT32_MAX) {
        return st_fail(err, ST_ERR_LIMIT, "outlines of a mask: a side of %u x %u pixels does not fit a coordinate",
                       (unsigned)mask->width, (unsigned)mask->height);
    }
    const uint64_t area = (uint64_t)mask->width * mask->height;
    uint64_t total = 0;
    bool ok = true;
    for (size_t i = 0; i < mask->n_counts && ok && total <= area; i++) {
        total += mask->counts[i];
        ok = i == 0 || mask->counts[i] > 0;
    }
    if (ok && total == area) return ST_OK;
    return st_fail(err, ST_ERR_INVALID_ARG, "outlines of a mask: its %zu runs are not canonical for %u x %u pixels",
                   mask->n_counts, (unsigned)mask->width, (unsigned)mask->height);
}

st_status st_rle_to_polygons(st_polygons *out, const st_rle *mask, st_error *err)
{
    *out = (st_polygons){ 0 };
    st_status status = check_canonical(mask, err);
    if (status != ST_OK) return status;
    tracer t = { .mask = mask };
    if (!sweep(&t)) {
        status = t.n_corners < NONE
                     ? st_fail(err, ST_ERR_NOMEM, "outlines of a mask: out of memory after %zu corners", t.n_corners)
                     : st_fail(err, ST_ERR_LIMIT, "outlines of a mask: over %zu corners", t.n_corners);
        goto done;
    }
    const size_t n_loops = mark_loops(&t);
    if (n_loops > 0) status = write_polygons(out, &t, n_loops, err);
done:
    st_free(t.corners);
    st_free(t.left.items);
    st_free(t.right.items);
    return status;
}

void st_polygons_free(st_polygons *polygons)
{
    if (!polygons) return;
    st_free(polygons->items);
    *polygons = (st_polygons){ 0 };
}
