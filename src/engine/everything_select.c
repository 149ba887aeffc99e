/* everything_select.c: which of many masks stay. Duplicates go by non-maximum suppression of boxes, as in both
 * references (`transformers/models/sam3/image_processing_sam3.py`, `sam2/automatic_mask_generator.py`); their boxes end
 * at the last pixel, not behind it, so NMS is given such boxes here too.
 */
#include "engine/everything.h"

#include <stdlib.h>
#include "base/error.h"
#include "base/mem.h"

static bool stopped(const st_cancel *cancel)
{
    return cancel && st_cancel_is_set(cancel);
}

/* ---- the list ---- */

st_status st_mask_list_add(st_mask_list *list, const st_everything_mask *mask, st_error *err)
{
    if (list->n == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        st_everything_mask *grown = st_realloc_array(list->items, room, sizeof *grown);
        if (!grown) return st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu masks", room);
        list->items = grown;
        list->room = room;
    }
    list->items[list->n++] = *mask;
    list->n_bytes += mask->mask.n_counts * sizeof *mask->mask.counts;
    return ST_OK;
}

static void drop(st_mask_list *list, st_everything_mask *mask)
{
    list->n_bytes -= mask->mask.n_counts * sizeof *mask->mask.counts;
    st_rle_free(&mask->mask);
}

void st_mask_list_cut(st_mask_list *list, size_t n)
{
    while (list->n > n) drop(list, &list->items[--list->n]);
}

void st_mask_list_free(st_mask_list *list)
{
    st_mask_list_cut(list, 0);
    st_free(list->items);
    *list = (st_mask_list){ 0 };
}

/* Leaves the masks from `first` on in the order of `kept`, which counts from `first`, and drops the others. */
static st_status keep(st_mask_list *list, size_t first, const size_t *kept, size_t n_kept, st_error *err)
{
    const size_t n = list->n - first;
    if (n == 0) return ST_OK; /* there may be no array */
    st_everything_mask *masks = list->items + first, *old = st_calloc(n, sizeof *old);
    if (!old) return st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu masks", n);
    for (size_t i = 0; i < n; i++) old[i] = masks[i];
    for (size_t i = 0; i < n_kept; i++) {
        masks[i] = old[kept[i]];
        old[kept[i]].mask = (st_rle){ 0 };
    }
    for (size_t i = 0; i < n; i++) drop(list, &old[i]);
    list->n = first + n_kept;
    st_free(old);
    return ST_OK;
}

/* ---- order ---- */

typedef struct ranked {
    double score;
    size_t index;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* ---- NMS ---- */

static float width_of(float low, float high)
{
    return high > low ? high - low : 0.0f;
}

static bool overlap(const float *a, const float *b, float threshold)
{
    const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
    const float w = width_of(a[0] > b[0] ? a[0] : b[0], a[2] < b[2] ? a[2] : b[2]);
    const float h = width_of(a[1] > b[1] ? a[1] : b[1], a[3] < b[3] ? a[3] : b[3]);
    const float both = w * h;
    return both / (area_a + area_b - both) > threshold; /* not for two boxes without area: 0/0 */
}

st_status st_nms(size_t *kept, size_t *n_kept, const float *boxes, const double *scores, size_t n, float threshold,
                 const st_cancel *cancel, st_error *err)
{
    *n_kept = 0;
    ranked *order = st_calloc(n, sizeof *order);
    bool *gone = st_calloc(n, sizeof *gone);
    st_status status = order && gone ? ST_OK : st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu boxes", n);
    for (size_t i = 0; status == ST_OK && i < n; i++) order[i] = (ranked){ scores[i], i };
    if (status == ST_OK) qsort(order, n, sizeof *order, by_score);
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        if (gone[i]) continue;
        if (stopped(cancel)) status = st_fail(err, ST_ERR_CANCELLED, "cancelled");
        kept[(*n_kept)++] = order[i].index;
        for (size_t j = i + 1; j < n; j++)
            gone[j] = gone[j] || overlap(boxes + 4 * order[i].index, boxes + 4 * order[j].index, threshold);
    }
    st_free(order);
    st_free(gone);
    return status;
}

static double score_of(const st_everything_mask *m, st_rank rank, int changed)
{
    switch (rank) {
    case ST_RANK_IOU: return (double)m->iou;
    case ST_RANK_SMALL_CROP: return 1.0 / ((double)(m->crop.x1 - m->crop.x0) * (double)(m->crop.y1 - m->crop.y0));
    case ST_RANK_UNCHANGED: return changed ? 0.0 : 1.0;
    }
    return 0.0;
}

