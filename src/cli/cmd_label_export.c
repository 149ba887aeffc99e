/* cmd_label_export.c: `stencil label export FOLDER`: data sets from a results store, without a model. */
#include "cli/choices.h"
#include "cli/label_export.h"
#include "cli/label_verbs.h"
#include "front/fault.h"
#include "front/options.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_FORMAT = 1, OPT_OUTPUT, OPT_THRESHOLD, OPT_MIN_AREA, OPT_MAX_AREA, OPT_IMAGES, OPT_RLE, OPT_LABELME_MASKS,
    OPT_HOLES, OPT_PARTS, OPT_BOXES_ONLY, OPT_SPLIT, OPT_SEED, OPT_IMAGE_PREFIX, OPT_OVERWRITE, OPT_QUIET, OPT_VERBOSE,
    OPT_HELP
};

static const st_option options[] = {
    { "format", 'f', "LIST", OPT_FORMAT, "what to write, with commas: see below" },
    { "output", 'o', "FOLDER", OPT_OUTPUT, "where the formats' folders go (default: the job's folder)" },
    { "threshold", 0, "[NAME=]V", OPT_THRESHOLD, "objects that score more than V (default: the job's)" },
    { "min-area", 0, "[NAME=]V", OPT_MIN_AREA, "objects of at least V: below 1 a share of the picture, else pixels" },
    { "max-area", 0, "[NAME=]V", OPT_MAX_AREA, "objects of at most V" },
    { "images", 0, "KIND", OPT_IMAGES, "pictures for yolo, voc, labelme: link (default), symlink, copy, none" },
    { "rle", 0, NULL, OPT_RLE, "coco: run lengths instead of polygons" },
    { "labelme-masks", 0, NULL, OPT_LABELME_MASKS, "labelme: masks instead of polygons" },
    { "holes", 0, "KIND", OPT_HOLES, "holes in polygons: bridge (default) or fill" },
    { "parts", 0, "KIND", OPT_PARTS, "yolo, objects of several parts: join (default), largest, split" },
    { "boxes-only", 0, NULL, OPT_BOXES_ONLY, "boxes instead of masks" },
    { "split", 0, "VAL[,TEST]", OPT_SPLIT, "yolo, voc: shares for validation and test (default 0.2,0)" },
    { "seed", 0, "N", OPT_SEED, "of the split (default 0)" },
    { "image-prefix", 0, "TEXT", OPT_IMAGE_PREFIX, "label-studio: what stands before a picture's name" },
    { "overwrite", 0, NULL, OPT_OVERWRITE, "replace labels that are there" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_label_export_help(FILE *to)
{
    fputs("usage: stencil label export FOLDER -f LIST [OPTION...]\n\n"
          "FOLDER is the output of `stencil label`. Writes FOLDER/coco, FOLDER/yolo ...: each appears complete or not at\n"
          "all, and is never replaced without --overwrite. No model is run.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nformats:\n", to);
    for (size_t i = 0; i < ST_LABEL_N_FORMATS; i++)
        fprintf(to, "  %-13s %s\n", st_label_format_name(i), st_label_format_summary(i));
    fputs("\nexamples:\n"
          "  stencil label export out/ -f coco,yolo\n"
          "  stencil label export out/ -f coco --rle --threshold forklift=0.42 --min-area 0.0004 -o strict/\n"
          "\nexit codes: 0 done, 1 the results could not be read, 2 usage, 4 output, 5 internal\n",
          to);
}

typedef struct export_run {
    const char *folder;
    st_label_export_options o;
    st_label_bound *bounds; /* [n_bounds] of argc places */
    size_t n_bounds;
    st_console console;
    bool help;
} export_run;

/* ---- command line ---- */

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("label export", option, got, expected);
}

static int read_word(int *out, const char *option, const char *value, const char *const *words, int n,
                     const char *expected)
{
    for (int i = 0; i < n; i++)
        if (strcmp(value, words[i]) == 0) {
            *out = i;
            return ST_EXIT_OK;
        }
    return wrong(option, value, expected);
}

static int read_split(st_label_export_options *o, const char *value)
{
    static const char expected[] = "one or two numbers from 0 to 1 with a comma, together at most 1";
    const char *comma = strchr(value, ',');
    char *val = strndup(value, comma ? (size_t)(comma - value) : strlen(value));
    if (!val) return ST_EXIT_INTERNAL;
    o->test = 0;
    bool ok = st_read_number(&o->val, val, 0, 1);
    if (ok && comma) ok = st_read_number(&o->test, comma + 1, 0, 1);
    free(val);
    return ok && o->val + o->test <= 1 ? ST_EXIT_OK : wrong("split", value, expected);
}

static int read_formats(st_label_export_options *o, const char *value)
{
    char problem[256];
    return st_label_formats_read(&o->formats, value, problem) ? ST_EXIT_OK : wrong("format", value, problem);
}

static int take_choice(export_run *r, int id, const char *value)
{
    static const char *const images[] = { "link", "symlink", "copy", "none" }, *const holes[] = { "bridge", "fill" },
                      *const parts[] = { "join", "largest", "split" };
    int which = 0, code;
    if (id == OPT_IMAGES) {
        code = read_word(&which, "images", value, images, 4, "link, symlink, copy or none");
        r->o.images = (st_label_images)which;
    } else if (id == OPT_HOLES) {
        code = read_word(&which, "holes", value, holes, 2, "bridge or fill");
        r->o.fill_holes = which == 1;
    } else {
        code = read_word(&which, "parts", value, parts, 3, "join, largest or split");
        r->o.parts = (st_label_parts)which;
    }
    return code;
}

static int take(export_run *r, int id, const char *value)
{
    uint32_t seed;
    switch (id) {
    case OPT_FORMAT: return read_formats(&r->o, value);
    case OPT_OUTPUT: r->o.folder = value; break;
    case OPT_THRESHOLD: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_THRESHOLD, value }; break;
    case OPT_MIN_AREA: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_MIN_AREA, value }; break;
    case OPT_MAX_AREA: r->bounds[r->n_bounds++] = (st_label_bound){ ST_LABEL_MAX_AREA, value }; break;
    case OPT_IMAGES:
    case OPT_HOLES:
    case OPT_PARTS: return take_choice(r, id, value);
    case OPT_RLE: r->o.rle = true; break;
    case OPT_LABELME_MASKS: r->o.labelme_masks = true; break;
    case OPT_BOXES_ONLY: r->o.boxes_only = true; break;
    case OPT_SPLIT: return read_split(&r->o, value);
    case OPT_SEED:
        if (!st_read_count(&seed, value, 0, UINT32_MAX)) return wrong("seed", value, "a whole number");
        r->o.seed = seed;
        break;
    case OPT_IMAGE_PREFIX: r->o.image_prefix = value; break;
    case OPT_OVERWRITE: r->o.overwrite = true; break;
    case OPT_QUIET: r->console.verbosity = -1; break;
    case OPT_VERBOSE: r->console.verbosity++; break;
    case OPT_HELP: r->help = true; break;
    default:
        if (r->folder) return st_usage_error("label export", "one folder at a time, got also %s", value);
        r->folder = value;
    }
    return ST_EXIT_OK;
}

