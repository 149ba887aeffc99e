/* ahead.c: pictures read and decoded by a thread (see ahead.h). One slot is being filled or waits to be taken; what was
 * taken belongs to the other side, so the thread is never more than one picture ahead.
 */
#include "label/ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "label/bytes.h"
#include "label/store.h"

void st_label_load(st_label_loaded *out, const char *root, const char *name, const st_bitmap_options *how)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    *out = (st_label_loaded){ 0 };
    char *path = st_label_path(root, name), *text = st_label_text(name);
    if (!path || !text) out->status = st_fault(&out->err, ST_ERR_NOMEM, "%s: out of memory", name);
    if (out->status == ST_OK) out->status = st_label_bytes_read(&bytes, &n, path, text, how->max_bytes, &out->err);
    if (out->status == ST_OK) {
        out->n_bytes = n;
        st_label_sha256(out->sha256, bytes, n);
        out->status = st_bitmap_decode(&out->bitmap, bytes, n, text, how, &out->err);
    }
    free(bytes);
    free(path);
    free(text);
}

struct st_label_ahead {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const char *root;
    char *const *names;
    const size_t *todo;
    size_t n_todo;
    st_bitmap_options how;
    st_label_loaded slot;
    bool full, stop;
};

/* Waits until the slot is free; false when it is time to stop. */
static bool wait_for_room(st_label_ahead *a)
{
    pthread_mutex_lock(&a->mutex);
    while (a->full && !a->stop) pthread_cond_wait(&a->changed, &a->mutex);
    const bool go = !a->stop;
    pthread_mutex_unlock(&a->mutex);
    return go;
}

static void *work(void *user)
{
    st_label_ahead *a = user;
    for (size_t i = 0; i < a->n_todo && wait_for_room(a); i++) {
        st_label_loaded loaded;
        st_label_load(&loaded, a->root, a->names[a->todo[i]], &a->how);
        pthread_mutex_lock(&a->mutex);
        a->slot = loaded;
        a->full = true;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->mutex);
    }
    return NULL;
}

st_status st_label_ahead_start(st_label_ahead **out, const char *root, char *const *names, const size_t *todo,
                               size_t n_todo, const st_bitmap_options *how, st_error *err)
{
    st_label_ahead *a = calloc(1, sizeof *a);
    *out = NULL;
    if (!a) return st_fault(err, ST_ERR_NOMEM, "out of memory for reading ahead");
    *a = (st_label_ahead){ .root = root, .names = names, .todo = todo, .n_todo = n_todo, .how = *how };
    pthread_mutex_init(&a->mutex, NULL);
    pthread_cond_init(&a->changed, NULL);
    if (pthread_create(&a->thread, NULL, work, a) != 0) {
        pthread_cond_destroy(&a->changed);
        pthread_mutex_destroy(&a->mutex);
        free(a);
        return st_fault(err, ST_ERR_NOMEM, "no thread could be started for reading ahead");
    }
    *out = a;
    return ST_OK;
}

void st_label_ahead_next(st_label_ahead *a, st_label_loaded *out)
{
    pthread_mutex_lock(&a->mutex);
    while (!a->full) pthread_cond_wait(&a->changed, &a->mutex);
    *out = a->slot;
    a->slot = (st_label_loaded){ 0 };
    a->full = false;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

void st_label_ahead_stop(st_label_ahead *a)
{
    if (!a) return;
    pthread_mutex_lock(&a->mutex);
    a->stop = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    pthread_join(a->thread, NULL);
    st_bitmap_free(&a->slot.bitmap);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->mutex);
    free(a);
}
