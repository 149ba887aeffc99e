/* weights_values_test.c: the same weights from every container, layout and type: one model id, equal values;
 * conversions against exact arithmetic; values that are not finite found wherever they stand; dropped pages; many
 * threads at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include "base/mem.h"
#include "weights/weights.h"
#include "weights_model.h"

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

static st_weights *open_ok(const temp_folder *t, const char *name)
{
    char *path = temp_path(t, name);
    st_weights *w = NULL;
    st_error err = { 0 };
    if (st_weights_open(&w, path, NULL, &err) != ST_OK) fail_msg("%s", err.message);
    free(path);
    return w;
}

static st_status open_fails(const temp_folder *t, const char *name, st_error *err)
{
    char *path = temp_path(t, name);
    st_weights *w = NULL;
    const st_status status = st_weights_open(&w, path, NULL, err);
    free(path);
    assert_int_not_equal(status, ST_OK);
    assert_null(w);
    return status;
}

/* Every canonical tensor of the model holds the values that it was made with. */
static void check_values(st_weights *w, const tiny_model *m)
{
    uint64_t sizes[ST_N_SIZES];
    size_t n_checked = 0;
    assert_true(st_sizes_from_dims(sizes, &m->dims));
    for (size_t r = 0; r < st_n_manifest_rows; r++) {
        const st_row *row = &st_manifest_rows[r];
        if (!st_row_in(row, m->naming.sam31)) continue;
        for (uint32_t k = 0; k < (row->repeat ? (uint32_t)sizes[row->repeat] : 1); k++) {
            char canonical[ST_MAX_PUBLISHED_NAME];
            const float *values;
            st_error err = { 0 };
            if (!st_row_canonical(canonical, row, k) || st_row_need(row) == ST_NEED_KNOWN) continue;
            const size_t n = st_weights_n_elements(w, canonical);
            if (n == 0) fail_msg("%s is not there", canonical);
            if (st_weights_f32(w, &values, canonical, &err) != ST_OK) fail_msg("%s", err.message);
            for (size_t i = 0; i < n; i++)
                if (values[i] != tiny_value(canonical, i))
                    fail_msg("%s[%zu] = %g, expected %g", canonical, i, (double)values[i],
                             (double)tiny_value(canonical, i));
            n_checked++;
        }
    }
    assert_true(n_checked > 400);
}

static void check_file(const temp_folder *t, const char *name, const tiny_model *m, char id[65], const char *container,
                       const char *dtypes)
{
    st_weights *w = open_ok(t, name);
    st_weights_info info;
    st_weights_get_info(w, &info);
    assert_int_equal(strlen(info.id), 64);
    if (id[0]) assert_string_equal(info.id, id);
    else memcpy(id, info.id, 65);
    assert_string_equal(info.container, container);
    assert_string_equal(info.layout, m->naming.layout == ST_LAYOUT_HF ? "hf" : "meta");
    assert_string_equal(info.version, m->naming.sam31 ? "sam3.1" : "sam3");
    if (!strstr(dtypes, "-")) assert_string_equal(info.dtypes, dtypes);
    check_values(w, m);
    st_weights_free(w);
}

