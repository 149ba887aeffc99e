/* bench_stages.c: how long each stage of a pass takes, by the clock at each word of progress that the library gives. */
#include "cli/bench.h"

#include <string.h>

void st_stage_clock_start(st_stage_clock *c, bool sampling)
{
    c->sampling = sampling;
    c->at = st_bench_now();
}

void st_stage_clock_progress(void *user, const char *stage, size_t done, size_t total)
{
    st_stage_clock *c = user;
    st_samples *const phrase[4] = { &c->prompt, &c->fusion, &c->decoder, &c->masks };
    st_console_progress(c->console, stage, done, total);
    st_samples *ended = NULL;
    if (strcmp(stage, "picture") == 0 && done + 1 == total) ended = &c->trunk;
    if (strcmp(stage, "picture") == 0 && done == total) ended = &c->neck;
    if (strcmp(stage, "phrase") == 0 && done >= 1 && done <= 4) ended = phrase[done - 1];
    if (!ended) return;
    const double now = st_bench_now();
    if (c->sampling) st_samples_add(ended, now - c->at);
    c->at = now;
}

json_t *st_stage_clock_json(const st_stage_clock *c)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "trunk", st_samples_json(&c->trunk), "neck", st_samples_json(&c->neck), "prompt", st_samples_json(&c->prompt),
                     "fusion", st_samples_json(&c->fusion), "decoder", st_samples_json(&c->decoder), "masks", st_samples_json(&c->masks));
}
