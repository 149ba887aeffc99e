/* quantize.c: which layers become int8, and how, by measurement. The model runs on pictures and phrases while each linear
 * layer's inputs are watched: the largest value of every channel, and some rows as they are. On those rows the layer is
 * then tried in int8 with several strengths of smoothing (SmoothQuant, Xiao et al. 2023: inputs are divided by s,
 * weights multiplied, s = peak of the input ^ a / peak of the weights ^ (1 - a)), and the strength that loses least is
 * kept; 0 is among them. A layer that still loses more than the bar stays as it is.
 *
 * Trials round activations to 7 bits, as CPUs without VNNI do: what passes here passes everywhere.
 */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "weights/int8_write.h"

enum { MAX_ROWS = 64, FIRST_ROWS = 32, MORE_ROWS = 8, TRIAL_U8_MAX = 127, TABLE = 4096, MIN_SIDE = 32, MOST_OPEN = 8 };

/* What a layer was given. */
typedef struct seen {
    const char *name; /* canonical; NULL: a free place of the table */
    size_t n_in, n_rows;
    float *peak; /* [n_in] */
    float *rows; /* [MAX_ROWS, n_in] */
} seen;

/* What a layer's trial gave, until it is known what becomes of the published tensor that holds it. */
typedef struct outcome {
    const char *name;
    char why[96]; /* empty: good enough */
    double error, smoothing;
} outcome;

typedef struct quantizing {
    st_session *session;
    st_quantize_options o;
    seen *table; /* [TABLE] by hash of the name's address: names belong to the weights */
    bool failed; /* out of memory */
    json_t *int8, *kept;
    outcome open[MOST_OPEN];
    size_t n_open, done, total;
} quantizing;

/* ---------------------------------------------------------------- watching */

/* Where int8 pays and is known to work: long rows, many of them. */
static bool is_candidate(const char *name)
{
    static const char *const prefixes[] = { "vit.blocks.", "text.blocks.", "text.proj.", "fusion.layers.",
                                            "dec.layers." };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    return false;
}

static seen *find(const quantizing *q, const char *name)
{
    size_t at = ((uintptr_t)name >> 4) % TABLE;
    for (size_t i = 0; i < TABLE; i++, at = (at + 1) % TABLE)
        if (!q->table[at].name || q->table[at].name == name) return &q->table[at];
    return NULL;
}

static void keep_rows(seen *s, const float *x, size_t ldx, size_t rows)
{
    const size_t room = MAX_ROWS - s->n_rows, most = s->n_rows == 0 ? FIRST_ROWS : MORE_ROWS;
    size_t n = rows < most ? rows : most;
    if (n > room) n = room;
    for (size_t i = 0; i < n; i++)
        memcpy(s->rows + (s->n_rows + i) * s->n_in, x + (2 * i + 1) * rows / (2 * n) * ldx, s->n_in * sizeof(float));
    s->n_rows += n;
}

static void watch(void *user, const struct st_linear *layer, const float *x, size_t ldx, size_t rows)
{
    quantizing *q = user;
    const st_linear *l = layer;
    if (!l->name || !is_candidate(l->name) || l->n_in < MIN_SIDE || l->n_out < MIN_SIDE || q->failed) return;
    seen *s = find(q, l->name);
    if (s && !s->name) {
        *s = (seen){ l->name, l->n_in, 0, st_calloc(l->n_in, sizeof(float)),
                     st_realloc_array(NULL, MAX_ROWS * l->n_in, sizeof(float)) };
        q->total++;
    }
    if (!s || !s->peak || !s->rows) {
        q->failed = true;
        return;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < l->n_in; i++) s->peak[i] = fmaxf(s->peak[i], fabsf(x[r * ldx + i]));
    keep_rows(s, x, ldx, rows);
}

static const char *const everyday[] = { "person", "red circle", "car", "a small animal in the grass", "visual" };

static st_status ask(quantizing *q, const st_picture *picture, const char *phrase, const st_exemplar *box,
                     st_error *err)
{
    st_result *result = NULL;
    st_prompt prompt = ST_PROMPT_INIT;
    prompt.phrase = phrase;
    prompt.boxes = box;
    prompt.n_boxes = box ? 1 : 0;
    st_segment_options o = ST_SEGMENT_OPTIONS_INIT;
    o.want_masks = 0;
    const st_status status = st_segment(&result, q->session, picture, &prompt, &o, err);
    st_result_free(result);
    return status;
}

