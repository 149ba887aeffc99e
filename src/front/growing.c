/* growing.c: a text that grows in memory (see growing.h). */
#include "front/growing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

bool st_growing_add(st_growing *g, const char *bytes, size_t n)
{
    if (g->failed) return false;
    if (g->room - g->n < n) {
        const size_t room = g->n < SIZE_MAX / 4 && n < SIZE_MAX / 4 ? 2 * (g->n + n) : 0;
        char *grown = room ? realloc(g->text, room) : NULL;
        g->failed = !grown;
        if (!grown) return false;
        g->text = grown;
        g->room = room;
    }
    if (n > 0) memcpy(g->text + g->n, bytes, n);
    g->n += n;
    return true;
}

bool st_growing_adds(st_growing *g, const char *text)
{
    g->failed |= !text;
    return text && st_growing_add(g, text, strlen(text));
}

char *st_growing_take(st_growing *g, size_t *n)
{
    const bool ok = st_growing_add(g, "", 1);
    char *text = g->text;
    if (n) *n = ok ? g->n - 1 : 0;
    if (!ok) {
        free(text);
        text = NULL;
    }
    *g = (st_growing){ 0 };
    return text;
}

static ssize_t add_printed(void *cookie, const char *bytes, size_t n)
{
    return st_growing_add(cookie, bytes, n) ? (ssize_t)n : 0;
}

FILE *st_growing_open(st_growing *g)
{
    return fopencookie(g, "w", (cookie_io_functions_t){ .write = add_printed });
}

char *st_growing_close(st_growing *g, FILE *f, size_t *n)
{
    g->failed |= !f || fclose(f) != 0;
    return st_growing_take(g, n);
}
