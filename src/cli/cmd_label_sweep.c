/* cmd_label_sweep.c: `stencil label sweep FOLDER`: reads the results store once, beside it that of the negatives, and
 * shows what every threshold would give. Runs no model.
 */
#include "cli/choices.h"
#include "cli/label_sweep.h"
#include "cli/label_verbs.h"
#include "front/fault.h"
#include "front/growing.h"
#include "front/options.h"
#include "front/save.h"
#include "label/store.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_THRESHOLDS = 1, OPT_SPECK, OPT_JSON, OPT_OUTPUT, OPT_QUIET, OPT_HELP };

static const st_option options[] = {
    { "thresholds", 0, "V,...", OPT_THRESHOLDS, "rising, from 0 to 1 (default: the job's floor, then 0.05 apart)" },
    { "speck", 0, "N", OPT_SPECK, "instances of fewer pixels are specks (default 64)" },
    { "json", 0, NULL, OPT_JSON, "machine-readable" },
    { "output", 'o', "FILE", OPT_OUTPUT, "where to write (default: standard output)" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_label_sweep_help(FILE *to)
{
    fputs("usage: stencil label sweep FOLDER [OPTION...]\n\n"
          "FOLDER is the output of `stencil label`. For every class and threshold: how many instances an export would\n"
          "hold, how many pictures would have none, the median area, and specks. After a run with --negatives also\n"
          "how often each phrase fires on pictures that hold none of it. No model is run.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil label sweep out/\n"
          "  stencil label sweep out/ --thresholds 0.3,0.4,0.5 --json\n"
          "\nexit codes: 0 done, 1 the results could not be read, 2 usage, 4 output, 5 internal\n",
          to);
}

typedef struct sweep_run {
    const char *folder, *output;
    float thresholds[ST_LABEL_MAX_THRESHOLDS];
    size_t n_thresholds; /* 0: the usual ones */
    uint32_t speck;
    bool json, help;
    st_console console;
    st_label_store *store, *empty; /* of the job, and of its negatives or NULL */
    st_label_sweep sweep;
    st_label_negatives negatives;
} sweep_run;

/* ---- command line ---- */

static int read_thresholds(sweep_run *r, const char *text)
{
    static const char expected[] = "at most 100 rising numbers between 0 and 1, with commas";
    char *copy = strdup(text), *rest = copy;
    if (!copy) return ST_EXIT_INTERNAL;
    double before = -1;
    int code = ST_EXIT_OK;
    for (char *one; code == ST_EXIT_OK && (one = strsep(&rest, ",")) != NULL;) {
        double v;
        if (r->n_thresholds == ST_LABEL_MAX_THRESHOLDS || !st_read_number(&v, one, 0.0, 1.0) || v <= before)
            code = st_wrong_value("label sweep", "thresholds", text, expected);
        else r->thresholds[r->n_thresholds++] = (float)(before = v);
    }
    free(copy);
    return code;
}

static int take(sweep_run *r, int id, const char *value)
{
    switch (id) {
    case OPT_THRESHOLDS: r->n_thresholds = 0; return read_thresholds(r, value);
    case OPT_SPECK:
        if (!st_read_count(&r->speck, value, 0, UINT32_MAX))
            return st_wrong_value("label sweep", "speck", value, "a whole number of pixels");
        break;
    case OPT_JSON: r->json = true; break;
    case OPT_OUTPUT: r->output = value; break;
    case OPT_QUIET: r->console.verbosity = -1; break;
    case OPT_HELP: r->help = true; break;
    default:
        if (r->folder) return st_usage_error("label sweep", "one folder at a time, got also %s", value);
        r->folder = value;
    }
    return ST_EXIT_OK;
}

static int read_words(sweep_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int code = ST_EXIT_OK;
    r->speck = ST_LABEL_SPECK;
    st_console_init(&r->console, 0);
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    for (int id; code == ST_EXIT_OK && (id = st_options_next(&o, &value)) != ST_OPTION_END;) {
        if (id == ST_OPTION_WRONG) code = st_usage_error("label sweep", "%s", o.problem);
        else code = take(r, id, value);
    }
    if (code == ST_EXIT_OK && !r->help && !r->folder)
        return st_usage_error("label sweep", "which folder? expected the output of `stencil label`");
    return code;
}

/* ---- reading ---- */

/* Adds all pictures of a store to the sweep, or with `empty` to the negatives. */
static st_status add_all(sweep_run *r, st_label_store *store, bool empty, st_error *err)
{
    st_status status = ST_OK;
    for (bool more = true; status == ST_OK;) {
        st_label_picture p;
        status = st_label_store_next(store, &p, &more, err);
        if (status != ST_OK || !more) break;
        if (empty) st_label_negatives_add(&r->negatives, &p);
        else status = st_label_sweep_add(&r->sweep, &p, err);
        st_label_picture_free(&p);
    }
    return status;
}

static st_status open_negatives(sweep_run *r, st_error *err)
{
    char *folder = st_label_path(r->folder, ST_LABEL_NEGATIVES_FOLDER), *job = NULL;
    if (folder) job = st_label_path(folder, "job.json");
    st_status status = job ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", r->folder);
    if (status == ST_OK && st_exists(job)) status = st_label_store_open(&r->empty, folder, err);
    free(folder);
    free(job);
    return status;
}

/* Thresholds and area bounds are the job's present ones, where the negatives answer the same questions. */
static const st_label_job *job_of_negatives(sweep_run *r)
{
    const st_label_job *job = st_label_store_job(r->store), *empty = st_label_store_job(r->empty);
    if (strcmp(job->recipe, empty->recipe) == 0) return job;
    st_console_warn(&r->console, "the negatives were labelled in another way than the pictures; their rates are those "
                    "of that way, until `stencil label` is run with --negatives again");
    return empty;
}

static st_status look(sweep_run *r, st_error *err)
{
    st_status status = st_label_store_open(&r->store, r->folder, err);
    if (status == ST_OK) status = open_negatives(r, err);
    if (status != ST_OK) return status;
    const st_label_job *job = st_label_store_job(r->store);
    if (r->n_thresholds == 0) r->n_thresholds = st_label_sweep_thresholds(r->thresholds, job->options.floor);
    if (r->thresholds[0] < job->options.floor)
        st_console_warn(&r->console, "thresholds below %g show what is above it: nothing else was stored",
                        (double)job->options.floor);
    status = st_label_sweep_begin(&r->sweep, job, r->thresholds, r->n_thresholds, r->speck, err);
    if (status == ST_OK) status = add_all(r, r->store, false, err);
    if (status == ST_OK) st_label_sweep_end(&r->sweep);
    if (status == ST_OK && r->empty) {
        status = st_label_negatives_begin(&r->negatives, job_of_negatives(r), r->thresholds, r->n_thresholds, err);
        if (status == ST_OK) status = add_all(r, r->empty, true, err);
    }
    return status;
}

/* ---- showing ---- */

static char *table_text(const st_sweep_view *view)
{
    st_growing g = { 0 };
    FILE *f = st_growing_open(&g);
    if (!f) return NULL;
    st_sweep_table(view, f);
    return st_growing_close(&g, f, NULL);
}

/* What the table says itself. */
static void warn(sweep_run *r)
{
    const st_label_negatives *g = &r->negatives;
    for (size_t flat = 0; flat < g->n_phrases; flat++) {
        size_t k = 0;
        const double rate = st_label_false_rate(g, flat, g->n_thresholds);
        const st_label_class *cls = st_label_phrase_at(&k, g->job, flat);
        if (!(rate > ST_LABEL_MAX_FALSE)) continue;
        st_console_warn(&r->console, "%s: \"%s\" fires on %.1f %% of the negatives at %g; more than %g %% is too often",
                        cls->name, cls->phrases[k], 100.0 * rate, (double)cls->threshold, 100.0 * ST_LABEL_MAX_FALSE);
    }
}

static int show(sweep_run *r)
{
    st_error err;
    const st_sweep_view view = { &r->sweep, &r->negatives, st_label_store_missing(r->store) };
    char *text = r->json ? st_sweep_json(&view) : table_text(&view);
    if (!text) {
        st_console_error(&r->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    const st_status status = st_save_text(r->output, text, strlen(text), &err);
    free(text);
    if (status == ST_OK) {
        if (r->json || (r->output && strcmp(r->output, "-") != 0)) warn(r);
        return ST_EXIT_OK;
    }
    st_console_error(&r->console, "%s", err.message);
    return ST_EXIT_OUTPUT;
}

int st_cmd_label_sweep(int argc, char **argv)
{
    sweep_run r = { 0 };
    st_error err = { ST_OK, "" };
    int code = read_words(&r, argc, argv);
    if (code == ST_EXIT_OK && r.help) {
        st_cmd_label_sweep_help(stdout);
        return ST_EXIT_OK;
    }
    if (code != ST_EXIT_OK) return code;
    st_status status = look(&r, &err);
    if (status == ST_OK) code = show(&r);
    else {
        st_console_error(&r.console, "%s", err.message);
        code = st_exit_of(status);
    }
    st_label_sweep_free(&r.sweep);
    st_label_negatives_free(&r.negatives);
    st_label_store_close(r.store);
    st_label_store_close(r.empty);
    return code;
}
