/* json_text.c: jansson behind a gate. A tree costs some fifty bytes per node, so the nodes are counted before any
 * is made. */
#include "weights/json_text.h"

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"

#define MAX_NODES 2000000u

/* Every node but the first follows one of these characters; those inside strings only make the count larger. */
static size_t count_nodes(const char *text, size_t n)
{
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) nodes += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return nodes;
}

st_status st_json_object(json_t **out, const char *text, size_t n, const char *what, st_error *err)
{
    *out = NULL;
    if (count_nodes(text, n) > MAX_NODES)
        return st_fail(err, ST_ERR_LIMIT, "%s: more than %u JSON values", what, MAX_NODES);
    json_error_t error;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return st_fail(err, ST_ERR_NOMEM, "%s: out of memory for JSON", what);
    if (!root) return st_fail(err, ST_ERR_FORMAT, "%s: broken JSON at byte %d: %s", what, error.position, error.text);
    if (!json_is_object(root)) {
        json_decref(root);
        return st_fail(err, ST_ERR_FORMAT, "%s: expected a JSON object, got another value", what);
    }
    *out = root;
    return ST_OK;
}

st_status st_json_object_file(json_t **out, const char *path, size_t max, st_error *err)
{
    char *text;
    size_t n;
    *out = NULL;
    st_status status = st_file_read(&text, &n, path, max, err);
    if (status != ST_OK) return status;
    status = st_json_object(out, text, n, path, err);
    st_free(text);
    return status;
}
