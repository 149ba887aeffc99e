/* job_plan.c: what is left to do in a job's folder, and what a killed run left there (see job_run.h). */
#include "label/job_run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "label/store.h"

void st_label_plan_free(st_label_plan *plan)
{
    free(plan->todo);
    *plan = (st_label_plan){ 0 };
}

/* Whether the file is there and of another size. One that is not there now does not undo what was done. */
static bool is_another(const char *root, const st_label_picture *p, st_error *err, st_status *status)
{
    struct stat st;
    char *path = st_label_path(root, p->name);
    if (!path) *status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    const bool changed = path && stat(path, &st) == 0 && (uint64_t)st.st_size != p->n_bytes;
    free(path);
    return changed;
}

static st_status look_at(st_label_plan *plan, size_t index, const st_label_job *job, const char *folder,
                         const char *root, st_error *err)
{
    bool there, todo = true;
    st_label_picture p;
    st_status status = st_label_picture_read(&p, &there, job->names[index], folder, job, false, err);
    if (status == ST_ERR_FORMAT) {
        plan->n_broken++;
        status = ST_OK;
    } else if (status == ST_OK && there) {
        if (p.error) plan->n_retried++;
        else if (is_another(root, &p, err, &status)) plan->n_changed++;
        else todo = false;
    }
    if (there) st_label_picture_free(&p);
    if (todo) plan->todo[plan->n_todo++] = index;
    else plan->n_done++;
    return status;
}

st_status st_label_plan_make(st_label_plan *plan, const st_label_job *job, const char *folder, const char *root,
                             size_t limit, st_error *err)
{
    const size_t n = limit && limit < job->n_names ? limit : job->n_names;
    st_label_plan_free(plan);
    plan->todo = calloc(n ? n : 1, sizeof *plan->todo);
    st_status status = plan->todo ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory for %zu pictures", n);
    for (size_t i = 0; status == ST_OK && i < n; i++) status = look_at(plan, i, job, folder, root, err);
    if (status != ST_OK) st_label_plan_free(plan);
    return status;
}

/* ---- leftovers ---- */

static void remove_temporary(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        const size_t n = strlen(e->d_name);
        if (n > 4 && strcmp(e->d_name + n - 4, ".tmp") == 0) unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

void st_label_sweep_up(const char *folder)
{
    char *store = st_label_path(folder, "store");
    DIR *d = store ? opendir(store) : NULL;
    remove_temporary(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char *inside = e->d_name[0] != '.' ? st_label_path(store, e->d_name) : NULL;
        if (inside) remove_temporary(inside);
        free(inside);
    }
    if (d) closedir(d);
    free(store);
}
