/* check.c: does this build, on this CPU, compute what it should? One picture and one prompt go through every stage while a probe looks at each output.
 *
 * A model that comes with check.safetensors and check.png (the demo model) is compared with samples of the reference's own run: nothing is reset between stages, so the bar of a stage
 * is what the whole run before it may add up to: 8 x the reference's own fp32 error there, at least 2e-5 of the stage's RMS. Any other model is checked for finite values
 * and for a spread that a network that works can have.
 */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "weights/catalog.h"
#include "weights/safetensors.h"

typedef struct checker {
    st_check_fn *line;
    void *user;
    size_t n_lines, n_failed, n_compared;
    st_catalog stored; /* empty: no references */
} checker;

static void tell(checker *c, const char *stage, const char *what, double value, double bound, bool passed)
{
    c->n_lines++;
    c->n_failed += !passed;
    if (c->line) c->line(c->user, &(st_check_line){stage, what, value, bound, passed});
}

/* ---- against stored samples ---- */

enum { ABOUT_ROWS, ABOUT_COLS, ABOUT_STRIDE, ABOUT_RMS, ABOUT_RMS_ERR, ABOUT_MAX_ERR, N_ABOUT };

static bool read_stored(const st_catalog *stored, const char *name, float *out, size_t room, size_t *n)
{
    const st_entry *e = st_catalog_find(stored, name);
    if (!e || e->dtype != ST_DTYPE_F32 || e->n_elements > room) return false;
    *n = (size_t)e->n_elements;
    return st_entry_read(stored, e, 0, *n, out) == *n;
}

enum { MAX_SAMPLES = 2048 };

static void compare_samples(checker *c, const char *name, const float *data, size_t rows, size_t cols)
{
    char about_name[128];
    float about[N_ABOUT], want[MAX_SAMPLES];
    size_t n_about, n;
    snprintf(about_name, sizeof about_name, "%s/about", name);
    if (!st_catalog_find(&c->stored, about_name)) return; /* the reference kept none of this one */
    c->n_compared++;
    if (!read_stored(&c->stored, about_name, about, N_ABOUT, &n_about) || n_about != N_ABOUT || !read_stored(&c->stored, name, want, MAX_SAMPLES, &n) || n == 0) {
        tell(c, name, "stored samples that can be read", 0.0, 1.0, false);
        return;
    }
    if (about[ABOUT_ROWS] != (float)rows || about[ABOUT_COLS] != (float)cols || !(about[ABOUT_STRIDE] >= 1.0f && (double)(n - 1) * (double)about[ABOUT_STRIDE] < (double)(rows * cols))) {
        tell(c, name, "shape", (double)(rows * cols), (double)about[ABOUT_ROWS] * (double)about[ABOUT_COLS], false);
        return;
    }
    const size_t stride = (size_t)about[ABOUT_STRIDE];
    double worst = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double error = fabs((double)data[i * stride] - (double)want[i]);
        if (!(error <= worst)) worst = error; /* a NaN stays */
    }
    const double bar = fmax(8.0 * (double)about[ABOUT_MAX_ERR], 2e-5 * (double)about[ABOUT_RMS]);
    tell(c, name, "max error", worst, bar, worst <= bar);
}

/* A stage that has references but did not come by was not checked, and must not pass for it. */
static void check_all_compared(checker *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->stored.n; i++) {
        const char *slash = strrchr(c->stored.entries[i].name, '/');
        n += slash && strcmp(slash, "/about") == 0;
    }
    if (c->n_compared != n) tell(c, "all", "stages compared", (double)c->n_compared, (double)n, false);
}

/* ---- without references ---- */

