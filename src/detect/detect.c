/* detect.c: allocates and binds the detector's weights. */
#include "detect/detect.h"

#include "base/error.h"
#include "base/mem.h"

/* All detector LayerNorms and GroupNorms use PyTorch's default, whatever a config file lists. */
static const float EPS = 1e-5f;

st_status st_detect_init(st_detect *d, const st_dims *dims, st_error *err)
{
    *d = (st_detect){.dims = dims};
    const size_t n = dims->grid, D = dims->width;
    d->pos = st_realloc_array(NULL, n * n, D * sizeof *d->pos);
    d->geo.layers = st_calloc(dims->geo_layers, sizeof *d->geo.layers);
    d->fusion = st_calloc(dims->fusion_layers, sizeof *d->fusion);
    d->dec.layers = st_calloc(dims->dec_layers, sizeof *d->dec.layers);
    if (!d->pos || !d->geo.layers || !d->fusion || !d->dec.layers) {
        st_detect_free(d);
        return st_fail(err, ST_ERR_NOMEM, "out of memory for the detector");
    }
    st_sine_grid(d->pos, n, D);
    return st_detect_bind(d, NULL, err);
}

void st_detect_free(st_detect *d)
{
    st_free(d->pos);
    st_free(d->geo.layers);
    st_free(d->fusion);
    st_free(d->dec.layers);
    for (size_t i = 0; i < 2; i++) st_free(d->mask.conv[i].filters);
    *d = (st_detect){0};
}

static void bind_geo(st_binder *b, const st_dims *dims, st_geo *geo)
{
    const size_t D = dims->width, heads = dims->geo_heads;
    geo->label_embed = st_bind_f32(b, 2 * D, "geo.label_embed");
    geo->cls = st_bind_f32(b, D, "geo.cls");
    st_bind_linear(b, &geo->box_direct, 4, D, "geo.box_direct");
    st_bind_linear(b, &geo->box_pool, D * dims->roi_size * dims->roi_size, D, "geo.box_pool");
    st_bind_linear(b, &geo->box_pos, D + 2, D, "geo.box_pos");
    st_bind_linear(b, &geo->proj, D, D, "geo.proj");
    st_bind_norm(b, &geo->norm, D, EPS, "geo.norm");
    st_bind_norm(b, &geo->img_norm, D, EPS, "geo.img_norm");
    st_bind_norm(b, &geo->out_norm, D, EPS, "geo.out_norm");
    for (size_t i = 0; i < dims->geo_layers; i++) {
        st_geo_layer *l = &geo->layers[i];
        st_bind_norm(b, &l->norm1, D, EPS, "geo.layers.%zu.norm1", i);
        st_bind_norm(b, &l->norm2, D, EPS, "geo.layers.%zu.norm2", i);
        st_bind_norm(b, &l->norm3, D, EPS, "geo.layers.%zu.norm3", i);
        st_bind_mha(b, &l->self, D, D, heads, "geo.layers.%zu.self", i);
        st_bind_mha(b, &l->image, D, D, heads, "geo.layers.%zu.image", i);
        st_bind_linear(b, &l->ffn1, D, dims->geo_ffn, "geo.layers.%zu.ffn1", i);
        st_bind_linear(b, &l->ffn2, dims->geo_ffn, D, "geo.layers.%zu.ffn2", i);
    }
}

static void bind_fusion(st_binder *b, const st_dims *dims, st_fusion_layer *layers)
{
    const size_t D = dims->width, heads = dims->fusion_heads;
    for (size_t i = 0; i < dims->fusion_layers; i++) {
        st_fusion_layer *l = &layers[i];
        st_bind_norm(b, &l->norm1, D, EPS, "fusion.layers.%zu.norm1", i);
        st_bind_norm(b, &l->norm2, D, EPS, "fusion.layers.%zu.norm2", i);
        st_bind_norm(b, &l->norm3, D, EPS, "fusion.layers.%zu.norm3", i);
        st_bind_mha(b, &l->self, D, D, heads, "fusion.layers.%zu.self", i);
        st_bind_mha(b, &l->prompt, D, D, heads, "fusion.layers.%zu.prompt", i);
        st_bind_linear(b, &l->ffn1, D, dims->fusion_ffn, "fusion.layers.%zu.ffn1", i);
        st_bind_linear(b, &l->ffn2, dims->fusion_ffn, D, "fusion.layers.%zu.ffn2", i);
    }
}

