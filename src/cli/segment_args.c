/* segment_args.c: the command line of `stencil segment`.
 *
 * A bare word is a picture when such a file exists, else a phrase; but a word that looks like a path or a picture name
 * and is not there is an error, never a phrase: a mistyped file name must not turn into a search for it. Everything
 * that can be known to be wrong is said here, before a model is opened.
 */
#include "cli/segment_args.h"
#include "cli/choices.h"
#include "front/coordinates.h"
#include "front/options.h"
#include "front/overlay.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    OPT_PICTURE = 1, OPT_FEATURES, OPT_PHRASE, OPT_BOX, OPT_CONCEPT, OPT_POINT, OPT_REGION, OPT_MASK, OPT_THRESHOLD,
    OPT_MASK_THRESHOLD, OPT_MAX_DETECTIONS, OPT_MULTIMASK, OPT_HOLE_AREA, OPT_HF, OPT_FORMAT, OPT_OUTPUT, OPT_OVERLAY,
    OPT_MODEL, OPT_THREADS, OPT_SIZE, OPT_MEMORY, OPT_BOXES_ONLY, OPT_STRETCH, OPT_RESIZE, OPT_HF_TEXT_ONLY, OPT_MAX_PIXELS, OPT_QUIET,
    OPT_VERBOSE, OPT_HELP
};

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL,
      "checkpoint (.pt, .safetensors, .safetensors.index.json) or folder; else STENCIL_MODEL" },
    { "picture", 0, "FILE", OPT_PICTURE, "a picture, whatever its name looks like" },
    { "features", 0, "FILE", OPT_FEATURES,
      "a picture that `stencil encode` saved, in place of PICTURE (or beside it, for --overlay)" },
    { "phrase", 0, "TEXT", OPT_PHRASE, "a phrase, even when a file of that name exists" },
    { "box", 0, "X0,Y0,X1,Y1[:neg]", OPT_BOX,
      "find more like this: an example in pixels; :neg = not like this one (one picture only)" },
    { "concept", 0, "FILE", OPT_CONCEPT,
      "find more like this: examples from other pictures, saved by `stencil concept make`" },
    { "threshold", 0, "[PHRASE=]V", OPT_THRESHOLD, "keep instances that score more than V, 0 to 1 (default 0.5)" },
    { "mask-threshold", 0, "P", OPT_MASK_THRESHOLD,
      "a pixel belongs to the mask above this probability (default 0.5)" },
    { "max-detections", 0, "N", OPT_MAX_DETECTIONS, "keep the best N per phrase (default: all)" },
    { "boxes-only", 0, NULL, OPT_BOXES_ONLY, "no masks: scores and boxes, a little faster" },
    { "hf-text-only", 0, NULL, OPT_HF_TEXT_ONLY, "phrases without boxes as Hugging Face's port does them" },
    { "point", 0, "X,Y[:neg]", OPT_POINT, "cut out this object: a click on it, in pixels; :neg = a click beside it" },
    { "region", 0, "X0,Y0,X1,Y1", OPT_REGION, "cut out the object in this box; several regions are several objects" },
    { "mask", 0, "FILE", OPT_MASK,
      "cut out what this mask means roughly: a gray picture of 0 and 255, or a .npy of logits" },
    { "multimask", 0, "WHEN", OPT_MULTIMASK, "three candidates: auto (for one lone point), on, off" },
    { "hole-area", 0, "N", OPT_HOLE_AREA,
      "fill holes of up to N cells of the mask grid; 0 = none (default: 256 at 288 x 288, scaled)" },
    { "hf", 0, NULL, OPT_HF, "points, regions and masks as Hugging Face's port does them" },
    { "format", 'f', "FORMAT", OPT_FORMAT, "json, coco, png (a mask per file, into -o) or table" },
    { "output", 'o', "PATH", OPT_OUTPUT, "where results go; a folder for png (default: standard output)" },
    { "overlay", 0, "PATH", OPT_OVERLAY, "draw the results: a .png or .jpg, or a folder" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more; twice: everything" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_segment_help(FILE *to)
{
    fputs("usage: stencil segment [OPTION...] PICTURE... PHRASE...\n"
          "       stencil segment [OPTION...] PICTURE --box X0,Y0,X1,Y1... | --concept FILE...\n"
          "       stencil segment [OPTION...] PICTURE --point X,Y... | --region X0,Y0,X1,Y1... | --mask FILE\n\n"
          "Finds every instance of each phrase in each picture, or cuts out one object. Phrases, --box and --concept\n"
          "find every instance; --point, --region and --mask mean one object; the two do not mix.\n"
          "A word that names an existing file is a picture, any other word is a phrase. All coordinates are pixels of\n"
          "the picture as shown. On a terminal a table is shown; otherwise JSON is written.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil segment photo.jpg forklift -m sam3.safetensors\n"
          "  stencil segment photo.jpg \"yellow school bus\" person --overlay found.png -o found.json\n"
          "  stencil segment *.jpg cat --format coco -o cats.json --overlay drawn/\n"
          "  stencil segment photo.jpg --box 120,80,260,200 --box 400,90,460,150:neg\n"
          "  stencil segment photo.jpg cat dog --threshold 0.4 --threshold dog=0.7\n"
          "  stencil segment *.jpg --concept forklift.concept -o forklifts.json\n"
          "  stencil segment photo.jpg --point 500,375 --point 470,470:neg --overlay cut.png\n"
          "  stencil segment photo.jpg --region 120,80,260,200 --region 400,90,460,150\n\n"
          "exit codes: 0 done, 1 some pictures failed, 2 usage, 3 model, 4 output, 5 internal, 130 cancelled\n",
          to);
}

/* ---- what is collected while reading ---- */

struct reader {
    st_segment_args *a;
    const char **thresholds; /* [n] as written */
    size_t n_thresholds;
    const char **concepts; /* [n] files */
    size_t n_concepts;
    bool stretch, resize, max_pixels;
    const char *only_phrases, *only_objects; /* the last option that belongs to one of the two tasks */
};

static int wrong_choice(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("segment", option, got, expected);
}

static int read_box(st_segment_args *a, const char *text)
{
    if (a->n_boxes == ST_MAX_EXEMPLARS) return st_usage_error("segment", "--box: at most %d boxes", ST_MAX_EXEMPLARS);
    return wrong_choice("box", text, st_read_exemplar(&a->boxes[a->n_boxes++], text));
}

static int read_point(st_segment_args *a, const char *text)
{
    if (a->n_points == ST_MAX_POINTS) return st_usage_error("segment", "--point: at most %d points", ST_MAX_POINTS);
    return wrong_choice("point", text, st_read_point(&a->points[a->n_points++], text));
}

static int read_region(st_segment_args *a, const char *text)
{
    return wrong_choice("region", text, st_read_region(&a->regions[a->n_regions++], text));
}

static int read_mask_threshold(st_segment_args *a, const char *text)
{
    double v;
    if (!st_read_number(&v, text, 0.0, 1.0) || !((float)v > 0.0f && (float)v < 1.0f))
        return wrong_choice("mask-threshold", text, "a number above 0 and below 1");
    a->segment.mask_threshold = (float)v;
    return ST_EXIT_OK;
}

/* A file that may be given once. */
static int read_once(const char **out, const char *option, const char *value)
{
    if (*out) return st_usage_error("segment", "--%s: expected one file, got \"%s\" and \"%s\"", option, *out, value);
    *out = value;
    return ST_EXIT_OK;
}

static const char *const picture_suffixes[] = { ".jpg",  ".jpeg", ".jpe",  ".jfif", ".png",  ".webp", ".tif",
                                                ".tiff", ".heic", ".heif", ".hif",  ".avif", ".bmp",  ".gif",
                                                ".jp2",  ".jxl",  ".dng",  ".cr2",  ".cr3",  ".nef",  ".arw",
                                                ".psd",  ".ppm",  ".pgm",  ".svg",  ".exr" };

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
    if (strcmp(word, "-") == 0)
        return st_usage_error("segment", "pictures are not read from standard input, name a file");
    if (st_is_folder(word))
        return st_usage_error("segment",
                              "\"%s\" is a folder: name its pictures, or say --phrase \"%s\" if you look for that",
                              word, word);
    if (st_exists(word)) a->pictures[a->n_pictures++] = word;
    else if (st_looks_like_picture(word))
        return st_usage_error("segment", "\"%s\": no such file; say --phrase \"%s\" if it is something to look for",
                              word, word);
    else a->phrases[a->n_phrases++] = word;
    return ST_EXIT_OK;
}

