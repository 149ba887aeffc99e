/* json_text.h: JSON from untrusted files through jansson, with what jansson leaves open: how big a tree may become. */
#ifndef ST_WEIGHTS_JSON_TEXT_H
#define ST_WEIGHTS_JSON_TEXT_H

#include <jansson.h>
#include <stencil/stencil_base.h>

/* Parses n bytes that must be one object with nothing but blanks after it. Duplicate keys, strings with NUL or
 * broken UTF-8, and trees of more than two million nodes are refused. `what` names the text in messages. *out is to
 * be released with json_decref. */
ST_MUSTCHECK st_status st_json_object(json_t **out, const char *text, size_t n, const char *what, st_error *err);
/* The same for a whole file of at most max bytes. */
ST_MUSTCHECK st_status st_json_object_file(json_t **out, const char *path, size_t max, st_error *err);

#endif
