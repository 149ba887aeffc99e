/* own_file.c: reads what Stencil wrote, trusting nothing in it. */
#include "engine/own_file.h"

#include <string.h>
#include "base/error.h"

enum { FORMAT = 1 };

json_t *st_own_about(const char *kind) { return json_pack("{s:s,s:i,s:s}", "kind", kind, "format", FORMAT, "stencil", ST_VERSION_STRING); }

st_status st_own_check_text(const char *what, const char *text, size_t max, st_error *err)
{
    if (!text) return ST_OK;
    if (strlen(text) > max) return st_fail(err, ST_ERR_LIMIT, "%s: a text of %zu bytes, at most %zu", what, strlen(text), max);
    json_t *json = json_string(text);
    json_decref(json);
    return json ? ST_OK : st_fail(err, ST_ERR_INVALID_ARG, "%s: the text is not UTF-8", what);
}

static st_status check_about(st_own_file *f, const char *path, const char *kind, st_error *err)
{
    json_error_t bad;
    f->about = f->tensors.about ? json_loads(f->tensors.about, JSON_REJECT_DUPLICATES, &bad) : NULL;
    const char *found = json_string_value(json_object_get(f->about, "kind"));
    if (!found || strcmp(found, kind) != 0)
        return st_fail(err, ST_ERR_FORMAT, "%s: not a %s file of Stencil (it says \"%s\")", path, kind, found ? found : "nothing of itself");
    if (json_integer_value(json_object_get(f->about, "format")) != FORMAT)
        return st_fail(err, ST_ERR_UNSUPPORTED, "%s: format %lld, this build reads %d", path, (long long)json_integer_value(json_object_get(f->about, "format")), FORMAT);
    return ST_OK;
}

st_status st_own_open(st_own_file *f, const char *path, const char *kind, st_error *err)
{
    st_map map;
    uint32_t index;
    *f = (st_own_file){0};
    st_status status = st_map_open(&map, path, err);
    if (status != ST_OK) return status;
    if ((status = st_catalog_add_map(&f->tensors, map, path, &index, err)) != ST_OK) return status;
    status = st_safetensors_read(&f->tensors, index, err);
    if (status == ST_OK) status = st_catalog_finish(&f->tensors, err);
    if (status != ST_OK) st_error_prefix(err, "%s", path);
    else status = check_about(f, path, kind, err);
    if (status != ST_OK) st_own_close(f);
    return status;
}

void st_own_close(st_own_file *f)
{
    st_catalog_free(&f->tensors);
    json_decref(f->about);
    *f = (st_own_file){0};
}

st_status st_own_read(const st_own_file *f, const char *path, const char *name, size_t rows, size_t cols, float *out, st_error *err)
{
    const st_entry *e = st_catalog_find(&f->tensors, name);
    if (!e) return st_fail(err, ST_ERR_FORMAT, "%s: no tensor \"%s\"", path, name);
    char shape[ST_SHAPE_TEXT];
    if (!st_dtype_is_real(e->dtype) || e->rank != 2 || e->shape[0] != rows || e->shape[1] != cols)
        return st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\" is %s %s, expected [%zu, %zu]", path, name, st_dtype_name(e->dtype), st_shape_text(shape, e->shape, e->rank),
                       rows, cols);
    const size_t bad = st_entry_read(&f->tensors, e, 0, rows * cols, out);
    return bad == rows * cols ? ST_OK : st_fail(err, ST_ERR_FORMAT, "%s: tensor \"%s\": value %zu is not a finite number", path, name, bad);
}

st_status st_own_text(const st_own_file *f, const char *path, const char *key, const char **out, st_error *err)
{
    *out = json_string_value(json_object_get(f->about, key));
    return *out ? ST_OK : st_fail(err, ST_ERR_FORMAT, "%s: it does not say its \"%s\"", path, key);
}

st_status st_own_count(const st_own_file *f, const char *path, const char *key, uint32_t low, uint32_t high, uint32_t *out, st_error *err)
{
    const json_t *value = json_object_get(f->about, key);
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < (json_int_t)low || n > (json_int_t)high)
        return st_fail(err, ST_ERR_FORMAT, "%s: \"%s\" is missing or outside %u to %u", path, key, low, high);
    *out = (uint32_t)n;
    return ST_OK;
}
