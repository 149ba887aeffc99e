/* export_rings.c: outlines with holes turned into rings without (see export_rings.h).
 *
 * A hole is entered from its topmost leftmost corner: going left along that pixel row, all is mask up to the first
 * crack, which belongs to the outer outline or to a hole further left. So every hole hangs on exactly one edge of
 * another outline, the whole is a tree, and a walk around the tree is the ring. One sweep over the edges by x finds
 * the places; its cost is that of the outline's length, not of holes times edges.
 */
#include "label/export_rings.h"
#include "front/fault.h"

#include <stdlib.h>
#include <string.h>

/* An upright edge that may be met from the right, or (is_hole) a hole, or a part, that looks for one. */
typedef struct event {
    int32_t x;
    size_t polygon, edge;
    bool is_hole;
} event;

/* A hole and the edge it hangs on. */
typedef struct joint {
    size_t polygon, edge; /* of the parent: the edge from point `edge` to the next */
    int32_t y;            /* pixel row */
    size_t hole, start;   /* the hole's polygon and the point it is entered at */
} joint;

/* Where the walk is: in `polygon`, `done` of its edges behind it, `next` the first joint of the present edge. */
typedef struct frame {
    size_t polygon, start, done;
    size_t joint, joint_end; /* of the present edge, still to be taken */
    bool entered;            /* the present edge's first point was written */
} frame;

typedef struct walk {
    const st_polygons *all;
    st_label_points points;
    bool *covered; /* [all->n] parts in holes that are filled */
    joint *joints; /* [n_joints] sorted by polygon, edge, and along the edge */
    size_t n_joints;
    frame *stack; /* [all->n]: no outline is inside itself */
} walk;

static const int32_t *point_of(const st_polygon *p, size_t i)
{
    return p->xy + 2 * (i % p->n_points);
}

void st_label_rings_free(st_label_rings *rings)
{
    for (size_t i = 0; i < rings->n; i++) free(rings->items[i].xy);
    free(rings->items);
    *rings = (st_label_rings){ 0 };
}

/* ---- where the holes hang ---- */

/* The topmost of the leftmost points. */
static size_t entry_of(const st_polygon *p)
{
    size_t best = 0;
    for (size_t i = 1; i < p->n_points; i++) {
        const int32_t *a = p->xy + 2 * i, *b = p->xy + 2 * best;
        if (a[0] < b[0] || (a[0] == b[0] && a[1] < b[1])) best = i;
    }
    return best;
}

/* By x; what looks for an edge before the edges of its own x, so that it meets none but those left of it. */
static int by_x(const void *a, const void *b)
{
    const event *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    if (p->is_hole != q->is_hole) return p->is_hole ? -1 : 1;
    if (p->polygon != q->polygon) return p->polygon < q->polygon ? -1 : 1;
    return p->edge < q->edge ? -1 : p->edge > q->edge;
}

static int by_place(const void *a, const void *b)
{
    const joint *p = a, *q = b;
    if (p->polygon != q->polygon) return p->polygon < q->polygon ? -1 : 1;
    if (p->edge != q->edge) return p->edge < q->edge ? -1 : 1;
    return p->y > q->y ? -1 : p->y < q->y; /* these edges run upwards */
}

/* Edges that run upwards have the mask on their right, which is where bridges come from. */
static bool runs_up(const st_polygon *p, size_t edge)
{
    return point_of(p, edge + 1)[1] < point_of(p, edge)[1];
}

static size_t collect(event *events, const st_polygons *all)
{
    size_t n = 0;
    for (size_t k = 0; k < all->n; k++) {
        const st_polygon *p = &all->items[k];
        if (p->parent >= 0) {
            const size_t start = entry_of(p);
            events[n++] = (event){ point_of(p, start)[0], k, start, true };
        }
        for (size_t i = 0; i < p->n_points; i++)
            if (runs_up(p, i)) events[n++] = (event){ point_of(p, i)[0], k, i, false };
    }
    return n;
}

/* `last` [height] is, per pixel row, the edge met last in the sweep. False when the outlines are not those of a mask. */
static bool sweep(walk *w, const event *events, size_t n, const event **last)
{
    for (size_t i = 0; i < n; i++) {
        const event *e = &events[i];
        const st_polygon *p = &w->all->items[e->polygon];
        const int32_t y = point_of(p, e->edge)[1];
        if (e->is_hole) {
            const event *left = last[y];
            if (!left) return false;
            w->joints[w->n_joints++] = (joint){ left->polygon, left->edge, y, e->polygon, e->edge };
            continue;
        }
        for (int32_t row = point_of(p, e->edge + 1)[1]; row < y; row++) last[row] = e;
    }
    return true;
}

