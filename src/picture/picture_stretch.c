/* picture_stretch.c: samples of more than 8 bits to 8 bits, as docs/preprocessing.md defines it.
 *
 * Percentiles are exact order statistics found by counting: 65,536 buckets, twice for floats, so one hot pixel at 1e30
 * costs nothing of the resolution. Samples that are NaN or infinite are not counted. All bands share one range, so that
 * colours keep their hue.
 */
#include <math.h>
#include <string.h>
#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

#define N_BUCKETS 65536u

/* What is known about the samples. */
typedef struct range {
    uint64_t n;       /* counted samples */
    float min, max;   /* of them */
    float low, high;  /* the percentiles */
    bool from_8_bits; /* every 16-bit sample is 257 times a byte */
} range;

static uint64_t low_rank(uint64_t n, const st_bitmap_options *o)
{
    return (uint64_t)floor((double)o->low_percent / 100 * (double)(n - 1));
}
static uint64_t high_rank(uint64_t n, const st_bitmap_options *o)
{
    const uint64_t rank = (uint64_t)ceil((double)o->high_percent / 100 * (double)(n - 1));
    return rank < n ? rank : n - 1;
}

/* The bucket that holds the sample of this rank; *rank becomes the rank inside it. */
static uint32_t bucket_of_rank(const uint64_t *count, uint64_t *rank)
{
    uint32_t i = 0;
    while (i < N_BUCKETS - 1 && *rank >= count[i]) *rank -= count[i++];
    return i;
}

/* ------------------------------------------------------------------ integers */

static void measure_counts(range *r, const uint64_t *count, uint64_t n, const st_bitmap_options *o)
{
    uint64_t rank = low_rank(n, o);
    r->n = n;
    r->low = (float)bucket_of_rank(count, &rank);
    rank = high_rank(n, o);
    r->high = (float)bucket_of_rank(count, &rank);
    uint32_t first = 0, last = N_BUCKETS - 1;
    while (!count[first]) first++;
    while (!count[last]) last--;
    r->min = (float)first;
    r->max = (float)last;
    r->from_8_bits = true;
    for (uint32_t v = first; v <= last && r->from_8_bits; v++)
        if (count[v] && (v >> 8) != (v & 255)) r->from_8_bits = false;
}

static void measure_u16(range *r, uint64_t *count, const uint16_t *v, size_t n, const st_bitmap_options *o)
{
    for (size_t i = 0; i < n; i++) count[v[i]]++;
    measure_counts(r, count, n, o);
}

static void measure_u8(range *r, uint64_t *count, const uint8_t *v, size_t n, const st_bitmap_options *o)
{
    for (size_t i = 0; i < n; i++) count[v[i]]++;
    measure_counts(r, count, n, o);
}

/* ------------------------------------------------------------------ floats */

