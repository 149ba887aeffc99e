/* cmd_info.c: `stencil info`: what a model file holds and what running it will take. */
#include "cli/choices.h"
#include "cli/cli.h"
#include "front/options.h"
#include "front/report.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_JSON, OPT_PLAN, OPT_THREADS, OPT_SIZE, OPT_MEMORY, OPT_QUIET, OPT_VERBOSE, OPT_HELP };

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "the same as the word FILE" },
    { "json", 0, NULL, OPT_JSON, "machine-readable" },
    { "plan", 0, NULL, OPT_PLAN, "the memory plan only" },
    { "threads", 'j', "N", OPT_THREADS, "plan for this many threads" },
    { "size", 0, "PIXELS", OPT_SIZE, "plan for pictures of this side, e.g. 504, 672, 1344 (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "also name every unused tensor" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_info_help(FILE *to)
{
    fputs("usage: stencil info [OPTION...] [FILE]\n\n"
          "Describes a checkpoint (.pt, .safetensors, .safetensors.index.json or a folder): model, identity, parts,\n"
          "tensors that this version does not use, and the memory that one picture and one phrase will take.\n"
          "Nothing in the file is executed. Without FILE: STENCIL_MODEL, else the demo model.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n  stencil info sam3.pt\n  stencil info --plan -m sam3.safetensors\n  stencil info --json sam3/ "
          "| jq .parts\n",
          to);
}

static const char *yes_no(int value)
{
    return value ? "yes" : "no";
}

static void print_bytes(uint64_t bytes, const char *name)
{
    printf("  %12.1f MiB  %s\n", (double)bytes / (1024.0 * 1024.0), name);
}

static void print_plan(const st_model_info *m)
{
    printf("memory plan, one picture of %u x %u pixels and one phrase\n", m->input_size, m->input_size);
    for (size_t i = 0; i < m->n_plan; i++) print_bytes(m->plan[i].bytes, m->plan[i].name);
    print_bytes(m->plan_peak, "peak");
}

static void print_text(const st_model_info *m, bool verbose)
{
    uint64_t elements = 0;
    printf("model       %s\nid          %s\nlayout      %s\ncontainer   %s\nstored      %s\ncomputes    %s\n",
           m->version, m->id, m->layout, m->container, m->dtypes, m->precision);
    printf("input       %u x %u pixels", m->input_size, m->input_size);
    if (m->input_size != m->own_input_size) printf(" (the model's own: %u x %u)", m->own_input_size, m->own_input_size);
    printf(", masks from %u x %u, at most %u instances per prompt\n", m->mask_size, m->mask_size, m->n_queries);
    printf("runs on     %s kernels, products by %s, %u thread%s\n\nparts\n", m->cpu_level, m->gemm, m->n_threads,
           m->n_threads == 1 ? "" : "s");
    for (size_t i = 0; i < m->n_parts; i++) {
        printf("  %12llu parameters  %5llu tensors  %s\n", (unsigned long long)m->parts[i].n_elements,
               (unsigned long long)m->parts[i].n_tensors, m->parts[i].name);
        elements += m->parts[i].n_elements;
    }
    printf("  %12llu parameters in all\n\n", (unsigned long long)elements);
    printf("can do\n  phrases and example boxes: %s\n  clicks: %s\n  tracking: %s\n\n", yes_no(m->can_segment),
           yes_no(m->can_click), m->can_track ? "the weights are there, this version does not use them" : "no");
    printf("known but unused here: %zu tensors%s\n", m->n_unused, m->n_unused && !verbose ? " (-v names them)" : "");
    for (size_t i = 0; verbose && i < m->n_unused; i++) printf("  %s\n", m->unused[i]);
    printf("\n");
    print_plan(m);
}

static json_t *plan_json(const st_model_info *m)
{
    json_t *lines = json_array();
    for (size_t i = 0; i < m->n_plan; i++)
        if (json_array_append_new(
                lines, json_pack("{s:s,s:I}", "name", m->plan[i].name, "bytes", (json_int_t)m->plan[i].bytes)) != 0) {
            json_decref(lines);
            return NULL;
        }
    return json_pack("{s:o,s:I,s:I}", "lines", lines, "peak_bytes", (json_int_t)m->plan_peak, "input_size",
                     (json_int_t)m->input_size);
}

static json_t *parts_json(const st_model_info *m)
{
    json_t *parts = json_array();
    for (size_t i = 0; i < m->n_parts; i++)
        if (json_array_append_new(parts, json_pack("{s:s,s:I,s:I}", "name", m->parts[i].name, "tensors",
                                                   (json_int_t)m->parts[i].n_tensors, "parameters",
                                                   (json_int_t)m->parts[i].n_elements)) != 0) {
            json_decref(parts);
            return NULL;
        }
    return parts;
}

static json_t *unused_json(const st_model_info *m)
{
    json_t *unused = json_array();
    for (size_t i = 0; i < m->n_unused; i++)
        if (json_array_append_new(unused, st_json_text(m->unused[i])) != 0) {
            json_decref(unused);
            return NULL;
        }
    return unused;
}

static json_t *info_json(const st_model_info *m)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:I,s:o,s:o,s:{s:b,s:b,s:b},s:o,s:s,s:s,s:I}", "stencil",
                     st_version(), "id", m->id, "version", m->version, "layout", m->layout, "container", m->container,
                     "precision", m->precision, "dtypes", m->dtypes, "input_size", (json_int_t)m->input_size,
                     "own_input_size", (json_int_t)m->own_input_size, "mask_size", (json_int_t)m->mask_size, "queries", (json_int_t)m->n_queries, "parts", parts_json(m),
                     "unused", unused_json(m), "can", "segment", m->can_segment, "click", m->can_click, "track",
                     m->can_track, "plan", plan_json(m), "cpu_level", m->cpu_level, "gemm", m->gemm, "threads",
                     (json_int_t)m->n_threads);
}

