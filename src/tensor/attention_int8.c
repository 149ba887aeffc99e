/* attention_int8.c: attention with both products in int8, for the ViT of a quantised model. Scores and weights never leave
 * a thread's cache. Per head and sequence, keys and values become bytes once, packed for the products:
 *   - the mean key is taken off first: it adds the same to all scores of a query, which softmax does not see, and its
 *     large channels would cost the others their precision (SageAttention, Zhang et al. 2024);
 *   - a key has a scale of its own, a channel of the values too; queries have a scale and a zero point each.
 * The weights of a block of keys, exp(score - largest of the block), lie in (0, 1] and become bytes; what they add up to
 * is counted after rounding, so that rounding does not shift the mean.
 */
#include "tensor/attention_int8.h"

#include <math.h>
#include <string.h>
#include "base/checked.h"

enum { QUERY_BLOCK = 192, KEY_BLOCK = 576, MOST_CHANNELS = 256 };

typedef struct int8_job {
    const st_kernels *k;
    const st_attention *a;
    size_t n_blocks, key_block, n_key_blocks, n_rows; /* n_rows: keys of all sequences */
    float scale;
    int8_t *keys;           /* [heads][n_seq] packed, key_bytes each */
    float *key_scale;       /* [heads][n_rows] */
    int32_t *key_sums;      /* [heads][n_rows] */
    int8_t *values;         /* [heads][n_seq][n_key_blocks] packed, value_bytes each */
    float *value_scale;     /* [heads][n_seq][d] */
    size_t key_bytes, value_bytes;
    unsigned char *scratch; /* per slot */
    size_t slot_bytes;
} int8_job;

/* One thread's scratch for one block of queries. */
typedef struct block {
    size_t n;
    uint8_t *q;                          /* [n, d] */
    uint8_t *weights;                    /* [n, key_block] */
    int32_t *dots;                       /* [n, key_block], then [n, d] */
    float *scores;                       /* [n, key_block] */
    float *sum;                          /* [n, d] weighted values so far */
    float *q_scale, *max, *total, *step; /* [n]; step: of the weights of this block of keys */
    int32_t *q_zero, *weight_sum;        /* [n]; weight_sum: of the bytes of this block of keys */
} block;

/* ---------------------------------------------------------------- keys and values, once per head and sequence */

enum { TOGETHER = ST_GEMM_PANELS }; /* keys that are packed at once: whole panels */

static void quantize_keys(const int8_job *job, size_t seq, size_t head)
{
    const st_attention *a = job->a;
    const size_t d = a->head_width;
    const float *rows = a->k + seq * a->n_k * a->ld_k + head * d;
    int8_t *packed = job->keys + (head * a->n_seq + seq) * job->key_bytes;
    float mean[MOST_CHANNELS] = { 0 }, row[MOST_CHANNELS];
    for (size_t j = 0; j < a->n_k; j++) job->k->add(mean, rows + j * a->ld_k, d);
    job->k->scale(mean, -1.0f / (float)a->n_k, d);
    for (size_t j = 0; j < a->n_k; j += TOGETHER) {
        int8_t bytes[TOGETHER * MOST_CHANNELS];
        const size_t n = a->n_k - j < TOGETHER ? a->n_k - j : TOGETHER;
        for (size_t i = 0; i < n; i++) {
            const size_t at = head * job->n_rows + seq * a->n_k + j + i;
            job->k->add3(row, rows + (j + i) * a->ld_k, mean, d);
            job->k->quantize_s8(bytes + i * d, &job->key_scale[at], &job->key_sums[at], row, d);
        }
        job->k->gemm_s8_pack(packed + j * st_int8_depth(d), n, d, bytes, d);
    }
}

