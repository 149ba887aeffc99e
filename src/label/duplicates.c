/* duplicates.c: which objects of a picture are one and the same (duplicates.h).
 *
 * Pairs that share enough are found from left to right, so that cost follows the objects that overlap and not the
 * square of their number; who displaces whom is then settled by score.
 */
#include "label/duplicates.h"

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

static double shared(const finder *f, const item *a, const item *b)
{
    const double w = (a->box[2] < b->box[2] ? a->box[2] : b->box[2]) - (a->box[0] > b->box[0] ? a->box[0] : b->box[0]);
    const double h = (a->box[3] < b->box[3] ? a->box[3] : b->box[3]) - (a->box[1] > b->box[1] ? a->box[1] : b->box[1]);
    if (!(w > 0 && h > 0)) return 0;
    const st_rle *p = &f->objects[a->object].mask, *q = &f->objects[b->object].mask;
    return p->n_counts > 0 && q->n_counts > 0 ? (double)st_rle_intersection(p, q) : w * h;
}

static bool is_duplicate(const finder *f, const item *a, const item *b)
{
    const double both = shared(f, a, b), smaller = a->area < b->area ? a->area : b->area;
    const double of = f->how->measure == ST_LABEL_BY_SMALLER ? smaller : a->area + b->area - both;
    return both > (double)f->how->threshold * of && both > 0;
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
            if (!comparable(f, &f->objects[a->object], &f->objects[b->object]) || !is_duplicate(f, a, b)) continue;
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

/* Whoever could displace an object is settled before it. */
static void settle(st_label_object *objects, const ranked *order, const pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        st_label_object *worse = &objects[order[pairs[i].worse].object];
        const size_t better = order[pairs[i].better].object;
        if (worse->displaced_by < 0 && objects[better].displaced_by < 0) worse->displaced_by = (int32_t)better;
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
        settle(picture->objects, order, f.pairs, f.n_pairs);
    }
    free(order);
    free(f.items);
    free(f.pairs);
    return status;
}
