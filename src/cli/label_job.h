/* label_job.h: a command line of `stencil label` and the folder that it names, made into a job. */
#ifndef ST_CLI_LABEL_JOB_H
#define ST_CLI_LABEL_JOB_H

#include "cli/label_args.h"
#include "label/sources.h"

typedef struct st_label_start {
    const st_label_args *args;
    st_console *console;
    st_label_sources sources;
    st_model *model;
    st_session *session;
    st_label_job job, old;
    bool has_old;
    st_concept **concepts; /* [n_concepts] one per phrase of all classes, NULL for a plain phrase */
    size_t n_concepts;
    int lock; /* -1: none */
} st_label_start;

/* Finds the pictures, opens the model, holds the folder (unless this is a dry run), and compares with the job that is there.
 * ST_EXIT_OK, or an exit code after a message. args->ontology moves into the job. st_label_start_free in any case. */
int st_label_start_job(st_label_start *s, st_label_args *args, st_console *console, const st_cancel *cancel);
void st_label_start_free(st_label_start *s);

#endif
