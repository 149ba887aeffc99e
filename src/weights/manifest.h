/* manifest.h: the one table of tensors: canonical name, published names, shape in dims, and whether it must be
 * there. Everything that depends on how a checkpoint names things is here; nothing else knows a published name.
 *
 * A row stands for one tensor, or with a '#' in its names for one per layer. Published names are relative to a root
 * (detector, second neck, tracker) that differs between exports; a naming says which roots a file uses.
 */
#ifndef ST_WEIGHTS_MANIFEST_H
#define ST_WEIGHTS_MANIFEST_H

#include <jansson.h>
#include "base/log.h"
#include "weights/catalog.h"
#include "weights/dims.h"

/* Sizes that shapes are written in. A shape holds numbers >= 0 as they are and sizes as ~symbol (negative). */
typedef enum st_size {
    ST_SIZE_ANY = 0, /* not checked */
    /* ViT and necks */
    ST_SIZE_V, ST_SIZE_V_2, ST_SIZE_V_4, ST_SIZE_V_MLP, ST_SIZE_PATCH, ST_SIZE_POS, ST_SIZE_BLOCKS,
    /* text */
    ST_SIZE_VOCAB, ST_SIZE_CONTEXT, ST_SIZE_T, ST_SIZE_T_MLP, ST_SIZE_T_BLOCKS,
    /* detector */
    ST_SIZE_D, ST_SIZE_2D, ST_SIZE_D_PLUS_2, ST_SIZE_D_2, ST_SIZE_D_4, ST_SIZE_D_8,
    ST_SIZE_GEO_LAYERS, ST_SIZE_GEO_FFN, ST_SIZE_ROI, ST_SIZE_FUSION_LAYERS, ST_SIZE_FUSION_FFN,
    ST_SIZE_DEC_LAYERS, ST_SIZE_DEC_FFN, ST_SIZE_DEC_HEADS, ST_SIZE_QUERIES, ST_SIZE_RPB, ST_SIZE_SCORE_FFN,
    /* interactive head */
    ST_SIZE_CLICK_LAYERS, ST_SIZE_CLICK_MLP, ST_SIZE_CLICK_INNER, ST_SIZE_CLICK_IOU, ST_SIZE_CLICK_TOKENS,
    ST_SIZE_CLICK_POINTS, ST_SIZE_MASK_IN, ST_SIZE_MASK_IN_4,
    /* tracker */
    ST_SIZE_MEM, ST_SIZE_MEM_SLOTS, ST_SIZE_MEM_LAYERS, ST_SIZE_MEM_FFN, ST_SIZE_MEM_INNER,
    ST_SIZE_FUSER_LAYERS, ST_SIZE_FUSER_FFN, ST_SIZE_FUSER_KERNEL, ST_SIZE_DOWN_KERNEL,
    /* SAM 3.1's tracker */
    ST_SIZE_PROP_LAYERS, ST_SIZE_PROP_MLP, ST_SIZE_PROP_INNER, ST_SIZE_PROP_IOU,
    ST_SIZE_MUX, ST_SIZE_2MUX, ST_SIZE_CANDIDATES, ST_SIZE_MUX_TOKENS,
    ST_SIZE_DOWN, ST_SIZE_4DOWN, ST_SIZE_16DOWN, ST_SIZE_64DOWN,
    ST_N_SIZES
} st_size;

typedef enum st_part {
    /* pictures and phrases */
    ST_PART_VIT = 0, ST_PART_NECK, ST_PART_TEXT, ST_PART_GEOMETRY, ST_PART_FUSION, ST_PART_DECODER, ST_PART_MASK,
    ST_PART_SCORE,
    /* clicks, video */
    ST_PART_CLICK_NECK, ST_PART_CLICK,
    ST_PART_TRACK_NECK, ST_PART_TRACK,
    ST_N_PARTS
} st_part;
#define ST_N_PICTURE_PARTS ST_PART_CLICK_NECK
const char *st_part_name(st_part part); /* "ViT trunk", ... */

typedef enum st_root { ST_ROOT_DETECTOR = 0, ST_ROOT_NECK, ST_ROOT_TRACKER, ST_N_ROOTS } st_root;

typedef enum st_need {
    ST_NEED_PART,   /* required with its part: the detector's always, another's as soon as one of its tensors is there */
    ST_NEED_OPTION, /* used when present */
    ST_NEED_KNOWN   /* present or absent, never used */
} st_need;

enum { ST_IN_SAM3 = 1, ST_IN_SAM31 = 2, ST_IN_BOTH = 3 };
#define ST_WHERE(part, root, need, versions) ((part) | (root) << 4 | (need) << 6 | (versions) << 8)
#define ST_ROW_BY_INDEX 255  /* st_row.piece: the layer number itself; st_row.pieces_*: as many as there are layers */
#define ST_ROW_POSITIONS 254 /* st_row.pieces_*: [rows, V] published as [1, rows, V] or [1, 1 + rows, V] (class row) */