static void bind_decoder_layer(st_binder *b, const st_dims *dims, st_dec_layer *l, size_t i)
{
    const size_t D = dims->width, heads = dims->dec_heads;
    st_bind_mha(b, &l->self, D, D, heads, "dec.layers.%zu.self", i);
    st_bind_mha(b, &l->text, D, D, heads, "dec.layers.%zu.text", i);
    st_bind_mha(b, &l->image, D, D, heads, "dec.layers.%zu.image", i);
    st_bind_norm(b, &l->norm_self, D, EPS, "dec.layers.%zu.norm_self", i);
    st_bind_norm(b, &l->norm_text, D, EPS, "dec.layers.%zu.norm_text", i);
    st_bind_norm(b, &l->norm_image, D, EPS, "dec.layers.%zu.norm_image", i);
    st_bind_norm(b, &l->norm_ffn, D, EPS, "dec.layers.%zu.norm_ffn", i);
    st_bind_linear(b, &l->ffn1, D, dims->dec_ffn, "dec.layers.%zu.ffn1", i);
    st_bind_linear(b, &l->ffn2, dims->dec_ffn, D, "dec.layers.%zu.ffn2", i);
}

static void bind_decoder(st_binder *b, const st_dims *dims, st_decoder *dec)
{
    const size_t D = dims->width, Q = dims->n_queries;
    for (size_t i = 0; i < dims->dec_layers; i++) bind_decoder_layer(b, dims, &dec->layers[i], i);
    st_bind_norm(b, &dec->norm, D, EPS, "dec.norm");
    st_bind_norm(b, &dec->presence_norm, D, EPS, "dec.presence_norm");
    st_bind_mlp(b, dec->box_head, 3, D, D, 4, "dec.box_head");
    st_bind_mlp(b, dec->presence_head, 3, D, D, 1, "dec.presence_head");
    st_bind_mlp(b, dec->ref_head, 2, 2 * D, D, D, "dec.ref_head");
    st_bind_mlp(b, dec->rpb_x, 2, 2, dims->rpb_hidden, dims->dec_heads, "dec.rpb_x");
    st_bind_mlp(b, dec->rpb_y, 2, 2, dims->rpb_hidden, dims->dec_heads, "dec.rpb_y");
    dec->query_embed = st_bind_f32(b, Q * D, "dec.query_embed");
    dec->ref_points = st_bind_f32(b, Q * 4, "dec.ref_points");
    dec->presence_token = st_bind_f32(b, D, "dec.presence_token");
}

static void bind_heads(st_binder *b, const st_dims *dims, st_scorer *score, st_mask_head *mask)
{
    const size_t D = dims->width;
    st_bind_mlp(b, score->mlp, 2, D, dims->score_ffn, D, "score.mlp");
    st_bind_norm(b, &score->norm, D, EPS, "score.norm");
    st_bind_linear(b, &score->prompt_proj, D, D, "score.prompt_proj");
    st_bind_linear(b, &score->query_proj, D, D, "score.query_proj");
    st_bind_mha(b, &mask->prompt, D, D, dims->mask_heads, "mask.prompt");
    st_bind_norm(b, &mask->prompt_norm, D, EPS, "mask.prompt_norm");
    for (size_t i = 0; i < 2; i++) {
        st_bind_conv3x3(b, &mask->conv[i], D, D, "mask.conv.%zu", i);
        st_bind_norm(b, &mask->gn[i], D, EPS, "mask.gn.%zu", i);
    }
    st_bind_mlp(b, mask->embed, 3, D, D, D, "mask.embed");
    st_bind_linear(b, &mask->instance, D, D, "mask.instance");
}

st_status st_detect_bind(st_detect *d, st_weights *weights, st_error *err)
{
    if (d->bound) return ST_OK;
    st_binder b = {weights, err, ST_OK};
    bind_geo(&b, d->dims, &d->geo);
    bind_fusion(&b, d->dims, d->fusion);
    bind_decoder(&b, d->dims, &d->dec);
    bind_heads(&b, d->dims, &d->score, &d->mask);
    d->bound = weights && b.status == ST_OK;
    return b.status;
}
