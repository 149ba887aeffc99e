/* segment_args.c: the command line of `stencil segment`.
 *
 * A bare word is a picture when such a file exists, else a phrase; but a word that looks like a path or a picture name and is not there is an error, never a phrase: a
 * mistyped file name must not turn into a search for it. Everything that can be known to be wrong is said here, before a model is opened.
 */
#include "cli/segment_args.h"
#include "front/options.h"
#include "front/overlay.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPT_PICTURE = 1, OPT_PHRASE, OPT_BOX, OPT_THRESHOLD, OPT_MASK_THRESHOLD, OPT_MAX_DETECTIONS, OPT_FORMAT, OPT_OUTPUT, OPT_OVERLAY, OPT_MODEL, OPT_THREADS,
    OPT_BOXES_ONLY, OPT_STRETCH, OPT_RESIZE, OPT_HF_TEXT_ONLY, OPT_MAX_PIXELS, OPT_QUIET, OPT_VERBOSE, OPT_HELP
};

static const st_option options[] = {
    {"model", 'm', "PATH", OPT_MODEL, "checkpoint (.pt, .safetensors, .safetensors.index.json) or folder; else STENCIL_MODEL"},
    {"picture", 0, "FILE", OPT_PICTURE, "a picture, whatever its name looks like"},
    {"phrase", 0, "TEXT", OPT_PHRASE, "a phrase, even when a file of that name exists"},
    {"box", 0, "X0,Y0,X1,Y1[:neg]", OPT_BOX, "an example in pixels; :neg = not like this one (one picture only)"},
    {"threshold", 0, "[PHRASE=]V", OPT_THRESHOLD, "keep instances that score more than V, 0 to 1 (default 0.5)"},
    {"mask-threshold", 0, "P", OPT_MASK_THRESHOLD, "a pixel belongs to the mask above this probability (default 0.5)"},
    {"max-detections", 0, "N", OPT_MAX_DETECTIONS, "keep the best N per phrase (default: all)"},
    {"boxes-only", 0, NULL, OPT_BOXES_ONLY, "no masks: scores and boxes, a little faster"},
    {"format", 'f', "FORMAT", OPT_FORMAT, "json, coco, png (a mask per file, into -o) or table"},
    {"output", 'o', "PATH", OPT_OUTPUT, "where results go; a folder for png (default: standard output)"},
    {"overlay", 0, "PATH", OPT_OVERLAY, "draw the results: a .png or .jpg, or a folder"},
    {"threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)"},
    {"stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always"},
    {"resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu"},
    {"max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)"},
    {"hf-text-only", 0, NULL, OPT_HF_TEXT_ONLY, "phrases without boxes as Hugging Face's port does them"},
    {"quiet", 'q', NULL, OPT_QUIET, "errors only"},
    {"verbose", 'v', NULL, OPT_VERBOSE, "say more; twice: everything"},
    {"help", 'h', NULL, OPT_HELP, "this text"},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_segment_help(FILE *to)
{
    fputs("usage: stencil segment [OPTION...] PICTURE... PHRASE...\n\n"
          "Finds every instance of each phrase in each picture. A word that names an existing file is a picture,\n"
          "any other word is a phrase. On a terminal a table is shown; otherwise JSON is written.\n\n", to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil segment photo.jpg forklift -m sam3.safetensors\n"
          "  stencil segment photo.jpg \"yellow school bus\" person --overlay found.png -o found.json\n"
          "  stencil segment *.jpg cat --format coco -o cats.json --overlay drawn/\n"
          "  stencil segment photo.jpg --box 120,80,260,200 --box 400,90,460,150:neg\n"
          "  stencil segment photo.jpg cat dog --threshold 0.4 --threshold dog=0.7\n\n"
          "exit codes: 0 done, 1 some pictures failed, 2 usage, 3 model, 4 output, 5 internal, 130 cancelled\n", to);
}

/* ---- what is collected while reading ---- */

struct reader {
    st_segment_args *a;
    const char **thresholds; /* [n] as written */
    size_t n_thresholds;
};

static int wrong_choice(const char *option, const char *got, const char *expected)
{
    return st_usage_error("segment", "--%s: expected %s, got \"%s\"", option, expected, got);
}

static int read_box(st_segment_args *a, const char *text)
{
    char copy[128];
    double v[4];
    st_exemplar box = {0};
    const size_t n = strlen(text);
    if (a->n_boxes == ST_MAX_EXEMPLARS) return st_usage_error("segment", "--box: at most %d boxes", ST_MAX_EXEMPLARS);
    if (n >= sizeof copy) return wrong_choice("box", text, "X0,Y0,X1,Y1 or X0,Y0,X1,Y1:neg");
    memcpy(copy, text, n + 1);
    char *colon = strchr(copy, ':');
    if (colon) {
        if (strcmp(colon, ":neg") != 0 && strcmp(colon, ":pos") != 0) return wrong_choice("box", text, ":neg or :pos behind the numbers");
        box.negative = strcmp(colon, ":neg") == 0;
        *colon = '\0';
    }
    char *at = copy;
    for (size_t i = 0; i < 4; i++) {
        char *comma = i < 3 ? strchr(at, ',') : NULL;
        if (i < 3 && !comma) return wrong_choice("box", text, "four numbers X0,Y0,X1,Y1");
        if (comma) *comma = '\0';
        if (!st_read_number(&v[i], at, 0.0, 1e9)) return wrong_choice("box", text, "four numbers X0,Y0,X1,Y1, none negative");
        if (comma) at = comma + 1;
    }
    if (!(v[0] < v[2] && v[1] < v[3])) return wrong_choice("box", text, "X0 < X1 and Y0 < Y1");
    box.x0 = (float)v[0], box.y0 = (float)v[1], box.x1 = (float)v[2], box.y1 = (float)v[3];
    a->boxes[a->n_boxes++] = box;
    return ST_EXIT_OK;
}

static int read_format(st_segment_args *a, const char *text)
{
    static const struct { const char *name; st_output_format format; } known[] = {
        {"json", ST_FORMAT_JSON}, {"coco", ST_FORMAT_COCO}, {"png", ST_FORMAT_PNG}, {"table", ST_FORMAT_TABLE}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, text) == 0) {
            a->format = known[i].format;
            return ST_EXIT_OK;
        }
    return wrong_choice("format", text, "json, coco, png or table");
}