static st_status look_at(quantizing *q, const st_image *image, st_error *err)
{
    const bool own = q->o.n_phrases > 0;
    const size_t n = own ? q->o.n_phrases : sizeof everyday / sizeof everyday[0];
    const float w = (float)image->width, h = (float)image->height;
    const st_exemplar box = { 0.25f * w, 0.25f * h, 0.5f * w, 0.5f * h, 0 };
    st_picture *picture = NULL;
    st_status status = st_picture_encode(&picture, q->session, image, NULL, err);
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = ask(q, picture, own ? q->o.phrases[i] : everyday[i], i == 0 ? &box : NULL, err);
    st_picture_free(picture);
    if (status == ST_OK && q->failed) status = st_fail(err, ST_ERR_NOMEM, "out of memory while watching the layers");
    return status;
}

static st_status look_at_all(quantizing *q, st_error *err)
{
    enum { SIDE = 640 };
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < q->o.n_images; i++) status = look_at(q, &q->o.images[i], err);
    if (q->o.n_images || status != ST_OK) return status;
    uint8_t *rgb = st_malloc((size_t)SIDE * SIDE * 3);
    if (!rgb) return st_fail(err, ST_ERR_NOMEM, "out of memory for the built-in picture");
    st_draw_pattern(rgb, SIDE);
    status = look_at(q, &(st_image){ rgb, SIDE, SIDE, 3 * SIDE, ST_PIXEL_RGB8 }, err);
    st_free(rgb);
    return status;
}

/* ---------------------------------------------------------------- trying */

/* One layer on its rows, exactly and in int8. */
typedef struct trial {
    const st_kernels *k;
    const seen *s;
    const float *w; /* [n_out, n_in] */
    size_t n_out;
    float *exact;           /* [n_rows, n_out] */
    uint8_t *x8;            /* [n_rows, n_in] */
    int8_t *w8;             /* [n_out, n_in] */
    int32_t *sums;          /* [n_rows, n_out] */
    float *inverse, *scale; /* [n_in], [n_out] */
    int32_t *row_sums;      /* [n_out] */
} trial;

static void strength(float *smooth, const trial *t, const float *w_peak, float a)
{
    for (size_t i = 0; i < t->s->n_in; i++) {
        /* a channel that was never used, or that no weight reads, stays as it is */
        const bool usable = t->s->peak[i] > 1e-12f && w_peak[i] > 1e-12f;
        const float s = usable && a > 0.0f ? powf(t->s->peak[i], a) / powf(w_peak[i], 1.0f - a) : 1.0f;
        smooth[i] = 1.0f / fminf(fmaxf(s, 1e-4f), 1e4f);
    }
}

/* RMS of the error over RMS of the output. */
static double try_smooth(const trial *t, const float *smooth)
{
    const size_t n = t->s->n_in, n_rows = t->s->n_rows;
    double wrong = 0.0, all = 0.0;
    for (size_t r = 0; r < t->n_out; r++) {
        st_int8_quantize_row(t->w8 + r * n, &t->scale[r], t->w + r * n, smooth, n);
        t->row_sums[r] = 0;
        for (size_t i = 0; i < n; i++) t->row_sums[r] += t->w8[r * n + i];
    }
    float scale[MAX_ROWS];
    int32_t zero[MAX_ROWS];
    for (size_t r = 0; r < n_rows; r++)
        t->k->quantize(t->x8 + r * n, &scale[r], &zero[r], t->s->rows + r * n, smooth, n, TRIAL_U8_MAX);
    t->k->gemm_u8s8(n_rows, t->n_out, n, t->x8, n, t->w8, n, t->sums, t->n_out);
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t j = 0; j < t->n_out; j++) {
            const double y = (double)t->exact[r * t->n_out + j];
            const int32_t sum = t->sums[r * t->n_out + j] - zero[r] * t->row_sums[j];
            const double got = (double)scale[r] * (double)t->scale[j] * (double)sum;
            wrong += (got - y) * (got - y);
            all += y * y;
        }
    }
    return wrong == 0.0 ? 0.0 : sqrt(wrong / all); /* NaN stays, and loses against every bar */
}

