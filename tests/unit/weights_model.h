/* weights_model.h: whole models of a few hundred KiB, made from the manifest's table for any layout, and written as
 * any container. Values depend on the canonical name and the index alone, so the layouts of one seed hold the same
 * weights: q, k and v are packed here and must be found again by the reader.
 */
#ifndef WEIGHTS_MODEL_H
#define WEIGHTS_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "temp_folder.h"
#include "weights/manifest.h"

typedef struct tiny_tensor {
    char name[ST_MAX_PUBLISHED_NAME];
    st_dtype dtype;
    uint32_t rank;
    uint64_t shape[ST_MAX_RANK];
    unsigned char *bytes;
    size_t n_bytes;
} tiny_tensor;

typedef struct tiny_model {
    tiny_tensor *tensors;
    size_t n;
    st_naming naming;
    st_dims dims;
} tiny_model;

/* No two sizes agree by accident, and everything but the fixed channel counts of the mask down-sampler is small. */
static inline void tiny_dims(st_dims *d)
{
    st_dims_published(d);
    memset(d->vit_global, 0, sizeof d->vit_global);
    d->vit_global[1] = true;
    d->image_size = 56;
    d->patch = 4;
    d->vit_width = 24;
    d->vit_heads = 3;
    d->vit_depth = 3;
    d->vit_mlp = 28;
    d->window = 5;
    d->pos_side = 6;
    d->vocab = 50;
    d->context = 7;
    d->text_width = 12;
    d->text_heads = 3;
    d->text_depth = 2;
    d->text_mlp = 20;
    d->width = 16;
    d->geo_layers = 2;
    d->geo_heads = 2;
    d->geo_ffn = 18;
    d->roi_size = 3;
    d->fusion_layers = 2;
    d->fusion_heads = 4;
    d->fusion_ffn = 22;
    d->dec_layers = 3;
    d->dec_heads = 4;
    d->dec_ffn = 26;
    d->n_queries = 11;
    d->rpb_hidden = 16;
    d->score_ffn = 26;
    d->mask_heads = 2;
    d->click_heads = 2;
    d->click_mlp = 30;
    d->click_layers = 2;
    d->click_downsample = 2;
    d->click_mask_channels = 8;
    d->click_mask_tokens = 4;
    d->click_iou_hidden = 14;
    d->click_points = 4;
    d->mem_layers = 2;
    d->mem_heads = 1;
    d->mem_ffn = 34;
    d->mem_channels = 8;
    d->mem_fuser_layers = 2;
    d->mem_fuser_ffn = 36;
    d->num_maskmem = 5;
    d->mem_downsample = 1;
    d->mem_kernel = 1;
    d->mem_fuser_kernel = 3;
    d->mux_slots = 5;
    d->mux_candidates = 3;
    d->prop_heads = 2;
    d->prop_layers = 2;
    d->prop_mlp = 32;
    d->prop_downsample = 2;
    d->prop_iou_hidden = 10;
    d->mem_down_width = 3;
}

/* The same sizes as a config.json. */
static const char tiny_config[] =
    "{\"model_type\": \"sam3_video\", \"detector_config\": {\n"
    " \"vision_config\": {\"fpn_hidden_size\": 16, \"backbone_config\": {\"hidden_size\": 24, \"num_attention_heads\": "
    "3, \"num_hidden_layers\": 3,\n"
    "  \"intermediate_size\": 28, \"image_size\": 56, \"patch_size\": [4, 4], \"window_size\": 5, "
    "\"global_attn_indexes\": [1], \"pretrain_image_size\": 24}},\n"
    " \"text_config\": {\"hidden_size\": 12, \"num_attention_heads\": 3, \"num_hidden_layers\": 2, "
    "\"intermediate_size\": 20, \"vocab_size\": 50,\n"
    "  \"max_position_embeddings\": 7, \"hidden_act\": \"gelu\"},\n"
    " \"geometry_encoder_config\": {\"num_layers\": 2, \"num_attention_heads\": 2, \"intermediate_size\": 18, "
    "\"roi_size\": 3},\n"
    " \"detr_encoder_config\": {\"num_layers\": 2, \"num_attention_heads\": 4, \"intermediate_size\": 22},\n"
    " \"detr_decoder_config\": {\"num_layers\": 3, \"num_attention_heads\": 4, \"intermediate_size\": 26, "
    "\"num_queries\": 11},\n"
    " \"mask_decoder_config\": {\"num_attention_heads\": 2}},\n"
    " \"tracker_config\": {\"image_size\": 56, \"memory_attention_num_layers\": 2, "
    "\"memory_attention_feed_forward_hidden_size\": 34,\n"
    "  \"memory_encoder_output_channels\": 8, \"memory_fuser_num_layers\": 2, \"memory_fuser_intermediate_dim\": 36, "
    "\"memory_fuser_kernel_size\": 3,\n"
    "  \"mask_downsampler_kernel_size\": 1, \"num_maskmem\": 5,\n"
    "  \"mask_decoder_config\": {\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"mlp_dim\": 30, "
    "\"iou_head_hidden_dim\": 14},\n"
    "  \"prompt_encoder_config\": {\"mask_input_channels\": 8}}}\n";

