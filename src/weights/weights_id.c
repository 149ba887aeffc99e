/* weights_id.c: reads 4 KiB of each tensor, so that opening a 3.4 GB file costs one or two pages per tensor. */
#include "weights/weights_id.h"

#include <stdio.h>
#include <string.h>
#include <nettle/sha2.h>

#define RUN 256
#define RUNS 4

static void hash_u64(struct sha256_ctx *sha, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    sha256_update(sha, sizeof bytes, bytes);
}

static void hash_values(struct sha256_ctx *sha, const st_catalog *cat, const st_slot *slot, uint64_t start, size_t n)
{
    float values[RUN];
    for (size_t done = 0; done < n; done += RUN) {
        const size_t length = n - done < RUN ? n - done : RUN;
        (void)st_entry_read(cat, slot->entry, slot->first + start + done, length,
                            values); /* NaN is refused on first use, not here */
        sha256_update(sha, length * sizeof *values, (const uint8_t *)values); /* little-endian, see dtype.c */
    }
}

st_status st_weights_id(char out[ST_ID_TEXT], st_catalog *cat, const st_binding *binding, st_error *err)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    for (size_t i = 0; i < binding->n; i++) {
        const st_slot *slot = &binding->slots[i];
        if (st_row_need(slot->row) == ST_NEED_KNOWN) continue;
        const st_status status = st_blob_expand(&cat->blobs[slot->entry->blob], slot->entry->name, err);
        if (status != ST_OK) return status;
        const uint8_t rank = (uint8_t)slot->rank;
        sha256_update(&sha, strlen(slot->name) + 1, (const uint8_t *)slot->name);
        sha256_update(&sha, 1, &rank);
        for (uint32_t d = 0; d < slot->rank; d++) hash_u64(&sha, slot->shape[d]);
        for (int k = 0; k < 2; k++) { /* of a quantised matrix: its scales count as much as its values */
            const st_entry *extra = k ? slot->smooth : slot->scale;
            if (!extra) continue;
            const st_status expanded = st_blob_expand(&cat->blobs[extra->blob], extra->name, err);
            if (expanded != ST_OK) return expanded;
            const st_slot whole = { .entry = extra, .n_elements = extra->n_elements };
            hash_values(&sha, cat, &whole, 0, extra->n_elements < RUN ? (size_t)extra->n_elements : RUN);
        }
        if (slot->n_elements <= RUN * RUNS) {
            hash_values(&sha, cat, slot, 0, (size_t)slot->n_elements);
        } else {
            for (uint64_t k = 0; k < RUNS; k++)
                hash_values(&sha, cat, slot, k * (slot->n_elements - RUN) / (RUNS - 1), RUN);
        }
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return ST_OK;
}
