/* ontology_file.c: classes from a JSON file (see ontology.h for its form). Whatever the file says goes through the same
 * checks as a word of the command line; an unknown key is refused, since a misspelt threshold that is ignored costs a day.
 */
#include "label/ontology.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/options.h"
#include "label/bytes.h"
#include "label/store.h"

#define MAX_FILE_BYTES ((uint64_t)16 << 20)

typedef struct reader {
    st_label_ontology *o;
    const char *path;
    size_t index; /* of the class, from 1 */
} reader;

static st_status wrong(const reader *r, st_error *err, const char *key, const char *expected)
{
    return st_fault(err, ST_ERR_FORMAT, "%s: class %zu: \"%s\": expected %s", r->path, r->index, key, expected);
}

static st_status check_keys(const reader *r, json_t *cls, st_error *err)
{
    static const char *const known[] = { "name", "phrases", "threshold", "min_area", "max_area", "id" };
    enum { N = sizeof known / sizeof known[0] };
    const char *key;
    json_t *value;
    json_object_foreach(cls, key, value)
    {
        size_t i = 0;
        while (i < N && strcmp(key, known[i]) != 0) i++;
        if (i < N) continue;
        const char *near = st_nearest(key, known, N);
        return st_fault(err, ST_ERR_FORMAT, "%s: class %zu: unknown key \"%s\"%s%s%s", r->path, r->index, key,
                        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return ST_OK;
}

/* Text without a NUL inside; NULL when it is none. */
static const char *text_of(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

/* A file that the classes file names is looked for beside it. From malloc. */
static char *beside(const char *path, const char *file)
{
    const char *slash = strrchr(path, '/');
    char *out = NULL;
    if (file[0] == '/' || !slash) return strdup(file);
    return asprintf(&out, "%.*s/%s", (int)(slash - path), path, file) < 0 ? NULL : out;
}

/* NAME=PHRASE, or NAME=@FILE: the form that the command line has. */
static st_status add(reader *r, const char *name, const char *phrase, bool is_file, st_error *err)
{
    char *word = NULL, *file = is_file ? beside(r->path, phrase) : NULL;
    st_error why = { ST_OK, "" };
    if ((is_file && !file) || asprintf(&word, "%s=%s%s", name, is_file ? "@" : "", is_file ? file : phrase) < 0) {
        free(file);
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", r->path);
    }
    st_status status = st_label_ontology_add(r->o, word, &why);
    if (status != ST_OK) status = st_fault(err, status, "%s: %s", r->path, why.message);
    free(file);
    free(word);
    return status;
}

static st_status add_phrases(reader *r, const char *name, const json_t *phrases, st_error *err)
{
    st_status status = ST_OK;
    if (!phrases) return add(r, name, name, false, err);
    if (!json_is_array(phrases) || json_array_size(phrases) == 0)
        return wrong(r, err, "phrases", "a list of at least one phrase");
    for (size_t i = 0; status == ST_OK && i < json_array_size(phrases); i++) {
        const json_t *item = json_array_get(phrases, i);
        const char *phrase = text_of(item), *file = text_of(json_object_get(item, "concept"));
        if (phrase && phrase[strspn(phrase, " \t\r\n")] == '@')
            return wrong(r, err, "phrases", "{\"concept\": FILE} in place of a phrase that begins with @");
        if (!phrase && (!file || json_object_size(item) != 1))
            return wrong(r, err, "phrases", "phrases, or {\"concept\": FILE}");
        status = add(r, name, phrase ? phrase : file, !phrase, err);
    }
    return status;
}

static st_status read_area(const reader *r, st_label_area *out, const json_t *cls, const char *key, st_error *err)
{
    const json_t *value = json_object_get(cls, key);
    if (!value) return ST_OK;
    const double v = json_number_value(value);
    if (!json_is_number(value) || !(v >= 0.0 && v <= 1e15))
        return wrong(r, err, key, "a number: below 1 a share of the picture, from 1 pixels");
    *out = (st_label_area){ v, v < 1.0 };
    return ST_OK;
}

static st_status read_settings(const reader *r, st_label_class *c, const json_t *cls, st_error *err)
{
    const json_t *threshold = json_object_get(cls, "threshold"), *id = json_object_get(cls, "id");
    if (threshold) {
        const double v = json_number_value(threshold);
        if (!json_is_number(threshold) || !(v >= 0.0 && v <= 1.0))
            return wrong(r, err, "threshold", "a number from 0 to 1");
        c->threshold = (float)v;
    }
    if (id) {
        if (!json_is_integer(id) || json_integer_value(id) < 1 || json_integer_value(id) > INT32_MAX)
            return wrong(r, err, "id", "a whole number from 1");
        c->id = (uint32_t)json_integer_value(id);
    }
    const st_status status = read_area(r, &c->min_area, cls, "min_area", err);
    return status == ST_OK ? read_area(r, &c->max_area, cls, "max_area", err) : status;
}

static st_status read_class(reader *r, json_t *cls, st_error *err)
{
    const char *name = text_of(json_object_get(cls, "name"));
    if (!json_is_object(cls))
        return st_fault(err, ST_ERR_FORMAT, "%s: class %zu: expected an object", r->path, r->index);
    if (!name || strchr(name, '=')) return wrong(r, err, "name", "a name without \"=\"");
    st_status status = check_keys(r, cls, err);
    const size_t before = r->o->n;
    if (status == ST_OK) status = add_phrases(r, name, json_object_get(cls, "phrases"), err);
    if (status != ST_OK) return status;
    if (r->o->n == before)
        return st_fault(err, ST_ERR_FORMAT, "%s: class %zu: \"%s\" is there already", r->path, r->index, name);
    return read_settings(r, &r->o->classes[before], cls, err);
}

static st_status read_document(reader *r, json_t *doc, st_error *err)
{
    json_t *list = json_is_object(doc) ? json_object_get(doc, "classes") : doc;
    if (!json_is_array(list) || json_array_size(list) == 0 || (json_is_object(doc) && json_object_size(doc) != 1))
        return st_fault(err, ST_ERR_FORMAT, "%s: expected {\"classes\": [...]} with at least one class", r->path);
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < json_array_size(list); i++) {
        r->index = i + 1;
        status = read_class(r, json_array_get(list, i), err);
    }
    return status;
}

st_status st_label_ontology_parse(st_label_ontology *o, const void *bytes, size_t n, const char *path, st_error *err)
{
    reader r = { o, path, 0 };
    json_error_t why;
    bool no_memory;
    json_t *doc = st_label_json_read(&no_memory, bytes, n, JSON_REJECT_DUPLICATES, &why);
    if (no_memory) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
    if (!doc) return st_fault(err, ST_ERR_FORMAT, "%s: line %d: %s", path, why.line, why.text);
    const st_status status = read_document(&r, doc, err);
    json_decref(doc);
    return status;
}

st_status st_label_ontology_read(st_label_ontology *o, const char *path, st_error *err)
{
    unsigned char *bytes;
    size_t n;
    st_status status = st_label_bytes_read(&bytes, &n, path, path, MAX_FILE_BYTES, err);
    if (status != ST_OK) return status;
    status = st_label_ontology_parse(o, bytes, n, path, err);
    free(bytes);
    return status;
}
