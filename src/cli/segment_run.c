/* segment_run.c: what `stencil segment` asks of one picture: every instance of each phrase, or one object per region.
 */
#include "cli/segment_job.h"

#include <stdlib.h>
#include <time.h>
#include "cli/mask_prompt.h"
#include "front/fault.h"

double st_segment_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void warn_about(st_segment_job *j, const st_picture_report *p, const st_prompt_report *prompt)
{
    uint32_t bit;
    for (size_t i = 0; !j->to_table && st_warning_name(i, &bit); i++)
        if (prompt->result->warnings & bit)
            st_console_warn(&j->console, "%s: \"%s\": %s", p->file, prompt->phrase, st_warning_sentence(i));
}

static st_status run_prompt(st_segment_job *j, st_picture_report *p, size_t k, const st_picture *picture, st_error *err)
{
    st_prompt_report *report = &p->prompts[k];
    const st_segment_args *a = &j->args;
    st_prompt prompt = ST_PROMPT_INIT;
    prompt.phrase = a->visual ? NULL : a->phrases[k];
    prompt.boxes = a->boxes;
    prompt.n_boxes = a->n_boxes;
    prompt.concepts = (const st_concept *const *)a->concepts;
    prompt.n_concepts = a->n_concepts;
    st_segment_options options = a->segment;
    options.threshold = a->thresholds[k];
    const double started = st_segment_now();
    const st_status status = st_segment(&report->result, j->session, picture, &prompt, &options, err);
    if (status != ST_OK) return status;
    st_console_note(&j->console, "%s: \"%s\": %zu found in %.2f s", p->file, report->phrase,
                    report->result->n_instances, st_segment_now() - started);
    warn_about(j, p, report);
    return ST_OK;
}

static st_status run_object(st_segment_job *j, st_picture_report *p, size_t k, const st_picture *picture,
                            const float *logits, st_error *err)
{
    st_object_report *report = &p->objects[k];
    st_click_input in = ST_CLICK_INPUT_INIT;
    in.points = report->points;
    in.n_points = report->n_points;
    in.region = report->region;
    in.logits = logits;
    const double started = st_segment_now();
    const st_status status = st_click(&report->result, j->session, picture, &in, &j->args.click, err);
    if (status != ST_OK) return status;
    st_console_note(&j->console, "%s: object %zu: %zu candidates in %.2f s", p->file, k + 1,
                    report->result->n_candidates, st_segment_now() - started);
    return ST_OK;
}

static st_status run_objects(st_segment_job *j, st_picture_report *p, const st_picture *picture, st_error *err)
{
    float *logits = NULL;
    st_status status = ST_OK;
    if (!st_picture_for_clicks(picture))
        return st_fault(err, ST_ERR_INVALID_ARG,
                        "%s: saved without --clicks; points, regions and masks need `stencil encode --clicks`",
                        j->args.features);
    if (j->args.mask) status = st_mask_prompt_read(&logits, j->model, j->args.mask, p->width, p->height, err);
    for (size_t k = 0; status == ST_OK && k < p->n_objects; k++) status = run_object(j, p, k, picture, logits, err);
    free(logits);
    return status;
}

st_status st_segment_run(st_segment_job *j, st_picture_report *p, const st_picture *picture, st_error *err)
{
    st_status status = ST_OK;
    for (size_t k = 0; status == ST_OK && k < p->n_prompts; k++) status = run_prompt(j, p, k, picture, err);
    if (status == ST_OK && p->n_objects) status = run_objects(j, p, picture, err);
    return status;
}
