/* stencil_mask.h: masks as COCO run lengths, and what one does with them.
 *
 * A mask is a list of run lengths over the picture in COLUMN-major order (down the first column, then the second, ...),
 * as in COCO: counts[0] zeros, counts[1] ones, counts[2] zeros ... Canonical form: the sum is width*height; no run but
 * the first may be 0; an empty mask is one run. Everything here returns canonical runs.
 *
 * Ownership: functions that fill an `st_rle` allocate its `counts`; free them with st_rle_free. On failure the output
 * is left zeroed. Outputs are overwritten, not freed, and must not be one of the inputs. Thread rule: pure functions,
 * callable from any thread on different objects.
 *
 * Pictures without pixels are refused (ST_ERR_INVALID_ARG), and so are those of more than UINT32_MAX pixels
 * (ST_ERR_LIMIT), whose runs could outgrow a count. Cost is that of runs and columns, never of pixels, except where a
 * dense mask is read or written.
 */
#ifndef STENCIL_MASK_H
#define STENCIL_MASK_H

#include <stencil/stencil_base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct st_rle {
    uint32_t width, height; /* pixels */
    uint32_t *counts;       /* [n_counts] run lengths, zeros first */
    size_t n_counts;
} st_rle;

/* A box in pixels: left, top, right, bottom; right and bottom are exclusive. */
typedef struct st_box_px {
    uint32_t x0, y0, x1, y1;
} st_box_px;

ST_API void st_rle_free(st_rle *mask); /* frees counts and zeroes the struct; NULL is fine */
ST_API ST_MUSTCHECK st_status st_rle_copy(st_rle *out, const st_rle *mask, st_error *err);

/* From run lengths as COCO's uncompressed form has them, zeros first. Runs of 0 are joined away; a sum other than
 * width * height is ST_ERR_FORMAT. */
ST_API ST_MUSTCHECK st_status st_rle_from_counts(st_rle *out, const uint32_t *counts, size_t n_counts, uint32_t width,
                                                 uint32_t height, st_error *err);
/* From a dense mask [height][width], row-major, `stride` bytes from row to row; any non-zero byte is inside. */
ST_API ST_MUSTCHECK st_status st_rle_from_dense(st_rle *out, const uint8_t *mask, uint32_t width, uint32_t height,
                                                size_t stride, st_error *err);
/* To a dense mask of 0 and `value`; `out` has height rows of `stride` >= width bytes. */
ST_API void st_rle_to_dense(const st_rle *mask, uint8_t *out, size_t stride, uint8_t value);

/* COCO's compressed string (NUL-terminated, from malloc: free it with st_string_free). Bit-equal with pycocotools. */
ST_API ST_MUSTCHECK st_status st_rle_to_string(char **out, const st_rle *mask, st_error *err);
/* Reads a compressed string of `length` bytes for a picture of width x height. Anything malformed, or whose runs do
 * not add up, is ST_ERR_FORMAT. Runs of 0 in the middle, which some writers leave, are joined away. */
ST_API ST_MUSTCHECK st_status st_rle_from_string(st_rle *out, const char *string, size_t length, uint32_t width,
                                                 uint32_t height, st_error *err);
ST_API void st_string_free(char *string); /* NULL is fine */

ST_API uint64_t st_rle_area(const st_rle *mask);
/* The tight box; all zero for an empty mask. */
ST_API st_box_px st_rle_box(const st_rle *mask);
/* Pixels in both masks (same size required, else 0). */
ST_API uint64_t st_rle_intersection(const st_rle *a, const st_rle *b);
/* |a and b| / |a or b|; 0 when both are empty. */
ST_API double st_rle_iou(const st_rle *a, const st_rle *b);
/* Union, intersection or difference (a and not b) of two masks of one size. */
typedef enum st_rle_op { ST_RLE_UNION = 0, ST_RLE_INTERSECT = 1, ST_RLE_SUBTRACT = 2 } st_rle_op;
ST_API ST_MUSTCHECK st_status st_rle_combine(st_rle *out, const st_rle *a, const st_rle *b, st_rle_op op, st_error *err);

/* Small parts: islands of fewer than min_area pixels are dropped (the largest stays, should all be small), holes of
 * fewer are filled, the outside being one hole or several. Parts are 8-connected; which of several largest islands of
 * one area stays is the first in column-major order. *changed (may be NULL) says whether `out` differs from `mask`.
 * Runs that do not add up are ST_ERR_FORMAT. */
typedef enum st_small { ST_SMALL_ISLANDS = 0, ST_SMALL_HOLES = 1 } st_small;
ST_API ST_MUSTCHECK st_status st_rle_remove_small(st_rle *out, int *changed, const st_rle *mask, st_small what,
                                                  uint64_t min_area, st_error *err);
/* The mask of a part of a picture as a mask of the whole, width x height; the part's corner lies at x, y. */
ST_API ST_MUSTCHECK st_status st_rle_place(st_rle *out, const st_rle *mask, uint32_t x, uint32_t y, uint32_t width,
                                           uint32_t height, st_error *err);

/* One closed outline. Points are pixel CORNERS (0..width, 0..height), x and y alternating, without repeating the
 * first; outer outlines run clockwise on screen, holes counter-clockwise, so that a non-zero or even-odd fill of all
 * of them gives back the mask exactly. `parent` is the index of the outer outline that a hole lies in, -1 for an
 * outer outline. */
typedef struct st_polygon {
    int32_t *xy; /* [2*n_points] */
    size_t n_points;
    int32_t parent;
} st_polygon;
typedef struct st_polygons {
    st_polygon *items;
    size_t n;
} st_polygons;
/* Exact outlines of a mask: 8-connected insides are traced as 4-connected parts, each hole is reported with its
 * parent, which comes before it. Straight stretches have no points in between. Sides over INT32_MAX are
 * ST_ERR_LIMIT, runs that are not canonical ST_ERR_INVALID_ARG. */
ST_API ST_MUSTCHECK st_status st_rle_to_polygons(st_polygons *out, const st_rle *mask, st_error *err);
ST_API void st_polygons_free(st_polygons *polygons);

/* Low-resolution logits straight to runs, without ever holding a full-size map: beyond the runs, memory is that of a
 * few rows of logits. `logits` is [rows][cols], row-major. The result equals resizing the logits to width x height
 * (bilinear, half-pixel centres, no antialias, fp32, also when shrinking; the reference's `interpolate`, bit-equal
 * with PyTorch's AVX2 and AVX-512 builds where width + height > 128) and testing logit > threshold. A value that
 * comes out as NaN is outside; a NaN logit spoils the pixels that blend it, an infinite one those that blend it with
 * weight 0. `threshold` must be finite. One call uses one thread; calls on different masks may run side by side. */
ST_API ST_MUSTCHECK st_status st_rle_from_logits(st_rle *out, const float *logits, uint32_t rows, uint32_t cols,
                                                 uint32_t width, uint32_t height, float threshold, st_error *err);

#ifdef __cplusplus
}
#endif
#endif
