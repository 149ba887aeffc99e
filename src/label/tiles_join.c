/* tiles_join.c: pieces of one object from different views become one (tiles.h has the rule).
 *
 * Pairs that agree are joined best first, so that a piece goes to the one it fits best; the result does not depend
 * on the order of views. A piece lies wholly in its view: what two pieces share lies in both views, and only their
 * areas have to be cut to the band.
 */
#include "label/tiles.h"

#include <stdlib.h>
#include "front/fault.h"

typedef struct pair {
    double iou;
    size_t a, b; /* pieces, a < b */
} pair;

typedef struct joiner {
    const st_label_layout *layout;
    const st_cancel *cancel;
    st_label_piece *pieces; /* of one phrase, by view */
    size_t n;
    size_t *first;  /* [n_views + 1]: pieces of view v are first[v] .. first[v + 1] */
    pair *pairs;
    size_t n_pairs, room;
    size_t *next;   /* [n]: ring of the pieces of one object */
} joiner;

/* ---- geometry ---- */

static bool cut_box(st_box_px *out, const st_box_px *a, const st_box_px *b)
{
    out->x0 = a->x0 > b->x0 ? a->x0 : b->x0;
    out->y0 = a->y0 > b->y0 ? a->y0 : b->y0;
    out->x1 = a->x1 < b->x1 ? a->x1 : b->x1;
    out->y1 = a->y1 < b->y1 ? a->y1 : b->y1;
    return out->x0 < out->x1 && out->y0 < out->y1;
}

static bool box_in(const st_box_px *a, const st_box_px *outer)
{
    return a->x0 >= outer->x0 && a->y0 >= outer->y0 && a->x1 <= outer->x1 && a->y1 <= outer->y1;
}

static bool is_whole(const joiner *j, const st_label_piece *p)
{
    return j->layout->whole && p->view == j->layout->n_views - 1;
}

/* Whether a piece may go on outside its view: it reaches, but for a mask's blur, an edge that is not the picture's. */
static bool is_cut(const joiner *j, const st_label_piece *p)
{
    if (is_whole(j, p)) return false;
    const st_box_px *v = &j->layout->views[p->view], *t = &p->tight;
    const uint32_t dx = (v->x1 - v->x0) / 64, dy = (v->y1 - v->y0) / 64;
    return (v->x0 > 0 && t->x0 <= v->x0 + dx) || (v->y0 > 0 && t->y0 <= v->y0 + dy) ||
           (v->x1 < j->layout->width && t->x1 + dx >= v->x1) || (v->y1 < j->layout->height && t->y1 + dy >= v->y1);
}

static st_status box_mask(st_rle *out, const joiner *j, const st_box_px *box, st_error *err)
{
    return st_label_box_mask(out, box, j->layout->width, j->layout->height, err);
}

static uint64_t area_in(const st_label_piece *p, const st_box_px *band, const st_rle *band_mask)
{
    return box_in(&p->tight, band) ? p->area : st_rle_intersection(&p->mask, band_mask);
}

/* ---- pairs that agree ---- */

static st_status note(joiner *j, size_t a, size_t b, double iou, st_error *err)
{
    if (iou < ST_LABEL_JOIN_IOU) return ST_OK;
    if (j->n_pairs == j->room) {
        const size_t room = j->room ? 2 * j->room : 64;
        pair *grown = reallocarray(j->pairs, room, sizeof *grown);
        if (!grown) return st_fault(err, ST_ERR_NOMEM, "tiles: out of memory for %zu pairs of pieces", room);
        j->pairs = grown;
        j->room = room;
    }
    j->pairs[j->n_pairs++] = (pair){ iou, a, b };
    return ST_OK;
}

static st_status meet(joiner *j, size_t a, size_t b, const st_box_px *band, const st_rle *band_mask, st_error *err)
{
    const st_label_piece *p = &j->pieces[a], *q = &j->pieces[b];
    st_box_px both;
    if (!cut_box(&both, &p->tight, &q->tight)) return ST_OK;
    const uint64_t shared = st_rle_intersection(&p->mask, &q->mask);
    if (shared == 0) return ST_OK;
    /* an object that one view saw to the end has no more outside that view: what the other piece has there counts */
    const uint64_t area_p = is_cut(j, q) ? area_in(p, band, band_mask) : p->area;
    const uint64_t area_q = is_cut(j, p) ? area_in(q, band, band_mask) : q->area;
    return note(j, a, b, (double)shared / (double)(area_p + area_q - shared), err);
}

