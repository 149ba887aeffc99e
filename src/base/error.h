/* error.h: how a status and its sentence are made. Log or return, never both. */
#ifndef ST_BASE_ERROR_H
#define ST_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stencil/stencil_base.h>

/* Writes the message and returns `status`, so that callers say `return st_fail(err, ST_ERR_FORMAT, "%s: ...", path)`. err may be NULL.
 * Bytes of the arguments that are not printable UTF-8 are shown as '?', so a hostile name cannot drive a terminal. */
ST_MUSTCHECK st_status st_fail(st_error *err, st_status status, const char *fmt, ...) ST_PRINTF(3, 4);
/* The same for a failed system call: ": " and the system's words for errno follow. errno is read before anything else. */
ST_MUSTCHECK st_status st_fail_errno(st_error *err, st_status status, const char *fmt, ...) ST_PRINTF(3, 4);
/* Puts "prefix: " in front of a message that is already there. */
void st_error_prefix(st_error *err, const char *fmt, ...) ST_PRINTF(2, 3);
/* Replaces in place what is not printable UTF-8 by '?', byte for byte (controls, invalid bytes, invisible reordering marks). */
void st_text_clean(char *text);
/* vsnprintf, cleaned; a text that does not fit ends in "...", cut between characters. size >= 8. */
void st_text_format(char *text, size_t size, const char *fmt, va_list args) ST_PRINTF(3, 0);

#endif
