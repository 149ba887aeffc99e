/* label_start.c: everything before the first picture of a job. Nothing is written before the command line, the sources,
 * the model and the folder agree.
 */
#include "cli/label_job.h"

#include <stdlib.h>
#include <string.h>
#include "front/save.h"
#include "label/store.h"
#include "label/tiles.h"

enum { GONE_SHOWN = 5 };

static int fail(st_label_job_run *r, int code, const st_error *err)
{
    st_console_error(&r->console, "%s", err->message);
    if (err->status == ST_ERR_CANCELLED) return st_exit_of(err->status);
    return err->status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : code;
}

static int no_memory(st_label_job_run *r)
{
    st_console_error(&r->console, "out of memory");
    return ST_EXIT_INTERNAL;
}

/* ---- sources ---- */

/* One hash over all names, so that shards can tell that they mean the same pictures. */
static bool sum_up(st_label_job *job, const st_label_sources *s)
{
    size_t size = 0, n = 0;
    for (size_t i = 0; i < s->n; i++) size += strlen(s->names[i]) + 1;
    char *all = malloc(size ? size : 1);
    if (!all) return false;
    for (size_t i = 0; i < s->n; i++) {
        const size_t length = strlen(s->names[i]) + 1;
        memcpy(all + n, s->names[i], length);
        n += length;
    }
    job->n_all = s->n;
    st_label_sha256(job->all_sha256, all, size);
    free(all);
    return true;
}

static int find_pictures(st_label_job_run *r)
{
    const st_label_args *a = r->args;
    const st_label_source_request request = { a->sources, a->n_sources, a->root, a->output };
    st_label_sources s;
    st_error err;
    if (st_label_sources_find(&s, &request, &err) != ST_OK) return fail(r, ST_EXIT_USAGE, &err);
    if (s.n_ignored)
        st_console_note(&r->console, "%zu files are no pictures by their name, e.g. %s", s.n_ignored, s.ignored);
    const bool ok = sum_up(&r->job, &s);
    if (a->n_shards) st_label_sources_shard(&s, a->shard, a->n_shards);
    r->job.shard = a->n_shards ? a->shard : 1;
    r->job.n_shards = a->n_shards ? a->n_shards : 1;
    r->job.names = s.names;
    r->job.n_names = s.n;
    r->root = s.root;
    s.names = NULL;
    s.root = NULL;
    s.n = 0;
    st_label_sources_free(&s);
    return ok ? ST_EXIT_OK : no_memory(r);
}

/* ---- model ---- */

static int open_model(st_label_job_run *r)
{
    st_error err;
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    st_model_info info = ST_MODEL_INFO_INIT;
    if (r->of) r->model = r->of->model;
    const int code =
        r->of ? ST_EXIT_OK : st_model_start(&r->model, &r->console, r->args->model, &r->args->wish);
    if (code != ST_EXIT_OK) return code;
    how.cancel = r->cancel;
    how.progress = st_console_progress;
    how.progress_user = &r->console;
    st_status status = st_session_new(&r->session, r->model, &how, &err);
    if (status == ST_OK) status = st_model_get_info(r->model, &info, &err);
    if (status != ST_OK) return fail(r, ST_EXIT_MODEL, &err);
    if (!info.can_segment) {
        st_console_error(&r->console, "this model cannot be asked for phrases: its weights hold no detector");
        return ST_EXIT_MODEL;
    }
    if (st_label_tiling_check(&r->args->options.tiling, info.input_size, &err) != ST_OK)
        return st_usage_error("label", "%s", err.message);
    r->job.stencil = strdup(st_version());
    r->job.model_id = strdup(info.id);
    r->job.model_version = strdup(info.version);
    r->job.precision = strdup(info.precision);
    r->job.model_size = info.input_size;
    if (!r->job.stencil || !r->job.model_id || !r->job.model_version || !r->job.precision) return no_memory(r);
    return ST_EXIT_OK;
}

