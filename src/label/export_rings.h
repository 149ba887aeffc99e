/* export_rings.h: a mask as closed rings of points, the way the polygon formats want it.
 *
 * Two conventions that do not mix. Edges: points are pixel corners (0..width), the exact inverse of an even-odd fill of
 * pixel centres (COCO). Centres: points are the outermost pixels themselves (0..width-1), the inverse of a fill that
 * draws the border too (OpenCV's fillPoly, Pillow's polygon with outline).
 *
 * A ring has no holes: each hole is joined to what surrounds it by a bridge of no width, there and back along one pixel
 * row inside the mask, so that both fills give the mask back; or it is left out, which fills it, and with it the parts that
 * lie in it.
 */
#ifndef ST_LABEL_EXPORT_RINGS_H
#define ST_LABEL_EXPORT_RINGS_H

#include <stdbool.h>
#include <stencil/stencil_mask.h>

typedef enum st_label_points { ST_LABEL_EDGES = 0, ST_LABEL_CENTRES = 1 } st_label_points;

typedef struct st_label_ring {
    int32_t *xy; /* [2*n] */
    size_t n;
} st_label_ring;

typedef struct st_label_rings {
    st_label_ring *items; /* [n] one per 4-connected part of the mask */
    size_t n;
    size_t n_holes; /* of the mask, whether bridged or left out */
} st_label_rings;

ST_MUSTCHECK st_status st_label_rings_make(st_label_rings *out, const st_rle *mask, st_label_points points,
                                           bool bridge_holes, st_error *err);
/* Parts that touch at corners as one ring: their pixels are neighbours, so a fill that draws the border shows no more than
 * the mask. For centres, before any join. Also drops points in the middle of slanted stretches, which only this needs. */
ST_MUSTCHECK st_status st_label_rings_touch(st_label_rings *rings, st_error *err);
/* All parts as one ring, each joined to those before it by a line between their nearest points: a line of one pixel in
 * a fill that draws the border, and none in one that does not. */
ST_MUSTCHECK st_status st_label_rings_join(st_label_rings *rings, st_error *err);
void st_label_rings_free(st_label_rings *rings); /* NULL is not fine; twice is */

#endif
