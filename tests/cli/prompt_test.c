/* prompt_test.c: what clicks are made of on their way into the program and out of it: coordinates as words, lines from a
 * pipe, .npy files with hostile ones among them, and the spellings of a clicked object.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "front/coordinates.h"
#include "front/lines.h"
#include "front/npy.h"
#include "front/overlay.h"
#include "front/report.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- coordinates ---- */

static void words_become_points_and_boxes(void **state)
{
    (void)state;
    st_point p;
    st_region r;
    st_exemplar e;
    assert_null(st_read_point(&p, "12,0.5"));
    assert_true(p.x == 12.0f && p.y == 0.5f && p.positive == 1);
    assert_null(st_read_point(&p, "1e2,0:neg"));
    assert_true(p.x == 100.0f && p.y == 0.0f && p.positive == 0);
    assert_null(st_read_point(&p, "3,4:pos"));
    assert_true(p.positive == 1);
    assert_null(st_read_region(&r, "1,2,3.25,4"));
    assert_true(r.x0 == 1.0f && r.y0 == 2.0f && r.x1 == 3.25f && r.y1 == 4.0f);
    assert_null(st_read_exemplar(&e, "1,2,3,4:neg"));
    assert_true(e.x0 == 1.0f && e.y1 == 4.0f && e.negative == 1);
    assert_null(st_read_exemplar(&e, "1,2,3,4"));
    assert_int_equal(e.negative, 0);
}

static void expect(const char *got, const char *part, const char *text)
{
    if (!got || !strstr(got, part))
        fail_msg("\"%s\": expected a sentence with \"%s\", got \"%s\"", text, part, got ? got : "none");
}

static void wrong_words_are_told(void **state)
{
    (void)state;
    st_point p;
    st_region r;
    st_exemplar e;
    static const char *const points[] = { "",     ",",     "1",     "1,",    ",1",   "1,2,3", "1;2",      "-1,2",
                                          "1,-2", "nan,1", "1,inf", "0x1,2", " 1,2", "1,2 ",  "1,2,:neg", "1e10,1" };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        expect(st_read_point(&p, points[i]), "two numbers X,Y", points[i]);
    static const char *const signs[] = { "1,2:", "1,2:negative", "1,2:NEG", "1,2:neg:neg", "1,2:1" };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        expect(st_read_point(&p, signs[i]), ":neg or :pos", signs[i]);
    static const char *const boxes[] = { "", "1,2,3", "1,2,3,4,5", "1,2,3,x", "1,,3,4", "-1,2,3,4", "1,2,3,4," };
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        expect(st_read_region(&r, boxes[i]), "four numbers X0,Y0,X1,Y1", boxes[i]);
        expect(st_read_exemplar(&e, boxes[i]), "four numbers X0,Y0,X1,Y1", boxes[i]);
    }
    /* Swapped corners, corners that meet, and corners that meet once they are floats. */
    static const char *const swapped[] = { "3,2,1,4", "1,4,3,2", "1,2,1,4", "1,2,3,2", "16777216,2,16777217,4" };
    for (size_t i = 0; i < sizeof swapped / sizeof *swapped; i++) {
        expect(st_read_region(&r, swapped[i]), "X0 < X1", swapped[i]);
        expect(st_read_exemplar(&e, swapped[i]), "X0 < X1", swapped[i]);
    }
    expect(st_read_region(&r, "1,2,3,4:neg"), "a region is the object itself", "a region with a sign");
    char *endless = malloc(100001);
    assert_non_null(endless);
    memset(endless, '1', 100000);
    endless[100000] = '\0';
    expect(st_read_point(&p, endless), "two numbers", "a long word");
    expect(st_read_region(&r, endless), "four numbers", "a long word");
    expect(st_read_exemplar(&e, endless), "four numbers", "a long word");
    free(endless);
}

/* ---- lines ---- */

