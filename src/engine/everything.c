/* everything.c: masks without a prompt: a grid of clicks, cuts by predicted IoU and stability, duplicates dropped.
 * Mirrors `transformers/pipelines/mask_generation.py` with `models/sam3/image_processing_sam3.py`, and for the options
 * that it lacks `sam2/automatic_mask_generator.py`.
 *
 * The decision: a candidate is thresholded straight from its low-resolution logits to runs, and freed at once when it
 * fails a cut; what grows with the number of points is the runs of those that pass, and they have a cap.
 */
#include "engine/everything.h"

#include <math.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

enum { MAX_POINTS_PER_SIDE = 256, NEAR_EDGE = 20 }; /* pixels */

typedef struct everything {
    st_session *s;
    const st_everything_options *o;
    st_mask_list list;
    uint32_t width, height; /* of the whole picture */
    size_t hole_area;
    size_t done, total; /* points */
    size_t n_passed;
} everything;

/* ---- the crops and the grid ---- */

/* `_generate_per_layer_crops`; the order of its products, too: it decides the last bit, and int() cuts. */
size_t st_everything_crops(st_crop out[ST_MAX_CROPS], uint32_t width, uint32_t height, uint32_t n_layers,
                           double overlap_ratio)
{
    const uint32_t short_side = width < height ? width : height;
    size_t n = 0;
    out[n++] = (st_crop){ { 0, 0, width, height }, 0 };
    for (uint32_t layer = 1; layer <= n_layers; layer++) {
        const uint64_t per_side = (uint64_t)1 << layer;
        const uint64_t overlap = (uint64_t)(overlap_ratio * (double)short_side * (2.0 / (double)per_side));
        const uint64_t w = (overlap * (per_side - 1) + width + per_side - 1) / per_side;
        const uint64_t h = (overlap * (per_side - 1) + height + per_side - 1) / per_side;
        for (uint64_t i = 0; i < per_side; i++)
            for (uint64_t j = 0; j < per_side; j++) {
                const uint64_t x0 = (w - overlap) * i, y0 = (h - overlap) * j;
                const uint64_t x1 = x0 + w < width ? x0 + w : width, y1 = y0 + h < height ? y0 + h : height;
                if (x0 >= x1 || y0 >= y1) return 0;
                out[n++] = (st_crop){ { (uint32_t)x0, (uint32_t)y0, (uint32_t)x1, (uint32_t)y1 }, layer };
            }
    }
    return n;
}

static uint32_t points_per_side(const st_everything_options *o, uint32_t layer)
{
    return (uint32_t)((double)o->points_per_side / pow((double)o->crop_n_points_downscale_factor, (double)layer));
}

static float place_on_grid(uint32_t i, uint32_t n, uint32_t length)
{
    return (float)(((double)i + 0.5) / (double)n) * (float)length;
}

/* ---- one point ---- */

enum { INNER, OUTER, MASK, N_CUTS }; /* logit > offset, > -offset, > 0 */

typedef struct cut_job {
    const float *logits[ST_CLICK_MAX_MASKS];
    float iou[ST_CLICK_MAX_MASKS];
    size_t n; /* candidates */
    uint32_t side, width, height;
    float threshold[N_CUTS];
    st_rle rle[ST_CLICK_MAX_MASKS * N_CUTS];
    st_status status[ST_CLICK_MAX_MASKS * N_CUTS];
    st_error errors[ST_CLICK_MAX_MASKS * N_CUTS];
} cut_job;

static void cut_item(void *arg, size_t i, unsigned slot)
{
    (void)slot;
    cut_job *job = arg;
    job->status[i] = st_rle_from_logits(&job->rle[i], job->logits[i / N_CUTS], job->side, job->side, job->width,
                                        job->height, job->threshold[i % N_CUTS], &job->errors[i]);
}

static bool is_near(uint32_t a, uint32_t b)
{
    return (a > b ? a - b : b - a) <= NEAR_EDGE;
}

