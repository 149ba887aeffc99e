/* bench_click.c: `stencil bench click`: what an editor waits for on a picture that is encoded already: from a click to
 * ranked candidates, the low-resolution logits of each, and the run lengths of the best.
 *
 * Two figures: the first click of an object (one lone point), and the second one, which also refines the first one's
 * logits. Both ask for all candidates, whatever the number of points. Undo between samples restores the state exactly,
 * so every sample is of the same work, and its answer must be equal to the bit.
 */
#include "cli/bench.h"
#include "front/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct bench {
    st_bench_rig rig;
    uint32_t runs;
    st_object *object;
    double encode_seconds; /* with the weights read and checked */
    st_samples first, next;
    uint64_t hash; /* of the second click's answer */
    size_t n_candidates, n_runs;
    uint64_t area; /* of the best */
    bool failed_equality;
} bench;

static uint64_t hash_result(const st_click_result *r, const char *runs)
{
    uint64_t hash = st_bench_hash(ST_HASH_START, &r->object_score, sizeof r->object_score);
    for (size_t i = 0; i < r->n_candidates; i++) {
        hash = st_bench_hash(hash, &r->candidates[i].iou, sizeof r->candidates[i].iou);
        hash = st_bench_hash(hash, r->candidates[i].logits, (size_t)r->mask_size * r->mask_size * sizeof(float));
    }
    return st_bench_hash(hash, runs, strlen(runs));
}

/* One click at a part of the picture's width and height, and the string of the best mask. */
static st_status click(bench *b, float x, float y, int positive, double *seconds, uint64_t *hash, st_error *err)
{
    const st_point point = { x * (float)b->rig.source.image.width, y * (float)b->rig.source.image.height, positive };
    char *runs = NULL;
    const double started = st_bench_now();
    st_status status = st_object_point(b->object, &point, err);
    const st_click_result *r = st_object_result(b->object);
    if (status == ST_OK) status = st_rle_to_string(&runs, &r->candidates[0].mask, err);
    *seconds = st_bench_now() - started;
    if (status != ST_OK) return status;
    *hash = hash_result(r, runs);
    b->n_candidates = r->n_candidates;
    b->n_runs = r->candidates[0].mask.n_counts;
    b->area = r->candidates[0].area;
    st_string_free(runs);
    return ST_OK;
}

static st_status run_once(bench *b, bool sample, st_error *err)
{
    double first, next;
    uint64_t first_hash, hash;
    st_object_reset(b->object);
    st_status status = click(b, 0.55f, 0.6f, 1, &first, &first_hash, err);
    if (status == ST_OK) status = click(b, 0.3f, 0.35f, 0, &next, &hash, err);
    if (status != ST_OK) return status;
    if (!sample) b->hash = hash;
    else {
        st_samples_add(&b->first, first);
        st_samples_add(&b->next, next);
        if (hash != b->hash) b->failed_equality = true;
    }
    return ST_OK;
}

static st_status measure(bench *b, st_error *err)
{
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    st_click_options options = ST_CLICK_OPTIONS_INIT;
    how.for_clicks = 1;
    options.multimask = ST_MULTIMASK_ON;
    options.n_masks = 1;
    const double started = st_bench_now();
    st_status status = st_picture_encode(&b->rig.picture, b->rig.session, &b->rig.source.image, &how, err);
    b->encode_seconds = st_bench_now() - started;
    if (status == ST_OK) status = st_object_new(&b->object, b->rig.session, b->rig.picture, &options, err);
    if (status == ST_OK) status = run_once(b, false, err);
    for (uint32_t i = 0; status == ST_OK && i < b->runs; i++) {
        st_console_task(&b->rig.console, "[%u/%u]", i + 1, b->runs);
        status = run_once(b, true, err);
    }
    return status;
}

/* ---- what is said ---- */

