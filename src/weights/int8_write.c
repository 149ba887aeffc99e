/* int8_write.c: two passes over a checkpoint: every matrix is looked at and decided on, then the file is written in one go
 * with matrices quantised as they pass. fp32 tensors come first in the file and bytes last, so that all are aligned.
 */
#include "weights/int8_write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "weights/json_text.h"
#include "weights/weights_inside.h"

void st_int8_quantize_row(int8_t *q, float *scale, const float *w, const float *smooth, size_t n)
{
    float peak = 0.0f;
    for (size_t i = 0; i < n; i++) peak = fmaxf(peak, fabsf(smooth ? w[i] / smooth[i] : w[i]));
    *scale = peak > 1e-30f ? peak / 127.0f : 1.0f;
    for (size_t i = 0; i < n; i++) q[i] = (int8_t)lrintf((smooth ? w[i] / smooth[i] : w[i]) / *scale);
}

/* What becomes of one published tensor. */
typedef struct decision {
    const st_entry *entry;
    const st_slot *first;       /* its first layer, when it becomes int8; else NULL */
    size_t pieces, n_out, n_in; /* layers below each other, and the size of one */
    float *smooth;              /* [pieces, n_in]; NULL: all 1 */
} decision;

typedef struct writer {
    st_weights *w;
    const st_quantizer *how;
    decision *decisions; /* [catalog.n] */
    FILE *f;
    st_error *err;
} writer;

/* ---------------------------------------------------------------- deciding */

static bool can_be_int8(const writer *wr, const st_slot *slot)
{
    const size_t n = strlen(slot->name);
    return slot->rank == 2 && n > 7 && strcmp(slot->name + n - 7, ".weight") == 0 && !slot->scale &&
           st_row_need(slot->row) != ST_NEED_KNOWN && slot->n_elements > 0 && slot->shape[1] <= ST_MAX_INT8_COLUMNS &&
           wr->how->wants(wr->how->user, slot->name);
}

/* Asks for every layer of an entry; slots [n] are its layers in order of their place. */
static st_status decide(writer *wr, decision *d, const st_slot *const *slots, size_t n)
{
    const size_t n_out = (size_t)slots[0]->shape[0], n_in = (size_t)slots[0]->shape[1];
    bool yes = true, smoothed = false;
    d->smooth = st_realloc_array(NULL, n * n_in, sizeof *d->smooth);
    if (!d->smooth) return st_fail(wr->err, ST_ERR_NOMEM, "out of memory for quantising \"%s\"", d->entry->name);
    for (size_t i = 0; i < n * n_in; i++) d->smooth[i] = 1.0f;
    for (size_t i = 0; i < n; i++) {
        const float *values;
        const st_status status = st_weights_f32(wr->w, &values, slots[i]->name, wr->err);
        if (status != ST_OK) return status;
        if (wr->how->cancel && st_cancel_is_set(wr->how->cancel))
            return st_fail(wr->err, ST_ERR_CANCELLED, "cancelled");
        yes = wr->how->choose(wr->how->user, slots[i]->name, values, n_out, n_in, d->smooth + i * n_in) && yes;
    }
    for (size_t i = 0; i < n; i++) wr->how->settled(wr->how->user, slots[i]->name, yes);
    for (size_t i = 0; i < n * n_in; i++) smoothed = smoothed || d->smooth[i] != 1.0f;
    if (yes) *d = (decision){ d->entry, slots[0], n, n_out, n_in, d->smooth };
    if (!yes || !smoothed) {
        st_free(d->smooth);
        d->smooth = NULL;
    }
    return ST_OK;
}

enum { MOST_PIECES = 8 };

/* Puts the layers of an entry in order of their place; 0 when not all of it can be int8. */
static size_t find_layers(const st_slot *slots[MOST_PIECES], const writer *wr, const st_entry *e)
{
    const st_binding *binding = &wr->w->binding;
    uint64_t n_elements = 0;
    size_t n = 0;
    for (size_t i = 0; i < binding->n; i++) {
        const st_slot *slot = &binding->slots[i];
        if (slot->entry != e) continue;
        if (!can_be_int8(wr, slot)) return 0;
        const uint64_t at = slot->first / slot->n_elements;
        if (at >= MOST_PIECES || slots[at]) return 0;
        slots[at] = slot;
        n++;
        n_elements += slot->n_elements;
    }
    return n_elements == e->n_elements ? n : 0; /* equal shapes that fill the entry: places 0 .. n-1 */
}

