/* manifest.c: lays the table over a catalogue. All rows are looked at before anything is said, so that the message
 * can name the most telling fault: a missing tensor together with the stranger that may be its new name, before a
 * wrong shape, which may only follow from a size that the missing tensor would have told. */
#include "weights/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "weights/int8.h"

const char *st_part_name(st_part part)
{
    static const char *const names[ST_N_PARTS] = {
        [ST_PART_VIT] = "ViT trunk",
        [ST_PART_NECK] = "neck",
        [ST_PART_TEXT] = "text encoder",
        [ST_PART_GEOMETRY] = "exemplar encoder",
        [ST_PART_FUSION] = "fusion encoder",
        [ST_PART_DECODER] = "decoder",
        [ST_PART_MASK] = "mask head",
        [ST_PART_SCORE] = "scoring",
        [ST_PART_CLICK_NECK] = "interactive neck",
        [ST_PART_CLICK] = "interactive head",
        [ST_PART_TRACK_NECK] = "tracking neck",
        [ST_PART_TRACK] = "tracker",
    };
    return names[part];
}

bool st_sizes_from_dims(uint64_t s[ST_N_SIZES], const st_dims *d)
{
    const uint64_t D = d->width, V = d->vit_width;
    if (d->click_downsample == 0 || d->mem_downsample == 0 || d->prop_downsample == 0) return false;
    const uint64_t values[ST_N_SIZES] = {
        [ST_SIZE_V] = V, [ST_SIZE_V_2] = V / 2, [ST_SIZE_V_4] = V / 4, [ST_SIZE_V_MLP] = d->vit_mlp,
        [ST_SIZE_PATCH] = d->patch, [ST_SIZE_POS] = (uint64_t)d->pos_side * d->pos_side,
        [ST_SIZE_BLOCKS] = d->vit_depth, [ST_SIZE_VOCAB] = d->vocab, [ST_SIZE_CONTEXT] = d->context,
        [ST_SIZE_T] = d->text_width, [ST_SIZE_T_MLP] = d->text_mlp, [ST_SIZE_T_BLOCKS] = d->text_depth, [ST_SIZE_D] = D,
        [ST_SIZE_2D] = 2 * D, [ST_SIZE_D_PLUS_2] = D + 2, [ST_SIZE_D_2] = D / 2, [ST_SIZE_D_4] = D / 4,
        [ST_SIZE_D_8] = D / 8, [ST_SIZE_GEO_LAYERS] = d->geo_layers, [ST_SIZE_GEO_FFN] = d->geo_ffn,
        [ST_SIZE_ROI] = d->roi_size, [ST_SIZE_FUSION_LAYERS] = d->fusion_layers, [ST_SIZE_FUSION_FFN] = d->fusion_ffn,
        [ST_SIZE_DEC_LAYERS] = d->dec_layers, [ST_SIZE_DEC_FFN] = d->dec_ffn, [ST_SIZE_DEC_HEADS] = d->dec_heads,
        [ST_SIZE_QUERIES] = d->n_queries, [ST_SIZE_RPB] = d->rpb_hidden, [ST_SIZE_SCORE_FFN] = d->score_ffn,
        [ST_SIZE_CLICK_LAYERS] = d->click_layers, [ST_SIZE_CLICK_MLP] = d->click_mlp,
        [ST_SIZE_CLICK_INNER] = D / d->click_downsample, [ST_SIZE_CLICK_IOU] = d->click_iou_hidden,
        [ST_SIZE_CLICK_TOKENS] = d->click_mask_tokens, [ST_SIZE_CLICK_POINTS] = d->click_points,
        [ST_SIZE_MASK_IN] = d->click_mask_channels, [ST_SIZE_MASK_IN_4] = d->click_mask_channels / 4,
        [ST_SIZE_MEM] = d->mem_channels, [ST_SIZE_MEM_SLOTS] = d->num_maskmem, [ST_SIZE_MEM_LAYERS] = d->mem_layers,
        [ST_SIZE_MEM_FFN] = d->mem_ffn, [ST_SIZE_MEM_INNER] = D / d->mem_downsample,
        [ST_SIZE_FUSER_LAYERS] = d->mem_fuser_layers, [ST_SIZE_FUSER_FFN] = d->mem_fuser_ffn,
        [ST_SIZE_FUSER_KERNEL] = d->mem_fuser_kernel, [ST_SIZE_DOWN_KERNEL] = d->mem_kernel,
        [ST_SIZE_PROP_LAYERS] = d->prop_layers, [ST_SIZE_PROP_MLP] = d->prop_mlp,
        [ST_SIZE_PROP_INNER] = D / d->prop_downsample, [ST_SIZE_PROP_IOU] = d->prop_iou_hidden,
        [ST_SIZE_MUX] = d->mux_slots, [ST_SIZE_2MUX] = 2 * (uint64_t)d->mux_slots,
        [ST_SIZE_CANDIDATES] = d->mux_candidates, [ST_SIZE_MUX_TOKENS] = (uint64_t)d->mux_slots * d->mux_candidates,
        [ST_SIZE_DOWN] = d->mem_down_width, [ST_SIZE_4DOWN] = 4 * (uint64_t)d->mem_down_width,
        [ST_SIZE_16DOWN] = 16 * (uint64_t)d->mem_down_width, [ST_SIZE_64DOWN] = 64 * (uint64_t)d->mem_down_width,
    };
    memcpy(s, values, sizeof values);
    return true;
}

