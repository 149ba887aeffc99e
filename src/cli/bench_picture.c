/* bench_picture.c: `stencil bench picture`: from the start of the program to a phrase's answer, with a model of any
 * size.
 *
 * The first picture and the first phrase are measured apart: they read the weights and check their values. After them
 * come the samples: the picture, the phrase again (a session keeps its text, so the text encoder does not run), and a
 * further phrase, another one each time. Every answer holds its N_MASKS best instances, whatever they score: what a
 * phrase costs depends on how many masks are made, and should not depend on what a picture shows. Answers to the one
 * phrase must be equal to the bit in every run, and at the end the model's self-check must pass, which knows the
 * reference's own numbers for the demo model: figures of a build that computes something else are worth nothing. What
 * the passes multiply and how fast the machine multiplies one large product, measured in the same run, stand beside.
 */
#include "cli/bench.h"
#include "front/report.h"

#include <stdlib.h>
#include <string.h>

enum { N_MASKS = 20 };

typedef struct bench {
    st_bench_rig rig;
    const char *phrase;
    uint32_t runs;
    double first_encode, first_phrase;
    uint64_t first_peak;
    st_samples encode, same, further;
    uint64_t hash, further_hash; /* of the phrase's answer; of all further ones, in order */
    size_t n_instances;          /* of one answer */
    bool failed_equality;
    st_stage_clock stages;
    st_rate rate;
    uint64_t peak; /* before the rate and the check, which are not what is measured */
    size_t n_checked, n_unsound;
} bench;

/* ---- what is measured ---- */

static uint64_t hash_result(uint64_t hash, const st_result *r)
{
    hash = st_bench_hash(hash, &r->presence, sizeof r->presence);
    for (size_t i = 0; i < r->n_instances; i++) {
        const st_instance *it = &r->instances[i];
        hash = st_bench_hash(hash, &it->score, sizeof it->score);
        hash = st_bench_hash(hash, it->box, sizeof it->box);
        hash = st_bench_hash(hash, it->mask.counts, it->mask.n_counts * sizeof *it->mask.counts);
    }
    return hash;
}

static st_status encode(bench *b, bool sampling, double *seconds, st_error *err)
{
    st_picture_free(b->rig.picture); /* one at a time: the peak is that of one picture */
    b->rig.picture = NULL;
    st_stage_clock_start(&b->stages, sampling);
    const double started = st_bench_now();
    const st_status status = st_picture_encode(&b->rig.picture, b->rig.session, &b->rig.source.image, NULL, err);
    *seconds = st_bench_now() - started;
    return status;
}

static st_status ask(bench *b, const char *phrase, bool sampling, double *seconds, uint64_t *hash, st_error *err)
{
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options options = ST_SEGMENT_OPTIONS_INIT;
    st_result *result = NULL;
    prompt.phrase = phrase;
    options.threshold = 0;
    options.max_detections = N_MASKS;
    st_stage_clock_start(&b->stages, sampling);
    const double started = st_bench_now();
    const st_status status = st_segment(&result, b->rig.session, b->rig.picture, &prompt, &options, err);
    *seconds = st_bench_now() - started;
    if (status != ST_OK) return status;
    *hash = hash_result(*hash, result);
    b->n_instances = result->n_instances;
    st_result_free(result);
    return ST_OK;
}

/* The i-th of a hundred phrases of two tokens each: more than a session keeps, so that one that comes again is encoded
 * again. */
static void further_phrase(char out[64], uint32_t i, const char *other_than)
{
    static const char *const colours[] = { "red",   "blue",  "green", "yellow", "white",
                                           "black", "brown", "pink",  "orange", "purple" };
    static const char *const things[] = { "car",   "dog",    "chair", "bird", "boat",
                                          "house", "bottle", "horse", "book", "flower" };
    snprintf(out, 64, "%s %s", colours[i % 10], things[i / 10 % 10]);
    if (strcmp(out, other_than) == 0) snprintf(out, 64, "another %s", things[i / 10 % 10]);
}

static st_status run_once(bench *b, uint32_t i, st_error *err)
{
    double seconds;
    uint64_t hash = ST_HASH_START;
    char further[64];
    further_phrase(further, i, b->phrase);
    st_console_task(&b->rig.console, "[%u/%u]", i + 1, b->runs);
    st_status status = encode(b, true, &seconds, err);
    if (status == ST_OK) {
        st_samples_add(&b->encode, seconds);
        status = ask(b, b->phrase, false, &seconds, &hash, err);
    }
    if (status != ST_OK) return status;
    st_samples_add(&b->same, seconds);
    if (hash != b->hash) b->failed_equality = true;
    if ((status = ask(b, further, true, &seconds, &b->further_hash, err)) != ST_OK) return status;
    st_samples_add(&b->further, seconds);
    return ST_OK;
}

