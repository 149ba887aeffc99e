/* npy.c: .npy files (see npy.h). The header is a Python dictionary; the three keys that NumPy writes are read strictly,
 * anything else in it is refused.
 *
 * The format is described in numpy/lib/format.py: magic, version, length of the header, the header, the values.
 */
#include "front/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "front/save.h"

enum { MAX_RANK = 8, MAX_HEADER = 4096, WORD = 32 };

/* ---- the header's dictionary ---- */

typedef struct header {
    char type[WORD];
    bool fortran_order;
    size_t shape[MAX_RANK], rank;
} header;

static bool take(const char **at, const char *token)
{
    *at += strspn(*at, " \t");
    const size_t n = strlen(token);
    if (strncmp(*at, token, n) != 0) return false;
    *at += n;
    return true;
}

static bool take_quoted(const char **at, char out[WORD])
{
    *at += strspn(*at, " \t");
    const char quote = **at;
    if (quote != '\'' && quote != '"') return false;
    const char *end = strchr(*at + 1, quote);
    if (!end || end - *at > WORD) return false;
    const size_t n = (size_t)(end - *at) - 1;
    memcpy(out, *at + 1, n);
    out[n] = '\0';
    *at = end + 1;
    return true;
}

/* (), (3,), (3, 4), (1, 3, 4), ... */
static bool take_shape(const char **at, header *h)
{
    h->rank = 0;
    if (!take(at, "(")) return false;
    while (!take(at, ")")) {
        *at += strspn(*at, " \t");
        const size_t n = strspn(*at, "0123456789");
        if (h->rank == MAX_RANK || n == 0 || n > 9) return false; /* nine digits fit a size_t of any width */
        char *end;
        h->shape[h->rank++] = (size_t)strtoul(*at, &end, 10);
        *at = end;
        if (!take(at, ",") && **at != ')') return false;
    }
    return true;
}

static bool take_pair(const char **at, header *h, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    char key[WORD];
    if (!take_quoted(at, key) || !take(at, ":")) return false;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(key, keys[i]) != 0) continue;
        if (*seen & 1u << i) return false;
        *seen |= 1u << i;
        if (i == 0) return take_quoted(at, h->type);
        if (i == 2) return take_shape(at, h);
        h->fortran_order = take(at, "True");
        return h->fortran_order || take(at, "False");
    }
    return false;
}

static bool parse(header *h, const char *text)
{
    unsigned seen = 0;
    *h = (header){ 0 };
    if (!take(&text, "{")) return false;
    while (!take(&text, "}"))
        if (!take_pair(&text, h, &seen) || (!take(&text, ",") && *text != '}')) return false;
    return seen == 7 && text[strspn(text, " \t\n")] == '\0';
}

/* Length of the header's text, which follows; 0 when this is no .npy file. */
static size_t header_length(FILE *f)
{
    unsigned char b[12];
    if (fread(b, 1, 10, f) != 10 || memcmp(b, "\x93NUMPY", 6) != 0) return 0;
    if (b[6] == 1) return (size_t)b[8] | (size_t)b[9] << 8;
    if ((b[6] != 2 && b[6] != 3) || fread(b + 10, 1, 2, f) != 2) return 0;
    return (size_t)b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
}

static st_status read_header(header *h, FILE *f, const char *path, st_error *err)
{
    char text[MAX_HEADER + 1];
    const size_t n = header_length(f);
    if (n == 0) return st_fault(err, ST_ERR_FORMAT, "%s: not a NumPy .npy file", path);
    if (n > MAX_HEADER)
        return st_fault(err, ST_ERR_LIMIT, "%s: a header of %zu bytes, at most %d", path, n, MAX_HEADER);
    if (fread(text, 1, n, f) != n) return st_fault(err, ST_ERR_FORMAT, "%s: the header ends early", path);
    text[n] = '\0';
    if (strlen(text) != n || !parse(h, text))
        return st_fault(err, ST_ERR_FORMAT, "%s: the header is not one that NumPy writes for a plain array", path);
    return ST_OK;
}

/* ---- the whole file ---- */

static void shape_text(char *out, size_t room, const header *h)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < h->rank && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%zu", i ? " x " : "", h->shape[i]);
    if (h->rank == 0) snprintf(out, room, "one value");
}

