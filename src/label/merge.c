/* merge.c: the shards of one job become one folder (see job_run.h). Files of the store are taken over byte for byte: that is
 * what makes the result equal to that of one run.
 */
#include "label/job_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "front/save.h"
#include "label/bytes.h"
#include "label/store.h"

#define MAX_STORE_BYTES ((uint64_t)1 << 31)

typedef struct parts {
    const char *const *folders; /* [n] */
    st_label_job *jobs;         /* [n] */
    size_t n;
} parts;

static st_status read_parts(parts *p, st_error *err)
{
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < p->n; i++) {
        bool there = false;
        status = st_label_job_read(&p->jobs[i], &there, p->folders[i], err);
        if (status == ST_OK && !there)
            status = st_fault(err, ST_ERR_IO, "%s: holds no job.json, expected the folder of a shard", p->folders[i]);
    }
    return status;
}

/* Whether each shard is there once, and all are of one job over the same pictures. */
static st_status check_parts(const parts *p, st_error *err)
{
    const st_label_job *first = &p->jobs[0];
    for (size_t i = 0; i < p->n; i++) {
        const st_label_job *job = &p->jobs[i];
        if (strcmp(job->recipe, first->recipe) != 0) {
            char *why = st_label_job_difference(first, job);
            const st_status status = st_fault(err, ST_ERR_INVALID_ARG, "%s and %s are not of one job: %s",
                                              p->folders[0], p->folders[i], why ? why : "they differ");
            free(why);
            return status;
        }
        if (job->n_shards != first->n_shards)
            return st_fault(err, ST_ERR_INVALID_ARG, "%s is one of %u shards, %s one of %u", p->folders[0],
                            first->n_shards, p->folders[i], job->n_shards);
        if (job->n_all != first->n_all || strcmp(job->all_sha256, first->all_sha256) != 0)
            return st_fault(err, ST_ERR_INVALID_ARG, "%s and %s were made of different pictures (%llu and %llu in all)",
                            p->folders[0], p->folders[i], (unsigned long long)first->n_all,
                            (unsigned long long)job->n_all);
        for (size_t k = 0; k < i; k++)
            if (p->jobs[k].shard == job->shard)
                return st_fault(err, ST_ERR_INVALID_ARG, "%s and %s are the same shard, %u/%u", p->folders[k],
                                p->folders[i], job->shard, job->n_shards);
    }
    if (p->n == first->n_shards) return ST_OK;
    for (uint32_t shard = 1; shard <= first->n_shards; shard++) {
        size_t i = 0;
        while (i < p->n && p->jobs[i].shard != shard) i++;
        if (i == p->n) return st_fault(err, ST_ERR_INVALID_ARG, "shard %u/%u is missing", shard, first->n_shards);
    }
    return ST_OK;
}

/* The next name of all parts together: index of its part in *from; false at the end. */
static bool next_name(size_t *from, const parts *p, const size_t *at)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++) {
        if (at[i] == p->jobs[i].n_names) continue;
        if (!any || strcmp(p->jobs[i].names[at[i]], p->jobs[*from].names[at[*from]]) < 0) *from = i;
        any = true;
    }
    return any;
}

/* A copy, complete or absent: a link would tie two jobs together that may be redone apart. */
static st_status take_over(const char *name, const char *from, const char *to, st_error *err)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    char *tail = st_label_store_name(name), *source = tail ? st_label_path(from, tail) : NULL;
    char *target = tail ? st_label_path(to, tail) : NULL, *slash = target ? strrchr(target, '/') : NULL;
    st_status status = source && slash ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    if (status == ST_OK) status = st_label_bytes_read(&bytes, &n, source, source, MAX_STORE_BYTES, err);
    if (status == ST_OK) {
        *slash = '\0';
        status = st_save_folder(target, err);
        *slash = '/';
    }
    if (status == ST_OK) status = st_save_text(target, (const char *)bytes, n, err);
    free(bytes);
    free(tail);
    free(source);
    free(target);
    return status;
}

static st_status take_picture(const char *name, const st_label_job *job, const char *from, const char *to,
                              st_error *err)
{
    bool there;
    st_label_picture p;
    st_status status = st_label_picture_read(&p, &there, name, from, job, false, err);
    if (status != ST_OK) return status;
    if (!there) return st_fault(err, ST_ERR_INVALID_ARG, "%s is not complete: %s is not labelled yet", from, name);
    st_label_picture_free(&p);
    return take_over(name, from, to, err);
}

