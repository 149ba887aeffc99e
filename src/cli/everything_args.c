/* everything_args.c: the command line of `stencil everything` (see everything_args.h). Names are those that SAM 2's
 * automatic mask generator and Hugging Face's pipeline have made known, with dashes.
 */
#include "cli/everything_args.h"
#include "cli/choices.h"
#include "front/options.h"
#include "front/overlay.h"
#include "front/save.h"

#include <string.h>

enum {
    OPT_POINTS_PER_SIDE = 1,
    OPT_POINTS_PER_BATCH,
    OPT_PRED_IOU,
    OPT_STABILITY,
    OPT_STABILITY_OFFSET,
    OPT_BOX_NMS,
    OPT_CROP_LAYERS,
    OPT_CROP_NMS,
    OPT_CROP_OVERLAP,
    OPT_CROP_DOWNSCALE,
    OPT_REGION_AREA,
    OPT_OVERLAP,
    OPT_MAX_MASKS,
    OPT_HF,
    OPT_MODEL,
    OPT_FEATURES,
    OPT_FORMAT,
    OPT_OUTPUT,
    OPT_OVERLAY,
    OPT_STRETCH,
    OPT_RESIZE,
    OPT_MAX_PIXELS,
    OPT_THREADS, OPT_SIZE, OPT_MEMORY,
    OPT_QUIET,
    OPT_VERBOSE,
    OPT_HELP
};