/* What went wrong so far. */
typedef struct faults {
    char shape[512];                          /* first tensor of a wrong shape or type: the whole sentence */
    char missing[ST_MAX_PUBLISHED_NAME + 64]; /* first missing tensor with its shape */
    char last[ST_MAX_PUBLISHED_NAME];         /* missing tensor that was counted last: several rows may share it */
    size_t n_missing;
    const char *missing_part; /* NULL when it is the detector's */
} faults;

typedef struct binder {
    st_binding *out;
    st_catalog *cat;
    const st_naming *naming;
    uint64_t sizes[ST_N_SIZES];
    faults faults;
    bool failed; /* out of memory */
} binder;

static uint64_t size_of(const binder *b, int16_t code)
{
    return code < 0 ? b->sizes[~code] : (uint64_t)code;
}

static unsigned pieces_of(const binder *b, const st_row *row)
{
    const unsigned pieces = b->naming->layout == ST_LAYOUT_META ? row->pieces_meta : row->pieces_hf;
    return pieces == ST_ROW_BY_INDEX ? (unsigned)b->sizes[row->repeat] : pieces;
}

/* The shape the file must have; rank 0 when any will do. Sides that are not checked are 0. */
static uint32_t published_shape(uint64_t shape[4], const binder *b, const st_row *row)
{
    const unsigned pieces = pieces_of(b, row);
    uint32_t rank = 0;
    if (pieces == ST_ROW_POSITIONS) shape[rank++] = 1;
    for (uint32_t i = 0; i < row->rank; i++) shape[rank++] = size_of(b, row->shape[i]);
    if (pieces && pieces != ST_ROW_POSITIONS) shape[0] *= pieces;
    return rank;
}

static bool shape_fits(const st_entry *e, const uint64_t shape[4], uint32_t rank, bool positions)
{
    if (rank == 0) return true;
    if (e->rank != rank) return false;
    for (uint32_t i = 0; i < rank; i++) {
        const bool class_row = positions && i == 1 && e->shape[i] == shape[i] + 1;
        if (shape[i] != 0 && e->shape[i] != shape[i] && !class_row) return false;
    }
    return true;
}

static void note_shape(binder *b, const st_entry *e, const uint64_t shape[4], uint32_t rank)
{
    char expected[ST_SHAPE_TEXT], found[ST_SHAPE_TEXT];
    if (b->faults.shape[0]) return;
    snprintf(b->faults.shape, sizeof b->faults.shape, "tensor \"%s\": expected shape %s, found %s", e->name,
             st_shape_text(expected, shape, rank), st_shape_text(found, e->shape, e->rank));
}

static void note_type(binder *b, const st_entry *e)
{
    if (b->faults.shape[0]) return;
    snprintf(b->faults.shape, sizeof b->faults.shape,
             "tensor \"%s\": expected real numbers (F32, F16, BF16 or F64), found %s", e->name,
             st_dtype_name(e->dtype));
}

static void note_missing(binder *b, const st_row *row, const char *name, const uint64_t shape[4], uint32_t rank)
{
    char text[ST_SHAPE_TEXT];
    if (strcmp(b->faults.last, name) == 0) return;
    memcpy(b->faults.last, name, strlen(name) + 1);
    if (b->faults.n_missing++) return;
    snprintf(b->faults.missing, sizeof b->faults.missing, "\"%s\" (expected %s)", name,
             st_shape_text(text, shape, rank));
    b->faults.missing_part = st_row_part(row) < ST_N_PICTURE_PARTS ? NULL : st_part_name(st_row_part(row));
}

