/* naming.c: which layout a file has and which prefixes its names carry. A prefix is accepted only from the lists
 * below, and only for the whole file: whatever does not fit the naming that most tell-tale tensors agree on is
 * refused later, by name. */
#include "weights/manifest.h"

#include <stdio.h>
#include <string.h>
#include "base/error.h"

/* Wrappers of training frameworks around the published prefixes. */
static const char *const outer[] = { "", "model.", "module.", "module.model.", "model.module." };
static const char *const meta_detectors[] = { "detector.", "", "sam3_model.", NULL };
static const char *const meta_trackers[] = {
    "tracker.", "tracker.model.", "sam2_predictor.", "sam2_predictor.model.", "inst_interactive_predictor.model.", NULL
};
static const char *const hf_detectors[] = { "detector_model.", "", NULL };
static const char *const hf_necks[] = { "tracker_neck.", "tracker_model.tracker_neck.", NULL };
static const char *const hf_trackers[] = { "tracker_model.", NULL };

/* Tensors that tell; several, so that one missing tensor does not hide what the rest says. */
static const char *const meta_detector_marks[] = { "backbone.vision_backbone.trunk.ln_pre.weight",
                                                   "backbone.vision_backbone.convs.0.dconv_2x2_0.weight",
                                                   "backbone.language_backbone.encoder.ln_final.weight",
                                                   "transformer.decoder.presence_token.weight",
                                                   "geometry_encoder.cls_embed.weight",
                                                   "segmentation_head.semantic_seg_head.weight",
                                                   "dot_prod_scoring.hs_proj.weight",
                                                   NULL };
static const char *const hf_detector_marks[] = { "vision_encoder.backbone.layer_norm.weight",
                                                 "vision_encoder.neck.fpn_layers.0.proj1.weight",
                                                 "text_projection.weight",
                                                 "detr_decoder.presence_token.weight",
                                                 "geometry_encoder.cls_embed.weight",
                                                 "mask_decoder.semantic_projection.weight",
                                                 "dot_product_scoring.query_proj.weight",
                                                 NULL };
static const char *const meta_tracker_marks[] = { "maskmem_tpos_enc",
                                                  "sam_mask_decoder.mask_tokens.weight",
                                                  "sam_mask_decoder.conv_s0.weight",
                                                  "interactive_sam_mask_decoder.conv_s0.weight",
                                                  "sam_prompt_encoder.no_mask_embed.weight",
                                                  "interactive_sam_prompt_encoder.no_mask_embed.weight",
                                                  "obj_ptr_proj.layers.0.weight",
                                                  NULL };
static const char *const hf_neck_marks[] = { "fpn_layers.0.proj1.weight", "fpn_layers.1.proj1.weight",
                                             "fpn_layers.2.proj2.weight", NULL };
static const char *const hf_tracker_marks[] = { "mask_decoder.conv_s0.weight", "prompt_encoder.no_mask_embed.weight",
                                                "no_memory_embedding", "object_pointer_proj.proj_in.weight", NULL };

static unsigned count_marks(const st_catalog *cat, const char *first, const char *second, const char *const *marks)
{
    unsigned n = 0;
    char name[ST_MAX_PUBLISHED_NAME];
    for (; *marks; marks++) {
        snprintf(name, sizeof name, "%s%s%s", first, second, *marks);
        n += st_catalog_find(cat, name) != NULL;
    }
    return n;
}

/* The prefix under which most marks are found; the first of the list when none is. */
static unsigned best_root(char root[64], const st_catalog *cat, const char *wrapper, const char *const *prefixes,
                          const char *const *marks)
{
    unsigned best = 0;
    snprintf(root, 64, "%s%s", wrapper, prefixes[0]);
    for (; *prefixes; prefixes++) {
        const unsigned n = count_marks(cat, wrapper, *prefixes, marks);
        if (n <= best) continue;
        best = n;
        snprintf(root, 64, "%s%s", wrapper, *prefixes);
    }
    return best;
}

static bool any_with_prefix(const st_catalog *cat, const char *root, const char *rest)
{
    char prefix[ST_MAX_PUBLISHED_NAME];
    snprintf(prefix, sizeof prefix, "%s%s", root, rest);
    const size_t i = st_catalog_lower_bound(cat, prefix);
    return i < cat->n && strncmp(cat->entries[i].name, prefix, strlen(prefix)) == 0;
}

