/* picture_options_test.c: caps, struct_size, and the stretch asked for, refused and automatic. Pictures are PNGs made
 * by hand here, so that every sample is known; the automatic cases on real files are in picture_files_test.c.
 */
#include "picture_files.h"
#include <math.h>
#include <zlib.h>

static void put_be(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static size_t add_chunk(uint8_t *out, const char *kind, const uint8_t *data, size_t n)
{
    put_be(out, (uint32_t)n);
    memcpy(out + 4, kind, 4);
    if (n) memcpy(out + 8, data, n);
    put_be(out + 8 + n, (uint32_t)crc32(0, out + 4, (uInt)n + 4));
    return n + 12;
}

/* A PNG of gray (channels 1) or RGB (3) samples of 8 or 16 bits; *n its bytes. */
static uint8_t *make_png(const uint16_t *v, uint32_t w, uint32_t h, int channels, int bits, size_t *n)
{
    const size_t row = (size_t)w * (size_t)channels * (size_t)(bits / 8) + 1;
    uint8_t *raw = calloc(h, row), *packed = malloc(compressBound(row * h)),
            *png = malloc(compressBound(row * h) + 100);
    assert_true(raw && packed && png);
    for (uint32_t y = 0; y < h; y++)
        for (size_t x = 0; x < (size_t)w * (size_t)channels; x++) {
            const uint16_t s = v[y * (size_t)w * (size_t)channels + x];
            if (bits == 8) raw[y * row + 1 + x] = (uint8_t)s;
            else raw[y * row + 1 + 2 * x] = (uint8_t)(s >> 8), raw[y * row + 2 + 2 * x] = (uint8_t)s;
        }
    uLongf n_packed = compressBound(row * h);
    assert_int_equal(compress(packed, &n_packed, raw, row * h), Z_OK);
    uint8_t head[13] = { 0 };
    put_be(head, w);
    put_be(head + 4, h);
    head[8] = (uint8_t)bits;
    head[9] = channels == 3 ? 2 : 0;
    memcpy(png, "\x89PNG\r\n\x1a\n", 8);
    *n = 8;
    *n += add_chunk(png + *n, "IHDR", head, sizeof head);
    *n += add_chunk(png + *n, "IDAT", packed, n_packed);
    *n += add_chunk(png + *n, "IEND", NULL, 0);
    free(raw);
    free(packed);
    return png;
}

static st_bitmap decode(const uint16_t *v, uint32_t w, uint32_t h, int channels, int bits,
                        const st_bitmap_options *options)
{
    size_t n;
    st_bitmap b;
    st_error err = { 0 };
    uint8_t *png = make_png(v, w, h, channels, bits, &n);
    if (st_bitmap_decode(&b, png, n, "made.png", options, &err) != ST_OK) fail_msg("%s", err.message);
    free(png);
    return b;
}

/* ------------------------------------------------------------------ caps and struct_size */

static void test_options__caps(void **state)
{
    (void)state;
    size_t n;
    st_bitmap b;
    st_error err = { 0 };
    uint8_t *data = read_picture_file("png_rgb.png", &n);
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    o.max_pixels = 29 * 21;
    o.max_bytes = n;
    assert_int_equal(st_bitmap_decode(&b, data, n, "x", &o, &err), ST_OK);
    st_bitmap_free(&b);
    o.max_pixels--;
    assert_int_equal(st_bitmap_decode(&b, data, n, "x", &o, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "608"));
    o.max_pixels++;
    o.max_bytes--;
    assert_int_equal(st_bitmap_decode(&b, data, n, "x", &o, &err), ST_ERR_LIMIT);
    assert_int_equal(st_bitmap_load(&b, PICTURES "png_rgb.png", &o, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "png_rgb.png"));
    assert_null(b.rgb);
    free(data);
}

/* Every format obeys max_pixels. */
static void test_options__max_pixels_in_every_format(void **state)
{
    (void)state;
    static const char *const files[] = { "jpeg_420.jpg",    "jpeg_orientation_6.jpg", "png_rgb16.png",
                                         "webp_lossy.webp", "webp_animated.webp",     "tiff_rgb_tiles.tif",
                                         "tiff_ycbcr.tif" };
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    o.max_pixels = 29 * 21 - 1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        st_bitmap b;
        st_error err = { 0 };
        snprintf(path, sizeof path, "%s%s", PICTURES, files[i]);
        assert_int_equal(st_bitmap_load(&b, path, &o, &err), ST_ERR_LIMIT);
        assert_non_null(strstr(err.message, "29 x 21"));
    }
#ifdef ST_HAVE_HEIF
    st_bitmap b;
    st_error err = { 0 };
    assert_int_equal(st_bitmap_load(&b, PICTURES "heif_rotated_6.heic", &o, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "48 x 64"));
#endif
}

