/* report_object.c: JSON of clicks: prompts, masks and candidates, as `stencil segment` and the line protocol of
 * `stencil click` share them. */
#include "front/report.h"

json_t *st_json_mask(const st_rle *mask)
{
    char *counts = NULL;
    if (st_rle_to_string(&counts, mask, NULL) != ST_OK) return NULL;
    json_t *json =
        json_pack("{s:[I,I],s:s}", "size", (json_int_t)mask->height, (json_int_t)mask->width, "counts", counts);
    st_string_free(counts);
    return json;
}

json_t *st_json_box(const st_box_px *box)
{
    return json_pack("[I,I,I,I]", (json_int_t)box->x0, (json_int_t)box->y0, (json_int_t)box->x1, (json_int_t)box->y1);
}

json_t *st_json_click_prompt(const st_point *points, size_t n_points, const st_region *region, const char *mask)
{
    json_t *said = json_array();
    for (size_t i = 0; i < n_points; i++) {
        json_t *point = json_pack("{s:o,s:o,s:i}", "x", st_json_float(points[i].x), "y", st_json_float(points[i].y),
                                  "label", points[i].positive);
        if (json_array_append_new(said, point) == 0) continue;
        json_decref(said);
        return NULL;
    }
    json_t *corners = !region ? json_null()
                              : json_pack("[o,o,o,o]", st_json_float(region->x0), st_json_float(region->y0),
                                          st_json_float(region->x1), st_json_float(region->y1));
    return json_pack("{s:o,s:o,s:o}", "points", said, "region", corners, "mask",
                     mask ? st_json_text(mask) : json_null());
}

json_t *st_json_candidate(const st_candidate *c, size_t rank, bool with_mask, const char *mask_file)
{
    json_t *json = json_pack("{s:I,s:I,s:o}", "rank", (json_int_t)rank, "index", (json_int_t)c->index, "predicted_iou",
                             st_json_float(c->iou));
    if (!json || !with_mask) return json;
    const st_box_px box = st_rle_box(&c->mask);
    int failed = json_object_set_new(json, "box", st_json_box(&box));
    failed |= json_object_set_new(json, "area", json_integer((json_int_t)c->area));
    failed |= json_object_set_new(json, "mask", st_json_mask(&c->mask));
    if (mask_file) failed |= json_object_set_new(json, "mask_file", st_json_text(mask_file));
    if (!failed) return json;
    json_decref(json);
    return NULL;
}
