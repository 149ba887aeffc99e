/* bench_figures.c: what every benchmark needs: samples, hashes of results, what the kernel says of this process, and printing a receipt. */
#include "cli/bench.h"
#include "front/report.h"
#include "front/save.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- samples ---- */

double st_bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void st_samples_add(st_samples *s, double seconds)
{
    if (s->n < ST_BENCH_MAX_RUNS) s->seconds[s->n++] = seconds;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double st_samples_median(const st_samples *s)
{
    st_samples sorted = *s;
    if (s->n == 0) return 0;
    qsort(sorted.seconds, sorted.n, sizeof *sorted.seconds, by_value);
    return (sorted.seconds[(s->n - 1) / 2] + sorted.seconds[s->n / 2]) / 2;
}

double st_samples_least(const st_samples *s)
{
    double least = s->n ? s->seconds[0] : 0;
    for (size_t i = 1; i < s->n; i++)
        if (s->seconds[i] < least) least = s->seconds[i];
    return least;
}

double st_samples_most(const st_samples *s)
{
    double most = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->seconds[i] > most) most = s->seconds[i];
    return most;
}

json_t *st_samples_json(const st_samples *s)
{
    json_t *all = json_array();
    for (size_t i = 0; i < s->n; i++)
        if (json_array_append_new(all, json_real(s->seconds[i])) != 0) {
            json_decref(all);
            return NULL;
        }
    return json_pack("{s:f,s:f,s:o}", "median", st_samples_median(s), "best", st_samples_least(s), "samples", all);
}

/* ---- receipts ---- */

uint64_t st_bench_hash(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++) hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    return hash;
}

void st_bench_hash_text(char out[32], uint64_t hash)
{
    snprintf(out, 32, "fnv1a64:%016" PRIx64, hash);
}

/* The value of the first line "NAME : VALUE" of a file in /proc, without its line end; false when there is none. */
static bool proc_value(char *out, size_t room, const char *path, const char *name)
{
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, strlen(name)) != 0) continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out, room, "%s", colon);
        found = true;
    }
    if (f) fclose(f);
    return found;
}

void st_bench_cpu_name(char out[128])
{
    if (!proc_value(out, 128, "/proc/cpuinfo", "model name")) snprintf(out, 128, "unknown");
}

uint64_t st_bench_peak_bytes(void)
{
    char text[64];
    uint64_t kib = 0;
    if (!proc_value(text, sizeof text, "/proc/self/status", "VmHWM") || sscanf(text, "%" SCNu64, &kib) != 1) return 0;
    return kib * 1024;
}

/* /proc/self/stat: the 22nd field counts ticks from boot to the start of the process. The second is a name in brackets
 * that may hold anything. */
double st_bench_seconds_of_life(void)
{
    char text[1024];
    FILE *f = fopen("/proc/self/stat", "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    uint64_t ticks = 0;
    struct timespec now;
    const long per_second = sysconf(_SC_CLK_TCK);
    if (!at || sscanf(at, "%" SCNu64, &ticks) != 1 || per_second <= 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return -1;
    const double life = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - (double)ticks / (double)per_second;
    return life > 0 ? life : 0;
}

int st_bench_print(json_t *receipt, st_console *console)
{
    char *text = st_json_line(receipt);
    st_error err = { ST_ERR_NOMEM, "out of memory" };
    const st_status status = text ? st_save_text(NULL, text, strlen(text), &err) : ST_ERR_NOMEM;
    free(text);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(console, "%s", err.message);
    return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}
