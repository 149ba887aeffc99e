/* lines.c: lines from a pipe (see lines.h). */
#include "front/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_AGAIN_MS = 100 };

bool st_lines_init(st_lines *l, int fd, size_t max, const st_cancel *stop)
{
    *l = (st_lines){ .fd = fd, .stop = stop, .max = max, .buffer = malloc(max + 1) };
    return l->buffer != NULL;
}

void st_lines_free(st_lines *l)
{
    free(l->buffer);
    *l = (st_lines){ 0 };
}

/* Room behind what is unread; what cannot become a line any more is dropped. */
static void make_room(st_lines *l)
{
    if (l->skipping) l->at = l->n;
    memmove(l->buffer, l->buffer + l->at, l->n - l->at);
    l->n -= l->at;
    l->at = 0;
    if (l->n == l->max + 1) l->skipping = true, l->n = 0;
    l->seen = l->n;
}

/* Reads some more; false when it was told to stop. The end and a failing read set `ended`. */
static bool fill(st_lines *l)
{
    make_room(l);
    for (;;) {
        if (l->stop && st_cancel_is_set(l->stop)) return false;
        struct pollfd p = { .fd = l->fd, .events = POLLIN };
        const int ready = poll(&p, 1, LOOK_AGAIN_MS);
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t got = read(l->fd, l->buffer + l->n, l->max + 1 - l->n);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got > 0) l->n += (size_t)got;
        else l->ended = true;
        return true;
    }
}

/* What is left when no line end is. */
static st_line last_line(st_lines *l, const char **line, size_t *n)
{
    const bool too_long = l->skipping, any = l->n > l->at;
    *line = l->buffer + l->at;
    *n = l->n - l->at;
    l->at = l->seen = l->n;
    l->skipping = false;
    return too_long ? ST_LINE_TOO_LONG : any ? ST_LINE_WHOLE : ST_LINE_END;
}

st_line st_lines_next(st_lines *l, const char **line, size_t *n)
{
    for (;;) {
        char *end = memchr(l->buffer + l->seen, '\n', l->n - l->seen);
        if (end) {
            const bool too_long = l->skipping;
            *line = l->buffer + l->at;
            *n = (size_t)(end - *line);
            l->at = l->seen = (size_t)(end - l->buffer) + 1;
            l->skipping = false;
            return too_long ? ST_LINE_TOO_LONG : ST_LINE_WHOLE;
        }
        l->seen = l->n;
        if (l->ended) return last_line(l, line, n);
        if (!fill(l)) return ST_LINE_STOPPED;
    }
}
