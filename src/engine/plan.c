/* plan.c: memory before the run. The forward passes are walked in planning mode, where nothing is computed and the arena only counts, so the figures are the code's own. */
#include "engine/engine.h"

#include <stdio.h>
#include "base/error.h"

static st_run planning_run(const st_model *m, st_arena *arena)
{
    st_arena_plan(arena);
    return (st_run){.k = m->kernels, .pool = m->pool, .arena = arena, .int8 = m->weights_info.n_int8 > 0, .half = m->weights_info.n_half > 0};
}

/* One prompt in planning mode. shared NULL: what a picture's first prompt makes is made too. */
static st_status walk_segment(const st_run *run, const st_model *m, size_t n_tokens, size_t n_boxes, const st_shared *shared, st_error *err)
{
    const st_dims *d = m->dims;
    const size_t D = d->width, n = d->grid;
    float *tokens = st_run_floats(run, n_tokens, D);
    const st_status status = st_text_encode(run, &m->text, NULL, n_tokens, tokens, err);
    if (status != ST_OK) return status;
    st_detection found;
    st_detect_prompt(run, &m->detect, &(st_features){{NULL, NULL, NULL}}, shared, tokens, n_tokens, NULL, n_boxes, true, &found);
    float *pixels = st_run_floats(run, 16 * n * n, D);
    st_mask_pixels(run, &m->detect, NULL, NULL, found.n_prompt, NULL, NULL, pixels);
    const size_t chunk = d->n_queries < ST_MASK_CHUNK ? d->n_queries : ST_MASK_CHUNK;
    float *states = st_run_floats(run, chunk, D), *logits = st_run_floats(run, chunk, 16 * n * n);
    st_mask_logits(run, &m->detect, pixels, states, chunk, logits);
    return st_run_status(run, err);
}

/* One encode in planning mode; *x, the trunk's output, stays in the arena for the interactive neck. */
static st_status walk_encode(const st_run *run, const st_model *m, float **x, st_error *err)
{
    const size_t n = m->dims->grid, side = m->dims->image_size;
    float *px = st_run_floats(run, side * side, 3);
    *x = st_run_floats(run, n * n, m->dims->vit_width);
    return st_vision_encode(run, &m->vision, px, *x, &(st_features){{NULL, NULL, NULL}}, err);
}

st_status st_plan_segment(size_t *bytes, const st_model *m, size_t n_tokens, size_t n_boxes, st_error *err)
{
    st_arena arena;
    const st_run run = planning_run(m, &arena);
    const st_status status = walk_segment(&run, m, n_tokens, n_boxes, NULL, err);
    *bytes = arena.peak;
    return status;
}

st_status st_plan_work(double *encode_gflop, double *phrase_gflop, const st_model *m, size_t n_tokens, st_error *err)
{
    st_arena arena;
    double encode = 0.0, phrase = 0.0;
    float *x;
    const st_shared made = {.made = true};
    st_run run = planning_run(m, &arena);
    run.n_flop = &encode;
    st_status status = walk_encode(&run, m, &x, err);
    run = planning_run(m, &arena);
    run.n_flop = &phrase;
    if (status == ST_OK) status = walk_segment(&run, m, n_tokens, 0, &made, err);
    *encode_gflop = 1e-9 * encode;
    *phrase_gflop = 1e-9 * phrase;
    return status;
}

st_status st_plan_compute(st_plan *plan, const st_model *m, st_error *err)
{
    st_arena arena;
    const st_run run = planning_run(m, &arena);
    const st_dims *d = m->dims;
    const size_t n = d->grid, D = d->width, V = d->vit_width;
    float *x;
    const st_status status = walk_encode(&run, m, &x, err);
    if (status != ST_OK) return status;
    plan->encode_scratch = arena.peak;
    plan->features = (22 * n * n + 1) * D * sizeof(float); /* levels of 16, 4 and 1 times N; what prompts share */
    if (d->has_click) {
        st_click_features_run(&run, &m->click, x, &(st_click_features){NULL, NULL, NULL});
        plan->click_encode_scratch = arena.peak;
        plan->click_features = 4 * n * n * D * sizeof(float); /* N*D + 4N*D/4 + 16N*D/8 */
        const st_status click = st_plan_click(&plan->click_scratch, m, 3, err);
        if (click != ST_OK) return click;
    }
    const size_t ups = 4 * (V * (V / 2) * 2 + (V / 2) * (V / 4)), convs = 5 * 16 * D * D, tables = (size_t)d->window * d->window * (V / d->vit_heads);
    plan->reordered = (ups + convs + tables + n * n * (V / d->vit_heads + D)) * sizeof(float);
    return st_plan_segment(&plan->segment_scratch, m, d->context, 0, err);
}

