/* plan.h: what a run has to do: which pictures of the job are done, which are not and why, and what lies in the store that no
 * picture of the job accounts for.
 */
#ifndef ST_LABEL_PLAN_H
#define ST_LABEL_PLAN_H

#include "label/labels.h"

typedef enum st_label_state {
    ST_LABEL_NEW = 0,     /* not in the store */
    ST_LABEL_DONE = 1,
    ST_LABEL_FAILED = 2,  /* could not be read the last time: tried again */
    ST_LABEL_CHANGED = 3, /* the file's size is another one */
    ST_LABEL_OTHER = 4    /* done with other options */
} st_label_state;
enum { ST_LABEL_N_STATES = 5 };

typedef struct st_label_plan {
    unsigned char *states; /* [job->n_names] */
    size_t n[ST_LABEL_N_STATES];
    size_t n_orphans; /* pictures of the store that are not in the job any more: renamed, moved or deleted */
    char *orphan;     /* the name of the first one, as text; or NULL */
} st_label_plan;
void st_label_plan_free(st_label_plan *plan);

/* Looks, and changes nothing. `root` may be NULL: then no file's size is looked at. */
ST_MUSTCHECK st_status st_label_plan_make(st_label_plan *out, const st_label_job *job, const char *folder,
                                          const char *root, st_error *err);
/* Removes what a killed run left half-written, and with `orphans` the results of pictures that are gone. The caller
 * holds the lock. */
ST_MUSTCHECK st_status st_label_clean(const st_label_job *job, const char *folder, bool orphans, st_error *err);

#endif
