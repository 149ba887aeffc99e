/* store_read.c: a job's folder, read picture by picture in order of names, and the lock that keeps writers apart. */
#include "label/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "front/fault.h"

struct st_label_store {
    char *folder, *root;
    st_label_job job;
    size_t at, missing;
};

void st_label_store_close(st_label_store *s)
{
    if (!s) return;
    st_label_job_free(&s->job);
    free(s->folder);
    free(s->root);
    free(s);
}

st_status st_label_store_open(st_label_store **out, const char *folder, st_error *err)
{
    bool there = false;
    st_label_store *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s) s->folder = strdup(folder);
    st_status status = s && s->folder ? st_label_job_read(&s->job, &there, folder, err)
                                      : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    if (status == ST_OK && !there)
        status = st_fault(err, ST_ERR_IO, "%s: holds no job.json, expected the output folder of `stencil label`", folder);
    if (status == ST_OK) status = st_label_root_read(&s->root, folder, err);
    if (status != ST_OK) {
        st_label_store_close(s);
        return status;
    }
    *out = s;
    return ST_OK;
}

const st_label_job *st_label_store_job(const st_label_store *s) { return &s->job; }

void st_label_store_rewind(st_label_store *s) { s->at = s->missing = 0; }

size_t st_label_store_missing(const st_label_store *s) { return s->missing; }

st_status st_label_store_next(st_label_store *s, st_label_picture *picture, bool *more, st_error *err)
{
    *picture = (st_label_picture){ 0 };
    *more = false;
    while (s->at < s->job.n_names) {
        bool there;
        const char *name = s->job.names[s->at++];
        st_status status = st_label_picture_read(picture, &there, name, s->folder, &s->job, true, err);
        if (status != ST_OK) return status;
        if (!there) {
            s->missing++;
            continue;
        }
        if (s->root && !(picture->file = st_label_path(s->root, name))) {
            st_label_picture_free(picture);
            return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
        }
        *more = true;
        return ST_OK;
    }
    return ST_OK;
}

/* ---- lock ---- */

st_status st_label_lock(int *out, const char *folder, st_error *err)
{
    char *path = st_label_path(folder, ".lock");
    *out = -1;
    if (!path) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    st_status status = ST_OK;
    if (fd < 0) status = st_fault(err, ST_ERR_IO, "%s: %s", path, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK
                     ? st_fault(err, ST_ERR_IO, "%s: another run is writing to this folder", folder)
                     : st_fault(err, ST_ERR_IO, "%s: cannot be locked: %s", path, strerror(errno));
    if (status == ST_OK) *out = fd;
    else if (fd >= 0) close(fd);
    free(path);
    return status;
}

void st_label_unlock(int lock)
{
    if (lock >= 0) close(lock);
}
