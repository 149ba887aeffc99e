/* report.c: memory of a report, and the JSON values that its spellings share (see report.h). */
#include "front/report.h"
#include "front/growing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool st_report_init(st_report *r, size_t n_pictures, size_t n_prompts)
{
    r->pictures = calloc(n_pictures ? n_pictures : 1, sizeof *r->pictures);
    if (!r->pictures) return false;
    r->n_pictures = n_pictures;
    for (size_t i = 0; i < n_pictures; i++) {
        r->pictures[i].prompts = calloc(n_prompts ? n_prompts : 1, sizeof *r->pictures[i].prompts);
        if (!r->pictures[i].prompts) return false;
        r->pictures[i].n_prompts = n_prompts;
    }
    return true;
}

static void free_prompt(st_prompt_report *p)
{
    if (p->mask_files)
        for (size_t i = 0; i < p->result->n_instances; i++) free(p->mask_files[i]);
    free(p->mask_files);
    st_result_free(p->result);
}

bool st_report_make_objects(st_picture_report *p, size_t n_objects)
{
    p->objects = calloc(n_objects ? n_objects : 1, sizeof *p->objects);
    p->n_objects = p->objects ? n_objects : 0;
    return p->objects != NULL;
}

static void free_object(st_object_report *o)
{
    for (size_t i = 0; o->mask_files && i < o->result->n_candidates; i++) free(o->mask_files[i]);
    free(o->mask_files);
    st_click_result_free(o->result);
}

bool st_report_make_masks(st_picture_report *p, const st_everything_options *options)
{
    p->masks = calloc(1, sizeof *p->masks);
    if (p->masks) p->masks->options = *options;
    return p->masks != NULL;
}

static void free_masks(st_masks_report *m)
{
    for (size_t i = 0; m && m->mask_files && i < m->result->n_masks; i++) free(m->mask_files[i]);
    if (!m) return;
    free(m->mask_files);
    st_everything_result_free(m->result);
    free(m);
}

void st_report_free(st_report *r)
{
    for (size_t i = 0; r->pictures && i < r->n_pictures; i++) {
        st_picture_report *p = &r->pictures[i];
        for (size_t k = 0; p->prompts && k < p->n_prompts; k++) free_prompt(&p->prompts[k]);
        for (size_t k = 0; k < p->n_objects; k++) free_object(&p->objects[k]);
        free_masks(p->masks);
        free(p->prompts);
        free(p->objects);
        free(p->error);
    }
    free(r->pictures);
    r->pictures = NULL;
    r->n_pictures = 0;
}

/* Control characters of a file name or phrase must not reach the terminal. */
void st_print_plain(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        if (*p < 0x20 || *p == 0x7F) fputc('?', to);
        else if (p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F) fputc('?', to), p++;
        else fputc(*p, to);
    }
}

/* ---- warnings ---- */

static const struct {
    uint32_t bit;
    const char *name, *sentence;
} warnings[] = {
    { ST_WARN_PROMPT_CUT, "prompt_cut", "the phrase has more tokens than the model reads; its end was left out" },
    { ST_WARN_NOTHING_FOUND, "nothing_found", "nothing found above the threshold" },
    { ST_WARN_QUERY_LIMIT, "query_limit", "every query of the model found something; there may be more" },
    { ST_WARN_DETECTION_CAP, "detection_cap", "more was found than --max-detections keeps" },
};

const char *st_warning_name(size_t i, uint32_t *bit)
{
    if (i >= sizeof warnings / sizeof warnings[0]) return NULL;
    *bit = warnings[i].bit;
    return warnings[i].name;
}

const char *st_warning_sentence(size_t i)
{
    return i < sizeof warnings / sizeof warnings[0] ? warnings[i].sentence : NULL;
}

/* ---- JSON values ---- */

#define FLOAT_DIGITS 9 /* enough for any float */

json_t *st_json_float(float value)
{
    char text[32];
    if (!isfinite(value)) return json_null();
    for (int digits = 6; digits <= FLOAT_DIGITS; digits++) {
        char *end;
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, &end) == value) break;
    }
    /* st_json_line prints FLOAT_DIGITS digits of the double, which are those of `text` and zeros that %g drops. */
    char *end;
    return json_real(strtod(text, &end));
}

/* Length of the UTF-8 character at p, 0 when there is none. */
static size_t character(const unsigned char *p)
{
    if (p[0] < 0x80) return 1;
    const size_t n = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
                     : p[0] >= 0xE0 && p[0] <= 0xEF ? 3
                     : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                                    : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF0 && p[1] < 0x90) ||
        (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return n;
}

json_t *st_json_text(const char *text)
{
    json_t *json = json_string(text);
    if (json) return json;
    char *fixed = malloc(3 * strlen(text) + 1);
    if (!fixed) return NULL;
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        const size_t length = character(p);
        memcpy(fixed + n, length ? (const char *)p : "\xEF\xBF\xBD", length ? length : 3);
        n += length ? length : 3;
        p += length ? length : 1;
    }
    json = json_stringn(fixed, n);
    free(fixed);
    return json;
}

static int append(const char *bytes, size_t n, void *user)
{
    return st_growing_add(user, bytes, n) ? 0 : -1;
}

/* Not json_dumps: when memory is out it may leave out a piece and say nothing (jansson 2.14, dump.c, keys). */
char *st_json_line(json_t *doc)
{
    st_growing g = { 0 };
    if (!doc) return NULL;
    const bool dumped = json_dump_callback(doc, append, &g, JSON_REAL_PRECISION(FLOAT_DIGITS)) == 0;
    g.failed |= !dumped;
    json_decref(doc);
    st_growing_add(&g, "\n", 1);
    return st_growing_take(&g, NULL);
}
