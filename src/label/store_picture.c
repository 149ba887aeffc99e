/* store_picture.c: one file of the store: a first line on the picture, one line per object (see store.h). What is read is
 * checked as if a stranger had written it: stores are merged, moved and edited.
 */
#include "label/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "front/fault.h"
#include "front/growing.h"
#include "front/report.h"
#include "front/save.h"

#define MAX_RECORD_BYTES ((off_t)1 << 30)

/* ---- writing ---- */

static json_t *answers_json(const st_label_picture *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_answers; i++) {
        const st_label_answer *a = &p->answers[i];
        json_t *item = json_pack("{sI,sI,so,so}", "class", (json_int_t)a->class_id, "phrase", (json_int_t)a->phrase,
                                 "presence", st_json_float(a->presence), "warnings", st_json_warnings(a->warnings));
        if (json_array_append_new(list, item) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static char *first_line(const st_label_picture *p, const st_label_job *job)
{
    json_t *doc = json_pack("{ss,so,sI,ss}", "recipe", job->recipe, "name", st_label_name_to_json(p->name), "bytes",
                            (json_int_t)p->n_bytes, "sha256", p->sha256);
    int failed = !doc;
    if (p->error) failed |= json_object_set_new(doc, "error", st_json_text(p->error));
    else {
        json_t *range = p->stretched ? json_pack("[o,o]", st_json_float(p->low), st_json_float(p->high)) : json_null();
        json_t *facts = json_pack("{sI,sI,si,ss,sb,so,sb,so,sI}", "width", (json_int_t)p->width, "height",
                                  (json_int_t)p->height, "orientation", p->orientation, "format", p->format, "damaged",
                                  p->damaged, "stretched", range, "enlarged", p->enlarged, "answers", answers_json(p),
                                  "objects", (json_int_t)p->n_objects);
        failed |= !facts || json_object_update(doc, facts) != 0;
        json_decref(facts);
    }
    if (!failed) return st_json_line(doc);
    json_decref(doc);
    return NULL;
}

static json_t *object_json(const st_label_object *o)
{
    char *runs = NULL;
    if (o->mask.n_counts && st_rle_to_string(&runs, &o->mask, NULL) != ST_OK) return NULL;
    json_t *box = json_pack("[o,o,o,o]", st_json_float(o->box[0]), st_json_float(o->box[1]), st_json_float(o->box[2]),
                            st_json_float(o->box[3]));
    json_t *doc = json_pack("{sI,sI,so,so,sI}", "class", (json_int_t)o->class_id, "phrase", (json_int_t)o->phrase,
                            "score", st_json_float(o->score), "box", box, "area", (json_int_t)o->area);
    int failed = !doc;
    if (runs) failed |= json_object_set_new(doc, "mask", json_string(runs));
    if (o->displaced_by >= 0) failed |= json_object_set_new(doc, "displaced_by", json_integer(o->displaced_by));
    if (o->n_pieces > 1) failed |= json_object_set_new(doc, "pieces", json_integer(o->n_pieces));
    st_string_free(runs);
    if (!failed) return doc;
    json_decref(doc);
    return NULL;
}

/* The whole file as text. */
static char *picture_text(const st_label_picture *p, const st_label_job *job, size_t *n)
{
    st_growing text = { 0 };
    char *line = first_line(p, job);
    st_growing_adds(&text, line);
    free(line);
    for (size_t i = 0; !text.failed && i < p->n_objects; i++) {
        line = st_json_line(object_json(&p->objects[i]));
        st_growing_adds(&text, line);
        free(line);
    }
    return st_growing_take(&text, n);
}

/* store/ and store/xx/, made when first needed. */
static st_status make_folders(char *path, st_error *err)
{
    st_status status = ST_OK;
    char *last = strrchr(path, '/'), *before;
    *last = '\0';
    before = strrchr(path, '/');
    const int why = mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
    if (why == ENOENT) {
        *before = '\0';
        status = st_save_folder(path, err);
        *before = '/';
        if (status == ST_OK) status = st_save_folder(path, err);
    } else if (why) status = st_fault(err, ST_ERR_IO, "%s: cannot make this folder: %s", path, strerror(why));
    *last = '/';
    return status;
}

static char *store_path(const char *folder, const char *name)
{
    char *tail = st_label_store_name(name), *path = tail ? st_label_path(folder, tail) : NULL;
    free(tail);
    return path;
}

st_status st_label_picture_write(const st_label_picture *p, const char *folder, const st_label_job *job, st_error *err)
{
    size_t n = 0;
    char *path = store_path(folder, p->name), *text = picture_text(p, job, &n);
    st_status status = path && text ? make_folders(path, err)
                                    : st_fault(err, ST_ERR_NOMEM, "%s: out of memory for its results", p->name);
    if (status == ST_OK) status = st_save_text(path, text, n, err);
    free(path);
    free(text);
    return status;
}

/* ---- reading ---- */

static bool read_u32(uint32_t *out, const json_t *value)
{
    const json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    *out = (uint32_t)n;
    return n >= 0 && n <= UINT32_MAX;
}

static bool read_u64(uint64_t *out, const json_t *value)
{
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool read_float(float *out, const json_t *value)
{
    *out = (float)json_number_value(value);
    return json_is_number(value);
}

static bool read_warnings(uint32_t *out, const json_t *list)
{
    uint32_t bit;
    const char *name;
    *out = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *said = json_string_value(json_array_get(list, i));
        for (size_t k = 0; said && (name = st_warning_name(k, &bit)) != NULL; k++)
            if (strcmp(name, said) == 0) *out |= bit;
    }
    return json_is_array(list);
}

/* Class and phrase that the job knows. */
static bool read_which(uint32_t *class_id, uint32_t *phrase, const json_t *doc, const st_label_job *job)
{
    if (!read_u32(class_id, json_object_get(doc, "class")) || !read_u32(phrase, json_object_get(doc, "phrase")))
        return false;
    const st_label_class *cls = st_label_class_by_id(job, *class_id);
    return cls && *phrase < cls->n_phrases;
}

static bool read_answers(st_label_picture *p, const json_t *list, const st_label_job *job)
{
    if (!json_is_array(list)) return false;
    p->answers = calloc(json_array_size(list) + 1, sizeof *p->answers);
    for (size_t i = 0; p->answers && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        st_label_answer *a = &p->answers[i];
        p->n_answers = i + 1;
        if (!read_which(&a->class_id, &a->phrase, item, job)) return false;
        if (!read_float(&a->presence, json_object_get(item, "presence"))) return false;
        if (!read_warnings(&a->warnings, json_object_get(item, "warnings"))) return false;
    }
    return p->answers != NULL;
}

static bool read_facts(st_label_picture *p, size_t *n_objects, const json_t *doc, const st_label_job *job)
{
    const char *format = json_string_value(json_object_get(doc, "format"));
    const json_t *range = json_object_get(doc, "stretched");
    uint32_t orientation;
    uint64_t n;
    if (!read_u32(&p->width, json_object_get(doc, "width")) || p->width == 0) return false;
    if (!read_u32(&p->height, json_object_get(doc, "height")) || p->height == 0) return false;
    if (!read_u32(&orientation, json_object_get(doc, "orientation")) || orientation < 1 || orientation > 8) return false;
    if (!format || strlen(format) >= sizeof p->format) return false;
    memcpy(p->format, format, strlen(format) + 1);
    p->orientation = (int)orientation;
    p->damaged = json_is_true(json_object_get(doc, "damaged"));
    p->enlarged = json_is_true(json_object_get(doc, "enlarged"));
    p->stretched = json_is_array(range);
    if (p->stretched && (!read_float(&p->low, json_array_get(range, 0)) || !read_float(&p->high, json_array_get(range, 1))))
        return false;
    if (!read_u64(&n, json_object_get(doc, "objects")) || n > INT32_MAX) return false;
    *n_objects = (size_t)n;
    return read_answers(p, json_object_get(doc, "answers"), job);
}

/* What is wrong with the first line, or NULL. *done false: it was made by another recipe. */
static const char *read_first(st_label_picture *p, size_t *n_objects, bool *done, const char *line, const char *name,
                              const st_label_job *job)
{
    bool no_memory;
    json_t *doc = st_label_json_read(&no_memory, line, strlen(line), 0, NULL);
    const char *recipe = json_string_value(json_object_get(doc, "recipe"));
    const char *sha = json_string_value(json_object_get(doc, "sha256"));
    const char *error = json_string_value(json_object_get(doc, "error")), *wrong = NULL;
    char *said = st_label_name_from_json(json_object_get(doc, "name"));
    *n_objects = 0;
    *done = recipe && strcmp(recipe, job->recipe) == 0;
    if (no_memory) wrong = st_label_no_memory;
    else if (!recipe) wrong = "its first line is not one of this store";
    else if (*done) {
        if (!said || strcmp(said, name) != 0) wrong = "it is about another picture";
        else if (!sha || strlen(sha) > 64 || !read_u64(&p->n_bytes, json_object_get(doc, "bytes")))
            wrong = "its first line says nothing of the file";
        else memcpy(p->sha256, sha, strlen(sha) + 1);
        if (!wrong && error && !(p->error = strdup(error))) wrong = st_label_no_memory;
        if (!wrong && !error && !read_facts(p, n_objects, doc, job)) wrong = "its first line is incomplete";
    }
    free(said);
    json_decref(doc);
    return wrong;
}

static const char *read_mask(st_label_object *o, const json_t *doc, const st_label_picture *p, const st_label_job *job)
{
    const json_t *mask = json_object_get(doc, "mask");
    if (job->options.boxes_only) return mask ? "a mask in a job of boxes" : NULL;
    if (!json_is_string(mask)) return "an object without a mask";
    if (st_rle_from_string(&o->mask, json_string_value(mask), json_string_length(mask), p->width, p->height, NULL) !=
        ST_OK)
        return "a mask that cannot be read";
    return st_rle_area(&o->mask) == o->area ? NULL : "a mask whose area is another";
}

static const char *read_object(st_label_object *o, const json_t *doc, const st_label_picture *p, size_t n,
                               const st_label_job *job)
{
    const json_t *box = json_object_get(doc, "box"), *by = json_object_get(doc, "displaced_by");
    const json_t *pieces = json_object_get(doc, "pieces");
    *o = (st_label_object){ .displaced_by = -1, .n_pieces = 1 };
    if (!read_which(&o->class_id, &o->phrase, doc, job)) return "an object of a class or phrase that the job has not";
    for (size_t i = 0; i < 4; i++)
        if (!read_float(&o->box[i], json_array_get(box, i))) return "an object without a box";
    if (!read_float(&o->score, json_object_get(doc, "score"))) return "an object without a score";
    if (!read_u64(&o->area, json_object_get(doc, "area")) || o->area == 0) return "an object without an area";
    if (pieces && (!read_u32(&o->n_pieces, pieces) || o->n_pieces == 0)) return "a number of pieces that is none";
    if (by) {
        uint32_t index;
        if (!read_u32(&index, by) || index >= n) return "an object displaced by none";
        o->displaced_by = (int32_t)index;
    }
    return read_mask(o, doc, p, job);
}

/* What displaces is not displaced itself (duplicates.h): so no chain is long, and none is a circle. */
static bool displaced_by_standing(const st_label_picture *p)
{
    for (size_t i = 0; i < p->n_objects; i++)
        if (p->objects[i].displaced_by >= 0 && p->objects[p->objects[i].displaced_by].displaced_by >= 0) return false;
    return true;
}

static const char *read_objects(st_label_picture *p, size_t n, FILE *f, const st_label_job *job)
{
    char *line = NULL;
    size_t room = 0;
    const char *wrong = NULL;
    for (size_t i = 0; !wrong && i < n; i++) {
        st_label_object o = { 0 };
        bool no_memory = false;
        const ssize_t length = getline(&line, &room, f);
        json_t *doc = length > 0 ? st_label_json_read(&no_memory, line, (size_t)length, 0, NULL) : NULL;
        wrong = doc ? read_object(&o, doc, p, n, job) : no_memory ? st_label_no_memory : "it ends early";
        if (!wrong && st_label_picture_add(p, &o, NULL) != ST_OK) wrong = st_label_no_memory;
        if (wrong) st_rle_free(&o.mask);
        json_decref(doc);
    }
    if (!wrong && getline(&line, &room, f) > 0) wrong = "it goes on behind its last object";
    if (!wrong && !displaced_by_standing(p)) wrong = "an object displaced by one that is displaced itself";
    free(line);
    return wrong;
}

const char *st_label_picture_parse(st_label_picture *p, bool *there, FILE *f, const char *name, const st_label_job *job,
                                   bool whole)
{
    char *line = NULL;
    size_t room = 0, n = 0;
    const char *wrong = "it is empty";
    *p = (st_label_picture){ .name = strdup(name) };
    *there = false;
    errno = 0;
    if (!p->name) wrong = st_label_no_memory;
    else if (getline(&line, &room, f) > 0) wrong = read_first(p, &n, there, line, name, job);
    if (!wrong && *there && whole) wrong = read_objects(p, n, f, job);
    if (wrong && errno == ENOMEM) wrong = st_label_no_memory;
    free(line);
    if (wrong) *there = false;
    if (!*there) st_label_picture_free(p);
    return wrong;
}

/* NULL when there is none, or what is there is no file of a store. A named pipe is no reason to wait. */
static FILE *open_record(const char *path, const char **wrong)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *wrong = NULL;
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR) *wrong = errno == ENOMEM ? st_label_no_memory : strerror(errno);
        return NULL;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) *wrong = "is no file";
    else if (st.st_size > MAX_RECORD_BYTES) *wrong = "is too large for a file of the store";
    FILE *f = *wrong ? NULL : fdopen(fd, "r");
    if (!f && !*wrong) *wrong = errno == ENOMEM ? st_label_no_memory : strerror(errno);
    if (!f) close(fd);
    return f;
}

st_status st_label_picture_read(st_label_picture *p, bool *there, const char *name, const char *folder,
                                const st_label_job *job, bool whole, st_error *err)
{
    char *path = store_path(folder, name);
    const char *wrong = NULL;
    *p = (st_label_picture){ 0 };
    *there = false;
    if (!path) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    st_status status = ST_OK;
    FILE *f = open_record(path, &wrong);
    if (wrong) status = st_fault(err, wrong == st_label_no_memory ? ST_ERR_NOMEM : ST_ERR_IO, "%s: %s", path, wrong);
    wrong = f ? st_label_picture_parse(p, there, f, name, job, whole) : NULL;
    if (wrong == st_label_no_memory) status = st_fault(err, ST_ERR_NOMEM, "%s: %s", path, wrong);
    else if (wrong)
        status = st_fault(err, ST_ERR_FORMAT, "%s: %s; remove this file to label its picture again", path, wrong);
    if (f) fclose(f);
    free(path);
    return status;
}
