/* console.h: what a program says on stderr: messages, warnings, and one progress line that exists only on a terminal.
 *
 * Messages never mix with the progress line: it is wiped before anything else is printed. Control characters in messages are shown as '?'.
 */
#ifndef ST_FRONT_CONSOLE_H
#define ST_FRONT_CONSOLE_H

#include <stdbool.h>
#include <stencil/stencil_base.h>

typedef struct st_console {
    int verbosity;       /* -1 quiet: errors only; 0; 1: notes too; 2: everything */
    bool shows_progress; /* stderr is a terminal, and not quiet */
    bool line_shown;     /* a progress line is on the screen */
    double started, last_drawn;
    char what[160];      /* what is being done, in front of stage and count */
} st_console;

void st_console_init(st_console *c, int verbosity);
/* "stencil: ..." whatever the verbosity. */
void st_console_error(st_console *c, const char *fmt, ...) ST_PRINTF(2, 3);
/* "stencil: warning: ..." unless quiet. */
void st_console_warn(st_console *c, const char *fmt, ...) ST_PRINTF(2, 3);
/* "stencil: ..." unless quiet. */
void st_console_say(st_console *c, const char *fmt, ...) ST_PRINTF(2, 3);
/* The same with -v only. */
void st_console_note(st_console *c, const char *fmt, ...) ST_PRINTF(2, 3);

/* What the following progress belongs to, e.g. "[2/7] photo.jpg". */
void st_console_task(st_console *c, const char *fmt, ...) ST_PRINTF(2, 3);
/* An st_progress_fn and an st_log_fn; `user` is the console. */
void st_console_progress(void *user, const char *stage, size_t done, size_t total);
void st_console_log(void *user, st_log_level level, const char *line);
/* The progress line in the caller's own words; `last`: however soon after the one before. */
void st_console_line(st_console *c, bool last, const char *fmt, ...) ST_PRINTF(3, 4);
/* Wipes the progress line. */
void st_console_clear(st_console *c);

#endif
