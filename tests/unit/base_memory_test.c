/* base_memory_test.c: checked sizes, the heap's door, the growing buffer, the arena. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/checked.h"
#include "base/mem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* ---------------------------------------------------------------- sizes */

static void sizes_do_not_wrap(void **state)
{
    (void)state;
    size_t n;
    assert_true(st_mul_size(&n, 3, 5) && n == 15);
    assert_true(st_mul_size(&n, 0, SIZE_MAX) && n == 0);
    assert_true(st_mul_size(&n, 1, SIZE_MAX) && n == SIZE_MAX);
    assert_false(st_mul_size(&n, 2, SIZE_MAX / 2 + 1));
    assert_false(st_mul_size(&n, SIZE_MAX, SIZE_MAX));
    assert_true(st_add_size(&n, SIZE_MAX - 1, 1) && n == SIZE_MAX);
    assert_false(st_add_size(&n, SIZE_MAX, 1));
    assert_int_equal(st_round_up(0, 64), 0);
    assert_int_equal(st_round_up(1, 64), 64);
    assert_int_equal(st_round_up(64, 64), 64);
    assert_int_equal(st_round_up(65, 64), 128);
}

static void ranges_do_not_wrap(void **state)
{
    (void)state;
    assert_true(st_range_fits(0, 0, 0));
    assert_true(st_range_fits(3, 7, 10));
    assert_true(st_range_fits(10, 0, 10));
    assert_false(st_range_fits(3, 8, 10));
    assert_false(st_range_fits(11, 0, 10));
    assert_false(st_range_fits(UINT64_MAX, 2, 10)); /* the sum is 1 */
    assert_false(st_range_fits(2, UINT64_MAX, 10));
    assert_true(st_range_fits(0, UINT64_MAX, UINT64_MAX));
}

/* ---------------------------------------------------------------- heap */

static void heap_refuses_what_cannot_be(void **state)
{
    (void)state;
    assert_null(st_malloc(SIZE_MAX));
    assert_null(st_malloc((size_t)1 << 41));
    assert_null(st_calloc(SIZE_MAX / 2, 3)); /* the product wraps to something small */
    assert_null(st_realloc_array(NULL, SIZE_MAX / 4 + 2, 4));
    assert_null(st_aligned(SIZE_MAX, 64));
}

static void heap_takes_zero_and_null(void **state)
{
    (void)state;
    void *p[] = { st_malloc(0), st_calloc(0, 8), st_calloc(8, 0), st_realloc_array(NULL, 0, 4), st_aligned(0, 64) };
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        assert_non_null(p[i]);
        st_free(p[i]);
    }
    st_free(NULL);
}

static void heap_zeroes_aligns_and_copies(void **state)
{
    (void)state;
    unsigned char *zero = st_calloc(100, 3);
    assert_non_null(zero);
    for (int i = 0; i < 300; i++) assert_int_equal(zero[i], 0);
    zero[299] = 7;
    zero = st_realloc_array(zero, 400, 3);
    assert_non_null(zero);
    assert_int_equal(zero[299], 7);
    st_free(zero);
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *p = st_aligned(10, alignment);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignment, 0);
        st_free(p);
    }
    char *whole = st_strdup("text"), *part = st_strndup("text", 2), *longer = st_strndup("text", 99);
    assert_string_equal(whole, "text");
    assert_string_equal(part, "te");
    assert_string_equal(longer, "text");
    st_free(whole);
    st_free(part);
    st_free(longer);
}

static void heap_fails_from_the_kth_call(void **state)
{
    (void)state;
    for (uint64_t k = 1; k <= 6; k++) {
        const uint64_t before = st_mem_n_calls();
        st_mem_fail_after(k);
        void *p[6] = { st_malloc(1), st_calloc(1, 1), st_realloc_array(NULL, 1, 1), st_aligned(1, 64), st_strdup("x"),
                       st_strndup("x", 1) };
        st_mem_fail_after(0);
        assert_int_equal(st_mem_n_calls() - before, 6);
        for (uint64_t i = 0; i < 6; i++) {
            if (i + 1 < k) assert_non_null(p[i]);
            else assert_null(p[i]);
            st_free(p[i]);
        }
    }
    void *after = st_malloc(1);
    assert_non_null(after);
    st_free(after);
}