static int read_stretch(st_segment_args *a, const char *text)
{
    static const char *const names[] = {"auto", "never", "always"};
    static const st_stretch values[] = {ST_STRETCH_AUTO, ST_STRETCH_NEVER, ST_STRETCH_ALWAYS};
    for (size_t i = 0; i < 3; i++)
        if (strcmp(names[i], text) == 0) {
            a->bitmap.stretch = values[i];
            return ST_EXIT_OK;
        }
    return wrong_choice("stretch", text, "auto, never or always");
}

static int read_resize(st_segment_args *a, const char *text)
{
    if (strcmp(text, "gpu") == 0) a->encode.resize = ST_RESIZE_GPU;
    else if (strcmp(text, "cpu") == 0) a->encode.resize = ST_RESIZE_CPU;
    else return wrong_choice("resize", text, "gpu or cpu");
    return ST_EXIT_OK;
}

static int read_mask_threshold(st_segment_args *a, const char *text)
{
    double v;
    if (!st_read_number(&v, text, 0.0, 1.0) || !((float)v > 0.0f && (float)v < 1.0f))
        return wrong_choice("mask-threshold", text, "a number above 0 and below 1");
    a->segment.mask_threshold = (float)v;
    return ST_EXIT_OK;
}

static const char *const picture_suffixes[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".heic", ".heif", ".hif", ".avif", ".bmp",
                                               ".gif", ".jp2", ".jxl", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".psd", ".ppm", ".pgm", ".svg", ".exr"};

bool st_looks_like_picture(const char *word)
{
    const char *dot = strrchr(word, '.');
    if (strchr(word, '/')) return true;
    for (size_t i = 0; dot && i < sizeof picture_suffixes / sizeof picture_suffixes[0]; i++)
        if (strcasecmp(dot, picture_suffixes[i]) == 0) return true;
    return false;
}

static int read_word(st_segment_args *a, const char *word)
{
    if (strcmp(word, "-") == 0) return st_usage_error("segment", "pictures are not read from standard input, name a file");
    if (st_is_folder(word))
        return st_usage_error("segment", "\"%s\" is a folder: name its pictures, or say --phrase \"%s\" if you look for that", word, word);
    if (st_exists(word)) a->pictures[a->n_pictures++] = word;
    else if (st_looks_like_picture(word))
        return st_usage_error("segment", "\"%s\": no such file; say --phrase \"%s\" if it is something to look for", word, word);
    else a->phrases[a->n_phrases++] = word;
    return ST_EXIT_OK;
}

