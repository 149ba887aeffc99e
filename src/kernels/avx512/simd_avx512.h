/* simd_avx512.h: the vector words that tmpl/ is written in, for AVX-512 (F, BW, DQ, VL): vf = 16 floats,
 * vd = 8 doubles.
 *
 * Words that end in _n take n in 1 .. VF_N-1 and touch n elements only. Which operand survives when one is NaN is part
 * of the meaning: the `_keep` words give NaN when their last operand is NaN.
 */
#ifndef ST_KERNELS_SIMD_AVX512_H
#define ST_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#define FN(op) op##_avx512
enum { VF_N = 16, VD_N = 8, GEMM_ROWS = 12, GEMM_VECS = 2 };
typedef __m512 vf;
typedef __m512d vd;

static inline vf vf_set1(float s) { return _mm512_set1_ps(s); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }

static inline __mmask16 vf_mask_n(size_t n) { return (__mmask16)((1u << n) - 1u); }
static inline vf vf_load_n(const float *p, size_t n) { return _mm512_maskz_loadu_ps(vf_mask_n(n), p); } /* 0 beyond n */
static inline void vf_store_n(float *p, vf v, size_t n) { _mm512_mask_storeu_ps(p, vf_mask_n(n), v); }
static inline vf vf_first_n(vf v, size_t n) { return _mm512_maskz_mov_ps(vf_mask_n(n), v); }

static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); } /* a b + c, rounded once */
static inline vf vf_max_keep(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_min_keep(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline float vf_sum(vf v) { return _mm512_reduce_add_ps(v); }

/* 64 bytes that lie anywhere, as they are */
static inline vf vf_load_bits(const void *p) { return _mm512_loadu_ps(p); }
static inline void vf_store_bits(void *p, vf v) { _mm512_storeu_ps(p, v); }
static inline vf vf_pairs_low(vf a, vf b)
{
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
static inline vf vf_pairs_high(vf a, vf b)
{
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
/* Transposes 16 x 16 words: 4 x 4 inside the lanes of 128 bits, then the lanes. */
static inline void vf_turn(vf r[VF_N])
{
    vf t[VF_N];
    for (int i = 0; i < VF_N; i += 4) {
        const vf low01 = _mm512_unpacklo_ps(r[i], r[i + 1]), high01 = _mm512_unpackhi_ps(r[i], r[i + 1]);
        const vf low23 = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), high23 = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = vf_pairs_low(low01, low23);
        t[i + 1] = vf_pairs_high(low01, low23);
        t[i + 2] = vf_pairs_low(high01, high23);
        t[i + 3] = vf_pairs_high(high01, high23);
    }
    for (int j = 0; j < 4; j++) {
        const vf even = _mm512_shuffle_f32x4(t[j], t[4 + j], 0x88), odd = _mm512_shuffle_f32x4(t[j], t[4 + j], 0xDD);
        const vf even2 = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0x88), odd2 = _mm512_shuffle_f32x4(t[8 + j], t[12 + j], 0xDD);
        r[j] = _mm512_shuffle_f32x4(even, even2, 0x88);
        r[4 + j] = _mm512_shuffle_f32x4(odd, odd2, 0x88);
        r[8 + j] = _mm512_shuffle_f32x4(even, even2, 0xDD);
        r[12 + j] = _mm512_shuffle_f32x4(odd, odd2, 0xDD);
    }
}

/* 16 numbers of 16 bits: fp16; bf16, which is the upper half of a float */
static inline vf vf_from_half(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
static inline vf vf_from_brain(const uint16_t *p)
{
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* a, or 0 where x < limit; NaN in x is not below anything */
static inline vf vf_zero_below(vf a, vf x, vf limit)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), a);
}
/* a 2^n */
static inline vf vf_scale_pow2(vf a, vf n, vf biased)
{
    (void)biased;
    return _mm512_scalef_ps(a, n);
}
/* (x0 c0 - x1 s0, x1 c0 + x0 s0, ...) for x = (x0, x1, ...), cs = (c0, s0, ...) */
static inline vf vf_rotate(vf x, vf cs)
{
    return _mm512_fmaddsub_ps(x, _mm512_moveldup_ps(cs),
                              _mm512_mul_ps(_mm512_permute_ps(x, 0xB1), _mm512_movehdup_ps(cs)));
}

/* A running maximum that remembers NaN. */
typedef struct vmax {
    vf best;
    __mmask16 nan;
} vmax;
static inline vmax vmax_start(vf v) { return (vmax){ v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) }; }
static inline vmax vmax_with(vmax m, vf v)
{
    return (vmax){ _mm512_max_ps(m.best, v), _kor_mask16(m.nan, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q)) };
}
static inline vmax vmax_join(vmax a, vmax b)
{
    return (vmax){ _mm512_max_ps(a.best, b.best), _kor_mask16(a.nan, b.nan) };
}
static inline float vmax_end(vmax m) { return m.nan != 0 ? __builtin_nanf("") : _mm512_reduce_max_ps(m.best); }

static inline vd vd_set1(double s) { return _mm512_set1_pd(s); }
static inline vd vd_low(vf v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
static inline vd vd_high(vf v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
static inline vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
static inline vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
static inline double vd_sum(vd v) { return _mm512_reduce_add_pd(v); }

/* ---- int8: vi = 16 sums of 32 bits ---- */
typedef __m512i vi;
static inline vi vi_set1(int32_t s) { return _mm512_set1_epi32(s); }
static inline vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(int32_t *p, vi v) { _mm512_storeu_si512(p, v); }
static inline vi vi_load_n(const int32_t *p, size_t n) { return _mm512_maskz_loadu_epi32(vf_mask_n(n), p); }
static inline void vi_store_n(int32_t *p, vi v, size_t n) { _mm512_mask_storeu_epi32(p, vf_mask_n(n), v); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
/* sum + the four products of each word's unsigned bytes of a and signed bytes of b; without VNNI pairs are added in 16
 * bits, so a's bytes must be at most 127 */
static inline vi vi_dot(vi a, vi b, vi sum)
{
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sum, a, b);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
#endif
}
/* rounded half to even */
static inline vi vf_round(vf v) { return _mm512_cvtps_epi32(v); }
/* v, which lies in 0 .. 255, as bytes */
static inline void vi_store_u8(uint8_t *p, vi v) { _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtusepi32_epi8(v)); }
static inline void vf_store_u8(uint8_t *p, vf v) { vi_store_u8(p, vf_round(v)); }
/* word with the low byte of v as its byte r, which was 0 */
static inline vi vi_put_byte(vi word, vi v, size_t r)
{
    return _mm512_or_si512(word, _mm512_sllv_epi32(_mm512_and_si512(v, vi_set1(0xFF)), vi_set1((int32_t)(8 * r))));
}
/* v, or a where a is NaN */
static inline vf vf_keep_nan(vf a, vf v) { return _mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a); }
/* c - zero sums, as floats */
static inline vf vf_from_dots(const int32_t *c, const int32_t *sums, int32_t zero)
{
    const __m512i less = _mm512_mullo_epi32(_mm512_set1_epi32(zero), _mm512_loadu_si512(sums));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(c), less));
}

#endif