static int read_words(export_run *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int code = ST_EXIT_OK;
    st_label_export_options_init(&r->o);
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    for (int id; code == ST_EXIT_OK && (id = st_options_next(&o, &value)) != ST_OPTION_END;) {
        if (id == ST_OPTION_WRONG) code = st_usage_error("label export", "%s", o.problem);
        else code = take(r, id, value);
    }
    if (code != ST_EXIT_OK || r->help) return code;
    if (!r->folder) return st_usage_error("label export", "which folder? expected the output of `stencil label`");
    if (!r->o.formats) return st_usage_error("label export", "which format? expected --format with one or more");
    if (!r->o.folder) r->o.folder = r->folder;
    return ST_EXIT_OK;
}

/* ---- work ---- */

int st_label_verb_failure(st_console *console, st_status status, const st_error *err)
{
    st_console_error(console, "%s", err->message);
    if (status == ST_ERR_CANCELLED) return ST_EXIT_SIGNAL + st_signals_seen();
    if (status == ST_ERR_NOMEM || status == ST_ERR_INTERNAL) return ST_EXIT_INTERNAL;
    if (status == ST_ERR_INVALID_ARG || status == ST_ERR_LIMIT) return ST_EXIT_USAGE;
    return status == ST_ERR_FORMAT ? ST_EXIT_PARTLY : ST_EXIT_OUTPUT;
}

