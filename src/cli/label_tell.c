/* label_tell.c: what a labelling job says: the progress line, the summary, and a dry run's answer. Times and rates are
 * shown and never stored.
 */
#include "cli/label_job.h"
#include "front/report.h"
#include "label/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ERRORS_SHOWN = 20, LOOKED_AT = 3 };

double st_label_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void st_label_duration(char out[32], double seconds)
{
    const unsigned long long s = seconds < 0 ? 0 : seconds > 1e12 ? 1000000000000 : (unsigned long long)(seconds + 0.5);
    if (s < 100) snprintf(out, 32, "%llu s", s);
    else if (s < 6000) snprintf(out, 32, "%llu min", (s + 30) / 60);
    else if (s < 100 * 3600) snprintf(out, 32, "%llu h %02llu min", s / 3600, s % 3600 / 60);
    else snprintf(out, 32, "%llu d %llu h", s / 86400, s % 86400 / 3600);
}

/* ---- while it runs ---- */

static void show_progress(st_label_job_run *r, size_t n_done, size_t n_todo)
{
    char line[160], left[32] = "";
    const double spent = st_label_now() - r->tally.started;
    int n = snprintf(line, sizeof line, "[%zu/%zu]", n_done, n_todo);
    if (n_done > 0 && spent > 0) {
        const double rate = (double)n_done / spent;
        st_label_duration(left, (double)(n_todo - n_done) / rate);
        n += rate >= 1 ? snprintf(line + n, sizeof line - (size_t)n, " %.1f/s, %s left;", rate, left)
                       : snprintf(line + n, sizeof line - (size_t)n, " %.1f s each, %s left;", 1 / rate, left);
    }
    for (size_t k = 0; n_done && k < r->job.n_classes && (size_t)n < sizeof line; k++) {
        const int more = snprintf(line + n, sizeof line - (size_t)n, "%s %s %llu", k ? "," : "", r->job.classes[k].name,
                                  (unsigned long long)r->tally.instances[k]);
        if ((size_t)(n + more) >= sizeof line) {
            line[n] = '\0'; /* no half a class */
            break;
        }
        n += more;
    }
    st_console_task(&r->console, "%s", line);
    st_console_line(&r->console, false, "%s", line);
}

void st_label_tell_start(st_label_job_run *r)
{
    const st_label_plan *p = &r->plan;
    if (p->n_done) st_console_say(&r->console, "%zu pictures are done, %zu are left", p->n_done, p->n_todo);
    else st_console_say(&r->console, "%zu pictures to label", p->n_todo);
    if (p->n_retried) st_console_say(&r->console, "%zu could not be read before and are tried again", p->n_retried);
    if (p->n_changed) st_console_warn(&r->console, "%zu pictures changed since they were labelled: again", p->n_changed);
    if (p->n_broken) st_console_warn(&r->console, "%zu files of the store cannot be read: again", p->n_broken);
    r->tally.started = st_label_now();
    show_progress(r, 0, p->n_todo);
}

static void count(st_label_job_run *r, const st_label_picture *p)
{
    st_label_tally *t = &r->tally;
    bool *kept = malloc(p->n_objects ? p->n_objects : 1), full = false;
    if (kept) st_label_select(kept, r->job.classes, r->job.n_classes, p);
    for (size_t i = 0; kept && i < p->n_objects; i++)
        if (kept[i]) t->instances[st_label_class_by_id(&r->job, p->objects[i].class_id) - r->job.classes]++;
    free(kept);
    for (size_t i = 0; i < p->n_answers; i++) full |= (p->answers[i].warnings & ST_WARN_QUERY_LIMIT) != 0;
    t->n_full += full;
    t->n_enlarged += p->enlarged;
    t->n_damaged += p->damaged;
    t->n_ok++;
}

void st_label_tell_picture(void *user, const st_label_picture *p, size_t n_done, size_t n_todo)
{
    st_label_job_run *r = user;
    if (p->error) {
        if (r->tally.n_failed++ < ERRORS_SHOWN) st_console_warn(&r->console, "%s", p->error);
    } else {
        count(r, p);
        st_console_note(&r->console, "%s: %zu objects above the floor", p->name, p->n_objects);
    }
    show_progress(r, n_done, n_todo);
}

