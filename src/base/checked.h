/* checked.h: size arithmetic that cannot wrap. Each returns 0 when the result does not fit. */
#ifndef ST_BASE_CHECKED_H
#define ST_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool st_mul_size(size_t *out, size_t a, size_t b) { return !__builtin_mul_overflow(a, b, out); }
static inline bool st_add_size(size_t *out, size_t a, size_t b) { return !__builtin_add_overflow(a, b, out); }
/* [offset, offset + length) lies inside [0, size), in the form that does not wrap. */
static inline bool st_range_fits(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}
static inline size_t st_least(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t st_round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

#endif
