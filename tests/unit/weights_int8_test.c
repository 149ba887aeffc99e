/* weights_int8_test.c: checkpoints written again with int8 matrices: what comes back is within half a step of what went in, in every layout, and all else is there bit
 * for bit; what a file says of itself travels along; failures leave no file. Then quantised files that lie: refused, with the name of the tensor.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "base/mem.h"
#include "weights/int8_write.h"
#include "weights/weights.h"
#include "weights_model.h"

#define GOLDEN ST_SOURCE_DIR "/tests/golden/data/"

static int set_up(void **state)
{
    static temp_folder folder;
    temp_folder_make(&folder);
    *state = &folder;
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_remove(*state);
    return 0;
}

static st_weights *open_path(const char *path)
{
    st_weights *w = NULL;
    st_error err = { 0 };
    if (st_weights_open(&w, path, NULL, &err) != ST_OK) fail_msg("%s", err.message);
    return w;
}

static st_weights *open_ok(const temp_folder *t, const char *name)
{
    char *path = temp_path(t, name);
    st_weights *w = open_path(path);
    free(path);
    return w;
}

/* ---------------------------------------------------------------- writing */

/* What the writer asks and tells. */
typedef struct choice {
    const char *never;  /* layers whose name holds this stay */
    const char *unasked; /* nor are these asked about */
    bool smooth;
    st_cancel *cancel;
    size_t cancel_at, n_chosen, n_int8, n_kept;
    bool no_about, cancel_late;
} choice;

static bool holds(const char *name, const char *part) { return part && strstr(name, part); }

static bool wants(void *user, const char *canonical)
{
    const choice *c = user;
    return !holds(canonical, c->unasked);
}

/* Different in every layer, so that a piece of a packed tensor with another's smoothing is seen. */
static float smooth_of(const char *canonical, size_t column) { return 1.0f + (float)((column + (size_t)canonical[strlen(canonical) - 8]) % 5) / 4.0f; }

static bool choose(void *user, const char *canonical, const float *w, size_t n_out, size_t n_in, float *smooth)
{
    choice *c = user;
    assert_false(holds(canonical, c->unasked));
    assert_true(n_out > 0 && n_in > 0 && isfinite(w[n_out * n_in - 1]));
    for (size_t i = 0; i < n_in; i++) {
        assert_true(smooth[i] == 1.0f);
        if (c->smooth) smooth[i] = smooth_of(canonical, i);
    }
    if (++c->n_chosen == c->cancel_at) st_cancel_set(c->cancel);
    return !holds(canonical, c->never);
}

static void settled(void *user, const char *canonical, bool int8)
{
    choice *c = user;
    assert_false(int8 && holds(canonical, c->never));
    *(int8 ? &c->n_int8 : &c->n_kept) += 1;
}

static json_t *about(void *user)
{
    const choice *c = user;
    if (c->cancel_late) st_cancel_set(c->cancel);
    return c->no_about ? NULL : json_pack("{s:s}", "kind", "a test");
}

static st_status write_int8(st_weights *source, const temp_folder *t, const char *name, choice *c, st_error *err)
{
    char *path = temp_path(t, name);
    const st_quantizer how = { wants, choose, settled, about, c, c->cancel };
    const st_status status = st_weights_write_int8(source, path, &how, err);
    free(path);
    return status;
}

static const float *values_of(st_weights *w, const char *canonical)
{
    const float *values;
    st_error err = { 0 };
    if (st_weights_f32(w, &values, canonical, &err) != ST_OK) fail_msg("%s: %s", canonical, err.message);
    return values;
}

static bool is_int8(st_weights *w, st_int8_view *view, const char *canonical)
{
    st_error err = { 0 };
    if (st_weights_int8(w, view, NULL, canonical, &err) != ST_OK) fail_msg("%s: %s", canonical, err.message);
    return view->values != NULL;
}

