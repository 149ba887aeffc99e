/* label_job.h: what a run of `stencil label` holds from start to end. */
#ifndef ST_CLI_LABEL_JOB_H
#define ST_CLI_LABEL_JOB_H

#include "cli/label_args.h"
#include "label/job_run.h"
#include "label/sources.h"

/* What is told while pictures are labelled, and at the end. */
typedef struct st_label_tally {
    double started;
    size_t n_ok, n_failed, n_enlarged, n_damaged, n_full; /* pictures; n_full: a phrase used every query of the model */
    uint64_t *instances; /* [job.n_classes] above threshold, of this run */
} st_label_tally;

typedef struct st_label_job_run {
    st_label_args *args;
    st_console console;
    st_label_job job;
    char *root; /* where the pictures lie */
    st_model *model;
    st_session *session;
    st_concept **concepts; /* [n_concepts] one per phrase of all classes, NULL where a phrase is asked for */
    size_t n_concepts;
    st_label_engine engine;
    st_label_plan plan;
    st_label_run run;
    st_label_tally tally;
    const st_cancel *cancel;
    int lock;
    const struct st_label_job_run *of; /* a job whose model this one uses, too; or NULL */
} st_label_job_run;

/* ---- before ---- */

/* Sources, model, classes with their ids, recipe; then the folder's lock (but for a dry run), what it holds already and
 * what is left to do. An exit code; other than ST_EXIT_OK after a message. */
int st_label_job_start(st_label_job_run *r);
void st_label_job_end(st_label_job_run *r);

/* ---- while, and after ---- */

/* Labels what the plan has left, and says what became of it. */
int st_label_job_all(st_label_job_run *r);
/* The job of the pictures that hold none of it, below the folder of a job that is done. */
int st_label_run_negatives(st_label_job_run *of);

void st_label_tell_start(st_label_job_run *r);
void st_label_tell_picture(void *user, const st_label_picture *picture, size_t n_done, size_t n_todo);
void st_label_tell_end(st_label_job_run *r, size_t n_failed);
/* What would be done and how long it takes, on standard output. */
int st_label_tell_dry_run(st_label_job_run *r);

double st_label_now(void);
/* "3 h 20 min", "45 s". */
void st_label_duration(char out[32], double seconds);

#endif
