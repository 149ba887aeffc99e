/* matmul_dnnl.c: a primitive is made once per shape and kept: a model has some dozens of shapes. Weights stay where they
 * are; the library re-orders a block of them at a time in scratch memory. That is ours, one piece per thread, kept
 * until the thread ends: the library's own belongs to the thread that made the primitive, and two threads would write into
 * it at once. A thread also keeps the library's handles for each shape, which cost more than a small product.
 */
#include "kernels/dnnl/matmul_dnnl.h"

#include <dnnl.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"

typedef struct shape {
    size_t m, n, k, lda, ldb, ldc;
} shape;

typedef struct kept {
    shape of;
    dnnl_memory_desc_t a, b, c, bytes; /* bytes: the scratch memory; a pointer in 3.x, a struct in 2.x */
    size_t scratch;                    /* bytes; 0: none */
    dnnl_primitive_t primitive;        /* NULL: the library refuses this shape */
} kept;

/* Never freed: as long-lived as the table of kernels that uses them. */
enum { MOST_KEPT = 512 };
static kept all_kept[MOST_KEPT];
static size_t n_kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dnnl_engine_t engine;

#if DNNL_VERSION_MAJOR >= 3
static dnnl_status_t describe(dnnl_memory_desc_t *out, size_t rows, size_t cols, dnnl_data_type_t type, size_t row_step,
                              size_t col_step)
{
    const dnnl_dims_t dims = { (dnnl_dim_t)rows, (dnnl_dim_t)cols };
    const dnnl_dims_t strides = { (dnnl_dim_t)row_step, (dnnl_dim_t)col_step };
    return dnnl_memory_desc_create_with_strides(out, 2, dims, type, strides);
}
static dnnl_status_t describe_product(dnnl_primitive_desc_t *out, const kept *p, dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(out, engine, p->a, p->b, NULL, p->c, attr);
}
static void forget(kept *p)
{
    dnnl_memory_desc_t *all[4] = { &p->a, &p->b, &p->c, &p->bytes };
    for (size_t i = 0; i < 4; i++) {
        if (*all[i]) (void)dnnl_memory_desc_destroy(*all[i]);
        *all[i] = NULL;
    }
}
#define DESC(d) (d)
#else
static dnnl_status_t describe(dnnl_memory_desc_t *out, size_t rows, size_t cols, dnnl_data_type_t type, size_t row_step,
                              size_t col_step)
{
    const dnnl_dims_t dims = { (dnnl_dim_t)rows, (dnnl_dim_t)cols };
    const dnnl_dims_t strides = { (dnnl_dim_t)row_step, (dnnl_dim_t)col_step };
    return dnnl_memory_desc_init_by_strides(out, 2, dims, type, strides);
}
static dnnl_status_t describe_product(dnnl_primitive_desc_t *out, const kept *p, dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t op;
    const dnnl_status_t status = dnnl_matmul_desc_init(&op, &p->a, &p->b, NULL, &p->c);
    return status == dnnl_success ? dnnl_primitive_desc_create(out, &op, attr, engine, NULL) : status;
}
static void forget(kept *p)
{
    (void)p;
}
#define DESC(d) (&(d))
#endif

/* Of a zeroed *p whose shape is set. Under the lock. */
static void make(kept *p)
{
    const shape *s = &p->of;
    dnnl_primitive_desc_t pd = NULL;
    if (!engine && dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) return;
    if (describe(&p->a, s->m, s->k, dnnl_u8, s->lda, 1) != dnnl_success) return;
    if (describe(&p->b, s->k, s->n, dnnl_s8, 1, s->ldb) != dnnl_success) return;
    if (describe(&p->c, s->m, s->n, dnnl_s32, s->ldc, 1) != dnnl_success) return;
    dnnl_primitive_attr_t attr = NULL;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success) return;
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
        describe_product(&pd, p, attr) == dnnl_success) {
        const size_t n = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0));
        p->scratch = n ? n : 1;
        if (describe(&p->bytes, 1, p->scratch, dnnl_u8, p->scratch, 1) != dnnl_success ||
            dnnl_primitive_create(&p->primitive, pd) != dnnl_success)
            p->primitive = NULL;
        (void)dnnl_primitive_desc_destroy(pd);
    }
    (void)dnnl_primitive_attr_destroy(attr);
}

