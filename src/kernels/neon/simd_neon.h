/* simd_neon.h: the vector words that tmpl/ is written in, for AArch64: vf = 4 floats, vd = 2 doubles.
 *
 * Words that end in _n take n in 1 .. VF_N-1 and touch n elements only. The `_keep` words give NaN when their last
 * operand is NaN (here: when either is).
 */
#ifndef ST_KERNELS_SIMD_NEON_H
#define ST_KERNELS_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#define FN(op) op##_neon
enum { VF_N = 4, VD_N = 2, GEMM_ROWS = 6, GEMM_VECS = 4 };
typedef float32x4_t vf;
typedef float64x2_t vd;

static inline vf vf_set1(float s) { return vdupq_n_f32(s); }
static inline vf vf_load(const float *p) { return vld1q_f32(p); }
static inline void vf_store(float *p, vf v) { vst1q_f32(p, v); }

static inline vf vf_load_n(const float *p, size_t n) /* 0 beyond n */
{
    const float t[VF_N] = { p[0], n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, 0.0f };
    return vld1q_f32(t);
}
static inline void vf_store_n(float *p, vf v, size_t n)
{
    p[0] = vgetq_lane_f32(v, 0);
    if (n > 1)
        p[1] = vgetq_lane_f32(v, 1);
    if (n > 2)
        p[2] = vgetq_lane_f32(v, 2);
}
static inline vf vf_first_n(vf v, size_t n)
{
    static const uint32_t ones_then_zeros[2 * VF_N] = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX };
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vld1q_u32(ones_then_zeros + VF_N - n)));
}

static inline vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); } /* a b + c, rounded once */
static inline vf vf_max_keep(vf a, vf b) { return vmaxq_f32(a, b); }
static inline vf vf_min_keep(vf a, vf b) { return vminq_f32(a, b); }
static inline float vf_sum(vf v) { return vaddvq_f32(v); }

/* 16 bytes that lie anywhere, as they are */
static inline vf vf_load_bits(const void *p) { return vreinterpretq_f32_u8(vld1q_u8(p)); }
static inline void vf_store_bits(void *p, vf v) { vst1q_u8(p, vreinterpretq_u8_f32(v)); }
static inline vf vf_pairs_low(vf a, vf b)
{
    return vreinterpretq_f32_f64(vzip1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}
static inline vf vf_pairs_high(vf a, vf b)
{
    return vreinterpretq_f32_f64(vzip2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}
/* Transposes 4 x 4 words. */
static inline void vf_turn(vf r[VF_N])
{
    const vf low01 = vzip1q_f32(r[0], r[1]), high01 = vzip2q_f32(r[0], r[1]);
    const vf low23 = vzip1q_f32(r[2], r[3]), high23 = vzip2q_f32(r[2], r[3]);
    r[0] = vf_pairs_low(low01, low23);
    r[1] = vf_pairs_high(low01, low23);
    r[2] = vf_pairs_low(high01, high23);
    r[3] = vf_pairs_high(high01, high23);
}

/* 4 numbers of 16 bits: fp16; bf16, which is the upper half of a float */
static inline vf vf_from_half(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
static inline vf vf_from_brain(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }

/* a, or 0 where x < limit; NaN in x is not below anything */
static inline vf vf_zero_below(vf a, vf x, vf limit)
{
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), vcltq_f32(x, limit)));
}
/* a 2^n. biased is the float 1.5 * 2^23 + 127 + n: the low bits of its significand are the exponent field of 2^n. */
static inline vf vf_scale_pow2(vf a, vf n, vf biased)
{
    (void)n;
    return vmulq_f32(a, vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(biased), 23)));
}
/* (x0 c0 - x1 s0, x1 c0 + x0 s0, ...) for x = (x0, x1, ...), cs = (c0, s0, ...) */
static inline vf vf_rotate(vf x, vf cs)
{
    const vf c = vtrn1q_f32(cs, cs), s = vtrn2q_f32(cs, cs);
    const uint32x4_t minus_even = { 0x80000000u, 0, 0x80000000u, 0 };
    const vf swapped =
        vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(vmulq_f32(vrev64q_f32(x), s)), minus_even));
    return vfmaq_f32(swapped, x, c);
}