/* What shapes do not tell of the same sizes: NAME.json beside a lone file. */
static const char tiny_side[] =
    "{\"detector_config\": {\"vision_config\": {\"backbone_config\": {\"num_attention_heads\": 3, \"image_size\": 56, "
    "\"window_size\": 5,\n"
    "  \"global_attn_indexes\": [1]}}, \"text_config\": {\"num_attention_heads\": 3}, \"geometry_encoder_config\": "
    "{\"num_attention_heads\": 2},\n"
    " \"detr_encoder_config\": {\"num_attention_heads\": 4}, \"mask_decoder_config\": {\"num_attention_heads\": 2}},\n"
    " \"tracker_config\": {\"mask_decoder_config\": {\"num_attention_heads\": 2}}}\n";

static inline void tiny_naming(st_naming *n, st_layout layout, bool sam31)
{
    *n = (st_naming){ .layout = layout, .sam31 = sam31 };
    const bool hf = layout == ST_LAYOUT_HF;
    snprintf(n->root[ST_ROOT_DETECTOR], 64, "%s", hf ? "detector_model." : "detector.");
    snprintf(n->root[ST_ROOT_NECK], 64, "%s", hf ? "tracker_neck." : "detector.");
    snprintf(n->root[ST_ROOT_TRACKER], 64, "%s", hf ? "tracker_model." : sam31 ? "tracker.model." : "tracker.");
}

/* Multiples of 1/128 in [-1, 1): exact in every floating type. */
static inline float tiny_value(const char *canonical, uint64_t index)
{
    uint64_t h = 1469598103934665603u;
    for (const char *c = strcmp(canonical, "click.grid_fourier") == 0 ? "click.point_fourier" : canonical; *c; c++)
        h = (h ^ (unsigned char)*c) * 1099511628211u;
    h ^= index * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
    return (float)((int)(h >> 56) - 128) / 128.0f;
}

static inline tiny_tensor *tiny_find(const tiny_model *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->tensors[i].name, name) == 0) return &m->tensors[i];
    return NULL;
}

static inline tiny_tensor *tiny_add(tiny_model *m, const char *name, st_dtype dtype, uint32_t rank,
                                    const uint64_t *shape)
{
    tiny_tensor *t = &m->tensors[m->n++];
    uint64_t n = 1;
    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dtype = dtype;
    t->rank = rank;
    for (uint32_t i = 0; i < rank; i++) n *= t->shape[i] = shape[i];
    t->n_bytes = (size_t)n * st_dtype_size(dtype);
    t->bytes = calloc(t->n_bytes + 1, 1);
    if (!t->bytes) temp_die("calloc");
    return t;
}

