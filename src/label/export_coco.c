/* export_coco.c: COCO instances, instances.json.
 *
 * Polygons are pixel-edge outlines: pycocotools' rasteriser gives every mask back exactly, bridged holes included
 * (cocoapi: common/maskApi.c, rleFrPoly). An annotation is never a crowd. Ids run from 1 in the order of names;
 * annotations wait in a file of their own until all pictures are listed.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_format.h"

#include <inttypes.h>
#include <string.h>

#define WAITING "annotations.part"

typedef struct coco {
    st_label_file main, annotations;
    uint64_t n_images, n_annotations;
} coco;

static st_status begin(st_label_sink *s, st_error *err)
{
    coco *c = s->state;
    char made_by[128];
    st_status status = st_label_file_open(&c->main, s->folder, "instances.json", err);
    if (status == ST_OK) status = st_label_file_open(&c->annotations, s->folder, WAITING, err);
    if (status != ST_OK) return status;
    snprintf(made_by, sizeof made_by, "Stencil %s, %s, model %.16s", s->job->stencil, s->job->model_version,
             s->job->model_id);
    fputs("{\"info\": {\"description\": ", c->main.f);
    st_label_put_json(c->main.f, made_by);
    fputs("},\n\"licenses\": [],\n\"categories\": [", c->main.f);
    for (size_t i = 0; i < s->n_classes; i++) {
        fprintf(c->main.f, "%s\n{\"id\": %" PRIu32 ", \"name\": ", i ? "," : "", s->classes[i].id);
        st_label_put_json(c->main.f, s->classes[i].name);
        fputs(", \"supercategory\": \"\"}", c->main.f);
    }
    fputs("\n],\n\"images\": [", c->main.f);
    return ST_OK;
}

static st_status put_polygons(const st_label_sink *s, FILE *f, const st_label_object *o, st_error *err)
{
    st_label_rings rings;
    const st_status status = st_label_object_rings(&rings, s, o, ST_LABEL_EDGES, err);
    if (status != ST_OK) return status;
    fputc('[', f);
    for (size_t k = 0; k < rings.n; k++) {
        fputs(k ? ", [" : "[", f);
        for (size_t i = 0; i < 2 * rings.items[k].n; i++) fprintf(f, "%s%" PRId32, i ? ", " : "", rings.items[k].xy[i]);
        fputc(']', f);
    }
    fputc(']', f);
    st_label_rings_free(&rings);
    return ST_OK;
}

static st_status put_runs(FILE *f, const st_rle *mask, st_error *err)
{
    char *counts;
    const st_status status = st_rle_to_string(&counts, mask, err);
    if (status != ST_OK) return status;
    fprintf(f, "{\"size\": [%" PRIu32 ", %" PRIu32 "], \"counts\": ", mask->height, mask->width);
    st_label_put_json(f, counts);
    fputc('}', f);
    st_string_free(counts);
    return ST_OK;
}

static st_status put_annotation(st_label_sink *s, const st_label_object *o, const int64_t box[4], st_error *err)
{
    coco *c = s->state;
    FILE *f = c->annotations.f;
    fprintf(f, "%s\n{\"id\": %" PRIu64 ", \"image_id\": %" PRIu64 ", \"category_id\": %" PRIu32 ", \"bbox\": [",
            c->n_annotations ? "," : "", c->n_annotations + 1, c->n_images, o->class_id);
    c->n_annotations++;
    st_label_put_hundredths(f, box[0]), fputs(", ", f);
    st_label_put_hundredths(f, box[1]), fputs(", ", f);
    st_label_put_hundredths(f, box[2] - box[0]), fputs(", ", f);
    st_label_put_hundredths(f, box[3] - box[1]);
    fprintf(f, "], \"area\": %" PRIu64 ", \"iscrowd\": 0, \"score\": ", o->area);
    st_label_put_score(f, o->score);
    fputs(", \"segmentation\": ", f);
    st_status status = ST_OK;
    if (st_label_as_box(s, o)) fputs("[]", f);
    else if (s->options->rle) status = put_runs(f, &o->mask, err);
    else status = put_polygons(s, f, o, err);
    fputc('}', f);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    coco *c = s->state;
    fprintf(c->main.f, "%s\n{\"id\": %" PRIu64 ", \"file_name\": ", c->n_images ? "," : "", c->n_images + 1);
    c->n_images++;
    st_label_put_json(c->main.f, shown->name);
    fprintf(c->main.f, ", \"width\": %" PRIu32 ", \"height\": %" PRIu32 "}", shown->picture->width,
            shown->picture->height);
    s->losses->images_rotated += shown->picture->orientation > 1;
    for (size_t i = 0; i < shown->n; i++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, i);
        if (!st_label_tight_box(box, s, shown, o)) continue;
        const st_status status = put_annotation(s, o, box, err);
        if (status != ST_OK) return status;
    }
    return ST_OK;
}

static st_status end(st_label_sink *s, st_error *err)
{
    coco *c = s->state;
    fputs("\n],\n\"annotations\": [", c->main.f);
    st_status status = st_label_file_close(&c->annotations, err);
    if (status == ST_OK) status = st_label_file_append(&c->main, s->folder, WAITING, err);
    if (status != ST_OK) return status;
    fputs("\n]}\n", c->main.f);
    return st_label_file_close(&c->main, err);
}

static void drop(st_label_sink *s)
{
    coco *c = s->state;
    st_label_file_drop(&c->main);
    st_label_file_drop(&c->annotations);
}

const st_label_format st_label_coco = { "coco",  "COCO instances: polygons, or run lengths with --rle",
                                        sizeof(coco), false, begin, picture, end, drop };
