/* npy.c: reads the header with a few string searches, strictly: what is not exactly understood is refused with the header's own words. */
#include "front/npy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static st_status fail(st_error *err, st_status status, const char *path, const char *what)
{
    if (err) {
        err->status = status;
        snprintf(err->message, sizeof err->message, "%s: %s", path, what);
    }
    return status;
}

/* The magic, the version and the length of the header text that follows; 0 when it is no .npy file. */
static size_t header_length(FILE *f)
{
    unsigned char b[12];
    if (fread(b, 1, 10, f) != 10 || memcmp(b, "\x93NUMPY", 6) != 0) return 0;
    if (b[6] == 1) return (size_t)b[8] | (size_t)b[9] << 8;
    if (b[6] != 2 && b[6] != 3) return 0;
    if (fread(b + 10, 1, 2, f) != 2) return 0;
    return (size_t)b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
}

/* The text after 'key': in a Python dictionary, or NULL. */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

static bool read_shape(const char *text, size_t *rows, size_t *cols)
{
    unsigned long long r, c;
    int used = 0;
    if (!text || sscanf(text, "(%llu, %llu)%n", &r, &c, &used) != 2 || used == 0) return false;
    *rows = (size_t)r, *cols = (size_t)c;
    return r > 0 && c > 0 && r < 1u << 20 && c < 1u << 20;
}

static st_status read_values(FILE *f, const char *path, size_t n, size_t size, float *out, st_error *err)
{
    for (size_t i = 0; i < n; i++) {
        double wide;
        float narrow;
        if (fread(size == 8 ? (void *)&wide : (void *)&narrow, size, 1, f) != 1) return fail(err, ST_ERR_FORMAT, path, "the values end early");
        out[i] = size == 8 ? (float)wide : narrow;
    }
    return fgetc(f) == EOF ? ST_OK : fail(err, ST_ERR_FORMAT, path, "bytes after the last value");
}

static st_status read_file(FILE *f, const char *path, size_t max_values, float **values, size_t *rows, size_t *cols, st_error *err)
{
    char header[4096];
    const size_t n = header_length(f);
    if (n == 0 || n >= sizeof header) return fail(err, ST_ERR_FORMAT, path, "not a NumPy .npy file");
    if (fread(header, 1, n, f) != n) return fail(err, ST_ERR_FORMAT, path, "the header ends early");
    header[n] = '\0';
    const char *type = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'");
    const size_t size = type && strncmp(type, "'<f4'", 5) == 0 ? 4 : type && strncmp(type, "'<f8'", 5) == 0 ? 8 : 0;
    if (!size) return fail(err, ST_ERR_UNSUPPORTED, path, "expected little-endian float32 or float64 values");
    if (!order || strncmp(order, "False", 5) != 0) return fail(err, ST_ERR_UNSUPPORTED, path, "expected C order");
    if (!read_shape(value_of(header, "'shape'"), rows, cols)) return fail(err, ST_ERR_UNSUPPORTED, path, "expected a two-dimensional array");
    if (*rows > max_values / *cols) return fail(err, ST_ERR_LIMIT, path, "more values than a mask prompt has");
    *values = malloc(*rows * *cols * sizeof **values);
    if (!*values) return fail(err, ST_ERR_NOMEM, path, "out of memory");
    return read_values(f, path, *rows * *cols, size, *values, err);
}

st_status st_npy_read(const char *path, size_t max_values, float **values, size_t *rows, size_t *cols, st_error *err)
{
    *values = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return fail(err, ST_ERR_IO, path, strerror(errno));
    const st_status status = read_file(f, path, max_values, values, rows, cols, err);
    fclose(f);
    if (status != ST_OK) {
        free(*values);
        *values = NULL;
    }
    return status;
}
