/* ontology.c: classes from words and from a file, and their ids (see ontology.h). A class keeps its id by its name: labels
 * that were made yesterday still mean the same thing today.
 */
#include "label/ontology.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/options.h"
#include "label/bytes.h"
#include "label/store.h"

#define MAX_CONCEPT_BYTES ((uint64_t)64 << 20)

void st_label_ontology_free(st_label_ontology *o)
{
    st_label_classes_free(o->classes, o->n);
    *o = (st_label_ontology){ 0 };
}

/* ---- one class, one phrase ---- */

/* UTF-8 without control characters. */
static bool is_plain(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    for (size_t n; (n = st_label_utf8(p)) != 0; p += n)
        if (*p < 0x20 || *p == 0x7F || (p[0] == 0xC2 && p[1] <= 0x9F)) return false;
    return *p == 0;
}

/* The text without blanks at both ends, from malloc. */
static char *trimmed(const char *text, size_t n)
{
    while (n && strchr(" \t\r\n", text[n - 1])) n--;
    const size_t skip = n ? strspn(text, " \t\r\n") : 0;
    return strndup(text + skip, n - skip);
}

static st_label_class *class_named(st_label_ontology *o, const char *name)
{
    for (size_t i = 0; i < o->n; i++)
        if (strcmp(o->classes[i].name, name) == 0) return &o->classes[i];
    return NULL;
}

/* Takes over `name`. */
static st_status class_make(st_label_class **out, st_label_ontology *o, char *name, st_error *err)
{
    st_status status = ST_OK;
    if (!name) status = st_fault(err, ST_ERR_NOMEM, "out of memory for a class");
    else if (!name[0]) status = st_fault(err, ST_ERR_INVALID_ARG, "a class without a name");
    else if (!is_plain(name))
        status = st_fault(err, ST_ERR_INVALID_ARG, "class \"%s\": expected a name in UTF-8 without control characters",
                          name);
    else if ((*out = class_named(o, name)) == NULL && o->n == ST_LABEL_MAX_CLASSES)
        status = st_fault(err, ST_ERR_LIMIT, "class \"%s\": at most %u classes", name, ST_LABEL_MAX_CLASSES);
    if (status != ST_OK || *out) {
        free(name);
        return status;
    }
    st_label_class *classes = reallocarray(o->classes, o->n + 1, sizeof *classes);
    if (!classes) {
        free(name);
        return st_fault(err, ST_ERR_NOMEM, "out of memory for a class");
    }
    o->classes = classes;
    *out = &classes[o->n++];
    **out = (st_label_class){ .name = name, .threshold = 0.5f };
    return ST_OK;
}

static bool more_room(char ***texts, size_t n)
{
    char **more = reallocarray(*texts, n + 1, sizeof *more);
    if (!more) return false;
    more[n] = NULL;
    *texts = more;
    return true;
}

/* A phrase that two classes share would put every object into both. */
static st_status check_unused(const st_label_ontology *o, const st_label_class *cls, const char *phrase, st_error *err)
{
    for (size_t k = 0; k < o->n; k++)
        for (size_t i = 0; i < o->classes[k].n_phrases; i++) {
            if (o->classes[k].concepts[i] || strcmp(o->classes[k].phrases[i], phrase) != 0) continue;
            if (&o->classes[k] == cls)
                return st_fault(err, ST_ERR_INVALID_ARG, "class \"%s\": the phrase \"%s\" is given twice", cls->name,
                                phrase);
            return st_fault(err, ST_ERR_INVALID_ARG, "the phrase \"%s\" belongs to two classes, \"%s\" and \"%s\"",
                            phrase, o->classes[k].name, cls->name);
        }
    return ST_OK;
}

static st_status check_phrase(const st_label_ontology *o, const st_label_class *cls, const char *phrase, st_error *err)
{
    uint32_t ids[256];
    size_t n;
    int cut;
    st_error why = { ST_OK, "" };
    if (!phrase[0]) return st_fault(err, ST_ERR_INVALID_ARG, "class \"%s\": an empty phrase", cls->name);
    const st_status status = st_tokenize(phrase, ids, sizeof ids / sizeof ids[0], &n, &cut, &why);
    if (status != ST_OK) return st_fault(err, status, "class \"%s\": %s", cls->name, why.message);
    return check_unused(o, cls, phrase, err);
}

