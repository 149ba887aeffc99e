/* label_args.c: the command line of `stencil label` (see label_args.h). Everything that can be known to be wrong is said
 * here, before a model is opened and hours go by.
 */
#include "cli/label_args.h"
#include "cli/choices.h"
#include "front/options.h"
#include "front/save.h"
#include "label/export.h"
#include "label/tiles.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_MODEL = 1,
    OPT_CLASS,
    OPT_CLASSES,
    OPT_OUTPUT,
    OPT_FORMAT,
    OPT_THRESHOLD,
    OPT_MIN_AREA,
    OPT_MAX_AREA,
    OPT_OVERWRITE,
    OPT_FLOOR,
    OPT_MASK_THRESHOLD,
    OPT_BOXES_ONLY,
    OPT_TILE,
    OPT_TILE_SIZE,
    OPT_TILE_OVERLAP,
    OPT_TILES_ONLY,
    OPT_DUPLICATES,
    OPT_DUPLICATE_THRESHOLD,
    OPT_ACROSS,
    OPT_NEGATIVES,
    OPT_ROOT,
    OPT_LIMIT,
    OPT_DRY_RUN,
    OPT_REDO,
    OPT_CHECK_PICTURES,
    OPT_SHARD,
    OPT_MERGE,
    OPT_STRETCH,
    OPT_RESIZE,
    OPT_MAX_PIXELS,
    OPT_HF_TEXT_ONLY,
    OPT_JSON,
    OPT_THREADS, OPT_SIZE, OPT_MEMORY,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP
};

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model" },
    { "class", 'c', "[NAME=]PHRASE", OPT_CLASS,
      "what to label; a class may have several phrases, or NAME=@FILE.concept" },
    { "classes", 0, "FILE", OPT_CLASSES, "classes from a JSON file: phrases, thresholds, areas, ids" },
    { "output", 'o', "FOLDER", OPT_OUTPUT, "the job's folder; the same command goes on where it stopped" },
    { "format", 'f', "LIST", OPT_FORMAT, "at the end, write coco, yolo, ... (see `stencil label export --help`)" },
    { "threshold", 0, "[NAME=]V", OPT_THRESHOLD, "export objects that score more than V (default 0.5)" },
    { "min-area", 0, "[NAME=]V", OPT_MIN_AREA,
      "export objects of at least V: below 1 a share of the picture, else pixels" },
    { "max-area", 0, "[NAME=]V", OPT_MAX_AREA, "export objects of at most V" },
    { "overwrite", 0, NULL, OPT_OVERWRITE, "replace exported labels that are there" },
    { "floor", 0, "V", OPT_FLOOR, "store objects that score more than V (default 0.15)" },
    { "mask-threshold", 0, "P", OPT_MASK_THRESHOLD,
      "a pixel belongs to the mask above this probability (default 0.5)" },
    { "boxes-only", 0, NULL, OPT_BOXES_ONLY, "no masks" },
    { "tile", 0, NULL, OPT_TILE, "small objects: look at large pictures in overlapping crops" },
    { "tile-size", 0, "N", OPT_TILE_SIZE, "side of a crop (default: the model's input size)" },
    { "tile-overlap", 0, "N", OPT_TILE_OVERLAP, "pixels that neighbours share (default: a fifth of the side)" },
    { "tiles-only", 0, NULL, OPT_TILES_ONLY, "do not look at the picture as a whole, too" },
    { "duplicates", 0, "KIND", OPT_DUPLICATES,
      "same object twice: by iou (default), smaller (part of the smaller mask), off" },
    { "duplicate-threshold", 0, "V", OPT_DUPLICATE_THRESHOLD, "share from which two are one (default 0.7)" },
    { "across-classes", 0, NULL, OPT_ACROSS, "duplicates also between classes" },
    { "negatives", 0, "FOLDER", OPT_NEGATIVES, "pictures that hold none of it: how often does each phrase fire?" },
    { "root", 0, "FOLDER", OPT_ROOT, "names of pictures begin here (default: what all sources have in common)" },
    { "limit", 0, "N", OPT_LIMIT, "only the first N pictures" },
    { "dry-run", 0, NULL, OPT_DRY_RUN, "say what would be done, what is done, and how long it takes" },
    { "redo", 0, NULL, OPT_REDO, "options changed: label again what was labelled with other ones" },
    { "check-pictures", 0, NULL, OPT_CHECK_PICTURES, "notice pictures that changed and kept their size, too: reads every file" },
    { "shard", 0, "I/N", OPT_SHARD, "only the I-th of N parts of the pictures" },
    { "merge", 0, NULL, OPT_MERGE, "join the folders of all shards in -o" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)" },
    { "hf-text-only", 0, NULL, OPT_HF_TEXT_ONLY, "phrases as Hugging Face's port reads them" },
    { "json", 0, NULL, OPT_JSON, "--dry-run as JSON" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_label_help(FILE *to)
{
    fputs("usage: stencil label SOURCE... --class [NAME=]PHRASE... -o FOLDER [OPTION...]\n"
          "       stencil label --merge PART... -o FOLDER\n"
          "       stencil label sweep|export|sheet FOLDER [OPTION...]\n\n"
          "Labels folders of pictures by phrases. A SOURCE is a folder (with all below it), a picture, a pattern, or\n"
          "@LIST, a file with a path a line. Everything found above a low floor is stored with its score in the job's\n"
          "folder; thresholds are chosen later, without the model. A run that was stopped, by whatever, goes on when\n"
          "the same command is given again.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs(
        "\nexamples:\n"
        "  stencil label photos/ -c forklift -c \"worker=person in hi-vis vest\" -c \"worker=construction worker\" \\\n"
        "          -m sam3.safetensors --format coco,yolo -o out/\n"
        "  stencil label photos/ -c forklift -o out/ --dry-run\n"
        "  stencil label sweep out/\n"
        "  stencil label export out/ --threshold forklift=0.42 --format coco\n"
        "  stencil label photos/ -c forklift --shard 1/4 -o part1/\n"
        "  stencil label --merge part1/ part2/ part3/ part4/ -o all/\n"
        "\nexit codes: 0 done, 1 some pictures could not be read, 2 usage, 3 model, 4 output, 5 internal, 130 "
        "cancelled\n",
        to);
}

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("label", option, got, expected);
}

