/* dims_shapes.c: the sizes of a checkpoint that comes without a config.json, read from tensor shapes. A size is
 * taken from up to three tensors that share it, by majority, so that one misshapen tensor is later named itself
 * instead of making all others look wrong. Head counts are in no shape: they follow from the head widths of the
 * released models (ViT and text 64, detector and interactive head 32).
 */
#include "weights/manifest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"

void st_dims_published(st_dims *d)
{
    *d = (st_dims){
        .image_size = 1008, .patch = 14, .vit_width = 1024, .vit_heads = 16, .vit_depth = 32, .vit_mlp = 4736,
        .window = 24, .pos_side = 24, .vit_eps = 1e-5f, .rope_theta = 10000.0f, .vocab = 49408, .context = 32,
        .text_width = 1024, .text_heads = 16, .text_depth = 24, .text_mlp = 4096, .text_eps = 1e-5f, .width = 256,
        .geo_layers = 3, .geo_heads = 8, .geo_ffn = 2048, .roi_size = 7, .fusion_layers = 6, .fusion_heads = 8,
        .fusion_ffn = 2048, .dec_layers = 6, .dec_heads = 8, .dec_ffn = 2048, .n_queries = 200, .rpb_hidden = 256,
        .score_ffn = 2048, .mask_heads = 8, .n_upsample = 3, .neck_levels = 4, .click_heads = 8, .click_mlp = 2048,
        .click_layers = 2, .click_downsample = 2, .click_mask_channels = 16, .click_mask_tokens = 4,
        .click_iou_hidden = 256, .click_points = 4, .mem_layers = 4, .mem_heads = 1, .mem_ffn = 2048,
        .mem_channels = 64, .mem_fuser_layers = 2, .mem_fuser_ffn = 1024, .num_maskmem = 7, .mem_downsample = 1,
        .mem_kernel = 3, .mem_fuser_kernel = 7, .mux_slots = 16, .mux_candidates = 3, .prop_heads = 8, .prop_layers = 2,
        .prop_mlp = 2048, .prop_downsample = 2, .prop_iou_hidden = 256, .mem_down_width = 16,
    };
    d->vit_global[7] = d->vit_global[15] = d->vit_global[23] = d->vit_global[31] = true;
}

typedef struct shapes {
    const st_catalog *cat;
    const st_naming *naming;
} shapes;

static const st_row *row_of(const shapes *s, const char *canonical)
{
    for (size_t i = 0; i < st_n_manifest_rows; i++) {
        const st_row *row = &st_manifest_rows[i];
        if (row->canonical && st_row_in(row, s->naming->sam31) && strcmp(row->canonical, canonical) == 0) return row;
    }
    return NULL;
}

/* One side of a canonical row's published tensor: layer 0's where there are layers. */
typedef struct side {
    const char *canonical;
    uint32_t dim;
} side;

/* 0 when the tensor is absent or lacks that dimension. */
static uint32_t read_side(const shapes *s, side from)
{
    char name[ST_MAX_PUBLISHED_NAME];
    const st_row *row = row_of(s, from.canonical);
    if (!row || !st_row_published(name, row, s->naming, 0)) return 0;
    const st_entry *e = st_catalog_find(s->cat, name);
    if (!e || from.dim >= e->rank) return 0;
    return e->shape[from.dim] > UINT32_MAX ? UINT32_MAX : (uint32_t)e->shape[from.dim];
}

/* What two of three agree on, else the first that is there (is not 0). Nothing there leaves *out. */
static void vote_numbers(uint32_t *out, uint32_t a, uint32_t b, uint32_t c)
{
    if (b && b == c) *out = b;
    else if (a) *out = a;
    else if (b || c) *out = b ? b : c;
}

static void vote(const shapes *s, uint32_t *out, side a, side b, side c)
{
    vote_numbers(out, read_side(s, a), read_side(s, b), read_side(s, c));
}
#define SIDE(canonical, dim) ((side){ canonical, dim })

/* Layers of a row: one more than the highest number met. Gaps are the manifest's business. A number that no size
 * can hold counts as 2^32 - 1. */