/* A running maximum; vmaxq gives NaN when either operand is NaN. */
typedef struct vmax {
    vf best;
} vmax;
static inline vmax vmax_start(vf v) { return (vmax){ v }; }
static inline vmax vmax_with(vmax m, vf v) { return (vmax){ vmaxq_f32(m.best, v) }; }
static inline vmax vmax_join(vmax a, vmax b) { return (vmax){ vmaxq_f32(a.best, b.best) }; }
static inline float vmax_end(vmax m) { return vmaxvq_f32(m.best); }

static inline vd vd_set1(double s) { return vdupq_n_f64(s); }
static inline vd vd_low(vf v) { return vcvt_f64_f32(vget_low_f32(v)); }
static inline vd vd_high(vf v) { return vcvt_high_f64_f32(v); }
static inline vd vd_add(vd a, vd b) { return vaddq_f64(a, b); }
static inline vd vd_sub(vd a, vd b) { return vsubq_f64(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return vfmaq_f64(c, a, b); }
static inline double vd_sum(vd v) { return vaddvq_f64(v); }

/* ---- int8: vi = 4 sums of 32 bits ---- */
typedef int32x4_t vi;
static inline vi vi_set1(int32_t s) { return vdupq_n_s32(s); }
static inline vi vi_load(const int32_t *p) { return vreinterpretq_s32_u8(vld1q_u8((const uint8_t *)p)); }
static inline void vi_store(int32_t *p, vi v) { vst1q_s32(p, v); }
static inline vi vi_load_n(const int32_t *p, size_t n)
{
    const int32_t t[VF_N] = { p[0], n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0 };
    return vld1q_s32(t);
}
static inline void vi_store_n(int32_t *p, vi v, size_t n)
{
    p[0] = vgetq_lane_s32(v, 0);
    if (n > 1)
        p[1] = vgetq_lane_s32(v, 1);
    if (n > 2)
        p[2] = vgetq_lane_s32(v, 2);
}
static inline vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
/* sum + the four products of each word's bytes, a's being at most 127: without SDOT pairs are added in 16 bits, and SDOT takes signed bytes */
static inline vi vi_dot(vi a, vi b, vi sum)
{
    const int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sum, x, y);
#else
    return vpadalq_s16(sum, vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y)));
#endif
}
/* rounded half to even */
static inline vi vf_round(vf v) { return vcvtnq_s32_f32(v); }
/* v, which lies in 0 .. 255, as bytes */
static inline void vi_store_u8(uint8_t *p, vi v)
{
    const uint16x4_t words = vqmovun_s32(v);
    vst1_lane_u32((uint32_t *)(void *)p, vreinterpret_u32_u8(vqmovn_u16(vcombine_u16(words, words))), 0);
}
static inline void vf_store_u8(uint8_t *p, vf v) { vi_store_u8(p, vf_round(v)); }
/* word with the low byte of v as its byte r, which was 0 */
static inline vi vi_put_byte(vi word, vi v, size_t r)
{
    return vorrq_s32(word, vshlq_s32(vandq_s32(v, vi_set1(0xFF)), vi_set1((int32_t)(8 * r))));
}
/* v, or a where a is NaN: vmaxq has kept it */
static inline vf vf_keep_nan(vf a, vf v)
{
    (void)a;
    return v;
}
/* c - zero sums, as floats */
static inline vf vf_from_dots(const int32_t *c, const int32_t *sums, int32_t zero)
{
    return vcvtq_f32_s32(vmlsq_n_s32(vld1q_s32(c), vld1q_s32(sums), zero));
}

#endif
