/* job_run.h: a job from its list of names to a full store, however often it is interrupted.
 *
 * A picture is done when its file of the store is there, whole, of this job's recipe and of a picture of this size (or,
 * if asked for, of this content);
 * nothing else is remembered, so that nothing can disagree. While one picture is looked at, the next is read and decoded
 * by a thread of its own.
 */
#ifndef ST_LABEL_JOB_RUN_H
#define ST_LABEL_JOB_RUN_H

#include "label/labels.h"

/* What is left to do in a job's folder. Zero it to begin. */
typedef struct st_label_plan {
    size_t *todo; /* [n_todo] indices of job->names, rising */
    size_t n_todo, n_done;
    size_t n_retried; /* of todo: failed before */
    size_t n_changed; /* of todo: the file is another one than the one that was labelled */
    size_t n_broken;  /* of todo: the store's file cannot be read */
} st_label_plan;
void st_label_plan_free(st_label_plan *plan);
/* How to look; all zero: at all pictures, by the size of their files. */
typedef struct st_label_look {
    size_t limit;            /* only at the first; 0: at all */
    bool content;            /* read files of the same size, too, and compare their SHA-256 */
    const st_cancel *cancel; /* may be NULL */
} st_label_look;
/* root: where the pictures lie. Writes nothing. */
ST_MUSTCHECK st_status st_label_plan_make(st_label_plan *plan, const st_label_job *job, const char *folder,
                                          const char *root, const st_label_look *look, st_error *err);

/* Removes what a killed run left half-written. The folder must be locked. */
void st_label_sweep_up(const char *folder);

/* Called after each picture of the plan is in the store; it belongs to the run. */
typedef void st_label_done_fn(void *user, const st_label_picture *picture, size_t n_done, size_t n_todo);

typedef struct st_label_run {
    const st_label_engine *engine; /* with the job */
    const char *folder, *root;
    const st_cancel *cancel;
    st_label_done_fn *done; /* may be NULL */
    void *user;
    /* filled: */
    size_t n_failed;      /* pictures that could not be read */
    bool writing_failed;  /* what failed was a write into the folder */
} st_label_run;
/* A picture that cannot be read is an entry of the store; what ends the run is cancelling, a full disk, broken weights
 * or lack of memory. Pictures that were finished before stay. */
ST_MUSTCHECK st_status st_label_run_plan(st_label_run *run, const st_label_plan *plan, st_error *err);
/* One picture as a run would do it, without writing; for estimates. */
ST_MUSTCHECK st_status st_label_run_one(const st_label_run *run, size_t index, st_label_picture *out, st_error *err);

/* Writes errors.jsonl from the store: a line for each picture that could not be read, in order. */
ST_MUSTCHECK st_status st_label_errors_write(size_t *n_failed, const st_label_job *job, const char *folder,
                                             st_error *err);

/* Joins the shards of one job, all there and all complete, to what one run over everything would have written. The
 * folders are only read. */
ST_MUSTCHECK st_status st_label_merge(const char *folder, const char *const *shards, size_t n_shards, st_error *err);

#endif