/* With every place taken the product makes its own, in `spare`: slower, the same bits. */
static const kept *find(const shape *s, kept *spare)
{
    const kept *found = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_kept && !found; i++)
        if (memcmp(&all_kept[i].of, s, sizeof *s) == 0) found = &all_kept[i];
    if (!found) {
        kept *place = n_kept < MOST_KEPT ? &all_kept[n_kept++] : spare;
        place->of = *s;
        make(place);
        found = place;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

enum { A, B, C, SCRATCH, N_HANDLES };

/* What a thread keeps: scratch memory as large as its largest product wanted, and the library's handles. */
typedef struct desk {
    void *scratch;
    size_t n_bytes;
    dnnl_stream_t stream;
    dnnl_memory_t memory[MOST_KEPT][N_HANDLES]; /* by the place of the shape; NULL until it is used */
} desk;
static pthread_key_t desk_key; /* the thread's desk */
static pthread_once_t desk_once = PTHREAD_ONCE_INIT;
static bool has_desks;

static void free_handles(dnnl_memory_t memory[N_HANDLES])
{
    for (size_t i = 0; i < N_HANDLES; i++) {
        if (memory[i]) (void)dnnl_memory_destroy(memory[i]);
        memory[i] = NULL;
    }
}

static void free_desk(void *arg)
{
    desk *d = arg;
    for (size_t i = 0; i < MOST_KEPT; i++) free_handles(d->memory[i]);
    if (d->stream) (void)dnnl_stream_destroy(d->stream);
    st_free(d->scratch);
    st_free(d);
}

static void make_key(void)
{
    has_desks = pthread_key_create(&desk_key, free_desk) == 0;
}

/* NULL without memory. */
static desk *desk_of_thread(void)
{
    pthread_once(&desk_once, make_key);
    desk *d = has_desks ? pthread_getspecific(desk_key) : NULL;
    if (d || !has_desks) return d;
    d = st_calloc(1, sizeof *d);
    if (d && (dnnl_stream_create(&d->stream, engine, dnnl_stream_default_flags) != dnnl_success || pthread_setspecific(desk_key, d) != 0)) {
        free_desk(d);
        d = NULL;
    }
    return d;
}

static bool grow(desk *d, size_t n)
{
    if (d->n_bytes >= n) return true;
    st_free(d->scratch);
    d->scratch = st_aligned(n, 64);
    d->n_bytes = d->scratch ? n : 0;
    return d->scratch != NULL;
}

/* Handles of the product's four pieces of memory, which lie where `at` says. All or none are made. */
static bool point(dnnl_memory_t memory[N_HANDLES], const kept *p, void *const at[N_HANDLES])
{
    const bool made = memory[0] != NULL;
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < N_HANDLES && status == dnnl_success; i++) {
        if (made) {
            status = dnnl_memory_set_data_handle(memory[i], at[i]);
            continue;
        }
        const dnnl_memory_desc_t *const of[N_HANDLES] = { &p->a, &p->b, &p->c, &p->bytes };
        status = dnnl_memory_create(&memory[i], DESC(*of[i]), engine, at[i]);
    }
    if (status != dnnl_success) free_handles(memory);
    return status == dnnl_success;
}

static bool multiply(const kept *p, const uint8_t *a, const int8_t *b, int32_t *c)
{
    desk *d = p->primitive ? desk_of_thread() : NULL;
    if (!d || !grow(d, p->scratch)) return false;
    const bool spare = p < all_kept || p >= all_kept + MOST_KEPT;
    dnnl_memory_t own[N_HANDLES] = { NULL }, *memory = spare ? own : d->memory[p - all_kept];
    /* the library's handles are not const; it reads a and b only */
    void *const at[N_HANDLES] = { (void *)(uintptr_t)a, (void *)(uintptr_t)b, c, d->scratch };
    if (!point(memory, p, at)) return false;
    const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, memory[A] },
                                     { DNNL_ARG_WEIGHTS, memory[B] },
                                     { DNNL_ARG_DST, memory[C] },
                                     { DNNL_ARG_SCRATCHPAD, memory[SCRATCH] } };
    const dnnl_status_t status = dnnl_primitive_execute(p->primitive, d->stream, N_HANDLES, args);
    free_handles(own);
    return status == dnnl_success;
}

bool st_matmul_u8s8_dnnl(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                         int32_t *c, size_t ldc)
{
    kept spare = { .primitive = NULL };
    const kept *p = find(&(shape){ m, n, k, lda, ldb, ldc }, &spare);
    const bool done = multiply(p, a, b, c);
    if (spare.primitive) (void)dnnl_primitive_destroy(spare.primitive);
    if (p == &spare) forget(&spare);
    return done;
}
