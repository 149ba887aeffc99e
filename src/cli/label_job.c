/* label_job.c: from words to a job (see label_job.h). Nothing is written here but the folder itself and its lock: a job that
 * is refused leaves what is there as it was.
 */
#include "cli/label_job.h"
#include "front/save.h"
#include "label/store.h"
#include "label/tiles.h"

#include <stdlib.h>
#include <string.h>

static int out_of_memory(st_label_start *s)
{
    st_console_error(s->console, "out of memory");
    return ST_EXIT_INTERNAL;
}

static int find_pictures(st_label_start *s)
{
    const st_label_args *a = s->args;
    const st_label_source_request request = { a->sources, a->n_sources, a->root, a->output };
    st_error err;
    const st_status status = st_label_sources_find(&s->sources, &request, &err);
    if (status == ST_ERR_NOMEM) return out_of_memory(s);
    if (status != ST_OK) return st_usage_error("label", "%s", err.message);
    if (s->sources.n_ignored)
        st_console_note(s->console, "%zu files are no pictures by their names, the first is %s", s->sources.n_ignored,
                        s->sources.ignored);
    return ST_EXIT_OK;
}

static int open_model(st_label_start *s, const st_cancel *cancel, st_model_info *info)
{
    st_error err;
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    const int code = st_model_start(&s->model, s->console, s->args->model, s->args->n_threads);
    if (code != ST_EXIT_OK) return code;
    how.cancel = cancel;
    st_status status = st_session_new(&s->session, s->model, &how, &err);
    if (status == ST_OK) status = st_model_get_info(s->model, info, &err);
    if (status == ST_OK && info->can_segment) {
        if (st_label_tiling_check(&s->args->options.tiling, info->input_size, &err) == ST_OK) return ST_EXIT_OK;
        return st_usage_error("label", "%s", err.message);
    }
    st_console_error(s->console, "%s", status == ST_OK ? "this model does not find phrases" : err.message);
    return ST_EXIT_MODEL;
}

static int hold_folder(st_label_start *s)
{
    const char *folder = s->args->output;
    st_error err = { ST_OK, "" };
    if (s->args->dry_run) return ST_EXIT_OK;
    if (st_save_folder(folder, &err) == ST_OK && st_label_lock(&s->lock, folder, &err) == ST_OK) return ST_EXIT_OK;
    st_console_error(s->console, "%s", err.message);
    return ST_EXIT_OUTPUT;
}

/* ---- the job ---- */

/* All names of all shards, before this shard's are chosen. */
static bool hash_names(st_label_start *s)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return false;
    for (size_t i = 0; i < s->sources.n; i++) fwrite(s->sources.names[i], 1, strlen(s->sources.names[i]) + 1, f);
    const bool ok = fclose(f) == 0;
    if (ok) st_label_sha256(s->job.all_sha256, text, n);
    s->job.n_all = s->sources.n;
    free(text);
    return ok;
}

static int fill_job(st_label_start *s, st_label_args *a, const st_model_info *info)
{
    st_label_job *job = &s->job;
    st_error err;
    if (!hash_names(s)) return out_of_memory(s);
    const st_status status =
        st_label_ontology_number(&a->ontology, &job->retired, &job->n_retired, s->has_old ? &s->old : NULL, &err);
    if (status != ST_OK) return st_usage_error("label", "%s", err.message);
    job->classes = a->ontology.classes;
    job->n_classes = a->ontology.n;
    a->ontology = (st_label_ontology){ 0 };
    job->stencil = strdup(st_version());
    job->model_id = strdup(info->id);
    job->model_version = strdup(info->version);
    job->precision = strdup(info->precision);
    job->model_size = info->input_size;
    job->options = a->options;
    job->shard = a->shard ? a->shard : 1;
    job->n_shards = a->n_shards ? a->n_shards : 1;
    st_label_sources_shard(&s->sources, job->shard, job->n_shards);
    job->names = s->sources.names;
    job->n_names = s->sources.n;
    s->sources.names = NULL;
    s->sources.n = 0;
    if (!job->stencil || !job->model_id || !job->model_version || !job->precision || !st_label_recipe(job))
        return out_of_memory(s);
    return ST_EXIT_OK;
}

