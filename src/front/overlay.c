/* overlay.c: a picture with its results drawn on it (see overlay.h). */
#include "front/overlay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define JPEG_QUALITY 92

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcasecmp(text + n - m, end) == 0;
}

static bool is_jpeg(const char *path)
{
    return ends_with(path, ".jpg") || ends_with(path, ".jpeg");
}

bool st_overlay_suffix_known(const char *path)
{
    return is_jpeg(path) || ends_with(path, ".png");
}

/* Thick enough to be seen when the picture is looked at as a whole. */
static uint32_t outline_width(const st_bitmap *bitmap)
{
    const uint32_t side = bitmap->width > bitmap->height ? bitmap->width : bitmap->height;
    const uint32_t width = (side + 400) / 800;
    return width < 1 ? 1 : width > 16 ? 16 : width;
}

static void draw_one(st_bitmap *bitmap, const st_prompt_report *p, const st_instance *it, size_t colour)
{
    char label[96];
    snprintf(label, sizeof label, "%.80s %.2f", p->phrase, (double)it->score);
    st_draw_style style = { .fill = 0.4f, .outline = outline_width(bitmap), .label = label };
    const float box[4] = { it->box[0], it->box[1], it->box[2], it->box[3] };
    style.box = p->boxes_only ? box : NULL;
    st_draw_colour(colour, style.rgb);
    st_draw_instance(bitmap, &it->mask, &style);
}

/* A disc where was clicked, green on the object, red beside it, with a white rim. */
static void draw_point(st_bitmap *bitmap, const st_point *point, float radius)
{
    static const uint8_t on[3] = { 0, 200, 80 }, off[3] = { 230, 30, 30 }, rim[3] = { 255, 255, 255 };
    const float outer = radius + 1.0f + radius / 3.0f;
    const uint32_t x0 = (uint32_t)fmaxf(point->x - outer, 0.0f),
                   x1 = (uint32_t)fminf(point->x + outer + 1.0f, (float)bitmap->width);
    const uint32_t y0 = (uint32_t)fmaxf(point->y - outer, 0.0f),
                   y1 = (uint32_t)fminf(point->y + outer + 1.0f, (float)bitmap->height);
    for (uint32_t y = y0; y < y1; y++)
        for (uint32_t x = x0; x < x1; x++) {
            const float d = hypotf((float)x + 0.5f - point->x, (float)y + 0.5f - point->y);
            if (d <= outer)
                memcpy(bitmap->rgb + 3 * ((size_t)y * bitmap->width + x),
                       d > radius        ? rim
                       : point->positive ? on
                                         : off,
                       3);
        }
}

/* The best candidate, and above it what was said. */
static void draw_object(st_bitmap *bitmap, const st_object_report *o, size_t number)
{
    char label[64];
    const st_candidate *best = o->result->candidates;
    snprintf(label, sizeof label, "object %zu %.2f", number + 1, (double)best->iou);
    st_draw_style style = { .fill = 0.4f, .outline = outline_width(bitmap), .label = label };
    float corners[4];
    if (o->region) {
        const float region[4] = { o->region->x0, o->region->y0, o->region->x1, o->region->y1 };
        memcpy(corners, region, sizeof corners);
        style.box = corners;
    }
    st_draw_colour(number, style.rgb);
    st_draw_instance(bitmap, &best->mask, &style);
    for (size_t i = 0; i < o->n_points; i++) draw_point(bitmap, &o->points[i], 1.0f + 1.5f * (float)style.outline);
}

typedef struct layer {
    uint64_t area;
    size_t index;
} layer;

static int by_area(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    if (x->area != y->area) return x->area > y->area ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Large masks first, so that what lies on them is seen; without labels, there are too many. */
static void draw_masks(st_bitmap *bitmap, const st_everything_result *r)
{
    layer *order = calloc(r->n_masks ? r->n_masks : 1, sizeof *order);
    for (size_t i = 0; order && i < r->n_masks; i++) order[i] = (layer){ r->masks[i].area, i };
    if (order) qsort(order, r->n_masks, sizeof *order, by_area);
    for (size_t i = 0; i < r->n_masks; i++) {
        const size_t index = order ? order[i].index : i;
        st_draw_style style = { .fill = 0.4f, .outline = outline_width(bitmap) };
        st_draw_colour(index, style.rgb);
        st_draw_instance(bitmap, &r->masks[index].mask, &style);
    }
    free(order);
}

void st_overlay_draw(st_bitmap *bitmap, const st_picture_report *report)
{
    if (report->masks) draw_masks(bitmap, report->masks->result);
    for (size_t k = report->n_objects; k-- > 0;) draw_object(bitmap, &report->objects[k], k);
    for (size_t k = report->n_prompts; k-- > 0;) {
        const st_prompt_report *p = &report->prompts[k];
        for (size_t i = p->result->n_instances; i-- > 0;)
            draw_one(bitmap, p, &p->result->instances[i], report->n_prompts > 1 ? k : i);
    }
}

st_status st_overlay_save(const st_bitmap *bitmap, const char *path, st_error *err)
{
    if (is_jpeg(path)) return st_jpeg_write(path, bitmap->rgb, bitmap->width, bitmap->height, JPEG_QUALITY, err);
    return st_png_write(path, bitmap->rgb, bitmap->width, bitmap->height, 3, err);
}
