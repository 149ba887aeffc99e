/* front_test.c: what the program is made of, with made-up results: options, numbers, names, files, and the three spellings of a report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "front/options.h"
#include "front/overlay.h"
#include "front/report.h"
#include "front/save.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options ---- */

enum { OPT_OUTPUT = 1, OPT_LOUD, OPT_VERY };
static const st_option table[] = {
    {"output", 'o', "PATH", OPT_OUTPUT, "where"}, {"loud", 'l', NULL, OPT_LOUD, "noise"}, {"very-long-name", 0, NULL, OPT_VERY, "long"}};

static st_options begin(int argc, char **argv)
{
    st_options o;
    st_options_begin(&o, table, 3, argc, argv);
    return o;
}

static void expect(st_options *o, int id, const char *value)
{
    const char *got;
    assert_int_equal(st_options_next(o, &got), id);
    if (value) assert_string_equal(got, value);
    else assert_null(got);
}

static void options_in_every_form(void **state)
{
    (void)state;
    char *argv[] = {"x", "word", "-o", "a", "-ob", "--output", "c", "--output=d=e", "-llo", "f", "-", "--very-long-name", "--", "-l", "--"};
    st_options o = begin(15, argv);
    expect(&o, ST_OPTION_WORD, "word");
    expect(&o, OPT_OUTPUT, "a");
    expect(&o, OPT_OUTPUT, "b");
    expect(&o, OPT_OUTPUT, "c");
    expect(&o, OPT_OUTPUT, "d=e");
    expect(&o, OPT_LOUD, NULL);
    expect(&o, OPT_LOUD, NULL);
    expect(&o, OPT_OUTPUT, "f");
    expect(&o, ST_OPTION_WORD, "-");
    expect(&o, OPT_VERY, NULL);
    expect(&o, ST_OPTION_WORD, "-l");
    expect(&o, ST_OPTION_WORD, "--");
    expect(&o, ST_OPTION_END, NULL);
    expect(&o, ST_OPTION_END, NULL);
}

static void wrong(char *argument, const char *part)
{
    char *argv[] = {"x", argument};
    st_options o = begin(2, argv);
    const char *value;
    assert_int_equal(st_options_next(&o, &value), ST_OPTION_WRONG);
    if (!strstr(o.problem, part)) fail_msg("\"%s\" does not say \"%s\"", o.problem, part);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    wrong("--outputt", "did you mean --output?");
    wrong("--otput=3", "did you mean --output?");
    wrong("--zebra", "unknown option --zebra");
    wrong("-z", "unknown option -z");
    wrong("-o", "--output needs a value: --output PATH");
    wrong("--output", "--output needs a value");
    wrong("--loud=3", "--loud takes no value, got \"3\"");
}

static void numbers_are_strict(void **state)
{
    (void)state;
    double v = 0;
    uint32_t n = 0;
    assert_true(st_read_number(&v, "0.25", 0, 1) && v == 0.25);
    assert_true(st_read_number(&v, "1e-3", 0, 1) && v == 1e-3);
    static const char *const bad[] = {"", " 1", "1 ", "0x1", "nan", "inf", "1,5", "1.2.3", "e", "+", "2", "-0.1", "1e999", "0.5x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (st_read_number(&v, bad[i], 0, 1)) fail_msg("\"%s\" was taken for a number", bad[i]);
    assert_true(st_read_count(&n, "4294967295", 0, UINT32_MAX) && n == UINT32_MAX);
    static const char *const bad_counts[] = {"", "-1", "+1", "1.0", "4294967296", "99999999999", "0x10", " 1", "0", "101"};
    for (size_t i = 0; i < sizeof bad_counts / sizeof bad_counts[0]; i++)
        if (st_read_count(&n, bad_counts[i], 1, 100)) fail_msg("\"%s\" was taken for a count", bad_counts[i]);
}

static void nearest_words(void **state)
{
    (void)state;
    static const char *const words[] = {"segment", "info", "check"};
    assert_string_equal(st_nearest("segmnet", words, 3), "segment");
    assert_string_equal(st_nearest("inf", words, 3), "info");
    assert_string_equal(st_nearest("seg", words, 3), "segment"); /* a beginning */
    assert_null(st_nearest("bicycle", words, 3));
    assert_null(st_nearest("", words, 3));
    assert_null(st_nearest("a-word-that-is-longer-than-every-option-there-is", words, 3));
}