/* Names of the joined job, and their files. */
static st_status take_all(st_label_job *joined, parts *p, const char *folder, st_error *err)
{
    size_t from = 0, *at = calloc(p->n, sizeof *at);
    joined->names = calloc((size_t)joined->n_all + 1, sizeof *joined->names);
    st_status status = at && joined->names ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    while (status == ST_OK && next_name(&from, p, at)) {
        const char *name = p->jobs[from].names[at[from]++];
        if (joined->n_names == joined->n_all)
            status = st_fault(err, ST_ERR_FORMAT, "%s: holds more pictures than its job has", p->folders[from]);
        else if (joined->n_names && strcmp(joined->names[joined->n_names - 1], name) == 0)
            status = st_fault(err, ST_ERR_FORMAT, "%s: holds a picture that another shard has, too: %s",
                              p->folders[from], name);
        else if (!(joined->names[joined->n_names] = strdup(name)))
            status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
        else {
            joined->n_names++;
            status = take_picture(name, &p->jobs[from], p->folders[from], folder, err);
        }
    }
    if (status == ST_OK && joined->n_names != joined->n_all)
        status = st_fault(err, ST_ERR_FORMAT, "the shards hold %zu pictures together, the job has %llu",
                          joined->n_names, (unsigned long long)joined->n_all);
    free(at);
    return status;
}

/* What the shards say, without names and as a whole; strings are borrowed from the first. */
static st_label_job as_a_whole(const st_label_job *first)
{
    st_label_job joined = *first;
    joined.names = NULL;
    joined.n_names = 0;
    joined.shard = joined.n_shards = 1;
    return joined;
}

static st_status write_job(const st_label_job *joined, const parts *p, const char *folder, st_error *err)
{
    size_t n_failed;
    char *root;
    st_status status = st_label_root_read(&root, p->folders[0], err);
    if (status == ST_OK) status = st_label_errors_write(&n_failed, joined, folder, err);
    if (status == ST_OK && root) status = st_label_root_write(folder, root, err);
    if (status == ST_OK) status = st_label_job_write(joined, folder, err); /* last: it makes the folder a job */
    free(root);
    return status;
}

static st_status refuse_others(const char *folder, const st_label_job *job, st_error *err)
{
    st_label_job there_now;
    bool there = false;
    st_status status = st_label_job_read(&there_now, &there, folder, err);
    if (there && (strcmp(there_now.recipe, job->recipe) != 0 || there_now.n_shards != 1))
        status = st_fault(err, ST_ERR_INVALID_ARG, "%s: holds another job already; choose another folder", folder);
    if (there) st_label_job_free(&there_now);
    return status;
}

static st_status merge_into(const char *folder, parts *p, st_error *err)
{
    st_label_job joined = as_a_whole(&p->jobs[0]);
    char *store = st_label_path(folder, "store");
    int lock = -1;
    st_status status = store ? st_save_folder(folder, err) : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    if (status == ST_OK) status = st_label_lock(&lock, folder, err);
    if (status == ST_OK) status = refuse_others(folder, &joined, err);
    if (status == ST_OK) {
        st_label_sweep_up(folder);
        status = st_save_folder(store, err);
    }
    if (status == ST_OK) status = take_all(&joined, p, folder, err);
    if (status == ST_OK) status = write_job(&joined, p, folder, err);
    for (size_t i = 0; i < joined.n_names; i++) free(joined.names[i]);
    free(joined.names);
    free(store);
    st_label_unlock(lock);
    return status;
}

st_status st_label_merge(const char *folder, const char *const *shards, size_t n_shards, st_error *err)
{
    parts p = { .folders = shards, .n = n_shards, .jobs = calloc(n_shards ? n_shards : 1, sizeof *p.jobs) };
    if (!p.jobs) return st_fault(err, ST_ERR_NOMEM, "out of memory for %zu shards", n_shards);
    if (n_shards == 0) {
        free(p.jobs);
        return st_fault(err, ST_ERR_INVALID_ARG, "no shards to merge");
    }
    st_status status = read_parts(&p, err);
    if (status == ST_OK) status = check_parts(&p, err);
    if (status == ST_OK) status = merge_into(folder, &p, err);
    for (size_t i = 0; i < n_shards; i++) st_label_job_free(&p.jobs[i]);
    free(p.jobs);
    return status;
}
