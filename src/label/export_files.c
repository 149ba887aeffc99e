/* export_files.c: files of an export and their names (see export_files.h). */
#include "label/export_files.h"
#include "front/fault.h"
#include "front/save.h"
#include "label/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of one step of a path; file systems take 255, and suffixes follow. */
enum { STEP_MAX = 200 };

static st_status no_memory(const char *name, st_error *err)
{
    return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
}

/* ---- files ---- */

st_status st_label_folders_above(const char *folder, const char *name, st_error *err)
{
    char *path = st_label_path(folder, name);
    if (!path) return no_memory(name, err);
    st_status status = ST_OK;
    for (char *slash = strchr(path + strlen(folder) + 1, '/'); status == ST_OK && slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            status = st_fault(err, ST_ERR_IO, "%s: cannot make this folder: %s", path, strerror(errno));
        *slash = '/';
    }
    free(path);
    return status;
}

st_status st_label_file_open(st_label_file *file, const char *folder, const char *name, st_error *err)
{
    *file = (st_label_file){ 0 };
    st_status status = st_label_folders_above(folder, name, err);
    if (status != ST_OK) return status;
    file->path = st_label_path(folder, name);
    if (!file->path) return no_memory(name, err);
    file->f = fopen(file->path, "wbxe");
    if (file->f) return ST_OK;
    status = st_fault(err, ST_ERR_IO, "%s: cannot be written: %s", file->path, strerror(errno));
    st_label_file_drop(file);
    return status;
}

st_status st_label_file_close(st_label_file *file, st_error *err)
{
    errno = 0;
    const bool failed = fflush(file->f) != 0 || ferror(file->f);
    const int why = errno;
    const bool closed = fclose(file->f) == 0;
    st_status status = ST_OK;
    file->f = NULL;
    if (failed || !closed)
        status = st_fault(err, ST_ERR_IO, "%s: cannot be written: %s", file->path,
                          strerror(why ? why : errno ? errno : EIO));
    st_label_file_drop(file);
    return status;
}

void st_label_file_drop(st_label_file *file)
{
    if (file->f) fclose(file->f);
    free(file->path);
    *file = (st_label_file){ 0 };
}

st_status st_label_file_append(st_label_file *to, const char *folder, const char *name, st_error *err)
{
    char *path = st_label_path(folder, name), block[16384];
    if (!path) return no_memory(name, err);
    FILE *f = fopen(path, "rbe");
    for (size_t n = 1; f && n > 0;) {
        n = fread(block, 1, sizeof block, f);
        fwrite(block, 1, n, to->f);
    }
    st_status status = ST_OK;
    if (!f || ferror(f) || unlink(path) != 0)
        status = st_fault(err, ST_ERR_IO, "%s: cannot be read back: %s", path, strerror(errno));
    if (f) fclose(f);
    free(path);
    return status;
}

st_status st_label_bytes_save(const char *folder, const char *name, const void *bytes, size_t n, st_error *err)
{
    st_label_file file;
    const st_status status = st_label_file_open(&file, folder, name, err);
    if (status != ST_OK) return status;
    fwrite(bytes, 1, n, file.f);
    return st_label_file_close(&file, err);
}

/* ---- names ---- */

const char *st_label_suffix(const char *name)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strrchr(base, '.');
    return dot && dot != base && strlen(dot) < 16 ? dot : "";
}

/* FNV-1a, 64 bits: tells cut names apart. */
static uint64_t hash_of(const char *text, size_t n)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return hash;
}

/* One step of a path, made harmless; `to` has room for STEP_MAX + 20 bytes. Returns the bytes written. */
static size_t put_step(char *to, const char *step, size_t n)
{
    if (n <= 2 && strspn(step, ".") >= n) { /* "", "." and ".." lead nowhere or out */
        memcpy(to, "__", 2);
        return 2;
    }
    if (n <= STEP_MAX) {
        memcpy(to, step, n);
        return n;
    }
    size_t kept = STEP_MAX - 17;
    while (kept > 0 && ((unsigned char)step[kept] & 0xC0) == 0x80) kept--; /* not inside a UTF-8 character */
    memcpy(to, step, kept);
    return kept + (size_t)snprintf(to + kept, 20, "-%016llx", (unsigned long long)hash_of(step, n));
}

static char *flattened(const char *name, size_t n)
{
    char *flat = malloc(2 * n + 1), *to = flat;
    for (size_t i = 0; flat && i < n; i++) {
        if (name[i] != '/') *to++ = name[i];
        else *to++ = '_', *to++ = '_';
    }
    if (flat) *to = '\0';
    return flat;
}

char *st_label_out_stem(const char *name, bool flat)
{
    const size_t n = strlen(name) - strlen(st_label_suffix(name));
    char *whole = flat ? flattened(name, n) : strndup(name, n), *out = NULL;
    size_t steps = 1, at = 0;
    for (const char *p = whole; p && *p; p++) steps += *p == '/';
    if (whole) out = malloc(strlen(whole) + 24 * steps + 1);
    for (const char *step = whole; out && step;) {
        const size_t length = strcspn(step, "/");
        at += put_step(out + at, step, length);
        step = step[length] ? step + length + 1 : NULL;
        out[at++] = step ? '/' : '\0';
    }
    free(whole);
    return out;
}

static bool is_free(const char *folder, const char *const *prefixes, const char *stem, const char *tail)
{
    bool taken = false;
    struct stat st;
    for (; *prefixes && !taken; prefixes++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s%s%s", folder, *prefixes, stem, tail) < 0) return true; /* found out on opening */
        taken = lstat(path, &st) == 0;
        free(path);
    }
    return !taken;
}

st_status st_label_free_stem(char **free_stem, const char *folder, const char *const *prefixes,
                             const char *name, const char *tail, bool flat, st_error *err)
{
    const char *suffix = st_label_suffix(name);
    char *stem = st_label_out_stem(name, flat);
    *free_stem = stem;
    if (!stem) return no_memory(name, err);
    if (is_free(folder, prefixes, stem, tail)) return ST_OK;
    for (unsigned i = 1; i < 1000000; i++) {
        int n;
        if (i == 1) n = asprintf(free_stem, "%s_%s", stem, suffix[0] ? suffix + 1 : "1");
        else n = asprintf(free_stem, "%s_%u", stem, i);
        if (n < 0) break;
        if (is_free(folder, prefixes, *free_stem, tail)) {
            free(stem);
            return ST_OK;
        }
        free(*free_stem);
    }
    free(stem);
    *free_stem = NULL;
    return no_memory(name, err);
}
