/* picture_draw.c: overlays. Works on the mask's run lengths; there is never a dense mask.
 *
 * The outline lies inside the mask: a pixel belongs to it when the disc of the outline's radius around it touches a
 * pixel outside the mask or the picture's edge. Per column the runs give each pixel's vertical distance to the outside;
 * a window of 2*radius+1 columns of those, in bands of BAND rows so that it fits on the stack, decides it exactly.
 */
#include <math.h>
#include <string.h>
#include "picture/picture_internal.h"

#define MAX_OUTLINE 64
#define BAND 128 /* rows per pass over the runs */

/* ------------------------------------------------------------------ pixels */

static void blend(uint8_t *p, const uint8_t rgb[3], unsigned alpha) /* alpha 0..256 */
{
    for (int i = 0; i < 3; i++) p[i] = (uint8_t)((rgb[i] * alpha + p[i] * (256u - alpha) + 128u) >> 8);
}

static unsigned to_alpha(float opacity)
{
    if (!(opacity > 0)) return 0;
    return opacity >= 1 ? 256 : (unsigned)(opacity * 256 + 0.5f);
}

static uint8_t *pixel(st_bitmap *b, uint32_t x, uint32_t y)
{
    return b->rgb + ((size_t)y * b->width + x) * 3;
}

/* Half-open, already clipped. */
static void fill_rect(st_bitmap *b, uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, const uint8_t rgb[3],
                      unsigned alpha)
{
    for (uint32_t y = y0; y < y1; y++)
        for (uint32_t x = x0; x < x1; x++) blend(pixel(b, x, y), rgb, alpha);
}

/* A coordinate to 0..limit; NaN goes to 0. */
static uint32_t clip(float v, uint32_t limit)
{
    if (!(v > 0)) return 0;
    return v >= (float)limit ? limit : (uint32_t)v;
}

/* ------------------------------------------------------------------ runs by column */

/* Walks the runs of ones, cut at column ends. */
typedef struct walk {
    const st_rle *mask;
    size_t i;          /* the current run of counts */
    uint64_t at, left; /* position in the picture and ones left in this run */
} walk;

/* The next segment: column x, rows y0 .. y1-1. Stops at the picture's end whatever the counts say. */
static bool next_segment(walk *w, uint32_t *x, uint32_t *y0, uint32_t *y1)
{
    const uint64_t h = w->mask->height, total = h * w->mask->width;
    while (!w->left) {
        if (w->i >= w->mask->n_counts) return false;
        if (w->i & 1) w->left = w->mask->counts[w->i];
        else w->at += w->mask->counts[w->i];
        w->i++;
    }
    if (w->at >= total) return false;
    *x = (uint32_t)(w->at / h);
    *y0 = (uint32_t)(w->at % h);
    const uint64_t n = w->left < h - *y0 ? w->left : h - *y0;
    *y1 = (uint32_t)(*y0 + n);
    w->at += n;
    w->left -= n;
    return true;
}

static void draw_fill(st_bitmap *b, const st_rle *mask, const st_draw_style *style)
{
    walk w = { .mask = mask };
    uint32_t x, y0, y1;
    const unsigned alpha = to_alpha(style->fill);
    if (!alpha) return;
    while (next_segment(&w, &x, &y0, &y1)) fill_rect(b, x, y0, x + 1, y1, style->rgb, alpha);
}

/* ------------------------------------------------------------------ outline */

/* The columns around the one being decided; column x lies in slot x % (2r+1). */
typedef struct window {
    uint32_t r;                               /* outline width */
    uint32_t y0, n;                           /* the band of rows */
    uint8_t reach[MAX_OUTLINE + 1];           /* at horizontal distance d the disc reaches this far up and down */
    uint8_t depth[2 * MAX_OUTLINE + 1][BAND]; /* vertical steps to the outside, 0 = outside, capped at r+1 */
    uint32_t n_deep[BAND]; /* consecutive columns, up to the newest, where the row is deeper than r */
} window;