static inline void tiny_add_row(tiny_model *m, const uint64_t sizes[ST_N_SIZES], const st_row *row, uint32_t index)
{
    char name[ST_MAX_PUBLISHED_NAME], canonical[ST_MAX_PUBLISHED_NAME];
    if (!st_row_published(name, row, &m->naming, index)) return;
    const bool any = !st_row_canonical(canonical, row, index);
    uint64_t shape[4], n = 1;
    for (uint32_t i = 0; i < row->rank; i++) {
        shape[i] = row->shape[i] < 0 ? sizes[~row->shape[i]] : (uint64_t)row->shape[i];
        if (row->shape[i] == ~(int)ST_SIZE_ANY) shape[i] = 9;
        n *= shape[i];
    }
    unsigned pieces = m->naming.layout == ST_LAYOUT_META ? row->pieces_meta : row->pieces_hf;
    if (pieces == ST_ROW_BY_INDEX) pieces = (unsigned)sizes[row->repeat];
    uint64_t first = 0, whole[4] = { shape[0], shape[1], shape[2], shape[3] };
    uint32_t rank = row->rank;
    if (any && rank == 0) { /* rotary table of one block */
        const uint64_t side = m->dims.vit_global[index] ? m->dims.image_size / m->dims.patch : m->dims.window;
        tiny_add(m, name, ST_DTYPE_C64, 2, (uint64_t[]){ side * side, m->dims.vit_width / m->dims.vit_heads / 2 });
        return;
    }
    if (pieces == ST_ROW_POSITIONS) {
        const bool class_row = m->naming.layout == ST_LAYOUT_META;
        rank = 3;
        whole[0] = 1;
        whole[1] = shape[0] + class_row;
        whole[2] = shape[1];
        first = class_row ? shape[1] : 0;
    } else if (pieces) {
        whole[0] *= pieces;
        first = (row->piece == ST_ROW_BY_INDEX ? index : row->piece) * n;
    }
    tiny_tensor *t = tiny_find(m, name);
    if (!t) t = tiny_add(m, name, any && strstr(name, "position_ids") ? ST_DTYPE_I64 : ST_DTYPE_F32, rank, whole);
    if (any) return;
    for (uint64_t i = 0; i < n; i++) {
        const float value = tiny_value(canonical, i);
        memcpy(t->bytes + (first + i) * sizeof value, &value, sizeof value);
    }
}

static inline void tiny_make(tiny_model *m, st_layout layout, bool sam31)
{
    uint64_t sizes[ST_N_SIZES];
    *m = (tiny_model){ .tensors = calloc(2048, sizeof(tiny_tensor)) };
    tiny_naming(&m->naming, layout, sam31);
    tiny_dims(&m->dims);
    if (sam31) m->dims.mem_channels = m->dims.width; /* its memory is as wide as the model */
    if (!m->tensors || !st_sizes_from_dims(sizes, &m->dims)) temp_die("tiny_make");
    for (size_t r = 0; r < st_n_manifest_rows; r++) {
        const st_row *row = &st_manifest_rows[r];
        if (!st_row_in(row, sam31)) continue;
        if (sam31 && row->canonical && strncmp(row->canonical, "neck.3", 6) == 0) continue;
        for (uint32_t i = 0; i < (row->repeat ? (uint32_t)sizes[row->repeat] : 1); i++) tiny_add_row(m, sizes, row, i);
    }
}

static inline void tiny_free(tiny_model *m)
{
    for (size_t i = 0; i < m->n; i++) free(m->tensors[i].bytes);
    free(m->tensors);
    *m = (tiny_model){ 0 };
}

static inline void tiny_drop(tiny_model *m, size_t i)
{
    free(m->tensors[i].bytes);
    memmove(&m->tensors[i], &m->tensors[i + 1], (m->n - i - 1) * sizeof *m->tensors);
    m->n--;
}

/* Stores an F32 matrix as int8 with its companions; what they stand for stays exact. pieces: rows of the smoothing, 0: none. */
static inline void tiny_int8(tiny_model *m, const char *name, uint64_t pieces)
{
    char companion[ST_MAX_PUBLISHED_NAME];
    tiny_tensor *t = tiny_find(m, name);
    if (!t || t->dtype != ST_DTYPE_F32 || strlen(name) + 8 > sizeof companion) temp_die(name);
    const float scale = pieces ? 1.0f / 32.0f : 1.0f / 128.0f, smooth = 0.25f;
    for (size_t i = 0; i < t->n_bytes / 4; i++) {
        float value;
        memcpy(&value, t->bytes + 4 * i, 4);
        t->bytes[i] = (unsigned char)(signed char)(value * 128.0f);
    }
    t->dtype = ST_DTYPE_I8;
    t->n_bytes /= 4;
    snprintf(companion, sizeof companion, "%.*s_scale", (int)(sizeof companion - 8), name);
    const tiny_tensor *s = tiny_add(m, companion, ST_DTYPE_F32, 1, t->shape);
    for (size_t i = 0; i < s->n_bytes / 4; i++) memcpy(s->bytes + 4 * i, &scale, 4);
    if (!pieces) return;
    snprintf(companion, sizeof companion, "%.*s_smooth", (int)(sizeof companion - 8), name);
    s = tiny_add(m, companion, ST_DTYPE_F32, 2, (uint64_t[]){ pieces, t->shape[1] });
    for (size_t i = 0; i < s->n_bytes / 4; i++) memcpy(s->bytes + 4 * i, &smooth, 4);
}

