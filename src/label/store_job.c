/* store_job.c: job.json and root.json. What decides the content of the store is summed up in a recipe, a hash that every
 * file of the store carries: a file made by other options, phrases or weights is never taken for a finished one.
 */
#include "label/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "front/fault.h"
#include "front/report.h"
#include "front/save.h"
#include "label/bytes.h"

#define FORMAT "stencil-label 1"
#define MAX_JOB_BYTES ((uint64_t)1 << 30)

static const char *const resizes[] = { "gpu", "cpu" };
static const char *const stretches[] = { "auto", "never", "always" };
static const char *const measures[] = { "off", "iou", "smaller" };

/* ---- writing ---- */

static json_t *tiling_json(const st_label_tiling *t)
{
    if (!t->on) return json_null();
    return json_pack("{sI,sI,sb}", "size", (json_int_t)t->size, "overlap", (json_int_t)t->overlap, "whole", t->whole);
}

static json_t *duplicates_json(const st_label_duplicates *d)
{
    if (d->measure == ST_LABEL_DUPLICATES_OFF) return json_null();
    return json_pack("{ss,so,sb}", "measure", measures[d->measure], "threshold", st_json_float(d->threshold),
                     "across_classes", d->across_classes);
}

json_t *st_label_options_to_json(const st_label_options *o)
{
    return json_pack("{so,so,sb,sb,ss,ss,sI,so,so}", "floor", st_json_float(o->floor), "mask_threshold",
                     st_json_float(o->mask_threshold), "boxes_only", o->boxes_only, "hf_text_only", o->hf_text_only,
                     "resize", resizes[o->resize], "stretch", stretches[o->bitmap.stretch], "max_pixels",
                     (json_int_t)o->bitmap.max_pixels, "tiles", tiling_json(&o->tiling), "duplicates",
                     duplicates_json(&o->duplicates));
}

