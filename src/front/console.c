/* console.c: messages and progress on stderr (see console.h). */
#include "front/console.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINE 2048
#define SHOW_AFTER_S 0.4 /* short work shows no progress line at all */
#define REDRAW_S 0.1

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void st_console_init(st_console *c, int verbosity)
{
    *c = (st_console){.verbosity = verbosity, .started = now()};
    c->shows_progress = verbosity >= 0 && isatty(STDERR_FILENO) == 1;
}

/* A hostile file name must not drive the terminal: C0, DEL and C1 controls become '?'. */
static void hide_controls(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7F) *p = '?';
        else if (p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F) p[0] = p[1] = '?';
    }
}

void st_console_clear(st_console *c)
{
    if (!c->line_shown) return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    c->line_shown = false;
}

static void print_line(st_console *c, const char *prefix, const char *fmt, va_list args) ST_PRINTF(3, 0);
static void print_line(st_console *c, const char *prefix, const char *fmt, va_list args)
{
    char line[MAX_LINE];
    vsnprintf(line, sizeof line, fmt, args);
    hide_controls(line);
    st_console_clear(c);
    fprintf(stderr, "%s%s\n", prefix, line);
}

void st_console_error(st_console *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_line(c, "stencil: ", fmt, args);
    va_end(args);
}

void st_console_warn(st_console *c, const char *fmt, ...)
{
    va_list args;
    if (c->verbosity < 0) return;
    va_start(args, fmt);
    print_line(c, "stencil: warning: ", fmt, args);
    va_end(args);
}

void st_console_say(st_console *c, const char *fmt, ...)
{
    va_list args;
    if (c->verbosity < 0) return;
    va_start(args, fmt);
    print_line(c, "stencil: ", fmt, args);
    va_end(args);
}

void st_console_note(st_console *c, const char *fmt, ...)
{
    va_list args;
    if (c->verbosity < 1) return;
    va_start(args, fmt);
    print_line(c, "stencil: ", fmt, args);
    va_end(args);
}

void st_console_task(st_console *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->what, sizeof c->what, fmt, args);
    va_end(args);
    hide_controls(c->what);
}

static unsigned columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 80;
}

/* Cuts to n bytes, not inside a UTF-8 character. */
static void cut(char *text, size_t n)
{
    if (strlen(text) <= n) return;
    while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    text[n] = '\0';
}

static bool is_time_to_draw(st_console *c, bool last)
{
    const double t = now();
    if (!c->shows_progress || t - c->started < SHOW_AFTER_S || (!last && t - c->last_drawn < REDRAW_S)) return false;
    c->last_drawn = t;
    return true;
}

static void draw(st_console *c, char *line)
{
    hide_controls(line);
    cut(line, columns() - 1);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    c->line_shown = true;
}

void st_console_progress(void *user, const char *stage, size_t done, size_t total)
{
    st_console *c = user;
    char line[320];
    if (!is_time_to_draw(c, false)) return;
    snprintf(line, sizeof line, "%s%s%s %zu/%zu  %.0f s", c->what, c->what[0] ? "  " : "", stage, done, total,
             now() - c->started);
    draw(c, line);
}

void st_console_line(st_console *c, bool last, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (!is_time_to_draw(c, last)) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    draw(c, line);
}

void st_console_log(void *user, st_log_level level, const char *line)
{
    st_console *c = user;
    if (level == ST_LOG_ERROR) st_console_error(c, "%s", line);
    else if (level == ST_LOG_WARN) st_console_warn(c, "%s", line);
    else if (level == ST_LOG_INFO || c->verbosity >= 2) st_console_note(c, "%s", line);
}
