/* mask_bench.c: how long logits take to become runs, and what memory that costs: N synthetic instances of 288 x 288
 * logits, enlarged to a large picture on a few threads, each mask by one thread.
 *
 *     mask_bench [--instances 100] [--size 4032] [--threads 2] [--rounds 9] [--noise] [--json]
 *
 * Prints the median of the rounds, the best, the CPU time of a mask, and how much the peak resident memory grew beyond
 * the logits. --noise takes the worst case, logits that change sign everywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <stencil/stencil_mask.h>

enum { SIDE = 288, MAX_THREADS = 64, MAX_ROUNDS = 1000 };

typedef struct options {
    uint32_t instances, size, threads, rounds;
    bool noise, json;
} options;

typedef struct job {
    const options *o;
    const float *logits; /* [instances][SIDE][SIDE] */
    st_rle *masks;       /* [instances] */
    atomic_uint next;
    atomic_bool failed;
} job;

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The highest resident size so far, in KiB; 0 where /proc does not say. */
static uint64_t peak_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    uint64_t kib = 0;
    char line[256];
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1) break;
    }
    if (f) fclose(f);
    return kib;
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
    const float cx = (float)(40 + next_random(seed) % 208), cy = (float)(40 + next_random(seed) % 208),
                r = (float)(20 + next_random(seed) % 50);
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            const float dx = (float)x - cx, dy = (float)y - cy, d2 = (dx * dx + dy * dy) / (r * r);
            const float wave = (float)((x * 7 + y * 3) % 11) * 0.03f,
                        hole = (dx - r / 3) * (dx - r / 3) + dy * dy < r * r / 30 ? 12 : 0;
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
    for (unsigned i; (i = atomic_fetch_add(&j->next, 1)) < j->o->instances;) {
        const float *logits = j->logits + (size_t)i * SIDE * SIDE;
        if (st_rle_from_logits(&j->masks[i], logits, SIDE, SIDE, j->o->size, j->o->size, 0, NULL) != ST_OK)
            atomic_store(&j->failed, true);
    }
    return NULL;
}

/* Seconds for all instances; negative when something failed. */
static double run_round(job *j)
{
    pthread_t threads[MAX_THREADS];
    uint32_t n_started = 0;
    atomic_store(&j->next, 0);
    const double start = seconds(CLOCK_MONOTONIC);
    while (n_started + 1 < j->o->threads && pthread_create(&threads[n_started], NULL, work, j) == 0) n_started++;
    work(j);
    for (uint32_t i = 0; i < n_started; i++) pthread_join(threads[i], NULL);
    return n_started + 1 == j->o->threads && !atomic_load(&j->failed) ? seconds(CLOCK_MONOTONIC) - start : -1;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--noise") == 0) {
            o->noise = true;
            continue;
        }
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
            continue;
        }
        uint32_t *value = strcmp(argv[i], "--instances") == 0 ? &o->instances
                          : strcmp(argv[i], "--size") == 0    ? &o->size
                          : strcmp(argv[i], "--threads") == 0 ? &o->threads
                          : strcmp(argv[i], "--rounds") == 0  ? &o->rounds
                                                              : NULL;
        if (!value || i + 1 == argc) return false;
        char *end;
        errno = 0;
        const unsigned long n = strtoul(argv[++i], &end, 10);
        if (errno != 0 || *end != '\0' || n == 0 || n > 65535) return false;
        *value = (uint32_t)n;
    }
    return o->threads <= MAX_THREADS && o->rounds <= MAX_ROUNDS;
}

typedef struct figures {
    double median_ms, best_ms; /* of a round, all instances */
    double cpu_ms;             /* of one mask, all threads' time taken together */
    uint64_t grown_kib, n_runs, area;
} figures;

static void report(const options *o, const figures *f)
{
    const char *kind = o->noise ? "noise" : "blobs";
    if (o->json) {
        printf("{\"bench\":\"masks\",\"kind\":\"%s\",\"instances\":%u,\"size\":%u,\"threads\":%u,\"rounds\":%u,"
               "\"median_ms\":%.3f,\"best_ms\":%.3f,\"cpu_ms_per_mask\":%.4f,\"peak_growth_kib\":%" PRIu64
               ",\"runs\":%" PRIu64 ",\"area\":%" PRIu64 "}\n",
               kind, o->instances, o->size, o->threads, o->rounds, f->median_ms, f->best_ms, f->cpu_ms, f->grown_kib,
               f->n_runs, f->area);
        return;
    }
    printf("%u masks (%s), %d x %d logits to %u x %u, %u threads: median %.2f ms of %u rounds, best %.2f ms, "
           "%.3f ms of CPU per mask\n",
           o->instances, kind, SIDE, SIDE, o->size, o->size, o->threads, f->median_ms, o->rounds, f->best_ms,
           f->cpu_ms);
    printf("%" PRIu64 " runs, %.1f %% of the pixels inside; peak memory grew by %.2f MiB, results included\n",
           f->n_runs, 100.0 * (double)f->area / ((double)o->size * o->size * o->instances),
           (double)f->grown_kib / 1024);
}

int main(int argc, char **argv)
{
    options o = { .instances = 100, .size = 4032, .threads = 2, .rounds = 9 };
    if (!parse(&o, argc, argv)) {
        fprintf(stderr,
                "usage: mask_bench [--instances N] [--size PIXELS] [--threads N] [--rounds N] [--noise] [--json]\n");
        return 2;
    }
    static double times[MAX_ROUNDS];
    float *logits = malloc((size_t)o.instances * SIDE * SIDE * sizeof *logits);
    st_rle *masks = calloc(o.instances, sizeof *masks);
    if (!logits || !masks) return 1;
    uint64_t seed = 1;
    for (uint32_t i = 0; i < o.instances; i++)
        (o.noise ? fill_noise : fill_blob)(logits + (size_t)i * SIDE * SIDE, &seed);
    job j = { .o = &o, .logits = logits, .masks = masks };
    const uint64_t before = peak_kib();
    const double cpu_before = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t r = 0; r < o.rounds; r++) {
        for (uint32_t i = 0; i < o.instances; i++) st_rle_free(&masks[i]);
        times[r] = run_round(&j);
        if (times[r] < 0) {
            fprintf(stderr, "mask_bench: a mask or a thread failed\n");
            return 1;
        }
    }
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
    qsort(times, o.rounds, sizeof *times, by_value);
    figures f = {
        1e3 * times[o.rounds / 2], 1e3 * times[0], 1e3 * cpu / o.rounds / o.instances, peak_kib() - before, 0, 0
    };
    for (uint32_t i = 0; i < o.instances; i++) {
        f.n_runs += masks[i].n_counts;
        f.area += st_rle_area(&masks[i]);
        st_rle_free(&masks[i]);
    }
    report(&o, &f);
    free(masks);
    free(logits);
    return 0;
}
