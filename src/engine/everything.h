/* everything.h: masks without a prompt, from the inside: the crops a picture is looked at in, the list of masks found
 * so far, and what drops duplicates from it.
 */
#ifndef ST_ENGINE_EVERYTHING_H
#define ST_ENGINE_EVERYTHING_H

#include "engine/engine.h"

typedef struct st_crop {
    st_box_px box; /* pixels of the picture */
    uint32_t layer;
} st_crop;
enum { ST_MAX_CROPS = 1 + 4 + 16 + 64 + 256 }; /* of ST_MAX_CROP_LAYERS layers and the picture itself */

/* The picture, then layer by layer its crops, columns of crops from the left. 0 when a crop would have no pixels. */
size_t st_everything_crops(st_crop out[ST_MAX_CROPS], uint32_t width, uint32_t height, uint32_t n_layers,
                           double overlap_ratio);

/* Masks under consideration. Each owns its runs. */
typedef struct st_mask_list {
    st_everything_mask *items;
    size_t n, room;
    size_t n_bytes; /* of the runs */
} st_mask_list;

/* Takes the mask over, runs and all; on failure it stays the caller's. */
ST_MUSTCHECK st_status st_mask_list_add(st_mask_list *list, const st_everything_mask *mask, st_error *err);
void st_mask_list_free(st_mask_list *list);

/* torchvision's `nms` (`torchvision/csrc/ops/cpu/nms_kernel.cpp`): boxes [n][4] as x0, y0, x1, y1; kept [n] gets the
 * indices that stay, by falling score, ties by index. Arithmetic in fp32, as there. */
ST_MUSTCHECK st_status st_nms(size_t *kept, size_t *n_kept, const float *boxes, const double *scores, size_t n,
                              float threshold, const st_cancel *cancel, st_error *err);

/* What decides between two masks whose boxes overlap. */
typedef enum st_rank { ST_RANK_IOU, ST_RANK_SMALL_CROP, ST_RANK_UNCHANGED } st_rank;
/* NMS over the masks from `first` on, which are left by falling rank; `changed` [n - first] for ST_RANK_UNCHANGED. */
ST_MUSTCHECK st_status st_mask_list_nms(st_mask_list *list, size_t first, st_rank rank, const int *changed,
                                        float threshold, const st_cancel *cancel, st_error *err);
/* Fills small holes, drops small islands, then NMS in favour of masks that stayed as they were. */
ST_MUSTCHECK st_status st_mask_list_clean(st_mask_list *list, uint32_t min_area, float threshold,
                                          const st_cancel *cancel, st_error *err);
/* By falling predicted IoU; equal ones keep their order. */
ST_MUSTCHECK st_status st_mask_list_sort(st_mask_list *list, st_error *err);
/* Drops every mask that shares more than `threshold` of the smaller of the two with one before it. */
ST_MUSTCHECK st_status st_mask_list_dedup(st_mask_list *list, float threshold, const st_cancel *cancel, st_error *err);
void st_mask_list_cut(st_mask_list *list, size_t n); /* keeps the first n */

#endif
