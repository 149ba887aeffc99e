/* export_join.c: parts of a mask as one ring, for formats with one ring per object.
 *
 * Parts are 4-connected; those that touch at corners are one object to the eye, and are joined there first. Of the others
 * each part hangs on the nearest point of the parts before it; the ring is a walk around that tree, so it passes each
 * connecting line twice and encloses nothing that the parts do not. Ultralytics' own converter joins the same way
 * (ultralytics/data/converter.py, merge_multi_segment).
 */
#include "front/fault.h"
#include "label/export_rings.h"

#include <stdbool.h>
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

/* The walk around the tree, from the first point of `root`. stack [n_links + 1]. */
static void walk(st_label_ring *out, const st_label_rings *rings, const link *links, size_t n_links, size_t root,
                 frame *stack)
{
    size_t depth = 1;
    stack[0] = (frame){ .ring = root };
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

/* ---- parts that touch ---- */

/* A point of a ring; a corner where two parts touch is a point of both. */
typedef struct spot {
    int32_t x, y;
    size_t ring, at;
} spot;

typedef struct touch {
    spot *spots;  /* [n_spots] by y, then x */
    size_t n_spots;
    link *all;    /* [n_all] every contact, both ways, by parent */
    size_t n_all;
    link *tree;   /* [n_tree] those that a walk needs */
    size_t n_tree;
    size_t *todo; /* [rings->n] */
    bool *seen;   /* [rings->n] */
    frame *stack; /* [rings->n] */
} touch;

static int by_row(const void *a, const void *b)
{
    const spot *p = a, *q = b;
    if (p->y != q->y) return p->y < q->y ? -1 : 1;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    if (p->ring != q->ring) return p->ring < q->ring ? -1 : 1;
    return p->at < q->at ? -1 : p->at > q->at;
}

static bool same_place(const spot *a, const spot *b)
{
    return a->x == b->x && a->y == b->y && a->ring == b->ring;
}

/* Contacts of a spot with other rings' spots at (x, y), both ways; a ring that passes there twice counts once. */
static size_t meet(touch *t, const spot *s, int32_t x, int32_t y, bool counting)
{
    const spot wanted = { x, y, 0, 0 };
    size_t low = 0, high = t->n_spots, n = 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (by_row(&t->spots[middle], &wanted) < 0) low = middle + 1;
        else high = middle;
    }
    for (; low < t->n_spots && t->spots[low].x == x && t->spots[low].y == y; low++) {
        const spot *other = &t->spots[low];
        if (other->ring == s->ring || (low > 0 && same_place(other, other - 1))) continue;
        n += 2;
        if (counting) continue;
        t->all[t->n_all++] = (link){ s->ring, s->at, other->at, other->ring };
        t->all[t->n_all++] = (link){ other->ring, other->at, s->at, s->ring };
    }
    return n;
}

static size_t meet_all(touch *t, bool counting)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_spots; i++) {
        const spot *s = &t->spots[i];
        n += meet(t, s, s->x - 1, s->y + 1, counting) + meet(t, s, s->x + 1, s->y + 1, counting);
    }
    return n;
}

/* Everything that hangs together with `root`, as a tree. Returns the points that a walk around it writes at most. */
static size_t grow_tree(touch *t, const st_label_rings *rings, size_t root)
{
    size_t n_todo = 0, n_points = 0;
    t->seen[root] = true;
    t->todo[n_todo++] = root;
    for (size_t done = 0; done < n_todo; done++) {
        const size_t ring = t->todo[done];
        n_points += rings->items[ring].n + 2;
        for (size_t i = first_link(t->all, t->n_all, ring, 0); i < t->n_all && t->all[i].parent == ring; i++) {
            if (t->seen[t->all[i].ring]) continue;
            t->seen[t->all[i].ring] = true;
            t->tree[t->n_tree++] = t->all[i];
            t->todo[n_todo++] = t->all[i].ring;
        }
    }
    return n_points;
}