/* A quantised layer against its source: half a step of its row and column, and exactly what values, scale and smoothing stand for. */
static void check_layer(const char *name, const st_int8_view *view, const float *want, const float *got, size_t n_out, size_t n_in, bool smooth)
{
    assert_true(smooth == (view->smooth != NULL));
    for (size_t r = 0; r < n_out; r++) {
        int32_t sum = 0, most = 0;
        bool empty = true;
        for (size_t c = 0; c < n_in; c++) {
            const int q = view->values[r * n_in + c];
            const float s = view->smooth ? view->smooth[c] : 1.0f;
            if (view->smooth) assert_true(s == smooth_of(name, c));
            const double step = (double)view->scale[r] * (double)s, at = (double)want[r * n_in + c];
            if (!(fabs((double)got[r * n_in + c] - at) <= 0.5001 * step)) fail_msg("%s[%zu][%zu]: %g, expected %g, step %g", name, r, c, (double)got[r * n_in + c], at, step);
            assert_true(fabs((double)got[r * n_in + c] - (double)q * step) <= 1e-6 * step * abs(q));
            sum += q;
            most = abs(q) > most ? abs(q) : most;
            empty = empty && at == 0.0;
        }
        if (view->sums[r] != sum) fail_msg("%s: row %zu adds up to %d, expected %d", name, r, (int)view->sums[r], (int)sum);
        assert_int_equal(most, empty ? 0 : 127); /* the whole range is used, and -128 is not */
    }
}

/* Every canonical tensor of the copy against the source's. Returns how many are int8. */
static size_t check_copy(st_weights *source, st_weights *copy, const choice *how)
{
    uint64_t sizes[ST_N_SIZES];
    size_t n_int8 = 0, n_same = 0;
    st_weights_info info;
    st_weights_get_info(source, &info);
    assert_true(st_sizes_from_dims(sizes, st_weights_dims(source)));
    for (size_t r = 0; r < st_n_manifest_rows; r++) {
        const st_row *row = &st_manifest_rows[r];
        if (!st_row_in(row, strcmp(info.version, "sam3.1") == 0)) continue;
        for (uint32_t k = 0; k < (row->repeat ? (uint32_t)sizes[row->repeat] : 1); k++) {
            char name[ST_MAX_PUBLISHED_NAME];
            st_int8_view view, none;
            if (!st_row_canonical(name, row, k) || st_row_need(row) == ST_NEED_KNOWN) continue;
            const size_t n = st_weights_n_elements(source, name);
            assert_int_equal(st_weights_n_elements(copy, name), n);
            if (n == 0) continue;
            const float *want = values_of(source, name), *got = values_of(copy, name);
            assert_false(is_int8(source, &none, name));
            if (!is_int8(copy, &view, name)) {
                assert_memory_equal(got, want, n * sizeof *got);
                n_same++;
                continue;
            }
            assert_int_equal(row->rank, 2);
            const size_t n_out = (size_t)(row->shape[0] < 0 ? sizes[~row->shape[0]] : (uint64_t)row->shape[0]);
            assert_false(holds(name, how->never) || holds(name, how->unasked));
            check_layer(name, &view, want, got, n_out, n / n_out, how->smooth);
            n_int8++;
        }
    }
    assert_true(n_same > 100);
    return n_int8;
}

static const char *const models[] = { GOLDEN "tiny-meta/model.safetensors", GOLDEN "tiny-hf", GOLDEN "tiny-sam31/model.safetensors",
                                      GOLDEN "tiny-meta-click/model.safetensors", GOLDEN "tiny-hf-click" };
enum { N_MODELS = sizeof models / sizeof models[0] };