static void tell(st_console *console, const st_label_export_options *o, const st_label_export_report *r)
{
    char line[256];
    st_console_say(console, "%llu pictures (%llu of them without objects), %llu objects",
                   (unsigned long long)r->n_pictures, (unsigned long long)r->n_empty, (unsigned long long)r->n_objects);
    if (r->n_failed)
        st_console_warn(console, "%llu pictures could not be read when they were labelled (errors.jsonl) and are left out",
                        (unsigned long long)r->n_failed);
    if (r->n_missing)
        st_console_warn(console, "%llu pictures are not labelled yet and are left out", (unsigned long long)r->n_missing);
    for (size_t i = 0; i < r->n_formats; i++) {
        const st_label_format_report *f = &r->formats[i];
        st_console_say(console, "%s/%s: %s", o->folder, f->name, f->unchanged ? "as it was" : "written");
        for (size_t k = 0; st_label_losses_line(line, f, k); k++) st_console_say(console, "  %s", line);
    }
}

int st_label_export_run(st_console *console, st_label_store *store, const st_label_export_options *o)
{
    st_error err = { ST_OK, "" };
    st_label_export_report report;
    st_label_export_options with = *o;
    with.progress = st_console_progress;
    with.progress_user = console;
    const st_status status = st_label_export(&report, store, &with, &err);
    st_console_clear(console);
    if (status != ST_OK) return st_label_verb_failure(console, status, &err);
    tell(console, o, &report);
    return ST_EXIT_OK;
}

static void warn_below_floor(st_console *console, const st_label_job *job, const st_label_class *classes)
{
    for (size_t i = 0; i < job->n_classes; i++)
        if (classes[i].threshold < job->options.floor)
            st_console_warn(console, "class %s: threshold %g, but only what scores more than %g was stored",
                            classes[i].name, (double)classes[i].threshold, (double)job->options.floor);
}

st_status st_label_bounds_apply(st_label_class **classes, st_console *console, const st_label_job *job,
                                const st_label_bound *bounds, size_t n, st_error *err)
{
    st_status status = ST_OK;
    *classes = st_label_classes_copy(job->classes, job->n_classes);
    if (!*classes) return st_fault(err, ST_ERR_NOMEM, "out of memory for the classes");
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = st_label_class_set(*classes, job->n_classes, bounds[i].what, bounds[i].text, err);
    if (status == ST_OK) warn_below_floor(console, job, *classes);
    return status;
}

static int work(export_run *r)
{
    st_error err = { ST_OK, "" };
    st_label_store *store = NULL;
    st_label_class *classes = NULL;
    size_t n_classes = 0;
    int lock = -1, code;
    r->o.cancel = st_signals_watch();
    st_status status = st_label_store_open(&store, r->folder, &err);
    if (status != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_PARTLY;
    }
    n_classes = st_label_store_job(store)->n_classes;
    status = st_label_bounds_apply(&classes, &r->console, st_label_store_job(store), r->bounds, r->n_bounds, &err);
    r->o.classes = classes;
    r->o.n_classes = n_classes;
    if (status == ST_OK) status = st_save_folder(r->o.folder, &err);
    if (status == ST_OK) status = st_label_lock(&lock, r->o.folder, &err);
    if (status != ST_OK) code = st_label_verb_failure(&r->console, status, &err);
    else code = st_label_export_run(&r->console, store, &r->o);
    if (lock >= 0) st_label_unlock(lock);
    st_label_classes_free(classes, n_classes);
    st_label_store_close(store);
    return code;
}

int st_cmd_label_export(int argc, char **argv)
{
    export_run r = { 0 };
    st_console_init(&r.console, 0);
    r.bounds = calloc((size_t)argc + 1, sizeof *r.bounds);
    if (!r.bounds) return ST_EXIT_INTERNAL;
    int code = read_words(&r, argc, argv);
    if (code == ST_EXIT_OK && r.help) st_cmd_label_export_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&r.console, r.console.verbosity);
        code = work(&r);
    }
    free(r.bounds);
    return code;
}
