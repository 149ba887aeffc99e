/* manifest_fuzz.c: a whole small model whose catalogue the input edits: the first byte picks the layout, then every
 * four bytes change one tensor (drop, a side, rank, type, a letter of the name, or int8 with companions). Property: an
 * accepted model has every canonical tensor inside its published one, companions that reach as far as its layers, and
 * sizes within their limits; its id can be made, and its quantised layers can be laid out. */
#include <stdlib.h>
#include <string.h>
#include "../unit/weights_model.h"
#include "base/mem.h"
#include "weights/int8.h"
#include "weights/weights_id.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) abort();                                                                                     \
    } while (0)

#define MAX_EDITS 64
#define MAX_COMPANIONS (2 * MAX_EDITS)

/* The model of one input: descriptions of its own, bytes shared with the pristine model but for tensors that grew. */
typedef struct edited {
    tiny_model m;
    unsigned char *grown[MAX_EDITS + MAX_COMPANIONS];
    size_t n_grown;
} edited;

/* Values are never read beyond what shapes say, so a tensor that grows gets bytes too. */
static void fit_bytes(edited *x, tiny_tensor *t)
{
    uint64_t n = st_dtype_size(t->dtype);
    for (uint32_t d = 0; d < t->rank; d++)
        if (__builtin_mul_overflow(n, t->shape[d], &n)) n = 1u << 30;
    if (n > 1u << 20) { /* too large to back with memory: make it small again */
        t->rank = 1;
        t->shape[0] = 1;
        n = st_dtype_size(t->dtype);
    }
    if (n <= t->n_bytes) return;
    t->bytes = calloc((size_t)n, 1);
    if (!t->bytes) abort();
    t->n_bytes = (size_t)n;
    x->grown[x->n_grown++] = t->bytes;
}

/* A companion of t, of sides a and b (0: no second side). */
static void add_companion(edited *x, const tiny_tensor *t, const char *suffix, uint64_t a, uint64_t b)
{
    if (strlen(t->name) + 8 > sizeof t->name) return;
    tiny_tensor *c = &x->m.tensors[x->m.n++];
    *c = (tiny_tensor){ .dtype = ST_DTYPE_F32, .rank = b ? 2 : 1, .shape = { a, b } };
    snprintf(c->name, sizeof c->name, "%.*s%s", (int)(sizeof c->name - 8), t->name, suffix);
    fit_bytes(x, c);
}

/* Tensor t as int8; e[2]: rows of the smoothing (0: none), e[3]: how far scales and smoothing are from what they should be. */
static void quantise(edited *x, tiny_tensor *t, const unsigned char *e)
{
    t->dtype = ST_DTYPE_I8;
    add_companion(x, t, "_scale", t->shape[0] + (e[3] & 15), 0);
    if (e[2]) add_companion(x, t, "_smooth", e[2], t->rank > 1 ? t->shape[1] + (e[3] >> 4) : 1);
}

static void edit(edited *x, const unsigned char *e)
{
    tiny_model *m = &x->m;
    if (m->n < 2) return;
    const size_t i = (e[0] | (size_t)(e[1] & 7) << 8) % m->n;
    tiny_tensor *t = &m->tensors[i];
    if (e[1] >> 6 == 3) {
        quantise(x, t, e);
        return;
    }
    switch (e[1] >> 3 & 7) {
    case 0: *t = m->tensors[--m->n]; return;
    case 1:
        if (t->rank) t->shape[e[2] % t->rank] = e[3];
        break;
    case 2:
        if (t->rank) t->shape[e[2] % t->rank] += (uint64_t)(int64_t)(signed char)e[3];
        break;
    case 3:
        t->rank = e[2] % (ST_MAX_RANK + 1);
        for (uint32_t d = 0; d < t->rank; d++)
            if (!t->shape[d]) t->shape[d] = 1;
        break;
    case 4: t->dtype = (st_dtype)(e[2] % ST_N_DTYPES); break;
    case 5: t->name[e[2] % strlen(t->name)] = (char)('.' + e[3] % 77); break;
    case 6:
        if (t->rank) t->shape[e[2] % t->rank] <<= e[3] % 60;
        break;
    default: memcpy(t->shape, m->tensors[(i + e[2]) % m->n].shape, sizeof t->shape); break;
    }
    fit_bytes(x, t);
}

