/* sheet_cut.c: one object cut out of its picture, and overlays of whole ones (see sheet.h).
 *
 * The mask is brought to the cut-out's size before it is drawn, so that its outline is as crisp on an object of 20 pixels as
 * on one of 2,000.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_rows.h"
#include "label/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUALITY = 85, OVERLAY_QUALITY = 92, SAMPLES_MAX = 8, MARGIN = 16 };

/* Beyond the picture's edge, and where there is no picture. */
static const uint8_t outside[3] = { 48, 48, 48 }, unknown[3] = { 128, 128, 128 };

/* The square of the picture that is shown. */
typedef struct window {
    double x, y, step; /* left, top; pixels of the picture per pixel of the cut-out */
} window;

static void box_of(double box[4], const st_label_object *o, const st_label_picture *p)
{
    const st_box_px tight = st_rle_box(&o->mask);
    const double of_mask[4] = { tight.x0, tight.y0, tight.x1, tight.y1 };
    for (int i = 0; i < 4; i++) {
        const double limit = i % 2 ? p->height : p->width;
        box[i] = o->mask.counts ? of_mask[i] : fmin(fmax((double)o->box[i], 0), limit);
    }
}

/* Where `size` pixels around the middle of [from, to) begin, moved into the picture if it is large enough. */
static double placed(double from, double to, double size, double limit)
{
    const double start = (from + to - size) / 2;
    return size >= limit ? start : fmin(fmax(start, 0), limit - size);
}

static window window_of(const double box[4], uint32_t side, const st_label_picture *p)
{
    const double longer = fmax(box[2] - box[0], box[3] - box[1]), size = longer + 2 * fmax(MARGIN, longer / 4);
    return (window){ placed(box[0], box[2], size, p->width), placed(box[1], box[3], size, p->height), size / side };
}

static const uint8_t *pixel_at(const st_bitmap *b, double x, double y)
{
    if (x < 0 || y < 0 || x >= b->width || y >= b->height) return outside;
    return b->rgb + 3 * ((size_t)y * b->width + (size_t)x);
}

/* The mean of a few points of the square that becomes pixel (i, j). */
static void shrink(uint8_t rgb[3], const st_bitmap *b, const window *w, uint32_t i, uint32_t j)
{
    const unsigned n = (unsigned)fmin(fmax(ceil(w->step), 1), SAMPLES_MAX);
    unsigned sum[3] = { 0 };
    for (unsigned v = 0; v < n; v++)
        for (unsigned u = 0; u < n; u++) {
            const uint8_t *p = pixel_at(b, w->x + (i + (u + 0.5) / n) * w->step, w->y + (j + (v + 0.5) / n) * w->step);
            for (int c = 0; c < 3; c++) sum[c] += p[c];
        }
    for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)((sum[c] + n * n / 2) / (n * n));
}

/* pixels [side][side]: where the mask is. An object too thin to be met by any pixel's centre is drawn point by point. */
static void shrink_mask(uint8_t *pixels, const st_label_crop *crop, const window *w, uint32_t side)
{
    size_t n = 0;
    for (uint32_t j = 0; j < side; j++)
        for (uint32_t i = 0; i < side; i++) {
            const double x = w->x + (i + 0.5) * w->step - crop->box.x0, y = w->y + (j + 0.5) * w->step - crop->box.y0;
            if (x < 0 || y < 0 || x >= crop->width || y >= crop->height) continue;
            pixels[j * side + i] = crop->pixels[(size_t)y * crop->width + (size_t)x];
            n += pixels[j * side + i];
        }
    for (uint32_t y = 0; !n && y < crop->height; y++)
        for (uint32_t x = 0; x < crop->width; x++) {
            const uint32_t i = (uint32_t)((crop->box.x0 + x + 0.5 - w->x) / w->step);
            const uint32_t j = (uint32_t)((crop->box.y0 + y + 0.5 - w->y) / w->step);
            if (crop->pixels[(size_t)y * crop->width + x] && i < side && j < side) pixels[j * side + i] = 1;
        }
}

