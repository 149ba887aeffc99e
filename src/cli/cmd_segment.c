/* cmd_segment.c: `stencil segment`: every phrase in every picture, or objects by clicks in one; each picture encoded
 * once.
 *
 * A picture that fails is recorded and the next one is done. Results are kept as run lengths and written when all is
 * done, so that a cancelled run leaves no half document; overlays and mask files appear picture by picture, each
 * complete or absent.
 */
#include "cli/segment_job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef st_segment_job job;

/* ---- before the work ---- */

static int prepare_outputs(job *j)
{
    const st_segment_args *a = &j->args;
    st_error err;
    st_status status = ST_OK;
    if (a->format == ST_FORMAT_PNG) status = st_save_folder(a->output, &err);
    else if (a->output && strcmp(a->output, "-") != 0) status = st_save_possible(a->output, &err);
    if (status == ST_OK && a->overlay) {
        if (a->n_pictures > 1 || st_is_folder(a->overlay)) {
            j->overlays = a->overlay;
            status = st_save_folder(a->overlay, &err);
        } else status = st_save_possible(a->overlay, &err);
    }
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&j->console, "%s", err.message);
    return ST_EXIT_OUTPUT;
}

/* What was asked is known for every picture, also for those that will fail. False when out of memory. */
static bool fill_questions(job *j)
{
    const st_segment_args *a = &j->args;
    if (!st_report_init(&j->report, a->n_pictures, a->n_phrases)) return false;
    for (size_t i = 0; i < a->n_pictures; i++) {
        st_picture_report *p = &j->report.pictures[i];
        p->file = a->pictures[i];
        for (size_t k = 0; k < a->n_phrases; k++)
            p->prompts[k] = (st_prompt_report){ .phrase = a->phrases[k],
                                                .boxes = a->boxes,
                                                .n_boxes = a->n_boxes,
                                                .threshold = a->thresholds[k],
                                                .mask_threshold = a->segment.mask_threshold,
                                                .boxes_only = !a->segment.want_masks,
                                                .concepts = a->concept_files,
                                                .n_concepts = a->n_concepts };
        if (a->n_objects && !st_report_make_objects(p, a->n_objects)) return false;
        for (size_t k = 0; k < a->n_objects; k++)
            p->objects[k] = (st_object_report){ .points = a->points,
                                                .n_points = a->n_points,
                                                .region = a->n_regions ? &a->regions[k] : NULL,
                                                .mask = a->mask,
                                                .hf = a->click.hf != 0 };
    }
    return true;
}

/* Ids say which weights, and "@" at which size where it is not their own: sizes are told apart by their numbers. */
static bool same_weights(const char *a, const char *b)
{
    const size_t n = strcspn(a, "@");
    return n == strcspn(b, "@") && strncmp(a, b, n) == 0;
}

/* A concept of another model would spoil every picture, one after the other. */
static int check_concepts(job *j, const st_model_info *model)
{
    for (size_t i = 0; i < j->args.n_concepts; i++) {
        st_concept_info info = ST_CONCEPT_INFO_INIT;
        st_error err;
        if (st_concept_get_info(j->args.concepts[i], &info, &err) != ST_OK)
            return st_usage_error("segment", "%s", err.message);
        if (!same_weights(info.model_id, model->id) || info.input_size != model->input_size)
            return st_usage_error("segment",
                                  "--concept %s: made by model %.12s... at %u pixels, this one is %.12s... at %u: its "
                                  "tokens mean nothing here",
                                  j->args.concept_files[i].file, info.model_id, info.input_size, model->id,
                                  model->input_size);
    }
    return ST_EXIT_OK;
}

