/* export_text_test.c: escapes, numbers and names of exports. */
#include "label/export_files.h"
#include "front/report.h"
#include "label/label_masks.h"
#include "unit/temp_folder.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef void put_fn(FILE *to, const char *text);

static char *written;
static size_t n_written;

static FILE *begin(void)
{
    FILE *f = open_memstream(&written, &n_written);
    if (!f) temp_die("open_memstream");
    return f;
}

static void end(FILE *f, const char *want)
{
    fclose(f);
    assert_string_equal(written, want);
    free(written);
}

static void check(put_fn *put, const char *text, const char *want)
{
    FILE *f = begin();
    put(f, text);
    end(f, want);
}

static void test_json(void **state)
{
    (void)state;
    check(st_label_put_json, "", "\"\"");
    check(st_label_put_json, "a \"b\" \\ c\n\x01\x7f", "\"a \\\"b\\\" \\\\ c\\u000a\\u0001\\u007f\"");
    check(st_label_put_json, "b\xC3\xA4r \xF0\x9F\x9A\x9C", "\"b\xC3\xA4r \xF0\x9F\x9A\x9C\"");
    check(st_label_put_json, "\xC3(\xFF", "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"");
}

static void test_xml(void **state)
{
    (void)state;
    check(st_label_put_xml, "<a href=\"x\">&amp;</a>", "&lt;a href=&quot;x&quot;&gt;&amp;amp;&lt;/a&gt;");
    check(st_label_put_xml, "b\xC3\xA4r\x01\n\xFF", "b\xC3\xA4r\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    check(st_label_put_xml, "\xEF\xBF\xBE", "\xEF\xBF\xBD");
}

static void test_url(void **state)
{
    (void)state;
    check(st_label_put_url, "a b/\xC3\xA4?#%.jpg", "a%20b/%C3%A4%3F%23%25.jpg");
}

static void ratio(uint64_t a, uint64_t b, unsigned digits, const char *want)
{
    FILE *f = begin();
    st_label_put_ratio(f, a, b, digits);
    end(f, want);
}

static void test_numbers(void **state)
{
    (void)state;
    setlocale(LC_ALL, ""); /* whatever it is */
    ratio(1, 3, 6, "0.333333");
    ratio(2, 3, 6, "0.666667");
    ratio(1, 1, 6, "1.000000");
    ratio(9999999, 10000000, 6, "1.000000");
    ratio(4 * UINT64_C(4294967294) + 1, 4 * UINT64_C(4294967295), 6, "1.000000");
    ratio(1250, 100, 2, "12.50");
    ratio(7, 2, 0, "4");
    static const struct {
        int64_t n;
        const char *want;
    } hundredths[] = { { 0, "0" }, { 100, "1" }, { 1250, "12.5" }, { 1205, "12.05" }, { -25, "-0.25" }, { 7, "0.07" } };
    for (size_t i = 0; i < sizeof hundredths / sizeof *hundredths; i++) {
        FILE *f = begin();
        st_label_put_hundredths(f, hundredths[i].n);
        end(f, hundredths[i].want);
    }
    static const struct {
        float score;
        const char *want;
    } scores[] = { { 0.5f, "0.5" }, { 0.1f, "0.1" }, { 1.0f, "1.0" }, { 0.987654f, "0.987654" }, { 0.3f, "0.3" } };
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        FILE *f = begin();
        st_label_put_score(f, scores[i].score);
        end(f, scores[i].want);
    }
    for (unsigned i = 1; i < 1000; i++) { /* every float comes back */
        const float score = 1.0f / (float)i;
        FILE *f = begin();
        st_label_put_score(f, score);
        fclose(f);
        assert_true(strtof(written, NULL) == score);
        free(written);
    }
}

/* In the store and in exports a number is spelled in one way. */
static void test_scores_as_in_the_store(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (unsigned i = 0; i < 20000; i++) {
        const uint32_t bits = i < 4 ? (const uint32_t[]){ 0, 0x80000000u, 0x7f800000u, 1 }[i] : ref_random(&seed);
        float score;
        memcpy(&score, &bits, sizeof score);
        if (i % 2) score = (float)(bits >> 8) * 0x1p-24f; /* 0 to 1 */
        char *line = st_json_line(json_pack("[o]", st_json_float(score)));
        line[strlen(line) - 2] = '\0'; /* "]\n" */
        FILE *f = begin();
        st_label_put_score(f, score);
        end(f, line + 1);
        free(line);
    }
}

static void stem(const char *name, bool flat, const char *want)
{
    char *got = st_label_out_stem(name, flat);
    assert_string_equal(got, want);
    free(got);
}

static void test_stems(void **state)
{
    (void)state;
    stem("a/b.c.jpg", false, "a/b.c");
    stem("a/b.c.jpg", true, "a__b.c");
    stem("x/images/y/images/z.PNG", true, "x__images__y__images__z");
    stem(".hidden", false, ".hidden");
    stem("a.jpg/b", false, "a.jpg/b");
    stem("../../etc/passwd.png", false, "__/__/etc/passwd");
    stem("/abs//x.png", false, "__/abs/__/x");
    stem("./..png", false, "__/__");
    assert_string_equal(st_label_suffix("a.b/c"), "");
    assert_string_equal(st_label_suffix("a.b/c.JPG"), ".JPG");
    assert_string_equal(st_label_suffix("a.this-is-no-suffix-at-all"), "");
}

/* Longer than a file system takes: cut, not inside a character, and still told apart. */
static void test_long_stems(void **state)
{
    (void)state;
    char one[600], other[600];
    for (size_t i = 0; i < 500; i += 2) memcpy(one + i, "\xC3\xA4", 2);
    one[500] = '\0';
    memcpy(other, one, 501);
    other[499] = '\xA5';
    char *a = st_label_out_stem(one, true), *b = st_label_out_stem(other, true);
    assert_true(strlen(a) <= 210 && strlen(b) <= 210);
    assert_string_not_equal(a, b);
    FILE *f = begin();
    st_label_put_json(f, a);
    fclose(f);
    assert_null(strstr(written, "\xEF\xBF\xBD"));
    free(written);
    free(a);
    free(b);
}

static void test_free_stems(void **state)
{
    (void)state;
    static const char *const prefixes[] = { "one/", "two/", NULL };
    static const char *const want[] = { "x", "x_png", "x_2", "x_3" };
    temp_folder t;
    temp_folder_make(&t);
    for (size_t i = 0; i < 4; i++) {
        char *got, file[64];
        assert_int_equal(st_label_free_stem(&got, t.path, prefixes, i ? "x.png" : "x.jpg", ".txt", true, NULL), ST_OK);
        assert_string_equal(got, want[i]);
        snprintf(file, sizeof file, "%s%s.txt", prefixes[i % 2], got);
        temp_write_text(&t, file, "");
        free(got);
    }
    temp_folder_remove(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),       cmocka_unit_test(test_xml),   cmocka_unit_test(test_url),
        cmocka_unit_test(test_numbers),    cmocka_unit_test(test_stems), cmocka_unit_test(test_long_stems),
        cmocka_unit_test(test_free_stems), cmocka_unit_test(test_scores_as_in_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
