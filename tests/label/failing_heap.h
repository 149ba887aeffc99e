/* failing_heap.h: a heap for a whole test program that fails when told: not only the product's own calls but those of libc (streams in memory, getline,
 * scandir) and of the libraries, too. Blocks that are alive are counted, so that a leak shows; AddressSanitizer, which has its own strdup and the like, finds
 * leaks itself. To be included once; glibc only.
 */
#ifndef FAILING_HEAP_H
#define FAILING_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HEAP_OF_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HEAP_OF_ASAN 1
#endif
#ifdef HEAP_OF_ASAN
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif

/* Seen by libraries, whatever the rest of the program is compiled with. */
#pragma GCC visibility push(default)

void *REAL(malloc)(size_t n);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t n);
void *REAL(memalign)(size_t alignment, size_t n);
void REAL(free)(void *p);

/* Single-threaded tests only. */
static struct {
    uint64_t n_calls;
    uint64_t first, last; /* these calls fail, counted from heap_fail on; 0: none */
    uint64_t n_failed;
    int n_spared; /* while above 0, calls neither fail nor count */
    int64_t n_alive;
} heap;

/* The calls from the first-th on fail, up to and with the last-th. */
static void heap_fail(uint64_t first, uint64_t last)
{
    heap.n_calls = heap.n_failed = 0;
    heap.first = first;
    heap.last = last;
}

static void heap_heal(void)
{
    heap.first = heap.last = 0;
}

static bool heap_refuses(void)
{
    if (heap.n_spared) return false;
    heap.n_calls++;
    if (heap.n_calls < heap.first || heap.n_calls > heap.last) return false;
    heap.n_failed++;
    errno = ENOMEM;
    return true;
}

static void *heap_count(void *p)
{
    heap.n_alive += p != NULL;
    return p;
}

void *malloc(size_t n)
{
    return heap_refuses() ? NULL : heap_count(REAL(malloc)(n));
}

void *calloc(size_t n, size_t size)
{
    return heap_refuses() ? NULL : heap_count(REAL(calloc)(n, size));
}

void *realloc(void *p, size_t n)
{
    if (heap_refuses()) return NULL;
    void *grown = REAL(realloc)(p, n);
    heap.n_alive += (grown && !p) - (!grown && p && n == 0);
    return grown;
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t total;
    if (!__builtin_mul_overflow(n, size, &total)) return realloc(p, total);
    errno = ENOMEM;
    return NULL;
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return heap_refuses() ? NULL : heap_count(REAL(memalign)(alignment, n));
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *p = aligned_alloc(alignment, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void free(void *p)
{
    heap.n_alive -= p != NULL;
    REAL(free)(p);
}

/* Blocks that are alive; always 0 where that is not known. */
static int64_t heap_alive(void)
{
#ifdef HEAP_OF_ASAN
    return 0;
#else
    return heap.n_alive;
#endif
}

#pragma GCC visibility pop

#endif
