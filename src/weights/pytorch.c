/* pytorch.c: what torch.save writes: a zip with a pickle that says which tensors there are, and one entry per
 * storage. Stored entries are used where they lie; deflated ones (re-packed files) are expanded when a tensor in
 * them is first read, by then known to be one the model needs.
 */
#include "weights/pytorch.h"

#include <string.h>
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "weights/pickle.h"
#include "weights/zip.h"

#define MAX_ENTRY_NAME 1024

/* Length of the one top folder with its slash: what stands before "data.pkl". 0 when there is none. */
static size_t find_folder(const st_zip *zip, const char **folder)
{
    static const char tail[] = "/data.pkl";
    const size_t n_tail = sizeof tail - 1;
    for (size_t i = 0; i < zip->n; i++) {
        const st_zip_entry *e = &zip->entries[i];
        if (e->n_name <= n_tail || memcmp(e->name + e->n_name - n_tail, tail, n_tail) != 0) continue;
        if (memchr(e->name, '/', e->n_name - n_tail)) continue;
        *folder = e->name;
        return e->n_name - n_tail + 1;
    }
    return 0;
}

/* The entry `folder` + a + b. */
static const st_zip_entry *find_in(const st_zip *zip, const char *folder, size_t n_folder, const char *a, const char *b,
                                   size_t n_b)
{
    char name[MAX_ENTRY_NAME];
    const size_t n_a = strlen(a);
    if (n_folder > sizeof name || n_a > sizeof name - n_folder || n_b > sizeof name - n_folder - n_a) return NULL;
    memcpy(name, folder, n_folder);
    memcpy(name + n_folder, a, n_a);
    if (n_b) memcpy(name + n_folder + n_a, b, n_b);
    return st_zip_find(zip, name, n_folder + n_a + n_b);
}

static st_blob blob_of(const st_zip_entry *e, uint32_t map)
{
    if (e->deflated)
        return (st_blob){
            .n = (size_t)e->n, .map = map, .packed = e->data, .n_packed = (size_t)e->n_packed, .crc = e->crc
        };
    return (st_blob){ .data = e->data, .n = (size_t)e->n, .map = map };
}

/* The archive says "little" or "big"; old ones say nothing and are little. */
static st_status check_byte_order(const st_zip_entry *e, st_error *err)
{
    st_blob text = blob_of(e, 0);
    if (text.n > 16)
        return st_fail(err, ST_ERR_FORMAT, "its entry \"byteorder\" has %zu bytes, expected \"little\"", text.n);
    st_status status = st_blob_expand(&text, "byteorder", err);
    if (status == ST_OK && (text.n != 6 || memcmp(text.data, "little", 6) != 0))
        status = st_fail(err, ST_ERR_UNSUPPORTED, "its byteorder is \"%.*s\", expected \"little\"", (int)text.n,
                         (const char *)text.data);
    st_free(text.heap);
    return status;
}

static st_status check_archive(const st_zip *zip, const char *folder, size_t n_folder, st_error *err)
{
    if (n_folder == 0)
        return st_fail(err, ST_ERR_UNSUPPORTED,
                       "a zip archive without data.pkl in a top folder: not a PyTorch checkpoint");
    for (size_t i = 0; i < zip->n; i++) {
        const st_zip_entry *e = &zip->entries[i];
        if (e->n_name < n_folder || memcmp(e->name, folder, n_folder) != 0)
            return st_fail(err, ST_ERR_FORMAT, "zip entry \"%.*s\" lies outside the folder \"%.*s\"", (int)e->n_name,
                           e->name, (int)n_folder, folder);
    }
    if (find_in(zip, folder, n_folder, "constants.pkl", "", 0))
        return st_fail(err, ST_ERR_UNSUPPORTED,
                       "a TorchScript archive (it has constants.pkl), expected a state dict from torch.save");
    const st_zip_entry *order = find_in(zip, folder, n_folder, "byteorder", "", 0);
    return order ? check_byte_order(order, err) : ST_OK;
}

/* The blob of a storage, made on first use; blobs[i] is 1 + the blob of zip entry i. */
static st_status find_blob(st_catalog *cat, uint32_t *blobs, const st_zip *zip, const st_zip_entry *e, uint32_t map,
                           uint32_t *index, st_error *err)
{
    uint32_t *known = &blobs[e - zip->entries];
    st_status status = ST_OK;
    if (!*known) {
        const st_blob blob = blob_of(e, map);
        status = st_catalog_add_blob(cat, &blob, index, err);
        if (status == ST_OK) *known = *index + 1;
    }
    *index = *known - 1;
    return status;
}

