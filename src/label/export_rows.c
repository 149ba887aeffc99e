/* export_rows.c: masks are stored column by column; some formats want rows (see export_rows.h). Turning them takes the
 * pixels of one mask's box, never a whole picture of them. */
#include "label/export_rows.h"
#include "front/fault.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- pixels of the box ---- */

static void fill(st_label_crop *c, const st_rle *mask)
{
    uint64_t at = 0;
    for (size_t i = 0; i < mask->n_counts; i++) {
        const uint64_t end = at + mask->counts[i];
        for (uint64_t p = at; (i & 1) && p < end; p++) {
            const size_t x = (size_t)(p / mask->height) - c->box.x0, y = (size_t)(p % mask->height) - c->box.y0;
            c->pixels[y * c->width + x] = 1;
        }
        at = end;
    }
}

st_status st_label_crop_make(st_label_crop *out, const st_rle *mask, st_error *err)
{
    *out = (st_label_crop){ .box = st_rle_box(mask) };
    out->width = out->box.x1 - out->box.x0;
    out->height = out->box.y1 - out->box.y0;
    if (!out->width || !out->height) return ST_OK;
    out->pixels = calloc(out->height, out->width);
    if (!out->pixels)
        return st_fault(err, ST_ERR_NOMEM, "out of memory for a mask of %u x %u pixels", out->width, out->height);
    fill(out, mask);
    return ST_OK;
}

void st_label_crop_free(st_label_crop *crop)
{
    free(crop->pixels);
    *crop = (st_label_crop){ 0 };
}

st_status st_label_crop_runs(uint32_t **runs, size_t *n, const st_label_crop *crop, st_error *err)
{
    const size_t total = (size_t)crop->width * crop->height;
    size_t n_runs = 1;
    for (size_t i = 0; i < total; i++) n_runs += crop->pixels[i] != (i ? crop->pixels[i - 1] : 0);
    *n = 0;
    *runs = calloc(n_runs, sizeof **runs);
    if (!*runs) return st_fault(err, ST_ERR_NOMEM, "out of memory for the runs of a mask");
    for (size_t i = 0; i < total; i++) {
        *n += crop->pixels[i] != (i ? crop->pixels[i - 1] : 0);
        (*runs)[*n]++;
    }
    *n = n_runs;
    return ST_OK;
}

/* ---- brush ---- */

typedef struct bits {
    uint8_t *bytes;
    size_t n, room; /* whole bytes */
    uint32_t last;  /* bits not yet written, n_last < 8 of them */
    uint32_t n_last;
    bool failed;
} bits;

static void put_byte(bits *b, uint8_t byte)
{
    if (b->failed) return;
    if (b->n == b->room) {
        const size_t room = b->room ? 2 * b->room : 1024;
        uint8_t *grown = realloc(b->bytes, room);
        b->failed = !grown;
        if (!grown) return;
        b->bytes = grown;
        b->room = room;
    }
    b->bytes[b->n++] = byte;
}

/* Most significant bit first. */
static void put(bits *b, uint64_t value, uint32_t n)
{
    while (n-- > 0) {
        b->last = (b->last << 1) | (uint32_t)((value >> n) & 1);
        if (++b->n_last < 8) continue;
        put_byte(b, (uint8_t)b->last);
        b->last = b->n_last = 0;
    }
}

/* Runs of elements, as the reference cuts them: what is left of a long one keeps the longest size. Elements are four to
 * a pixel, so that a run is never one element, which the reference would write as a literal. */
static void put_run(bits *b, uint64_t length, uint32_t value)
{
    static const uint32_t sizes[4] = { 3, 4, 8, 16 };
    const uint32_t which = length <= 8 ? 0 : length <= 16 ? 1 : length <= 256 ? 2 : 3;
    while (length) {
        const uint64_t some = length > 65536 ? 65536 : length;
        put(b, 4 | which, 3); /* 1: repeated */
        put(b, some - 1, sizes[which]);
        put(b, value, 8);
        length -= some;
    }
}

/* A run that grows until the value changes. */
typedef struct growing {
    uint64_t n; /* pixels */
    bool inside;
} growing;

static void grow(bits *b, growing *run, uint64_t n, bool inside)
{
    if (!n) return;
    if (run->inside != inside) {
        put_run(b, 4 * run->n, run->inside ? 255 : 0);
        *run = (growing){ 0, inside };
    }
    run->n += n;
}

static void put_mask(bits *b, const st_label_crop *c, const st_rle *mask)
{
    growing run = { 0, false };
    grow(b, &run, (uint64_t)c->box.y0 * mask->width, false);
    for (size_t y = 0; y < c->height; y++) {
        grow(b, &run, c->box.x0, false);
        for (size_t x = 0; x < c->width; x++) grow(b, &run, 1, c->pixels[y * c->width + x] != 0);
        grow(b, &run, mask->width - c->box.x1, false);
    }
    grow(b, &run, (uint64_t)(mask->height - c->box.y1) * mask->width, false);
    put_run(b, 4 * run.n, run.inside ? 255 : 0);
}

st_status st_label_brush(uint8_t **bytes, size_t *n, const st_rle *mask, st_error *err)
{
    const uint64_t elements = 4 * (uint64_t)mask->width * mask->height;
    st_label_crop crop;
    bits b = { 0 };
    *bytes = NULL;
    if (elements > UINT32_MAX)
        return st_fault(err, ST_ERR_LIMIT, "a brush mask of %u x %u pixels: the format counts up to %u", mask->width,
                        mask->height, UINT32_MAX / 4);
    const st_status status = st_label_crop_make(&crop, mask, err);
    if (status != ST_OK) return status;
    put(&b, elements, 32);
    put(&b, 7, 5);                                       /* values of 8 bits */
    put(&b, 2, 4), put(&b, 3, 4), put(&b, 7, 4), put(&b, 15, 4); /* lengths of 3, 4, 8, 16 bits */
    put_mask(&b, &crop, mask);
    put(&b, 0, 8 - b.n_last); /* a whole byte when nothing is left over, as the reference does */
    st_label_crop_free(&crop);
    if (b.failed) {
        free(b.bytes);
        return st_fault(err, ST_ERR_NOMEM, "out of memory for a brush mask");
    }
    *bytes = b.bytes;
    *n = b.n;
    return ST_OK;
}

char *st_label_base64(const uint8_t *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (n > SIZE_MAX / 2) return NULL;
    char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;
    if (!text) return NULL;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)(i + 1 < n ? bytes[i + 1] : 0) << 8 |
                               (uint32_t)(i + 2 < n ? bytes[i + 2] : 0);
        *to++ = digits[group >> 18];
        *to++ = digits[(group >> 12) & 63];
        *to++ = i + 1 < n ? digits[(group >> 6) & 63] : '=';
        *to++ = i + 2 < n ? digits[group & 63] : '=';
    }
    *to = '\0';
    return text;
}
