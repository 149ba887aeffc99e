/* catalog.c: the sorted list of tensors. Sorted, not hashed: look-ups cost eleven comparisons at published sizes
 * and no hostile set of names makes them slower, and unused tensors come out in a fixed order. */
#include "weights/catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

void st_catalog_free(st_catalog *cat)
{
    if (!cat) return;
    for (size_t i = 0; i < cat->n; i++) st_free(cat->entries[i].name);
    for (size_t i = 0; i < cat->n_blobs; i++) st_free(cat->blobs[i].heap);
    for (size_t i = 0; i < cat->n_maps; i++) {
        st_map_close(&cat->maps[i]);
        st_free(cat->map_names[i]);
    }
    st_free(cat->entries);
    st_free(cat->blobs);
    st_free(cat->maps);
    st_free(cat->map_names);
    st_free(cat->about);
    *cat = (st_catalog){ 0 };
}

static st_status no_memory(st_error *err)
{
    return st_fail(err, ST_ERR_NOMEM, "out of memory for the list of tensors");
}

st_status st_catalog_add_map(st_catalog *cat, st_map map, const char *path, uint32_t *index, st_error *err)
{
    const char *slash = strrchr(path, '/');
    char *name = st_strdup(slash ? slash + 1 : path);
    st_map *maps = st_realloc_array(cat->maps, cat->n_maps + 1, sizeof *maps);
    if (maps) cat->maps = maps;
    char **names = st_realloc_array(cat->map_names, cat->n_maps + 1, sizeof *names);
    if (names) cat->map_names = names;
    if (!name || !maps || !names) {
        st_free(name);
        st_map_close(&map);
        return no_memory(err);
    }
    *index = (uint32_t)cat->n_maps;
    maps[cat->n_maps] = map;
    names[cat->n_maps++] = name;
    return ST_OK;
}

st_status st_catalog_add_blob(st_catalog *cat, const st_blob *blob, uint32_t *index, st_error *err)
{
    if (cat->n_blobs == cat->blob_room) {
        const size_t room = cat->blob_room ? 2 * cat->blob_room : 16;
        st_blob *grown = st_realloc_array(cat->blobs, room, sizeof *grown);
        if (!grown) return no_memory(err);
        cat->blobs = grown;
        cat->blob_room = room;
    }
    *index = (uint32_t)cat->n_blobs;
    cat->blobs[cat->n_blobs++] = *blob;
    return ST_OK;
}

void st_catalog_expect_random(const st_catalog *cat, bool random)
{
    for (size_t i = 0; i < cat->n_maps; i++)
        if (cat->maps[i].data)
            (void)madvise((void *)(uintptr_t)cat->maps[i].data, cat->maps[i].n, random ? MADV_RANDOM : MADV_NORMAL);
}

bool st_shape_product(uint64_t *out, const uint64_t *shape, uint32_t rank)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(product, shape[i], &product)) return false;
    *out = product;
    return true;
}

const char *st_shape_text(char text[ST_SHAPE_TEXT], const uint64_t *shape, uint32_t rank)
{
    size_t used = 0;
    text[used++] = '[';
    for (uint32_t i = 0; i < rank && used < ST_SHAPE_TEXT - 26; i++)
        used +=
            (size_t)snprintf(text + used, ST_SHAPE_TEXT - used, i ? ", %llu" : "%llu", (unsigned long long)shape[i]);
    snprintf(text + used, ST_SHAPE_TEXT - used, "]");
    return text;
}

static st_status check_name(const char *name, size_t n_name, st_error *err)
{
    if (n_name == 0) return st_fail(err, ST_ERR_FORMAT, "a tensor has an empty name");
    if (n_name > ST_MAX_TENSOR_NAME)
        return st_fail(err, ST_ERR_LIMIT, "a tensor's name has %zu bytes, expected at most %d: \"%.64s...\"", n_name,
                       ST_MAX_TENSOR_NAME, name);
    for (size_t i = 0; i < n_name; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return st_fail(err, ST_ERR_FORMAT, "a tensor's name holds the control character 0x%02x",
                           (unsigned char)name[i]);
    return ST_OK;
}

/* Fills in row-major strides, or finds out whether the given ones equal them wherever it matters (along a side of
 * length 1 they do not). */
static void settle_strides(st_entry *e)
{
    uint64_t step = 1;
    bool same = true;
    for (uint32_t i = e->rank; i-- > 0;) {
        if (e->contiguous) e->stride[i] = step;
        same = same && (e->shape[i] == 1 || e->stride[i] == step);
        step *= e->shape[i];
    }
    e->contiguous = same || e->n_elements == 0;
}

st_status st_catalog_add(st_catalog *cat, const st_entry *entry, const char *name, size_t n_name, st_error *err)
{
    st_status status = check_name(name, n_name, err);
    if (status != ST_OK) return status;
    if (cat->n >= ST_MAX_TENSORS) return st_fail(err, ST_ERR_LIMIT, "more than %d tensors", ST_MAX_TENSORS);
    if (cat->n == cat->room) {
        const size_t room = cat->room ? 2 * cat->room : 256;
        st_entry *grown = st_realloc_array(cat->entries, room, sizeof *grown);
        if (!grown) return no_memory(err);
        cat->entries = grown;
        cat->room = room;
    }
    st_entry *e = &cat->entries[cat->n];
    *e = *entry;
    uint64_t n_bytes;
    if (!st_shape_product(&e->n_elements, e->shape, e->rank) ||
        __builtin_mul_overflow(e->n_elements, st_dtype_size(e->dtype), &n_bytes))
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%.*s\": its shape's product does not fit into 64 bits",
                       (int)n_name, name);
    e->name = st_strndup(name, n_name);
    if (!e->name) return no_memory(err);
    settle_strides(e);
    e->used = false;
    cat->n++;
    return ST_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const st_entry *)a)->name, ((const st_entry *)b)->name);
}

