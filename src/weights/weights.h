/* weights.h: a published checkpoint, opened unchanged: names mapped, shapes checked, values mapped and checked for NaN on first use.
 *
 * Canonical names (what the model code asks for; the manifest maps each to its published names). `.weight`/`.bias` follow a stem unless marked (bare):
 *   vit.patch (weight only) [V,3,p,p] | vit.pos (bare) [side*side,V], class row dropped | vit.ln_pre
 *   vit.blocks.I.{norm1,norm2} | vit.blocks.I.attn.{q,k,v,proj} | vit.blocks.I.mlp.{fc1,fc2}
 *   neck.L.{up0,up1} (ConvT [in,out,2,2]; level 0 has both, level 1 up0) | neck.L.{proj1,proj2} ([D,C,1,1], [D,D,3,3])     L = 0 (4x), 1 (2x), 2 (1x); 3 known, unused
 *   click_neck.L.* (neck B, SAM 3.1 interactive_convs) and track_neck.L.* (SAM 3.1 propagation_convs): the same shapes
 *   text.token_embed (bare) [vocab,W] | text.pos (bare) [context,W] | text.blocks.I.{ln1,ln2} | text.blocks.I.attn.{q,k,v,out}
 *   text.blocks.I.mlp.{fc1,fc2} | text.ln_final | text.proj [D,W] (Meta's resizer, HF's top-level text_projection)
 *   geo.label_embed (bare) [2,D] | geo.cls (bare) [1,D] | geo.box_direct [D,4] | geo.box_pool [D,D,R,R] | geo.box_pos [D,D+2] | geo.proj | geo.norm
 *   geo.img_norm | geo.layers.I.{self,image}.{q,k,v,out} | geo.layers.I.{ffn1,ffn2,norm1,norm2,norm3} | geo.out_norm
 *   fusion.layers.I.{self,prompt}.{q,k,v,out} | fusion.layers.I.{ffn1,ffn2,norm1,norm2,norm3}
 *   dec.layers.I.{self,text,image}.{q,k,v,out} | dec.layers.I.{ffn1,ffn2} | dec.layers.I.{norm_self,norm_text,norm_image,norm_ffn}
 *   dec.norm | dec.box_head.{0,1,2} | dec.query_embed (bare) [Q,D] | dec.ref_points (bare) [Q,4] | dec.rpb_x.{0,1} | dec.rpb_y.{0,1}
 *   dec.presence_token (bare) [1,D] | dec.presence_head.{0,1,2} | dec.presence_norm | dec.ref_head.{0,1}
 *   mask.conv.{0,1} | mask.gn.{0,1} (2 known, unused) | mask.embed.{0,1,2} | mask.prompt.{q,k,v,out} | mask.prompt_norm | mask.semantic [1,D,1,1]
 *   mask.instance [D,D,1,1] | score.mlp.{0,1} | score.norm | score.prompt_proj | score.query_proj
 *   click.point_fourier, click.grid_fourier (bare) [2,D/2] | click.point.I (bare) [1,D] | click.{not_a_point,no_mask} (bare) [1,D]
 *   click.no_memory (bare) [1,1,D] | click.mask_in.{0,1,2} | click.mask_norm.{0,1} | click.{iou_token,score_token,mask_tokens} (bare)
 *   click.layers.I.{self,token_to_image,image_to_token}.{q,k,v,out} | click.layers.I.{ffn1,ffn2,norm1,norm2,norm3,norm4}
 *   click.final.{q,k,v,out} | click.final_norm | click.{up0,up1} | click.up_norm | click.{skip0,skip1} | click.hyper.I.{0,1,2}
 *   click.iou.{0,1,2} | click.score.{0,1,2}                      the same for SAM 3's head and SAM 3.1's interactive one
 *   track.*: the trackers of SAM 3 and SAM 3.1, checked by the manifest (manifest_rows.c lists them), used by later versions.
 *
 * Thread rule: st_weights_f32 may be called from any thread (the first call of a tensor checks or converts it under a lock).
 */
#ifndef ST_WEIGHTS_H
#define ST_WEIGHTS_H

#include "base/log.h"
#include "weights/dims.h"
#include "weights/int8.h"
#include <stencil/stencil.h>

typedef struct st_weights st_weights;

