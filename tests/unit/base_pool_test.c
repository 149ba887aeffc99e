/* base_pool_test.c: the fork-join pool. Nothing here depends on timing: where threads must meet, they meet at a barrier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/pool.h"

#define MAX_THREADS 7

typedef struct tally {
    atomic_int *hits;      /* per item */
    unsigned size;         /* of the pool */
    atomic_int bad_slots;  /* out of range, or seen with two threads */
    atomic_uintptr_t owner[MAX_THREADS];
} tally;

/* An address that is different in every thread. */
static _Thread_local int my_address;

static void count(void *arg, size_t item, unsigned slot)
{
    tally *t = arg;
    atomic_fetch_add(&t->hits[item], 1);
    if (slot >= t->size) {
        atomic_fetch_add(&t->bad_slots, 1);
        return;
    }
    uintptr_t nobody = 0;
    const uintptr_t me = (uintptr_t)&my_address;
    if (!atomic_compare_exchange_strong(&t->owner[slot], &nobody, me) && nobody != me) atomic_fetch_add(&t->bad_slots, 1);
}

/* Runs one job of n items and returns how often an item ran other than once, or a slot was wrong. */
static int faults(st_pool *pool, size_t n)
{
    tally t = { .size = st_pool_size(pool) };
    int n_faults = 0;
    t.hits = calloc(n + 1, sizeof *t.hits);
    if (!t.hits) abort();
    st_pool_run(pool, n, count, &t, NULL);
    for (size_t i = 0; i < n; i++) n_faults += atomic_load(&t.hits[i]) != 1;
    n_faults += atomic_load(&t.hits[n]) != 0;
    n_faults += atomic_load(&t.bad_slots);
    free(t.hits);
    return n_faults;
}

static void every_item_runs_once_in_a_good_slot(void **state)
{
    (void)state;
    const unsigned sizes[] = { 1, 2, 3, MAX_THREADS };
    const size_t n_items[] = { 0, 1, 2, 3, 7, 8, 1000 };
    for (size_t s = 0; s < 4; s++) {
        st_pool *pool;
        assert_int_equal(st_pool_new(&pool, sizes[s], NULL), ST_OK);
        assert_int_equal(st_pool_size(pool), sizes[s]);
        for (int round = 0; round < 30; round++)
            for (size_t i = 0; i < 7; i++) assert_int_equal(faults(pool, n_items[i]), 0);
        assert_in_range(st_pool_n_worked(pool), 1, sizes[s]);
        st_pool_free(pool);
    }
}

static void no_pool_means_the_caller_works(void **state)
{
    (void)state;
    assert_int_equal(st_pool_size(NULL), 1);
    assert_int_equal(faults(NULL, 100), 0);
    assert_int_equal(st_pool_n_worked(NULL), 1);
    st_pool_free(NULL);
}

static void meet(void *arg, size_t item, unsigned slot)
{
    (void)item, (void)slot;
    pthread_barrier_wait(arg);
}

/* Three items that wait for each other can only end when three threads work at once. */
static void all_threads_work_at_once(void **state)
{
    (void)state;
    st_pool *pool;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3);
    assert_int_equal(st_pool_new(&pool, 3, NULL), ST_OK);
    assert_int_equal(st_pool_n_worked(pool), 0);
    for (int i = 0; i < 20; i++) st_pool_run(pool, 3, meet, &barrier, NULL);
    assert_int_equal(st_pool_n_worked(pool), 3);
    st_pool_free(pool);
    pthread_barrier_destroy(&barrier);
}

/* What other threads wrote without atomics is there when the job has ended. */
static void square(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    ((size_t *)arg)[item] = item * item;
}

static void results_are_visible_to_the_caller(void **state)
{
    (void)state;
    st_pool *pool;
    size_t results[500];
    assert_int_equal(st_pool_new(&pool, 3, NULL), ST_OK);
    for (int round = 0; round < 50; round++) {
        memset(results, 0, sizeof results);
        st_pool_run(pool, 500, square, results, NULL);
        for (size_t i = 0; i < 500; i++) assert_int_equal(results[i], i * i);
    }
    st_pool_free(pool);
}

typedef struct caller {
    st_pool *pool;
    int n_faults;
} caller;

static void *call_often(void *arg)
{
    caller *c = arg;
    for (size_t round = 0; round < 200; round++) c->n_faults += faults(c->pool, round % 50);
    return NULL;
}