static void count_line(void *user, const st_check_line *line)
{
    (void)line;
    ((bench *)user)->n_checked++;
}

static st_status measure(bench *b, st_error *err)
{
    st_console_task(&b->rig.console, "[warming up]");
    b->hash = b->further_hash = ST_HASH_START;
    st_status status = encode(b, false, &b->first_encode, err);
    if (status == ST_OK) status = ask(b, b->phrase, false, &b->first_phrase, &b->hash, err);
    b->first_peak = st_bench_peak_bytes();
    for (uint32_t i = 0; status == ST_OK && i < b->runs; i++) status = run_once(b, i, err);
    b->peak = st_bench_peak_bytes();
    st_console_task(&b->rig.console, "[checking]");
    st_stage_clock_start(&b->stages, false);
    enum { TOKENS = 4 }; /* of a further phrase: two words, start and end */
    b->rate = (st_rate)ST_RATE_INIT;
    if (status == ST_OK) status = st_model_rate(b->rig.model, TOKENS, &b->rate, err);
    if (status == ST_OK) status = st_model_check(b->rig.session, count_line, b, &b->n_unsound, err);
    return status;
}

/* ---- receipts ---- */

static json_t *output_json(const bench *b)
{
    char hash[32], further[32];
    st_bench_hash_text(hash, b->hash);
    st_bench_hash_text(further, b->further_hash);
    return json_pack("{s:s,s:s,s:I}", "hash", hash, "further_hash", further, "instances", (json_int_t)b->n_instances);
}

/* Of the rate of the products that the model mostly makes. */
static double share(const bench *b, double gflop, const st_samples *s)
{
    return gflop / st_samples_median(s) / (b->rate.int8_gops > 0 ? b->rate.int8_gops : b->rate.fp32_gflops);
}

static json_t *rate_json(const bench *b)
{
    json_t *int8 = b->rate.int8_gops > 0 ? json_real(b->rate.int8_gops) : json_null();
    return json_pack("{s:f,s:o,s:f,s:f,s:f,s:f}", "fp32_gflops", b->rate.fp32_gflops, "int8_gops", int8, "encode_gflop", b->rate.encode_gflop,
                     "encode_share", share(b, b->rate.encode_gflop, &b->encode), "phrase_gflop", b->rate.phrase_gflop, "further_phrase_share",
                     share(b, b->rate.phrase_gflop, &b->further));
}

static json_t *receipt(const bench *b, const st_model_info *m, const char *cpu)
{
    json_t *accepted = b->rig.accepted >= 0 ? json_real(b->rig.accepted) : json_null();
    json_t *start = json_pack("{s:f,s:o}", "open_seconds", b->rig.open, "accepted_seconds", accepted);
    json_t *first = json_pack("{s:f,s:f,s:I}", "encode_seconds", b->first_encode, "phrase_seconds", b->first_phrase,
                              "peak_resident_bytes", (json_int_t)b->first_peak);
    json_t *memory = json_pack("{s:I,s:I}", "peak_resident_bytes", (json_int_t)b->peak, "plan_peak_bytes", (json_int_t)m->plan_peak);
    json_t *check = json_pack("{s:I,s:I}", "lines", (json_int_t)b->n_checked, "failed", (json_int_t)b->n_unsound);
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:o,s:o,s:o,s:i,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "bench", "picture",
                     "stencil", st_version(), "commit", st_bench_commit(), "cpu", cpu, "level", m->cpu_level, "gemm", m->gemm, "threads",
                     (json_int_t)m->n_threads, "model", st_bench_model_json(m), "picture",
                     st_bench_source_json(&b->rig.source), "phrase", st_json_text(b->phrase), "warm_up", 1, "runs",
                     (json_int_t)b->runs, "start", start, "first", first, "encode", st_samples_json(&b->encode),
                     "same_phrase", st_samples_json(&b->same), "further_phrase", st_samples_json(&b->further), "stages",
                     st_stage_clock_json(&b->stages), "rate", rate_json(b), "output", output_json(b), "check", check, "memory", memory);
}

