/* safetensors_fuzz.c: a safetensors file, then sizes and manifest from what it holds. Property: whatever the reader
 * accepts is whole: unique names, shape x type equal to the bytes, the tensors tiling the data exactly; and every
 * canonical tensor of an accepted model lies inside its published one. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "weights/manifest.h"
#include "weights/safetensors.h"
#include "weights/weights_id.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) abort();                                                                                     \
    } while (0)

static void check_entries(const st_catalog *cat)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < cat->n; i++) {
        const st_entry *e = &cat->entries[i];
        uint64_t product = 1;
        CHECK(i == 0 || strcmp(cat->entries[i - 1].name, e->name) < 0);
        CHECK(e->contiguous && e->rank <= ST_MAX_RANK && e->blob < cat->n_blobs);
        for (uint32_t d = 0; d < e->rank; d++) CHECK(!__builtin_mul_overflow(product, e->shape[d], &product));
        CHECK(product == e->n_elements);
        CHECK(e->offset <= cat->blobs[e->blob].n &&
              product * st_dtype_size(e->dtype) <= cat->blobs[e->blob].n - e->offset);
        n_bytes += product * st_dtype_size(e->dtype);
    }
    CHECK(cat->n_blobs == 1 && n_bytes == cat->blobs[0].n);
}

/* The whole way to a model, as st_weights_open goes it. */
static void check_model(st_catalog *cat)
{
    st_naming naming;
    st_dims dims;
    st_binding binding;
    char id[ST_ID_TEXT];
    if (st_naming_find(&naming, cat, NULL) != ST_OK || st_dims_from_shapes(&dims, cat, &naming, NULL, NULL) != ST_OK)
        return;
    st_dims_observe(&dims, cat, &naming);
    if (st_dims_check_limits(&dims, NULL) != ST_OK || st_manifest_bind(&binding, cat, &naming, &dims, NULL) != ST_OK)
        return;
    for (size_t i = 0; i < binding.n; i++) {
        const st_slot *s = &binding.slots[i];
        CHECK(s->n_elements > 0 && s->first <= s->entry->n_elements &&
              s->n_elements <= s->entry->n_elements - s->first);
    }
    CHECK(st_weights_id(id, cat, &binding, NULL) == ST_OK && strlen(id) == 64);
    st_binding_free(&binding);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    st_catalog cat = { 0 };
    uint32_t map;
    unsigned char *copy = malloc(n ? n : 1);
    if (!copy) return 0;
    memcpy(copy, data, n);
    if (st_catalog_add_map(&cat, (st_map){ copy, n }, "fuzz", &map, NULL) == ST_OK) {
        if (st_safetensors_read(&cat, map, NULL) == ST_OK && st_catalog_finish(&cat, NULL) == ST_OK) {
            check_entries(&cat);
            check_model(&cat);
        }
        cat.maps[map] = (st_map){ 0 }; /* it is heap, not a mapping */
    }
    st_catalog_free(&cat);
    free(copy);
    return 0;
}
