/* bytes.h: a whole file in memory, of bounded size; never waits at a pipe. */
#ifndef ST_LABEL_BYTES_H
#define ST_LABEL_BYTES_H

#include <stencil/stencil_base.h>

/* *bytes [*n + 1] from malloc, a NUL behind the last. `name` is what messages call the file. Not a regular file: ST_ERR_IO;
 * more than `max` bytes: ST_ERR_LIMIT. On failure *bytes is NULL. */
ST_MUSTCHECK st_status st_label_bytes_read(unsigned char **bytes, size_t *n, const char *path, const char *name,
                                           uint64_t max, st_error *err);

#endif