static void add_slot(binder *b, const st_row *row, const st_entry *e, uint32_t index)
{
    char name[ST_MAX_PUBLISHED_NAME];
    if (!st_row_canonical(name, row, index)) return;
    st_binding *out = b->out;
    if (out->n == out->room) {
        const size_t room = out->room ? 2 * out->room : 512;
        st_slot *grown = st_realloc_array(out->slots, room, sizeof *grown);
        b->failed = !grown;
        if (!grown) return;
        out->slots = grown;
        out->room = room;
    }
    st_slot s = { .row = row, .entry = e, .rank = row->rank };
    for (uint32_t i = 0; i < row->rank; i++) s.shape[i] = size_of(b, row->shape[i]);
    const unsigned pieces = pieces_of(b, row);
    if (!st_shape_product(&s.n_elements, s.shape, s.rank)) return; /* cannot be: the entry's own product fits */
    if (pieces == ST_ROW_POSITIONS) s.first = e->n_elements - s.n_elements;
    else if (pieces) s.first = (row->piece == ST_ROW_BY_INDEX ? index : row->piece) * s.n_elements;
    s.name = st_strdup(name);
    b->failed = !s.name;
    if (s.name) out->slots[out->n++] = s;
}

/* A companion of a quantised matrix: marked as used, its shape checked. */
static st_entry *companion(binder *b, const st_entry *e, const char *suffix, const uint64_t *shape, uint32_t rank)
{
    char name[ST_MAX_PUBLISHED_NAME + ST_MAX_INT8_SUFFIX];
    snprintf(name, sizeof name, "%s%s", e->name, suffix);
    st_entry *c = st_catalog_find(b->cat, name);
    if (!c) return NULL;
    c->used = true;
    if (!shape_fits(c, shape, rank, false)) note_shape(b, c, shape, rank);
    else if (!st_dtype_is_real(c->dtype)) note_type(b, c);
    return c;
}

static void bind_int8(binder *b, const st_row *row, st_entry *e, uint32_t index)
{
    const unsigned pieces = pieces_of(b, row);
    const uint64_t smooth_shape[2] = { pieces ? pieces : 1, e->rank == 2 ? e->shape[1] : 0 };
    if (row->rank != 2 || pieces == ST_ROW_POSITIONS || e->rank != 2 || e->n_elements == 0 ||
        e->shape[1] > ST_MAX_INT8_COLUMNS) {
        if (!b->faults.shape[0])
            snprintf(b->faults.shape, sizeof b->faults.shape,
                     "tensor \"%s\": I8, expected real numbers (F32, F16, BF16 or F64): only matrices of at most %u "
                     "columns can be quantised",
                     e->name, ST_MAX_INT8_COLUMNS);
        return;
    }
    const st_entry *scale = companion(b, e, ST_INT8_SCALE, e->shape, 1);
    const st_entry *smooth = companion(b, e, ST_INT8_SMOOTH, smooth_shape, 2);
    if (!scale && !b->faults.shape[0])
        snprintf(b->faults.shape, sizeof b->faults.shape, "tensor \"%s\": I8, but its scales \"%s%s\" are missing",
                 e->name, e->name, ST_INT8_SCALE);
    const size_t before = b->out->n;
    if (scale) add_slot(b, row, e, index);
    if (b->out->n == before) return;
    b->out->slots[before].scale = scale;
    b->out->slots[before].smooth = smooth;
}

static void bind_one(binder *b, const st_row *row, uint32_t index)
{
    char name[ST_MAX_PUBLISHED_NAME];
    uint64_t shape[4];
    if (!st_row_published(name, row, b->naming, index)) return;
    const uint32_t rank = published_shape(shape, b, row);
    st_entry *e = st_catalog_find(b->cat, name);
    const bool wanted = st_row_need(row) == ST_NEED_PART && b->out->has[st_row_part(row)];
    if (!e) {
        const unsigned piece = row->piece == ST_ROW_BY_INDEX ? index : row->piece;
        if (wanted && (piece == 0 || pieces_of(b, row) == 0))
            note_missing(b, row, name, shape, rank); /* not again for its other pieces */
        return;
    }
    e->used = true;
    if (!shape_fits(e, shape, rank, pieces_of(b, row) == ST_ROW_POSITIONS)) {
        note_shape(b, e, shape, rank);
    } else if (row->canonical && e->dtype == ST_DTYPE_I8) {
        bind_int8(b, row, e, index);
    } else if (row->canonical && !st_dtype_is_real(e->dtype)) {
        note_type(b, e);
    } else {
        add_slot(b, row, e, index);
    }
}