static void test_options__struct_size(void **state)
{
    (void)state;
    const uint16_t v[4] = { 0, 1000, 2000, 3000 };
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    st_error err = { 0 };
    st_bitmap b;
    size_t n;
    o.stretch = ST_STRETCH_NEVER;
    o.struct_size = offsetof(st_bitmap_options, stretch); /* an older program: its stretch is not read */
    b = decode(v, 4, 1, 1, 16, &o);
    assert_int_equal(b.stretched, 1);
    st_bitmap_free(&b);
    o.struct_size = sizeof o + 64; /* a newer one */
    b = decode(v, 4, 1, 1, 16, &o);
    assert_int_equal(b.stretched, 0);
    st_bitmap_free(&b);
    uint8_t *png = make_png(v, 4, 1, 1, 16, &n);
    o.struct_size = 0;
    assert_int_equal(st_bitmap_decode(&b, png, n, "x", &o, &err), ST_ERR_INVALID_ARG);
    o = (st_bitmap_options)ST_BITMAP_OPTIONS_INIT;
    o.low_percent = NAN;
    assert_int_equal(st_bitmap_decode(&b, png, n, "x", &o, &err), ST_ERR_INVALID_ARG);
    o.low_percent = 60;
    o.high_percent = 60;
    assert_int_equal(st_bitmap_decode(&b, png, n, "x", &o, &err), ST_ERR_INVALID_ARG);
    o = (st_bitmap_options)ST_BITMAP_OPTIONS_INIT;
    o.stretch = (st_stretch)7;
    assert_int_equal(st_bitmap_decode(&b, png, n, "x", &o, &err), ST_ERR_INVALID_ARG);
    free(png);
}

/* ------------------------------------------------------------------ stretch */

static void expect_gray(const st_bitmap *b, size_t i, int want)
{
    for (int c = 0; c < 3; c++)
        if (b->rgb[3 * i + (size_t)c] != want)
            fail_msg("pixel %zu channel %d is %d, expected %d", i, c, b->rgb[3 * i + (size_t)c], want);
}

static void expect_range(const st_bitmap *b, int stretched, float low, float high)
{
    if (b->stretched != stretched || b->low != low || b->high != high)
        fail_msg("stretched %d from %g to %g, expected %d, %g, %g", b->stretched, (double)b->low, (double)b->high,
                 stretched, (double)low, (double)high);
}

/* 1,000 samples of 500 .. 1499, two of them broken: the percentiles do not see those. */
static void test_stretch__hot_pixels_do_not_count(void **state)
{
    (void)state;
    uint16_t v[1000];
    for (int i = 0; i < 1000; i++) v[i] = (uint16_t)(500 + i);
    v[700] = 65535;
    v[300] = 0;
    st_bitmap b = decode(v, 40, 25, 1, 16, NULL);
    /* sorted: 0, 500 .. 799, 801 .. 1199, 1201 .. 1499, 65535; ranks floor(.005*999) = 4 and ceil(.995*999) = 995 */
    expect_range(&b, 1, 503, 1496);
    expect_gray(&b, 700, 255);
    expect_gray(&b, 300, 0);
    expect_gray(&b, 0, 0);
    expect_gray(&b, 500, (int)floor((1000 - 503) * 255.0 / (1496 - 503) + 0.5));
    st_bitmap_free(&b);
}

static void test_stretch__never_takes_the_high_byte(void **state)
{
    (void)state;
    const uint16_t v[6] = { 0, 255, 256, 511, 4095, 65535 };
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    o.stretch = ST_STRETCH_NEVER;
    st_bitmap b = decode(v, 6, 1, 1, 16, &o);
    expect_range(&b, 0, 0, 65535);
    for (size_t i = 0; i < 6; i++) expect_gray(&b, i, v[i] >> 8);
    st_bitmap_free(&b);
}

/* The rule for 16-bit gray: percentiles when they enclose less than half of the range. */
static void test_stretch__range_decides(void **state)
{
    (void)state;
    uint16_t v[64];
    for (int top = 20000; top <= 60000; top += 10000) {
        for (int i = 0; i < 64; i++) v[i] = (uint16_t)(i * top / 63);
        st_bitmap b = decode(v, 8, 8, 1, 16, NULL);
        assert_int_equal(b.stretched, top < 32767);
        st_bitmap_free(&b);
    }
    for (int i = 0; i < 64; i++)
        v[i] = (uint16_t)(257 * (100 + i)); /* 8-bit data in 16 bits: a photograph, however flat */
    st_bitmap b = decode(v, 8, 8, 1, 16, NULL);
    expect_range(&b, 0, 0, 65535);
    for (size_t i = 0; i < 64; i++) expect_gray(&b, i, 100 + (int)i);
    st_bitmap_free(&b);
}

