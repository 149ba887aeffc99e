/* cmd_encode.c: `stencil encode`: one picture's features into a file, so that phrases and clicks later cost no encode. */
#include "cli/cli.h"
#include "front/options.h"
#include "front/save.h"

#include <string.h>

enum { OPT_MODEL = 1, OPT_OUTPUT, OPT_CLICKS, OPT_HALF, OPT_RESIZE, OPT_THREADS, OPT_QUIET, OPT_VERBOSE, OPT_HELP };

static const st_option options[] = {
    {"model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model"},
    {"output", 'o', "FILE", OPT_OUTPUT, "where to write (required)"},
    {"clicks", 0, NULL, OPT_CLICKS, "also what points, regions and masks need"},
    {"half", 0, NULL, OPT_HALF, "16-bit floats: half the size; scores move in the third decimal"},
    {"resize", 0, "gpu|cpu", OPT_RESIZE, "resize arithmetic (default gpu; docs/preprocessing.md)"},
    {"threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)"},
    {"quiet", 'q', NULL, OPT_QUIET, "errors only"},
    {"verbose", 'v', NULL, OPT_VERBOSE, "say more"},
    {"help", 'h', NULL, OPT_HELP, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_encode_help(FILE *to)
{
    fputs("usage: stencil encode PICTURE -o FILE [OPTION...]\n\n"
          "Encodes a picture and saves the features. `stencil segment --features FILE` and `stencil click --features FILE`\n"
          "then give the same results without encoding it again. Only the model that made a file can read it.\n\n", to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexample:\n  stencil encode photo.jpg --clicks -o photo.features -m sam3.safetensors\n"
          "\nexit codes: 0 done, 1 the picture could not be read, 2 usage, 3 model, 4 output, 5 internal, 130 cancelled\n", to);
}

typedef struct encode_run {
    const char *model_path, *picture, *output;
    st_encode_options how;
    int half, verbosity;
    uint32_t n_threads;
    bool help;
} encode_run;

static int read_args(encode_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while ((id = st_options_next(&o, &value)) != ST_OPTION_END) {
        switch (id) {
        case ST_OPTION_WORD:
            if (r->picture) return st_usage_error("encode", "takes one picture, got \"%s\" and \"%s\"", r->picture, value);
            r->picture = value;
            break;
        case OPT_MODEL: r->model_path = value; break;
        case OPT_OUTPUT: r->output = value; break;
        case OPT_CLICKS: r->how.for_clicks = 1; break;
        case OPT_HALF: r->half = 1; break;
        case OPT_RESIZE:
            if (strcmp(value, "cpu") != 0 && strcmp(value, "gpu") != 0) return st_usage_error("encode", "--resize: expected gpu or cpu, got \"%s\"", value);
            r->how.resize = strcmp(value, "cpu") == 0 ? ST_RESIZE_CPU : ST_RESIZE_GPU;
            break;
        case OPT_THREADS:
            if (!st_read_count(&r->n_threads, value, 1, 1024)) return st_usage_error("encode", "--threads: expected a whole number from 1 to 1024, got \"%s\"", value);
            break;
        case OPT_QUIET: r->verbosity = -1; break;
        case OPT_VERBOSE: r->verbosity++; break;
        case OPT_HELP: r->help = true; return ST_EXIT_OK;
        default: return st_usage_error("encode", "%s", o.problem);
        }
    }
    if (!r->picture) return st_usage_error("encode", "expected a picture");
    if (!r->output) return st_usage_error("encode", "expected -o FILE");
    if (st_same_file(r->picture, r->output)) return st_usage_error("encode", "%s: the output is the picture itself", r->output);
    return ST_EXIT_OK;
}

static int save(const encode_run *r, st_console *console, st_model *model, st_cancel *cancel)
{
    st_error err;
    st_session *session = NULL;
    st_picture *picture = NULL;
    st_bitmap bitmap = {0};
    st_session_options options_ = ST_SESSION_OPTIONS_INIT;
    options_.cancel = cancel;
    options_.progress = st_console_progress;
    options_.progress_user = console;
    int code = ST_EXIT_OUTPUT;
    st_status status = st_save_possible(r->output, &err);
    if (status == ST_OK) {
        code = ST_EXIT_PARTLY;
        status = st_bitmap_load(&bitmap, r->picture, NULL, &err);
    }
    if (status == ST_OK) {
        code = ST_EXIT_MODEL;
        const st_image image = {bitmap.rgb, bitmap.width, bitmap.height, (size_t)bitmap.width * 3, ST_PIXEL_RGB8};
        status = st_session_new(&session, model, &options_, &err);
        if (status == ST_OK) status = st_picture_encode(&picture, session, &image, &r->how, &err);
    }
    if (status == ST_OK) {
        code = ST_EXIT_OUTPUT;
        status = st_picture_save(picture, r->output, r->half, &err);
    }
    st_console_clear(console);
    if (status == ST_ERR_CANCELLED) code = ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    if (status != ST_OK) st_console_error(console, "%s", err.message);
    else st_console_say(console, "wrote %s", r->output);
    st_bitmap_free(&bitmap);
    st_picture_free(picture);
    st_session_free(session);
    return status == ST_OK ? ST_EXIT_OK : code;
}

int st_cmd_encode(int argc, char **argv)
{
    encode_run r = {.how = ST_ENCODE_OPTIONS_INIT};
    st_console console;
    st_model *model = NULL;
    int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_encode_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&console, r.verbosity);
    st_cancel *cancel = st_signals_watch();
    if (!cancel) return ST_EXIT_INTERNAL;
    code = st_model_start(&model, &console, r.model_path, r.n_threads);
    if (code == ST_EXIT_OK) code = save(&r, &console, model, cancel);
    st_model_free(model);
    return code;
}