static void quantize_values(const int8_job *job, size_t seq, size_t head)
{
    const st_attention *a = job->a;
    const size_t d = a->head_width, n = a->n_k, at = head * a->n_seq + seq;
    const float *rows = a->v + seq * n * a->ld_v + head * d;
    float *scale = job->value_scale + at * d, inverse[MOST_CHANNELS];
    for (size_t c = 0; c < d; c++) scale[c] = 0.0f;
    for (size_t j = 0; j < n; j++) job->k->peaks(scale, rows + j * a->ld_v, d);
    for (size_t c = 0; c < d; c++) {
        inverse[c] = scale[c] > 1e-30f && scale[c] <= 1e30f ? 127.0f / scale[c] : 0.0f;
        scale[c] = !(scale[c] <= 1e30f) ? NAN : scale[c] / 127.0f;
    }
    for (size_t j = 0; j < job->n_key_blocks; j++) {
        const size_t key0 = j * job->key_block, left = n - key0;
        job->k->pack_values(job->values + (at * job->n_key_blocks + j) * job->value_bytes,
                            left < job->key_block ? left : job->key_block, d, rows + key0 * a->ld_v, a->ld_v, inverse);
    }
}

static void prepare_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const int8_job *job = arg;
    quantize_keys(job, item / job->a->heads, item % job->a->heads);
    quantize_values(job, item / job->a->heads, item % job->a->heads);
}

/* ---------------------------------------------------------------- queries */

/* Row i of the dot products becomes weights; folds the largest score and what came before into max, total and sum. */
static void weigh(const int8_job *job, const block *b, size_t i, size_t first_key, size_t n)
{
    const size_t d = job->a->head_width;
    float *s = b->scores + i * n;
    const float most = job->k->dequantize_max(s, b->dots + i * n, n, b->q_scale[i] * job->scale, b->q_zero[i],
                                              job->key_scale + first_key, job->key_sums + first_key);
    b->weight_sum[i] = job->k->exp_u8(b->weights + i * n, s, n, most, job->k->u8_max);
    b->step[i] = 1.0f / (float)job->k->u8_max;
    if (!isfinite(most)) {
        b->step[i] = NAN; /* as softmax has it, of scores that overflow too */
    } else if (most > b->max[i]) {
        const float shrink = expf(b->max[i] - most);
        b->total[i] *= shrink;
        job->k->scale(b->sum + i * d, shrink, d);
        b->max[i] = most;
    } else {
        b->step[i] *= expf(most - b->max[i]);
    }
}

static void absorb_keys(const int8_job *job, const block *b, size_t seq, size_t head, size_t key0, size_t n)
{
    const st_attention *a = job->a;
    const size_t d = a->head_width, first = head * job->n_rows + seq * a->n_k + key0, at = head * a->n_seq + seq;
    const int8_t *keys = job->keys + at * job->key_bytes + key0 * st_int8_depth(d);
    const int8_t *values = job->values + (at * job->n_key_blocks + key0 / job->key_block) * job->value_bytes;
    job->k->gemm_u8s8_packed(b->n, n, d, b->q, d, keys, b->dots, n);
    for (size_t i = 0; i < b->n; i++) weigh(job, b, i, first, n);
    job->k->gemm_u8s8_packed(b->n, d, n, b->weights, n, values, b->dots, d);
    const float *scale = job->value_scale + at * d;
    for (size_t i = 0; i < b->n; i++) {
        const int32_t *dots = b->dots + i * d;
        job->k->dequantize(b->sum + i * d, dots, d, b->step[i], 0, scale, dots, NULL, true); /* no zero point: the row sums do not count */
        b->total[i] += b->step[i] * (float)b->weight_sum[i];
    }
}

/* Cuts one slot's scratch; with base NULL only counts. Returns its size. */
static size_t cut(block *b, unsigned char *base, size_t d, size_t key_block)
{
    const size_t widest = key_block > d ? key_block : d;
    const size_t sizes[] = { QUERY_BLOCK * d,
                             QUERY_BLOCK * key_block,
                             QUERY_BLOCK * widest * sizeof(int32_t),
                             QUERY_BLOCK * key_block * sizeof(float),
                             QUERY_BLOCK * d * sizeof(float),
                             6 * QUERY_BLOCK * sizeof(float) };
    unsigned char *parts[6];
    size_t at = 0;
    for (size_t i = 0; i < 6; i++) {
        parts[i] = base ? base + at : NULL;
        at += st_round_up(sizes[i], 64);
    }
    if (!base) return at;
    float *rows = (float *)(void *)parts[5];
    *b = (block){ .q = parts[0],
                  .weights = parts[1],
                  .dots = (int32_t *)(void *)parts[2],
                  .scores = (float *)(void *)parts[3],
                  .sum = (float *)(void *)parts[4],
                  .q_scale = rows,
                  .max = rows + QUERY_BLOCK,
                  .total = rows + 2 * QUERY_BLOCK,
                  .step = rows + 3 * QUERY_BLOCK,
                  .q_zero = (int32_t *)(void *)(rows + 4 * QUERY_BLOCK),
                  .weight_sum = (int32_t *)(void *)(rows + 5 * QUERY_BLOCK) };
    return at;
}