static uint32_t repeats(const binder *b, const st_row *row)
{
    return row->repeat ? (uint32_t)b->sizes[row->repeat] : 1;
}

/* A part other than the detector's is there as soon as one tensor is that only it has. */
static void find_parts(binder *b)
{
    for (int part = 0; part < ST_N_PARTS; part++) b->out->has[part] = part < ST_N_PICTURE_PARTS;
    for (size_t i = 0; i < st_n_manifest_rows; i++) {
        const st_row *row = &st_manifest_rows[i];
        char name[ST_MAX_PUBLISHED_NAME];
        if (!st_row_in(row, b->naming->sam31) || st_row_need(row) != ST_NEED_PART || b->out->has[st_row_part(row)])
            continue;
        for (uint32_t k = 0; k < repeats(b, row); k++)
            if (st_row_published(name, row, b->naming, k) && st_catalog_find(b->cat, name))
                b->out->has[st_row_part(row)] = true;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const st_slot *)a)->name, ((const st_slot *)b)->name);
}

static st_status report(const binder *b, const st_entry *unknown, size_t n_unknown, st_error *err)
{
    const faults *f = &b->faults;
    const char *family = f->n_missing || n_unknown ? st_family_guess(b->cat, true) : NULL;
    char more[64] = "", stranger[ST_MAX_TENSOR_NAME + 64] = "", model[96] = "";
    if (f->n_missing > 1) snprintf(more, sizeof more, " and %zu more", f->n_missing - 1);
    if (unknown) snprintf(stranger, sizeof stranger, "; the file has \"%.128s\", which is unknown", unknown->name);
    if (family) snprintf(model, sizeof model, "; this looks like %s", family);
    const char *is = f->n_missing > 1 ? "are" : "is";
    if (f->n_missing && f->missing_part)
        return st_fail(err, ST_ERR_FORMAT, "tensor %s%s of the %s %s missing, though other tensors of it are there%s%s",
                       f->missing, more, f->missing_part, is, stranger, model);
    if (f->n_missing)
        return st_fail(err, ST_ERR_FORMAT, "tensor %s%s %s missing%s%s", f->missing, more, is, stranger, model);
    if (f->shape[0]) return st_fail(err, ST_ERR_FORMAT, "%s%s", f->shape, model);
    if (n_unknown > 1) snprintf(more, sizeof more, " (and %zu more)", n_unknown - 1);
    char text[ST_SHAPE_TEXT];
    return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\" of shape %s is unknown%s%s", unknown->name,
                   st_shape_text(text, unknown->shape, unknown->rank), more, model);
}

st_status st_manifest_bind(st_binding *out, st_catalog *cat, const st_naming *naming, const st_dims *dims,
                           st_error *err)
{
    *out = (st_binding){ 0 };
    binder b = { .out = out, .cat = cat, .naming = naming };
    if (!st_sizes_from_dims(b.sizes, dims))
        return st_fail(err, ST_ERR_INTERNAL, "sizes of the model were not finished");
    find_parts(&b);
    for (size_t i = 0; i < st_n_manifest_rows && !b.failed; i++) {
        const st_row *row = &st_manifest_rows[i];
        if (!st_row_in(row, naming->sam31)) continue;
        for (uint32_t k = 0; k < repeats(&b, row) && !b.failed; k++) bind_one(&b, row, k);
    }
    const st_entry *unknown = NULL;
    size_t n_unknown = 0;
    for (size_t i = 0; i < cat->n; i++) {
        if (cat->entries[i].used) continue;
        if (!unknown) unknown = &cat->entries[i];
        n_unknown++;
    }
    st_status status = ST_OK;
    if (b.failed) status = st_fail(err, ST_ERR_NOMEM, "out of memory for the manifest");
    else if (b.faults.shape[0] || b.faults.n_missing || n_unknown) status = report(&b, unknown, n_unknown, err);
    if (status != ST_OK) {
        st_binding_free(out);
        return status;
    }
    if (out->n > 1) qsort(out->slots, out->n, sizeof *out->slots, by_name);
    return ST_OK;
}

void st_binding_free(st_binding *b)
{
    if (!b) return;
    for (size_t i = 0; i < b->n; i++) st_free(b->slots[i].name);
    st_free(b->slots);
    *b = (st_binding){ 0 };
}

const st_slot *st_binding_find(const st_binding *b, const char *canonical)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(b->slots[middle].name, canonical) < 0) low = middle + 1;
        else high = middle;
    }
    return low < b->n && strcmp(b->slots[low].name, canonical) == 0 ? &b->slots[low] : NULL;
}