static st_status meet_views(joiner *j, size_t v, size_t w, st_error *err)
{
    const size_t *first = j->first;
    st_box_px band;
    if (first[w] == first[w + 1] || !cut_box(&band, &j->layout->views[v], &j->layout->views[w])) return ST_OK;
    if (j->cancel && st_cancel_is_set(j->cancel)) return st_fault(err, ST_ERR_CANCELLED, "cancelled");
    st_rle mask;
    st_status status = box_mask(&mask, j, &band, err);
    for (size_t a = first[v]; status == ST_OK && a < first[v + 1]; a++)
        for (size_t b = first[w]; status == ST_OK && b < first[w + 1]; b++) status = meet(j, a, b, &band, &mask, err);
    st_rle_free(&mask);
    return status;
}

/* Views that come later and overlap: in this row, in the next rows as far as they overlap, and the whole picture. */
static st_status meet_later_views(joiner *j, size_t v, st_error *err)
{
    const st_label_layout *l = j->layout;
    const size_t n_tiles = l->n_columns * l->n_rows;
    st_status status = ST_OK;
    for (size_t w = v + 1; status == ST_OK && w < n_tiles && l->views[w].y0 < l->views[v].y1; w++)
        status = meet_views(j, v, w, err);
    if (status == ST_OK && l->whole && v < n_tiles) status = meet_views(j, v, l->n_views - 1, err);
    return status;
}

static st_status find_pairs(joiner *j, st_error *err)
{
    st_status status = ST_OK;
    for (size_t v = 0, i = 0; v < j->layout->n_views; v++) {
        j->first[v] = i;
        while (i < j->n && j->pieces[i].view == v) i++;
        j->first[v + 1] = i;
    }
    for (size_t v = 0; status == ST_OK && v < j->layout->n_views; v++)
        if (j->first[v] < j->first[v + 1]) status = meet_later_views(j, v, err);
    return status;
}

/* ---- objects ---- */

static int by_iou(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->iou != y->iou) return x->iou > y->iou ? -1 : 1;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

static bool same_ring(const joiner *j, size_t a, size_t b)
{
    for (size_t i = j->next[a]; i != a; i = j->next[i])
        if (i == b) return true;
    return a == b;
}

/* Two pieces of one view that the model told apart. */
static bool apart(const joiner *j, size_t a, size_t b)
{
    const st_label_piece *p = &j->pieces[a], *q = &j->pieces[b];
    if (p->view != q->view) return false;
    return !is_cut(j, p) || !is_cut(j, q) || st_rle_intersection(&p->mask, &q->mask) > 0;
}

static bool rings_apart(const joiner *j, size_t a, size_t b)
{
    size_t i = a;
    do {
        size_t k = b;
        do {
            if (apart(j, i, k)) return true;
            k = j->next[k];
        } while (k != b);
        i = j->next[i];
    } while (i != a);
    return false;
}

static void join_rings(joiner *j)
{
    for (size_t i = 0; i < j->n; i++) j->next[i] = i;
    if (j->n_pairs > 0) qsort(j->pairs, j->n_pairs, sizeof *j->pairs, by_iou);
    for (size_t k = 0; k < j->n_pairs; k++) {
        const size_t a = j->pairs[k].a, b = j->pairs[k].b;
        if (same_ring(j, a, b) || rings_apart(j, a, b)) continue;
        const size_t after = j->next[a];
        j->next[a] = j->next[b];
        j->next[b] = after;
    }
}

/* *mask becomes `op` of itself and another. */
static st_status change(st_rle *mask, const st_rle *other, st_rle_op op, st_error *err)
{
    st_rle out;
    const st_status status = st_rle_combine(&out, mask, other, op, err);
    if (status != ST_OK) return status;
    st_rle_free(mask);
    *mask = out;
    return ST_OK;
}

static void take_box(st_label_piece *into, const st_label_piece *p)
{
    for (size_t k = 0; k < 2; k++) {
        if (p->box[k] < into->box[k]) into->box[k] = p->box[k];
        if (p->box[k + 2] > into->box[k + 2]) into->box[k + 2] = p->box[k + 2];
    }
}

