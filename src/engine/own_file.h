/* own_file.h: files that Stencil writes itself, concepts and saved pictures: safetensors with a JSON text that says what they are. */
#ifndef ST_ENGINE_OWN_FILE_H
#define ST_ENGINE_OWN_FILE_H

#include <jansson.h>
#include "weights/catalog.h"
#include "weights/safetensors.h"

typedef struct st_own_file {
    st_catalog tensors;
    json_t *about;
} st_own_file;

/* Opens `path` and checks that it says it is a `kind` ("concept", "picture") of a format this build reads. */
ST_MUSTCHECK st_status st_own_open(st_own_file *f, const char *path, const char *kind, st_error *err);
void st_own_close(st_own_file *f); /* fine on a zeroed struct */
/* The tensor's values into out [rows*cols]; its shape must be [rows, cols] and every value finite. */
ST_MUSTCHECK st_status st_own_read(const st_own_file *f, const char *path, const char *name, size_t rows, size_t cols, float *out, st_error *err);
/* A member of `about`, or a fault. */
ST_MUSTCHECK st_status st_own_text(const st_own_file *f, const char *path, const char *key, const char **out, st_error *err);
ST_MUSTCHECK st_status st_own_count(const st_own_file *f, const char *path, const char *key, uint32_t low, uint32_t high, uint32_t *out, st_error *err);
/* "kind" and "format" first. NULL without memory. */
json_t *st_own_about(const char *kind);
/* Text that is to be kept (NULL is fine): UTF-8, at most max bytes. `what` begins the sentence. */
ST_MUSTCHECK st_status st_own_check_text(const char *what, const char *text, size_t max, st_error *err);

#endif
