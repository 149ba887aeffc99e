/* cmd_quantize.c: `stencil quantize`: a model's weights as int8, with what each layer loses measured on pictures. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/choices.h"
#include "cli/cli.h"
#include "front/options.h"
#include "front/report.h"
#include "front/save.h"

enum {
    OPT_MODEL = 1, OPT_OUTPUT, OPT_CALIBRATE, OPT_PICTURES, OPT_PHRASE, OPT_MAX_ERROR, OPT_NO_SMOOTH, OPT_JSON,
    OPT_THREADS, OPT_SIZE, OPT_QUIET, OPT_VERBOSE, OPT_HELP
};
enum { MAX_PICTURES = 64, DEFAULT_PICTURES = 4, MAX_PHRASES = 64 };

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "the same as MODEL" },
    { "output", 'o', "FILE", OPT_OUTPUT, "where to write, e.g. sam3-int8.safetensors (required)" },
    { "calibrate", 0, "DIR", OPT_CALIBRATE,
      "measure on pictures of this folder, the first by name; without: on a built-in pattern" },
    { "pictures", 0, "N", OPT_PICTURES, "how many of them (default 4, at most 64)" },
    { "phrase", 0, "TEXT", OPT_PHRASE, "ask for this while measuring, once or more (default: a few everyday words)" },
    { "max-error", 0, "E", OPT_MAX_ERROR,
      "a layer whose output would be off by more than this share stays fp32 (default 0.05)" },
    { "no-smooth", 0, NULL, OPT_NO_SMOOTH, "never move ranges of activations into weights (to compare)" },
    { "json", 0, NULL, OPT_JSON, "every layer's outcome as JSON on standard output" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "measure at this input size; the file can be used at any (default: the model's own)" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "a line per layer" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_quantize_help(FILE *to)
{
    fputs(
        "usage: stencil quantize MODEL -o FILE [OPTION...]\n\n"
        "Writes the model again with int8 matrices in ViT, text encoder, fusion encoder and decoder: about a quarter "
        "of the size,\nand several times faster where the CPU has VNNI or AMX. The model is run on pictures first, and "
        "a layer that would lose too\nmuch stays as it is; the file says which, and why. It is used like any model: "
        "-m FILE.\n\n",
        to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexample:\n  stencil quantize sam3.pt --calibrate photos/ --phrase forklift -o sam3-int8.safetensors\n"
          "\nexit codes: 0 done, 2 usage, 3 model, 4 output, 5 internal, 130 cancelled\n",
          to);
}

typedef struct quantize_run {
    const char *model_path, *output, *folder;
    const char *phrases[MAX_PHRASES];
    char *files[MAX_PICTURES];
    st_bitmap bitmaps[MAX_PICTURES];
    st_image images[MAX_PICTURES];
    st_quantize_options how;
    size_t n_files;
    uint32_t most_files;
    st_model_wish wish;
    int verbosity;
    bool help, json;
    st_console console;
    st_cancel *cancel;
    st_model *model;
    json_t *lines;
    size_t n_int8, n_kept;
    double worst, sum;
} quantize_run;

static int read_number_option(quantize_run *r, int id, const char *value)
{
    double number;
    if (id == OPT_SIZE)
        return st_wrong_value("quantize", "size", value, st_read_input_size(&r->wish.input_size, value));
    if (id == OPT_THREADS) return st_wrong_value("quantize", "threads", value, st_read_threads(&r->wish.n_threads, value));
    if (id == OPT_PICTURES) {
        const bool fine = st_read_count(&r->most_files, value, 1, MAX_PICTURES);
        return fine ? ST_EXIT_OK
                    : st_usage_error("quantize", "--pictures \"%s\": expected 1 to %d", value, MAX_PICTURES);
    }
    if (!st_read_number(&number, value, 0.0, 1.0))
        return st_usage_error("quantize", "--max-error \"%s\": expected a number from 0 to 1", value);
    r->how.max_error = (float)number;
    return ST_EXIT_OK;
}

static int read_option(quantize_run *r, int id, const char *value)
{
    switch (id) {
    case ST_OPTION_WORD:
    case OPT_MODEL:
        if (r->model_path)
            return st_usage_error("quantize", "takes one model, got \"%s\" and \"%s\"", r->model_path, value);
        r->model_path = value;
        break;
    case OPT_OUTPUT: r->output = value; break;
    case OPT_CALIBRATE: r->folder = value; break;
    case OPT_PHRASE:
        if (r->how.n_phrases == MAX_PHRASES) return st_usage_error("quantize", "at most %d phrases", MAX_PHRASES);
        r->phrases[r->how.n_phrases++] = value;
        break;
    case OPT_NO_SMOOTH: r->how.smooth = 0; break;
    case OPT_JSON: r->json = true; break;
    case OPT_QUIET: r->verbosity = -1; break;
    case OPT_VERBOSE: r->verbosity++; break;
    case OPT_HELP: r->help = true; break;
    default: return read_number_option(r, id, value);
    }
    return ST_EXIT_OK;
}

static int read_args(quantize_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (!r->help && (id = st_options_next(&o, &value)) != ST_OPTION_END) {
        const int code =
            id == ST_OPTION_WRONG ? st_usage_error("quantize", "%s", o.problem) : read_option(r, id, value);
        if (code != ST_EXIT_OK) return code;
    }
    if (r->help) return ST_EXIT_OK;
    if (!r->model_path) return st_usage_error("quantize", "expected a model");
    if (!r->output) return st_usage_error("quantize", "expected -o FILE");
    return ST_EXIT_OK;
}

/* ---- pictures ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names of the folder, sorted; from malloc. */
static char **list_folder(size_t *n, const char *folder)
{
    DIR *d = opendir(folder);
    char **names = NULL;
    size_t room = 0;
    *n = 0;
    if (!d) return NULL;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        if (*n == room) {
            char **more = realloc(names, (room = 2 * room + 64) * sizeof *names);
            if (!more) break;
            names = more;
        }
        if (!(names[*n] = strdup(e->d_name))) break;
        ++*n;
    }
    closedir(d);
    if (*n > 1) qsort(names, *n, sizeof *names, by_name);
    return names;
}

