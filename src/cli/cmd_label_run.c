/* cmd_label_run.c: a labelling job from its command line to its last file, and the merge of shards. What is exported
 * comes out of the store when all pictures are in it, so that it is the same however often the run was interrupted.
 */
#include "cli/label_export.h"
#include "cli/label_job.h"
#include "cli/label_verbs.h"

#include <string.h>

/* What a run's end means for the exit code; the console has the sentence. */
static int ended(st_label_job_run *r, st_status status, const st_error *err)
{
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_clear(&r->console);
    if (status == ST_ERR_CANCELLED)
        st_console_error(&r->console, "stopped; %zu pictures were labelled, the same command goes on from here",
                         r->tally.n_ok);
    else {
        st_console_error(&r->console, "%s", err->message);
        st_console_say(&r->console, "what is labelled so far is kept; the same command goes on from here");
    }
    if (r->run.writing_failed && status == ST_ERR_IO) return ST_EXIT_OUTPUT;
    return st_exit_of(status);
}

/* What --format asked for, out of the store. */
static int export_all(st_label_job_run *r)
{
    st_label_store *store = NULL;
    st_label_export_options how;
    st_error err;
    if (!r->args->formats) return ST_EXIT_OK;
    st_label_export_options_init(&how);
    how.formats = r->args->formats;
    how.folder = r->args->output;
    how.overwrite = r->args->overwrite;
    how.cancel = r->cancel;
    if (st_label_store_open(&store, r->args->output, &err) != ST_OK) {
        st_console_error(&r->console, "%s", err.message);
        return ST_EXIT_OUTPUT;
    }
    const int code = st_label_export_run(&r->console, store, &how);
    st_label_store_close(store);
    return code;
}

int st_label_job_all(st_label_job_run *r)
{
    st_error err = { ST_OK, "" };
    size_t n_failed = 0;
    st_label_tell_start(r);
    int code = ended(r, st_label_run_plan(&r->run, &r->plan, &err), &err);
    const st_status status = st_label_errors_write(&n_failed, &r->job, r->args->output, &err);
    if (status != ST_OK && code == ST_EXIT_OK) {
        st_console_clear(&r->console);
        st_console_error(&r->console, "%s", err.message);
        code = ST_EXIT_OUTPUT;
    }
    if (code != ST_EXIT_OK) return code;
    st_label_tell_end(r, n_failed);
    code = export_all(r);
    if (code != ST_EXIT_OK) return code;
    return n_failed ? ST_EXIT_PARTLY : ST_EXIT_OK;
}

int st_label_run_job(st_label_args *a)
{
    st_label_job_run r = { .args = a, .lock = -1 };
    st_console_init(&r.console, a->verbosity);
    int code = st_label_job_start(&r);
    if (code == ST_EXIT_OK) code = a->dry_run ? st_label_tell_dry_run(&r) : st_label_job_all(&r);
    if (a->negatives && !a->dry_run && (code == ST_EXIT_OK || code == ST_EXIT_PARTLY)) {
        const int negatives = st_label_run_negatives(&r);
        if (negatives != ST_EXIT_OK) code = negatives;
    }
    st_label_job_end(&r);
    return code;
}

int st_label_merge_parts(const st_label_args *a)
{
    st_console console;
    st_error err;
    st_console_init(&console, a->verbosity);
    const st_status status = st_label_merge(a->output, a->sources, a->n_sources, &err);
    if (status == ST_OK) {
        st_console_say(&console, "merged %zu shards into %s", a->n_sources, a->output);
        return ST_EXIT_OK;
    }
    st_console_error(&console, "%s", err.message);
    return status == ST_ERR_NOMEM      ? ST_EXIT_INTERNAL
           : status == ST_ERR_IO       ? ST_EXIT_OUTPUT
           : status == ST_ERR_INVALID_ARG ? ST_EXIT_USAGE
                                       : ST_EXIT_PARTLY;
}