static void test_stretch__colour_is_never_stretched_unasked(void **state)
{
    (void)state;
    uint16_t v[12];
    for (int i = 0; i < 12; i++) v[i] = (uint16_t)(1000 + 100 * i);
    st_bitmap b = decode(v, 4, 1, 3, 16, NULL);
    expect_range(&b, 0, 0, 65535);
    for (size_t i = 0; i < 12; i++) assert_int_equal(b.rgb[i], v[i] >> 8);
    st_bitmap_free(&b);
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    o.stretch = ST_STRETCH_ALWAYS; /* asked: with all 16 bits, and one range for the three bands */
    o.low_percent = 0;
    o.high_percent = 100;
    b = decode(v, 4, 1, 3, 16, &o);
    expect_range(&b, 1, 1000, 2100);
    for (size_t i = 0; i < 12; i++) assert_int_equal(b.rgb[i], (int)floor((double)i * 255 / 11 + 0.5));
    st_bitmap_free(&b);
}

static void test_stretch__always_on_8_bits(void **state)
{
    (void)state;
    uint16_t v[300];
    for (int i = 0; i < 300; i++) v[i] = (uint16_t)(50 + i % 100);
    st_bitmap_options o = ST_BITMAP_OPTIONS_INIT;
    st_bitmap b = decode(v, 10, 10, 3, 8, &o);
    expect_range(&b, 0, 0, 255);
    st_bitmap_free(&b);
    o.stretch = ST_STRETCH_ALWAYS;
    b = decode(v, 10, 10, 3, 8, &o);
    /* three of each value: ranks floor(.005*299) = 1 and ceil(.995*299) = 298 */
    expect_range(&b, 1, 50, 149);
    for (size_t i = 0; i < 300; i++) assert_int_equal(b.rgb[i], (int)floor((v[i] - 50) * 255.0 / 99 + 0.5));
    st_bitmap_free(&b);
}

/* One value in all but a few samples: the percentiles coincide and the few decide; one value in all: nothing to
 * stretch. */
static void test_stretch__flat_pictures(void **state)
{
    (void)state;
    uint16_t v[1000];
    for (int i = 0; i < 1000; i++) v[i] = 300;
    st_bitmap b = decode(v, 40, 25, 1, 16, NULL);
    expect_range(&b, 0, 0, 65535);
    expect_gray(&b, 0, 1);
    st_bitmap_free(&b);
    v[5] = 900;
    b = decode(v, 40, 25, 1, 16, NULL);
    expect_range(&b, 1, 300, 900);
    expect_gray(&b, 5, 255);
    expect_gray(&b, 6, 0);
    st_bitmap_free(&b);
}

/* Not one finite sample: black, and no division by nothing. Little-endian float TIFF, 2 x 1. */
static void test_stretch__floats_without_a_number(void **state)
{
    (void)state;
    size_t n;
    st_bitmap b;
    st_error err = { 0 };
    uint8_t *data = read_picture_file("tiff_float_unit.tif", &n);
    const float nan = NAN;
    for (size_t i = 0; i < 29 * 21; i++) memcpy(data + n - 4 * (29 * 21 - i) - 0, &nan, 4);
    assert_int_equal(st_bitmap_decode(&b, data, n, "nan.tif", NULL, &err), ST_OK);
    expect_range(&b, 0, 0, 1);
    for (size_t i = 0; i < 29 * 21; i++) expect_gray(&b, i, 0);
    assert_int_equal(b.is_float, 1);
    st_bitmap_free(&b);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options__caps),
        cmocka_unit_test(test_options__max_pixels_in_every_format),
        cmocka_unit_test(test_options__struct_size),
        cmocka_unit_test(test_stretch__hot_pixels_do_not_count),
        cmocka_unit_test(test_stretch__never_takes_the_high_byte),
        cmocka_unit_test(test_stretch__range_decides),
        cmocka_unit_test(test_stretch__colour_is_never_stretched_unasked),
        cmocka_unit_test(test_stretch__always_on_8_bits),
        cmocka_unit_test(test_stretch__flat_pictures),
        cmocka_unit_test(test_stretch__floats_without_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
