/* engine.h: the three public objects from the inside, and the forward passes that tests reach with a probe. */
#ifndef ST_ENGINE_H
#define ST_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/log.h"
#include "click/click.h"
#include "detect/detect.h"
#include "text/bpe.h"
#include "text/encoder.h"
#include "vision/vision.h"

/* ---- model ---- */

/* What the plan says, computed once when the model is opened. Bytes. */
typedef struct st_plan {
    size_t encode_scratch;  /* arena of st_picture_encode */
    size_t segment_scratch; /* arena of st_segment with the longest phrase, no box, every query kept */
    size_t features;        /* of one st_picture */
    size_t click_features;  /* more of them, when encoded for clicks; 0 without an interactive head */
    size_t click_encode_scratch, click_scratch;
    size_t reordered;       /* convolution weights, tables */
} st_plan;

enum { ST_PLAN_LINES = 12 };

struct st_model {
    atomic_uint owners;      /* the caller, each session, each picture */
    st_log log;
    st_weights *weights;
    const st_dims *dims;     /* of the weights */
    char id[96];             /* of the weights, with the input size where it is not their own */
    char *path;
    const st_kernels *kernels;
    char products[64];        /* how matrix products are made, for people */
    st_pool *pool;
    st_bpe *bpe;
    pthread_mutex_t lock;    /* guards binding */
    st_vision vision;        /* bound when the first picture comes */
    st_text text;
    st_detect detect;
    st_click_head click;
    st_plan plan;
    st_weights_info weights_info;
    st_plan_line plan_lines[ST_PLAN_LINES];
    size_t n_plan_lines;
    uint64_t plan_peak;
    bool streaming;          /* to keep to a memory limit, weights of a block leave memory once it is computed */
};

void st_model_ref(st_model *model);
/* An st_let_go_fn; user is the model. */
void st_model_let_go(void *user, const char *prefix);
/* Binds the stage's weights on first use: this is where non-finite values are found. */
ST_MUSTCHECK st_status st_model_bind_vision(st_model *model, st_error *err);
ST_MUSTCHECK st_status st_model_bind_detect(st_model *model, st_error *err); /* text encoder and detector */
ST_MUSTCHECK st_status st_model_bind_click(st_model *model, st_error *err);

/* ---- plan ---- */
ST_MUSTCHECK st_status st_plan_compute(st_plan *plan, const st_model *model, st_error *err);
/* Scratch of one st_segment call. */
ST_MUSTCHECK st_status st_plan_segment(size_t *bytes, const st_model *model, size_t n_tokens, size_t n_boxes, st_error *err);
/* 10^9 operations of the products of an encode, and of a phrase of n_tokens on a picture that has answered one before. */
ST_MUSTCHECK st_status st_plan_work(double *encode_gflop, double *phrase_gflop, const st_model *model, size_t n_tokens, st_error *err);
/* Scratch of one st_click_head call. */
ST_MUSTCHECK st_status st_plan_click(size_t *bytes, const st_model *model, size_t n_tokens, st_error *err);
/* Chooses a plan whose peak is at most `limit` bytes (0: no limit) and writes it down. ST_ERR_LIMIT says what the smallest needs. */
ST_MUSTCHECK st_status st_plan_choose(st_model *model, uint64_t limit, st_error *err);

/* ---- picture ---- */

/* What prompts need of a picture and no prompt changes, made when the first one comes; whoever finds it made only reads. */
typedef struct st_shared {
    pthread_mutex_t lock;
    bool made;
    float *fusion; /* [N, D], st_fusion_share; points into the picture's block, as cls does */
    float *cls;    /* [D], the exemplar encoder's answer to no box */
} st_shared;

struct st_picture {
    atomic_uint owners;
    st_model *model;
    uint32_t width, height;  /* of the picture as shown */
    st_features features;    /* levels point into `block` */
    bool for_clicks;
    st_click_features click; /* the same; only with for_clicks */
    st_shared *shared;
    float *block;
    char *source;            /* or NULL */
};

