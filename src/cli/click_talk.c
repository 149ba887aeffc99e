/* click_talk.c: the commands of `stencil click`. A command is read strictly: a key that the command does not have is
 * refused, because a misspelt "label" would turn a click around. A command that fails changes nothing.
 */
#include "cli/click_talk.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/mask_prompt.h"
#include "front/fault.h"
#include "front/npy.h"
#include "front/save.h"

/* ---- the picture ---- */

static void forget_said(st_click_talk *t)
{
    for (size_t i = 0; i <= ST_MAX_POINTS; i++) free(t->said[i].mask);
    memset(t->said, 0, sizeof t->said);
    t->said[0].refines = -1;
}

void st_click_talk_close(st_click_talk *t)
{
    forget_said(t);
    st_object_free(t->object);
    st_picture_opened_free(&t->opened);
    free((char *)(uintptr_t)t->how.file);
    free((char *)(uintptr_t)t->how.features);
    t->how.file = t->how.features = NULL;
    t->object = NULL;
}

st_status st_click_talk_open(st_click_talk *t, const char *file, const char *features, st_error *err)
{
    st_picture_input how = t->how;
    st_picture_report about = { .file = file ? file : features };
    st_picture_opened opened = { 0 };
    st_object *object = NULL;
    st_status status = ST_OK;
    how.encode.for_clicks = 1;
    how.file = file ? strdup(file) : NULL;
    how.features = features ? strdup(features) : NULL;
    if (!how.file && !how.features) status = st_fault(err, ST_ERR_NOMEM, "out of memory");
    if (status == ST_OK) status = st_picture_input_open(&opened, &about, &how, t->model, t->session, err);
    if (status == ST_OK && !st_picture_for_clicks(opened.picture))
        status =
            st_fault(err, ST_ERR_INVALID_ARG,
                     "%s: saved without --clicks; points, regions and masks need `stencil encode --clicks`", features);
    if (status == ST_OK) status = st_object_new(&object, t->session, opened.picture, &t->options, err);
    if (status != ST_OK) {
        st_picture_opened_free(&opened);
        free((char *)(uintptr_t)how.file);
        free((char *)(uintptr_t)how.features);
        return status;
    }
    st_bitmap_free(&opened.bitmap); /* the pixels are not needed any more */
    st_click_talk_close(t);
    t->how = how;
    t->opened = opened;
    t->object = object;
    t->width = about.width, t->height = about.height;
    return ST_OK;
}

json_t *st_click_talk_opened(const st_click_talk *t)
{
    const char *name = t->how.file ? t->how.file : t->opened.name;
    json_t *json =
        json_pack("{s:b,s:s,s:o,s:I,s:I}", "ok", 1, "op", "open", "file", name ? st_json_text(name) : json_null(),
                  "width", (json_int_t)t->width, "height", (json_int_t)t->height);
    if (!t->how.features || json_object_set_new(json, "features", st_json_text(t->how.features)) == 0) return json;
    json_decref(json);
    return NULL;
}

/* ---- replies ---- */

json_t *st_click_talk_fault(const char *code, const char *message)
{
    return json_pack("{s:b,s:{s:s,s:o}}", "ok", 0, "error", "code", code, "message", st_json_text(message));
}

static json_t *invalid(const char *fmt, ...) ST_PRINTF(1, 2);
static json_t *invalid(const char *fmt, ...)
{
    char text[640];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return st_click_talk_fault("invalid_argument", text);
}

/* The library's name of the status, as one word. */
static json_t *failed(st_status status, const st_error *err)
{
    char code[32];
    snprintf(code, sizeof code, "%s", st_status_name(status));
    for (char *p = code; *p; p++)
        if (*p == ' ' || *p == '-') *p = '_';
    return st_click_talk_fault(code, err->message);
}

