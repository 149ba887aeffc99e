/* attention.c: softmax(q kᵀ / sqrt(d) + bias) v without the score matrix.
 *
 * The decision: keys and values are packed for the products once per head and sequence; then an item is one block of queries of one head. Keys are
 * streamed in blocks, with the running maximum and sum of "online softmax" (Milakov & Gimelshein 2018; FlashAttention), so the scores that exist
 * at one time are at most QUERY_BLOCK x KEY_BLOCK floats per thread and stay in its L2 cache. Their rows lie ST_GEMM_STEP floats apart, where the
 * product with the values reads them in place.
 */
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>
#include "base/checked.h"
#include "tensor/attention_int8.h"

enum { QUERY_BLOCK = 192, KEY_BLOCK = ST_GEMM_BLOCK };
_Static_assert((int)KEY_BLOCK <= (int)ST_GEMM_STEP && (int)KEY_BLOCK % (int)ST_GEMM_PANELS == 0, "a row of scores fits; a block of keys starts with a panel");

typedef struct attention_job {
    const st_kernels *k;
    const st_attention *a;
    float *keys;              /* [heads][n_seq] packed, key_floats each */
    float *values;            /* [heads][n_seq][n_key_blocks] packed, value_floats each */
    size_t key_floats, value_floats;
    float *scratch;           /* per slot: slot_floats */
    size_t slot_floats;
    size_t n_blocks;          /* query blocks per sequence and head */
    size_t query_block, key_block, n_key_blocks;
    float scale;
} attention_job;

/* One thread's scratch for one block of queries. */
typedef struct block {
    size_t head, first, n;   /* queries first .. first+n-1 of the sequence */
    float *q;                /* [n, d], scaled */
    float *scores;           /* [n] rows ST_GEMM_STEP floats apart */
    float *sum;              /* [n, d] weighted values so far */
    float *max, *total;      /* [n] running maximum and sum of exponentials */
} block;

/* Packs one block of keys, and the values that belong to them, of one head. */
static void pack_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const attention_job *job = arg;
    const st_attention *a = job->a;
    const size_t d = a->head_width, key0 = item % job->n_key_blocks * job->key_block, of_head = item / job->n_key_blocks;
    const size_t head = of_head / a->n_seq, row = of_head % a->n_seq * a->n_k + key0, n = st_least(job->key_block, a->n_k - key0);
    job->k->gemm_pack(job->keys + of_head * job->key_floats + key0 * d, true, n, d, a->k + row * a->ld_k + head * d, a->ld_k);
    job->k->gemm_pack(job->values + item * job->value_floats, false, d, n, a->v + row * a->ld_v + head * d, a->ld_v);
}

/* scores[i] += rpb_y[row of key] + rpb_x[column of key]; `sam3/model/decoder.py`, _get_rpb_matrix, kept separable. */
static void add_rpb(const st_attention *a, const block *b, size_t i, size_t key0, size_t n_keys)
{
    const size_t query = b->head * a->n_q + b->first + i;
    const float *by = a->rpb_y + query * a->grid, *bx = a->rpb_x + query * a->grid;
    float *s = b->scores + i * ST_GEMM_STEP;
    for (size_t j = 0; j < n_keys;) {
        const size_t row = (key0 + j) / a->grid, col = (key0 + j) % a->grid;
        const size_t run = a->grid - col < n_keys - j ? a->grid - col : n_keys - j;
        for (size_t c = 0; c < run; c++) s[j + c] += by[row] + bx[col + c];
        j += run;
    }
}

static void mask_future(const block *b, size_t i, size_t key0, size_t n_keys)
{
    float *s = b->scores + i * ST_GEMM_STEP;
    const size_t last = b->first + i; /* the last key this query sees */
    for (size_t j = last >= key0 ? last - key0 + 1 : 0; j < n_keys; j++) s[j] = -INFINITY;
}

