/* weights.c: a checkpoint with its manifest laid over it. A tensor's values are looked at once, when a stage first
 * asks for them: fp32 that lies aligned in the file is checked where it is and handed out as it is; everything else
 * is converted into memory of its own. The published pointer of a tensor is what other threads see, so it is stored
 * last.
 */
#include "weights/weights.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "weights/json_text.h"
#include "weights/weights_inside.h"

static size_t slot_index(const st_weights *w, const st_slot *slot)
{
    return (size_t)(slot - w->binding.slots);
}

/* Where the slot's values lie in a row, aligned for numbers of `size` bytes, or NULL when they must be converted. The blob must be
 * expanded. */
static const void *as_stored(const st_weights *w, const st_slot *slot, size_t size)
{
    const st_entry *e = slot->entry;
    const st_blob *blob = &w->checkpoint.catalog.blobs[e->blob];
    if (!e->contiguous || !blob->data) return NULL;
    const unsigned char *at = blob->data + e->offset + slot->first * size;
    return (uintptr_t)at % size == 0 ? at : NULL;
}

static const float *in_place(const st_weights *w, const st_slot *slot)
{
    return slot->entry->dtype == ST_DTYPE_F32 ? as_stored(w, slot, sizeof(float)) : NULL;
}

/* The same for 16-bit matrices of linear layers, which stay as they are. The rule hangs on the manifest and the file alone, so that the memory plan
 * knows it beforehand. */
static const uint16_t *half_in_place(const st_weights *w, const st_slot *slot)
{
    const st_dtype dtype = slot->entry->dtype;
    const size_t n = strlen(slot->name);
    const bool of_layer = slot->rank == 2 && n > 7 && strcmp(slot->name + n - 7, ".weight") == 0 && !slot->scale;
    const bool mapped = !w->checkpoint.catalog.blobs[slot->entry->blob].heap;
    return of_layer && mapped && (dtype == ST_DTYPE_F16 || dtype == ST_DTYPE_BF16) ? as_stored(w, slot, sizeof(uint16_t)) : NULL;
}

/* ---------------------------------------------------------------- what st_weights_get_info tells */

static st_status describe_dtypes(st_weights *w, st_error *err)
{
    const st_catalog *cat = &w->checkpoint.catalog;
    uint64_t n[ST_N_DTYPES] = { 0 };
    for (size_t i = 0; i < cat->n; i++) n[cat->entries[i].dtype] += cat->entries[i].n_elements;
    st_buf text;
    st_buf_init(&text, 256);
    for (;;) {
        int most = 0;
        for (int t = 1; t < ST_N_DTYPES; t++)
            if (n[t] > n[most]) most = t;
        if (n[most] == 0) break;
        st_buf_addf(&text, "%s%s", text.n ? " + " : "", st_dtype_name((st_dtype)most));
        n[most] = 0;
    }
    w->dtypes = st_buf_take(&text);
    st_buf_free(&text);
    return w->dtypes ? ST_OK : st_fail(err, ST_ERR_NOMEM, "out of memory for the model's description");
}

/* Published tensors and elements per part, and the entries that pictures and phrases do not use, in name order. */
static st_status describe_parts(st_weights *w, st_error *err)
{
    const st_catalog *cat = &w->checkpoint.catalog;
    st_model_part parts[ST_N_PARTS] = { { 0 } };
    unsigned char *seen = st_calloc(cat->n + 1, 1); /* 1: some part uses it, 2: a picture part does */
    w->unused = st_calloc(cat->n + 1, sizeof *w->unused);
    if (!seen || !w->unused) {
        st_free(seen);
        return st_fail(err, ST_ERR_NOMEM, "out of memory for the model's description");
    }
    for (size_t i = 0; i < w->binding.n; i++) {
        const st_slot *slot = &w->binding.slots[i];
        const st_part part = st_row_part(slot->row);
        if (st_row_need(slot->row) == ST_NEED_KNOWN) continue;
        unsigned char *mark = &seen[slot->entry - cat->entries];
        parts[part].n_tensors += *mark == 0;
        parts[part].n_elements += slot->n_elements;
        *mark |= part < ST_N_PICTURE_PARTS ? 2 : 1;
    }
    for (size_t i = 0; i < cat->n; i++)
        if (seen[i] < 2) w->unused[w->n_unused++] = cat->entries[i].name;
    st_free(seen);
    for (int p = 0; p < ST_N_PARTS; p++) {
        parts[p].name = st_part_name((st_part)p);
        if (parts[p].n_tensors) w->parts[w->n_parts++] = parts[p];
    }
    return ST_OK;
}

