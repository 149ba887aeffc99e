/* sources.c: what the sources of a job hold (see sources.h). Everything becomes an absolute path first; the root is found,
 * or checked, when all are known. Folders are walked by descriptors, so that no path is too long to be listed.
 */
#include "label/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "label/bytes.h"
#include "label/store.h"

#define MAX_LIST_BYTES ((uint64_t)1 << 30)
#define MAX_DEPTH 200
#define MAX_NAMES ((size_t)100000000)

void st_label_sources_free(st_label_sources *s)
{
    for (size_t i = 0; i < s->n; i++) free(s->names[i]);
    free(s->names);
    free(s->root);
    free(s->ignored);
    *s = (st_label_sources){ 0 };
}

typedef struct finder {
    st_label_sources *out; /* names are absolute paths until the end */
    size_t room;
    char *common;    /* the folder that all have in common so far, or NULL */
    bool has_except; /* a folder that is not looked into */
    struct stat except;
    st_error *err;
} finder;

static st_status no_memory(const finder *f)
{
    return st_fault(f->err, ST_ERR_NOMEM, "out of memory for the names of pictures");
}

/* Takes over `path`. */
static st_status add_path(finder *f, char *path)
{
    if (!path) return no_memory(f);
    if (f->out->n == f->room) {
        const size_t room = f->room ? 2 * f->room : 256;
        char **names = room <= MAX_NAMES ? reallocarray(f->out->names, room, sizeof *names) : NULL;
        if (!names) {
            free(path);
            return no_memory(f);
        }
        f->out->names = names;
        f->room = room;
    }
    f->out->names[f->out->n++] = path;
    return ST_OK;
}

/* Shortens what all have in common to what it has in common with a folder. Both are absolute and without a last '/',
 * but for "/" itself. */
static st_status meet(finder *f, const char *folder)
{
    if (!f->common) {
        f->common = strdup(folder);
        return f->common ? ST_OK : no_memory(f);
    }
    size_t same = 0, last = 0; /* last: of the components that agree */
    char *c = f->common;
    while (c[same] && c[same] == folder[same]) {
        if (c[same] == '/') last = same;
        same++;
    }
    if ((!c[same] || c[same] == '/') && (!folder[same] || folder[same] == '/')) last = same;
    c[last ? last : 1] = '\0';
    return ST_OK;
}

/* ---- folders ---- */

static bool is_picture_name(const char *name)
{
    static const char *const suffixes[] = { ".jpg", ".jpeg", ".jpe",  ".jfif", ".png", ".webp",
                                            ".tif", ".tiff", ".heic", ".heif", ".hif", ".avif" };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcasecmp(dot, suffixes[i]) == 0) return true;
    return false;
}

/* A folder being walked, and those above it: a link back to one of them is not followed. */
typedef struct level {
    const struct level *above;
    const char *path;
    struct stat st;
    size_t depth;
} level;

static bool is_inside_itself(const level *l)
{
    for (const level *a = l->above; a; a = a->above)
        if (a->st.st_dev == l->st.st_dev && a->st.st_ino == l->st.st_ino) return true;
    return false;
}

static st_status walk(finder *f, int fd, const char *path, const level *above);

static st_status ignore(finder *f, char *path)
{
    if (f->out->n_ignored++ == 0) f->out->ignored = path;
    else free(path);
    return ST_OK;
}

static st_status entry(finder *f, int folder, const level *here, const char *name)
{
    struct stat st;
    if (name[0] == '.') return ST_OK; /* hidden: thumbnails, macOS's second halves, ".." */
    char *path = st_label_path(here->path, name);
    if (!path) return no_memory(f);
    const bool there = fstatat(folder, name, &st, 0) == 0;
    if (!there || !S_ISDIR(st.st_mode)) return is_picture_name(name) ? add_path(f, path) : ignore(f, path);
    const int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const st_status status =
        fd >= 0 ? walk(f, fd, path, here)
                : st_fault(f->err, ST_ERR_IO, "%s: this folder cannot be read: %s", path, strerror(errno));
    free(path);
    return status;
}

