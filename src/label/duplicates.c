/* duplicates.c: which objects of a picture are one and the same (duplicates.h).
 *
 * Pairs that could share enough, by their boxes and areas, are found from left to right, so that cost follows the objects
 * that overlap and not the square of their number; who displaces whom is then settled by score, and only there runs are
 * walked: not for one that is displaced already, and no further than it takes to know.
 */
#include "label/duplicates.h"

#include <math.h>
#include <stdlib.h>
#include "front/fault.h"

/* An object as it is compared. */
typedef struct item {
    double box[4]; /* tight, of the mask; the model's where there is none */
    double area;
    size_t object;
    size_t rank; /* by falling score */
} item;

typedef struct pair {
    size_t worse, better; /* ranks */
} pair;

typedef struct finder {
    const st_label_object *objects;
    const st_label_duplicates *how;
    item *items; /* [n] from left to right */
    size_t n;
    pair *pairs;
    size_t n_pairs, room;
} finder;

/* ---- what is compared ---- */

static item make_item(const st_label_object *o, size_t object)
{
    item it = { .object = object };
    if (o->mask.n_counts > 0) {
        const st_box_px b = st_rle_box(&o->mask);
        const double box[4] = { b.x0, b.y0, b.x1, b.y1 };
        for (size_t k = 0; k < 4; k++) it.box[k] = box[k];
        it.area = (double)o->area;
    } else {
        for (size_t k = 0; k < 4; k++) it.box[k] = (double)o->box[k];
        it.area = (it.box[2] - it.box[0]) * (it.box[3] - it.box[1]);
    }
    return it;
}

static bool comparable(const finder *f, const st_label_object *a, const st_label_object *b)
{
    if (a->class_id == b->class_id) return a->phrase != b->phrase;
    return f->how->across_classes;
}

/* Whether sharing `both` pixels makes objects of these areas one; what holds for some holds for more. */
static bool enough(const st_label_duplicates *how, double a, double b, double both)
{
    const double of = how->measure == ST_LABEL_BY_SMALLER ? fmin(a, b) : a + b - both;
    return both > (double)how->threshold * of && both > 0;
}

/* As far as boxes and areas tell; where an object has no mask, that is all. */
static bool could_be_one(const finder *f, const item *a, const item *b)
{
    const double w = fmin(a->box[2], b->box[2]) - fmax(a->box[0], b->box[0]);
    const double h = fmin(a->box[3], b->box[3]) - fmax(a->box[1], b->box[1]);
    return w > 0 && h > 0 && enough(f->how, a->area, b->area, fmin(w * h, fmin(a->area, b->area)));
}

/* ---- pairs ---- */

static st_status note(finder *f, size_t a, size_t b, st_error *err)
{
    if (f->n_pairs == f->room) {
        const size_t room = f->room ? 2 * f->room : 64;
        pair *grown = reallocarray(f->pairs, room, sizeof *grown);
        if (!grown) return st_fault(err, ST_ERR_NOMEM, "duplicates: out of memory for %zu pairs", room);
        f->pairs = grown;
        f->room = room;
    }
    f->pairs[f->n_pairs++] = (pair){ a > b ? a : b, a > b ? b : a };
    return ST_OK;
}

static st_status find_pairs(finder *f, st_error *err)
{
    st_status status = ST_OK;
    for (size_t i = 0; i < f->n; i++) {
        const item *a = &f->items[i];
        for (size_t k = i + 1; status == ST_OK && k < f->n && f->items[k].box[0] < a->box[2]; k++) {
            const item *b = &f->items[k];
            if (!comparable(f, &f->objects[a->object], &f->objects[b->object]) || !could_be_one(f, a, b)) continue;
            status = note(f, a->rank, b->rank, err);
        }
    }
    return status;
}

/* ---- order ---- */

typedef struct ranked {
    float score;
    size_t object;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static int from_left(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->box[0] != y->box[0]) return x->box[0] < y->box[0] ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_rank(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->worse != y->worse) return x->worse < y->worse ? -1 : 1;
    return x->better < y->better ? -1 : x->better > y->better;
}