static int read_option(struct reader *r, int id, const char *value)
{
    st_segment_args *a = r->a;
    switch (id) {
    case ST_OPTION_WORD: return read_word(a, value);
    case OPT_PICTURE: a->pictures[a->n_pictures++] = value; break;
    case OPT_PHRASE: a->phrases[a->n_phrases++] = value; break;
    case OPT_THRESHOLD: r->thresholds[r->n_thresholds++] = value; break;
    case OPT_BOX: return read_box(a, value);
    case OPT_FORMAT: return read_format(a, value);
    case OPT_STRETCH: return read_stretch(a, value);
    case OPT_RESIZE: return read_resize(a, value);
    case OPT_MASK_THRESHOLD: return read_mask_threshold(a, value);
    case OPT_MAX_DETECTIONS:
        if (!st_read_count(&a->segment.max_detections, value, 1, UINT32_MAX)) return wrong_choice("max-detections", value, "a whole number from 1");
        break;
    case OPT_THREADS:
        if (!st_read_count(&a->n_threads, value, 1, 1024)) return wrong_choice("threads", value, "a whole number from 1 to 1024");
        break;
    case OPT_MAX_PIXELS: {
        uint32_t n;
        if (!st_read_count(&n, value, 1, UINT32_MAX)) return wrong_choice("max-pixels", value, "a whole number from 1 to 4294967295");
        a->bitmap.max_pixels = n;
        break;
    }
    case OPT_OUTPUT: a->output = value; break;
    case OPT_OVERLAY: a->overlay = value; break;
    case OPT_MODEL: a->model = value; break;
    case OPT_BOXES_ONLY: a->segment.want_masks = 0; break;
    case OPT_HF_TEXT_ONLY: a->segment.hf_text_only = 1; break;
    case OPT_QUIET: a->verbosity = -1; break;
    case OPT_VERBOSE: a->verbosity = a->verbosity < 0 ? 1 : a->verbosity + 1; break;
    case OPT_HELP: a->help = true; break;
    default: break;
    }
    return ST_EXIT_OK;
}

/* ---- what is checked when all is read ---- */

static int set_threshold(st_segment_args *a, const char *text, bool global)
{
    const char *equals = strrchr(text, '=');
    if (global != !equals) return ST_EXIT_OK;
    double v;
    if (!st_read_number(&v, equals ? equals + 1 : text, 0.0, 1.0)) return wrong_choice("threshold", text, "V or PHRASE=V with V from 0 to 1");
    bool used = global;
    for (size_t i = 0; i < a->n_phrases; i++) {
        const bool meant = global || (strlen(a->phrases[i]) == (size_t)(equals - text) && strncmp(a->phrases[i], text, (size_t)(equals - text)) == 0);
        if (meant) a->thresholds[i] = (float)v;
        used |= meant;
    }
    return used ? ST_EXIT_OK : st_usage_error("segment", "--threshold: \"%.*s\" is none of the phrases", (int)(equals - text), text);
}

static int check_thresholds(const struct reader *r)
{
    int code = ST_EXIT_OK;
    for (size_t i = 0; i < r->a->n_phrases; i++) r->a->thresholds[i] = 0.5f;
    for (int global = 1; global >= 0; global--)
        for (size_t i = 0; code == ST_EXIT_OK && i < r->n_thresholds; i++) code = set_threshold(r->a, r->thresholds[i], global != 0);
    return code;
}

static int check_phrases(const st_segment_args *a)
{
    for (size_t i = 0; i < a->n_phrases; i++) {
        uint32_t ids[256];
        size_t n;
        int cut;
        st_error err;
        if (!a->phrases[i][strspn(a->phrases[i], " \t\r\n")]) return st_usage_error("segment", "an empty phrase: say what to look for");
        if (st_tokenize(a->phrases[i], ids, sizeof ids / sizeof ids[0], &n, &cut, &err) != ST_OK)
            return st_usage_error("segment", "phrase %zu: %s", i + 1, err.message);
    }
    return ST_EXIT_OK;
}

