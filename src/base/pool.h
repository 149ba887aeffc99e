/* pool.h: one fork-join pool per model. Sessions on several threads share it; a caller always works on its own job.
 *
 * Work is cut into items whose size depends on neither the number of threads nor the batch, and each item is computed by one thread in a fixed
 * order: that is what makes results bit-equal for any number of threads. Only exact arithmetic (int8 products) may be cut by the number of threads.
 */
#ifndef ST_BASE_POOL_H
#define ST_BASE_POOL_H

#include <stddef.h>
#include <stencil/stencil_base.h>

typedef struct st_pool st_pool;

#define ST_POOL_MAX_THREADS 1024

/* n_threads counts the caller: 1 starts no thread; 1 .. ST_POOL_MAX_THREADS. On failure *out is NULL. */
ST_MUSTCHECK st_status st_pool_new(st_pool **out, unsigned n_threads, st_error *err);
void st_pool_free(st_pool *pool); /* NULL is fine; no job may be running */
unsigned st_pool_size(const st_pool *pool);

/* `slot` is below st_pool_size and belongs to one thread for the whole job: an index into per-thread scratch. */
typedef void st_pool_fn(void *arg, size_t item, unsigned slot);
/* Runs fn for items 0 .. n_items-1 and returns when all are done. With `cancel` set, items not yet started are skipped.
 * Not to be called from inside an item. pool may be NULL: then the caller does everything. */
void st_pool_run(st_pool *pool, size_t n_items, st_pool_fn *fn, void *arg, const st_cancel *cancel);
/* How many different threads ever worked on an item (all callers count as one): tests ask. */
unsigned st_pool_n_worked(const st_pool *pool);

#endif
