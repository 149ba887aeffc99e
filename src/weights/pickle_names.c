/* pickle_names.c: the list of allowed names. An untyped storage counts as bytes, which no weight may be. */
#include "weights/pickle_names.h"

#include <string.h>

static const st_pickle_name names[] = {
    { "collections", "OrderedDict", ST_PICKLE_DICT, ST_DTYPE_U8 },
    { "torch._utils", "_rebuild_tensor_v2", ST_PICKLE_TENSOR, ST_DTYPE_U8 },
    { "torch._utils", "_rebuild_parameter", ST_PICKLE_PARAMETER, ST_DTYPE_U8 },
    { "torch", "Size", ST_PICKLE_SIZE, ST_DTYPE_U8 },
    { "torch", "FloatStorage", ST_PICKLE_STORAGE, ST_DTYPE_F32 },
    { "torch", "HalfStorage", ST_PICKLE_STORAGE, ST_DTYPE_F16 },
    { "torch", "BFloat16Storage", ST_PICKLE_STORAGE, ST_DTYPE_BF16 },
    { "torch", "DoubleStorage", ST_PICKLE_STORAGE, ST_DTYPE_F64 },
    { "torch", "LongStorage", ST_PICKLE_STORAGE, ST_DTYPE_I64 },
    { "torch", "IntStorage", ST_PICKLE_STORAGE, ST_DTYPE_I32 },
    { "torch", "ShortStorage", ST_PICKLE_STORAGE, ST_DTYPE_I16 },
    { "torch", "CharStorage", ST_PICKLE_STORAGE, ST_DTYPE_I8 },
    { "torch", "ByteStorage", ST_PICKLE_STORAGE, ST_DTYPE_U8 },
    { "torch", "BoolStorage", ST_PICKLE_STORAGE, ST_DTYPE_BOOL },
    { "torch", "ComplexFloatStorage", ST_PICKLE_STORAGE, ST_DTYPE_C64 },
    { "torch.storage", "UntypedStorage", ST_PICKLE_STORAGE, ST_DTYPE_U8 },
    { "torch.storage", "TypedStorage", ST_PICKLE_DTYPE, ST_DTYPE_U8 }, /* may be named; no storage can be of it */
    { "torch", "float32", ST_PICKLE_DTYPE, ST_DTYPE_F32 },
    { "torch", "float", ST_PICKLE_DTYPE, ST_DTYPE_F32 },
    { "torch", "float64", ST_PICKLE_DTYPE, ST_DTYPE_F64 },
    { "torch", "double", ST_PICKLE_DTYPE, ST_DTYPE_F64 },
    { "torch", "float16", ST_PICKLE_DTYPE, ST_DTYPE_F16 },
    { "torch", "half", ST_PICKLE_DTYPE, ST_DTYPE_F16 },
    { "torch", "bfloat16", ST_PICKLE_DTYPE, ST_DTYPE_BF16 },
    { "torch", "int64", ST_PICKLE_DTYPE, ST_DTYPE_I64 },
    { "torch", "long", ST_PICKLE_DTYPE, ST_DTYPE_I64 },
    { "torch", "int32", ST_PICKLE_DTYPE, ST_DTYPE_I32 },
    { "torch", "int", ST_PICKLE_DTYPE, ST_DTYPE_I32 },
    { "torch", "int16", ST_PICKLE_DTYPE, ST_DTYPE_I16 },
    { "torch", "short", ST_PICKLE_DTYPE, ST_DTYPE_I16 },
    { "torch", "int8", ST_PICKLE_DTYPE, ST_DTYPE_I8 },
    { "torch", "uint8", ST_PICKLE_DTYPE, ST_DTYPE_U8 },
    { "torch", "bool", ST_PICKLE_DTYPE, ST_DTYPE_BOOL },
    { "torch", "complex64", ST_PICKLE_DTYPE, ST_DTYPE_C64 },
};

static bool same(const char *allowed, const char *text, size_t n)
{
    return strlen(allowed) == n && memcmp(allowed, text, n) == 0;
}

const st_pickle_name *st_pickle_name_find(const char *module, size_t n_module, const char *name, size_t n_name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (same(names[i].module, module, n_module) && same(names[i].name, name, n_name)) return &names[i];
    return NULL;
}