/* Bytes that picture + phrase inference reads straight from the map for this slot. */
static uint64_t mapped_bytes(const st_weights *w, const st_slot *slot)
{
    if (st_row_part(slot->row) >= ST_N_PICTURE_PARTS || st_row_need(slot->row) == ST_NEED_KNOWN) return 0;
    if (w->checkpoint.catalog.blobs[slot->entry->blob].heap) return 0;
    if (slot->scale) return slot->n_elements;
    if (half_in_place(w, slot)) return slot->n_elements * sizeof(uint16_t);
    return in_place(w, slot) ? slot->n_elements * sizeof(float) : 0;
}

/* Heap bytes that it needs: the whole as fp32, or what goes with a quantised matrix. */
static uint64_t converted_bytes(const st_weights *w, const st_slot *slot)
{
    if (st_row_part(slot->row) >= ST_N_PICTURE_PARTS || st_row_need(slot->row) == ST_NEED_KNOWN) return 0;
    if (strcmp(slot->name, "text.token_embed") == 0) return 0; /* where it is not read in place, rows are as they are asked for */
    const uint64_t n_out = slot->shape[0], n_in = slot->shape[1], mapped = mapped_bytes(w, slot);
    if (slot->scale && mapped) return (2 * n_out + (slot->smooth ? n_in : 0)) * sizeof(float);
    return mapped ? 0 : slot->n_elements * sizeof(float);
}

static void count_bytes(st_weights *w)
{
    st_weights_info *info = &w->info;
    for (size_t i = 0; i < w->binding.n; i++) {
        const st_slot *slot = &w->binding.slots[i];
        const st_part part = st_row_part(slot->row);
        const uint64_t n = mapped_bytes(w, slot);
        info->bytes_mapped += n;
        info->bytes_converted += converted_bytes(w, slot);
        if (slot->scale && n) info->n_int8 += slot->n_elements;
        if (n && half_in_place(w, slot)) info->n_half += slot->n_elements;
        if (strcmp(slot->name, "text.token_embed") == 0) info->bytes_token_table = n;
        if (part == ST_PART_VIT) info->bytes_vit_mapped += n;
        if (part == ST_PART_TEXT) info->bytes_text_mapped += n;
    }
}

static st_status describe(st_weights *w, st_error *err)
{
    st_status status = describe_dtypes(w, err);
    if (status == ST_OK) status = describe_parts(w, err);
    if (status != ST_OK) return status;
    count_bytes(w);
    w->info.id = w->id;
    w->info.version = w->naming.sam31 ? "sam3.1" : "sam3";
    w->info.layout = w->naming.layout == ST_LAYOUT_HF ? "hf" : "meta";
    w->info.container = w->checkpoint.catalog.container;
    w->info.dtypes = w->dtypes;
    w->info.about = w->checkpoint.catalog.about;
    w->info.parts = w->parts;
    w->info.n_parts = w->n_parts;
    w->info.unused = w->unused;
    w->info.n_unused = w->n_unused;
    return ST_OK;
}

/* ---------------------------------------------------------------- opening */

/* A quantised file carries the descriptions of its source along. */
static st_status read_about(st_weights *w, st_error *err)
{
    const char *about = w->checkpoint.catalog.about;
    json_t *root;
    if (!about) return ST_OK;
    const st_status status = st_json_object(&root, about, strlen(about), "metadata \"stencil\"", err);
    if (status != ST_OK) return status;
    json_t *config = json_object_get(root, "config"), *side = json_object_get(root, "side_config");
    if (json_is_object(config)) w->config = json_incref(config);
    if (json_is_object(side)) w->side_config = json_incref(side);
    json_decref(root);
    return ST_OK;
}

static st_status find_dims(st_weights *w, const st_log *log, st_error *err)
{
    const st_checkpoint *c = &w->checkpoint;
    st_status status;
    if (c->config && w->naming.layout == ST_LAYOUT_HF) {
        st_dims_published(&w->dims);
        status = st_dims_apply_config(&w->dims, c->config, true, err);
    } else if (w->config && w->naming.layout == ST_LAYOUT_HF) {
        st_dims_published(&w->dims);
        status = st_dims_apply_json(&w->dims, w->config, "the file's own description", true, err);
    } else {
        status = st_dims_from_shapes(&w->dims, &c->catalog, &w->naming, log, err);
    }
    if (status == ST_OK && w->side_config) status = st_dims_apply_json(&w->dims, w->side_config, "the file's own description", false, err);
    if (status == ST_OK && c->side) status = st_dims_apply_config(&w->dims, c->side, false, err);
    if (status != ST_OK) return status;
    st_dims_observe(&w->dims, &c->catalog, &w->naming);
    return st_dims_check_limits(&w->dims, err);
}

