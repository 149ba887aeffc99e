/* check_gemm.c: the matrix product: small integers first (any order of sums gives the same bits), then reals against
 * double, then NaN and infinity, k = 0, strides, and that bits depend on k and the numbers alone: not on where the
 * matrices lie, the thread, what lies beside a row, or whether B is packed.
 *
 * Bound of a real product: (2 + 2 sqrt k) eps sum |a b|, the statistical form of the error of k products added in any
 * order.
 */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kcheck.h"

typedef struct shape {
    bool trans_b;
    size_t m, n, k;
} shape;

/* One product with its operands. Rows of a, b, c are lda, ldb, ldc floats apart; the gaps hold NaN (a, b) or filler
 * (c). */
typedef struct product {
    shape s;
    size_t lda, ldb, ldc;
    float *a, *b, *c;
    float *start;       /* [m, n] c before the call */
    double *want, *mag; /* [m, n] exact result and the sum of magnitudes */
    bool accumulate;
} product;

static void *need(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        abort();
    return p;
}

static size_t b_rows(const shape *s) { return s->trans_b ? s->n : s->k; }
static size_t b_cols(const shape *s) { return s->trans_b ? s->k : s->n; }
static size_t extent(size_t rows, size_t cols, size_t ld)
{
    return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
}

static float *make_matrix(size_t rows, size_t cols, size_t ld, bool exact)
{
    const size_t n = extent(rows, cols, ld);
    float *p = kc_floats(n);
    for (size_t i = 0; i < n; i++)
        p[i] = NAN;
    for (size_t i = 0; n > 0 && i < rows; i++)
        kc_fill(p + i * ld, cols, exact);
    return p;
}

/* want and mag of the product as it stands: rows of B are walked in order, which the compiler makes fast. */
static void compute_want(product *p)
{
    const shape *s = &p->s;
    for (size_t i = 0; i < s->m; i++) {
        double *want = p->want + i * s->n, *mag = p->mag + i * s->n;
        for (size_t j = 0; j < s->n; j++) {
            want[j] = p->accumulate ? (double)p->start[i * s->n + j] : 0.0;
            mag[j] = fabs(want[j]);
        }
        for (size_t kk = 0; kk < s->k; kk++) {
            const double a = (double)p->a[i * p->lda + kk];
            for (size_t j = 0; j < s->n; j++) {
                const double t = a * (double)(s->trans_b ? p->b[j * p->ldb + kk] : p->b[kk * p->ldb + j]);
                want[j] += t;
                mag[j] += fabs(t);
            }
        }
    }
}

static void make_product(product *p, shape s, size_t pad, bool accumulate, bool exact)
{
    *p = (product){
        .s = s, .lda = s.k + pad, .ldb = b_cols(&s) + 2 * pad, .ldc = s.n + 3 * pad, .accumulate = accumulate
    };
    if (p->lda == 0)
        p->lda = 1;
    if (p->ldb == 0)
        p->ldb = 1;
    p->a = make_matrix(s.m, s.k, p->lda, exact);
    p->b = make_matrix(b_rows(&s), b_cols(&s), p->ldb, exact);
    p->c = kc_floats(extent(s.m, s.n, p->ldc));
    p->start = need(s.m * s.n, sizeof(float));
    p->want = need(s.m * s.n, sizeof(double));
    p->mag = need(s.m * s.n, sizeof(double));
    kc_fill(p->start, s.m * s.n, exact);
    for (size_t i = 0; i < s.m && accumulate; i++)
        memcpy(p->c + i * p->ldc, p->start + i * s.n, s.n * sizeof(float));
}

static void free_product(product *p)
{
    free(p->start);
    free(p->want);
    free(p->mag);
}

static void call(const st_kernels *k, const product *p)
{
    kc_seal(p->a);
    kc_seal(p->b);
    KC_CALL(k->gemm(p->s.trans_b, p->s.m, p->s.n, p->s.k, p->a, p->lda, p->b, p->ldb, p->accumulate, p->c, p->ldc));
}

