/* gemm_tmpl.h: the matrix products, in the words of simd_<level>.h and with the panels of pack_tmpl.h, which come first.
 * Included once for floats; and, with GEMM_INT8 defined, once more for bytes. simd_<level>.h gives
 *   FN(op), VF_N, vf, vf_*  and, for bytes, vi, vi_*
 *   GEMM_ROWS, GEMM_VECS    the tile: GEMM_ROWS rows of c by GEMM_VECS vectors of columns, all in registers with room
 *                           for B's vectors and one of A; GEMM_BLOCK_ROWS is a multiple of GEMM_ROWS
 *
 * A block of A (GEMM_BLOCK_ROWS rows, GEMM_K words deep) is copied to the stack with rows ST_GEMM_STEP words apart: a step
 * known to the compiler, and none that makes rows meet in the same lines of the cache. Rows that lie so already are read
 * where they are. Per panel of B, the block's tiles are computed with the panel in the L1 cache (Goto & van de Geijn 2008,
 * with one level of blocking less).
 *
 * Floats: each c[i][j] is a sum of blocks of products, each in order of k with fused multiply-adds, then the blocks in
 * order: bits depend on k alone, not on m, n or the tile. Bytes: exact.
 */
#ifndef GEMM_INT8
#define G(op) FN(gemm_##op)
#define G_WORD float
#define G_VEC vf
#define G_ZERO vf_set1(0.0f)
#define G_A(p) vf_set1(*(p))
#define G_LOAD vf_load
#define G_LOAD_N vf_load_n
#define G_STORE vf_store
#define G_STORE_N vf_store_n
#define G_ADD vf_add
#define G_MULTIPLY_ADD vf_fma
#else
#define G(op) FN(gemm_u8s8_##op)
#define G_WORD int32_t
#define G_VEC vi
#define G_ZERO vi_set1(0)
#define G_A(p) vi_set1(*(p))
#define G_LOAD vi_load
#define G_LOAD_N vi_load_n
#define G_STORE vi_store
#define G_STORE_N vi_store_n
#define G_ADD vi_add
#define G_MULTIPLY_ADD vi_dot
#endif

#ifndef ST_GEMM_TMPL_ONCE
#define ST_GEMM_TMPL_ONCE
enum { GEMM_BLOCK_ROWS = 96, GEMM_STEP = ST_GEMM_STEP };
#endif

/* n_rows rows of c, n_cols <= GEMM_COLS columns; n_rows is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void G(tile)(size_t n_rows, G_WORD *c, size_t ldc, size_t n_cols,
                                                          const G_WORD *a, const G_WORD *panel, size_t n_k, bool add)
{
    G_VEC acc[GEMM_ROWS][GEMM_VECS];
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++)
            acc[i][v] = G_ZERO;
    }
    for (const G_WORD *end = a + n_k; a < end; a++, panel += GEMM_COLS) {
        G_VEC bv[GEMM_VECS];
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++)
            bv[v] = G_LOAD(panel + v * VF_N);
        GEMM_UNROLL
        for (size_t i = 0; i < n_rows; i++) {
            const G_VEC av = G_A(a + i * GEMM_STEP);
            GEMM_UNROLL
            for (size_t v = 0; v < GEMM_VECS; v++)
                acc[i][v] = G_MULTIPLY_ADD(av, bv[v], acc[i][v]);
        }
    }
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        GEMM_UNROLL
        for (size_t v = 0; v < GEMM_VECS; v++) {
            G_WORD *out = c + i * ldc + v * VF_N;
            if (n_cols >= (v + 1) * VF_N) {
                G_STORE(out, add ? G_ADD(G_LOAD(out), acc[i][v]) : acc[i][v]);
            } else if (n_cols > v * VF_N) {
                const size_t n = n_cols - v * VF_N;
                G_STORE_N(out, add ? G_ADD(G_LOAD_N(out, n), acc[i][v]) : acc[i][v], n);
            }
        }
    }
}

/* Functions of their own, so that the loop over k has all registers. */
static __attribute__((noinline)) void G(tile_whole)(G_WORD *c, size_t ldc, size_t n_cols, const G_WORD *a,
                                                    const G_WORD *panel, size_t n_k, bool add)
{
    G(tile)(GEMM_ROWS, c, ldc, n_cols, a, panel, n_k, add);
}
static __attribute__((noinline)) void G(tile_of_4)(G_WORD *c, size_t ldc, size_t n_cols, const G_WORD *a,
                                                   const G_WORD *panel, size_t n_k, bool add)
{
    G(tile)(4, c, ldc, n_cols, a, panel, n_k, add);
}
static __attribute__((noinline)) void G(tile_of_1)(G_WORD *c, size_t ldc, size_t n_cols, const G_WORD *a,
                                                   const G_WORD *panel, size_t n_k, bool add)
{
    G(tile)(1, c, ldc, n_cols, a, panel, n_k, add);
}