/* Takes over fd. */
static st_status walk(finder *f, int fd, const char *path, const level *above)
{
    level here = { .above = above, .path = path, .depth = above ? above->depth + 1 : 0 };
    const bool known = fstat(fd, &here.st) == 0;
    const bool skip = f->has_except && here.st.st_dev == f->except.st_dev && here.st.st_ino == f->except.st_ino;
    DIR *folder = known && !skip && !is_inside_itself(&here) && here.depth < MAX_DEPTH ? fdopendir(fd) : NULL;
    if (!folder) {
        const int why = errno;
        close(fd);
        if (known && (skip || is_inside_itself(&here))) return ST_OK;
        return st_fault(f->err, ST_ERR_IO, "%s: this folder cannot be read: %s", path,
                        here.depth < MAX_DEPTH ? strerror(why) : "it lies too deep");
    }
    st_status status = ST_OK;
    const struct dirent *e;
    for (errno = 0; status == ST_OK && (e = readdir(folder)) != NULL; errno = 0)
        status = entry(f, fd, &here, e->d_name);
    if (status == ST_OK && errno)
        status = st_fault(f->err, ST_ERR_IO, "%s: this folder cannot be read: %s", path, strerror(errno));
    closedir(folder);
    return status;
}

static st_status add_folder(finder *f, const char *given)
{
    char *path = realpath(given, NULL);
    const int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    st_status status;
    if (fd < 0) status = st_fault(f->err, ST_ERR_IO, "%s: this folder cannot be read: %s", given, strerror(errno));
    else if ((status = meet(f, path)) != ST_OK) close(fd);
    else status = walk(f, fd, path, NULL);
    free(path);
    return status;
}

/* ---- files, patterns, lists ---- */