static void values_come_back_within_half_a_step(void **state)
{
    temp_folder *t = *state;
    for (size_t i = 0; i < 2 * N_MODELS; i++) {
        choice how = { .smooth = i % 2, .never = "fc2", .unasked = "text." };
        st_error err = { 0 };
        st_weights *source = open_path(models[i / 2]);
        if (write_int8(source, t, "copy.safetensors", &how, &err) != ST_OK) fail_msg("%s", err.message);
        st_weights *copy = open_ok(t, "copy.safetensors");
        assert_int_equal(check_copy(source, copy, &how), how.n_int8);
        assert_true(how.n_int8 > 50 && how.n_kept >= 3);
        assert_int_equal(how.n_chosen, how.n_int8 + how.n_kept);
        st_weights_free(copy);
        st_weights_free(source);
        assert_int_equal(temp_count(t), 1);
    }
}

static void the_file_says_what_it_is(void **state)
{
    temp_folder *t = *state;
    for (size_t i = 0; i < N_MODELS; i++) {
        choice how = { .smooth = true };
        st_error err = { 0 };
        st_weights *source = open_path(models[i]);
        assert_int_equal(write_int8(source, t, "copy.safetensors", &how, &err), ST_OK);
        st_weights *copy = open_ok(t, "copy.safetensors");
        st_weights_info a, b;
        st_weights_get_info(source, &a);
        st_weights_get_info(copy, &b);
        assert_string_not_equal(a.id, b.id);
        assert_string_equal(a.layout, b.layout);
        assert_string_equal(a.version, b.version);
        assert_int_equal(a.n_int8, 0);
        assert_true(b.n_int8 > 0);
        assert_non_null(strstr(b.dtypes, "I8"));
        assert_non_null(strstr(b.about, "\"kind\":\"a test\""));
        /* heads, windows and the like stand in a config.json beside the source; the copy has no such file */
        assert_memory_equal(st_weights_dims(copy), st_weights_dims(source), sizeof(st_dims));
        st_weights_free(copy);
        st_weights_free(source);
    }
}

/* q, k and v of the published tensor become int8 together or not at all. */
static void packed_layers_go_together(void **state)
{
    temp_folder *t = *state;
    choice how = { .never = "vit.blocks.1.attn.k" };
    st_error err = { 0 };
    st_weights *source = open_path(models[0]);
    assert_int_equal(write_int8(source, t, "copy.safetensors", &how, &err), ST_OK);
    st_weights *copy = open_ok(t, "copy.safetensors");
    st_int8_view view;
    assert_int_equal(how.n_kept, 3);
    assert_int_equal(check_copy(source, copy, &how), how.n_int8);
    assert_false(is_int8(copy, &view, "vit.blocks.1.attn.q.weight"));
    assert_false(is_int8(copy, &view, "vit.blocks.1.attn.v.weight"));
    assert_true(is_int8(copy, &view, "vit.blocks.1.attn.proj.weight"));
    assert_true(is_int8(copy, &view, "vit.blocks.0.attn.k.weight"));
    st_weights_free(copy);
    st_weights_free(source);
}

/* A file that is int8 already is copied: nothing is asked again. */
static void quantised_layers_are_not_asked_about(void **state)
{
    temp_folder *t = *state;
    choice first = { .smooth = true, .never = "mlp" }, second = { .never = "mlp" };
    st_error err = { 0 };
    st_weights *source = open_path(models[1]);
    assert_int_equal(write_int8(source, t, "a.safetensors", &first, &err), ST_OK);
    st_weights *once = open_ok(t, "a.safetensors");
    assert_int_equal(write_int8(once, t, "b.safetensors", &second, &err), ST_OK);
    assert_int_equal(second.n_int8, 0);
    assert_int_equal(second.n_kept, first.n_kept);
    st_weights *twice = open_ok(t, "b.safetensors");
    st_weights_info a, b;
    st_weights_get_info(once, &a);
    st_weights_get_info(twice, &b);
    assert_string_equal(a.id, b.id);
    st_weights_free(twice);
    st_weights_free(once);
    st_weights_free(source);
}