static st_status find_capabilities(st_weights *w, st_error *err)
{
    const bool *has = w->binding.has;
    st_dims *d = &w->dims;
    d->has_click = has[ST_PART_CLICK_NECK] && has[ST_PART_CLICK];
    d->has_track = has[ST_PART_TRACK] && d->has_click && (has[ST_PART_TRACK_NECK] || !w->naming.sam31);
    if (d->track_image_size && d->track_image_size != d->image_size && (has[ST_PART_CLICK] || has[ST_PART_TRACK]))
        return st_fail(err, ST_ERR_UNSUPPORTED,
                       "tracker_config.image_size is %u, expected the detector's %u (without the key, 1008 is meant)",
                       d->track_image_size, d->image_size);
    return ST_OK;
}

static st_status open_checkpoint(st_weights *w, const st_log *log, st_error *err)
{
    st_catalog *cat = &w->checkpoint.catalog;
    st_status status = read_about(w, err);
    if (status == ST_OK) status = st_naming_find(&w->naming, cat, err);
    if (status == ST_OK) status = find_dims(w, log, err);
    if (status == ST_OK) status = st_manifest_bind(&w->binding, cat, &w->naming, &w->dims, err);
    if (status == ST_OK) status = st_dims_finish(&w->dims, err);
    if (status == ST_OK) status = find_capabilities(w, err);
    if (status != ST_OK) return status;
    w->values = st_calloc(w->binding.n + 1, sizeof *w->values);
    w->has_lock = w->values && pthread_mutex_init(&w->lock, NULL) == 0;
    if (!w->has_lock) return st_fail(err, ST_ERR_NOMEM, "out of memory for the model");
    for (size_t i = 0; i < w->binding.n; i++) {
        atomic_init(&w->values[i].ready, NULL);
        atomic_init(&w->values[i].int8_ready, false);
    }
    st_catalog_expect_random(cat, true); /* else a cold file costs a read-ahead of many pages for each of thousands */
    status = st_weights_id(w->id, cat, &w->binding, err);
    st_catalog_expect_random(cat, false);
    return status == ST_OK ? describe(w, err) : status;
}

st_status st_weights_open(st_weights **out, const char *path, const st_log *log, st_error *err)
{
    *out = NULL;
    st_weights *w = st_calloc(1, sizeof *w);
    if (!w) return st_fail(err, ST_ERR_NOMEM, "out of memory for the model");
    st_status status = st_checkpoint_open(&w->checkpoint, path, err);
    if (status == ST_OK) {
        status = open_checkpoint(w, log, err);
        if (status != ST_OK) st_error_prefix(err, "%s", path);
    }
    if (status != ST_OK) {
        st_weights_free(w);
        return status;
    }
    st_log_line(log, ST_LOG_INFO, "%s: %s, layout %s, %s, %s, %zu tensors", path, w->info.version, w->info.layout,
                w->info.container, w->info.dtypes, w->checkpoint.catalog.n);
    *out = w;
    return ST_OK;
}

void st_weights_free(st_weights *w)
{
    if (!w) return;
    for (size_t i = 0; w->values && i < w->binding.n; i++) {
        st_free(w->values[i].heap);
        st_free(w->values[i].int8_heap);
    }
    st_free(w->values);
    if (w->has_lock) pthread_mutex_destroy(&w->lock);
    st_free(w->dtypes);
    st_free(w->unused);
    json_decref(w->config);
    json_decref(w->side_config);
    st_binding_free(&w->binding);
    st_checkpoint_free(&w->checkpoint);
    st_free(w);
}

/* ---------------------------------------------------------------- values */

static st_status not_finite(const st_slot *slot, uint64_t at, st_error *err)
{
    return st_fail(
        err, ST_ERR_NONFINITE,
        "tensor \"%s\" (%s): value %llu of %llu is NaN, infinite or too large for fp32, expected finite numbers",
        slot->entry->name, slot->name, (unsigned long long)at, (unsigned long long)slot->n_elements);
}

static void drop_source(const st_weights *w, const st_slot *slot)
{
    const st_catalog *cat = &w->checkpoint.catalog;
    const st_blob *blob = &cat->blobs[slot->entry->blob];
    const size_t size = st_dtype_size(slot->entry->dtype);
    if (!blob->data || blob->heap) return;
    if (slot->entry->contiguous)
        st_map_drop(&cat->maps[blob->map], blob->data + slot->entry->offset + slot->first * size,
                    (size_t)slot->n_elements * size);
    else st_map_drop(&cat->maps[blob->map], blob->data, blob->n);
}