static void attention_item(void *arg, size_t item, unsigned slot)
{
    const int8_job *job = arg;
    const st_attention *a = job->a;
    const size_t d = a->head_width, seq = item / job->n_blocks / a->heads, head = item / job->n_blocks % a->heads;
    const size_t first = item % job->n_blocks * QUERY_BLOCK;
    block b;
    cut(&b, job->scratch + slot * job->slot_bytes, d, job->key_block);
    b.n = a->n_q - first < QUERY_BLOCK ? a->n_q - first : QUERY_BLOCK;
    for (size_t i = 0; i < b.n; i++) {
        const float *q = a->q + (seq * a->n_q + first + i) * a->ld_q + head * d;
        job->k->quantize(b.q + i * d, &b.q_scale[i], &b.q_zero[i], q, NULL, d, job->k->u8_max);
        b.max[i] = -INFINITY;
        b.total[i] = 0.0f;
    }
    memset(b.sum, 0, b.n * d * sizeof *b.sum);
    for (size_t key0 = 0; key0 < a->n_k; key0 += job->key_block)
        absorb_keys(job, &b, seq, head, key0, a->n_k - key0 < job->key_block ? a->n_k - key0 : job->key_block);
    for (size_t i = 0; i < b.n; i++) {
        float *out = a->out + (seq * a->n_q + first + i) * a->ld_out + head * d;
        memcpy(out, b.sum + i * d, d * sizeof *out);
        job->k->scale(out, 1.0f / b.total[i], d);
    }
}

bool st_attention_int8_can(const st_attention *a)
{
    return !a->causal && !a->rpb_x && a->head_width < MOST_CHANNELS && a->n_q == a->n_k;
}

void st_attention_int8_run(const st_run *run, const st_attention *a)
{
    const size_t mark = st_arena_mark(run->arena), d = a->head_width;
    int8_job job = {
        .k = run->k, .a = a, .n_blocks = (a->n_q + QUERY_BLOCK - 1) / QUERY_BLOCK, .n_rows = a->n_seq * a->n_k
    };
    const size_t n_key_blocks = (a->n_k + KEY_BLOCK - 1) / KEY_BLOCK;
    job.key_block = n_key_blocks ? st_round_up((a->n_k + n_key_blocks - 1) / n_key_blocks, ST_GEMM_PANELS) : 1;
    job.n_key_blocks = (a->n_k + job.key_block - 1) / job.key_block;
    job.scale = 1.0f / sqrtf((float)d);
    job.key_bytes = st_round_up(st_packed_floats(run->k, a->n_k, st_int8_depth(d)), 64);
    job.value_bytes = st_round_up(st_packed_floats(run->k, d, st_int8_depth(job.key_block)), 64);
    job.keys = st_arena_alloc(run->arena, a->heads * a->n_seq, job.key_bytes);
    job.key_scale = st_run_floats(run, a->heads, job.n_rows);
    job.key_sums = st_arena_alloc(run->arena, a->heads * job.n_rows, sizeof *job.key_sums);
    job.values = st_arena_alloc(run->arena, a->heads * a->n_seq * job.n_key_blocks, job.value_bytes);
    job.value_scale = st_run_floats(run, a->heads * a->n_seq, d);
    job.slot_bytes = cut(NULL, NULL, d, job.key_block);
    job.scratch = st_arena_alloc(run->arena, st_pool_size(run->pool), job.slot_bytes);
    if (!st_run_idle(run)) {
        st_run_parallel(run, a->n_seq * a->heads, prepare_item, &job);
        st_run_parallel(run, a->n_seq * a->heads * job.n_blocks, attention_item, &job);
    }
    st_arena_rewind(run->arena, mark);
}
