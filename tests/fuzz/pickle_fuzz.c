/* pickle_fuzz.c: a bare pickle, or a whole archive when the input starts with "PK". Properties: an accepted pickle
 * names nothing but the listed globals (found by a scanner of its own), every view lies inside its storage, and
 * every tensor of an accepted archive can be read to its last byte. */
#include <stdlib.h>
#include <string.h>
#include "weights/pickle.h"
#include "weights/pytorch.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) abort();                                                                                     \
    } while (0)
#define MAX_EXPANDED (1u << 22) /* bytes of one storage that the fuzzer looks at */

static const char *const allowed[] = { "collections\nOrderedDict\n",
                                       "torch._utils\n_rebuild_tensor_v2\n",
                                       "torch._utils\n_rebuild_parameter\n",
                                       "torch\nSize\n",
                                       "torch.storage\nUntypedStorage\n",
                                       "torch.storage\nTypedStorage\n",
                                       "torch\nFloatStorage\n",
                                       "torch\nHalfStorage\n",
                                       "torch\nBFloat16Storage\n",
                                       "torch\nDoubleStorage\n",
                                       "torch\nLongStorage\n",
                                       "torch\nIntStorage\n",
                                       "torch\nShortStorage\n",
                                       "torch\nCharStorage\n",
                                       "torch\nByteStorage\n",
                                       "torch\nBoolStorage\n",
                                       "torch\nComplexFloatStorage\n",
                                       "torch\nfloat32\n",
                                       "torch\nfloat\n",
                                       "torch\nfloat64\n",
                                       "torch\ndouble\n",
                                       "torch\nfloat16\n",
                                       "torch\nhalf\n",
                                       "torch\nbfloat16\n",
                                       "torch\nint64\n",
                                       "torch\nlong\n",
                                       "torch\nint32\n",
                                       "torch\nint\n",
                                       "torch\nint16\n",
                                       "torch\nshort\n",
                                       "torch\nint8\n",
                                       "torch\nuint8\n",
                                       "torch\nbool\n",
                                       "torch\ncomplex64\n" };

/* Bytes of the two lines after a GLOBAL opcode, which must be one of the list. */
static size_t check_global(const unsigned char *at, size_t n)
{
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        const size_t length = strlen(allowed[i]);
        if (length <= n && memcmp(at, allowed[i], length) == 0) return length;
    }
    abort();
}

/* Walks over the opcodes of an accepted pickle by their lengths alone. */
static void scan(const unsigned char *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        const unsigned char code = p[at++];
        size_t length = 0;
        if (strchr("KMJGhjqrXc", code) && code) {
            static const char codes[] = "KMJGhjqr";
            static const size_t lengths[] = { 1, 2, 4, 8, 1, 4, 1, 4 };
            const char *found = strchr(codes, code);
            if (found) length = lengths[found - codes];
            else if (code == 'c') length = check_global(p + at, n - at);
            else length = 4 + (p[at] | (size_t)p[at + 1] << 8 | (size_t)p[at + 2] << 16 | (size_t)p[at + 3] << 24);
        } else if (code == 0x80) length = 1;
        else if (code == 0x95) length = 8;
        else if (code == 0x8a || code == 0x8c) length = 1 + (size_t)p[at];
        else CHECK(code && strchr(".(N}])tsuaeRbQ\x88\x89\x85\x86\x87\x94", code));
        CHECK(length <= n - at);
        at += length;
    }
    CHECK(n > 0 && p[n - 1] == '.');
}

static void fuzz_pickle(const unsigned char *bytes, size_t n)
{
    st_pickle pickle;
    if (st_pickle_read(&pickle, bytes, n, NULL) != ST_OK) {
        CHECK(!pickle.tensors && !pickle.storages);
        return;
    }
    scan(bytes, n);
    for (size_t i = 0; i < pickle.n_tensors; i++) {
        const st_pickle_tensor *t = &pickle.tensors[i];
        CHECK(t->storage < pickle.n_storages && t->rank <= ST_MAX_RANK);
        CHECK((const unsigned char *)t->name >= bytes &&
              t->n_name <= n - (size_t)((const unsigned char *)t->name - bytes));
        const uint64_t n_elements = pickle.storages[t->storage].n_elements;
        uint64_t product = 1, last = t->offset, span;
        bool empty = false;
        for (uint32_t d = 0; d < t->rank; d++) empty = empty || t->shape[d] == 0;
        for (uint32_t d = 0; d < t->rank && !empty; d++) {
            CHECK(!__builtin_mul_overflow(product, t->shape[d], &product));
            CHECK(!__builtin_mul_overflow(t->shape[d] - 1, t->stride[d], &span) &&
                  !__builtin_add_overflow(last, span, &last));
        }
        CHECK(empty ? t->offset <= n_elements : product <= n_elements && last < n_elements);
    }
    st_pickle_free(&pickle);
}

static void read_all(st_catalog *cat, st_entry *e)
{
    st_blob *blob = &cat->blobs[e->blob];
    uint64_t last = 0;
    if (e->n_elements == 0 || blob->n > MAX_EXPANDED || st_blob_expand(blob, e->name, NULL) != ST_OK) return;
    for (uint32_t d = 0; d < e->rank; d++) last += (e->shape[d] - 1) * e->stride[d];
    CHECK(e->offset + (last + 1) * st_dtype_size(e->dtype) <= blob->n);
    if (!st_dtype_is_real(e->dtype)) return;
    float *values = malloc((size_t)e->n_elements * sizeof *values);
    if (!values) return;
    (void)st_entry_read(cat, e, 0, (size_t)e->n_elements, values);
    free(values);
}

static void fuzz_archive(const unsigned char *bytes, size_t n)
{
    st_catalog cat = { 0 };
    uint32_t map;
    if (st_catalog_add_map(&cat, (st_map){ bytes, n }, "fuzz", &map, NULL) == ST_OK) {
        if (st_pytorch_read(&cat, map, NULL) == ST_OK && st_catalog_finish(&cat, NULL) == ST_OK)
            for (size_t i = 0; i < cat.n && i < 64; i++) read_all(&cat, &cat.entries[i]);
        cat.maps[map] = (st_map){ 0 }; /* it is heap, not a mapping */
    }
    st_catalog_free(&cat);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    unsigned char *copy = malloc(n ? n : 1);
    if (!copy) return 0;
    memcpy(copy, data, n);
    if (n > 1 && copy[0] == 'P' && copy[1] == 'K') fuzz_archive(copy, n);
    else fuzz_pickle(copy, n);
    free(copy);
    return 0;
}
