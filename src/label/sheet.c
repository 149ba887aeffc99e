/* sheet.c: two passes over the store: which objects of each class score lowest, then their cut-outs (see sheet.h). What is
 * held is bounded by the number of objects on sheets, whatever the size of the store.
 */
#include "label/sheet.h"
#include "front/fault.h"
#include "front/save.h"
#include "label/export_files.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct job {
    const st_label_sheet_options *options;
    st_label_store *store;
    st_label_sheet_report *report;
    const st_label_class *classes; /* [n_classes] */
    size_t n_classes;
    st_label_pile *piles; /* [n_classes] */
    bool *kept;           /* [room] */
    size_t room;
    st_label_draft draft;
} job;

/* What is done with a picture, the `at`-th of the store. */
typedef st_status visit_fn(job *j, const st_label_picture *p, size_t at, st_error *err);

void st_label_sheet_options_init(st_label_sheet_options *o)
{
    *o = (st_label_sheet_options){ .most = 200, .side = 160 };
}

/* ---- going through the store ---- */

static st_status choose(job *j, const st_label_picture *p, st_error *err)
{
    if (p->n_objects > j->room) {
        free(j->kept);
        j->room = 0;
        j->kept = calloc(p->n_objects, sizeof *j->kept);
        if (!j->kept) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
        j->room = p->n_objects;
    }
    if (p->n_objects) st_label_select(j->kept, j->classes, j->n_classes, p);
    return ST_OK;
}

static st_status visit_all(job *j, visit_fn *visit, const char *stage, st_error *err)
{
    const st_label_sheet_options *o = j->options;
    const size_t total = st_label_store_job(j->store)->n_names;
    st_label_store_rewind(j->store);
    for (size_t n = 0;; n++) {
        st_label_picture p = { 0 };
        bool more = false;
        if (o->cancel && st_cancel_is_set(o->cancel)) return st_fault(err, ST_ERR_CANCELLED, "cancelled");
        st_status status = st_label_store_next(j->store, &p, &more, err);
        if (status == ST_OK && more && !p.error) {
            status = choose(j, &p, err);
            if (status == ST_OK) status = visit(j, &p, n, err);
        }
        st_label_picture_free(&p);
        if (status != ST_OK || !more) return status;
        if (o->progress) o->progress(o->progress_user, stage, n + 1, total > n ? total : n + 1);
    }
}

/* Empty, and counted, when the picture is not what was labelled. */
static st_status open_picture(job *j, st_bitmap *b, const st_label_picture *p, st_error *err)
{
    st_error why = { ST_OK, "" };
    *b = (st_bitmap){ 0 };
    if (p->file && st_bitmap_load(b, p->file, &st_label_store_job(j->store)->options.bitmap, &why) == ST_OK &&
        b->width == p->width && b->height == p->height)
        return ST_OK;
    st_bitmap_free(b);
    if (why.status == ST_ERR_NOMEM) return st_fault(err, ST_ERR_NOMEM, "%s", why.message);
    j->report->n_absent++;
    return ST_OK;
}

/* ---- piles ---- */