/* Takes over the three texts, two of which are NULL for a plain phrase. */
static st_status append(st_label_ontology *o, st_label_class *cls, char *phrase, char *concept, char *digest,
                        st_error *err)
{
    const size_t n = cls->n_phrases;
    st_status status = ST_OK;
    if (o->n_phrases == ST_LABEL_MAX_PHRASES)
        status =
            st_fault(err, ST_ERR_LIMIT, "class \"%s\": at most %u phrases in all", cls->name, ST_LABEL_MAX_PHRASES);
    else if (!phrase || !more_room(&cls->phrases, n) || !more_room(&cls->concepts, n) || !more_room(&cls->digests, n))
        status = st_fault(err, ST_ERR_NOMEM, "class \"%s\": out of memory for a phrase", cls->name);
    else if (!concept) status = check_phrase(o, cls, phrase, err);
    if (status != ST_OK) {
        free(phrase);
        free(concept);
        free(digest);
        return status;
    }
    cls->phrases[n] = phrase;
    cls->concepts[n] = concept;
    cls->digests[n] = digest;
    cls->n_phrases++;
    o->n_phrases++;
    return ST_OK;
}

static st_status digest_of(char **out, const char *path, st_error *err)
{
    unsigned char *bytes;
    size_t n;
    const st_status status = st_label_bytes_read(&bytes, &n, path, path, MAX_CONCEPT_BYTES, err);
    if (status != ST_OK) return status;
    *out = malloc(65);
    if (*out) st_label_sha256(*out, bytes, n);
    free(bytes);
    return *out ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
}

/* Takes over `path`. The phrase is the concept's own. */
static st_status append_concept(st_label_ontology *o, st_label_class *cls, char *path, st_error *err)
{
    st_concept *examples = NULL;
    st_concept_info info = ST_CONCEPT_INFO_INIT;
    char *digest = NULL;
    st_status status = path ? st_concept_load(&examples, path, err)
                            : st_fault(err, ST_ERR_NOMEM, "class \"%s\": out of memory", cls->name);
    if (status == ST_OK) status = st_concept_get_info(examples, &info, err);
    if (status == ST_OK) status = digest_of(&digest, path, err);
    if (status == ST_OK) status = append(o, cls, strdup(info.phrase), path, digest, err);
    else free(path);
    st_concept_free(examples);
    return status;
}

st_status st_label_ontology_add(st_label_ontology *o, const char *text, st_error *err)
{
    const char *equals = strchr(text, '=');
    const char *phrase = equals ? equals + 1 : text;
    st_label_class *cls = NULL;
    if (text[0] == '@' && !equals)
        return st_fault(err, ST_ERR_INVALID_ARG, "\"%s\": name the class of these examples, NAME=%s", text, text);
    const st_status status = class_make(&cls, o, trimmed(text, equals ? (size_t)(equals - text) : strlen(text)), err);
    if (status != ST_OK) return status;
    char *words = trimmed(phrase, strlen(phrase));
    if (!words || words[0] != '@') return append(o, cls, words, NULL, NULL, err);
    char *path = strdup(words + 1);
    free(words);
    return append_concept(o, cls, path, err);
}

/* ---- thresholds and bounds ---- */

static bool read_setting(st_label_class *cls, st_label_setting what, const char *text)
{
    double v;
    if (!st_read_number(&v, text, 0.0, what == ST_LABEL_THRESHOLD ? 1.0 : 1e15)) return false;
    const st_label_area area = { v, v < 1.0 };
    if (what == ST_LABEL_THRESHOLD) cls->threshold = (float)v;
    else if (what == ST_LABEL_MIN_AREA) cls->min_area = area;
    else cls->max_area = area;
    return true;
}

st_status st_label_class_set(st_label_class *classes, size_t n, st_label_setting what, const char *text, st_error *err)
{
    const char *equals = strrchr(text, '='), *value = equals ? equals + 1 : text;
    const size_t length = equals ? (size_t)(equals - text) : 0;
    bool known = !equals;
    for (size_t i = 0; i < n; i++) {
        if (equals && (strlen(classes[i].name) != length || strncmp(classes[i].name, text, length) != 0)) continue;
        known = true;
        if (read_setting(&classes[i], what, value)) continue;
        return st_fault(err, ST_ERR_INVALID_ARG, "\"%s\": expected %s", text,
                        what == ST_LABEL_THRESHOLD ? "V or NAME=V with V from 0 to 1"
                                                   : "V or NAME=V, below 1 a share of the picture, from 1 pixels");
    }
    if (known) return ST_OK;
    return st_fault(err, ST_ERR_INVALID_ARG, "\"%s\": \"%.*s\" is none of the classes", text, (int)length, text);
}

