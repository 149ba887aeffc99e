/* bench_masks.c: `stencil bench masks`: how long logits take to become runs, and what memory that costs: synthetic instances of 288 x 288 logits (the published mask
 * grid), enlarged to a large picture on a few threads, each mask by one thread. The results of one run are all held, as a segmentation holds them.
 */
#include "cli/bench.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 288, MAX_THREADS = 64 };

typedef struct job {
    const st_bench_args *args;
    uint32_t n_threads, runs;
    float *logits; /* [instances][SIDE][SIDE] */
    st_rle *masks; /* [instances] */
    atomic_uint next;
    atomic_bool failed;
    st_samples samples;
    double cpu_per_mask;    /* seconds, all threads taken together */
    uint64_t growth;        /* bytes of peak resident memory beyond the logits */
    uint64_t n_runs, area, hash;
} job;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * UINT64_C(2685821657736338717)) >> 32);
}

/* A wavy blob of a seventh to a half of the picture across, with a hole, on a slightly uneven ground. */
static void fill_blob(float *logits, uint64_t *seed)
{
    const float cx = (float)(40 + next_random(seed) % 208), cy = (float)(40 + next_random(seed) % 208), r = (float)(20 + next_random(seed) % 50);
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            const float dx = (float)x - cx, dy = (float)y - cy, d2 = (dx * dx + dy * dy) / (r * r);
            const float wave = (float)((x * 7 + y * 3) % 11) * 0.03f, hole = (dx - r / 3) * (dx - r / 3) + dy * dy < r * r / 30 ? 12 : 0;
            const float logit = 8 * (1 - d2) + wave - hole;
            *logits++ = (logit < -12 ? -12 : logit) + (float)(next_random(seed) % 1000) * 1e-4f;
        }
    }
}

static void fill_noise(float *logits, uint64_t *seed)
{
    for (int i = 0; i < SIDE * SIDE; i++) logits[i] = (float)(int32_t)next_random(seed) * 1e-9f;
}

static void *work(void *arg)
{
    job *j = arg;
    const uint32_t size = j->args->size;
    for (unsigned i; (i = atomic_fetch_add(&j->next, 1)) < j->args->instances;) {
        const float *logits = j->logits + (size_t)i * SIDE * SIDE;
        if (st_rle_from_logits(&j->masks[i], logits, SIDE, SIDE, size, size, 0, NULL) != ST_OK) atomic_store(&j->failed, true);
    }
    return NULL;
}

/* Seconds for all instances; negative when something failed. */
static double run_once(job *j)
{
    pthread_t threads[MAX_THREADS];
    uint32_t n_started = 0;
    for (uint32_t i = 0; i < j->args->instances; i++) st_rle_free(&j->masks[i]);
    atomic_store(&j->next, 0);
    const double started = st_bench_now();
    while (n_started + 1 < j->n_threads && pthread_create(&threads[n_started], NULL, work, j) == 0) n_started++;
    work(j);
    for (uint32_t i = 0; i < n_started; i++) pthread_join(threads[i], NULL);
    return n_started + 1 == j->n_threads && !atomic_load(&j->failed) ? st_bench_now() - started : -1;
}

static bool measure(job *j)
{
    const uint64_t before = st_bench_peak_bytes();
    if (run_once(j) < 0) return false; /* warms up; what memory it takes counts */
    const double cpu_before = cpu_seconds();
    for (uint32_t r = 0; r < j->runs; r++) {
        const double seconds = run_once(j);
        if (seconds < 0) return false;
        st_samples_add(&j->samples, seconds);
    }
    j->cpu_per_mask = (cpu_seconds() - cpu_before) / j->runs / j->args->instances;
    j->growth = st_bench_peak_bytes() - before;
    j->hash = ST_HASH_START;
    for (uint32_t i = 0; i < j->args->instances; i++) {
        const st_rle *mask = &j->masks[i];
        j->n_runs += mask->n_counts;
        j->area += st_rle_area(mask);
        j->hash = st_bench_hash(j->hash, mask->counts, mask->n_counts * sizeof *mask->counts);
    }
    return true;
}

