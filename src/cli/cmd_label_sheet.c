/* cmd_label_sheet.c: `stencil label sheet FOLDER`: contact sheets, lowest score first, or overlays. Runs no model. */
#include "cli/choices.h"
#include "cli/label_export.h"
#include "cli/label_verbs.h"
#include "front/options.h"
#include "front/save.h"
#include "label/sheet.h"

#include <stdlib.h>

enum {
    OPT_OUTPUT = 1, OPT_THRESHOLD, OPT_MIN_AREA, OPT_MAX_AREA, OPT_MOST, OPT_SIDE, OPT_OVERLAYS, OPT_QUIET, OPT_VERBOSE,
    OPT_HELP
};

static const st_option options[] = {
    { "output", 'o', "FOLDER", OPT_OUTPUT, "where sheets/ or overlays/ goes (default: the job's folder)" },
    { "threshold", 0, "[NAME=]V", OPT_THRESHOLD, "objects that score more than V (default: the job's)" },
    { "min-area", 0, "[NAME=]V", OPT_MIN_AREA, "objects of at least V: below 1 a share of the picture, else pixels" },
    { "max-area", 0, "[NAME=]V", OPT_MAX_AREA, "objects of at most V" },
    { "most", 0, "N", OPT_MOST, "objects per class, the least sure (default 200)" },
    { "side", 0, "N", OPT_SIDE, "pixels of a cut-out (default 160)" },
    { "overlays", 0, NULL, OPT_OVERLAYS, "in place of sheets: every picture with its objects drawn on it" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_label_sheet_help(FILE *to)
{
    fputs("usage: stencil label sheet FOLDER [OPTION...]\n\n"
          "FOLDER is the output of `stencil label`. Writes FOLDER/sheets: for every class the objects that an export would\n"
          "hold and that were least sure, as sheet-NAME.png, and all of them as sheet.html, one file with a filter by\n"
          "class and score. What was there is replaced. No model is run.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil label sheet out/\n"
          "  stencil label sheet out/ --threshold 0.2 --most 500\n"
          "  stencil label sheet out/ --overlays\n"
          "\nexit codes: 0 done, 1 the results could not be read, 2 usage, 4 output, 5 internal\n",
          to);
}

typedef struct sheet_run {
    const char *folder;
    st_label_sheet_options o;
    st_label_bound *bounds; /* [n_bounds] of argc places */
    size_t n_bounds;
    st_console console;
    bool help;
} sheet_run;

static int take(sheet_run *r, int id, const char *value)
{
    switch (id) {
    case OPT_OUTPUT: r->o.folder = value; break;
    case OPT_THRESHOLD: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_THRESHOLD, value }; break;
    case OPT_MIN_AREA: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_MIN_AREA, value }; break;
    case OPT_MAX_AREA: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_MAX_AREA, value }; break;
    case OPT_MOST:
        if (!st_read_count(&r->o.most, value, 1, 2000))
            return st_wrong_value("label sheet", "most", value, "a whole number from 1 to 2000");
        break;
    case OPT_SIDE:
        if (!st_read_count(&r->o.side, value, 64, 512))
            return st_wrong_value("label sheet", "side", value, "a whole number from 64 to 512");
        break;
    case OPT_OVERLAYS: r->o.overlays = true; break;
    case OPT_QUIET: r->console.verbosity = -1; break;
    case OPT_VERBOSE: r->console.verbosity++; break;
    case OPT_HELP: r->help = true; break;
    default:
        if (r->folder) return st_usage_error("label sheet", "one folder at a time, got also %s", value);
        r->folder = value;
    }
    return ST_EXIT_OK;
}

static int read_words(sheet_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int code = ST_EXIT_OK;
    st_label_sheet_options_init(&r->o);
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    for (int id; code == ST_EXIT_OK && (id = st_options_next(&o, &value)) != ST_OPTION_END;) {
        if (id == ST_OPTION_WRONG) code = st_usage_error("label sheet", "%s", o.problem);
        else code = take(r, id, value);
    }
    if (code != ST_EXIT_OK || r->help) return code;
    if (!r->folder) return st_usage_error("label sheet", "which folder? expected the output of `stencil label`");
    if (!r->o.folder) r->o.folder = r->folder;
    return ST_EXIT_OK;
}

static st_status draw(sheet_run *r, st_label_store *store, st_error *err)
{
    st_label_sheet_report report;
    const char *what = r->o.overlays ? "overlays" : "sheets";
    r->o.cancel = st_signals_watch();
    r->o.progress = st_console_progress;
    r->o.progress_user = &r->console;
    const st_status status = st_label_sheets(&report, store, &r->o, err);
    st_console_clear(&r->console);
    if (status != ST_OK) return status;
    st_console_say(&r->console, "%s/%s: %llu %s, %llu objects", r->o.folder, what, (unsigned long long)report.n_sheets,
                   what, (unsigned long long)report.n_objects);
    if (report.n_absent)
        st_console_warn(&r->console, "%llu pictures are no longer where they were labelled", (unsigned long long)report.n_absent);
    return ST_OK;
}

static int work(sheet_run *r)
{
    st_error err = { ST_OK, "" };
    st_label_store *store = NULL;
    st_label_class *classes = NULL;
    int lock = -1;
    st_status status = st_label_store_open(&store, r->folder, &err);
    if (status != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_PARTLY;
    }
    const st_label_job *job = st_label_store_job(store);
    const size_t n_classes = job->n_classes;
    status = st_label_bounds_apply(&classes, &r->console, job, r->bounds, r->n_bounds, &err);
    r->o.classes = classes;
    r->o.n_classes = n_classes;
    if (status == ST_OK) status = st_save_folder(r->o.folder, &err);
    if (status == ST_OK) status = st_label_lock(&lock, r->o.folder, &err);
    if (status == ST_OK) status = draw(r, store, &err);
    if (lock >= 0) st_label_unlock(lock);
    st_label_classes_free(classes, n_classes);
    st_label_store_close(store);
    return status == ST_OK ? ST_EXIT_OK : st_label_verb_failure(&r->console, status, &err);
}

int st_cmd_label_sheet(int argc, char **argv)
{
    sheet_run r = { 0 };
    st_console_init(&r.console, 0);
    r.bounds = calloc((size_t)argc + 1, sizeof *r.bounds);
    if (!r.bounds) return ST_EXIT_INTERNAL;
    int code = read_words(&r, argc, argv);
    if (code == ST_EXIT_OK && r.help) st_cmd_label_sheet_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&r.console, r.console.verbosity);
        code = work(&r);
    }
    free(r.bounds);
    return code;
}