static void compare(const product *p, bool exact)
{
    const shape *s = &p->s;
    const double factor = exact ? 0.0 : (2.0 + 2.0 * sqrt((double)s->k + 1.0)) * FLT_EPSILON;
    for (size_t i = 0; i < s->m; i++) {
        for (size_t j = 0; j < s->n; j++) {
            if (!kc_near(i * s->n + j, (double)p->c[i * p->ldc + j], p->want[i * s->n + j],
                         factor * p->mag[i * s->n + j]))
                return;
        }
    }
    for (size_t at = 0; at < extent(s->m, s->n, p->ldc); at++) {
        static const unsigned char filler[sizeof(float)] = { 0x99, 0x99, 0x99, 0x99 };
        if (at % p->ldc >= s->n && memcmp(p->c + at, filler, sizeof filler) != 0) {
            kc_fail("c: the gap after row %zu was written", at / p->ldc);
            return;
        }
    }
}

/* The same product with B packed, both in two pieces where it has more than one panel: the same bits. */
static void check_packed(const st_kernels *k, const product *p)
{
    const shape *s = &p->s;
    const size_t first = (s->n / 2 + k->gemm_panel - 1) / k->gemm_panel * k->gemm_panel;
    const size_t split = first < s->n ? first : s->n, rest = s->n - split;
    const volatile size_t n_c = extent(s->m, s->n, p->ldc); /* volatile: KC_CALL may jump */
    float *packed = kc_floats(st_packed_floats(k, s->n, s->k)), *c = kc_floats(n_c);
    for (size_t i = 0; i < s->m && p->accumulate; i++)
        memcpy(c + i * p->ldc, p->start + i * s->n, s->n * sizeof(float));
    KC_CALL(k->gemm_pack(packed, s->trans_b, split, s->k, p->b, p->ldb));
    KC_CALL(k->gemm_packed(s->m, split, s->k, p->a, p->lda, packed, p->accumulate, c, p->ldc));
    if (rest > 0) {
        KC_CALL(k->gemm_pack(packed + split * s->k, s->trans_b, rest, s->k, p->b + (s->trans_b ? split * p->ldb : split), p->ldb));
        kc_seal(packed);
        KC_CALL(k->gemm_packed(s->m, rest, s->k, p->a, p->lda, packed + split * s->k, p->accumulate, c + split, p->ldc));
    }
    if (n_c > 0 && memcmp(c, p->c, n_c * sizeof *c) != 0)
        kc_fail("packed: other bits, or a gap was written");
}

static bool begin(const st_kernels *k, shape s, const char *what)
{
    return kc_begin("gemm %s %c %zux%zux%zu %s", k->gemm_name, s.trans_b ? 'T' : 'N', s.m, s.n, s.k, what);
}

static void check_shape(const st_kernels *k, shape s, size_t pad)
{
    for (int how = 0; how < 4; how++) {
        static const char *const names[] = { "exact", "exact, accumulated", "real", "real, accumulated" };
        if (!begin(k, s, names[how]))
            continue;
        product p;
        make_product(&p, s, pad, how % 2, how < 2);
        compute_want(&p);
        call(k, &p);
        compare(&p, how < 2);
        check_packed(k, &p);
        free_product(&p);
        kc_end();
    }
}

/* NaN in one row of a spoils that row, infinity in one column of B that column, and nothing else. */
static void check_special(const st_kernels *k, shape s)
{
    if (!begin(k, s, "special"))
        return;
    product p;
    make_product(&p, s, 3, false, false);
    const size_t row = (size_t)kc_int(0, (int)s.m - 1), col = (size_t)kc_int(0, (int)s.n - 1), kk = s.k - 1;
    p.a[row * p.lda + (size_t)kc_int(0, (int)s.k - 1)] = NAN;
    p.b[s.trans_b ? col * p.ldb + kk : kk * p.ldb + col] = -INFINITY;
    compute_want(&p);
    call(k, &p);
    for (size_t at = 0; at < s.m * s.n; at++) {
        const float got = p.c[at / s.n * p.ldc + at % s.n];
        if (at / s.n == row || at % s.n == col)
            kc_near(at, (double)got, p.want[at], 0.0);
        else if (!isfinite(got))
            kc_fail("row %zu, column %zu: %g", at / s.n, at % s.n, (double)got);
    }
    free_product(&p);
    kc_end();
}

/* ---------------------------------------------------------------- the same bits */

