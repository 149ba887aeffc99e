/* weights_inventory_test.c: the manifest against the lists of tensors of the three released files
 * (tests/data/inventory): every row falls in a class, no required tensor is missing from them, every size is found
 * from shapes alone, and both layouts of SAM 3 map onto the same canonical tensors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "weights_model.h"

#define MAX_ROWS 2048

typedef struct inventory {
    char *names[MAX_ROWS], *sources[MAX_ROWS]; /* the third column: a type, or the tensor of the other layout */
    uint64_t shapes[MAX_ROWS][4];
    uint32_t ranks[MAX_ROWS];
    size_t n;
} inventory;

static void read_inventory(inventory *v, const char *file)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/tests/data/inventory/%s", ST_SOURCE_DIR, file);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    v->n = 0;
    while (fgets(line, sizeof line, f)) {
        char name[256], shape[128], source[256] = "";
        if (line[0] == '#') continue;
        assert_true(sscanf(line, "%255[^\t\n]\t%127[^\t\n]\t%255[^\t\n]", name, shape, source) >= 2);
        assert_true(v->n < MAX_ROWS);
        v->names[v->n] = strdup(name);
        v->sources[v->n] = strdup(source);
        v->ranks[v->n] = 0;
        for (char *side = strtok(shape, ","); side; side = strtok(NULL, ","))
            v->shapes[v->n][v->ranks[v->n]++] = strtoull(side, NULL, 10);
        v->n++;
    }
    fclose(f);
}

static void free_inventory(inventory *v)
{
    for (size_t i = 0; i < v->n; i++) {
        free(v->names[i]);
        free(v->sources[i]);
    }
}

/* A catalogue without any data: names that `rename` turns to NULL are left out. */
static void make_catalog(st_catalog *cat, const inventory *v, const char *(*rename)(char out[512], const char *name))
{
    st_error err = { 0 };
    const st_blob blob = { 0 };
    uint32_t index;
    *cat = (st_catalog){ .container = "inventory" };
    assert_int_equal(st_catalog_add_blob(cat, &blob, &index, &err), ST_OK);
    for (size_t i = 0; i < v->n; i++) {
        char renamed[512];
        const char *name = rename ? rename(renamed, v->names[i]) : v->names[i];
        if (!name) continue;
        st_entry e = { .dtype = strcmp(v->sources[i], "complex64") == 0 ? ST_DTYPE_C64 : ST_DTYPE_F32,
                       .rank = v->ranks[i],
                       .contiguous = true };
        memcpy(e.shape, v->shapes[i], sizeof v->shapes[i]);
        assert_int_equal(st_catalog_add(cat, &e, name, strlen(name), &err), ST_OK);
    }
    assert_int_equal(st_catalog_finish(cat, &err), ST_OK);
}

typedef struct opened {
    st_catalog cat;
    st_naming naming;
    st_dims dims;
    st_binding binding;
} opened;

static st_status try_open(opened *o, const inventory *v, const char *(*rename)(char out[512], const char *name),
                          st_error *err)
{
    make_catalog(&o->cat, v, rename);
    o->binding = (st_binding){ 0 };
    st_status status = st_naming_find(&o->naming, &o->cat, err);
    if (status == ST_OK) status = st_dims_from_shapes(&o->dims, &o->cat, &o->naming, NULL, err);
    if (status == ST_OK) st_dims_observe(&o->dims, &o->cat, &o->naming);
    if (status == ST_OK) status = st_dims_check_limits(&o->dims, err);
    if (status == ST_OK) status = st_manifest_bind(&o->binding, &o->cat, &o->naming, &o->dims, err);
    if (status == ST_OK) status = st_dims_finish(&o->dims, err);
    return status;
}

static void open_inventory(opened *o, const inventory *v, const char *(*rename)(char out[512], const char *name))
{
    st_error err = { 0 };
    if (try_open(o, v, rename, &err) != ST_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < o->cat.n; i++) assert_true(o->cat.entries[i].used);
}

static void close_inventory(opened *o)
{
    st_binding_free(&o->binding);
    st_catalog_free(&o->cat);
}