static void one_id_in_every_container_and_layout(void **state)
{
    temp_folder *t = *state;
    char id[65] = "";
    tiny_model meta, hf;
    tiny_make(&meta, ST_LAYOUT_META, false);
    tiny_make(&hf, ST_LAYOUT_HF, false);
    tiny_write_safetensors(t, "meta.safetensors", &meta);
    tiny_write_pt(t, "meta.pt", &meta, false, false);
    tiny_write_pt(t, "wrapped.pt", &meta, true, false);
    tiny_write_pt(t, "deflated.pt", &meta, false, true);
    temp_write_text(t, "meta.json", tiny_side);
    tiny_write_safetensors(t, "hf/model.safetensors", &hf);
    temp_write_text(t, "hf/config.json", tiny_config);
    tiny_write_sharded(t, "sharded", &hf, 3);
    temp_write_text(t, "sharded/config.json", tiny_config);
    tiny_write_sharded(t, "meta-sharded", &meta, 2);
    tiny_write_pt(t, "hf.pt", &hf, true, false);
    check_file(t, "meta.safetensors", &meta, id, "safetensors", "F32 + C64");
    check_file(t, "meta.pt", &meta, id, "pytorch zip", "F32 + C64");
    check_file(t, "wrapped.pt", &meta, id, "pytorch zip", "F32 + C64");
    check_file(t, "deflated.pt", &meta, id, "pytorch zip", "F32 + C64");
    check_file(t, "hf", &hf, id, "safetensors", "F32 + I64");
    check_file(t, "hf/", &hf, id, "safetensors", "F32 + I64");
    check_file(t, "hf/model.safetensors", &hf, id, "safetensors", "F32 + I64");
    check_file(t, "sharded", &hf, id, "safetensors (sharded)", "F32 + I64");
    check_file(t, "sharded/model.safetensors.index.json", &hf, id, "safetensors (sharded)", "F32 + I64");
    check_file(t, "meta-sharded", &meta, id, "safetensors (sharded)", "F32 + C64");
    check_file(t, "hf.pt", &hf, id, "pytorch zip", "F32 + I64");
    static const st_dtype types[] = { ST_DTYPE_F16, ST_DTYPE_BF16, ST_DTYPE_F64 };
    for (size_t i = 0; i < 3; i++) { /* the values are exact in all of them */
        tiny_model other;
        tiny_make(&other, ST_LAYOUT_META, false);
        tiny_convert(&other, types[i]);
        tiny_write_safetensors(t, "other.safetensors", &other);
        tiny_write_pt(t, "other.pt", &other, false, false);
        check_file(t, "other.safetensors", &other, id, "safetensors", "-");
        check_file(t, "other.pt", &other, id, "pytorch zip", "-");
        tiny_free(&other);
    }
    tiny_free(&hf);
    tiny_free(&meta);
}

static void sam31_opens_in_every_container(void **state)
{
    temp_folder *t = *state;
    char id[65] = "";
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, true);
    tiny_write_safetensors(t, "m.safetensors", &m);
    tiny_write_pt(t, "m.pt", &m, false, false);
    check_file(t, "m.safetensors", &m, id, "safetensors", "F32 + C64");
    check_file(t, "m.pt", &m, id, "pytorch zip", "F32 + C64");
    st_weights *w = open_ok(t, "m.pt");
    const st_dims *d = st_weights_dims(w);
    assert_true(d->joint_score);
    assert_true(d->has_click && d->has_track);
    assert_int_equal(d->neck_levels, 3);
    assert_int_equal(d->image_size, 56); /* from the rotary tables */
    assert_int_equal(d->window, 5);
    assert_true(d->vit_global[1] && !d->vit_global[0] && !d->vit_global[2]);
    st_weights_free(w);
    tiny_free(&m);
}

/* Any change to any tensor that a stage uses changes the id. */
static void the_id_follows_the_values(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    char first[65] = "";
    tiny_make(&m, ST_LAYOUT_HF, false);
    for (size_t i = 0; i < m.n; i += 7) {
        const char *name = m.tensors[i].name;
        if (m.tensors[i].dtype != ST_DTYPE_F32 || strstr(name, "fpn_layers.3.") || strstr(name, "conv_layers.2.") ||
            strstr(name, "norms.2.") || strstr(name, "text_encoder.text_projection"))
            continue;
        m.tensors[i].bytes[m.tensors[i].n_bytes - 1] ^= 0x80; /* sign of the last value */
        tiny_write_safetensors(t, "a.safetensors", &m);
        st_weights *w = open_ok(t, "a.safetensors");
        st_weights_info info;
        st_weights_get_info(w, &info);
        assert_string_not_equal(info.id, first);
        memcpy(first, info.id, 65);
        st_weights_free(w);
    }
    tiny_free(&m);
}

