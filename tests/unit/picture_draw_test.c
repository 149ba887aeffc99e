/* picture_draw_test.c: overlays and written files. Fill and outline are compared, pixel by pixel, with a dense mask and
 * the plain definition of a disc; what is written is read back.
 */
#include "picture_files.h"
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include "base/file.h"
#include "base/mem.h"
#include "picture/picture_internal.h"
#include "temp_folder.h"

static uint32_t random_state = 99;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * n) >> 32);
}

static st_bitmap make_bitmap(uint32_t w, uint32_t h)
{
    st_bitmap b = { .width = w, .height = h };
    b.rgb = st_malloc((size_t)w * h * 3);
    assert_non_null(b.rgb);
    for (size_t i = 0; i < (size_t)w * h * 3; i++) b.rgb[i] = (uint8_t)random_below(256);
    return b;
}

/* Column-major runs of a dense row-major mask. */
static st_rle make_rle(const uint8_t *mask, uint32_t w, uint32_t h)
{
    st_rle rle = { w, h, calloc((size_t)w * h + 2, sizeof(uint32_t)), 1 };
    assert_non_null(rle.counts);
    uint8_t current = 0;
    for (uint32_t x = 0; x < w; x++)
        for (uint32_t y = 0; y < h; y++) {
            if (mask[(size_t)y * w + x] != current) {
                current = mask[(size_t)y * w + x];
                rle.n_counts++;
            }
            rle.counts[rle.n_counts - 1]++;
        }
    return rle;
}

static uint8_t *make_mask(uint32_t w, uint32_t h, int kind)
{
    uint8_t *mask = calloc((size_t)w * h, 1);
    assert_non_null(mask);
    const float cx = (float)random_below(w), cy = (float)random_below(h), r = 1 + (float)random_below((w + h) / 2 + 1);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const float dx = (float)x - cx, dy = (float)y - cy;
            const int disc = dx * dx + dy * dy < r * r;
            const int bits[4] = { disc, disc && random_below(40) > 0, (int)random_below(2),
                                  1 }; /* disc, with holes, noise, all */
            mask[(size_t)y * w + x] = (uint8_t)bits[kind];
        }
    return mask;
}

static int inside(const uint8_t *mask, uint32_t w, uint32_t h, int x, int y)
{
    return x >= 0 && y >= 0 && x < (int)w && y < (int)h && mask[(size_t)y * w + (size_t)x];
}

/* A pixel that is not inside lies within `r` of pixel (x, y). */
static int near_outside(const uint8_t *mask, uint32_t w, uint32_t h, int x, int y, int r)
{
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++)
            if (dx * dx + dy * dy <= r * r && !inside(mask, w, h, x + dx, y + dy)) return 1;
    return 0;
}

static uint8_t blended(uint8_t colour, uint8_t old, float opacity)
{
    const unsigned a = (unsigned)(opacity * 256 + 0.5f);
    return (uint8_t)((colour * a + old * (256 - a) + 128) >> 8);
}

static void check_one_drawing(uint32_t w, uint32_t h, int kind, uint32_t outline, float fill)
{
    st_bitmap b = make_bitmap(w, h);
    uint8_t *mask = make_mask(w, h, kind), *before = malloc((size_t)w * h * 3);
    assert_non_null(before);
    memcpy(before, b.rgb, (size_t)w * h * 3);
    st_rle rle = make_rle(mask, w, h);
    const st_draw_style style = { .rgb = { 10, 200, 90 }, .fill = fill, .outline = outline };
    st_draw_instance(&b, &rle, &style);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            const size_t i = (size_t)y * w + x;
            const int line = mask[i] && outline && near_outside(mask, w, h, (int)x, (int)y, (int)outline);
            for (size_t c = 0; c < 3; c++) {
                const uint8_t old = before[3 * i + c];
                const uint8_t want = !mask[i] ? old : line ? style.rgb[c] : blended(style.rgb[c], old, fill);
                if (b.rgb[3 * i + c] != want)
                    fail_msg("%u x %u, kind %d, outline %u: pixel %u, %u is %d, expected %d", w, h, kind, outline, x, y,
                             b.rgb[3 * i + c], want);
            }
        }
    free(rle.counts);
    free(mask);
    free(before);
    st_bitmap_free(&b);
}