/* Options of one task only: phrases, exemplar boxes and concepts. */
static int read_phrase_option(struct reader *r, int id, const char *value)
{
    st_segment_args *a = r->a;
    switch (id) {
    case OPT_THRESHOLD: r->only_phrases = "threshold", r->thresholds[r->n_thresholds++] = value; break;
    case OPT_MASK_THRESHOLD: r->only_phrases = "mask-threshold"; return read_mask_threshold(a, value);
    case OPT_MAX_DETECTIONS:
        r->only_phrases = "max-detections";
        if (!st_read_count(&a->segment.max_detections, value, 1, UINT32_MAX))
            return wrong_choice("max-detections", value, "a whole number from 1");
        break;
    case OPT_BOXES_ONLY: r->only_phrases = "boxes-only", a->segment.want_masks = 0; break;
    default: r->only_phrases = "hf-text-only", a->segment.hf_text_only = 1; break;
    }
    return ST_EXIT_OK;
}

/* Options of the other task: points, regions and masks. */
static int read_object_option(struct reader *r, int id, const char *value)
{
    st_click_options *click = &r->a->click;
    switch (id) {
    case OPT_MULTIMASK:
        r->only_objects = "multimask";
        return wrong_choice("multimask", value, st_read_multimask(&click->multimask, value));
    case OPT_HOLE_AREA:
        r->only_objects = "hole-area";
        return wrong_choice("hole-area", value, st_read_hole_area(&click->hole_area, value));
    default: r->only_objects = "hf", click->hf = 1; return ST_EXIT_OK;
    }
}