/* Published elements of the tensors of one part that some stage uses. */
static uint64_t part_elements(const opened *o, st_part part)
{
    uint64_t n = 0;
    for (size_t i = 0; i < o->binding.n; i++)
        if (st_row_part(o->binding.slots[i].row) == part && st_row_need(o->binding.slots[i].row) != ST_NEED_KNOWN)
            n += o->binding.slots[i].n_elements;
    return n;
}

/* All sizes but the switches that follow from the layout. */
static void check_published(const st_dims *found)
{
    st_dims expected, d = *found;
    st_dims_published(&expected);
    expected.grid = 72;
    expected.own_size = expected.image_size;
    expected.neck_levels = d.neck_levels;
    expected.mem_channels = d.mem_channels;
    expected.mem_heads = d.mem_heads;
    expected.vit_eps = d.vit_eps;
    expected.joint_score = d.joint_score;
    expected.clamp_presence = d.clamp_presence;
    assert_memory_equal(&d, &expected, sizeof d);
}

static void meta_sam3_falls_in_classes(void **state)
{
    (void)state;
    static inventory v;
    opened o;
    read_inventory(&v, "sam3-meta.tsv");
    assert_int_equal(v.n, 1465);
    open_inventory(&o, &v, NULL);
    assert_false(o.naming.sam31);
    assert_int_equal(o.naming.layout, ST_LAYOUT_META);
    check_published(&o.dims);
    assert_int_equal(o.dims.neck_levels, 4);
    assert_int_equal(o.dims.mem_channels, 64);
    assert_int_equal(o.dims.mem_heads, 1);
    assert_true(o.dims.vit_eps == 1e-5f);
    assert_false(o.dims.joint_score);
    assert_false(o.dims.clamp_presence);
    for (int part = 0; part < ST_N_PARTS; part++) assert_int_equal(o.binding.has[part], part != ST_PART_TRACK_NECK);
    /* whole parts, less what is never used: the class row, the last neck level, CLIP's projection, points, the
     * third mask convolution */
    assert_int_equal(part_elements(&o, ST_PART_VIT), 446237696 - 1024);
    assert_int_equal(part_elements(&o, ST_PART_NECK), 7802112 - 852480);
    assert_int_equal(part_elements(&o, ST_PART_TEXT), 353724672 - 524288);
    assert_int_equal(part_elements(&o, ST_PART_GEOMETRY), 8215808 - 132352);
    assert_int_equal(part_elements(&o, ST_PART_FUSION), 9472512);
    assert_int_equal(part_elements(&o, ST_PART_DECODER), 11575093);
    assert_int_equal(part_elements(&o, ST_PART_MASK), 2298881 - 590592);
    assert_int_equal(part_elements(&o, ST_PART_SCORE), 1182976);
    assert_int_equal(part_elements(&o, ST_PART_CLICK_NECK), 7802112 - 852480);
    assert_int_equal(part_elements(&o, ST_PART_CLICK),
                     4215109 + 6476 + 256 + 256); /* the Fourier matrix counts twice; no_mem_embed */
    assert_int_equal(part_elements(&o, ST_PART_TRACK), 5922304 + 1384608 + 197376 + 16448 + 1297 - 256);
    close_inventory(&o);
    free_inventory(&v);
}

static void hf_sam3_falls_in_classes(void **state)
{
    (void)state;
    static inventory v;
    opened o;
    read_inventory(&v, "sam3-hf.tsv");
    assert_int_equal(v.n, 1797);
    open_inventory(&o, &v, NULL);
    assert_int_equal(o.naming.layout, ST_LAYOUT_HF);
    check_published(&o.dims);
    assert_int_equal(o.dims.mem_channels, 64);
    assert_true(o.dims.vit_eps == 1e-6f);
    assert_true(o.dims.clamp_presence);
    for (int part = 0; part < ST_N_PARTS; part++) assert_int_equal(o.binding.has[part], part != ST_PART_TRACK_NECK);
    close_inventory(&o);
    free_inventory(&v);
}