static uint8_t *column(window *w, uint32_t x)
{
    return w->depth[x % (2 * w->r + 1)];
}

static void add_segment(window *w, uint32_t x, uint32_t y0, uint32_t y1)
{
    uint8_t *depth = column(w, x);
    const uint32_t from = y0 > w->y0 ? y0 : w->y0, to = y1 < w->y0 + w->n ? y1 : w->y0 + w->n;
    for (uint32_t y = from; y < to; y++) {
        const uint32_t up = y - y0 + 1, down = y1 - y, d = up < down ? up : down;
        depth[y - w->y0] = (uint8_t)(d <= w->r ? d : w->r + 1);
    }
}

static void count_deep(window *w, uint32_t x)
{
    const uint8_t *depth = column(w, x);
    for (uint32_t i = 0; i < w->n; i++) w->n_deep[i] = depth[i] > w->r ? w->n_deep[i] + 1 : 0;
}

static bool on_outline(window *w, uint32_t x, uint32_t i, uint32_t width)
{
    for (uint32_t d = 0; d <= w->r; d++) {
        if (x < d || width - 1 - x < d) return true; /* the picture's edge */
        if (column(w, x - d)[i] <= w->reach[d] || column(w, x + d)[i] <= w->reach[d]) return true;
    }
    return false;
}

static void draw_column(st_bitmap *b, window *w, uint32_t x, const uint8_t rgb[3])
{
    const uint8_t *depth = column(w, x);
    for (uint32_t i = 0; i < w->n; i++)
        if (depth[i] && w->n_deep[i] <= 2 * w->r && on_outline(w, x, i, b->width))
            memcpy(pixel(b, x, w->y0 + i), rgb, 3);
}

/* One band: columns enter the window in order; a column is decided once the r columns after it are known. */
static void draw_band(st_bitmap *b, const st_rle *mask, window *w, uint32_t x_first, uint32_t x_last,
                      const uint8_t rgb[3])
{
    walk runs = { .mask = mask };
    uint32_t x, y0, y1;
    bool more = next_segment(&runs, &x, &y0, &y1);
    const uint32_t begin = x_first > w->r ? x_first - w->r : 0;
    const uint64_t end = (uint64_t)x_last + w->r;
    memset(w->n_deep, 0, sizeof w->n_deep);
    for (uint64_t c = begin; c <= end; c++) {
        memset(column(w, (uint32_t)c), 0, w->n);
        for (; more && x <= c; more = next_segment(&runs, &x, &y0, &y1))
            if (x == c) add_segment(w, x, y0, y1);
        count_deep(w, (uint32_t)c);
        if (c >= (uint64_t)x_first + w->r) draw_column(b, w, (uint32_t)(c - w->r), rgb);
    }
}

static void draw_outline(st_bitmap *b, const st_rle *mask, const st_draw_style *style, st_box_px box)
{
    window w;
    w.r = style->outline < MAX_OUTLINE ? style->outline : MAX_OUTLINE;
    if (!w.r) return;
    for (uint32_t d = 0, v = w.r; d <= w.r; d++) { /* the largest v with d*d + v*v <= r*r */
        while (d * d + v * v > w.r * w.r) v--;
        w.reach[d] = (uint8_t)v;
    }
    for (uint32_t y = box.y0; y < box.y1; y += BAND) {
        w.y0 = y;
        w.n = box.y1 - y < BAND ? box.y1 - y : BAND;
        draw_band(b, mask, &w, box.x0, box.x1 - 1, style->rgb);
    }
}

/* The tight box of the runs; false when there are none. */
static bool mask_box(const st_rle *mask, st_box_px *box)
{
    walk w = { .mask = mask };
    uint32_t x, y0, y1;
    *box = (st_box_px){ UINT32_MAX, UINT32_MAX, 0, 0 };
    while (next_segment(&w, &x, &y0, &y1)) {
        if (x < box->x0) box->x0 = x;
        if (y0 < box->y0) box->y0 = y0;
        if (x + 1 > box->x1) box->x1 = x + 1;
        if (y1 > box->y1) box->y1 = y1;
    }
    return box->x1 > 0;
}