/* All rows of a block by one panel. */
static void G(panel)(size_t m, G_WORD *c, size_t ldc, size_t n_cols, const G_WORD *a, const G_WORD *panel, size_t n_k,
                     bool add)
{
    size_t i = 0;
    for (; i + GEMM_ROWS <= m; i += GEMM_ROWS)
        G(tile_whole)(c + i * ldc, ldc, n_cols, a + i * GEMM_STEP, panel, n_k, add);
    for (; i + 4 <= m; i += 4)
        G(tile_of_4)(c + i * ldc, ldc, n_cols, a + i * GEMM_STEP, panel, n_k, add);
    for (; i < m; i++)
        G(tile_of_1)(c + i * ldc, ldc, n_cols, a + i * GEMM_STEP, panel, n_k, add);
}

/* The block of rows a, n_words deep, of which n_bytes are there; `room` when they have to be copied. */
static inline const G_WORD *G(block)(G_WORD *room, const unsigned char *a, size_t ld_bytes, size_t m, size_t n_bytes,
                                     size_t n_words)
{
    if (ld_bytes == GEMM_STEP * sizeof(G_WORD) && n_bytes == 4 * n_words && (uintptr_t)a % sizeof(G_WORD) == 0)
        return (const G_WORD *)(const void *)a;
    for (size_t i = 0; i < m; i++) {
        unsigned char *to = (unsigned char *)(room + i * GEMM_STEP);
        const unsigned char *from = a + i * ld_bytes;
        size_t at = 0;
        for (; at + 4 * VF_N <= n_bytes; at += 4 * VF_N)
            vf_store_bits(to + at, vf_load_bits(from + at));
        memcpy(to + at, from + at, n_bytes - at);
        memset(to + n_bytes, 0, 4 * n_words - n_bytes);
    }
    return room;
}

/* What a product is made of, in bytes and words: k_bytes of each row, n_words with the padding of packed panels. */
typedef struct G(job) {
    size_t m, n, k_bytes, n_words;
    const unsigned char *a; /* rows ld_a bytes apart */
    size_t ld_a;
    const G_WORD *packed; /* panels, or NULL: then they are made one by one of b */
    const unsigned char *b;
    size_t ld_b;
    bool trans_b, accumulate;
    G_WORD *c;
    size_t ldc;
} G(job);

/* The panel of columns j0 .. and words k0 .. k0 + n_k - 1; made in `room` unless it is packed. */
static inline const G_WORD *G(find_panel)(const G(job) *p, G_WORD *room, size_t j0, size_t n_cols, size_t k0, size_t n_k)
{
    if (p->packed)
        return p->packed + j0 * p->n_words + k0 * GEMM_COLS;
    const size_t n_bytes = p->k_bytes - 4 * k0 < 4 * n_k ? p->k_bytes - 4 * k0 : 4 * n_k;
    if (p->trans_b)
        FN(pack_panel_turned)((float *)(void *)room, p->b + j0 * p->ld_b + 4 * k0, p->ld_b, n_cols, n_bytes, n_k);
    else
        FN(pack_panel_rows)((float *)(void *)room, (const float *)(const void *)(p->b + k0 * p->ld_b) + j0, p->ld_b / 4, n_cols, n_k);
    return room;
}

