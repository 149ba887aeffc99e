/* cmd_click.c: `stencil click`: one object, clicked at by an editor over standard input and output: one JSON command a
 * line, one JSON reply a line (docs/click.md).
 *
 * A line that fails is answered with an error and changes nothing: the session survives every line. Replies are
 * flushed, so a pipe works as a conversation.
 */
#include "cli/choices.h"
#include "cli/cli.h"
#include "cli/click_talk.h"
#include "front/lines.h"
#include "front/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_MODEL = 1, OPT_FEATURES, OPT_THREADS, OPT_SIZE, OPT_MEMORY, OPT_MULTIMASK, OPT_HOLE_AREA, OPT_HF, OPT_STRETCH, OPT_RESIZE,
    OPT_MAX_PIXELS, OPT_QUIET, OPT_VERBOSE, OPT_HELP
};
enum { MAX_LINE = 1 << 20 };

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model" },
    { "features", 0, "FILE", OPT_FEATURES, "a picture saved by `stencil encode --clicks`, in place of PICTURE" },
    { "multimask", 0, "WHEN", OPT_MULTIMASK, "three candidates: auto (for one lone point), on, off" },
    { "hole-area", 0, "N", OPT_HOLE_AREA,
      "fill holes of up to N cells of the mask grid; 0 = none (default: 256 at 288 x 288, scaled)" },
    { "hf", 0, NULL, OPT_HF, "as Hugging Face's port does it, for comparison" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only on standard error" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more on standard error" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_click_help(FILE *to)
{
    fputs("usage: stencil click [OPTION...] PICTURE\n\n"
          "Segments one object by clicks: reads one JSON command a line from standard input and answers each with one\n"
          "JSON line on standard output. Made for editors; docs/click.md lists commands and replies.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexample:\n"
          "  printf '%s\\n' '{\"op\": \"point\", \"x\": 384, \"y\": 240, \"label\": 1}' '{\"op\": \"save\", \"file\": "
          "\"mask.png\"}' |\n"
          "      stencil click photo.jpg -m sam3.safetensors\n"
          "\nexit codes: 0 input ended, 1 the first picture could not be opened, 2 usage, 3 model, 4 output, 5 "
          "internal,\n"
          "130 cancelled\n",
          to);
}

typedef struct click_run {
    const char *model, *picture, *features;
    st_model_wish wish;
    int verbosity;
    bool help;
    st_console console;
    st_cancel *cancel;
    st_click_talk talk;
} click_run;

/* ---- the conversation ---- */

/* Writes and steals the reply; `id` is the command's, if it had one. */
static int say(click_run *r, json_t *reply, json_t *id)
{
    if (reply && id) json_object_set(reply, "id", id);
    char *line = st_json_line(reply);
    if (!line) {
        st_console_error(&r->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    const bool written = fputs(line, stdout) >= 0 && fflush(stdout) == 0;
    free(line);
    if (written) return ST_EXIT_OK;
    st_console_error(&r->console, "standard output: cannot be written");
    return ST_EXIT_OUTPUT;
}

static bool is_blank(const char *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", line[i]) || !line[i]) return false;
    return true;
}

static int answer_line(click_run *r, const char *line, size_t n)
{
    json_error_t bad;
    char text[256];
    if (is_blank(line, n)) return ST_EXIT_OK;
    json_t *command = json_loadb(line, n, JSON_REJECT_DUPLICATES, &bad);
    if (!command) {
        snprintf(text, sizeof text, "not JSON: %.180s, at byte %d", bad.text, bad.position);
        return say(r, st_click_talk_fault("parse", text), NULL);
    }
    const int code = say(r, st_click_talk_answer(&r->talk, command), json_object_get(command, "id"));
    json_decref(command);
    return code;
}

static int converse(click_run *r)
{
    st_lines lines;
    const char *line;
    size_t n;
    char text[64];
    int code = ST_EXIT_OK;
    if (!st_lines_init(&lines, STDIN_FILENO, MAX_LINE, r->cancel)) return ST_EXIT_INTERNAL;
    snprintf(text, sizeof text, "a line of more than %d bytes", MAX_LINE);
    while (code == ST_EXIT_OK && !st_cancel_is_set(r->cancel)) {
        const st_line kind = st_lines_next(&lines, &line, &n);
        if (kind == ST_LINE_END) break;
        if (kind == ST_LINE_WHOLE) code = answer_line(r, line, n);
        if (kind == ST_LINE_TOO_LONG) code = say(r, st_click_talk_fault("limit", text), NULL);
    }
    st_lines_free(&lines);
    return code == ST_EXIT_OK && st_cancel_is_set(r->cancel) ? st_exit_of(ST_ERR_CANCELLED) : code;
}

/* ---- the command ---- */

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("click", option, got, expected);
}

static int read_option(click_run *r, int id, const char *value)
{
    st_click_options *click = &r->talk.options;
    st_picture_input *how = &r->talk.how;
    switch (id) {
    case ST_OPTION_WORD:
        if (r->picture) return st_usage_error("click", "takes one picture, got \"%s\" and \"%s\"", r->picture, value);
        r->picture = value;
        break;
    case OPT_MODEL: r->model = value; break;
    case OPT_FEATURES: r->features = value; break;
    case OPT_MULTIMASK: return wrong("multimask", value, st_read_multimask(&click->multimask, value));
    case OPT_HOLE_AREA: return wrong("hole-area", value, st_read_hole_area(&click->hole_area, value));
    case OPT_HF: click->hf = 1; break;
    case OPT_THREADS: return wrong("threads", value, st_read_threads(&r->wish.n_threads, value));
    case OPT_SIZE: return wrong("size", value, st_read_input_size(&r->wish.input_size, value));
    case OPT_MEMORY: return wrong("memory-limit", value, st_read_memory(&r->wish.memory_limit, value));
    case OPT_STRETCH: return wrong("stretch", value, st_read_stretch(&how->bitmap.stretch, value));
    case OPT_RESIZE: return wrong("resize", value, st_read_resize(&how->encode.resize, value));
    case OPT_MAX_PIXELS: return wrong("max-pixels", value, st_read_max_pixels(&how->bitmap.max_pixels, value));
    case OPT_QUIET: r->verbosity = -1; break;
    case OPT_VERBOSE: r->verbosity++; break;
    default: r->help = true; break;
    }
    return ST_EXIT_OK;
}

static int read_args(click_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (!r->help && (id = st_options_next(&o, &value)) != ST_OPTION_END) {
        const int code = id == ST_OPTION_WRONG ? st_usage_error("click", "%s", o.problem) : read_option(r, id, value);
        if (code != ST_EXIT_OK) return code;
    }
    if (r->help) return ST_EXIT_OK;
    if (r->picture && r->features)
        return st_usage_error("click", "--features stands in place of the picture, got \"%s\" as well", r->picture);
    return r->picture || r->features ? ST_EXIT_OK
                                     : st_usage_error("click", "expected a picture, or --features with a saved one");
}

static int start(click_run *r)
{
    st_error err;
    st_session_options session = ST_SESSION_OPTIONS_INIT;
    r->cancel = st_signals_watch();
    if (!r->cancel) return ST_EXIT_INTERNAL;
    int code = st_model_start(&r->talk.model, &r->console, r->model, &r->wish);
    if (code == ST_EXIT_OK) code = st_model_for_clicks(r->talk.model, &r->console);
    if (code != ST_EXIT_OK) return code;
    session.cancel = r->cancel;
    session.progress = st_console_progress;
    session.progress_user = &r->console;
    st_status status = st_session_new(&r->talk.session, r->talk.model, &session, &err);
    if (status == ST_OK) status = st_click_talk_open(&r->talk, r->picture, r->features, &err);
    st_console_clear(&r->console);
    if (status == ST_OK) return say(r, st_click_talk_opened(&r->talk), NULL);
    st_console_error(&r->console, "%s", err.message);
    return st_exit_of(status);
}

int st_cmd_click(int argc, char **argv)
{
    click_run *r = calloc(1, sizeof *r);
    if (!r) return ST_EXIT_INTERNAL;
    r->talk.options = (st_click_options)ST_CLICK_OPTIONS_INIT;
    r->talk.how = (st_picture_input){ NULL, NULL, ST_BITMAP_OPTIONS_INIT, ST_ENCODE_OPTIONS_INIT };
    int code = read_args(r, argc, argv);
    if (code == ST_EXIT_OK && r->help) st_cmd_click_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&r->console, r->verbosity);
        code = start(r);
        r->console.shows_progress = false; /* from here on standard error is an editor's log */
        if (code == ST_EXIT_OK) code = converse(r);
        st_click_talk_close(&r->talk);
        st_session_free(r->talk.session);
        st_model_free(r->talk.model);
    }
    free(r);
    return code;
}
