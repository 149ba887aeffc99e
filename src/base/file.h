/* file.h: files in (mapped or read whole, with caps) and out (complete or not at all). */
#ifndef ST_BASE_FILE_H
#define ST_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stencil/stencil_base.h>

/* A regular file mapped read-only. An empty file maps to data = NULL, n = 0. */
typedef struct st_map {
    const unsigned char *data;
    size_t n;
} st_map;
ST_MUSTCHECK st_status st_map_open(st_map *out, const char *path, st_error *err);
void st_map_close(st_map *map);
/* Lets the kernel drop the resident pages of [p, p+n); they come back from the file when touched again. */
void st_map_drop(const st_map *map, const void *p, size_t n);

/* Reads a whole regular file of at most max bytes; *out from st_malloc with a NUL after it. ST_ERR_LIMIT when larger. */
ST_MUSTCHECK st_status st_file_read(char **out, size_t *n, const char *path, uint64_t max, st_error *err);
bool st_file_exists(const char *path);
bool st_dir_exists(const char *path);

/* A file that appears under its name only when st_out_commit succeeds (temporary name in the same folder, fsync, rename). An existing
 * file keeps its permissions, and a link keeps being a link. A pipe or character device (/dev/stdout) is written straight through. */
typedef struct st_out {
    FILE *f;
    char *path, *tmp;
} st_out;
ST_MUSTCHECK st_status st_out_open(st_out *out, const char *path, st_error *err);
ST_MUSTCHECK st_status st_out_commit(st_out *out, st_error *err); /* closes in any case; on failure nothing is left behind */
void st_out_abort(st_out *out);                                   /* fine after commit and on a zeroed struct */

#endif