static void info_adds_up(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    tiny_write_safetensors(t, "a.safetensors", &m);
    st_weights *w = open_ok(t, "a.safetensors");
    st_weights_info info;
    st_weights_get_info(w, &info);
    uint64_t picture = 0, vit = 0, text = 0, tensors = 0;
    for (size_t i = 0; i < info.n_parts; i++) {
        if (i < ST_N_PICTURE_PARTS) picture += info.parts[i].n_elements;
        if (i == 0) vit = info.parts[i].n_elements;
        if (strcmp(info.parts[i].name, "text encoder") == 0) text = info.parts[i].n_elements;
        tensors += info.parts[i].n_tensors;
    }
    assert_int_equal(info.bytes_mapped, 4 * picture);
    assert_int_equal(info.bytes_converted, 0);
    assert_int_equal(info.n_half, 0);
    assert_int_equal(info.bytes_vit_mapped, 4 * vit);
    assert_int_equal(info.bytes_text_mapped, 4 * text);
    assert_int_equal(info.bytes_token_table, 4 * 50 * 12);
    assert_true(tensors < m.n && info.n_unused < m.n);
    for (size_t i = 1; i < info.n_unused; i++) assert_true(strcmp(info.unused[i - 1], info.unused[i]) < 0);
    for (size_t i = 0; i < info.n_unused; i++) assert_non_null(tiny_find(&m, info.unused[i]));
    st_weights_free(w);
    tiny_convert(&m, ST_DTYPE_F16);
    tiny_write_safetensors(t, "a.safetensors", &m);
    w = open_ok(t, "a.safetensors");
    st_weights_get_info(w, &info);
    assert_true(info.n_half > picture / 3 && info.n_half < picture);
    assert_int_equal(info.bytes_mapped, 2 * info.n_half);
    assert_int_equal(info.bytes_converted, 4 * (picture - info.n_half - 50 * 12)); /* rows of the token table stay 16-bit, too */
    st_weights_free(w);
    tiny_free(&m);
}

/* Data may start at any byte: what is not aligned is copied, with the same values. */
static void unaligned_data_are_copied(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    for (size_t shift = 0; shift < 4; shift++) {
        tiny_bytes file = { 0 };
        char id[65] = "";
        tiny_safetensors(&file, &m, 0, m.n, shift);
        temp_write(t, "a.safetensors", file.data, file.n);
        free(file.data);
        check_file(t, "a.safetensors", &m, id, "safetensors", "F32 + C64");
        st_weights *w = open_ok(t, "a.safetensors");
        st_weights_info info;
        st_weights_get_info(w, &info);
        if (shift == 0) assert_int_equal(info.bytes_converted, 0);
        else assert_int_equal(info.bytes_mapped, 0);
        st_weights_free(w);
    }
    tiny_free(&m);
}

/* ---------------------------------------------------------------- conversions */

static void every_half_is_exact(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t bits = (uint16_t)h;
        const int exponent = (int)(h >> 10 & 31);
        const double mantissa = h & 0x3FF;
        float got;
        const size_t bad = st_f32_from(&got, &bits, 1, ST_DTYPE_F16);
        if (exponent == 31) {
            assert_int_equal(bad, 0);
            continue;
        }
        double expected = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        if (h & 0x8000) expected = -expected;
        assert_int_equal(bad, 1);
        assert_true((double)got == expected && !signbit(got) == !signbit(expected));
    }
}

static void every_brain_float_is_exact(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t bits = (uint16_t)h;
        const uint32_t wide = h << 16;
        float got, expected;
        const size_t bad = st_f32_from(&got, &bits, 1, ST_DTYPE_BF16);
        memcpy(&expected, &wide, 4);
        assert_int_equal(bad, isfinite(expected) ? 1 : 0);
        if (isfinite(expected)) assert_memory_equal(&got, &expected, 4);
    }
}

static void doubles_are_rounded(void **state)
{
    (void)state;
    const double in[] = { 0.1, -0.0, 1e-50, 3.4028234663852886e38, 3.4028235677973366e38, 1e300, NAN, INFINITY };
    float out[8];
    assert_int_equal(st_f32_from(out, in, 4, ST_DTYPE_F64), 4);
    assert_true(out[0] == 0.1f && signbit(out[1]) && out[2] == 0.0f && out[3] == 3.4028234663852886e38f);
    for (size_t i = 4; i < 8; i++)
        assert_int_equal(st_f32_from(out, in + i, 1, ST_DTYPE_F64), 0); /* out of fp32's range, or not finite */
}

static void non_finite_values_are_found_anywhere(void **state)
{
    (void)state;
    enum { N = 1300 };
    static float values[N], out[N];
    const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < N; i++) values[i] = (float)i - 600.0f;
    values[3] = 3.4028234663852886e38f; /* the largest finite ones are fine */
    values[4] = -3.4028234663852886e38f;
    values[5] = 1e-45f;
    assert_int_equal(st_f32_first_nonfinite(values, N), N);
    assert_int_equal(st_f32_first_nonfinite(values, 0), 0);
    for (size_t i = 0; i < N; i++) {
        const float kept = values[i];
        values[i] = bad[i % 4];
        assert_int_equal(st_f32_first_nonfinite(values, N), i);
        assert_int_equal(st_f32_from(out, values, N, ST_DTYPE_F32), i);
        values[i] = kept;
    }
}

