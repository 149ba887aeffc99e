/* report_table.c: the report for a person at a terminal. */
#include "front/report.h"
#include "front/growing.h"

#include <stdlib.h>

static void print_prompt(const st_prompt_report *p, FILE *to)
{
    const st_result *r = p->result;
    fputs("  \"", to);
    st_print_plain(to, p->phrase);
    fprintf(to, "\"");
    if (p->n_boxes) fprintf(to, " with %zu box%s", p->n_boxes, p->n_boxes == 1 ? "" : "es");
    if (p->n_concepts) fprintf(to, " with %zu concept%s", p->n_concepts, p->n_concepts == 1 ? "" : "s");
    fprintf(to, ": %zu found, presence %.3f\n", r->n_instances, (double)r->presence);
    if (r->n_instances)
        fprintf(to, "    %3s  %6s  %9s %9s %9s %9s  %10s\n", "#", "score", "left", "top", "right", "bottom",
                p->boxes_only ? "" : "area");
    for (size_t i = 0; i < r->n_instances; i++) {
        const st_instance *it = &r->instances[i];
        fprintf(to, "    %3zu  %6.3f  %9.1f %9.1f %9.1f %9.1f", i + 1, (double)it->score, (double)it->box[0],
                (double)it->box[1], (double)it->box[2], (double)it->box[3]);
        if (p->boxes_only) fputc('\n', to);
        else fprintf(to, "  %10llu\n", (unsigned long long)it->area);
    }
    uint32_t bit;
    for (size_t i = 0; st_warning_name(i, &bit) != NULL; i++)
        if (r->warnings & bit) fprintf(to, "    note: %s\n", st_warning_sentence(i));
}

static void print_object(const st_object_report *o, size_t number, FILE *to)
{
    const st_click_result *r = o->result;
    const char *comma = "";
    fprintf(to, "  object %zu (", number);
    if (o->n_points) fprintf(to, "%zu point%s", o->n_points, o->n_points == 1 ? "" : "s"), comma = ", ";
    if (o->region) fprintf(to, "%sregion", comma), comma = ", ";
    if (o->mask) fprintf(to, "%smask", comma);
    fprintf(to, "): object score %.3f\n", (double)r->object_score);
    fprintf(to, "    %3s  %6s  %9s %9s %9s %9s  %10s\n", "#", "IoU", "left", "top", "right", "bottom", "area");
    for (size_t i = 0; i < r->n_candidates; i++) {
        const st_candidate *c = &r->candidates[i];
        const st_box_px box = st_rle_box(&c->mask);
        fprintf(to, "    %3zu  %6.3f  %9u %9u %9u %9u  %10llu\n", i + 1, (double)c->iou, box.x0, box.y0, box.x1, box.y1,
                (unsigned long long)c->area);
    }
}

void st_report_table(const st_picture_report *p, FILE *to)
{
    st_print_plain(to, p->file);
    if (p->error) {
        fputs("\n  failed: ", to);
        st_print_plain(to, p->error);
        fputc('\n', to);
        return;
    }
    fprintf(to, "  %u x %u pixels\n", p->width, p->height);
    for (size_t i = 0; i < p->n_prompts; i++) print_prompt(&p->prompts[i], to);
    for (size_t i = 0; i < p->n_objects; i++) print_object(&p->objects[i], i + 1, to);
    if (p->masks) st_report_masks_table(p->masks, to);
}

char *st_report_table_text(const st_report *r)
{
    st_growing g = { 0 };
    FILE *f = st_growing_open(&g);
    if (!f) return NULL;
    for (size_t i = 0; i < r->n_pictures; i++) st_report_table(&r->pictures[i], f);
    return st_growing_close(&g, f, NULL);
}
