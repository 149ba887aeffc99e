/* safetensors.c: u64 header length N, N bytes of JSON, data. The header is believed in nothing: every offset is
 * checked against the data section and against shape x type, and the tensors must tile the section without gap or
 * overlap, so that no two names can share bytes and none are hidden. */
#include "weights/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "weights/json_text.h"

typedef struct span {
    uint64_t begin, end;
    const char *name; /* belongs to the JSON tree */
} span;

static st_status read_shape(st_entry *e, const json_t *shape, const char *name, st_error *err)
{
    if (!json_is_array(shape))
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": \"shape\" is missing or no array", name);
    if (json_array_size(shape) > ST_MAX_RANK)
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": %zu dimensions, expected at most %d", name,
                       json_array_size(shape), ST_MAX_RANK);
    e->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < e->rank; i++) {
        const json_t *side = json_array_get(shape, i);
        if (!json_is_integer(side) || json_integer_value(side) < 0)
            return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": dimension %u is no whole number of 0 or more", name, i);
        e->shape[i] = (uint64_t)json_integer_value(side);
    }
    return ST_OK;
}

static st_status read_offsets(span *s, const json_t *offsets, uint64_t n_data, st_error *err)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": \"data_offsets\" is missing or no pair of whole numbers",
                       s->name);
    const long long from = json_integer_value(begin), to = json_integer_value(end);
    if (from < 0 || to < from || (uint64_t)to > n_data)
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": bytes %lld to %lld are not inside the %llu bytes of data",
                       s->name, from, to, (unsigned long long)n_data);
    s->begin = (uint64_t)from;
    s->end = (uint64_t)to;
    return ST_OK;
}

/* Exactly the keys dtype, shape and data_offsets. */
static st_status read_tensor(st_catalog *cat, span *s, const json_t *value, uint32_t blob, uint64_t n_data,
                             st_error *err)
{
    st_entry e = { .blob = blob, .contiguous = true };
    if (!json_is_object(value))
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": its description is no JSON object", s->name);
    if (json_object_size(value) != 3)
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": expected dtype, shape and data_offsets, got %zu keys",
                       s->name, json_object_size(value));
    const char *type = json_string_value(json_object_get(value, "dtype"));
    if (!type) return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": \"dtype\" is missing or no string", s->name);
    if (!st_dtype_find(&e.dtype, type))
        return st_fail(err, ST_ERR_UNSUPPORTED, "tensor \"%s\": dtype \"%s\" is not supported", s->name, type);
    st_status status = read_shape(&e, json_object_get(value, "shape"), s->name, err);
    if (status == ST_OK) status = read_offsets(s, json_object_get(value, "data_offsets"), n_data, err);
    if (status != ST_OK) return status;
    e.offset = s->begin;
    status = st_catalog_add(cat, &e, s->name, strlen(s->name), err);
    if (status != ST_OK) return status;
    const uint64_t expected =
        cat->entries[cat->n - 1].n_elements * st_dtype_size(e.dtype); /* checked by st_catalog_add */
    if (s->end - s->begin == expected) return ST_OK;
    char text[ST_SHAPE_TEXT];
    return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\": %llu bytes, but %s of shape %s needs %llu", s->name,
                   (unsigned long long)(s->end - s->begin), type, st_shape_text(text, e.shape, e.rank),
                   (unsigned long long)expected);
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* The tensors, in order of their bytes, must follow each other from 0 to the end of the data. */
static st_status check_tiling(span *spans, size_t n, uint64_t n_data, st_error *err)
{
    uint64_t at = 0;
    if (n > 1) qsort(spans, n, sizeof *spans, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin < at)
            return st_fail(err, ST_ERR_FORMAT,
                           "tensor \"%s\" starts at byte %llu, inside tensor \"%s\", which ends at %llu", spans[i].name,
                           (unsigned long long)spans[i].begin, spans[i - 1].name, (unsigned long long)at);
        if (spans[i].begin > at)
            return st_fail(err, ST_ERR_FORMAT,
                           "tensor \"%s\" starts at byte %llu, after a gap: the one before ends at %llu", spans[i].name,
                           (unsigned long long)spans[i].begin, (unsigned long long)at);
        at = spans[i].end;
    }
    if (at != n_data)
        return st_fail(err, ST_ERR_FORMAT, "the tensors end at byte %llu of %llu bytes of data", (unsigned long long)at,
                       (unsigned long long)n_data);
    return ST_OK;
}

/* Of several files the first one's is kept. */
static st_status keep_about(st_catalog *cat, const char *about, st_error *err)
{
    if (!about || cat->about) return ST_OK;
    cat->about = st_strdup(about);
    return cat->about ? ST_OK : st_fail(err, ST_ERR_NOMEM, "out of memory for the metadata");
}

static st_status read_header(st_catalog *cat, const json_t *root, uint32_t blob, uint64_t n_data, st_error *err)
{
    const size_t n = json_object_size(root);
    if (n > ST_MAX_TENSORS) return st_fail(err, ST_ERR_LIMIT, "%zu tensors, expected at most %d", n, ST_MAX_TENSORS);
    span *spans = st_calloc(n + 1, sizeof *spans);
    if (!spans) return st_fail(err, ST_ERR_NOMEM, "out of memory for the list of tensors");
    st_status status = ST_OK;
    size_t n_spans = 0;
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (!json_is_object(value)) status = st_fail(err, ST_ERR_FORMAT, "\"__metadata__\" is no JSON object");
            else status = keep_about(cat, json_string_value(json_object_get(value, "stencil")), err);
        } else {
            spans[n_spans].name = name;
            status = read_tensor(cat, &spans[n_spans++], value, blob, n_data, err);
        }
        if (status != ST_OK) break;
    }
    if (status == ST_OK) status = check_tiling(spans, n_spans, n_data, err);
    st_free(spans);
    return status;
}

st_status st_safetensors_read(st_catalog *cat, uint32_t map, st_error *err)
{
    const unsigned char *bytes = cat->maps[map].data;
    const size_t n = cat->maps[map].n;
    uint64_t n_header = 0;
    if (n < 8) return st_fail(err, ST_ERR_FORMAT, "%zu bytes are too few for a safetensors file", n);
    for (int i = 7; i >= 0; i--) n_header = n_header << 8 | bytes[i];
    if (n_header > ST_MAX_SAFETENSORS_HEADER)
        return st_fail(err, ST_ERR_LIMIT, "the header claims %llu bytes, expected at most %u",
                       (unsigned long long)n_header, ST_MAX_SAFETENSORS_HEADER);
    if (!st_range_fits(8, n_header, n))
        return st_fail(err, ST_ERR_FORMAT, "the header claims %llu bytes, the file has %zu after its length (cut off?)",
                       (unsigned long long)n_header, n - 8);
    const char *text = (const char *)bytes + 8;
    size_t n_text = (size_t)n_header;
    while (n_text && text[n_text - 1] == ' ') n_text--;
    if (n_text == 0 || text[0] != '{' || text[n_text - 1] != '}')
        return st_fail(err, ST_ERR_FORMAT, "the header is no JSON object followed by nothing but spaces");
    const st_blob blob = { .data = bytes + 8 + n_header, .n = n - 8 - (size_t)n_header, .map = map };
    uint32_t index;
    json_t *root;
    st_status status = st_catalog_add_blob(cat, &blob, &index, err);
    if (status == ST_OK) status = st_json_object(&root, text, n_text, "safetensors header", err);
    if (status != ST_OK) return status;
    status = read_header(cat, root, index, blob.n, err);
    json_decref(root);
    return status;
}