static void test_draw__fill_and_outline(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {
        { 1, 1 }, { 1, 40 }, { 40, 1 }, { 7, 5 }, { 37, 53 }, { 20, 300 }, { 150, 140 }
    };
    static const uint32_t outlines[] = { 0, 1, 2, 3, 7 };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t o = 0; o < sizeof outlines / sizeof outlines[0]; o++)
            for (int kind = 0; kind < 4; kind++)
                check_one_drawing(sizes[s][0], sizes[s][1], kind, outlines[o], o & 1 ? 0.0f : 0.4f);
}

static void test_draw__odd_masks_change_nothing(void **state)
{
    (void)state;
    st_bitmap b = make_bitmap(20, 10);
    uint8_t before[600];
    memcpy(before, b.rgb, sizeof before);
    uint32_t empty[] = { 200 }, other[] = { 0, 300 };
    st_rle none = { 20, 10, empty, 1 }, another = { 30, 10, other, 2 }, null = { 20, 10, NULL, 0 };
    const st_draw_style style = { .rgb = { 1, 2, 3 }, .fill = 1, .outline = 3, .label = "x" };
    st_draw_instance(&b, &none, &style);
    st_draw_instance(&b, &another, &style);
    st_draw_instance(&b, &null, &style);
    st_draw_instance(&b, NULL, &style);
    st_draw_instance(&b, &none, NULL);
    st_draw_instance(NULL, &none, &style);
    assert_memory_equal(b.rgb, before, sizeof before);
    uint32_t too_long[] = { 190, 4000000000u, 7, 4000000000u }; /* runs beyond the picture stop at its end */
    st_rle wild = { 20, 10, too_long, 4 };
    st_draw_instance(&b, &wild, &style);
    assert_memory_not_equal(b.rgb, before, sizeof before);
    st_bitmap_free(&b);
}

/* Boxes that leave the picture, and ones that are no numbers, are clipped; labels of any length at any corner stay
 * inside. */
static void test_draw__boxes_and_labels_are_clipped(void **state)
{
    (void)state;
    static const float odd[] = { -1e30f, -5, 0, 0.5f, 7, 59.5f, 60, 61, 1e30f, INFINITY, -INFINITY, NAN };
    static const char *const labels[] = { NULL,
                                          "",
                                          "a",
                                          "a long label that does not fit anywhere",
                                          "gr\xc3\xb6\xc3\x9f"
                                          "e \xe2\x82\xac \xff\xfe \x80",
                                          "\xf0\x9f" };
    const size_t n_odd = sizeof odd / sizeof odd[0];
    const uint32_t sizes[][2] = { { 60, 40 }, { 1, 1 }, { 11, 12 }, { 9, 200 }, { 700, 8 } };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        st_bitmap b = make_bitmap(sizes[s][0], sizes[s][1]);
        for (int round = 0; round < 3000; round++) {
            const float box[4] = { odd[random_below((uint32_t)n_odd)], odd[random_below((uint32_t)n_odd)],
                                   odd[random_below((uint32_t)n_odd)], odd[random_below((uint32_t)n_odd)] };
            const st_draw_style style = { .rgb = { 255, 0, 0 }, .box = box, .label = labels[random_below(6)] };
            st_draw_instance(&b, NULL, &style);
        }
        st_bitmap_free(&b);
    }
}

static void test_draw__box_is_a_frame(void **state)
{
    (void)state;
    st_bitmap b = make_bitmap(40, 30);
    memset(b.rgb, 0, 40 * 30 * 3);
    const float box[4] = { 4.2f, 5.9f, 30.1f, 20.0f }; /* pixels 4..30, 5..19 */
    const st_draw_style style = { .rgb = { 255, 255, 255 }, .box = box };
    st_draw_instance(&b, NULL, &style);
    for (int y = 0; y < 30; y++)
        for (int x = 0; x < 40; x++) {
            const int in = x >= 4 && x <= 30 && y >= 5 && y <= 19, edge = x == 4 || x == 30 || y == 5 || y == 19;
            assert_int_equal(b.rgb[3 * (y * 40 + x)], in && edge ? 255 : 0);
        }
    st_bitmap_free(&b);
}