/* Why a phrase may not do what is meant: said before hours go by, never refused. */
static void tell_doubts(st_label_job_run *r)
{
    for (size_t k = 0; k < r->job.n_classes; k++) {
        const st_label_class *c = &r->job.classes[k];
        for (size_t i = 0; i < c->n_phrases; i++) {
            const uint32_t doubts = c->concepts[i] ? 0 : st_label_lint(c->phrases[i]);
            for (uint32_t bit = 1; bit && bit <= doubts; bit <<= 1)
                if (doubts & bit)
                    st_console_warn(&r->console, "\"%s\" %s", c->phrases[i], st_label_lint_reason(bit));
        }
    }
}

static int load_examples(st_label_job_run *r)
{
    const st_label_job *job = &r->job;
    st_error err;
    size_t flat = 0;
    for (size_t k = 0; k < job->n_classes; k++) r->n_concepts += job->classes[k].n_phrases;
    r->concepts = calloc(r->n_concepts ? r->n_concepts : 1, sizeof *r->concepts);
    if (!r->concepts) return no_memory(r);
    for (size_t k = 0; k < job->n_classes; k++)
        for (size_t i = 0; i < job->classes[k].n_phrases; i++, flat++) {
            const char *file = job->classes[k].concepts[i];
            if (file && st_concept_load(&r->concepts[flat], file, &err) != ST_OK) return fail(r, ST_EXIT_USAGE, &err);
        }
    return ST_EXIT_OK;
}

/* ---- what the folder holds ---- */

static int refuse(st_label_job_run *r, const st_label_job *old)
{
    const char *folder = r->args->output;
    if (old->shard != r->job.shard || old->n_shards != r->job.n_shards) {
        st_console_error(&r->console, "%s: holds shard %u/%u of a job, this is %u/%u; choose another folder", folder,
                         old->shard, old->n_shards, r->job.shard, r->job.n_shards);
        return ST_EXIT_USAGE;
    }
    if (strcmp(old->recipe, r->job.recipe) == 0 && old->model_size != r->job.model_size) {
        /* a config.json was edited: the id, and with it the recipe, cannot tell */
        st_console_error(&r->console, "%s: was labelled at an input size of %u pixels, this model reads %u; choose another folder", folder,
                         old->model_size, r->job.model_size);
        return ST_EXIT_USAGE;
    }
    if (strcmp(old->recipe, r->job.recipe) == 0) return ST_EXIT_OK;
    char *why = st_label_job_difference(old, &r->job);
    const char *said = why ? why : "something that decides the results changed";
    if (r->args->redo) st_console_say(&r->console, "%s: %s: labelling again", folder, said);
    else
        st_console_error(&r->console, "%s: was labelled in another way: %s; --redo labels again, or choose another "
                         "folder", folder, said);
    free(why);
    return r->args->redo ? ST_EXIT_OK : ST_EXIT_USAGE;
}

/* Pictures that the job had and the sources no longer have: their results stay in the store, but are not the job's. */
static void tell_gone(st_label_job_run *r, const st_label_job *old)
{
    size_t n = 0, k = 0;
    for (size_t i = 0; i < old->n_names; i++) {
        while (k < r->job.n_names && strcmp(r->job.names[k], old->names[i]) < 0) k++;
        if (k < r->job.n_names && strcmp(r->job.names[k], old->names[i]) == 0) continue;
        if (n++ < GONE_SHOWN) st_console_warn(&r->console, "%s: is no longer among the sources", old->names[i]);
    }
    if (n > GONE_SHOWN) st_console_warn(&r->console, "%zu more are no longer among the sources", n - GONE_SHOWN);
    if (n)
        st_console_warn(&r->console, "what was found in %s stays in the store, but is not exported; a renamed picture "
                        "is a new one", n == 1 ? "it" : "them");
}