/* Stores every F32 tensor as another floating type; values stay exact. */
static inline void tiny_convert(tiny_model *m, st_dtype to)
{
    for (size_t t = 0; t < m->n; t++) {
        tiny_tensor *x = &m->tensors[t];
        if (x->dtype != ST_DTYPE_F32) continue;
        const size_t n = x->n_bytes / 4, size = st_dtype_size(to);
        unsigned char *bytes = calloc(n * size + 1, 1);
        if (!bytes) temp_die("calloc");
        for (size_t i = 0; i < n; i++) {
            float f;
            uint32_t bits;
            memcpy(&f, x->bytes + 4 * i, 4);
            memcpy(&bits, &f, 4);
            const double wide = f;
            const uint16_t brain = (uint16_t)(bits >> 16);
            const uint16_t half = f == 0 ? (uint16_t)(bits >> 16)
                                         : (uint16_t)((bits >> 16 & 0x8000) | ((((bits >> 23) & 0xFF) - 112) << 10) |
                                                      ((bits >> 13) & 0x3FF));
            if (to == ST_DTYPE_F64) memcpy(bytes + 8 * i, &wide, 8);
            else memcpy(bytes + 2 * i, to == ST_DTYPE_F16 ? &half : &brain, 2);
        }
        free(x->bytes);
        x->bytes = bytes;
        x->n_bytes = n * size;
        x->dtype = to;
    }
}

/* A catalogue over the model's own memory. Free with st_catalog_free before the model. */
static inline void tiny_catalog(st_catalog *cat, const tiny_model *m)
{
    st_error err = { 0 };
    *cat = (st_catalog){ .container = "memory" };
    for (size_t i = 0; i < m->n; i++) {
        const tiny_tensor *t = &m->tensors[i];
        const st_blob blob = { .data = t->bytes, .n = t->n_bytes };
        st_entry e = { .dtype = t->dtype, .rank = t->rank, .contiguous = true };
        memcpy(e.shape, t->shape, sizeof e.shape);
        if (st_catalog_add_blob(cat, &blob, &e.blob, &err) != ST_OK ||
            st_catalog_add(cat, &e, t->name, strlen(t->name), &err) != ST_OK)
            temp_die(err.message);
    }
    if (st_catalog_finish(cat, &err) != ST_OK) temp_die(err.message);
}

/* ---------------------------------------------------------------- containers */

typedef struct tiny_bytes {
    unsigned char *data;
    size_t n, room;
} tiny_bytes;

static inline void tiny_put(tiny_bytes *b, const void *bytes, size_t n)
{
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n) + 4096;
        b->data = realloc(b->data, b->room);
        if (!b->data) temp_die("realloc");
    }
    if (n) memcpy(b->data + b->n, bytes, n);
    b->n += n;
}

static inline void tiny_puts(tiny_bytes *b, const char *text)
{
    tiny_put(b, text, strlen(text));
}

static inline void tiny_put_number(tiny_bytes *b, uint64_t value, unsigned n_bytes)
{
    for (unsigned i = 0; i < n_bytes; i++) {
        const unsigned char byte = (unsigned char)(i < 8 ? value >> 8 * i : 0);
        tiny_put(b, &byte, 1);
    }
}

static inline void tiny_pad(tiny_bytes *b, size_t alignment)
{
    while (b->n % alignment) tiny_put(b, " ", 1);
}