static void push(int fd, const char *text, size_t n)
{
    while (n) {
        const ssize_t done = write(fd, text, n);
        assert_true(done > 0);
        text += done;
        n -= (size_t)done;
    }
}

static void expect_line(st_lines *l, st_line kind, const char *text)
{
    const char *line;
    size_t n;
    assert_int_equal(st_lines_next(l, &line, &n), kind);
    if (!text) return;
    assert_int_equal(n, strlen(text));
    assert_memory_equal(line, text, n);
}

static void lines_of_any_length(void **state)
{
    (void)state;
    int ends[2];
    st_lines l;
    assert_int_equal(pipe(ends), 0);
    assert_true(st_lines_init(&l, ends[0], 8, NULL));
    static const char text[] = "one\n\n12345678\n123456789\nafter\n"
                               "a very long line that goes on and on\nb\r\n1234567890123456789012\nlast";
    push(ends[1], text, sizeof text - 1);
    close(ends[1]);
    expect_line(&l, ST_LINE_WHOLE, "one");
    expect_line(&l, ST_LINE_WHOLE, "");
    expect_line(&l, ST_LINE_WHOLE, "12345678");
    expect_line(&l, ST_LINE_TOO_LONG, NULL);
    expect_line(&l, ST_LINE_WHOLE, "after");
    expect_line(&l, ST_LINE_TOO_LONG, NULL);
    expect_line(&l, ST_LINE_WHOLE, "b\r");
    expect_line(&l, ST_LINE_TOO_LONG, NULL);
    expect_line(&l, ST_LINE_WHOLE, "last");
    expect_line(&l, ST_LINE_END, NULL);
    expect_line(&l, ST_LINE_END, NULL);
    st_lines_free(&l);
    close(ends[0]);
}

/* The last line is too long and has no end; a line of the greatest length has none either. */
static void lines_end_anywhere(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        st_line kind;
    } cases[] = { { "123456789", ST_LINE_TOO_LONG },
                  { "12345678", ST_LINE_WHOLE },
                  { "1234567890123456789", ST_LINE_TOO_LONG },
                  { "", ST_LINE_END } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int ends[2];
        st_lines l;
        assert_int_equal(pipe(ends), 0);
        assert_true(st_lines_init(&l, ends[0], 8, NULL));
        push(ends[1], cases[i].text, strlen(cases[i].text));
        close(ends[1]);
        expect_line(&l, cases[i].kind, cases[i].kind == ST_LINE_WHOLE ? cases[i].text : NULL);
        expect_line(&l, ST_LINE_END, NULL);
        st_lines_free(&l);
        close(ends[0]);
    }
}

static void *set_soon(void *flag)
{
    usleep(50000);
    st_cancel_set(flag);
    return NULL;
}

static void waiting_for_a_line_can_be_cancelled(void **state)
{
    (void)state;
    int ends[2];
    st_lines l;
    pthread_t thread;
    st_cancel *flag = st_cancel_new();
    assert_non_null(flag);
    assert_int_equal(pipe(ends), 0);
    assert_true(st_lines_init(&l, ends[0], 8, flag));
    push(ends[1], "half", 4); /* and nothing more */
    assert_int_equal(pthread_create(&thread, NULL, set_soon, flag), 0);
    expect_line(&l, ST_LINE_STOPPED, NULL);
    pthread_join(thread, NULL);
    st_lines_free(&l);
    st_cancel_free(flag);
    close(ends[0]), close(ends[1]);
}

/* ---- .npy ---- */

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/prompt_test.XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/a.npy", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* Magic, version 1.0, the header as given, and then n bytes. */
static void put(const char *header, const void *values, size_t n)
{
    const size_t length = strlen(header);
    const unsigned char start[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)
    };
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(start, 1, 10, f), 10);
    assert_int_equal(fwrite(header, 1, length, f), length);
    if (n) assert_int_equal(fwrite(values, 1, n, f), n);
    fclose(f);
}

