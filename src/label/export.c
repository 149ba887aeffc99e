/* export.c: the store read once, every format fed at the same time (see export.h). */
#include "label/export.h"
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const st_label_format *const formats[ST_LABEL_N_FORMATS] = { &st_label_coco,  &st_label_yolo,   &st_label_labelme,
                                                                    &st_label_cvat,  &st_label_studio, &st_label_voc,
                                                                    &st_label_masks, &st_label_jsonl };

/* One format at work. */
typedef struct running {
    const st_label_format *format;
    st_label_sink sink;
    st_label_draft draft;
} running;

typedef struct job {
    const st_label_export_options *options;
    st_label_store *store;
    st_label_export_report *report;
    const st_label_class *classes; /* [n_classes] */
    size_t n_classes;
    running formats[ST_LABEL_N_FORMATS];
    size_t n_formats;
    bool *chosen; /* [room] */
    size_t *kept; /* [room] */
    size_t room;
} job;

/* ---- options ---- */

const char *st_label_format_name(size_t i)
{
    return formats[i]->name;
}

const char *st_label_format_summary(size_t i)
{
    return formats[i]->summary;
}

bool st_label_formats_read(uint32_t *bits, const char *list, char problem[256])
{
    *bits = 0;
    for (const char *word = list; word;) {
        const size_t n = strcspn(word, ",");
        size_t i = 0;
        while (i < ST_LABEL_N_FORMATS && (strlen(formats[i]->name) != n || strncmp(formats[i]->name, word, n) != 0)) i++;
        if (i == ST_LABEL_N_FORMATS) {
            int at = snprintf(problem, 256, "expected some of");
            for (i = 0; i < ST_LABEL_N_FORMATS; i++)
                at += snprintf(problem + at, 256 - (size_t)at, "%s %s", i ? "," : "", formats[i]->name);
            return false;
        }
        *bits |= 1u << i;
        word = word[n] ? word + n + 1 : NULL;
    }
    return true;
}

void st_label_export_options_init(st_label_export_options *o)
{
    *o = (st_label_export_options){ .val = 0.2 };
}

/* ---- what formats share ---- */

const st_label_class *st_label_class_shown(const st_label_sink *s, const st_label_object *o)
{
    size_t i = 0;
    while (s->classes[i].id != o->class_id) i++;
    return &s->classes[i];
}

static int64_t clamped(float v, uint32_t limit)
{
    const double at = fmin(fmax((double)v, 0), limit);
    return llround(at * 100);
}

bool st_label_tight_box(int64_t box[4], const st_label_sink *s, const st_label_shown *shown, const st_label_object *o)
{
    const st_label_picture *p = shown->picture;
    if (o->mask.counts) {
        const st_box_px tight = st_rle_box(&o->mask);
        box[0] = 100 * (int64_t)tight.x0, box[1] = 100 * (int64_t)tight.y0;
        box[2] = 100 * (int64_t)tight.x1, box[3] = 100 * (int64_t)tight.y1;
    } else {
        box[0] = clamped(o->box[0], p->width), box[1] = clamped(o->box[1], p->height);
        box[2] = clamped(o->box[2], p->width), box[3] = clamped(o->box[3], p->height);
    }
    if (box[2] > box[0] && box[3] > box[1]) return true;
    s->losses->boxes_empty++;
    return false;
}

st_status st_label_object_rings(st_label_rings *out, const st_label_sink *s, const st_label_object *o,
                                st_label_points points, st_error *err)
{
    const bool bridges = !s->options->fill_holes;
    const st_status status = st_label_rings_make(out, &o->mask, points, bridges, err);
    if (status == ST_OK && out->n_holes) *(bridges ? &s->losses->holes_bridged : &s->losses->holes_filled) += 1;
    return status;
}

/* SplitMix64's last step over FNV-1a: every bit of the name counts for every bit of the answer. */
static uint64_t mixed(const char *name, uint64_t seed)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) h = (h ^ *p) * UINT64_C(1099511628211);
    h ^= seed * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
    return h ^ (h >> 31);
}

