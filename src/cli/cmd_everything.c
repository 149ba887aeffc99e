/* cmd_everything.c: `stencil everything`: the masks of one picture without a prompt.
 *
 * Results are kept as run lengths and written when all is done: a cancelled run leaves nothing behind.
 */
#include "cli/everything_args.h"
#include "front/fault.h"
#include "front/overlay.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct job {
    st_everything_args args;
    st_console console;
    st_model *model;
    st_session *session;
    st_report report;
    st_names names;
    st_picture_opened opened;
    bool to_table; /* a table goes to standard output */
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- before the work ---- */

static int prepare_outputs(job *j)
{
    const st_everything_args *a = &j->args;
    st_error err;
    st_status status = ST_OK;
    if (a->format == ST_FORMAT_PNG) status = st_save_folder(a->output, &err);
    else if (a->output && strcmp(a->output, "-") != 0) status = st_save_possible(a->output, &err);
    if (status == ST_OK && a->overlay)
        status = st_is_folder(a->overlay) ? st_save_folder(a->overlay, &err) : st_save_possible(a->overlay, &err);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&j->console, "%s", err.message);
    return ST_EXIT_OUTPUT;
}

static int start(job *j)
{
    st_error err;
    st_session_options how = ST_SESSION_OPTIONS_INIT;
    st_model_info info = ST_MODEL_INFO_INIT;
    how.cancel = st_signals_watch();
    if (!how.cancel || !st_report_init(&j->report, 1, 0) ||
        !st_report_make_masks(&j->report.pictures[0], &j->args.options)) {
        st_console_error(&j->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    const char *const outputs[] = { j->args.output, j->args.overlay };
    int code = st_model_spared(&j->console, j->args.model, outputs, 2);
    if (code == ST_EXIT_OK) code = prepare_outputs(j);
    if (code != ST_EXIT_OK) return code;
    if ((code = st_model_start(&j->model, &j->console, j->args.model, &j->args.wish)) != ST_EXIT_OK) return code;
    if ((code = st_model_for_clicks(j->model, &j->console)) != ST_EXIT_OK) return code;
    how.progress = st_console_progress;
    how.progress_user = &j->console;
    st_status status = st_session_new(&j->session, j->model, &how, &err);
    if (status == ST_OK) status = st_model_get_info(j->model, &info, &err);
    if (status != ST_OK) {
        st_console_error(&j->console, "%s", err.message);
        return ST_EXIT_MODEL;
    }
    j->report.model_id = info.id;
    j->report.model_version = info.version;
    j->report.model_precision = info.precision;
    j->report.input_size = info.input_size;
    return ST_EXIT_OK;
}

/* ---- the picture ---- */

static void tell_about(job *j, const st_picture_report *p)
{
    const st_everything_result *r = p->masks->result;
    if (p->damaged)
        st_console_warn(&j->console, "%s: the file is damaged; what could not be read was drawn over", p->file);
    if (p->stretched)
        st_console_note(&j->console, "%s: contrast stretched, %g became black and %g white", p->file, (double)p->low,
                        (double)p->high);
    if (j->to_table) return; /* which says it, too */
    if (r->warnings & ST_WARN_NOTHING_FOUND)
        st_console_warn(&j->console, "%s: no mask passed the cuts; lower --pred-iou-thresh or --stability-score-thresh",
                        p->file);
    if (r->warnings & ST_WARN_DETECTION_CAP)
        st_console_warn(&j->console, "%s: more was found than --max-masks keeps", p->file);
}

static st_status look(job *j, st_picture_report *p, st_error *err)
{
    const double started = now();
    st_status status = st_picture_input_open(&j->opened, p, &j->args.in, j->model, j->session, err);
    if (status != ST_OK) return status;
    if (j->opened.name && !j->args.in.file) p->file = j->opened.name;
    st_console_note(&j->console, "%s: encoded in %.2f s", p->file, now() - started);
    if (!st_picture_for_clicks(j->opened.picture))
        return st_fault(err, ST_ERR_INVALID_ARG,
                        "%s: saved without --clicks; everything mode needs `stencil encode --clicks`",
                        j->args.in.features);
    const st_bitmap *bitmap = &j->opened.bitmap; /* empty when a saved encoding stands alone */
    const st_image image = { bitmap->rgb, bitmap->width, bitmap->height, (size_t)bitmap->width * 3, ST_PIXEL_RGB8 };
    st_everything_options *o = &p->masks->options;
    o->resize = p->resize && strcmp(p->resize, "cpu") == 0 ? ST_RESIZE_CPU : ST_RESIZE_GPU;
    status = st_everything(&p->masks->result, j->session, j->opened.picture, image.data ? &image : NULL, o, err);
    if (status != ST_OK) return status;
    st_console_note(&j->console, "%s: %zu masks in %.2f s", p->file, p->masks->result->n_masks, now() - started);
    tell_about(j, p);
    return ST_OK;
}

static int run_picture(job *j)
{
    st_picture_report *p = &j->report.pictures[0];
    st_error err = { ST_OK, "" };
    p->file = j->args.in.file ? j->args.in.file : j->args.in.features;
    const char *slash = strrchr(p->file, '/');
    st_console_task(&j->console, "%s", slash ? slash + 1 : p->file);
    const st_status status = look(j, p, &err);
    st_console_clear(&j->console);
    if (status == ST_OK) return ST_EXIT_OK;
    if (status == ST_ERR_CANCELLED) st_console_error(&j->console, "cancelled; no results were written");
    else if (strstr(err.message, p->file) == err.message) st_console_error(&j->console, "%s", err.message);
    else st_console_error(&j->console, "%s: %s", p->file, err.message);
    return st_exit_of(status);
}

/* ---- after the work ---- */

/* FOLDER/NAME_mask_0001.png for every mask; `pixels` is one of them, dense. */
static st_status write_masks(job *j, uint8_t *pixels, st_error *err)
{
    st_picture_report *p = &j->report.pictures[0];
    st_masks_report *m = p->masks;
    const size_t n = m->result->n_masks;
    char tail[48];
    m->mask_files = calloc(n ? n : 1, sizeof *m->mask_files);
    st_status status = m->mask_files ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory while writing masks");
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        const st_rle *mask = &m->result->masks[i].mask;
        snprintf(tail, sizeof tail, "_mask_%04zu.png", i + 1);
        m->mask_files[i] = st_names_make(&j->names, j->args.output, p->file, tail);
        if (!m->mask_files[i]) return st_fault(err, ST_ERR_NOMEM, "out of memory while writing masks");
        st_rle_to_dense(mask, pixels, mask->width, 255);
        status = st_png_write(m->mask_files[i], pixels, mask->width, mask->height, 1, err);
    }
    return status;
}

static st_status write_all_masks(job *j, st_error *err)
{
    const st_picture_report *p = &j->report.pictures[0];
    uint8_t *pixels = malloc((size_t)p->width * p->height);
    if (!pixels) return st_fault(err, ST_ERR_NOMEM, "out of memory for a mask of %u x %u pixels", p->width, p->height);
    const st_status status = write_masks(j, pixels, err);
    free(pixels);
    return status;
}

static st_status write_overlay(job *j, st_error *err)
{
    const st_picture_report *p = &j->report.pictures[0];
    const char *given = j->args.overlay;
    char *path = st_is_folder(given) ? st_names_make(&j->names, given, p->file, ".overlay.png") : strdup(given);
    st_status status;
    if (!path) status = st_fault(err, ST_ERR_NOMEM, "out of memory while writing the overlay");
    else if (st_same_file(path, p->file))
        status = st_fault(err, ST_ERR_IO, "%s: the overlay would overwrite this picture", path);
    else {
        st_overlay_draw(&j->opened.bitmap, p);
        status = st_overlay_save(&j->opened.bitmap, path, err);
        if (status == ST_OK) st_console_note(&j->console, "wrote %s", path);
    }
    free(path);
    return status;
}

static st_status write_text(job *j, const char *path, char *text, st_error *err)
{
    if (!text) return st_fault(err, ST_ERR_NOMEM, "out of memory while writing the results");
    const st_status status = st_save_text(path, text, strlen(text), err);
    free(text);
    if (status == ST_OK && path && strcmp(path, "-") != 0) st_console_note(&j->console, "wrote %s", path);
    return status;
}

static st_status write_document(job *j, st_error *err)
{
    const st_everything_args *a = &j->args;
    if (a->format == ST_FORMAT_COCO) return write_text(j, a->output, st_report_coco(&j->report), err);
    if (a->format == ST_FORMAT_TABLE) return write_text(j, a->output, st_report_table_text(&j->report), err);
    if (a->format != ST_FORMAT_PNG) return write_text(j, a->output, st_report_json(&j->report), err);
    char *inside = NULL;
    if (asprintf(&inside, "%s/results.json", a->output) < 0)
        return st_fault(err, ST_ERR_NOMEM, "out of memory while writing the results");
    const st_status status = write_text(j, inside, st_report_json(&j->report), err);
    free(inside);
    return status;
}

/* What can be written is, whatever became of the rest. */
static int write_results(job *j)
{
    const st_everything_args *a = &j->args;
    int code = ST_EXIT_OK;
    for (int step = 0; step < 4; step++) {
        st_error err = { ST_OK, "" };
        st_status status = ST_OK;
        if (step == 0 && a->format == ST_FORMAT_PNG) status = write_all_masks(j, &err);
        if (step == 1 && a->overlay) status = write_overlay(j, &err);
        if (step == 2 && (!j->to_table || a->output)) status = write_document(j, &err);
        if (step == 3 && j->to_table) status = write_text(j, NULL, st_report_table_text(&j->report), &err);
        if (status == ST_OK) continue;
        st_console_error(&j->console, "%s", err.message);
        code = status == ST_ERR_NOMEM ? ST_EXIT_INTERNAL : ST_EXIT_OUTPUT;
    }
    return code;
}

int st_cmd_everything(int argc, char **argv)
{
    job j = { 0 };
    int code = st_everything_args_read(&j.args, argc, argv);
    if (code != ST_EXIT_OK) return code;
    if (j.args.help) {
        st_cmd_everything_help(stdout);
        return ST_EXIT_OK;
    }
    const st_everything_args *a = &j.args;
    st_console_init(&j.console, a->verbosity);
    j.to_table = isatty(STDOUT_FILENO) == 1 && (a->output ? strcmp(a->output, "-") != 0 : a->format == ST_FORMAT_AUTO);
    if (a->format == ST_FORMAT_TABLE) j.to_table = !a->output;
    code = start(&j);
    if (code == ST_EXIT_OK) code = run_picture(&j);
    if (code == ST_EXIT_OK) code = write_results(&j);
    st_report_free(&j.report);
    st_names_free(&j.names);
    st_picture_opened_free(&j.opened);
    st_session_free(j.session);
    st_model_free(j.model);
    return code;
}
