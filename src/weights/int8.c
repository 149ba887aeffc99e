/* int8.c: quantised matrices as layers use them. The bytes stay in the map; scales, smoothing and row sums are small and
 * are copied.
 */
#include "weights/int8.h"

#include "base/error.h"
#include "base/mem.h"

static st_status read_floats(float *out, const st_catalog *cat, const st_entry *e, uint64_t first, size_t n,
                             st_error *err)
{
    const size_t bad = st_entry_read(cat, e, first, n, out);
    if (bad == n) return ST_OK;
    return st_fail(err, ST_ERR_NONFINITE, "tensor \"%s\": value %llu is NaN or infinite, expected finite numbers",
                   e->name, (unsigned long long)(first + bad));
}

static void sum_rows(int32_t *sums, const int8_t *values, size_t n_out, size_t n_in)
{
    for (size_t r = 0; r < n_out; r++) {
        int32_t sum = 0;
        for (size_t c = 0; c < n_in; c++) sum += values[r * n_in + c];
        sums[r] = sum;
    }
}

st_status st_int8_prepare(st_int8_view *out, void **heap, const st_catalog *cat, const st_slot *slot, st_error *err)
{
    const size_t n_out = (size_t)slot->shape[0], n_in = (size_t)slot->shape[1];
    const st_blob *blob = &cat->blobs[slot->entry->blob];
    if (!slot->entry->contiguous || !blob->data)
        return st_fail(err, ST_ERR_UNSUPPORTED, "tensor \"%s\": I8 that is not stored row by row", slot->entry->name);
    float *block = st_realloc_array(NULL, 2 * n_out + n_in, sizeof *block);
    if (!block) return st_fail(err, ST_ERR_NOMEM, "tensor \"%s\": out of memory for its scales", slot->entry->name);
    float *scale = block, *smooth = slot->smooth ? block + 2 * n_out : NULL;
    int32_t *sums = (int32_t *)(void *)(block + n_out);
    st_status status = read_floats(scale, cat, slot->scale, slot->first / n_in, n_out, err);
    if (status == ST_OK && smooth)
        status = read_floats(smooth, cat, slot->smooth, slot->first / slot->n_elements * n_in, n_in, err);
    if (status != ST_OK) {
        st_free(block);
        return status;
    }
    const int8_t *values = (const int8_t *)(blob->data + slot->entry->offset + slot->first);
    sum_rows(sums, values, n_out, n_in);
    *out = (st_int8_view){ values, scale, smooth, sums };
    *heap = block;
    return ST_OK;
}

size_t st_int8_expand(float *values, const st_int8_view *view, size_t n_out, size_t n_in)
{
    for (size_t r = 0; r < n_out; r++)
        for (size_t c = 0; c < n_in; c++)
            values[r * n_in + c] *= view->scale[r] * (view->smooth ? view->smooth[c] : 1.0f);
    return st_f32_first_nonfinite(values, n_out * n_in);
}