static json_t *prompt_json(const st_click_talk *t)
{
    const st_click_said *said = &t->said[st_object_n_verbs(t->object)];
    json_t *json = st_json_click_prompt(t->points, said->n_points, said->has_region ? &said->region : NULL, said->mask);
    if (json_object_set_new(json, "refines", said->refines < 0 ? json_null() : json_integer(said->refines)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

/* Ranked candidates, each with its mask, or the chosen one only. */
static json_t *candidates_json(const st_click_talk *t, bool all_masks)
{
    const st_click_result *result = st_object_result(t->object);
    json_t *candidates = json_array();
    for (size_t i = 0; result && i < result->n_candidates; i++) {
        const bool with_mask = all_masks || i == st_object_chosen(t->object);
        if (json_array_append_new(candidates, st_json_candidate(&result->candidates[i], i, with_mask, NULL)) == 0)
            continue;
        json_decref(candidates);
        return NULL;
    }
    return candidates;
}

static json_t *state_json(const st_click_talk *t, const char *op, bool all_masks)
{
    const st_click_result *r = st_object_result(t->object);
    return json_pack("{s:b,s:s,s:I,s:o,s:o,s:o,s:o,s:o,s:o}", "ok", 1, "op", op, "verbs",
                     (json_int_t)st_object_n_verbs(t->object), "prompt", prompt_json(t), "object_score",
                     r ? st_json_float(r->object_score) : json_null(), "multimask",
                     r ? json_boolean(r->multimask) : json_null(), "hole_area",
                     r ? json_integer((json_int_t)r->hole_area) : json_null(), "chosen",
                     r ? json_integer((json_int_t)st_object_chosen(t->object)) : json_null(), "candidates",
                     candidates_json(t, all_masks));
}

/* ---- verbs ---- */

/* After a verb that went well: what the head was asked. `refined` is the rank that was chosen before it, -1 when there
 * was none. */
static st_click_said *remember(st_click_talk *t, int refined)
{
    const size_t n = st_object_n_verbs(t->object);
    st_click_said *said = &t->said[n];
    free(said->mask); /* of a verb that was taken back */
    *said = t->said[n - 1];
    said->mask = NULL;
    said->refines = refined;
    return said;
}

static int chosen_before(const st_click_talk *t)
{
    return st_object_n_verbs(t->object) ? (int)st_object_chosen(t->object) : -1;
}

/* A finite number that a float holds. */
static bool read_number(float *out, const json_t *value)
{
    *out = (float)json_number_value(value);
    return json_is_number(value) && isfinite(*out);
}

static json_t *do_point(st_click_talk *t, const json_t *command)
{
    st_point p = { .positive = 1 };
    st_error err;
    const json_t *label = json_object_get(command, "label");
    const json_int_t said = label ? json_integer_value(label) : 1;
    if (!read_number(&p.x, json_object_get(command, "x")) || !read_number(&p.y, json_object_get(command, "y")))
        return invalid("point: \"x\" and \"y\" must be numbers, in pixels of the picture as shown");
    if ((label && !json_is_integer(label)) || (said != 0 && said != 1))
        return invalid("point: \"label\" must be 1 (on the object) or 0 (beside it)");
    p.positive = (int)said;
    const int refined = chosen_before(t);
    const st_status status = st_object_point(t->object, &p, &err);
    if (status != ST_OK) return failed(status, &err);
    t->points[remember(t, refined)->n_points++] = p;
    return state_json(t, "point", false);
}

static json_t *do_region(st_click_talk *t, const json_t *command)
{
    const json_t *box = json_object_get(command, "box");
    float v[4];
    st_error err;
    for (size_t i = 0; i < 4; i++)
        if (json_array_size(box) != 4 || !read_number(&v[i], json_array_get(box, i)))
            return invalid("region: \"box\" must be [x0, y0, x1, y1], in pixels of the picture as shown");
    const st_region region = { v[0], v[1], v[2], v[3] };
    const int refined = chosen_before(t);
    const st_status status = st_object_region(t->object, &region, &err);
    if (status != ST_OK) return failed(status, &err);
    st_click_said *said = remember(t, refined);
    said->has_region = true;
    said->region = region;
    return state_json(t, "region", false);
}

/* Runs as the replies have them: {"size": [height, width], "counts": "..."}. */
static st_status read_runs(float **logits, const st_click_talk *t, const json_t *mask, st_error *err)
{
    const json_t *size = json_object_get(mask, "size"), *counts = json_object_get(mask, "counts");
    st_rle runs;
    if (json_array_size(size) != 2 || !json_is_integer(json_array_get(size, 0)) ||
        !json_is_integer(json_array_get(size, 1)) || !json_is_string(counts))
        return st_fault(err, ST_ERR_INVALID_ARG,
                        "mask: \"mask\" must be {\"size\": [height, width], \"counts\": \"...\"}");
    const json_int_t height = json_integer_value(json_array_get(size, 0)),
                     width = json_integer_value(json_array_get(size, 1));
    if (height != t->height || width != t->width)
        return st_fault(err, ST_ERR_INVALID_ARG, "mask: size [%lld, %lld], the picture's is [%u, %u]",
                        (long long)height, (long long)width, t->height, t->width);
    st_status status =
        st_rle_from_string(&runs, json_string_value(counts), json_string_length(counts), t->width, t->height, err);
    if (status != ST_OK) return status;
    status = st_mask_prompt_from_runs(logits, t->model, &runs, err);
    st_rle_free(&runs);
    return status;
}

static json_t *do_mask(st_click_talk *t, const json_t *command)
{
    const json_t *path = json_object_get(command, "file"), *mask = json_object_get(command, "mask");
    const char *file = json_string_value(path);
    float *logits = NULL;
    st_error err;
    if (!path == !mask || (path && !file))
        return invalid("mask: either \"file\" (a mask picture, or a .npy of logits) or \"mask\" (runs)");
    char *name = strdup(file ? file : "");
    st_status status = name ? ST_OK : st_fault(&err, ST_ERR_NOMEM, "out of memory");
    if (status == ST_OK)
        status = file ? st_mask_prompt_read(&logits, t->model, file, t->width, t->height, &err)
                      : read_runs(&logits, t, mask, &err);
    if (status == ST_OK) status = st_object_mask(t->object, logits, &err);
    free(logits);
    if (status == ST_OK) {
        remember(t, -1)->mask = name;
        return state_json(t, "mask", false);
    }
    free(name);
    return failed(status, &err);
}

static json_t *do_undo(st_click_talk *t, const json_t *command)
{
    (void)command;
    st_error err;
    const st_status status = st_object_undo(t->object, &err);
    return status == ST_OK ? state_json(t, "undo", false) : failed(status, &err);
}

static json_t *do_reset(st_click_talk *t, const json_t *command)
{
    (void)command;
    st_object_reset(t->object);
    forget_said(t);
    return state_json(t, "reset", false);
}

/* ---- looking, choosing, saving ---- */

static json_t *do_candidates(st_click_talk *t, const json_t *command)
{
    (void)command;
    return state_json(t, "candidates", true);
}

static json_t *do_choose(st_click_talk *t, const json_t *command)
{
    const json_t *rank = json_object_get(command, "rank");
    st_error err;
    if (!json_is_integer(rank) || json_integer_value(rank) < 0)
        return invalid("choose: \"rank\" must be a whole number from 0");
    const st_status status = st_object_choose(t->object, (size_t)json_integer_value(rank), &err);
    return status == ST_OK ? state_json(t, "choose", false) : failed(status, &err);
}

static st_status save_mask(const st_click_talk *t, const st_rle *mask, const char *file, st_error *err)
{
    uint8_t *pixels = malloc((size_t)t->width * t->height);
    if (!pixels) return st_fault(err, ST_ERR_NOMEM, "out of memory for a mask of %u x %u pixels", t->width, t->height);
    st_rle_to_dense(mask, pixels, t->width, 255);
    const st_status status = st_png_write(file, pixels, t->width, t->height, 1, err);
    free(pixels);
    return status;
}

static json_t *do_save(st_click_talk *t, const json_t *command)
{
    const char *file = json_string_value(json_object_get(command, "file"));
    const st_click_result *result = st_object_result(t->object);
    st_error err;
    const size_t n = file ? strlen(file) : 0;
    if (n < 5 || (strcmp(file + n - 4, ".png") != 0 && !st_is_npy(file)))
        return invalid("save: \"file\" must name a .png (the mask) or a .npy (its logits, as `mask` takes them)");
    if (!result) return invalid("save: nothing was clicked yet");
    if ((t->how.file && st_same_file(file, t->how.file)) || (t->how.features && st_same_file(file, t->how.features)))
        return invalid("save: \"%s\" is the picture itself", file);
    const st_candidate *chosen = &result->candidates[st_object_chosen(t->object)];
    st_status status = st_save_possible(file, &err);
    if (status == ST_OK)
        status = st_is_npy(file) ? st_npy_write(file, chosen->logits, result->mask_size, result->mask_size, &err)
                                 : save_mask(t, &chosen->mask, file, &err);
    if (status != ST_OK) return failed(status, &err);
    return json_pack("{s:b,s:s,s:o,s:I}", "ok", 1, "op", "save", "file", st_json_text(file), "area",
                     (json_int_t)chosen->area);
}

static json_t *do_open(st_click_talk *t, const json_t *command)
{
    const json_t *path = json_object_get(command, "file"), *saved = json_object_get(command, "features");
    const char *file = json_string_value(path), *features = json_string_value(saved);
    st_error err;
    if (!path == !saved || !file == !features)
        return invalid("open: either \"file\" (a picture) or \"features\" (a saved one)");
    const st_status status = st_click_talk_open(t, file, features, &err);
    return status == ST_OK ? st_click_talk_opened(t) : failed(status, &err);
}

/* ---- one command ---- */

enum { MAX_KEYS = 3 };

typedef struct click_op {
    const char *name;
    json_t *(*run)(st_click_talk *t, const json_t *command);
    const char *keys[MAX_KEYS]; /* besides "op" and "id" */
} click_op;

static const click_op ops[] = {
    { "point", do_point, { "x", "y", "label" } },
    { "region", do_region, { "box" } },
    { "mask", do_mask, { "file", "mask" } },
    { "undo", do_undo, { 0 } },
    { "reset", do_reset, { 0 } },
    { "candidates", do_candidates, { 0 } },
    { "choose", do_choose, { "rank" } },
    { "save", do_save, { "file" } },
    { "open", do_open, { "file", "features" } },
};

/* A key that the command does not have, or NULL. */
static const char *strange_key(const click_op *op, json_t *command)
{
    const char *key;
    json_t *value;
    json_object_foreach(command, key, value)
    {
        bool known = strcmp(key, "op") == 0 || strcmp(key, "id") == 0;
        for (size_t i = 0; i < MAX_KEYS && op->keys[i]; i++) known |= strcmp(key, op->keys[i]) == 0;
        if (!known) return key;
    }
    return NULL;
}

json_t *st_click_talk_answer(st_click_talk *t, const json_t *command)
{
    char text[320];
    const char *name = json_string_value(json_object_get(command, "op"));
    if (!json_is_object(command) || !name) return st_click_talk_fault("parse", "expected an object with an \"op\"");
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (strcmp(name, ops[i].name) != 0) continue;
        const char *strange = strange_key(&ops[i], (json_t *)(uintptr_t)command);
        return strange ? invalid("%s: \"%s\" is none of its keys", name, strange) : ops[i].run(t, command);
    }
    snprintf(text, sizeof text,
             "\"%.100s\" is no command; there are point, region, mask, undo, reset, candidates, choose, save, open",
             name);
    return st_click_talk_fault("unknown_op", text);
}
