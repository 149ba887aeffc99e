/* picture_files_test.c: every format and mode against the pixels it must give. The files, the pixels and the manifest
 * come from tests/reference/make_picture_files.py: the pixels are Pillow's wherever Pillow has an answer.
 */
#include "picture_files.h"

/* The manifest must hold at least this many lines per format: an empty one would pass everything. */
static const struct {
    const char *format;
    int n;
} expected[] = { { "jpeg", 20 }, { "png", 40 }, { "webp", 10 }, { "tiff", 70 } };
#define N_EXPECTED (sizeof expected / sizeof expected[0])

static int largest_difference(const uint8_t *a, const uint8_t *b, size_t n)
{
    int worst = 0;
    for (size_t i = 0; i < n; i++) {
        const int d = abs(a[i] - b[i]);
        if (d > worst) worst = d;
    }
    return worst;
}

static void check_bitmap(const st_bitmap *b, const manifest_line *m)
{
    char name[100];
    size_t n;
    snprintf(name, sizeof name, "%s.rgb", m->file);
    uint8_t *want = read_picture_file(name, &n);
    if (b->width != m->width || b->height != m->height)
        fail_msg("%s: got %u x %u, expected %u x %u", m->file, b->width, b->height, m->width, m->height);
    assert_int_equal(n, (size_t)m->width * m->height * 3);
    const int worst = largest_difference(b->rgb, want, n);
    if (worst > m->tolerance) fail_msg("%s: a sample differs by %d, allowed %d", m->file, worst, m->tolerance);
    free(want);
    assert_string_equal(b->format, m->format);
    if (b->orientation != m->orientation)
        fail_msg("%s: orientation %d, expected %d", m->file, b->orientation, m->orientation);
    if (b->bits != m->bits || b->bands != m->bands)
        fail_msg("%s: %d bits, %d bands, expected %d and %d", m->file, b->bits, b->bands, m->bits, m->bands);
    if (b->stretched != m->stretched || b->low != m->low || b->high != m->high)
        fail_msg("%s: stretched %d from %.9g to %.9g, expected %d, %.9g, %.9g", m->file, b->stretched, (double)b->low,
                 (double)b->high, m->stretched, (double)m->low, (double)m->high);
    assert_int_equal(b->damaged, 0);
}

static FILE *open_manifest(void)
{
    FILE *f = fopen(PICTURES "manifest.txt", "r");
    assert_non_null(f);
    return f;
}

static void test_files__give_the_reference_pixels(void **state)
{
    (void)state;
    FILE *f = open_manifest();
    int n_seen[N_EXPECTED] = { 0 };
    for (manifest_line m; next_line(f, &m);) {
        char path[512];
        st_bitmap b;
        st_error err = { 0 };
        if (!st_bitmap_can_read(m.format)) continue; /* HEIF: the next test says whether it was expected */
        snprintf(path, sizeof path, "%s%s", PICTURES, m.file);
        if (st_bitmap_load(&b, path, NULL, &err) != ST_OK) fail_msg("%s", err.message);
        check_bitmap(&b, &m);
        st_bitmap_free(&b);
        assert_null(b.rgb);
        for (size_t i = 0; i < N_EXPECTED; i++) n_seen[i] += strcmp(m.format, expected[i].format) == 0;
    }
    fclose(f);
    for (size_t i = 0; i < N_EXPECTED; i++) {
        if (n_seen[i] < expected[i].n)
            fail_msg("%d %s files, expected at least %d", n_seen[i], expected[i].format, expected[i].n);
        assert_true(st_bitmap_can_read(expected[i].format));
    }
}

static void test_files__from_memory_without_a_name(void **state)
{
    (void)state;
    FILE *f = open_manifest();
    int n_seen = 0;
    for (manifest_line m; next_line(f, &m); n_seen++) {
        size_t n;
        st_bitmap b;
        st_error err = { 0 };
        if (!st_bitmap_can_read(m.format)) continue;
        uint8_t *data = read_picture_file(m.file, &n);
        if (st_bitmap_decode(&b, data, n, NULL, NULL, &err) != ST_OK) fail_msg("%s: %s", m.file, err.message);
        check_bitmap(&b, &m);
        st_bitmap_free(&b);
        free(data);
    }
    fclose(f);
    assert_true(n_seen > 140);
}

static void test_files__heif_matches_the_build(void **state)
{
    (void)state;
    size_t n;
    st_bitmap b;
    st_error err = { 0 };
    uint8_t *data = read_picture_file("heif_420.heic", &n);
    const st_status status = st_bitmap_decode(&b, data, n, "a.heic", NULL, &err);
    free(data);
#ifdef ST_HAVE_HEIF
    assert_true(st_bitmap_can_read("heif"));
    assert_int_equal(status, ST_OK);
    st_bitmap_free(&b);
#else
    assert_false(st_bitmap_can_read("heif"));
    assert_int_equal(status, ST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "libheif"));
#endif
    assert_false(st_bitmap_can_read("gif"));
    assert_false(st_bitmap_can_read(NULL));
}

/* The name says nothing: a PNG called .jpg is a PNG. */
static void test_files__magic_decides(void **state)
{
    (void)state;
    size_t n;
    st_bitmap b;
    st_error err = { 0 };
    uint8_t *data = read_picture_file("png_rgb.png", &n);
    assert_int_equal(st_bitmap_decode(&b, data, n, "photo.jpg", NULL, &err), ST_OK);
    assert_string_equal(b.format, "png");
    st_bitmap_free(&b);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files__give_the_reference_pixels),
        cmocka_unit_test(test_files__from_memory_without_a_name),
        cmocka_unit_test(test_files__heif_matches_the_build),
        cmocka_unit_test(test_files__magic_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