static json_t *receipt(const bench *b, const st_model_info *m, const char *cpu)
{
    char hash[32];
    st_bench_hash_text(hash, b->hash);
    json_t *output =
        json_pack("{s:I,s:I,s:s,s:I,s:I}", "candidates", (json_int_t)b->n_candidates, "mask_size",
                  (json_int_t)m->mask_size, "hash", hash, "runs", (json_int_t)b->n_runs, "area", (json_int_t)b->area);
    return json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:o,s:i,s:I,s:f,s:o,s:o,s:o,s:I}", "bench", "click", "stencil", st_version(),
        "cpu", cpu, "level", m->cpu_level, "gemm", m->gemm, "threads", (json_int_t)m->n_threads, "model",
        st_bench_model_json(m), "picture", st_bench_source_json(&b->rig.source), "warm_up", 1, "runs", (json_int_t)b->runs,
        "encode_seconds", b->encode_seconds, "first_click", st_samples_json(&b->first), "next_click",
        st_samples_json(&b->next), "output", output, "peak_resident_bytes", (json_int_t)st_bench_peak_bytes());
}

static void print_samples(const char *name, const st_samples *s)
{
    printf("%-12s median %.2f ms of %zu (%.2f to %.2f)\n", name, 1e3 * st_samples_median(s), s->n,
           1e3 * st_samples_least(s), 1e3 * st_samples_most(s));
}

static void print_text(const bench *b, const st_model_info *m, const char *cpu)
{
    char hash[32];
    st_bench_hash_text(hash, b->hash);
    printf("model        %s, %s, %u x %u pixels, %s, id %.12s...\n", m->version, m->container, m->input_size,
           m->input_size, m->precision, m->id);
    printf("runs on      %s, %s kernels, products by %s, %u thread%s\n", cpu, m->cpu_level, m->gemm, m->n_threads,
           m->n_threads == 1 ? "" : "s");
    printf("picture      %s, %u x %u pixels, encoded in %.3f s with the weights read and checked\n",
           b->rig.source.path ? b->rig.source.path : "drawn", b->rig.source.image.width, b->rig.source.image.height, b->encode_seconds);
    print_samples("first click", &b->first);
    print_samples("next click", &b->next);
    printf("memory       peak %.1f MiB resident\n", (double)st_bench_peak_bytes() / (1024 * 1024));
    printf("output       %zu candidates of %u x %u logits, the best as %zu runs, %s\n", b->n_candidates, m->mask_size,
           m->mask_size, b->n_runs, hash);
}

/* ---- the whole ---- */

static int run(bench *b)
{
    st_error err = { ST_OK, "" };
    st_model_info info = ST_MODEL_INFO_INIT;
    char cpu[128];
    st_model_wish wish = b->rig.args->wish;
    if (wish.n_threads == 0) wish.n_threads = 2;
    const int code = st_bench_rig_open(&b->rig, &wish, true, NULL, NULL);
    if (code != ST_EXIT_OK) return code;
    st_status status = measure(b, &err);
    if (status == ST_OK) status = st_model_get_info(b->rig.model, &info, &err);
    if (status != ST_OK) return st_bench_failure(&b->rig.console, status, &err);
    st_console_clear(&b->rig.console);
    if (b->failed_equality) {
        st_console_error(&b->rig.console, "the same click gave other numbers in another run; please report this");
        return ST_EXIT_INTERNAL;
    }
    st_bench_cpu_name(cpu);
    if (b->rig.args->json) return st_bench_print(receipt(b, &info, cpu), &b->rig.console);
    print_text(b, &info, cpu);
    return ST_EXIT_OK;
}

int st_bench_click(const st_bench_args *args)
{
    bench *b = calloc(1, sizeof *b);
    if (!b) return ST_EXIT_INTERNAL;
    b->rig.args = args;
    b->runs = args->runs ? args->runs : 9;
    const int code = run(b);
    st_object_free(b->object);
    st_bench_rig_close(&b->rig);
    free(b);
    return code;
}
