/* cmd_encode.c: `stencil encode`: one picture's features into a file, so that phrases and clicks later cost no encode.
 * The file also says how the picture was read, so that results from it are documented as well as direct ones.
 */
#include "cli/choices.h"
#include "cli/cli.h"
#include "cli/picture_input.h"
#include "front/options.h"
#include "front/save.h"

enum {
    OPT_MODEL = 1, OPT_OUTPUT, OPT_CLICKS, OPT_HALF, OPT_STRETCH, OPT_RESIZE, OPT_MAX_PIXELS, OPT_THREADS, OPT_SIZE, OPT_MEMORY, OPT_QUIET,
    OPT_VERBOSE, OPT_HELP
};

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model" },
    { "output", 'o', "FILE", OPT_OUTPUT, "where to write (required)" },
    { "clicks", 0, NULL, OPT_CLICKS, "also what points, regions and masks need" },
    { "half", 0, NULL, OPT_HALF, "16-bit floats: half the size; scores move in the third decimal" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_encode_help(FILE *to)
{
    fputs("usage: stencil encode PICTURE -o FILE [OPTION...]\n\n"
          "Encodes a picture and saves the features. `stencil segment --features FILE` and `stencil click --features "
          "FILE`\n"
          "then give the same results without encoding it again. Only the model that made a file can read it.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexample:\n  stencil encode photo.jpg --clicks -o photo.features -m sam3.safetensors\n"
          "\nexit codes: 0 done, 1 the picture could not be read, 2 usage, 3 model, 4 output, 5 internal, 130 "
          "cancelled\n",
          to);
}

typedef struct encode_run {
    st_picture_input in;
    const char *model_path, *output;
    int half, verbosity;
    st_model_wish wish;
    bool help;
    st_console console;
    st_cancel *cancel;
    st_model *model;
} encode_run;

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("encode", option, got, expected);
}

static int read_option(encode_run *r, int id, const char *value)
{
    switch (id) {
    case ST_OPTION_WORD:
        if (r->in.file) return st_usage_error("encode", "takes one picture, got \"%s\" and \"%s\"", r->in.file, value);
        r->in.file = value;
        break;
    case OPT_MODEL: r->model_path = value; break;
    case OPT_OUTPUT: r->output = value; break;
    case OPT_CLICKS: r->in.encode.for_clicks = 1; break;
    case OPT_HALF: r->half = 1; break;
    case OPT_STRETCH: return wrong("stretch", value, st_read_stretch(&r->in.bitmap.stretch, value));
    case OPT_RESIZE: return wrong("resize", value, st_read_resize(&r->in.encode.resize, value));
    case OPT_MAX_PIXELS: return wrong("max-pixels", value, st_read_max_pixels(&r->in.bitmap.max_pixels, value));
    case OPT_THREADS: return wrong("threads", value, st_read_threads(&r->wish.n_threads, value));
    case OPT_SIZE: return wrong("size", value, st_read_input_size(&r->wish.input_size, value));
    case OPT_MEMORY: return wrong("memory-limit", value, st_read_memory(&r->wish.memory_limit, value));
    case OPT_QUIET: r->verbosity = -1; break;
    case OPT_VERBOSE: r->verbosity++; break;
    default: r->help = true; break;
    }
    return ST_EXIT_OK;
}

static int read_args(encode_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (!r->help && (id = st_options_next(&o, &value)) != ST_OPTION_END) {
        const int code = id == ST_OPTION_WRONG ? st_usage_error("encode", "%s", o.problem) : read_option(r, id, value);
        if (code != ST_EXIT_OK) return code;
    }
    if (r->help) return ST_EXIT_OK;
    if (!r->in.file) return st_usage_error("encode", "expected a picture");
    if (!r->output) return st_usage_error("encode", "expected -o FILE");
    if (st_same_file(r->in.file, r->output))
        return st_usage_error("encode", "-o would overwrite the picture %s", r->output);
    return ST_EXIT_OK;
}

static int start(encode_run *r)
{
    st_error err;
    if (st_save_possible(r->output, &err) != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        return ST_EXIT_OUTPUT;
    }
    r->cancel = st_signals_watch();
    if (!r->cancel) return ST_EXIT_INTERNAL;
    int code = st_model_spared(&r->console, r->model_path, &r->output, 1);
    if (code != ST_EXIT_OK) return code;
    code = st_model_start(&r->model, &r->console, r->model_path, &r->wish);
    if (code != ST_EXIT_OK || !r->in.encode.for_clicks) return code;
    return st_model_for_clicks(r->model, &r->console);
}

static int save(encode_run *r)
{
    st_error err;
    st_session *session = NULL;
    st_picture_opened opened = { 0 };
    st_picture_report about = { .file = r->in.file, .half = r->half != 0 };
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    how.cancel = r->cancel;
    how.progress = st_console_progress;
    how.progress_user = &r->console;
    st_status status = st_session_new(&session, r->model, &how, &err);
    if (status == ST_OK) status = st_picture_input_open(&opened, &about, &r->in, r->model, session, &err);
    int code = st_exit_of(status);
    if (status == ST_OK) {
        status = st_picture_save(opened.picture, r->output, r->half, &err);
        if (status != ST_OK) code = ST_EXIT_OUTPUT;
    }
    st_console_clear(&r->console);
    if (status != ST_OK) st_console_error(&r->console, "%s", err.message);
    else st_console_note(&r->console, "wrote %s", r->output);
    st_picture_opened_free(&opened);
    st_session_free(session);
    return code;
}

int st_cmd_encode(int argc, char **argv)
{
    encode_run r = { .in = { NULL, NULL, ST_BITMAP_OPTIONS_INIT, ST_ENCODE_OPTIONS_INIT } };
    int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_encode_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&r.console, r.verbosity);
    code = start(&r);
    if (code == ST_EXIT_OK) code = save(&r);
    st_model_free(r.model);
    return code;
}