void st_label_tell_end(st_label_job_run *r, size_t n_failed)
{
    const st_label_tally *t = &r->tally;
    char spent[32];
    st_console_clear(&r->console);
    st_label_duration(spent, st_label_now() - t->started);
    st_console_say(&r->console, "labelled %zu pictures in %s", t->n_ok, spent);
    for (size_t k = 0; t->n_ok && k < r->job.n_classes; k++) {
        const st_label_class *c = &r->job.classes[k];
        st_console_say(&r->console, "  %s: %llu instances above %g", c->name, (unsigned long long)t->instances[k],
                       (double)c->threshold);
    }
    if (t->n_enlarged)
        st_console_say(&r->console, "%zu pictures are smaller than the model's %u pixels and were enlarged",
                       t->n_enlarged, r->job.model_size);
    if (t->n_damaged)
        st_console_warn(&r->console, "%zu pictures are damaged; what could not be read was drawn over", t->n_damaged);
    if (t->n_full)
        st_console_warn(&r->console, "in %zu pictures a phrase found as many objects as the model can tell; there may "
                        "be more%s", t->n_full, r->job.options.tiling.on ? "" : " (--tile)");
    if (n_failed)
        st_console_warn(&r->console, "%zu pictures could not be labelled: see %s/errors.jsonl", n_failed,
                        r->args->output);
}

/* ---- dry run ---- */

/* Seconds of one picture, of the quickest of a few; negative when none could be read. */
static double measure(st_label_job_run *r)
{
    double best = -1;
    for (size_t i = 0, n = 0; i < r->plan.n_todo && n < LOOKED_AT && i < 10 * LOOKED_AT; i++) {
        st_label_picture p;
        st_error err;
        const double started = st_label_now();
        if (st_label_run_one(&r->run, r->plan.todo[i], &p, &err) != ST_OK) return best;
        const double spent = st_label_now() - started;
        if (!p.error && (best < 0 || spent < best)) best = spent;
        n += p.error == NULL;
        st_label_picture_free(&p);
    }
    return best;
}

static json_t *classes_json(const st_label_job *job)
{
    json_t *list = json_array();
    for (size_t k = 0; k < job->n_classes; k++) {
        const st_label_class *c = &job->classes[k];
        json_t *phrases = json_array();
        for (size_t i = 0; i < c->n_phrases; i++) json_array_append_new(phrases, json_string(c->phrases[i]));
        json_array_append_new(list, json_pack("{sI,ss,so}", "id", (json_int_t)c->id, "name", c->name, "phrases", phrases));
    }
    return list;
}

static int print_json(st_label_job_run *r, double seconds)
{
    const st_label_plan *p = &r->plan;
    json_t *each = seconds < 0 ? json_null() : json_real(seconds);
    json_t *all = seconds < 0 ? json_null() : json_real(seconds * (double)p->n_todo);
    char *text = st_json_line(json_pack("{sI,sI,sI,sI,sI,sI,so,so,so}", "pictures", (json_int_t)r->job.n_names, "done",
                                        (json_int_t)p->n_done, "to_do", (json_int_t)p->n_todo, "failed_before",
                                        (json_int_t)p->n_retried, "changed", (json_int_t)p->n_changed, "broken",
                                        (json_int_t)p->n_broken, "seconds_per_picture", each, "seconds", all, "classes",
                                        classes_json(&r->job)));
    if (text) fputs(text, stdout);
    else st_console_error(&r->console, "out of memory");
    free(text);
    return text ? ST_EXIT_OK : ST_EXIT_INTERNAL;
}

static void print_class(const st_label_class *c)
{
    printf("  %4u  ", c->id);
    st_print_plain(stdout, c->name);
    for (size_t i = 0; i < c->n_phrases; i++) {
        fputs(i ? ", \"" : ": \"", stdout);
        st_print_plain(stdout, c->phrases[i]);
        fputs(c->concepts[i] ? "\" (by examples)" : "\"", stdout);
    }
    putchar('\n');
}

int st_label_tell_dry_run(st_label_job_run *r)
{
    const st_label_plan *p = &r->plan;
    char total[32];
    const double seconds = measure(r);
    st_console_clear(&r->console);
    if (st_cancel_is_set(r->cancel)) return st_exit_of(ST_ERR_CANCELLED);
    if (r->args->json) return print_json(r, seconds);
    printf("pictures   %zu\ndone       %zu\nto do      %zu", r->job.n_names, p->n_done, p->n_todo);
    if (p->n_retried) printf(", of which %zu failed before", p->n_retried);
    if (p->n_changed) printf(", of which %zu changed since", p->n_changed);
    if (p->n_broken) printf(", of which %zu have a broken file", p->n_broken);
    printf("\nclasses    %zu\n", r->job.n_classes);
    for (size_t k = 0; k < r->job.n_classes; k++) print_class(&r->job.classes[k]);
    if (seconds >= 0) {
        st_label_duration(total, seconds * (double)p->n_todo);
        printf("time       %s, at %.2f s a picture (measured just now on pictures of this job)\n", total, seconds);
    }
    return ST_EXIT_OK;
}
