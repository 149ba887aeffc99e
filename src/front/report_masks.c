/* report_masks.c: everything mode's part of a report: JSON and table. The JSON echoes every option, so that a document
 * says how it was made.
 */
#include "front/report.h"

static json_t *options_json(const st_everything_options *o)
{
    return json_pack("{s:I,s:o,s:o,s:o,s:o,s:I,s:o,s:f,s:I,s:I,s:o,s:I,s:b}", "points_per_side",
                     (json_int_t)o->points_per_side, "pred_iou_thresh", st_json_float(o->pred_iou_thresh),
                     "stability_score_thresh", st_json_float(o->stability_score_thresh), "stability_score_offset",
                     st_json_float(o->stability_score_offset), "box_nms_thresh", st_json_float(o->box_nms_thresh),
                     "crop_n_layers", (json_int_t)o->crop_n_layers, "crop_nms_thresh",
                     st_json_float(o->crop_nms_thresh), "crop_overlap_ratio", o->crop_overlap_ratio,
                     "crop_n_points_downscale_factor", (json_int_t)o->crop_n_points_downscale_factor,
                     "min_mask_region_area", (json_int_t)o->min_mask_region_area, "overlap_thresh",
                     st_json_float(o->overlap_thresh), "max_masks", (json_int_t)o->max_masks, "hf", o->hf);
}

static json_t *mask_json(const st_everything_mask *m, const char *file)
{
    json_t *json = json_pack("{s:o,s:o,s:o,s:I,s:[o,o],s:o,s:o}", "predicted_iou", st_json_float(m->iou), "stability",
                             st_json_float(m->stability), "box", st_json_box(&m->box), "area", (json_int_t)m->area,
                             "point", st_json_float(m->x), st_json_float(m->y), "crop", st_json_box(&m->crop), "mask",
                             st_json_mask(&m->mask));
    if (!file || json_object_set_new(json, "mask_file", st_json_text(file)) == 0) return json;
    json_decref(json);
    return NULL;
}

int st_json_add_masks(json_t *picture, const st_masks_report *m)
{
    const st_everything_result *r = m->result;
    json_t *masks = json_array();
    for (size_t i = 0; i < r->n_masks; i++)
        if (json_array_append_new(masks, mask_json(&r->masks[i], m->mask_files ? m->mask_files[i] : NULL)) != 0) {
            json_decref(masks);
            return -1;
        }
    int failed = json_object_set_new(picture, "masks", masks);
    failed |= json_object_set_new(picture, "points", json_integer((json_int_t)r->n_points));
    failed |= json_object_set_new(picture, "passed", json_integer((json_int_t)r->n_passed));
    failed |= json_object_set_new(picture, "warnings", st_json_warnings(r->warnings));
    failed |= json_object_set_new(picture, "options", options_json(&m->options));
    return failed ? -1 : 0;
}

void st_report_masks_table(const st_masks_report *m, FILE *to)
{
    const st_everything_result *r = m->result;
    fprintf(to, "  %zu mask%s: %zu clicks, %zu candidates passed\n", r->n_masks, r->n_masks == 1 ? "" : "s",
            r->n_points, r->n_passed);
    if (r->n_masks)
        fprintf(to, "    %4s  %6s %9s  %6s %6s %6s %6s  %10s\n", "#", "IoU", "stability", "left", "top", "right",
                "bottom", "area");
    for (size_t i = 0; i < r->n_masks; i++) {
        const st_everything_mask *k = &r->masks[i];
        fprintf(to, "    %4zu  %6.3f %9.3f  %6u %6u %6u %6u  %10llu\n", i + 1, (double)k->iou, (double)k->stability,
                k->box.x0, k->box.y0, k->box.x1, k->box.y1, (unsigned long long)k->area);
    }
    if (r->warnings & ST_WARN_NOTHING_FOUND) fputs("    note: nothing passed the cuts\n", to);
    if (r->warnings & ST_WARN_DETECTION_CAP) fputs("    note: more was found than --max-masks keeps\n", to);
}
