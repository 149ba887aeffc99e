/* cmd_click.c: `stencil click`: one object, clicked at by an editor over standard input and output: one JSON command a line, one JSON reply a line (docs/click.md).
 *
 * A line that fails is answered with an error and changes nothing: the session survives every line. Replies are flushed, so a pipe works as a conversation.
 */
#include "cli/cli.h"
#include "cli/mask_prompt.h"
#include "front/options.h"
#include "front/report.h"
#include "front/save.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_FEATURES, OPT_THREADS, OPT_MULTIMASK, OPT_HOLES, OPT_HF, OPT_QUIET, OPT_VERBOSE, OPT_HELP };
enum { MAX_LINE = 1 << 20 };

static const st_option options[] = {
    {"model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model"},
    {"features", 0, "FILE", OPT_FEATURES, "a picture saved by `stencil encode --clicks`, in place of PICTURE"},
    {"multimask", 0, "auto|on|off", OPT_MULTIMASK, "candidates: three for a lone point (auto), always, never"},
    {"hole-area", 0, "N", OPT_HOLES, "fill holes of up to N cells of the mask grid; 0 = off (default: scaled from 256)"},
    {"hf", 0, NULL, OPT_HF, "as Hugging Face's port does it, for comparison"},
    {"threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)"},
    {"quiet", 'q', NULL, OPT_QUIET, "no notes on standard error"},
    {"verbose", 'v', NULL, OPT_VERBOSE, "say more on standard error"},
    {"help", 'h', NULL, OPT_HELP, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_click_help(FILE *to)
{
    fputs("usage: stencil click [OPTION...] PICTURE\n\n"
          "Segments one object by clicks: reads one JSON command a line from standard input and answers each with one\n"
          "JSON line on standard output. Made for editors; docs/click.md lists commands and replies.\n\n", to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexample:\n"
          "  printf '%s\\n' '{\"op\": \"point\", \"x\": 384, \"y\": 240, \"label\": 1}' '{\"op\": \"save\", \"file\": \"mask.png\"}' |\n"
          "      stencil click photo.jpg -m sam3.safetensors\n"
          "\nexit codes: 0 input ended, 2 usage, 3 model or picture, 4 output, 5 internal, 130 cancelled\n", to);
}

typedef struct click_run {
    const char *model_path, *picture_path, *features_path;
    uint32_t n_threads;
    int verbosity;
    bool help;
    st_click_options options;
    st_console console;
    st_cancel *cancel;
    st_model *model;
    st_session *session;
    st_picture *picture;
    st_object *object;
    uint32_t width, height;
    json_t *verbs;  /* what was said, in order: the effective prompt */
} click_run;

/* ---- replies ---- */

static json_t *failure(const char *code, const char *fmt, ...) ST_PRINTF(2, 3);
static json_t *failure(const char *code, const char *fmt, ...)
{
    char text[640];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return json_pack("{s:b,s:{s:s,s:o}}", "ok", 0, "error", "code", code, "message", st_json_text(text));
}

static json_t *library_failure(st_status status, const st_error *err) { return failure(st_status_name(status), "%s", err->message); }

static json_t *candidate_json(const st_candidate *c, size_t rank, bool with_mask)
{
    json_t *json = json_pack("{s:I,s:I,s:o}", "rank", (json_int_t)rank, "index", (json_int_t)c->index, "predicted_iou", st_json_float(c->iou));
    if (!json || !with_mask || !c->mask.counts) return json;
    char *counts = NULL;
    if (st_rle_to_string(&counts, &c->mask, NULL) != ST_OK) {
        json_decref(json);
        return NULL;
    }
    json_object_set_new(json, "area", json_integer((json_int_t)c->area));
    json_object_set_new(json, "mask", json_pack("{s:[I,I],s:s}", "size", (json_int_t)c->mask.height, (json_int_t)c->mask.width, "counts", counts));
    st_string_free(counts);
    return json;
}

/* State, and ranked candidates: the mask of the chosen one, or of all. */
static json_t *state_json(const click_run *r, const char *op, bool all_masks)
{
    const st_click_result *result = r->object ? st_object_result(r->object) : NULL;
    json_t *json = json_pack("{s:b,s:s,s:O,s:I}", "ok", 1, "op", op, "prompt", r->verbs, "chosen", (json_int_t)st_object_chosen(r->object));
    json_t *candidates = json_array();
    for (size_t i = 0; result && i < result->n_candidates; i++)
        json_array_append_new(candidates, candidate_json(&result->candidates[i], i, all_masks || i == st_object_chosen(r->object)));
    if (json && result) json_object_set_new(json, "object_score", st_json_float(result->object_score));
    if (json) json_object_set_new(json, "candidates", candidates);
    return json;
}

/* ---- the picture ---- */

static st_status open_picture(click_run *r, const char *path, bool saved, st_error *err)
{
    st_picture *picture = NULL;
    st_object *object = NULL;
    st_bitmap bitmap = {0};
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.for_clicks = 1;
    st_status status;
    if (saved) status = st_picture_load(&picture, r->model, path, err);
    else {
        status = st_bitmap_load(&bitmap, path, NULL, err);
        const st_image image = {bitmap.rgb, bitmap.width, bitmap.height, (size_t)bitmap.width * 3, ST_PIXEL_RGB8};
        if (status == ST_OK) status = st_picture_encode(&picture, r->session, &image, &how, err);
        st_bitmap_free(&bitmap);
    }
    if (status == ST_OK) status = st_object_new(&object, r->session, picture, &r->options, err);
    if (status != ST_OK) {
        st_picture_free(picture);
        return status;
    }
    st_object_free(r->object);
    st_picture_free(r->picture);
    r->object = object;
    r->picture = picture;
    st_picture_size(picture, &r->width, &r->height);
    json_array_clear(r->verbs);
    return ST_OK;
}

static json_t *opened_json(const click_run *r, const char *path)
{
    return json_pack("{s:b,s:s,s:o,s:I,s:I}", "ok", 1, "op", "open", "file", st_json_text(path), "width", (json_int_t)r->width, "height", (json_int_t)r->height);
}

/* ---- commands ---- */

static bool number(const json_t *command, const char *key, float *out)
{
    const json_t *value = json_object_get(command, key);
    if (!json_is_number(value)) return false;
    *out = (float)json_number_value(value);
    return isfinite(*out);
}

/* After a verb that went well: remember it, and answer with the new state. */
static json_t *after_verb(click_run *r, const char *op, json_t *verb)
{
    if (!verb || json_array_append_new(r->verbs, verb) != 0) return NULL;
    return state_json(r, op, false);
}

static json_t *do_point(click_run *r, const json_t *command)
{
    st_point p;
    st_error err;
    const json_t *label = json_object_get(command, "label");
    if (!number(command, "x", &p.x) || !number(command, "y", &p.y)) return failure("invalid_argument", "point: \"x\" and \"y\" must be numbers, in pixels of the picture as shown");
    if (label && !json_is_integer(label)) return failure("invalid_argument", "point: \"label\" must be 1 (on the object) or 0");
    p.positive = label ? (int)json_integer_value(label) : 1;
    const st_status status = st_object_point(r->object, &p, &err);
    if (status != ST_OK) return library_failure(status, &err);
    return after_verb(r, "point", json_pack("{s:s,s:o,s:o,s:i}", "op", "point", "x", st_json_float(p.x), "y", st_json_float(p.y), "label", p.positive));
}

static json_t *do_region(click_run *r, const json_t *command)
{
    const json_t *box = json_object_get(command, "box");
    float v[4];
    st_error err;
    for (size_t i = 0; i < 4; i++) {
        const json_t *value = json_array_get(box, i);
        if (json_array_size(box) != 4 || !json_is_number(value)) return failure("invalid_argument", "region: \"box\" must be [x0, y0, x1, y1], in pixels of the picture as shown");
        v[i] = (float)json_number_value(value);
    }
    const st_status status = st_object_region(r->object, &(st_region){v[0], v[1], v[2], v[3]}, &err);
    if (status != ST_OK) return library_failure(status, &err);
    return after_verb(r, "region", json_pack("{s:s,s:[o,o,o,o]}", "op", "region", "box", st_json_float(v[0]), st_json_float(v[1]), st_json_float(v[2]), st_json_float(v[3])));
}

static json_t *do_mask(click_run *r, const json_t *command)
{
    const char *file = json_string_value(json_object_get(command, "file"));
    float *logits = NULL;
    st_error err;
    if (!file) return failure("invalid_argument", "mask: \"file\" must name a mask picture or a .npy of logits");
    st_status status = st_mask_prompt_read(&logits, r->model, file, r->width, r->height, &err);
    if (status == ST_OK) status = st_object_mask(r->object, logits, &err);
    free(logits);
    if (status != ST_OK) return library_failure(status, &err);
    return after_verb(r, "mask", json_pack("{s:s,s:o}", "op", "mask", "file", st_json_text(file)));
}

static json_t *do_undo(click_run *r, const json_t *command)
{
    (void)command;
    st_error err;
    const st_status status = st_object_undo(r->object, &err);
    if (status != ST_OK) return library_failure(status, &err);
    json_array_remove(r->verbs, json_array_size(r->verbs) - 1);
    return state_json(r, "undo", false);
}

static json_t *do_reset(click_run *r, const json_t *command)
{
    (void)command;
    st_object_reset(r->object);
    json_array_clear(r->verbs);
    return state_json(r, "reset", false);
}

static json_t *do_candidates(click_run *r, const json_t *command)
{
    (void)command;
    return state_json(r, "candidates", true);
}

static json_t *do_choose(click_run *r, const json_t *command)
{
    const json_t *rank = json_object_get(command, "rank");
    st_error err;
    if (!json_is_integer(rank) || json_integer_value(rank) < 0) return failure("invalid_argument", "choose: \"rank\" must be a whole number from 0");
    const st_status status = st_object_choose(r->object, (size_t)json_integer_value(rank), &err);
    if (status != ST_OK) return library_failure(status, &err);
    return state_json(r, "choose", false);
}

static json_t *do_save(click_run *r, const json_t *command)
{
    const char *file = json_string_value(json_object_get(command, "file"));
    const st_click_result *result = st_object_result(r->object);
    st_error err;
    if (!file) return failure("invalid_argument", "save: \"file\" must name a PNG file");
    if (!result) return failure("invalid_argument", "save: nothing was clicked yet");
    if (r->picture_path && st_same_file(file, r->picture_path)) return failure("invalid_argument", "save: \"%s\" is the picture itself", file);
    uint8_t *pixels = malloc((size_t)r->width * r->height);
    if (!pixels) return failure("nomem", "out of memory for a mask of %u x %u pixels", r->width, r->height);
    st_rle_to_dense(&result->candidates[st_object_chosen(r->object)].mask, pixels, r->width, 255);
    const st_status status = st_png_write(file, pixels, r->width, r->height, 1, &err);
    free(pixels);
    if (status != ST_OK) return library_failure(status, &err);
    return json_pack("{s:b,s:s,s:o,s:I}", "ok", 1, "op", "save", "file", st_json_text(file), "area", (json_int_t)result->candidates[st_object_chosen(r->object)].area);
}

static json_t *do_open(click_run *r, const json_t *command)
{
    const char *file = json_string_value(json_object_get(command, "file")), *saved = json_string_value(json_object_get(command, "features"));
    st_error err;
    if (!file == !saved) return failure("invalid_argument", "open: either \"file\" (a picture) or \"features\" (a saved one)");
    const st_status status = open_picture(r, file ? file : saved, saved != NULL, &err);
    if (status != ST_OK) return library_failure(status, &err);
    return opened_json(r, file ? file : saved);
}

typedef struct click_op {
    const char *name;
    json_t *(*run)(click_run *r, const json_t *command);
} click_op;

static const click_op ops[] = {
    {"point", do_point},           {"region", do_region}, {"mask", do_mask}, {"undo", do_undo}, {"reset", do_reset},
    {"candidates", do_candidates}, {"choose", do_choose}, {"save", do_save}, {"open", do_open},
};

static json_t *answer(click_run *r, const json_t *command)
{
    const char *op = json_string_value(json_object_get(command, "op"));
    if (!json_is_object(command) || !op) return failure("parse", "expected an object with an \"op\"");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (strcmp(op, ops[i].name) == 0) return ops[i].run(r, command);
    return failure("unknown_op", "\"%s\" is no command; there are point, region, mask, undo, reset, candidates, choose, save, open", op);
}

/* ---- the conversation ---- */

static int say(click_run *r, json_t *reply, const json_t *id)
{
    if (reply && id) json_object_set(reply, "id", (json_t *)(uintptr_t)id);
    char *line = st_json_line(reply);
    if (!line) {
        st_console_error(&r->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    const bool written = fputs(line, stdout) >= 0 && fflush(stdout) == 0;
    free(line);
    return written ? ST_EXIT_OK : ST_EXIT_OUTPUT;
}

/* One line without its end; false at the end of the input. Of a line that is too long only `*too_long` is kept. */
static bool read_line(char *line, size_t *n, bool *too_long)
{
    int c;
    *n = 0, *too_long = false;
    while ((c = getc(stdin)) != EOF && c != '\n') {
        if (*n < MAX_LINE) line[(*n)++] = (char)c;
        else *too_long = true;
    }
    return c != EOF || *n > 0;
}

static int converse(click_run *r)
{
    char *line = malloc(MAX_LINE + 1);
    size_t n;
    bool too_long;
    int code = line ? ST_EXIT_OK : ST_EXIT_INTERNAL;
    while (code == ST_EXIT_OK && !st_cancel_is_set(r->cancel) && read_line(line, &n, &too_long)) {
        json_error_t bad;
        if (n == 0 && !too_long) continue;
        json_t *command = too_long ? NULL : json_loadb(line, n, JSON_REJECT_DUPLICATES, &bad);
        if (too_long) code = say(r, failure("parse", "a line of more than %d bytes", MAX_LINE), NULL);
        else if (!command) code = say(r, failure("parse", "not JSON: %s at byte %d", bad.text, bad.position), NULL);
        else code = say(r, answer(r, command), json_object_get(command, "id"));
        json_decref(command);
    }
    free(line);
    if (st_cancel_is_set(r->cancel)) return ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    return code;
}

static int read_args(click_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    uint32_t holes;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while ((id = st_options_next(&o, &value)) != ST_OPTION_END) {
        switch (id) {
        case ST_OPTION_WORD:
            if (r->picture_path) return st_usage_error("click", "takes one picture, got \"%s\" and \"%s\"", r->picture_path, value);
            r->picture_path = value;
            break;
        case OPT_MODEL: r->model_path = value; break;
        case OPT_FEATURES: r->features_path = value; break;
        case OPT_MULTIMASK:
            if (strcmp(value, "auto") == 0) r->options.multimask = ST_MULTIMASK_AUTO;
            else if (strcmp(value, "on") == 0) r->options.multimask = ST_MULTIMASK_ON;
            else if (strcmp(value, "off") == 0) r->options.multimask = ST_MULTIMASK_OFF;
            else return st_usage_error("click", "--multimask: expected auto, on or off, got \"%s\"", value);
            break;
        case OPT_HOLES:
            if (!st_read_count(&holes, value, 0, 1u << 30)) return st_usage_error("click", "--hole-area: expected a whole number, got \"%s\"", value);
            r->options.hole_area = (int32_t)holes;
            break;
        case OPT_HF: r->options.hf = 1; break;
        case OPT_THREADS:
            if (!st_read_count(&r->n_threads, value, 1, 1024)) return st_usage_error("click", "--threads: expected a whole number from 1 to 1024, got \"%s\"", value);
            break;
        case OPT_QUIET: r->verbosity = -1; break;
        case OPT_VERBOSE: r->verbosity++; break;
        case OPT_HELP: r->help = true; return ST_EXIT_OK;
        default: return st_usage_error("click", "%s", o.problem);
        }
    }
    if (!r->picture_path == !r->features_path) return st_usage_error("click", "expected a picture, or --features with a saved one");
    return ST_EXIT_OK;
}

static int start(click_run *r)
{
    st_error err;
    r->cancel = st_signals_watch();
    r->verbs = json_array();
    if (!r->cancel || !r->verbs) return ST_EXIT_INTERNAL;
    const int code = st_model_start(&r->model, &r->console, r->model_path, r->n_threads);
    if (code != ST_EXIT_OK) return code;
    st_session_options session = ST_SESSION_OPTIONS_INIT;
    session.cancel = r->cancel;
    session.progress = st_console_progress;
    session.progress_user = &r->console;
    const char *path = r->features_path ? r->features_path : r->picture_path;
    st_status status = st_session_new(&r->session, r->model, &session, &err);
    if (status == ST_OK) status = open_picture(r, path, r->features_path != NULL, &err);
    st_console_clear(&r->console);
    if (status == ST_OK) return say(r, opened_json(r, path), NULL);
    if (status == ST_ERR_CANCELLED) return ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    st_console_error(&r->console, "%s", err.message);
    return ST_EXIT_MODEL;
}

int st_cmd_click(int argc, char **argv)
{
    click_run r = {.options = ST_CLICK_OPTIONS_INIT};
    int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_click_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&r.console, r.verbosity);
    code = start(&r);
    r.console.shows_progress = false; /* from here on standard error is an editor's log */
    if (code == ST_EXIT_OK) code = converse(&r);
    json_decref(r.verbs);
    st_object_free(r.object);
    st_picture_free(r.picture);
    st_session_free(r.session);
    st_model_free(r.model);
    return code;
}
