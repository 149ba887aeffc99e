/* lines.h: lines from a pipe, of bounded length. Waiting ends when a cancel flag is set, also where a signal's handler
 * restarts reads. */
#ifndef ST_FRONT_LINES_H
#define ST_FRONT_LINES_H

#include <stdbool.h>
#include <stencil/stencil_base.h>

typedef struct st_lines {
    int fd;
    const st_cancel *stop; /* may be NULL */
    char *buffer;          /* [max + 1] */
    size_t max;
    size_t at, seen, n; /* buffer[at..n) is unread; buffer[at..seen) has no line end */
    bool skipping;      /* inside a line that is too long */
    bool ended;
} st_lines;

typedef enum st_line { ST_LINE_END, ST_LINE_WHOLE, ST_LINE_TOO_LONG, ST_LINE_STOPPED } st_line;

/* False when out of memory. st_lines_free is fine in any state. */
bool st_lines_init(st_lines *lines, int fd, size_t max, const st_cancel *stop);
void st_lines_free(st_lines *lines);
/* The next line without its end, valid until the next call; it may hold any byte. A line of more than max bytes is
 * dropped and told as TOO_LONG; the last line needs no end. */
st_line st_lines_next(st_lines *lines, const char **line, size_t *n);

#endif