/* A mask that ends where its crop does, but not its picture, is probably cut off. Boxes end at the last pixel here. */
static bool ends_with_crop(const st_box_px *box, const st_box_px *crop, uint32_t width, uint32_t height)
{
    return (is_near(box->x0, crop->x0) && !is_near(box->x0, 0)) ||
           (is_near(box->y0, crop->y0) && !is_near(box->y0, 0)) ||
           (is_near(box->x1 - 1, crop->x1) && !is_near(box->x1 - 1, width)) ||
           (is_near(box->y1 - 1, crop->y1) && !is_near(box->y1 - 1, height));
}

/* Puts the mask into the whole picture and into the list. The runs are taken over in any case. */
static st_status add_mask(everything *e, st_everything_mask *m, st_error *err)
{
    const st_box_px *crop = &m->crop;
    st_status status = ST_OK;
    if (m->mask.width != e->width || m->mask.height != e->height) {
        st_rle part = m->mask;
        status = st_rle_place(&m->mask, &part, crop->x0, crop->y0, e->width, e->height, err);
        st_rle_free(&part);
    }
    if (status == ST_OK) status = st_mask_list_add(&e->list, m, err);
    if (status != ST_OK) {
        st_rle_free(&m->mask);
        return status;
    }
    e->n_passed++;
    if (e->list.n_bytes <= e->o->max_mask_bytes) return ST_OK;
    return st_fail(err, ST_ERR_LIMIT,
                   "everything: the runs of %zu masks take %zu bytes, at most %zu: raise pred_iou_thresh or "
                   "stability_score_thresh",
                   e->list.n, e->list.n_bytes, e->o->max_mask_bytes);
}

/* One candidate's cuts: into the list or gone. Takes the three masks. */
static st_status judge(everything *e, const st_crop *crop, float x, float y, float iou, st_rle rle[N_CUTS],
                       st_error *err)
{
    const float inner = (float)st_rle_area(&rle[INNER]), outer = (float)st_rle_area(&rle[OUTER]);
    st_everything_mask m = {
        .iou = iou, .stability = inner / outer, .crop = crop->box, .area = st_rle_area(&rle[MASK])
    };
    st_rle_free(&rle[INNER]);
    st_rle_free(&rle[OUTER]);
    const bool stable = e->o->stability_score_thresh <= 0.0f || m.stability > e->o->stability_score_thresh;
    if (m.area > 0 && stable) {
        const st_box_px box = st_rle_box(&rle[MASK]);
        m.box =
            (st_box_px){ box.x0 + crop->box.x0, box.y0 + crop->box.y0, box.x1 + crop->box.x0, box.y1 + crop->box.y0 };
        m.x = x + (float)crop->box.x0;
        m.y = y + (float)crop->box.y0;
        m.mask = rle[MASK];
        if (!ends_with_crop(&m.box, &crop->box, e->width, e->height)) {
            rle[MASK] = (st_rle){ 0 };
            return add_mask(e, &m, err);
        }
    }
    st_rle_free(&rle[MASK]);
    return ST_OK;
}

static st_status judge_all(everything *e, const st_run *run, const st_crop *crop, float x, float y, cut_job *job,
                           st_error *err)
{
    st_status status = st_run_status(run, err);
    for (size_t i = 0; status == ST_OK && i < job->n * N_CUTS; i++)
        if (job->status[i] != ST_OK) status = st_fail(err, job->status[i], "%s", job->errors[i].message);
    for (size_t i = 0; status == ST_OK && i < job->n; i++)
        status = judge(e, crop, x, y, job->iou[i], job->rle + i * N_CUTS, err);
    for (size_t i = 0; i < job->n * N_CUTS; i++) st_rle_free(&job->rle[i]);
    return status;
}