/* Looks through mapped values; when streaming, a piece at a time, which then leaves memory: one tensor alone may be
 * larger than what is left of a memory limit. */
static size_t first_nonfinite(const st_weights *w, const st_slot *slot, const float *mapped, size_t n)
{
    enum { PIECE = 1 << 20 };
    if (!w->streaming) return st_f32_first_nonfinite(mapped, n);
    const st_blob *blob = &w->checkpoint.catalog.blobs[slot->entry->blob];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = n - i < PIECE ? n - i : PIECE, bad = st_f32_first_nonfinite(mapped + i, m);
        if (bad < m) return i + bad;
        if (!blob->heap) st_map_drop(&w->checkpoint.catalog.maps[blob->map], mapped + i, m * sizeof *mapped);
    }
    drop_source(w, slot); /* the pages that two pieces share */
    return n;
}

/* Under the lock. */
static st_status prepare_int8(st_weights *w, const st_slot *slot, st_error *err)
{
    const st_entry *entries[3] = { slot->entry, slot->scale, slot->smooth };
    st_values *v = &w->values[slot_index(w, slot)];
    if (atomic_load_explicit(&v->int8_ready, memory_order_relaxed)) return ST_OK;
    for (size_t i = 0; i < 3; i++) {
        if (!entries[i]) continue;
        const st_status status =
            st_blob_expand(&w->checkpoint.catalog.blobs[entries[i]->blob], entries[i]->name, err);
        if (status != ST_OK) return status;
    }
    const st_status status = st_int8_prepare(&v->int8, &v->int8_heap, &w->checkpoint.catalog, slot, err);
    if (w->streaming) drop_source(w, slot);
    if (status == ST_OK) atomic_store_explicit(&v->int8_ready, true, memory_order_release);
    return status;
}

/* Under the lock. */
static st_status prepare(st_weights *w, const st_slot *slot, const float **out, st_error *err)
{
    const size_t n = (size_t)slot->n_elements;
    st_status status = st_blob_expand(&w->checkpoint.catalog.blobs[slot->entry->blob], slot->entry->name, err);
    if (status != ST_OK) return status;
    const float *mapped = in_place(w, slot);
    if (mapped) {
        const size_t bad = first_nonfinite(w, slot, mapped, n);
        if (bad < n) return not_finite(slot, bad, err);
        *out = mapped;
        return ST_OK;
    }
    float *heap = st_aligned(n * sizeof *heap, 64); /* fits: n x 4 bytes was checked when the shape was */
    if (!heap)
        return st_fail(err, ST_ERR_NOMEM, "tensor \"%s\": cannot allocate %zu bytes to convert it", slot->name,
                       n * sizeof *heap);
    size_t bad = st_entry_read(&w->checkpoint.catalog, slot->entry, slot->first, n, heap);
    if (slot->scale) status = prepare_int8(w, slot, err);
    if (slot->scale && status == ST_OK)
        bad = st_int8_expand(heap, &w->values[slot_index(w, slot)].int8, (size_t)slot->shape[0],
                             (size_t)slot->shape[1]);
    if (status == ST_OK && bad < n) status = not_finite(slot, bad, err);
    if (status != ST_OK) {
        st_free(heap);
        return status;
    }
    drop_source(w, slot); /* its pages have served */
    w->values[slot_index(w, slot)].heap = heap;
    *out = heap;
    return ST_OK;
}

st_status st_weights_f32(st_weights *w, const float **out, const char *canonical, st_error *err)
{
    *out = NULL;
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    if (!slot) return st_fail(err, ST_ERR_INVALID_ARG, "the model has no tensor \"%s\"", canonical);
    st_values *v = &w->values[slot_index(w, slot)];
    const float *ready = atomic_load_explicit(&v->ready, memory_order_acquire);
    st_status status = ST_OK;
    if (!ready) {
        pthread_mutex_lock(&w->lock);
        ready = atomic_load_explicit(&v->ready, memory_order_relaxed);
        if (!ready) status = prepare(w, slot, &ready, err);
        if (status == ST_OK) atomic_store_explicit(&v->ready, ready, memory_order_release);
        pthread_mutex_unlock(&w->lock);
    }
    if (status == ST_OK) *out = ready;
    return status;
}