/* Turns row i of the scores into exponentials and folds them into the running maximum and sum. */
static void absorb_row(const attention_job *job, block *b, size_t i, size_t n_keys)
{
    const st_kernels *k = job->k;
    const size_t d = job->a->head_width;
    float *s = b->scores + i * ST_GEMM_STEP;
    const float block_max = k->max(s, n_keys);
    const float max = block_max > b->max[i] || isnan(block_max) ? block_max : b->max[i];
    if (b->max[i] != max && b->total[i] != 0.0f) {
        const float shrink = expf(b->max[i] - max);
        b->total[i] *= shrink;
        k->scale(b->sum + i * d, shrink, d);
    }
    b->max[i] = max;
    b->total[i] += k->exp_sum(s, n_keys, max);
}

static void absorb_keys(const attention_job *job, block *b, size_t seq, size_t key0)
{
    const st_attention *a = job->a;
    const size_t d = a->head_width, of_head = b->head * a->n_seq + seq, n_keys = st_least(job->key_block, a->n_k - key0);
    const float *keys = job->keys + of_head * job->key_floats + key0 * d;
    const float *values = job->values + (of_head * job->n_key_blocks + key0 / job->key_block) * job->value_floats;
    job->k->gemm_packed(b->n, n_keys, d, b->q, d, keys, false, b->scores, ST_GEMM_STEP);
    for (size_t i = 0; i < b->n; i++) {
        if (a->rpb_x) add_rpb(a, b, i, key0, n_keys);
        if (a->causal) mask_future(b, i, key0, n_keys);
        absorb_row(job, b, i, n_keys);
    }
    job->k->gemm_packed(b->n, d, n_keys, b->scores, ST_GEMM_STEP, values, key0 != 0, b->sum, d);
}

static void attention_item(void *arg, size_t item, unsigned slot)
{
    const attention_job *job = arg;
    const st_attention *a = job->a;
    const size_t d = a->head_width, seq = item / job->n_blocks / a->heads;
    float *scratch = job->scratch + slot * job->slot_floats;
    block b = {.head = item / job->n_blocks % a->heads, .first = item % job->n_blocks * job->query_block};
    b.n = st_least(job->query_block, a->n_q - b.first);
    b.scores = scratch;
    b.q = b.scores + job->query_block * ST_GEMM_STEP;
    b.sum = b.q + job->query_block * d;
    b.max = b.sum + job->query_block * d;
    b.total = b.max + job->query_block;
    for (size_t i = 0; i < b.n; i++) {
        const float *q = a->q + (seq * a->n_q + b.first + i) * a->ld_q + b.head * d;
        memcpy(b.q + i * d, q, d * sizeof *q);
        job->k->scale(b.q + i * d, job->scale, d);
        b.max[i] = -INFINITY;
        b.total[i] = 0.0f;
    }
    for (size_t key0 = 0; key0 < a->n_k; key0 += job->key_block) {
        if (a->causal && key0 > b.first + b.n - 1) break;
        absorb_keys(job, &b, seq, key0);
    }
    for (size_t i = 0; i < b.n; i++) {
        float *out = a->out + (seq * a->n_q + b.first + i) * a->ld_out + b.head * d;
        memcpy(out, b.sum + i * d, d * sizeof *out);
        job->k->scale(out, 1.0f / b.total[i], d);
    }
}

