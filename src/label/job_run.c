/* job_run.c: the loop over pictures (see job_run.h). */
#include "label/job_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/growing.h"
#include "front/report.h"
#include "front/save.h"
#include "label/ahead.h"
#include "label/duplicates.h"
#include "label/store.h"
#include "label/tiles.h"

/* What is wrong with one picture is said in the store; what would be wrong with every picture ends the run. */
static bool ends_the_run(st_status status)
{
    return status == ST_ERR_CANCELLED || status == ST_ERR_NOMEM || status == ST_ERR_NONFINITE ||
           status == ST_ERR_INTERNAL;
}

static void describe(st_label_picture *p, const st_label_loaded *loaded, uint32_t model_size)
{
    const st_bitmap *b = &loaded->bitmap;
    p->width = b->width;
    p->height = b->height;
    p->orientation = b->orientation;
    memcpy(p->format, b->format, sizeof p->format);
    p->damaged = b->damaged;
    p->stretched = b->stretched;
    p->low = b->low;
    p->high = b->high;
    p->enlarged = b->width < model_size && b->height < model_size;
}

static st_status find(st_label_picture *p, const st_label_engine *e, const st_bitmap *bitmap, st_error *err)
{
    const st_label_options *o = &e->job->options;
    st_status status = o->tiling.on ? st_label_find_tiles(p, e, bitmap, err) : st_label_find(p, e, bitmap, err);
    if (status == ST_OK && o->duplicates.measure != ST_LABEL_DUPLICATES_OFF)
        status = st_label_mark_duplicates(p, &o->duplicates, err);
    return status;
}

/* Nothing but name, size and hash of a picture that failed half-way is kept. */
static st_status say_error(st_label_picture *p, const st_error *why, st_error *err)
{
    st_label_picture failed = { .name = p->name, .file = p->file, .n_bytes = p->n_bytes };
    memcpy(failed.sha256, p->sha256, sizeof failed.sha256);
    p->name = p->file = NULL;
    st_label_picture_free(p);
    *p = failed;
    p->error = strdup(why->message);
    return p->error ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
}

static st_status label(st_label_picture *p, const st_label_run *run, st_label_loaded *loaded, const char *name,
                       st_error *err)
{
    st_error why = loaded->err;
    st_status status = loaded->status;
    *p = (st_label_picture){ .name = strdup(name), .n_bytes = loaded->n_bytes };
    if (!p->name) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    memcpy(p->sha256, loaded->sha256, sizeof p->sha256);
    if (status == ST_OK) {
        describe(p, loaded, run->engine->job->model_size);
        status = find(p, run->engine, &loaded->bitmap, &why);
    }
    if (status == ST_OK) return ST_OK;
    /* Memory that one huge picture would need is no reason to stop before the next; it is tried again. */
    if (loaded->status != ST_OK || !ends_the_run(status)) return say_error(p, &why, err);
    return st_fault(err, status, "%s", why.message);
}

st_status st_label_run_one(const st_label_run *run, size_t index, st_label_picture *out, st_error *err)
{
    const st_label_job *job = run->engine->job;
    st_label_loaded loaded;
    st_label_load(&loaded, run->root, job->names[index], &job->options.bitmap);
    const st_status status = label(out, run, &loaded, job->names[index], err);
    st_bitmap_free(&loaded.bitmap);
    if (status != ST_OK) st_label_picture_free(out);
    return status;
}

static st_status step(st_label_run *run, const st_label_plan *plan, size_t i, st_label_ahead *ahead, st_error *err)
{
    const st_label_job *job = run->engine->job;
    st_label_loaded loaded;
    st_label_picture p;
    st_label_ahead_next(ahead, &loaded);
    st_status status = label(&p, run, &loaded, job->names[plan->todo[i]], err);
    st_bitmap_free(&loaded.bitmap);
    if (status == ST_OK) {
        status = st_label_picture_write(&p, run->folder, job, err);
        run->writing_failed = status != ST_OK;
    }
    if (status == ST_OK && p.error) run->n_failed++;
    if (status == ST_OK && run->done) run->done(run->user, &p, i + 1, plan->n_todo);
    st_label_picture_free(&p);
    return status;
}

st_status st_label_run_plan(st_label_run *run, const st_label_plan *plan, st_error *err)
{
    st_label_ahead *ahead = NULL;
    const st_label_job *job = run->engine->job;
    run->n_failed = 0;
    run->writing_failed = false;
    if (plan->n_todo == 0) return ST_OK;
    st_status status = st_label_ahead_start(&ahead, run->root, job->names, plan->todo, plan->n_todo,
                                            &job->options.bitmap, err);
    for (size_t i = 0; status == ST_OK && i < plan->n_todo; i++) {
        if (run->cancel && st_cancel_is_set(run->cancel)) status = st_fault(err, ST_ERR_CANCELLED, "cancelled");
        else status = step(run, plan, i, ahead, err);
    }
    st_label_ahead_stop(ahead);
    return status;
}

/* ---- errors.jsonl ---- */

static bool add_error(st_growing *text, const st_label_picture *p)
{
    json_t *name = st_label_name_to_json(p->name);
    char *line = st_json_line(json_pack("{so,so}", "name", name, "error", st_json_text(p->error)));
    const bool ok = st_growing_adds(text, line);
    free(line);
    return ok;
}

st_status st_label_errors_write(size_t *n_failed, const st_label_job *job, const char *folder, st_error *err)
{
    st_growing lines = { 0 };
    char *text = NULL, *path = st_label_path(folder, "errors.jsonl");
    size_t n = 0;
    st_status status = path ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    *n_failed = 0;
    for (size_t i = 0; status == ST_OK && i < job->n_names; i++) {
        bool there;
        st_label_picture p;
        st_error ignored;
        const st_status read = st_label_picture_read(&p, &there, job->names[i], folder, job, false, &ignored);
        if (read == ST_ERR_NOMEM) status = st_fault(err, read, "%s: out of memory", folder);
        if (read != ST_OK || !there) continue; /* not done */
        if (p.error && !add_error(&lines, &p)) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
        *n_failed += p.error != NULL;
        st_label_picture_free(&p);
    }
    text = st_growing_take(&lines, &n);
    if (!text && status == ST_OK) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    if (status == ST_OK) status = st_save_text(path, text, n, err);
    free(text);
    free(path);
    return status;
}
