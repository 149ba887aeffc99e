/* weights_manifest_test.c: every tensor of a model of each layout dropped, renamed, misshapen, emptied and
 * mistyped, one at a time: each is refused by its own name, but for the few that may be absent or that alone say
 * how large something is. Also sizes from config.json, and models of other families.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "weights_model.h"

static const struct {
    st_layout layout;
    bool sam31;
} layouts[] = { { ST_LAYOUT_META, false }, { ST_LAYOUT_HF, false }, { ST_LAYOUT_META, true } };
#define N_LAYOUTS (sizeof layouts / sizeof *layouts)

/* Every tensor in a plain build. AddressSanitizer looks at memory, not at messages, and makes each of the 15,000 openings
 * five times as slow: it sees every fifth tensor, other ones in each layout. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 5 };
#else
enum { STEP = 1 };
#endif

static st_status open_catalog(st_catalog *cat, st_error *err)
{
    st_naming naming;
    st_dims dims;
    st_binding binding = { 0 };
    *err = (st_error){ 0 };
    st_status status = st_naming_find(&naming, cat, err);
    if (status == ST_OK) status = st_dims_from_shapes(&dims, cat, &naming, NULL, err);
    if (status == ST_OK) st_dims_observe(&dims, cat, &naming);
    if (status == ST_OK) status = st_dims_check_limits(&dims, err);
    if (status == ST_OK) status = st_manifest_bind(&binding, cat, &naming, &dims, err);
    if (status == ST_OK) status = st_dims_finish(&dims, err);
    st_binding_free(&binding);
    return status;
}

static st_status open_model(const tiny_model *m, st_error *err)
{
    st_catalog cat;
    tiny_catalog(&cat, m);
    const st_status status = open_catalog(&cat, err);
    st_catalog_free(&cat);
    return status;
}

static bool one_of(const char *name, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(name, *parts)) return true;
    return false;
}

/* Used by no stage, or switched off by their absence. */
static bool may_be_absent(const tiny_model *m, const char *name)
{
    static const char *const known[] = { "freqs_cis",
                                         "encoder.text_projection",
                                         "position_ids",
                                         ".convs.3.",
                                         "sam2_convs.3.",
                                         "fpn_layers.3.",
                                         "points_direct",
                                         "points_pool",
                                         "points_pos",
                                         "pixel_decoder.conv_layers.2",
                                         "pixel_decoder.norms.2",
                                         NULL };
    static const char *const options[] = { "tracker.no_obj_embed_spatial",
                                           "tracker.maskmem_backbone.out_proj",
                                           "tracker.obj_ptr_tpos_proj",
                                           "occlusion_spatial_embedding_parameter",
                                           "memory_encoder.projection",
                                           "temporal_positional_encoding_projection_layer",
                                           NULL };
    return one_of(name, known) || (!m->naming.sam31 && one_of(name, options));
}

static bool names(const st_error *err, const char *name)
{
    char quoted[ST_MAX_PUBLISHED_NAME + 3];
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    return strstr(err->message, quoted) != NULL;
}

static void check_refused(st_status status, const st_error *err, const char *name, const char *what)
{
    if (status == ST_OK) fail_msg("%s, %s: accepted", name, what);
    if (!names(err, name)) fail_msg("%s, %s: the message names another: %s", name, what, err->message);
    assert_int_equal(err->status, status);
}

static void whole_models_are_accepted(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        assert_true(m.n > 250);
        if (open_model(&m, &err) != ST_OK) fail_msg("%s", err.message);
        tiny_free(&m);
    }
}

static void every_tensor_dropped(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        size_t n_absent = 0;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        for (size_t i = l % STEP; i < m.n; i += STEP) {
            const tiny_tensor kept = m.tensors[i];
            m.tensors[i] = m.tensors[--m.n];
            const st_status status = open_model(&m, &err);
            if (may_be_absent(&m, kept.name)) {
                if (status != ST_OK) fail_msg("%s absent: %s", kept.name, err.message);
                n_absent++;
            } else {
                check_refused(status, &err, kept.name, "dropped");
                assert_non_null(strstr(err.message, " is missing"));
            }
            m.tensors[m.n++] = m.tensors[i];
            m.tensors[i] = kept;
        }
        assert_in_range(n_absent, 4 / STEP, 40);
        tiny_free(&m);
    }
}

