/* stencil.h: SAM 3 and SAM 3.1 as a C library: model, picture, session, result.
 *
 * Three objects:
 *   st_model    the weights of one checkpoint, immutable after st_model_open, shared by any number of threads;
 *   st_picture  one encoded picture (features), immutable and reference-counted: one encode serves any number of phrases;
 *   st_session  scratch memory of one line of work: one thread at a time, any number of sessions per model.
 *
 * Every call that can fail returns a status and fills an optional `st_error`. Structs that callers fill begin with `struct_size`
 * (use the *_INIT macros), so that a program built today runs with a newer library. No call prints, exits, aborts on input,
 * or reads the environment, but for ST_CPU_MASK (see docs/cpu-levels.md), which is read once.
 *
 * A thread that encodes or asks needs 256 KB of stack. On a CPU with AMX the first model that is opened asks Linux for the
 * tiles' registers; from then on it refuses signal stacks (sigaltstack) below about 12 KB, in the whole process.
 */
#ifndef STENCIL_H
#define STENCIL_H

#include <stencil/stencil_base.h>
#include <stencil/stencil_mask.h>
#include <stencil/stencil_picture.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- model */

typedef struct st_model st_model;

typedef struct st_model_options {
    size_t struct_size; /* ST_MODEL_OPTIONS_INIT */
    uint32_t n_threads; /* 0 = as many as the CPU affinity and the cgroup's quota allow. Results do not depend on it. */
    st_log_fn *log;     /* NULL = silent */
    void *log_user;
    uint64_t memory_limit; /* bytes; 0 = none. A plan whose peak (st_model_info.plan_peak) is above it is changed: weights then leave memory a block at a
                            * time and are read from the file again, which costs time where the file is not in the system's cache. What no plan can keep
                            * is ST_ERR_LIMIT. Results do not depend on it. */
    uint32_t input_size; /* side that pictures are resized to, in pixels; 0 = the checkpoint's own (1008 as published). Else a multiple
                          * of its patch (14), of at least one attention window (336) and at most 512 patches (7168): smaller is
                          * faster and sees less. Concepts and saved pictures belong to one size (docs/input-size.md). */
} st_model_options;
#define ST_MODEL_OPTIONS_INIT { sizeof(st_model_options), 0, NULL, NULL, 0, 0 }

/* Opens a published checkpoint, unchanged: a PyTorch .pt file, a .safetensors file, a sharded .safetensors.index.json, or a Hugging
 * Face snapshot directory. Every tensor's name and shape is checked here; values are mapped, not copied, and checked for NaN
 * and infinity when a stage first uses them. Nothing in the file is executed. On failure *out is NULL. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_model_open(st_model **out, const char *path, const st_model_options *opts, st_error *err);
/* Frees the model once its last session and picture are gone too. NULL is fine. */
ST_API void st_model_free(st_model *model);

/* One line of a model's description: a part of the network or a dtype, with what it holds. */
typedef struct st_model_part {
    const char *name;       /* "ViT trunk", "text encoder", ... */
    uint64_t n_tensors;
    uint64_t n_elements;    /* of the tensors that inference uses */
} st_model_part;

/* Bytes of one line of the memory plan. */
typedef struct st_plan_line {
    const char *name; /* "weights (mapped)", "picture encode scratch", ... */
    uint64_t bytes;
} st_plan_line;