/* ---- values ---- */

/* What waits until all classes are known. */
typedef struct reader {
    st_label_args *a;
    const char **classes, **files; /* [n_classes], [n_files] */
    size_t n_classes, n_files;
    const char **settings; /* [n_settings] */
    st_label_setting *kinds;
    size_t n_settings;
    const char *tiling; /* an option that needs --tile */
    bool decides;       /* an option that decides results was given */
} reader;

static int read_share(float *out, const char *option, const char *text, bool open)
{
    double v;
    if (!st_read_number(&v, text, 0.0, 1.0) || (open && !((float)v > 0.0f && (float)v < 1.0f)))
        return wrong(option, text, open ? "a number above 0 and below 1" : "a number from 0 to 1");
    *out = (float)v;
    return ST_EXIT_OK;
}

static int read_duplicates(st_label_duplicates *out, const char *text)
{
    if (strcmp(text, "iou") == 0) out->measure = ST_LABEL_BY_IOU;
    else if (strcmp(text, "smaller") == 0) out->measure = ST_LABEL_BY_SMALLER;
    else if (strcmp(text, "off") == 0) out->measure = ST_LABEL_DUPLICATES_OFF;
    else return wrong("duplicates", text, "iou, smaller or off");
    return ST_EXIT_OK;
}

static int read_shard(st_label_args *a, const char *text)
{
    char first[16];
    const char *slash = strchr(text, '/');
    const size_t n = slash ? (size_t)(slash - text) : 0;
    if (n > 0 && n < sizeof first) {
        memcpy(first, text, n);
        first[n] = '\0';
        if (st_read_count(&a->n_shards, slash + 1, 1, 1000000) && st_read_count(&a->shard, first, 1, a->n_shards))
            return ST_EXIT_OK;
    }
    return wrong("shard", text, "I/N with I from 1 to N");
}

static int read_formats(st_label_args *a, const char *text)
{
    char problem[256];
    if (st_label_formats_read(&a->formats, text, problem)) return ST_EXIT_OK;
    return wrong("format", text, problem);
}