static void check_int8(const st_catalog *cat, const st_slot *s)
{
    st_int8_view view;
    void *heap = NULL;
    CHECK((s->entry->dtype == ST_DTYPE_I8) == (s->scale != NULL) || !s->row->canonical);
    if (!s->scale) {
        CHECK(!s->smooth);
        return;
    }
    CHECK(s->rank == 2 && s->shape[1] <= ST_MAX_INT8_COLUMNS);
    CHECK(s->scale->n_elements == s->entry->n_elements / s->shape[1]);
    CHECK(!s->smooth || s->smooth->n_elements == s->entry->n_elements / s->n_elements * s->shape[1]);
    if (st_int8_prepare(&view, &heap, cat, s, NULL) == ST_OK) CHECK(view.values && view.scale && view.sums);
    st_free(heap);
}

static void check(st_catalog *cat)
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
    for (size_t i = 0; i < cat->n; i++) CHECK(cat->entries[i].used);
    for (size_t i = 0; i < binding.n; i++) {
        const st_slot *s = &binding.slots[i];
        CHECK(i == 0 || strcmp(binding.slots[i - 1].name, s->name) < 0);
        CHECK(s->n_elements > 0 && s->first <= s->entry->n_elements &&
              s->n_elements <= s->entry->n_elements - s->first);
        check_int8(cat, s);
    }
    CHECK(st_weights_id(id, cat, &binding, NULL) == ST_OK && strlen(id) == 64);
    if (st_dims_finish(&dims, NULL) == ST_OK)
        CHECK(dims.grid >= 1 && dims.grid * dims.patch == dims.image_size && dims.vit_width % dims.vit_heads == 0);
    st_binding_free(&binding);
}

/* Catalogues refuse names that are there twice; so does this, before tiny_catalog would give up. */
static bool names_are_unique(const tiny_model *m, st_catalog *cat)
{
    const st_blob blob = { 0 };
    *cat = (st_catalog){ .container = "memory" };
    bool fine = true;
    for (size_t i = 0; i < m->n && fine; i++) {
        const tiny_tensor *t = &m->tensors[i];
        st_entry e = { .dtype = t->dtype, .rank = t->rank, .contiguous = true };
        st_blob b = blob;
        b.data = t->bytes;
        b.n = t->n_bytes;
        memcpy(e.shape, t->shape, sizeof e.shape);
        fine = st_catalog_add_blob(cat, &b, &e.blob, NULL) == ST_OK &&
               st_catalog_add(cat, &e, t->name, strlen(t->name), NULL) == ST_OK;
    }
    return fine && st_catalog_finish(cat, NULL) == ST_OK;
}

/* The model of a layout, made once: it takes longer than everything else here. */
static const tiny_model *pristine(unsigned layout)
{
    static tiny_model models[3];
    if (!models[layout].n) tiny_make(&models[layout], layout == 1 ? ST_LAYOUT_HF : ST_LAYOUT_META, layout == 2);
    return &models[layout];
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    if (n < 1 || n > 1 + 4 * MAX_EDITS) return 0;
    const tiny_model *whole = pristine(data[0] % 3);
    edited x = { .m = *whole };
    st_catalog cat;
    x.m.tensors = calloc(whole->n + MAX_COMPANIONS, sizeof *whole->tensors);
    if (!x.m.tensors) return 0;
    memcpy(x.m.tensors, whole->tensors, whole->n * sizeof *whole->tensors);
    for (size_t i = 1; i + 4 <= n; i += 4) edit(&x, data + i);
    if (names_are_unique(&x.m, &cat)) check(&cat);
    st_catalog_free(&cat);
    for (size_t i = 0; i < x.n_grown; i++) free(x.grown[i]);
    free(x.m.tensors);
    return 0;
}