/* ---------------------------------------------------------------- buffer */

static void buffer_grows_and_stays_terminated(void **state)
{
    (void)state;
    st_buf b;
    st_buf_init(&b, 1 << 20);
    for (int i = 0; i < 1000; i++) {
        assert_true(st_buf_addf(&b, "%d,", i));
        assert_int_equal(strlen(b.data), b.n);
    }
    assert_true(st_buf_adds(&b, "end"));
    assert_true(st_buf_add(&b, "\0x", 2));
    assert_true(st_buf_add(&b, NULL, 0));
    assert_memory_equal(b.data, "0,1,2,", 6);
    assert_memory_equal(b.data + b.n - 5, "end\0x", 6);
    st_buf_free(&b);
    assert_null(b.data);
    st_buf_free(NULL);
}

static void buffer_keeps_its_cap(void **state)
{
    (void)state;
    st_buf b;
    st_buf_init(&b, 100);
    for (int i = 0; i < 10; i++) assert_true(st_buf_add(&b, "0123456789", 10));
    assert_true(b.room <= 101);
    assert_true(st_buf_add(&b, "", 0));
    assert_false(st_buf_adds(&b, "x"));
    assert_true(b.failed);
    assert_int_equal(b.n, 100);
    assert_false(st_buf_add(&b, "", 0)); /* errors stick */
    assert_null(st_buf_take(&b));
    assert_null(b.data);

    st_buf_init(&b, 3);
    assert_false(st_buf_addf(&b, "%s", "four"));
    assert_null(st_buf_take(&b));
    st_buf_init(&b, SIZE_MAX);
    assert_true(st_buf_adds(&b, "ab"));
    assert_false(st_buf_add(&b, "x", SIZE_MAX)); /* 2 + SIZE_MAX wraps */
    st_buf_free(&b);
    st_buf_init(&b, SIZE_MAX);
    assert_false(st_buf_add(&b, "x", SIZE_MAX)); /* the NUL would wrap */
    st_buf_free(&b);
}

static void buffer_hands_over(void **state)
{
    (void)state;
    st_buf b;
    st_buf_init(&b, 10);
    char *empty = st_buf_take(&b);
    assert_string_equal(empty, "");
    st_free(empty);
    assert_true(st_buf_adds(&b, "again"));
    char *text = st_buf_take(&b);
    assert_string_equal(text, "again");
    assert_null(b.data);
    assert_int_equal(b.n, 0);
    st_free(text);
}

static void buffer_survives_every_failed_allocation(void **state)
{
    (void)state;
    bool done = false;
    uint64_t k = 1;
    for (; !done && k < 50; k++) {
        st_buf b;
        st_buf_init(&b, 1 << 16);
        st_mem_fail_after(k);
        for (int i = 0; i < 300; i++) st_buf_addf(&b, "line %d\n", i);
        char *text = st_buf_take(&b);
        st_mem_fail_after(0);
        done = text != NULL;
        if (done) assert_string_equal(text + strlen(text) - 9, "line 299\n");
        st_free(text);
    }
    assert_true(done && k > 3);
}

/* ---------------------------------------------------------------- arena */

/* Allocations of all kinds of sizes with nested marks; touches every byte of a real arena. */
static bool use(st_arena *a, bool touch)
{
    const size_t sizes[] = { 1, 0, 63, 64, 65, 1000, 4096, 7 };
    bool ok = true;
    for (size_t round = 0; round < 5; round++) {
        const size_t mark = st_arena_mark(a);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            unsigned char *p = st_arena_alloc(a, sizes[i], round + 1);
            if (!p) return false;
            ok = ok && (uintptr_t)p % ST_ARENA_ALIGN == 0;
            if (touch) memset(p, 0x99, sizes[i] * (round + 1));
            if (i % 3 == 2) st_arena_rewind(a, mark);
        }
        if (round % 2) st_arena_rewind(a, mark);
    }
    return ok;
}

static void arena_plan_is_exact(void **state)
{
    (void)state;
    st_arena plan, real;
    st_arena_plan(&plan);
    assert_true(use(&plan, false));
    assert_false(plan.overflowed);
    assert_null(plan.base);

    assert_int_equal(st_arena_init(&real, plan.peak, NULL), ST_OK);
    assert_true(use(&real, true));
    assert_int_equal(real.peak, plan.peak);
    assert_int_equal(real.used, plan.used);
    assert_false(real.overflowed);
    st_arena_free(&real);

    assert_int_equal(st_arena_init(&real, plan.peak - 1, NULL), ST_OK);
    assert_false(use(&real, true));
    assert_true(real.overflowed);
    st_arena_free(&real);
}