static void layouts_of_one_model_have_one_id(void **state)
{
    temp_folder *t = *state;
    char ids[2][65];
    for (int hf = 0; hf < 2; hf++) {
        tiny_model m;
        choice how = { .smooth = true };
        st_error err = { 0 };
        tiny_make(&m, hf ? ST_LAYOUT_HF : ST_LAYOUT_META, false);
        tiny_write_safetensors(t, hf ? "hf/model.safetensors" : "m.safetensors", &m);
        temp_write_text(t, hf ? "hf/config.json" : "m.json", hf ? tiny_config : tiny_side);
        st_weights *source = open_ok(t, hf ? "hf" : "m.safetensors");
        if (write_int8(source, t, "copy.safetensors", &how, &err) != ST_OK) fail_msg("%s", err.message);
        st_weights *copy = open_ok(t, "copy.safetensors");
        st_weights_info info;
        st_weights_get_info(copy, &info);
        memcpy(ids[hf], info.id, sizeof ids[hf]);
        assert_int_equal(check_copy(source, copy, &how), how.n_int8);
        st_weights_free(copy);
        st_weights_free(source);
        tiny_free(&m);
    }
    assert_string_equal(ids[0], ids[1]);
}

static void failures_leave_no_file(void **state)
{
    temp_folder *t = *state;
    st_error err = { 0 };
    st_weights *source = open_path(models[0]);
    st_cancel *cancel = st_cancel_new();
    assert_non_null(cancel);
    choice stopped = { .cancel = cancel, .cancel_at = 5 }, late = { .cancel = cancel, .cancel_late = true }, silent = { .no_about = true }, fine = { 0 };
    assert_int_equal(write_int8(source, t, "x.safetensors", &stopped, &err), ST_ERR_CANCELLED);
    assert_int_equal(stopped.n_chosen, 5);
    st_cancel_reset(cancel);
    assert_int_equal(write_int8(source, t, "x.safetensors", &late, &err), ST_ERR_CANCELLED);
    assert_int_equal(write_int8(source, t, "x.safetensors", &silent, &err), ST_ERR_NOMEM);
    assert_int_equal(temp_count(t), 0);
    assert_int_equal(write_int8(source, t, "nowhere/x.safetensors", &fine, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "nowhere/x.safetensors"));
    const st_quantizer full = { wants, choose, settled, about, &fine, NULL };
    assert_int_equal(st_weights_write_int8(source, "/dev/full", &full, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
    assert_int_equal(temp_count(t), 0);
    st_cancel_free(cancel);
    st_weights_free(source);
}

/* Every allocation fails once; afterwards all is as before, and the last try goes through. */
static void out_of_memory_leaves_no_file(void **state)
{
    temp_folder *t = *state;
    st_error err = { 0 };
    st_weights *source = open_path(models[4]);
    size_t n_failed = 0;
    for (uint64_t k = 1;; k += k < 40 ? 1 : 37) {
        choice how = { .smooth = true };
        st_mem_fail_after(k);
        const st_status status = write_int8(source, t, "x.safetensors", &how, &err);
        st_mem_fail_after(0);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_int_equal(temp_count(t), 0);
        n_failed++;
    }
    assert_true(n_failed > 40);
    assert_int_equal(temp_count(t), 1);
    st_weights_free(source);
}

/* ---------------------------------------------------------------- reading what others wrote */

#define FC1 "detector.backbone.vision_backbone.trunk.blocks.1.mlp.fc1.weight"
#define QKV "detector.backbone.vision_backbone.trunk.blocks.0.attn.qkv.weight"

static void hand_made_files_are_read_exactly(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    tiny_int8(&m, FC1, 0);
    tiny_int8(&m, QKV, 3);
    tiny_write_safetensors(t, "m.safetensors", &m);
    tiny_write_pt(t, "deflated.pt", &m, false, true);
    static const char *const layers[] = { "vit.blocks.1.mlp.fc1.weight", "vit.blocks.0.attn.q.weight", "vit.blocks.0.attn.k.weight", "vit.blocks.0.attn.v.weight" };
    st_weights *w = open_ok(t, "m.safetensors");
    for (size_t i = 0; i < 4; i++) {
        st_int8_view view;
        const float *got = values_of(w, layers[i]);
        for (size_t e = 0; e < st_weights_n_elements(w, layers[i]); e++) assert_true(got[e] == tiny_value(layers[i], e));
        assert_true(is_int8(w, &view, layers[i]));
        assert_true(view.scale[3] == (i ? 1.0f / 32.0f : 1.0f / 128.0f));
        assert_true(i ? view.smooth[23] == 0.25f : view.smooth == NULL);
    }
    st_weights_free(w);
    tiny_free(&m);
}

/* What opening the model and asking for every tensor says. */
static st_status use_all(const temp_folder *t, const char *name, const tiny_model *m, st_error *err)
{
    uint64_t sizes[ST_N_SIZES];
    char *path = temp_path(t, name);
    st_weights *w = NULL;
    assert_true(st_sizes_from_dims(sizes, &m->dims));
    st_status status = st_weights_open(&w, path, NULL, err);
    for (size_t r = 0; status == ST_OK && r < st_n_manifest_rows; r++) {
        const st_row *row = &st_manifest_rows[r];
        if (!st_row_in(row, m->naming.sam31)) continue;
        for (uint32_t k = 0; status == ST_OK && k < (row->repeat ? (uint32_t)sizes[row->repeat] : 1); k++) {
            char canonical[ST_MAX_PUBLISHED_NAME];
            const float *values;
            st_int8_view view;
            if (!st_row_canonical(canonical, row, k) || st_row_need(row) == ST_NEED_KNOWN || st_weights_n_elements(w, canonical) == 0) continue;
            status = st_weights_int8(w, &view, NULL, canonical, err);
            st_error second = { 0 };
            const st_status as_floats = st_weights_f32(w, &values, canonical, &second);
            if (status == ST_OK && as_floats != ST_OK) {
                status = as_floats;
                *err = second;
            } else if (as_floats == ST_OK) assert_int_equal(status, ST_OK); /* they agree: nobody gets half of a broken matrix */
        }
    }
    st_weights_free(w);
    free(path);
    return status;
}

static void put_float(tiny_model *m, const char *name, size_t at, float value)
{
    tiny_tensor *x = tiny_find(m, name);
    assert_true(x && x->n_bytes >= 4 * at + 4);
    memcpy(x->bytes + 4 * at, &value, 4);
}

static void drop(tiny_model *m, const char *name) { tiny_drop(m, (size_t)(tiny_find(m, name) - m->tensors)); }

static void resize(tiny_model *m, const char *name, uint32_t rank, uint64_t a, uint64_t b)
{
    tiny_tensor *x = tiny_find(m, name);
    x->rank = rank;
    x->shape[0] = a;
    x->shape[1] = b;
    const size_t n = (size_t)(rank == 2 ? a * b : a) * 4;
    unsigned char *bytes = calloc(n + 1, 1);
    assert_non_null(bytes);
    memcpy(bytes, x->bytes, n < x->n_bytes ? n : x->n_bytes);
    free(x->bytes);
    x->bytes = bytes;
    x->n_bytes = n;
}

/* Turns any tensor into bytes, companions or not. */
static void as_bytes(tiny_model *m, const char *name)
{
    tiny_tensor *x = tiny_find(m, name);
    assert_non_null(x);
    x->n_bytes /= st_dtype_size(x->dtype);
    x->dtype = ST_DTYPE_I8;
}

static void lie(tiny_model *m, int how)
{
    tiny_int8(m, FC1, 0);
    tiny_int8(m, QKV, 3);
    switch (how) {
    case 0: drop(m, FC1 "_scale"); break;
    case 1: drop(m, QKV "_scale"); break;
    case 2: resize(m, FC1 "_scale", 1, 27, 0); break;
    case 3: resize(m, QKV "_scale", 1, 24, 0); break; /* of one piece */
    case 4: resize(m, FC1 "_scale", 2, 28, 1); break;
    case 5: put_float(m, FC1 "_scale", 27, NAN); break;
    case 6: put_float(m, QKV "_scale", 71, INFINITY); break;
    case 7: resize(m, QKV "_smooth", 2, 1, 24); break;
    case 8: resize(m, QKV "_smooth", 2, 3, 23); break;
    case 9: resize(m, QKV "_smooth", 1, 72, 0); break;
    case 10: put_float(m, QKV "_smooth", 71, -INFINITY); break;
    case 11: put_float(m, QKV "_smooth", 25, NAN); break;
    case 12: put_float(m, QKV "_scale", 30, 3e38f), put_float(m, QKV "_smooth", 24 + 7, 3e38f); break;
    case 13: as_bytes(m, "detector.segmentation_head.pixel_decoder.conv_layers.0.weight"); break;
    case 14: as_bytes(m, "detector.backbone.vision_backbone.trunk.blocks.1.mlp.fc1.bias"); break;
    case 15: as_bytes(m, "detector.backbone.vision_backbone.trunk.pos_embed"); break;
    case 16: as_bytes(m, "detector.backbone.vision_backbone.trunk.blocks.2.mlp.fc1.weight"); break;
    case 17: as_bytes(m, FC1 "_scale"); break;
    case 18: as_bytes(m, QKV "_smooth"); break;
    case 19: tiny_add(m, "detector.backbone.vision_backbone.trunk.blocks.2.mlp.fc1.weight_scale", ST_DTYPE_F32, 1, (uint64_t[]){ 28 }); break;
    case 20: tiny_add(m, FC1 "_smooth_smooth", ST_DTYPE_F32, 2, (uint64_t[]){ 1, 24 }); break;
    case 21: tiny_find(m, FC1)->dtype = ST_DTYPE_U8; break;
    default: break;
    }
}

static const struct {
    st_status status;
    const char *says;
} lies[] = {
    { ST_ERR_FORMAT, "tensor \"" FC1 "\": I8, but its scales \"" FC1 "_scale\" are missing" },
    { ST_ERR_FORMAT, "tensor \"" QKV "\": I8, but its scales \"" QKV "_scale\" are missing" },
    { ST_ERR_FORMAT, "tensor \"" FC1 "_scale\": expected shape [28], found [27]" },
    { ST_ERR_FORMAT, "tensor \"" QKV "_scale\": expected shape [72], found [24]" },
    { ST_ERR_FORMAT, "tensor \"" FC1 "_scale\": expected shape [28], found [28, 1]" },
    { ST_ERR_NONFINITE, "tensor \"" FC1 "_scale\": value 27 is NaN or infinite" },
    { ST_ERR_NONFINITE, "tensor \"" QKV "_scale\": value 71 is NaN or infinite" },
    { ST_ERR_FORMAT, "tensor \"" QKV "_smooth\": expected shape [3, 24], found [1, 24]" },
    { ST_ERR_FORMAT, "tensor \"" QKV "_smooth\": expected shape [3, 24], found [3, 23]" },
    { ST_ERR_FORMAT, "tensor \"" QKV "_smooth\": expected shape [3, 24], found [72]" },
    { ST_ERR_NONFINITE, "tensor \"" QKV "_smooth\": value 71 is NaN or infinite" },
    { ST_ERR_NONFINITE, "tensor \"" QKV "_smooth\": value 25 is NaN or infinite" },
    { ST_ERR_NONFINITE, "tensor \"" QKV "\" (vit.blocks.0.attn.k.weight)" },
    { ST_ERR_FORMAT, "tensor \"detector.segmentation_head.pixel_decoder.conv_layers.0.weight\": I8" },
    { ST_ERR_FORMAT, "tensor \"detector.backbone.vision_backbone.trunk.blocks.1.mlp.fc1.bias\": I8" },
    { ST_ERR_FORMAT, "tensor \"detector.backbone.vision_backbone.trunk.pos_embed\": I8" },
    { ST_ERR_FORMAT, "tensor \"detector.backbone.vision_backbone.trunk.blocks.2.mlp.fc1.weight\": I8, but its scales" },
    { ST_ERR_FORMAT, "tensor \"" FC1 "_scale\": expected real numbers (F32, F16, BF16 or F64), found I8" },
    { ST_ERR_FORMAT, "tensor \"" QKV "_smooth\": expected real numbers (F32, F16, BF16 or F64), found I8" },
    { ST_ERR_FORMAT, "tensor \"detector.backbone.vision_backbone.trunk.blocks.2.mlp.fc1.weight_scale\" of shape [28] is unknown" },
    { ST_ERR_FORMAT, "tensor \"" FC1 "_smooth_smooth\" of shape [1, 24] is unknown" },
    { ST_ERR_FORMAT, "tensor \"" FC1 "\": expected real numbers (F32, F16, BF16 or F64), found U8" },
};
enum { N_LIES = sizeof lies / sizeof lies[0] };

static void files_that_lie_are_refused_by_name(void **state)
{
    temp_folder *t = *state;
    for (int i = 0; i <= N_LIES; i++) {
        tiny_model m;
        st_error err = { 0 };
        tiny_make(&m, ST_LAYOUT_META, false);
        lie(&m, i);
        tiny_write_safetensors(t, "m.safetensors", &m);
        const st_status status = use_all(t, "m.safetensors", &m, &err);
        if (i == N_LIES) assert_int_equal(status, ST_OK); /* the truth */
        else if (status != lies[i].status || !strstr(err.message, lies[i].says)) fail_msg("%d: expected \"%s\", got %d: %s", i, lies[i].says, (int)status, err.message);
        tiny_free(&m);
    }
}

static void cut_files_are_refused(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_bytes file = { 0 };
    tiny_make(&m, ST_LAYOUT_META, false);
    lie(&m, N_LIES);
    tiny_safetensors(&file, &m, 0, m.n, 0);
    for (size_t i = 0; i < 40; i++) {
        st_error err = { 0 };
        temp_write(t, "m.safetensors", file.data, i < 20 ? file.n * i / 20 : file.n - 1 - (i - 20) * (i - 20));
        assert_int_equal(use_all(t, "m.safetensors", &m, &err), ST_ERR_FORMAT);
    }
    free(file.data);
    tiny_free(&m);
}

/* Each value of the companions counts, wherever it stands. */
static void a_changed_scale_changes_the_id(void **state)
{
    temp_folder *t = *state;
    char first[65] = "";
    static const struct {
        const char *name;
        size_t at;
    } changes[] = { { NULL, 0 }, { FC1 "_scale", 0 }, { FC1 "_scale", 27 }, { QKV "_scale", 0 }, { QKV "_scale", 24 }, { QKV "_scale", 71 },
                    { QKV "_smooth", 0 }, { QKV "_smooth", 30 }, { QKV "_smooth", 71 } };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        tiny_model m;
        tiny_make(&m, ST_LAYOUT_META, false);
        lie(&m, N_LIES);
        if (i) put_float(&m, changes[i].name, changes[i].at, 0.3f);
        tiny_write_safetensors(t, "m.safetensors", &m);
        st_weights *w = open_ok(t, "m.safetensors");
        st_weights_info info;
        st_weights_get_info(w, &info);
        if (i) assert_string_not_equal(info.id, first);
        else memcpy(first, info.id, sizeof first);
        st_weights_free(w);
        tiny_free(&m);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_come_back_within_half_a_step),
        TEST(the_file_says_what_it_is),
        TEST(packed_layers_go_together),
        TEST(quantised_layers_are_not_asked_about),
        TEST(layouts_of_one_model_have_one_id),
        TEST(failures_leave_no_file),
        TEST(out_of_memory_leaves_no_file),
        TEST(hand_made_files_are_read_exactly),
        TEST(files_that_lie_are_refused_by_name),
        TEST(cut_files_are_refused),
        TEST(a_changed_scale_changes_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