static bool touch_init(touch *t, const st_label_rings *rings)
{
    for (size_t k = 0; k < rings->n; k++) t->n_spots += rings->items[k].n;
    t->spots = calloc(t->n_spots, sizeof *t->spots);
    t->tree = calloc(rings->n, sizeof *t->tree);
    t->todo = calloc(rings->n, sizeof *t->todo);
    t->seen = calloc(rings->n, sizeof *t->seen);
    t->stack = calloc(rings->n, sizeof *t->stack);
    if (!t->spots || !t->tree || !t->todo || !t->seen || !t->stack) return false;
    size_t n = 0;
    for (size_t k = 0; k < rings->n; k++)
        for (size_t i = 0; i < rings->items[k].n; i++)
            t->spots[n++] = (spot){ rings->items[k].xy[2 * i], rings->items[k].xy[2 * i + 1], k, i };
    qsort(t->spots, t->n_spots, sizeof *t->spots, by_row);
    t->all = calloc(meet_all(t, true) + 1, sizeof *t->all);
    if (!t->all) return false;
    meet_all(t, false);
    qsort(t->all, t->n_all, sizeof *t->all, by_place);
    return true;
}

/* One ring per tree. False when out of memory. */
static bool walk_trees(st_label_rings *joined, touch *t, const st_label_rings *rings)
{
    size_t *roots = calloc(rings->n, sizeof *roots);
    joined->items = calloc(rings->n, sizeof *joined->items);
    bool ok = roots && joined->items;
    for (size_t k = 0; ok && k < rings->n; k++) {
        if (t->seen[k]) continue;
        roots[joined->n] = k;
        st_label_ring *r = &joined->items[joined->n++];
        r->xy = calloc(2 * grow_tree(t, rings, k), sizeof *r->xy);
        ok = r->xy != NULL;
    }
    if (ok) qsort(t->tree, t->n_tree, sizeof *t->tree, by_place);
    for (size_t i = 0; ok && i < joined->n; i++)
        walk(&joined->items[i], rings, t->tree, t->n_tree, roots[i], t->stack);
    free(roots);
    return ok;
}

/* Drops points on the straight way from the one before to the one behind, in place. */
static void tidy(st_label_ring *r)
{
    int32_t *xy = r->xy;
    size_t n = r->n < 2 ? r->n : 2;
    for (size_t i = 2; i < r->n; i++) {
        const int64_t ux = xy[2 * n - 2] - xy[2 * n - 4], uy = xy[2 * n - 1] - xy[2 * n - 3];
        const int64_t vx = xy[2 * i] - xy[2 * n - 2], vy = xy[2 * i + 1] - xy[2 * n - 1];
        n -= ux * vy == uy * vx && ux * vx + uy * vy > 0;
        xy[2 * n] = xy[2 * i];
        xy[2 * n + 1] = xy[2 * i + 1];
        n++;
    }
    r->n = n;
}

static st_status touch_all(st_label_rings *rings, st_error *err)
{
    touch t = { 0 };
    st_label_rings joined = { .n_holes = rings->n_holes };
    st_status status = ST_OK;
    if (!touch_init(&t, rings) || !walk_trees(&joined, &t, rings)) {
        st_label_rings_free(&joined);
        status = st_fault(err, ST_ERR_NOMEM, "out of memory while joining the parts of a mask");
    } else {
        st_label_rings_free(rings);
        *rings = joined;
    }
    free(t.spots);
    free(t.all);
    free(t.tree);
    free(t.todo);
    free(t.seen);
    free(t.stack);
    return status;
}

st_status st_label_rings_touch(st_label_rings *rings, st_error *err)
{
    const st_status status = rings->n < 2 ? ST_OK : touch_all(rings, err);
    for (size_t k = 0; status == ST_OK && k < rings->n; k++) tidy(&rings->items[k]);
    return status;
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
        walk(&out, rings, links, rings->n - 1, 0, stack);
        for (size_t k = 0; k < rings->n; k++) free(rings->items[k].xy);
        rings->items[0] = out;
        rings->n = 1;
    }
    free(stack);
    free(links);
    return status;
}