static json_t *receipt(const job *j, const char *cpu, const char *hash)
{
    const st_bench_args *a = j->args;
    return json_pack("{s:s,s:s,s:s,s:I,s:s,s:I,s:[i,i],s:I,s:i,s:I,s:o,s:f,s:I,s:{s:s,s:I,s:I}}", "bench", "masks", "stencil", st_version(), "cpu", cpu, "threads",
                     (json_int_t)j->n_threads, "kind", a->noise ? "noise" : "blobs", "instances", (json_int_t)a->instances, "logits", (int)SIDE, (int)SIDE,
                     "size", (json_int_t)a->size, "warm_up", 1, "runs", (json_int_t)j->runs, "seconds", st_samples_json(&j->samples), "cpu_seconds_per_mask",
                     j->cpu_per_mask, "peak_growth_bytes", (json_int_t)j->growth, "output", "hash", hash, "runs", (json_int_t)j->n_runs, "area",
                     (json_int_t)j->area);
}

static void print_text(const job *j, const char *cpu, const char *hash)
{
    const st_bench_args *a = j->args;
    printf("%u masks (%s), %d x %d logits to %u x %u pixels, %u thread%s of %s\n", a->instances, a->noise ? "noise" : "blobs", SIDE, SIDE, a->size, a->size,
           j->n_threads, j->n_threads == 1 ? "" : "s", cpu);
    printf("all masks   median %.1f ms of %u runs after one to warm up, best %.1f ms; %.3f ms of CPU per mask\n", 1e3 * st_samples_median(&j->samples), j->runs,
           1e3 * st_samples_least(&j->samples), 1e3 * j->cpu_per_mask);
    printf("memory      peak grew by %.2f MiB, results included\n", (double)j->growth / (1024 * 1024));
    printf("output      %" PRIu64 " runs, %.1f %% of the pixels inside, %s\n", j->n_runs,
           100.0 * (double)j->area / ((double)a->size * a->size * a->instances), hash);
}

int st_bench_masks(const st_bench_args *args)
{
    st_console console;
    st_console_init(&console, args->verbosity);
    if (args->wish.n_threads > MAX_THREADS) return st_usage_error("bench", "masks: at most %d threads, got %u", MAX_THREADS, args->wish.n_threads);
    job *j = calloc(1, sizeof *j);
    int code = ST_EXIT_INTERNAL;
    if (j) {
        j->args = args;
        j->n_threads = args->wish.n_threads ? args->wish.n_threads : 2;
        j->runs = args->runs ? args->runs : 9;
        j->logits = malloc((size_t)args->instances * SIDE * SIDE * sizeof *j->logits);
        j->masks = calloc(args->instances, sizeof *j->masks);
    }
    if (!j || !j->logits || !j->masks) {
        st_console_error(&console, "out of memory for %u masks", args->instances);
        goto end;
    }
    uint64_t seed = 1;
    for (uint32_t i = 0; i < args->instances; i++) (args->noise ? fill_noise : fill_blob)(j->logits + (size_t)i * SIDE * SIDE, &seed);
    if (!measure(j)) {
        st_console_error(&console, "a mask could not be made, or a thread not started: out of memory?");
        goto end;
    }
    char cpu[128], hash[32];
    st_bench_cpu_name(cpu);
    st_bench_hash_text(hash, j->hash);
    code = ST_EXIT_OK;
    if (args->json) code = st_bench_print(receipt(j, cpu, hash), &console);
    else print_text(j, cpu, hash);
end:
    for (uint32_t i = 0; j && j->masks && i < args->instances; i++) st_rle_free(&j->masks[i]);
    if (j) free(j->masks), free(j->logits);
    free(j);
    return code;
}
