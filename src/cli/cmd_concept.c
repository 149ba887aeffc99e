/* cmd_concept.c: `stencil concept make`: example boxes of one picture into a file that `stencil segment --concept` asks
 * for on any other; `stencil concept show`: what such a file holds. */
#include "cli/choices.h"
#include "cli/cli.h"
#include "cli/picture_input.h"
#include "front/coordinates.h"
#include "front/options.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_MODEL = 1, OPT_BOX, OPT_PHRASE, OPT_FEATURES, OPT_OUTPUT, OPT_JSON, OPT_STRETCH, OPT_RESIZE, OPT_MAX_PIXELS,
    OPT_THREADS, OPT_SIZE, OPT_MEMORY, OPT_QUIET, OPT_VERBOSE, OPT_HELP
};

static const st_option options[] = {
    { "box", 0, "X0,Y0,X1,Y1[:neg]", OPT_BOX, "make: an example in pixels, repeatable; :neg = not like this one" },
    { "phrase", 0, "TEXT", OPT_PHRASE,
      "make: what the examples are called (default: the word \"visual\", as in the reference)" },
    { "output", 'o', "FILE", OPT_OUTPUT, "make: where to write (required)" },
    { "features", 0, "FILE", OPT_FEATURES, "make: a picture that `stencil encode` saved, in place of PICTURE" },
    { "model", 'm', "PATH", OPT_MODEL, "make: model; else STENCIL_MODEL, else the demo model" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "make: contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "make: which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "make: refuse larger pictures (default 300000000)" },
    { "threads", 'j', "N", OPT_THREADS, "make: threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "make: side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "json", 0, NULL, OPT_JSON, "show: machine-readable" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_concept_help(FILE *to)
{
    fputs("usage: stencil concept make PICTURE --box X0,Y0,X1,Y1[:neg]... -o FILE [OPTION...]\n"
          "       stencil concept show FILE [--json]\n\n"
          "`make` saves example boxes of a picture as the tokens that the model makes of them; `stencil segment "
          "--concept FILE`\n"
          "then finds more like them in other pictures. Only the model that made a concept can use it. On the same "
          "picture\n"
          "it gives exactly what --box gives. `show` says what a file holds; it needs no model.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil concept make yard.jpg --box 120,80,260,200 --box 400,90,460,150:neg --phrase forklift -o "
          "forklift.concept\n"
          "  stencil segment *.jpg --concept forklift.concept -o forklifts.json\n"
          "  stencil concept show forklift.concept\n"
          "\nexit codes: 0 done, 1 the picture or the concept could not be read, 2 usage, 3 model, 4 output, 5 "
          "internal,\n"
          "130 cancelled\n",
          to);
}

typedef struct concept_run {
    const char *task;    /* "make" or "show" */
    st_picture_input in; /* make; `show` has its file there, too */
    st_exemplar boxes[ST_MAX_EXEMPLARS];
    size_t n_boxes;
    const char *phrase, *output, *model_path;
    const char *only_make; /* the last option that belongs to it */
    bool reads;            /* --stretch, --resize or --max-pixels was given */
    bool json, help;
    int verbosity;
    st_model_wish wish;
    st_console console;
    st_cancel *cancel;
    st_model *model;
    st_session *session;
} concept_run;

/* ---- make ---- */

/* The exit code; *err is filled when that is not ST_EXIT_OK. */
static int make(concept_run *r, st_error *err)
{
    st_picture_opened opened;
    st_concept *made = NULL;
    st_picture_report about = { .file = r->in.file ? r->in.file : r->in.features };
    st_prompt prompt = ST_PROMPT_INIT;
    st_status status = st_picture_input_open(&opened, &about, &r->in, r->model, r->session, err);
    if (status != ST_OK) return st_exit_of(status);
    prompt.phrase = r->phrase;
    prompt.boxes = r->boxes;
    prompt.n_boxes = r->n_boxes;
    json_t *source = st_json_text(opened.name ? opened.name : about.file); /* as UTF-8 */
    status = st_concept_make(&made, r->session, opened.picture, &prompt, json_string_value(source), err);
    json_decref(source);
    int code = st_exit_of(status);
    if (status == ST_OK && st_concept_save(made, r->output, err) != ST_OK) code = ST_EXIT_OUTPUT;
    st_concept_free(made);
    st_picture_opened_free(&opened);
    return code;
}

static int start(concept_run *r)
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
    if (code != ST_EXIT_OK) return code;
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    how.cancel = r->cancel;
    how.progress = st_console_progress;
    how.progress_user = &r->console;
    const st_status status = st_session_new(&r->session, r->model, &how, &err);
    if (status != ST_OK) st_console_error(&r->console, "%s", err.message);
    return st_exit_of(status);
}

static int run_make(concept_run *r)
{
    st_error err;
    int code = start(r);
    if (code == ST_EXIT_OK) {
        code = make(r, &err);
        st_console_clear(&r->console);
        if (code == ST_EXIT_OK) st_console_note(&r->console, "wrote %s", r->output);
        else st_console_error(&r->console, "%s", err.message);
    }
    st_session_free(r->session);
    st_model_free(r->model);
    return code;
}

/* ---- show ---- */

static json_t *info_json(const st_concept_info *c)
{
    json_t *boxes = json_array();
    for (size_t i = 0; i < c->n_boxes; i++) {
        const st_exemplar *b = &c->boxes[i];
        json_t *box = json_pack("{s:[o,o,o,o],s:b}", "box", st_json_float(b->x0), st_json_float(b->y0),
                                st_json_float(b->x1), st_json_float(b->y1), "negative", b->negative != 0);
        if (json_array_append_new(boxes, box) == 0) continue;
        json_decref(boxes);
        return NULL;
    }
    return json_pack("{s:s,s:o,s:I,s:I,s:s,s:I,s:o,s:I,s:I,s:o}", "stencil", st_version(), "phrase",
                     st_json_text(c->phrase), "tokens", (json_int_t)c->n_tokens, "token_width", (json_int_t)c->width,
                     "model", c->model_id, "input_size", (json_int_t)c->input_size, "source",
                     c->source ? st_json_text(c->source) : json_null(), "picture_width", (json_int_t)c->picture_width,
                     "picture_height", (json_int_t)c->picture_height, "boxes", boxes);
}

static void print_text(const st_concept_info *c)
{
    printf("phrase      \"");
    st_print_plain(stdout, c->phrase);
    printf("\"\ntokens      %u of width %u: %zu box%s and the picture's own\nmodel       ", c->n_tokens, c->width,
           c->n_boxes, c->n_boxes == 1 ? "" : "es");
    st_print_plain(stdout, c->model_id);
    printf("\ninput       %u x %u pixels\nmade on     ", c->input_size, c->input_size);
    if (c->source) st_print_plain(stdout, c->source), printf(", ");
    printf("%u x %u pixels\n", c->picture_width, c->picture_height);
    for (size_t i = 0; i < c->n_boxes; i++) {
        const st_exemplar *b = &c->boxes[i];
        printf("%s %g,%g,%g,%g\n", b->negative ? "not like   " : "like       ", (double)b->x0, (double)b->y0,
               (double)b->x1, (double)b->y1);
    }
}

static int print_json(concept_run *r, json_t *doc)
{
    char *text = st_json_line(doc);
    st_error err = { ST_ERR_NOMEM, "out of memory" };
    const st_status status = text ? st_save_text(NULL, text, strlen(text), &err) : ST_ERR_NOMEM;
    free(text);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&r->console, "%s", err.message);
    return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}