static void meta_sam31_falls_in_classes(void **state)
{
    (void)state;
    static inventory v;
    opened o;
    read_inventory(&v, "sam31-meta.tsv");
    assert_int_equal(v.n, 1623);
    open_inventory(&o, &v, NULL);
    assert_true(o.naming.sam31);
    check_published(&o.dims);
    assert_int_equal(o.dims.neck_levels, 3);
    assert_int_equal(o.dims.mem_channels, 256);
    assert_int_equal(o.dims.mem_heads, 8);
    assert_int_equal(o.dims.mux_slots, 16);
    assert_int_equal(o.dims.mux_candidates, 3);
    assert_int_equal(o.dims.mem_down_width, 16);
    assert_true(o.dims.joint_score);
    for (int part = 0; part < ST_N_PARTS; part++) assert_true(o.binding.has[part]);
    for (int part = ST_PART_NECK; part <= ST_PART_TRACK_NECK;
         part += part == ST_PART_NECK ? ST_PART_CLICK_NECK - ST_PART_NECK : 2)
        assert_int_equal(part_elements(&o, (st_part)part), 6949632);
    /* every tensor of the tracker is used by some stage: 457 of them, 19,629,494 elements, the click's Fourier
     * matrix twice */
    assert_int_equal(part_elements(&o, ST_PART_CLICK) + part_elements(&o, ST_PART_TRACK), 19629494 + 256);
    close_inventory(&o);
    free_inventory(&v);
}

/* The published name in the other layout that a canonical tensor comes from. */
static void check_same_source(const st_slot *hf, const st_slot *meta, const inventory *v)
{
    for (size_t i = 0; i < v->n; i++) {
        if (strcmp(v->names[i], hf->entry->name) != 0 || strchr(v->sources[i], '.') == NULL) continue;
        if (strncmp(hf->name, "click.point.", 12) == 0) continue; /* the list names the first of the four */
        assert_string_equal(v->sources[i], meta->entry->name);
        return;
    }
}

/* Both layouts hold the same canonical tensors with the same shapes, and the third column of the Hugging Face list
 * (made from its conversion script) names the very tensor that the table takes from Meta's file. */
static void both_layouts_hold_the_same_tensors(void **state)
{
    (void)state;
    static inventory v_meta, v_hf;
    opened meta, hf;
    size_t n_sources = 0;
    read_inventory(&v_meta, "sam3-meta.tsv");
    read_inventory(&v_hf, "sam3-hf.tsv");
    open_inventory(&meta, &v_meta, NULL);
    open_inventory(&hf, &v_hf, NULL);
    assert_int_equal(meta.binding.n, hf.binding.n);
    for (size_t i = 0; i < hf.binding.n; i++) {
        const st_slot *a = &meta.binding.slots[i], *b = &hf.binding.slots[i];
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->rank, b->rank);
        assert_memory_equal(a->shape, b->shape, sizeof a->shape);
        check_same_source(b, a, &v_hf);
    }
    for (size_t i = 0; i < v_hf.n; i++) n_sources += strchr(v_hf.sources[i], '.') != NULL;
    assert_true(n_sources > 1000); /* the column is really there */
    close_inventory(&hf);
    close_inventory(&meta);
    free_inventory(&v_hf);
    free_inventory(&v_meta);
}

/* ---------------------------------------------------------------- other exports of the same files */

static const char *replace_prefix(char out[512], const char *name, const char *from, const char *to)
{
    const size_t n = strlen(from);
    if (strncmp(name, from, n) != 0) return name;
    snprintf(out, 512, "%s%s", to, name + n);
    return out;
}

static const char *nested_neck(char out[512], const char *name)
{
    return replace_prefix(out, name, "tracker_neck.", "tracker_model.tracker_neck.");
}

static const char *detector_only(char out[512], const char *name)
{
    return strncmp(name, "detector_model.", 15) == 0 ? replace_prefix(out, name, "detector_model.", "") : NULL;
}

static const char *short_text(char out[512], const char *name)
{
    return replace_prefix(out, name, "detector_model.text_encoder.text_model.", "detector_model.text_encoder.");
}

static const char *model_around(char out[512], const char *name)
{
    snprintf(out, 512, "model.%s", name);
    return out;
}

static const char *module_around(char out[512], const char *name)
{
    snprintf(out, 512, "module.%s", name);
    return out;
}

static const char *bare_detector(char out[512], const char *name)
{
    return strncmp(name, "detector.", 9) == 0 ? replace_prefix(out, name, "detector.", "") : NULL;
}