static bool has_shape(const header *h, size_t rows, size_t cols)
{
    if (h->rank < 2 || h->shape[h->rank - 2] != rows || h->shape[h->rank - 1] != cols) return false;
    for (size_t i = 0; i + 2 < h->rank; i++)
        if (h->shape[i] != 1) return false;
    return true;
}

/* Floats, from doubles if there are any; one that is not finite (as a float) is refused here, where the file's name is
 * known. */
static st_status take_values(float *out, const double *wide, const char *path, size_t n, st_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const double value = wide ? wide[i] : (double)out[i];
        if (!(fabs(value) <= (double)FLT_MAX))
            return st_fault(err, ST_ERR_INVALID_ARG, "%s: value %zu is %g, expected a finite 32-bit float", path, i,
                            value);
        out[i] = (float)value;
    }
    return ST_OK;
}

/* n values of `size` bytes as they lie in the file (little-endian, as the machine is) to floats. */
static st_status read_values(float **values, FILE *f, const char *path, size_t n, size_t size, st_error *err)
{
    float *out = malloc(n * sizeof *out);
    double *wide = size == sizeof *wide ? malloc(n * size) : NULL;
    st_status status = ST_OK;
    if (!out || (size == sizeof *wide && !wide))
        status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory for %zu values", path, n);
    else if (fread(wide ? (void *)wide : (void *)out, size, n, f) != n)
        status = st_fault(err, ST_ERR_FORMAT, "%s: the values end early", path);
    else if (fgetc(f) != EOF) status = st_fault(err, ST_ERR_FORMAT, "%s: bytes follow the last value", path);
    if (status == ST_OK) status = take_values(out, wide, path, n, err);
    free(wide);
    if (status != ST_OK) free(out);
    else *values = out;
    return status;
}

static st_status read_file(float **values, FILE *f, const char *path, size_t rows, size_t cols, st_error *err)
{
    header h;
    char shape[128];
    const st_status status = read_header(&h, f, path, err);
    if (status != ST_OK) return status;
    const size_t size = strcmp(h.type, "<f4") == 0 ? 4 : strcmp(h.type, "<f8") == 0 ? 8 : 0;
    shape_text(shape, sizeof shape, &h);
    if (!size)
        return st_fault(err, ST_ERR_UNSUPPORTED,
                        "%s: values of type \"%s\", expected \"<f4\" or \"<f8\" (little-endian floats)", path, h.type);
    if (!has_shape(&h, rows, cols))
        return st_fault(err, ST_ERR_INVALID_ARG, "%s: an array of %s, expected %zu x %zu", path, shape, rows, cols);
    if (h.fortran_order)
        return st_fault(err, ST_ERR_UNSUPPORTED,
                        "%s: the array is stored by columns; save numpy.ascontiguousarray of it", path);
    return read_values(values, f, path, rows * cols, size, err);
}

st_status st_npy_read(float **values, const char *path, size_t rows, size_t cols, st_error *err)
{
    struct stat st;
    *values = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a named pipe must not block */
    if (fd < 0) return st_fault(err, ST_ERR_IO, "%s: %s", path, strerror(errno));
    FILE *f = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!f) {
        close(fd);
        return st_fault(err, ST_ERR_IO, "%s: not a regular file", path);
    }
    const st_status status = read_file(values, f, path, rows, cols, err);
    fclose(f);
    return status;
}

st_status st_npy_write(const char *path, const float *values, size_t rows, size_t cols, st_error *err)
{
    enum { HEADER = 128 }; /* magic and lengths included; values start at a multiple of 64 */
    const size_t n = rows * cols * sizeof *values;
    char *file = malloc(HEADER + n);
    if (!file) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
    memset(file, ' ', HEADER);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10); /* version 1.0, 118 bytes of header */
    char text[HEADER - 10];
    const int used =
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, cols);
    memcpy(file + 10, text, (size_t)used);
    file[HEADER - 1] = '\n';
    memcpy(file + HEADER, values, n);
    const st_status status = st_save_text(path, file, HEADER + n, err);
    free(file);
    return status;
}
