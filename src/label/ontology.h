/* ontology.h: classes and phrases as a person gives them: words of a command line, a JSON file, and what is doubtful
 * about a phrase.
 *
 * A file: {"classes": [{"name": "worker", "phrases": ["person in hi-vis vest", {"concept": "vest.concept"}],
 * "threshold": 0.4, "min_area": 0.0004, "max_area": 90000, "id": 3}]}. Only the name is needed; without phrases the name
 * is the phrase. Areas below 1 are shares of the picture, from 1 on pixels.
 */
#ifndef ST_LABEL_ONTOLOGY_H
#define ST_LABEL_ONTOLOGY_H

#include "label/labels.h"

#define ST_LABEL_MAX_CLASSES 10000u
#define ST_LABEL_MAX_PHRASES 10000u /* of all classes together */

/* Classes in the order in which they were named first. Zero it to begin. Ids are 0 until st_label_ontology_number,
 * except where a file gives them. */
typedef struct st_label_ontology {
    st_label_class *classes; /* [n] */
    size_t n, n_phrases;
} st_label_ontology;
void st_label_ontology_free(st_label_ontology *o);

/* NAME=PHRASE, or a bare phrase that names its class. NAME=@FILE asks for the examples in FILE. Adds a phrase to a class
 * that is there. */
ST_MUSTCHECK st_status st_label_ontology_add(st_label_ontology *o, const char *text, st_error *err);
/* Adds the classes of a JSON file; concept files are looked for beside it. */
ST_MUSTCHECK st_status st_label_ontology_read(st_label_ontology *o, const char *path, st_error *err);
/* The same from memory; `path` is what messages call it, and where it would lie. */
ST_MUSTCHECK st_status st_label_ontology_parse(st_label_ontology *o, const void *bytes, size_t n, const char *path,
                                               st_error *err);
/* NAME=V or V (every class): a threshold, or with `area` a bound (0.0004 or 400). */
typedef enum st_label_setting { ST_LABEL_THRESHOLD, ST_LABEL_MIN_AREA, ST_LABEL_MAX_AREA } st_label_setting;
ST_MUSTCHECK st_status st_label_class_set(st_label_class *classes, size_t n, st_label_setting what, const char *text,
                                          st_error *err);
/* Gives ids and sorts by them: a name that `old` knows (also a retired one) keeps its id, new ones follow the highest id
 * there ever was. `old` may be NULL. *retired [*n_retired] are the classes of `old` that are gone: from malloc. */
ST_MUSTCHECK st_status st_label_ontology_number(st_label_ontology *o, st_label_class **retired, size_t *n_retired,
                                                const st_label_job *old, st_error *err);

/* ---- doubts ---- */

/* Why a phrase may not do what is meant; bits. */
#define ST_LABEL_LINT_TWO 1u         /* two concepts in one: "car or truck" */
#define ST_LABEL_LINT_PLURAL 2u      /* "forklifts" */
#define ST_LABEL_LINT_LONG 4u        /* more tokens than the model reads */
#define ST_LABEL_LINT_INSTRUCTION 8u /* "find all cars" */
#define ST_LABEL_LINT_NEGATION 16u   /* "person without a helmet" */
uint32_t st_label_lint(const char *phrase);
/* A sentence for one bit, e.g. "names two things at once; ...". NULL for no bit. */
const char *st_label_lint_reason(uint32_t bit);

#endif