st_status st_catalog_finish(st_catalog *cat, st_error *err)
{
    if (cat->n > 1) qsort(cat->entries, cat->n, sizeof *cat->entries, by_name);
    for (size_t i = 1; i < cat->n; i++) {
        const st_entry *a = &cat->entries[i - 1], *b = &cat->entries[i];
        if (strcmp(a->name, b->name) != 0) continue;
        const uint32_t map_a = cat->blobs[a->blob].map, map_b = cat->blobs[b->blob].map;
        if (map_a == map_b) return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\" is there twice", a->name);
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%s\" is in two shards, %s and %s", a->name, cat->map_names[map_a],
                       cat->map_names[map_b]);
    }
    return ST_OK;
}

size_t st_catalog_lower_bound(const st_catalog *cat, const char *prefix)
{
    size_t low = 0, high = cat->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(cat->entries[middle].name, prefix) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

st_entry *st_catalog_find(const st_catalog *cat, const char *name)
{
    const size_t i = st_catalog_lower_bound(cat, name);
    return i < cat->n && strcmp(cat->entries[i].name, name) == 0 ? &cat->entries[i] : NULL;
}

#define GATHER 256 /* elements per round */

/* Elements first .. first+count of a strided tensor, packed into `out`. */
static void gather(unsigned char *out, const st_entry *e, const unsigned char *origin, uint64_t first, size_t count)
{
    const size_t size = st_dtype_size(e->dtype);
    uint64_t index[ST_MAX_RANK], at = 0, rest = first;
    for (uint32_t d = e->rank; d-- > 0;) {
        index[d] = rest % e->shape[d];
        rest /= e->shape[d];
        at += index[d] * e->stride[d];
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(out + i * size, origin + at * size, size);
        for (uint32_t d = e->rank; d-- > 0;) {
            at += e->stride[d];
            if (++index[d] < e->shape[d]) break;
            at -= index[d] * e->stride[d];
            index[d] = 0;
        }
    }
}

void st_entry_copy(const st_catalog *cat, const st_entry *entry, uint64_t first, size_t count, void *out)
{
    if (count) gather(out, entry, cat->blobs[entry->blob].data + entry->offset, first, count);
}

size_t st_entry_read(const st_catalog *cat, const st_entry *entry, uint64_t first, size_t count, float *out)
{
    const size_t size = st_dtype_size(entry->dtype);
    const unsigned char *origin = cat->blobs[entry->blob].data + entry->offset;
    if (entry->contiguous) return st_f32_from(out, origin + first * size, count, entry->dtype);
    unsigned char packed[GATHER * 8];
    size_t bad = count;
    for (size_t done = 0; done < count; done += GATHER) {
        const size_t n = count - done < GATHER ? count - done : GATHER;
        gather(packed, entry, origin, first + done, n);
        const size_t at = st_f32_from(out + done, packed, n, entry->dtype);
        if (at < n && bad == count) bad = done + at;
    }
    return bad;
}

st_status st_blob_expand(st_blob *blob, const char *what, st_error *err)
{
    if (blob->data || !blob->packed) return ST_OK;
    unsigned char *heap = st_aligned(blob->n, 64);
    if (!heap) return st_fail(err, ST_ERR_NOMEM, "\"%s\": cannot allocate %zu bytes to expand it", what, blob->n);
    z_stream z = { 0 };
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) {
        st_free(heap);
        return st_fail(err, ST_ERR_NOMEM, "\"%s\": out of memory for zlib", what);
    }
    size_t in_left = blob->n_packed, out_left = blob->n;
    z.next_in = (Bytef *)(uintptr_t)blob->packed; /* zlib's interface lacks const */
    z.next_out = heap;
    int code = Z_OK;
    while (code == Z_OK) {
        const uInt in = in_left > 1u << 30 ? 1u << 30 : (uInt)in_left,
                   room = out_left > 1u << 30 ? 1u << 30 : (uInt)out_left;
        z.avail_in = in;
        z.avail_out = room;
        code = inflate(&z, Z_NO_FLUSH);
        in_left -= in - z.avail_in;
        out_left -= room - z.avail_out;
        if (code == Z_OK && in == z.avail_in && room == z.avail_out) break; /* no progress */
    }
    inflateEnd(&z);
    uLong crc = crc32(0, NULL, 0);
    for (size_t done = 0; code == Z_STREAM_END && done < blob->n; done += 1u << 30)
        crc = crc32(crc, heap + done, blob->n - done > 1u << 30 ? 1u << 30 : (uInt)(blob->n - done));
    if (code != Z_STREAM_END || in_left || out_left || crc != blob->crc) {
        st_free(heap);
        return st_fail(err, ST_ERR_FORMAT,
                       "\"%s\": its deflated bytes do not expand to the %zu bytes and checksum they should have", what,
                       blob->n);
    }
    blob->heap = heap;
    blob->data = heap;
    return ST_OK;
}
