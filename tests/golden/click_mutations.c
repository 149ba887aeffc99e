/* click_mutations.c: the list. Each is a mistake that is easy to make when porting this head. */
#include "golden/click_mutations.h"

#include <math.h>

#define SWAP(type, a, b)   \
    do {                   \
        type t_ = (a);     \
        (a) = (b);         \
        (b) = t_;          \
    } while (0)

/* ---- the prompt's weights ---- */
static void labels(st_click_head *c) { SWAP(const float *, c->prompt.kinds[0], c->prompt.kinds[1]); }
static void corners(st_click_head *c) { SWAP(const float *, c->prompt.kinds[2], c->prompt.kinds[3]); }
static void padding(st_click_head *c) { c->prompt.not_a_point = c->prompt.kinds[0]; }
static void no_mask(st_click_head *c) { c->prompt.no_mask = c->prompt.not_a_point; }
static void fourier(st_click_head *c) { SWAP(const float *, c->prompt.point_fourier, c->prompt.grid_fourier); }
static void mask_eps(st_click_head *c) { c->prompt.mask_norm[0].eps = 1e-2f; }
static void mask_norm(st_click_head *c)
{
    SWAP(const float *, c->prompt.mask_norm[1].gamma, c->prompt.mask_norm[1].beta);
}

/* ---- the two-way transformer ---- */
static void grid_transposed(st_click_head *c)
{
    const size_t n = c->dims->grid, D = c->dims->width;
    float *code = c->grid_code;
    for (size_t y = 0; y < n; y++)
        for (size_t x = 0; x < y; x++)
            for (size_t i = 0; i < D; i++) SWAP(float, code[(y * n + x) * D + i], code[(x * n + y) * D + i]);
}
static void no_grid_code(st_click_head *c)
{
    for (size_t i = 0; i < (size_t)c->dims->grid * c->dims->grid * c->dims->width; i++) c->grid_code[i] = 0.0f;
}
static void self_layers(st_click_head *c) { SWAP(st_mha, c->layers[0].self, c->layers[1].self); }
static void directions(st_click_head *c) { SWAP(st_mha, c->layers[0].token_to_image, c->layers[0].image_to_token); }
static void q_k(st_click_head *c) { SWAP(st_linear, c->layers[1].token_to_image.q, c->layers[1].token_to_image.k); }
static void heads(st_click_head *c) { c->layers[1].image_to_token.heads /= 2; }
static void norms(st_click_head *c) { SWAP(st_norm, c->layers[0].norm1, c->layers[0].norm2); }
static void image_norms(st_click_head *c) { SWAP(st_norm, c->layers[0].norm4, c->layers[1].norm4); }
static void norm_eps(st_click_head *c) { c->layers[1].norm3.eps = 1e-3f; }
static void ffn(st_click_head *c) { SWAP(const float *, c->layers[0].ffn1.weight, c->layers[1].ffn1.weight); }
static void final_norm(st_click_head *c) { c->final_norm = c->layers[1].norm2; }
static void tokens(st_click_head *c) { SWAP(const float *, c->score_token, c->iou_token); }

/* ---- the masks ---- */
static void no_memory(st_click_head *c) { c->no_memory = c->prompt.no_mask; }
static void hyper(st_click_head *c)
{
    for (size_t i = 0; i < 3; i++) SWAP(st_linear, c->hyper[1][i], c->hyper[2][i]);
}
static void score(st_click_head *c) { SWAP(st_linear, c->score[1], c->hyper[0][1]); }
static void iou_bias(st_click_head *c) { c->iou[2].bias = c->score_token; }
static void up_eps(st_click_head *c) { c->up_norm.eps = 1e-2f; }
static void cells(st_conv_up *up)
{
    const size_t n = up->n_in * up->n_out;
    for (size_t i = 0; i < n; i++) SWAP(float, up->cells[n + i], up->cells[2 * n + i]);
}
static void up_cells(st_click_head *c) { cells(&c->up0); }
static void neck_cells(st_click_head *c) { cells(&c->neck.up[1][0]); }
static void neck_proj(st_click_head *c) { c->neck.proj1[2].bias = c->iou_token; }

/* ---- the picture ---- */
static void skip_rows(st_picture *p)
{
    const size_t n = p->model->dims->grid, rows = 4 * n * n, width = p->model->dims->width / 4;
    float *skip = p->click.skip1;
    for (size_t r = 0; r < rows / 2; r++)
        for (size_t i = 0; i < width; i++) SWAP(float, skip[r * width + i], skip[(rows - 1 - r) * width + i]);
}
static void no_skip(st_picture *p)
{
    const size_t n = p->model->dims->grid;
    for (size_t i = 0; i < 2 * n * n * p->model->dims->width; i++) p->click.skip0[i] = 0.0f;
}