st_status st_plan_click(size_t *bytes, const st_model *m, size_t n_tokens, st_error *err)
{
    st_arena arena;
    const st_run run = planning_run(m, &arena);
    const size_t n_pixels = 16 * (size_t)m->dims->grid * m->dims->grid;
    float *mask = st_run_floats(&run, 1, n_pixels);
    st_click_output out = {.masks = st_run_floats(&run, m->dims->click_mask_tokens, n_pixels)};
    st_click_run(&run, &m->click, &(st_click_features){NULL, NULL, NULL}, NULL, n_tokens, mask, true, &out);
    st_run_floats(&run, 3, n_pixels); /* hole filling: a copy, and two words a cell */
    *bytes = arena.peak;
    return st_run_status(&run, err);
}

/* What a process needs besides: its program, the libraries' code and tables, and what a thread touches of its stack and heap. Measured, not computed
 * (docs/SPEED.md), and about the same for every model. */
static uint64_t program_bytes(const st_model *m)
{
    return (17u << 20) + (uint64_t)st_pool_size(m->pool) * (3u << 19);
}

static void line(st_model *m, const char *name, uint64_t bytes)
{
    m->plan_lines[m->n_plan_lines++] = (st_plan_line){name, bytes};
}

/* Weights that are in memory at one time when those of a ViT or text block leave as soon as it is computed: all the others, and the largest block. */
static uint64_t streamed_bytes(const st_model *m)
{
    uint64_t blocks = 0, largest = 0;
    char prefix[40];
    for (size_t i = 0; i < (size_t)m->dims->vit_depth + m->dims->text_depth; i++) {
        const bool text = i >= m->dims->vit_depth;
        snprintf(prefix, sizeof prefix, text ? "text.blocks.%zu." : "vit.blocks.%zu.", text ? i - m->dims->vit_depth : i);
        const uint64_t n = st_weights_mapped(m->weights, prefix);
        blocks += n;
        largest = n > largest ? n : largest;
    }
    return m->weights_info.bytes_mapped - m->weights_info.bytes_token_table - blocks + largest;
}

/* Fills the plan's lines and peak. */
static void describe(st_model *m)
{
    const st_plan *p = &m->plan;
    const st_weights_info *w = &m->weights_info;
    const uint64_t mapped = m->streaming ? streamed_bytes(m) : w->bytes_mapped - w->bytes_token_table;
    m->n_plan_lines = 0;
    line(m, "program, libraries", program_bytes(m));
    line(m, m->streaming ? "weights mapped from the file, a block at a time" : "weights mapped from the file", mapped);
    line(m, "weights converted to fp32", w->bytes_converted);
    line(m, "convolution weights and tables", p->reordered);
    line(m, "features of one picture", p->features);
    line(m, "scratch of one picture", p->encode_scratch);
    line(m, "scratch of one phrase", p->segment_scratch);
    if (m->dims->has_click) {
        line(m, "features of one picture for clicks", p->click_features);
        line(m, "scratch of one click", p->click_scratch);
    }
    const uint64_t scratch = p->encode_scratch > p->segment_scratch ? p->encode_scratch : p->segment_scratch;
    m->plan_peak = program_bytes(m) + mapped + w->bytes_converted + p->reordered + p->features + scratch;
}

st_status st_plan_choose(st_model *m, uint64_t limit, st_error *err)
{
    const double MiB = 1024.0 * 1024.0;
    describe(m);
    if (limit == 0 || m->plan_peak <= limit) return ST_OK;
    const uint64_t whole = m->plan_peak;
    m->streaming = true;
    describe(m);
    if (m->plan_peak > limit)
        return st_fail(err, ST_ERR_LIMIT, "memory limit: %.1f MiB, the smallest plan needs %.1f MiB (%.1f MiB with all weights in memory)", (double)limit / MiB,
                       (double)m->plan_peak / MiB, (double)whole / MiB);
    st_weights_stream(m->weights);
    st_log_line(&m->log, ST_LOG_INFO, "memory limit: %.1f MiB; weights leave memory a block at a time, peak %.1f MiB instead of %.1f", (double)limit / MiB,
                (double)m->plan_peak / MiB, (double)whole / MiB);
    return ST_OK;
}
