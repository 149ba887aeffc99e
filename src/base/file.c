/* file.c: files in and out. Only regular files are read: opening is non-blocking, so that a named pipe is refused and not waited for. What is
 * written is complete under its name or not there at all. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"

/* Opens a regular file for reading; *fd is -1 on failure. */
static st_status open_regular(int *fd, uint64_t *n_bytes, const char *path, st_error *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return st_fail_errno(err, ST_ERR_IO, "%s: cannot open", path);
    st_status status = ST_OK;
    if (fstat(*fd, &st) != 0) {
        status = st_fail_errno(err, ST_ERR_IO, "%s: cannot stat", path);
    } else if (!S_ISREG(st.st_mode)) {
        status = st_fail(err, ST_ERR_IO, "%s: expected a regular file, got %s", path,
                         S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
    }
    if (status != ST_OK) {
        close(*fd);
        *fd = -1;
        return status;
    }
    *n_bytes = (uint64_t)st.st_size;
    return ST_OK;
}

st_status st_map_open(st_map *out, const char *path, st_error *err)
{
    int fd;
    uint64_t n_bytes;
    *out = (st_map){ 0 };
    st_status status = open_regular(&fd, &n_bytes, path, err);
    if (status != ST_OK) return status;
    if (n_bytes > PTRDIFF_MAX) {
        status = st_fail(err, ST_ERR_LIMIT, "%s: %llu bytes do not fit into the address space", path, (unsigned long long)n_bytes);
    } else if (n_bytes > 0) {
        void *data = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = st_fail_errno(err, errno == ENOMEM ? ST_ERR_NOMEM : ST_ERR_IO, "%s: cannot map %llu bytes", path,
                             (unsigned long long)n_bytes);
        } else {
            *out = (st_map){ data, (size_t)n_bytes };
        }
    }
    close(fd);
    return status;
}

void st_map_close(st_map *map)
{
    if (!map) return;
    if (map->data) munmap((void *)(uintptr_t)map->data, map->n);
    *map = (st_map){ 0 };
}

void st_map_drop(const st_map *map, const void *p, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t base = (uintptr_t)map->data;
    if (!map->data || (uintptr_t)p < base || !st_range_fits((uintptr_t)p - base, n, map->n)) return;
    /* Only whole pages: a neighbour's bytes may be in use. The file's last page has no neighbour. */
    const size_t first = ((uintptr_t)p - base + page - 1) / page * page;
    const size_t end_byte = (uintptr_t)p - base + n;
    const size_t end = end_byte == map->n ? end_byte : end_byte / page * page;
    if (first < end) madvise((void *)(base + first), end - first, MADV_DONTNEED);
}

/* Reads at most n bytes, fewer only at the end of the file; false on an error, in errno. */
static bool read_fully(int fd, char *data, size_t n, size_t *n_read)
{
    *n_read = 0;
    while (*n_read < n) {
        const ssize_t got = read(fd, data + *n_read, n - *n_read);
        if (got == 0) return true;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        *n_read += (size_t)got;
    }
    return true;
}

st_status st_file_read(char **out, size_t *n, const char *path, uint64_t max, st_error *err)
{
    int fd;
    uint64_t n_bytes;
    *out = NULL;
    *n = 0;
    st_status status = open_regular(&fd, &n_bytes, path, err);
    if (status != ST_OK) return status;
    char *data = NULL;
    if (n_bytes > max || n_bytes >= SIZE_MAX) {
        status = st_fail(err, ST_ERR_LIMIT, "%s: file of %llu bytes, expected at most %llu", path,
                         (unsigned long long)n_bytes, (unsigned long long)max);
    } else if (!(data = st_malloc((size_t)n_bytes + 1))) {
        status = st_fail(err, ST_ERR_NOMEM, "%s: cannot allocate %llu bytes", path, (unsigned long long)n_bytes);
    } else if (!read_fully(fd, data, (size_t)n_bytes, n)) {
        status = st_fail_errno(err, ST_ERR_IO, "%s: cannot read", path);
    }
    close(fd);
    if (status != ST_OK) {
        st_free(data);
        *n = 0;
        return status;
    }
    data[*n] = '\0';
    *out = data;
    return ST_OK;
}

bool st_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

bool st_dir_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The file that `path` leads to when it is a link (rename would replace the link itself), else a copy. NULL when out of memory. */
static char *resolve_link(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode)) return st_strdup(path);
    char *target = realpath(path, NULL);
    char *copy = st_strdup(target ? target : path);
    free(target); /* realpath's */
    return copy;
}