/* Opens a .pt, .safetensors, .safetensors.index.json or a Hugging Face snapshot directory. On failure *out is NULL. */
ST_MUSTCHECK st_status st_weights_open(st_weights **out, const char *path, const st_log *log, st_error *err);
void st_weights_free(st_weights *w);

const st_dims *st_weights_dims(const st_weights *w);
/* Pictures of another side than the checkpoint's own (0 = its own). Right after opening: who has read the sizes is not told. */
ST_MUSTCHECK st_status st_weights_set_input_size(st_weights *w, uint32_t side, st_error *err);
/* Values of a canonical tensor as fp32, row-major, in the manifest's shape: a pointer into the mapped file where the file holds aligned contiguous fp32,
 * else a converted copy that the weights own. ST_ERR_NONFINITE names a tensor that holds NaN or infinity. */
ST_MUSTCHECK st_status st_weights_f32(st_weights *w, const float **out, const char *canonical, st_error *err);
/* A quantised matrix as it is stored; out->values is NULL when the tensor is not quantised. st_weights_f32 gives the
 * matrix that it stands for. *name (may be NULL) is the canonical name, which the weights own. */
ST_MUSTCHECK st_status st_weights_int8(st_weights *w, st_int8_view *out, const char **name, const char *canonical,
                                       st_error *err);
/* A matrix of a linear layer that the file keeps in 16 bits, where it lies: aligned, contiguous, not quantised, of rank 2. values is NULL for all others,
 * whose values st_weights_f32 gives. Checked for NaN and infinity on first use, as there. */
typedef struct st_half_view {
    const uint16_t *values; /* [n_out, n_in] */
    bool brain;             /* bf16, else fp16 */
} st_half_view;
ST_MUSTCHECK st_status st_weights_half(st_weights *w, st_half_view *out, const char *canonical, st_error *err);
/* Whether st_weights_f32 gives a pointer into the mapped file. */
bool st_weights_in_place(const st_weights *w, const char *canonical);
/* For a large tensor of which little is read: looks for NaN and infinity a piece at a time and keeps nothing in memory. */
ST_MUSTCHECK st_status st_weights_look_through(st_weights *w, const char *canonical, st_error *err);
/* `count` values from flat index `first` on, as fp32, of a tensor that was looked through. Any thread. */
void st_weights_read(const st_weights *w, const char *canonical, size_t first, size_t count, float *out);
/* Number of elements of a canonical tensor; 0 when the file has none (an optional tensor). */
size_t st_weights_n_elements(const st_weights *w, const char *canonical);
/* Lets the kernel drop the mapped pages of all canonical tensors whose name starts with `prefix`. Values stay valid. */
void st_weights_drop(st_weights *w, const char *prefix);
/* From now on a tensor's mapped pages are dropped as soon as its values have been looked through: who computes with them reads them again. */
void st_weights_stream(st_weights *w);
/* Bytes of the canonical tensors whose name starts with `prefix` that are read straight from the map. */
uint64_t st_weights_mapped(const st_weights *w, const char *prefix);

/* For st_model_get_info. Pointers belong to the weights. */
typedef struct st_weights_info {
    const char *id;        /* 64 hex digits */
    const char *version;   /* "sam3", "sam3.1" */
    const char *layout;    /* "meta", "hf" */
    const char *container; /* "safetensors", "safetensors (sharded)", "pytorch zip" */
    const char *dtypes;    /* "F32", "F16 + I64", ... what the file stores, most elements first */
    const st_model_part *parts;
    size_t n_parts;
    const char *const *unused;
    size_t n_unused;
    uint64_t bytes_mapped;    /* of tensors that picture + phrase inference reads straight from the map */
    uint64_t bytes_converted; /* heap that conversion to fp32 will need for picture + phrase inference */
    uint64_t bytes_vit_mapped, bytes_text_mapped; /* the parts of bytes_mapped that belong to `vit.` and `text.` */
    uint64_t n_int8;          /* elements of quantised matrices */
    uint64_t n_half;          /* elements of matrices that stay in 16 bits */
    const char *about;        /* what `stencil quantize` wrote of the file (JSON), or NULL */
    uint64_t bytes_token_table; /* of text.token_embed, where it is read straight from the map: a phrase touches a few rows */
} st_weights_info;
void st_weights_get_info(const st_weights *w, st_weights_info *info);

#endif