/* Reads pictures in order of name until there are enough; what is no picture is passed over. */
static int load_pictures(quantize_run *r)
{
    size_t n;
    char **names = list_folder(&n, r->folder);
    for (size_t i = 0; i < n && r->how.n_images < r->most_files; i++) {
        char *path = NULL;
        st_error err;
        st_bitmap *b = &r->bitmaps[r->how.n_images];
        if (asprintf(&path, "%s/%s", r->folder, names[i]) < 0) break;
        if (st_bitmap_load(b, path, NULL, &err) == ST_OK) {
            r->images[r->how.n_images++] =
                (st_image){ b->rgb, b->width, b->height, 3 * (size_t)b->width, ST_PIXEL_RGB8 };
            st_console_note(&r->console, "measuring on %s", path);
        } else {
            st_console_note(&r->console, "passed over: %s", err.message);
        }
        free(path);
    }
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
    if (r->how.n_images) return ST_EXIT_OK;
    return st_usage_error("quantize", "--calibrate %s: no folder with a picture in it", r->folder);
}

/* ---- the work ---- */

static void on_line(void *user, const st_quantize_line *line)
{
    quantize_run *r = user;
    st_console_progress(&r->console, "layer", line->done, line->total);
    *(line->kept ? &r->n_kept : &r->n_int8) += 1;
    if (!line->kept) {
        r->sum += line->error;
        if (line->error > r->worst) r->worst = line->error;
    }
    if (line->kept) st_console_note(&r->console, "%s stays as it is: %s", line->layer, line->kept);
    else if (r->verbosity > 1)
        st_console_note(&r->console, "%s: error %.4f, smoothing %g", line->layer, line->error, line->smoothing);
    if (!r->json) return;
    json_t *entry = json_pack("{s:s,s:s*}", "layer", line->layer, "kept", line->kept);
    if (line->error >= 0.0 && isfinite(line->error)) json_object_set_new(entry, "error", json_real(line->error));
    if (!line->kept) json_object_set_new(entry, "smoothing", json_real(line->smoothing));
    json_array_append_new(r->lines, entry);
}

static int report(quantize_run *r)
{
    st_console_clear(&r->console);
    st_console_say(&r->console, "wrote %s: %zu layers in int8, mean error %.4f, largest %.4f; %zu stay as they are",
                   r->output, r->n_int8, r->n_int8 ? r->sum / (double)r->n_int8 : 0.0, r->worst, r->n_kept);
    if (!r->json) return ST_EXIT_OK;
    char *text = st_json_line(json_pack(
        "{s:s,s:I,s:I,s:f,s:f,s:O}", "file", r->output, "int8", (json_int_t)r->n_int8, "kept", (json_int_t)r->n_kept,
        "mean_error", r->n_int8 ? r->sum / (double)r->n_int8 : 0.0, "largest_error", r->worst, "layers", r->lines));
    st_error err = { ST_ERR_NOMEM, "out of memory while writing the report" };
    const st_status status = text ? st_save_text(NULL, text, strlen(text), &err) : ST_ERR_NOMEM;
    free(text);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&r->console, "%s", err.message);
    return ST_EXIT_OUTPUT;
}

static int quantize(quantize_run *r)
{
    st_error err = { 0 };
    st_session *session = NULL;
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    how.cancel = r->cancel;
    how.progress = st_console_progress;
    how.progress_user = &r->console;
    r->how.images = r->images;
    r->how.phrases = r->phrases;
    r->how.line = on_line;
    r->how.line_user = r;
    st_console_task(&r->console, "%s", r->output);
    st_status status = st_session_new(&session, r->model, &how, &err);
    if (status == ST_OK) status = st_model_quantize(session, r->output, &r->how, &err);
    st_session_free(session);
    if (status == ST_OK) return report(r);
    st_console_clear(&r->console);
    st_console_error(&r->console, "%s", err.message);
    return status == ST_ERR_IO ? ST_EXIT_OUTPUT : status == ST_ERR_INVALID_ARG ? ST_EXIT_MODEL : st_exit_of(status);
}

static int run(quantize_run *r)
{
    st_error err;
    if (st_save_possible(r->output, &err) != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        return ST_EXIT_OUTPUT;
    }
    int code = st_model_spared(&r->console, r->model_path, &r->output, 1);
    if (code == ST_EXIT_OK && r->folder) code = load_pictures(r);
    if (code != ST_EXIT_OK) return code;
    r->cancel = st_signals_watch();
    r->lines = json_array();
    if (!r->cancel || !r->lines) return ST_EXIT_INTERNAL;
    code = st_model_start(&r->model, &r->console, r->model_path, &r->wish);
    return code == ST_EXIT_OK ? quantize(r) : code;
}

int st_cmd_quantize(int argc, char **argv)
{
    quantize_run r = { .how = ST_QUANTIZE_OPTIONS_INIT, .most_files = DEFAULT_PICTURES };
    int code = read_args(&r, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (r.help) {
        st_cmd_quantize_help(stdout);
        return ST_EXIT_OK;
    }
    st_console_init(&r.console, r.verbosity);
    code = run(&r);
    for (size_t i = 0; i < r.how.n_images; i++) st_bitmap_free(&r.bitmaps[i]);
    json_decref(r.lines);
    st_model_free(r.model);
    return code;
}