static st_status add_tensor(st_catalog *cat, uint32_t *blobs, const st_zip *zip, const char *folder, size_t n_folder,
                            const st_pickle *pickle, const st_pickle_tensor *t, uint32_t map, st_error *err)
{
    const st_pickle_storage *s = &pickle->storages[t->storage];
    const int n_name = t->n_name > 128 ? 128 : (int)t->n_name;
    uint64_t n_bytes;
    const st_zip_entry *e = find_in(zip, folder, n_folder, "data/", s->key, s->n_key);
    if (!e)
        return st_fail(err, ST_ERR_FORMAT, "tensor \"%.*s\": the archive has no entry data/%.*s", n_name, t->name,
                       (int)s->n_key, s->key);
    if (__builtin_mul_overflow(s->n_elements, st_dtype_size(s->dtype), &n_bytes) || n_bytes != e->n)
        return st_fail(err, ST_ERR_FORMAT,
                       "tensor \"%.*s\": entry data/%.*s has %llu bytes, but the pickle says %llu elements of %s",
                       n_name, t->name, (int)s->n_key, s->key, (unsigned long long)e->n,
                       (unsigned long long)s->n_elements, st_dtype_name(s->dtype));
    st_entry entry = { .dtype = s->dtype, .rank = t->rank, .offset = t->offset * st_dtype_size(s->dtype) };
    memcpy(entry.shape, t->shape, sizeof entry.shape);
    memcpy(entry.stride, t->stride, sizeof entry.stride);
    const st_status status = find_blob(cat, blobs, zip, e, map, &entry.blob, err);
    return status == ST_OK ? st_catalog_add(cat, &entry, t->name, t->n_name, err) : status;
}

static st_status read_state(st_catalog *cat, const st_zip *zip, const char *folder, size_t n_folder, uint32_t map,
                            st_error *err)
{
    const st_zip_entry *e = find_in(zip, folder, n_folder, "data.pkl", "", 0);
    st_blob text = blob_of(e, map);
    st_pickle pickle = { 0 };
    uint32_t *blobs = NULL;
    if (text.n > ST_MAX_PICKLE_BYTES)
        return st_fail(err, ST_ERR_LIMIT, "data.pkl has %zu bytes, expected at most %u", text.n, ST_MAX_PICKLE_BYTES);
    st_status status = st_blob_expand(&text, "data.pkl", err);
    if (status == ST_OK) status = st_pickle_read(&pickle, text.data, text.n, err);
    if (status == ST_OK && !(blobs = st_calloc(zip->n, sizeof *blobs)))
        status = st_fail(err, ST_ERR_NOMEM, "out of memory for the list of storages");
    for (size_t i = 0; status == ST_OK && i < pickle.n_tensors; i++)
        status = add_tensor(cat, blobs, zip, folder, n_folder, &pickle, &pickle.tensors[i], map, err);
    st_free(blobs);
    st_pickle_free(&pickle);
    st_free(text.heap);
    return status;
}

st_status st_pytorch_read(st_catalog *cat, uint32_t map, st_error *err)
{
    st_zip zip;
    const char *folder = "";
    st_catalog_expect_random(cat, true); /* one local header per entry */
    st_status status = st_zip_read(&zip, cat->maps[map].data, cat->maps[map].n, err);
    st_catalog_expect_random(cat, false);
    if (status != ST_OK) return status;
    const size_t n_folder = find_folder(&zip, &folder);
    status = check_archive(&zip, folder, n_folder, err);
    if (status == ST_OK) status = read_state(cat, &zip, folder, n_folder, map, err);
    st_zip_free(&zip);
    return status;
}

st_status st_pytorch_refuse_legacy(const st_map *map, st_error *err)
{
    static const unsigned char magic[] = {
        0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19
    }; /* the LONG1 that opens the old format */
    if (map->n > 2 + sizeof magic && memcmp(map->data + 2, magic, sizeof magic) == 0)
        return st_fail(err, ST_ERR_UNSUPPORTED,
                       "a PyTorch file in the old format from before version 1.6, expected a zip archive: load it and "
                       "torch.save it again");
    return st_fail(err, ST_ERR_UNSUPPORTED,
                   "a bare pickle, expected a zip archive from torch.save or a safetensors file");
}