/* Examples are asked for in place of their phrase. */
static int load_concepts(st_label_start *s)
{
    st_error err;
    for (size_t k = 0; k < s->job.n_classes; k++) s->n_concepts += s->job.classes[k].n_phrases;
    s->concepts = calloc(s->n_concepts ? s->n_concepts : 1, sizeof *s->concepts);
    if (!s->concepts) return out_of_memory(s);
    size_t flat = 0;
    for (size_t k = 0; k < s->job.n_classes; k++) {
        const st_label_class *c = &s->job.classes[k];
        for (size_t i = 0; i < c->n_phrases; i++, flat++) {
            if (!c->concepts[i] || st_concept_load(&s->concepts[flat], c->concepts[i], &err) == ST_OK) continue;
            return st_usage_error("label", "%s", err.message);
        }
    }
    return ST_EXIT_OK;
}

static int compare(st_label_start *s)
{
    const st_label_job *old = &s->old, *job = &s->job;
    if (old->shard != job->shard || old->n_shards != job->n_shards)
        return st_usage_error("label", "%s holds shard %u/%u, and this is %u/%u: give each shard a folder of its own",
                              s->args->output, old->shard, old->n_shards, job->shard, job->n_shards);
    if (strcmp(old->recipe, job->recipe) == 0) return ST_EXIT_OK;
    char *what = st_label_job_difference(old, job);
    int code = ST_EXIT_OK;
    if (!s->args->redo)
        code = st_usage_error("label", "%s was labelled in another way: %s; --redo labels it again, or take another -o",
                              s->args->output, what ? what : "the options are others");
    else st_console_say(s->console, "labelling again: %s", what ? what : "the options are others");
    free(what);
    return code;
}

/* Both lists rise: one walk. */
static void tell_gone(const st_label_start *s)
{
    size_t n = 0, first = 0, k = 0;
    for (size_t i = 0; i < s->old.n_names; i++) {
        while (k < s->job.n_names && strcmp(s->job.names[k], s->old.names[i]) < 0) k++;
        if (k < s->job.n_names && strcmp(s->job.names[k], s->old.names[i]) == 0) continue;
        if (n++ == 0) first = i;
    }
    if (n == 0) return;
    st_console_warn(s->console,
                    "%zu %s of this job %s not among the sources any more (renamed, moved or deleted; the first is "
                    "%s): their results stay in the store and are not exported",
                    n, n == 1 ? "picture" : "pictures", n == 1 ? "is" : "are", s->old.names[first]);
}

int st_label_start_job(st_label_start *s, st_label_args *a, st_console *console, const st_cancel *cancel)
{
    st_model_info info = ST_MODEL_INFO_INIT;
    st_error err;
    *s = (st_label_start){ .args = a, .console = console, .lock = -1 };
    int code = find_pictures(s);
    if (code == ST_EXIT_OK) code = hold_folder(s);
    if (code == ST_EXIT_OK && st_label_job_read(&s->old, &s->has_old, a->output, &err) != ST_OK) {
        st_console_error(console, "%s", err.message);
        code = ST_EXIT_OUTPUT;
    }
    if (code == ST_EXIT_OK) code = open_model(s, cancel, &info);
    if (code == ST_EXIT_OK) code = fill_job(s, a, &info);
    if (code == ST_EXIT_OK && s->has_old) code = compare(s);
    if (code == ST_EXIT_OK) code = load_concepts(s);
    if (code == ST_EXIT_OK && s->has_old) tell_gone(s);
    return code;
}

void st_label_start_free(st_label_start *s)
{
    for (size_t i = 0; i < s->n_concepts && s->concepts; i++) st_concept_free(s->concepts[i]);
    free(s->concepts);
    st_label_job_free(&s->job);
    st_label_job_free(&s->old);
    st_label_sources_free(&s->sources);
    st_session_free(s->session);
    st_model_free(s->model);
    if (s->lock >= 0) st_label_unlock(s->lock);
}