/* What st_model_get_info tells. Strings and arrays belong to the model. */
typedef struct st_model_info {
    size_t struct_size;       /* ST_MODEL_INFO_INIT */
    const char *id;           /* 64 hex digits: equal for the same weights in any container or layout; at another input size than the
                               * checkpoint's own followed by "@" and that size, since features and tokens are then others */
    const char *version;      /* "sam3" or "sam3.1" */
    const char *layout;       /* "meta", "hf" */
    const char *container;    /* "safetensors", "safetensors (sharded)", "pytorch zip" */
    const char *precision;    /* what the arithmetic uses: "fp32", or "int8" where matrices are quantised */
    const char *dtypes;       /* what the file stores, e.g. "F32" or "F16 + F32" */
    uint32_t input_size;      /* pixels: pictures are resized to input_size x input_size */
    uint32_t mask_size;       /* side of the low-resolution mask grid */
    uint32_t n_queries;       /* at most this many instances per prompt */
    const st_model_part *parts;
    size_t n_parts;
    const char *const *unused; /* tensors that are known but not used by pictures and phrases */
    size_t n_unused;
    const st_plan_line *plan; /* memory: one line each, computed, not measured */
    size_t n_plan;
    uint64_t plan_peak;       /* bytes: peak resident memory of one picture and one phrase */
    int can_segment;          /* 1: phrases and exemplar boxes */
    int can_click;            /* 1: points, regions and masks: the weights hold the interactive part */
    int can_track;            /* 1: the weights hold the tracker (unused by this version) */
    const char *cpu_level;    /* kernels in use: "ref", "avx2", "amx", ... (docs/cpu-levels.md) */
    const char *gemm;         /* how matrix products are made: "FMA tiles 12x32; int8: AMX", "scalar" */
    uint32_t n_threads;
    uint32_t own_input_size;  /* what the checkpoint says; input_size unless another was asked for */
} st_model_info;
#define ST_MODEL_INFO_INIT { sizeof(st_model_info), NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, NULL, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL, 0, 0 }
ST_API ST_MUSTCHECK st_status st_model_get_info(const st_model *model, st_model_info *info, st_error *err);

/* What a pass multiplies and how fast this machine multiplies, for benchmarks: a share of the second is what a time can be judged by. */
typedef struct st_rate {
    size_t struct_size;   /* ST_RATE_INIT */
    double encode_gflop;  /* 10^9 operations (a multiplication and an addition are two) of the products of st_picture_encode */
    double phrase_gflop;  /* of st_segment with a phrase that is new, on a picture that has answered before, up to 32 masks */
    double fp32_gflops;   /* 10^9 operations a second of one large product, all threads, measured now */
    double int8_gops;     /* the same in int8; 0 when the model has no int8 matrices */
} st_rate;
#define ST_RATE_INIT { sizeof(st_rate), 0, 0, 0, 0 }
/* Takes about half a second and 50 MB. n_tokens: of the phrase, start and end included. */
ST_API ST_MUSTCHECK st_status st_model_rate(const st_model *model, uint32_t n_tokens, st_rate *out, st_error *err);

/* ---------------------------------------------------------------- session */

typedef struct st_session st_session;
typedef struct st_picture st_picture;

typedef struct st_session_options {
    size_t struct_size;          /* ST_SESSION_OPTIONS_INIT */
    const st_cancel *cancel;     /* NULL = cannot be cancelled; seen within a second; borrowed for the session's life */
    st_progress_fn *progress;    /* NULL = none */
    void *progress_user;
} st_session_options;
#define ST_SESSION_OPTIONS_INIT { sizeof(st_session_options), NULL, NULL, NULL }
/* The session keeps the model alive. On failure *out is NULL. */
ST_API ST_MUSTCHECK st_status st_session_new(st_session **out, st_model *model, const st_session_options *opts, st_error *err);
ST_API void st_session_free(st_session *session); /* NULL is fine; pictures and results live on */

/* ---------------------------------------------------------------- picture */

/* Pixels as shown (upright), 8 bits per sample. */
typedef enum st_pixel_format { ST_PIXEL_RGB8 = 0, ST_PIXEL_BGR8 = 1, ST_PIXEL_RGBA8 = 2, ST_PIXEL_GRAY8 = 3 } st_pixel_format;
typedef struct st_image {
    const uint8_t *data; /* [height] rows of `stride` bytes */
    uint32_t width, height;
    size_t stride; /* bytes from row to row, >= width * samples */
    st_pixel_format format;
} st_image;