/* The block of rows i0 .. and words k0 .. by all panels. */
static void G(rows)(const G(job) *p, size_t i0, size_t k0, G_WORD *a_room, G_WORD *panel_room)
{
    const size_t m = p->m - i0 < GEMM_BLOCK_ROWS ? p->m - i0 : GEMM_BLOCK_ROWS;
    const size_t n_k = p->n_words - k0 < GEMM_K ? p->n_words - k0 : GEMM_K;
    const size_t n_bytes = p->k_bytes - 4 * k0 < 4 * n_k ? p->k_bytes - 4 * k0 : 4 * n_k;
    const G_WORD *a = G(block)(a_room, p->a + i0 * p->ld_a + 4 * k0, p->ld_a, m, n_bytes, n_k);
    for (size_t j0 = 0; j0 < p->n; j0 += GEMM_COLS) {
        const size_t n_cols = p->n - j0 < GEMM_COLS ? p->n - j0 : GEMM_COLS;
        G(panel)(m, p->c + i0 * p->ldc + j0, p->ldc, n_cols, a, G(find_panel)(p, panel_room, j0, n_cols, k0, n_k), n_k,
                 p->accumulate || k0 != 0);
    }
}

/* Blocks of k go outside: the panels of one stay in the L2 cache for all rows. */
static void G(product)(const G(job) *p)
{
    G_WORD a_room[GEMM_BLOCK_ROWS * GEMM_STEP] __attribute__((aligned(64)));
    G_WORD panel_room[GEMM_K * GEMM_COLS] __attribute__((aligned(64)));
    for (size_t i = 0; p->n_words == 0 && !p->accumulate && i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++)
            p->c[i * p->ldc + j] = 0;
    }
    for (size_t k0 = 0; k0 < p->n_words; k0 += GEMM_K) {
        for (size_t i0 = 0; i0 < p->m; i0 += GEMM_BLOCK_ROWS)
            G(rows)(p, i0, k0, a_room, panel_room);
    }
}

#ifndef GEMM_INT8
/* n_rows rows of a by n_cols rows of bᵀ, along k: a sum for every lane, which are added up at the end. Both constants. */
static inline __attribute__((always_inline)) void FN(dots)(size_t n_rows, size_t n_cols, size_t k, const float *a,
                                                           size_t lda, const float *b, size_t ldb, float *c, size_t ldc)
{
    vf acc[ST_GEMM_FEW_ROWS][2];
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        GEMM_UNROLL
        for (size_t j = 0; j < n_cols; j++)
            acc[i][j] = vf_set1(0.0f);
    }
    for (size_t kk = 0; kk < k; kk += VF_N) {
        const size_t left = k - kk;
        vf bv[2];
        GEMM_UNROLL
        for (size_t j = 0; j < n_cols; j++)
            bv[j] = left >= VF_N ? vf_load(b + j * ldb + kk) : vf_load_n(b + j * ldb + kk, left);
        GEMM_UNROLL
        for (size_t i = 0; i < n_rows; i++) {
            const vf av = left >= VF_N ? vf_load(a + i * lda + kk) : vf_load_n(a + i * lda + kk, left);
            GEMM_UNROLL
            for (size_t j = 0; j < n_cols; j++)
                acc[i][j] = vf_fma(av, bv[j], acc[i][j]);
        }
    }
    GEMM_UNROLL
    for (size_t i = 0; i < n_rows; i++) {
        GEMM_UNROLL
        for (size_t j = 0; j < n_cols; j++)
            c[i * ldc + j] = vf_sum(acc[i][j]);
    }
}

/* Packing a panel would cost more than multiplying by it. */
static void FN(gemm_few)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                         size_t ldc)
{
    size_t j = 0;
    for (; j + 2 <= n && m == ST_GEMM_FEW_ROWS; j += 2)
        FN(dots)(ST_GEMM_FEW_ROWS, 2, k, a, lda, b + j * ldb, ldb, c + j, ldc);
    for (; j < n; j++) {
        for (size_t i = 0; i < m; i++)
            FN(dots)(1, 1, k, a + i * lda, lda, b + j * ldb, ldb, c + i * ldc + j, ldc);
    }
}