static const float six[6] = { 1.0f, -2.5f, 3.0f, 1e-20f, 5.0f, -6.0f };

static void npy_reads_what_numpy_writes(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                   \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 2, 3), }\n",
        "{\"shape\": (2,3), \"fortran_order\": False, \"descr\": \"<f4\"}",
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        float *got = NULL;
        st_error err;
        put(headers[i], six, sizeof six);
        if (st_npy_read(&got, path, 2, 3, &err) != ST_OK) fail_msg("%s", err.message);
        assert_memory_equal(got, six, sizeof six);
        free(got);
    }
    const double wide[6] = { 1.0, -2.5, 3.0, 0.1, 5.0, -6.0 };
    float *got = NULL, *back = NULL;
    put("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }\n", wide, sizeof wide);
    assert_int_equal(st_npy_read(&got, path, 3, 2, NULL), ST_OK);
    for (size_t i = 0; i < 6; i++) assert_true(got[i] == (float)wide[i]);
    free(got);
    assert_int_equal(st_npy_write(path, six, 3, 2, NULL), ST_OK);
    assert_int_equal(st_npy_read(&back, path, 3, 2, NULL), ST_OK);
    assert_memory_equal(back, six, sizeof six);
    free(back);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 128 + sizeof six); /* values at a multiple of 64, as the format wants it */
}

static void refused(st_status status, const char *part)
{
    float *got = (float *)&path; /* must be overwritten */
    st_error err = { ST_OK, "" };
    const st_status is = st_npy_read(&got, path, 2, 3, &err);
    assert_null(got);
    if (is != status || !strstr(err.message, part))
        fail_msg("expected \"%s\", got status %d: %s", part, (int)is, err.message);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.message, path));
}

static void npy_refuses_what_it_does_not_understand(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        st_status status;
        const char *part;
    } cases[] = {
        { "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_UNSUPPORTED, "type \">f4\"" },
        { "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_UNSUPPORTED, "type \"<f2\"" },
        { "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_UNSUPPORTED,
          "expected \"<f4\" or \"<f8\"" },
        { "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_UNSUPPORTED, "type \"|O\"" },
        { "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", ST_ERR_UNSUPPORTED, "by columns" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n", ST_ERR_INVALID_ARG,
          "an array of 3 x 2, expected 2 x 3" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", ST_ERR_INVALID_ARG,
          "an array of 6, expected" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", ST_ERR_INVALID_ARG, "one value" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 3), }\n", ST_ERR_INVALID_ARG, "3 x 2 x 3" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (999999999, 999999999), }\n", ST_ERR_INVALID_ARG,
          "999999999 x" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2,3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (2, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1, }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4", ST_ERR_FORMAT, "header" },
        { "{'descr': '0123456789012345678901234567890123456789', 'fortran_order': False, 'shape': (2, 3), }\n",
          ST_ERR_FORMAT, "header" },
        { "{'fortran_order': False, 'shape': (2, 3), }\n", ST_ERR_FORMAT, "header" },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } __import__('os')\n", ST_ERR_FORMAT, "header" },
        { "", ST_ERR_FORMAT, "not a NumPy .npy file" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(cases[i].header, six, sizeof six);
        refused(cases[i].status, cases[i].part);
    }
    static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    put(good, six, sizeof six - 1);
    refused(ST_ERR_FORMAT, "values end early");
    put(good, six, 0);
    refused(ST_ERR_FORMAT, "values end early");
    const float seven[7] = { 0 };
    put(good, seven, sizeof seven);
    refused(ST_ERR_FORMAT, "bytes follow the last value");
    const float strange[6] = { 0.0f, 1.0f, 2.0f, 3.0f, NAN, 0.0f };
    put(good, strange, sizeof strange);
    refused(ST_ERR_INVALID_ARG, "value 4 is");
    const double huge[6] = { 0.0, -1e39 };
    put("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", huge, sizeof huge);
    refused(ST_ERR_INVALID_ARG, "value 1 is -1e+39, expected a finite 32-bit float");
    unlink(path);
    refused(ST_ERR_IO, "No such file");
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes into it: must not wait */
    refused(ST_ERR_IO, "not a regular file");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused(ST_ERR_IO, "not a regular file");
    rmdir(path);
}