/* Tensors first .. end-1 as one safetensors file; `shift` more spaces in the header put the data off any alignment. */
static inline void tiny_safetensors(tiny_bytes *out, const tiny_model *m, size_t first, size_t end, size_t shift)
{
    tiny_bytes header = { 0 };
    size_t at = 0;
    tiny_puts(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = first; i < end; i++) {
        const tiny_tensor *t = &m->tensors[i];
        char line[512];
        int n = snprintf(line, sizeof line, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, st_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->rank; d++)
            n += snprintf(line + n, sizeof line - (size_t)n, d ? ",%llu" : "%llu", (unsigned long long)t->shape[d]);
        snprintf(line + n, sizeof line - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", at, at + t->n_bytes);
        tiny_puts(&header, line);
        at += t->n_bytes;
    }
    tiny_puts(&header, "}");
    tiny_pad(&header, 8);
    while (shift--) tiny_put(&header, " ", 1);
    tiny_put_number(out, header.n, 8);
    tiny_put(out, header.data, header.n);
    for (size_t i = first; i < end; i++) tiny_put(out, m->tensors[i].bytes, m->tensors[i].n_bytes);
    free(header.data);
}

static inline void tiny_write_safetensors(const temp_folder *t, const char *name, const tiny_model *m)
{
    tiny_bytes file = { 0 };
    tiny_safetensors(&file, m, 0, m->n, 0);
    temp_write(t, name, file.data, file.n);
    free(file.data);
}

/* folder/model-0000K-of-0000N.safetensors and folder/model.safetensors.index.json. */
static inline void tiny_write_sharded(const temp_folder *t, const char *folder, const tiny_model *m, size_t n_shards)
{
    tiny_bytes index = { 0 };
    char line[512], name[300];
    tiny_puts(&index, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (size_t k = 0; k < n_shards; k++) {
        const size_t first = m->n * k / n_shards, end = m->n * (k + 1) / n_shards;
        tiny_bytes file = { 0 };
        tiny_safetensors(&file, m, first, end, 0);
        snprintf(name, sizeof name, "%s/model-%05zu-of-%05zu.safetensors", folder, k + 1, n_shards);
        temp_write(t, name, file.data, file.n);
        free(file.data);
        for (size_t i = first; i < end; i++) {
            snprintf(line, sizeof line, "%s\"%s\": \"model-%05zu-of-%05zu.safetensors\"", i ? ",\n" : "",
                     m->tensors[i].name, k + 1, n_shards);
            tiny_puts(&index, line);
        }
    }
    tiny_puts(&index, "}}");
    snprintf(name, sizeof name, "%s/model.safetensors.index.json", folder);
    temp_write(t, name, index.data, index.n);
    free(index.data);
}

/* ---- a zip archive, entry by entry */

typedef struct tiny_zip {
    tiny_bytes file, directory;
    unsigned n;
} tiny_zip;

/* Stored, or deflated when `packed_entry`; stored data start at a multiple of 64 as torch.save has it. */
static inline void tiny_zip_add(tiny_zip *z, const char *name, const void *bytes, size_t n, bool packed_entry)
{
    const size_t n_name = strlen(name), header = z->file.n;
    const uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), bytes, (uInt)n);
    tiny_bytes packed = { 0 };
    tiny_put(&packed, bytes, n);
    if (packed_entry) {
        z_stream s = { 0 };
        if (deflateInit2(&s, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) temp_die("deflateInit2");
        unsigned char *room = malloc(n + 1024);
        if (!room) temp_die("malloc");
        s.next_in = (Bytef *)(uintptr_t)bytes;
        s.avail_in = (uInt)n;
        s.next_out = room;
        s.avail_out = (uInt)(n + 1024);
        if (deflate(&s, Z_FINISH) != Z_STREAM_END) temp_die("deflate");
        packed.n = 0;
        tiny_put(&packed, room, s.total_out);
        deflateEnd(&s);
        free(room);
    }
    const size_t pad = packed_entry ? 0 : (64 - (header + 30 + n_name) % 64) % 64,
                 extra = pad && pad < 4 ? pad + 64 : pad;
    tiny_put(&z->file, "PK\3\4\24\0\0\0", 8);
    tiny_put_number(&z->file, packed_entry ? 8 : 0, 2);
    tiny_put_number(&z->file, 0, 4);
    tiny_put_number(&z->file, crc, 4);
    tiny_put_number(&z->file, packed.n, 4);
    tiny_put_number(&z->file, n, 4);
    tiny_put_number(&z->file, n_name, 2);
    tiny_put_number(&z->file, extra, 2);
    tiny_puts(&z->file, name);
    if (extra) {
        tiny_put(&z->file, "FB", 2);
        tiny_put_number(&z->file, extra - 4, 2);
        for (size_t i = 4; i < extra; i++) tiny_put(&z->file, "Z", 1);
    }
    tiny_put(&z->file, packed.data, packed.n);
    tiny_put(&z->directory, "PK\1\2\24\0\24\0\0\0", 10);
    tiny_put_number(&z->directory, packed_entry ? 8 : 0, 2);
    tiny_put_number(&z->directory, 0, 4);
    tiny_put_number(&z->directory, crc, 4);
    tiny_put_number(&z->directory, packed.n, 4);
    tiny_put_number(&z->directory, n, 4);
    tiny_put_number(&z->directory, n_name, 2);
    tiny_put_number(&z->directory, 0, 12);
    tiny_put_number(&z->directory, header, 4);
    tiny_puts(&z->directory, name);
    z->n++;
    free(packed.data);
}

static inline void tiny_zip_end(tiny_zip *z)
{
    const size_t at = z->file.n;
    tiny_put(&z->file, z->directory.data, z->directory.n);
    tiny_put(&z->file, "PK\5\6\0\0\0\0", 8);
    tiny_put_number(&z->file, z->n, 2);
    tiny_put_number(&z->file, z->n, 2);
    tiny_put_number(&z->file, z->directory.n, 4);
    tiny_put_number(&z->file, at, 4);
    tiny_put_number(&z->file, 0, 2);
    free(z->directory.data);
    z->directory = (tiny_bytes){ 0 };
}

/* ---- a state dict's pickle */

static inline void tiny_pickle_text(tiny_bytes *b, const char *text)
{
    tiny_puts(b, "X");
    tiny_put_number(b, strlen(text), 4);
    tiny_puts(b, text);
}

static inline void tiny_pickle_number(tiny_bytes *b, uint64_t value)
{
    tiny_put(b, "\x8a\x08", 2); /* LONG1 */
    tiny_put_number(b, value, 8);
}

static inline const char *tiny_storage_name(st_dtype type)
{
    switch (type) {
    case ST_DTYPE_F16: return "HalfStorage";
    case ST_DTYPE_BF16: return "BFloat16Storage";
    case ST_DTYPE_F64: return "DoubleStorage";
    case ST_DTYPE_I64: return "LongStorage";
    case ST_DTYPE_C64: return "ComplexFloatStorage";
    default: return "FloatStorage";
    }
}

static inline void tiny_pickle_tensor(tiny_bytes *b, const tiny_tensor *t, size_t key)
{
    char text[32];
    uint64_t stride[ST_MAX_RANK], step = 1;
    for (uint32_t d = t->rank; d-- > 0;) {
        stride[d] = step;
        step *= t->shape[d];
    }
    tiny_puts(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
    tiny_pickle_text(b, "storage");
    tiny_puts(b, "ctorch\n");
    tiny_puts(b, tiny_storage_name(t->dtype));
    tiny_puts(b, "\n");
    snprintf(text, sizeof text, "%zu", key);
    tiny_pickle_text(b, text);
    tiny_pickle_text(b, "cuda:0");
    tiny_pickle_number(b, step);
    tiny_puts(b, "tQK"); /* TUPLE, BINPERSID, BININT1 0 */
    tiny_put_number(b, 0, 1);
    tiny_puts(b, "(");
    for (uint32_t d = 0; d < t->rank; d++) tiny_pickle_number(b, t->shape[d]);
    tiny_puts(b, "t(");
    for (uint32_t d = 0; d < t->rank; d++) tiny_pickle_number(b, stride[d]);
    tiny_puts(b, "t\x89"
                 "ccollections\nOrderedDict\n)RtR");
}

/* As torch.save writes a state dict; inside {"model": ..., "epoch": 3} when `wrapped`. */
static inline void tiny_pt(tiny_bytes *out, const tiny_model *m, bool wrapped, bool packed)
{
    tiny_bytes pickle = { 0 };
    tiny_zip zip = { 0 };
    char name[64];
    tiny_put(&pickle, "\x80\x02", 2);
    if (wrapped) {
        tiny_puts(&pickle, "}(");
        tiny_pickle_text(&pickle, "epoch");
        tiny_put(&pickle, "K\3", 2);
        tiny_pickle_text(&pickle, "model");
    }
    tiny_puts(&pickle, "}(");
    for (size_t i = 0; i < m->n; i++) {
        tiny_pickle_text(&pickle, m->tensors[i].name);
        tiny_pickle_tensor(&pickle, &m->tensors[i], i);
    }
    tiny_puts(&pickle, wrapped ? "uu." : "u.");
    tiny_zip_add(&zip, "archive/data.pkl", pickle.data, pickle.n, packed);
    tiny_zip_add(&zip, "archive/byteorder", "little", 6, packed);
    for (size_t i = 0; i < m->n; i++) {
        snprintf(name, sizeof name, "archive/data/%zu", i);
        tiny_zip_add(&zip, name, m->tensors[i].bytes, m->tensors[i].n_bytes, packed);
    }
    tiny_zip_add(&zip, "archive/version", "3\n", 2, packed);
    tiny_zip_end(&zip);
    *out = zip.file;
    free(pickle.data);
}

static inline void tiny_write_pt(const temp_folder *t, const char *name, const tiny_model *m, bool wrapped, bool packed)
{
    tiny_bytes file;
    tiny_pt(&file, m, wrapped, packed);
    temp_write(t, name, file.data, file.n);
    free(file.data);
}

#endif