static void print_samples(const char *name, const st_samples *s)
{
    printf("%-16s median %.3f s of %zu (%.3f to %.3f)\n", name, st_samples_median(s), s->n, st_samples_least(s),
           st_samples_most(s));
}

static void print_text(const bench *b, const st_model_info *m, const char *cpu)
{
    char hash[32];
    const double mib = 1024 * 1024;
    st_bench_hash_text(hash, b->hash);
    printf("model            %s, %s, %u x %u pixels, %s, id %.12s...\n", m->version, m->container, m->input_size,
           m->input_size, m->precision, m->id);
    printf("runs on          %s, %s kernels, products by %s, %u thread%s\n", cpu, m->cpu_level, m->gemm, m->n_threads,
           m->n_threads == 1 ? "" : "s");
    printf("picture          %s, %u x %u pixels; phrase \"%s\"\n", b->rig.args->picture ? b->rig.args->picture : "drawn",
           b->rig.source.image.width, b->rig.source.image.height, b->phrase);
    printf("open             %.3f s", b->rig.open);
    if (b->rig.accepted >= 0) printf("; first request accepted %.2f s after the start", b->rig.accepted);
    printf("\nfirst            picture %.3f s, phrase %.3f s: weights are read and checked\n", b->first_encode,
           b->first_phrase);
    print_samples("picture", &b->encode);
    print_samples("same phrase", &b->same);
    print_samples("further phrase", &b->further);
    printf("stages           trunk %.3f s, neck %.3f; prompt %.3f, fusion %.3f, decoder %.3f, masks %.3f (medians)\n", st_samples_median(&b->stages.trunk),
           st_samples_median(&b->stages.neck), st_samples_median(&b->stages.prompt), st_samples_median(&b->stages.fusion), st_samples_median(&b->stages.decoder),
           st_samples_median(&b->stages.masks));
    printf("machine          one large product: %.0f GFLOP/s in fp32", b->rate.fp32_gflops);
    if (b->rate.int8_gops > 0) printf(", %.0f GOP/s in int8", b->rate.int8_gops);
    printf("; picture %.0f GFLOP, %.0f %% of that rate; phrase %.0f GFLOP, %.0f %%\n", b->rate.encode_gflop, 100 * share(b, b->rate.encode_gflop, &b->encode),
           b->rate.phrase_gflop, 100 * share(b, b->rate.phrase_gflop, &b->further));
    printf("memory           peak %.1f MiB resident (%.1f after the first phrase), planned %.1f MiB\n",
           (double)b->peak / mib, (double)b->first_peak / mib, (double)m->plan_peak / mib);
    printf("output           %zu instances with masks for each phrase, %s; self-check: %zu lines passed\n", b->n_instances, hash, b->n_checked);
}

/* ---- the whole ---- */

static int run(bench *b)
{
    st_error err = { ST_OK, "" };
    st_model_info info = ST_MODEL_INFO_INIT;
    char cpu[128];
    b->stages.console = &b->rig.console;
    const int code = st_bench_rig_open(&b->rig, &b->rig.args->wish, false, st_stage_clock_progress, &b->stages);
    if (code != ST_EXIT_OK) return code;
    st_status status = measure(b, &err);
    if (status == ST_OK) status = st_model_get_info(b->rig.model, &info, &err);
    if (status != ST_OK) return st_bench_failure(&b->rig.console, status, &err);
    st_console_clear(&b->rig.console);
    if (b->failed_equality) {
        st_console_error(
            &b->rig.console,
            "\"%s\": the same phrase on the same picture gave other numbers in another run; please report this",
            b->phrase);
        return ST_EXIT_INTERNAL;
    }
    if (b->n_unsound) {
        st_console_error(&b->rig.console, "%zu of %zu lines of the self-check failed: these figures count for nothing; `stencil check` says more", b->n_unsound, b->n_checked);
        return ST_EXIT_PARTLY;
    }
    st_bench_cpu_name(cpu);
    if (b->rig.args->json) return st_bench_print(receipt(b, &info, cpu), &b->rig.console);
    print_text(b, &info, cpu);
    return ST_EXIT_OK;
}

int st_bench_picture(const st_bench_args *args)
{
    bench *b = calloc(1, sizeof *b);
    if (!b) return ST_EXIT_INTERNAL;
    b->rig.args = args;
    b->phrase = args->phrase ? args->phrase : "fruit";
    b->runs = args->runs ? args->runs : 5;
    const int code = run(b);
    st_bench_rig_close(&b->rig);
    free(b);
    return code;
}