static void count_layers(const shapes *s, uint32_t *out, const char *canonical)
{
    char prefix[ST_MAX_PUBLISHED_NAME];
    const st_row *row = row_of(s, canonical);
    if (!row || !st_row_published(prefix, row, s->naming, 0)) return;
    const char *pattern = s->naming->layout == ST_LAYOUT_META ? row->meta : row->hf;
    const size_t n_tail = strlen(strchr(pattern, '#')) - 1;
    const size_t n_prefix = strlen(prefix) - n_tail - 1; /* without the "0" */
    prefix[n_prefix] = '\0';
    uint64_t n = 0;
    for (size_t i = st_catalog_lower_bound(s->cat, prefix);
         i < s->cat->n && strncmp(s->cat->entries[i].name, prefix, n_prefix) == 0; i++) {
        const char *digit = s->cat->entries[i].name + n_prefix;
        uint64_t number = 0;
        if (*digit < '0' || *digit > '9') continue;
        for (; *digit >= '0' && *digit <= '9'; digit++)
            number = number > UINT32_MAX ? number : 10 * number + (uint64_t)(*digit - '0');
        if (*digit == '.' && number + 1 > n) n = number + 1;
    }
    if (n) *out = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static uint32_t square_root(uint64_t n)
{
    uint64_t root = (uint64_t)sqrt((double)n);
    while (root * root > n) root--;
    while ((root + 1) * (root + 1) <= n) root++;
    return (uint32_t)root;
}

static uint32_t by_width(uint32_t width, uint32_t head)
{
    return width < head ? 1 : width / head;
}

/* Rotary tables [rows, head width / 2] (complex, or a third dimension of 2): rows are the window's tokens, in
 * global blocks the grid's. */
static st_status read_rotary(st_dims *d, const shapes *s, st_error *err)
{
    uint64_t rows[ST_MAX_VIT_BLOCKS] = { 0 }, least = UINT64_MAX, most = 0;
    const st_row *row = NULL;
    for (size_t i = 0; i < st_n_manifest_rows && !row; i++)
        if (st_manifest_rows[i].meta && strstr(st_manifest_rows[i].meta, ".freqs_cis")) row = &st_manifest_rows[i];
    const uint32_t depth = d->vit_depth < ST_MAX_VIT_BLOCKS ? d->vit_depth : ST_MAX_VIT_BLOCKS;
    for (uint32_t i = 0; i < depth; i++) {
        char name[ST_MAX_PUBLISHED_NAME];
        const st_entry *e = st_row_published(name, row, s->naming, i) ? st_catalog_find(s->cat, name) : NULL;
        if (!e || e->rank < 2 || e->shape[1] == 0 || e->shape[0] > UINT32_MAX || e->shape[1] > UINT32_MAX) continue;
        rows[i] = e->shape[0];
        if (rows[i] < least) least = rows[i];
        if (rows[i] > most) most = rows[i];
        d->vit_heads = by_width(d->vit_width, (uint32_t)(2 * e->shape[1]));
    }
    if (most == 0) return ST_OK;
    const uint32_t window = square_root(least), grid = square_root(most);
    if ((uint64_t)window * window != least || (uint64_t)grid * grid != most)
        return st_fail(err, ST_ERR_FORMAT, "rotary tables of %llu and %llu rows: expected squares",
                       (unsigned long long)least, (unsigned long long)most);
    for (uint32_t i = 0; i < depth; i++) {
        if (rows[i] && rows[i] != least && rows[i] != most)
            return st_fail(err, ST_ERR_FORMAT, "the rotary table of block %u has %llu rows, expected %llu or %llu", i,
                           (unsigned long long)rows[i], (unsigned long long)least, (unsigned long long)most);
        d->vit_global[i] = rows[i] ? rows[i] == most : d->vit_global[i];
    }
    d->window = window;
    if (__builtin_mul_overflow(grid, d->patch, &d->image_size))
        return st_fail(err, ST_ERR_LIMIT, "a grid of %u tokens of %u pixels", grid, d->patch);
    return ST_OK;
}

static void read_vision(st_dims *d, const shapes *s)
{
    vote(s, &d->vit_width, SIDE("vit.patch.weight", 0), SIDE("vit.ln_pre.weight", 0), SIDE("vit.pos", 2));
    vote(s, &d->patch, SIDE("vit.patch.weight", 2), SIDE("vit.patch.weight", 3), SIDE("vit.patch.weight", 3));
    count_layers(s, &d->vit_depth, "vit.blocks.#.norm1.weight");
    vote(s, &d->vit_mlp, SIDE("vit.blocks.#.mlp.fc1.weight", 0), SIDE("vit.blocks.#.mlp.fc1.bias", 0),
         SIDE("vit.blocks.#.mlp.fc2.weight", 1));
    const uint32_t rows = read_side(s, SIDE("vit.pos", 1));
    if (rows) d->pos_side = square_root(rows);
    d->vit_heads = by_width(d->vit_width, 64);
}

static void read_text(st_dims *d, const shapes *s)
{
    vote(s, &d->text_width, SIDE("text.token_embed", 1), SIDE("text.pos", 1), SIDE("text.ln_final.weight", 0));
    vote(s, &d->vocab, SIDE("text.token_embed", 0), SIDE("text.token_embed", 0), SIDE("text.token_embed", 0));
    vote(s, &d->context, SIDE("text.pos", 0), SIDE("text.pos", 0), SIDE("text.pos", 0));
    count_layers(s, &d->text_depth, "text.blocks.#.ln1.weight");
    vote(s, &d->text_mlp, SIDE("text.blocks.#.mlp.fc1.weight", 0), SIDE("text.blocks.#.mlp.fc1.bias", 0),
         SIDE("text.blocks.#.mlp.fc2.weight", 1));
    d->text_heads = by_width(d->text_width, 64);
}

static void read_detector(st_dims *d, const shapes *s)
{
    vote(s, &d->width, SIDE("dec.norm.weight", 0), SIDE("geo.cls", 1), SIDE("text.proj.bias", 0));
    d->geo_heads = d->fusion_heads = d->mask_heads = d->dec_heads = by_width(d->width, 32);
    count_layers(s, &d->geo_layers, "geo.layers.#.norm1.weight");
    count_layers(s, &d->fusion_layers, "fusion.layers.#.norm1.weight");
    count_layers(s, &d->dec_layers, "dec.layers.#.norm_image.weight");
    vote(s, &d->geo_ffn, SIDE("geo.layers.#.ffn1.weight", 0), SIDE("geo.layers.#.ffn1.bias", 0),
         SIDE("geo.layers.#.ffn2.weight", 1));
    vote(s, &d->fusion_ffn, SIDE("fusion.layers.#.ffn1.weight", 0), SIDE("fusion.layers.#.ffn1.bias", 0),
         SIDE("fusion.layers.#.ffn2.weight", 1));
    vote(s, &d->dec_ffn, SIDE("dec.layers.#.ffn1.weight", 0), SIDE("dec.layers.#.ffn1.bias", 0),
         SIDE("dec.layers.#.ffn2.weight", 1));
    vote(s, &d->roi_size, SIDE("geo.box_pool.weight", 2), SIDE("geo.box_pool.weight", 3),
         SIDE("geo.box_pool.weight", 3));
    vote(s, &d->n_queries, SIDE("dec.query_embed", 0), SIDE("dec.ref_points", 0), SIDE("dec.ref_points", 0));
    vote(s, &d->rpb_hidden, SIDE("dec.rpb_x.0.weight", 0), SIDE("dec.rpb_x.0.bias", 0), SIDE("dec.rpb_y.0.bias", 0));
    vote(s, &d->dec_heads, SIDE("dec.rpb_x.1.weight", 0), SIDE("dec.rpb_x.1.bias", 0),
         SIDE("dec.rpb_y.1.bias", 0)); /* one bias per head */
    vote(s, &d->score_ffn, SIDE("score.mlp.0.weight", 0), SIDE("score.mlp.0.bias", 0), SIDE("score.mlp.1.weight", 1));
}

/* How many times narrower attention is than the model, by three of its projections; 0 (refused later) when it is no
 * divisor. */
static void read_rate(const shapes *s, uint32_t *out, uint32_t width, const char *q_weight, const char *k_weight,
                      const char *v_bias)
{
    uint32_t inner = 0;
    vote(s, &inner, SIDE(q_weight, 0), SIDE(k_weight, 0), SIDE(v_bias, 0));
    if (inner) *out = width % inner ? 0 : width / inner;
}

static void read_click(st_dims *d, const shapes *s)
{
    d->click_heads = d->prop_heads = by_width(d->width, 32);
    count_layers(s, &d->click_layers, "click.layers.#.norm1.weight");
    vote(s, &d->click_mlp, SIDE("click.layers.#.ffn1.weight", 0), SIDE("click.layers.#.ffn1.bias", 0),
         SIDE("click.layers.#.ffn2.weight", 1));
    read_rate(s, &d->click_downsample, d->width, "click.final.q.weight", "click.final.k.weight", "click.final.v.bias");
    vote(s, &d->click_mask_tokens, SIDE("click.mask_tokens", 0), SIDE("click.iou.2.weight", 0),
         SIDE("click.iou.2.bias", 0));
    vote(s, &d->click_iou_hidden, SIDE("click.iou.0.weight", 0), SIDE("click.iou.0.bias", 0),
         SIDE("click.iou.1.weight", 0));
    vote(s, &d->click_mask_channels, SIDE("click.mask_in.1.weight", 0), SIDE("click.mask_in.1.bias", 0),
         SIDE("click.mask_norm.1.weight", 0));
    if (s->naming->layout == ST_LAYOUT_HF)
        vote(s, &d->click_points, SIDE("click.point.#", 0), SIDE("click.point.#", 0), SIDE("click.point.#", 0));
}

static void read_tracker(st_dims *d, const shapes *s)
{
    vote(s, &d->mem_channels, SIDE("track.time", 3), SIDE("track.absent", 1), SIDE("track.pointer_time.bias", 0));
    vote(s, &d->num_maskmem, SIDE("track.time", 0), SIDE("track.time", 0), SIDE("track.time", 0));
    count_layers(s, &d->mem_layers, "track.layers.#.norm1.weight");
    count_layers(s, &d->mem_fuser_layers, "track.fuser.#.scale");
    vote(s, &d->mem_ffn, SIDE("track.layers.#.ffn1.weight", 0), SIDE("track.layers.#.ffn1.bias", 0),
         SIDE("track.layers.#.ffn2.weight", 1));
    vote(s, &d->mem_fuser_ffn, SIDE("track.fuser.#.fc1.weight", 0), SIDE("track.fuser.#.fc1.bias", 0),
         SIDE("track.fuser.#.fc2.weight", 1));
    vote(s, &d->mem_kernel, SIDE("track.down.0.weight", 2), SIDE("track.down.1.weight", 2),
         SIDE("track.down.2.weight", 2));
    vote(s, &d->mem_fuser_kernel, SIDE("track.fuser.#.depthwise.weight", 2), SIDE("track.fuser.#.depthwise.weight", 3),
         SIDE("track.fuser.#.depthwise.weight", 3));
    if (!s->naming->sam31) {
        read_rate(s, &d->mem_downsample, d->width, "track.layers.#.self.q.weight", "track.layers.#.self.k.weight",
                  "track.layers.#.self.v.bias");
        return;
    }
    d->mem_heads = by_width(d->width, 32);
    count_layers(s, &d->prop_layers, "track.dec.layers.#.norm1.weight");
    vote(s, &d->mux_slots, SIDE("track.absent", 0), SIDE("track.slot_valid", 0), SIDE("track.slot_invalid", 0));
    vote_numbers(&d->mux_candidates, d->mux_slots ? read_side(s, SIDE("track.dec.mask_tokens", 0)) / d->mux_slots : 0,
                 read_side(s, SIDE("track.dec.iou.2.weight", 0)), read_side(s, SIDE("track.dec.iou.2.bias", 0)));
    vote(s, &d->prop_mlp, SIDE("track.dec.layers.#.ffn1.weight", 0), SIDE("track.dec.layers.#.ffn1.bias", 0),
         SIDE("track.dec.layers.#.ffn2.weight", 1));
    vote(s, &d->prop_iou_hidden, SIDE("track.dec.iou.0.weight", 0), SIDE("track.dec.iou.0.bias", 0),
         SIDE("track.dec.iou.1.weight", 0));
    read_rate(s, &d->prop_downsample, d->width, "track.dec.final.q.weight", "track.dec.final.k.weight",
              "track.dec.final.v.bias");
    vote(s, &d->mem_down_width, SIDE("track.down.0.weight", 0), SIDE("track.down.0.bias", 0),
         SIDE("track.down_norm.0.weight", 0));
}

st_status st_dims_from_shapes(st_dims *d, const st_catalog *cat, const st_naming *naming, const st_log *log,
                              st_error *err)
{
    const shapes s = { cat, naming };
    st_dims_published(d);
    read_vision(d, &s);
    read_text(d, &s);
    read_detector(d, &s);
    read_click(d, &s);
    read_tracker(d, &s);
    if (naming->layout == ST_LAYOUT_HF) d->vit_eps = 1e-6f; /* Hugging Face's own default; Meta's modules have 1e-5 */
    const st_status status = read_rotary(d, &s, err);
    if (status == ST_OK)
        st_log_line(
            log, ST_LOG_DEBUG,
            "sizes from tensor shapes: picture %u, patch %u, window %u, heads %u (ViT), %u (text), %u (detector)",
            d->image_size, d->patch, d->window, d->vit_heads, d->text_heads, d->fusion_heads);
    return status;
}

void st_dims_observe(st_dims *d, const st_catalog *cat, const st_naming *naming)
{
    const shapes s = { cat, naming };
    d->neck_levels =
        read_side(&s, SIDE("neck.3.proj1.weight", 0)) || read_side(&s, SIDE("neck.3.proj2.weight", 0)) ? 4 : 3;
    d->n_upsample = read_side(&s, SIDE("mask.conv.2.weight", 0)) || read_side(&s, SIDE("mask.gn.2.weight", 0)) ? 3 : 2;
    d->joint_score = naming->sam31;
    d->clamp_presence = naming->layout == ST_LAYOUT_HF;
}

typedef struct limit {
    const char *what;
    uint32_t value, least, most;
} limit;

st_status st_dims_check_limits(const st_dims *d, st_error *err)
{
    const limit limits[] = {
        { "picture side", d->image_size, 1, 16384 },
        { "patch side", d->patch, 1, 256 },
        { "ViT width", d->vit_width, 4, 65536 },
        { "ViT heads", d->vit_heads, 1, 1024 },
        { "ViT blocks", d->vit_depth, 1, ST_MAX_VIT_BLOCKS },
        { "ViT MLP width", d->vit_mlp, 1, 1u << 20 },
        { "attention window", d->window, 1, 4096 },
        { "side of stored positions", d->pos_side, 1, 4096 },
        { "vocabulary", d->vocab, 2, 1u << 24 },
        { "text context", d->context, 2, 4096 },
        { "text width", d->text_width, 1, 65536 },
        { "text heads", d->text_heads, 1, 1024 },
        { "text blocks", d->text_depth, 1, 128 },
        { "text MLP width", d->text_mlp, 1, 1u << 20 },
        { "detector width", d->width, 8, 65536 },
        { "exemplar encoder layers", d->geo_layers, 1, 64 },
        { "exemplar encoder heads", d->geo_heads, 1, 1024 },
        { "exemplar encoder FFN width", d->geo_ffn, 1, 1u << 20 },
        { "RoI side", d->roi_size, 1, 64 },
        { "fusion encoder layers", d->fusion_layers, 1, 64 },
        { "fusion encoder heads", d->fusion_heads, 1, 1024 },
        { "fusion encoder FFN width", d->fusion_ffn, 1, 1u << 20 },
        { "decoder layers", d->dec_layers, 1, 64 },
        { "decoder heads", d->dec_heads, 1, 1024 },
        { "decoder FFN width", d->dec_ffn, 1, 1u << 20 },
        { "queries", d->n_queries, 1, 65536 },
        { "box bias width", d->rpb_hidden, 1, 65536 },
        { "scorer's MLP width", d->score_ffn, 1, 1u << 20 },
        { "mask head heads", d->mask_heads, 1, 1024 },
        { "interactive head layers", d->click_layers, 1, 64 },
        { "interactive head heads", d->click_heads, 1, 1024 },
        { "interactive head MLP width", d->click_mlp, 1, 1u << 20 },
        { "interactive attention rate", d->click_downsample, 1, 64 },
        { "mask prompt channels", d->click_mask_channels, 4, 4096 },
        { "mask tokens", d->click_mask_tokens, 1, 64 },
        { "IoU head width", d->click_iou_hidden, 1, 65536 },
        { "point embeddings", d->click_points, 1, 64 },
        { "memory attention layers", d->mem_layers, 1, 64 },
        { "memory attention heads", d->mem_heads, 1, 1024 },
        { "memory attention FFN width", d->mem_ffn, 1, 1u << 20 },
        { "memory width", d->mem_channels, 1, 65536 },
        { "fuser layers", d->mem_fuser_layers, 1, 64 },
        { "fuser width", d->mem_fuser_ffn, 1, 1u << 20 },
        { "memory slots", d->num_maskmem, 1, 1024 },
        { "memory attention rate", d->mem_downsample, 1, 64 },
        { "mask down-sampler kernel", d->mem_kernel, 1, 64 },
        { "fuser kernel", d->mem_fuser_kernel, 1, 64 },
        { "multiplex slots", d->mux_slots, 1, 1024 },
        { "mask candidates", d->mux_candidates, 1, 64 },
        { "propagation decoder heads", d->prop_heads, 1, 1024 },
        { "propagation decoder layers", d->prop_layers, 1, 64 },
        { "propagation decoder MLP width", d->prop_mlp, 1, 1u << 20 },
        { "propagation attention rate", d->prop_downsample, 1, 64 },
        { "propagation IoU head width", d->prop_iou_hidden, 1, 65536 },
        { "mask down-sampler width", d->mem_down_width, 1, 65536 },
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < limits[i].least || limits[i].value > limits[i].most)
            return st_fail(err, ST_ERR_LIMIT, "%s: %u, expected %u to %u", limits[i].what, limits[i].value,
                           limits[i].least, limits[i].most);
    return ST_OK;
}

typedef struct divisor {
    const char *what;
    uint32_t value;
    const char *by;
    uint32_t divisor;
} divisor;

st_status st_dims_finish(st_dims *d, st_error *err)
{
    const divisor divisors[] = {
        { "picture side", d->image_size, "the patch side", d->patch },
        { "ViT width", d->vit_width, "its heads", d->vit_heads },
        { "ViT width", d->vit_width, "4", 4 },
        { "text width", d->text_width, "its heads", d->text_heads },
        { "detector width", d->width, "8", 8 },
        { "detector width", d->width, "the exemplar encoder's heads", d->geo_heads },
        { "detector width", d->width, "the fusion encoder's heads", d->fusion_heads },
        { "detector width", d->width, "the decoder's heads", d->dec_heads },
        { "detector width", d->width, "the mask head's heads", d->mask_heads },
        { "ViT head width", d->vit_width / d->vit_heads, "4", 4 },
    };
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++)
        if (divisors[i].value % divisors[i].divisor)
            return st_fail(err, ST_ERR_FORMAT, "%s %u is no multiple of %s (%u)", divisors[i].what, divisors[i].value,
                           divisors[i].by, divisors[i].divisor);
    if (!(d->vit_eps > 0 && d->vit_eps < 1) || !(d->text_eps > 0 && d->text_eps < 1) ||
        !(d->rope_theta >= 1 && d->rope_theta <= 1e9f))
        return st_fail(err, ST_ERR_FORMAT, "layer norm eps %g and %g, rotary base %g: out of range", (double)d->vit_eps,
                       (double)d->text_eps, (double)d->rope_theta);
    d->grid = d->image_size / d->patch;
    d->own_size = d->image_size;
    return ST_OK;
}
