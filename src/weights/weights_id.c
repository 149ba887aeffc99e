/* weights_id.c: reads 4 KiB of each tensor (and all scales of quantised ones), so that opening a 3.4 GB file costs one or two pages per tensor. */
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

/* Of a quantised matrix: each of its scales stands for a whole row, so all of them count. */
static st_status hash_companions(struct sha256_ctx *sha, st_catalog *cat, const st_slot *slot, st_error *err)
{
    const uint64_t n_out = slot->shape[0], n_in = slot->shape[1];
    const st_slot parts[2] = {
        { .entry = slot->scale, .first = slot->first / n_in, .n_elements = n_out },
        { .entry = slot->smooth, .first = slot->first / slot->n_elements * n_in, .n_elements = n_in },
    };
    for (size_t i = 0; i < 2; i++) {
        const st_entry *e = parts[i].entry;
        const st_status status = e ? st_blob_expand(&cat->blobs[e->blob], e->name, err) : ST_OK;
        if (status != ST_OK) return status;
        if (e) hash_values(sha, cat, &parts[i], 0, (size_t)parts[i].n_elements);
    }
    return ST_OK;
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
        if (slot->scale) {
            const st_status companions = hash_companions(&sha, cat, slot, err);
            if (companions != ST_OK) return companions;
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
