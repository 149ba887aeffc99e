/* cmd_segment.c: `stencil segment`: every phrase in every picture, each picture encoded once.
 *
 * A picture that fails is recorded and the next one is done. Results are kept as run lengths and written when all is done, so that a cancelled run leaves no half document; overlays
 * and mask files appear picture by picture, each complete or absent.
 */
#include "cli/segment_args.h"
#include "front/overlay.h"
#include "front/save.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct job {
    st_segment_args args;
    st_console console;
    st_cancel *cancel;
    st_model *model;
    st_session *session;
    st_report report;
    st_names names;       /* of overlays and masks */
    const char *overlays; /* the folder for overlays, or NULL: args.overlay is the file */
    bool to_table;        /* a table goes to standard output */
    int code;             /* ends the run when it is neither OK nor PARTLY */
    bool output_failed;   /* an overlay or a mask could not be written; the run goes on, so that its results are not lost */
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

/* What was asked is known for every picture, also for those that will fail. */
static void fill_questions(job *j)
{
    const st_segment_args *a = &j->args;
    for (size_t i = 0; i < a->n_pictures; i++) {
        st_picture_report *p = &j->report.pictures[i];
        p->file = a->pictures[i];
        for (size_t k = 0; k < a->n_phrases; k++)
            p->prompts[k] = (st_prompt_report){.phrase = a->phrases[k], .boxes = a->boxes, .n_boxes = a->n_boxes, .threshold = a->thresholds[k],
                                               .mask_threshold = a->segment.mask_threshold, .boxes_only = !a->segment.want_masks};
    }
}

