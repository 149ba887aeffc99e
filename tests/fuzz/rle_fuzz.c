/* rle_fuzz.c: masks from hostile bytes. The first byte picks a way in; each has its properties, checked against dense
 * maps where those are small.
 *
 *   s  width, height (16 bits each), string: what is accepted is canonical, writes itself as a string that reads back
 *      the same and, when small, equals its dense map in every measure and its outlines fill to itself.
 *   c  width, height, run lengths (32 bits each): likewise.
 *   d  width, height (8 bits each), one bit per pixel: decode(encode(x)) = x.
 *   l  rows, cols, width, height (8 bits each), threshold, logits (32-bit floats, any bits): equal to the dense resize.
 */
#include <stdlib.h>
#include <string.h>
#include "unit/mask_reference.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) abort();                                                                                          \
    } while (0)
enum { MAX_DENSE = 64 * 64 };

typedef struct reader {
    const unsigned char *at;
    size_t left;
} reader;

/* Little-endian, zeros behind the end. */
static uint32_t take(reader *r, size_t n_bytes)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n_bytes && r->left > 0; i++, r->left--) value |= (uint32_t)*r->at++ << (8 * i);
    return value;
}

static float take_float(reader *r)
{
    const uint32_t bits = take(r, 4);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool same(const st_rle *a, const st_rle *b)
{
    return a->width == b->width && a->height == b->height && a->n_counts == b->n_counts &&
           memcmp(a->counts, b->counts, a->n_counts * sizeof *a->counts) == 0;
}

static void check_string(const st_rle *mask)
{
    char *string, *again;
    st_rle back;
    CHECK(st_rle_to_string(&string, mask, NULL) == ST_OK);
    CHECK(st_rle_from_string(&back, string, strlen(string), mask->width, mask->height, NULL) == ST_OK);
    CHECK(same(&back, mask));
    CHECK(st_rle_to_string(&again, &back, NULL) == ST_OK && strcmp(string, again) == 0);
    st_string_free(string);
    st_string_free(again);
    st_rle_free(&back);
}

static void check_dense(const st_rle *mask)
{
    static uint8_t dense[MAX_DENSE], filled[MAX_DENSE];
    const size_t n = (size_t)mask->width * mask->height;
    uint64_t area = 0;
    st_rle back;
    st_polygons outlines;
    st_rle_to_dense(mask, dense, mask->width, 1);
    for (size_t i = 0; i < n; i++) area += dense[i];
    CHECK(area == st_rle_area(mask));
    CHECK(st_rle_from_dense(&back, dense, mask->width, mask->height, mask->width, NULL) == ST_OK && same(&back, mask));
    CHECK(st_rle_to_polygons(&outlines, mask, NULL) == ST_OK);
    memset(filled, 0, n);
    for (size_t i = 0; i < outlines.n; i++) ref_flip_polygon(filled, &outlines.items[i], mask->width);
    CHECK(memcmp(filled, dense, n) == 0);
    st_polygons_free(&outlines);
    st_rle_free(&back);
}

static void check_algebra(const st_rle *mask)
{
    st_rle other, rest, both;
    const uint64_t area = (uint64_t)mask->width * mask->height;
    const uint32_t counts[] = { (uint32_t)(area / 3), (uint32_t)(area / 2), (uint32_t)(area - area / 3 - area / 2) };
    CHECK(st_rle_from_counts(&other, counts, 3, mask->width, mask->height, NULL) == ST_OK);
    CHECK(st_rle_combine(&rest, mask, &other, ST_RLE_SUBTRACT, NULL) == ST_OK && ref_is_canonical(&rest));
    CHECK(st_rle_combine(&both, mask, &other, ST_RLE_INTERSECT, NULL) == ST_OK && ref_is_canonical(&both));
    CHECK(st_rle_area(&both) == st_rle_intersection(mask, &other));
    CHECK(st_rle_intersection(&rest, &both) == 0);
    st_rle_free(&other);
    CHECK(st_rle_combine(&other, &rest, &both, ST_RLE_UNION, NULL) == ST_OK && same(&other, mask));
    st_rle_free(&other);
    st_rle_free(&rest);
    st_rle_free(&both);
}

static void check_mask(st_rle *mask)
{
    CHECK(ref_is_canonical(mask));
    check_string(mask);
    check_algebra(mask);
    const st_box_px box = st_rle_box(mask);
    CHECK(box.x1 <= mask->width && box.y1 <= mask->height);
    CHECK(st_rle_area(mask) <= (uint64_t)(box.x1 - box.x0) * (box.y1 - box.y0));
    if ((uint64_t)mask->width * mask->height <= MAX_DENSE) check_dense(mask);
    st_rle_free(mask);
}

static void from_string(reader *r)
{
    const uint32_t width = take(r, 2), height = take(r, 2);
    st_rle mask;
    if (st_rle_from_string(&mask, (const char *)r->at, r->left, width, height, NULL) == ST_OK) check_mask(&mask);
    else CHECK(!mask.counts && mask.n_counts == 0);
}

static void from_counts(reader *r)
{
    const uint32_t width = take(r, 2), height = take(r, 2);
    uint32_t counts[64];
    size_t n = 0;
    while (n < 64 && r->left > 0) counts[n++] = take(r, 4);
    st_rle mask;
    if (st_rle_from_counts(&mask, counts, n, width, height, NULL) == ST_OK) check_mask(&mask);
    else CHECK(!mask.counts && mask.n_counts == 0);
}

static void from_dense(reader *r)
{
    static uint8_t dense[MAX_DENSE], back[MAX_DENSE];
    const uint32_t width = 1 + take(r, 1) % 64, height = 1 + take(r, 1) % 64;
    for (uint32_t i = 0; i < width * height; i += 8) {
        const uint32_t bits = take(r, 1);
        for (uint32_t k = 0; k < 8 && i + k < width * height; k++) dense[i + k] = bits >> k & 1;
    }
    st_rle mask;
    CHECK(st_rle_from_dense(&mask, dense, width, height, width, NULL) == ST_OK);
    st_rle_to_dense(&mask, back, width, 1);
    CHECK(memcmp(dense, back, (size_t)width * height) == 0);
    check_mask(&mask);
}

static void from_logits(reader *r)
{
    static float logits[16 * 16];
    static uint8_t dense[MAX_DENSE];
    const uint32_t rows = 1 + take(r, 1) % 16, cols = 1 + take(r, 1) % 16, width = 1 + take(r, 1) % 64,
                   height = 1 + take(r, 1) % 64;
    const float threshold = take_float(r);
    for (uint32_t i = 0; i < rows * cols; i++) logits[i] = take_float(r);
    st_rle mask, expected;
    const st_status status = st_rle_from_logits(&mask, logits, rows, cols, width, height, threshold, NULL);
    CHECK((status == ST_OK) == (isfinite(threshold) != 0));
    if (status != ST_OK) return;
    ref_upsample(dense, logits, rows, cols, width, height, threshold);
    CHECK(st_rle_from_dense(&expected, dense, width, height, width, NULL) == ST_OK);
    CHECK(same(&mask, &expected));
    st_rle_free(&expected);
    check_mask(&mask);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    reader r = { data, n };
    switch (take(&r, 1)) {
    case 's': from_string(&r); break;
    case 'c': from_counts(&r); break;
    case 'd': from_dense(&r); break;
    case 'l': from_logits(&r); break;
    default: break;
    }
    return 0;
}