/* Of the whole picture's piece only what no tile of this object saw. */
static st_status leave_rest(joiner *j, st_label_piece *whole, const size_t *members, size_t n, st_error *err)
{
    st_status status = ST_OK;
    for (size_t k = 0; status == ST_OK && k < n; k++) {
        st_rle seen;
        status = box_mask(&seen, j, &j->layout->views[j->pieces[members[k]].view], err);
        if (status == ST_OK) status = change(&whole->mask, &seen, ST_RLE_SUBTRACT, err);
        st_rle_free(&seen);
    }
    whole->area = st_rle_area(&whole->mask);
    return status;
}

/* Makes one piece, the first, of a ring's n members by rising index, which is by view. The others lose their masks. */
static st_status unite(joiner *j, const size_t *members, size_t n, st_error *err)
{
    st_label_piece *into = &j->pieces[members[0]], *last = &j->pieces[members[n - 1]];
    st_status status = is_whole(j, last) ? leave_rest(j, last, members, n - 1, err) : ST_OK;
    for (size_t k = 1; status == ST_OK && k < n; k++) {
        st_label_piece *p = &j->pieces[members[k]];
        if (p->area > 0) {
            status = change(&into->mask, &p->mask, ST_RLE_UNION, err);
            take_box(into, p);
        }
        if (p->score > into->score) into->score = p->score;
        st_rle_free(&p->mask);
    }
    into->n_pieces = (uint32_t)n;
    into->area = st_rle_area(&into->mask);
    into->tight = st_rle_box(&into->mask);
    return status;
}

static int by_index(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static st_status unite_rings(joiner *j, size_t *members, st_error *err)
{
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < j->n; i++) {
        if (j->pieces[i].mask.n_counts == 0 || j->next[i] == i) continue; /* taken in already, or alone */
        size_t n = 0, k = i;
        do {
            members[n++] = k;
            k = j->next[k];
        } while (k != i);
        qsort(members, n, sizeof *members, by_index);
        status = unite(j, members, n, err);
    }
    return status;
}

/* The pieces of one phrase, by view. */
static st_status join_phrase(st_label_piece *pieces, size_t n, const st_label_layout *layout, const st_cancel *cancel,
                             st_error *err)
{
    joiner j = { .layout = layout, .cancel = cancel, .pieces = pieces, .n = n };
    size_t *members = calloc(n, sizeof *members);
    j.first = calloc(layout->n_views + 1, sizeof *j.first);
    j.next = calloc(n, sizeof *j.next);
    st_status status = ST_OK;
    if (!j.first || !j.next || !members) status = st_fault(err, ST_ERR_NOMEM, "tiles: out of memory for %zu pieces", n);
    if (status == ST_OK) status = find_pairs(&j, err);
    if (status == ST_OK) {
        join_rings(&j);
        status = unite_rings(&j, members, err);
    }
    free(j.first);
    free(j.next);
    free(j.pairs);
    free(members);
    return status;
}

/* ---- the list ---- */

/* Before: by phrase and view, within them as the model gave them, which `order` keeps. */
static int by_view(const void *a, const void *b)
{
    const st_label_piece *x = a, *y = b;
    if (x->phrase != y->phrase) return x->phrase < y->phrase ? -1 : 1;
    if (x->view != y->view) return x->view < y->view ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Afterwards: by phrase and falling score. */
static int by_score(const void *a, const void *b)
{
    const st_label_piece *x = a, *y = b;
    if (x->phrase != y->phrase) return x->phrase < y->phrase ? -1 : 1;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return by_view(a, b);
}

static void drop_taken(st_label_pieces *pieces)
{
    size_t n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        if (pieces->items[i].mask.n_counts > 0) pieces->items[n++] = pieces->items[i];
    pieces->n = n;
}

st_status st_label_join(st_label_pieces *pieces, const st_label_layout *layout, const st_cancel *cancel, st_error *err)
{
    st_label_piece *items = pieces->items;
    st_status status = ST_OK;
    if (pieces->n == 0) return ST_OK; /* there may be no array */
    qsort(items, pieces->n, sizeof *items, by_view);
    for (size_t i = 0, next; status == ST_OK && layout->n_views > 1 && i < pieces->n; i = next) {
        for (next = i + 1; next < pieces->n && items[next].phrase == items[i].phrase;) next++;
        status = join_phrase(items + i, next - i, layout, cancel, err);
    }
    drop_taken(pieces);
    if (pieces->n > 0) qsort(items, pieces->n, sizeof *items, by_score);
    return status;
}
