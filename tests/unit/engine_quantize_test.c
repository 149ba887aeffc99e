/* engine_quantize_test.c: st_model_quantize on a tiny model: what it refuses, what it says of each layer, and that cancel and want of memory leave neither a file nor a
 * session that is good for nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "base/mem.h"
#include "engine/engine.h"
#include "temp_folder.h"

#define TINY ST_SOURCE_DIR "/tests/golden/data/tiny-meta-click/model.safetensors"

static temp_folder folder;
static char *out; /* folder/out.safetensors */
static uint8_t pixels[2][60 * 80 * 3];
static const st_image images[2] = { { pixels[0], 80, 60, 240, ST_PIXEL_RGB8 }, { pixels[1], 60, 80, 180, ST_PIXEL_RGB8 } };

static st_model *open_model(const char *path)
{
    st_model *m = NULL;
    st_error err;
    st_model_options o = ST_MODEL_OPTIONS_INIT;
    o.n_threads = 1;
    if (st_model_open(&m, path, &o, &err) != ST_OK) fail_msg("%s", err.message);
    return m;
}

static st_session *session_on(st_model *m, const st_cancel *cancel)
{
    st_session *s = NULL;
    st_error err;
    st_session_options o = ST_SESSION_OPTIONS_INIT;
    o.cancel = cancel;
    if (st_session_new(&s, m, &o, &err) != ST_OK) fail_msg("%s", err.message);
    return s;
}

typedef struct bench {
    st_cancel *cancel;
    st_model *model;
    st_session *session;
} bench;

static int set_up(void **state)
{
    static bench b;
    temp_folder_make(&folder);
    out = temp_path(&folder, "out.safetensors");
    for (size_t i = 0; i < sizeof pixels[0]; i++) pixels[0][i] = (uint8_t)(i * i >> 5), pixels[1][i] = (uint8_t)(i * 7 >> 3);
    b.cancel = st_cancel_new();
    assert_non_null(b.cancel);
    b.model = open_model(TINY);
    b.session = session_on(b.model, b.cancel);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    bench *b = *state;
    st_session_free(b->session);
    st_model_free(b->model);
    st_cancel_free(b->cancel);
    free(out);
    temp_folder_remove(&folder);
    return 0;
}

/* The score of the best instance for a phrase: bit for bit what the session gave before. */
static float best_score(st_session *s)
{
    st_picture *picture = NULL;
    st_result *result = NULL;
    st_error err;
    st_prompt prompt = ST_PROMPT_INIT;
    st_segment_options o = ST_SEGMENT_OPTIONS_INIT;
    prompt.phrase = "cat";
    o.threshold = 0.0f;
    if (st_picture_encode(&picture, s, &images[0], NULL, &err) != ST_OK || st_segment(&result, s, picture, &prompt, &o, &err) != ST_OK) fail_msg("%s", err.message);
    assert_true(result->n_instances > 0);
    const float score = result->instances[0].score;
    st_result_free(result);
    st_picture_free(picture);
    return score;
}

typedef struct told {
    size_t n, n_kept, last_done, total;
    double worst;
    bool seen_kept_reason;
    st_cancel *cancel;
    size_t cancel_at;
} told;

static void on_line(void *user, const st_quantize_line *line)
{
    told *t = user;
    t->n++;
    assert_int_equal(line->done, t->last_done + 1);
    assert_true(line->total >= line->done);
    t->last_done = line->done;
    t->total = line->total;
    if (line->kept) {
        t->n_kept++;
        t->seen_kept_reason = t->seen_kept_reason || strlen(line->kept) > 5;
    } else {
        assert_true(line->error >= 0.0 && line->smoothing >= 0.0 && line->smoothing < 1.0);
        t->worst = fmax(t->worst, line->error);
    }
    if (t->n == t->cancel_at) st_cancel_set(t->cancel);
}

static st_quantize_options options(told *t)
{
    static const char *const phrases[] = { "cat", "two red balloons" };
    st_quantize_options o = ST_QUANTIZE_OPTIONS_INIT;
    o.images = images, o.n_images = 2;
    o.phrases = phrases, o.n_phrases = 2;
    o.line = on_line, o.line_user = t;
    return o;
}