static int run_show(concept_run *r)
{
    st_concept *concept_ = NULL;
    st_concept_info info = ST_CONCEPT_INFO_INIT;
    st_error err;
    int code = ST_EXIT_OK;
    st_status status = st_concept_load(&concept_, r->in.file, &err);
    if (status == ST_OK) status = st_concept_get_info(concept_, &info, &err);
    if (status != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        code = st_exit_of(status);
    } else if (r->json) code = print_json(r, info_json(&info));
    else print_text(&info);
    st_concept_free(concept_);
    return code;
}

/* ---- the command line ---- */

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("concept", option, got, expected);
}

static int read_word(concept_run *r, const char *word)
{
    if (!r->task) {
        if (strcmp(word, "make") != 0 && strcmp(word, "show") != 0)
            return st_usage_error("concept", "expected make or show, got \"%s\"", word);
        r->task = word;
        return ST_EXIT_OK;
    }
    if (r->in.file)
        return st_usage_error("concept", "%s takes one file, got \"%s\" and \"%s\"", r->task, r->in.file, word);
    r->in.file = word;
    return ST_EXIT_OK;
}

static int read_box(concept_run *r, const char *text)
{
    if (r->n_boxes == ST_MAX_EXEMPLARS) return st_usage_error("concept", "--box: at most %d boxes", ST_MAX_EXEMPLARS);
    return wrong("box", text, st_read_exemplar(&r->boxes[r->n_boxes++], text));
}