/* Every cut, and every other value of every byte of the header: read back as the same six floats, or refused. */
static void npy_survives_every_damaged_header(void **state)
{
    (void)state;
    unsigned char file[10 + 62 + sizeof six];
    assert_int_equal(st_npy_write(path, six, 2, 3, NULL), ST_OK);
    put("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", six, sizeof six);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(file, 1, sizeof file, f);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    assert_int_equal(n, sizeof file);
    size_t n_read = 0;
    for (size_t at = 0; at < 10 + 62; at++) {
        for (int change = 1; change < 256; change += change < 4 ? 1 : 17) {
            file[at] = (unsigned char)(file[at] ^ change);
            float *got = NULL;
            f = fopen(path, "wb");
            assert_int_equal(fwrite(file, 1, n, f), n);
            fclose(f);
            if (st_npy_read(&got, path, 2, 3, NULL) == ST_OK) {
                n_read++;
                assert_memory_equal(got, six, sizeof six);
            } else assert_null(got);
            free(got);
            file[at] = (unsigned char)(file[at] ^ change);
        }
    }
    assert_true(n_read < 60); /* quotes, blanks, the minor version: little may change */
    for (size_t cut = 0; cut < n; cut++) {
        float *got = NULL;
        f = fopen(path, "wb");
        assert_int_equal(fwrite(file, 1, cut, f), cut);
        fclose(f);
        assert_int_not_equal(st_npy_read(&got, path, 2, 3, NULL), ST_OK);
        assert_null(got);
    }
}

/* ---- reports of clicked objects ---- */

static uint32_t counts[] = { 6, 3, 3 }, all[] = { 0, 12 }, none[] = { 12 };
static float logits[4];
static st_candidate candidates[] = {
    { .iou = 0.9f, .index = 2, .logits = logits, .mask = { 4, 3, counts, 3 }, .area = 3 },
    { .iou = 0.25f, .index = 1, .logits = logits, .mask = { 4, 3, all, 2 }, .area = 12 }
};
static st_candidate empty[] = { { .iou = 0.5f, .index = 0, .logits = logits, .mask = { 4, 3, none, 1 }, .area = 0 } };
static st_click_result three = { 1.5f, 4, 3, 2, candidates, 2, 1, 13 }, lone = { -2.0f, 4, 3, 2, empty, 1, 0, 0 };
static const st_point points[] = { { 1.5f, 2.0f, 1 }, { 0.1f, 0.0f, 0 } };
static const st_region region = { 0.0f, 0.0f, 3.5f, 2.0f };
static st_object_report objects[] = { { .points = points, .n_points = 2, .region = &region, .result = &three },
                                      { .mask = "m.png", .hf = true, .result = &lone } };
static st_picture_report pictures[] = { { .file = "p.jpg",
                                          .width = 4,
                                          .height = 3,
                                          .orientation = 6,
                                          .format = "jpeg",
                                          .bits = 8,
                                          .bands = 3,
                                          .low = 0.1f,
                                          .high = 255.0f,
                                          .resize = "cpu",
                                          .stretched = 1,
                                          .objects = objects,
                                          .n_objects = 2 } };
static const st_report report = { "0123456789abcdef0123456789abcdef", "sam3", "fp32", pictures, 1, 224 };