/* The folder is made real, the file's own name stays, also when it is a link. */
static st_status add_file(finder *f, const char *given)
{
    const char *slash = strrchr(given, '/'), *base = slash ? slash + 1 : given;
    char *above = slash ? strndup(given, slash == given ? 1 : (size_t)(slash - given)) : strdup(".");
    char *folder = above ? realpath(above, NULL) : NULL;
    st_status status;
    if (!above) status = no_memory(f);
    else if (!base[0] || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        status = st_fault(f->err, ST_ERR_INVALID_ARG, "\"%s\": expected the name of a picture", given);
    else if (!folder) status = st_fault(f->err, ST_ERR_IO, "%s: its folder is not there: %s", given, strerror(errno));
    else if ((status = meet(f, folder)) == ST_OK) status = add_path(f, st_label_path(folder, base));
    free(folder);
    free(above);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A folder that may not be read has no matches; one that could not be for want of memory would be missed. */
static int end_without_memory(const char *path, int why)
{
    (void)path;
    return why == ENOMEM;
}

static st_status add_pattern(finder *f, const char *pattern)
{
    glob_t found = { 0 };
    const int code = glob(pattern, GLOB_NOSORT, end_without_memory, &found);
    st_status status = ST_OK;
    if (code == GLOB_NOSPACE || code == GLOB_ABORTED) status = no_memory(f);
    else if (code != 0) status = st_fault(f->err, ST_ERR_IO, "%s: nothing matches this pattern", pattern);
    for (size_t i = 0; status == ST_OK && i < found.gl_pathc; i++)
        status = is_folder(found.gl_pathv[i]) ? add_folder(f, found.gl_pathv[i]) : add_file(f, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

/* A line of a list: a path, or a JSON object that has one. NULL when it is an object without one. */
static char *path_of_line(bool *no_memory, const char *line, size_t n)
{
    static const char *const keys[] = { "path", "file_name", "file", "name" };
    const char *path = NULL;
    *no_memory = false;
    json_t *object = line[0] == '{' ? st_label_json_read(no_memory, line, n, 0, NULL) : NULL;
    for (size_t i = 0; !path && i < sizeof keys / sizeof keys[0]; i++)
        path = json_string_value(json_object_get(object, keys[i]));
    char *copy = path ? strdup(path) : line[0] != '{' ? strndup(line, n) : NULL;
    *no_memory |= !copy && (path || line[0] != '{');
    json_decref(object);
    return copy;
}

static st_status add_line(finder *f, const char *list, size_t number, const char *line, size_t n)
{
    bool none_left;
    char *path = path_of_line(&none_left, line, n), *full = NULL;
    const char *slash = strrchr(list, '/');
    st_status status;
    if (none_left) status = no_memory(f);
    else if (!path)
        status =
            st_fault(f->err, ST_ERR_FORMAT, "%s: line %zu: expected a path, or an object with \"path\"", list, number);
    else if (path[0] == '/' || !slash) status = add_file(f, path);
    else if (asprintf(&full, "%.*s/%s", (int)(slash - list), list, path) < 0) full = NULL, status = no_memory(f);
    else status = add_file(f, full);
    free(full);
    free(path);
    return status;
}

/* Lines, or with a NUL in the file what lies between NULs, as `find -print0` writes. */
static st_status add_list(finder *f, const char *list)
{
    unsigned char *bytes;
    size_t n, number = 0;
    st_status status = st_label_bytes_read(&bytes, &n, list, list, MAX_LIST_BYTES, f->err);
    if (status != ST_OK) return status;
    const char end = memchr(bytes, 0, n) ? '\0' : '\n';
    for (size_t at = 0; status == ST_OK && at < n;) {
        const char *line = (const char *)bytes + at, *next = memchr(line, end, n - at);
        size_t length = next ? (size_t)(next - line) : n - at;
        at += length + 1;
        number++;
        if (end == '\n' && length && line[length - 1] == '\r') length--;
        if (length) status = add_line(f, list, number, line, length);
    }
    free(bytes);
    return status;
}

static st_status add_source(finder *f, const char *source)
{
    struct stat st;
    if (!source[0]) return st_fault(f->err, ST_ERR_INVALID_ARG, "a source without a name");
    if (lstat(source, &st) == 0) return is_folder(source) ? add_folder(f, source) : add_file(f, source);
    if (source[0] == '@') return add_list(f, source + 1);
    if (strpbrk(source, "*?[")) return add_pattern(f, source);
    return st_fault(f->err, ST_ERR_IO, "%s: no such file or folder", source);
}

/* ---- names below one root ---- */

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Turns absolute paths into sorted names below the root. */
static st_status name_all(finder *f)
{
    st_label_sources *s = f->out;
    const size_t root_n = strcmp(s->root, "/") == 0 ? 0 : strlen(s->root);
    for (size_t i = 0; i < s->n; i++) {
        char *path = s->names[i];
        if (strncmp(path, s->root, root_n) != 0 || path[root_n] != '/')
            return st_fault(f->err, ST_ERR_INVALID_ARG, "%s: lies outside the root %s", path, s->root);
        memmove(path, path + root_n + 1, strlen(path + root_n + 1) + 1);
    }
    qsort(s->names, s->n, sizeof *s->names, by_bytes);
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (kept && strcmp(s->names[kept - 1], s->names[i]) == 0) free(s->names[i]);
        else s->names[kept++] = s->names[i];
    }
    s->n = kept;
    return ST_OK;
}

static st_status find_all(finder *f, const st_label_source_request *request)
{
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < request->n_sources; i++) status = add_source(f, request->sources[i]);
    if (status != ST_OK) return status;
    if (f->out->n == 0 && f->out->ignored)
        return st_fault(f->err, ST_ERR_INVALID_ARG, "no picture found: %s has no picture's suffix", f->out->ignored);
    if (f->out->n == 0)
        return st_fault(f->err, ST_ERR_INVALID_ARG, "no picture found%s%s", request->n_sources == 1 ? " in " : "",
                        request->n_sources == 1 ? request->sources[0] : "");
    f->out->root = request->root ? realpath(request->root, NULL) : f->common;
    if (!request->root) f->common = NULL;
    if (!f->out->root) return st_fault(f->err, ST_ERR_IO, "%s: %s", request->root, strerror(errno));
    return name_all(f);
}

st_status st_label_sources_find(st_label_sources *out, const st_label_source_request *request, st_error *err)
{
    finder f = { .out = out, .err = err };
    *out = (st_label_sources){ 0 };
    f.has_except = request->except && stat(request->except, &f.except) == 0;
    const st_status status = find_all(&f, request);
    free(f.common);
    if (status != ST_OK) st_label_sources_free(out);
    return status;
}

/* 32 bits of the name's hash are plenty to share out by. */
static uint32_t shard_of(const char *name, uint32_t n_shards)
{
    char sha[65];
    uint32_t value = 0;
    st_label_sha256(sha, name, strlen(name));
    for (size_t i = 0; i < 8; i++) value = value << 4 | (uint32_t)(sha[i] <= '9' ? sha[i] - '0' : sha[i] - 'a' + 10);
    return value % n_shards + 1;
}

void st_label_sources_shard(st_label_sources *s, uint32_t shard, uint32_t n_shards)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (shard_of(s->names[i], n_shards) == shard) s->names[kept++] = s->names[i];
        else free(s->names[i]);
    }
    s->n = kept;
}
