/* arena.h: scratch memory of a session. One block, cut from the front, given back by rewinding to a mark.
 *
 * A *planning* arena has no memory at all: it hands out addresses that nobody may touch and records the highest water mark. Running the
 * forward pass on one (every tensor operation returns at once) gives the exact size of the block that the real run needs.
 */
#ifndef ST_BASE_ARENA_H
#define ST_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stencil/stencil_base.h>

typedef struct st_arena {
    unsigned char *base; /* NULL when planning */
    size_t size;         /* of the block; SIZE_MAX when planning */
    size_t used;
    size_t peak;         /* highest `used` ever */
    bool planning;
    bool overflowed;     /* an allocation did not fit: the plan was wrong */
} st_arena;

void st_arena_plan(st_arena *a);
ST_MUSTCHECK st_status st_arena_init(st_arena *a, size_t n_bytes, st_error *err);
void st_arena_free(st_arena *a);
/* 64-byte aligned. NULL, and `overflowed`, when it does not fit. */
void *st_arena_alloc(st_arena *a, size_t n, size_t size);
static inline size_t st_arena_mark(const st_arena *a) { return a->used; }
void st_arena_rewind(st_arena *a, size_t mark); /* ASan builds poison what was given back */

#define ST_ARENA_ALIGN 64

#endif
