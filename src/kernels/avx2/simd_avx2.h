/* simd_avx2.h: the vector words that tmpl/ is written in, for AVX2 + FMA: vf = 8 floats, vd = 4 doubles.
 *
 * Words that end in _n take n in 1 .. VF_N-1 and touch n elements only. Which operand survives when one is NaN is part
 * of the meaning: the `_keep` words give NaN when their last operand is NaN.
 */
#ifndef ST_KERNELS_SIMD_AVX2_H
#define ST_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FN(op) op##_avx2
enum { VF_N = 8, VD_N = 4, GEMM_ROWS = 6, GEMM_VECS = 2 };
typedef __m256 vf;
typedef __m256d vd;

static inline vf vf_set1(float s) { return _mm256_set1_ps(s); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }

static inline __m256i vf_mask_n(size_t n)
{
    static const int32_t ones_then_zeros[2 * VF_N] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones_then_zeros + VF_N - n));
}
/* Tails in halves and quarters rather than by masked moves: a masked store costs dozens of cycles on some AMD cores,
 * and emulators fault on lanes that are off. */
static inline __m128 word_load(const float *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm_castsi128_ps(_mm_cvtsi32_si128(bits));
}
static inline void word_store(float *p, __m128 v)
{
    const int32_t bits = _mm_cvtsi128_si32(_mm_castps_si128(v));
    memcpy(p, &bits, sizeof bits);
}
static inline __m128 quarter_load(const float *p, size_t n) /* n in 0 .. 4 */
{
    if (n == 4)
        return _mm_loadu_ps(p);
    const __m128 last = n % 2 ? word_load(p + (n - 1)) : _mm_setzero_ps();
    return n < 2 ? last : _mm_movelh_ps(_mm_castsi128_ps(_mm_loadu_si64(p)), last);
}
static inline void quarter_store(float *p, __m128 v, size_t n)
{
    if (n == 4)
        _mm_storeu_ps(p, v);
    if (n == 2 || n == 3)
        _mm_storeu_si64(p, _mm_castps_si128(v));
    if (n == 3)
        word_store(p + 2, _mm_movehl_ps(v, v));
    if (n == 1)
        word_store(p, v);
}
static inline vf vf_load_n(const float *p, size_t n) /* 0 beyond n */
{
    return _mm256_set_m128(n > 4 ? quarter_load(p + 4, n - 4) : _mm_setzero_ps(), quarter_load(p, n > 4 ? 4 : n));
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    quarter_store(p, _mm256_castps256_ps128(v), n > 4 ? 4 : n);
    if (n > 4)
        quarter_store(p + 4, _mm256_extractf128_ps(v, 1), n - 4);
}
static inline vf vf_first_n(vf v, size_t n) { return _mm256_and_ps(v, _mm256_castsi256_ps(vf_mask_n(n))); }

