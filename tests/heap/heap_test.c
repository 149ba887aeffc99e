/* heap_test.c: heap calls of a forward pass, counted in the whole process: this program's own malloc and its kin stand before
 * the C library's. What is counted lies between the first and the last word of progress of an encode and of a phrase, on a
 * session that has done the same before; what a result is made of comes after that.
 *
 *     heap_test --model PATH [--level LEVEL]      LEVEL as in ST_CPU_MASK, which the caller has set
 *
 * There must be none, whoever makes them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "stencil/stencil.h"

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

enum { MOST = 1 << 20 };
static void *callers[MOST];
static atomic_size_t n_calls, n_freed;
static atomic_bool counting;

static void note(void *caller)
{
    if (!atomic_load(&counting)) return;
    const size_t i = atomic_fetch_add(&n_calls, 1);
    if (i < MOST) callers[i] = caller;
}

/* The libraries must find these, so they are visible whatever the build says of other symbols. */
#define SEEN __attribute__((visibility("default")))

SEEN void *malloc(size_t n)
{
    note(__builtin_return_address(0));
    return __libc_malloc(n);
}
SEEN void *calloc(size_t n, size_t size)
{
    note(__builtin_return_address(0));
    return __libc_calloc(n, size);
}
SEEN void *realloc(void *p, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_realloc(p, n);
}
SEEN void *aligned_alloc(size_t align, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_memalign(align, n);
}
void *memalign(size_t align, size_t n);
SEEN void *memalign(size_t align, size_t n)
{
    note(__builtin_return_address(0));
    return __libc_memalign(align, n);
}
SEEN int posix_memalign(void **out, size_t align, size_t n)
{
    note(__builtin_return_address(0));
    void *p = __libc_memalign(align, n);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}
SEEN void free(void *p)
{
    if (p && atomic_load(&counting)) atomic_fetch_add(&n_freed, 1);
    __libc_free(p);
}

typedef struct window {
    const char *stage;  /* counts between the first and the last word of it */
    size_t last;        /* 0: the total */
    unsigned n_opened, n_closed;
} window;

static void on_progress(void *user, const char *stage, size_t done, size_t total)
{
    window *w = user;
    if (strcmp(stage, w->stage) != 0) return;
    if (done == 1) w->n_opened++, atomic_store(&counting, true);
    if (done == (w->last ? w->last : total)) w->n_closed++, atomic_store(&counting, false);
}

static int fail(const char *what, const char *detail)
{
    fprintf(stderr, "heap_test: %s%s%s\n", what, detail[0] ? ": " : "", detail);
    return 1;
}

/* Calls noted since the last report; the first is named. */
static size_t report(const char *what)
{
    const size_t n = atomic_load(&n_calls), n_free = atomic_load(&n_freed);
    printf("%-8s %zu heap calls, %zu blocks given back\n", what, n, n_free);
    if (n > 0) {
        Dl_info info;
        const char *name = dladdr(callers[0], &info) && info.dli_fname ? info.dli_fname : "?";
        fprintf(stderr, "heap_test: %s: called from %s, %s\n", what, name, info.dli_sname ? info.dli_sname : "?");
    }
    atomic_store(&n_calls, 0), atomic_store(&n_freed, 0);
    return n + n_free;
}

/* A call that the C library makes for us must be seen, or nothing that follows means anything. */
static bool counts(void)
{
    atomic_store(&counting, true);
    char *copy = strdup("seen");
    free(copy);
    atomic_store(&counting, false);
    const bool seen = atomic_load(&n_calls) == 1 && atomic_load(&n_freed) == 1;
    atomic_store(&n_calls, 0), atomic_store(&n_freed, 0);
    return copy && seen;
}

static uint8_t pixels[120 * 160 * 3];

int main(int argc, char **argv)
{
    const char *path = argc > 2 && strcmp(argv[1], "--model") == 0 ? argv[2] : NULL;
    const char *level = argc > 4 && strcmp(argv[3], "--level") == 0 ? argv[4] : NULL;
    if (!counts()) return fail("calls of the C library are not seen", "");
    if (!path) return fail("usage: heap_test --model PATH [--level LEVEL]", "");
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * 7 + i / 480);
    const st_image image = {pixels, 160, 120, 160 * 3, ST_PIXEL_RGB8};
    st_model_options how = ST_MODEL_OPTIONS_INIT;
    st_session_options opts = ST_SESSION_OPTIONS_INIT;
    st_segment_options segment = ST_SEGMENT_OPTIONS_INIT;
    st_prompt prompt = ST_PROMPT_INIT;
    st_model_info info = ST_MODEL_INFO_INIT;
    st_model *model = NULL;
    st_session *session = NULL;
    st_error err;
    window w = {"", 0, 0, 0};
    how.n_threads = 2;
    opts.progress = on_progress, opts.progress_user = &w;
    prompt.phrase = "apple", segment.threshold = 0.0f;
    if (st_model_open(&model, path, &how, &err) != ST_OK || st_session_new(&session, model, &opts, &err) != ST_OK || st_model_get_info(model, &info, &err) != ST_OK)
        return fail("open", err.message);
    if (level && strcmp(info.cpu_level, level) != 0) return fail("the kernels in use are not those asked for", info.cpu_level);
    size_t bad = 0, blocks = 0;
    for (int round = 0; round < 6; round++) { /* the first warms up */
        st_picture *p = NULL;
        st_result *r = NULL;
        w = (window){"picture", 0, 0, 0};
        if (st_picture_encode(&p, session, &image, NULL, &err) != ST_OK) return fail("encode", err.message);
        if (w.n_opened != 1 || w.n_closed != 1) return fail("picture: progress was not told from first to last", "");
        if (round == 0) atomic_store(&n_calls, 0), atomic_store(&n_freed, 0);
        else bad += report("picture");
        w = (window){"phrase", 3, 0, 0};
        if (st_segment(&r, session, p, &prompt, &segment, &err) != ST_OK) return fail("segment", err.message);
        if (w.n_opened != 1 || w.n_closed != 1) return fail("phrase: progress was not told from first to last", "");
        if (round == 0) atomic_store(&n_calls, 0), atomic_store(&n_freed, 0);
        else bad += report("phrase");
        blocks += r->n_instances;
        st_result_free(r);
        st_picture_free(p);
    }
    st_session_free(session);
    st_model_free(model);
    if (blocks == 0) return fail("no instance: no mask was made", "");
    return bad ? fail("heap calls", "the forward pass must make none") : 0;
}