static void many_callers_share_a_pool(void **state)
{
    (void)state;
    st_pool *pool;
    pthread_t threads[4];
    caller callers[4];
    assert_int_equal(st_pool_new(&pool, 3, NULL), ST_OK);
    for (int i = 0; i < 4; i++) {
        callers[i] = (caller){ pool, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].n_faults, 0);
    }
    assert_in_range(st_pool_n_worked(pool), 1, 3);
    st_pool_free(pool);
}

/* A caller gets its own job done while the only worker is held up in another caller's. */
static void *hold_worker(void *arg)
{
    void **both = arg;
    st_pool_run(both[0], 2, meet, both[1], NULL);
    return NULL;
}

static void a_busy_pool_holds_nobody_up(void **state)
{
    (void)state;
    st_pool *pool;
    pthread_t other;
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 3); /* two items and this thread */
    assert_int_equal(st_pool_new(&pool, 2, NULL), ST_OK);
    void *both[2] = { pool, &barrier };
    assert_int_equal(pthread_create(&other, NULL, hold_worker, both), 0);
    assert_int_equal(faults(pool, 100), 0); /* ends although the others still wait at the barrier */
    pthread_barrier_wait(&barrier);
    pthread_join(other, NULL);
    st_pool_free(pool);
    pthread_barrier_destroy(&barrier);
}

typedef struct stopper {
    st_cancel *flag;
    atomic_size_t n_started;
    size_t stop_at;
} stopper;

static void stop_soon(void *arg, size_t item, unsigned slot)
{
    (void)item, (void)slot;
    stopper *s = arg;
    if (atomic_fetch_add(&s->n_started, 1) + 1 == s->stop_at) st_cancel_set(s->flag);
}

static void cancel_skips_what_has_not_started(void **state)
{
    (void)state;
    for (unsigned size = 1; size <= 3; size++) {
        st_pool *pool;
        stopper s = { .flag = st_cancel_new(), .stop_at = 10 };
        assert_non_null(s.flag);
        assert_int_equal(st_pool_new(&pool, size, NULL), ST_OK);
        st_pool_run(pool, 100000, stop_soon, &s, s.flag);
        assert_in_range(atomic_load(&s.n_started), 10, 99999);
        if (size == 1) assert_int_equal(atomic_load(&s.n_started), 10);

        atomic_store(&s.n_started, 0);
        st_pool_run(pool, 1000, stop_soon, &s, s.flag); /* set from the start: nothing runs */
        assert_int_equal(atomic_load(&s.n_started), 0);

        st_cancel_reset(s.flag);
        s.stop_at = 0;
        st_pool_run(pool, 1000, stop_soon, &s, s.flag); /* and the pool is as good as new */
        assert_int_equal(atomic_load(&s.n_started), 1000);
        st_pool_free(pool);
        st_cancel_free(s.flag);
    }
}

static void sizes_out_of_range_are_refused(void **state)
{
    (void)state;
    st_error err = { 0 };
    st_pool *pool = (st_pool *)1;
    assert_int_equal(st_pool_new(&pool, 0, &err), ST_ERR_INVALID_ARG);
    assert_null(pool);
    assert_int_equal(st_pool_new(&pool, ST_POOL_MAX_THREADS + 1, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "1025"));
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    st_error err = { 0 };
    st_pool *pool = (st_pool *)1;
    st_mem_fail_after(1);
    const st_status status = st_pool_new(&pool, 3, &err);
    st_mem_fail_after(0);
    assert_int_equal(status, ST_ERR_NOMEM);
    assert_null(pool);
    assert_true(err.message[0] != '\0');
}

/* In a child whose address space has no room for many more stacks: threads that did start are ended, and nothing hangs. */
static void threads_that_cannot_start_are_an_error(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers need the address space themselves */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    skip();
#endif
#endif
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = { 200u << 20, 200u << 20 };
        st_error err = { 0 };
        st_pool *pool = NULL;
        alarm(20);
        if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
        const st_status status = st_pool_new(&pool, 1000, &err);
        _exit(status == ST_ERR_NOMEM && !pool && strstr(err.message, "of 1000") ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_runs_once_in_a_good_slot),
        cmocka_unit_test(no_pool_means_the_caller_works),
        cmocka_unit_test(all_threads_work_at_once),
        cmocka_unit_test(results_are_visible_to_the_caller),
        cmocka_unit_test(many_callers_share_a_pool),
        cmocka_unit_test(a_busy_pool_holds_nobody_up),
        cmocka_unit_test(cancel_skips_what_has_not_started),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(threads_that_cannot_start_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
