/* export_yolo.c: YOLO segmentation: images/SPLIT, labels/SPLIT, data.yaml.
 *
 * Points are the outermost pixels of an object: readers fill with OpenCV's fillPoly, which draws the border too. Each lies
 * a quarter of a pixel into its pixel, so that readers that cut to whole numbers (Ultralytics) and those that round
 * (supervision) both land on it. Folders of the source become part of the file name: not every reader looks into
 * folders, and a folder called "images" would send Ultralytics to the wrong labels. data.yaml has no `path`, for
 * Ultralytics then takes its own folder.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_format.h"
#include "label/export_images.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Decimals: 1e-6 of 100,000 pixels is less than the quarter that is to spare. */
enum { DIGITS = 6 };
/* data.yaml names every number up to the largest. */
enum { CLASSES_MAX = 100000 };

typedef struct yolo {
    uint64_t n_split[3];
} yolo;

static st_status begin(st_label_sink *s, st_error *err)
{
    static const char *const folders[] = { "images/train/", "images/val/", "labels/train/", "labels/val/" };
    st_status status = ST_OK;
    for (size_t i = 0; i < s->n_classes; i++)
        if (s->classes[i].id > CLASSES_MAX)
            return st_fault(err, ST_ERR_LIMIT, "format yolo: class \"%s\" has id %" PRIu32 ", expected at most %d",
                            s->classes[i].name, s->classes[i].id, CLASSES_MAX);
    for (size_t i = 0; status == ST_OK && i < sizeof folders / sizeof *folders; i++)
        status = st_label_folders_above(s->folder, folders[i], err);
    return status;
}

/* The class's number counts from 0 and stays with its id. */
static void put_ring(FILE *f, const st_label_picture *p, uint32_t class_id, const st_label_ring *r)
{
    fprintf(f, "%" PRIu32, class_id - 1);
    const size_t n = r->n < 3 ? 3 : r->n; /* a pixel or a line: readers ask for three points */
    for (size_t i = 0; i < n; i++) {
        const int32_t *xy = r->xy + 2 * (i < r->n ? i : r->n - 1);
        fputc(' ', f);
        st_label_put_ratio(f, 4 * (uint64_t)xy[0] + 1, 4 * (uint64_t)p->width, DIGITS);
        fputc(' ', f);
        st_label_put_ratio(f, 4 * (uint64_t)xy[1] + 1, 4 * (uint64_t)p->height, DIGITS);
    }
    fputc('\n', f);
}

static int64_t doubled_area(const st_label_ring *r)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        const int32_t *a = r->xy + 2 * i, *b = r->xy + 2 * ((i + 1) % r->n);
        sum += (int64_t)a[0] * b[1] - (int64_t)b[0] * a[1];
    }
    return sum < 0 ? -sum : sum;
}

static void keep_largest(st_label_rings *rings)
{
    size_t best = 0;
    for (size_t k = 1; k < rings->n; k++)
        if (doubled_area(&rings->items[k]) > doubled_area(&rings->items[best])) best = k;
    const st_label_ring kept = rings->items[best];
    rings->items[best] = rings->items[0];
    rings->items[0] = kept;
    while (rings->n > 1) free(rings->items[--rings->n].xy);
}

static st_status put_object(FILE *f, const st_label_sink *s, const st_label_picture *p, const st_label_object *o,
                            st_error *err)
{
    st_label_rings rings;
    st_status status = st_label_object_rings(&rings, s, o, ST_LABEL_CENTRES, err);
    if (status != ST_OK) return status;
    if ((status = st_label_rings_touch(&rings, err)) != ST_OK) {
        st_label_rings_free(&rings);
        return status;
    }
    if (rings.n > 1 && s->options->parts == ST_LABEL_PARTS_LARGEST) {
        s->losses->parts_dropped++;
        keep_largest(&rings);
    } else if (rings.n > 1 && s->options->parts == ST_LABEL_PARTS_JOIN) {
        s->losses->parts_joined++;
        status = st_label_rings_join(&rings, err);
    } else s->losses->parts_split += rings.n > 1;
    for (size_t k = 0; status == ST_OK && k < rings.n; k++) put_ring(f, p, o->class_id, &rings.items[k]);
    st_label_rings_free(&rings);
    return status;
}

