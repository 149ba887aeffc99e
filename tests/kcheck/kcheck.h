/* kcheck.h: what a kernel check is written with.
 *
 * A check is kc_begin ... kc_end. In between it takes buffers, fills them, calls the kernel inside KC_CALL and
 * compares. A buffer lies against an unreadable page, at its end or its start, as the placement says; the bytes around
 * it are watched; a sealed buffer cannot be written. A signal inside KC_CALL is a failure of the check, not of the
 * program. The random numbers of a check depend on --seed and its name only.
 */
#ifndef KCHECK_H
#define KCHECK_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* Where the buffers of a check lie: their end, or their start, at the unreadable page; or 1 float after the start. */
typedef enum kc_place { KC_AT_END, KC_AT_START, KC_ODD, KC_N_PLACES } kc_place;
void kc_set_place(kc_place place);

bool kc_begin(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* false: --only leaves this one out */
void kc_end(void); /* looks round all buffers, counts, gives them back */
void kc_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* the check has failed; goes on */
bool kc_failed(void);

float *kc_floats(size_t n);   /* n floats, all bytes 0x99 */
void kc_seal(const float *p); /* the buffer that starts at p is read-only from now on */

double kc_uniform(double low, double high);
int kc_int(int low, int high);
void kc_fill(float *p, size_t n, bool exact); /* exact: integers in [-8, 8]; else reals in (-2, 2) */

/* got is within tol of want; both NaN is fine, and so are equal infinities. `at` is for the message. */
bool kc_near(size_t at, double got, double want, double tol);
bool kc_same(size_t at, float got, float want); /* equal as numbers (0 = -0) or both NaN */

extern sigjmp_buf kc_jump;
void kc_arm(bool on);
void kc_crashed(void);
#define KC_CALL(...)                                                                                                   \
    do {                                                                                                               \
        if (sigsetjmp(kc_jump, 1) == 0) {                                                                              \
            kc_arm(true);                                                                                              \
            __VA_ARGS__;                                                                                               \
            kc_arm(false);                                                                                             \
        } else {                                                                                                       \
            kc_crashed();                                                                                              \
        }                                                                                                              \
    } while (0)

typedef struct kc_options {
    const char *only; /* NULL or a part of the names to run */
    uint64_t seed;
    bool verbose, bench;
    bool small; /* leave out products of more than KC_SMALL multiplications: for emulators */
} kc_options;
#define KC_SMALL 300000u
extern kc_options kc_opts;
void kc_left_out(void); /* --small left something out: it is counted and said */

/* A row length worth trying: round tiles, primes and the model's widths. */
extern const size_t kc_sizes[];
extern const size_t kc_n_sizes;

/* The check files. Each runs everything it has for one table. */
void kc_elementwise(const st_kernels *k);
void kc_reductions(const st_kernels *k);
void kc_gemm(const st_kernels *k);
void kc_int8(const st_kernels *k);
void kc_winograd(const st_kernels *k);
void kc_dispatch(void);

/* One line of --bench: the time of one call at this level. */
void kc_bench_all(const st_kernels *k);
typedef void kc_bench_fn(const st_kernels *k, void *arg);
void kc_bench(const char *name, double work, const char *unit, kc_bench_fn *fn, const st_kernels *k, void *arg);

#endif