static void every_tensor_renamed(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        for (size_t i = l % STEP; i < m.n; i += STEP) {
            char kept[ST_MAX_PUBLISHED_NAME], renamed[ST_MAX_PUBLISHED_NAME + 8];
            snprintf(kept, sizeof kept, "%s", m.tensors[i].name);
            snprintf(renamed, sizeof renamed, "%s_ema", kept);
            memcpy(m.tensors[i].name, renamed, strlen(renamed) + 1);
            const st_status status = open_model(&m, &err);
            check_refused(status, &err, renamed, "renamed");
            if (!may_be_absent(&m, kept)) check_refused(status, &err, kept, "renamed");
            snprintf(m.tensors[i].name, sizeof m.tensors[i].name, "%s", kept);
        }
        tiny_free(&m);
    }
}

/* One more along one side. These sides are in no other tensor: another length is simply another model. */
static bool says_its_own_size(const char *name, uint32_t dim)
{
    static const char *const rows[] = { "token_embedding",
                                        "encoder.positional_embedding",
                                        "maskmem_tpos_enc",
                                        "memory_temporal_positional_encoding",
                                        "prompt_encoder.point_embed.weight",
                                        NULL };
    if (dim == 0 && one_of(name, rows)) return true;
    return dim == 1 &&
           (strstr(name, "backbone.embeddings.position_embeddings") != NULL); /* side^2 + 1 rows: a class row */
}

/* Two tensors share the side and disagree: either may be named. */
static const char *partner(const char *name, uint32_t dim)
{
    if (dim == 0 && strstr(name, "reference_points.weight")) return "query_embed.weight";
    return dim == 0 && strstr(name, "text_model.embeddings.position_embedding.weight") ? "position_ids" : NULL;
}

static void every_side_changed(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        for (size_t i = l % STEP; i < m.n; i += STEP) {
            tiny_tensor *t = &m.tensors[i];
            for (uint32_t d = 0; d < t->rank; d++) {
                if (strstr(t->name, "freqs_cis") || (strstr(t->name, "encoder.text_projection") && t->shape[d] == 9))
                    continue; /* never read */
                t->shape[d]++;
                const st_status status = open_model(&m, &err);
                t->shape[d]--;
                if (says_its_own_size(t->name, d)) {
                    if (status != ST_OK) fail_msg("%s, side %u: %s", t->name, d, err.message);
                } else if (partner(t->name, d)) {
                    assert_int_equal(status, ST_ERR_FORMAT);
                    assert_non_null(strstr(err.message, partner(t->name, d)));
                } else {
                    check_refused(status, &err, t->name, "a side longer");
                    assert_non_null(strstr(err.message, "expected shape ["));
                    assert_non_null(strstr(err.message, "found ["));
                }
            }
        }
        tiny_free(&m);
    }
}

static void empty_and_flat_tensors(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        for (size_t i = l % STEP; i < m.n; i += STEP) {
            tiny_tensor *t = &m.tensors[i];
            const tiny_tensor kept = *t;
            if (strstr(t->name, "freqs_cis")) continue;
            const bool free_side = strstr(t->name, "text_encoder.text_projection") != NULL; /* of any width */
            t->shape[0] = 0;
            if (open_model(&m, &err) == ST_OK && !free_side) fail_msg("%s without elements: accepted", t->name);
            *t = kept;
            t->shape[t->rank++] = 1;
            check_refused(open_model(&m, &err), &err, t->name, "one dimension more");
            *t = kept;
            t->rank = 0;
            if (open_model(&m, &err) == ST_OK) fail_msg("%s without dimensions: accepted", t->name);
            *t = kept;
        }
        tiny_free(&m);
    }
}

static void every_tensor_mistyped(void **state)
{
    (void)state;
    for (size_t l = 0; l < N_LAYOUTS; l++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, layouts[l].layout, layouts[l].sam31);
        for (size_t i = l % STEP; i < m.n; i += STEP) {
            if (m.tensors[i].dtype != ST_DTYPE_F32) continue;
            m.tensors[i].dtype = ST_DTYPE_I32;
            const st_status status = open_model(&m, &err);
            m.tensors[i].dtype = ST_DTYPE_F32;
            if (status == ST_OK) assert_true(may_be_absent(&m, m.tensors[i].name)); /* never read: of any type */
            else check_refused(status, &err, m.tensors[i].name, "I32");
        }
        tiny_free(&m);
    }
}

