/* classes_fuzz.c: classes as hostile people give them. The first byte picks the form.
 *
 *   f  a file: what is accepted has names, phrases that the tokeniser takes, sound thresholds; the ids that are given rise
 *      and stay when the same file is numbered again after itself.
 *   w  words of a command line, a line each: a class, or behind "!" a threshold
 *   l  a phrase to doubt
 *
 * Nothing that names a file of examples is tried: it would be opened.
 */
#include <stdlib.h>
#include <string.h>
#include "label/ontology.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) abort();                                                                                          \
    } while (0)

static void check_classes(const st_label_ontology *o)
{
    size_t n_phrases = 0;
    for (size_t i = 0; i < o->n; i++) {
        const st_label_class *c = &o->classes[i];
        CHECK(c->name && c->name[0]);
        CHECK(c->threshold >= 0.0f && c->threshold <= 1.0f);
        CHECK(c->min_area.value >= 0.0 && c->max_area.value >= 0.0);
        n_phrases += c->n_phrases;
        for (size_t k = 0; k < i; k++) CHECK(strcmp(o->classes[k].name, c->name) != 0);
        for (size_t k = 0; k < c->n_phrases; k++) {
            uint32_t ids[64];
            size_t n;
            int cut;
            CHECK(c->phrases[k][0] && st_tokenize(c->phrases[k], ids, 64, &n, &cut, NULL) == ST_OK);
            (void)st_label_lint(c->phrases[k]);
        }
    }
    CHECK(n_phrases == o->n_phrases);
}

static void check_numbers(st_label_ontology *o)
{
    st_label_class *retired = NULL, *again = NULL;
    size_t n = 0;
    if (st_label_ontology_number(o, &retired, &n, NULL, NULL) != ST_OK) return;
    CHECK(n == 0);
    for (size_t i = 0; i < o->n; i++) CHECK(o->classes[i].id > (i ? o->classes[i - 1].id : 0));
    const st_label_job old = { .classes = o->classes, .n_classes = o->n };
    st_label_ontology same = { .classes = st_label_classes_copy(o->classes, o->n), .n = o->n, .n_phrases = o->n_phrases };
    if (same.classes) {
        for (size_t i = 0; i < same.n; i++) same.classes[i].id = 0;
        CHECK(st_label_ontology_number(&same, &again, &n, &old, NULL) == ST_OK && n == 0);
        for (size_t i = 0; i < o->n; i++) CHECK(strcmp(same.classes[i].name, o->classes[i].name) == 0);
        st_label_ontology_free(&same);
        st_label_classes_free(again, n);
    }
    st_label_classes_free(retired, 0);
}

static bool names_a_file(const char *text) { return strchr(text, '@') || strstr(text, "concept") || strchr(text, '\\'); }

static void try_words(char *text)
{
    st_label_ontology o = { 0 };
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        st_error err;
        if (line[0] != '!') (void)!st_label_ontology_add(&o, line, &err);
        else (void)!st_label_class_set(o.classes, o.n, (st_label_setting)(strlen(line) % 3), line + 1, &err);
        check_classes(&o);
    }
    check_numbers(&o);
    st_label_ontology_free(&o);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    if (n == 0 || n > 20000) return 0;
    char *text = malloc(n);
    CHECK(text);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = '\0';
    if (data[0] == 'l') (void)st_label_lint(text);
    if (data[0] == 'w' && !names_a_file(text)) try_words(text);
    if (data[0] == 'f' && !names_a_file(text)) {
        st_label_ontology o = { 0 };
        st_error err;
        const st_status status = st_label_ontology_parse(&o, text, n - 1, "classes.json", &err);
        check_classes(&o);
        if (status == ST_OK) check_numbers(&o);
        st_label_ontology_free(&o);
    }
    free(text);
    return 0;
}
