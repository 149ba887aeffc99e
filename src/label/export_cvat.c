/* export_cvat.c: CVAT for images 1.1, annotations.xml. Objects are <mask> elements: runs by rows inside the box, zeros first
 * (cvat/apps/dataset_manager/formats/cvat.py), which hold every mask exactly. */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_format.h"
#include "label/export_rows.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct cvat {
    st_label_file file;
    uint64_t n_images;
} cvat;

static st_status begin(st_label_sink *s, st_error *err)
{
    cvat *c = s->state;
    const st_status status = st_label_file_open(&c->file, s->folder, "annotations.xml", err);
    if (status != ST_OK) return status;
    fputs("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<annotations>\n  <version>1.1</version>\n  <meta>\n    <task>\n"
          "      <labels>\n",
          c->file.f);
    for (size_t i = 0; i < s->n_classes; i++) {
        fputs("        <label>\n          <name>", c->file.f);
        st_label_put_xml(c->file.f, s->classes[i].name);
        fputs("</name>\n          <attributes></attributes>\n        </label>\n", c->file.f);
    }
    fputs("      </labels>\n    </task>\n  </meta>\n", c->file.f);
    return ST_OK;
}

static void put_head(FILE *f, const st_label_sink *s, const st_label_object *o, const char *element)
{
    fprintf(f, "    <%s label=\"", element);
    st_label_put_xml(f, st_label_class_shown(s, o)->name);
    fputs("\" source=\"auto\" occluded=\"0\"", f);
}

static void put_box(FILE *f, const st_label_sink *s, const st_label_object *o, const int64_t box[4])
{
    static const char *const names[4] = { "xtl", "ytl", "xbr", "ybr" };
    put_head(f, s, o, "box");
    for (int i = 0; i < 4; i++) {
        fprintf(f, " %s=\"", names[i]);
        st_label_put_ratio(f, (uint64_t)box[i], 100, 2);
        fputc('"', f);
    }
    fputs(" z_order=\"0\"></box>\n", f);
}

static st_status put_mask(FILE *f, const st_label_sink *s, const st_label_object *o, st_error *err)
{
    st_label_crop crop;
    uint32_t *runs = NULL;
    size_t n = 0;
    st_status status = st_label_crop_make(&crop, &o->mask, err);
    if (status == ST_OK) status = st_label_crop_runs(&runs, &n, &crop, err);
    if (status == ST_OK) {
        put_head(f, s, o, "mask");
        fputs(" rle=\"", f);
        for (size_t i = 0; i < n; i++) fprintf(f, "%s%" PRIu32, i ? ", " : "", runs[i]);
        fprintf(f, "\" left=\"%" PRIu32 "\" top=\"%" PRIu32 "\" width=\"%" PRIu32 "\" height=\"%" PRIu32 "\" z_order=\"0\">"
                "</mask>\n", crop.box.x0, crop.box.y0, crop.width, crop.height);
    }
    free(runs);
    st_label_crop_free(&crop);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    cvat *c = s->state;
    FILE *f = c->file.f;
    st_status status = ST_OK;
    fprintf(f, "  <image id=\"%" PRIu64 "\" name=\"", c->n_images++);
    st_label_put_xml(f, shown->name);
    fprintf(f, "\" width=\"%" PRIu32 "\" height=\"%" PRIu32 "\">\n", shown->picture->width, shown->picture->height);
    for (size_t i = 0; status == ST_OK && i < shown->n; i++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, i);
        if (!st_label_tight_box(box, s, shown, o)) continue;
        if (st_label_as_box(s, o)) put_box(f, s, o, box);
        else status = put_mask(f, s, o, err);
    }
    fputs("  </image>\n", f);
    s->losses->images_rotated += shown->picture->orientation > 1;
    return status;
}

static st_status end(st_label_sink *s, st_error *err)
{
    cvat *c = s->state;
    fputs("</annotations>\n", c->file.f);
    return st_label_file_close(&c->file, err);
}

static void drop(st_label_sink *s)
{
    cvat *c = s->state;
    st_label_file_drop(&c->file);
}

const st_label_format st_label_cvat = { "cvat", "CVAT for images 1.1: masks as runs", sizeof(cvat), false,
                                        begin, picture, end, drop };