/* The two published resize arithmetics differ in the last bit of some pixels (docs/preprocessing.md). */
typedef enum st_resize { ST_RESIZE_GPU = 0, ST_RESIZE_CPU = 1 } st_resize;
typedef struct st_encode_options {
    size_t struct_size; /* ST_ENCODE_OPTIONS_INIT */
    st_resize resize;
    int for_clicks;     /* 1: also keep what st_click needs (one more neck; the plan says what it costs) */
    const char *source; /* free UTF-8 text on where the pixels come from, copied: kept with the picture and in its file; NULL = none */
} st_encode_options;
#define ST_ENCODE_OPTIONS_INIT { sizeof(st_encode_options), ST_RESIZE_GPU, 0, NULL }
#define ST_MAX_SOURCE_BYTES 65536

/* Resize, normalise, ViT, neck. The pixels are not kept. A side of more than 2^24 pixels, or more than UINT32_MAX in all, is ST_ERR_LIMIT. On failure *out
 * is NULL. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_picture_encode(st_picture **out, st_session *session, const st_image *image,
                                                const st_encode_options *opts, st_error *err);
ST_API st_picture *st_picture_ref(st_picture *picture); /* one more owner; returns its argument */
ST_API void st_picture_free(st_picture *picture);       /* one owner less; NULL is fine */
ST_API void st_picture_size(const st_picture *picture, uint32_t *width, uint32_t *height);
ST_API int st_picture_for_clicks(const st_picture *picture);        /* 1: encoded with for_clicks */
ST_API const char *st_picture_source(const st_picture *picture);    /* as given to st_picture_encode; NULL = none; belongs to the picture */

/* Saves the features, so that an editor or a labelling job pays the encode once: a safetensors file, fp32 (identical results) or with `half` fp16 (half the size; scores move in the
 * third decimal). The file appears complete or not at all. */
ST_API ST_MUSTCHECK st_status st_picture_save(const st_picture *picture, const char *path, int half, st_error *err);
/* Reads one back. Refused when it was made by other weights or at another input size. */
ST_API ST_MUSTCHECK st_status st_picture_load(st_picture **out, st_model *model, const char *path, st_error *err);

/* ---------------------------------------------------------------- prompts and results */

/* A portable concept: the exemplar tokens of one picture, to be asked for on any other. */
typedef struct st_concept st_concept;

/* An exemplar box: "what it looks like". Pixels of the picture as shown; x0 < x1, y0 < y1, inside the picture. */
typedef struct st_exemplar {
    float x0, y0, x1, y1;
    int negative; /* 1: "not like this one" */
} st_exemplar;

typedef struct st_prompt {
    size_t struct_size;       /* ST_PROMPT_INIT */
    const char *phrase;       /* UTF-8; NULL with boxes = the word "visual", as in the reference */
    const st_exemplar *boxes; /* [n_boxes] */
    size_t n_boxes;           /* at most ST_MAX_EXEMPLARS */
    const st_concept *const *concepts; /* [n_concepts] exemplars from other pictures, in place of boxes */
    size_t n_concepts;        /* at most ST_MAX_CONCEPTS; their phrases must agree with each other and with `phrase` (NULL: theirs) */
} st_prompt;
#define ST_PROMPT_INIT { sizeof(st_prompt), NULL, NULL, 0, NULL, 0 }
#define ST_MAX_CONCEPTS 64
#define ST_MAX_EXEMPLARS 256
#define ST_MAX_PHRASE_BYTES 65536

typedef struct st_segment_options {
    size_t struct_size;      /* ST_SEGMENT_OPTIONS_INIT */
    float threshold;         /* keep score > threshold; default 0.5 */
    float mask_threshold;    /* mask probability, 0 < p < 1; default 0.5 (logit > 0) */
    uint32_t max_detections; /* keep the best N; 0 = all */
    int hf_text_only;        /* 1: leave the CLS token out of prompts without boxes, as Hugging Face's port does */
    int want_masks;          /* 0: boxes and scores only */
} st_segment_options;
#define ST_SEGMENT_OPTIONS_INIT { sizeof(st_segment_options), 0.5f, 0.5f, 0, 0, 1 }