static int by_score(const void *a, const void *b)
{
    const st_label_cutout *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    if (x->picture != y->picture) return x->picture < y->picture ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

/* A full pile gives up its best for one that is worse. */
static void pile_add(st_label_pile *pile, size_t most, const st_label_cutout *c)
{
    if (pile->n < most) {
        pile->items[pile->n++] = *c;
        return;
    }
    size_t best = 0;
    for (size_t i = 1; i < pile->n; i++)
        if (by_score(&pile->items[i], &pile->items[best]) > 0) best = i;
    if (by_score(c, &pile->items[best]) < 0) pile->items[best] = *c;
}

static st_label_pile *pile_of(job *j, uint32_t class_id)
{
    for (size_t k = 0; k < j->n_classes; k++)
        if (j->classes[k].id == class_id) return &j->piles[k];
    return NULL;
}

static st_status rank(job *j, const st_label_picture *p, size_t at, st_error *err)
{
    (void)err;
    for (size_t i = 0; i < p->n_objects; i++) {
        const st_label_object *o = &p->objects[i];
        st_label_pile *pile = j->kept[i] ? pile_of(j, o->class_id) : NULL;
        if (!pile) continue;
        const bool named = o->phrase < pile->cls->n_phrases && pile->cls->phrases[o->phrase];
        const st_label_cutout c = { o->score, at, i, NULL, named ? pile->cls->phrases[o->phrase] : "", NULL, 0 };
        pile_add(pile, j->options->most, &c);
    }
    return ST_OK;
}

static bool is_shown(const job *j, size_t at)
{
    for (size_t k = 0; k < j->n_classes; k++)
        for (size_t i = 0; i < j->piles[k].n; i++)
            if (j->piles[k].items[i].picture == at) return true;
    return false;
}

static st_status cut(job *j, const st_label_picture *p, size_t at, st_error *err)
{
    st_bitmap bitmap;
    if (!is_shown(j, at)) return ST_OK;
    st_status status = open_picture(j, &bitmap, p, err);
    for (size_t k = 0; status == ST_OK && k < j->n_classes; k++) {
        uint8_t rgb[3];
        st_draw_colour(k, rgb);
        for (size_t i = 0; status == ST_OK && i < j->piles[k].n; i++) {
            st_label_cutout *c = &j->piles[k].items[i];
            if (c->picture != at) continue;
            c->name = st_label_text(p->name);
            if (!c->name) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
            else if (c->object < p->n_objects)
                status = st_label_cut(c, &p->objects[c->object], p, &bitmap, j->options->side, rgb, err);
        }
    }
    st_bitmap_free(&bitmap);
    return status;
}

static st_status make_piles(job *j, st_error *err)
{
    j->piles = calloc(j->n_classes ? j->n_classes : 1, sizeof *j->piles);
    if (!j->piles) return st_fault(err, ST_ERR_NOMEM, "sheet: out of memory");
    for (size_t k = 0; k < j->n_classes; k++) {
        j->piles[k].cls = &j->classes[k];
        j->piles[k].items = calloc(j->options->most, sizeof *j->piles[k].items);
        if (!j->piles[k].items) return st_fault(err, ST_ERR_NOMEM, "sheet: out of memory");
    }
    return ST_OK;
}

static void free_piles(job *j)
{
    for (size_t k = 0; j->piles && k < j->n_classes; k++) {
        for (size_t i = 0; i < j->piles[k].n; i++) {
            free(j->piles[k].items[i].name);
            st_bytes_free(j->piles[k].items[i].jpeg);
        }
        free(j->piles[k].items);
    }
    free(j->piles);
}

/* sheet-NAME.png; names that look alike, once what no file name should hold is gone, are told apart by the class's id. */
static void sheet_name(char out[96], const job *j, size_t k)
{
    char slug[48], other[48];
    bool alike = false;
    st_phrase_slug(slug, j->classes[k].name);
    for (size_t i = 0; i < j->n_classes; i++) {
        st_phrase_slug(other, j->classes[i].name);
        alike |= i != k && strcasecmp(slug, other) == 0;
    }
    if (alike) snprintf(out, 96, "sheet-%s-%u.png", slug, j->classes[k].id);
    else snprintf(out, 96, "sheet-%s.png", slug);
}

static st_status make_sheets(job *j, st_error *err)
{
    char name[96];
    st_status status = make_piles(j, err);
    if (status == ST_OK) status = visit_all(j, rank, "choosing", err);
    for (size_t k = 0; status == ST_OK && k < j->n_classes; k++)
        qsort(j->piles[k].items, j->piles[k].n, sizeof *j->piles[k].items, by_score);
    if (status == ST_OK) status = visit_all(j, cut, "cutting", err);
    for (size_t k = 0; status == ST_OK && k < j->n_classes; k++) {
        j->report->n_objects += j->piles[k].n;
        if (!j->piles[k].n) continue;
        sheet_name(name, j, k);
        j->report->n_sheets++;
        status = st_label_pile_save(&j->piles[k], j->options->side, j->draft.partial, name, err);
    }
    if (status == ST_OK)
        status = st_label_page_save(j->piles, j->n_classes, "Least sure first", j->draft.partial, err);
    return status;
}

/* ---- overlays ---- */

static st_status overlay(job *j, const st_label_picture *p, size_t at, st_error *err)
{
    st_bitmap bitmap;
    size_t n = 0;
    (void)at;
    for (size_t i = 0; i < p->n_objects; i++) n += j->kept[i];
    if (!n) return ST_OK;
    st_status status = open_picture(j, &bitmap, p, err);
    if (status != ST_OK || !bitmap.rgb) return status;
    char *name = st_label_text(p->name);
    status = name ? st_label_overlay_save(&bitmap, p, name, j->kept, j->classes, j->n_classes, j->draft.partial, err)
                  : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    j->report->n_objects += n;
    j->report->n_sheets++;
    free(name);
    st_bitmap_free(&bitmap);
    return status;
}

st_status st_label_sheets(st_label_sheet_report *report, st_label_store *store, const st_label_sheet_options *options,
                          st_error *err)
{
    const st_label_job *about = st_label_store_job(store);
    job j = { .options = options, .store = store, .report = report };
    bool unchanged, synced = false;
    *report = (st_label_sheet_report){ 0 };
    if (options->most < 1 || options->most > 2000 || options->side < 64 || options->side > 512)
        return st_fault(err, ST_ERR_INVALID_ARG, "sheet: %u objects of %u pixels, expected 1 to 2000 and 64 to 512",
                        options->most, options->side);
    j.classes = options->classes ? options->classes : about->classes;
    j.n_classes = options->classes ? options->n_classes : about->n_classes;
    st_status status = st_label_draft_begin(&j.draft, options->folder, options->overlays ? "overlays" : "sheets", err);
    if (status == ST_OK) status = options->overlays ? visit_all(&j, overlay, "drawing", err) : make_sheets(&j, err);
    if (status == ST_OK) status = st_label_draft_commit(&j.draft, true, &synced, &unchanged, err);
    st_label_draft_drop(&j.draft);
    free_piles(&j);
    free(j.kept);
    return status;
}
