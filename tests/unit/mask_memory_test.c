/* mask_memory_test.c: every allocation of the mask room fails once; each failure must be reported, leave the output
 * zeroed and lose nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/mem.h"
#include "mask_reference.h"

enum { SIDE = 48 };

typedef struct inputs {
    uint8_t dense[SIDE * SIDE];
    float logits[SIDE * SIDE];
    st_rle mask;
    char *string;
} inputs;

static inputs in;

static int set_up(void **state)
{
    (void)state;
    uint64_t seed = 41;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        in.dense[i] = ref_random(&seed) % 3 == 0;
        in.logits[i] = in.dense[i] ? 1.5f : -0.5f;
    }
    return st_rle_from_dense(&in.mask, in.dense, SIDE, SIDE, SIDE, NULL) != ST_OK ||
           st_rle_to_string(&in.string, &in.mask, NULL) != ST_OK;
}

static int tear_down(void **state)
{
    (void)state;
    st_rle_free(&in.mask);
    st_string_free(in.string);
    return 0;
}

typedef st_status operation(st_rle *out, st_error *err);

static st_status run_from_dense(st_rle *out, st_error *err)
{
    return st_rle_from_dense(out, in.dense, SIDE, SIDE, SIDE, err);
}
static st_status run_from_logits(st_rle *out, st_error *err)
{
    return st_rle_from_logits(out, in.logits, SIDE, SIDE, 200, 150, 0, err);
}
static st_status run_copy(st_rle *out, st_error *err)
{
    return st_rle_copy(out, &in.mask, err);
}
static st_status run_from_string(st_rle *out, st_error *err)
{
    return st_rle_from_string(out, in.string, strlen(in.string), SIDE, SIDE, err);
}
static st_status run_from_counts(st_rle *out, st_error *err)
{
    return st_rle_from_counts(out, in.mask.counts, in.mask.n_counts, SIDE, SIDE, err);
}
static st_status run_combine(st_rle *out, st_error *err)
{
    return st_rle_combine(out, &in.mask, &in.mask, ST_RLE_UNION, err);
}
/* The two that make something else: what they made is checked here. */
static st_status run_to_string(st_rle *out, st_error *err)
{
    char *string = in.string;
    const st_status status = st_rle_to_string(&string, &in.mask, err);
    *out = (st_rle){ 0 };
    if (status == ST_OK) assert_string_equal(string, in.string);
    else assert_null(string);
    st_string_free(string);
    return status;
}
static st_status run_to_polygons(st_rle *out, st_error *err)
{
    st_polygons polygons = { NULL, 99 };
    const st_status status = st_rle_to_polygons(&polygons, &in.mask, err);
    *out = (st_rle){ 0 };
    if (status == ST_OK) assert_true(polygons.n > 50);
    else assert_true(polygons.n == 0 && !polygons.items);
    st_polygons_free(&polygons);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    /* The last allocation of a growing run list only gives memory back: its failure changes nothing. */
    static const struct {
        operation *run;
        uint64_t min_failures;
    } operations[] = {
        { run_from_dense, 3 },  { run_from_logits, 5 }, { run_copy, 1 },      { run_from_string, 3 },
        { run_from_counts, 3 }, { run_combine, 3 },     { run_to_string, 1 }, { run_to_polygons, 6 },
    };
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        uint64_t n_failures = 0;
        for (uint64_t k = 1;; k++) {
            uint32_t nonsense[1];
            st_rle out = { 7, 7, nonsense, 7 };
            st_error err = { 0 };
            const uint64_t before = st_mem_n_calls();
            st_mem_fail_after(k);
            const st_status status = operations[i].run(&out, &err);
            st_mem_fail_after(0);
            const bool reached = st_mem_n_calls() - before >= k;
            if (status == ST_OK) {
                st_rle_free(&out);
                if (!reached) break;
                continue;
            }
            n_failures++;
            assert_int_equal(status, ST_ERR_NOMEM);
            assert_int_equal(err.status, ST_ERR_NOMEM);
            assert_non_null(strstr(err.message, "memory"));
            assert_null(out.counts);
            assert_int_equal(out.n_counts, 0);
            assert_int_equal(out.width, 0);
        }
        if (n_failures < operations[i].min_failures)
            fail_msg("operation %zu failed only %u times", i, (unsigned)n_failures);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_fails_once) };
    return cmocka_run_group_tests_name("mask_memory", tests, set_up, tear_down);
}
