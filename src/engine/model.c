/* model.c: opening, describing and freeing a model. The weights are mapped at once; a stage's layers are bound, and its values checked, when it first runs. */
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"

#define KNOWN(opts, field) ((opts) && (opts)->struct_size >= offsetof(st_model_options, field) + sizeof(opts)->field)

static st_status make_pool(st_model *m, const st_model_options *opts, st_error *err)
{
    unsigned n = KNOWN(opts, n_threads) ? opts->n_threads : 0;
    if (n > ST_POOL_MAX_THREADS) return st_fail(err, ST_ERR_INVALID_ARG, "threads: %u, at most %u", n, (unsigned)ST_POOL_MAX_THREADS);
    return st_pool_new(&m->pool, n ? n : st_cpu_default_threads(), err);
}

/* The weights as pictures of the wanted side need them, and the id that says so. */
static st_status set_input_size(st_model *m, const st_model_options *opts, st_error *err)
{
    const st_status status = st_weights_set_input_size(m->weights, KNOWN(opts, input_size) ? opts->input_size : 0, err);
    const st_dims *d = m->dims;
    if (status != ST_OK) st_error_prefix(err, "%s", m->path);
    else if (d->image_size == d->own_size) snprintf(m->id, sizeof m->id, "%s", m->weights_info.id);
    else {
        snprintf(m->id, sizeof m->id, "%s@%u", m->weights_info.id, d->image_size);
        st_log_line(&m->log, ST_LOG_INFO, "pictures are read at %u x %u pixels; the model's own size is %u", d->image_size, d->image_size, d->own_size);
    }
    return status;
}

static st_status open_parts(st_model *m, const char *path, const st_model_options *opts, st_error *err)
{
    st_status status;
    if ((status = st_weights_open(&m->weights, path, &m->log, err)) != ST_OK) return status;
    m->dims = st_weights_dims(m->weights);
    st_weights_get_info(m->weights, &m->weights_info);
    if ((status = set_input_size(m, opts, err)) != ST_OK) return status;
    m->kernels = st_kernels_best();
    if (st_cpu_mask_error()) st_log_line(&m->log, ST_LOG_WARN, "%s", st_cpu_mask_error());
    snprintf(m->products, sizeof m->products, "%s%s%s", m->kernels->gemm_name, m->weights_info.n_int8 ? "; int8: " : "",
             m->weights_info.n_int8 ? m->kernels->gemm_u8s8_name : "");
    st_log_line(&m->log, ST_LOG_INFO, "kernels: %s; matrix products: %s", m->kernels->level, m->products);
    if ((status = make_pool(m, opts, err)) != ST_OK) return status;
    if ((status = st_bpe_new(&m->bpe, err)) != ST_OK) return status;
    if ((status = st_vision_init(&m->vision, m->dims, err)) != ST_OK) return status;
    if ((status = st_text_init(&m->text, m->dims, err)) != ST_OK) return status;
    if ((status = st_detect_init(&m->detect, m->dims, err)) != ST_OK) return status;
    if ((status = st_click_init(&m->click, m->dims, err)) != ST_OK) return status;
    if ((status = st_plan_compute(&m->plan, m, err)) != ST_OK) return status;
    if ((status = st_plan_choose(m, KNOWN(opts, memory_limit) ? opts->memory_limit : 0, err)) != ST_OK) return status;
    return ST_OK;
}

st_status st_model_open(st_model **out, const char *path, const st_model_options *opts, st_error *err)
{
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "model: no place for the result given");
    *out = NULL;
    if (!path || !*path) return st_fail(err, ST_ERR_INVALID_ARG, "model: no path given");
    st_model *m = st_calloc(1, sizeof *m);
    if (!m) return st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    atomic_init(&m->owners, 1);
    if (KNOWN(opts, log_user)) m->log = (st_log){opts->log, opts->log_user};
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        st_free(m);
        return st_fail(err, ST_ERR_NOMEM, "%s: no lock could be made", path);
    }
    m->path = st_strdup(path);
    st_status status = m->path ? open_parts(m, path, opts, err) : st_fail(err, ST_ERR_NOMEM, "%s: out of memory", path);
    if (status != ST_OK) {
        st_model_free(m);
        return status;
    }
    *out = m;
    return ST_OK;
}

