/* picture_encode_test.c: PNG and JPEG made in memory, read back. */
#include "base/mem.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <stencil/stencil_picture.h>

enum { W = 37, H = 21 };

static void decode(st_bitmap *b, const uint8_t *bytes, size_t n)
{
    st_bitmap_options options = ST_BITMAP_OPTIONS_INIT;
    st_error err;
    options.stretch = ST_STRETCH_NEVER;
    if (st_bitmap_decode(b, bytes, n, "test", &options, &err) != ST_OK) fail_msg("%s", err.message);
    assert_int_equal(b->width, W);
    assert_int_equal(b->height, H);
}

static void test_rgb(void **state)
{
    (void)state;
    uint8_t pixels[W * H * 3], *bytes;
    size_t n;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 7);
    st_png_picture p = ST_PNG_PICTURE_INIT;
    p.pixels = pixels, p.width = W, p.height = H, p.channels = 3;
    st_bitmap b;
    assert_int_equal(st_png_encode(&bytes, &n, &p, NULL), ST_OK);
    decode(&b, bytes, n);
    assert_memory_equal(b.rgb, pixels, sizeof pixels);
    st_bitmap_free(&b);
    st_bytes_free(bytes);
    assert_int_equal(st_jpeg_encode(&bytes, &n, pixels, W, H, 90, NULL), ST_OK);
    decode(&b, bytes, n);
    assert_string_equal(b.format, "jpeg");
    st_bitmap_free(&b);
    st_bytes_free(bytes);
}

/* Decoding keeps the high byte, so the low one is looked at in a second picture, moved up. */
static void test_16_bits(void **state)
{
    (void)state;
    uint16_t samples[W * H], moved[W * H];
    for (size_t i = 0; i < W * H; i++) samples[i] = (uint16_t)(i * 83), moved[i] = (uint16_t)(samples[i] << 8);
    for (int which = 0; which < 2; which++) {
        const uint16_t *pixels = which ? moved : samples;
        uint8_t *bytes;
        size_t n;
        st_png_picture p = ST_PNG_PICTURE_INIT;
        p.pixels = pixels, p.width = W, p.height = H, p.bits = 16;
        st_bitmap b;
        assert_int_equal(st_png_encode(&bytes, &n, &p, NULL), ST_OK);
        decode(&b, bytes, n);
        assert_int_equal(b.bits, 16);
        for (size_t i = 0; i < W * H; i++) assert_int_equal(b.rgb[3 * i], pixels[i] >> 8);
        st_bitmap_free(&b);
        st_bytes_free(bytes);
    }
}

static void test_palette(void **state)
{
    (void)state;
    static const uint8_t palette[3][3] = { { 0, 0, 0 }, { 200, 10, 30 }, { 1, 2, 250 } };
    uint8_t pixels[W * H], *bytes;
    size_t n;
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i % 3);
    st_png_picture p = ST_PNG_PICTURE_INIT;
    p.pixels = pixels, p.width = W, p.height = H, p.palette = palette[0], p.n_palette = 3;
    st_bitmap b;
    assert_int_equal(st_png_encode(&bytes, &n, &p, NULL), ST_OK);
    decode(&b, bytes, n);
    for (size_t i = 0; i < sizeof pixels; i++) assert_memory_equal(b.rgb + 3 * i, palette[i % 3], 3);
    st_bitmap_free(&b);
    st_bytes_free(bytes);
}

static void test_refusals(void **state)
{
    (void)state;
    uint8_t pixels[W * H * 3] = { 3 }, *bytes = pixels;
    size_t n = 5;
    st_error err;
    const st_png_picture wrong[] = {
        { sizeof(st_png_picture), NULL, W, H, 1, 8, NULL, 0 },   { sizeof(st_png_picture), pixels, 0, H, 1, 8, NULL, 0 },
        { sizeof(st_png_picture), pixels, W, H, 2, 8, NULL, 0 }, { sizeof(st_png_picture), pixels, W, H, 3, 16, NULL, 0 },
        { sizeof(st_png_picture), pixels, W, H, 1, 4, NULL, 0 }, { sizeof(st_png_picture), pixels, W, H, 1, 8, pixels, 257 },
        { sizeof(st_png_picture), pixels, W, H, 3, 8, pixels, 9 }, { sizeof(st_png_picture), pixels, W, H, 1, 8, pixels, 3 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(st_png_encode(&bytes, &n, &wrong[i], &err), ST_ERR_INVALID_ARG);
        assert_null(bytes);
    }
    assert_int_equal(st_jpeg_encode(&bytes, &n, pixels, W, H, 0, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_encode(&bytes, &n, pixels, 70000, H, 90, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_encode(&bytes, &n, NULL, W, H, 90, &err), ST_ERR_INVALID_ARG);
    assert_null(bytes);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    uint8_t pixels[W * H * 3] = { 0 }, *bytes;
    size_t n;
    st_png_picture p = ST_PNG_PICTURE_INIT;
    p.pixels = pixels, p.width = W, p.height = H;
    for (int jpeg = 0; jpeg < 2; jpeg++) {
        st_status status = ST_ERR_NOMEM;
        for (uint64_t k = 1; status != ST_OK; k++) {
            assert_true(k < 100);
            st_mem_fail_after(k);
            status = jpeg ? st_jpeg_encode(&bytes, &n, pixels, W, H, 90, NULL) : st_png_encode(&bytes, &n, &p, NULL);
            st_mem_fail_after(0);
            assert_true(status == ST_OK || (status == ST_ERR_NOMEM && !bytes));
        }
        st_bytes_free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rgb),      cmocka_unit_test(test_16_bits),       cmocka_unit_test(test_palette),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