/* Refuses a picture that another model encoded, or the same weights at another input size. `what` begins the sentence. */
ST_MUSTCHECK st_status st_picture_must_be_of(const st_picture *p, const st_model *m, const char *what, st_error *err);
/* Keeps a copy of the text; NULL is fine. Once per picture. */
ST_MUSTCHECK st_status st_picture_say_source(st_picture *p, const char *source, st_error *err);
enum { ST_MAX_SIDE = 1 << 24 };
/* Refuses sizes that no mask can have. `what` says whose they are. */
ST_MUSTCHECK st_status st_picture_check_size(const char *what, uint32_t width, uint32_t height, st_error *err);
/* A picture with room for its features. */
ST_MUSTCHECK st_status st_picture_new(st_picture **out, st_model *m, uint32_t width, uint32_t height, bool for_clicks, st_error *err);

/* ---- concept ---- */
struct st_concept {
    char *model_id, *phrase, *source;
    uint32_t input_size, width, n_tokens, picture_width, picture_height;
    st_exemplar *boxes; /* [n_boxes] pixels of the picture it was made on */
    size_t n_boxes;
    float *tokens;      /* [n_tokens, width]: n_boxes, then CLS */
};
/* Refuses a file or concept `what` that other weights or another input size made. */
ST_MUSTCHECK st_status st_model_must_match(const st_model *m, const char *what, const char *id, uint32_t input_size, st_error *err);
/* Pixel boxes of a prompt to the exemplar encoder's form, checked. */
ST_MUSTCHECK st_status st_read_boxes(st_geo_box *out, const st_prompt *prompt, const st_picture *p, st_error *err);

/* ---- clicks ---- */

/* A click at pixel (x, y) as the interactive head takes it. */
st_click_point st_place_click(const st_picture *p, float x, float y, int kind);
/* How large a hole the reference fills, in cells of a mask grid of this side. */
size_t st_click_hole_area(uint32_t side);

/* ---- session ---- */

/* Tokens of the phrases used last, so that a phrase is encoded once, whatever the number of pictures. */
enum { ST_PHRASE_SLOTS = 96 }; /* fewer than the phrases of `stencil bench picture`, which must not find one here */
typedef struct st_phrase {
    char *text;        /* NULL = empty slot */
    float *tokens;     /* [n_valid, D] */
    uint32_t n_ids;    /* start and end included */
    uint32_t n_valid;  /* without tokens whose id is 0 */
    bool cut;
    uint64_t last_use;
} st_phrase;

struct st_session {
    st_model *model;
    const st_cancel *cancel;
    st_progress_fn *progress;
    void *progress_user;
    st_arena arena;
    st_phrase phrases[ST_PHRASE_SLOTS];
    uint64_t n_uses;
    st_probe_fn *probe; /* tests and st_model_check */
    void *probe_user;
    st_watch_fn *watch; /* st_model_quantize */
    void *watch_user;
};

/* A run on the session's arena, which is grown to at least `scratch` bytes. */
ST_MUSTCHECK st_status st_session_run(st_session *s, st_run *run, size_t scratch, st_error *err);
/* The phrase's tokens, from the cache or computed; valid until the next call. */
ST_MUSTCHECK st_status st_session_phrase(st_session *s, const st_phrase **out, const char *text, st_error *err);
void st_session_forget_phrases(st_session *s);
/* What st_picture_encode does once it has normalised pixels: px [S*S, 3], or NULL to take them from image. For tests with golden inputs. */
ST_MUSTCHECK st_status st_picture_encode_px(st_picture **out, st_session *s, const float *px, uint32_t width, uint32_t height, bool for_clicks, st_error *err);

/* A picture for any model: discs of several colours on a gradient. [side, side, 3] */
void st_draw_pattern(uint8_t *rgb, int side);

/* ---- segment ---- */

/* One prompt's scratch results, in the session's arena. */
typedef struct st_detection {
    float *fused;     /* [N, D] */
    float *prompt;    /* [L, D] */
    size_t n_prompt;
    st_queries queries;
} st_detection;
/* Makes what the picture's prompts share, if nobody has. Another thread that wants it waits: it would compute the same. */
ST_MUSTCHECK st_status st_picture_share(const st_picture *p, const st_run *run, st_error *err);
/* Everything of a prompt but the masks; in planning mode only memory is counted. `tokens` [n_tokens, D]. `shared` is made, or NULL: computed on the spot. */
void st_detect_prompt(const st_run *run, const st_detect *d, const st_features *features, const st_shared *shared, const float *tokens, size_t n_tokens,
                      const st_geo_box *boxes, size_t n_boxes, bool with_geo, st_detection *out);
enum { ST_MASK_CHUNK = 32 }; /* masks whose low-resolution logits exist at one time */

#endif