static void arena_plan_hands_out_distinct_addresses(void **state)
{
    (void)state;
    st_arena a;
    st_arena_plan(&a);
    const unsigned char *first = st_arena_alloc(&a, 10, 1), *second = st_arena_alloc(&a, 10, 1);
    assert_int_equal((uintptr_t)first, 64);
    assert_true((uintptr_t)second >= 64 + 64);
    st_arena_rewind(&a, 0);
    assert_int_equal((uintptr_t)st_arena_alloc(&a, 1, 1), 64);
    assert_int_equal(a.peak, 2 * ((uintptr_t)second - (uintptr_t)first));
}

static void arena_overflow_is_seen_and_survived(void **state)
{
    (void)state;
    st_arena a;
    assert_int_equal(st_arena_init(&a, 1024, NULL), ST_OK);
    assert_null(st_arena_alloc(&a, 1025, 1));
    assert_true(a.overflowed);
    assert_null(st_arena_alloc(&a, SIZE_MAX, 2));
    assert_null(st_arena_alloc(&a, SIZE_MAX, 1));
    assert_null(st_arena_alloc(&a, SIZE_MAX / 64 + 1, 64));
    assert_int_equal(a.used, 0);
    assert_non_null(st_arena_alloc(&a, 100, 1));
    st_arena_free(&a);
    st_arena_free(NULL);

    st_arena_plan(&a);
    assert_non_null(st_arena_alloc(&a, SIZE_MAX / 2, 1));
    assert_null(st_arena_alloc(&a, SIZE_MAX / 2, 1));
    assert_true(a.overflowed);
}

static void arena_without_memory_says_so(void **state)
{
    (void)state;
    st_arena a;
    st_error err = { 0 };
    st_mem_fail_after(1);
    const st_status status = st_arena_init(&a, 1000, &err);
    st_mem_fail_after(0);
    assert_int_equal(status, ST_ERR_NOMEM);
    assert_non_null(strstr(err.message, "1000 bytes"));
    st_arena_free(&a);
}

static void arena_poisons_what_is_not_handed_out(void **state)
{
    (void)state;
#ifdef WITH_ASAN
    st_arena a;
    assert_int_equal(st_arena_init(&a, 4096, NULL), ST_OK);
    assert_true(__asan_address_is_poisoned(a.base));
    unsigned char *p = st_arena_alloc(&a, 100, 1), *q = st_arena_alloc(&a, 8, 1);
    assert_false(__asan_address_is_poisoned(p + 99));
    assert_true(__asan_address_is_poisoned(p + 104)); /* shadow granularity is 8 bytes */
    assert_true(__asan_address_is_poisoned(q - 1));
    assert_true(__asan_address_is_poisoned(q + 8));
    st_arena_rewind(&a, 0);
    assert_true(__asan_address_is_poisoned(p));
    st_arena_free(&a);
#else
    /* Without the sanitizer blocks are packed: no red zone in the plan. */
    st_arena a;
    st_arena_plan(&a);
    st_arena_alloc(&a, 64, 1);
    assert_int_equal(a.used, 64);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(ranges_do_not_wrap),
        cmocka_unit_test(heap_refuses_what_cannot_be),
        cmocka_unit_test(heap_takes_zero_and_null),
        cmocka_unit_test(heap_zeroes_aligns_and_copies),
        cmocka_unit_test(heap_fails_from_the_kth_call),
        cmocka_unit_test(buffer_grows_and_stays_terminated),
        cmocka_unit_test(buffer_keeps_its_cap),
        cmocka_unit_test(buffer_hands_over),
        cmocka_unit_test(buffer_survives_every_failed_allocation),
        cmocka_unit_test(arena_plan_is_exact),
        cmocka_unit_test(arena_plan_hands_out_distinct_addresses),
        cmocka_unit_test(arena_overflow_is_seen_and_survived),
        cmocka_unit_test(arena_without_memory_says_so),
        cmocka_unit_test(arena_poisons_what_is_not_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