static const char *predictor_prefix(char out[512], const char *name)
{
    const char *renamed = replace_prefix(out, name, "detector.", "");
    return renamed == name ? replace_prefix(out, name, "tracker.", "inst_interactive_predictor.model.") : renamed;
}

static const char *old_sam31(char out[512], const char *name)
{
    const char *renamed = replace_prefix(out, name, "detector.", "sam3_model.");
    return renamed == name ? replace_prefix(out, name, "tracker.model.", "sam2_predictor.") : renamed;
}

static const char *without_rotary(char out[512], const char *name)
{
    (void)out;
    return strstr(name, "freqs_cis") ? NULL : name;
}

static const char *without_unused(char out[512], const char *name)
{
    (void)out;
    static const char *const parts[] = { "freqs_cis",      "text_projection", "convs.3.", "points_",
                                         "conv_layers.2.", "norms.2.",        "tracker." };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(name, parts[i])) return NULL;
    return name;
}

static void other_prefixes_are_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        const char *(*rename)(char out[512], const char *name);
        size_t n;
        bool click;
    } cases[] = {
        { "sam3-hf.tsv", nested_neck, 1797, true },      { "sam3-hf.tsv", detector_only, 1468, false },
        { "sam3-hf.tsv", short_text, 1797, true },       { "sam3-hf.tsv", model_around, 1797, true },
        { "sam3-meta.tsv", model_around, 1465, true },   { "sam3-meta.tsv", module_around, 1465, true },
        { "sam3-meta.tsv", bare_detector, 1156, false }, { "sam3-meta.tsv", predictor_prefix, 1465, true },
        { "sam31-meta.tsv", old_sam31, 1623, true },     { "sam31-meta.tsv", module_around, 1623, true },
        { "sam3-meta.tsv", without_rotary, 1433, true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static inventory v;
        opened o;
        read_inventory(&v, cases[i].file);
        open_inventory(&o, &v, cases[i].rename);
        assert_int_equal(o.cat.n, cases[i].n);
        assert_int_equal(o.binding.has[ST_PART_CLICK], cases[i].click);
        check_published(&o.dims);
        close_inventory(&o);
        free_inventory(&v);
    }
}

static void known_tensors_may_be_absent(void **state)
{
    (void)state;
    static inventory v;
    opened o;
    read_inventory(&v, "sam3-meta.tsv");
    open_inventory(&o, &v, without_unused);
    assert_false(o.binding.has[ST_PART_CLICK]);
    assert_false(o.binding.has[ST_PART_TRACK]);
    assert_true(o.cat.n < 1156);
    for (size_t i = 0; i < o.binding.n; i++) assert_int_not_equal(st_row_need(o.binding.slots[i].row), ST_NEED_KNOWN);
    close_inventory(&o);
    free_inventory(&v);
}

static const char *one_renamed(char out[512], const char *name)
{
    return replace_prefix(out, name, "detector.geometry_encoder.", "model.geometry_encoder.");
}

static const char *one_more(char out[512], const char *name)
{
    return replace_prefix(out, name, "tracker.obj_ptr_tpos_proj.", "tracker.obj_ptr_tpos_projection.");
}

/* A prefix on some tensors only is not stripped; what does not fit is named. */
static void partial_prefixes_are_refused(void **state)
{
    (void)state;
    static inventory v;
    opened o;
    st_error err = { 0 };
    read_inventory(&v, "sam3-meta.tsv");
    assert_int_equal(try_open(&o, &v, one_renamed, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(
        err.message, "\"detector.geometry_encoder.label_embed.weight\" (expected [2, 256]) and 69 more are missing"));
    assert_non_null(strstr(err.message, "\"model.geometry_encoder.boxes_direct_project.bias\", which is unknown"));
    close_inventory(&o);
    assert_int_equal(try_open(&o, &v, one_more, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "\"tracker.obj_ptr_tpos_projection.bias\""));
    close_inventory(&o);
    free_inventory(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meta_sam3_falls_in_classes),   cmocka_unit_test(hf_sam3_falls_in_classes),
        cmocka_unit_test(meta_sam31_falls_in_classes),  cmocka_unit_test(both_layouts_hold_the_same_tensors),
        cmocka_unit_test(other_prefixes_are_accepted),  cmocka_unit_test(known_tensors_may_be_absent),
        cmocka_unit_test(partial_prefixes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