/* Runs the head for one click on the crop, in its pixels, and lets the candidates through the cuts. */
static st_status look_at_point(everything *e, const st_run *run, const st_picture *p, const st_crop *crop, float x,
                               float y, st_error *err)
{
    const st_model *m = e->s->model;
    const st_dims *d = m->dims;
    const size_t mark = st_arena_mark(run->arena), side = 4 * (size_t)d->grid, n_pixels = side * side;
    const st_click_point tokens[2] = { st_place_click(p, x, y, 1), { 0.0f, 0.0f, ST_CLICK_NOT_A_POINT } };
    st_click_output net = { .masks = st_run_floats(run, d->click_mask_tokens, n_pixels),
                            .wanted = e->o->pred_iou_thresh };
    st_click_run(run, &m->click, &p->click, tokens, 2, NULL, !e->o->hf, &net);
    uint32_t *scratch = (uint32_t *)(void *)st_run_floats(run, 2, n_pixels);
    st_status status = st_run_status(run, err);
    if (status != ST_OK) return status;
    const float offset = e->o->stability_score_offset;
    cut_job job = {
        .side = (uint32_t)side, .width = p->width, .height = p->height, .threshold = { offset, -offset, 0.0f }
    };
    for (uint32_t i = 1; i < d->click_mask_tokens; i++) {
        if (!isfinite(net.iou[i]))
            return st_fail(err, ST_ERR_NONFINITE, "everything: the predicted IoU is not a finite number");
        if (e->o->pred_iou_thresh > 0.0f && !(net.iou[i] > e->o->pred_iou_thresh)) continue;
        float *logits = net.masks + i * n_pixels;
        if (e->hole_area) st_click_fill_holes(logits, side, e->hole_area, scratch);
        job.logits[job.n] = logits;
        job.iou[job.n++] = net.iou[i];
    }
    st_run_parallel(run, job.n * N_CUTS, cut_item, &job);
    status = judge_all(e, run, crop, x, y, &job, err);
    st_arena_rewind(run->arena, mark);
    return status;
}

/* ---- one crop ---- */

static st_status look_at_crop(everything *e, const st_picture *p, const st_crop *crop, st_error *err)
{
    const uint32_t n = points_per_side(e->o, crop->layer);
    const size_t first = e->list.n;
    size_t scratch = 0;
    st_run run;
    st_status status = st_plan_click(&scratch, e->s->model, 2, err);
    if (status == ST_OK) status = st_session_run(e->s, &run, scratch, err);
    for (uint32_t i = 0; status == ST_OK && i < n * n; i++) {
        status =
            look_at_point(e, &run, p, crop, place_on_grid(i % n, n, p->width), place_on_grid(i / n, n, p->height), err);
        e->done++;
        if ((i + 1) % e->o->points_per_batch == 0 || i + 1 == n * n) st_run_progress(&run, "points", e->done, e->total);
    }
    if (status == ST_OK && !e->o->hf)
        status = st_mask_list_nms(&e->list, first, ST_RANK_IOU, NULL, e->o->box_nms_thresh, e->s->cancel, err);
    return status;
}

static const size_t samples[] = { 3, 3, 4, 1 }; /* by st_pixel_format */

/* Encodes the crop's pixels and looks at it. */
static st_status look_closer(everything *e, const st_image *image, const st_crop *crop, st_error *err)
{
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.resize = e->o->resize;
    how.for_clicks = 1;
    st_image part = *image;
    part.data += crop->box.y0 * image->stride + crop->box.x0 * samples[image->format];
    part.width = crop->box.x1 - crop->box.x0;
    part.height = crop->box.y1 - crop->box.y0;
    st_picture *p = NULL;
    st_status status = st_picture_encode(&p, e->s, &part, &how, err);
    if (status == ST_OK) status = look_at_crop(e, p, crop, err);
    st_picture_free(p);
    return status;
}

/* ---- the call ---- */

static st_status check_fraction(const char *name, double value, bool below_one, st_error *err)
{
    if (value >= 0.0 && (below_one ? value < 1.0 : value <= 1.0)) return ST_OK;
    return st_fail(err, ST_ERR_INVALID_ARG, "%s: %g, expected 0 to 1%s", name, value, below_one ? ", less than 1" : "");
}

