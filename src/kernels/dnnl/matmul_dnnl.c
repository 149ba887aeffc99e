/* matmul_dnnl.c: a primitive is made once per shape and kept: a model has some dozens of shapes. Weights stay where they
 * are; the library re-orders a block of them at a time in scratch memory. That is ours, one piece per thread, kept
 * until the thread ends: the library's own belongs to the thread that made the primitive, and two threads would write into
 * it at once.
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

/* A thread's scratch memory, as large as its largest product wanted. */
typedef struct desk {
    void *scratch;
    size_t n_bytes;
} desk;
static pthread_key_t desk_key; /* the thread's desk */
static pthread_once_t desk_once = PTHREAD_ONCE_INIT;
static bool has_desks;

static void free_desk(void *arg)
{
    desk *d = arg;
    st_free(d->scratch);
    st_free(d);
}

static void make_key(void)
{
    has_desks = pthread_key_create(&desk_key, free_desk) == 0;
}

/* NULL without memory. */
static void *scratch_of_thread(size_t n)
{
    pthread_once(&desk_once, make_key);
    desk *d = has_desks ? pthread_getspecific(desk_key) : NULL;
    if (has_desks && !d) {
        d = st_calloc(1, sizeof *d);
        if (d && pthread_setspecific(desk_key, d) != 0) {
            st_free(d);
            d = NULL;
        }
    }
    if (!d) return NULL;
    if (d->n_bytes < n) {
        st_free(d->scratch);
        d->scratch = st_aligned(n, 64);
        d->n_bytes = d->scratch ? n : 0;
    }
    return d->scratch;
}

static bool multiply(const kept *p, const uint8_t *a, const int8_t *b, int32_t *c)
{
    dnnl_memory_t memory[4] = { NULL };
    dnnl_stream_t stream = NULL;
    void *scratch = p->primitive ? scratch_of_thread(p->scratch) : NULL;
    if (!scratch) return false;
    /* the library's handles are not const; it reads a and b only */
    dnnl_status_t status = dnnl_memory_create(&memory[0], DESC(p->a), engine, (void *)(uintptr_t)a);
    if (status == dnnl_success) status = dnnl_memory_create(&memory[1], DESC(p->b), engine, (void *)(uintptr_t)b);
    if (status == dnnl_success) status = dnnl_memory_create(&memory[2], DESC(p->c), engine, c);
    if (status == dnnl_success) status = dnnl_memory_create(&memory[3], DESC(p->bytes), engine, scratch);
    if (status == dnnl_success) status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t args[] = { { DNNL_ARG_SRC, memory[0] },
                                         { DNNL_ARG_WEIGHTS, memory[1] },
                                         { DNNL_ARG_DST, memory[2] },
                                         { DNNL_ARG_SCRATCHPAD, memory[3] } };
        status = dnnl_primitive_execute(p->primitive, stream, 4, args);
    }
    for (size_t i = 0; i < 4; i++)
        if (memory[i]) (void)dnnl_memory_destroy(memory[i]);
    if (stream) (void)dnnl_stream_destroy(stream);
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