/* Bits whose order as unsigned numbers is the order of the floats. -0 and +0 are made one value first. */
static uint32_t key_of(float f)
{
    uint32_t bits;
    f += 0.0f;
    memcpy(&bits, &f, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float of_key(uint32_t key)
{
    float f;
    const uint32_t bits = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Second pass: the key of the sample of `rank` among those whose high half is `high`. */
static float find_in_bucket(uint64_t *count, const float *v, size_t n, uint32_t high, uint64_t rank)
{
    memset(count, 0, N_BUCKETS * sizeof *count);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        const uint32_t key = key_of(v[i]);
        if (key >> 16 == high) count[key & 0xffffu]++;
    }
    return of_key(high << 16 | bucket_of_rank(count, &rank));
}

static void measure_f32(range *r, uint64_t *count, const float *v, size_t n, const st_bitmap_options *o)
{
    r->min = INFINITY;
    r->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        count[key_of(v[i]) >> 16]++;
        r->n++;
        if (v[i] < r->min) r->min = v[i];
        if (v[i] > r->max) r->max = v[i];
    }
    if (!r->n) return;
    uint64_t rank_low = low_rank(r->n, o), rank_high = high_rank(r->n, o);
    const uint32_t high_half_of_low = bucket_of_rank(count, &rank_low),
                   high_half_of_high = bucket_of_rank(count, &rank_high);
    r->low = find_in_bucket(count, v, n, high_half_of_low, rank_low);
    r->high = find_in_bucket(count, v, n, high_half_of_high, rank_high);
}

/* ------------------------------------------------------------------ the rule */

/* The range of a sensor: what the percentiles enclose is less than half of what the type can hold, or samples lie
 * outside the range that a float picture has by convention. 8-bit pictures kept in 16-bit files, and colour integers,
 * are photographs. */
static bool looks_like_sensor(const st_pic *pic, const range *r)
{
    const double full = (double)pic->full_high - (double)pic->full_low;
    if (pic->kind == ST_PIC_RGB8) return false;
    if (pic->kind == ST_PIC_U16 && (pic->channels > 1 || (pic->bits == 16 && r->from_8_bits))) return false;
    if (pic->kind == ST_PIC_F32 && (r->min < pic->full_low || r->max > pic->full_high)) return true;
    return (double)r->high - (double)r->low < full / 2;
}

static void choose(st_bitmap *out, const st_pic *pic, range *r, const st_bitmap_options *o)
{
    out->low = pic->full_low;
    out->high = pic->full_high;
    if (!r->n || o->stretch == ST_STRETCH_NEVER) return;
    if (o->stretch == ST_STRETCH_AUTO && !looks_like_sensor(pic, r)) return;
    if (!(r->low < r->high)) { /* nearly all samples are equal: the few others are the picture */
        r->low = r->min;
        r->high = r->max;
    }
    if (!(r->low < r->high)) return; /* one value everywhere */
    out->stretched = 1;
    out->low = r->low;
    out->high = r->high;
}

static uint8_t scale(double v, double low, double high)
{
    if (!(v > low)) return 0; /* NaN as well */
    if (v >= high) return 255;
    return (uint8_t)floor((v - low) * 255 / (high - low) + 0.5);
}

static uint8_t integer_to_byte(uint32_t v, const st_bitmap *out, int bits)
{
    if (out->stretched) return scale(v, (double)out->low, (double)out->high);
    return (uint8_t)(bits > 8 ? v >> (bits - 8) : v);
}

static void put(uint8_t *rgb, size_t i, int channels, uint8_t v)
{
    if (channels == 1) memset(rgb + 3 * i, v, 3);
    else rgb[i] = v;
}

static st_status wide_to_rgb(st_bitmap *out, const st_pic *pic, size_t n, uint8_t *table, const char *name,
                             st_error *err)
{
    size_t n_bytes;
    const size_t n_pixels = (size_t)pic->width * pic->height;
    out->rgb = st_mul_size(&n_bytes, n_pixels, 3) ? st_malloc(n_bytes) : NULL;
    if (!out->rgb) return st_fail(err, ST_ERR_NOMEM, "%s: no memory for %u x %u pixels", name, pic->width, pic->height);
    if (pic->kind == ST_PIC_U16) {
        const uint16_t *v = pic->samples;
        for (uint32_t i = 0; i < N_BUCKETS; i++) {
            const uint32_t top = (1u << pic->bits) - 1; /* beyond it nothing occurs */
            table[i] = integer_to_byte(i < top ? i : top, out, pic->bits);
        }
        for (size_t i = 0; i < n; i++) put(out->rgb, i, pic->channels, table[v[i]]);
    } else {
        const float *v = pic->samples;
        for (size_t i = 0; i < n; i++)
            put(out->rgb, i, pic->channels, scale((double)v[i], (double)out->low, (double)out->high));
    }
    return ST_OK;
}

static void stretch_rgb8(st_bitmap *out, st_pic *pic, size_t n, uint8_t *table)
{
    uint8_t *rgb = pic->samples;
    if (out->stretched) {
        for (uint32_t i = 0; i < 256; i++) table[i] = scale(i, (double)out->low, (double)out->high);
        for (size_t i = 0; i < n; i++) rgb[i] = table[rgb[i]];
    }
    out->rgb = rgb;
    pic->samples = NULL;
}

st_status st_pic_to_rgb(st_bitmap *out, st_pic *pic, const st_bitmap_options *opts, const char *name, st_error *err)
{
    st_status status = ST_OK;
    const size_t n = (size_t)pic->width * pic->height * (size_t)pic->channels;
    range r = { 0 };
    out->width = pic->width;
    out->height = pic->height;
    out->low = pic->full_low;
    out->high = pic->full_high;
    if (pic->kind == ST_PIC_RGB8 && opts->stretch != ST_STRETCH_ALWAYS) { /* the usual picture */
        stretch_rgb8(out, pic, n, NULL);
        return ST_OK;
    }
    uint64_t *count = st_calloc(N_BUCKETS, sizeof *count);
    uint8_t *table = st_malloc(N_BUCKETS);
    if (!count || !table) {
        status = st_fail(err, ST_ERR_NOMEM, "%s: no memory to count samples", name);
        goto done;
    }
    if (pic->kind == ST_PIC_U16) measure_u16(&r, count, pic->samples, n, opts);
    else if (pic->kind == ST_PIC_F32) measure_f32(&r, count, pic->samples, n, opts);
    else measure_u8(&r, count, pic->samples, n, opts);
    choose(out, pic, &r, opts);
    if (pic->kind == ST_PIC_RGB8) stretch_rgb8(out, pic, n, table);
    else status = wide_to_rgb(out, pic, n, table, name, err);
done:
    st_free(table);
    st_free(count);
    return status;
}