static int start(job *j)
{
    st_error err;
    j->cancel = st_signals_watch();
    if (!j->cancel || !st_report_init(&j->report, j->args.n_pictures, j->args.n_phrases)) {
        st_console_error(&j->console, "out of memory");
        return ST_EXIT_INTERNAL;
    }
    fill_questions(j);
    int code = prepare_outputs(j);
    if (code != ST_EXIT_OK) return code;
    if ((code = st_model_start(&j->model, &j->console, j->args.model, j->args.n_threads)) != ST_EXIT_OK) return code;
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
    return ST_EXIT_OK;
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

static void describe(job *j, st_picture_report *p, const st_bitmap *bitmap)
{
    p->width = bitmap->width;
    p->height = bitmap->height;
    p->orientation = bitmap->orientation;
    memcpy(p->format, bitmap->format, sizeof p->format);
    p->bits = bitmap->bits;
    p->is_float = bitmap->is_float;
    p->bands = bitmap->bands;
    p->stretched = bitmap->stretched;
    p->damaged = bitmap->damaged;
    p->low = bitmap->low;
    p->high = bitmap->high;
    p->resize = j->args.encode.resize == ST_RESIZE_CPU ? "cpu" : "gpu";
    if (bitmap->damaged) st_console_warn(&j->console, "%s: the file is damaged; what could not be read was drawn over", p->file);
    if (bitmap->stretched)
        st_console_note(&j->console, "%s: contrast stretched, %g became black and %g white", p->file, (double)bitmap->low, (double)bitmap->high);
}

static void warn_about(job *j, const st_picture_report *p, const st_prompt_report *prompt)
{
    uint32_t bit;
    for (size_t i = 0; !j->to_table && st_warning_name(i, &bit); i++)
        if (prompt->result->warnings & bit) st_console_warn(&j->console, "%s: \"%s\": %s", p->file, prompt->phrase, st_warning_sentence(i));
}

static st_status run_prompt(job *j, st_picture_report *p, size_t k, const st_picture *picture, st_error *err)
{
    st_prompt_report *report = &p->prompts[k];
    const st_segment_args *a = &j->args;
    st_prompt prompt = ST_PROMPT_INIT;
    prompt.phrase = a->visual ? NULL : a->phrases[k];
    prompt.boxes = a->boxes;
    prompt.n_boxes = a->n_boxes;
    st_segment_options options = a->segment;
    options.threshold = a->thresholds[k];
    const double started = now();
    const st_status status = st_segment(&report->result, j->session, picture, &prompt, &options, err);
    if (status != ST_OK) return status;
    st_console_note(&j->console, "%s: \"%s\": %zu found in %.2f s", p->file, report->phrase, report->result->n_instances, now() - started);
    warn_about(j, p, report);
    return ST_OK;
}

static st_status run_prompts(job *j, st_picture_report *p, const st_bitmap *bitmap, st_error *err)
{
    st_picture *picture = NULL;
    const st_image image = {bitmap->rgb, bitmap->width, bitmap->height, (size_t)bitmap->width * 3, ST_PIXEL_RGB8};
    const double started = now();
    st_status status = st_picture_encode(&picture, j->session, &image, &j->args.encode, err);
    if (status == ST_OK) st_console_note(&j->console, "%s: encoded in %.2f s", p->file, now() - started);
    for (size_t k = 0; status == ST_OK && k < j->args.n_phrases; k++) status = run_prompt(j, p, k, picture, err);
    st_picture_free(picture);
    return status;
}

/* ---- files per picture ---- */

static st_status write_mask(const st_rle *mask, const char *path, uint8_t *pixels, st_error *err)
{
    st_rle_to_dense(mask, pixels, mask->width, 255);
    return st_png_write(path, pixels, mask->width, mask->height, 1, err);
}

/* FOLDER/STEM_PHRASE_001.png for every instance of one prompt. `pixels` is one dense mask. */
static st_status write_masks_of(job *j, st_picture_report *p, st_prompt_report *prompt, uint8_t *pixels, st_error *err)
{
    const size_t n = prompt->result->n_instances;
    prompt->mask_files = calloc(n ? n : 1, sizeof *prompt->mask_files);
    st_status status = prompt->mask_files ? ST_OK : ST_ERR_NOMEM;
    char slug[48], tail[80];
    st_phrase_slug(slug, prompt->phrase);
    for (size_t i = 0; status == ST_OK && i < n; i++) {
        snprintf(tail, sizeof tail, "_%s_%03zu.png", slug, i + 1);
        prompt->mask_files[i] = st_names_make(&j->names, j->args.output, p->file, tail);
        status = prompt->mask_files[i] ? write_mask(&prompt->result->instances[i].mask, prompt->mask_files[i], pixels, err) : ST_ERR_NOMEM;
    }
    if (status == ST_ERR_NOMEM) snprintf(err->message, sizeof err->message, "out of memory while writing masks");
    return status;
}

static st_status write_masks(job *j, st_picture_report *p, st_error *err)
{
    st_status status = ST_OK;
    uint8_t *pixels = malloc((size_t)p->width * p->height);
    if (!pixels) {
        snprintf(err->message, sizeof err->message, "out of memory for a mask of %u x %u pixels", p->width, p->height);
        return ST_ERR_NOMEM;
    }
    for (size_t k = 0; status == ST_OK && k < p->n_prompts; k++) status = write_masks_of(j, p, &p->prompts[k], pixels, err);
    free(pixels);
    return status;
}

static bool is_a_picture(const job *j, const char *path)
{
    for (size_t i = 0; i < j->args.n_pictures; i++)
        if (st_same_file(path, j->args.pictures[i])) return true;
    return false;
}

static st_status write_overlay(job *j, const st_picture_report *p, st_bitmap *bitmap, st_error *err)
{
    char *path = j->overlays ? st_names_make(&j->names, j->overlays, p->file, ".overlay.png") : strdup(j->args.overlay);
    st_status status = ST_ERR_NOMEM;
    if (!path) snprintf(err->message, sizeof err->message, "out of memory while writing the overlay");
    else if (is_a_picture(j, path)) {
        snprintf(err->message, sizeof err->message, "%s: the overlay would overwrite this picture", path);
        status = ST_ERR_IO;
    } else {
        st_overlay_draw(bitmap, p);
        status = st_overlay_save(bitmap, path, err);
        if (status == ST_OK) st_console_note(&j->console, "wrote %s", path);
    }
    free(path);
    return status;
}

static void run_picture(job *j, size_t i)
{
    st_picture_report *p = &j->report.pictures[i];
    const char *slash = strrchr(p->file, '/');
    st_bitmap bitmap = {0};
    st_error err = {ST_OK, ""};
    st_console_task(&j->console, "[%zu/%zu] %s", i + 1, j->args.n_pictures, slash ? slash + 1 : p->file);
    st_status status = st_bitmap_load(&bitmap, p->file, &j->args.bitmap, &err);
    if (status == ST_OK) {
        describe(j, p, &bitmap);
        status = run_prompts(j, p, &bitmap, &err);
    }
    if (status != ST_OK) fail_picture(j, p, failure_code(status), err.message);
    else {
        if (j->args.format == ST_FORMAT_PNG) status = write_masks(j, p, &err);
        if (status == ST_OK && j->args.overlay) status = write_overlay(j, p, &bitmap, &err);
        if (status != ST_OK) {
            j->output_failed = true;
            st_console_error(&j->console, "%s", err.message);
        }
    }
    st_bitmap_free(&bitmap);
}

/* ---- after the work ---- */

static int print_table(job *j)
{
    for (size_t i = 0; i < j->report.n_pictures; i++) st_report_table(&j->report.pictures[i], stdout);
    if (fflush(stdout) == 0 && !ferror(stdout)) return ST_EXIT_OK;
    st_console_error(&j->console, "standard output: cannot be written");
    return ST_EXIT_OUTPUT;
}

static char *table_text(const st_report *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    for (size_t i = 0; i < r->n_pictures; i++) st_report_table(&r->pictures[i], f);
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}

static int write_document(job *j)
{
    const st_segment_args *a = &j->args;
    char *inside = NULL, *text = NULL;
    if (a->format == ST_FORMAT_COCO) text = st_report_coco(&j->report);
    else if (a->format == ST_FORMAT_TABLE) text = table_text(&j->report);
    else text = st_report_json(&j->report);
    st_error err = {ST_ERR_NOMEM, "out of memory while writing the results"};
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
    job j = {0};
    int code = st_segment_args_read(&j.args, argc, argv);
    if (code == ST_EXIT_OK && j.args.help) st_cmd_segment_help(stdout);
    else if (code == ST_EXIT_OK) {
        st_console_init(&j.console, j.args.verbosity);
        const bool terminal = isatty(STDOUT_FILENO) == 1;
        j.to_table = j.args.format == ST_FORMAT_TABLE ? !j.args.output : terminal && (j.args.output ? strcmp(j.args.output, "-") != 0 : j.args.format == ST_FORMAT_AUTO);
        code = run(&j);
        st_report_free(&j.report);
        st_names_free(&j.names);
        st_session_free(j.session);
        st_model_free(j.model);
    }
    st_segment_args_free(&j.args);
    return code;
}