/* Creates a new file beside path. The name is short whatever path's is, hidden, and unlike any other process's. *fd is -1 on failure. */
static char *create_beside(const char *path, int *fd)
{
    const char *slash = strrchr(path, '/');
    const size_t n_folder = slash ? (size_t)(slash - path) + 1 : 0, room = n_folder + 64;
    char *tmp = st_malloc(room);
    *fd = -1;
    if (!tmp) return NULL;
    errno = EEXIST;
    for (unsigned attempt = 0; attempt < 1000 && *fd < 0 && errno == EEXIST; attempt++) {
        const uint64_t ticks = (uint64_t)(st_clock_seconds() * 1e9);
        snprintf(tmp, room, "%.*s.stencil-%lx-%llx-%x.tmp", (int)n_folder, path, (unsigned long)getpid(),
                 (unsigned long long)ticks, attempt);
        *fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return tmp;
}

/* A pipe or character device: nothing to rename, the bytes go straight through. */
static st_status open_through(st_out *out, const char *path, st_error *err)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe nobody reads is an error, not a wait */
    if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (fd >= 0) out->f = fdopen(fd, "wb");
    if (out->f) return ST_OK;
    const st_status status = st_fail_errno(err, ST_ERR_IO, "%s: cannot open for writing", path);
    if (fd >= 0) close(fd);
    return status;
}

static st_status open_new(st_out *out, const char *path, const struct stat *old, st_error *err)
{
    int fd;
    out->path = resolve_link(path);
    out->tmp = out->path ? create_beside(out->path, &fd) : NULL;
    if (!out->tmp) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    if (fd < 0) {
        const st_status status = st_fail_errno(err, ST_ERR_IO, "%s: cannot create a file in its folder", path);
        st_free(out->tmp);
        out->tmp = NULL; /* there is none to remove */
        return status;
    }
    if (old && fchmod(fd, old->st_mode & 0777) != 0) { /* not ours to change: the new file's own permissions do */ }
    out->f = fdopen(fd, "wb");
    if (out->f) return ST_OK;
    const st_status status = st_fail_errno(err, ST_ERR_NOMEM, "%s: cannot open a stream", path);
    close(fd);
    return status;
}

st_status st_out_open(st_out *out, const char *path, st_error *err)
{
    struct stat st;
    *out = (st_out){ 0 };
    const bool exists = stat(path, &st) == 0;
    st_status status;
    if (!*path) {
        status = st_fail(err, ST_ERR_INVALID_ARG, "expected the name of a file to write, got an empty one");
    } else if (exists && S_ISDIR(st.st_mode)) {
        status = st_fail(err, ST_ERR_IO, "%s: expected a file to write, got a folder", path);
    } else if (exists && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))) {
        status = open_through(out, path, err);
    } else if (exists && !S_ISREG(st.st_mode)) {
        status = st_fail(err, ST_ERR_IO, "%s: expected a regular file to write, got a socket or block device", path);
    } else {
        status = open_new(out, path, exists ? &st : NULL, err);
    }
    if (status != ST_OK) st_out_abort(out);
    return status;
}

st_status st_out_commit(st_out *out, st_error *err)
{
    const char *name = out->path ? out->path : "output";
    st_status status = ST_OK;
    if (!out->f) return st_fail(err, ST_ERR_INTERNAL, "a file that is not open was to be completed");
    if (fflush(out->f) != 0) status = st_fail_errno(err, ST_ERR_IO, "%s: cannot write", name);
    else if (ferror(out->f)) status = st_fail(err, ST_ERR_IO, "%s: cannot write all of it", name);
    /* Some file systems cannot sync (EINVAL); that is no reason to lose the file. */
    else if (out->tmp && fsync(fileno(out->f)) != 0 && errno != EINVAL && errno != ENOTSUP)
        status = st_fail_errno(err, ST_ERR_IO, "%s: cannot write to the disk", name);
    if (fclose(out->f) != 0 && status == ST_OK) status = st_fail_errno(err, ST_ERR_IO, "%s: cannot close", name);
    out->f = NULL;
    if (status == ST_OK && out->tmp && rename(out->tmp, out->path) != 0)
        status = st_fail_errno(err, ST_ERR_IO, "%s: cannot give the finished file its name", name);
    if (status == ST_OK && out->tmp) {
        st_free(out->tmp);
        out->tmp = NULL; /* it has its name now: nothing to remove */
    }
    st_out_abort(out);
    return status;
}

void st_out_abort(st_out *out)
{
    if (!out) return;
    if (out->f) fclose(out->f);
    if (out->tmp) unlink(out->tmp);
    st_free(out->tmp);
    st_free(out->path);
    *out = (st_out){ 0 };
}

st_status st_file_write(const char *path, const void *bytes, size_t n_bytes, st_error *err)
{
    st_out out;
    if (!path || (!bytes && n_bytes > 0))
        return st_fail(err, ST_ERR_INVALID_ARG, "file: no path or no bytes given");
    st_status status = st_out_open(&out, path, err);
    if (status != ST_OK) return status;
    if (n_bytes > 0 && fwrite(bytes, 1, n_bytes, out.f) != n_bytes) {
        status = st_fail_errno(err, ST_ERR_IO, "%s: cannot write", path);
        st_out_abort(&out);
        return status;
    }
    return st_out_commit(&out, err);
}
