/* export_voc.c: Pascal VOC: Annotations, JPEGImages, ImageSets, and SegmentationClass and SegmentationObject as palette
 * pictures in VOC's own colours.
 *
 * Boxes are whole pixels from 1, both corners inside, as in the original. Objects stand by falling score; the k-th of the
 * XML is number k of SegmentationObject. 255 means "border" in VOC, so numbers end at 254.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_images.h"
#include "label/export_map.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 254, N_LISTS = 4 };

typedef struct voc {
    st_label_file lists[2][N_LISTS]; /* Main and Segmentation: train, val, test, trainval */
    uint8_t palette[256][3];
} voc;

static const char *const set_names[2] = { "Main", "Segmentation" };

static bool with_masks(const st_label_sink *s)
{
    return !s->options->boxes_only && !s->job->options.boxes_only;
}

/* Bit 0, 1, 2 of the number are the highest bits of red, green, blue, the next three the next lower, and so on
 * (VOCdevkit: VOClabelcolormap.m). */
static void make_palette(uint8_t palette[256][3])
{
    for (unsigned i = 0; i < 256; i++)
        for (unsigned bit = 0; bit < 8; bit++)
            for (unsigned c = 0; c < 3; c++) {
                if (bit * 3 + c > 7) continue;
                palette[i][c] = (uint8_t)(palette[i][c] | ((i >> (3 * bit + c)) & 1) << (7 - bit));
            }
}

/* What CVAT and datumaro want beside VOC's own files: classes that are not VOC's twenty, and their colours. The file has no
 * escape for ':'; a name with one would make all of it unreadable, and is left out. */
static st_status put_classes(const st_label_sink *s, st_error *err)
{
    const voc *v = s->state;
    st_label_file file;
    const st_status status = st_label_file_open(&file, s->folder, "labelmap.txt", err);
    if (status != ST_OK) return status;
    fputs("# label:color_rgb:parts:actions\nbackground:0,0,0::\n", file.f);
    for (size_t i = 0; i < s->n_classes; i++) {
        if (strchr(s->classes[i].name, ':')) continue;
        const uint8_t *rgb = v->palette[s->classes[i].id % 256];
        fprintf(file.f, "%s:%u,%u,%u::\n", s->classes[i].name, rgb[0], rgb[1], rgb[2]);
    }
    return st_label_file_close(&file, err);
}

static st_status begin(st_label_sink *s, st_error *err)
{
    static const char *const lists[N_LISTS] = { "train", "val", "test", "trainval" };
    voc *v = s->state;
    char name[64];
    st_status status = ST_OK;
    make_palette(v->palette);
    for (size_t i = 0; i < s->n_classes && with_masks(s); i++)
        if (s->classes[i].id > MOST)
            return st_fault(err, ST_ERR_LIMIT, "format voc: class \"%s\" has id %" PRIu32 ", the format holds %d",
                            s->classes[i].name, s->classes[i].id, MOST);
    status = put_classes(s, err);
    for (size_t set = 0; set < (with_masks(s) ? 2 : 1); set++)
        for (size_t i = 0; status == ST_OK && i < N_LISTS; i++) {
            snprintf(name, sizeof name, "ImageSets/%s/%s.txt", set_names[set], lists[i]);
            status = st_label_file_open(&v->lists[set][i], s->folder, name, err);
        }
    return status;
}

static void put_list(const voc *v, st_label_split split, const char *stem)
{
    for (size_t set = 0; set < 2; set++) {
        if (!v->lists[set][0].f) continue;
        fprintf(v->lists[set][split].f, "%s\n", stem);
        if (split != ST_LABEL_TEST) fprintf(v->lists[set][3].f, "%s\n", stem);
    }
}

static void put_object(FILE *f, const st_label_sink *s, const st_label_object *o, const int64_t box[4])
{
    fputs("  <object>\n    <name>", f);
    st_label_put_xml(f, st_label_class_shown(s, o)->name);
    fputs("</name>\n    <pose>Unspecified</pose>\n    <truncated>0</truncated>\n    <difficult>0</difficult>\n", f);
    fprintf(f, "    <bndbox><xmin>%" PRId64 "</xmin><ymin>%" PRId64 "</ymin><xmax>%" PRId64 "</xmax><ymax>%" PRId64
            "</ymax></bndbox>\n  </object>\n",
            box[0] / 100 + 1, box[1] / 100 + 1, (box[2] + 99) / 100, (box[3] + 99) / 100);
}

