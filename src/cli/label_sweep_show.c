/* label_sweep_show.c: the sweep as a table and as JSON (label_sweep.h). */
#include "cli/label_sweep.h"
#include "front/options.h"
#include "front/report.h"

#include <jansson.h>

/* ---- table ---- */

static void print_row(const st_label_sweep *s, const st_label_sweep_row *r, bool own, FILE *to)
{
    const double n = s->n_pictures ? (double)s->n_pictures : 1.0;
    fprintf(to, "  %c %9.4g  %10llu  %9llu %5.1f %%", own ? '*' : ' ', (double)r->threshold,
            (unsigned long long)r->n_instances, (unsigned long long)r->n_none, 100.0 * (double)r->n_none / n);
    if (r->n_instances) fprintf(to, "  %9.3g %%", 100.0 * r->median_share);
    else fprintf(to, "  %11s", "-");
    fprintf(to, "  %8llu\n", (unsigned long long)r->n_specks);
}

static void print_class(const st_label_sweep *s, size_t c, FILE *to)
{
    const st_label_sweep_row *rows = s->rows + c * (s->n_thresholds + 1);
    st_print_plain(to, s->job->classes[c].name);
    fprintf(to, "\n    %9s  %10s  %17s  %11s  %8s\n", "threshold", "instances", "pictures without", "median area",
            "specks");
    for (size_t t = 0; t < s->n_thresholds; t++) print_row(s, &rows[t], false, to);
    print_row(s, &rows[s->n_thresholds], true, to);
}

/* The lowest of the swept thresholds at which a phrase fires seldom enough, or n_thresholds. */
static size_t quiet_from(const st_label_negatives *g, size_t flat)
{
    size_t t = g->n_thresholds;
    while (t > 0 && st_label_false_rate(g, flat, t - 1) <= ST_LABEL_MAX_FALSE) t--;
    return t;
}

static void print_phrase(const st_label_negatives *g, size_t flat, FILE *to)
{
    size_t k = 0;
    const st_label_class *cls = st_label_phrase_at(&k, g->job, flat);
    const double own = st_label_false_rate(g, flat, g->n_thresholds);
    const size_t from = quiet_from(g, flat);
    fputs("  ", to);
    st_print_plain(to, cls->name);
    fputs(": \"", to);
    st_print_plain(to, cls->phrases[k]);
    fprintf(to, "\": %.1f %% at %g", 100.0 * own, (double)cls->threshold);
    for (size_t t = 0; t < g->n_thresholds; t++)
        fprintf(to, "%s%.1f at %.4g", t ? ", " : " (", 100.0 * st_label_false_rate(g, flat, t),
                (double)g->thresholds[t]);
    fprintf(to, "%s\n", g->n_thresholds ? ")" : "");
    if (!(own > ST_LABEL_MAX_FALSE)) return;
    fprintf(to, "    warning: fires on more than %g %% of the pictures that hold none of it",
            100.0 * ST_LABEL_MAX_FALSE);
    if (from < g->n_thresholds) fprintf(to, "; from %.4g on it does not\n", (double)g->thresholds[from]);
    else fputs(", whatever the threshold: try another phrase\n", to);
}

void st_sweep_table(const st_sweep_view *view, FILE *to)
{
    const st_label_sweep *s = view->sweep;
    const st_label_negatives *g = view->negatives;
    fprintf(to, "%llu pictures", (unsigned long long)s->n_pictures);
    if (s->n_failed) fprintf(to, ", %llu more could not be read", (unsigned long long)s->n_failed);
    if (view->n_missing) fprintf(to, ", %llu more are not done", (unsigned long long)view->n_missing);
    fprintf(to, "; specks: fewer than %llu pixels; *: every class at its own threshold\n\n",
            (unsigned long long)s->speck);
    for (size_t c = 0; c < s->job->n_classes; c++) {
        print_class(s, c, to);
        fputc('\n', to);
    }
    if (g->n_pictures == 0) return;
    fprintf(to, "false positives: how many of %llu pictures without any of it a phrase fires on\n",
            (unsigned long long)g->n_pictures);
    if (g->n_failed) fprintf(to, "  %llu more could not be read\n", (unsigned long long)g->n_failed);
    for (size_t flat = 0; flat < g->n_phrases; flat++) print_phrase(g, flat, to);
}

/* ---- JSON ---- */

/* A threshold as it was written: floats hold it to seven digits. */
static json_t *short_number(float v)
{
    char text[32];
    double d = 0;
    snprintf(text, sizeof text, "%.7g", (double)v);
    return st_read_number(&d, text, -1e38, 1e38) ? json_real(d) : json_null();
}

static json_t *row_json(const st_label_sweep_row *r)
{
    return json_pack("{s:o, s:I, s:I, s:f, s:I}", "threshold", short_number(r->threshold), "instances",
                     (json_int_t)r->n_instances, "pictures_without", (json_int_t)r->n_none, "median_area_share",
                     r->median_share, "specks", (json_int_t)r->n_specks);
}

static json_t *class_json(const st_label_sweep *s, size_t c)
{
    const st_label_sweep_row *rows = s->rows + c * (s->n_thresholds + 1);
    json_t *list = json_array();
    for (size_t t = 0; t < s->n_thresholds; t++) json_array_append_new(list, row_json(&rows[t]));
    return json_pack("{s:s, s:I, s:o, s:o}", "name", s->job->classes[c].name, "id",
                     (json_int_t)s->job->classes[c].id, "own", row_json(&rows[s->n_thresholds]), "thresholds", list);
}

static json_t *phrase_json(const st_label_negatives *g, size_t flat)
{
    size_t k = 0;
    const st_label_class *cls = st_label_phrase_at(&k, g->job, flat);
    const double own = st_label_false_rate(g, flat, g->n_thresholds);
    json_t *list = json_array();
    for (size_t t = 0; t < g->n_thresholds; t++)
        json_array_append_new(list, json_pack("{s:o, s:f}", "threshold", short_number(g->thresholds[t]), "rate",
                                              st_label_false_rate(g, flat, t)));
    return json_pack("{s:s, s:s, s:o, s:f, s:b, s:o}", "class", cls->name, "phrase", cls->phrases[k], "threshold",
                     short_number(cls->threshold), "rate", own, "too_often", own > ST_LABEL_MAX_FALSE, "thresholds",
                     list);
}

char *st_sweep_json(const st_sweep_view *view)
{
    const st_label_sweep *s = view->sweep;
    const st_label_negatives *g = view->negatives;
    json_t *classes = json_array(), *phrases = json_array();
    for (size_t c = 0; c < s->job->n_classes; c++) json_array_append_new(classes, class_json(s, c));
    for (size_t i = 0; g->n_pictures && i < g->n_phrases; i++) json_array_append_new(phrases, phrase_json(g, i));
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:o, s:{s:I, s:I, s:o}}", "pictures", (json_int_t)s->n_pictures,
                            "failed", (json_int_t)s->n_failed, "missing", (json_int_t)view->n_missing, "speck_pixels",
                            (json_int_t)s->speck, "classes", classes, "negatives", "pictures",
                            (json_int_t)g->n_pictures, "failed", (json_int_t)g->n_failed, "phrases", phrases);
    char *text = all ? json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(7)) : NULL;
    json_decref(all);
    return text;
}
