/* dims_config.c: lays a config.json (Hugging Face's Sam3Config or Sam3VideoConfig, or a NAME.json with the same
 * keys) over sizes that are there already. Absent keys change nothing; a key of the wrong kind is refused by its
 * full name. Switches that would change the arithmetic (another activation, layer scale) are refused rather than
 * ignored.
 */
#include "weights/manifest.h"

#include <string.h>
#include "base/error.h"
#include "weights/checkpoint.h"
#include "weights/json_text.h"

typedef struct config {
    const char *path;
    st_error *err;
    st_status status; /* the first failure sticks */
} config;

/* An object and the name it has in messages. */
typedef struct section {
    const json_t *object; /* NULL when absent */
    const char *name;
} section;

static section sub(config *c, const json_t *parent, const char *name)
{
    const json_t *value = json_object_get(parent, name);
    if (!value || json_is_null(value)) return (section){ NULL, name };
    if (!json_is_object(value) && c->status == ST_OK)
        c->status = st_fail(c->err, ST_ERR_FORMAT, "%s: \"%s\" is no JSON object", c->path, name);
    return (section){ json_is_object(value) ? value : NULL, name };
}

static const json_t *get(const config *c, section s, const char *key)
{
    const json_t *value = c->status == ST_OK ? json_object_get(s.object, key) : NULL;
    return json_is_null(value) ? NULL : value;
}

static void wrong(config *c, section s, const char *key, const char *expected)
{
    c->status = st_fail(c->err, ST_ERR_FORMAT, "%s: %s.%s: expected %s", c->path, s.name, key, expected);
}

#define MAX_NUMBER (1 << 24)

static bool as_count(uint32_t *out, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > MAX_NUMBER)
        return false;
    *out = (uint32_t)json_integer_value(value);
    return true;
}

static void count(config *c, section s, const char *key, uint32_t *out)
{
    const json_t *value = get(c, s, key);
    if (value && !as_count(out, value)) wrong(c, s, key, "a whole number from 0 to 16777216");
}

/* A number, or [height, width] that are equal. */
static void square(config *c, section s, const char *key, uint32_t *out)
{
    const json_t *value = get(c, s, key);
    uint32_t height, width;
    if (!value || as_count(out, value)) return;
    if (json_array_size(value) == 2 && as_count(&height, json_array_get(value, 0)) &&
        as_count(&width, json_array_get(value, 1)) && height == width)
        *out = height;
    else wrong(c, s, key, "a whole number or two equal ones (only square pictures and patches are supported)");
}

static void real(config *c, section s, const char *key, float *out)
{
    const json_t *value = get(c, s, key);
    if (value && !json_is_number(value)) wrong(c, s, key, "a number");
    else if (value) *out = (float)json_number_value(value);
}

static void must_be(config *c, section s, const char *key, const char *text)
{
    const json_t *value = get(c, s, key);
    if (!value || (json_is_string(value) && strcmp(json_string_value(value), text) == 0)) return;
    c->status = st_fail(c->err, ST_ERR_UNSUPPORTED, "%s: %s.%s is \"%s\", expected \"%s\"", c->path, s.name, key,
                        json_is_string(value) ? json_string_value(value) : "(not a string)", text);
}

static void global_blocks(config *c, section s, st_dims *d)
{
    const json_t *list = get(c, s, "global_attn_indexes");
    if (!list) return;
    bool blocks[ST_MAX_VIT_BLOCKS] = { false }, fine = json_is_array(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint32_t block = UINT32_MAX;
        fine = fine && as_count(&block, json_array_get(list, i)) && block < ST_MAX_VIT_BLOCKS;
        if (fine) blocks[block] = true;
    }
    if (fine) memcpy(d->vit_global, blocks, sizeof blocks);
    else wrong(c, s, "global_attn_indexes", "a list of block numbers below 128");
}

static void read_trunk(config *c, section s, st_dims *d)
{
    uint32_t pretrained = 0;
    count(c, s, "hidden_size", &d->vit_width);
    count(c, s, "num_attention_heads", &d->vit_heads);
    count(c, s, "num_hidden_layers", &d->vit_depth);
    count(c, s, "intermediate_size", &d->vit_mlp);
    square(c, s, "image_size", &d->image_size);
    square(c, s, "patch_size", &d->patch);
    square(c, s, "pretrain_image_size", &pretrained);
    count(c, s, "window_size", &d->window);
    global_blocks(c, s, d);
    real(c, s, "layer_norm_eps", &d->vit_eps);
    real(c, s, "rope_theta", &d->rope_theta);
    real(c, sub(c, s.object, "rope_parameters"), "rope_theta", &d->rope_theta);
    must_be(c, s, "hidden_act", "gelu");
    if (pretrained && d->patch) d->pos_side = pretrained / d->patch;
    if (get(c, s, "layer_scale_init_value"))
        wrong(c, s, "layer_scale_init_value", "null (layer scale is not supported)");
}

static void read_text(config *c, section s, st_dims *d, bool complete)
{
    if (complete && s.object) { /* transformers fills the gaps of such an object with CLIP's sizes, not SAM 3's */
        d->text_width = 512;
        d->text_mlp = 2048;
        d->text_depth = 12;
        d->text_heads = 8;
        d->context = 77;
        if (!get(c, s, "hidden_act") && c->status == ST_OK)
            wrong(c, s, "hidden_act", "\"gelu\" (without the key, CLIP's quick_gelu is meant)");
    }
    count(c, s, "hidden_size", &d->text_width);
    count(c, s, "num_attention_heads", &d->text_heads);
    count(c, s, "num_hidden_layers", &d->text_depth);
    count(c, s, "intermediate_size", &d->text_mlp);
    count(c, s, "vocab_size", &d->vocab);
    count(c, s, "max_position_embeddings", &d->context);
    real(c, s, "layer_norm_eps", &d->text_eps);
    must_be(c, s, "hidden_act", "gelu");
}