static void check_plausible(checker *c, const char *name, const float *data, size_t rows, size_t cols)
{
    const size_t n = rows * cols;
    size_t bad = 0;
    double sum = 0.0, sq = 0.0;
    for (size_t i = 0; i < n; i++) {
        bad += isfinite(data[i]) ? 0 : 1;
        sum += (double)data[i];
        sq += (double)data[i] * (double)data[i];
    }
    tell(c, name, "values that are not finite", (double)bad, 0.0, bad == 0);
    if (bad || n < 16) return;
    const double mean = sum / (double)n, spread = sqrt(fmax(sq / (double)n - mean * mean, 0.0));
    tell(c, name, "spread", spread, 1e-6, spread > 1e-6 && spread < 1e5);
}

static void probe(void *user, const char *name, float *data, size_t rows, size_t cols)
{
    checker *c = user;
    if (c->stored.n) compare_samples(c, name, data, rows, cols);
    else check_plausible(c, name, data, rows, cols);
}

/* ---- the input ---- */

typedef struct check_input {
    st_bitmap bitmap;
    uint32_t ids[32];
    size_t n_ids;
    st_geo_box box;
    size_t n_boxes;
} check_input;

/* FOLDER/name when the model is a directory, else name beside the model file. */
static void beside_model(char *out, size_t size, const st_model *m, const char *name)
{
    const char *slash = strrchr(m->path, '/');
    if (st_dir_exists(m->path)) snprintf(out, size, "%s/%s", m->path, name);
    else snprintf(out, size, "%.*s%s", slash ? (int)(slash - m->path + 1) : 0, m->path, name);
}

static st_status open_stored(checker *c, const st_model *m, check_input *in, st_error *err)
{
    char path[4096];
    st_map map;
    uint32_t index;
    float box[4];
    size_t n = 0;
    beside_model(path, sizeof path, m, "check.safetensors");
    st_status status = st_map_open(&map, path, err);
    if (status == ST_OK) status = st_catalog_add_map(&c->stored, map, path, &index, err);
    if (status == ST_OK) status = st_safetensors_read(&c->stored, index, err);
    if (status == ST_OK) status = st_catalog_finish(&c->stored, err);
    if (status != ST_OK) return status;
    const st_entry *ids = st_catalog_find(&c->stored, "prompt/ids");
    if (!ids || ids->dtype != ST_DTYPE_I64 || ids->n_elements > 32 || ids->n_elements < 2 || !read_stored(&c->stored, "prompt/box", box, 4, &n) || n != 4)
        return st_fail(err, ST_ERR_FORMAT, "%s: no prompt in it", path);
    for (in->n_ids = 0; in->n_ids < ids->n_elements; in->n_ids++) {
        int64_t id;
        memcpy(&id, c->stored.blobs[ids->blob].data + ids->offset + 8 * in->n_ids, sizeof id);
        if (id < 0 || id >= (int64_t)m->dims->vocab) return st_fail(err, ST_ERR_FORMAT, "%s: token id %lld", path, (long long)id);
        in->ids[in->n_ids] = (uint32_t)id;
    }
    beside_model(path, sizeof path, m, "check.png");
    if ((status = st_bitmap_load(&in->bitmap, path, NULL, err)) != ST_OK) return status;
    const float W = (float)in->bitmap.width, H = (float)in->bitmap.height;
    const float x0 = box[0] / W, y0 = box[1] / H, x1 = box[2] / W, y1 = box[3] / H;
    in->box = (st_geo_box){(x0 + x1) / 2.0f, (y0 + y1) / 2.0f, x1 - x0, y1 - y0, 1};
    in->n_boxes = 1;
    return ST_OK;
}

void st_draw_pattern(uint8_t *rgb, int side)
{
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            uint8_t *p = &rgb[3 * ((size_t)y * (size_t)side + (size_t)x)];
            const int dx = x % 80 - 40, dy = y % 80 - 40;
            const bool disc = dx * dx + dy * dy < 700;
            for (int c = 0; c < 3; c++) p[c] = (uint8_t)(disc ? (x / 80 * 53 + y / 80 * 91 + c * 77) % 256 : (x + y * (c + 1) / 3) * 255 / (2 * side));
        }
}

