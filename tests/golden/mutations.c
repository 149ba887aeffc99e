/* mutations.c: the list. Each is a mistake that is easy to make when porting this model. */
#include "golden/mutations.h"

#define SWAP(type, a, b)   \
    do {                   \
        type t_ = (a);     \
        (a) = (b);         \
        (b) = t_;          \
    } while (0)

static void vit_q_k(st_model *m) { SWAP(st_linear, m->vision.blocks[1].q, m->vision.blocks[1].k); }
static void vit_norms(st_model *m) { SWAP(st_norm, m->vision.blocks[0].norm1, m->vision.blocks[0].norm2); }
static void vit_eps(st_model *m)
{
    for (size_t i = 0; i < m->dims->vit_depth; i++) m->vision.blocks[i].norm1.eps = 1e-3f;
}
static void rope_scale(st_model *m)
{
    st_vit_rope_table(m->vision.rope_global, m->dims->grid, m->dims->vit_width / m->dims->vit_heads, m->dims->rope_theta, 1.0f);
}
static void rope_x_y(st_model *m)
{
    const size_t n = m->dims->grid, head = m->dims->vit_width / m->dims->vit_heads;
    for (size_t t = 0; t < n * n; t++)
        for (size_t i = 0; i < head / 2; i++) SWAP(float, m->vision.rope_global[t * head + i], m->vision.rope_global[t * head + head / 2 + i]);
}
static void class_row(st_model *m) { m->vision.pos += m->dims->vit_width; ((st_dims *)(uintptr_t)m->dims)->pos_side -= 1; }
static void class_row_undo(st_model *m) { ((st_dims *)(uintptr_t)m->dims)->pos_side += 1; }
/* A window that divides the grid: no padding any more. Smaller than the model's, whose angle table it reads. */
static void window_pad(st_model *m) { ((st_dims *)(uintptr_t)m->dims)->window = 2; }
static void neck_cells(st_model *m)
{
    const size_t n = m->vision.neck.up[1][0].n_in * m->vision.neck.up[1][0].n_out;
    for (size_t i = 0; i < n; i++) SWAP(float, m->vision.neck.up[1][0].cells[n + i], m->vision.neck.up[1][0].cells[2 * n + i]);
}
static void conv_taps(st_model *m)
{
    const size_t n = m->detect.mask.conv[0].n_in * m->detect.mask.conv[0].n_out;
    for (size_t i = 0; i < n; i++) SWAP(float, m->detect.mask.conv[0].filters[n + i], m->detect.mask.conv[0].filters[4 * n + i]);
}
static void text_ffn(st_model *m) { SWAP(const float *, m->text.blocks[0].fc1.weight, m->text.blocks[1].fc1.weight); }
static void text_eps(st_model *m) { m->text.ln_final.eps = 1e-2f; }
static void geo_norms(st_model *m) { SWAP(st_norm, m->detect.geo.norm, m->detect.geo.img_norm); }
static void labels(st_model *m) { m->detect.geo.label_embed = m->detect.geo.cls; }
static void fusion_attention(st_model *m) { SWAP(st_mha, m->detect.fusion[0].self, m->detect.fusion[0].prompt); }
static void fusion_eps(st_model *m) { m->detect.fusion[1].norm1.eps = 1e-3f; }
static void no_positions(st_model *m)
{
    for (size_t i = 0; i < (size_t)m->dims->grid * m->dims->grid * m->dims->width; i++) m->detect.pos[i] = 0.0f;
}
static void dec_norms(st_model *m) { SWAP(st_norm, m->detect.dec.layers[0].norm_self, m->detect.dec.layers[0].norm_image); }
static void dec_heads(st_model *m) { m->detect.dec.layers[1].image.heads /= 2; }
static void rpb_axes(st_model *m)
{
    for (size_t i = 0; i < 2; i++) SWAP(st_linear, m->detect.dec.rpb_x[i], m->detect.dec.rpb_y[i]);
}
static void presence_norm(st_model *m) { SWAP(st_norm, m->detect.dec.presence_norm, m->detect.dec.norm); }
static void score_norm(st_model *m) { m->detect.score.norm.eps = 1e-2f; }
static void group_norms(st_model *m) { SWAP(st_norm, m->detect.mask.gn[0], m->detect.mask.gn[1]); }
static void mask_embed(st_model *m) { SWAP(st_linear, m->detect.mask.embed[0], m->detect.mask.embed[1]); }
static void box_transposed(st_geo_box *b)
{
    SWAP(float, b->cx, b->cy);
    SWAP(float, b->w, b->h);
}
static void box_size_order(st_geo_box *b) { SWAP(float, b->w, b->h); }

const mutation mutations[] = {
    {.name = "ViT: q and k swapped in one block", .model = vit_q_k},
    {.name = "ViT: norm1 and norm2 swapped", .model = vit_norms},
    {.name = "ViT: LayerNorm eps 1e-3", .model = vit_eps},
    {.name = "ViT: RoPE scale 1 in global blocks", .model = rope_scale},
    {.name = "ViT: RoPE x and y swapped", .model = rope_x_y},
    {.name = "ViT: position table read one row off", .model = class_row, .undo = class_row_undo},
    {.name = "ViT: window padding dropped", .model = window_pad},
    {.name = "neck: transposed cells of the 2x2 up-convolution", .model = neck_cells},
    {.name = "text: feed-forward weights of two blocks swapped", .model = text_ffn},
    {.name = "text: last LayerNorm eps 1e-2", .model = text_eps},
    {.name = "exemplars: token and picture norms swapped", .model = geo_norms},
    {.name = "exemplars: label embedding replaced", .model = labels},
    {.name = "exemplars: box transposed", .box = box_transposed},
    {.name = "exemplars: width and height swapped", .box = box_size_order},
    {.name = "prompt: CLS dropped", .drop_cls = true},
    {.name = "fusion: self and prompt attention swapped", .model = fusion_attention},
    {.name = "fusion: LayerNorm eps 1e-3", .model = fusion_eps},
    {.name = "detector: no positions", .model = no_positions},
    {.name = "decoder: norms of self and image attention swapped", .model = dec_norms},
    {.name = "decoder: wrong number of heads in one attention", .model = dec_heads},
    {.name = "decoder: box bias axes swapped", .model = rpb_axes},
    {.name = "decoder: presence norm and query norm swapped", .model = presence_norm},
    {.name = "scores: prompt norm eps 1e-2", .model = score_norm},
    {.name = "mask head: 3x3 taps transposed", .model = conv_taps},
    {.name = "mask head: group norms swapped", .model = group_norms},
    {.name = "mask head: layers of the mask embedding swapped", .model = mask_embed},
    {.name = NULL},
};