static st_status check_count(const char *name, uint32_t value, uint32_t low, uint32_t high, st_error *err)
{
    if (value >= low && value <= high) return ST_OK;
    return st_fail(err, ST_ERR_INVALID_ARG, "%s: %u, expected %u to %u", name, value, low, high);
}

static st_status check_options(const st_everything_options *o, st_error *err)
{
    if (o->struct_size < sizeof *o)
        return st_fail(err, ST_ERR_INVALID_ARG, "everything options: struct_size is %zu, expected %zu", o->struct_size,
                       sizeof *o);
    st_status status = check_count("points_per_side", o->points_per_side, 1, MAX_POINTS_PER_SIDE, err);
    if (status == ST_OK) status = check_count("points_per_batch", o->points_per_batch, 1, UINT32_MAX, err);
    if (status == ST_OK) status = check_fraction("pred_iou_thresh", (double)o->pred_iou_thresh, false, err);
    if (status == ST_OK)
        status = check_fraction("stability_score_thresh", (double)o->stability_score_thresh, false, err);
    if (status == ST_OK) status = check_fraction("box_nms_thresh", (double)o->box_nms_thresh, false, err);
    if (status == ST_OK) status = check_fraction("crop_nms_thresh", (double)o->crop_nms_thresh, false, err);
    if (status == ST_OK) status = check_fraction("crop_overlap_ratio", o->crop_overlap_ratio, true, err);
    if (status == ST_OK) status = check_fraction("overlap_thresh", (double)o->overlap_thresh, false, err);
    if (status == ST_OK) status = check_count("crop_n_layers", o->crop_n_layers, 0, ST_MAX_CROP_LAYERS, err);
    if (status == ST_OK)
        status = check_count("crop_n_points_downscale_factor", o->crop_n_points_downscale_factor, 1,
                             MAX_POINTS_PER_SIDE, err);
    if (status != ST_OK) return status;
    if (!(o->stability_score_offset >= 0.0f) || !isfinite(o->stability_score_offset))
        return st_fail(err, ST_ERR_INVALID_ARG, "stability_score_offset: %g, expected 0 or more",
                       (double)o->stability_score_offset);
    if ((unsigned)o->resize > ST_RESIZE_CPU)
        return st_fail(err, ST_ERR_INVALID_ARG, "resize: unknown arithmetic %d", (int)o->resize);
    if (points_per_side(o, o->crop_n_layers) == 0)
        return st_fail(err, ST_ERR_INVALID_ARG,
                       "crop_n_points_downscale_factor: %u leaves no point of %u for the crops of layer %u",
                       o->crop_n_points_downscale_factor, o->points_per_side, o->crop_n_layers);
    return ST_OK;
}

static st_status check_image(const st_image *image, const st_picture *p, const st_everything_options *o, st_error *err)
{
    if (o->crop_n_layers == 0) return ST_OK;
    if (!image || !image->data)
        return st_fail(err, ST_ERR_INVALID_ARG, "everything: crops need the picture's pixels, none given");
    if (image->width != p->width || image->height != p->height)
        return st_fail(err, ST_ERR_INVALID_ARG, "everything: pixels of %u x %u, the encoded picture is %u x %u",
                       image->width, image->height, p->width, p->height);
    if ((unsigned)image->format > ST_PIXEL_GRAY8)
        return st_fail(err, ST_ERR_INVALID_ARG, "image: unknown pixel format %d", (int)image->format);
    if (image->stride / samples[image->format] < image->width) /* a crop's own rows might fit */
        return st_fail(err, ST_ERR_INVALID_ARG, "image: stride of %zu bytes is shorter than %u pixels of %zu bytes",
                       image->stride, image->width, samples[image->format]);
    return ST_OK;
}

