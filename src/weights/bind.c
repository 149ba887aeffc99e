/* bind.c: fetches layers by canonical name and re-orders convolution weights. Everything that is not re-ordered stays where the file has it. */
#include "weights/layers.h"

#include <stdarg.h>
#include <stdio.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

#define NAME_MAX_BYTES 128

#define FORMAT_NAME(name, fmt)                      \
    char name[NAME_MAX_BYTES];                      \
    do {                                            \
        va_list args_;                              \
        va_start(args_, fmt);                       \
        vsnprintf(name, sizeof name, fmt, args_);   \
        va_end(args_);                              \
    } while (0)

static const float *fetch(st_binder *b, size_t n, const char *name)
{
    if (b->status != ST_OK || !b->weights) return NULL;
    const size_t found = st_weights_n_elements(b->weights, name);
    if (found != n) {
        b->status = st_fail(b->err, ST_ERR_INTERNAL, "tensor \"%s\": the model asks for %zu elements, the manifest has %zu", name, n, found);
        return NULL;
    }
    const float *values = NULL;
    b->status = st_weights_f32(b->weights, &values, name, b->err);
    return b->status == ST_OK ? values : NULL;
}

static const float *fetch_part(st_binder *b, size_t n, const char *stem, const char *part)
{
    char name[2 * NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s.%s", stem, part);
    return fetch(b, n, name);
}

static void fetch_linear(st_binder *b, st_linear *out, size_t n_in, size_t n_out, const char *stem)
{
    *out = (st_linear){.n_in = n_in, .n_out = n_out};
    if (b->status != ST_OK || !b->weights) return;
    char name[2 * NAME_MAX_BYTES];
    snprintf(name, sizeof name, "%s.weight", stem);
    if (st_weights_n_elements(b->weights, name) == n_in * n_out) b->status = st_weights_int8(b->weights, &out->int8, &out->name, name, b->err);
    if (!out->int8.values && b->status == ST_OK && st_weights_n_elements(b->weights, name) == n_in * n_out)
        b->status = st_weights_half(b->weights, &out->half, name, b->err);
    if (!out->int8.values && !out->half.values) out->weight = fetch(b, n_in * n_out, name);
    out->bias = fetch_part(b, n_out, stem, "bias");
}

const float *st_bind_f32(st_binder *b, size_t n, const char *fmt, ...)
{
    FORMAT_NAME(name, fmt);
    return fetch(b, n, name);
}

void st_bind_linear(st_binder *b, st_linear *out, size_t n_in, size_t n_out, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    fetch_linear(b, out, n_in, n_out, stem);
}

void st_bind_norm(st_binder *b, st_norm *out, size_t n, float eps, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    *out = (st_norm){fetch_part(b, n, stem, "weight"), fetch_part(b, n, stem, "bias"), n, eps};
}

/* [n_cells, n_out, n_in] from published weights whose cell index is the fastest: src[o*so + i*si + cell]. NULL (and a sticky error) without memory. */
static float *reorder_cells(st_binder *b, const float *src, size_t n_cells, size_t n_in, size_t n_out, size_t so, size_t si)
{
    if (b->status != ST_OK || !src) return NULL;
    float *dst = st_realloc_array(NULL, n_cells * n_out * n_in, sizeof *dst);
    if (!dst) {
        b->status = st_fail(b->err, ST_ERR_NOMEM, "out of memory for convolution weights");
        return NULL;
    }
    for (size_t cell = 0; cell < n_cells; cell++)
        for (size_t o = 0; o < n_out; o++)
            for (size_t i = 0; i < n_in; i++) dst[(cell * n_out + o) * n_in + i] = src[o * so + i * si + cell];
    return dst;
}

/* G g Gᵀ with the rows of G = (1, 0, 0), (1/2, 1/2, 1/2), (1/2, -1/2, 1/2), (0, 0, 1); in double, rounded once. */
static void filter_of(double out[4][4], const float g[9])
{
    double rows[4][3];
    for (size_t c = 0; c < 3; c++) {
        const double top = (double)g[c], mid = (double)g[3 + c], low = (double)g[6 + c];
        rows[0][c] = top;
        rows[1][c] = (top + mid + low) / 2;
        rows[2][c] = (top - mid + low) / 2;
        rows[3][c] = low;
    }
    for (size_t r = 0; r < 4; r++) {
        out[r][0] = rows[r][0];
        out[r][1] = (rows[r][0] + rows[r][1] + rows[r][2]) / 2;
        out[r][2] = (rows[r][0] - rows[r][1] + rows[r][2]) / 2;
        out[r][3] = rows[r][2];
    }
}

void st_conv3x3_filters(float *filters, const float *weight, size_t n_in, size_t n_out)
{
    const size_t n = n_out * n_in;
    for (size_t i = 0; i < n; i++) {
        double f[4][4];
        filter_of(f, weight + 9 * i);
        for (size_t j = 0; j < 16; j++) filters[j * n + i] = (float)f[j / 4][j % 4];
    }
}

void st_bind_conv3x3(st_binder *b, st_conv3x3 *out, size_t n_in, size_t n_out, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    const float *weight = fetch_part(b, 9 * n_in * n_out, stem, "weight"); /* [out, in, 3, 3] */
    const float *bias = fetch_part(b, n_out, stem, "bias");
    st_free(out->filters); /* a bind that is tried again */
    *out = (st_conv3x3){NULL, bias, n_in, n_out};
    if (b->status != ST_OK || !weight) return;
    out->filters = st_realloc_array(NULL, 16 * n_out * n_in, sizeof *out->filters);
    if (out->filters) st_conv3x3_filters(out->filters, weight, n_in, n_out);
    else b->status = st_fail(b->err, ST_ERR_NOMEM, "out of memory for convolution weights");
}

void st_bind_conv_up(st_binder *b, st_conv_up *out, size_t n_in, size_t n_out, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    const float *weight = fetch_part(b, 4 * n_in * n_out, stem, "weight"); /* [in, out, 2, 2] */
    const float *bias = fetch_part(b, n_out, stem, "bias");
    st_free(out->cells);
    *out = (st_conv_up){reorder_cells(b, weight, 4, n_in, n_out, 4, 4 * n_out), bias, n_in, n_out};
}

void st_bind_mha(st_binder *b, st_mha *out, size_t width, size_t inner, size_t heads, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    static const char *const parts[4] = {"q", "k", "v", "out"};
    st_linear *layers[4] = {&out->q, &out->k, &out->v, &out->out};
    char name[NAME_MAX_BYTES + 16];
    for (size_t i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s.%s", stem, parts[i]);
        fetch_linear(b, layers[i], i < 3 ? width : inner, i < 3 ? inner : width, name);
    }
    out->heads = heads;
}

void st_bind_mlp(st_binder *b, st_linear *out, size_t n_layers, size_t n_in, size_t n_hidden, size_t n_out, const char *fmt, ...)
{
    FORMAT_NAME(stem, fmt);
    char name[NAME_MAX_BYTES + 24];
    for (size_t i = 0; i < n_layers; i++) {
        snprintf(name, sizeof name, "%s.%zu", stem, i);
        fetch_linear(b, &out[i], i == 0 ? n_in : n_hidden, i + 1 == n_layers ? n_out : n_hidden, name);
    }
}
