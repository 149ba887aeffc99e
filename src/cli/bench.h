/* bench.h: what the parts of `stencil bench` share: options, samples, and what a receipt says about the machine. */
#ifndef ST_CLI_BENCH_H
#define ST_CLI_BENCH_H

#include "cli/cli.h"

#include <jansson.h>

enum { ST_BENCH_MAX_RUNS = 1000 };

typedef struct st_bench_args {
    uint32_t instances, size; /* masks */
    bool noise;
    const char *model, *picture; /* picture, click */
    const char *phrase;          /* picture */
    st_model_wish wish;          /* 0 = not given */
    uint32_t runs;               /* 0 = not given */
    bool json;
    int verbosity;
} st_bench_args;

/* Seconds of one thing that was measured over and over. */
typedef struct st_samples {
    size_t n;
    double seconds[ST_BENCH_MAX_RUNS];
} st_samples;

double st_bench_now(void);
void st_samples_add(st_samples *s, double seconds);
double st_samples_median(const st_samples *s); /* of an even number: the mean of the middle two */
double st_samples_least(const st_samples *s);
double st_samples_most(const st_samples *s);
json_t *st_samples_json(const st_samples *s); /* median, best, and every sample in the order of measuring */

/* Times of the stages of an encode and a phrase; st_stage_clock_progress goes into the session's options. */
typedef struct st_stage_clock {
    st_console *console; /* is told the progress too */
    double at;           /* when the stage that runs began */
    bool sampling;       /* false: warming up, or a pass that is not to be counted */
    st_samples trunk, neck, prompt, fusion, decoder, masks;
} st_stage_clock;
void st_stage_clock_start(st_stage_clock *c, bool sampling);
void st_stage_clock_progress(void *user, const char *stage, size_t done, size_t total);
json_t *st_stage_clock_json(const st_stage_clock *c);

const char *st_bench_commit(void); /* of the sources, "unknown" when they lay in no repository */

/* FNV-1a, 64 bits: tells equal results from others, and no more than that. The first call starts with ST_HASH_START. */
#define ST_HASH_START UINT64_C(14695981039346656037)
uint64_t st_bench_hash(uint64_t hash, const void *bytes, size_t n);
void st_bench_hash_text(char out[32], uint64_t hash);

void st_bench_cpu_name(char out[128]);
uint64_t st_bench_peak_bytes(void); /* the highest resident size so far; 0 where /proc does not say */
double st_bench_seconds_of_life(
    void); /* since this process began, to the kernel's tick of usually 10 ms; negative where /proc does not say */

/* The picture that is measured: a file, or a drawn one of 1,008 x 1,008 pixels. */
typedef struct st_bench_source {
    const char *path; /* NULL: drawn */
    st_bitmap bitmap; /* as loaded; empty when drawn */
    uint8_t *drawn;
    st_image image;
} st_bench_source;
ST_MUSTCHECK st_status st_bench_source_open(st_bench_source *s, const char *path, st_error *err);
void st_bench_source_free(st_bench_source *s);
json_t *st_bench_source_json(const st_bench_source *s);
json_t *st_bench_model_json(const st_model_info *m);

/* What is measured: a model, a session on it, and a picture. */
typedef struct st_bench_rig {
    const st_bench_args *args;
    st_console console;
    st_model *model;
    st_session *session;
    st_bench_source source;
    st_picture *picture; /* encoded; belongs to the rig once it is there */
    double open;         /* seconds that model and session took */
    double accepted;     /* seconds from the start of the process until a request could be taken; negative where /proc does not say */
} st_bench_rig;
/* Opens all but the picture, with the session's options as given (NULL: progress goes to the console). for_clicks: a model without the interactive part is
 * refused. Returns the exit code. */
int st_bench_rig_open(st_bench_rig *r, const st_model_wish *wish, bool for_clicks, st_progress_fn *progress, void *progress_user);
void st_bench_rig_close(st_bench_rig *r);

/* Says why a measurement ended early; returns the exit code. */
int st_bench_failure(st_console *console, st_status status, const st_error *err);

/* Prints the receipt, which it steals; NULL means that memory ran out. Returns the exit code. */
int st_bench_print(json_t *receipt, st_console *console);

/* Each returns an exit code. */
int st_bench_masks(const st_bench_args *args);
int st_bench_picture(const st_bench_args *args);
int st_bench_click(const st_bench_args *args);

#endif