/* Leaves the best smoothing in `best` [n_in]; all 1 when none is best. */
static double try_all(const trial *t, float *best, double *best_strength, bool smooth_too)
{
    static const float strengths[] = { 0.0f, 0.3f, 0.5f, 0.7f };
    const size_t n = t->s->n_in;
    float *w_peak = t->inverse + n;
    double least = INFINITY;
    memset(w_peak, 0, n * sizeof *w_peak);
    for (size_t r = 0; r < t->n_out; r++)
        for (size_t i = 0; i < n; i++) w_peak[i] = fmaxf(w_peak[i], fabsf(t->w[r * n + i]));
    t->k->gemm(true, t->s->n_rows, t->n_out, n, t->s->rows, n, t->w, n, false, t->exact, t->n_out);
    for (size_t k = 0; k < (smooth_too ? sizeof strengths / sizeof strengths[0] : 1); k++) {
        strength(t->inverse, t, w_peak, strengths[k]);
        const double error = try_smooth(t, t->inverse);
        if (!(error < 0.98 * least)) continue; /* a little better is no reason for one more multiplication */
        least = error;
        *best_strength = (double)strengths[k];
        memcpy(best, t->inverse, n * sizeof *best);
    }
    return least;
}

static double measure(quantizing *q, const seen *s, const float *w, size_t n_out, float *smooth, double *best_strength)
{
    const size_t n = s->n_in;
    trial t = { .k = q->session->model->kernels, .s = s, .w = w, .n_out = n_out };
    double error = -1.0;
    t.exact = st_realloc_array(NULL, s->n_rows * n_out, sizeof *t.exact);
    t.x8 = st_realloc_array(NULL, s->n_rows * n, 1);
    t.w8 = st_realloc_array(NULL, n_out * n, 1);
    t.sums = st_realloc_array(NULL, s->n_rows * n_out, sizeof *t.sums);
    t.inverse = st_realloc_array(NULL, 2 * n, sizeof *t.inverse);
    t.scale = st_realloc_array(NULL, n_out, sizeof *t.scale);
    t.row_sums = st_realloc_array(NULL, n_out, sizeof *t.row_sums);
    if (t.exact && t.x8 && t.w8 && t.sums && t.inverse && t.scale && t.row_sums)
        error = try_all(&t, smooth, best_strength, q->o.smooth != 0);
    else q->failed = true;
    st_free(t.exact);
    st_free(t.x8);
    st_free(t.w8);
    st_free(t.sums);
    st_free(t.inverse);
    st_free(t.scale);
    st_free(t.row_sums);
    return error;
}

/* ---------------------------------------------------------------- choosing */

static bool wants(void *user, const char *canonical)
{
    (void)user;
    return is_candidate(canonical);
}

static bool choose(void *user, const char *canonical, const float *w, size_t n_out, size_t n_in, float *smooth)
{
    quantizing *q = user;
    outcome o = { .name = canonical, .error = -1.0 };
    const seen *s = find(q, canonical);
    if (n_in < MIN_SIDE || n_out < MIN_SIDE) {
        snprintf(o.why, sizeof o.why, "too small to gain");
    } else if (!s || !s->name || s->n_rows == 0) {
        snprintf(o.why, sizeof o.why, "never used while measuring");
    } else {
        o.error = measure(q, s, w, n_out, smooth, &o.smoothing);
        if (!(o.error <= (double)q->o.max_error))
            snprintf(o.why, sizeof o.why, "its output would be off by %.3g of its RMS, bar %.3g", o.error,
                     (double)q->o.max_error);
    }
    q->failed = q->failed || q->n_open == MOST_OPEN;
    if (q->failed) return false;
    q->open[q->n_open++] = o;
    return !*o.why;
}

static outcome take(quantizing *q, const char *name)
{
    size_t i = 0;
    while (i < q->n_open && q->open[i].name != name) i++;
    if (i == q->n_open) return (outcome){ .name = NULL };
    const outcome o = q->open[i];
    q->open[i] = q->open[--q->n_open];
    return o;
}