/* What is left to do once every point was looked at. */
static st_status finish(everything *e, size_t n_crops, st_everything_result *r, st_error *err)
{
    const st_everything_options *o = e->o;
    const st_cancel *cancel = e->s->cancel;
    st_status status = ST_OK;
    if (o->hf) status = st_mask_list_nms(&e->list, 0, ST_RANK_IOU, NULL, o->crop_nms_thresh, cancel, err);
    else if (n_crops > 1)
        status = st_mask_list_nms(&e->list, 0, ST_RANK_SMALL_CROP, NULL, o->crop_nms_thresh, cancel, err);
    const float again = o->box_nms_thresh > o->crop_nms_thresh ? o->box_nms_thresh : o->crop_nms_thresh;
    if (status == ST_OK && o->min_mask_region_area)
        status = st_mask_list_clean(&e->list, o->min_mask_region_area, again, cancel, err);
    if (status == ST_OK) status = st_mask_list_sort(&e->list, err);
    if (status == ST_OK && o->overlap_thresh > 0.0f)
        status = st_mask_list_dedup(&e->list, o->overlap_thresh, cancel, err);
    if (status != ST_OK) return status;
    if (o->max_masks && e->list.n > o->max_masks) {
        st_mask_list_cut(&e->list, o->max_masks);
        r->warnings |= ST_WARN_DETECTION_CAP;
    }
    if (e->list.n == 0) r->warnings |= ST_WARN_NOTHING_FOUND;
    r->masks = e->list.items;
    r->n_masks = e->list.n;
    r->n_points = e->total;
    r->n_passed = e->n_passed;
    e->list = (st_mask_list){ 0 };
    return ST_OK;
}

static st_status look_everywhere(everything *e, const st_picture *p, const st_image *image, st_everything_result *r,
                                 st_error *err)
{
    st_crop crops[ST_MAX_CROPS];
    const size_t n_crops =
        st_everything_crops(crops, p->width, p->height, e->o->crop_n_layers, e->o->crop_overlap_ratio);
    if (n_crops == 0)
        return st_fail(err, ST_ERR_INVALID_ARG, "crop_n_layers: %u, too many for a picture of %u x %u pixels",
                       e->o->crop_n_layers, p->width, p->height);
    for (size_t i = 0; i < n_crops; i++)
        e->total += (size_t)points_per_side(e->o, crops[i].layer) * points_per_side(e->o, crops[i].layer);
    st_status status = look_at_crop(e, p, &crops[0], err);
    for (size_t i = 1; status == ST_OK && i < n_crops; i++) status = look_closer(e, image, &crops[i], err);
    if (status == ST_OK) status = finish(e, n_crops, r, err);
    st_mask_list_free(&e->list);
    return status;
}

st_status st_everything(st_everything_result **out, st_session *s, const st_picture *p, const st_image *image,
                        const st_everything_options *opts, st_error *err)
{
    const st_everything_options defaults = ST_EVERYTHING_OPTIONS_INIT;
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "everything: no place for the result given");
    *out = NULL;
    if (!s || !p) return st_fail(err, ST_ERR_INVALID_ARG, "everything: no session or no picture given");
    st_status status = st_picture_must_be_of(p, s->model, "everything: the picture", err);
    if (status != ST_OK) return status;
    if (!p->for_clicks)
        return st_fail(err, ST_ERR_INVALID_ARG,
                       "everything: the picture was not encoded for clicks (st_encode_options.for_clicks)");
    everything e = { .s = s, .o = opts ? opts : &defaults, .width = p->width, .height = p->height };
    status = check_options(e.o, err);
    if (status == ST_OK) status = check_image(image, p, e.o, err);
    if (status != ST_OK) return status;
    if (!e.o->hf) e.hole_area = st_click_hole_area(4 * s->model->dims->grid);
    st_everything_result *r = st_calloc(1, sizeof *r);
    if (!r) return st_fail(err, ST_ERR_NOMEM, "everything: out of memory");
    *r = (st_everything_result){ .width = p->width, .height = p->height };
    status = look_everywhere(&e, p, image, r, err);
    if (status != ST_OK) {
        st_free(r);
        return status;
    }
    *out = r;
    return ST_OK;
}

void st_everything_result_free(st_everything_result *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n_masks; i++) st_rle_free(&r->masks[i].mask);
    st_free(r->masks);
    st_free(r);
}