/* SAM 3.1 has a neck of three levels in three copies, and interactive heads under names of their own. */
static bool is_sam31(const st_catalog *cat, const st_naming *n)
{
    if (n->layout != ST_LAYOUT_META) return false;
    const char *detector = n->root[ST_ROOT_DETECTOR], *tracker = n->root[ST_ROOT_TRACKER];
    if (any_with_prefix(cat, detector, "backbone.vision_backbone.interactive_convs.")) return true;
    if (any_with_prefix(cat, detector, "backbone.vision_backbone.propagation_convs.")) return true;
    if (any_with_prefix(cat, tracker, "interactive_sam_")) return true;
    if (any_with_prefix(cat, detector, "backbone.vision_backbone.sam2_convs.")) return false;
    return !any_with_prefix(cat, detector, "backbone.vision_backbone.convs.3.");
}

st_status st_naming_find(st_naming *out, const st_catalog *cat, st_error *err)
{
    unsigned best = 0;
    const char *wrapper = "";
    *out = (st_naming){ 0 };
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
        st_naming meta = { .layout = ST_LAYOUT_META }, hf = { .layout = ST_LAYOUT_HF };
        const unsigned n_meta =
            best_root(meta.root[ST_ROOT_DETECTOR], cat, outer[i], meta_detectors, meta_detector_marks);
        const unsigned n_hf = best_root(hf.root[ST_ROOT_DETECTOR], cat, outer[i], hf_detectors, hf_detector_marks);
        const unsigned n = n_meta > n_hf ? n_meta : n_hf;
        if (n <= best) continue;
        best = n;
        *out = n_meta > n_hf ? meta : hf;
        wrapper = outer[i];
    }
    if (best < 3) {
        const char *family = st_family_guess(cat, false);
        if (family)
            return st_fail(err, ST_ERR_UNSUPPORTED, "these are weights of %s, expected SAM 3 or SAM 3.1", family);
        return st_fail(err, ST_ERR_UNSUPPORTED, "none of SAM 3's tensors are in this file of %zu tensors%s%s%s", cat->n,
                       cat->n ? " (the first is \"" : "", cat->n ? cat->entries[0].name : "", cat->n ? "\")" : "");
    }
    if (out->layout == ST_LAYOUT_META) {
        best_root(out->root[ST_ROOT_TRACKER], cat, wrapper, meta_trackers, meta_tracker_marks);
        memcpy(out->root[ST_ROOT_NECK], out->root[ST_ROOT_DETECTOR], sizeof out->root[0]);
        out->sam31 = is_sam31(cat, out);
    } else {
        best_root(out->root[ST_ROOT_TRACKER], cat, wrapper, hf_trackers, hf_tracker_marks);
        best_root(out->root[ST_ROOT_NECK], cat, wrapper, hf_necks, hf_neck_marks);
        out->short_text = !any_with_prefix(cat, out->root[ST_ROOT_DETECTOR], "text_encoder.text_model.");
    }
    return ST_OK;
}

/* Copies `pattern`, its '#' replaced by the index, to at most room bytes with the NUL. */
static void put_pattern(char *out, size_t room, const char *pattern, uint32_t index)
{
    const char *hash = strchr(pattern, '#');
    if (!hash) snprintf(out, room, "%s", pattern);
    else snprintf(out, room, "%.*s%u%s", (int)(hash - pattern), pattern, index, hash + 1);
}

bool st_row_published(char out[ST_MAX_PUBLISHED_NAME], const st_row *row, const st_naming *naming, uint32_t index)
{
    static const char long_text[] = "text_encoder.text_model.";
    const char *pattern = naming->layout == ST_LAYOUT_META ? row->meta : row->hf;
    if (!pattern) return false;
    char shortened[ST_MAX_PUBLISHED_NAME];
    if (naming->short_text && strncmp(pattern, long_text, sizeof long_text - 1) == 0) {
        snprintf(shortened, sizeof shortened, "text_encoder.%s", pattern + sizeof long_text - 1);
        pattern = shortened;
    }
    const int n = snprintf(out, ST_MAX_PUBLISHED_NAME, "%s", naming->root[st_row_root(row)]);
    put_pattern(out + n, ST_MAX_PUBLISHED_NAME - (size_t)n, pattern, index);
    return true;
}

bool st_row_canonical(char out[ST_MAX_PUBLISHED_NAME], const st_row *row, uint32_t index)
{
    if (!row->canonical) return false;
    put_pattern(out, ST_MAX_PUBLISHED_NAME, row->canonical, index);
    return true;
}