st_status st_weights_int8(st_weights *w, st_int8_view *out, const char **name, const char *canonical, st_error *err)
{
    *out = (st_int8_view){ 0 };
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    if (!slot) return st_fail(err, ST_ERR_INVALID_ARG, "the model has no tensor \"%s\"", canonical);
    if (name) *name = slot->name;
    if (!slot->scale) return ST_OK;
    st_values *v = &w->values[slot_index(w, slot)];
    st_status status = ST_OK;
    if (!atomic_load_explicit(&v->int8_ready, memory_order_acquire)) {
        pthread_mutex_lock(&w->lock);
        status = prepare_int8(w, slot, err);
        pthread_mutex_unlock(&w->lock);
    }
    if (status == ST_OK) *out = v->int8;
    return status;
}

/* Looks through a slot's values without keeping them. Under the lock. */
static st_status look_through(st_weights *w, const st_slot *slot, st_error *err)
{
    enum { PIECE = 4096 };
    float piece[PIECE];
    st_status status = st_blob_expand(&w->checkpoint.catalog.blobs[slot->entry->blob], slot->entry->name, err);
    for (uint64_t i = 0; status == ST_OK && i < slot->n_elements; i += PIECE) {
        const size_t n = slot->n_elements - i < PIECE ? (size_t)(slot->n_elements - i) : PIECE;
        const size_t bad = st_entry_read(&w->checkpoint.catalog, slot->entry, slot->first + i, n, piece);
        if (bad < n) status = not_finite(slot, i + bad, err);
    }
    return status;
}

st_status st_weights_half(st_weights *w, st_half_view *out, const char *canonical, st_error *err)
{
    *out = (st_half_view){ 0 };
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    if (!slot) return st_fail(err, ST_ERR_INVALID_ARG, "the model has no tensor \"%s\"", canonical);
    const uint16_t *values = half_in_place(w, slot);
    if (!values) return ST_OK;
    st_values *v = &w->values[slot_index(w, slot)];
    st_status status = ST_OK;
    if (!atomic_load_explicit(&v->half_ready, memory_order_acquire)) {
        pthread_mutex_lock(&w->lock);
        status = look_through(w, slot, err);
        if (w->streaming) drop_source(w, slot);
        if (status == ST_OK) atomic_store_explicit(&v->half_ready, true, memory_order_release);
        pthread_mutex_unlock(&w->lock);
    }
    if (status == ST_OK) *out = (st_half_view){ values, slot->entry->dtype == ST_DTYPE_BF16 };
    return status;
}

bool st_weights_in_place(const st_weights *w, const char *canonical)
{
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    return slot && in_place(w, slot);
}

st_status st_weights_look_through(st_weights *w, const char *canonical, st_error *err)
{
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    if (!slot || slot->scale) return st_fail(err, ST_ERR_INVALID_ARG, "the model has no plain tensor \"%s\"", canonical);
    pthread_mutex_lock(&w->lock);
    const st_status status = look_through(w, slot, err);
    drop_source(w, slot);
    pthread_mutex_unlock(&w->lock);
    return status;
}

void st_weights_read(const st_weights *w, const char *canonical, size_t first, size_t count, float *out)
{
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    (void)st_entry_read(&w->checkpoint.catalog, slot->entry, slot->first + first, count, out); /* all are finite */
}

size_t st_weights_n_elements(const st_weights *w, const char *canonical)
{
    const st_slot *slot = st_binding_find(&w->binding, canonical);
    return slot ? (size_t)slot->n_elements : 0;
}

const st_dims *st_weights_dims(const st_weights *w)
{
    return &w->dims;
}

st_status st_weights_set_input_size(st_weights *w, uint32_t side, st_error *err)
{
    return st_dims_set_input_size(&w->dims, side, err);
}

void st_weights_get_info(const st_weights *w, st_weights_info *info)
{
    *info = w->info;
}

void st_weights_drop(st_weights *w, const char *prefix)
{
    const size_t n = strlen(prefix);
    for (size_t i = 0; i < w->binding.n; i++) {
        const st_slot *slot = &w->binding.slots[i];
        if (strncmp(slot->name, prefix, n) == 0 && slot->entry->contiguous) drop_source(w, slot);
    }
}

void st_weights_stream(st_weights *w)
{
    w->streaming = true;
}

uint64_t st_weights_mapped(const st_weights *w, const char *prefix)
{
    uint64_t sum = 0;
    const size_t n = strlen(prefix);
    for (size_t i = 0; i < w->binding.n; i++)
        if (strncmp(w->binding.slots[i].name, prefix, n) == 0) sum += mapped_bytes(w, &w->binding.slots[i]);
    return sum;
}