/* The token table: a piece at a time, then rows, and no copy of the whole. */
static void a_table_is_looked_through_and_read_by_rows(void **state)
{
    temp_folder *t = *state;
    enum { ROWS = 50, COLS = 12 };
    for (int spoilt = 0; spoilt < 2; spoilt++) {
        tiny_model m;
        tiny_make(&m, ST_LAYOUT_META, false);
        tiny_convert(&m, ST_DTYPE_F16);
        tiny_tensor *x = tiny_find(&m, "detector.backbone.language_backbone.encoder.token_embedding.weight");
        assert_non_null(x);
        if (spoilt) memcpy(x->bytes + 2 * (ROWS * COLS - 1), (unsigned char[2]){ 0, 0x7C }, 2);
        tiny_write_safetensors(t, "a.safetensors", &m);
        st_weights *w = open_ok(t, "a.safetensors");
        const float *whole;
        float row[COLS];
        st_error err = { 0 };
        assert_false(st_weights_in_place(w, "text.token_embed"));
        assert_int_equal(st_weights_look_through(w, "text.token_embed", &err), spoilt ? ST_ERR_NONFINITE : ST_OK);
        if (spoilt) {
            assert_non_null(strstr(err.message, "(text.token_embed): value 599 of 600"));
        } else {
            assert_int_equal(st_weights_f32(w, &whole, "text.token_embed", &err), ST_OK);
            for (size_t r = 0; r < ROWS; r++) {
                st_weights_read(w, "text.token_embed", r * COLS, COLS, row);
                assert_memory_equal(row, whole + r * COLS, sizeof row);
            }
        }
        assert_int_equal(st_weights_look_through(w, "no.such", &err), ST_ERR_INVALID_ARG);
        st_weights_free(w);
        tiny_free(&m);
    }
}

/* Matrices of linear layers stay in 16 bits, looked through once; all else does not. */
static void matrices_stay_in_16_bits(void **state)
{
    temp_folder *t = *state;
    static const st_dtype types[] = { ST_DTYPE_F16, ST_DTYPE_BF16 };
    for (int spoilt = 0; spoilt < 2; spoilt++)
        for (int i = 0; i < 2; i++) {
            tiny_model m;
            tiny_make(&m, ST_LAYOUT_META, false);
            tiny_convert(&m, types[i]);
            tiny_tensor *x = tiny_find(&m, "detector.backbone.vision_backbone.trunk.blocks.1.mlp.fc2.weight");
            assert_non_null(x);
            const size_t n = x->n_bytes / 2;
            if (spoilt) memcpy(x->bytes + 2 * (n - 1), i ? (unsigned char[2]){ 0x80, 0x7F } : (unsigned char[2]){ 0, 0x7C }, 2);
            tiny_write_safetensors(t, "a.safetensors", &m);
            st_weights *w = open_ok(t, "a.safetensors");
            st_half_view view;
            const float *whole;
            st_error err = { 0 };
            for (int again = 0; again < 2; again++)
                assert_int_equal(st_weights_half(w, &view, "vit.blocks.1.mlp.fc2.weight", &err), spoilt ? ST_ERR_NONFINITE : ST_OK);
            if (spoilt) {
                assert_null(view.values);
                assert_non_null(strstr(err.message, "fc2.weight"));
            } else {
                assert_int_equal(view.brain, i);
                assert_memory_equal(view.values, x->bytes, x->n_bytes);
                assert_int_equal(st_weights_f32(w, &whole, "vit.blocks.1.mlp.fc2.weight", &err), ST_OK); /* who wants floats gets them */
                assert_int_equal(st_weights_half(w, &view, "vit.blocks.1.mlp.fc2.bias", &err), ST_OK);
                assert_null(view.values);
                assert_int_equal(st_weights_half(w, &view, "vit.patch.weight", &err), ST_OK);
                assert_null(view.values);
            }
            assert_int_equal(st_weights_half(w, &view, "no.such", &err), ST_ERR_INVALID_ARG);
            st_weights_free(w);
            tiny_free(&m);
        }
}

