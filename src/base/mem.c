/* mem.c: the only door to the heap. Every allocation passes `admit`, which counts it and decides whether it may succeed: that is how
 * tests walk through every out-of-memory path. The two counters are the only mutable globals here; they are atomic and relaxed,
 * since nothing is ordered by them. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/checked.h"

/* Above this a size is a mistake, not a wish. It also keeps sanitizers, which stop the program at such sizes, out of the picture. */
#if SIZE_MAX > UINT32_MAX
#define MAX_BYTES ((size_t)1 << 40)
#else
#define MAX_BYTES ((size_t)PTRDIFF_MAX)
#endif

static atomic_uint_fast64_t n_calls;
static atomic_uint_fast64_t fail_from; /* calls from this number on fail; 0 = off */

static bool admit(size_t n_bytes)
{
    const uint64_t call = atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed) + 1;
    const uint64_t from = atomic_load_explicit(&fail_from, memory_order_relaxed);
    return n_bytes <= MAX_BYTES && (from == 0 || call < from);
}

void *st_malloc(size_t n_bytes)
{
    return admit(n_bytes) ? malloc(n_bytes ? n_bytes : 1) : NULL;
}

void *st_calloc(size_t n, size_t size)
{
    size_t n_bytes;
    if (!st_mul_size(&n_bytes, n, size)) return NULL;
    return admit(n_bytes) ? calloc(n_bytes ? n_bytes : 1, 1) : NULL;
}

void *st_realloc_array(void *old, size_t n, size_t size)
{
    size_t n_bytes;
    if (!st_mul_size(&n_bytes, n, size)) return NULL;
    return admit(n_bytes) ? realloc(old, n_bytes ? n_bytes : 1) : NULL;
}

void *st_aligned(size_t n_bytes, size_t alignment)
{
    void *p = NULL;
    if (!admit(n_bytes)) return NULL;
    return posix_memalign(&p, alignment < sizeof p ? sizeof p : alignment, n_bytes ? n_bytes : 1) == 0 ? p : NULL;
}

char *st_strdup(const char *s)
{
    return st_strndup(s, strlen(s));
}

char *st_strndup(const char *s, size_t n)
{
    const size_t length = strnlen(s, n);
    char *copy = st_malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, s, length);
    copy[length] = '\0';
    return copy;
}

void st_free(void *p)
{
    free(p);
}

void st_mem_fail_after(uint64_t k)
{
    const uint64_t now = atomic_load_explicit(&n_calls, memory_order_relaxed);
    atomic_store_explicit(&fail_from, k ? now + k : 0, memory_order_relaxed);
}

uint64_t st_mem_n_calls(void)
{
    return atomic_load_explicit(&n_calls, memory_order_relaxed);
}