struct settings {
    const char *model;
    st_model_wish wish;
    bool json, plan, help;
    int verbosity;
};

static int read_args(struct settings *s, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while ((id = st_options_next(&o, &value)) != ST_OPTION_END) {
        switch (id) {
        case ST_OPTION_WORD:
        case OPT_MODEL:
            if (s->model) return st_usage_error("info", "describes one model, got \"%s\" and \"%s\"", s->model, value);
            s->model = value;
            break;
        case OPT_THREADS:
            if (!st_read_count(&s->wish.n_threads, value, 1, 1024))
                return st_usage_error("info", "--threads: expected a whole number from 1 to 1024, got \"%s\"", value);
            break;
        case OPT_SIZE:
            if (st_read_input_size(&s->wish.input_size, value))
                return st_wrong_value("info", "size", value, st_read_input_size(&s->wish.input_size, value));
            break;
        case OPT_MEMORY:
            if (st_read_memory(&s->wish.memory_limit, value)) return st_wrong_value("info", "memory-limit", value, st_read_memory(&s->wish.memory_limit, value));
            break;
        case OPT_JSON: s->json = true; break;
        case OPT_PLAN: s->plan = true; break;
        case OPT_QUIET: s->verbosity = -1; break;
        case OPT_VERBOSE: s->verbosity++; break;
        case OPT_HELP: s->help = true; return ST_EXIT_OK;
        default: return st_usage_error("info", "%s", o.problem);
        }
    }
    return ST_EXIT_OK;
}

static int print_json(json_t *doc)
{
    char *text = st_json_line(doc);
    st_error err = { ST_ERR_NOMEM, "out of memory" };
    st_status status = text ? st_save_text(NULL, text, strlen(text), &err) : ST_ERR_NOMEM;
    free(text);
    if (status == ST_OK) return ST_EXIT_OK;
    fprintf(stderr, "stencil: %s\n", err.message);
    return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}

int st_cmd_info(int argc, char **argv)
{
    struct settings s = { 0 };
    st_console console;
    st_error err;
    st_model *model = NULL;
    st_model_info info = ST_MODEL_INFO_INIT;
    int code = read_args(&s, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (s.help) {
        st_cmd_info_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&console, s.verbosity);
    if ((code = st_model_start(&model, &console, s.model, &s.wish)) != ST_EXIT_OK) return code;
    if (st_model_get_info(model, &info, &err) != ST_OK) {
        st_console_error(&console, "%s", err.message);
        code = ST_EXIT_MODEL;
    } else if (s.json) code = print_json(s.plan ? plan_json(&info) : info_json(&info));
    else if (s.plan) print_plan(&info);
    else print_text(&info, s.verbosity > 0);
    st_model_free(model);
    return code;
}