static void a_non_finite_weight_is_named(void **state)
{
    temp_folder *t = *state;
    static const st_dtype types[] = { ST_DTYPE_F32, ST_DTYPE_F16, ST_DTYPE_BF16, ST_DTYPE_F64 };
    static const unsigned char infinity[4][8] = {
        { 0, 0, 0x80, 0x7F }, { 0, 0x7C }, { 0x80, 0x7F }, { 0, 0, 0, 0, 0, 0, 0xF0, 0x7F }
    };
    for (size_t i = 0; i < 4; i++) {
        tiny_model m;
        tiny_make(&m, ST_LAYOUT_META, false);
        if (types[i] != ST_DTYPE_F32) tiny_convert(&m, types[i]);
        tiny_tensor *x = tiny_find(&m, "detector.backbone.vision_backbone.trunk.blocks.2.attn.qkv.weight");
        const size_t size = st_dtype_size(types[i]);
        memcpy(x->bytes + (24 * 24 + 77) * size, infinity[i], size); /* in the second third: k */
        tiny_write_safetensors(t, "a.safetensors", &m);
        st_weights *w = open_ok(t, "a.safetensors");
        const float *values;
        st_error err = { 0 };
        assert_int_equal(st_weights_f32(w, &values, "vit.blocks.2.attn.q.weight", &err), ST_OK);
        assert_int_equal(st_weights_f32(w, &values, "vit.blocks.2.attn.v.weight", &err), ST_OK);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(st_weights_f32(w, &values, "vit.blocks.2.attn.k.weight", &err), ST_ERR_NONFINITE);
            assert_null(values);
            assert_non_null(strstr(err.message, "\"detector.backbone.vision_backbone.trunk.blocks.2.attn.qkv.weight\" "
                                                "(vit.blocks.2.attn.k.weight): value 77 of 576"));
        }
        assert_int_equal(st_weights_f32(w, &values, "vit.blocks.3.attn.k.weight", &err), ST_ERR_INVALID_ARG);
        assert_int_equal(st_weights_n_elements(w, "vit.blocks.3.attn.k.weight"), 0);
        st_weights_free(w);
        tiny_free(&m);
    }
}

/* ---------------------------------------------------------------- pages and threads */

static void dropped_values_come_back(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    tiny_write_pt(t, "a.pt", &m, false, false);
    st_weights *w = open_ok(t, "a.pt");
    check_values(w, &m);
    st_weights_drop(w, "");
    st_weights_drop(w, "vit.");
    st_weights_drop(w, "nothing.");
    check_values(w, &m);
    st_weights_free(w);
    tiny_free(&m);
}

typedef struct race {
    st_weights *w;
    const tiny_model *m;
    const float *seen[8];
} race;

static void *racer(void *arg)
{
    static const char *const names[8] = { "vit.pos",           "vit.patch.weight",    "text.token_embed",
                                          "dec.query_embed",   "geo.box_pool.weight", "mask.conv.1.weight",
                                          "neck.0.up0.weight", "track.down.3.weight" };
    race *r = arg;
    for (int round = 0; round < 50; round++)
        for (size_t i = 0; i < 8; i++) {
            const float *values = NULL;
            if (st_weights_f32(r->w, &values, names[i], NULL) != ST_OK || (r->seen[i] && r->seen[i] != values))
                return "failed";
            r->seen[i] = values;
            if (round == 25) st_weights_drop(r->w, "vit.");
        }
    return NULL;
}

static void threads_see_one_pointer(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_META, false);
    tiny_convert(&m, ST_DTYPE_F16);
    tiny_write_pt(t, "a.pt", &m, false, true);
    st_weights *w = open_ok(t, "a.pt");
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    race races[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        races[i] = (race){ .w = w, .m = &m };
        assert_int_equal(pthread_create(&threads[i], NULL, racer, &races[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
        assert_memory_equal(races[i].seen, races[0].seen, sizeof races[0].seen);
    }
    check_values(w, &m);
    st_weights_free(w);
    tiny_free(&m);
}

/* ---------------------------------------------------------------- sizes from JSON */

static void check_config(temp_folder *t, const char *from, const char *to, st_status expected, const char *message)
{
    char text[8192];
    const char *at = strstr(tiny_config, from);
    st_error err = { 0 };
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - tiny_config), tiny_config, to, at + strlen(from));
    temp_write_text(t, "hf/config.json", text);
    if (expected == ST_OK) {
        st_weights_free(open_ok(t, "hf"));
        return;
    }
    assert_int_equal(open_fails(t, "hf", &err), expected);
    if (!strstr(err.message, message)) fail_msg("expected %s: %s", message, err.message);
}