static void settled(void *user, const char *canonical, bool int8)
{
    quantizing *q = user;
    outcome o = take(q, canonical);
    if (!o.name) return; /* out of memory, which the writer is told when it asks for `about` */
    if (!int8 && !*o.why) snprintf(o.why, sizeof o.why, "stored in one tensor with a layer that stays as it is");
    json_t *entry = json_pack("{s:s}", "layer", canonical);
    if (o.error >= 0.0 && isfinite(o.error)) json_object_set_new(entry, "error", json_real(o.error));
    if (int8) json_object_set_new(entry, "smoothing", json_real(o.smoothing));
    else json_object_set_new(entry, "why", json_string(o.why));
    if (json_array_append_new(int8 ? q->int8 : q->kept, entry) != 0) q->failed = true;
    q->done++;
    if (q->total < q->done) q->total = q->done; /* layers that were never used */
    if (!q->o.line) return;
    q->o.line(q->o.line_user,
              &(st_quantize_line){ canonical, int8 ? NULL : o.why, o.error, o.smoothing, q->done, q->total });
}

static json_t *about(void *user)
{
    const quantizing *q = user;
    const st_model *m = q->session->model;
    if (q->failed) return NULL;
    return json_pack("{s:s,s:s,s:s,s:I,s:f,s:I,s:O,s:O}", "kind", "int8 weights", "stencil", ST_VERSION_STRING,
                     "made_from", m->weights_info.id, "measured_at", (json_int_t)m->dims->image_size, "max_error",
                     (double)q->o.max_error, "pictures", (json_int_t)q->o.n_images, "int8", q->int8, "kept", q->kept);
}

static st_status check_options(quantizing *q, const st_quantize_options *opts, st_error *err)
{
    static const st_quantize_options usual = ST_QUANTIZE_OPTIONS_INIT;
    const st_quantize_options *o = opts ? opts : &usual;
    if (o->struct_size < sizeof *o)
        return st_fail(err, ST_ERR_INVALID_ARG, "quantize options: struct_size is %zu, expected %zu", o->struct_size,
                       sizeof *o);
    q->o = *o;
    if ((q->o.n_images && !q->o.images) || (q->o.n_phrases && !q->o.phrases))
        return st_fail(err, ST_ERR_INVALID_ARG, "quantize options: %zu pictures and %zu phrases, but no list of them",
                       q->o.n_images, q->o.n_phrases);
    if (!(q->o.max_error >= 0.0f))
        return st_fail(err, ST_ERR_INVALID_ARG, "max_error is %g, expected a number of at least 0",
                       (double)q->o.max_error);
    if (q->session->model->weights_info.n_int8)
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: quantised already; start from the published weights",
                       q->session->model->path);
    return ST_OK;
}

static void release(quantizing *q)
{
    for (size_t i = 0; q->table && i < TABLE; i++) {
        st_free(q->table[i].peak);
        st_free(q->table[i].rows);
    }
    st_free(q->table);
    json_decref(q->int8);
    json_decref(q->kept);
}

st_status st_model_quantize(st_session *session, const char *path, const st_quantize_options *opts, st_error *err)
{
    if (!session || !path) return st_fail(err, ST_ERR_INVALID_ARG, "quantize: no session, or no path");
    quantizing q = { .session = session };
    st_status status = check_options(&q, opts, err);
    if (status != ST_OK) return status;
    q.table = st_calloc(TABLE, sizeof *q.table);
    q.int8 = json_array();
    q.kept = json_array();
    if (!q.table || !q.int8 || !q.kept) status = st_fail(err, ST_ERR_NOMEM, "out of memory for quantising");
    session->watch = watch;
    session->watch_user = &q;
    st_session_forget_phrases(session); /* they would not be encoded again */
    if (status == ST_OK) status = look_at_all(&q, err);
    session->watch = NULL;
    const st_quantizer how = { wants, choose, settled, about, &q, session->cancel };
    if (status == ST_OK) status = st_weights_write_int8(session->model->weights, path, &how, err);
    release(&q);
    return status;
}