/* The letter's 5 x 7 pixels appear, readable, in a plate of the instance's colour; at four times the size they cover
 * sixteen times the area. */
static int count_text_pixels(uint32_t side, const char *label)
{
    st_bitmap b = { .width = side, .height = side };
    b.rgb = st_calloc((size_t)side * side, 3);
    assert_non_null(b.rgb);
    const float box[4] = { 2, (float)side / 2, (float)side - 2, (float)side - 2 };
    const st_draw_style style = { .rgb = { 255, 255, 0 }, .box = box, .label = label }; /* bright: black text */
    st_draw_instance(&b, NULL, &style);
    int n_plate = 0, n_text = 0;
    uint32_t x0 = side, y0 = side, x1 = 0, y1 = 0;
    for (uint32_t y = 0; y < side / 2; y++)
        for (uint32_t x = 0; x < side; x++) {
            if (b.rgb[3 * ((size_t)y * side + x)] < 128) continue;
            n_plate++;
            if (x < x0) x0 = x;
            if (y < y0) y0 = y;
            if (x >= x1) x1 = x + 1;
            if (y >= y1) y1 = y + 1;
        }
    assert_true(n_plate > 0);
    for (uint32_t y = y0; y < y1; y++)
        for (uint32_t x = x0; x < x1; x++) n_text += b.rgb[3 * ((size_t)y * side + x)] < 128;
    st_bitmap_free(&b);
    return n_text;
}

static void test_draw__label_is_readable(void **state)
{
    (void)state;
    assert_int_equal(count_text_pixels(224, "H"), 17); /* two stems of 7 and a bar of 3 */
    assert_int_equal(count_text_pixels(224, "HH"), 34);
    assert_int_equal(count_text_pixels(224, "\xc3\xa9"), count_text_pixels(224, "?"));
    const int large = count_text_pixels(2000, "H");
    assert_in_range(large, 17 * 16 * 85 / 100, 17 * 16 * 115 / 100); /* corners are rounded */
    for (int c = 33; c < 127; c++) { /* every character has pixels, and no two look the same */
        const char text[2] = { (char)c, 0 };
        assert_true(count_text_pixels(64, text) >= 2);
        for (int d = 32; d < c; d++)
            if (memcmp(st_font_glyph((char)c), st_font_glyph((char)d), ST_FONT_HEIGHT) == 0 &&
                st_font_drop((char)c) == st_font_drop((char)d))
                fail_msg("'%c' looks like '%c'", c, d);
    }
}

/* ------------------------------------------------------------------ palette */

/* Colours in OKLab, after the change of a kind of colour blindness (Machado et al. 2009, severity 1; in linear RGB). */
static const double blindness[4][3][3] = {
    { { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } },
    { { 0.152286, 1.052583, -0.204868 }, { 0.114503, 0.786281, 0.099216 }, { -0.003882, -0.048116, 1.051998 } },
    { { 0.367322, 0.860646, -0.227968 }, { 0.280085, 0.672501, 0.047413 }, { -0.011820, 0.042940, 0.968881 } },
    { { 1.255528, -0.076749, -0.178779 }, { -0.078411, 0.930809, 0.147602 }, { 0.004733, 0.691367, 0.303900 } },
};

static void multiply(double out[3], const double m[3][3], const double v[3])
{
    for (int i = 0; i < 3; i++) out[i] = m[i][0] * v[0] + m[i][1] * v[1] + m[i][2] * v[2];
}

