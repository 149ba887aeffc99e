/* picture_hostile_test.c: broken and malicious files. Each must give an error that names the file, or, where the damage
 * is not visible, a picture within the caps; never a crash, a hang, a leak or memory taken on a header's word (the
 * sanitizer builds of this test watch that).
 */
#include "picture_files.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <jpeglib.h>
#include "base/mem.h"
#include "temp_folder.h"

#define NAME "some/file.bin"

static uint32_t random_state = 12345;
static uint32_t random_below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * n) >> 32);
}

static st_status decode(st_bitmap *b, const uint8_t *data, size_t n, st_error *err)
{
    memset(err, 0, sizeof *err);
    const st_status status = st_bitmap_decode(b, data, n, NAME, NULL, err);
    if (status == ST_OK) {
        assert_non_null(b->rgb);
        assert_true(b->width > 0 && b->height > 0);
        return status;
    }
    assert_null(b->rgb);
    assert_int_equal(b->width, 0);
    assert_int_equal(err->status, status);
    if (strstr(err->message, NAME ": ") != err->message)
        fail_msg("message does not begin with the file: %s", err->message);
    return status;
}

static void expect_error(const uint8_t *data, size_t n, st_status want, const char *words)
{
    st_bitmap b;
    st_error err;
    const st_status status = decode(&b, data, n, &err);
    if (status != want) fail_msg("status %d, expected %d: %s", (int)status, (int)want, err.message);
    if (!strstr(err.message, words)) fail_msg("expected \"%s\" in: %s", words, err.message);
}

/* ------------------------------------------------------------------ cut files */

static const char *const samples[] = {
    "jpeg_420.jpg",
    "jpeg_progressive.jpg",
    "jpeg_cmyk_adobe.jpg",
    "jpeg_gray.jpg",
    "jpeg_orientation_6.jpg",
    "png_rgb.png",
    "png_palette4.png",
    "png_gray16_sensor.png",
    "png_rgb16_adam7.png",
    "png_orientation_profile.png",
    "png_orientation_zxmp.png",
    "webp_lossy.webp",
    "webp_lossless.webp",
    "webp_lossy_alpha.webp",
    "webp_animated_offset.webp",
    "webp_orientation_6.webp",
    "tiff_rgb_strips.tif",
    "tiff_rgb_tiles_deflate.tif",
    "tiff_rgb_planar_deflate.tif",
    "tiff_jpeg.tif",
    "tiff_ycbcr.tif",
    "tiff_group4.tif",
    "tiff_rgb_lzw.tif",
    "tiff_float_sensor.tif",
    "tiff_palette4.tif",
    "tiff_rgb_bigtiff.tif",
    "tiff_rgba_associated.tif",
    "heif_420.heic",
};
#define N_SAMPLES (sizeof samples / sizeof samples[0])

/* A TIFF may end in bytes that nothing points to, and group 4 data ends where its rows do; all else must miss what was
 * cut. */
static int may_be_cut(const char *name, size_t kept, size_t n)
{
    return (strncmp(name, "tiff", 4) == 0 && n - kept <= 8) || strcmp(name, "tiff_group4.tif") == 0;
}

static void test_hostile__cut_anywhere(void **state)
{
    (void)state;
    int n_refused = 0;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        size_t n;
        uint8_t *data = read_picture_file(samples[i], &n);
        const size_t step = n > 3000 || strstr(samples[i], "heif") ? 17 : 1;
        for (size_t kept = 0; kept < n; kept += step) {
            st_bitmap b;
            st_error err;
            uint8_t *part = malloc(kept ? kept : 1);
            assert_non_null(part);
            memcpy(part, data, kept);
            if (decode(&b, part, kept, &err) != ST_OK) n_refused++;
            else if (!may_be_cut(samples[i], kept, n))
                fail_msg("%s: cut to %zu of %zu bytes was accepted", samples[i], kept, n);
            st_bitmap_free(&b);
            free(part);
        }
        free(data);
    }
    assert_true(n_refused > 20000);
}

