/* buf.c: a growing byte buffer. Room doubles, and never exceeds the cap by more than the closing NUL. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/checked.h"
#include "base/mem.h"

#define FIRST_ROOM 64

void st_buf_init(st_buf *b, size_t max)
{
    *b = (st_buf){ .max = max };
}

void st_buf_free(st_buf *b)
{
    if (!b) return;
    st_free(b->data);
    *b = (st_buf){ .max = b->max };
}

/* Makes room for n more bytes and a NUL; sets `failed` when that cannot be. */
static bool reserve(st_buf *b, size_t n)
{
    size_t length, need;
    if (b->failed) return false;
    b->failed = true;
    if (!st_add_size(&length, b->n, n) || length > b->max || !st_add_size(&need, length, 1)) return false;
    if (need > b->room) {
        size_t room = b->room > SIZE_MAX / 2 ? need : 2 * b->room;
        if (room < FIRST_ROOM) room = FIRST_ROOM;
        if (room > b->max) room = b->max; /* `need` may be one more, for the NUL */
        if (room < need) room = need;
        char *data = st_realloc_array(b->data, room, 1);
        if (!data) return false;
        b->data = data;
        b->room = room;
    }
    b->failed = false;
    return true;
}

bool st_buf_add(st_buf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n)) return false;
    if (n) memcpy(b->data + b->n, bytes, n);
    b->n += n;
    b->data[b->n] = '\0';
    return true;
}

bool st_buf_adds(st_buf *b, const char *s)
{
    return st_buf_add(b, s, strlen(s));
}

bool st_buf_addf(st_buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) b->failed = true;
    if (n >= 0 && reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    return !b->failed;
}

char *st_buf_take(st_buf *b)
{
    if (!b->data && !b->failed) st_buf_add(b, "", 0);
    char *data = b->failed ? NULL : b->data;
    if (data) b->data = NULL;
    st_buf_free(b);
    return data;
}