/* A layer number far too high must neither be believed nor cost memory. */
static void layer_numbers_are_bounded(void **state)
{
    (void)state;
    static const char *const added[] = {
        "detector.backbone.vision_backbone.trunk.blocks.4294967295.norm1.weight",
        "detector.backbone.vision_backbone.trunk.blocks.99999999999999999999999.norm1.weight",
        "detector.transformer.decoder.layers.4000000000.norm1.weight"
    };
    for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
        tiny_model m;
        st_error err;
        tiny_make(&m, ST_LAYOUT_META, false);
        tiny_add(&m, added[i], ST_DTYPE_F32, 1, (uint64_t[]){ 1 });
        assert_int_equal(open_model(&m, &err), ST_ERR_LIMIT);
        tiny_free(&m);
    }
}

static void other_models_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *keys[3], *model;
    } cases[] = {
        { { "image_encoder.trunk.pos_embed_window", "memory_attention.layers.0.norm1.weight", "no_mem_embed" },
          "SAM 2," },
        { { "image_encoder.trunk.pos_embed_window", "memory_attention.layers.0.norm1.weight", "no_obj_embed_spatial" },
          "SAM 2.1" },
        { { "vision_encoder.backbone.pos_embed_window", "no_memory_embedding",
            "occlusion_spatial_embedding_parameter" },
          "SAM 2.1" },
        { { "image_encoder.blocks.0.attn.rel_pos_h", "prompt_encoder.not_a_point_embed.weight",
            "mask_decoder.iou_token.weight" },
          "SAM (the first one)" },
        { { "image_encoder.patch_embed.seq.0.c.weight", "prompt_encoder.not_a_point_embed.weight",
            "mask_decoder.iou_token.weight" },
          "MobileSAM" },
        { { "image_encoder.blocks.0.attn.rel_pos_h", "mask_decoder.hf_token.weight", "mask_decoder.iou_token.weight" },
          "HQ-SAM" },
        { { "image_encoder.trunk.pos_embed_window", "spatial_perceiver.latents_1d", "no_obj_embed_spatial" },
          "EdgeTAM" },
        { { "detector.backbone.vision_backbone.trunk.model.backbone.model.stages.0.weight", "a", "b" },
          "EfficientSAM3" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        st_catalog cat = { 0 };
        st_error err = { 0 };
        const st_blob blob = { 0 };
        st_entry e = { .contiguous = true };
        assert_int_equal(st_catalog_add_blob(&cat, &blob, &e.blob, &err), ST_OK);
        for (size_t k = 0; k < 3; k++)
            assert_int_equal(st_catalog_add(&cat, &e, cases[i].keys[k], strlen(cases[i].keys[k]), &err), ST_OK);
        assert_int_equal(st_catalog_finish(&cat, &err), ST_OK);
        assert_int_equal(open_catalog(&cat, &err), ST_ERR_UNSUPPORTED);
        if (!strstr(err.message, cases[i].model)) fail_msg("expected %s: %s", cases[i].model, err.message);
        st_catalog_free(&cat);
    }
}

/* EfficientSAM3 keeps most of SAM 3's names; the message must still say what it is. */
static void near_relatives_are_named(void **state)
{
    (void)state;
    tiny_model m;
    st_error err;
    tiny_make(&m, ST_LAYOUT_META, false);
    for (size_t i = m.n; i-- > 0;)
        if (strstr(m.tensors[i].name, ".trunk.")) tiny_drop(&m, i);
    tiny_add(&m, "detector.backbone.vision_backbone.trunk.model.backbone.model.conv.weight", ST_DTYPE_F32, 1,
             (uint64_t[]){ 4 });
    assert_int_equal(open_model(&m, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "this looks like EfficientSAM3"));
    tiny_free(&m);
}

static void an_empty_file_is_refused(void **state)
{
    (void)state;
    st_catalog cat = { 0 };
    st_error err;
    assert_int_equal(open_catalog(&cat, &err), ST_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "0 tensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_models_are_accepted), cmocka_unit_test(every_tensor_dropped),
        cmocka_unit_test(every_tensor_renamed),      cmocka_unit_test(every_side_changed),
        cmocka_unit_test(empty_and_flat_tensors),    cmocka_unit_test(every_tensor_mistyped),
        cmocka_unit_test(layer_numbers_are_bounded), cmocka_unit_test(other_models_are_named),
        cmocka_unit_test(near_relatives_are_named),  cmocka_unit_test(an_empty_file_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