/* `complete`: the file describes the whole model, so what follows from other keys is set too. */
static void read_detector(config *c, const json_t *root, st_dims *d, bool complete)
{
    const section vision = sub(c, root, "vision_config"), geometry = sub(c, root, "geometry_encoder_config"),
                  fusion = sub(c, root, "detr_encoder_config"), decoder = sub(c, root, "detr_decoder_config"),
                  mask = sub(c, root, "mask_decoder_config");
    read_trunk(c, sub(c, vision.object, "backbone_config"), d);
    count(c, vision, "fpn_hidden_size", &d->width);
    must_be(c, vision, "hidden_act", "gelu");
    read_text(c, sub(c, root, "text_config"), d, complete);
    count(c, geometry, "num_layers", &d->geo_layers);
    count(c, geometry, "num_attention_heads", &d->geo_heads);
    count(c, geometry, "intermediate_size", &d->geo_ffn);
    count(c, geometry, "roi_size", &d->roi_size);
    must_be(c, geometry, "hidden_act", "relu");
    count(c, fusion, "num_layers", &d->fusion_layers);
    count(c, fusion, "num_attention_heads", &d->fusion_heads);
    count(c, fusion, "intermediate_size", &d->fusion_ffn);
    must_be(c, fusion, "hidden_act", "relu");
    count(c, decoder, "num_layers", &d->dec_layers);
    count(c, decoder, "num_attention_heads", &d->dec_heads);
    count(c, decoder, "intermediate_size", &d->dec_ffn);
    count(c, decoder, "num_queries", &d->n_queries);
    must_be(c, decoder, "hidden_act", "relu");
    count(c, mask, "num_attention_heads", &d->mask_heads);
    if (!complete) return;
    d->rpb_hidden = d->width;
    d->score_ffn = d->dec_ffn; /* the scorer's MLP is built with the decoder's configuration */
}

static void read_tracker(config *c, section s, st_dims *d)
{
    const section click = sub(c, s.object, "mask_decoder_config"), prompt = sub(c, s.object, "prompt_encoder_config");
    uint32_t candidates = 0, depth = 3, stride = 2;
    square(c, s, "image_size", &d->track_image_size);
    count(c, click, "num_hidden_layers", &d->click_layers);
    count(c, click, "num_attention_heads", &d->click_heads);
    count(c, click, "mlp_dim", &d->click_mlp);
    count(c, click, "attention_downsample_rate", &d->click_downsample);
    count(c, click, "iou_head_hidden_dim", &d->click_iou_hidden);
    count(c, click, "num_multimask_outputs", &candidates);
    count(c, click, "iou_head_depth", &depth);
    if (candidates) d->click_mask_tokens = candidates + 1;
    if (depth != 3 && c->status == ST_OK) wrong(c, click, "iou_head_depth", "3");
    count(c, prompt, "mask_input_channels", &d->click_mask_channels);
    count(c, prompt, "num_point_embeddings", &d->click_points);
    count(c, s, "memory_attention_num_layers", &d->mem_layers);
    count(c, s, "memory_attention_num_attention_heads", &d->mem_heads);
    count(c, s, "memory_attention_downsample_rate", &d->mem_downsample);
    count(c, s, "memory_attention_feed_forward_hidden_size", &d->mem_ffn);
    count(c, s, "memory_encoder_output_channels", &d->mem_channels);
    count(c, s, "memory_fuser_num_layers", &d->mem_fuser_layers);
    count(c, s, "memory_fuser_intermediate_dim", &d->mem_fuser_ffn);
    count(c, s, "memory_fuser_kernel_size", &d->mem_fuser_kernel);
    count(c, s, "mask_downsampler_kernel_size", &d->mem_kernel);
    count(c, s, "mask_downsampler_stride", &stride);
    if (stride != 2 && c->status == ST_OK) wrong(c, s, "mask_downsampler_stride", "2");
    count(c, s, "num_maskmem", &d->num_maskmem);
    count(c, s, "multiplex_count", &d->mux_slots);
    count(c, s, "multiplex_mask_decoder_heads", &d->prop_heads);
}

st_status st_dims_apply_json(st_dims *d, json_t *root, const char *path, bool complete, st_error *err)
{
    config c = { .path = path, .err = err, .status = ST_OK };
    const section detector = sub(&c, root, "detector_config"), tracker = sub(&c, root, "tracker_config");
    if (complete) {
        d->vit_eps = 1e-6f;
        d->track_image_size = 1008; /* a tracker_config without image_size means this, whatever the detector says */
    }
    read_detector(&c, detector.object ? detector.object : root, d, complete);
    if (complete && !tracker.object) d->track_image_size = d->image_size;
    if (tracker.object) read_tracker(&c, tracker, d);
    return c.status;
}

st_status st_dims_apply_config(st_dims *d, const char *path, bool complete, st_error *err)
{
    json_t *root;
    st_status status = st_json_object_file(&root, path, ST_MAX_CONFIG_BYTES, err);
    if (status == ST_OK) status = st_dims_apply_json(d, root, path, complete, err);
    json_decref(root);
    return status;
}