st_status st_mask_list_nms(st_mask_list *list, size_t first, st_rank rank, const int *changed, float threshold,
                           const st_cancel *cancel, st_error *err)
{
    const size_t n = list->n - first;
    size_t n_kept = 0;
    float *boxes = st_calloc(n, 4 * sizeof *boxes);
    double *scores = st_calloc(n, sizeof *scores);
    size_t *kept = st_calloc(n, sizeof *kept);
    st_status status = ST_OK;
    if (!boxes || !scores || !kept) status = st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu boxes", n);
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        const st_everything_mask *m = &list->items[first + i];
        const float box[4] = { (float)m->box.x0, (float)m->box.y0, (float)(m->box.x1 - 1), (float)(m->box.y1 - 1) };
        for (size_t k = 0; k < 4; k++) boxes[4 * i + k] = box[k];
        scores[i] = score_of(m, rank, changed ? changed[i] : 0);
    }
    if (status == ST_OK) status = st_nms(kept, &n_kept, boxes, scores, n, threshold, cancel, err);
    if (status == ST_OK) status = keep(list, first, kept, n_kept, err);
    st_free(boxes);
    st_free(scores);
    st_free(kept);
    return status;
}

/* ---- small parts ---- */

static st_status clean_one(st_mask_list *list, st_everything_mask *m, uint32_t min_area, int *changed, st_error *err)
{
    st_rle filled, clean;
    int cut = 0;
    st_status status = st_rle_remove_small(&filled, changed, &m->mask, ST_SMALL_HOLES, min_area, err);
    if (status != ST_OK) return status;
    status = st_rle_remove_small(&clean, &cut, &filled, ST_SMALL_ISLANDS, min_area, err);
    st_rle_free(&filled);
    if (status != ST_OK) return status;
    drop(list, m);
    m->mask = clean;
    list->n_bytes += clean.n_counts * sizeof *clean.counts;
    m->area = st_rle_area(&clean);
    m->box = st_rle_box(&clean);
    *changed |= cut;
    return ST_OK;
}

st_status st_mask_list_clean(st_mask_list *list, uint32_t min_area, float threshold, const st_cancel *cancel,
                             st_error *err)
{
    int *changed = st_calloc(list->n, sizeof *changed);
    st_status status = changed ? ST_OK : st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu masks", list->n);
    for (size_t i = 0; status == ST_OK && i < list->n; i++) {
        if (stopped(cancel)) status = st_fail(err, ST_ERR_CANCELLED, "cancelled");
        else status = clean_one(list, &list->items[i], min_area, &changed[i], err);
    }
    if (status == ST_OK) status = st_mask_list_nms(list, 0, ST_RANK_UNCHANGED, changed, threshold, cancel, err);
    st_free(changed);
    return status;
}

/* ---- order and overlap ---- */

st_status st_mask_list_sort(st_mask_list *list, st_error *err)
{
    ranked *order = st_calloc(list->n, sizeof *order);
    size_t *kept = st_calloc(list->n, sizeof *kept);
    st_status status = ST_OK;
    if (!order || !kept) status = st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu masks", list->n);
    else {
        for (size_t i = 0; i < list->n; i++) order[i] = (ranked){ (double)list->items[i].iou, i };
        qsort(order, list->n, sizeof *order, by_score);
        for (size_t i = 0; i < list->n; i++) kept[i] = order[i].index;
        status = keep(list, 0, kept, list->n, err);
    }
    st_free(order);
    st_free(kept);
    return status;
}

static bool boxes_meet(const st_box_px *a, const st_box_px *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

static bool covers(const st_everything_mask *a, const st_everything_mask *b, float threshold)
{
    if (!boxes_meet(&a->box, &b->box)) return false;
    const uint64_t smaller = a->area < b->area ? a->area : b->area;
    return (double)st_rle_intersection(&a->mask, &b->mask) > (double)threshold * (double)smaller;
}

st_status st_mask_list_dedup(st_mask_list *list, float threshold, const st_cancel *cancel, st_error *err)
{
    size_t *kept = st_calloc(list->n, sizeof *kept), n_kept = 0;
    if (!kept) return st_fail(err, ST_ERR_NOMEM, "everything: out of memory for %zu masks", list->n);
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < list->n; i++) {
        bool fresh = true;
        for (size_t k = 0; fresh && k < n_kept; k++) fresh = !covers(&list->items[kept[k]], &list->items[i], threshold);
        if (fresh) kept[n_kept++] = i;
        if (stopped(cancel)) status = st_fail(err, ST_ERR_CANCELLED, "cancelled");
    }
    if (status == ST_OK) status = keep(list, 0, kept, n_kept, err);
    st_free(kept);
    return status;
}