static int read_option(concept_run *r, int id, const char *value)
{
    if (id != ST_OPTION_WORD && id < OPT_QUIET && id != OPT_JSON)
        for (size_t i = 0; i < N_OPTIONS; i++)
            if (options[i].id == id) r->only_make = options[i].name;
    r->reads |= id == OPT_STRETCH || id == OPT_RESIZE || id == OPT_MAX_PIXELS;
    switch (id) {
    case ST_OPTION_WORD: return read_word(r, value);
    case OPT_BOX: return read_box(r, value);
    case OPT_PHRASE: r->phrase = value; break;
    case OPT_FEATURES: r->in.features = value; break;
    case OPT_OUTPUT: r->output = value; break;
    case OPT_MODEL: r->model_path = value; break;
    case OPT_STRETCH: return wrong("stretch", value, st_read_stretch(&r->in.bitmap.stretch, value));
    case OPT_RESIZE: return wrong("resize", value, st_read_resize(&r->in.encode.resize, value));
    case OPT_MAX_PIXELS: return wrong("max-pixels", value, st_read_max_pixels(&r->in.bitmap.max_pixels, value));
    case OPT_THREADS: return wrong("threads", value, st_read_threads(&r->wish.n_threads, value));
    case OPT_SIZE: return wrong("size", value, st_read_input_size(&r->wish.input_size, value));
    case OPT_MEMORY: return wrong("memory-limit", value, st_read_memory(&r->wish.memory_limit, value));
    case OPT_JSON: r->json = true; break;
    case OPT_QUIET: r->verbosity = -1; break;
    case OPT_VERBOSE: r->verbosity++; break;
    default: r->help = true; break;
    }
    return ST_EXIT_OK;
}

static int check_prompt(const concept_run *r)
{
    uint32_t ids[256];
    size_t n;
    int cut;
    st_error err;
    bool positive = false;
    for (size_t i = 0; i < r->n_boxes; i++) positive |= !r->boxes[i].negative;
    if (r->n_boxes == 0) return st_usage_error("concept", "make: what does it look like? give examples with --box");
    if (!r->phrase)
        return positive ? ST_EXIT_OK
                        : st_usage_error("concept", "make: only negative boxes and no --phrase: say what to look for");
    if (!r->phrase[strspn(r->phrase, " \t\r\n")]) return st_usage_error("concept", "make: an empty phrase");
    if (st_tokenize(r->phrase, ids, sizeof ids / sizeof ids[0], &n, &cut, &err) != ST_OK)
        return st_usage_error("concept", "make: %s", err.message);
    return ST_EXIT_OK;
}

static int check(const concept_run *r)
{
    if (!r->task) return st_usage_error("concept", "expected make or show");
    if (strcmp(r->task, "show") == 0) {
        if (r->only_make) return st_usage_error("concept", "--%s belongs to make, not to show", r->only_make);
        return r->in.file ? ST_EXIT_OK : st_usage_error("concept", "show: expected the file of a concept");
    }
    if (r->json) return st_usage_error("concept", "--json belongs to show, not to make");
    if (!r->in.file == !r->in.features)
        return st_usage_error("concept", "make: expected a picture, or --features with a saved one");
    if (r->in.features && r->reads)
        return st_usage_error(
            "concept",
            "make: --features is read already; --stretch, --resize and --max-pixels belong to `stencil encode`");
    if (!r->output) return st_usage_error("concept", "make: expected -o FILE");
    const char *const inputs[] = { r->in.file, r->in.features, r->model_path };
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (inputs[i] && st_same_file(inputs[i], r->output))
            return st_usage_error("concept", "make: -o would overwrite %s, which is read", r->output);
    return check_prompt(r);
}

static int read_args(concept_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (!r->help && (id = st_options_next(&o, &value)) != ST_OPTION_END) {
        const int code = id == ST_OPTION_WRONG ? st_usage_error("concept", "%s", o.problem) : read_option(r, id, value);
        if (code != ST_EXIT_OK) return code;
    }
    return r->help ? ST_EXIT_OK : check(r);
}

int st_cmd_concept(int argc, char **argv)
{
    concept_run *r = calloc(1, sizeof *r);
    if (!r) return ST_EXIT_INTERNAL;
    r->in = (st_picture_input){ NULL, NULL, ST_BITMAP_OPTIONS_INIT, ST_ENCODE_OPTIONS_INIT };
    int code = read_args(r, argc, argv);
    if (code == ST_EXIT_OK && r->help) st_cmd_concept_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&r->console, r->verbosity);
        code = strcmp(r->task, "make") == 0 ? run_make(r) : run_show(r);
    }
    free(r);
    return code;
}