/* Without `names`: only what changes results. The file of examples goes by its content. */
static json_t *phrases_json(const st_label_class *c, bool names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_phrases; i++) {
        json_t *item = json_pack("{ss}", "phrase", c->phrases[i]);
        int failed = !item;
        if (c->concepts[i] && names) {
            const char *slash = strrchr(c->concepts[i], '/');
            failed |= json_object_set_new(item, "examples", st_json_text(slash ? slash + 1 : c->concepts[i]));
        }
        if (c->concepts[i]) failed |= json_object_set_new(item, "sha256", json_string(c->digests[i]));
        failed |= json_array_append_new(list, item);
        if (!failed) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *area_json(const st_label_area *a)
{
    return a->value > 0 ? json_pack("{sf}", a->is_share ? "share" : "pixels", a->value) : json_null();
}

static json_t *class_json(const st_label_class *c)
{
    return json_pack("{sI,ss,so,so,so,so}", "id", (json_int_t)c->id, "name", c->name, "phrases", phrases_json(c, true),
                     "threshold", st_json_float(c->threshold), "min_area", area_json(&c->min_area), "max_area",
                     area_json(&c->max_area));
}

static json_t *asked_json(const st_label_class *c)
{
    return json_pack("{sI,so}", "id", (json_int_t)c->id, "phrases", phrases_json(c, false));
}

static json_t *retired_json(const st_label_class *c)
{
    return json_pack("{sI,ss}", "id", (json_int_t)c->id, "name", c->name);
}

static json_t *classes_json(const st_label_class *classes, size_t n, json_t *(*one)(const st_label_class *))
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        if (json_array_append_new(list, one(&classes[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *names_json(const st_label_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_names; i++) {
        if (json_array_append_new(list, st_label_name_to_json(job->names[i])) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

bool st_label_recipe(st_label_job *job)
{
    char *text = st_json_line(json_pack("{ss,ss,so,so}", "model", job->model_id, "precision", job->precision, "asked",
                                        classes_json(job->classes, job->n_classes, asked_json), "options",
                                        st_label_options_to_json(&job->options)));
    if (!text) return false;
    st_label_sha256(job->recipe, text, strlen(text));
    free(text);
    return true;
}

char *st_label_job_text(const st_label_job *job)
{
    return st_json_line(json_pack(
        "{ss,ss,s{ss,ss,ss,sI},ss,so,so,so,s[I,I],s{sI,ss},so}", "format", FORMAT, "stencil", job->stencil, "model",
        "id", job->model_id, "version", job->model_version, "precision", job->precision, "input_size",
        (json_int_t)job->model_size, "recipe", job->recipe, "options", st_label_options_to_json(&job->options),
        "classes", classes_json(job->classes, job->n_classes, class_json), "retired",
        classes_json(job->retired, job->n_retired, retired_json), "shard", (json_int_t)job->shard,
        (json_int_t)job->n_shards, "all", "pictures", (json_int_t)job->n_all, "sha256", job->all_sha256, "pictures",
        names_json(job)));
}

st_status st_label_job_write(const st_label_job *job, const char *folder, st_error *err)
{
    char *path = st_label_path(folder, "job.json"), *text = st_label_job_text(job);
    const st_status status = path && text ? st_save_text(path, text, strlen(text), err)
                                          : st_fault(err, ST_ERR_NOMEM, "%s: out of memory for the job", folder);
    free(path);
    free(text);
    return status;
}

/* ---- reading ---- */

static bool read_text(char **out, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    *out = text ? strdup(text) : NULL;
    return *out != NULL;
}

static bool read_u32(uint32_t *out, const json_t *value)
{
    const json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    *out = (uint32_t)n;
    return n >= 0 && n <= UINT32_MAX;
}

static bool read_float(float *out, const json_t *value)
{
    *out = (float)json_number_value(value);
    return json_is_number(value);
}

static bool read_choice(int *out, const json_t *value, const char *const *names, int n)
{
    const char *text = json_string_value(value);
    for (*out = 0; *out < n; (*out)++)
        if (text && strcmp(text, names[*out]) == 0) return true;
    return false;
}

static bool read_area(st_label_area *out, const json_t *value)
{
    const json_t *share = json_object_get(value, "share");
    *out = (st_label_area){ 0 };
    if (json_is_null(value)) return true;
    out->is_share = share != NULL;
    out->value = json_number_value(share ? share : json_object_get(value, "pixels"));
    return out->value > 0;
}

static bool read_sha(char out[65], const json_t *value)
{
    const char *text = json_string_value(value);
    if (!text || strlen(text) != 64) return false;
    memcpy(out, text, 65);
    return true;
}

static bool read_phrases(st_label_class *c, const json_t *list)
{
    const size_t n = json_array_size(list);
    c->phrases = calloc(n ? n : 1, sizeof *c->phrases);
    c->concepts = calloc(n ? n : 1, sizeof *c->concepts);
    c->digests = calloc(n ? n : 1, sizeof *c->digests);
    if (!c->phrases || !c->concepts || !c->digests) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        c->n_phrases = i + 1;
        if (!read_text(&c->phrases[i], item, "phrase")) return false;
        if (!json_object_get(item, "examples")) continue;
        if (!read_text(&c->concepts[i], item, "examples") || !read_text(&c->digests[i], item, "sha256")) return false;
    }
    return true;
}

static bool read_classes(st_label_class **out, size_t *n, const json_t *list, bool retired)
{
    if (!json_is_array(list)) return false;
    *out = calloc(json_array_size(list) + 1, sizeof **out);
    for (size_t i = 0; *out && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        st_label_class *c = &(*out)[i];
        *n = i + 1;
        if (!read_u32(&c->id, json_object_get(item, "id")) || !read_text(&c->name, item, "name")) return false;
        if (c->id == 0 || (i && c->id <= c[-1].id)) return false;
        if (!read_phrases(c, json_object_get(item, "phrases"))) return false; /* retired: none */
        if (retired) continue;
        if (c->n_phrases == 0 || !read_float(&c->threshold, json_object_get(item, "threshold"))) return false;
        if (!read_area(&c->min_area, json_object_get(item, "min_area"))) return false;
        if (!read_area(&c->max_area, json_object_get(item, "max_area"))) return false;
    }
    return *out != NULL;
}

static bool read_options(st_label_options *o, const json_t *from)
{
    const json_t *tiles = json_object_get(from, "tiles"), *same = json_object_get(from, "duplicates");
    int resize, stretch, measure = 0;
    st_label_options_default(o);
    o->duplicates.measure = ST_LABEL_DUPLICATES_OFF;
    bool ok = read_float(&o->floor, json_object_get(from, "floor")) &&
              read_float(&o->mask_threshold, json_object_get(from, "mask_threshold")) &&
              read_choice(&resize, json_object_get(from, "resize"), resizes, 2) &&
              read_choice(&stretch, json_object_get(from, "stretch"), stretches, 3);
    if (!ok) return false;
    o->resize = (st_resize)resize;
    o->bitmap.stretch = (st_stretch)stretch;
    o->boxes_only = json_is_true(json_object_get(from, "boxes_only"));
    o->hf_text_only = json_is_true(json_object_get(from, "hf_text_only"));
    o->bitmap.max_pixels = (uint64_t)json_integer_value(json_object_get(from, "max_pixels"));
    if (json_is_object(tiles)) {
        o->tiling.on = true;
        o->tiling.whole = json_is_true(json_object_get(tiles, "whole"));
        ok = read_u32(&o->tiling.size, json_object_get(tiles, "size")) &&
             read_u32(&o->tiling.overlap, json_object_get(tiles, "overlap"));
    }
    if (json_is_object(same)) {
        ok = ok && read_float(&o->duplicates.threshold, json_object_get(same, "threshold")) &&
             read_choice(&measure, json_object_get(same, "measure"), measures, 3);
        o->duplicates.measure = (st_label_measure)measure;
        o->duplicates.across_classes = json_is_true(json_object_get(same, "across_classes"));
    }
    return ok;
}

static bool read_names(st_label_job *job, const json_t *list)
{
    if (!json_is_array(list)) return false;
    job->names = calloc(json_array_size(list) + 1, sizeof *job->names);
    for (size_t i = 0; job->names && i < json_array_size(list); i++) {
        job->names[i] = st_label_name_from_json(json_array_get(list, i));
        if (!job->names[i]) return false;
        job->n_names = i + 1;
        if (i && strcmp(job->names[i - 1], job->names[i]) >= 0) return false;
    }
    return job->names != NULL;
}

/* What is wrong, or NULL. */
static const char *read_job(st_label_job *job, const json_t *doc)
{
    const json_t *model = json_object_get(doc, "model"), *shard = json_object_get(doc, "shard");
    const json_t *all = json_object_get(doc, "all");
    const char *format = json_string_value(json_object_get(doc, "format"));
    if (!format || strcmp(format, FORMAT) != 0) return "\"format\" is not \"" FORMAT "\"";
    if (!read_text(&job->stencil, doc, "stencil")) return "\"stencil\" is not what a job says";
    if (!read_text(&job->model_id, model, "id") || !read_text(&job->model_version, model, "version") ||
        !read_text(&job->precision, model, "precision") ||
        !read_u32(&job->model_size, json_object_get(model, "input_size")))
        return "\"model\" is not what a job says";
    if (!read_sha(job->recipe, json_object_get(doc, "recipe"))) return "\"recipe\" is not what a job says";
    if (!read_options(&job->options, json_object_get(doc, "options"))) return "\"options\" is not what a job says";
    if (!read_classes(&job->classes, &job->n_classes, json_object_get(doc, "classes"), false)) return "\"classes\" is not what a job says";
    if (!read_classes(&job->retired, &job->n_retired, json_object_get(doc, "retired"), true)) return "\"retired\" is not what a job says";
    if (!read_u32(&job->shard, json_array_get(shard, 0)) || !read_u32(&job->n_shards, json_array_get(shard, 1)) ||
        job->shard < 1 || job->shard > job->n_shards)
        return "\"shard\" is not what a job says";
    job->n_all = (uint64_t)json_integer_value(json_object_get(all, "pictures"));
    if (!read_sha(job->all_sha256, json_object_get(all, "sha256"))) return "\"all\" is not what a job says";
    return read_names(job, json_object_get(doc, "pictures")) ? NULL : "\"pictures\" is not what a job says";
}

const char *st_label_job_parse(st_label_job *job, const char *text, size_t n)
{
    bool no_memory;
    *job = (st_label_job){ 0 };
    json_t *doc = st_label_json_read(&no_memory, text, n, 0, NULL);
    errno = 0;
    const char *wrong = doc ? read_job(job, doc) : "it is no JSON";
    if (no_memory || (wrong && errno == ENOMEM)) wrong = st_label_no_memory;
    json_decref(doc);
    if (wrong) st_label_job_free(job);
    return wrong;
}

st_status st_label_job_read(st_label_job *job, bool *there, const char *folder, st_error *err)
{
    unsigned char *text = NULL;
    size_t n = 0;
    char *path = st_label_path(folder, "job.json");
    *job = (st_label_job){ 0 };
    *there = false;
    if (!path) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    const bool missing = access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
    st_status status = missing ? ST_OK : st_label_bytes_read(&text, &n, path, path, MAX_JOB_BYTES, err);
    const char *wrong = text ? st_label_job_parse(job, (const char *)text, n) : NULL;
    if (wrong == st_label_no_memory) status = st_fault(err, ST_ERR_NOMEM, "%s: %s", path, wrong);
    else if (wrong) status = st_fault(err, ST_ERR_FORMAT, "%s: is no job of Stencil: %s", path, wrong);
    *there = text && !wrong;
    free(text);
    free(path);
    return status;
}

/* ---- two jobs ---- */

static char *text_of(json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    return text;
}

static char *option_difference(json_t *old, json_t *now)
{
    const char *key;
    json_t *value;
    json_object_foreach(now, key, value) {
        json_t *before = json_object_get(old, key);
        if (json_equal(before, value)) continue;
        char *a = text_of(before), *b = text_of(value), *said = NULL;
        if (asprintf(&said, "%s was %s and is now %s", key, a ? a : "?", b ? b : "?") < 0) said = NULL;
        free(a);
        free(b);
        return said;
    }
    return strdup("an option changed");
}

static char *class_difference(const st_label_job *old, const st_label_job *now)
{
    char *said = NULL;
    int made = 0;
    for (size_t i = 0; !said && i < now->n_classes; i++) {
        const st_label_class *c = &now->classes[i], *o = st_label_class_by_name(old, c->name);
        json_t *a = o ? phrases_json(o, false) : NULL, *b = phrases_json(c, false);
        if (!o) made = asprintf(&said, "class \"%s\" is new", c->name);
        else if (!json_equal(a, b)) made = asprintf(&said, "class \"%s\" is asked for by other phrases", c->name);
        json_decref(a);
        json_decref(b);
        if (made < 0) return NULL;
    }
    for (size_t i = 0; !said && i < old->n_classes; i++)
        if (!st_label_class_by_name(now, old->classes[i].name) &&
            asprintf(&said, "class \"%s\" is no longer asked for", old->classes[i].name) < 0)
            return NULL;
    return said;
}

/* Ids say which weights, and "@" at which size where it is not their own. */
static bool same_weights(const char *a, const char *b)
{
    const size_t n = strcspn(a, "@");
    return n == strcspn(b, "@") && strncmp(a, b, n) == 0;
}

char *st_label_job_difference(const st_label_job *old, const st_label_job *now)
{
    char *said = NULL;
    if (!same_weights(old->model_id, now->model_id)) return strdup("the model's weights are others");
    if (old->model_size != now->model_size) {
        if (asprintf(&said, "the input size was %u and is now %u", old->model_size, now->model_size) < 0) said = NULL;
        return said;
    }
    if (strcmp(old->precision, now->precision) != 0) return strdup("the model's precision is another");
    json_t *a = st_label_options_to_json(&old->options), *b = st_label_options_to_json(&now->options);
    if (a && b) said = json_equal(a, b) ? class_difference(old, now) : option_difference(a, b);
    json_decref(a);
    json_decref(b);
    return said;
}
