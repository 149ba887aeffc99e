/* arena.c: scratch memory cut from one block. The planning arena and the real one run the same arithmetic, red zones included, so a plan is
 * exact by construction. In AddressSanitizer builds the block is poisoned but for what is handed out, with a red zone after each piece:
 * an overrun inside the arena is reported like one on the heap. */
#include "base/arena.h"

#include <stdint.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define RED_ZONE ((size_t)ST_ARENA_ALIGN)
#define POISON(p, n) __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define RED_ZONE ((size_t)0)
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

void st_arena_plan(st_arena *a)
{
    *a = (st_arena){ .size = SIZE_MAX, .planning = true };
}

st_status st_arena_init(st_arena *a, size_t n_bytes, st_error *err)
{
    *a = (st_arena){ 0 };
    a->base = st_aligned(n_bytes, ST_ARENA_ALIGN);
    if (!a->base) return st_fail(err, ST_ERR_NOMEM, "cannot allocate %zu bytes of scratch memory", n_bytes);
    a->size = n_bytes;
    POISON(a->base, n_bytes);
    return ST_OK;
}

void st_arena_free(st_arena *a)
{
    if (!a) return;
    if (a->base) UNPOISON(a->base, a->size);
    st_free(a->base);
    *a = (st_arena){ 0 };
}

void *st_arena_alloc(st_arena *a, size_t n, size_t size)
{
    size_t n_bytes, padded, end;
    if (!st_mul_size(&n_bytes, n, size) || !st_add_size(&padded, n_bytes, ST_ARENA_ALIGN - 1 + RED_ZONE) ||
        !st_add_size(&end, a->used, padded / ST_ARENA_ALIGN * ST_ARENA_ALIGN) || end > a->size) {
        a->overflowed = true;
        return NULL;
    }
    /* A planning arena's addresses are 64 plus the offset: aligned, distinct, never NULL, and nobody's memory. */
    unsigned char *p = a->planning ? (unsigned char *)(uintptr_t)(a->used + ST_ARENA_ALIGN) : a->base + a->used;
    if (!a->planning) UNPOISON(p, n_bytes);
    a->used = end;
    if (end > a->peak) a->peak = end;
    return p;
}

void st_arena_rewind(st_arena *a, size_t mark)
{
    if (mark >= a->used) return;
    if (!a->planning) POISON(a->base + mark, a->used - mark);
    a->used = mark;
}
