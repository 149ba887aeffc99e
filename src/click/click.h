/* click.h: interactive segmentation: points, a region and a previous mask → ranked candidates for one object.
 * Mirrors `sam3/sam/prompt_encoder.py`, `sam3/sam/mask_decoder.py`, `sam3/sam/transformer.py` and `sam3/model/sam1_task_predictor.py`.
 *
 * n = grid side, N = n*n tokens, D = width, M = 4n = side of the mask grid. Maps are token-major.
 */
#ifndef ST_CLICK_H
#define ST_CLICK_H

#include "vision/vision.h"

enum { ST_CLICK_MAX_LAYERS = 8, ST_CLICK_MAX_MASKS = 8, ST_CLICK_POINT_KINDS = 4 };

typedef struct st_click_layer {
    st_mha self, token_to_image, image_to_token;
    st_norm norm1, norm2, norm3, norm4;
    st_linear ffn1, ffn2;
} st_click_layer;

/* Prompt encoder. */
typedef struct st_click_prompt_weights {
    const float *point_fourier, *grid_fourier; /* [2, D/2] */
    const float *kinds[ST_CLICK_POINT_KINDS];  /* [D]: background, foreground, region's first corner, second corner */
    const float *not_a_point, *no_mask;        /* [D] */
    st_linear mask_in[3];                      /* 2x2 stride 2: 1 -> m/4 -> m, 1x1: m -> D; as matrices over the cells they cover */
    st_norm mask_norm[2];
} st_click_prompt_weights;

typedef struct st_click_head {
    const st_dims *dims;       /* borrowed */
    bool bound;
    st_neck neck;              /* neck B */
    const float *no_memory;    /* [D] */
    float *grid_code;          /* [N, D] position code of the tokens */
    st_click_prompt_weights prompt;
    st_click_layer layers[ST_CLICK_MAX_LAYERS];
    st_mha final;
    st_norm final_norm, up_norm;
    const float *iou_token, *mask_tokens, *score_token; /* [D], [masks, D], [D] */
    st_conv_up up0, up1;       /* D -> D/4 -> D/8 */
    st_linear skip0, skip1;    /* 1x1: D -> D/8, D -> D/4 */
    st_linear hyper[ST_CLICK_MAX_MASKS][3], iou[3], score[3];
} st_click_head;

/* What clicks need of one picture. */
typedef struct st_click_features {
    float *tokens; /* [N, D] */
    float *skip1;  /* [4N, D/4] */
    float *skip0;  /* [16N, D/8] */
} st_click_features;

/* One prompt point, in fractions of the model's input. */
typedef struct st_click_point {
    float u, v;
    int kind; /* index into `kinds`, or ST_CLICK_NOT_A_POINT */
} st_click_point;
enum { ST_CLICK_NOT_A_POINT = -1 };

typedef struct st_click_output {
    float *masks;  /* [click_mask_tokens, M*M] logits */
    float wanted;  /* asked, not answered: masks are left alone when no token but the first has an IoU above this; 0 = always made */
    float iou[ST_CLICK_MAX_MASKS];
    float score;   /* object score logit */
} st_click_output;

ST_MUSTCHECK st_status st_click_init(st_click_head *c, const st_dims *dims, st_error *err);
/* weights NULL: sizes only. */
ST_MUSTCHECK st_status st_click_bind(st_click_head *c, st_weights *weights, st_error *err);
void st_click_free(st_click_head *c);

/* Trunk output x [N, V] -> features. */
void st_click_features_run(const st_run *run, const st_click_head *c, const float *x, const st_click_features *out);
/* points [n_points] in the order the tokens shall have; mask [M*M] logits or NULL. no_memory: add the "first frame without memory" embedding, as Meta does; Hugging Face's
 * port (transformers 5.24, get_image_embeddings) adds it to a neck level that it then drops, so it has no effect there. */
void st_click_run(const st_run *run, const st_click_head *c, const st_click_features *f, const st_click_point *points, size_t n_points, const float *mask,
                  bool no_memory, st_click_output *out);

/* The pieces, for the forward pass above. */
void st_click_embed_points(const st_run *run, const st_click_head *c, const st_click_point *points, size_t n_points, float *tokens);
/* Fills grid_code once the Fourier matrix is bound. */
void st_click_grid_code(st_click_head *c);
void st_click_embed_mask(const st_run *run, const st_click_head *c, const float *mask, float *dense);
/* Two-way transformer: q [T, D] tokens, k [N, D] picture tokens, both in place. */
void st_click_two_way(const st_run *run, const st_click_head *c, float *q, size_t n_tokens, float *k);

/* Every 8-connected part of the outside (logit <= 0) of at most max_area cells gets logit +10. `scratch` has 2*side*side entries. */
void st_click_fill_holes(float *logits, size_t side, size_t max_area, uint32_t *scratch);
/* #(logit > offset) / #(logit > -offset); 1 when nothing is. */
float st_click_stability(const float *logits, size_t n, float offset);

#endif
