/* job_plan.c: what is left to do in a job's folder, and what a killed run left there (see job_run.h). */
#include "label/job_run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "label/bytes.h"
#include "label/store.h"

void st_label_plan_free(st_label_plan *plan)
{
    free(plan->todo);
    *plan = (st_label_plan){ 0 };
}

static st_status content_differs(bool *differs, const char *path, const st_label_picture *p, const st_label_job *job,
                                 st_error *err)
{
    unsigned char *bytes;
    size_t n;
    char sha[65];
    const st_status status = st_label_bytes_read(&bytes, &n, path, p->name, job->options.bitmap.max_bytes, err);
    *differs = false;
    if (status != ST_OK) return status == ST_ERR_NOMEM ? status : ST_OK;
    st_label_sha256(sha, bytes, n);
    *differs = strcmp(sha, p->sha256) != 0;
    free(bytes);
    return ST_OK;
}

/* Whether the file is another one now. One that is not there, or cannot be read, does not undo what was done. */
static st_status is_another(bool *another, const char *root, const st_label_picture *p, const st_label_job *job,
                            bool content, st_error *err)
{
    struct stat st;
    char *path = st_label_path(root, p->name);
    st_status status = path ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    const bool there = path && stat(path, &st) == 0;
    *another = there && (uint64_t)st.st_size != p->n_bytes;
    if (there && !*another && content) status = content_differs(another, path, p, job, err);
    free(path);
    return status;
}

static st_status look_at(st_label_plan *plan, size_t index, const st_label_job *job, const char *folder,
                         const char *root, bool content, st_error *err)
{
    bool there, todo = true;
    st_label_picture p;
    st_status status = st_label_picture_read(&p, &there, job->names[index], folder, job, false, err);
    if (status == ST_ERR_FORMAT) {
        plan->n_broken++;
        status = ST_OK;
    } else if (status == ST_OK && there) {
        if (p.error) plan->n_retried++;
        else status = is_another(&todo, root, &p, job, content, err), plan->n_changed += todo;
    }
    if (there) st_label_picture_free(&p);
    if (todo) plan->todo[plan->n_todo++] = index;
    else plan->n_done++;
    return status;
}

st_status st_label_plan_make(st_label_plan *plan, const st_label_job *job, const char *folder, const char *root,
                             const st_label_look *look, st_error *err)
{
    const size_t n = look->limit && look->limit < job->n_names ? look->limit : job->n_names;
    st_label_plan_free(plan);
    plan->todo = calloc(n ? n : 1, sizeof *plan->todo);
    st_status status = plan->todo ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory for %zu pictures", n);
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        if (look->cancel && st_cancel_is_set(look->cancel)) status = st_fault(err, ST_ERR_CANCELLED, "cancelled");
        else status = look_at(plan, i, job, folder, root, look->content, err);
    }
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