/* ------------------------------------------------------------------ box and label */

/* 1 for pictures up to about 750 pixels a side, 8 at 4000. */
static uint32_t drawing_scale(const st_bitmap *b)
{
    const double s = sqrt((double)b->width * (double)b->height) / 500 + 0.5;
    return s < 1 ? 1 : s > 64 ? 64 : (uint32_t)s;
}

/* A frame whose outer edge is the box, `t` pixels thick. */
static void draw_box(st_bitmap *b, const float box[4], const uint8_t rgb[3])
{
    const uint32_t x0 = clip(floorf(box[0]), b->width), y0 = clip(floorf(box[1]), b->height);
    const uint32_t x1 = clip(ceilf(box[2]), b->width), y1 = clip(ceilf(box[3]), b->height);
    if (x0 >= x1 || y0 >= y1) return;
    uint32_t t = (drawing_scale(b) + 1) / 2;
    if (t > x1 - x0) t = x1 - x0;
    if (t > y1 - y0) t = y1 - y0;
    fill_rect(b, x0, y0, x1, y0 + t, rgb, 256);
    fill_rect(b, x0, y1 - t, x1, y1, rgb, 256);
    fill_rect(b, x0, y0, x0 + t, y1, rgb, 256);
    fill_rect(b, x1 - t, y0, x1, y1, rgb, 256);
}

/* The next character of a UTF-8 text as drawn: ASCII itself, '?' for anything else; 0 at the end. */
static char next_char(const char **text)
{
    const unsigned char c = (unsigned char)**text;
    if (!c) return 0;
    (*text)++;
    if (c >= 32 && c < 127) return (char)c;
    while (c >= 0xC0 && ((unsigned char)**text & 0xC0) == 0x80) (*text)++;
    return '?';
}

static uint32_t count_chars(const char *text, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && next_char(&text)) n++;
    return n;
}

static float glyph_at(const uint8_t *glyph, int x, int y)
{
    if (x < 0 || x >= ST_FONT_WIDTH || y < 0 || y >= ST_FONT_HEIGHT) return 0;
    return (float)(glyph[y] >> (ST_FONT_WIDTH - 1 - x) & 1);
}

/* How much of output pixel (x, y) the glyph enlarged `scale` times covers, 0..256: the 5 x 7 field is interpolated and
 * cut at one half, which rounds the corners of large letters and joins diagonals; at scale 1 it is the bitmap itself.
 */
static unsigned coverage(const uint8_t *glyph, uint32_t x, uint32_t y, uint32_t scale)
{
    const float u = ((float)x + 0.5f) / (float)scale - 0.5f, v = ((float)y + 0.5f) / (float)scale - 0.5f;
    const int iu = (int)floorf(u), iv = (int)floorf(v);
    const float fu = u - (float)iu, fv = v - (float)iv;
    const float top = glyph_at(glyph, iu, iv) * (1 - fu) + glyph_at(glyph, iu + 1, iv) * fu;
    const float bottom = glyph_at(glyph, iu, iv + 1) * (1 - fu) + glyph_at(glyph, iu + 1, iv + 1) * fu;
    const float value = top * (1 - fv) + bottom * fv;
    const float edge = (value - 0.45f) * (float)scale + 0.5f; /* one pixel of ramp */
    return to_alpha(edge);
}

static void draw_glyph(st_bitmap *b, char c, uint32_t x0, uint32_t y0, uint32_t scale, const uint8_t rgb[3])
{
    const uint8_t *glyph = st_font_glyph(c);
    y0 += st_font_drop(c) * scale;
    for (uint32_t y = 0; y < ST_FONT_HEIGHT * scale && y0 + y < b->height; y++)
        for (uint32_t x = 0; x < ST_FONT_WIDTH * scale && x0 + x < b->width; x++) {
            const unsigned alpha = coverage(glyph, x, y, scale);
            if (alpha) blend(pixel(b, x0 + x, y0 + y), rgb, alpha);
        }
}