static void layers_are_told_and_the_file_opens(void **state)
{
    bench *b = *state;
    told t = { 0 };
    st_error err;
    const st_quantize_options o = options(&t);
    const float before = best_score(b->session);
    if (st_model_quantize(b->session, out, &o, &err) != ST_OK) fail_msg("%s", err.message);
    assert_true(t.n > 40 && t.n_kept < t.n);
    assert_int_equal(t.last_done, t.total);
    assert_true(t.worst > 0.0 && t.worst <= 0.05);
    assert_true(best_score(b->session) == before); /* nothing is left behind in the session */
    st_model *copy = open_model(out);
    st_session *s = session_on(copy, NULL);
    const float after = best_score(s);
    assert_true(after != before && fabsf(after - before) < 0.02f);
    assert_int_equal(st_model_quantize(s, out, NULL, &err), ST_ERR_INVALID_ARG);
    assert_non_null(strstr(err.message, "quantised already"));
    st_session_free(s);
    st_model_free(copy);
    assert_int_equal(remove(out), 0);
}

static void what_was_not_seen_stays(void **state)
{
    bench *b = *state;
    told t = { 0 };
    st_error err;
    st_quantize_options o = options(&t);
    o.max_error = 0.0f;
    if (st_model_quantize(b->session, out, &o, &err) != ST_OK) fail_msg("%s", err.message);
    assert_true(t.n > 40 && t.n_kept == t.n && t.seen_kept_reason);
    st_model *copy = open_model(out);
    st_model_info a = ST_MODEL_INFO_INIT, c = ST_MODEL_INFO_INIT;
    assert_int_equal(st_model_get_info(b->model, &a, &err), ST_OK);
    assert_int_equal(st_model_get_info(copy, &c, &err), ST_OK);
    assert_string_equal(a.id, c.id);
    st_model_free(copy);
    assert_int_equal(remove(out), 0);
}

static void wrong_options_are_refused(void **state)
{
    bench *b = *state;
    told t = { 0 };
    st_error err;
    st_quantize_options o = options(&t);
    assert_int_equal(st_model_quantize(NULL, out, &o, &err), ST_ERR_INVALID_ARG);
    assert_int_equal(st_model_quantize(b->session, NULL, &o, &err), ST_ERR_INVALID_ARG);
    for (int i = 0; i < 5; i++) {
        o = options(&t);
        if (i == 0) o.struct_size = 0;
        if (i == 1) o.max_error = NAN;
        if (i == 2) o.max_error = -0.1f;
        if (i == 3) o.images = NULL;
        if (i == 4) o.phrases = NULL;
        err.message[0] = '\0';
        assert_int_equal(st_model_quantize(b->session, out, &o, &err), ST_ERR_INVALID_ARG);
        assert_true(strlen(err.message) > 10);
    }
    assert_int_equal(t.n, 0);
    assert_int_equal(temp_count(&folder), 0);
}

static void cancel_leaves_no_file(void **state)
{
    bench *b = *state;
    st_error err;
    static const size_t at[] = { 0, 1, 40 };
    for (size_t i = 0; i < 3; i++) {
        told t = { .cancel = b->cancel, .cancel_at = at[i] };
        const st_quantize_options o = options(&t);
        if (at[i] == 0) st_cancel_set(b->cancel);
        assert_int_equal(st_model_quantize(b->session, out, &o, &err), ST_ERR_CANCELLED);
        st_cancel_reset(b->cancel);
        assert_true(t.n >= at[i] && t.n <= at[i] + 3); /* the layers of one tensor are told together */
        assert_int_equal(temp_count(&folder), 0);
    }
    (void)best_score(b->session);
}

static void out_of_memory_leaves_no_file(void **state)
{
    bench *b = *state;
    const float before = best_score(b->session);
    size_t n_failed = 0;
    for (uint64_t k = 1;; k += k < 20 ? 1 : k < 200 ? 17 : 131) {
        told t = { 0 };
        st_error err;
        const st_quantize_options o = options(&t);
        st_mem_fail_after(k);
        const st_status status = st_model_quantize(b->session, out, &o, &err);
        st_mem_fail_after(0);
        if (status == ST_OK) break;
        if (status != ST_ERR_NOMEM) fail_msg("%d: %s", (int)status, err.message);
        assert_int_equal(temp_count(&folder), 0);
        n_failed++;
    }
    assert_true(n_failed > 25);
    assert_true(best_score(b->session) == before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_told_and_the_file_opens), cmocka_unit_test(what_was_not_seen_stays), cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(cancel_leaves_no_file),              cmocka_unit_test(out_of_memory_leaves_no_file),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
