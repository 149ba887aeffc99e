/* overlay.c: a picture with its results drawn on it (see overlay.h). */
#include "front/overlay.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define JPEG_QUALITY 92

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcasecmp(text + n - m, end) == 0;
}

static bool is_jpeg(const char *path) { return ends_with(path, ".jpg") || ends_with(path, ".jpeg"); }

bool st_overlay_suffix_known(const char *path) { return is_jpeg(path) || ends_with(path, ".png"); }

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
    st_draw_style style = {.fill = 0.4f, .outline = outline_width(bitmap), .label = label};
    const float box[4] = {it->box[0], it->box[1], it->box[2], it->box[3]};
    style.box = p->boxes_only ? box : NULL;
    st_draw_colour(colour, style.rgb);
    st_draw_instance(bitmap, &it->mask, &style);
}

void st_overlay_draw(st_bitmap *bitmap, const st_picture_report *report)
{
    for (size_t k = report->n_prompts; k-- > 0;) {
        const st_prompt_report *p = &report->prompts[k];
        for (size_t i = p->result->n_instances; i-- > 0;) draw_one(bitmap, p, &p->result->instances[i], report->n_prompts > 1 ? k : i);
    }
}

st_status st_overlay_save(const st_bitmap *bitmap, const char *path, st_error *err)
{
    if (is_jpeg(path)) return st_jpeg_write(path, bitmap->rgb, bitmap->width, bitmap->height, JPEG_QUALITY, err);
    return st_png_write(path, bitmap->rgb, bitmap->width, bitmap->height, 3, err);
}