static int read_option(struct reader *r, int id, const char *value)
{
    st_segment_args *a = r->a;
    switch (id) {
    case ST_OPTION_WORD: return read_word(a, value);
    case OPT_PICTURE: a->pictures[a->n_pictures++] = value; break;
    case OPT_FEATURES: return read_once(&a->features, "features", value);
    case OPT_PHRASE: a->phrases[a->n_phrases++] = value; break;
    case OPT_BOX: return read_box(a, value);
    case OPT_CONCEPT: r->concepts[r->n_concepts++] = value; break;
    case OPT_POINT: return read_point(a, value);
    case OPT_REGION: return read_region(a, value);
    case OPT_MASK: return read_once(&a->mask, "mask", value);
    case OPT_THRESHOLD:
    case OPT_MASK_THRESHOLD:
    case OPT_MAX_DETECTIONS:
    case OPT_BOXES_ONLY:
    case OPT_HF_TEXT_ONLY: return read_phrase_option(r, id, value);
    case OPT_MULTIMASK:
    case OPT_HOLE_AREA:
    case OPT_HF: return read_object_option(r, id, value);
    case OPT_FORMAT: return wrong_choice("format", value, st_read_format(&a->format, value));
    case OPT_STRETCH:
        r->stretch = true;
        return wrong_choice("stretch", value, st_read_stretch(&a->bitmap.stretch, value));
    case OPT_RESIZE: r->resize = true; return wrong_choice("resize", value, st_read_resize(&a->encode.resize, value));
    case OPT_MAX_PIXELS:
        r->max_pixels = true;
        return wrong_choice("max-pixels", value, st_read_max_pixels(&a->bitmap.max_pixels, value));
    case OPT_THREADS: return wrong_choice("threads", value, st_read_threads(&a->wish.n_threads, value));
    case OPT_SIZE: return wrong_choice("size", value, st_read_input_size(&a->wish.input_size, value));
    case OPT_MEMORY: return wrong_choice("memory-limit", value, st_read_memory(&a->wish.memory_limit, value));
    case OPT_OUTPUT: a->output = value; break;
    case OPT_OVERLAY: a->overlay = value; break;
    case OPT_MODEL: a->model = value; break;
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
    if (!st_read_number(&v, equals ? equals + 1 : text, 0.0, 1.0))
        return wrong_choice("threshold", text, "V or PHRASE=V with V from 0 to 1");
    bool used = global;
    for (size_t i = 0; i < a->n_phrases; i++) {
        const bool meant = global || (strlen(a->phrases[i]) == (size_t)(equals - text) &&
                                      strncmp(a->phrases[i], text, (size_t)(equals - text)) == 0);
        if (meant) a->thresholds[i] = (float)v;
        used |= meant;
    }
    return used ? ST_EXIT_OK
                : st_usage_error("segment", "--threshold: \"%.*s\" is none of the phrases", (int)(equals - text), text);
}

static int check_thresholds(const struct reader *r)
{
    int code = ST_EXIT_OK;
    for (size_t i = 0; i < r->a->n_phrases; i++) r->a->thresholds[i] = 0.5f;
    for (int global = 1; global >= 0; global--)
        for (size_t i = 0; code == ST_EXIT_OK && i < r->n_thresholds; i++)
            code = set_threshold(r->a, r->thresholds[i], global != 0);
    return code;
}

static int check_phrases(const st_segment_args *a)
{
    for (size_t i = 0; i < a->n_phrases; i++) {
        uint32_t ids[256];
        size_t n;
        int cut;
        st_error err;
        if (!a->phrases[i][strspn(a->phrases[i], " \t\r\n")])
            return st_usage_error("segment", "an empty phrase: say what to look for");
        if (st_tokenize(a->phrases[i], ids, sizeof ids / sizeof ids[0], &n, &cut, &err) != ST_OK)
            return st_usage_error("segment", "phrase %zu: %s", i + 1, err.message);
    }
    return ST_EXIT_OK;
}

/* The two tasks do not mix, and neither takes the other's options. */
static int check_task(const struct reader *r)
{
    const st_segment_args *a = r->a;
    const char *object = a->n_points ? "--point" : a->n_regions ? "--region" : a->mask ? "--mask" : NULL;
    const char *every = a->n_boxes ? "--box" : r->n_concepts ? "--concept" : a->n_phrases ? "a phrase" : NULL;
    if (object && every)
        return st_usage_error("segment",
                              "%s and %s in one command: a phrase, --box and --concept find every instance (`stencil "
                              "segment PICTURE PHRASE`); --point, --region and --mask "
                              "cut out one object (`stencil segment PICTURE --point X,Y`); use one command for each",
                              every, object);
    if (object && r->only_phrases)
        return st_usage_error("segment", "--%s belongs to phrases, --box and --concept, not to %s", r->only_phrases,
                              object);
    if (!object && r->only_objects)
        return st_usage_error("segment", "--%s belongs to --point, --region and --mask", r->only_objects);
    if (a->n_regions > 1 && (a->n_points || a->mask))
        return st_usage_error("segment",
                              "%s with %zu regions: several regions are several objects, and it belongs to one of "
                              "them; use one command per object",
                              a->n_points ? "--point" : "--mask", a->n_regions);
    return ST_EXIT_OK;
}

static int check_pictures(const struct reader *r)
{
    const st_segment_args *a = r->a;
    const char *pixels = a->n_boxes     ? "--box"
                         : a->n_points  ? "--point"
                         : a->n_regions ? "--region"
                         : a->mask      ? "--mask"
                         : a->features  ? "--features"
                                        : NULL;
    if (a->n_pictures == 0 && !a->features && a->n_phrases == 1)
        return st_usage_error("segment", "no picture given (\"%s\" is no file, so it was taken for a phrase)",
                              a->phrases[0]);
    if (a->n_pictures == 0 && !a->features) return st_usage_error("segment", "no picture given");
    if (pixels && a->n_pictures > 1)
        return st_usage_error("segment", "%s belongs to one picture, got %zu pictures", pixels, a->n_pictures);
    if (!a->features) return ST_EXIT_OK;
    if (r->resize || r->stretch)
        return st_usage_error("segment", "--%s: the picture is encoded already; it belongs to `stencil encode`",
                              r->resize ? "resize" : "stretch");
    if (a->n_pictures) return ST_EXIT_OK;
    if (a->overlay)
        return st_usage_error("segment", "--overlay needs the picture's pixels, which an encoding does not hold: name "
                                         "the picture beside --features");
    return r->max_pixels ? st_usage_error("segment", "--max-pixels: no picture is read, only --features") : ST_EXIT_OK;
}

static int check_prompt(const struct reader *r)
{
    const st_segment_args *a = r->a;
    if (a->n_points || a->n_regions || a->mask || a->n_phrases || r->n_concepts) {
        if (r->n_concepts > ST_MAX_CONCEPTS)
            return st_usage_error("segment", "--concept: at most %d concepts", ST_MAX_CONCEPTS);
        if (r->n_concepts && a->n_boxes)
            return st_usage_error("segment", "--box with --concept: save the boxes as a concept, too (`stencil concept "
                                             "make`), then several can be asked for together");
        return ST_EXIT_OK;
    }
    if (a->n_boxes == 0)
        return st_usage_error("segment", "nothing to look for: give a phrase, an example with --box or --concept, or "
                                         "click at an object with --point or --region");
    for (size_t i = 0; i < a->n_boxes; i++)
        if (!a->boxes[i].negative) return ST_EXIT_OK;
    return st_usage_error("segment", "only negative boxes and no phrase: say what to look for");
}

/* Opens the concepts, whose phrase is the prompt's; a phrase that was given must be the same. */
static int read_concepts(struct reader *r)
{
    st_segment_args *a = r->a;
    st_error err;
    for (size_t i = 0; i < r->n_concepts; i++) {
        st_concept_info info = ST_CONCEPT_INFO_INIT;
        st_status status = st_concept_load(&a->concepts[i], r->concepts[i], &err);
        if (status == ST_OK) {
            a->n_concepts++;
            status = st_concept_get_info(a->concepts[i], &info, &err);
        }
        if (status != ST_OK) return st_usage_error("segment", "--concept: %s", err.message);
        a->concept_files[i] = (st_concept_report){ r->concepts[i], info.phrase, info.n_tokens };
        if (a->n_phrases == 0) a->phrases[a->n_phrases++] = info.phrase;
        for (size_t k = 0; k < a->n_phrases; k++)
            if (strcmp(a->phrases[k], info.phrase) != 0)
                return st_usage_error("segment",
                                      "--concept %s was made with the phrase \"%s\", which does not agree with \"%s\"",
                                      r->concepts[i], info.phrase, a->phrases[k]);
    }
    return ST_EXIT_OK;
}

/* Nothing that is read may be written over. */
static int check_input(const st_segment_args *a, const char *what, const char *path)
{
    if (!path || st_is_folder(path)) return ST_EXIT_OK;
    if (a->output && st_same_file(a->output, path))
        return st_usage_error("segment", "-o would overwrite the %s %s", what, path);
    if (a->overlay && st_same_file(a->overlay, path))
        return st_usage_error("segment", "--overlay would overwrite the %s %s", what, path);
    return ST_EXIT_OK;
}

static int check_inputs(const st_segment_args *a)
{
    int code = check_input(a, "model", a->model);
    if (code == ST_EXIT_OK) code = check_input(a, "encoding", a->features);
    if (code == ST_EXIT_OK) code = check_input(a, "mask", a->mask);
    for (size_t i = 0; code == ST_EXIT_OK && i < a->n_concepts; i++)
        code = check_input(a, "concept", a->concept_files[i].file);
    for (size_t i = 0; code == ST_EXIT_OK && i < a->n_pictures; i++) code = check_input(a, "picture", a->pictures[i]);
    return code;
}

static int check_outputs(const st_segment_args *a)
{
    if (a->format == ST_FORMAT_PNG && (!a->output || strcmp(a->output, "-") == 0))
        return st_usage_error("segment", "--format png needs a folder: -o FOLDER");
    if (a->format == ST_FORMAT_PNG && !a->segment.want_masks)
        return st_usage_error("segment", "--format png writes masks, --boxes-only makes none");
    if (a->overlay && a->n_pictures == 1 && !st_is_folder(a->overlay) && !st_overlay_suffix_known(a->overlay))
        return st_usage_error("segment", "--overlay: expected a .png or .jpg file or an existing folder, got \"%s\"",
                              a->overlay);
    if (a->overlay && a->n_pictures > 1 && !st_is_folder(a->overlay) && st_overlay_suffix_known(a->overlay))
        return st_usage_error("segment", "--overlay: %zu pictures need a folder, \"%s\" is a file name", a->n_pictures,
                              a->overlay);
    if (a->output && a->overlay && strcmp(a->output, a->overlay) == 0 && !st_is_folder(a->output))
        return st_usage_error("segment", "-o and --overlay name the same file, \"%s\"", a->output);
    return check_inputs(a);
}

static int check(struct reader *r)
{
    st_segment_args *a = r->a;
    int code = check_task(r);
    if (code == ST_EXIT_OK) code = check_pictures(r);
    if (code == ST_EXIT_OK) code = check_prompt(r);
    if (code == ST_EXIT_OK) code = read_concepts(r);
    if (code != ST_EXIT_OK) return code;
    if (a->n_points || a->n_regions || a->mask) {
        a->n_objects = a->n_regions > 1 ? a->n_regions : 1;
        a->encode.for_clicks = 1;
    } else if (a->n_phrases == 0) { /* as in the reference: boxes alone ask for the word "visual" */
        a->phrases[a->n_phrases++] = "visual";
        a->visual = true;
    }
    if ((code = check_phrases(a)) != ST_EXIT_OK) return code;
    if ((code = check_thresholds(r)) != ST_EXIT_OK) return code;
    if ((code = check_outputs(a)) != ST_EXIT_OK) return code;
    if (a->n_pictures == 0) {
        a->features_only = true;
        a->pictures[a->n_pictures++] = a->features;
    }
    return ST_EXIT_OK;
}

/* Room for whatever the words may be; false when out of memory. */
static bool make_room(struct reader *r, size_t room)
{
    st_segment_args *a = r->a;
    r->thresholds = calloc(room, sizeof *r->thresholds);
    r->concepts = calloc(room, sizeof *r->concepts);
    a->pictures = calloc(room, sizeof *a->pictures);
    a->phrases = calloc(room, sizeof *a->phrases);
    a->thresholds = calloc(room, sizeof *a->thresholds);
    a->boxes = calloc(room, sizeof *a->boxes);
    a->concepts = calloc(room, sizeof *a->concepts);
    a->concept_files = calloc(room, sizeof *a->concept_files);
    a->points = calloc(room, sizeof *a->points);
    a->regions = calloc(room, sizeof *a->regions);
    return r->thresholds && r->concepts && a->pictures && a->phrases && a->thresholds && a->boxes && a->concepts &&
           a->concept_files && a->points && a->regions;
}

int st_segment_args_read(st_segment_args *a, int argc, char **argv)
{
    *a = (st_segment_args){ .segment = ST_SEGMENT_OPTIONS_INIT,
                            .encode = ST_ENCODE_OPTIONS_INIT,
                            .bitmap = ST_BITMAP_OPTIONS_INIT,
                            .click = ST_CLICK_OPTIONS_INIT };
    struct reader r = { .a = a };
    int code = make_room(&r, (size_t)argc + 1) ? ST_EXIT_OK
                                               : ST_EXIT_INTERNAL; /* no argument makes more than one of anything */
    st_options o;
    const char *value;
    int id;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (code == ST_EXIT_OK && !a->help && (id = st_options_next(&o, &value)) != ST_OPTION_END)
        code = id == ST_OPTION_WRONG ? st_usage_error("segment", "%s", o.problem) : read_option(&r, id, value);
    if (code == ST_EXIT_OK && !a->help) code = check(&r);
    free(r.thresholds);
    free(r.concepts);
    return code;
}

void st_segment_args_free(st_segment_args *a)
{
    for (size_t i = 0; i < a->n_concepts; i++) st_concept_free(a->concepts[i]);
    free(a->concepts);
    free(a->concept_files);
    free(a->pictures);
    free(a->phrases);
    free(a->thresholds);
    free(a->boxes);
    free(a->points);
    free(a->regions);
}
