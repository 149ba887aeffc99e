/* picture.c: from pixels to a reference-counted set of features. */
#include "engine/engine.h"

#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "engine/own_file.h"

st_status st_picture_new(st_picture **out, st_model *m, uint32_t width, uint32_t height, bool for_clicks, st_error *err)
{
    const size_t level = (size_t)m->dims->grid * m->dims->grid * m->dims->width; /* floats of the n x n map */
    const size_t D = m->dims->width, n_bytes = ((for_clicks ? 26 : 22) * level + D) * sizeof(float);
    st_picture *p = st_calloc(1, sizeof *p);
    st_shared *shared = st_calloc(1, sizeof *shared);
    float *block = p && shared ? st_aligned(n_bytes, 64) : NULL;
    if (!block || pthread_mutex_init(&shared->lock, NULL) != 0) {
        st_free(block);
        st_free(shared);
        st_free(p);
        return st_fail(err, ST_ERR_NOMEM, "picture: out of memory for %zu bytes of features", n_bytes);
    }
    atomic_init(&p->owners, 1);
    p->model = m;
    st_model_ref(m);
    p->width = width;
    p->height = height;
    p->block = block;
    p->features = (st_features){{block, block + 16 * level, block + 20 * level}};
    p->for_clicks = for_clicks;
    p->shared = shared;
    shared->fusion = block + 21 * level;
    shared->cls = block + 22 * level;
    float *click = shared->cls + D;
    if (for_clicks) p->click = (st_click_features){click, click + level, click + 2 * level};
    *out = p;
    return ST_OK;
}

/* A longer side is no exact number in the resize's fp32 arithmetic; more pixels are more than a run length counts. */
st_status st_picture_check_size(const char *what, uint32_t width, uint32_t height, st_error *err)
{
    if (width > ST_MAX_SIDE || height > ST_MAX_SIDE)
        return st_fail(err, ST_ERR_LIMIT, "%s: %u x %u pixels, at most %u along a side", what, width, height, (unsigned)ST_MAX_SIDE);
    if ((uint64_t)width * height > UINT32_MAX)
        return st_fail(err, ST_ERR_LIMIT, "%s: %u x %u pixels, at most %u in all", what, width, height, UINT32_MAX);
    return ST_OK;
}

st_picture *st_picture_ref(st_picture *p)
{
    if (p) atomic_fetch_add(&p->owners, 1);
    return p;
}

void st_picture_free(st_picture *p)
{
    if (!p || atomic_fetch_sub(&p->owners, 1) != 1) return;
    st_model_free(p->model);
    pthread_mutex_destroy(&p->shared->lock);
    st_free(p->shared);
    st_free(p->source);
    st_free(p->block);
    st_free(p);
}

void st_picture_size(const st_picture *p, uint32_t *width, uint32_t *height)
{
    if (width) *width = p ? p->width : 0;
    if (height) *height = p ? p->height : 0;
}

int st_picture_for_clicks(const st_picture *p) { return p && p->for_clicks; }

const char *st_picture_source(const st_picture *p) { return p ? p->source : NULL; }

st_status st_picture_say_source(st_picture *p, const char *source, st_error *err)
{
    if (!source) return ST_OK;
    p->source = st_strdup(source);
    return p->source ? ST_OK : st_fail(err, ST_ERR_NOMEM, "picture: out of memory for its source");
}

/* Takes pixels from `image`, or px when given. */
static st_status encode(st_picture **out, st_session *s, const st_image *image, st_resize how, const float *px, uint32_t width, uint32_t height,
                        bool for_clicks, st_error *err)
{
    st_model *m = s->model;
    const size_t side = m->dims->image_size;
    st_run run;
    st_picture *p = NULL;
    st_status status = st_model_bind_vision(m, err);
    if (status == ST_OK && for_clicks) status = st_model_bind_click(m, err);
    if (status == ST_OK) status = st_session_run(s, &run, for_clicks ? m->plan.click_encode_scratch : m->plan.encode_scratch, err);
    if (status != ST_OK) return status;
    float *input = st_run_floats(&run, side * side, 3);
    float *trunk = st_run_floats(&run, (size_t)m->dims->grid * m->dims->grid, m->dims->vit_width);
    if ((status = st_run_status(&run, err)) != ST_OK) return status;
    if (px) memcpy(input, px, side * side * 3 * sizeof *px);
    else status = st_resize_normalise(&run, image, how, side, input, err);
    if (status == ST_OK) status = st_picture_new(&p, m, width, height, for_clicks, err);
    if (status == ST_OK) status = st_vision_encode(&run, &m->vision, input, trunk, &p->features, err);
    if (status == ST_OK && for_clicks) {
        st_click_features_run(&run, &m->click, trunk, &p->click);
        status = st_run_status(&run, err);
    }
    if (status != ST_OK) {
        st_picture_free(p);
        return status;
    }
    *out = p;
    return ST_OK;
}

st_status st_picture_encode(st_picture **out, st_session *s, const st_image *image, const st_encode_options *opts, st_error *err)
{
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "picture: no place for the result given");
    *out = NULL;
    if (!s || !image) return st_fail(err, ST_ERR_INVALID_ARG, "picture: no session or no image given");
    const st_encode_options defaults = ST_ENCODE_OPTIONS_INIT;
    const st_encode_options *o = opts ? opts : &defaults;
    if (o->struct_size < sizeof *o) return st_fail(err, ST_ERR_INVALID_ARG, "encode options: struct_size is %zu, expected %zu", o->struct_size, sizeof *o);
    const st_resize how = o->resize;
    if (how != ST_RESIZE_GPU && how != ST_RESIZE_CPU) return st_fail(err, ST_ERR_INVALID_ARG, "picture: unknown resize arithmetic %d", (int)how);
    st_picture *p = NULL;
    st_status status = st_own_check_text("picture source", o->source, ST_MAX_SOURCE_BYTES, err);
    if (status == ST_OK) status = st_picture_check_size("picture", image->width, image->height, err);
    if (status == ST_OK) status = encode(&p, s, image, how, NULL, image->width, image->height, o->for_clicks != 0, err);
    if (status == ST_OK) status = st_picture_say_source(p, o->source, err);
    if (status != ST_OK) {
        st_picture_free(p);
        return status;
    }
    *out = p;
    return ST_OK;
}

st_status st_picture_encode_px(st_picture **out, st_session *s, const float *px, uint32_t width, uint32_t height, bool for_clicks, st_error *err)
{
    *out = NULL;
    return encode(out, s, NULL, ST_RESIZE_GPU, px, width, height, for_clicks, err);
}