static const st_option options[] = {
    { "model", 'm', "PATH", OPT_MODEL, "model; else STENCIL_MODEL, else the demo model" },
    { "features", 0, "FILE", OPT_FEATURES, "an encoding saved by `stencil encode --clicks`" },
    { "points-per-side", 0, "N", OPT_POINTS_PER_SIDE, "N x N clicks (default 32)" },
    { "points-per-batch", 0, "N", OPT_POINTS_PER_BATCH, "show progress after so many clicks (default 64)" },
    { "pred-iou-thresh", 0, "V", OPT_PRED_IOU, "keep masks whose predicted IoU is above V (default 0.88)" },
    { "stability-score-thresh", 0, "V", OPT_STABILITY, "keep masks whose stability is above V (default 0.95)" },
    { "stability-score-offset", 0, "V", OPT_STABILITY_OFFSET, "stability: areas of logit > V and > -V (default 1)" },
    { "box-nms-thresh", 0, "V", OPT_BOX_NMS, "duplicates: boxes whose IoU is above V (default 0.7)" },
    { "crop-n-layers", 0, "N", OPT_CROP_LAYERS, "look again at 4, 16 ... crops, up to 4^N (default 0)" },
    { "crop-nms-thresh", 0, "V", OPT_CROP_NMS, "duplicates between crops (default 0.7)" },
    { "crop-overlap-ratio", 0, "V", OPT_CROP_OVERLAP, "how far crops overlap (default 512/1500, 0.34133)" },
    { "crop-n-points-downscale-factor", 0, "N", OPT_CROP_DOWNSCALE, "fewer clicks in smaller crops (default 1)" },
    { "min-mask-region-area", 0, "N", OPT_REGION_AREA, "fill holes, drop islands of fewer pixels (default 0)" },
    { "overlap-thresh", 0, "V", OPT_OVERLAP, "drop masks that share more of the smaller one (default 0, off)" },
    { "max-masks", 0, "N", OPT_MAX_MASKS, "keep the best N (default: all)" },
    { "hf", 0, NULL, OPT_HF, "as Hugging Face's pipeline does it, for comparison" },
    { "format", 'f', "FORMAT", OPT_FORMAT, "json, coco, png (a mask per file, into -o) or table" },
    { "output", 'o', "PATH", OPT_OUTPUT, "where results go; a folder for png (default: standard output)" },
    { "overlay", 0, "PATH", OPT_OVERLAY, "draw the masks: a .png or .jpg, or a folder" },
    { "stretch", 0, "WHEN", OPT_STRETCH, "contrast of 16-bit and float pictures: auto, never, always" },
    { "resize", 0, "KIND", OPT_RESIZE, "which of the reference's two resizers to match: gpu, cpu" },
    { "max-pixels", 0, "N", OPT_MAX_PIXELS, "refuse larger pictures (default 300000000)" },
    { "threads", 'j', "N", OPT_THREADS, "threads (default: what affinity and CPU quota allow)" },
    { "size", 0, "PIXELS", OPT_SIZE, "side that pictures are resized to, e.g. 504, 672, 1344: speed against detail (default: the model's own)" },
    { "memory-limit", 0, "SIZE", OPT_MEMORY, "keep to this much memory, e.g. 2G: slower; refused where no plan fits" },
    { "quiet", 'q', NULL, OPT_QUIET, "errors only" },
    { "verbose", 'v', NULL, OPT_VERBOSE, "say more" },
    { "help", 'h', NULL, OPT_HELP, "this text" },
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

void st_cmd_everything_help(FILE *to)
{
    fputs("usage: stencil everything [OPTION...] PICTURE\n\n"
          "Finds masks without being told what to look for: a grid of clicks, of whose candidates the convincing ones\n"
          "stay, each once. On a terminal a table is shown; otherwise JSON is written.\n\n",
          to);
    st_options_print(options, N_OPTIONS, to);
    fputs("\nexamples:\n"
          "  stencil everything photo.jpg -m sam3.safetensors --overlay all.png -o all.json\n"
          "  stencil everything photo.jpg --points-per-side 16 --format png -o masks/\n"
          "  stencil everything aerial.tif --crop-n-layers 1 --min-mask-region-area 100 --format coco -o all.json\n"
          "\nexit codes: 0 done, 1 the picture could not be read, 2 usage, 3 model, 4 output, 5 internal, 130 "
          "cancelled\n",
          to);
}

static int wrong(const char *option, const char *got, const char *expected)
{
    return st_wrong_value("everything", option, got, expected);
}

static int read_fraction(float *out, const char *option, const char *text)
{
    double v;
    if (!st_read_number(&v, text, 0.0, 1.0)) return wrong(option, text, "a number from 0 to 1");
    *out = (float)v;
    return ST_EXIT_OK;
}

static int read_count(uint32_t *out, const char *option, const char *text, uint32_t low, uint32_t high)
{
    char expected[64];
    if (st_read_count(out, text, low, high)) return ST_EXIT_OK;
    if (high == UINT32_MAX) snprintf(expected, sizeof expected, "a whole number from %u", low);
    else snprintf(expected, sizeof expected, "a whole number from %u to %u", low, high);
    return wrong(option, text, expected);
}

/* What belongs to the search itself. */
static int read_search(st_everything_options *o, int id, const char *value)
{
    double v;
    switch (id) {
    case OPT_POINTS_PER_SIDE: return read_count(&o->points_per_side, "points-per-side", value, 1, 256);
    case OPT_POINTS_PER_BATCH: return read_count(&o->points_per_batch, "points-per-batch", value, 1, UINT32_MAX);
    case OPT_PRED_IOU: return read_fraction(&o->pred_iou_thresh, "pred-iou-thresh", value);
    case OPT_STABILITY: return read_fraction(&o->stability_score_thresh, "stability-score-thresh", value);
    case OPT_STABILITY_OFFSET:
        if (!st_read_number(&v, value, 0.0, 1000.0))
            return wrong("stability-score-offset", value, "a number from 0 to 1000");
        o->stability_score_offset = (float)v;
        break;
    case OPT_BOX_NMS: return read_fraction(&o->box_nms_thresh, "box-nms-thresh", value);
    case OPT_CROP_LAYERS: return read_count(&o->crop_n_layers, "crop-n-layers", value, 0, ST_MAX_CROP_LAYERS);
    case OPT_CROP_NMS: return read_fraction(&o->crop_nms_thresh, "crop-nms-thresh", value);
    case OPT_CROP_OVERLAP:
        if (!st_read_number(&v, value, 0.0, 1.0) || v >= 1.0)
            return wrong("crop-overlap-ratio", value, "a number from 0 to less than 1");
        o->crop_overlap_ratio = v;
        break;
    case OPT_CROP_DOWNSCALE:
        return read_count(&o->crop_n_points_downscale_factor, "crop-n-points-downscale-factor", value, 1, 256);
    case OPT_REGION_AREA: return read_count(&o->min_mask_region_area, "min-mask-region-area", value, 0, UINT32_MAX);
    case OPT_OVERLAP: return read_fraction(&o->overlap_thresh, "overlap-thresh", value);
    case OPT_MAX_MASKS: return read_count(&o->max_masks, "max-masks", value, 1, UINT32_MAX);
    default: o->hf = 1; break;
    }
    return ST_EXIT_OK;
}

/* Which of the options that only matter when a picture is read were given. */
typedef struct picture_options {
    bool stretch, resize, max_pixels;
} picture_options;

static int read_option(st_everything_args *a, picture_options *given, int id, const char *value)
{
    if (id >= OPT_POINTS_PER_SIDE && id <= OPT_HF) return read_search(&a->options, id, value);
    switch (id) {
    case ST_OPTION_WORD:
        if (a->in.file)
            return st_usage_error("everything", "takes one picture, got \"%s\" and \"%s\"", a->in.file, value);
        a->in.file = value;
        break;
    case OPT_MODEL: a->model = value; break;
    case OPT_FEATURES: a->in.features = value; break;
    case OPT_FORMAT: return wrong("format", value, st_read_format(&a->format, value));
    case OPT_OUTPUT: a->output = value; break;
    case OPT_OVERLAY: a->overlay = value; break;
    case OPT_STRETCH:
        given->stretch = true;
        return wrong("stretch", value, st_read_stretch(&a->in.bitmap.stretch, value));
    case OPT_RESIZE: given->resize = true; return wrong("resize", value, st_read_resize(&a->in.encode.resize, value));
    case OPT_MAX_PIXELS:
        given->max_pixels = true;
        return wrong("max-pixels", value, st_read_max_pixels(&a->in.bitmap.max_pixels, value));
    case OPT_THREADS: return wrong("threads", value, st_read_threads(&a->wish.n_threads, value));
    case OPT_SIZE: return wrong("size", value, st_read_input_size(&a->wish.input_size, value));
    case OPT_MEMORY: return wrong("memory-limit", value, st_read_memory(&a->wish.memory_limit, value));
    case OPT_QUIET: a->verbosity = -1; break;
    case OPT_VERBOSE: a->verbosity = a->verbosity < 0 ? 1 : a->verbosity + 1; break;
    default: a->help = true; break;
    }
    return ST_EXIT_OK;
}

/* ---- what is checked when all is read ---- */

static int check_picture(const st_everything_args *a, const picture_options *given)
{
    if (!a->in.file && !a->in.features) return st_usage_error("everything", "no picture given");
    if (!a->in.features) return ST_EXIT_OK;
    if (given->resize || given->stretch)
        return st_usage_error("everything", "--%s: the picture is encoded already; it belongs to `stencil encode`",
                              given->resize ? "resize" : "stretch");
    if (a->in.file) return ST_EXIT_OK;
    const char *needs = a->options.crop_n_layers ? "crop-n-layers" : a->overlay ? "overlay" : NULL;
    if (needs)
        return st_usage_error("everything",
                              "--%s needs the picture's pixels, which an encoding does not hold: name the picture "
                              "beside --features",
                              needs);
    if (given->max_pixels) return st_usage_error("everything", "--max-pixels: no picture is read, only --features");
    return ST_EXIT_OK;
}

/* Points get fewer layer by layer: none is left when the factor is large. */
static int check_downscale(const st_everything_options *o)
{
    uint32_t left = o->points_per_side;
    for (uint32_t i = 0; i < o->crop_n_layers; i++) left /= o->crop_n_points_downscale_factor;
    if (left) return ST_EXIT_OK;
    return st_usage_error("everything", "--crop-n-points-downscale-factor: %u leaves no point of %u in layer %u",
                          o->crop_n_points_downscale_factor, o->points_per_side, o->crop_n_layers);
}

static int check_input(const st_everything_args *a, const char *what, const char *path)
{
    if (!path || st_is_folder(path)) return ST_EXIT_OK;
    if (a->output && st_same_file(a->output, path))
        return st_usage_error("everything", "-o would overwrite the %s %s", what, path);
    if (a->overlay && st_same_file(a->overlay, path))
        return st_usage_error("everything", "--overlay would overwrite the %s %s", what, path);
    return ST_EXIT_OK;
}

static int check_outputs(const st_everything_args *a)
{
    if (a->format == ST_FORMAT_PNG && (!a->output || strcmp(a->output, "-") == 0))
        return st_usage_error("everything", "--format png needs a folder: -o FOLDER");
    if (a->overlay && !st_is_folder(a->overlay) && !st_overlay_suffix_known(a->overlay))
        return st_usage_error("everything", "--overlay: expected a .png or .jpg file or an existing folder, got \"%s\"",
                              a->overlay);
    if (a->output && a->overlay && strcmp(a->output, a->overlay) == 0 && !st_is_folder(a->output))
        return st_usage_error("everything", "-o and --overlay name the same file, \"%s\"", a->output);
    int code = check_input(a, "picture", a->in.file);
    if (code == ST_EXIT_OK) code = check_input(a, "encoding", a->in.features);
    if (code == ST_EXIT_OK) code = check_input(a, "model", a->model);
    return code;
}

int st_everything_args_read(st_everything_args *a, int argc, char **argv)
{
    *a = (st_everything_args){ .in = { NULL, NULL, ST_BITMAP_OPTIONS_INIT, ST_ENCODE_OPTIONS_INIT },
                               .options = ST_EVERYTHING_OPTIONS_INIT };
    a->in.encode.for_clicks = 1;
    picture_options given = { false, false, false };
    st_options o;
    const char *value;
    int id, code = ST_EXIT_OK;
    st_options_begin(&o, options, N_OPTIONS, argc, argv);
    while (code == ST_EXIT_OK && !a->help && (id = st_options_next(&o, &value)) != ST_OPTION_END)
        code =
            id == ST_OPTION_WRONG ? st_usage_error("everything", "%s", o.problem) : read_option(a, &given, id, value);
    if (code != ST_EXIT_OK || a->help) return code;
    if ((code = check_picture(a, &given)) != ST_EXIT_OK) return code;
    if ((code = check_downscale(&a->options)) != ST_EXIT_OK) return code;
    return check_outputs(a);
}
