/* choices.h: option values that several commands share. Each function returns NULL, or what was expected instead: the
 * end of a sentence that st_wrong_value makes. */
#ifndef ST_CLI_CHOICES_H
#define ST_CLI_CHOICES_H

#include <stencil/stencil.h>

typedef enum st_output_format {
    ST_FORMAT_AUTO, ST_FORMAT_TABLE, ST_FORMAT_JSON, ST_FORMAT_COCO, ST_FORMAT_PNG
} st_output_format;

const char *st_read_format(st_output_format *out, const char *text); /* any but AUTO */
const char *st_read_stretch(st_stretch *out, const char *text);
const char *st_read_resize(st_resize *out, const char *text);
const char *st_read_max_pixels(uint64_t *out, const char *text);
const char *st_read_threads(uint32_t *out, const char *text);
const char *st_read_input_size(uint32_t *out, const char *text); /* the model knows which ones it has */
const char *st_read_memory(uint64_t *out, const char *text); /* bytes: 2G, 800M, 1.5G */
const char *st_read_multimask(st_multimask *out, const char *text);
const char *st_read_hole_area(int32_t *out, const char *text);

/* ST_EXIT_OK when expected is NULL; else "--option: expected ..., got ..." and ST_EXIT_USAGE. */
int st_wrong_value(const char *command, const char *option, const char *got, const char *expected);

#endif