typedef struct again {
    const st_kernels *k;
    const product *p;
    size_t shift; /* floats that the operands are moved by */
    bool differs;
} again;

static float *moved(const float *from, size_t n, size_t shift)
{
    float *p = need(n + shift + 16, sizeof(float));
    memcpy(p + shift, from, n * sizeof(float));
    return p;
}

/* The product once more with its operands copied elsewhere. */
static void *run_again(void *arg)
{
    again *g = arg;
    const product *p = g->p;
    const size_t n_a = extent(p->s.m, p->s.k, p->lda), n_b = extent(b_rows(&p->s), b_cols(&p->s), p->ldb);
    float *a = moved(p->a, n_a, g->shift), *b = moved(p->b, n_b, g->shift * 5 % 16),
          *c = need(p->s.m * p->ldc + 16, sizeof(float));
    float *out = c + g->shift * 3 % 16;
    g->k->gemm(p->s.trans_b, p->s.m, p->s.n, p->s.k, a + g->shift, p->lda, b + g->shift * 5 % 16, p->ldb, false, out,
               p->ldc);
    for (size_t i = 0; i < p->s.m; i++)
        g->differs |= memcmp(out + i * p->ldc, p->c + i * p->ldc, p->s.n * sizeof(float)) != 0;
    free(a);
    free(b);
    free(c);
    return NULL;
}

static void check_same_bits(const st_kernels *k, shape s)
{
    if (!begin(k, s, "same bits"))
        return;
    product p;
    make_product(&p, s, 0, false, false);
    call(k, &p);
    for (size_t shift = 0; shift < 16 && !kc_failed(); shift += 2) {
        again runs[2] = { { k, &p, shift, false }, { k, &p, shift + 1, false } };
        pthread_t threads[2];
        for (size_t t = 0; t < 2; t++) {
            if (pthread_create(&threads[t], NULL, run_again, &runs[t]) != 0)
                abort();
        }
        for (size_t t = 0; t < 2; t++) {
            pthread_join(threads[t], NULL);
            if (runs[t].differs)
                kc_fail("other bits when the operands lie %zu floats further, on another thread", shift + t);
        }
    }
    free_product(&p);
    kc_end();
}

/* A few rows by bᵀ, which are added up in an order of their own. */
static void check_few(const st_kernels *k, shape s)
{
    if (!begin(k, s, "few rows"))
        return;
    product p;
    make_product(&p, s, 2, false, false);
    compute_want(&p);
    kc_seal(p.a);
    kc_seal(p.b);
    KC_CALL(k->gemm_few(s.m, s.n, s.k, p.a, p.lda, p.b, p.ldb, p.c, p.ldc));
    compare(&p, false);
    free_product(&p);
    kc_end();
}

/* A row's bits do not depend on how many rows or columns there are beside it. */
static void check_parts(const st_kernels *k, shape s)
{
    if (!begin(k, s, "parts"))
        return;
    product p;
    make_product(&p, s, 1, false, false);
    call(k, &p);
    float *c = kc_floats(1);
    for (size_t row = 0; row < s.m && !kc_failed(); row += 1 + row % 7) {
        const volatile size_t col = row * 5 % s.n; /* volatile: KC_CALL may jump */
        KC_CALL(k->gemm(s.trans_b, 1, 1, s.k, p.a + row * p.lda, p.lda, p.b + (s.trans_b ? col * p.ldb : col), p.ldb, false, c, 1));
        if (memcmp(c, p.c + row * p.ldc + col, sizeof *c) != 0)
            kc_fail("row %zu, column %zu: %g alone, %g beside others", row, col, (double)c[0], (double)p.c[row * p.ldc + col]);
    }
    free_product(&p);
    kc_end();
}

/* Rows that lie ST_GEMM_STEP apart are read where they are: the same bits as of rows that are copied. */
static void check_step(const st_kernels *k, shape s)
{
    if (!begin(k, s, "rows in place"))
        return;
    product p;
    make_product(&p, s, 0, false, false);
    call(k, &p);
    float *a = kc_floats(extent(s.m, s.k, ST_GEMM_STEP)), *c = kc_floats(s.m * s.n);
    for (size_t i = 0; i < s.m; i++)
        memcpy(a + i * ST_GEMM_STEP, p.a + i * p.lda, s.k * sizeof *a);
    KC_CALL(k->gemm(s.trans_b, s.m, s.n, s.k, a, ST_GEMM_STEP, p.b, p.ldb, false, c, s.n));
    if (memcmp(c, p.c, s.m * s.n * sizeof *c) != 0)
        kc_fail("other bits");
    free_product(&p);
    kc_end();
}

