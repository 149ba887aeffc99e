/* buf.h: a growing byte buffer with a hard cap given at the start. Errors stick: check once at the end. */
#ifndef ST_BASE_BUF_H
#define ST_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stencil/stencil_base.h>

typedef struct st_buf {
    char *data;   /* always NUL-terminated once anything was added; NULL before */
    size_t n;     /* bytes without the NUL */
    size_t room;
    size_t max;   /* cap on n */
    bool failed;  /* out of memory or over the cap: nothing is added any more */
} st_buf;

void st_buf_init(st_buf *b, size_t max);
void st_buf_free(st_buf *b);
bool st_buf_add(st_buf *b, const void *bytes, size_t n);
bool st_buf_adds(st_buf *b, const char *s);
bool st_buf_addf(st_buf *b, const char *fmt, ...) ST_PRINTF(2, 3);
/* Hands the bytes to the caller (st_free) and empties the buffer; NULL when it failed. */
char *st_buf_take(st_buf *b);

#endif