static int start(job *j)
{
    st_error err;
    j->cancel = st_signals_watch();
    if (!j->cancel || !fill_questions(j)) {
        st_console_error(&j->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    const char *const outputs[] = { j->args.output, j->args.overlay };
    int code = st_model_spared(&j->console, j->args.model, outputs, 2);
    if (code == ST_EXIT_OK) code = prepare_outputs(j);
    if (code != ST_EXIT_OK) return code;
    if ((code = st_model_start(&j->model, &j->console, j->args.model, &j->args.wish)) != ST_EXIT_OK) return code;
    if (j->args.n_objects && (code = st_model_for_clicks(j->model, &j->console)) != ST_EXIT_OK) return code;
    st_session_options options = ST_SESSION_OPTIONS_INIT;
    options.cancel = j->cancel;
    options.progress = st_console_progress;
    options.progress_user = &j->console;
    st_model_info info = ST_MODEL_INFO_INIT;
    st_status status = st_session_new(&j->session, j->model, &options, &err);
    if (status == ST_OK) status = st_model_get_info(j->model, &info, &err);
    if (status != ST_OK) {
        st_console_error(&j->console, "%s", err.message);
        return ST_EXIT_MODEL;
    }
    j->report.model_id = info.id;
    j->report.model_version = info.version;
    j->report.model_precision = info.precision;
    j->report.input_size = info.input_size;
    return check_concepts(j, &info);
}

/* ---- one picture ---- */

/* What a failed call means for the run: most spoil the picture only. */
static int failure_code(st_status status)
{
    switch (status) {
    case ST_ERR_CANCELLED: return ST_EXIT_SIGNAL;
    case ST_ERR_NONFINITE: return ST_EXIT_MODEL;
    case ST_ERR_INTERNAL: return ST_EXIT_INTERNAL;
    default: return ST_EXIT_PARTLY;
    }
}

static void fail_picture(job *j, st_picture_report *p, int code, const char *message)
{
    j->code = code;
    if (code == ST_EXIT_SIGNAL) return; /* said at the end */
    /* the library names the picture where it knows it */
    if (strncmp(message, p->file, strlen(p->file)) == 0) st_console_error(&j->console, "%s", message);
    else st_console_error(&j->console, "%s: %s", p->file, message);
    if (!p->error) p->error = strdup(message);
    if (!p->error) j->code = ST_EXIT_INTERNAL;
}

static void tell_about(job *j, const st_picture_report *p, double seconds)
{
    if (p->damaged)
        st_console_warn(&j->console, "%s: the file is damaged; what could not be read was drawn over", p->file);
    if (p->stretched)
        st_console_note(&j->console, "%s: contrast stretched, %g became black and %g white", p->file, (double)p->low,
                        (double)p->high);
    if (j->args.features)
        st_console_note(&j->console, "%s: encoding read from %s in %.2f s", p->file, j->args.features, seconds);
    else st_console_note(&j->console, "%s: encoded in %.2f s", p->file, seconds);
}

static st_status open_picture(job *j, st_picture_opened *opened, st_picture_report *p, st_error *err)
{
    const st_segment_args *a = &j->args;
    const st_picture_input in = { a->features_only ? NULL : p->file, a->features, a->bitmap, a->encode };
    const double started = st_segment_now();
    const st_status status = st_picture_input_open(opened, p, &in, j->model, j->session, err);
    if (status != ST_OK) return status;
    if (a->features_only && opened->name) {
        j->name = opened->name; /* the report's from here on */
        opened->name = NULL;
        p->file = j->name;
    }
    tell_about(j, p, st_segment_now() - started);
    return ST_OK;
}

static void run_picture(job *j, size_t i)
{
    st_picture_report *p = &j->report.pictures[i];
    const char *slash = strrchr(p->file, '/');
    st_picture_opened opened;
    st_error err = { ST_OK, "" };
    st_console_task(&j->console, "[%zu/%zu] %s", i + 1, j->args.n_pictures, slash ? slash + 1 : p->file);
    st_status status = open_picture(j, &opened, p, &err);
    if (status == ST_OK) status = st_segment_run(j, p, opened.picture, &err);
    if (status != ST_OK) fail_picture(j, p, failure_code(status), err.message);
    else {
        if (j->args.format == ST_FORMAT_PNG) status = st_segment_write_masks(j, p, &err);
        if (status == ST_OK && j->args.overlay) status = st_segment_write_overlay(j, p, &opened.bitmap, &err);
        if (status != ST_OK) {
            j->output_failed = true;
            st_console_error(&j->console, "%s", err.message);
        }
    }
    st_picture_opened_free(&opened);
}

/* ---- after the work ---- */

static int print_table(job *j)
{
    for (size_t i = 0; i < j->report.n_pictures; i++) st_report_table(&j->report.pictures[i], stdout);
    if (fflush(stdout) == 0 && !ferror(stdout)) return ST_EXIT_OK;
    st_console_error(&j->console, "standard output: cannot be written");
    return ST_EXIT_OUTPUT;
}

static int write_document(job *j)
{
    const st_segment_args *a = &j->args;
    char *inside = NULL, *text = NULL;
    if (a->format == ST_FORMAT_COCO) text = st_report_coco(&j->report);
    else if (a->format == ST_FORMAT_TABLE) text = st_report_table_text(&j->report);
    else text = st_report_json(&j->report);
    st_error err = { ST_ERR_NOMEM, "out of memory while writing the results" };
    st_status status = text ? ST_OK : ST_ERR_NOMEM;
    const char *path = a->output;
    if (status == ST_OK && a->format == ST_FORMAT_PNG) {
        status = asprintf(&inside, "%s/results.json", a->output) < 0 ? ST_ERR_NOMEM : ST_OK;
        path = inside;
    }
    st_console_clear(&j->console);
    if (status == ST_OK) status = st_save_text(path, text, strlen(text), &err);
    free(text);
    if (status == ST_OK && path && strcmp(path, "-") != 0) st_console_note(&j->console, "wrote %s", path);
    free(inside);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&j->console, "%s", err.message);
    return status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
}

static int write_results(job *j)
{
    const bool document = !j->to_table || j->args.output;
    int code = document ? write_document(j) : ST_EXIT_OK;
    st_console_clear(&j->console);
    if (code == ST_EXIT_OK && j->to_table) code = print_table(j);
    return code;
}

static int run(job *j)
{
    j->code = start(j);
    if (j->code != ST_EXIT_OK) return j->code;
    bool partly = false;
    for (size_t i = 0; i < j->args.n_pictures; i++) {
        run_picture(j, i);
        if (j->code == ST_EXIT_PARTLY) partly = true, j->code = ST_EXIT_OK;
        if (st_cancel_is_set(j->cancel)) j->code = ST_EXIT_SIGNAL;
        if (j->code == ST_EXIT_OK) continue;
        st_console_clear(&j->console);
        if (j->code != ST_EXIT_SIGNAL) return j->code;
        st_console_error(&j->console, "cancelled; no results were written");
        return ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    }
    const int code = write_results(j);
    if (code != ST_EXIT_OK) return code;
    return j->output_failed ? ST_EXIT_OUTPUT : partly ? ST_EXIT_PARTLY : ST_EXIT_OK;
}

int st_cmd_segment(int argc, char **argv)
{
    job j = { 0 };
    int code = st_segment_args_read(&j.args, argc, argv);
    if (code == ST_EXIT_OK && j.args.help) st_cmd_segment_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&j.console, j.args.verbosity);
        const bool terminal = isatty(STDOUT_FILENO) == 1;
        j.to_table = j.args.format == ST_FORMAT_TABLE ? !j.args.output
                                                      : terminal && (j.args.output ? strcmp(j.args.output, "-") != 0
                                                                                   : j.args.format == ST_FORMAT_AUTO);
        code = run(&j);
        st_report_free(&j.report);
        st_names_free(&j.names);
        free(j.name);
        st_session_free(j.session);
        st_model_free(j.model);
    }
    st_segment_args_free(&j.args);
    return code;
}
