/* dtype.c: conversions to fp32 in blocks of fixed length, written with integer operations only, so that the
 * compiler vectorises them at -O2 and gigabytes of weights pass at memory speed. */
#include "weights/dtype.h"

#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are little-endian and are mapped, not swapped: this build needs a little-endian machine"
#endif

#define BLOCK 512 /* elements */

static const struct {
    const char *name;
    size_t size;
} types[ST_N_DTYPES] = {
    [ST_DTYPE_F32] = { "F32", 4 },   [ST_DTYPE_F16] = { "F16", 2 }, [ST_DTYPE_BF16] = { "BF16", 2 },
    [ST_DTYPE_F64] = { "F64", 8 },   [ST_DTYPE_I64] = { "I64", 8 }, [ST_DTYPE_I32] = { "I32", 4 },
    [ST_DTYPE_I16] = { "I16", 2 },   [ST_DTYPE_I8] = { "I8", 1 },   [ST_DTYPE_U64] = { "U64", 8 },
    [ST_DTYPE_U32] = { "U32", 4 },   [ST_DTYPE_U16] = { "U16", 2 }, [ST_DTYPE_U8] = { "U8", 1 },
    [ST_DTYPE_BOOL] = { "BOOL", 1 }, [ST_DTYPE_C64] = { "C64", 8 },
};

const char *st_dtype_name(st_dtype type)
{
    return types[type].name;
}

size_t st_dtype_size(st_dtype type)
{
    return types[type].size;
}

bool st_dtype_find(st_dtype *out, const char *name)
{
    for (int i = 0; i < ST_N_DTYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *out = (st_dtype)i;
            return true;
        }
    }
    return false;
}

bool st_dtype_is_real(st_dtype type)
{
    return type == ST_DTYPE_F32 || type == ST_DTYPE_F16 || type == ST_DTYPE_BF16 || type == ST_DTYPE_F64;
}

/* NaN and infinity have all exponent bits set: adding one to the exponent then carries into the sign bit. */
static inline uint32_t carry_of_nonfinite(uint32_t bits)
{
    return (bits & 0x7F800000u) + 0x00800000u;
}

static inline uint32_t bits_of(const float *p)
{
    uint32_t bits;
    memcpy(&bits, p, sizeof bits);
    return bits;
}

size_t st_f32_first_nonfinite(const float *in, size_t n)
{
    size_t start = 0;
    for (; n - start >= BLOCK; start += BLOCK) {
        uint32_t carry = 0;
        for (size_t i = 0; i < BLOCK; i++) carry |= carry_of_nonfinite(bits_of(in + start + i));
        if (carry >> 31) break;
    }
    while (start < n && !(carry_of_nonfinite(bits_of(in + start)) >> 31)) start++;
    return start;
}

/* Exact for every finite half, subnormals included: the exponent is rebased by one multiplication. Infinity and NaN
 * become NaN. */
static inline float f32_from_f16(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7FFFu) << 13,
                   all_ones = (half & 0x7C00u) == 0x7C00u ? 0x7FC00000u : 0;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits |= (uint32_t)(half & 0x8000u) << 16 | all_ones;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void block_from_f16(float *restrict out, const uint16_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = f32_from_f16(in[i]);
}

static inline void block_from_bf16(float *restrict out, const uint16_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)in[i] << 16;
        memcpy(&out[i], &bits, sizeof bits);
    }
}

static inline void block_from_f64(float *restrict out, const double *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (float)in[i];
}

/* Whole blocks have a length that the compiler knows: only then does it vectorise at -O2. */
#define IN_BLOCKS(convert, out, in, n) ((n) == BLOCK ? convert(out, in, BLOCK) : convert(out, in, n))

static inline void block_from_i8(float *restrict out, const int8_t *restrict in, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = (float)in[i];
}

static void convert_block(float *out, const unsigned char *in, size_t n, st_dtype type)
{
    union {
        uint16_t half[BLOCK];
        double wide[BLOCK];
        int8_t small[BLOCK];
    } aligned;
    if (type == ST_DTYPE_F32) {
        memcpy(out, in, n * sizeof *out);
        return;
    }
    memcpy(&aligned, in, n * types[type].size);
    if (type == ST_DTYPE_F16) IN_BLOCKS(block_from_f16, out, aligned.half, n);
    else if (type == ST_DTYPE_I8) IN_BLOCKS(block_from_i8, out, aligned.small, n);
    else if (type == ST_DTYPE_BF16) IN_BLOCKS(block_from_bf16, out, aligned.half, n);
    else IN_BLOCKS(block_from_f64, out, aligned.wide, n);
}

size_t st_f32_from(float *out, const void *in, size_t n, st_dtype type)
{
    const unsigned char *bytes = in;
    size_t bad = n;
    for (size_t start = 0; start < n; start += BLOCK) {
        const size_t length = n - start < BLOCK ? n - start : BLOCK;
        convert_block(out + start, bytes + start * types[type].size, length, type);
        const size_t first = st_f32_first_nonfinite(out + start, length);
        if (first < length && bad == n) bad = start + first;
    }
    return bad;
}
