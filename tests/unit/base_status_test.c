/* base_status_test.c: version, status names, cancel flag, clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stencil/stencil_base.h>
#include "base/clock.h"
#include "base/mem.h"

static void version_is_one_fact(void **state)
{
    (void)state;
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", ST_VERSION_MAJOR, ST_VERSION_MINOR, ST_VERSION_PATCH);
    assert_string_equal(st_version(), expected);
    assert_string_equal(st_version(), ST_VERSION_STRING);
}

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int a = ST_OK; a <= ST_ERR_INTERNAL; a++) {
        assert_string_not_equal(st_status_name((st_status)a), "unknown");
        for (int b = ST_OK; b < a; b++) assert_string_not_equal(st_status_name((st_status)a), st_status_name((st_status)b));
    }
    assert_string_equal(st_status_name((st_status)99), "unknown");
    assert_string_equal(st_status_name(ST_ERR_FORMAT), "format");
}

/* Released values never change: callers store them. */
static void status_values_are_pinned(void **state)
{
    (void)state;
    const int values[] = { ST_OK, ST_ERR_INVALID_ARG, ST_ERR_NOMEM, ST_ERR_IO, ST_ERR_FORMAT, ST_ERR_UNSUPPORTED, ST_ERR_LIMIT,
                           ST_ERR_CANCELLED, ST_ERR_NONFINITE, ST_ERR_INTERNAL };
    for (int i = 0; i < (int)(sizeof values / sizeof values[0]); i++) assert_int_equal(values[i], i);
}

static st_cancel *signalled;
static void on_signal(int number)
{
    (void)number;
    st_cancel_set(signalled);
}

static void cancel_flag_sets_resets_and_takes_signals(void **state)
{
    (void)state;
    st_cancel *flag = st_cancel_new();
    assert_non_null(flag);
    assert_false(st_cancel_is_set(flag));
    st_cancel_set(flag);
    assert_true(st_cancel_is_set(flag));
    st_cancel_reset(flag);
    assert_false(st_cancel_is_set(flag));
    signalled = flag;
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    assert_true(st_cancel_is_set(flag));
    st_cancel_free(flag);
}

static void cancel_takes_null_and_reports_no_memory(void **state)
{
    (void)state;
    st_cancel_set(NULL);
    st_cancel_reset(NULL);
    assert_false(st_cancel_is_set(NULL));
    st_cancel_free(NULL);
    st_mem_fail_after(1);
    st_cancel *flag = st_cancel_new();
    st_mem_fail_after(0);
    assert_null(flag);
}

static void clock_goes_forward(void **state)
{
    (void)state;
    const double start = st_clock_seconds();
    double now = start, before = start;
    for (int i = 0; i < 1000000 && now == start; i++) {
        now = st_clock_seconds();
        assert_true(now >= before);
        before = now;
    }
    assert_true(now > start && now - start < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_one_fact),
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(status_values_are_pinned),
        cmocka_unit_test(cancel_flag_sets_resets_and_takes_signals),
        cmocka_unit_test(cancel_takes_null_and_reports_no_memory),
        cmocka_unit_test(clock_goes_forward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