static st_status hang_holes(walk *w, uint32_t height, st_error *err)
{
    size_t room = 0;
    for (size_t k = 0; k < w->all->n; k++) room += w->all->items[k].n_points + 1;
    event *events = calloc(room, sizeof *events);
    const event **last = calloc(height, sizeof *last);
    st_status status = ST_OK;
    if (!events || !last) {
        status = st_fault(err, ST_ERR_NOMEM, "out of memory while joining the holes of a mask");
    } else {
        const size_t n = collect(events, w->all);
        qsort(events, n, sizeof *events, by_x);
        if (!sweep(w, events, n, last)) status = st_fault(err, ST_ERR_INTERNAL, "a hole outside its mask");
        qsort(w->joints, w->n_joints, sizeof *w->joints, by_place);
    }
    free(last);
    free(events);
    return status;
}

/* ---- parts that filled holes cover ---- */

static size_t collect_right_sides(event *events, const st_polygons *all)
{
    size_t n = 0;
    for (size_t k = 0; k < all->n; k++) {
        const st_polygon *p = &all->items[k];
        if (p->parent < 0) {
            const size_t start = entry_of(p);
            events[n++] = (event){ point_of(p, start)[0], k, start, true };
        }
        for (size_t i = 0; i < p->n_points; i++)
            if (point_of(p, i + 1)[1] > point_of(p, i)[1]) events[n++] = (event){ point_of(p, i)[0], k, i, false };
    }
    return n;
}

/* The same sweep the other way round: left of a part lies the right side of what it stands beside, or the edge of the
 * hole that it stands in. */
static void sweep_covered(bool *covered, const st_polygons *all, const event *events, size_t n, const event **last)
{
    for (size_t i = 0; i < n; i++) {
        const event *e = &events[i];
        const st_polygon *p = &all->items[e->polygon];
        const int32_t y = point_of(p, e->edge)[1];
        if (e->is_hole) {
            const event *left = last[y];
            covered[e->polygon] = left && (all->items[left->polygon].parent >= 0 || covered[left->polygon]);
            continue;
        }
        for (int32_t row = y; row < point_of(p, e->edge + 1)[1]; row++) last[row] = e;
    }
}

/* covered [all->n] starts at zero. */
static st_status find_covered(bool *covered, const st_polygons *all, uint32_t height, st_error *err)
{
    size_t room = 1;
    for (size_t k = 0; k < all->n; k++) room += all->items[k].n_points + 1;
    event *events = calloc(room, sizeof *events);
    const event **last = calloc(height, sizeof *last);
    st_status status = ST_OK;
    if (!events || !last) {
        status = st_fault(err, ST_ERR_NOMEM, "out of memory while filling the holes of a mask");
    } else {
        const size_t n = collect_right_sides(events, all);
        qsort(events, n, sizeof *events, by_x);
        sweep_covered(covered, all, events, n, last);
    }
    free(last);
    free(events);
    return status;
}

/* ---- writing a ring ---- */

/* b is on a level or upright way from a to c. Slanted ones keep their points: each may be where two parts touch. */
static bool straight(const int32_t *a, const int32_t *b, const int32_t *c)
{
    const int64_t ux = b[0] - a[0], uy = b[1] - a[1], vx = c[0] - b[0], vy = c[1] - b[1];
    return (ux == 0 || uy == 0) && ux * vy == uy * vx && ux * vx + uy * vy > 0;
}

/* Drops the point before when it lies on the straight way to the new one. */
static void add_point(st_label_ring *r, int32_t x, int32_t y)
{
    if (r->n && r->xy[2 * r->n - 2] == x && r->xy[2 * r->n - 1] == y) return;
    const int32_t point[2] = { x, y };
    if (r->n >= 2 && straight(r->xy + 2 * r->n - 4, r->xy + 2 * r->n - 2, point)) r->n--;
    memcpy(r->xy + 2 * r->n, point, sizeof point);
    r->n++;
}

/* The mask's pixel beside the first (or last) crack of an edge: on the right hand as the outline runs. */
static void add_pixel(st_label_ring *r, const int32_t a[2], const int32_t b[2], bool last)
{
    const int32_t dx = (b[0] > a[0]) - (b[0] < a[0]), dy = (b[1] > a[1]) - (b[1] < a[1]);
    const int32_t x = last ? b[0] - dx : a[0], y = last ? b[1] - dy : a[1]; /* where that crack begins */
    add_point(r, x - (dx < 0 || dy > 0), y - (dy < 0 || dx < 0));
}

static void add_corner(const walk *w, st_label_ring *r, size_t polygon, size_t edge, bool last)
{
    const st_polygon *p = &w->all->items[polygon];
    const int32_t *a = point_of(p, edge), *b = point_of(p, edge + 1);
    if (w->points == ST_LABEL_CENTRES) add_pixel(r, a, b, last);
    else if (last) add_point(r, b[0], b[1]);
    else add_point(r, a[0], a[1]);
}

/* Where a bridge leaves its parent's edge: the pixel right of the crack, or the crack's upper end, for the hole is
 * entered at that height. */
static void add_joint(const walk *w, st_label_ring *r, const joint *j)
{
    add_point(r, point_of(&w->all->items[j->polygon], j->edge)[0], j->y);
}