static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); } /* a b + c, rounded once */
static inline vf vf_max_keep(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_min_keep(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline float vf_sum(vf v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* 32 bytes that lie anywhere, as they are */
static inline vf vf_load_bits(const void *p) { return _mm256_loadu_ps(p); }
static inline void vf_store_bits(void *p, vf v) { _mm256_storeu_ps(p, v); }
/* Transposes 8 x 8 words: 4 x 4 inside the halves, then the halves. */
static inline void vf_turn(vf r[VF_N])
{
    vf t[VF_N];
    for (int i = 0; i < VF_N; i += 4) {
        const vf low01 = _mm256_unpacklo_ps(r[i], r[i + 1]), high01 = _mm256_unpackhi_ps(r[i], r[i + 1]);
        const vf low23 = _mm256_unpacklo_ps(r[i + 2], r[i + 3]), high23 = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(low01, low23, 0x44);
        t[i + 1] = _mm256_shuffle_ps(low01, low23, 0xEE);
        t[i + 2] = _mm256_shuffle_ps(high01, high23, 0x44);
        t[i + 3] = _mm256_shuffle_ps(high01, high23, 0xEE);
    }
    for (int j = 0; j < 4; j++) {
        r[j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x20);
        r[4 + j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x31);
    }
}

/* 8 numbers of 16 bits: fp16; bf16, which is the upper half of a float */
static inline vf vf_from_half(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
static inline vf vf_from_brain(const uint16_t *p)
{
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* a, or 0 where x < limit; NaN in x is not below anything */
static inline vf vf_zero_below(vf a, vf x, vf limit) { return _mm256_and_ps(a, _mm256_cmp_ps(x, limit, _CMP_NLT_UQ)); }
/* a 2^n. biased is the float 1.5 * 2^23 + 127 + n: the low bits of its significand are the exponent field of 2^n. */
static inline vf vf_scale_pow2(vf a, vf n, vf biased)
{
    (void)n;
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(biased), 23)));
}
/* (x0 c0 - x1 s0, x1 c0 + x0 s0, ...) for x = (x0, x1, ...), cs = (c0, s0, ...) */
static inline vf vf_rotate(vf x, vf cs)
{
    return _mm256_fmaddsub_ps(x, _mm256_moveldup_ps(cs),
                              _mm256_mul_ps(_mm256_permute_ps(x, 0xB1), _mm256_movehdup_ps(cs)));
}

/* A running maximum that remembers NaN. */
typedef struct vmax {
    vf best, nan;
} vmax;
static inline vmax vmax_start(vf v) { return (vmax){ v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q) }; }
static inline vmax vmax_with(vmax m, vf v)
{
    return (vmax){ _mm256_max_ps(m.best, v), _mm256_or_ps(m.nan, _mm256_cmp_ps(v, v, _CMP_UNORD_Q)) };
}
static inline vmax vmax_join(vmax a, vmax b)
{
    return (vmax){ _mm256_max_ps(a.best, b.best), _mm256_or_ps(a.nan, b.nan) };
}
static inline float vmax_end(vmax m)
{
    if (_mm256_movemask_ps(m.nan) != 0)
        return __builtin_nanf("");
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(m.best), _mm256_extractf128_ps(m.best, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

static inline vd vd_set1(double s) { return _mm256_set1_pd(s); }
static inline vd vd_low(vf v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
static inline vd vd_high(vf v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
static inline vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
static inline vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
static inline double vd_sum(vd v)
{
    const __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}

/* ---- int8: vi = 8 sums of 32 bits ---- */
typedef __m256i vi;
static inline vi vi_set1(int32_t s) { return _mm256_set1_epi32(s); }
static inline vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((__m256i *)(void *)p, v); }
/* As the tails of floats, which only moves bits. */
static inline vi vi_load_n(const int32_t *p, size_t n)
{
    return _mm256_castps_si256(vf_load_n((const float *)(const void *)p, n));
}
static inline void vi_store_n(int32_t *p, vi v, size_t n) { vf_store_n((float *)(void *)p, _mm256_castsi256_ps(v), n); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
/* sum + the four products of each word's unsigned bytes of a and signed bytes of b; without VNNI pairs are added in 16
 * bits, so a's bytes must be at most 127 */
static inline vi vi_dot(vi a, vi b, vi sum)
{
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, a, b);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
#endif
}
/* rounded half to even */
static inline vi vf_round(vf v) { return _mm256_cvtps_epi32(v); }
/* v, which lies in 0 .. 255, as bytes */
static inline void vi_store_u8(uint8_t *p, vi v)
{
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si64(p, _mm_packus_epi16(words, words));
}
static inline void vf_store_u8(uint8_t *p, vf v) { vi_store_u8(p, vf_round(v)); }
/* word with the low byte of v as its byte r, which was 0 */
static inline vi vi_put_byte(vi word, vi v, size_t r)
{
    return _mm256_or_si256(word, _mm256_sllv_epi32(_mm256_and_si256(v, vi_set1(0xFF)), vi_set1((int32_t)(8 * r))));
}
/* v, or a where a is NaN */
static inline vf vf_keep_nan(vf a, vf v) { return _mm256_blendv_ps(v, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
/* c - zero sums, as floats */
static inline vf vf_from_dots(const int32_t *c, const int32_t *sums, int32_t zero)
{
    const __m256i less =
        _mm256_mullo_epi32(_mm256_set1_epi32(zero), _mm256_loadu_si256((const __m256i *)(const void *)sums));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(const void *)c), less));
}

#endif
