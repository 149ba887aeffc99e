/* zip.c: a reader for archives as torch.save writes them (APPNOTE 6.3). The end record is found from the back; the
 * directory must end exactly where the end records begin, so no bytes can hide between them. */
#include "weights/zip.h"

#include <stdlib.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

#define END_SIZE 22
#define END64_SIZE 56
#define LOCATOR_SIZE 20
#define CENTRAL_SIZE 46
#define LOCAL_SIZE 30
#define MAX_COMMENT 65535
#define MAX_NAME 1024

static uint16_t u16(const unsigned char *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32(const unsigned char *p)
{
    return (uint32_t)u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p)
{
    return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static bool has_mark(const unsigned char *p, char c, char d)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == c && p[3] == d;
}

typedef struct directory {
    uint64_t offset, size, n;
} directory;

static bool find_end(const unsigned char *bytes, size_t n, size_t *at)
{
    const size_t furthest = n > END_SIZE + MAX_COMMENT ? n - END_SIZE - MAX_COMMENT : 0;
    if (n < END_SIZE) return false;
    for (*at = n - END_SIZE + 1; (*at)-- > furthest;)
        if (has_mark(bytes + *at, 5, 6) && u16(bytes + *at + 20) == n - END_SIZE - *at) return true;
    return false;
}

/* Replaces the 32-bit numbers by those of the zip64 end record before the locator, when there is one. *end is where
 * the directory must end. */
static st_status read_end64(directory *d, uint64_t *end, const unsigned char *bytes, size_t at, st_error *err)
{
    if (at < LOCATOR_SIZE || !has_mark(bytes + at - LOCATOR_SIZE, 6, 7)) return ST_OK;
    const unsigned char *locator = bytes + at - LOCATOR_SIZE;
    const uint64_t record = u64(locator + 8);
    if (u32(locator + 4) != 0 || u32(locator + 16) > 1)
        return st_fail(err, ST_ERR_UNSUPPORTED, "the zip archive is split over several files");
    if (!st_range_fits(record, END64_SIZE, at - LOCATOR_SIZE) || !has_mark(bytes + record, 6, 6))
        return st_fail(err, ST_ERR_FORMAT, "the zip64 end record is not at byte %llu, where its locator says",
                       (unsigned long long)record);
    const unsigned char *p = bytes + record;
    if (u32(p + 16) != 0 || u32(p + 20) != 0 || u64(p + 24) != u64(p + 32))
        return st_fail(err, ST_ERR_UNSUPPORTED, "the zip archive is split over several files");
    *d = (directory){ .n = u64(p + 32), .size = u64(p + 40), .offset = u64(p + 48) };
    *end = record;
    return ST_OK;
}

static st_status find_directory(directory *d, const unsigned char *bytes, size_t n, st_error *err)
{
    size_t at;
    if (!find_end(bytes, n, &at)) return st_fail(err, ST_ERR_FORMAT, "the zip archive has no end record (cut off?)");
    const unsigned char *p = bytes + at;
    uint64_t end = at;
    if (u16(p + 4) != 0 || u16(p + 6) != 0 || u16(p + 8) != u16(p + 10))
        return st_fail(err, ST_ERR_UNSUPPORTED, "the zip archive is split over several files");
    *d = (directory){ .n = u16(p + 10), .size = u32(p + 12), .offset = u32(p + 16) };
    const st_status status = read_end64(d, &end, bytes, at, err);
    if (status != ST_OK) return status;
    if (!st_range_fits(d->offset, d->size, end) || d->offset + d->size != end)
        return st_fail(err, ST_ERR_FORMAT,
                       "the zip directory (%llu bytes at %llu) does not end at byte %llu, before the end record",
                       (unsigned long long)d->size, (unsigned long long)d->offset, (unsigned long long)end);
    if (d->n > ST_MAX_ZIP_ENTRIES || d->n > d->size / CENTRAL_SIZE)
        return st_fail(err, ST_ERR_LIMIT,
                       "the zip archive claims %llu entries, expected at most %d and no more than its directory holds",
                       (unsigned long long)d->n, ST_MAX_ZIP_ENTRIES);
    return ST_OK;
}

/* The zip64 extra field holds, in this order, those of size, packed size and header offset that did not fit into 32
 * bits. */
static bool read_extra64(st_zip_entry *e, const unsigned char *extra, size_t n)
{
    uint64_t *const wide[3] = { &e->n, &e->n_packed, &e->header };
    while (n >= 4) {
        const uint16_t id = u16(extra), length = u16(extra + 2);
        if (length > n - 4) return false;
        size_t at = 4;
        for (int i = 0; id == 1 && i < 3; i++) {
            if (*wide[i] != UINT32_MAX) continue;
            if (at + 8 > 4u + length) return false;
            *wide[i] = u64(extra + at);
            at += 8;
        }
        extra += 4 + length;
        n -= 4u + length;
    }
    return true;
}

static st_status fail_entry(const st_zip_entry *e, st_status status, const char *what, st_error *err)
{
    return st_fail(err, status, "zip entry \"%.*s\": %s", (int)e->n_name, e->name, what);
}

static st_status check_kind(const st_zip_entry *e, uint16_t flags, uint16_t method, st_error *err)
{
    if (e->n_name == 0 || e->n_name > MAX_NAME || memchr(e->name, '\0', e->n_name))
        return fail_entry(e, ST_ERR_FORMAT, "its name is empty, too long or holds NUL", err);
    if (flags & 1) return fail_entry(e, ST_ERR_UNSUPPORTED, "it is encrypted", err);
    if (method != 0 && method != 8)
        return fail_entry(e, ST_ERR_UNSUPPORTED,
                          "its compression is not supported (only stored and deflated entries are)", err);
    if (!e->deflated && e->n != e->n_packed)
        return fail_entry(e, ST_ERR_FORMAT, "it is stored, but its two sizes differ", err);
    if (e->deflated && (e->n_packed > UINT64_MAX / (2 * ST_MAX_DEFLATE_RATIO) ||
                        e->n > e->n_packed * ST_MAX_DEFLATE_RATIO + ST_MAX_DEFLATE_RATIO))
        return fail_entry(e, ST_ERR_FORMAT, "it claims to expand more than deflate can", err);
    return ST_OK;
}

/* A 32-bit size of a local header: the directory's, or none where a data descriptor follows or zip64 is used. */
static bool agrees(uint32_t local, uint64_t central, uint16_t flags)
{
    return local == central || local == UINT32_MAX || (local == 0 && (flags & 8));
}

/* Finds the data behind the local header, which lies before the directory at `end`. */
static st_status check_local(st_zip_entry *e, const unsigned char *bytes, uint64_t end, uint16_t method, st_error *err)
{
    if (!st_range_fits(e->header, LOCAL_SIZE, end) || !has_mark(bytes + e->header, 3, 4))
        return fail_entry(e, ST_ERR_FORMAT, "there is no local header where the directory says", err);
    const unsigned char *p = bytes + e->header;
    const uint16_t flags = u16(p + 6), n_name = u16(p + 26), n_extra = u16(p + 28);
    const uint64_t names = e->header + LOCAL_SIZE, data = names + n_name + n_extra;
    if (!st_range_fits(names, (uint64_t)n_name + n_extra, end) || !st_range_fits(data, e->n_packed, end))
        return fail_entry(e, ST_ERR_FORMAT, "its data are not inside the file", err);
    if (n_name != e->n_name || memcmp(bytes + names, e->name, n_name) != 0)
        return fail_entry(e, ST_ERR_FORMAT, "its local header has another name", err);
    if (u16(p + 8) != method || !agrees(u32(p + 18), e->n_packed, flags) || !agrees(u32(p + 22), e->n, flags))
        return fail_entry(e, ST_ERR_FORMAT, "directory and local header disagree about size or compression", err);
    e->data = bytes + data;
    return ST_OK;
}

static st_status read_entry(st_zip_entry *e, uint64_t *at, const unsigned char *bytes, const directory *d,
                            st_error *err)
{
    const uint64_t end = d->offset + d->size;
    if (!st_range_fits(*at, CENTRAL_SIZE, end) || !has_mark(bytes + *at, 1, 2))
        return st_fail(err, ST_ERR_FORMAT, "the zip directory is broken at byte %llu", (unsigned long long)*at);
    const unsigned char *p = bytes + *at;
    const uint16_t flags = u16(p + 8), method = u16(p + 10), n_name = u16(p + 28), n_extra = u16(p + 30),
                   n_comment = u16(p + 32);
    const uint64_t tail = (uint64_t)n_name + n_extra + n_comment;
    if (!st_range_fits(*at + CENTRAL_SIZE, tail, end))
        return st_fail(err, ST_ERR_FORMAT, "the zip directory is broken at byte %llu", (unsigned long long)*at);
    *e = (st_zip_entry){ .name = (const char *)p + CENTRAL_SIZE,
                         .n_name = n_name,
                         .crc = u32(p + 16),
                         .deflated = method == 8,
                         .n_packed = u32(p + 20),
                         .n = u32(p + 24),
                         .header = u32(p + 42) };
    if (!read_extra64(e, p + CENTRAL_SIZE + n_name, n_extra))
        return fail_entry(e, ST_ERR_FORMAT, "its extra field is broken", err);
    st_status status = check_kind(e, flags, method, err);
    if (status == ST_OK) status = check_local(e, bytes, d->offset, method, err);
    *at += CENTRAL_SIZE + tail;
    return status;
}

static int by_header(const void *a, const void *b)
{
    const st_zip_entry *x = a, *y = b;
    return x->header < y->header ? -1 : x->header > y->header;
}

static int compare_names(const char *a, size_t n_a, const char *b, size_t n_b)
{
    const int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order ? order : n_a < n_b ? -1 : n_a > n_b;
}

static int by_name(const void *a, const void *b)
{
    const st_zip_entry *x = a, *y = b;
    return compare_names(x->name, x->n_name, y->name, y->n_name);
}

static st_status check_all(st_zip *zip, const unsigned char *bytes, st_error *err)
{
    if (zip->n > 1) qsort(zip->entries, zip->n, sizeof *zip->entries, by_header);
    for (size_t i = 1; i < zip->n; i++)
        if ((uint64_t)(zip->entries[i - 1].data - bytes) + zip->entries[i - 1].n_packed > zip->entries[i].header)
            return fail_entry(&zip->entries[i], ST_ERR_FORMAT, "it overlaps the entry before it", err);
    if (zip->n > 1) qsort(zip->entries, zip->n, sizeof *zip->entries, by_name);
    for (size_t i = 1; i < zip->n; i++)
        if (by_name(&zip->entries[i - 1], &zip->entries[i]) == 0)
            return fail_entry(&zip->entries[i], ST_ERR_FORMAT, "it is there twice", err);
    return ST_OK;
}

st_status st_zip_read(st_zip *out, const unsigned char *bytes, size_t n, st_error *err)
{
    directory d = { 0 };
    *out = (st_zip){ 0 };
    st_status status = find_directory(&d, bytes, n, err);
    if (status != ST_OK) return status;
    out->n = (size_t)d.n;
    out->entries = st_calloc(out->n + 1, sizeof *out->entries);
    if (!out->entries) status = st_fail(err, ST_ERR_NOMEM, "out of memory for a zip directory of %zu entries", out->n);
    uint64_t at = d.offset;
    for (size_t i = 0; i < out->n && status == ST_OK; i++) status = read_entry(&out->entries[i], &at, bytes, &d, err);
    if (status == ST_OK && at != d.offset + d.size)
        status = st_fail(err, ST_ERR_FORMAT, "the zip directory has bytes after its last entry");
    if (status == ST_OK) status = check_all(out, bytes, err);
    if (status != ST_OK) st_zip_free(out);
    return status;
}

void st_zip_free(st_zip *zip)
{
    if (!zip) return;
    st_free(zip->entries);
    *zip = (st_zip){ 0 };
}

const st_zip_entry *st_zip_find(const st_zip *zip, const char *name, size_t n_name)
{
    size_t low = 0, high = zip->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare_names(zip->entries[middle].name, zip->entries[middle].n_name, name, n_name);
        if (order == 0) return &zip->entries[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}