static void objects_in_json(void **state)
{
    (void)state;
    char *text = st_report_json(&report);
    assert_non_null(text);
    const char *results = strstr(text, "\"results\"");
    assert_non_null(results);
    assert_string_equal(
        results,
        "\"results\": [{\"prompt\": {\"points\": [{\"x\": 1.5, \"y\": 2.0, \"label\": 1}, {\"x\": 0.1, \"y\": 0.0, "
        "\"label\": 0}], \"region\": [0.0, 0.0, 3.5, "
        "2.0], \"mask\": null}, \"object_score\": 1.5, \"candidates\": [{\"rank\": 0, \"index\": 2, \"predicted_iou\": "
        "0.9, \"box\": [2, 0, 3, 3], \"area\": 3, "
        "\"mask\": {\"size\": [3, 4], \"counts\": \"633\"}}, {\"rank\": 1, \"index\": 1, \"predicted_iou\": 0.25, "
        "\"box\": [0, 0, 4, 3], \"area\": 12, \"mask\": "
        "{\"size\": [3, 4], \"counts\": \"0<\"}}], \"multimask\": true, \"hole_area\": 13, \"hf\": false}, "
        "{\"prompt\": {\"points\": [], \"region\": null, \"mask\": "
        "\"m.png\"}, \"object_score\": -2.0, \"candidates\": [{\"rank\": 0, \"index\": 0, \"predicted_iou\": 0.5, "
        "\"box\": [0, 0, 0, 0], \"area\": 0, \"mask\": "
        "{\"size\": [3, 4], \"counts\": \"<\"}}], \"multimask\": false, \"hole_area\": 0, \"hf\": true}]}]}\n");
    free(text);
}

static void objects_in_coco(void **state)
{
    (void)state;
    char *text = st_report_coco(&report);
    assert_non_null(text);
    const char *categories = strstr(text, "\"categories\"");
    assert_non_null(categories);
    assert_string_equal(categories, "\"categories\": [{\"id\": 1, \"name\": \"object\"}], \"annotations\": [{\"id\": "
                                    "1, \"image_id\": 1, \"category_id\": 1, \"bbox\": [2.0, 0.0, "
                                    "1.0, 3.0], \"iscrowd\": 0, \"score\": 0.9, \"area\": 3, \"segmentation\": "
                                    "{\"size\": [3, 4], \"counts\": \"633\"}}, {\"id\": 2, "
                                    "\"image_id\": 1, \"category_id\": 1, \"bbox\": [0.0, 0.0, 0.0, 0.0], \"iscrowd\": "
                                    "0, \"score\": 0.5, \"area\": 0, \"segmentation\": "
                                    "{\"size\": [3, 4], \"counts\": \"<\"}}]}\n");
    free(text);
}

static void objects_in_a_table(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    st_report_table(&pictures[0], f);
    fclose(f);
    assert_string_equal(text, "p.jpg  4 x 3 pixels\n"
                              "  object 1 (2 points, region): object score 1.500\n"
                              "      #     IoU       left       top     right    bottom        area\n"
                              "      1   0.900          2         0         3         3           3\n"
                              "      2   0.250          0         0         4         3          12\n"
                              "  object 2 (mask): object score -2.000\n"
                              "      #     IoU       left       top     right    bottom        area\n"
                              "      1   0.500          0         0         0         0           0\n");
    free(text);
}

/* Clicks on every edge and corner stay inside the picture's memory; each is seen. */
static void objects_on_an_overlay(void **state)
{
    (void)state;
    uint8_t *rgb = calloc(4 * 3, 3);
    assert_non_null(rgb);
    st_bitmap bitmap = { .width = 4, .height = 3, .rgb = rgb };
    st_overlay_draw(&bitmap, &pictures[0]);
    size_t n_changed = 0;
    for (size_t i = 0; i < 36; i++) n_changed += rgb[i] != 0;
    assert_true(n_changed > 0);
    static const st_point edges[] = { { 0, 0, 1 }, { 4, 3, 1 }, { 4, 0, 0 }, { 0, 3, 0 } };
    for (size_t i = 0; i < 4; i++) {
        memset(rgb, 0, 36);
        st_object_report one = { .points = &edges[i], .n_points = 1, .result = &lone };
        st_picture_report p = { .file = "p", .width = 4, .height = 3, .objects = &one, .n_objects = 1 };
        st_overlay_draw(&bitmap, &p);
        const size_t x = edges[i].x > 0 ? 3 : 0, y = edges[i].y > 0 ? 2 : 0;
        const uint8_t *corner = rgb + 3 * (4 * y + x);
        assert_true(edges[i].positive ? corner[1] > corner[0] : corner[0] > corner[1]); /* green, red */
    }
    free(rgb);
}

