/* runs.h: how run lists are built and read inside this room.
 *
 * Whatever makes a mask pushes pieces of any length into an st_runs, which joins neighbours of one value: that alone
 * makes every result canonical. Readers walk an st_run_reader, which never leaves the picture, even over a struct that
 * a caller filled with nonsense.
 */
#ifndef ST_MASK_RUNS_H
#define ST_MASK_RUNS_H

#include <stdbool.h>
#include <stencil/stencil_mask.h>

typedef struct st_runs {
    uint32_t *counts; /* [n] closed runs, zeros first */
    size_t n, room;
    uint32_t open; /* pixels of the run that is still growing */
    bool value;    /* its value */
    bool failed;   /* out of memory: nothing is added any more */
} st_runs;

/* Refuses a picture without pixels, or with more than run lengths can count. `what` opens the sentence. */
ST_MUSTCHECK st_status st_mask_check_size(uint32_t width, uint32_t height, const char *what, st_error *err);

void st_runs_close(st_runs *r); /* moves the open run into counts */
/* `pixels` more of `value`. The caller keeps the total within width * height, which fits 32 bits. */
static inline void st_runs_add(st_runs *r, bool value, uint32_t pixels)
{
    if (pixels == 0) return;
    if (value != r->value) {
        st_runs_close(r);
        r->value = value;
    }
    r->open += pixels;
}
/* Hands the runs over to `out`. On failure `out` is zeroed; in both cases `r` owns nothing afterwards. */
ST_MUSTCHECK st_status st_runs_finish(st_runs *r, st_rle *out, uint32_t width, uint32_t height, st_error *err);
void st_runs_free(st_runs *r);

/* Where a walk over a mask stands: `left` more pixels of `value`. Behind the last run come zeros without end. */
typedef struct st_run_reader {
    const st_rle *mask;
    size_t next; /* run after the present one */
    uint64_t left;
    bool value;
} st_run_reader;

static inline void st_run_reader_skip_empty(st_run_reader *r)
{
    while (r->left == 0) {
        const bool there = r->next < r->mask->n_counts;
        r->value = there && (r->next & 1);
        r->left = there ? r->mask->counts[r->next] : UINT64_MAX;
        r->next++;
    }
}
static inline st_run_reader st_run_reader_start(const st_rle *mask)
{
    st_run_reader r = { .mask = mask };
    st_run_reader_skip_empty(&r);
    return r;
}
/* Goes on by `pixels` <= left. */
static inline void st_run_reader_take(st_run_reader *r, uint64_t pixels)
{
    r->left -= pixels;
    st_run_reader_skip_empty(r);
}

#endif