static void FN(gemm)(bool trans_b, size_t m, size_t n, size_t k, const float *a, size_t lda, const float *b, size_t ldb,
                     bool accumulate, float *c, size_t ldc)
{
    G(product)(&(G(job)){ .m = m, .n = n, .k_bytes = 4 * k, .n_words = k, .a = (const unsigned char *)a, .ld_a = 4 * lda,
                          .b = (const unsigned char *)b, .ld_b = 4 * ldb, .trans_b = trans_b, .accumulate = accumulate,
                          .c = c, .ldc = ldc });
}

static void FN(gemm_pack)(float *packed, bool trans_b, size_t n, size_t k, const float *b, size_t ldb)
{
    for (size_t j0 = 0; j0 < n; j0 += GEMM_COLS) {
        const size_t n_cols = n - j0 < GEMM_COLS ? n - j0 : GEMM_COLS;
        if (trans_b)
            FN(pack_panel_turned)(packed + j0 * k, (const unsigned char *)(b + j0 * ldb), 4 * ldb, n_cols, 4 * k, k);
        else
            FN(pack_panel_rows)(packed + j0 * k, b + j0, ldb, n_cols, k);
    }
}

static void FN(gemm_packed)(size_t m, size_t n, size_t k, const float *a, size_t lda, const float *packed,
                            bool accumulate, float *c, size_t ldc)
{
    G(product)(&(G(job)){ .m = m, .n = n, .k_bytes = 4 * k, .n_words = k, .a = (const unsigned char *)a, .ld_a = 4 * lda,
                          .packed = packed, .accumulate = accumulate, .c = c, .ldc = ldc });
}

static void FN(set_gemm)(st_kernels *k, const char *name)
{
    k->gemm = FN(gemm);
    k->gemm_few = FN(gemm_few);
    k->gemm_pack = FN(gemm_pack);
    k->gemm_packed = FN(gemm_packed);
    k->gemm_panel = GEMM_COLS;
    k->gemm_name = name;
}
#else
static void FN(gemm_u8s8)(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const int8_t *b, size_t ldb,
                          int32_t *c, size_t ldc)
{
    G(product)(&(G(job)){ .m = m, .n = n, .k_bytes = k, .n_words = (k + 3) / 4, .a = a, .ld_a = lda,
                          .b = (const unsigned char *)b, .ld_b = ldb, .trans_b = true, .c = c, .ldc = ldc });
}

static void FN(gemm_s8_pack)(void *packed, size_t n, size_t k, const int8_t *b, size_t ldb)
{
    const size_t n_words = st_int8_depth(k) / 4;
    for (size_t j0 = 0; j0 < n; j0 += GEMM_COLS)
        FN(pack_panel_turned)((float *)packed + j0 * n_words, (const unsigned char *)(b + j0 * ldb), ldb,
                              n - j0 < GEMM_COLS ? n - j0 : GEMM_COLS, k, n_words);
}

static void FN(gemm_u8s8_packed)(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed,
                                 int32_t *c, size_t ldc)
{
    G(product)(&(G(job)){ .m = m, .n = n, .k_bytes = k, .n_words = st_int8_depth(k) / 4, .a = a, .ld_a = lda,
                          .packed = packed, .c = c, .ldc = ldc });
}

static void FN(set_gemm_u8s8)(st_kernels *k, const char *name, int u8_max)
{
    k->gemm_u8s8 = FN(gemm_u8s8);
    k->gemm_s8_pack = FN(gemm_s8_pack);
    k->gemm_u8s8_packed = FN(gemm_u8s8_packed);
    k->gemm_u8s8_name = name;
    k->u8_max = u8_max;
}
#endif

#undef G
#undef G_WORD
#undef G_VEC
#undef G_ZERO
#undef G_A
#undef G_LOAD
#undef G_LOAD_N
#undef G_STORE
#undef G_STORE_N
#undef G_ADD
#undef G_MULTIPLY_ADD