static void test_hostile__flipped_bits(void **state)
{
    (void)state;
    int n_done = 0;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        size_t n;
        uint8_t *data = read_picture_file(samples[i], &n);
        const int rounds = strstr(samples[i], "heif") ? 60 : 400;
        for (int round = 0; round < rounds; round++) {
            st_bitmap b;
            st_error err;
            uint8_t *copy = malloc(n);
            assert_non_null(copy);
            memcpy(copy, data, n);
            const uint32_t n_flips = 1 + random_below(4);
            const uint32_t reach =
                round & 1 ? (uint32_t)n : (uint32_t)(n < 200 ? n : 200); /* headers get half of them */
            for (uint32_t k = 0; k < n_flips; k++) copy[random_below(reach)] ^= (uint8_t)(1u << random_below(8));
            if (decode(&b, copy, n, &err) == ST_OK) st_bitmap_free(&b);
            free(copy);
            n_done++;
        }
        free(data);
    }
    assert_true(n_done > 10000);
}

/* Flipped headers again, in a process that may have only 400 MB more: nothing may run out of memory when at most a
 * million pixels are asked for, so no header's word, in our code or in a library, was taken for an allocation. */
static int flip_with_little_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    struct rlimit limit;
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld", &pages) != 1 || fclose(f) != 0) return 2;
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)400 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
#endif
    st_bitmap_options options = ST_BITMAP_OPTIONS_INIT;
    options.max_pixels = 1000000;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        size_t n;
        if (strstr(samples[i], "heif")) continue; /* its codecs allocate as they like */
        uint8_t *data = read_picture_file(samples[i], &n), *copy = malloc(n);
        if (!copy) return 2;
        for (int round = 0; round < 600; round++) {
            st_bitmap b;
            st_error err;
            memcpy(copy, data, n);
            for (uint32_t k = 0; k < 3; k++)
                copy[random_below((uint32_t)(n < 300 ? n : 300))] = (uint8_t)random_below(256);
            const st_status status = st_bitmap_decode(&b, copy, n, samples[i], &options, &err);
            if (status == ST_ERR_NOMEM) {
                fprintf(stderr, "%s\n", err.message);
                return 1;
            }
            st_bitmap_free(&b);
        }
        free(copy);
        free(data);
    }
    return 0;
}

