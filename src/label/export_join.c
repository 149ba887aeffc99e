/* export_join.c: the parts of a mask as one ring, for formats with one ring per object.
 *
 * Each part hangs on the nearest point of the parts before it; the ring is a walk around that tree, so it passes each
 * connecting line twice and encloses nothing that the parts do not. Ultralytics' own converter joins the same way
 * (ultralytics/data/converter.py, merge_multi_segment).
 */
#include "front/fault.h"
#include "label/export_rings.h"

#include <stdlib.h>

/* Pairs of points looked at per part; beyond it only every k-th point of the parts before it is. */
#define MOST_PAIRS 4000000u

/* A part, and where it hangs: at point `at` of ring `parent`, by its own point `start`. */
typedef struct link {
    size_t parent, at, start, ring;
} link;

typedef struct frame {
    size_t ring, start, done, next; /* next: in the links, sorted by parent and point */
    bool entered;
} frame;

static int by_place(const void *a, const void *b)
{
    const link *p = a, *q = b;
    if (p->parent != q->parent) return p->parent < q->parent ? -1 : 1;
    if (p->at != q->at) return p->at < q->at ? -1 : 1;
    return p->ring < q->ring ? -1 : p->ring > q->ring;
}

static int64_t distance(const int32_t *a, const int32_t *b)
{
    const int64_t dx = a[0] - b[0], dy = a[1] - b[1];
    return dx * dx + dy * dy;
}

static link nearest(const st_label_rings *rings, size_t ring, size_t n_before)
{
    const st_label_ring *r = &rings->items[ring];
    const size_t step = 1 + n_before / (MOST_PAIRS / r->n + 1);
    link best = { 0, 0, 0, ring };
    int64_t least = INT64_MAX;
    for (size_t k = 0; k < ring; k++)
        for (size_t i = 0; i < rings->items[k].n; i += step)
            for (size_t j = 0; j < r->n; j++) {
                const int64_t d = distance(rings->items[k].xy + 2 * i, r->xy + 2 * j);
                if (d >= least) continue;
                least = d;
                best = (link){ k, i, j, ring };
            }
    return best;
}

static void add(st_label_ring *out, const st_label_ring *from, size_t i)
{
    out->xy[2 * out->n] = from->xy[2 * i];
    out->xy[2 * out->n + 1] = from->xy[2 * i + 1];
    out->n++;
}

static size_t first_link(const link *links, size_t n, size_t ring, size_t at)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (links[middle].parent < ring || (links[middle].parent == ring && links[middle].at < at)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The walk around the tree, from the first point of the first part. stack [n_links + 1]. */
static void walk(st_label_ring *out, const st_label_rings *rings, const link *links, size_t n_links, frame *stack)
{
    size_t depth = 1;
    stack[0] = (frame){ 0 };
    while (depth) {
        frame *f = &stack[depth - 1];
        const st_label_ring *r = &rings->items[f->ring];
        const size_t at = (f->start + f->done) % r->n;
        if (f->done == r->n) { /* around, and back over the line it hangs on */
            if (!--depth) break;
            if (r->n > 1) add(out, r, at);
            const link *l = &links[stack[depth - 1].next - 1];
            add(out, &rings->items[l->parent], l->at);
            continue;
        }
        if (!f->entered) {
            add(out, r, at);
            f->next = first_link(links, n_links, f->ring, at);
            f->entered = true;
        }
        if (f->next < n_links && links[f->next].parent == f->ring && links[f->next].at == at) {
            const link *l = &links[f->next++];
            stack[depth++] = (frame){ .ring = l->ring, .start = l->start };
            continue;
        }
        f->done++;
        f->entered = false;
    }
}

st_status st_label_rings_join(st_label_rings *rings, st_error *err)
{
    if (rings->n < 2) return ST_OK;
    size_t n_points = 0;
    for (size_t k = 0; k < rings->n; k++) n_points += rings->items[k].n + 2;
    link *links = calloc(rings->n - 1, sizeof *links);
    frame *stack = calloc(rings->n, sizeof *stack);
    st_label_ring out = { calloc(2 * n_points, sizeof *out.xy), 0 };
    st_status status = ST_OK;
    if (!links || !stack || !out.xy) {
        free(out.xy);
        status = st_fault(err, ST_ERR_NOMEM, "out of memory while joining the parts of a mask");
    } else {
        size_t before = 0;
        for (size_t k = 1; k < rings->n; k++) {
            before += rings->items[k - 1].n;
            links[k - 1] = nearest(rings, k, before);
        }
        qsort(links, rings->n - 1, sizeof *links, by_place);
        walk(&out, rings, links, rings->n - 1, stack);
        for (size_t k = 0; k < rings->n; k++) free(rings->items[k].xy);
        rings->items[0] = out;
        rings->n = 1;
    }
    free(stack);
    free(links);
    return status;
}