typedef struct st_instance {
    float score;
    float box[4];    /* x0, y0, x1, y1: the model's own, pixels of the picture as shown, not clamped, not rounded */
    uint64_t area;   /* pixels of the mask */
    st_rle mask;     /* empty mask: area 0. Without want_masks: all zero */
    uint32_t query;  /* which of the model's queries found it */
} st_instance;

/* Bits of st_result.warnings. */
#define ST_WARN_PROMPT_CUT 1u    /* the phrase had more tokens than the model reads */
#define ST_WARN_NOTHING_FOUND 2u /* no instance above the threshold */
#define ST_WARN_QUERY_LIMIT 4u   /* every query of the model found something: there may be more */
#define ST_WARN_DETECTION_CAP 8u /* max_detections dropped instances above the threshold */

typedef struct st_result {
    float presence;          /* probability that the concept is in the picture */
    uint32_t warnings;       /* ST_WARN_* */
    uint32_t width, height;  /* of the picture */
    uint32_t n_tokens;       /* text tokens the model read, start and end included */
    st_instance *instances;  /* [n_instances] by falling score, ties by query */
    size_t n_instances;
} st_result;

/* One prompt on an encoded picture. The result belongs to the caller. The same prompt gives the same bits whatever ran before, on any number
 * of threads. On failure *out is NULL. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_segment(st_result **out, st_session *session, const st_picture *picture,
                                         const st_prompt *prompt, const st_segment_options *opts, st_error *err);
ST_API void st_result_free(st_result *result); /* NULL is fine */

/* ---------------------------------------------------------------- portable concepts */

/* Encodes the boxes of a prompt on a picture: tokens [n_boxes + 1], the picture's CLS last. The phrase (NULL: "visual") is kept as text. `source` (may be NULL) is a free text on where it
 * comes from. On the same picture, a prompt with the concept gives bit for bit what the prompt with the boxes gives. */
ST_API ST_MUSTCHECK st_status st_concept_make(st_concept **out, st_session *session, const st_picture *picture, const st_prompt *prompt, const char *source,
                                              st_error *err);
ST_API ST_MUSTCHECK st_status st_concept_save(const st_concept *concept_, const char *path, st_error *err);
/* Any model's concept can be read; st_segment refuses one of other weights or another input size. */
ST_API ST_MUSTCHECK st_status st_concept_load(st_concept **out, const char *path, st_error *err);
ST_API void st_concept_free(st_concept *concept_); /* NULL is fine */

/* Strings belong to the concept. */
typedef struct st_concept_info {
    size_t struct_size; /* ST_CONCEPT_INFO_INIT */
    const char *model_id, *phrase, *source; /* source may be NULL */
    uint32_t input_size, width, n_tokens;   /* width: of a token */
    uint32_t picture_width, picture_height; /* of the picture it was made on */
    const st_exemplar *boxes;
    size_t n_boxes;
} st_concept_info;
#define ST_CONCEPT_INFO_INIT { sizeof(st_concept_info), NULL, NULL, NULL, 0, 0, 0, 0, 0, NULL, 0 }
ST_API ST_MUSTCHECK st_status st_concept_get_info(const st_concept *concept_, st_concept_info *info, st_error *err);

/* ---------------------------------------------------------------- clicks: one object */

/* A click. Pixels of the picture as shown, 0 <= x <= width, 0 <= y <= height. */
typedef struct st_point {
    float x, y;
    int positive; /* 1: on the object; 0: not on it */
} st_point;

/* A region box: "this object, here". Not an exemplar. Pixels; x0 < x1, y0 < y1, inside the picture. */
typedef struct st_region {
    float x0, y0, x1, y1;
} st_region;

