/* sources.h: which pictures a job has: folders, single files, globs, lists and manifests become names below one root.
 *
 * The root is the folder that all sources have in common, so that no two files share a name and nothing need be renamed
 * when two folders hold an IMG_0001.jpg each; --root fixes it. Names are paths below it, by rising bytes.
 */
#ifndef ST_LABEL_SOURCES_H
#define ST_LABEL_SOURCES_H

#include "label/labels.h"

typedef struct st_label_sources {
    char *root;   /* absolute, without a trailing '/' (but for "/" itself) */
    char **names; /* [n] rising, unique */
    size_t n;
    size_t n_ignored; /* files of folders that are no pictures by their name */
    char *ignored;    /* the first of them, or NULL */
} st_label_sources;
void st_label_sources_free(st_label_sources *s); /* zeroes it */

/* One source: a folder (everything in it that looks like a picture, at any depth; `except`, the output folder, is passed
 * over), a file, a pattern with * ? [ (when no file has that very name), or "@LIST" (a path a line, or JSON Lines with
 * "path" or "file_name"; relative paths are meant from the list's folder). */
typedef struct st_label_source_request {
    const char *const *sources; /* [n_sources] */
    size_t n_sources;
    const char *root;   /* given with --root, or NULL */
    const char *except; /* a folder not to look into, or NULL */
} st_label_source_request;
/* On failure *out is zeroed. Fails when a source is not there or lies outside the root, or when there is no picture. */
ST_MUSTCHECK st_status st_label_sources_find(st_label_sources *out, const st_label_source_request *request,
                                             st_error *err);

/* Keeps the pictures of one shard: which one a name belongs to depends on the name alone. */
void st_label_sources_shard(st_label_sources *s, uint32_t shard, uint32_t n_shards);

#endif
