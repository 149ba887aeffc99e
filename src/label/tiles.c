/* tiles.c: where the views of a picture lie, and what was found in them as masks of the picture (tiles.h).
 *
 * Tiles have the size the model takes in, so that its resize changes nothing; only a picture that is narrower than
 * a tile has narrower tiles, which the model then stretches as it does every picture that is not square.
 */
#include "label/tiles.h"

#include <math.h>
#include <stdlib.h>
#include "front/fault.h"

/* ---- layout ---- */

/* How many tiles it takes along one side of the picture. */
static uint64_t tiles_along(uint32_t length, uint32_t side, uint32_t step)
{
    return length <= side ? 1 : 1 + ((uint64_t)length - side + step - 1) / step;
}

/* The i-th of n tiles; the first lies at 0, the last ends at the picture's end. */
static void span(uint32_t *low, uint32_t *high, uint32_t length, uint32_t side, uint64_t i, uint64_t n)
{
    *low = n > 1 ? (uint32_t)(((uint64_t)(length - side) * i + (n - 1) / 2) / (n - 1)) : 0;
    *high = length < side ? length : *low + side;
}

/* The side of a tile and what is shared, from the options. */
static st_status settle(uint32_t *side, uint32_t *shared, const st_label_tiling *t, uint32_t input_size, st_error *err)
{
    *side = t->size ? t->size : input_size;
    *shared = t->overlap ? t->overlap : (*side + 4) / 5;
    if (*side < ST_LABEL_MIN_SIDE)
        return st_fault(err, ST_ERR_INVALID_ARG, "tiles: a side of %u pixels; the least is %u", *side,
                        ST_LABEL_MIN_SIDE);
    if (*shared > *side / 2)
        return st_fault(err, ST_ERR_INVALID_ARG, "tiles: %u pixels shared of a side of %u; at most half, %u", *shared,
                        *side, *side / 2);
    return ST_OK;
}

st_status st_label_tiling_check(const st_label_tiling *tiling, uint32_t input_size, st_error *err)
{
    uint32_t side, shared;
    return tiling->on ? settle(&side, &shared, tiling, input_size, err) : ST_OK;
}

st_status st_label_layout_make(st_label_layout *out, uint32_t width, uint32_t height, const st_label_tiling *tiling,
                               uint32_t input_size, st_error *err)
{
    *out = (st_label_layout){ 0 };
    if (width == 0 || height == 0) return st_fault(err, ST_ERR_INVALID_ARG, "tiles: the picture has no pixels");
    uint32_t side = 0, shared = 0;
    const st_status status = tiling->on ? settle(&side, &shared, tiling, input_size, err) : ST_OK;
    if (status != ST_OK) return status;
    const bool one = !tiling->on || (width <= side && height <= side);
    const uint64_t columns = one ? 0 : tiles_along(width, side, side - shared);
    const uint64_t rows = one ? 0 : tiles_along(height, side, side - shared);
    if (columns >= ST_LABEL_MAX_VIEWS || rows >= ST_LABEL_MAX_VIEWS || columns * rows >= ST_LABEL_MAX_VIEWS)
        return st_fault(err, ST_ERR_LIMIT, "tiles: %llu x %llu of %u pixels in %u x %u; at most %u in all",
                        (unsigned long long)columns, (unsigned long long)rows, side, width, height,
                        ST_LABEL_MAX_VIEWS - 1);
    const bool whole = one || tiling->whole;
    const size_t n = (size_t)(columns * rows) + whole;
    st_box_px *views = calloc(n, sizeof *views);
    if (!views) return st_fault(err, ST_ERR_NOMEM, "tiles: out of memory for %zu views", n);
    *out = (st_label_layout){ width, height, views, n, (size_t)columns, (size_t)rows, whole };
    for (size_t i = 0; i < n - whole; i++) {
        span(&views[i].x0, &views[i].x1, width, side, i % columns, columns);
        span(&views[i].y0, &views[i].y1, height, side, i / columns, rows);
    }
    if (whole) views[n - 1] = (st_box_px){ 0, 0, width, height };
    return ST_OK;
}

void st_label_layout_free(st_label_layout *layout)
{
    if (!layout) return;
    free(layout->views);
    *layout = (st_label_layout){ 0 };
}

/* ---- pieces ---- */

void st_label_pieces_free(st_label_pieces *pieces)
{
    if (!pieces) return;
    for (size_t i = 0; i < pieces->n; i++) st_rle_free(&pieces->items[i].mask);
    free(pieces->items);
    *pieces = (st_label_pieces){ 0 };
}

static st_status grow(st_label_pieces *pieces, st_error *err)
{
    if (pieces->n < pieces->room) return ST_OK;
    const size_t room = pieces->room ? 2 * pieces->room : 64;
    st_label_piece *grown = reallocarray(pieces->items, room, sizeof *grown);
    if (!grown) return st_fault(err, ST_ERR_NOMEM, "tiles: out of memory for %zu pieces", room);
    pieces->items = grown;
    pieces->room = room;
    return ST_OK;
}

/* A coordinate in low..high; NaN is low. */
static uint32_t clamped(double v, uint32_t low, uint32_t high)
{
    if (!(v > low)) return low;
    return v < high ? (uint32_t)v : high;
}

st_box_px st_label_box_in(const float box[4], const st_box_px *outer)
{
    return (st_box_px){ clamped(floor((double)box[0]), outer->x0, outer->x1),
                        clamped(floor((double)box[1]), outer->y0, outer->y1),
                        clamped(ceil((double)box[2]), outer->x0, outer->x1),
                        clamped(ceil((double)box[3]), outer->y0, outer->y1) };
}

st_status st_label_box_mask(st_rle *out, const st_box_px *box, uint32_t width, uint32_t height, st_error *err)
{
    const uint32_t w = box->x1 - box->x0, h = box->y1 - box->y0;
    uint32_t counts[2] = { 0, w * h };
    const st_rle full = { w, h, counts, 2 };
    return st_rle_place(out, &full, box->x0, box->y0, width, height, err);
}

st_status st_label_pieces_add(st_label_pieces *pieces, const st_label_layout *layout, uint32_t view, uint32_t phrase,
                              const st_instance *found, st_error *err)
{
    const st_box_px *v = &layout->views[view];
    st_label_piece p = { .phrase = phrase, .view = view, .order = pieces->n, .score = found->score, .n_pieces = 1 };
    for (size_t k = 0; k < 4; k++) p.box[k] = found->box[k] + (float)(k % 2 ? v->y0 : v->x0);
    st_status status = grow(pieces, err);
    if (status != ST_OK) return status;
    if (found->mask.n_counts > 0) {
        if (found->area == 0) return ST_OK;
        status = st_rle_place(&p.mask, &found->mask, v->x0, v->y0, layout->width, layout->height, err);
    } else {
        const st_box_px b = st_label_box_in(p.box, v);
        if (b.x0 >= b.x1 || b.y0 >= b.y1) return ST_OK;
        status = st_label_box_mask(&p.mask, &b, layout->width, layout->height, err);
    }
    if (status != ST_OK) return status;
    p.area = st_rle_area(&p.mask);
    p.tight = st_rle_box(&p.mask);
    pieces->items[pieces->n++] = p;
    return ST_OK;
}
