/* gemm_amx.c: int8 products by AMX: tiles of 16 x 16 sums, each instruction adding 64 products to every one of them
 * (Intel SDM, TDPBUSD). A step computes 32 rows by one panel of 32 columns: two tiles of a and two of the panel give four
 * of sums. Rows of a go outside, so that 32 of them stay in the L1 cache while panels stream in from the L2 cache.
 *
 * The panels are AVX-512's (tmpl/pack_tmpl.h): a row holds one word of each of 32 columns, which is what a tile of B wants.
 * Rows that fill no tiles go to the product below. Compiled with this level's instructions; the operating system has
 * granted the tiles before this level counts as supported (base/cpu.c).
 */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { ROWS = 32, COLS = 32, TILE_BYTES = 64, BLOCK = 4 * ST_GEMM_BLOCK };

/* The memory that LDTILECFG reads. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t n_bytes[16];
    uint8_t n_rows[16];
} tile_config;

/* Some compilers' words for tiles do not say which memory they read (gcc 12): what lies at p has been written before what follows. */
static inline void written(const void *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

/* c [32, 32] (+)= a [32, n_bytes] by the panel; n_bytes is a multiple of 64. Tiles 0-3 are sums, 4 and 5 a, 6 and 7 B. */
static void step(int32_t *c, size_t ldc, const uint8_t *a, size_t lda, const uint8_t *panel, size_t n_bytes, bool add)
{
    const size_t c_step = ldc * sizeof *c;
    written(a);
    if (add) {
        _tile_loadd(0, c, c_step);
        _tile_loadd(1, c + 16, c_step);
        _tile_loadd(2, c + 16 * ldc, c_step);
        _tile_loadd(3, c + 16 * ldc + 16, c_step);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t kk = 0; kk < n_bytes; kk += TILE_BYTES) {
        _tile_loadd(4, a + kk, lda);
        _tile_loadd(6, panel + kk * COLS, 4 * COLS);
        _tile_dpbusd(0, 4, 6);
        _tile_loadd(7, panel + kk * COLS + TILE_BYTES, 4 * COLS);
        _tile_dpbusd(1, 4, 7);
        _tile_loadd(5, a + 16 * lda + kk, lda);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
    }
    _tile_stored(0, c, c_step);
    _tile_stored(1, c + 16, c_step);
    _tile_stored(2, c + 16 * ldc, c_step);
    _tile_stored(3, c + 16 * ldc + 16, c_step);
    written(c);
}

/* The last columns, fewer than a panel has. */
static void narrow_step(int32_t *c, size_t ldc, size_t n_cols, const uint8_t *a, size_t lda, const uint8_t *panel,
                        size_t n_bytes, bool add)
{
    int32_t sums[ROWS * COLS] __attribute__((aligned(64)));
    step(sums, COLS, a, lda, panel, n_bytes, false);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < n_cols; j++)
            c[i * ldc + j] = add ? c[i * ldc + j] + sums[i * COLS + j] : sums[i * COLS + j];
    }
}

/* What lies in bytes k0 .. k0 + n_bytes - 1 of each row, `there` of which are there; the rest is padding. */
typedef struct depth_block {
    size_t k0, n_bytes, there;
} depth_block;

/* 32 rows by all columns, one block of k. `depth`: bytes of a packed column. */
static void strip(const depth_block *block, size_t n, size_t depth, const uint8_t *a, size_t lda, const uint8_t *packed,
                  int32_t *c, size_t ldc)
{
    uint8_t room[ROWS * BLOCK] __attribute__((aligned(64)));
    const uint8_t *rows = a + block->k0;
    size_t ld = lda;
    if (block->there < block->n_bytes) { /* a tile would read beyond the row */
        for (size_t i = 0; i < ROWS; i++) {
            memcpy(room + i * BLOCK, rows + i * lda, block->there);
            memset(room + i * BLOCK + block->there, 0, block->n_bytes - block->there);
        }
        rows = room;
        ld = BLOCK;
    }
    for (size_t j = 0; j < n; j += COLS) {
        const uint8_t *panel = packed + j * depth + block->k0 * COLS;
        if (n - j >= COLS)
            step(c + j, ldc, rows, ld, panel, block->n_bytes, block->k0 != 0);
        else
            narrow_step(c + j, ldc, n - j, rows, ld, panel, block->n_bytes, block->k0 != 0);
    }
}

/* Blocks of k go outside: the panels of one stay in the L2 cache for all rows. */
static void gemm_u8s8_packed_amx(size_t m, size_t n, size_t k, const uint8_t *a, size_t lda, const void *packed,
                                 int32_t *c, size_t ldc)
{
    const size_t in_tiles = n > 0 && k > 0 ? m / ROWS * ROWS : 0, depth = st_int8_depth(k);
    if (in_tiles > 0) {
        tile_config config = { .palette = 1 };
        for (size_t t = 0; t < 8; t++) {
            config.n_bytes[t] = TILE_BYTES;
            config.n_rows[t] = 16;
        }
        written(&config);
        _tile_loadconfig(&config);
        for (size_t k0 = 0; k0 < depth; k0 += BLOCK) {
            const size_t n_bytes = depth - k0 < BLOCK ? depth - k0 : BLOCK;
            const depth_block block = { k0, n_bytes, k - k0 < n_bytes ? k - k0 : n_bytes };
            for (size_t i = 0; i < in_tiles; i += ROWS)
                strip(&block, n, depth, a + i * lda, lda, packed, c + i * ldc, ldc);
        }
        _tile_release();
    }
    if (in_tiles < m)
        st_gemm_u8s8_packed_vnni(m - in_tiles, n, k, a + in_tiles * lda, lda, packed, c + in_tiles * ldc, ldc);
}

void st_kernels_set_amx(st_kernels *k)
{
    k->gemm_u8s8_packed = gemm_u8s8_packed_amx;
    k->gemm_u8s8_name = "AMX";
}
