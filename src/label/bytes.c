/* bytes.c: files in memory (see bytes.h). A file may shrink or grow while it is read: what is there is taken, up to the
 * size that was seen first.
 */
#include "label/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"

static st_status read_all(unsigned char *bytes, size_t *n, int fd, const char *name, st_error *err)
{
    const size_t size = *n;
    for (*n = 0; *n < size;) {
        const ssize_t got = read(fd, bytes + *n, size - *n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return st_fault(err, ST_ERR_IO, "%s: cannot be read: %s", name, strerror(errno));
        if (got == 0) break;
        *n += (size_t)got;
    }
    bytes[*n] = 0;
    return ST_OK;
}

static st_status read_open(unsigned char **bytes, size_t *n, int fd, const char *name, uint64_t max, st_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return st_fault(err, ST_ERR_IO, "%s: cannot be read: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode)) return st_fault(err, ST_ERR_IO, "%s: is no file, expected one", name);
    if ((uint64_t)st.st_size > max || (uint64_t)st.st_size >= SIZE_MAX)
        return st_fault(err, ST_ERR_LIMIT, "%s: has %lld bytes, at most %llu are read", name, (long long)st.st_size,
                        (unsigned long long)max);
    *n = (size_t)st.st_size;
    *bytes = malloc(*n + 1);
    if (!*bytes) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory for %zu bytes", name, *n);
    const st_status status = read_all(*bytes, n, fd, name, err);
    if (status == ST_OK) return ST_OK;
    free(*bytes);
    *bytes = NULL;
    return status;
}

st_status st_label_bytes_read(unsigned char **bytes, size_t *n, const char *path, const char *name, uint64_t max,
                              st_error *err)
{
    *bytes = NULL;
    *n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe is no reason to wait */
    if (fd < 0) return st_fault(err, ST_ERR_IO, "%s: cannot be opened: %s", name, strerror(errno));
    const st_status status = read_open(bytes, n, fd, name, max, err);
    close(fd);
    return status;
}
