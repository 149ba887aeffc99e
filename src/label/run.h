/* run.h: the loop over the pictures of a job. The next picture is read and decoded in a thread of its own while the model
 * looks at the present one; results are written one picture at a time, so that a kill costs one picture.
 */
#ifndef ST_LABEL_RUN_H
#define ST_LABEL_RUN_H

#include "label/plan.h"

/* Told after every picture. */
typedef struct st_label_tally {
    size_t n, done, failed;  /* pictures of this run: all, finished (failed ones, too), failed */
    double seconds;          /* since the first one began */
    uint64_t *instances;     /* [job->n_classes] that pass their class's bounds, in this run */
    size_t n_enlarged, n_damaged;
    const st_label_picture *last; /* just finished */
} st_label_tally;
typedef void st_label_tally_fn(void *user, const st_label_tally *tally);

typedef struct st_label_run {
    const char *folder, *root;
    const st_label_job *job;
    const st_label_plan *plan;
    st_label_engine engine;
    const st_cancel *cancel; /* or NULL */
    size_t limit;            /* at most so many pictures; 0 = all */
    st_label_tally_fn *told; /* or NULL */
    void *user;
} st_label_run;

/* Works off what the plan says is not done, in order of names. A picture that cannot be read is recorded and passed over.
 * Fails with ST_ERR_CANCELLED, or when a result cannot be written, or for a fault of the model; *out tells what was done
 * in any case. Free out->instances. */
ST_MUSTCHECK st_status st_label_run_all(st_label_tally *out, const st_label_run *run, st_error *err);
/* Looks at the first picture that can be read and stores nothing: seconds it took; 0 when there is none. */
ST_MUSTCHECK st_status st_label_run_try(double *seconds, const st_label_run *run, st_error *err);

/* Writes errors.jsonl anew from the store. */
ST_MUSTCHECK st_status st_label_errors_write(const st_label_job *job, const char *folder, st_error *err);

/* Joins the parts of a job (the output folders of its shards) in `folder`, whose lock the caller holds. All must mean the
 * same pictures, classes, options and model, and together hold every picture; else nothing is written. */
ST_MUSTCHECK st_status st_label_merge(const char *folder, const char *const *parts, size_t n_parts, st_error *err);

#endif