/* ---------------------------------------------------------------- shapes */

/* What the model asks for: row tiles of the trunk (qkv, projection, MLP), attention of a window and of the whole grid,
 * convolutions, decoder and text rows, one token. */
static const shape model_shapes[] = {
    { true, 96, 3072, 64 },  { true, 96, 576, 64 },   { false, 96, 64, 576 },  { true, 96, 1024, 256 },
    { true, 64, 256, 1024 }, { true, 96, 32, 5184 },  { false, 32, 32, 5184 }, { true, 201, 256, 256 },
    { true, 201, 201, 32 },  { false, 201, 32, 201 }, { true, 201, 300, 32 },  { true, 32, 1024, 512 },
    { true, 1, 256, 256 },   { true, 1, 1024, 300 },  { true, 4, 512, 128 },   { true, 8, 256, 2304 },
    { true, 96, 256, 9 },
};

static void check_unless_large(const st_kernels *k, shape s, size_t pad)
{
    if (kc_opts.small && s.m * s.n * s.k > KC_SMALL)
        kc_left_out();
    else
        check_shape(k, s, pad);
}

/* Every combination of sizes around the tiles of all levels, small k; then single sizes around the tiles, the blocks of
 * k. */
static void check_tiles(const st_kernels *k)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 15, 16, 17, 24, 25, 31, 32, 33, 48, 49 };
    static const size_t depths[] = { 1, 2, 7, 16, 31, 64, 255, 256, 257, 513, 1031 };
    const size_t n_sizes = sizeof sizes / sizeof sizes[0];
    for (size_t i = 0; i < n_sizes; i++) {
        for (size_t j = 0; j < n_sizes; j++) {
            const shape s = { (i + j) % 2, sizes[i], sizes[j], 1 + (i * 5 + j * 3) % 19 };
            check_shape(k, s, (i + j / 2) % 3);
        }
    }
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
        for (int trans = 0; trans < 2; trans++) {
            check_unless_large(k, (shape){ trans, 13, 33, depths[d] }, d % 2);
            check_unless_large(k, (shape){ trans, 97, 101, depths[d] }, d % 3);
            check_unless_large(k, (shape){ trans, 1, 47, depths[d] }, 1);
            check_unless_large(k, (shape){ trans, 47, 1, depths[d] }, 1);
        }
    }
}

void kc_gemm(const st_kernels *k)
{
    for (int place = 0; place < KC_N_PLACES; place++) {
        kc_set_place((kc_place)place);
        for (int trans = 0; trans < 2; trans++) {
            check_shape(k, (shape){ trans, 3, 5, 0 }, 2);
            check_shape(k, (shape){ trans, 0, 5, 7 }, 0);
            check_shape(k, (shape){ trans, 3, 0, 7 }, 0);
            check_special(k, (shape){ trans, 5, 9, 4 });
            check_special(k, (shape){ trans, 17, 40, 65 });
            check_special(k, (shape){ trans, 13, 70, 300 });
            for (size_t m = 0; trans && m <= ST_GEMM_FEW_ROWS; m++) {
                check_few(k, (shape){ true, m, 1, 256 });
                check_few(k, (shape){ true, m, 37, 1 + 67 * m });
            }
            check_parts(k, (shape){ trans, 101, 70, 300 });
            check_step(k, (shape){ trans, 99, 45, 257 });
        }
        check_tiles(k);
    }
    kc_set_place(KC_AT_END);
    for (size_t i = 0; i < sizeof model_shapes / sizeof model_shapes[0]; i++) {
        check_unless_large(k, model_shapes[i], 0);
        check_unless_large(k, model_shapes[i], 8);
        if (!kc_opts.small)
            check_same_bits(k, model_shapes[i]);
    }
    check_same_bits(k, (shape){ true, 7, 19, 33 });
    check_same_bits(k, (shape){ false, 21, 35, 50 });
}
