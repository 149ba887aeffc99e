/* codepoints.c: a growing array of Unicode code points (see codepoints.h). */
#include "text/codepoints.h"

#include "base/mem.h"
#include <string.h>

void st_cps_free(st_cps *a)
{
    st_free(a->v);
    *a = (st_cps){0};
}

bool st_cps_reserve(st_cps *a, size_t room)
{
    if (a->failed) return false;
    if (room <= a->room) return true;
    int32_t *v = st_realloc_array(a->v, room, sizeof *v);
    if (!v) {
        a->failed = true;
        return false;
    }
    a->v = v;
    a->room = room;
    return true;
}

bool st_cps_add(st_cps *a, int32_t c)
{
    if (a->n == a->room && !st_cps_reserve(a, a->room ? 2 * a->room : 64)) return false;
    if (a->failed) return false;
    a->v[a->n++] = c;
    return true;
}

bool st_cps_equal(const st_cps *a, const st_cps *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}