typedef struct st_click_input {
    size_t struct_size;      /* ST_CLICK_INPUT_INIT */
    const st_point *points;  /* [n_points] in the order of the clicks */
    size_t n_points;         /* at most ST_MAX_POINTS */
    const st_region *region; /* or NULL */
    const float *logits;     /* [mask_size][mask_size] logits of an earlier result or of st_click_mask_logits; or NULL */
} st_click_input;
#define ST_CLICK_INPUT_INIT { sizeof(st_click_input), NULL, 0, NULL, NULL }
#define ST_MAX_POINTS 256

typedef enum st_multimask { ST_MULTIMASK_AUTO = 0, ST_MULTIMASK_ON = 1, ST_MULTIMASK_OFF = 2 } st_multimask;

typedef struct st_click_options {
    size_t struct_size;     /* ST_CLICK_OPTIONS_INIT */
    st_multimask multimask; /* AUTO: three candidates for one lone point, else one, chosen by stability */
    int32_t hole_area;      /* fill holes of at most this many cells of the mask grid; -1 = 256 at the published size, scaled; 0 = off */
    uint32_t n_masks;       /* make full-size masks of the best N candidates; default all */
    int hf;                 /* 1: tokens as Hugging Face's port orders them, no hole filling, no clamp: for comparison */
} st_click_options;
#define ST_CLICK_OPTIONS_INIT { sizeof(st_click_options), ST_MULTIMASK_AUTO, -1, UINT32_MAX, 0 }

typedef struct st_candidate {
    float iou;       /* the model's own estimate */
    uint32_t index;  /* which of the model's mask tokens: 0 = the single mask, 1.. = the candidates */
    float *logits;   /* [mask_size*mask_size], row-major, clamped to +-32: to be passed back as st_click_input.logits */
    st_rle mask;     /* full size; all zero beyond n_masks */
    uint64_t area;
} st_candidate;

typedef struct st_click_result {
    float object_score;       /* logit: is there an object at all */
    uint32_t width, height, mask_size;
    st_candidate *candidates; /* [n_candidates] by falling predicted IoU, ties by index */
    size_t n_candidates;
    int multimask;            /* what was done: 1 = all candidates; 0 = one, chosen by stability */
    uint32_t hole_area;       /* holes of at most so many cells were filled; 0 = none */
} st_click_result;

/* One call of the interactive head: the reference's `predict`. The picture must have been encoded with for_clicks. On failure *out is NULL. */
ST_API ST_MUSTCHECK st_status st_click(st_click_result **out, st_session *session, const st_picture *picture, const st_click_input *prompt,
                                       const st_click_options *opts, st_error *err);
ST_API void st_click_result_free(st_click_result *result); /* NULL is fine */
/* A mask picture of 0..255, [height] rows of `stride` bytes, to prompt logits [mask_size*mask_size]: antialiased to the mask grid, then 20 m - 10 for m in [0, 1]. */
ST_API ST_MUSTCHECK st_status st_click_mask_logits(float *out, const st_model *model, const uint8_t *mask, uint32_t width, uint32_t height, size_t stride,
                                                   st_error *err);

/* One object being clicked at: a line of verbs on top of st_click. Each verb runs the head with everything said so far and, from the second call on, the logits of the chosen candidate of
 * the call before, as the reference's refinement does. Keeps the picture and borrows the session, which must outlive it. One thread at a time. */
