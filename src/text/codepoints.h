/* codepoints.h: a growing array of Unicode code points. Failure to grow sticks and is checked once at the end, as in base/buf.h. */
#ifndef ST_TEXT_CODEPOINTS_H
#define ST_TEXT_CODEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct st_cps {
    int32_t *v; /* [n], each 0..0x10FFFF and no surrogate */
    size_t n, room;
    bool failed;
} st_cps;

void st_cps_free(st_cps *a); /* frees and zeroes; fine on a zeroed struct */
bool st_cps_add(st_cps *a, int32_t c);
bool st_cps_reserve(st_cps *a, size_t room);
bool st_cps_equal(const st_cps *a, const st_cps *b);

#endif