static int check_words(st_segment_args *a)
{
    if (a->n_pictures == 0 && a->n_phrases == 1) return st_usage_error("segment", "no picture given (\"%s\" is no file, so it was taken for a phrase)", a->phrases[0]);
    if (a->n_pictures == 0) return st_usage_error("segment", "no picture given");
    if (a->n_boxes > 0 && a->n_pictures != 1) return st_usage_error("segment", "--box belongs to one picture, got %zu pictures", a->n_pictures);
    if (a->n_phrases == 0 && a->n_boxes == 0) return st_usage_error("segment", "nothing to look for: give a phrase, or an example with --box");
    for (size_t i = 0; i < a->n_boxes; i++)
        if (!a->boxes[i].negative || a->n_phrases > 0) return ST_EXIT_OK;
    return a->n_boxes ? st_usage_error("segment", "only negative boxes and no phrase: say what to look for") : ST_EXIT_OK;
}

static int check_outputs(const st_segment_args *a)
{
    if (a->format == ST_FORMAT_PNG && (!a->output || strcmp(a->output, "-") == 0)) return st_usage_error("segment", "--format png needs a folder: -o FOLDER");
    if (a->format == ST_FORMAT_PNG && !a->segment.want_masks) return st_usage_error("segment", "--format png writes masks, --boxes-only makes none");
    if (a->overlay && a->n_pictures == 1 && !st_is_folder(a->overlay) && !st_overlay_suffix_known(a->overlay))
        return st_usage_error("segment", "--overlay: expected a .png or .jpg file or an existing folder, got \"%s\"", a->overlay);
    if (a->overlay && a->n_pictures > 1 && !st_is_folder(a->overlay) && st_overlay_suffix_known(a->overlay))
        return st_usage_error("segment", "--overlay: %zu pictures need a folder, \"%s\" is a file name", a->n_pictures, a->overlay);
    for (size_t i = 0; i < a->n_pictures; i++) {
        if (a->output && st_same_file(a->output, a->pictures[i])) return st_usage_error("segment", "-o would overwrite the picture %s", a->pictures[i]);
        if (a->overlay && st_same_file(a->overlay, a->pictures[i])) return st_usage_error("segment", "--overlay would overwrite the picture %s", a->pictures[i]);
    }
    if (a->output && a->overlay && strcmp(a->output, a->overlay) == 0 && !st_is_folder(a->output))
        return st_usage_error("segment", "-o and --overlay name the same file, \"%s\"", a->output);
    return ST_EXIT_OK;
}

static int check(const struct reader *r)
{
    st_segment_args *a = r->a;
    int code = check_words(a);
    if (code != ST_EXIT_OK) return code;
    if (a->n_phrases == 0) { /* as in the reference: boxes alone ask for the word "visual" */
        a->phrases[a->n_phrases++] = "visual";
        a->visual = true;
    }
    if ((code = check_phrases(a)) != ST_EXIT_OK) return code;
    if ((code = check_thresholds(r)) != ST_EXIT_OK) return code;
    return check_outputs(a);
}

int st_segment_args_read(st_segment_args *a, int argc, char **argv)
{
    *a = (st_segment_args){.segment = ST_SEGMENT_OPTIONS_INIT, .encode = ST_ENCODE_OPTIONS_INIT, .bitmap = ST_BITMAP_OPTIONS_INIT};
    const size_t room = (size_t)argc + 1; /* no argument makes more than one of anything */
    struct reader r = {.a = a, .thresholds = calloc(room, sizeof *r.thresholds)};
    a->pictures = calloc(room, sizeof *a->pictures);
    a->phrases = calloc(room, sizeof *a->phrases);
    a->thresholds = calloc(room, sizeof *a->thresholds);
    a->boxes = calloc(room, sizeof *a->boxes);
    int code = ST_EXIT_OK;
    if (!r.thresholds || !a->pictures || !a->phrases || !a->thresholds || !a->boxes) code = ST_EXIT_INTERNAL;
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (code == ST_EXIT_OK && !a->help && (id = st_options_next(&o, &value)) != ST_OPTION_END)
        code = id == ST_OPTION_WRONG ? st_usage_error("segment", "%s", o.problem) : read_option(&r, id, value);
    if (code == ST_EXIT_OK && !a->help) code = check(&r);
    free(r.thresholds);
    return code;
}

void st_segment_args_free(st_segment_args *a)
{
    free(a->pictures);
    free(a->phrases);
    free(a->thresholds);
    free(a->boxes);
}