/* Gives classes their ids, with regard to the job that the folder holds. */
static int settle_classes(st_label_job_run *r, st_label_args *a, const st_label_job *old)
{
    st_error err;
    const st_status status =
        st_label_ontology_number(&a->ontology, &r->job.retired, &r->job.n_retired, old, &err);
    if (status != ST_OK) return fail(r, ST_EXIT_USAGE, &err);
    r->job.classes = a->ontology.classes;
    r->job.n_classes = a->ontology.n;
    a->ontology = (st_label_ontology){ 0 };
    r->job.options = a->options;
    return st_label_recipe(&r->job) ? ST_EXIT_OK : no_memory(r);
}

static int meet_folder(st_label_job_run *r, st_label_args *a)
{
    st_label_job old;
    bool there = false;
    st_error err;
    if (st_label_job_read(&old, &there, a->output, &err) != ST_OK) return fail(r, ST_EXIT_OUTPUT, &err);
    int code = settle_classes(r, a, there ? &old : NULL);
    if (code == ST_EXIT_OK && there) code = refuse(r, &old);
    if (code == ST_EXIT_OK && there) tell_gone(r, &old);
    if (there) st_label_job_free(&old);
    return code;
}

static int take_folder(st_label_job_run *r)
{
    st_error err;
    st_status status = st_save_folder(r->args->output, &err);
    if (status == ST_OK) status = st_label_lock(&r->lock, r->args->output, &err);
    if (status != ST_OK) return fail(r, ST_EXIT_OUTPUT, &err);
    st_label_sweep_up(r->args->output);
    return ST_EXIT_OK;
}

static int write_job(st_label_job_run *r)
{
    st_error err;
    st_status status = st_label_root_write(r->args->output, r->root, &err);
    if (status == ST_OK) status = st_label_job_write(&r->job, r->args->output, &err);
    return status == ST_OK ? ST_EXIT_OK : fail(r, ST_EXIT_OUTPUT, &err);
}

static int make_plan(st_label_job_run *r)
{
    st_error err;
    const st_label_look look = { r->args->limit, r->args->check_pictures, r->cancel };
    const st_status status = st_label_plan_make(&r->plan, &r->job, r->args->output, r->root, &look, &err);
    return status == ST_OK ? ST_EXIT_OK : fail(r, ST_EXIT_OUTPUT, &err);
}

int st_label_job_start(st_label_job_run *r)
{
    st_label_args *a = r->args;
    r->lock = -1;
    r->cancel = st_signals_watch();
    if (!r->cancel) return no_memory(r);
    int code = find_pictures(r);
    if (code == ST_EXIT_OK) code = open_model(r);
    if (code == ST_EXIT_OK && !a->dry_run) code = take_folder(r);
    if (code == ST_EXIT_OK) code = meet_folder(r, a);
    if (code == ST_EXIT_OK) code = load_examples(r);
    if (code == ST_EXIT_OK && !a->dry_run) code = write_job(r);
    if (code == ST_EXIT_OK) code = make_plan(r);
    if (code != ST_EXIT_OK) return code;
    if (!r->of) tell_doubts(r);
    r->engine = (st_label_engine){ r->session, &r->job, r->concepts };
    r->run = (st_label_run){ .engine = &r->engine, .folder = a->output, .root = r->root, .cancel = r->cancel,
                             .done = st_label_tell_picture, .user = r };
    r->tally.instances = calloc(r->job.n_classes, sizeof *r->tally.instances);
    return r->tally.instances ? ST_EXIT_OK : no_memory(r);
}

void st_label_job_end(st_label_job_run *r)
{
    for (size_t i = 0; r->concepts && i < r->n_concepts; i++) st_concept_free(r->concepts[i]);
    free(r->concepts);
    free(r->tally.instances);
    free(r->root);
    st_label_plan_free(&r->plan);
    st_session_free(r->session);
    if (!r->of) st_model_free(r->model);
    st_label_job_free(&r->job);
    st_label_unlock(r->lock);
}