st_label_split st_label_split_of(const st_label_export_options *o, const char *name)
{
    const double at = (double)(mixed(name, o->seed) >> 11) * 0x1p-53;
    if (at < o->val) return ST_LABEL_VAL;
    return at < o->val + o->test ? ST_LABEL_TEST : ST_LABEL_TRAIN;
}

const char *st_label_split_name(st_label_split split)
{
    return split == ST_LABEL_TRAIN ? "train" : split == ST_LABEL_VAL ? "val" : "test";
}

/* ---- the run ---- */

static st_status start_format(job *j, const st_label_format *format, st_error *err)
{
    running *r = &j->formats[j->n_formats];
    st_label_format_report *told = &j->report->formats[j->n_formats];
    r->format = format;
    told->name = format->name;
    const st_label_job *about = st_label_store_job(j->store);
    if (format->needs_masks && (j->options->boxes_only || about->options.boxes_only))
        return st_fault(err, ST_ERR_INVALID_ARG, "format %s: holds masks only, and there are boxes only", format->name);
    r->sink = (st_label_sink){ j->options, about, j->classes, j->n_classes, NULL, &told->losses, NULL };
    r->sink.state = calloc(1, format->state_size ? format->state_size : 1);
    if (!r->sink.state) return st_fault(err, ST_ERR_NOMEM, "format %s: out of memory", format->name);
    j->n_formats = ++j->report->n_formats;
    const st_status status = st_label_draft_begin(&r->draft, j->options->folder, format->name, err);
    if (status != ST_OK) return status;
    r->sink.folder = r->draft.partial;
    return format->begin ? format->begin(&r->sink, err) : ST_OK;
}

static st_status start(job *j, st_error *err)
{
    const st_label_export_options *o = j->options;
    if (!(o->val >= 0 && o->test >= 0 && o->val + o->test <= 1))
        return st_fault(err, ST_ERR_INVALID_ARG, "split: shares of %g and %g for val and test, expected 0 to 1 together",
                        o->val, o->test);
    const st_label_job *about = st_label_store_job(j->store);
    j->classes = o->classes ? o->classes : about->classes;
    j->n_classes = o->classes ? o->n_classes : about->n_classes;
    for (size_t i = 0; i < ST_LABEL_N_FORMATS; i++) {
        if (!(o->formats & 1u << i)) continue;
        const st_status status = start_format(j, formats[i], err);
        if (status != ST_OK) return status;
    }
    st_label_store_rewind(j->store);
    return ST_OK;
}

static bool has_class(const job *j, uint32_t id)
{
    for (size_t i = 0; i < j->n_classes; i++)
        if (j->classes[i].id == id) return true;
    return false;
}

static st_status make_room(job *j, const st_label_picture *p, st_error *err)
{
    if (p->n_objects <= j->room) return ST_OK;
    free(j->chosen);
    free(j->kept);
    j->room = 0;
    j->chosen = calloc(p->n_objects, sizeof *j->chosen);
    j->kept = calloc(p->n_objects, sizeof *j->kept);
    if (!j->chosen || !j->kept) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    j->room = p->n_objects;
    return ST_OK;
}

static st_status choose(job *j, st_label_shown *shown, st_error *err)
{
    const st_label_picture *p = shown->picture;
    const st_status status = make_room(j, p, err);
    if (status != ST_OK || !p->n_objects) return status;
    st_label_select(j->chosen, j->classes, j->n_classes, p);
    for (size_t i = 0; i < p->n_objects; i++) {
        if (!j->chosen[i]) continue;
        if (!has_class(j, p->objects[i].class_id))
            return st_fault(err, ST_ERR_FORMAT, "%s: an object of class %u, which the job does not have", p->name,
                            p->objects[i].class_id);
        j->kept[shown->n++] = i;
    }
    shown->kept = j->kept;
    return ST_OK;
}

