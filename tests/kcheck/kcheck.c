/* kcheck.c: checks the kernels of every CPU level, one level per child process: a crash that no handler catches loses one
 * level, not the report.
 *
 *   kcheck [--level L]... [--expect L]... [--only TEXT] [--seed N] [--small] [--bench] [-v]
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kcheck.h"
#include "kcheck_run.h"

enum { N_LEVELS = ST_CPU_N_LEVELS };

kc_shared *kc_result; /* shared with the children */

static void run_level(st_cpu_level level)
{
    const st_kernels *k = st_kernels_get(level);
    snprintf(kc_result->gemm_name, sizeof kc_result->gemm_name, "%s; int8: %s", k->gemm_name, k->gemm_u8s8_name);
    if (strcmp(k->level, st_cpu_level_name(level)) != 0) {
        printf("FAIL %s: the table is called %s\n", st_cpu_level_name(level), k->level);
        kc_result->n_failed++;
        return;
    }
    if (kc_opts.bench) {
        kc_bench_all(k);
        return;
    }
    kc_elementwise(k);
    kc_reductions(k);
    kc_gemm(k);
    kc_int8(k);
    kc_winograd(k);
}

/* Runs one level in a child; its counts come back through kc_result, which is cleared first. */
static void run_child(const char *what, st_cpu_level level, void (*other)(void))
{
    kc_result->n_passed = kc_result->n_failed = kc_result->n_left_out = 0;
    kc_result->gemm_name[0] = '\0';
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        kc_catch_signals();
        if (other)
            other();
        else
            run_level(level);
        fflush(stdout);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        printf("FAIL %s: the process ended with status %#x after %s\n", what, (unsigned)status, kc_result->running);
        kc_result->n_failed++;
    }
}

static bool parse_level(const char *name, bool set[N_LEVELS])
{
    for (size_t i = 0; i < N_LEVELS; i++) {
        if (strcmp(name, st_cpu_level_name((st_cpu_level)i)) == 0)
            return set[i] = true;
    }
    fprintf(stderr, "kcheck: no level is called %s\n", name);
    return false;
}

typedef struct choice {
    bool any, run[N_LEVELS], expect[N_LEVELS];
} choice;

static bool parse(choice *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *opt = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(opt, "--bench") == 0)
            kc_opts.bench = true;
        else if (strcmp(opt, "--small") == 0)
            kc_opts.small = true;
        else if (strcmp(opt, "-v") == 0)
            kc_opts.verbose = true;
        else if (!value)
            return fprintf(stderr, "kcheck: unknown option, or one without its value: %s\n", opt), false;
        else if (strcmp(opt, "--level") == 0 && parse_level(value, c->run))
            c->any = true, i++;
        else if (strcmp(opt, "--expect") == 0 && parse_level(value, c->expect))
            i++;
        else if (strcmp(opt, "--only") == 0)
            kc_opts.only = value, i++;
        else if (strcmp(opt, "--seed") == 0)
            kc_opts.seed = strtoull(value, NULL, 0), i++;
        else
            return fprintf(stderr, "kcheck: unknown option or value: %s %s\n", opt, value), false;
    }
    return true;
}

static void report(const char *what)
{
    printf("%-11s %zu passed, %zu failed", what, kc_result->n_passed, kc_result->n_failed);
    if (kc_result->gemm_name[0])
        printf("; gemm: %s", kc_result->gemm_name);
    if (kc_result->n_left_out)
        printf("; %zu left out by --small", kc_result->n_left_out);
    printf("\n");
}

int main(int argc, char **argv)
{
    choice c = { 0 };
    kc_opts.seed = 1;
    if (!parse(&c, argc, argv))
        return 2;
    kc_result = mmap(NULL, sizeof *kc_result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (kc_result == MAP_FAILED) {
        fprintf(stderr, "kcheck: mmap: %s\n", strerror(errno));
        return 2;
    }
    printf("kcheck on %s, seed %llu\n", st_cpu_name(), (unsigned long long)kc_opts.seed);
    size_t n_passed = 0, n_failed = 0;
    for (size_t i = 0; i < N_LEVELS; i++) {
        const char *name = st_cpu_level_name((st_cpu_level)i);
        if (c.any && !c.run[i] && !c.expect[i])
            continue;
        if (!st_cpu_supports((st_cpu_level)i)) {
            printf("%-11s NOT RUN: this CPU or build lacks it\n", name);
            n_failed += c.expect[i];
            continue;
        }
        kc_result->level = i;
        run_child(name, (st_cpu_level)i, NULL);
        if (!kc_opts.bench)
            report(name);
        if (c.expect[i] && kc_result->n_passed + kc_result->n_failed == 0) {
            printf("FAIL %s: expected, but no check ran\n", name);
            n_failed++;
        }
        n_passed += kc_result->n_passed;
        n_failed += kc_result->n_failed;
    }
    if (kc_opts.bench) {
        kc_bench_print(kc_result);
    } else {
        run_child("dispatch", ST_CPU_REF, kc_dispatch);
        report("dispatch");
        n_passed += kc_result->n_passed;
        n_failed += kc_result->n_failed;
    }
    printf("%zu passed, %zu failed\n", n_passed, n_failed);
    return n_failed != 0 || (n_passed == 0 && !kc_opts.bench);
}
