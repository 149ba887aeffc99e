/* export_labelme.c: LabelMe: one JSON file per picture, beside it and of its name.
 *
 * Polygons are the outermost pixels of each part (labelme/utils/shape.py draws the outline too); parts of one object share
 * a group_id. With --labelme-masks: shapes of type "mask", a PNG of the object's box, which hold every mask exactly.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_format.h"
#include "label/export_images.h"
#include "label/export_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A file of this version of LabelMe is read by all later ones, and holds all that is used here. */
#define VERSION "5.2.1"

typedef struct shapes {
    FILE *f;
    uint64_t n;
    int64_t group; /* of the present object, -1 = none */
} shapes;

static void put_head(shapes *to, const st_label_sink *s, const st_label_object *o)
{
    fputs(to->n++ ? ",\n{\"label\": " : "\n{\"label\": ", to->f);
    st_label_put_json(to->f, st_label_class_shown(s, o)->name);
    fputs(", \"score\": ", to->f);
    st_label_put_score(to->f, o->score);
    if (to->group < 0) fputs(", \"group_id\": null", to->f);
    else fprintf(to->f, ", \"group_id\": %" PRId64, to->group);
    fputs(", \"description\": \"\", \"flags\": {}, ", to->f);
}

static void put_corners(FILE *f, const int64_t a[2], const int64_t b[2])
{
    fputs("\"points\": [[", f);
    st_label_put_hundredths(f, a[0]), fputs(", ", f);
    st_label_put_hundredths(f, a[1]), fputs("], [", f);
    st_label_put_hundredths(f, b[0]), fputs(", ", f);
    st_label_put_hundredths(f, b[1]), fputs("]], ", f);
}

static void put_box(shapes *to, const st_label_sink *s, const st_label_object *o, const int64_t box[4])
{
    put_head(to, s, o);
    put_corners(to->f, box, box + 2);
    fputs("\"shape_type\": \"rectangle\", \"mask\": null}", to->f);
}

static st_status put_polygons(shapes *to, const st_label_sink *s, const st_label_object *o, st_error *err)
{
    st_label_rings rings;
    st_status status = st_label_object_rings(&rings, s, o, ST_LABEL_CENTRES, err);
    if (status != ST_OK) return status;
    if ((status = st_label_rings_touch(&rings, err)) != ST_OK) {
        st_label_rings_free(&rings);
        return status;
    }
    if (rings.n < 2) to->group = -1;
    for (size_t k = 0; k < rings.n; k++) {
        const st_label_ring *r = &rings.items[k];
        put_head(to, s, o);
        fputs("\"points\": [", to->f);
        for (size_t i = 0; i < r->n || i < 3; i++) { /* a pixel or a line: readers ask for three points */
            const int32_t *xy = r->xy + 2 * (i < r->n ? i : r->n - 1);
            fprintf(to->f, "%s[%" PRId32 ", %" PRId32 "]", i ? ", " : "", xy[0], xy[1]);
        }
        fputs("], \"shape_type\": \"polygon\", \"mask\": null}", to->f);
    }
    st_label_rings_free(&rings);
    return ST_OK;
}

static st_status put_crop(FILE *f, st_label_crop *crop, st_error *err)
{
    uint8_t *bytes;
    size_t n;
    for (size_t i = 0; i < (size_t)crop->width * crop->height; i++) crop->pixels[i] = crop->pixels[i] ? 255 : 0;
    const st_png_picture png = { sizeof png, crop->pixels, crop->width, crop->height, 1, 8, NULL, 0 };
    const st_status status = st_png_encode(&bytes, &n, &png, err);
    if (status != ST_OK) return status;
    char *text = st_label_base64(bytes, n);
    st_bytes_free(bytes);
    if (!text) return st_fault(err, ST_ERR_NOMEM, "out of memory for a mask");
    fprintf(f, "\"%s\"", text);
    free(text);
    return ST_OK;
}

/* Both corners are inside. */
static st_status put_mask(shapes *to, const st_label_sink *s, const st_label_object *o, const int64_t box[4],
                          st_error *err)
{
    st_label_crop crop;
    st_status status = st_label_crop_make(&crop, &o->mask, err);
    if (status != ST_OK) return status;
    const int64_t last[2] = { box[2] - 100, box[3] - 100 };
    put_head(to, s, o);
    put_corners(to->f, box, last);
    fputs("\"shape_type\": \"mask\", \"mask\": ", to->f);
    status = put_crop(to->f, &crop, err);
    fputc('}', to->f);
    st_label_crop_free(&crop);
    return status;
}

static st_status put_shapes(FILE *f, const st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    shapes to = { f, 0, 0 };
    st_status status = ST_OK;
    for (size_t i = 0; status == ST_OK && i < shown->n; i++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, i);
        if (!st_label_tight_box(box, s, shown, o)) continue;
        to.group = -1;
        if (st_label_as_box(s, o)) put_box(&to, s, o, box);
        else if (s->options->labelme_masks) status = put_mask(&to, s, o, box, err);
        else {
            to.group = (int64_t)i + 1;
            status = put_polygons(&to, s, o, err);
        }
    }
    return status;
}

static st_status put_document(st_label_sink *s, const st_label_shown *shown, const char *name, const char *image,
                              st_error *err)
{
    st_label_file file;
    st_status status = st_label_file_open(&file, s->folder, name, err);
    if (status != ST_OK) return status;
    fputs("{\"version\": \"" VERSION "\", \"flags\": {}, \"shapes\": [", file.f);
    status = put_shapes(file.f, s, shown, err);
    fputs("\n], \"imagePath\": ", file.f);
    st_label_put_json(file.f, image);
    fprintf(file.f, ", \"imageData\": null, \"imageHeight\": %" PRIu32 ", \"imageWidth\": %" PRIu32 "}\n",
            shown->picture->height, shown->picture->width);
    if (status == ST_OK) return st_label_file_close(&file, err);
    st_label_file_drop(&file);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    static const char *const every[] = { "", NULL };
    char suffix[16], *stem = NULL, *name = NULL, *image = NULL;
    st_status status = st_label_free_stem(&stem, s->folder, every, shown->name, ".json", false, err);
    if (status == ST_OK) status = st_label_image_put(suffix, s, shown, "", stem, err);
    if (status == ST_OK) {
        const char *slash = strrchr(stem, '/');
        if (asprintf(&name, "%s.json", stem) < 0) name = NULL;
        if (asprintf(&image, "%s%s", slash ? slash + 1 : stem, suffix) < 0) image = NULL;
        if (!name || !image) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    }
    if (status == ST_OK) status = put_document(s, shown, name, image, err);
    free(image);
    free(name);
    free(stem);
    return status;
}

const st_label_format st_label_labelme = { "labelme", "LabelMe: a JSON file beside each picture", 0, false,
                                           NULL, picture, NULL, NULL };
