/* report_table.c: the report for a person at a terminal. */
#include "front/report.h"

/* Control characters of a file name or phrase must not reach the terminal. */
static void print_plain(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7F) fputc('?', to);
        else if (p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F) fputc('?', to), p++;
        else fputc(*p, to);
    }
}

static void print_prompt(const st_prompt_report *p, FILE *to)
{
    const st_result *r = p->result;
    fputs("  \"", to);
    print_plain(to, p->phrase);
    fprintf(to, "\"");
    if (p->n_boxes) fprintf(to, " with %zu box%s", p->n_boxes, p->n_boxes == 1 ? "" : "es");
    fprintf(to, ": %zu found, presence %.3f\n", r->n_instances, (double)r->presence);
    if (r->n_instances) fprintf(to, "    %3s  %6s  %9s %9s %9s %9s  %10s\n", "#", "score", "left", "top", "right", "bottom", p->boxes_only ? "" : "area");
    for (size_t i = 0; i < r->n_instances; i++) {
        const st_instance *it = &r->instances[i];
        fprintf(to, "    %3zu  %6.3f  %9.1f %9.1f %9.1f %9.1f", i + 1, (double)it->score, (double)it->box[0], (double)it->box[1], (double)it->box[2],
                (double)it->box[3]);
        if (p->boxes_only) fputc('\n', to);
        else fprintf(to, "  %10llu\n", (unsigned long long)it->area);
    }
    uint32_t bit;
    for (size_t i = 0; st_warning_name(i, &bit) != NULL; i++)
        if (r->warnings & bit) fprintf(to, "    note: %s\n", st_warning_sentence(i));
}

void st_report_table(const st_picture_report *p, FILE *to)
{
    print_plain(to, p->file);
    if (p->error) {
        fputs("\n  failed: ", to);
        print_plain(to, p->error);
        fputc('\n', to);
        return;
    }
    fprintf(to, "  %u x %u pixels\n", p->width, p->height);
    for (size_t i = 0; i < p->n_prompts; i++) print_prompt(&p->prompts[i], to);
}