static void find_joints(const walk *w, frame *f, size_t edge)
{
    size_t low = 0, high = w->n_joints;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const joint *j = &w->joints[middle];
        if (j->polygon < f->polygon || (j->polygon == f->polygon && j->edge < edge)) low = middle + 1;
        else high = middle;
    }
    f->joint = f->joint_end = low;
    while (f->joint_end < w->n_joints && w->joints[f->joint_end].polygon == f->polygon &&
           w->joints[f->joint_end].edge == edge)
        f->joint_end++;
}

/* Walks around the tree from one outer outline. */
static void write_ring(const walk *w, st_label_ring *r, size_t outer)
{
    size_t depth = 1;
    w->stack[0] = (frame){ .polygon = outer };
    while (depth) {
        frame *f = &w->stack[depth - 1];
        const size_t n = w->all->items[f->polygon].n_points, edge = (f->start + f->done) % n;
        if (f->done == n) { /* around: a hole ends where it was entered, and goes back along its bridge */
            if (--depth) {
                add_corner(w, r, f->polygon, edge, false);
                add_joint(w, r, &w->joints[w->stack[depth - 1].joint - 1]);
            }
            continue;
        }
        if (!f->entered) {
            add_corner(w, r, f->polygon, edge, false);
            find_joints(w, f, edge);
            f->entered = true;
        }
        if (f->joint < f->joint_end) {
            const joint *j = &w->joints[f->joint++];
            add_joint(w, r, j);
            w->stack[depth++] = (frame){ .polygon = j->hole, .start = j->start };
            continue;
        }
        add_corner(w, r, f->polygon, edge, true);
        f->done++;
        f->entered = false;
    }
}

/* The walk ends where it began, and may have begun in the middle of a straight stretch. */
static void close_ring(st_label_ring *r)
{
    int32_t *xy = r->xy;
    while (r->n > 1 && xy[0] == xy[2 * r->n - 2] && xy[1] == xy[2 * r->n - 1]) r->n--;
    if (r->n >= 3 && straight(xy + 2 * r->n - 4, xy + 2 * r->n - 2, xy)) r->n--;
    if (r->n < 3 || !straight(xy + 2 * r->n - 2, xy, xy + 2)) return;
    memmove(xy, xy + 2, 2 * (r->n - 1) * sizeof *xy);
    r->n--;
}

/* need[k]: points that the walk from outline k can write at most: every edge writes its two ends, a hole five more. */
static void count_points(const walk *w, size_t *need)
{
    for (size_t k = 0; k < w->all->n; k++) {
        const st_polygon *p = &w->all->items[k];
        if (p->parent < 0) need[k] = 2 * p->n_points;
        else if (w->n_joints) need[p->parent] += 2 * p->n_points + 5;
    }
}

static st_status write_rings(st_label_rings *out, const walk *w, const size_t *need, st_error *err)
{
    size_t n = 0;
    for (size_t k = 0; k < w->all->n; k++) n += w->all->items[k].parent < 0;
    out->items = calloc(n ? n : 1, sizeof *out->items);
    if (!out->items) return st_fault(err, ST_ERR_NOMEM, "out of memory for the outlines of a mask");
    out->n_holes = w->all->n - n;
    for (size_t k = 0; k < w->all->n; k++) {
        if (w->all->items[k].parent >= 0 || w->covered[k]) continue;
        st_label_ring *r = &out->items[out->n++];
        r->xy = calloc(2 * need[k], sizeof *r->xy);
        if (!r->xy) return st_fault(err, ST_ERR_NOMEM, "out of memory for the outlines of a mask");
        write_ring(w, r, k);
        close_ring(r);
    }
    return ST_OK;
}

static st_status make_rings(st_label_rings *out, const st_polygons *all, uint32_t height, st_label_points points,
                            bool bridge_holes, st_error *err)
{
    const size_t room = all->n ? all->n : 1;
    walk w = { .all = all, .points = points };
    size_t *need = calloc(room, sizeof *need);
    w.joints = calloc(room, sizeof *w.joints);
    w.stack = calloc(room, sizeof *w.stack);
    w.covered = calloc(room, sizeof *w.covered);
    st_status status = ST_OK;
    if (!need || !w.joints || !w.stack || !w.covered)
        status = st_fault(err, ST_ERR_NOMEM, "out of memory for the outlines of a mask");
    else status = bridge_holes ? hang_holes(&w, height, err) : find_covered(w.covered, all, height, err);
    if (status == ST_OK) {
        count_points(&w, need);
        status = write_rings(out, &w, need, err);
    }
    free(w.covered);
    free(w.stack);
    free(w.joints);
    free(need);
    return status;
}

st_status st_label_rings_make(st_label_rings *out, const st_rle *mask, st_label_points points, bool bridge_holes,
                              st_error *err)
{
    st_polygons all = { 0 };
    *out = (st_label_rings){ 0 };
    st_status status = st_rle_to_polygons(&all, mask, err);
    if (status == ST_OK) status = make_rings(out, &all, mask->height, points, bridge_holes, err);
    if (status != ST_OK) st_label_rings_free(out);
    st_polygons_free(&all);
    return status;
}