static void test_hostile__headers_do_not_allocate(void **state)
{
    (void)state;
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(flip_with_little_memory());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ------------------------------------------------------------------ sizes */

static void put_be(uint8_t *p, uint32_t v, int n)
{
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

static void put_le(uint8_t *p, uint32_t v, int n)
{
    for (int i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static void set_png_size(uint8_t *d, uint32_t w, uint32_t h)
{
    put_be(d + 16, w, 4);
    put_be(d + 20, h, 4);
    put_be(d + 29, (uint32_t)crc32(0, d + 12, 17), 4);
}

static void set_jpeg_size(uint8_t *d, size_t n, uint32_t w, uint32_t h)
{
    for (size_t at = 2; at + 9 < n && d[at] == 0xFF; at += 2 + (size_t)(d[at + 2] << 8 | d[at + 3])) {
        if (d[at + 1] < 0xC0 || d[at + 1] > 0xC2) continue;
        put_be(d + at + 5, h, 2);
        put_be(d + at + 7, w, 2);
        return;
    }
    fail_msg("no frame header");
}

static uint32_t get_le(const uint8_t *p, int n)
{
    uint32_t v = 0;
    for (int i = n - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

/* The value field of a tag in the first directory of a little-endian file. */
static uint8_t *tiff_value(uint8_t *d, uint32_t tag)
{
    uint8_t *entry = d + get_le(d + 4, 4) + 2;
    for (uint32_t n = get_le(entry - 2, 2); n > 0; n--, entry += 12)
        if (get_le(entry, 2) == tag) return entry + 8;
    fail_msg("no tag %u", tag);
    return NULL;
}

static void set_tiff_size(uint8_t *d, uint32_t w, uint32_t h)
{
    put_le(tiff_value(d, 256), w, 4);
    put_le(tiff_value(d, 257), h, 4);
}

/* Canvas size of a file with VP8X, less one, in 24 bits. */
static void set_webp_size(uint8_t *d, uint32_t w, uint32_t h)
{
    assert_memory_equal(d + 12, "VP8X", 4);
    put_le(d + 24, w - 1, 3);
    put_le(d + 27, h - 1, 3);
}

static void set_size(const char *name, uint8_t *d, size_t n, uint32_t w, uint32_t h)
{
    if (strncmp(name, "png", 3) == 0) set_png_size(d, w, h);
    else if (strncmp(name, "jpeg", 4) == 0) set_jpeg_size(d, n, w, h);
    else if (strncmp(name, "tiff", 4) == 0) set_tiff_size(d, w, h);
    else set_webp_size(d, w, h);
}

static const char *const sized[] = { "png_rgb.png",          "png_rgb16_adam7.png",     "jpeg_420.jpg",
                                     "jpeg_progressive.jpg", "tiff_rgb_strips.tif",     "tiff_jpeg.tif",
                                     "tiff_ycbcr.tif",       "webp_orientation_6.webp", "webp_animated_offset.webp" };
#define N_SIZED (sizeof sized / sizeof sized[0])

static void test_hostile__giant_headers_take_no_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SIZED; i++) {
        size_t n;
        uint8_t *data = read_picture_file(sized[i], &n);
        set_size(sized[i], data, n, 65535, 65535);
        const uint64_t before = st_mem_n_calls();
        expect_error(data, n, ST_ERR_LIMIT, "65535 x 65535");
        assert_true(st_mem_n_calls() - before <= 1); /* the reader's own state, no pixels */
        free(data);
    }
}

/* libtiff itself finds that four tiles are too few for 65,535 x 65,535. */
static void test_hostile__giant_tiled_tiff(void **state)
{
    (void)state;
    size_t n;
    uint8_t *data = read_picture_file("tiff_rgb_tiles_deflate.tif", &n);
    set_tiff_size(data, 65535, 65535);
    const uint64_t before = st_mem_n_calls();
    expect_error(data, n, ST_ERR_FORMAT, "TIFF");
    assert_int_equal(st_mem_n_calls(), before);
    free(data);
}

static void test_hostile__empty_pictures(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_SIZED; i++) {
        if (strncmp(sized[i], "webp", 4) == 0) continue; /* its header cannot say 0 */
        for (int side = 0; side < 3; side++) {
            size_t n;
            uint8_t *data = read_picture_file(sized[i], &n);
            set_size(sized[i], data, n, side == 1 ? 29 : 0, side == 0 ? 21 : 0);
            st_bitmap b;
            st_error err;
            const st_status status = decode(&b, data, n, &err);
            if (status != ST_ERR_FORMAT && status != ST_ERR_UNSUPPORTED)
                fail_msg("%s with a side of 0: status %d", sized[i], (int)status);
            free(data);
        }
    }
}

static void test_hostile__webp_frame_of_no_size(void **state)
{
    (void)state;
    size_t n;
    uint8_t *data = read_picture_file("webp_lossy.webp", &n);
    assert_memory_equal(data + 23, "\x9d\x01\x2a", 3);
    put_le(data + 26, 0, 2);
    expect_error(data, n, ST_ERR_FORMAT, "WebP");
    free(data);
}

/* Larger than the file, smaller than the cap: found before memory for the pixels is taken where the format's best ratio
 * is known. */
static void test_hostile__png_whose_data_cannot_fill_it(void **state)
{
    (void)state;
    size_t n;
    uint8_t *data = read_picture_file("png_rgb.png", &n);
    set_png_size(data, 16000, 16000);
    expect_error(data, n, ST_ERR_FORMAT, "truncated");
    set_png_size(data, 29, 22);
    expect_error(data, n, ST_ERR_FORMAT, "PNG");
    set_png_size(data, 29, 20); /* more data than needed is harmless */
    st_bitmap b;
    st_error err;
    assert_int_equal(decode(&b, data, n, &err), ST_OK);
    st_bitmap_free(&b);
    free(data);
}

static void test_hostile__tiff_rows_and_tiles_that_cost_too_much(void **state)
{
    (void)state;
    size_t n;
    uint8_t *data = read_picture_file("tiff_rgb_strips.tif", &n);
    set_tiff_size(data, 299000000, 1); /* below the pixel cap: 900 MB a row */
    st_bitmap b;
    st_error err;
    assert_int_equal(decode(&b, data, n, &err), ST_ERR_LIMIT);
    free(data);
    data = read_picture_file("tiff_rgb_tiles.tif", &n);
    put_le(tiff_value(data, 322), 65536, 4);
    put_le(tiff_value(data, 323), 65536, 4);
    assert_int_equal(decode(&b, data, n, &err), ST_ERR_LIMIT);
    assert_non_null(strstr(err.message, "tiles of 65536 x 65536"));
    free(data);
}

/* ------------------------------------------------------------------ bombs */

typedef struct growing {
    uint8_t *data;
    size_t n, room;
} growing;

static void add(growing *g, const void *bytes, size_t n)
{
    if (g->n + n > g->room) {
        g->room = 2 * (g->n + n);
        g->data = realloc(g->data, g->room);
        assert_non_null(g->data);
    }
    memcpy(g->data + g->n, bytes, n);
    g->n += n;
}

static void add_chunk(growing *g, const char *kind, const uint8_t *data, size_t n)
{
    uint8_t word[4];
    put_be(word, (uint32_t)n, 4);
    add(g, word, 4);
    add(g, kind, 4);
    if (n) add(g, data, n);
    put_be(word, (uint32_t)crc32(crc32(0, (const Bytef *)kind, 4), n ? data : (const uint8_t *)"", (uInt)n), 4);
    add(g, word, 4);
}

/* `n` zeros, deflated, behind `prefix`. */
static uint8_t *deflated_zeros(size_t n, const char *prefix, size_t n_prefix, size_t *n_out)
{
    uint8_t *zeros = calloc(n, 1);
    uLongf room = compressBound((uLong)n);
    uint8_t *out = malloc(n_prefix + room);
    assert_true(zeros && out);
    memcpy(out, prefix, n_prefix);
    assert_int_equal(compress2(out + n_prefix, &room, zeros, (uLong)n, 9), Z_OK);
    free(zeros);
    *n_out = n_prefix + room;
    return out;
}

static void add_png_head(growing *g, uint32_t w, uint32_t h)
{
    uint8_t head[13] = { 0 };
    put_be(head, w, 4);
    put_be(head + 4, h, 4);
    head[8] = 8; /* gray, 8 bits */
    add(g, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(g, "IHDR", head, sizeof head);
}

/* 64 MB of zeros in the pixel stream, in a text, in a profile and in an XMP packet of a 10 x 10 picture. */
static void test_hostile__zlib_bombs(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *prefix;
        size_t n_prefix;
    } where[] = { { "zTXt", "Raw profile type exif\0", 23 },
                  { "iTXt", "XML:com.adobe.xmp\0\1\0\0", 22 },
                  { "iCCP", "x\0", 3 },
                  { "zTXt", "Comment\0", 9 } };
    growing g = { 0 };
    size_t n;
    add_png_head(&g, 10, 10);
    for (size_t i = 0; i < sizeof where / sizeof where[0]; i++) {
        uint8_t *bomb = deflated_zeros((size_t)64 << 20, where[i].prefix, where[i].n_prefix, &n);
        add_chunk(&g, where[i].kind, bomb, n);
        free(bomb);
    }
    uint8_t *pixels = deflated_zeros((size_t)64 << 20, "", 0, &n);
    add_chunk(&g, "IDAT", pixels, n);
    free(pixels);
    add_chunk(&g, "IEND", NULL, 0);
    st_bitmap b;
    st_error err;
    assert_int_equal(decode(&b, g.data, g.n, &err), ST_OK);
    assert_int_equal(b.width * b.height, 100);
    assert_int_equal(b.orientation, 1);
    st_bitmap_free(&b);
    free(g.data);
}

/* 20,000 strips of one row that are all the same few bytes, each of which would inflate to 60 MB: 1.2 TB of work. */
static void test_hostile__tiff_of_shared_strips(void **state)
{
    (void)state;
    enum { ROWS = 20000, N_TAGS = 9, ARRAYS = 8 + 2 + 12 * N_TAGS + 4 };
    static const uint32_t tags[N_TAGS][4] = {
        /* tag, type, count, value */
        { 256, 4, 1, 1000 },  { 257, 4, 1, ROWS }, { 258, 3, 1, 8 },
        { 259, 3, 1, 8 },     { 262, 3, 1, 1 },    { 273, 4, ROWS, ARRAYS },
        { 277, 3, 1, 60000 }, { 278, 4, 1, 1 },    { 279, 4, ROWS, ARRAYS + 4 * ROWS }
    };
    const size_t n = ARRAYS + 8 * ROWS + 16;
    uint8_t *data = calloc(n, 1);
    assert_non_null(data);
    memcpy(data, "II*\0\10\0\0\0\11\0", 10);
    for (size_t i = 0; i < N_TAGS; i++) {
        put_le(data + 10 + 12 * i, tags[i][0], 2);
        put_le(data + 12 + 12 * i, tags[i][1], 2);
        put_le(data + 14 + 12 * i, tags[i][2], 4);
        put_le(data + 18 + 12 * i, tags[i][3], 4);
    }
    for (size_t i = 0; i < ROWS; i++) {
        put_le(data + ARRAYS + 4 * i, ARRAYS + 8 * ROWS, 4);
        put_le(data + ARRAYS + 4 * (ROWS + i), 16, 4);
    }
    expect_error(data, n, ST_ERR_LIMIT, "decoded");
    free(data);
}

/* The last scan of a progressive file, once more and once more: each repeats a pass over the whole picture. */
static void test_hostile__jpeg_with_endless_scans(void **state)
{
    (void)state;
    size_t n, last = 0;
    uint8_t *data = read_picture_file("jpeg_progressive.jpg", &n);
    for (size_t at = 0; at + 1 < n; at++)
        if (data[at] == 0xFF && data[at + 1] == 0xDA) last = at;
    assert_true(last > 0);
    growing g = { 0 };
    add(&g, data, n - 2);
    for (int i = 0; i < 2000; i++) add(&g, data + last, n - 2 - last);
    add(&g, "\xff\xd9", 2);
    expect_error(g.data, g.n, ST_ERR_LIMIT, "scans");
    free(g.data);
    free(data);
}

/* ------------------------------------------------------------------ not pictures */

static void test_hostile__not_a_picture(void **state)
{
    (void)state;
    expect_error((const uint8_t *)"", 0, ST_ERR_FORMAT, "empty");
    expect_error((const uint8_t *)"x", 1, ST_ERR_FORMAT, "begins with 78 00");
    expect_error((const uint8_t *)"#include <stdio.h>\n", 19, ST_ERR_FORMAT, "23 69 6e 63");
    expect_error((const uint8_t *)"GIF89a\1\0\1\0", 10, ST_ERR_UNSUPPORTED, "is GIF");
    expect_error((const uint8_t *)"RIFF\4\0\0\0WAVEfmt ", 16, ST_ERR_FORMAT, "not a picture");
    expect_error((const uint8_t *)"%PDF-1.7", 8, ST_ERR_UNSUPPORTED, "is PDF");
    expect_error((const uint8_t *)"\x89PNG\r\n\x1a\n", 8, ST_ERR_FORMAT, "IHDR");
    expect_error((const uint8_t *)"\xff\xd8\xff", 3, ST_ERR_FORMAT, "Premature");
    expect_error((const uint8_t *)"II*\0", 4, ST_ERR_FORMAT, "TIFF");
    expect_error((const uint8_t *)"II*\0\xff\xff\xff\xff", 8, ST_ERR_FORMAT, "TIFF");
    expect_error((const uint8_t *)"RIFF\4\0\0\0WEBP", 12, ST_ERR_FORMAT, "WebP");
}

static void test_hostile__paths(void **state)
{
    (void)state;
    temp_folder temp;
    temp_folder_make(&temp);
    const char *folder = temp.path;
    st_bitmap b;
    st_error err = { 0 };
    char path[600];
    assert_int_equal(st_bitmap_load(&b, folder, NULL, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, folder));
    snprintf(path, sizeof path, "%s/none.jpg", folder);
    assert_int_equal(st_bitmap_load(&b, path, NULL, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "none.jpg"));
    snprintf(path, sizeof path, "%s/a\x1b[2J\n.txt", folder); /* a name that would clear the terminal */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs("hello, world\n", f);
    fclose(f);
    assert_int_equal(st_bitmap_load(&b, path, NULL, &err), ST_ERR_FORMAT);
    assert_null(strchr(err.message, 0x1b));
    assert_null(strchr(err.message, '\n'));
    temp_folder_remove(&temp);
    assert_int_equal(st_bitmap_load(&b, NULL, NULL, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_bitmap_decode(&b, NULL, 5, NAME, NULL, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_bitmap_decode(&b, "GIF8", 4, NAME, NULL, NULL), ST_ERR_UNSUPPORTED); /* without an st_error */
}

/* A JPEG with broken entropy data is drawn over and noted, as Pillow draws it; one without its end is refused. */
static void test_hostile__damaged_jpeg(void **state)
{
    (void)state;
    size_t n;
    st_bitmap b;
    st_error err;
    uint8_t *data = read_picture_file("jpeg_444.jpg", &n);
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    const size_t kept = n - 120; /* a hole before the end marker */
    memcpy(copy, data, kept);
    memcpy(copy + kept, "\xff\xd9", 2);
    assert_int_equal(decode(&b, copy, kept + 2, &err), ST_OK);
    assert_int_equal(b.damaged, 1);
    st_bitmap_free(&b);
    expect_error(copy, kept, ST_ERR_FORMAT, "Premature end");
    free(copy);
    free(data);
}

/* A JPEG may hold any number of components without a meaning. */
static void test_hostile__jpeg_of_two_components(void **state)
{
    (void)state;
    struct jpeg_compress_struct j;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL, black[16 * 2] = { 0 };
    unsigned long n = 0;
    JSAMPROW row = black;
    j.err = jpeg_std_error(&errors);
    jpeg_create_compress(&j);
    jpeg_mem_dest(&j, &data, &n);
    j.image_width = j.image_height = 16;
    j.input_components = 2;
    j.in_color_space = JCS_UNKNOWN;
    jpeg_set_defaults(&j);
    jpeg_start_compress(&j, TRUE);
    while (j.next_scanline < 16) jpeg_write_scanlines(&j, &row, 1);
    jpeg_finish_compress(&j);
    jpeg_destroy_compress(&j);
    expect_error(data, n, ST_ERR_UNSUPPORTED, "2 components");
    free(data);
}

/* Colour models that are well-formed and cannot be shown are named. */
static void test_hostile__tiff_without_a_use(void **state)
{
    (void)state;
    static const struct {
        uint32_t tag, value;
        const char *words;
    } changes[] = { { 262, 8, "photometric interpretation) 8" }, { 339, 5, "sample format 5" }, { 262, 5, "ink set" } };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        size_t n;
        uint8_t *data = read_picture_file(i == 1 ? "tiff_float_unit.tif" : "tiff_rgb_strips.tif", &n);
        put_le(tiff_value(data, changes[i].tag), changes[i].value, 2);
        expect_error(data, n, ST_ERR_UNSUPPORTED, changes[i].words);
        free(data);
    }
    size_t n;
    uint8_t *data = read_picture_file("tiff_palette4.tif", &n);
    put_le(tiff_value(data, 320) - 8, 60000, 2); /* the colour map becomes an unknown tag */
    expect_error(data, n, ST_ERR_FORMAT, "TIFF");
    free(data);
}

/* ------------------------------------------------------------------ out of memory */

static void test_hostile__every_allocation_may_fail(void **state)
{
    (void)state;
    uint64_t n_failed = 0;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        size_t n;
        uint8_t *data = read_picture_file(samples[i], &n);
        for (uint64_t k = 1;; k++) {
            st_bitmap b;
            st_error err;
            assert_true(k < 1000);
            st_mem_fail_after(k);
            const st_status status = decode(&b, data, n, &err);
            st_mem_fail_after(0);
            if (status == ST_OK) {
                st_bitmap_free(&b);
                break;
            }
#ifndef ST_HAVE_HEIF
            if (status == ST_ERR_UNSUPPORTED) break;
#endif
            if (status != ST_ERR_NOMEM)
                fail_msg("%s, allocation %d: status %d, %s", samples[i], (int)k, (int)status, err.message);
            n_failed++;
        }
        free(data);
    }
    assert_true(n_failed > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile__cut_anywhere),
        cmocka_unit_test(test_hostile__flipped_bits),
        cmocka_unit_test(test_hostile__headers_do_not_allocate),
        cmocka_unit_test(test_hostile__giant_headers_take_no_memory),
        cmocka_unit_test(test_hostile__giant_tiled_tiff),
        cmocka_unit_test(test_hostile__empty_pictures),
        cmocka_unit_test(test_hostile__webp_frame_of_no_size),
        cmocka_unit_test(test_hostile__png_whose_data_cannot_fill_it),
        cmocka_unit_test(test_hostile__tiff_rows_and_tiles_that_cost_too_much),
        cmocka_unit_test(test_hostile__tiff_of_shared_strips),
        cmocka_unit_test(test_hostile__zlib_bombs),
        cmocka_unit_test(test_hostile__jpeg_with_endless_scans),
        cmocka_unit_test(test_hostile__not_a_picture),
        cmocka_unit_test(test_hostile__paths),
        cmocka_unit_test(test_hostile__damaged_jpeg),
        cmocka_unit_test(test_hostile__jpeg_of_two_components),
        cmocka_unit_test(test_hostile__tiff_without_a_use),
        cmocka_unit_test(test_hostile__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
