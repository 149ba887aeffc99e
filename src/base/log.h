/* log.h: where log lines go. There is no global log: whoever logs holds one of these. */
#ifndef ST_BASE_LOG_H
#define ST_BASE_LOG_H

#include <stencil/stencil_base.h>

typedef struct st_log {
    st_log_fn *fn; /* NULL = silent */
    void *user;
} st_log;

void st_log_line(const st_log *log, st_log_level level, const char *fmt, ...) ST_PRINTF(3, 4);

#endif
