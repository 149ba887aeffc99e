/* label_negatives.c: pictures known to hold none of what a job looks for: a job of their own, below the job's folder,
 * with the same classes and options; then how often each phrase fired on them.
 */
#include "cli/label_job.h"
#include "label/store.h"
#include "label/sweep.h"

#include <stdlib.h>

/* ---- what it came to ---- */

static st_status read_store(st_label_negatives *g, st_label_store *store, st_error *err)
{
    st_status status = st_label_negatives_begin(g, st_label_store_job(store), NULL, 0, err);
    for (bool more = true; status == ST_OK && more;) {
        st_label_picture p;
        status = st_label_store_next(store, &p, &more, err);
        if (status != ST_OK) break;
        if (more) st_label_negatives_add(g, &p);
        st_label_picture_free(&p);
    }
    return status;
}

static void tell(st_console *console, const st_label_negatives *g)
{
    for (size_t flat = 0; g->n_pictures && flat < g->n_phrases; flat++) {
        size_t k = 0;
        const double rate = st_label_false_rate(g, flat, g->n_thresholds);
        const st_label_class *cls = st_label_phrase_at(&k, g->job, flat);
        if (rate > ST_LABEL_MAX_FALSE)
            st_console_warn(console, "%s: \"%s\" fires on %.1f %% of %llu pictures without any, at %g; more than %g %% "
                            "is too often: see `stencil label sweep`", cls->name, cls->phrases[k], 100.0 * rate,
                            (unsigned long long)g->n_pictures, (double)cls->threshold, 100.0 * ST_LABEL_MAX_FALSE);
        else
            st_console_say(console, "  %s: \"%s\" fires on %.1f %% of %llu pictures without any, at %g", cls->name,
                           cls->phrases[k], 100.0 * rate, (unsigned long long)g->n_pictures, (double)cls->threshold);
    }
}

static int tell_rates(st_console *console, const char *folder)
{
    st_label_store *store = NULL;
    st_label_negatives g = { 0 };
    st_error err;
    st_status status = st_label_store_open(&store, folder, &err);
    if (status == ST_OK) status = read_store(&g, store, &err);
    if (status == ST_OK) tell(console, &g);
    else st_console_error(console, "%s", err.message);
    st_label_negatives_free(&g);
    st_label_store_close(store);
    return status == ST_OK ? ST_EXIT_OK : status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}

/* ---- the run ---- */

/* The job's words, but for what is looked at and where it goes. All of them are looked at, whatever the shard. */
static bool other_args(st_label_args *out, const st_label_job_run *of, const char **source)
{
    *out = *of->args;
    *source = of->args->negatives;
    out->sources = source;
    out->n_sources = 1;
    out->root = out->negatives = NULL;
    out->shard = out->n_shards = 0;
    out->limit = 0;
    out->formats = 0;
    out->output = NULL;
    out->ontology = (st_label_ontology){ st_label_classes_copy(of->job.classes, of->job.n_classes), of->job.n_classes,
                                         of->n_concepts };
    return out->ontology.classes != NULL;
}

int st_label_run_negatives(st_label_job_run *of)
{
    st_label_args args;
    const char *source;
    char *folder = st_label_path(of->args->output, ST_LABEL_NEGATIVES_FOLDER);
    st_label_job_run r = { .args = &args, .console = of->console, .of = of, .lock = -1 };
    if (!folder || !other_args(&args, of, &source)) {
        st_console_error(&of->console, "out of memory");
        free(folder);
        return ST_EXIT_INTERNAL;
    }
    args.output = folder;
    st_session_free(of->session); /* its work is done: one session's memory at a time */
    of->session = NULL;
    st_console_say(&of->console, "%s: pictures that should hold none of it", source);
    int code = st_label_job_start(&r);
    if (code == ST_EXIT_OK) code = st_label_job_all(&r);
    if (code == ST_EXIT_OK || code == ST_EXIT_PARTLY) {
        const int told = tell_rates(&r.console, folder);
        if (told != ST_EXIT_OK) code = told;
    }
    st_label_job_end(&r);
    st_label_ontology_free(&args.ontology);
    free(folder);
    return code;
}