typedef struct st_row {
    const char *canonical; /* NULL: known, without a use */
    const char *meta, *hf; /* relative to the root; NULL: the layout does not have it */
    uint16_t where;        /* ST_WHERE */
    uint8_t repeat;        /* st_size of the number of layers, 0 = one tensor */
    uint8_t pieces_meta;   /* n > 0: the published tensor holds n of these along its first dimension */
    uint8_t pieces_hf;
    uint8_t piece;         /* which of them this is */
    uint8_t rank;          /* of one of these; 0: any shape */
    int16_t shape[4];
} st_row;

static inline st_part st_row_part(const st_row *row) { return (st_part)(row->where & 15); }
static inline st_root st_row_root(const st_row *row) { return (st_root)(row->where >> 4 & 3); }
static inline st_need st_row_need(const st_row *row) { return (st_need)(row->where >> 6 & 3); }
static inline bool st_row_in(const st_row *row, bool sam31)
{
    return (row->where >> 8 & (sam31 ? ST_IN_SAM31 : ST_IN_SAM3)) != 0;
}

extern const st_row st_manifest_rows[];
extern const size_t st_n_manifest_rows;

typedef enum st_layout { ST_LAYOUT_META = 0, ST_LAYOUT_HF } st_layout;

/* How one file names its tensors. */
typedef struct st_naming {
    st_layout layout;
    bool sam31;
    bool short_text;              /* Hugging Face text encoder without "text_model." */
    char root[ST_N_ROOTS][64];    /* prefixes, with their dots */
} st_naming;

/* Finds the naming by keys that only this model has; ST_ERR_UNSUPPORTED names another model where its keys show it. */
ST_MUSTCHECK st_status st_naming_find(st_naming *out, const st_catalog *cat, st_error *err);
/* Another model of the family that the keys show, or NULL. `near`: only models that share most names with SAM 3. */
const char *st_family_guess(const st_catalog *cat, bool near);

#define ST_MAX_PUBLISHED_NAME 192
/* The published name of a row (layer `index`), or false when the layout does not have it. */
bool st_row_published(char out[ST_MAX_PUBLISHED_NAME], const st_row *row, const st_naming *naming, uint32_t index);
/* The canonical name; false when there is none. */
bool st_row_canonical(char out[ST_MAX_PUBLISHED_NAME], const st_row *row, uint32_t index);

/* One canonical tensor of a file. */
typedef struct st_slot {
    char *name;
    const st_row *row;
    const st_entry *entry;
    uint64_t shape[4];
    uint32_t rank;
    uint64_t n_elements;
    uint64_t first;    /* flat index of element 0 in the entry */
    const st_entry *scale, *smooth; /* of a quantised matrix (int8.h); else NULL, smooth may be NULL */
} st_slot;

typedef struct st_binding {
    st_slot *slots;    /* sorted by name */
    size_t n, room;
    bool has[ST_N_PARTS];
} st_binding;

/* Values of all sizes; false when one does not fit. */
bool st_sizes_from_dims(uint64_t sizes[ST_N_SIZES], const st_dims *d);
/* Checks the whole catalogue against the table: names, shapes, types. Marks entries used. Refuses missing, unknown
 * and misshapen tensors by name. */
ST_MUSTCHECK st_status st_manifest_bind(st_binding *out, st_catalog *cat, const st_naming *naming, const st_dims *dims,
                                        st_error *err);
void st_binding_free(st_binding *b);
const st_slot *st_binding_find(const st_binding *b, const char *canonical);

/* ---- sizes (dims_shapes.c, dims_config.c) */

/* The published sizes of SAM 3: what Hugging Face's configuration classes have as defaults. */
void st_dims_published(st_dims *d);
/* From the shapes in the catalogue. Tensors that are missing leave the published size; the manifest then names them. */
ST_MUSTCHECK st_status st_dims_from_shapes(st_dims *d, const st_catalog *cat, const st_naming *naming,
                                           const st_log *log, st_error *err);
/* Lays a config.json over what is in *d. `complete`: it describes the whole model on top of st_dims_published (a
 * Hugging Face folder), so absent keys mean transformers' defaults; else (NAME.json beside a lone file) absent keys
 * change nothing. */
ST_MUSTCHECK st_status st_dims_apply_config(st_dims *d, const char *path, bool complete, st_error *err);
/* The same from a JSON object; `path` is for messages. */
ST_MUSTCHECK st_status st_dims_apply_json(st_dims *d, json_t *root, const char *path, bool complete, st_error *err);
/* What only the presence of tensors tells, and what follows from the layout. */
void st_dims_observe(st_dims *d, const st_catalog *cat, const st_naming *naming);
/* Every size within what Stencil can hold. To be asked before the manifest, which makes a list as long as these say. */
ST_MUSTCHECK st_status st_dims_check_limits(const st_dims *d, st_error *err);
/* Divisibility and derived sizes. To be asked after the manifest, which names a misshapen tensor better. */
ST_MUSTCHECK st_status st_dims_finish(st_dims *d, st_error *err);
/* Another picture side than the checkpoint's own; 0 = its own. After st_dims_finish. */
ST_MUSTCHECK st_status st_dims_set_input_size(st_dims *d, uint32_t side, st_error *err);

#endif
