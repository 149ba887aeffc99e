/* tensor.h: the operations the model is made of. fp32, row-major; maps are token-major, [height*width][channels] (NHWC).
 *
 * Every operation cuts its work into items whose size depends on the shapes alone (exact int8 products: on the number of threads too), runs them on the run's pool, and returns at once when the run is
 * idle (planning, cancelled). Outputs must not overlap inputs unless said so. `ld` is the distance of rows in floats.
 */
#ifndef ST_TENSOR_H
#define ST_TENSOR_H

#include "tensor/run.h"
#include "weights/layers.h"

/* Whether attention around this layer runs in int8: it is quantised; or the run only plans, for a model that has such layers. */
static inline bool st_run_int8(const st_run *run, const st_linear *l) { return l->int8.values || (run->int8 && st_run_planning(run)); }

typedef enum st_act { ST_ACT_NONE = 0, ST_ACT_RELU, ST_ACT_GELU } st_act;

/* y[rows, n_out] = act(x · Wᵀ + b); with `accumulate`, y += x · Wᵀ + b instead (act must be none): a residual add. */
void st_linear_run(const st_run *run, const st_linear *l, const float *x, size_t ldx, size_t rows, float *y, size_t ldy, st_act act,
                   bool accumulate);
/* y[0], y[1], y[2] [rows, n_out] = x · Wᵀ + b of a self-attention's q, k and v, which see the same dense x. */
void st_qkv_run(const st_run *run, const st_linear *q, const st_linear *k, const st_linear *v, const float *x, size_t rows, float *const y[3]);
/* A chain of linear layers with ReLU between, none after the last; x [rows, n_in] -> y [rows, n_out], both dense. */
void st_mlp_run(const st_run *run, const st_linear *layers, size_t n_layers, const float *x, size_t rows, float *y);
/* y += fc2(act(fc1(x))): the feed-forward half of a transformer block. x, y [rows, width] dense. Hidden rows are made a chunk at a time. */
void st_feed_forward(const st_run *run, const st_linear *fc1, const st_linear *fc2, st_act act, const float *x, size_t rows, float *y);

/* y[r] = LN(x[r]) for dense [rows, n]; y may be x. */
void st_norm_run(const st_run *run, const st_norm *norm, const float *x, size_t rows, float *y);
/* y = a + b over n floats; y may be a or b. */
void st_add_run(const st_run *run, float *y, const float *a, const float *b, size_t n);

/* softmax(scale · q kᵀ + bias) v, per head; scale = 1/sqrt(head width). Scores are never held whole: queries go in blocks, keys are streamed. */
typedef struct st_attention {
    const float *q, *k, *v; /* rows of ld_q, ld_k, ld_v floats; head h owns columns h*d .. h*d+d-1 */
    size_t ld_q, ld_k, ld_v;
    float *out; /* [n_seq*n_q] rows of ld_out floats */
    size_t ld_out;
    size_t heads, head_width; /* d */
    size_t n_seq;             /* independent sequences, one after the other in rows (windows); 1 otherwise */
    size_t n_q, n_k;          /* tokens of each sequence */
    bool causal;              /* query i sees keys 0..i */
    /* Box relative position bias, separable: score(query, key at row r, column c) += rpb_y[h][query][r] + rpb_x[h][query][c]; NULL = none.
     * Both are [heads][n_q][grid]; n_k = grid*grid. */
    const float *rpb_x, *rpb_y;
    size_t grid;
    bool int8; /* both products in int8 where that form exists (attention_int8.h): the trunk of a quantised model */
} st_attention;
void st_attention_run(const st_run *run, const st_attention *a);

/* Whole multi-head attention: projections, attention, output projection added to y (y += MHA(...)). All maps dense, width n_in of the layer.
 * q_in [n_q, D], k_in and v_in [n_k, D]. `extra` (may be NULL) supplies causal and rpb fields; its pointers q, k, v, out are ignored. */
void st_mha_run(const st_run *run, const st_mha *mha, const float *q_in, size_t n_q, const float *k_in, const float *v_in, size_t n_k, float *y,
                const st_attention *extra);

/* Rotates each head's adjacent pairs: x [rows] of ld floats, `table` [rows_of_table][d/2][2] (cos, sin), row r uses table row r % table_rows. */
void st_rope_run(const st_run *run, float *x, size_t ld, size_t rows, size_t heads, size_t head_width, const float *table, size_t table_rows);

/* What a 3x3 convolution reads: x, or up2(x) + skip with up2 = nearest neighbour (the mask head), made a strip at a time. */
typedef struct st_conv_input {
    const float *x;    /* [h*w, n_in], or [h/2*w/2, n_in] when skip is given */
    const float *skip; /* [h*w, n_in] or NULL */
    size_t height, width;
} st_conv_input;
/* y [h*w, n_out] = conv(input) + bias, zero padding. */
void st_conv3x3_run(const st_run *run, const st_conv3x3 *conv, const st_conv_input *in, float *y);
/* y [2h*2w, n_out] = act(convT(x) + bias), x [h*w, n_in]. */
void st_conv_up_run(const st_run *run, const st_conv_up *conv, const float *x, size_t height, size_t width, float *y, st_act act);
/* GroupNorm over n_groups of channels (statistics over all rows, in double), then ReLU; in place on [rows, norm->n]. */
void st_group_norm_relu_run(const st_run *run, const st_norm *norm, size_t n_groups, float *x, size_t rows);

/* ---- positions and samples (plain functions: small, serial) ---- */

/* Sine code of one value: out[j] = sin(v / t_j) for even j, cos for odd j, t_j = 10000^(2 floor(j/2) / n). n even. */
void st_sine_code(float *out, size_t n, float v);
/* Sine positions of a grid: [side*side, width], first half rows (y), second half columns (x). `sam3/model/position_encoding.py` */
void st_sine_grid(float *out, size_t side, size_t width);
/* RoIAlign of one box (x0,y0,x1,y1 in cells): out [r*r, channels], map [side*side, channels]. torchvision's defaults: aligned=False, adaptive sampling. */
void st_roi_align(float *out, size_t r, const float *map, size_t side, size_t channels, const float box[4]);

float st_sigmoid(float x);
/* ln(max(x, 1e-3) / max(1 - x, 1e-3)) after clamping x to [0, 1]. `sam3/model/model_misc.py` */
float st_inverse_sigmoid(float x);

#endif
