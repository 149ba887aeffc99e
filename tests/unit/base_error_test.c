/* base_error_test.c: error sentences: what gets through, what becomes '?', where they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/log.h"

static void returns_the_status_and_fills_the_error(void **state)
{
    (void)state;
    st_error err = { 0 };
    assert_int_equal(st_fail(&err, ST_ERR_FORMAT, "%s: size %d, expected %d", "a.bin", 3, 4), ST_ERR_FORMAT);
    assert_int_equal(err.status, ST_ERR_FORMAT);
    assert_string_equal(err.message, "a.bin: size 3, expected 4");
    assert_int_equal(st_fail(NULL, ST_ERR_IO, "%s", "nobody listens"), ST_ERR_IO);
    st_error_prefix(NULL, "nobody");
}

static void message_may_be_its_own_argument(void **state)
{
    (void)state;
    st_error err = { 0 };
    (void)!st_fail(&err, ST_ERR_IO, "inner");
    (void)!st_fail(&err, ST_ERR_FORMAT, "outer: %s", err.message);
    assert_string_equal(err.message, "outer: inner");
}

static void errno_is_put_into_words(void **state)
{
    (void)state;
    st_error err = { 0 };
    errno = ENOENT;
    assert_int_equal(st_fail_errno(&err, ST_ERR_IO, "%s: cannot open", "x"), ST_ERR_IO);
    assert_string_equal(err.message, "x: cannot open: No such file or directory");
    assert_int_equal(st_fail_errno(NULL, ST_ERR_IO, "x"), ST_ERR_IO);
}

static void prefix_goes_in_front(void **state)
{
    (void)state;
    st_error err = { 0 };
    (void)!st_fail(&err, ST_ERR_IO, "it broke");
    st_error_prefix(&err, "tensor \"%s\x1b[31m\"", "w");
    assert_string_equal(err.message, "tensor \"w?[31m\": it broke");
    assert_int_equal(err.status, ST_ERR_IO);
}

typedef struct pair {
    const char *in, *out;
} pair;

static const pair cleaned[] = {
    { "", "" },
    { "plain ASCII ~", "plain ASCII ~" },
    { "\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88", "\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x90\x88" },
    { "a\nb\tc\x7f\x1b[2J", "a?b?c??[2J" },
    { "\xc2\x9b" "31m", "??31m" },                  /* C1: the one-character CSI */
    { "\x80 \xff \xc3", "? ? ?" },                  /* lone continuation, no such byte, cut sequence */
    { "\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "?? ??? ????" }, /* overlong */
    { "\xed\xa0\x80", "???" },                      /* surrogate */
    { "\xf4\x90\x80\x80 \xf5\x80\x80\x80", "???? ????" }, /* above U+10FFFF */
    { "\xe2\x82", "??" },                           /* cut */
    { "\xe2\x80\xae" "gpj.exe", "???gpj.exe" },     /* right-to-left override */
    { "\xe2\x80\x8b\xef\xbb\xbf\xe2\x81\xa6", "?????????" }, /* zero-width space, BOM, isolate */
    { "\xf3\xa0\x81\x81", "????" },                 /* a tag character */
};

static void only_printable_utf8_gets_through(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cleaned / sizeof cleaned[0]; i++) {
        st_error err = { 0 };
        (void)!st_fail(&err, ST_ERR_FORMAT, "%s", cleaned[i].in);
        assert_string_equal(err.message, cleaned[i].out);
    }
}

/* Every byte string of two bytes gives a message of the same length that cleaning leaves alone. */
static void cleaning_is_idempotent(void **state)
{
    (void)state;
    for (unsigned a = 1; a < 256; a++) {
        for (unsigned b = 1; b < 256; b++) {
            char once[3] = { (char)a, (char)b, 0 }, twice[3];
            st_text_clean(once);
            assert_int_equal(strlen(once), 2);
            memcpy(twice, once, 3);
            st_text_clean(twice);
            assert_string_equal(once, twice);
        }
    }
}

static void long_messages_are_cut_between_characters(void **state)
{
    (void)state;
    char text[2000];
    for (size_t lead = 0; lead < 6; lead++) { /* the cut falls on each byte of a three-byte character */
        memset(text, 'a', lead);
        for (size_t i = lead; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe6\x97\xa5", 4);
        st_error err = { 0 };
        (void)!st_fail(&err, ST_ERR_FORMAT, "%s", text);
        const size_t n = strlen(err.message);
        assert_in_range(n, sizeof err.message - 4, sizeof err.message - 1);
        assert_string_equal(err.message + n - 3, "...");
        assert_null(strchr(err.message, '?'));
        st_error again = err;
        st_text_clean(again.message);
        assert_string_equal(again.message, err.message);
        st_error_prefix(&err, "prefix");
        assert_memory_equal(err.message, "prefix: ", 8);
        assert_in_range(strlen(err.message), sizeof err.message - 4, sizeof err.message - 1);
        assert_null(strchr(err.message, '?'));
    }
}

static void a_long_prefix_still_fits(void **state)
{
    (void)state;
    char text[600];
    memset(text, 'p', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    st_error err = { 0 };
    (void)!st_fail(&err, ST_ERR_IO, "it broke");
    st_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_string_equal(err.message + sizeof err.message - 4, "...");
}

typedef struct heard {
    st_log_level level;
    char line[2048];
    int n;
} heard;

static void listen(void *user, st_log_level level, const char *line)
{
    heard *h = user;
    h->level = level;
    h->n++;
    snprintf(h->line, sizeof h->line, "%s", line);
}

static void log_lines_are_clean_and_optional(void **state)
{
    (void)state;
    heard h = { 0 };
    const st_log log = { listen, &h }, silent = { 0 };
    st_log_line(&log, ST_LOG_WARN, "%s %d", "name\x1b\n", 7);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.level, ST_LOG_WARN);
    assert_string_equal(h.line, "name?? 7");
    st_log_line(&silent, ST_LOG_ERROR, "x");
    st_log_line(NULL, ST_LOG_ERROR, "x");
    assert_int_equal(h.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_the_status_and_fills_the_error),
        cmocka_unit_test(message_may_be_its_own_argument),
        cmocka_unit_test(errno_is_put_into_words),
        cmocka_unit_test(prefix_goes_in_front),
        cmocka_unit_test(only_printable_utf8_gets_through),
        cmocka_unit_test(cleaning_is_idempotent),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(a_long_prefix_still_fits),
        cmocka_unit_test(log_lines_are_clean_and_optional),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
