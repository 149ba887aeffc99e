/* safetensors_write.c: our own files (concepts, saved pictures) in the format that checkpoints have: one reader, one set of checks. */
#include "weights/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

static uint64_t count(const st_tensor_out *t)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

/* The header's JSON text (from jansson: free()), NULL without memory. */
static char *make_header(const st_tensor_out *tensors, size_t n, size_t size, const char *about)
{
    uint64_t at = 0;
    json_t *root = json_object();
    if (about) json_object_set_new(root, "__metadata__", json_pack("{s:s}", "stencil", about));
    for (size_t i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (uint32_t k = 0; k < tensors[i].rank; k++) json_array_append_new(shape, json_integer((json_int_t)tensors[i].shape[k]));
        const uint64_t end = at + count(&tensors[i]) * size;
        json_object_set_new(root, tensors[i].name, json_pack("{s:s,s:o,s:[I,I]}", "dtype", size == 2 ? "F16" : "F32", "shape", shape, "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    const bool whole = json_object_size(root) == n + (about != NULL);
    char *text = whole ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

/* Round to nearest, ties to even; false when the result would be infinite or the value is NaN. */
static bool to_half(float value, uint16_t *out)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    uint32_t half;
    if (magnitude >= 0x38800000u) { /* a normal half: drop 13 bits, rebase the exponent */
        half = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
    } else { /* below 2^-14: the nearest multiple of 2^-24 */
        half = (uint32_t)lrintf(fabsf(value) * 16777216.0f);
    }
    *out = (uint16_t)(sign | half);
    return half < 0x7C00u && magnitude < 0x7F800000u;
}

enum { BLOCK = 4096 };

static st_status write_half(FILE *f, const st_tensor_out *t, st_error *err)
{
    uint16_t block[BLOCK];
    const uint64_t n = count(t);
    for (uint64_t at = 0; at < n; at += BLOCK) {
        const size_t m = n - at < BLOCK ? (size_t)(n - at) : BLOCK;
        for (size_t i = 0; i < m; i++)
            if (!to_half(t->data[at + i], &block[i]))
                return st_fail(err, ST_ERR_UNSUPPORTED, "tensor \"%s\": value %" PRIu64 " is %g, which fp16 cannot hold; save as fp32", t->name, at + i, (double)t->data[at + i]);
        if (fwrite(block, sizeof *block, m, f) != m) return st_fail_errno(err, ST_ERR_IO, "tensor \"%s\" could not be written", t->name);
    }
    return ST_OK;
}

static st_status write_float(FILE *f, const st_tensor_out *t, st_error *err)
{
    const size_t n = (size_t)count(t);
    return fwrite(t->data, sizeof *t->data, n, f) == n ? ST_OK : st_fail_errno(err, ST_ERR_IO, "tensor \"%s\" could not be written", t->name);
}

st_status st_safetensors_write(const char *path, const st_tensor_out *tensors, size_t n, bool half, const char *about, st_error *err)
{
    st_out out = {0};
    char *header = make_header(tensors, n, half ? 2 : 4, about);
    if (!header) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory for the header", path);
    const size_t n_text = strlen(header), pad = (8 - n_text % 8) % 8; /* the data starts aligned */
    const uint64_t length = n_text + pad;
    st_status status = st_out_open(&out, path, err);
    if (status == ST_OK) {
        unsigned char little[8];
        for (int i = 0; i < 8; i++) little[i] = (unsigned char)(length >> (8 * i));
        if (fwrite(little, 1, 8, out.f) != 8 || fwrite(header, 1, n_text, out.f) != n_text || fwrite("        ", 1, pad, out.f) != pad)
            status = st_fail_errno(err, ST_ERR_IO, "%s: the header could not be written", path);
    }
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        status = half ? write_half(out.f, &tensors[i], err) : write_float(out.f, &tensors[i], err);
        if (status != ST_OK) st_error_prefix(err, "%s", path);
    }
    if (status == ST_OK) status = st_out_commit(&out, err);
    st_out_abort(&out);
    free(header); /* allocated by jansson */
    return status;
}