static int read_side(uint32_t *out, reader *r, const char *option, const char *text, uint32_t low)
{
    char expected[64];
    r->tiling = option;
    if (st_read_count(out, text, low, 65536)) return ST_EXIT_OK;
    snprintf(expected, sizeof expected, "a whole number from %u to 65536", low);
    return wrong(option, text, expected);
}

/* What decides the results. */
static int read_result_option(reader *r, int id, const char *value)
{
    st_label_options *o = &r->a->options;
    r->decides = true;
    switch (id) {
    case OPT_FLOOR: return read_share(&o->floor, "floor", value, false);
    case OPT_MASK_THRESHOLD: return read_share(&o->mask_threshold, "mask-threshold", value, true);
    case OPT_BOXES_ONLY: o->boxes_only = true; break;
    case OPT_TILE: o->tiling.on = true; break;
    case OPT_TILE_SIZE: return read_side(&o->tiling.size, r, "tile-size", value, ST_LABEL_MIN_SIDE);
    case OPT_TILE_OVERLAP: return read_side(&o->tiling.overlap, r, "tile-overlap", value, 1);
    case OPT_TILES_ONLY: o->tiling.whole = false, r->tiling = "tiles-only"; break;
    case OPT_DUPLICATES: return read_duplicates(&o->duplicates, value);
    case OPT_DUPLICATE_THRESHOLD: return read_share(&o->duplicates.threshold, "duplicate-threshold", value, false);
    case OPT_ACROSS: o->duplicates.across_classes = true; break;
    case OPT_STRETCH: return wrong("stretch", value, st_read_stretch(&o->bitmap.stretch, value));
    case OPT_RESIZE: return wrong("resize", value, st_read_resize(&o->resize, value));
    case OPT_MAX_PIXELS: return wrong("max-pixels", value, st_read_max_pixels(&o->bitmap.max_pixels, value));
    default: o->hf_text_only = true; break;
    }
    return ST_EXIT_OK;
}

static void keep_setting(reader *r, int id, const char *value)
{
    r->kinds[r->n_settings] = id == OPT_THRESHOLD  ? ST_LABEL_THRESHOLD
                              : id == OPT_MIN_AREA ? ST_LABEL_MIN_AREA
                                                   : ST_LABEL_MAX_AREA;
    r->settings[r->n_settings++] = value;
}

static int read_option(reader *r, int id, const char *value)
{
    st_label_args *a = r->a;
    switch (id) {
    case ST_OPTION_WORD: a->sources[a->n_sources++] = value; break;
    case OPT_CLASS: r->classes[r->n_classes++] = value; break;
    case OPT_CLASSES: r->files[r->n_files++] = value; break;
    case OPT_THRESHOLD:
    case OPT_MIN_AREA:
    case OPT_MAX_AREA: keep_setting(r, id, value); break;
    case OPT_MODEL: a->model = value; break;
    case OPT_OUTPUT: a->output = value; break;
    case OPT_FORMAT: return read_formats(a, value);
    case OPT_NEGATIVES: a->negatives = value; break;
    case OPT_ROOT: a->root = value; break;
    case OPT_LIMIT:
        if (!st_read_count(&a->limit, value, 1, UINT32_MAX)) return wrong("limit", value, "a whole number from 1");
        break;
    case OPT_SHARD: return read_shard(a, value);
    case OPT_OVERWRITE: a->overwrite = true; break;
    case OPT_DRY_RUN: a->dry_run = true; break;
    case OPT_REDO: a->redo = true; break;
    case OPT_CHECK_PICTURES: a->check_pictures = true; break;
    case OPT_MERGE: a->merge = true; break;
    case OPT_JSON: a->json = true; break;
    case OPT_THREADS: return wrong("threads", value, st_read_threads(&a->wish.n_threads, value));
    case OPT_SIZE: r->decides = true; return wrong("size", value, st_read_input_size(&a->wish.input_size, value));
    case OPT_MEMORY: return wrong("memory-limit", value, st_read_memory(&a->wish.memory_limit, value));
    case OPT_QUIET: a->verbosity = -1; break;
    case OPT_VERBOSE: a->verbosity = a->verbosity < 0 ? 1 : a->verbosity + 1; break;
    case OPT_HELP: a->help = true; break;
    default: return read_result_option(r, id, value);
    }
    return ST_EXIT_OK;
}

/* ---- when all is read ---- */

