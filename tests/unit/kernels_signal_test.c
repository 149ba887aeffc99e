/* kernels_signal_test.c: signals may come while a matrix product runs, and their handlers need a stack. Code that takes
 * the stack pointer for something else would let them write into the heap; registers that a handler's frame has no room for
 * (AMX's tiles) would come back changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "kernels/kernels.h"

enum { MAX_SIDE = 640, SIGNALS = 30, MAX_PRODUCTS = 200000 };

/* Small, deep, and large ones; some end in part of a tile of rows or of a block of k. */
static const struct {
    size_t m, n, k;
} shapes[] = { { 96, 128, 588 }, { 96, 256, 640 }, { 192, 256, 512 }, { 16, 64, 640 }, { 288, 640, 256 } };
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static uintptr_t stack_low, stack_high;
static volatile sig_atomic_t n_signals, n_elsewhere;

static void on_alarm(int number)
{
    (void)number;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    n_signals++;
    if (here < stack_low || here >= stack_high) n_elsewhere++;
}

static void find_stack(void)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
    assert_int_equal(pthread_attr_getstack(&attr, &low, &size), 0);
    pthread_attr_destroy(&attr);
    stack_low = (uintptr_t)low;
    stack_high = stack_low + size;
}

static void tick(long microseconds)
{
    const struct itimerval every = { { 0, microseconds }, { 0, microseconds } };
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void watch_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    n_signals = n_elsewhere = 0;
    tick(200);
}

static void check(const char *what)
{
    tick(0);
    if (n_elsewhere) fail_msg("%s: %d of %d signals came while the stack pointer was elsewhere", what,
                              (int)n_elsewhere, (int)n_signals);
    assert_true(n_signals >= SIGNALS);
}

static void float_products_leave_signals_a_stack(void **state)
{
    (void)state;
    const st_kernels *kernels = st_kernels_best();
    float *a = calloc(MAX_SIDE * MAX_SIDE, sizeof *a), *b = calloc(MAX_SIDE * MAX_SIDE, sizeof *b);
    float *c = calloc(MAX_SIDE * MAX_SIDE, sizeof *c);
    assert_true(a && b && c);
    for (size_t i = 0; i < MAX_SIDE * MAX_SIDE; i++) a[i] = 1.0f, b[i] = 2.0f;
    for (size_t s = 0; s < 2 * N_SHAPES; s++) {
        const size_t m = shapes[s / 2].m, n = shapes[s / 2].n, k = shapes[s / 2].k;
        const bool trans_b = s % 2 == 0;
        watch_signals();
        for (int i = 0; i < MAX_PRODUCTS && n_signals < SIGNALS; i++)
            kernels->gemm(trans_b, m, n, k, a, k, b, trans_b ? k : n, false, c, n);
        check("gemm");
        for (size_t i = 0; i < m * n; i++) assert_true(c[i] == 2.0f * (float)k);
    }
    free(a);
    free(b);
    free(c);
}

static void int8_products_leave_signals_a_stack(void **state)
{
    (void)state;
    const st_kernels *kernels = st_kernels_best();
    uint8_t *a = malloc(MAX_SIDE * MAX_SIDE);
    int8_t *b = malloc(MAX_SIDE * MAX_SIDE);
    int32_t *c = calloc(MAX_SIDE * MAX_SIDE, sizeof *c);
    int8_t *packed = malloc(2 * MAX_SIDE * MAX_SIDE);
    assert_true(a && b && c && packed);
    memset(a, 3, MAX_SIDE * MAX_SIDE);
    memset(b, 2, MAX_SIDE * MAX_SIDE);
    for (size_t s = 0; s < N_SHAPES; s++) {
        const size_t m = shapes[s].m, n = shapes[s].n, k = shapes[s].k;
        watch_signals();
        for (int i = 0; i < MAX_PRODUCTS && n_signals < SIGNALS; i++) kernels->gemm_u8s8(m, n, k, a, k, b, k, c, n);
        check("gemm_u8s8");
        for (size_t i = 0; i < m * n; i++) assert_int_equal(c[i], 6 * k);
        kernels->gemm_s8_pack(packed, n, k, b, k);
        watch_signals();
        for (int i = 0; i < MAX_PRODUCTS && n_signals < SIGNALS; i++) {
            memset(c, 0, m * n * sizeof *c);
            kernels->gemm_u8s8_packed(m, n, k, a, k, packed, c, n);
            for (size_t j = 0; j < m * n; j++) assert_int_equal(c[j], 6 * k);
        }
        check("gemm_u8s8_packed");
    }
    free(packed);
    free(a);
    free(b);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(float_products_leave_signals_a_stack),
                                        cmocka_unit_test(int8_products_leave_signals_a_stack) };
    find_stack();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