static st_status decide_all(writer *wr)
{
    const st_catalog *cat = &wr->w->checkpoint.catalog;
    for (size_t e = 0; e < cat->n; e++) {
        const st_slot *slots[MOST_PIECES] = { NULL };
        wr->decisions[e].entry = &cat->entries[e];
        const size_t n = find_layers(slots, wr, &cat->entries[e]);
        const st_status status = n ? decide(wr, &wr->decisions[e], slots, n) : ST_OK;
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

/* ---------------------------------------------------------------- the header */

static uint64_t add_tensor(json_t *root, const char *name, const char *dtype, const uint64_t *shape, uint32_t rank,
                           uint64_t at, size_t size)
{
    uint64_t n = size;
    json_t *sides = json_array();
    for (uint32_t i = 0; i < rank; i++) {
        n *= shape[i];
        json_array_append_new(sides, json_integer((json_int_t)shape[i]));
    }
    json_object_set_new(root, name,
                        json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtype, "shape", sides, "data_offsets", (json_int_t)at,
                                  (json_int_t)(at + n)));
    return at + n;
}

/* Bytes per element in the file, in this order: so all are aligned. */
static const size_t widths[] = { 8, 4, 2, 1 };
enum { N_WIDTHS = sizeof widths / sizeof widths[0] };
static size_t width_of(const decision *d)
{
    return d->first ? 1 : st_dtype_size(d->entry->dtype);
}

static uint64_t add_companions(json_t *root, const decision *d, uint64_t at)
{
    char name[ST_MAX_TENSOR_NAME + ST_MAX_INT8_SUFFIX];
    const uint64_t scale[1] = { d->pieces * d->n_out }, smooth[2] = { d->pieces, d->n_in };
    snprintf(name, sizeof name, "%s%s", d->entry->name, ST_INT8_SCALE);
    at = add_tensor(root, name, "F32", scale, 1, at, 4);
    if (!d->smooth) return at;
    snprintf(name, sizeof name, "%s%s", d->entry->name, ST_INT8_SMOOTH);
    return add_tensor(root, name, "F32", smooth, 2, at, 4);
}

/* {"config": ...}, from the checkpoint's own description. */
static st_status add_config(const writer *wr, json_t *about)
{
    const st_checkpoint *c = &wr->w->checkpoint;
    json_t *config = NULL;
    st_status status = ST_OK;
    if (wr->w->config) config = json_incref(wr->w->config);
    else if (c->config && wr->w->naming.layout == ST_LAYOUT_HF)
        status = st_json_object_file(&config, c->config, ST_MAX_CONFIG_BYTES, wr->err);
    if (status == ST_OK && config) json_object_set(about, "config", config);
    json_decref(config);
    if (status != ST_OK || !c->side) return status;
    json_t *side;
    status = st_json_object_file(&side, c->side, ST_MAX_CONFIG_BYTES, wr->err);
    if (status == ST_OK) json_object_set_new(about, "side_config", side);
    return status;
}

/* Keys of a header in which nothing is missing for want of memory. */
static size_t n_expected(const writer *wr)
{
    size_t n = 1 + wr->w->checkpoint.catalog.n;
    for (size_t i = 0; i < wr->w->checkpoint.catalog.n; i++)
        n += (wr->decisions[i].first ? 1u : 0u) + (wr->decisions[i].smooth ? 1u : 0u);
    return n;
}

static st_status make_header(char **text, const writer *wr)
{
    *text = NULL;
    json_t *about = wr->how->about(wr->how->user), *root = json_object();
    if (!about || !root) {
        json_decref(about);
        json_decref(root);
        return st_fail(wr->err, ST_ERR_NOMEM, "out of memory for the header");
    }
    st_status status = add_config(wr, about);
    char *words = status == ST_OK ? json_dumps(about, JSON_COMPACT) : NULL;
    uint64_t at = 0;
    if (words) json_object_set_new(root, "__metadata__", json_pack("{s:s}", "stencil", words));
    for (size_t k = 0; k < N_WIDTHS; k++) {
        for (size_t i = 0; i < wr->w->checkpoint.catalog.n; i++) {
            const decision *d = &wr->decisions[i];
            if (widths[k] == 4 && d->first) at = add_companions(root, d, at);
            if (width_of(d) != widths[k]) continue;
            const char *dtype = d->first ? "I8" : st_dtype_name(d->entry->dtype);
            at = add_tensor(root, d->entry->name, dtype, d->entry->shape, d->entry->rank, at, widths[k]);
        }
    }
    if (words && json_object_size(root) == n_expected(wr)) *text = json_dumps(root, JSON_COMPACT);
    free(words); /* allocated by jansson */
    json_decref(about);
    json_decref(root);
    return *text || status != ST_OK ? status : st_fail(wr->err, ST_ERR_NOMEM, "out of memory for the header");
}

/* ---------------------------------------------------------------- the data */

static st_status put(const writer *wr, const void *bytes, size_t n)
{
    return n == 0 || fwrite(bytes, 1, n, wr->f) == n ? ST_OK
                                                     : st_fail_errno(wr->err, ST_ERR_IO, "could not be written");
}

/* Rows of a quantised entry, as fp32 into `row`, one at a time. */
static st_status read_row(const writer *wr, const decision *d, size_t r, float *row)
{
    const size_t bad = st_entry_read(&wr->w->checkpoint.catalog, d->entry, r * d->n_in, d->n_in, row);
    if (bad == d->n_in) return ST_OK;
    return st_fail(wr->err, ST_ERR_NONFINITE, "tensor \"%s\": row %zu holds NaN or infinity", d->entry->name, r);
}

/* With `values` the bytes of a matrix, else its scales. */
static st_status put_int8(const writer *wr, const decision *d, bool values)
{
    float *row = st_realloc_array(NULL, d->n_in, sizeof *row), scale = 0.0f;
    int8_t *bytes = st_realloc_array(NULL, d->n_in, 1);
    st_status status = row && bytes ? ST_OK : st_fail(wr->err, ST_ERR_NOMEM, "out of memory for a row");
    for (size_t r = 0; status == ST_OK && r < d->pieces * d->n_out; r++) {
        if ((status = read_row(wr, d, r, row)) != ST_OK) break;
        st_int8_quantize_row(bytes, &scale, row, d->smooth ? d->smooth + r / d->n_out * d->n_in : NULL, d->n_in);
        status = values ? put(wr, bytes, d->n_in) : put(wr, &scale, sizeof scale);
    }
    st_free(row);
    st_free(bytes);
    return status;
}

/* Bit for bit: what no stage uses may hold anything, the rest is checked on first use. */
static st_status put_copy(const writer *wr, const decision *d)
{
    enum { BLOCK = 4096 };
    const st_catalog *cat = &wr->w->checkpoint.catalog;
    const st_entry *e = d->entry;
    const size_t size = st_dtype_size(e->dtype);
    unsigned char block[BLOCK * 8];
    st_status status = ST_OK;
    if (e->n_elements == 0) return ST_OK;
    if (e->contiguous) return put(wr, cat->blobs[e->blob].data + e->offset, (size_t)e->n_elements * size);
    for (uint64_t at = 0; at < e->n_elements && status == ST_OK; at += BLOCK) {
        const size_t n = e->n_elements - at < BLOCK ? (size_t)(e->n_elements - at) : BLOCK;
        st_entry_copy(cat, e, at, n, block);
        status = put(wr, block, n * size);
    }
    return status;
}

static st_status put_data(const writer *wr)
{
    const size_t n = wr->w->checkpoint.catalog.n;
    st_status status = ST_OK;
    for (size_t k = 0; k < N_WIDTHS && status == ST_OK; k++) {
        for (size_t i = 0; i < n && status == ST_OK; i++) {
            const decision *d = &wr->decisions[i];
            if (widths[k] == 4 && d->first) {
                status = put_int8(wr, d, false);
                if (status == ST_OK && d->smooth) status = put(wr, d->smooth, d->pieces * d->n_in * sizeof *d->smooth);
            }
            if (status == ST_OK && width_of(d) == widths[k])
                status = d->first ? put_int8(wr, d, true) : put_copy(wr, d);
            if (status == ST_OK && wr->how->cancel && st_cancel_is_set(wr->how->cancel))
                status = st_fail(wr->err, ST_ERR_CANCELLED, "cancelled");
        }
    }
    return status;
}

static st_status write_file(writer *wr, const char *path)
{
    char *header = NULL;
    st_out out = { 0 };
    st_status status = make_header(&header, wr);
    if (status == ST_OK) status = st_out_open(&out, path, wr->err);
    if (status == ST_OK) {
        const size_t n_text = strlen(header), pad = (8 - n_text % 8) % 8;
        unsigned char little[8];
        for (int i = 0; i < 8; i++) little[i] = (unsigned char)((uint64_t)(n_text + pad) >> (8 * i));
        wr->f = out.f;
        status = put(wr, little, sizeof little);
        if (status == ST_OK) status = put(wr, header, n_text);
        if (status == ST_OK) status = put(wr, "       ", pad);
        if (status == ST_OK) status = put_data(wr);
        if (status == ST_OK) status = st_out_commit(&out, wr->err);
        else st_error_prefix(wr->err, "%s", path);
    }
    st_out_abort(&out);
    free(header); /* allocated by jansson */
    return status;
}

st_status st_weights_write_int8(st_weights *w, const char *path, const st_quantizer *how, st_error *err)
{
    st_catalog *cat = &w->checkpoint.catalog;
    writer wr = { .w = w, .how = how, .err = err };
    wr.decisions = st_calloc(cat->n + 1, sizeof *wr.decisions);
    if (!wr.decisions) return st_fail(err, ST_ERR_NOMEM, "out of memory for the list of tensors");
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < cat->n; i++)
        status = st_blob_expand(&cat->blobs[cat->entries[i].blob], cat->entries[i].name, err);
    if (status == ST_OK) status = decide_all(&wr);
    if (status == ST_OK) status = write_file(&wr, path);
    for (size_t i = 0; i < cat->n; i++) st_free(wr.decisions[i].smooth);
    st_free(wr.decisions);
    return status;
}