/* ---- the question ---- */
static void no_half(click_question *q, const st_picture *p)
{
    const float side = (float)p->model->dims->image_size;
    const float dx = 0.5f * (float)p->width / side, dy = 0.5f * (float)p->height / side;
    for (size_t i = 0; i < q->n_points; i++) {
        q->points[i].x = fmaxf(q->points[i].x - dx, 0.0f);
        q->points[i].y = fmaxf(q->points[i].y - dy, 0.0f);
    }
}
static void x_y(click_question *q, const st_picture *p)
{
    const float W = (float)p->width, H = (float)p->height;
    for (size_t i = 0; i < q->n_points; i++) {
        const float x = q->points[i].x;
        q->points[i].x = fminf(q->points[i].y / H * W, W);
        q->points[i].y = fminf(x / W * H, H);
    }
}
static void labels_flipped(click_question *q, const st_picture *p)
{
    (void)p;
    for (size_t i = 0; i < q->n_points; i++) q->points[i].positive = !q->points[i].positive;
}
static void last_first(click_question *q, const st_picture *p)
{
    (void)p;
    for (size_t i = 0; i < q->n_points / 2; i++) SWAP(st_point, q->points[i], q->points[q->n_points - 1 - i]);
}
static void mask_dropped(click_question *q, const st_picture *p)
{
    (void)p;
    if (q->n_points || q->has_region) q->mask = NULL;
}
static void mask_transposed(click_question *q, const st_picture *p)
{
    (void)p;
    for (size_t y = 0; q->mask && y < q->side; y++)
        for (size_t x = 0; x < y; x++) SWAP(float, q->mask[y * q->side + x], q->mask[x * q->side + y]);
}
static void other_layout(click_question *q, const st_picture *p)
{
    (void)p;
    q->hf = !q->hf;
}
static void holes_off(click_question *q, const st_picture *p)
{
    (void)p;
    q->hole_area = 0;
}
static void other_multimask(click_question *q, const st_picture *p)
{
    (void)p;
    q->multimask = !q->multimask;
}

const click_mutation click_mutations[] = {
    {.name = "points: embeddings of the two labels swapped", .head = labels},
    {.name = "points: labels flipped", .question = labels_flipped},
    {.name = "points: half a pixel not added", .question = no_half},
    {.name = "points: x and y swapped", .question = x_y},
    {.name = "points: in reverse order", .question = last_first},
    {.name = "points: padding embedded as a background click", .head = padding},
    {.name = "points and grid: Fourier matrices swapped", .head = fourier, .only = CLICK_HF},
    {.name = "region: corners swapped", .head = corners},
    {.name = "mask: no-mask embedding replaced", .head = no_mask},
    {.name = "mask: logits dropped", .question = mask_dropped},
    {.name = "mask: rows and columns swapped", .question = mask_transposed},
    {.name = "mask: LayerNorm2d eps 1e-2", .head = mask_eps},
    {.name = "mask: norm's weight and bias swapped", .head = mask_norm},
    {.name = "rules of the other layout", .question = other_layout},
    {.name = "no-memory embedding replaced", .head = no_memory, .only = CLICK_META},
    {.name = "grid code transposed", .head = grid_transposed},
    {.name = "grid code dropped", .head = no_grid_code},
    {.name = "two-way: self-attention of the two layers swapped", .head = self_layers},
    {.name = "two-way: cross-attention in the wrong direction", .head = directions},
    {.name = "two-way: q and k swapped", .head = q_k},
    {.name = "two-way: wrong number of heads", .head = heads},
    {.name = "two-way: norm1 and norm2 swapped", .head = norms},
    {.name = "two-way: norm4 of the two layers swapped", .head = image_norms},
    {.name = "two-way: LayerNorm eps 1e-3", .head = norm_eps},
    {.name = "two-way: feed-forward weights of the two layers swapped", .head = ffn},
    {.name = "two-way: last norm replaced", .head = final_norm},
    {.name = "tokens: score and IoU token swapped", .head = tokens},
    {.name = "masks: hypernetworks swapped", .head = hyper},
    {.name = "masks: LayerNorm2d eps 1e-2", .head = up_eps},
    {.name = "masks: transposed cells of an up-convolution", .head = up_cells},
    {.name = "masks: skip read backwards", .picture = skip_rows},
    {.name = "masks: skip dropped", .picture = no_skip},
    {.name = "masks: holes not filled", .question = holes_off, .only = CLICK_META},
    {.name = "score: a layer of another head", .head = score},
    {.name = "IoU: another bias", .head = iou_bias},
    {.name = "neck: transposed cells of an up-convolution", .head = neck_cells},
    {.name = "neck: another bias", .head = neck_proj},
    {.name = "choice: one candidate for three, three for one", .question = other_multimask},
    {.name = NULL},
};