typedef struct st_object st_object;
ST_API ST_MUSTCHECK st_status st_object_new(st_object **out, st_session *session, st_picture *picture, const st_click_options *opts, st_error *err);
ST_API void st_object_free(st_object *object); /* NULL is fine */
/* Verbs. On failure nothing has changed. A region or a mask replaces the one before. At most ST_MAX_POINTS verbs. */
ST_API ST_MUSTCHECK st_status st_object_point(st_object *object, const st_point *point, st_error *err);
ST_API ST_MUSTCHECK st_status st_object_region(st_object *object, const st_region *region, st_error *err);
ST_API ST_MUSTCHECK st_status st_object_mask(st_object *object, const float *logits, st_error *err); /* [mask_size*mask_size] */
/* Goes on from candidate i of the present result (0 = the best, which is also the default). */
ST_API ST_MUSTCHECK st_status st_object_choose(st_object *object, size_t i, st_error *err);
/* Takes the last verb back; the state is then bit for bit what it was before it. ST_ERR_INVALID_ARG when there is none. */
ST_API ST_MUSTCHECK st_status st_object_undo(st_object *object, st_error *err);
ST_API void st_object_reset(st_object *object); /* forgets all verbs; the picture stays encoded */
/* The present result, NULL before the first verb. Belongs to the object, valid until its next verb. */
ST_API const st_click_result *st_object_result(const st_object *object);
ST_API size_t st_object_n_verbs(const st_object *object);
ST_API size_t st_object_chosen(const st_object *object); /* the candidate that the next verb goes on from */

/* ---------------------------------------------------------------- everything: masks without a prompt */

/* A grid of clicks over the picture, each with three candidates; those that pass the cuts stay, duplicates go. Names,
 * meaning and defaults are those of SAM 2's automatic mask generator and of Hugging Face's mask-generation pipeline
 * (docs/everything.md). */
typedef struct st_everything_options {
    size_t struct_size;           /* ST_EVERYTHING_OPTIONS_INIT */
    uint32_t points_per_side;     /* n x n clicks, at most 256 */
    uint32_t points_per_batch;    /* progress is told after so many; results do not depend on it */
    float pred_iou_thresh;        /* keep a predicted IoU above this; 0 = all */
    float stability_score_thresh; /* keep a stability above this; 0 = all */
    float stability_score_offset; /* stability = area of logit > offset / area of logit > -offset */
    float box_nms_thresh;         /* of two masks of one crop whose boxes have a larger IoU, the worse one goes */
    uint32_t crop_n_layers;       /* layer i looks again at 4^i crops, each an encode; at most ST_MAX_CROP_LAYERS */
    float crop_nms_thresh;        /* of two masks of different crops, the one of the larger crop goes */
    double crop_overlap_ratio;    /* of the shorter side, in the first layer; less in the next ones */
    uint32_t crop_n_points_downscale_factor; /* layer i: points_per_side / factor^i */
    uint32_t min_mask_region_area; /* fill holes and drop islands of fewer pixels, then duplicates again; 0 = off */
    float overlap_thresh;  /* drop a mask that shares more of the smaller one with a better one: intersection / smaller
                            * area; 0 = off */
    uint32_t max_masks;    /* keep the best N; 0 = all */
    size_t max_mask_bytes; /* refuse the run when the runs of masks under consideration take more memory */
    st_resize resize;      /* of the crops */
    int hf; /* 1: for comparison with Hugging Face's pipeline: its features, no hole filling, duplicates dropped once
             * for all crops, by crop_nms_thresh */
} st_everything_options;
#define ST_EVERYTHING_OPTIONS_INIT                                                                                     \
    { sizeof(st_everything_options), 32, 64, 0.88f, 0.95f, 1.0f, 0.7f, 0, 0.7f, 512.0 / 1500.0, 1, 0, 0.0f, 0,         \
      (size_t)1 << 30, ST_RESIZE_GPU, 0 }
#define ST_MAX_CROP_LAYERS 4

typedef struct st_everything_mask {
    float iou; /* the model's own estimate */
    float stability;
    float x, y;     /* the click, in pixels of the picture */
    st_box_px box;  /* tight */
    st_box_px crop; /* what the model looked at */
    uint64_t area;
    st_rle mask; /* of the whole picture */
} st_everything_mask;