/* A plate in the instance's colour, above the corner where there is room, else below it, moved in from the right edge;
 * a text that is wider than the picture ends in "..". */
static void draw_label(st_bitmap *b, const char *text, uint32_t left, uint32_t top, const uint8_t rgb[3])
{
    static const uint8_t black[3] = { 0, 0, 0 }, white[3] = { 255, 255, 255 };
    const uint32_t s = drawing_scale(b), pad = 2 * s, step = (ST_FONT_WIDTH + 1) * s;
    const uint32_t height = (ST_FONT_HEIGHT + 1) * s + 2 * pad; /* the padding holds the rows below the line */
    if (b->width < 2 * pad + step || b->height < height) return;
    const uint32_t room = (b->width - 2 * pad + s) / step;
    uint32_t n = count_chars(text, room + 1);
    const bool cut = n > room;
    if (!n) return;
    if (cut) n = room;
    const uint32_t width = n * step - s + 2 * pad;
    const uint32_t x0 = left + width <= b->width ? left : b->width - width;
    const uint32_t y0 = top >= height ? top - height : top + height <= b->height ? top : b->height - height;
    fill_rect(b, x0, y0, x0 + width, y0 + height, rgb, 256);
    const unsigned luma = (299u * rgb[0] + 587u * rgb[1] + 114u * rgb[2]) / 1000;
    for (uint32_t i = 0; i < n; i++) {
        const char c = next_char(&text);
        draw_glyph(b, cut && i + 2 >= n ? '.' : c, x0 + pad + i * step, y0 + pad, s, luma > 120 ? black : white);
    }
}

void st_draw_instance(st_bitmap *bitmap, const st_rle *mask, const st_draw_style *style)
{
    st_box_px box = { 0, 0, 0, 0 };
    if (!bitmap || !bitmap->rgb || !style) return;
    const bool fits = mask && mask->counts && mask->width == bitmap->width && mask->height == bitmap->height;
    const bool drawn = fits && mask_box(mask, &box);
    if (drawn) {
        draw_fill(bitmap, mask, style);
        draw_outline(bitmap, mask, style, box);
    }
    if (style->box) draw_box(bitmap, style->box, style->rgb);
    if (!style->label) return;
    if (style->box)
        draw_label(bitmap, style->label, clip(style->box[0], bitmap->width), clip(style->box[1], bitmap->height),
                   style->rgb);
    else if (drawn) draw_label(bitmap, style->label, box.x0, box.y0, style->rgb);
}

/* ------------------------------------------------------------------ palette */

/* Found by a greedy search: each colour far, in OKLab, from those before it and farthest from the last three (also
 * around the end of the table), for normal sight and the three common kinds of colour blindness; none too dark to be
 * seen as a line on a dark picture. tests/unit/picture_draw_test.c measures the distances. */
static const uint8_t palette[24][3] = {
    { 255, 128, 0 },   { 102, 64, 255 },  { 25, 209, 255 },  { 235, 235, 129 }, { 184, 51, 18 },   { 134, 101, 184 },
    { 73, 184, 140 },  { 140, 255, 221 }, { 209, 209, 21 },  { 209, 102, 255 }, { 235, 0, 94 },    { 167, 0, 209 },
    { 255, 186, 140 }, { 73, 151, 184 },  { 209, 105, 0 },   { 186, 255, 25 },  { 167, 184, 101 }, { 255, 140, 209 },
    { 184, 73, 140 },  { 164, 94, 235 },  { 129, 235, 182 }, { 52, 193, 209 },  { 184, 18, 151 },  { 184, 101, 126 },
};

void st_draw_colour(size_t i, uint8_t rgb[3])
{
    memcpy(rgb, palette[i % 24], 3);
}