static int check_merge(const reader *r)
{
    const st_label_args *a = r->a;
    const char *other = r->n_classes || r->n_files ? "--class"
                        : a->shard                 ? "--shard"
                        : a->redo                  ? "--redo"
                        : a->check_pictures        ? "--check-pictures"
                        : a->dry_run               ? "--dry-run"
                        : a->limit                 ? "--limit"
                        : a->negatives             ? "--negatives"
                        : a->formats               ? "--format"
                        : r->decides               ? "option of labelling"
                                                   : NULL;
    if (other) return st_usage_error("label", "--merge joins what is labelled already, and takes no %s", other);
    if (a->n_sources == 0) return st_usage_error("label", "--merge: no part given");
    return ST_EXIT_OK;
}

static int check_words(const reader *r)
{
    const st_label_args *a = r->a;
    if (!a->output) return st_usage_error("label", "no -o: name the folder that the job's results go to");
    if (!a->output[0]) return st_usage_error("label", "-o: an empty folder name");
    if (a->merge) return check_merge(r);
    if (a->n_sources == 0) return st_usage_error("label", "no source: name a folder of pictures");
    if (r->n_classes == 0 && r->n_files == 0)
        return st_usage_error("label", "nothing to look for: give classes with --class or --classes");
    for (size_t i = 0; i < a->n_sources; i++)
        if (st_same_file(a->sources[i], a->output))
            return st_usage_error("label", "-o %s is the folder of the pictures: give the job a folder of its own",
                                  a->output);
    if (r->tiling && !a->options.tiling.on) return st_usage_error("label", "--%s belongs to --tile", r->tiling);
    if (a->json && !a->dry_run) return st_usage_error("label", "--json belongs to --dry-run");
    if (a->overwrite && !a->formats) return st_usage_error("label", "--overwrite belongs to --format");
    return ST_EXIT_OK;
}

static int read_classes(reader *r)
{
    st_label_ontology *o = &r->a->ontology;
    st_error err;
    for (size_t i = 0; i < r->n_files; i++)
        if (st_label_ontology_read(o, r->files[i], &err) != ST_OK)
            return st_usage_error("label", "--classes: %s", err.message);
    for (size_t i = 0; i < r->n_classes; i++)
        if (st_label_ontology_add(o, r->classes[i], &err) != ST_OK)
            return st_usage_error("label", "--class: %s", err.message);
    for (int global = 1; global >= 0; global--)
        for (size_t i = 0; i < r->n_settings; i++) {
            if ((strchr(r->settings[i], '=') == NULL) != (global != 0)) continue;
            if (st_label_class_set(o->classes, o->n, r->kinds[i], r->settings[i], &err) == ST_OK) continue;
            static const char *const names[] = { "threshold", "min-area", "max-area" };
            return st_usage_error("label", "--%s: %s", names[r->kinds[i]], err.message);
        }
    return ST_EXIT_OK;
}

static int read_all(reader *r, int argc, char **argv)
{
    st_options o;
    const char *value;
    int id, code = ST_EXIT_OK;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (code == ST_EXIT_OK && (id = st_options_next(&o, &value)) != ST_OPTION_END)
        code = id == ST_OPTION_WRONG ? st_usage_error("label", "%s", o.problem) : read_option(r, id, value);
    if (code != ST_EXIT_OK || r->a->help) return code;
    code = check_words(r);
    return code == ST_EXIT_OK ? read_classes(r) : code;
}

int st_label_args_read(st_label_args *a, int argc, char **argv)
{
    const size_t n = (size_t)argc + 1;
    reader r = { .a = a };
    *a = (st_label_args){ 0 };
    st_label_options_default(&a->options);
    a->sources = calloc(n, sizeof *a->sources);
    r.classes = calloc(n, sizeof *r.classes);
    r.files = calloc(n, sizeof *r.files);
    r.settings = calloc(n, sizeof *r.settings);
    r.kinds = calloc(n, sizeof *r.kinds);
    int code = ST_EXIT_INTERNAL;
    if (a->sources && r.classes && r.files && r.settings && r.kinds) code = read_all(&r, argc, argv);
    free(r.classes);
    free(r.files);
    free(r.settings);
    free(r.kinds);
    return code;
}

void st_label_args_free(st_label_args *a)
{
    free(a->sources);
    st_label_ontology_free(&a->ontology);
}