typedef struct st_everything_result {
    uint32_t width, height;    /* of the picture */
    uint32_t warnings;         /* ST_WARN_NOTHING_FOUND, ST_WARN_DETECTION_CAP */
    size_t n_points;           /* clicks made */
    size_t n_passed;           /* candidates that passed the cuts, before duplicates were dropped */
    st_everything_mask *masks; /* [n_masks] by falling predicted IoU; none is empty */
    size_t n_masks;
} st_everything_result;

/* The picture must have been encoded with for_clicks. `image`, its pixels, is needed for crops only, else NULL. The
 * session's progress is told "points". Memory: one click's, and the runs of the masks that passed the cuts. On failure
 * *out is NULL. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_everything(st_everything_result **out, st_session *session, const st_picture *picture,
                                            const st_image *image, const st_everything_options *opts, st_error *err);
ST_API void st_everything_result_free(st_everything_result *result); /* NULL is fine */

/* The token ids of a phrase: start, tokens, end. `ids` has room for `capacity`; *n_ids is how many there are; *cut is 1 when the text was
 * longer than the model reads. */
ST_API ST_MUSTCHECK st_status st_tokenize(const char *phrase, uint32_t *ids, size_t capacity, size_t *n_ids, int *cut,
                                          st_error *err);

/* ---------------------------------------------------------------- int8 */

/* What became of one published matrix. Valid during the callback only. */
typedef struct st_quantize_line {
    const char *layer; /* canonical name: "vit.blocks.0.attn.q.weight"; a published tensor may hold several layers, which
                        * become int8 together or not at all */
    const char *kept;  /* NULL: int8 is good enough; else why the layer stays as it is */
    double error;      /* measured: RMS of the layer's output error / RMS of its output, on sampled inputs; -1: none met */
    double smoothing;  /* how much of the inputs' range moved into the weights: 0 (none) .. 1 */
    size_t done, total;
} st_quantize_line;
typedef void st_quantize_fn(void *user, const st_quantize_line *line);

typedef struct st_quantize_options {
    size_t struct_size;          /* ST_QUANTIZE_OPTIONS_INIT */
    const st_image *images;      /* [n_images] pictures to measure on; none: a built-in pattern, which is a poor stand-in */
    size_t n_images;
    const char *const *phrases;  /* [n_phrases] asked of each; none: a few everyday words */
    size_t n_phrases;
    float max_error;             /* a layer with a larger error stays as it is */
    int smooth;                  /* 0: never move ranges into weights */
    st_quantize_fn *line;        /* or NULL */
    void *line_user;
} st_quantize_options;
#define ST_QUANTIZE_OPTIONS_INIT { sizeof(st_quantize_options), NULL, 0, NULL, 0, 0.05f, 1, NULL, NULL }

/* Writes the session's model again with int8 weights in ViT, text encoder, fusion encoder and decoder (docs/int8.md), in
 * the layout that it has. The model runs on the pictures first, to see what each layer is given: per layer the smoothing
 * that loses least is kept. The file is opened like any checkpoint, and appears complete or not at all. A model that is
 * quantised already is refused. opts may be NULL. */
ST_API ST_MUSTCHECK st_status st_model_quantize(st_session *session, const char *path, const st_quantize_options *opts,
                                                st_error *err);

/* ---------------------------------------------------------------- self-check */

/* One line of st_model_check. Valid during the callback only. */
typedef struct st_check_line {
    const char *stage; /* "vit.block.3", "presence", ... */
    const char *what;  /* "finite", "max error", "spread", ... */
    double value, bound;
    int passed;
} st_check_line;
typedef void st_check_fn(void *user, const st_check_line *line);
/* Runs every stage on a built-in input: against stored references when the model is the bundled demo model, else for finite values
 * and plausible spread. *n_failed counts lines that did not pass. */
ST_API ST_MUSTCHECK st_status st_model_check(st_session *session, st_check_fn *line, void *user, size_t *n_failed,
                                             st_error *err);

#ifdef __cplusplus
}
#endif
#endif
