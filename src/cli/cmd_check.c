/* cmd_check.c: `stencil check`: the library's self-check of a model on this machine, a line per thing that was looked at. */
#include "cli/choices.h"
#include "cli/cli.h"
#include "front/options.h"
#include "front/report.h"
#include "front/save.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_JSON, OPT_THREADS, OPT_SIZE, OPT_QUIET, OPT_VERBOSE, OPT_HELP };

static const st_option options[] = {
    {"model", 'm', "PATH", OPT_MODEL, "the model to check; else STENCIL_MODEL, else the demo model"},
    {"json", 0, NULL, OPT_JSON, "machine-readable"},
    {"threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)"},
    {"size", 0, "PIXELS", OPT_SIZE, "check at this input size, e.g. 504, 672, 1344 (default: the model's own)"},
    {"quiet", 'q', NULL, OPT_QUIET, "only lines that failed"},
    {"verbose", 'v', NULL, OPT_VERBOSE, "say more"},
    {"help", 'h', NULL, OPT_HELP, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_check_help(FILE *to)
{
    fputs("usage: stencil check [OPTION...]\n\n"
          "Runs every stage of the model on a built-in input on this machine. The demo model is compared with stored\n"
          "results of the reference; any other model is checked for finite values of plausible size.\n\n", to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n  stencil check\n  stencil check -m sam3.safetensors\n\nexit codes: 0 all passed, 1 a line failed, 2 usage, 3 model, 5 internal, 130 cancelled\n", to);
}

struct run {
    const char *model;
    st_model_wish wish;
    bool json, help;
    int verbosity;
    st_console console;
    json_t *lines;
    size_t n_lines;
    bool failed_memory;
};

static json_t *number_json(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static void on_line(void *user, const st_check_line *line)
{
    struct run *r = user;
    r->n_lines++;
    st_console_clear(&r->console);
    if (r->json) {
        json_t *json = json_pack("{s:s,s:s,s:o,s:o,s:b}", "stage", line->stage, "what", line->what, "value", number_json(line->value), "bound",
                                 number_json(line->bound), "passed", line->passed != 0);
        if (json_array_append_new(r->lines, json) != 0) r->failed_memory = true;
    } else if (!line->passed || r->verbosity >= 0)
        printf("%-6s  %-28s %-16s %12.4g  bound %.4g\n", line->passed ? "ok" : "FAILED", line->stage, line->what, line->value, line->bound);
}

static int read_args(struct run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while ((id = st_options_next(&o, &value)) != ST_OPTION_END) {
        switch (id) {
        case ST_OPTION_WORD: return st_usage_error("check", "takes no words, got \"%s\"; a model is given with -m", value);
        case OPT_MODEL: r->model = value; break;
        case OPT_THREADS:
            if (!st_read_count(&r->wish.n_threads, value, 1, 1024)) return st_usage_error("check", "--threads: expected a whole number from 1 to 1024, got \"%s\"", value);
            break;
        case OPT_SIZE:
            if (st_read_input_size(&r->wish.input_size, value)) return st_wrong_value("check", "size", value, st_read_input_size(&r->wish.input_size, value));
            break;
        case OPT_JSON: r->json = true; break;
        case OPT_QUIET: r->verbosity = -1; break;
        case OPT_VERBOSE: r->verbosity++; break;
        case OPT_HELP: r->help = true; return ST_EXIT_OK;
        default: return st_usage_error("check", "%s", o.problem);
        }
    }
    return ST_EXIT_OK;
}

/* Prints the outcome; returns the exit code of a check that ran to its end. */
static int finish(struct run *r, const st_model_info *info, size_t n_failed)
{
    if (!r->json) {
        if (n_failed || r->verbosity >= 0)
            printf("%zu of %zu lines passed: %s, %s kernels, products by %s, %u threads\n", r->n_lines - n_failed, r->n_lines, info->version, info->cpu_level,
                   info->gemm, info->n_threads);
        return n_failed ? ST_EXIT_PARTLY : ST_EXIT_OK;
    }
    json_t *doc = json_pack("{s:s,s:{s:s,s:s,s:s,s:I},s:s,s:s,s:I,s:O,s:I}", "stencil", st_version(), "model", "id", info->id, "version", info->version, "precision",
                            info->precision, "input_size", (json_int_t)info->input_size, "cpu_level", info->cpu_level, "gemm", info->gemm, "threads", (json_int_t)info->n_threads, "lines", r->lines,
                            "failed", (json_int_t)n_failed);
    char *text = r->failed_memory ? (json_decref(doc), NULL) : st_json_line(doc);
    st_error err = {ST_ERR_NOMEM, "out of memory"};
    const st_status status = text ? st_save_text(NULL, text, strlen(text), &err) : ST_ERR_NOMEM;
    free(text);
    if (status == ST_OK) return n_failed ? ST_EXIT_PARTLY : ST_EXIT_OK;
    st_console_error(&r->console, "%s", err.message);
    return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}

static int failure(struct run *r, st_status status, const st_error *err)
{
    st_console_error(&r->console, "%s", status == ST_ERR_CANCELLED ? "cancelled" : err->message);
    if (status == ST_ERR_CANCELLED) return ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    return status == ST_ERR_NOMEM || status == ST_ERR_INTERNAL ? ST_EXIT_INTERNAL : ST_EXIT_MODEL;
}

static int check(struct run *r, st_model *model)
{
    st_error err = {ST_OK, ""};
    st_session *session = NULL;
    size_t n_failed = 0;
    st_model_info info = ST_MODEL_INFO_INIT;
    st_session_options session_options = ST_SESSION_OPTIONS_INIT;
    session_options.cancel = st_signals_watch();
    session_options.progress = st_console_progress;
    session_options.progress_user = &r->console;
    st_status status = st_model_get_info(model, &info, &err);
    if (status == ST_OK) status = st_session_new(&session, model, &session_options, &err);
    if (status == ST_OK) status = st_model_check(session, on_line, r, &n_failed, &err);
    st_console_clear(&r->console);
    const int code = status == ST_OK ? finish(r, &info, n_failed) : failure(r, status, &err);
    st_session_free(session);
    return code;
}

int st_cmd_check(int argc, char **argv)
{
    struct run r = {0};
    st_model *model = NULL;
    int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_check_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&r.console, r.verbosity);
    r.lines = json_array();
    code = r.lines ? st_model_start(&model, &r.console, r.model, &r.wish) : ST_EXIT_INTERNAL;
    if (code == ST_EXIT_OK) code = check(&r, model);
    st_model_free(model);
    json_decref(r.lines);
    return code;
}
