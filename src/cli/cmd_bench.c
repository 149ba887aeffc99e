/* cmd_bench.c: `stencil bench`: its options. A receipt holds every sample and says on what it
 * was measured, so that a figure can be argued about later; only medians are meant to be compared.
 */
#include "cli/bench.h"
#include "cli/segment_args.h"
#include "front/options.h"
#include "front/save.h"

#include <string.h>

enum {
    OPT_MODEL = 1, OPT_INSTANCES, OPT_SIZE, OPT_NOISE, OPT_RUNS, OPT_THREADS, OPT_MEMORY, OPT_JSON, OPT_QUIET, OPT_VERBOSE, OPT_HELP
};

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "picture, click: the model; else STENCIL_MODEL, else the demo model" },
    { "instances", 0, "N", OPT_INSTANCES, "masks: how many (default 100)" },
    { "size", 0, "PIXELS", OPT_SIZE,
      "masks: width and height of the picture (default 4032); picture, click: input size (default: the model's own)" },
    { "noise", 0, NULL, OPT_NOISE, "masks: logits that change sign everywhere, the worst case" },
    { "runs", 0, "N", OPT_RUNS, "samples of each figure, after one run to warm up (default 9; 5 for picture)" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default 2; for picture what affinity and CPU quota allow)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "json", 0, NULL, OPT_JSON, "machine-readable, with every sample" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only on stderr" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_bench_help(FILE *to)
{
    fputs(
        "usage: stencil bench masks [OPTION...]\n"
        "       stencil bench picture [OPTION...] [PICTURE] [PHRASE]\n"
        "       stencil bench click [OPTION...] [PICTURE]\n\n"
        "Measures this build on this machine. `masks` turns low-resolution logits into the runs of masks of a large\n"
        "picture and needs no model. `picture` opens a model, encodes a picture (a drawn one when none is given), and\n"
        "asks it for a phrase, for the same phrase again, and for further ones. Every answer holds the masks of the\n"
        "20 best instances, whatever they score. `click` clicks at an encoded picture: three candidates, ranked, with\n"
        "their low-resolution logits and the run lengths of the best; the second click refines the first.\n\n",
        to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n  stencil bench masks\n  stencil bench picture -m sam3.safetensors --threads 2 --json\n"
          "  stencil bench click -m sam3.safetensors\n\n"
          "exit codes: 0 done, 1 the picture cannot be read, 2 usage, 3 model, 4 output, 5 internal, 130 cancelled\n",
          to);
}

/* ---- the command line ---- */

typedef enum kind { KIND_NONE, KIND_MASKS, KIND_PICTURE, KIND_CLICK } kind;

struct reader {
    st_bench_args a;
    kind kind;
    bool help;
    const char *size;                    /* as written: means one thing to masks, another to the other two */
    const char *only_masks, *only_model; /* the last option that belongs to masks, or to the other two */
};

static int read_word(struct reader *r, const char *word)
{
    st_bench_args *a = &r->a;
    if (r->kind == KIND_NONE) {
        if (strcmp(word, "masks") == 0) r->kind = KIND_MASKS;
        else if (strcmp(word, "picture") == 0) r->kind = KIND_PICTURE;
        else if (strcmp(word, "click") == 0) r->kind = KIND_CLICK;
        else return st_usage_error("bench", "expected masks, picture or click, got \"%s\"", word);
        return ST_EXIT_OK;
    }
    if (r->kind == KIND_MASKS) return st_usage_error("bench", "masks takes no words, got \"%s\"", word);
    if (st_exists(word)) {
        if (a->picture) return st_usage_error("bench", "measures one picture, got \"%s\" and \"%s\"", a->picture, word);
        a->picture = word;
    } else if (st_looks_like_picture(word)) return st_usage_error("bench", "\"%s\": no such file", word);
    else if (r->kind == KIND_CLICK) return st_usage_error("bench", "click takes a picture, \"%s\" is no file", word);
    else {
        if (a->phrase) return st_usage_error("bench", "asks for one phrase, got \"%s\" and \"%s\"", a->phrase, word);
        a->phrase = word;
    }
    return ST_EXIT_OK;
}

static int read_count(uint32_t *out, const char *option, const char *value, uint32_t high)
{
    if (st_read_count(out, value, 1, high)) return ST_EXIT_OK;
    return st_usage_error("bench", "--%s: expected a whole number from 1 to %u, got \"%s\"", option, high, value);
}

static int read_option(struct reader *r, int id, const char *value)
{
    st_bench_args *a = &r->a;
    switch (id) {
    case ST_OPTION_WORD: return read_word(r, value);
    case OPT_MODEL: r->only_model = "model", a->model = value; break;
    case OPT_INSTANCES: r->only_masks = "instances"; return read_count(&a->instances, "instances", value, 10000);
    case OPT_SIZE: r->size = value; break;
    case OPT_NOISE: r->only_masks = "noise", a->noise = true; break;
    case OPT_RUNS: return read_count(&a->runs, "runs", value, ST_BENCH_MAX_RUNS);
    case OPT_THREADS: return read_count(&a->wish.n_threads, "threads", value, 1024);
    case OPT_MEMORY: r->only_model = "memory-limit"; return st_wrong_value("bench", "memory-limit", value, st_read_memory(&a->wish.memory_limit, value));
    case OPT_JSON: a->json = true; break;
    case OPT_QUIET: a->verbosity = -1; break;
    case OPT_VERBOSE: a->verbosity++; break;
    default: r->help = true; break;
    }
    return ST_EXIT_OK;
}

static int read_size(struct reader *r)
{
    if (!r->size) return ST_EXIT_OK;
    if (r->kind == KIND_MASKS) return read_count(&r->a.size, "size", r->size, 65535);
    return st_wrong_value("bench", "size", r->size, st_read_input_size(&r->a.wish.input_size, r->size));
}

static int read_args(struct reader *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (!r->help && (id = st_options_next(&o, &value)) != ST_OPTION_END) {
        if (id == ST_OPTION_WRONG) return st_usage_error("bench", "%s", o.problem);
        const int code = read_option(r, id, value);
        if (code != ST_EXIT_OK) return code;
    }
    if (r->help) return ST_EXIT_OK;
    if (r->kind == KIND_NONE) return st_usage_error("bench", "what to measure? expected masks, picture or click");
    if (r->kind == KIND_MASKS && r->only_model)
        return st_usage_error("bench", "--%s belongs to picture and click, not to masks", r->only_model);
    if (r->kind != KIND_MASKS && r->only_masks)
        return st_usage_error("bench", "--%s belongs to masks, not to %s", r->only_masks,
                              r->kind == KIND_CLICK ? "click" : "picture");
    return read_size(r);
}

int st_cmd_bench(int argc, char **argv)
{
    struct reader r = { .a = { .instances = 100, .size = 4032 } };
    const int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_bench_help(stdout);
        return ST_EXIT_OK;
    }
    if (r.kind == KIND_MASKS) return st_bench_masks(&r.a);
    return r.kind == KIND_CLICK ? st_bench_click(&r.a) : st_bench_picture(&r.a);
}