static st_status mask_of(st_rle *out, const st_label_object *o, const window *w, uint32_t side, st_error *err)
{
    st_label_crop crop = { 0 };
    uint8_t *pixels = calloc(side, side);
    st_status status = pixels ? st_label_crop_make(&crop, &o->mask, err)
                              : st_fault(err, ST_ERR_NOMEM, "out of memory for a sheet");
    if (status == ST_OK) {
        shrink_mask(pixels, &crop, w, side);
        status = st_rle_from_dense(out, pixels, side, side, side, err);
    }
    st_label_crop_free(&crop);
    free(pixels);
    return status;
}

static void draw(st_bitmap *cut, const st_rle *mask, const double box[4], const window *w, float score,
                 const uint8_t rgb[3])
{
    char label[16];
    float corners[4];
    snprintf(label, sizeof label, "%.2f", (double)score);
    for (int i = 0; i < 4; i++) corners[i] = (float)((box[i] - (i % 2 ? w->y : w->x)) / w->step);
    st_draw_style style = { .fill = 0.25f, .outline = 2, .box = mask->counts ? NULL : corners, .label = label };
    memcpy(style.rgb, rgb, 3);
    st_draw_instance(cut, mask, &style);
}

st_status st_label_cut(st_label_cutout *c, const st_label_object *object, const st_label_picture *picture,
                       const st_bitmap *bitmap, uint32_t side, const uint8_t rgb[3], st_error *err)
{
    st_bitmap cut = { .width = side, .height = side, .rgb = calloc((size_t)side * side, 3) };
    st_rle mask = { 0 };
    double box[4];
    if (!cut.rgb) return st_fault(err, ST_ERR_NOMEM, "out of memory for a sheet");
    box_of(box, object, picture);
    const window w = window_of(box, side, picture);
    for (uint32_t j = 0; j < side; j++)
        for (uint32_t i = 0; i < side; i++) {
            uint8_t *to = cut.rgb + 3 * ((size_t)j * side + i);
            if (bitmap->rgb) shrink(to, bitmap, &w, i, j);
            else memcpy(to, unknown, 3);
        }
    st_status status = object->mask.counts ? mask_of(&mask, object, &w, side, err) : ST_OK;
    if (status == ST_OK) {
        draw(&cut, &mask, box, &w, object->score, rgb);
        status = st_jpeg_encode(&c->jpeg, &c->n_bytes, cut.rgb, side, side, QUALITY, err);
    }
    st_rle_free(&mask);
    free(cut.rgb);
    return status;
}

/* ---- overlays ---- */

static uint32_t line_width(const st_bitmap *b)
{
    const uint32_t longer = b->width > b->height ? b->width : b->height;
    return longer < 1200 ? 1 : longer / 800 > 16 ? 16 : (longer + 400) / 800;
}

static void draw_object(st_bitmap *b, const st_label_object *o, const st_label_class *classes, size_t n_classes)
{
    size_t k = 0;
    char label[96];
    while (k + 1 < n_classes && classes[k].id != o->class_id) k++;
    snprintf(label, sizeof label, "%.80s %.2f", classes[k].name, (double)o->score);
    st_draw_style style = { .fill = 0.35f, .outline = line_width(b), .box = o->mask.counts ? NULL : o->box, .label = label };
    st_draw_colour(k, style.rgb);
    st_draw_instance(b, &o->mask, &style);
}

st_status st_label_overlay_save(st_bitmap *bitmap, const st_label_picture *picture, const char *name, const bool *kept,
                                const st_label_class *classes, size_t n_classes, const char *folder, st_error *err)
{
    static const char *const every[] = { "", NULL };
    char *stem = NULL, *file = NULL;
    uint8_t *bytes = NULL;
    size_t n = 0;
    for (size_t i = picture->n_objects; i-- > 0;) /* the first of a class, its best, lies on top */
        if (kept[i]) draw_object(bitmap, &picture->objects[i], classes, n_classes);
    st_status status = st_label_free_stem(&stem, folder, every, name, ".jpg", false, err);
    if (status == ST_OK && asprintf(&file, "%s.jpg", stem) < 0) {
        file = NULL;
        status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    }
    if (status == ST_OK)
        status = st_jpeg_encode(&bytes, &n, bitmap->rgb, bitmap->width, bitmap->height, OVERLAY_QUALITY, err);
    if (status == ST_OK) status = st_label_bytes_save(folder, file, bytes, n, err);
    st_bytes_free(bytes);
    free(file);
    free(stem);
    return status;
}