static void put_box(FILE *f, const st_label_picture *p, const st_label_object *o, const int64_t box[4])
{
    const uint64_t width = 200 * (uint64_t)p->width, height = 200 * (uint64_t)p->height;
    fprintf(f, "%" PRIu32 " ", o->class_id - 1);
    st_label_put_ratio(f, (uint64_t)(box[0] + box[2]), width, DIGITS), fputc(' ', f);
    st_label_put_ratio(f, (uint64_t)(box[1] + box[3]), height, DIGITS), fputc(' ', f);
    st_label_put_ratio(f, 2 * (uint64_t)(box[2] - box[0]), width, DIGITS), fputc(' ', f);
    st_label_put_ratio(f, 2 * (uint64_t)(box[3] - box[1]), height, DIGITS), fputc('\n', f);
}

static st_status put_labels(st_label_sink *s, const st_label_shown *shown, const char *name, st_error *err)
{
    st_label_file file;
    st_status status = st_label_file_open(&file, s->folder, name, err);
    for (size_t i = 0; status == ST_OK && i < shown->n; i++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, i);
        if (!st_label_tight_box(box, s, shown, o)) continue;
        if (st_label_as_box(s, o)) put_box(file.f, shown->picture, o, box);
        else status = put_object(file.f, s, shown->picture, o, err);
    }
    if (status == ST_OK) return st_label_file_close(&file, err);
    st_label_file_drop(&file);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    static const char *const every[] = { "labels/train/", "labels/val/", "labels/test/", NULL };
    yolo *y = s->state;
    const st_label_split split = st_label_split_of(s->options, shown->name);
    char labels[32], images[32], suffix[16], *stem = NULL, *name = NULL;
    snprintf(labels, sizeof labels, "labels/%s/", st_label_split_name(split));
    snprintf(images, sizeof images, "images/%s/", st_label_split_name(split));
    st_status status = st_label_free_stem(&stem, s->folder, every, shown->name, ".txt", true, err);
    if (status == ST_OK && asprintf(&name, "%s%s.txt", labels, stem) < 0) {
        name = NULL;
        status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    }
    if (status == ST_OK) status = st_label_image_put(suffix, s, shown, images, stem, err);
    if (status == ST_OK) status = put_labels(s, shown, name, err);
    y->n_split[split]++;
    free(name);
    free(stem);
    return status;
}

/* Numbers without a class, for ids are never used twice, need a name all the same. */
static void put_names(FILE *f, const st_label_sink *s)
{
    uint32_t most = 0;
    for (size_t i = 0; i < s->n_classes; i++) most = s->classes[i].id > most ? s->classes[i].id : most;
    fputs("names:\n", f);
    for (uint32_t id = 1; id <= most; id++) {
        const char *name = NULL;
        char unused[24];
        for (size_t i = 0; i < s->n_classes; i++)
            if (s->classes[i].id == id) name = s->classes[i].name;
        for (size_t i = 0; !name && i < s->job->n_retired; i++)
            if (s->job->retired[i].id == id) name = s->job->retired[i].name;
        snprintf(unused, sizeof unused, "unused-%" PRIu32, id);
        fprintf(f, "  %" PRIu32 ": ", id - 1);
        st_label_put_json(f, name ? name : unused);
        fputc('\n', f);
    }
}

static st_status end(st_label_sink *s, st_error *err)
{
    const yolo *y = s->state;
    st_label_file file;
    const st_status status = st_label_file_open(&file, s->folder, "data.yaml", err);
    if (status != ST_OK) return status;
    s->losses->no_val = y->n_split[ST_LABEL_VAL] == 0;
    fprintf(file.f, "train: images/train\nval: images/%s\n", s->losses->no_val ? "train" : "val");
    if (y->n_split[ST_LABEL_TEST]) fputs("test: images/test\n", file.f);
    put_names(file.f, s);
    return st_label_file_close(&file, err);
}

const st_label_format st_label_yolo = { "yolo", "YOLO segmentation: images, labels, data.yaml", sizeof(yolo), false,
                                        begin, picture, end, NULL };