static void configurations_are_checked(void **state)
{
    temp_folder *t = *state;
    tiny_model m;
    tiny_make(&m, ST_LAYOUT_HF, false);
    tiny_write_safetensors(t, "hf/model.safetensors", &m);
    check_config(t, "\"fpn_hidden_size\": 16", "\"fpn_hidden_size\": 16", ST_OK, NULL);
    check_config(t, "[4, 4]", "4", ST_OK, NULL);
    check_config(t, "[4, 4]", "[4, 5]", ST_ERR_FORMAT, "backbone_config.patch_size: expected");
    check_config(t, "\"window_size\": 5", "\"window_size\": \"5\"", ST_ERR_FORMAT,
                 "backbone_config.window_size: expected a whole number");
    check_config(t, "\"window_size\": 5", "\"window_size\": -5", ST_ERR_FORMAT, "window_size");
    check_config(t, "\"window_size\": 5", "\"window_size\": 0", ST_ERR_LIMIT, "attention window: 0");
    check_config(t, "\"window_size\": 5", "\"window_size\": 99999999999", ST_ERR_FORMAT, "window_size");
    check_config(t, "\"hidden_size\": 24", "\"hidden_size\": 28", ST_ERR_FORMAT,
                 "expected shape [28, 3, 4, 4], found [24, 3, 4, 4]");
    check_config(t, "\"num_attention_heads\": 3, \"num_hidden_layers\": 3",
                 "\"num_attention_heads\": 5, \"num_hidden_layers\": 3", ST_ERR_FORMAT,
                 "ViT width 24 is no multiple of its heads (5)");
    check_config(t, "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 2", ST_ERR_FORMAT, "layers.2.");
    check_config(t, "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", ST_ERR_FORMAT, "layers.3.");
    check_config(t, "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 129", ST_ERR_LIMIT,
                 "ViT blocks: 129, expected 1 to 128");
    check_config(t, "[1]", "[1, 128]", ST_ERR_FORMAT, "global_attn_indexes");
    check_config(t, "[1]", "[true]", ST_ERR_FORMAT, "global_attn_indexes");
    check_config(t, "[1]", "3", ST_ERR_FORMAT, "global_attn_indexes");
    check_config(t, "[1]", "null", ST_OK, NULL);
    check_config(t, "\"hidden_act\": \"gelu\"", "\"hidden_act\": \"quick_gelu\"", ST_ERR_UNSUPPORTED,
                 "text_config.hidden_act is \"quick_gelu\"");
    check_config(t, ", \"hidden_act\": \"gelu\"", "", ST_ERR_FORMAT, "text_config.hidden_act");
    check_config(t, "\"image_size\": 56, \"patch_size\"", "\"image_size\": 58, \"patch_size\"", ST_ERR_FORMAT,
                 "picture side 58 is no multiple");
    check_config(t, "\"tracker_config\": {\"image_size\": 56,", "\"tracker_config\": {", ST_ERR_UNSUPPORTED,
                 "tracker_config.image_size is 1008, expected the detector's 56");
    check_config(t, "\"pretrain_image_size\": 24", "\"layer_scale_init_value\": 0.1, \"pretrain_image_size\": 24",
                 ST_ERR_FORMAT, "layer_scale_init_value");
    check_config(t, "\"pretrain_image_size\": 24", "\"layer_norm_eps\": 2, \"pretrain_image_size\": 24", ST_ERR_FORMAT,
                 "eps");
    check_config(t, "\"pretrain_image_size\": 24", "\"layer_norm_eps\": \"x\", \"pretrain_image_size\": 24",
                 ST_ERR_FORMAT, "layer_norm_eps: expected a number");
    check_config(t, "{\"model_type\": \"sam3_video\",", "{", ST_OK, NULL);
    check_config(t, "{\"model_type\"", "\xef\xbb\xbf{\"model_type\"", ST_ERR_FORMAT, "broken JSON");
    check_config(t, "\"detector_config\": {", "\"detector_config\": 5, \"d\": {", ST_ERR_FORMAT,
                 "\"detector_config\" is no JSON object");
    tiny_free(&m);
}

