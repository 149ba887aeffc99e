/* growing.h: a text that grows in memory, as a buffer and as a stream. Unlike open_memstream, where what did not fit is missing and fclose
 * may say that all is well (glibc 2.36), it remembers that it failed: check once, at the end.
 */
#ifndef ST_FRONT_GROWING_H
#define ST_FRONT_GROWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Zero it to begin. */
typedef struct st_growing {
    char *text; /* [room], no NUL; from malloc */
    size_t n, room;
    bool failed; /* memory was out once: nothing is added any more */
} st_growing;

bool st_growing_add(st_growing *g, const char *bytes, size_t n);
bool st_growing_adds(st_growing *g, const char *text); /* NULL, for want of memory, is a failure, too */
/* The whole, a NUL behind it, from malloc, *n bytes without that (n may be NULL); NULL when it failed. *g is as at the beginning. */
char *st_growing_take(st_growing *g, size_t *n);

/* What is printed to the stream is added to *g, which must stay where it is until the stream is closed. NULL when memory is out. */
FILE *st_growing_open(st_growing *g);
/* Closes the stream, and takes. `f` may be NULL. */
char *st_growing_close(st_growing *g, FILE *f, size_t *n);

#endif