static st_status draw_input(check_input *in, st_error *err)
{
    enum { SIDE = 320 };
    int cut;
    in->bitmap = (st_bitmap){.width = SIDE, .height = SIDE, .rgb = st_malloc(SIDE * SIDE * 3), .orientation = 1};
    if (!in->bitmap.rgb) return st_fail(err, ST_ERR_NOMEM, "check: out of memory");
    st_draw_pattern(in->bitmap.rgb, SIDE);
    in->box = (st_geo_box){0.125f, 0.125f, 0.2f, 0.2f, 1};
    in->n_boxes = 1;
    return st_tokenize("cat", in->ids, 32, &in->n_ids, &cut, err);
}

/* ---- the run ---- */

static st_status run_stages(st_session *s, const check_input *in, st_error *err)
{
    st_model *m = s->model;
    const st_dims *d = m->dims;
    const size_t D = d->width, pixels_n = 16 * (size_t)d->grid * d->grid, Q = d->n_queries;
    st_picture *picture = NULL;
    st_run run;
    size_t scratch = 0;
    const st_image image = {in->bitmap.rgb, in->bitmap.width, in->bitmap.height, 3 * (size_t)in->bitmap.width, ST_PIXEL_RGB8};
    st_encode_options how = ST_ENCODE_OPTIONS_INIT;
    how.resize = ST_RESIZE_CPU; /* what made the references */
    st_status status = st_picture_encode(&picture, s, &image, &how, err);
    if (status == ST_OK) status = st_model_bind_detect(m, err);
    if (status == ST_OK) status = st_plan_segment(&scratch, m, d->context, in->n_boxes, err);
    if (status == ST_OK) status = st_session_run(s, &run, scratch + (Q * (pixels_n + 3 * D) + 4096) * sizeof(float), err);
    if (status == ST_OK) {
        float *tokens = st_run_floats(&run, in->n_ids, D);
        status = st_text_encode(&run, &m->text, in->ids, in->n_ids, tokens, err);
        st_detection found;
        st_detect_prompt(&run, &m->detect, &picture->features, NULL, tokens, in->n_ids, &in->box, in->n_boxes, true, &found);
        float *pixels = st_run_floats(&run, pixels_n, D), *logits = st_run_floats(&run, Q, pixels_n);
        st_mask_pixels(&run, &m->detect, found.fused, found.prompt, found.n_prompt, picture->features.level[1], picture->features.level[0], pixels);
        st_mask_logits(&run, &m->detect, pixels, found.queries.state, Q, logits);
        if (status == ST_OK) status = st_run_status(&run, err);
    }
    st_picture_free(picture);
    return status;
}

st_status st_model_check(st_session *s, st_check_fn *line, void *user, size_t *n_failed, st_error *err)
{
    if (!s || !n_failed) return st_fail(err, ST_ERR_INVALID_ARG, "check: no session, or no place for the count");
    char path[4096];
    checker c = {.line = line, .user = user};
    check_input in = {0};
    beside_model(path, sizeof path, s->model, "check.safetensors");
    const st_dims *d = s->model->dims;
    const bool own = s->model->weights_info.n_int8 == 0 && d->image_size == d->own_size; /* references are of fp32 weights at their own size */
    const bool stored = own && st_file_exists(path);
    st_status status = stored ? open_stored(&c, s->model, &in, err) : draw_input(&in, err);
    if (status == ST_OK) {
        s->probe = probe;
        s->probe_user = &c;
        status = run_stages(s, &in, err);
        s->probe = NULL;
        if (status == ST_OK && c.stored.n) check_all_compared(&c);
    }
    if (status == ST_OK && c.n_lines == 0) status = st_fail(err, ST_ERR_INTERNAL, "check: no stage was looked at");
    *n_failed = c.n_failed;
    st_catalog_free(&c.stored);
    st_bitmap_free(&in.bitmap);
    return status;
}