/* An eps and a rotary base of the model's own arrive; without a config.json each layout has its own eps. */
static void sizes_without_tensors(void **state)
{
    temp_folder *t = *state;
    tiny_model hf, meta;
    tiny_make(&hf, ST_LAYOUT_HF, false);
    tiny_make(&meta, ST_LAYOUT_META, false);
    tiny_write_safetensors(t, "hf.safetensors", &hf);
    tiny_write_safetensors(t, "meta.safetensors", &meta);
    st_weights *w = open_ok(t, "hf.safetensors");
    assert_true(st_weights_dims(w)->vit_eps == 1e-6f && st_weights_dims(w)->clamp_presence &&
                !st_weights_dims(w)->joint_score);
    st_weights_free(w);
    w = open_ok(t, "meta.safetensors");
    assert_true(st_weights_dims(w)->vit_eps == 1e-5f && !st_weights_dims(w)->clamp_presence);
    assert_int_equal(st_weights_dims(w)->vit_heads, 3); /* from the rotary tables */
    assert_int_equal(st_weights_dims(w)->dec_heads, 4); /* one bias per head */
    assert_int_equal(st_weights_dims(w)->grid, 14);
    st_weights_free(w);
    temp_write_text(t, "meta.json",
                    "{\"vision_config\": {\"backbone_config\": {\"layer_norm_eps\": 1e-4, \"rope_parameters\": "
                    "{\"rope_theta\": 500}}}}");
    w = open_ok(t, "meta.safetensors");
    assert_true(st_weights_dims(w)->vit_eps == 1e-4f && st_weights_dims(w)->rope_theta == 500.0f);
    st_weights_free(w);
    tiny_free(&meta);
    tiny_free(&hf);
}

/* ---------------------------------------------------------------- out of memory */

/* Every allocation fails once, then all later ones too: an error each time, and nothing leaks (under ASan). */
static void sweep(const char *path)
{
    bool opened = false;
    unsigned n_failed = 0;
    for (uint64_t k = 1; !opened; k += k < 40 ? 1 : 23) {
        st_weights *w = NULL;
        st_error err = { 0 };
        st_mem_fail_after(k);
        st_status status = st_weights_open(&w, path, NULL, &err);
        const float *values;
        if (status == ST_OK) status = st_weights_f32(w, &values, "vit.patch.weight", &err);
        st_mem_fail_after(0);
        opened = status == ST_OK;
        if (!opened) {
            assert_int_equal(status, ST_ERR_NOMEM);
            assert_true(err.message[0] != '\0');
            n_failed++;
        }
        st_weights_free(w);
    }
    assert_true(n_failed > 40);
}

static void memory_may_run_out(void **state)
{
    temp_folder *t = *state;
    tiny_model m, hf;
    tiny_make(&m, ST_LAYOUT_META, false);
    tiny_make(&hf, ST_LAYOUT_HF, false);
    tiny_convert(&m, ST_DTYPE_F16);
    tiny_write_safetensors(t, "a.safetensors", &m);
    tiny_write_pt(t, "a.pt", &m, true, false);
    tiny_write_pt(t, "z.pt", &m, true, true);
    temp_write_text(t, "a.json", tiny_side);
    tiny_write_sharded(t, "s", &hf, 3);
    temp_write_text(t, "s/config.json", tiny_config);
    static const char *const names[] = { "a.safetensors", "a.pt", "z.pt", "s" };
    for (size_t i = 0; i < 4; i++) {
        char *path = temp_path(t, names[i]);
        sweep(path);
        free(path);
    }
    tiny_free(&hf);
    tiny_free(&m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_id_in_every_container_and_layout),
        TEST(sam31_opens_in_every_container),
        TEST(the_id_follows_the_values),
        TEST(info_adds_up),
        TEST(unaligned_data_are_copied),
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(every_brain_float_is_exact),
        cmocka_unit_test(doubles_are_rounded),
        cmocka_unit_test(non_finite_values_are_found_anywhere),
        TEST(a_table_is_looked_through_and_read_by_rows),
        TEST(matrices_stay_in_16_bits),
        TEST(a_non_finite_weight_is_named),
        TEST(dropped_values_come_back),
        TEST(threads_see_one_pointer),
        TEST(configurations_are_checked),
        TEST(sizes_without_tensors),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
