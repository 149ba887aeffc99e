/* check_dispatch.c: which table one gets. In a process of its own, so that the first calls happen here, on several
 * threads at once. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kcheck.h"

enum { N_THREADS = 8 };
enum { N_LEVELS = ST_CPU_N_LEVELS };
static pthread_barrier_t barrier;

static void *get_best_and_all(void *arg)
{
    const st_kernels **got = arg;
    pthread_barrier_wait(&barrier);
    got[N_LEVELS] = st_kernels_best();
    for (size_t i = 0; i < N_LEVELS; i++)
        got[i] = st_kernels_get((st_cpu_level)i);
    return NULL;
}

static const st_kernels *tables[N_THREADS][N_LEVELS + 1];

static void get_on_threads(void)
{
    pthread_t threads[N_THREADS];
    if (pthread_barrier_init(&barrier, NULL, N_THREADS) != 0)
        abort();
    for (size_t t = 0; t < N_THREADS; t++) {
        if (pthread_create(&threads[t], NULL, get_best_and_all, tables[t]) != 0)
            abort();
    }
    for (size_t t = 0; t < N_THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&barrier);
}

static void check_one_table(void)
{
    if (!kc_begin("dispatch: one table per level, whoever asks first"))
        return;
    for (size_t t = 1; t < N_THREADS; t++) {
        if (memcmp(tables[t], tables[0], sizeof tables[0]) != 0)
            kc_fail("thread %zu got other tables", t);
    }
    kc_end();
}

static void check_supported(void)
{
    for (size_t i = 0; i < N_LEVELS; i++) {
        const char *asked = st_cpu_level_name((st_cpu_level)i), *got = tables[0][i]->level;
        if (!kc_begin("dispatch: asked for %s", asked))
            continue;
        bool runs = false;
        for (size_t j = 0; j < N_LEVELS; j++)
            runs |= strcmp(got, st_cpu_level_name((st_cpu_level)j)) == 0 && st_cpu_supports((st_cpu_level)j);
        if (!runs)
            kc_fail("got %s, which this CPU lacks", got);
        if (st_cpu_supports((st_cpu_level)i) && strcmp(asked, got) != 0)
            kc_fail("got %s", got);
        kc_end();
    }
}

/* Every pointer is there. */
static void check_complete(void)
{
    for (size_t i = 0; i < N_LEVELS; i++) {
        const st_kernels *k = tables[0][i];
        if (!kc_begin("dispatch: table for %s is complete", st_cpu_level_name((st_cpu_level)i)))
            continue;
        if (!k->gemm || !k->gemm_few || !k->gemm_pack || !k->gemm_packed || !k->gemm_name || !k->layer_norm || !k->add || !k->add3 || !k->scale ||
            !k->relu || !k->gelu || !k->max || !k->exp_sum || !k->rope || !k->widen || !k->moments || !k->winograd_in || !k->winograd_out ||
            !k->gemm_u8s8 || !k->gemm_s8_pack || !k->gemm_u8s8_packed || !k->gemm_u8s8_name || !k->quantize || !k->quantize_s8 ||
            !k->exp_u8 || !k->peaks || !k->pack_values || !k->dequantize_max || !k->dequantize)
            kc_fail("a kernel is missing");
        if (k->gemm_panel == 0 || ST_GEMM_PANELS % k->gemm_panel != 0)
            kc_fail("panels of %zu columns", k->gemm_panel);
        if (strcmp(k->level, "ref") == 0 && strcmp(k->gemm_name, "scalar") != 0)
            kc_fail("the ref table multiplies with %s", k->gemm_name);
        kc_end();
    }
}

void kc_dispatch(void)
{
    kc_set_place(KC_AT_END);
    get_on_threads();
    check_one_table();
    check_supported();
    check_complete();
}
