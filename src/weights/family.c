/* family.c: names the model when a file is some other member of the family, so that a person who took the wrong
 * download reads which one it is. Each row is a piece of a name (two, where one is not enough) that only that
 * model's released files have; the more special model stands first. */
#include "weights/manifest.h"

#include <string.h>

static const struct {
    const char *inside, *and_inside; /* parts of some tensors' names */
    const char *model;
} marks[] = {
    /* near relatives: they share most names with SAM 3 */
    { "vision_backbone.trunk.model.", NULL, "EfficientSAM3" },
    { "student_trunk.", NULL, "EfficientSAM3 (the student encoder alone)" },
    { "text_encoder.layers.0.layer_scale", NULL, "SAM 3 LiteText" },
    /* the rest */
    { "spatial_perceiver.", NULL, "EdgeTAM" },
    { "mask_decoder.hf_token.", NULL, "HQ-SAM" },
    { "mask_decoder.hq_token.", NULL, "HQ-SAM" },
    { "image_encoder.patch_embed.seq.0.c.", NULL, "MobileSAM" },
    { "final_output_upscaling_layers.", NULL, "EfficientSAM" },
    { "pos_embed_window", "no_obj_embed_spatial", "SAM 2.1" },
    { "pos_embed_window", "occlusion_spatial_embedding_parameter", "SAM 2.1" },
    { "pos_embed_window", NULL, "SAM 2" },
    { "image_encoder.trunk.blocks.", NULL, "SAM 2" },
    { ".attn.rel_pos_h", NULL, "SAM (the first one)" },
    { "no_memory_embedding", "vision_encoder.backbone.layers.0.layer_norm1.", "SAM 3's tracker without the detector" },
    { "sam_mask_decoder.", "obj_ptr_proj.", "a tracker without its detector" },
};

#define N_NEAR 3

static bool any_name_has(const st_catalog *cat, const char *part)
{
    for (size_t i = 0; i < cat->n; i++)
        if (strstr(cat->entries[i].name, part)) return true;
    return false;
}

const char *st_family_guess(const st_catalog *cat, bool near)
{
    const size_t n = near ? N_NEAR : sizeof marks / sizeof *marks;
    for (size_t m = 0; m < n; m++)
        if (any_name_has(cat, marks[m].inside) && (!marks[m].and_inside || any_name_has(cat, marks[m].and_inside)))
            return marks[m].model;
    return NULL;
}