static st_status put_annotation(const st_label_sink *s, const st_label_shown *shown, const st_label_map *map,
                                const char *stem, const char *suffix, st_error *err)
{
    char *name = NULL;
    st_label_file file;
    if (asprintf(&name, "Annotations/%s.xml", stem) < 0)
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    const st_status status = st_label_file_open(&file, s->folder, name, err);
    free(name);
    if (status != ST_OK) return status;
    fputs("<annotation>\n  <folder>JPEGImages</folder>\n  <filename>", file.f);
    st_label_put_xml(file.f, stem), st_label_put_xml(file.f, suffix);
    fputs("</filename>\n  <source><database>Stencil</database></source>\n", file.f);
    fprintf(file.f, "  <size><width>%" PRIu32 "</width><height>%" PRIu32 "</height><depth>3</depth></size>\n"
            "  <segmented>%d</segmented>\n", shown->picture->width, shown->picture->height, with_masks(s) ? 1 : 0);
    for (size_t k = 0; k < shown->n; k++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, map && k < map->n ? map->order[k] : k);
        if (map && k >= map->n) break;
        if (st_label_tight_box(box, s, shown, o)) put_object(file.f, s, o, box);
    }
    fputs("</annotation>\n", file.f);
    return st_label_file_close(&file, err);
}

static st_status put_map(const st_label_sink *s, const st_label_map *map, const st_label_shown *shown, const char *stem,
                         bool by_class, st_error *err)
{
    voc *v = s->state;
    uint16_t values[MOST + 1] = { 0 };
    char *name = NULL;
    for (size_t k = 0; k < map->n; k++)
        values[k + 1] = (uint16_t)(by_class ? st_label_shown_object(shown, map->order[k])->class_id : k + 1);
    if (asprintf(&name, "Segmentation%s/%s.png", by_class ? "Class" : "Object", stem) < 0)
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    const st_status status = st_label_map_save(map, values, 8, v->palette[0], 256, s->folder, name, err);
    free(name);
    return status;
}

static st_status put_with_masks(const st_label_sink *s, const st_label_shown *shown, const char *stem, const char *suffix,
                                st_error *err)
{
    st_label_map map;
    st_status status = st_label_map_make(&map, s, shown, MOST, err);
    if (status == ST_OK) status = put_annotation(s, shown, &map, stem, suffix, err);
    if (status == ST_OK) status = put_map(s, &map, shown, stem, true, err);
    if (status == ST_OK) status = put_map(s, &map, shown, stem, false, err);
    st_label_map_free(&map);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    static const char *const every[] = { "Annotations/", NULL };
    char suffix[16], *stem = NULL;
    st_status status = st_label_free_stem(&stem, s->folder, every, shown->name, ".xml", true, err);
    if (status == ST_OK) status = st_label_image_put(suffix, s, shown, "JPEGImages/", stem, err);
    if (status == ST_OK)
        status = with_masks(s) ? put_with_masks(s, shown, stem, suffix, err)
                               : put_annotation(s, shown, NULL, stem, suffix, err);
    if (status == ST_OK) put_list(s->state, st_label_split_of(s->options, shown->name), stem);
    free(stem);
    return status;
}

static st_status end(st_label_sink *s, st_error *err)
{
    voc *v = s->state;
    st_status status = ST_OK;
    for (size_t set = 0; set < 2; set++)
        for (size_t i = 0; status == ST_OK && i < N_LISTS; i++)
            if (v->lists[set][i].f) status = st_label_file_close(&v->lists[set][i], err);
    return status;
}

static void drop(st_label_sink *s)
{
    voc *v = s->state;
    for (size_t set = 0; set < 2; set++)
        for (size_t i = 0; i < N_LISTS; i++) st_label_file_drop(&v->lists[set][i]);
}

const st_label_format st_label_voc = { "voc", "Pascal VOC: boxes, and segmentation pictures", sizeof(voc), false,
                                       begin, picture, end, drop };
