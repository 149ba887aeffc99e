/* export_studio.c: Label Studio: tasks.json with predictions to be imported, and config.xml, the labelling interface they
 * fit. Masks are brush regions, which hold every mask exactly. Each region's id is made from its place, so that two exports
 * are equal. */
#include "front/fault.h"
#include "front/growing.h"
#include "label/export_files.h"
#include "label/export_format.h"
#include "label/export_rows.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct studio {
    st_label_file file;
    uint64_t n_tasks;
} studio;

/* One interface for masks, one for boxes. */
static bool only_boxes(const st_label_sink *s)
{
    return s->options->boxes_only || s->job->options.boxes_only;
}

static st_status put_config(const st_label_sink *s, st_error *err)
{
    const char *tag = only_boxes(s) ? "RectangleLabels" : "BrushLabels";
    st_label_file file;
    const st_status status = st_label_file_open(&file, s->folder, "config.xml", err);
    if (status != ST_OK) return status;
    fprintf(file.f, "<View>\n  <Image name=\"image\" value=\"$image\" zoom=\"true\"/>\n  <%s name=\"label\" toName=\"image\">\n",
            tag);
    for (size_t i = 0; i < s->n_classes; i++) {
        uint8_t rgb[3];
        st_draw_colour(i, rgb);
        fputs("    <Label value=\"", file.f);
        st_label_put_xml(file.f, s->classes[i].name);
        fprintf(file.f, "\" background=\"#%02x%02x%02x\"/>\n", rgb[0], rgb[1], rgb[2]);
    }
    fprintf(file.f, "  </%s>\n</View>\n", tag);
    return st_label_file_close(&file, err);
}

static st_status begin(st_label_sink *s, st_error *err)
{
    studio *t = s->state;
    st_status status = put_config(s, err);
    if (status == ST_OK) status = st_label_file_open(&t->file, s->folder, "tasks.json", err);
    if (status == ST_OK) fputc('[', t->file.f);
    return status;
}

static st_status put_brush(FILE *f, const st_rle *mask, st_error *err)
{
    uint8_t *bytes;
    size_t n;
    const st_status status = st_label_brush(&bytes, &n, mask, err);
    if (status != ST_OK) return status;
    fputs("{\"format\": \"rle\", \"rle\": [", f);
    for (size_t i = 0; i < n; i++) fprintf(f, "%s%u", i ? "," : "", bytes[i]);
    free(bytes);
    fputs("], \"brushlabels\": [", f);
    return ST_OK;
}

/* Per cent of the picture. */
static void put_rectangle(FILE *f, const st_label_picture *p, const int64_t box[4])
{
    fputs("{\"x\": ", f), st_label_put_ratio(f, (uint64_t)box[0], p->width, 6);
    fputs(", \"y\": ", f), st_label_put_ratio(f, (uint64_t)box[1], p->height, 6);
    fputs(", \"width\": ", f), st_label_put_ratio(f, (uint64_t)(box[2] - box[0]), p->width, 6);
    fputs(", \"height\": ", f), st_label_put_ratio(f, (uint64_t)(box[3] - box[1]), p->height, 6);
    fputs(", \"rotation\": 0, \"rectanglelabels\": [", f);
}

static st_status put_region(FILE *f, const st_label_sink *s, const st_label_shown *shown, size_t i,
                            const int64_t box[4], st_error *err)
{
    const st_label_object *o = st_label_shown_object(shown, i);
    const bool as_box = st_label_as_box(s, o);
    st_status status = ST_OK;
    fprintf(f, "{\"id\": \"r%09zu\", \"from_name\": \"label\", \"to_name\": \"image\", \"type\": \"%s\", \"original_width\": "
            "%" PRIu32 ", \"original_height\": %" PRIu32 ", \"image_rotation\": 0, \"score\": ", i + 1,
            as_box ? "rectanglelabels" : "brushlabels", shown->picture->width, shown->picture->height);
    st_label_put_score(f, o->score);
    fputs(", \"value\": ", f);
    if (as_box) put_rectangle(f, shown->picture, box);
    else status = put_brush(f, &o->mask, err);
    st_label_put_json(f, st_label_class_shown(s, o)->name);
    fputs("]}}", f);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    studio *t = s->state;
    FILE *f = t->file.f;
    const char *prefix = s->options->image_prefix ? s->options->image_prefix : "/data/local-files/?d=";
    st_growing text = { 0 };
    FILE *built = st_growing_open(&text);
    if (built) fputs(prefix, built), st_label_put_url(built, shown->name);
    char *address = st_growing_close(&text, built, NULL);
    if (!address) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    fputs(t->n_tasks++ ? ",\n{\"data\": {\"image\": " : "\n{\"data\": {\"image\": ", f);
    st_label_put_json(f, address);
    free(address);
    fprintf(f, "}, \"predictions\": [{\"model_version\": \"%s %.16s\", \"result\": [", s->job->model_version,
            s->job->model_id);
    st_status status = ST_OK;
    bool first = true;
    for (size_t i = 0; status == ST_OK && i < shown->n; i++) {
        int64_t box[4];
        if (!st_label_tight_box(box, s, shown, st_label_shown_object(shown, i))) continue;
        fputs(first ? "\n" : ",\n", f);
        first = false;
        status = put_region(f, s, shown, i, box, err);
    }
    fputs("]}]}", f);
    s->losses->images_rotated += shown->picture->orientation > 1;
    return status;
}

static st_status end(st_label_sink *s, st_error *err)
{
    studio *t = s->state;
    fputs("\n]\n", t->file.f);
    return st_label_file_close(&t->file, err);
}

static void drop(st_label_sink *s)
{
    studio *t = s->state;
    st_label_file_drop(&t->file);
}

const st_label_format st_label_studio = { "label-studio", "Label Studio: tasks with brush predictions", sizeof(studio), false,
                                          begin, picture, end, drop };
