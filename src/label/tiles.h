/* tiles.h: large pictures in overlapping crops of the model's own size, and pieces of one object joined again.
 *
 * A view is what the model looks at once: a tile, or the whole picture. What it finds is a piece, with its mask
 * already placed in the picture, as runs. Pieces of one phrase that agree where their views overlap are one object.
 * Everything here works on runs; nothing depends on the order in which views were looked at.
 */
#ifndef ST_LABEL_TILES_H
#define ST_LABEL_TILES_H

#include "label/labels.h"

#define ST_LABEL_MIN_SIDE 32u
#define ST_LABEL_MAX_VIEWS 65536u

/* Tiles row by row; the whole picture, if it is looked at, comes last. Tiles are spread evenly: neighbours share
 * what was asked for or a little more, and none is narrower than the others. */
typedef struct st_label_layout {
    uint32_t width, height; /* of the picture */
    st_box_px *views;       /* [n_views] */
    size_t n_views, n_columns, n_rows; /* n_rows * n_columns tiles */
    bool whole;             /* the last view is the whole picture */
} st_label_layout;

/* Whether the options make sense for a model of this input size: asked once, before pictures are looked at. */
ST_MUSTCHECK st_status st_label_tiling_check(const st_label_tiling *tiling, uint32_t input_size, st_error *err);
/* A picture that fits in one tile has one view, the whole of it; so has every picture when tiling is off. The
 * overlap is at most half a tile. On failure *out is zeroed. */
ST_MUSTCHECK st_status st_label_layout_make(st_label_layout *out, uint32_t width, uint32_t height,
                                            const st_label_tiling *tiling, uint32_t input_size, st_error *err);
void st_label_layout_free(st_label_layout *layout);

/* Something found in a view. */
typedef struct st_label_piece {
    uint32_t phrase; /* any number; pieces of different phrases never meet */
    uint32_t view;
    size_t order; /* in which it was added */
    float score;
    float box[4];    /* the model's, in pixels of the picture */
    st_rle mask;     /* of the picture */
    uint64_t area;
    st_box_px tight; /* of the mask */
    uint32_t n_pieces; /* it was joined from, 1: none */
} st_label_piece;

/* The pixels that a model's box touches, in `outer`; without pixels where it lies outside or upside down. */
st_box_px st_label_box_in(const float box[4], const st_box_px *outer);
/* All pixels of a box, which has some, as a mask of the picture. */
ST_MUSTCHECK st_status st_label_box_mask(st_rle *out, const st_box_px *box, uint32_t width, uint32_t height,
                                         st_error *err);

typedef struct st_label_pieces {
    st_label_piece *items;
    size_t n, room;
} st_label_pieces;
void st_label_pieces_free(st_label_pieces *pieces);
/* Adds what was found in a view. Empty masks are left out. Where the result has no masks, the box stands in for
 * one. */
ST_MUSTCHECK st_status st_label_pieces_add(st_label_pieces *pieces, const st_label_layout *layout, uint32_t view,
                                           uint32_t phrase, const st_instance *found, st_error *err);

/* Two pieces of different views are one object when the IoU of what both views could see of it is at least this: of
 * both in the band that the views share; but an object that one view saw to the end has nothing outside that view, and
 * what the other piece has there counts against it. */
#define ST_LABEL_JOIN_IOU 0.5

/* Joins the pieces of one object: union of the masks, the larger score, the box around the boxes. Two pieces of one
 * view are told apart by the model itself and stay so, unless both are cut by the view's edge and do not overlap
 * (an object that leaves a tile and comes back). The whole picture's mask is coarse: of an object that tiles saw
 * too, it only fills what lies outside these tiles. Afterwards the list is ordered by phrase, falling score, and
 * first piece. `cancel` may be NULL. */
ST_MUSTCHECK st_status st_label_join(st_label_pieces *pieces, const st_label_layout *layout, const st_cancel *cancel,
                                     st_error *err);

/* st_label_find in tiles, as the job's options have them: every view is encoded once and asked every phrase. A phrase's
 * presence is the largest of all views. A picture of one view is st_label_find's. */
ST_MUSTCHECK st_status st_label_find_tiles(st_label_picture *picture, const st_label_engine *engine,
                                           const st_bitmap *pixels, st_error *err);

#endif