static void what_was_read_travels_with_an_encoding(void **state)
{
    (void)state;
    char *source = st_report_source(&pictures[0]), *name = NULL;
    assert_non_null(source);
    st_picture_report back = { .file = "x.features", .width = 4, .height = 3, .objects = objects, .n_objects = 2 };
    assert_true(st_report_read_source(&back, &name, source));
    assert_string_equal(name, "p.jpg");
    assert_string_equal(back.file, "x.features");
    back.file = name;
    st_report again = report;
    again.pictures = &back;
    char *direct = st_report_json(&report), *text = st_report_json(&again);
    assert_string_equal(direct, text); /* to the byte */
    free(direct), free(text), free(name);
    st_picture_report half = pictures[0];
    half.half = true;
    char *half_source = st_report_source(&half);
    assert_true(st_report_read_source(&back, &name, half_source) && back.half);
    back.file = name;
    text = st_report_json(&again);
    assert_non_null(strstr(text, "\"resize\": \"cpu\", \"saved_as\": \"fp16\"}"));
    free(text), free(name), free(half_source), free(source);
}

static void a_strange_source_is_none(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "",
        "words",
        "{}",
        "[]",
        "{\"file\": 3}",
        "{\"file\":\"a\",\"orientation\":1,\"preprocess\":null}",
        "{\"file\":\"a\",\"orientation\":1,\"preprocess\":{\"format\":\"a format of many "
        "letters\",\"bits\":8,\"float\":false,\"bands\":3,\"scale\":{\"low\":0.0,"
        "\"high\":255.0,\"stretched\":false},\"damaged\":false,\"resize\":\"gpu\"}}",
        "{\"file\":\"a\",\"orientation\":1,\"preprocess\":{\"format\":\"png\",\"bits\":8,\"float\":false,\"bands\":3,"
        "\"scale\":{\"low\":0.0,\"high\":255.0,"
        "\"stretched\":false},\"damaged\":false,\"resize\":\"tpu\"}}"
    };
    for (size_t i = 0; i <= sizeof strange / sizeof *strange; i++) {
        st_picture_report p = { .file = "x", .width = 4, .height = 3, .undescribed = true };
        const st_picture_report before = p;
        char *name = (char *)&p;
        assert_false(st_report_read_source(&p, &name, i < sizeof strange / sizeof *strange ? strange[i] : NULL));
        assert_null(name);
        assert_memory_equal(&p, &before, sizeof p);
        st_report r = { "id", "sam3", "fp32", &p, 1, 224 };
        char *text = st_report_json(&r);
        assert_non_null(text);
        assert_non_null(strstr(text, "\"orientation\": null, \"preprocess\": null, \"results\": []"));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_become_points_and_boxes),
        cmocka_unit_test(wrong_words_are_told),
        cmocka_unit_test(lines_of_any_length),
        cmocka_unit_test(lines_end_anywhere),
        cmocka_unit_test(waiting_for_a_line_can_be_cancelled),
        cmocka_unit_test_setup_teardown(npy_reads_what_numpy_writes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(npy_refuses_what_it_does_not_understand, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(npy_survives_every_damaged_header, make_folder, remove_folder),
        cmocka_unit_test(objects_in_json),
        cmocka_unit_test(objects_in_coco),
        cmocka_unit_test(objects_in_a_table),
        cmocka_unit_test(objects_on_an_overlay),
        cmocka_unit_test(what_was_read_travels_with_an_encoding),
        cmocka_unit_test(a_strange_source_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