static void to_oklab(double lab[3], const uint8_t rgb[3], int kind)
{
    static const double to_lms[3][3] = { { 0.4122214708, 0.5363325363, 0.0514459929 },
                                         { 0.2119034982, 0.6806995451, 0.1073969566 },
                                         { 0.0883024619, 0.2817188376, 0.6299787005 } };
    static const double to_lab[3][3] = { { 0.2104542553, 0.7936177850, -0.0040720468 },
                                         { 1.9779984951, -2.4285922050, 0.4505937099 },
                                         { 0.0259040371, 0.7827717662, -0.8086757660 } };
    double linear[3], seen[3], lms[3];
    for (int i = 0; i < 3; i++) {
        const double v = rgb[i] / 255.0;
        linear[i] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    multiply(seen, blindness[kind], linear);
    for (int i = 0; i < 3; i++) seen[i] = fmin(1, fmax(0, seen[i]));
    multiply(lms, to_lms, seen);
    for (int i = 0; i < 3; i++) lms[i] = cbrt(lms[i]);
    multiply(lab, to_lab, lms);
}

static double colour_distance(size_t i, size_t j)
{
    uint8_t a[3], b[3];
    double least = 10;
    st_draw_colour(i, a);
    st_draw_colour(j, b);
    for (int kind = 0; kind < 4; kind++) {
        double p[3], q[3], sum = 0;
        to_oklab(p, a, kind);
        to_oklab(q, b, kind);
        for (int c = 0; c < 3; c++) sum += (p[c] - q[c]) * (p[c] - q[c]);
        least = fmin(least, sqrt(sum));
    }
    return least;
}

static void expect_apart(size_t i, size_t j, double least)
{
    if (colour_distance(i, j) < least)
        fail_msg("colours %zu and %zu are %.3f apart, expected %.3f", i, j, colour_distance(i, j), least);
}

/* 0.02 is about what an eye just tells apart side by side. */
static void test_palette__neighbours_differ(void **state)
{
    (void)state;
    for (size_t i = 0; i < 48; i++) {
        expect_apart(i, i + 1, 0.1);
        expect_apart(i, i + 2, 0.1);
        expect_apart(i, i + 3, 0.09);
    }
    for (size_t i = 0; i < 24; i++)
        for (size_t j = 0; j < i; j++) expect_apart(i, j, i < 12 ? 0.07 : 0.045);
    uint8_t rgb[3];
    st_draw_colour(SIZE_MAX, rgb); /* any index */
}

/* ------------------------------------------------------------------ written files */

static void test_write__png_comes_back(void **state)
{
    const temp_folder *t = *state;
    static const uint32_t sizes[][2] = { { 1, 1 }, { 17, 5 }, { 300, 200 } };
    char *path = temp_path(t, "a.png");
    for (size_t s = 0; s < 3; s++)
        for (int channels = 1; channels <= 3; channels += 2) {
            st_error err = { 0 };
            const uint32_t w = sizes[s][0], h = sizes[s][1];
            st_bitmap b = make_bitmap(w, h), back;
            if (st_png_write(path, b.rgb, w, h, channels, &err) != ST_OK) fail_msg("%s", err.message);
            assert_int_equal(st_bitmap_load(&back, path, NULL, &err), ST_OK);
            assert_int_equal(back.width, w);
            assert_int_equal(back.height, h);
            assert_int_equal(back.bands, channels);
            for (size_t i = 0; i < (size_t)w * h * 3; i++)
                assert_int_equal(back.rgb[i], b.rgb[channels == 1 ? i / 3 : i]);
            st_bitmap_free(&back);
            st_bitmap_free(&b);
        }
    assert_int_equal(temp_count(t), 1); /* no temporary names are left */
    free(path);
}

static void test_write__jpeg_comes_back_nearly(void **state)
{
    const temp_folder *t = *state;
    char *path = temp_path(t, "a.jpg");
    st_error err = { 0 };
    st_bitmap b, back;
    assert_int_equal(st_bitmap_load(&b, PICTURES "png_rgb.png", NULL, &err), ST_OK);
    for (int quality = 50; quality <= 100; quality += 25) {
        double sum = 0;
        assert_int_equal(st_jpeg_write(path, b.rgb, b.width, b.height, quality, &err), ST_OK);
        assert_int_equal(st_bitmap_load(&back, path, NULL, &err), ST_OK);
        assert_string_equal(back.format, "jpeg");
        const size_t n = (size_t)b.width * b.height * 3;
        for (size_t i = 0; i < n; i++) sum += abs(b.rgb[i] - back.rgb[i]);
        assert_true(sum / (double)n < (quality == 100 ? 1.0 : 12.0));
        st_bitmap_free(&back);
    }
    st_bitmap_free(&b);
    assert_int_equal(temp_count(t), 1);
    free(path);
}

static void test_write__refused(void **state)
{
    const temp_folder *t = *state;
    static const uint8_t pixel[3] = { 1, 2, 3 };
    st_error err = { 0 };
    char *path = temp_path(t, "no/such/folder.png"), *plain = temp_path(t, "x");
    assert_int_equal(st_png_write(path, pixel, 1, 1, 3, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "no/such/folder.png"));
    assert_int_equal(st_jpeg_write(path, pixel, 1, 1, 90, &err), ST_ERR_IO);
    assert_int_equal(st_png_write(plain, pixel, 1, 1, 4, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_png_write(plain, pixel, 0, 1, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_png_write(plain, NULL, 1, 1, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_png_write(NULL, pixel, 1, 1, 3, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_write(plain, pixel, 1, 0, 90, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_write(plain, pixel, 65501, 1, 90, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_write(plain, pixel, 1, 1, 0, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_jpeg_write(plain, pixel, 1, 1, 101, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(temp_count(t), 0);
    free(path);
    free(plain);
}

/* Every allocation fails once: an error, no leak, and whatever was there before still is. */
static void test_write__out_of_memory(void **state)
{
    const temp_folder *t = *state;
    st_bitmap b = make_bitmap(50, 40);
    temp_write_text(t, "a", "precious");
    char *path = temp_path(t, "a");
    for (int jpeg = 0; jpeg < 2; jpeg++) {
        temp_write_text(t, "a", "precious");
        for (uint64_t k = 1;; k++) {
            st_error err = { 0 };
            char *text = NULL;
            size_t n = 0;
            assert_true(k < 200);
            st_mem_fail_after(k);
            const st_status status =
                jpeg ? st_jpeg_write(path, b.rgb, 50, 40, 80, &err) : st_png_write(path, b.rgb, 50, 40, 3, &err);
            st_mem_fail_after(0);
            if (status == ST_OK) {
                assert_true(k > 2);
                break;
            }
            assert_int_equal(status, ST_ERR_NOMEM);
            assert_int_equal(st_file_read(&text, &n, path, 100, &err), ST_OK);
            assert_string_equal(text, "precious");
            st_free(text);
            assert_int_equal(temp_count(t), 1);
        }
    }
    free(path);
    st_bitmap_free(&b);
}

/* A disk that is full, played by a limit on the size of files. */
static void test_write__disk_full(void **state)
{
    const temp_folder *t = *state;
    st_bitmap b = make_bitmap(500, 400);
    struct rlimit old, small = { 1000, RLIM_INFINITY };
    st_error err = { 0 };
    char *path = temp_path(t, "a.png");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const st_status png = st_png_write(path, b.rgb, 500, 400, 3, &err);
    const st_status jpeg = st_jpeg_write(path, b.rgb, 500, 400, 90, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(png, ST_ERR_IO);
    assert_int_equal(jpeg, ST_ERR_IO);
    assert_non_null(strstr(err.message, "a.png"));
    assert_int_equal(temp_count(t), 0);
    free(path);
    st_bitmap_free(&b);
}

static int set_up(void **state)
{
    static temp_folder folder;
    temp_folder_make(&folder);
    *state = &folder;
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_remove(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draw__fill_and_outline),
        cmocka_unit_test(test_draw__odd_masks_change_nothing),
        cmocka_unit_test(test_draw__boxes_and_labels_are_clipped),
        cmocka_unit_test(test_draw__box_is_a_frame),
        cmocka_unit_test(test_draw__label_is_readable),
        cmocka_unit_test(test_palette__neighbours_differ),
        cmocka_unit_test_setup_teardown(test_write__png_comes_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write__jpeg_comes_back_nearly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write__refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write__out_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_write__disk_full, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