void st_model_let_go(void *user, const char *prefix) { st_weights_drop(((st_model *)user)->weights, prefix); }

void st_model_ref(st_model *m) { atomic_fetch_add(&m->owners, 1); }

void st_model_free(st_model *m)
{
    if (!m || atomic_fetch_sub(&m->owners, 1) != 1) return;
    st_vision_free(&m->vision);
    st_text_free(&m->text);
    st_detect_free(&m->detect);
    st_click_free(&m->click);
    st_bpe_free(m->bpe);
    st_pool_free(m->pool);
    st_weights_free(m->weights);
    pthread_mutex_destroy(&m->lock);
    st_free(m->path);
    st_free(m);
}

st_status st_model_bind_vision(st_model *m, st_error *err)
{
    pthread_mutex_lock(&m->lock);
    const st_status status = st_vision_bind(&m->vision, m->weights, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

st_status st_model_bind_detect(st_model *m, st_error *err)
{
    pthread_mutex_lock(&m->lock);
    st_status status = st_text_bind(&m->text, m->weights, err);
    if (status == ST_OK) status = st_detect_bind(&m->detect, m->weights, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

st_status st_model_bind_click(st_model *m, st_error *err)
{
    pthread_mutex_lock(&m->lock);
    const st_status status = st_click_bind(&m->click, m->weights, err);
    pthread_mutex_unlock(&m->lock);
    return status;
}

/* Two ids of one set of weights, whatever the input size. */
static bool same_weights(const char *a, const char *b)
{
    const size_t n = strcspn(a, "@");
    return n == strcspn(b, "@") && strncmp(a, b, n) == 0;
}

st_status st_model_must_match(const st_model *m, const char *what, const char *id, uint32_t input_size, st_error *err)
{
    if (!same_weights(id, m->id)) return st_fail(err, ST_ERR_INVALID_ARG, "%s: made by model %.12s..., this one is %.12s...", what, id, m->id);
    if (input_size != m->dims->image_size)
        return st_fail(err, ST_ERR_INVALID_ARG, "%s: made at an input size of %u pixels, this model reads %u; make it again, or open the model at the size it was made at", what, input_size,
                       m->dims->image_size);
    return ST_OK;
}

st_status st_picture_must_be_of(const st_picture *p, const st_model *m, const char *what, st_error *err)
{
    if (p->model == m) return ST_OK;
    const st_status status = st_model_must_match(m, what, p->model->id, p->model->dims->image_size, err);
    if (status != ST_OK) return status;
    return st_fail(err, ST_ERR_INVALID_ARG, "%s: encoded by the same model, opened another time; save and load it, or use one st_model", what);
}

st_status st_model_get_info(const st_model *m, st_model_info *info, st_error *err)
{
    if (!m || !info || info->struct_size < sizeof *info)
        return st_fail(err, ST_ERR_INVALID_ARG, "model info: struct_size is %zu, this library fills %zu", info ? info->struct_size : 0, sizeof *info);
    const st_weights_info *w = &m->weights_info;
    *info = (st_model_info){.struct_size = sizeof *info, .id = m->id, .version = w->version, .layout = w->layout, .container = w->container,
                            .precision = w->n_int8 ? "int8" : "fp32", .dtypes = w->dtypes, .input_size = m->dims->image_size, .mask_size = 4 * m->dims->grid,
                            .n_queries = m->dims->n_queries, .parts = w->parts, .n_parts = w->n_parts, .unused = w->unused, .n_unused = w->n_unused,
                            .plan = m->plan_lines, .n_plan = m->n_plan_lines, .plan_peak = m->plan_peak, .can_segment = 1,
                            .can_click = m->dims->has_click, .can_track = m->dims->has_track, .cpu_level = m->kernels->level,
                            .gemm = m->products, .n_threads = st_pool_size(m->pool),
                            .own_input_size = m->dims->own_size};
    return ST_OK;
}