static st_status feed(job *j, const st_label_picture *p, st_error *err)
{
    st_label_shown shown = { .picture = p };
    st_label_export_report *r = j->report;
    if (p->error) {
        r->n_failed++;
        return ST_OK;
    }
    char *name = st_label_text(p->name);
    st_status status = name ? choose(j, &shown, err) : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    shown.name = name;
    for (size_t i = 0; status == ST_OK && i < j->n_formats; i++)
        status = j->formats[i].format->picture(&j->formats[i].sink, &shown, err);
    free(name);
    if (status != ST_OK) return status;
    r->n_pictures++;
    r->n_empty += shown.n == 0;
    r->n_objects += shown.n;
    return ST_OK;
}

static st_status feed_all(job *j, st_error *err)
{
    const st_label_export_options *o = j->options;
    const size_t total = st_label_store_job(j->store)->n_names;
    for (size_t n = 0;; n++) {
        st_label_picture p = { 0 };
        bool got = false;
        if (o->cancel && st_cancel_is_set(o->cancel)) return st_fault(err, ST_ERR_CANCELLED, "cancelled");
        st_status status = st_label_store_next(j->store, &p, &got, err);
        if (status == ST_OK && got) status = feed(j, &p, err);
        st_label_picture_free(&p);
        if (status != ST_OK || !got) return status;
        if (o->progress) o->progress(o->progress_user, "export", n + 1, total > n ? total : n + 1);
    }
}

static st_status finish(job *j, st_error *err)
{
    st_status status = ST_OK;
    bool synced = false;
    j->report->n_missing = st_label_store_missing(j->store);
    for (size_t i = 0; status == ST_OK && i < j->n_formats; i++)
        if (j->formats[i].format->end) status = j->formats[i].format->end(&j->formats[i].sink, err);
    for (size_t i = 0; status == ST_OK && i < j->n_formats; i++)
        status = st_label_draft_commit(&j->formats[i].draft, j->options->overwrite, &synced,
                                       &j->report->formats[i].unchanged, err);
    return status;
}

st_status st_label_export(st_label_export_report *report, st_label_store *store,
                          const st_label_export_options *options, st_error *err)
{
    *report = (st_label_export_report){ 0 };
    job *j = calloc(1, sizeof *j);
    if (!j) return st_fault(err, ST_ERR_NOMEM, "export: out of memory");
    j->options = options;
    j->store = store;
    j->report = report;
    st_status status = start(j, err);
    if (status == ST_OK) status = feed_all(j, err);
    if (status == ST_OK) status = finish(j, err);
    for (size_t i = 0; i < j->n_formats; i++) {
        if (j->formats[i].format->drop) j->formats[i].format->drop(&j->formats[i].sink);
        free(j->formats[i].sink.state);
        st_label_draft_drop(&j->formats[i].draft);
    }
    free(j->chosen);
    free(j->kept);
    free(j);
    return status;
}

/* ---- what was lost ---- */

bool st_label_losses_line(char line[256], const st_label_format_report *f, size_t i)
{
    const st_label_losses *l = &f->losses;
    const struct {
        uint64_t n;
        const char *text;
    } all[] = {
        { l->holes_bridged, "objects with holes: each hole is joined to the outline by a line of no width" },
        { l->holes_filled, "objects with holes: the holes are filled" },
        { l->parts_joined, "objects of several parts: joined by lines, for the format has one outline per object" },
        { l->parts_dropped, "objects of several parts: the largest is kept" },
        { l->parts_split, "objects of several parts: each part became an object of its own" },
        { l->overlapped, "objects are partly or wholly covered by a better one: the format has one object per pixel" },
        { l->left_out, "objects left out: the format counts no further" },
        { l->boxes_empty, "objects left out: their box lies outside the picture" },
        { l->images_absent, "pictures are no longer where they were labelled: their labels stand alone" },
        { l->images_turned, "pictures written anew, upright: readers ignore how the camera was held, or the file's kind" },
        { l->images_copied, "pictures copied: the file system allows no link to them" },
        { l->images_rotated, "pictures carry a turn in EXIF: the labels are those of the picture as shown" },
        { l->no_val, "validation set is empty: no picture fell into it, and data.yaml names the training set" },
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        if (!all[k].n || i-- > 0) continue;
        snprintf(line, 256, "%s: %llu %s", f->name, (unsigned long long)all[k].n, all[k].text);
        return true;
    }
    return false;
}