void st_attention_run(const st_run *run, const st_attention *a)
{
    st_run_count(run, 2 * a->n_seq * a->n_q, a->n_k, a->heads * a->head_width); /* scores, and the sum of values */
    if (a->int8 && st_attention_int8_can(a)) {
        st_attention_int8_run(run, a);
        if (!st_run_planning(run)) return; /* the plan is for both kinds */
    }
    const size_t mark = st_arena_mark(run->arena), d = a->head_width;
    attention_job job = {.k = run->k, .a = a, .n_blocks = (a->n_q + QUERY_BLOCK - 1) / QUERY_BLOCK, .n_key_blocks = (a->n_k + KEY_BLOCK - 1) / KEY_BLOCK};
    job.query_block = job.n_blocks ? (a->n_q + job.n_blocks - 1) / job.n_blocks : 0; /* evenly cut */
    job.key_block = job.n_key_blocks ? st_round_up((a->n_k + job.n_key_blocks - 1) / job.n_key_blocks, ST_GEMM_PANELS) : 1;
    job.n_key_blocks = (a->n_k + job.key_block - 1) / job.key_block;
    job.scale = 1.0f / sqrtf((float)d);
    job.key_floats = st_round_up(st_packed_floats(run->k, a->n_k, d), 16);
    job.value_floats = st_round_up(st_packed_floats(run->k, d, job.key_block), 16);
    job.slot_floats = st_round_up(job.query_block * (ST_GEMM_STEP + 2 * d + 2), 16);
    job.keys = st_run_floats(run, a->heads * a->n_seq, job.key_floats);
    job.values = st_run_floats(run, a->heads * a->n_seq * job.n_key_blocks, job.value_floats);
    job.scratch = st_run_floats(run, st_pool_size(run->pool), job.slot_floats);
    if (!st_run_idle(run)) {
        st_run_parallel(run, a->heads * a->n_seq * job.n_key_blocks, pack_item, &job);
        st_run_parallel(run, a->n_seq * a->heads * job.n_blocks, attention_item, &job);
    }
    st_arena_rewind(run->arena, mark);
}

void st_mha_run(const st_run *run, const st_mha *mha, const float *q_in, size_t n_q, const float *k_in, const float *v_in, size_t n_k, float *y,
                const st_attention *extra)
{
    const size_t mark = st_arena_mark(run->arena), inner = mha->q.n_out;
    float *q = st_run_floats(run, n_q, inner), *k = st_run_floats(run, n_k, inner), *v = st_run_floats(run, n_k, inner);
    float *mixed = st_run_floats(run, n_q, inner);
    st_linear_run(run, &mha->q, q_in, mha->q.n_in, n_q, q, inner, ST_ACT_NONE, false);
    st_linear_run(run, &mha->k, k_in, mha->k.n_in, n_k, k, inner, ST_ACT_NONE, false);
    st_linear_run(run, &mha->v, v_in, mha->v.n_in, n_k, v, inner, ST_ACT_NONE, false);
    st_attention a = extra ? *extra : (st_attention){0};
    a.q = q, a.k = k, a.v = v, a.out = mixed;
    a.ld_q = a.ld_k = a.ld_v = a.ld_out = inner;
    a.heads = mha->heads, a.head_width = inner / mha->heads;
    a.n_seq = 1, a.n_q = n_q, a.n_k = n_k;
    st_attention_run(run, &a);
    st_linear_run(run, &mha->out, mixed, inner, n_q, y, mha->out.n_out, ST_ACT_NONE, true);
    st_arena_rewind(run->arena, mark);
}

typedef struct rope_job {
    const st_kernels *k;
    float *x;
    const float *table;
    size_t ld, rows, heads, head_width, table_rows;
} rope_job;

enum { ROPE_ROWS = 64 };

static void rope_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const rope_job *job = arg;
    const size_t end = (item + 1) * ROPE_ROWS < job->rows ? (item + 1) * ROPE_ROWS : job->rows;
    for (size_t r = item * ROPE_ROWS; r < end; r++)
        for (size_t h = 0; h < job->heads; h++)
            job->k->rope(job->x + r * job->ld + h * job->head_width, job->table + r % job->table_rows * job->head_width, job->head_width / 2);
}

void st_rope_run(const st_run *run, float *x, size_t ld, size_t rows, size_t heads, size_t head_width, const float *table, size_t table_rows)
{
    if (st_run_idle(run)) return;
    rope_job job = {run->k, x, table, ld, rows, heads, head_width, table_rows};
    st_run_parallel(run, (rows + ROPE_ROWS - 1) / ROPE_ROWS, rope_item, &job);
}
