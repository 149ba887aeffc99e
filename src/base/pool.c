/* pool.c: fork-join on pthreads. Each caller's job lies on its own stack and is in the pool's list while it has items to give; idle workers join
 * the first such job. One mutex guards the list and each job's head count; items are taken with an atomic counter, so that a tile costs no lock.
 *
 * A thread joins a job at most once (it leaves when no item is left), so a job sees at most its caller plus every worker: slots
 * handed out in order of joining are always below the pool's size.
 */
#include "base/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

typedef struct job {
    st_pool_fn *fn;
    void *arg;
    const st_cancel *cancel;
    size_t n_items;
    atomic_size_t next;  /* first item nobody took; may run past n_items by one per thread */
    unsigned n_joined;   /* guarded: slots handed out */
    unsigned n_inside;   /* guarded: workers that may still touch this job */
    struct job *after;   /* guarded: list link */
} job;

struct st_pool {
    pthread_mutex_t mutex;
    pthread_cond_t wake;  /* a job came, or the pool closes */
    pthread_cond_t left;  /* a worker left a job for which it may have been the last */
    job *jobs;            /* guarded: jobs that may have items to give, oldest first */
    bool closing;         /* guarded */
    atomic_uint n_worked; /* workers that worked, plus one once any caller did */
    atomic_bool caller_worked;
    unsigned size;        /* workers + 1 */
    pthread_t workers[];  /* [size - 1] */
};

/* Works until no item is left; true when it did at least one. */
static bool work(job *j, unsigned slot)
{
    bool worked = false;
    for (;;) {
        if (j->cancel && st_cancel_is_set(j->cancel)) {
            atomic_store_explicit(&j->next, j->n_items, memory_order_relaxed);
            return worked;
        }
        if (atomic_load_explicit(&j->next, memory_order_relaxed) >= j->n_items) return worked; /* keeps `next` from wrapping */
        const size_t item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (item >= j->n_items) return worked;
        j->fn(j->arg, item, slot);
        worked = true;
    }
}

static job *first_open_job(const st_pool *pool)
{
    job *j = pool->jobs;
    while (j && atomic_load_explicit(&j->next, memory_order_relaxed) >= j->n_items) j = j->after;
    return j;
}

static void *worker_main(void *arg)
{
    st_pool *pool = arg;
    bool counted = false;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->closing) {
        job *j = first_open_job(pool);
        if (!j) {
            pthread_cond_wait(&pool->wake, &pool->mutex);
            continue;
        }
        const unsigned slot = j->n_joined++;
        j->n_inside++;
        pthread_mutex_unlock(&pool->mutex);
        if (work(j, slot) && !counted) {
            counted = true;
            atomic_fetch_add_explicit(&pool->n_worked, 1, memory_order_relaxed);
        }
        pthread_mutex_lock(&pool->mutex);
        if (--j->n_inside == 0) pthread_cond_broadcast(&pool->left); /* the last touch of *j */
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Ends and joins the first n workers. */
static void stop_workers(st_pool *pool, unsigned n)
{
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < n; i++) pthread_join(pool->workers[i], NULL);
}

static void destroy(st_pool *pool)
{
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    st_free(pool);
}

/* A matrix product lays its blocks on the stack (kernels/kernels.h): some C libraries would give a thread less than that. */
enum { STACK_BYTES = 2 << 20 };

/* Starts the workers with every signal blocked: a program's handlers run on the program's own threads. */
static st_status start_workers(st_pool *pool, st_error *err)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int failure = pthread_attr_init(&attr);
    unsigned n = 0;
    if (failure != 0) return st_fail(err, ST_ERR_NOMEM, "cannot start threads (error %d)", failure);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (n + 1 < pool->size && (failure = pthread_create(&pool->workers[n], &attr, worker_main, pool)) == 0) n++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (failure == 0) return ST_OK;
    stop_workers(pool, n);
    return st_fail(err, ST_ERR_NOMEM, "cannot start thread %u of %u: the system refuses more threads (error %d)", n + 2,
                   pool->size, failure);
}

st_status st_pool_new(st_pool **out, unsigned n_threads, st_error *err)
{
    *out = NULL;
    if (n_threads < 1 || n_threads > ST_POOL_MAX_THREADS)
        return st_fail(err, ST_ERR_INVALID_ARG, "number of threads: expected 1 to %d, got %u", ST_POOL_MAX_THREADS, n_threads);
    st_pool *pool = st_calloc(1, sizeof *pool + (n_threads - 1) * sizeof pool->workers[0]);
    if (!pool) return st_fail(err, ST_ERR_NOMEM, "cannot allocate a pool of %u threads", n_threads);
    pool->size = n_threads;
    atomic_init(&pool->n_worked, 0);
    atomic_init(&pool->caller_worked, false);
    /* With default attributes these three cannot fail on Linux. */
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->left, NULL);
    const st_status status = start_workers(pool, err);
    if (status != ST_OK) {
        destroy(pool);
        return status;
    }
    *out = pool;
    return ST_OK;
}

void st_pool_free(st_pool *pool)
{
    if (!pool) return;
    stop_workers(pool, pool->size - 1);
    destroy(pool);
}

unsigned st_pool_size(const st_pool *pool)
{
    return pool ? pool->size : 1;
}

static void publish(st_pool *pool, job *j)
{
    pthread_mutex_lock(&pool->mutex);
    job **end = &pool->jobs;
    while (*end) end = &(*end)->after;
    *end = j;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

/* Takes the job off the list and waits for the workers that are still inside it. */
static void retire(st_pool *pool, job *j)
{
    pthread_mutex_lock(&pool->mutex);
    job **link = &pool->jobs;
    while (*link != j) link = &(*link)->after;
    *link = j->after;
    while (j->n_inside > 0) pthread_cond_wait(&pool->left, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

void st_pool_run(st_pool *pool, size_t n_items, st_pool_fn *fn, void *arg, const st_cancel *cancel)
{
    job j = { .fn = fn, .arg = arg, .cancel = cancel, .n_items = n_items, .n_joined = 1 };
    atomic_init(&j.next, 0);
    const bool shared = pool && pool->size > 1 && n_items > 1;
    if (shared) publish(pool, &j);
    const bool worked = work(&j, 0);
    if (worked && pool && !atomic_exchange_explicit(&pool->caller_worked, true, memory_order_relaxed))
        atomic_fetch_add_explicit(&pool->n_worked, 1, memory_order_relaxed);
    if (shared) retire(pool, &j);
}

unsigned st_pool_n_worked(const st_pool *pool)
{
    return pool ? atomic_load_explicit(&((st_pool *)pool)->n_worked, memory_order_relaxed) : 1;
}
