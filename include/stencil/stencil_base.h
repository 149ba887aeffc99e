/* stencil_base.h: what every public header of Stencil shares: version, status, error, cancel, progress, log.
 *
 * Thread rule: every function here may be called from any thread.
 */
#ifndef STENCIL_BASE_H
#define STENCIL_BASE_H

#include <stddef.h>
#include <stdint.h>

#define ST_VERSION_MAJOR 0
#define ST_VERSION_MINOR 1
#define ST_VERSION_PATCH 0
#define ST_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define ST_API __attribute__((visibility("default")))
#define ST_MUSTCHECK __attribute__((warn_unused_result))
#define ST_PRINTF(fmt_arg, first_arg) __attribute__((format(printf, fmt_arg, first_arg)))
#else
#define ST_API
#define ST_MUSTCHECK
#define ST_PRINTF(fmt_arg, first_arg)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended. Values are pinned: new ones are only ever added. */
typedef enum st_status {
    ST_OK = 0,
    ST_ERR_INVALID_ARG = 1, /* the caller asked for something that makes no sense */
    ST_ERR_NOMEM = 2,       /* memory could not be had */
    ST_ERR_IO = 3,          /* a file could not be opened, read or written */
    ST_ERR_FORMAT = 4,      /* a file's content is broken */
    ST_ERR_UNSUPPORTED = 5, /* well-formed, but nothing this build can use */
    ST_ERR_LIMIT = 6,       /* a cap (pixels, bytes, tensors, ...) was hit; the message names it */
    ST_ERR_CANCELLED = 7,   /* the cancel flag was set */
    ST_ERR_NONFINITE = 8,   /* a weight or a result is NaN or infinite */
    ST_ERR_INTERNAL = 9     /* a broken invariant of Stencil itself: please report it */
} st_status;

/* Filled by a failing call: one sentence that says what, where, expected and got. Plain data, owned by the caller; a
 * NULL `st_error *` is accepted everywhere. Untouched on success. */
typedef struct st_error {
    st_status status;
    char message[512];
} st_error;

/* The library's version, e.g. "0.1.0". */
ST_API const char *st_version(void);
/* A short constant name of a status, e.g. "format". Never NULL. */
ST_API const char *st_status_name(st_status status);

/* A flag that stops a running call. One flag may serve many calls. st_cancel_set may be called from a signal handler. */
typedef struct st_cancel st_cancel;
ST_API st_cancel *st_cancel_new(void); /* NULL when out of memory */
ST_API void st_cancel_set(st_cancel *flag);
ST_API void st_cancel_reset(st_cancel *flag);
ST_API int st_cancel_is_set(const st_cancel *flag);
ST_API void st_cancel_free(st_cancel *flag); /* NULL is fine */

/* Progress of a long call: `done` of `total` steps of `stage` ("picture", "phrase", ...). Called on the calling thread. */
typedef void st_progress_fn(void *user, const char *stage, size_t done, size_t total);

typedef enum st_log_level { ST_LOG_ERROR = 0, ST_LOG_WARN = 1, ST_LOG_INFO = 2, ST_LOG_DEBUG = 3 } st_log_level;
/* A log line without line end. Never called for something that is also returned as an error. May be called from any
 * thread that calls into the library. */
typedef void st_log_fn(void *user, st_log_level level, const char *line);

/* Writes a file that appears complete or not at all: a temporary name beside it, then a rename. A file that was there
 * keeps its permissions, a link stays a link, a pipe or device is written straight through; a pipe that nobody reads is
 * an error. */
ST_API ST_MUSTCHECK st_status st_file_write(const char *path, const void *bytes, size_t n_bytes, st_error *err);

#ifdef __cplusplus
}
#endif
#endif
