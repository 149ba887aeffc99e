/* picture_file.c: encoded pictures on disk. Values are the features themselves, so a picture read back gives the same bits as the one that was saved (fp32). */
#include <stdlib.h>
#include "base/error.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "engine/own_file.h"

/* What a picture holds, in file order. Returns the number of tensors. */
static size_t list_maps(const st_picture *p, st_tensor_out out[6], float *data[6])
{
    const uint64_t N = (uint64_t)p->model->dims->grid * p->model->dims->grid, D = p->model->dims->width;
    float *const maps[6] = {p->features.level[0], p->features.level[1], p->features.level[2], p->click.tokens, p->click.skip1, p->click.skip0};
    static const char *const names[6] = {"neck.0", "neck.1", "neck.2", "click.tokens", "click.skip1", "click.skip0"};
    const uint64_t rows[6] = {16 * N, 4 * N, N, N, 4 * N, 16 * N}, cols[6] = {D, D, D, D, D / 4, D / 8};
    const size_t n = p->for_clicks ? 6 : 3;
    for (size_t i = 0; i < n; i++) {
        out[i] = (st_tensor_out){names[i], 2, {rows[i], cols[i]}, maps[i]};
        data[i] = maps[i];
    }
    return n;
}

st_status st_picture_save(const st_picture *p, const char *path, int half, st_error *err)
{
    if (!p || !path) return st_fail(err, ST_ERR_INVALID_ARG, "picture: no picture or no path given");
    st_tensor_out maps[6];
    float *data[6];
    json_t *about = st_own_about("picture");
    size_t n_expected = 8;
    if (about) {
        json_object_set_new(about, "model", json_string(p->model->id));
        json_object_set_new(about, "input_size", json_integer(p->model->dims->image_size));
        json_object_set_new(about, "width", json_integer(p->width));
        json_object_set_new(about, "height", json_integer(p->height));
        json_object_set_new(about, "for_clicks", json_integer(p->for_clicks));
        if (p->source) json_object_set_new(about, "source", json_string(p->source)), n_expected++;
    }
    char *text = about && json_object_size(about) == n_expected ? json_dumps(about, JSON_COMPACT) : NULL;
    json_decref(about);
    if (!text) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    const st_status status = st_safetensors_write(path, maps, list_maps(p, maps, data), half != 0, text, err);
    free(text); /* allocated by jansson */
    return status;
}

static st_status load(st_picture **out, st_model *m, const st_own_file *f, const char *path, st_error *err)
{
    const char *id;
    uint32_t input, width, height, for_clicks;
    st_status status = st_own_text(f, path, "model", &id, err);
    if (status == ST_OK) status = st_own_count(f, path, "input_size", 1, UINT32_MAX, &input, err);
    if (status == ST_OK) status = st_own_count(f, path, "width", 1, UINT32_MAX, &width, err);
    if (status == ST_OK) status = st_own_count(f, path, "height", 1, UINT32_MAX, &height, err);
    if (status == ST_OK) status = st_own_count(f, path, "for_clicks", 0, 1, &for_clicks, err);
    if (status != ST_OK) return status;
    if ((status = st_model_must_match(m, path, id, input, err)) != ST_OK) return status;
    if ((status = st_picture_check_size(path, width, height, err)) != ST_OK) return status;
    if (for_clicks && (status = st_model_bind_click(m, err)) != ST_OK) return status;
    st_picture *p = NULL;
    if ((status = st_picture_new(&p, m, width, height, for_clicks != 0, err)) != ST_OK) return status;
    st_tensor_out maps[6];
    float *data[6];
    const size_t n = list_maps(p, maps, data);
    status = st_picture_say_source(p, json_string_value(json_object_get(f->about, "source")), err);
    for (size_t i = 0; status == ST_OK && i < n; i++)
        status = st_own_read(f, path, maps[i].name, (size_t)maps[i].shape[0], (size_t)maps[i].shape[1], data[i], err);
    if (status != ST_OK) {
        st_picture_free(p);
        return status;
    }
    *out = p;
    return ST_OK;
}

st_status st_picture_load(st_picture **out, st_model *m, const char *path, st_error *err)
{
    st_own_file f;
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "picture: no place for the result given");
    *out = NULL;
    if (!m || !path) return st_fail(err, ST_ERR_INVALID_ARG, "picture: no model or no path given");
    st_status status = st_own_open(&f, path, "picture", err);
    if (status != ST_OK) return status;
    status = load(out, m, &f, path, err);
    st_own_close(&f);
    return status;
}
