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

/* ---- int8 ---- */
/* v, which lies in 0 .. 255, rounded half to even, as bytes */
static inline void vf_store_u8(uint8_t *p, vf v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(v)));
}
/* c - zero sums, as floats */
static inline vf vf_from_dots(const int32_t *c, const int32_t *sums, int32_t zero)
{
    const __m512i less = _mm512_mullo_epi32(_mm512_set1_epi32(zero), _mm512_loadu_si512(sums));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(c), less));
}

#endif