/* ---- ids ---- */

static const st_label_class *find_old(const st_label_job *old, const char *name, uint32_t id)
{
    for (size_t i = 0; old && i < old->n_classes + old->n_retired; i++) {
        const st_label_class *c = i < old->n_classes ? &old->classes[i] : &old->retired[i - old->n_classes];
        if (name ? strcmp(c->name, name) == 0 : c->id == id) return c;
    }
    return NULL;
}

/* An id that a file gives must not mean another class. */
static st_status check_given(const st_label_ontology *o, size_t i, const st_label_job *old, st_error *err)
{
    const st_label_class *c = &o->classes[i], *named = find_old(old, c->name, 0), *taken = find_old(old, NULL, c->id);
    if (named && named->id != c->id)
        return st_fault(err, ST_ERR_INVALID_ARG, "class \"%s\": id %u is given, but this folder knows it as %u",
                        c->name, c->id, named->id);
    if (taken && taken != named)
        return st_fault(err, ST_ERR_INVALID_ARG, "class \"%s\": id %u belongs to \"%s\" in this folder", c->name, c->id,
                        taken->name);
    for (size_t k = 0; k < i; k++)
        if (o->classes[k].id == c->id)
            return st_fault(err, ST_ERR_INVALID_ARG, "classes \"%s\" and \"%s\" have one id, %u", o->classes[k].name,
                            c->name, c->id);
    return ST_OK;
}

static int by_id(const void *a, const void *b)
{
    const st_label_class *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Classes of `old` that are not asked for now: their ids stay taken. */
static st_status retire(st_label_class **retired, size_t *n_retired, st_label_ontology *o, const st_label_job *old,
                        st_error *err)
{
    const size_t n = old->n_classes + old->n_retired;
    st_label_class *gone = calloc(n ? n : 1, sizeof *gone);
    if (!gone) return st_fault(err, ST_ERR_NOMEM, "out of memory for classes");
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const st_label_class *c = i < old->n_classes ? &old->classes[i] : &old->retired[i - old->n_classes];
        if (class_named(o, c->name)) continue;
        gone[count] = (st_label_class){ .id = c->id, .name = strdup(c->name) };
        if (gone[count++].name) continue;
        st_label_classes_free(gone, count);
        return st_fault(err, ST_ERR_NOMEM, "out of memory for classes");
    }
    qsort(gone, count, sizeof *gone, by_id);
    *retired = gone;
    *n_retired = count;
    return ST_OK;
}

st_status st_label_ontology_number(st_label_ontology *o, st_label_class **retired, size_t *n_retired,
                                   const st_label_job *old, st_error *err)
{
    uint32_t last = 0;
    *retired = NULL;
    *n_retired = 0;
    for (size_t i = 0; i < o->n; i++) {
        if (o->classes[i].id == 0) {
            const st_label_class *named = find_old(old, o->classes[i].name, 0);
            if (named) o->classes[i].id = named->id;
        }
        if (o->classes[i].id == 0) continue;
        const st_status status = check_given(o, i, old, err);
        if (status != ST_OK) return status;
        if (o->classes[i].id > last) last = o->classes[i].id;
    }
    for (size_t i = 0; old && i < old->n_classes + old->n_retired; i++) {
        const uint32_t id = (i < old->n_classes ? &old->classes[i] : &old->retired[i - old->n_classes])->id;
        if (id > last) last = id;
    }
    for (size_t i = 0; i < o->n; i++) {
        if (o->classes[i].id) continue;
        if (last == INT32_MAX) return st_fault(err, ST_ERR_LIMIT, "class \"%s\": no id is left", o->classes[i].name);
        o->classes[i].id = ++last;
    }
    if (o->n) qsort(o->classes, o->n, sizeof *o->classes, by_id);
    return old ? retire(retired, n_retired, o, old, err) : ST_OK;
}
