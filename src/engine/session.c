/* session.c: scratch memory and the phrases used last. */
#include "engine/engine.h"

#include <string.h>
#include "base/error.h"
#include "base/mem.h"

#define KNOWN(opts, field) ((opts) && (opts)->struct_size >= offsetof(st_session_options, field) + sizeof(opts)->field)

st_status st_session_new(st_session **out, st_model *model, const st_session_options *opts, st_error *err)
{
    if (!out) return st_fail(err, ST_ERR_INVALID_ARG, "session: no place for the result given");
    *out = NULL;
    if (!model) return st_fail(err, ST_ERR_INVALID_ARG, "session: no model given");
    st_session *s = st_calloc(1, sizeof *s);
    if (!s) return st_fail(err, ST_ERR_NOMEM, "session: out of memory");
    s->model = model;
    st_model_ref(model);
    if (KNOWN(opts, cancel)) s->cancel = opts->cancel;
    if (KNOWN(opts, progress_user)) s->progress = opts->progress, s->progress_user = opts->progress_user;
    *out = s;
    return ST_OK;
}

static void forget(st_phrase *p)
{
    st_free(p->text);
    st_free(p->tokens);
    *p = (st_phrase){0};
}

void st_session_forget_phrases(st_session *s)
{
    for (size_t i = 0; i < ST_PHRASE_SLOTS; i++) forget(&s->phrases[i]);
}

void st_session_free(st_session *s)
{
    if (!s) return;
    st_session_forget_phrases(s);
    st_arena_free(&s->arena);
    st_model_free(s->model);
    st_free(s);
}

st_status st_session_run(st_session *s, st_run *run, size_t scratch, st_error *err)
{
    if (s->arena.size < scratch) {
        st_arena_free(&s->arena);
        const st_status status = st_arena_init(&s->arena, scratch, err);
        if (status != ST_OK) return status;
    }
    st_arena_rewind(&s->arena, 0);
    s->arena.overflowed = false;
    st_model *m = s->model;
    *run = (st_run){.k = s->model->kernels, .pool = s->model->pool, .arena = &s->arena, .cancel = s->cancel, .progress = s->progress,
                    .progress_user = s->progress_user, .probe = s->probe, .probe_user = s->probe_user,
                    .int8 = s->model->weights_info.n_int8 > 0, .half = s->model->weights_info.n_half > 0, .watch = s->watch, .watch_user = s->watch_user,
                    .let_go = m->streaming ? st_model_let_go : NULL, .let_go_user = m};
    return ST_OK;
}

/* Encodes a phrase into an empty slot. */
static st_status fill(st_session *s, st_phrase *p, const char *text, st_error *err)
{
    const st_model *m = s->model;
    const size_t D = m->dims->width, context = m->dims->context;
    size_t n = 0;
    st_run run;
    uint32_t *ids = st_calloc(context, sizeof *ids);
    p->text = st_strdup(text);
    p->tokens = st_calloc(context * D, sizeof *p->tokens);
    st_status status = ids && p->text && p->tokens ? ST_OK : st_fail(err, ST_ERR_NOMEM, "phrase: out of memory");
    if (status == ST_OK) status = st_bpe_encode(m->bpe, text, strlen(text), ids, context, &n, &p->cut, err);
    if (status == ST_OK) status = st_session_run(s, &run, m->plan.segment_scratch, err);
    if (status == ST_OK) status = st_text_encode(&run, &m->text, ids, n, p->tokens, err);
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        if (ids[i] == 0) continue; /* the reference takes a '!' inside a punctuation run for padding */
        memmove(p->tokens + p->n_valid++ * D, p->tokens + i * D, D * sizeof *p->tokens);
    }
    p->n_ids = (uint32_t)n;
    st_free(ids);
    if (status != ST_OK) forget(p);
    return status;
}

st_status st_session_phrase(st_session *s, const st_phrase **out, const char *text, st_error *err)
{
    st_phrase *oldest = &s->phrases[0];
    for (size_t i = 0; i < ST_PHRASE_SLOTS; i++) {
        st_phrase *p = &s->phrases[i];
        if (p->text && strcmp(p->text, text) == 0) {
            p->last_use = ++s->n_uses;
            *out = p;
            return ST_OK;
        }
        if (p->last_use < oldest->last_use) oldest = p;
    }
    forget(oldest);
    const st_status status = fill(s, oldest, text, err);
    if (status != ST_OK) return status;
    oldest->last_use = ++s->n_uses;
    *out = oldest;
    return ST_OK;
}

st_status st_tokenize(const char *phrase, uint32_t *ids, size_t capacity, size_t *n_ids, int *cut, st_error *err)
{
    enum { CONTEXT = 32 }; /* of every published model */
    uint32_t own[CONTEXT];
    bool was_cut = false;
    st_bpe *bpe = NULL;
    if (!phrase || !n_ids) return st_fail(err, ST_ERR_INVALID_ARG, "tokenize: no phrase or no place for the count");
    st_status status = st_bpe_new(&bpe, err);
    if (status == ST_OK) status = st_bpe_encode(bpe, phrase, strlen(phrase), own, CONTEXT, n_ids, &was_cut, err);
    st_bpe_free(bpe);
    if (status != ST_OK) return status;
    for (size_t i = 0; ids && i < *n_ids && i < capacity; i++) ids[i] = own[i];
    if (cut) *cut = was_cut;
    return ST_OK;
}
