/* log.c: formats a log line, cleans it as error sentences are cleaned, and hands it to whoever listens. */
#include "base/log.h"

#include <stdarg.h>
#include "base/error.h"

void st_log_line(const st_log *log, st_log_level level, const char *fmt, ...)
{
    if (!log || !log->fn) return;
    char line[1024];
    va_list args;
    va_start(args, fmt);
    st_text_format(line, sizeof line, fmt, args);
    va_end(args);
    log->fn(log->user, level, line);
}