/* ---- runs ---- */

/* A walk over the runs of a mask. */
typedef struct walk {
    const uint32_t *counts;
    size_t n, at;
    uint32_t left; /* pixels of the run `at`; odd runs are the mask's */
    uint64_t seen; /* pixels of the mask that were passed */
} walk;

static walk walk_start(const st_rle *mask)
{
    return (walk){ .counts = mask->counts, .n = mask->n_counts, .left = mask->counts[0] };
}

/* Without branches: where the runs of two masks end is noise to a processor. */
static void walk_on(walk *w, uint32_t step)
{
    w->seen += step & -(uint32_t)(w->at & 1);
    w->left -= step;
    const uint32_t ended = w->left == 0;
    w->at += ended;
    w->left |= w->counts[w->at < w->n ? w->at : w->n - 1] & -ended;
}

static bool is_one(const st_label_duplicates *how, const st_label_object *a, const st_label_object *b)
{
    if (a->mask.n_counts == 0 || b->mask.n_counts == 0) return true; /* boxes have said so */
    const double area_a = (double)a->area, area_b = (double)b->area;
    walk p = walk_start(&a->mask), q = walk_start(&b->mask);
    uint64_t both = 0;
    while (p.at < p.n && q.at < q.n) {
        for (int i = 0; i < 1024 && p.at < p.n && q.at < q.n; i++) {
            const uint32_t step = p.left < q.left ? p.left : q.left;
            both += step & -(uint32_t)(p.at & q.at & 1);
            walk_on(&p, step);
            walk_on(&q, step);
        }
        if (enough(how, area_a, area_b, (double)both)) return true;
        const double rest = fmin(area_a - (double)p.seen, area_b - (double)q.seen);
        if (!enough(how, area_a, area_b, (double)both + rest)) return false;
    }
    return false;
}

/* Whoever could displace an object is settled before it. */
static void settle(st_label_object *objects, const st_label_duplicates *how, const ranked *order, const pair *pairs,
                   size_t n)
{
    for (size_t i = 0; i < n; i++) {
        st_label_object *worse = &objects[order[pairs[i].worse].object];
        const size_t better = order[pairs[i].better].object;
        if (worse->displaced_by >= 0 || objects[better].displaced_by >= 0) continue;
        if (is_one(how, worse, &objects[better])) worse->displaced_by = (int32_t)better;
    }
}

st_status st_label_mark_duplicates(st_label_picture *picture, const st_label_duplicates *how, st_error *err)
{
    const size_t n = picture->n_objects;
    for (size_t i = 0; i < n; i++) picture->objects[i].displaced_by = -1;
    if (how->measure == ST_LABEL_DUPLICATES_OFF || n < 2) return ST_OK;
    if (n > INT32_MAX) return st_fault(err, ST_ERR_LIMIT, "duplicates: %zu objects in one picture", n);
    finder f = { .objects = picture->objects, .how = how, .n = n };
    ranked *order = calloc(n, sizeof *order);
    f.items = calloc(n, sizeof *f.items);
    st_status status = ST_OK;
    if (!order || !f.items) status = st_fault(err, ST_ERR_NOMEM, "duplicates: out of memory for %zu objects", n);
    else {
        for (size_t i = 0; i < n; i++) order[i] = (ranked){ picture->objects[i].score, i };
        qsort(order, n, sizeof *order, by_score);
        for (size_t i = 0; i < n; i++) {
            f.items[i] = make_item(&picture->objects[order[i].object], order[i].object);
            f.items[i].rank = i;
        }
        qsort(f.items, n, sizeof *f.items, from_left);
        status = find_pairs(&f, err);
    }
    if (status == ST_OK && f.n_pairs > 0) {
        qsort(f.pairs, f.n_pairs, sizeof *f.pairs, by_rank);
        settle(picture->objects, how, order, f.pairs, f.n_pairs);
    }
    free(order);
    free(f.items);
    free(f.pairs);
    return status;
}