/* ---- files and names ---- */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/front_test.XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static size_t n_files(void)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[400];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.' && unlink(path) != 0) rmdir(path);
    }
    if (dir) closedir(dir);
    return rmdir(folder);
}

static void check_content(const char *path, const char *expected)
{
    char got[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, expected);
}

static void files_appear_whole(void **state)
{
    (void)state;
    char path[128];
    st_error err;
    snprintf(path, sizeof path, "%s/out.json", folder);
    assert_int_equal(st_save_possible(path, &err), ST_OK);
    assert_int_equal(st_save_text(path, "first", 5, &err), ST_OK);
    assert_int_equal(st_save_text(path, "second", 6, &err), ST_OK);
    check_content(path, "second");
    assert_int_equal(n_files(), 1);

    /* a folder stands in the way: nothing is left behind */
    snprintf(path, sizeof path, "%s/taken", folder);
    assert_int_equal(st_save_folder(path, &err), ST_OK);
    assert_int_equal(st_save_folder(path, &err), ST_OK);
    assert_int_equal(st_save_possible(path, &err), ST_ERR_IO);
    assert_int_equal(st_save_text(path, "x", 1, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(n_files(), 2);

    snprintf(path, sizeof path, "%s/none/out.json", folder);
    assert_int_equal(st_save_possible(path, &err), ST_ERR_IO);
    assert_int_equal(st_save_text(path, "x", 1, &err), ST_ERR_IO);
    assert_int_equal(st_save_folder(path, &err), ST_ERR_IO);
    snprintf(path, sizeof path, "%s/out.json", folder);
    assert_int_equal(st_save_folder(path, &err), ST_ERR_IO);
    assert_int_equal(st_save_text("/dev/full", "x", 1, &err), ST_ERR_IO);
}

/* What is there stays what it is: the longest name, a link, permissions; a pipe that nobody reads is no reason to wait. */
static void files_keep_their_nature(void **state)
{
    (void)state;
    char path[512], link[512];
    st_error err;
    struct stat st;
    const size_t before = (size_t)n_files();
    const size_t n_folder = strlen(folder);
    memcpy(path, folder, n_folder);
    path[n_folder] = '/';
    memset(path + n_folder + 1, 'n', 255); /* NAME_MAX */
    path[n_folder + 256] = '\0';
    assert_int_equal(st_save_text(path, "long", 4, &err), ST_OK);
    check_content(path, "long");
    assert_int_equal(unlink(path), 0);

    snprintf(path, sizeof path, "%s/real", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(st_save_text(path, "old", 3, &err), ST_OK);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("real", link), 0);
    assert_int_equal(st_save_text(link, "new", 3, &err), ST_OK);
    check_content(path, "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(unlink(link), 0);

    assert_int_equal(mkfifo(link, 0600), 0);
    alarm(20); /* a hang is a failure */
    assert_int_equal(st_save_text(link, "x", 1, &err), ST_ERR_IO);
    alarm(0);
    assert_non_null(strstr(err.message, link));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(n_files(), before);

    /* devices do not depend on their folder */
    assert_int_equal(st_save_possible("/dev/null", &err), ST_OK);
    assert_int_equal(st_save_text("/dev/null", "x", 1, &err), ST_OK);
}

static void check_name(st_names *names, const char *source, const char *tail, const char *expected)
{
    char *name = st_names_make(names, "d", source, tail);
    assert_non_null(name);
    assert_string_equal(name, expected);
    free(name);
}

static void names_do_not_collide(void **state)
{
    (void)state;
    st_names names = {0};
    check_name(&names, "a/x.jpg", ".png", "d/x.png");
    check_name(&names, "b/x.tiff", ".png", "d/x-2.png");
    check_name(&names, "b/X.tiff", ".png", "d/X-3.png");
    check_name(&names, "x.tar.gz", ".png", "d/x.tar.png");
    check_name(&names, "c/.hidden", ".png", "d/.hidden.png");
    check_name(&names, "plain", "_cat_001.png", "d/plain_cat_001.png");
    st_names_free(&names);
}

static void phrases_become_parts_of_names(void **state)
{
    (void)state;
    char slug[48];
    st_phrase_slug(slug, "yellow school bus");
    assert_string_equal(slug, "yellow-school-bus");
    st_phrase_slug(slug, "../../etc/passwd");
    assert_string_equal(slug, "etc-passwd");
    st_phrase_slug(slug, "a  b!?");
    assert_string_equal(slug, "a-b");
    st_phrase_slug(slug, "!?");
    assert_string_equal(slug, "_");
    st_phrase_slug(slug, "caf\xC3\xA9");
    assert_string_equal(slug, "caf\xC3\xA9");
    st_phrase_slug(slug, "0123456789012345678901234567890123456789tail");
    assert_int_equal(strlen(slug), 40);
    st_phrase_slug(slug, "012345678901234567890123456789012345678\xC3\xA9");
    assert_int_equal(strlen(slug), 39); /* not cut inside a character */
}

/* ---- reports ---- */

static uint32_t counts[] = {6, 3, 3};
static st_instance instances[] = {
    {.score = 0.93f, .box = {1.5f, -0.25f, 3.1f, 2.0f}, .area = 3, .mask = {4, 3, counts, 3}, .query = 7},
    {.score = 0.1f + 0.2f, .box = {0.0f, 0.0f, 1e-7f, 123456.79f}, .area = 0, .mask = {4, 3, (uint32_t[]){12}, 1}, .query = 2},
};
static st_result result = {0.98f, ST_WARN_PROMPT_CUT | ST_WARN_DETECTION_CAP, 4, 3, 5, instances, 2};
static const st_exemplar box = {1.0f, 2.0f, 3.5f, 4.0f, 1};

static st_prompt_report prompts[] = {
    {.phrase = "a \"cat\"", .boxes = &box, .n_boxes = 1, .threshold = 0.3f, .mask_threshold = 0.5f, .result = &result}};
static st_picture_report pictures[] = {
    {.file = "dir/p.jpg", .width = 4, .height = 3, .orientation = 6, .format = "jpeg", .bits = 8, .bands = 3, .low = 0.0f, .high = 255.0f, .resize = "gpu",
     .prompts = prompts, .n_prompts = 1},
    {.file = "bad\xFF.png", .error = (char[]){"bad?.png: no picture"}, .prompts = prompts, .n_prompts = 1}};
static const st_report report = {"0123456789abcdef0123456789abcdef", "sam3", "fp32", pictures, 2, 1008};

static void json_is_the_documented_one(void **state)
{
    (void)state;
    char *text = st_report_json(&report);
    assert_non_null(text);
    assert_string_equal(
        text,
        "{\"stencil\": \"" ST_VERSION_STRING "\", \"model\": {\"id\": \"0123456789abcdef0123456789abcdef\", \"version\": \"sam3\", \"precision\": \"fp32\", \"input_size\": 1008}, "
        "\"images\": [{\"file\": \"dir/p.jpg\", \"width\": 4, \"height\": 3, \"orientation\": 6, \"preprocess\": {\"format\": \"jpeg\", \"bits\": 8, "
        "\"float\": false, \"bands\": 3, \"scale\": {\"low\": 0.0, \"high\": 255.0, \"stretched\": false}, \"damaged\": false, \"resize\": \"gpu\"}, "
        "\"results\": [{\"prompt\": {\"phrase\": \"a \\\"cat\\\"\", \"boxes\": [{\"box\": [1.0, 2.0, 3.5, 4.0], \"negative\": true}]}, "
        "\"presence\": 0.98, \"instances\": [{\"score\": 0.93, \"box\": [1.5, -0.25, 3.1, 2.0], \"area\": 3, \"mask\": {\"size\": [3, 4], "
        "\"counts\": \"633\"}}, {\"score\": 0.3, \"box\": [0.0, 0.0, 1e-7, 123456.79], \"area\": 0, \"mask\": {\"size\": [3, 4], "
        "\"counts\": \"<\"}}], \"warnings\": [\"prompt_cut\", \"detection_cap\"], \"threshold\": 0.3, \"mask_threshold\": 0.5}]}, "
        "{\"file\": \"bad\xEF\xBF\xBD.png\", \"error\": \"bad?.png: no picture\"}]}\n");
    free(text);
}

static void json_without_masks(void **state)
{
    (void)state;
    prompts[0].boxes_only = true;
    char *text = st_report_json(&report);
    prompts[0].boxes_only = false;
    assert_non_null(text);
    assert_null(strstr(text, "\"mask\""));
    assert_null(strstr(text, "\"area\""));
    assert_non_null(strstr(text, "\"score\": 0.93, \"box\": [1.5"));
    free(text);
}

static void coco_is_the_documented_one(void **state)
{
    (void)state;
    char *text = st_report_coco(&report);
    assert_non_null(text);
    assert_string_equal(
        text,
        "{\"info\": {\"description\": \"Stencil " ST_VERSION_STRING ", sam3, model 0123456789abcdef, 1008 pixels\"}, \"images\": [{\"id\": 1, \"file_name\": \"dir/p.jpg\", "
        "\"width\": 4, \"height\": 3}], \"categories\": [{\"id\": 1, \"name\": \"a \\\"cat\\\"\"}], \"annotations\": [{\"id\": 1, \"image_id\": 1, "
        "\"category_id\": 1, \"bbox\": [1.5, 0.0, 1.5999999, 2.0], \"iscrowd\": 0, \"score\": 0.93, \"area\": 3, \"segmentation\": {\"size\": [3, 4], "
        "\"counts\": \"633\"}}, {\"id\": 2, \"image_id\": 1, \"category_id\": 1, \"bbox\": [0.0, 0.0, 1e-7, 3.0], \"iscrowd\": 0, \"score\": 0.3, "
        "\"area\": 0, \"segmentation\": {\"size\": [3, 4], \"counts\": \"<\"}}], "
        "\"errors\": [{\"file_name\": \"bad\xEF\xBF\xBD.png\", \"error\": \"bad?.png: no picture\"}]}\n");
    free(text);
}

static void table_reads_well(void **state)
{
    (void)state;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    st_picture_report hostile = pictures[1];
    hostile.file = "a\033[2Jb\xC2\x9B.png";
    st_report_table(&pictures[0], f);
    st_report_table(&hostile, f);
    fclose(f);
    assert_string_equal(text, "dir/p.jpg  4 x 3 pixels\n"
                              "  \"a \"cat\"\" with 1 box: 2 found, presence 0.980\n"
                              "      #   score       left       top     right    bottom        area\n"
                              "      1   0.930        1.5      -0.2       3.1       2.0           3\n"
                              "      2   0.300        0.0       0.0       0.0  123456.8           0\n"
                              "    note: the phrase has more tokens than the model reads; its end was left out\n"
                              "    note: more was found than --max-detections keeps\n"
                              "a?[2Jb?.png\n"
                              "  failed: bad?.png: no picture\n");
    free(text);
}

/* Every float comes back exactly from its JSON, and with no more digits than it takes. */
static void floats_round_trip(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t bits = i % 2 ? seed : 0x3F000000u + (seed >> 9); /* anything; scores between 0.5 and 1 */
        float value, back = 0.0f;
        memcpy(&value, &bits, sizeof value);
        json_t *json = json_pack("[o]", st_json_float(value));
        char *text = st_json_line(json);
        assert_non_null(text);
        if (isfinite(value)) {
            char *end;
            back = strtof(text + 1, &end);
            assert_string_equal(end, "]\n");
            assert_true(back == value);
            assert_true(strlen(text) <= 3 + 16);
        } else assert_string_equal(text, "[null]\n");
        free(text);
    }
    char *text = st_json_line(json_pack("[o,o,o]", st_json_float(0.93f), st_json_float(100.0f), st_json_float(1.0f / 3.0f)));
    assert_string_equal(text, "[0.93, 100.0, 0.33333334]\n");
    free(text);
}

static void overlay_suffixes(void **state)
{
    (void)state;
    assert_true(st_overlay_suffix_known("a.png") && st_overlay_suffix_known("a.JPG") && st_overlay_suffix_known("x/a.jpeg"));
    assert_false(st_overlay_suffix_known("a.gif") || st_overlay_suffix_known(".png") || st_overlay_suffix_known("png") || st_overlay_suffix_known(""));
}

static void overlay_changes_the_picture(void **state)
{
    (void)state;
    uint8_t rgb[4 * 3 * 3] = {0};
    st_bitmap bitmap = {.width = 4, .height = 3, .rgb = rgb};
    st_overlay_draw(&bitmap, &pictures[0]);
    size_t n_changed = 0;
    for (size_t i = 0; i < sizeof rgb; i++) n_changed += rgb[i] != 0;
    assert_true(n_changed >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_in_every_form),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(nearest_words),
        cmocka_unit_test_setup_teardown(files_appear_whole, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(files_keep_their_nature, make_folder, remove_folder),
        cmocka_unit_test(names_do_not_collide),
        cmocka_unit_test(phrases_become_parts_of_names),
        cmocka_unit_test(json_is_the_documented_one),
        cmocka_unit_test(json_without_masks),
        cmocka_unit_test(coco_is_the_documented_one),
        cmocka_unit_test(table_reads_well),
        cmocka_unit_test(floats_round_trip),
        cmocka_unit_test(overlay_suffixes),
        cmocka_unit_test(overlay_changes_the_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
