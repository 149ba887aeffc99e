/* export_masks.c: mask pictures: class/NAME.png with class ids (8 bits, 16 when an id needs them) and instance/NAME.png, 16
 * bits, where k is the picture's k-th object by falling score; 0 is background in both. maps.jsonl says what each number is.
 */
#include "front/fault.h"
#include "label/export_files.h"
#include "label/export_map.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct masks {
    st_label_file list;
    int class_bits;
} masks;

static st_status put_classes(const st_label_sink *s, st_error *err)
{
    st_label_file file;
    const st_status status = st_label_file_open(&file, s->folder, "classes.json", err);
    if (status != ST_OK) return status;
    fputs("{\"0\": \"background\"", file.f);
    for (size_t i = 0; i < s->n_classes; i++) {
        fprintf(file.f, ",\n\"%" PRIu32 "\": ", s->classes[i].id);
        st_label_put_json(file.f, s->classes[i].name);
    }
    fputs("}\n", file.f);
    return st_label_file_close(&file, err);
}

static st_status begin(st_label_sink *s, st_error *err)
{
    masks *m = s->state;
    m->class_bits = 8;
    for (size_t i = 0; i < s->n_classes; i++) {
        if (s->classes[i].id > UINT8_MAX) m->class_bits = 16;
        if (s->classes[i].id > UINT16_MAX)
            return st_fault(err, ST_ERR_LIMIT, "format masks: class \"%s\" has id %" PRIu32 ", the format holds 65535",
                            s->classes[i].name, s->classes[i].id);
    }
    const st_status status = put_classes(s, err);
    return status == ST_OK ? st_label_file_open(&m->list, s->folder, "maps.jsonl", err) : status;
}

static void put_line(FILE *f, const st_label_map *map, const st_label_shown *shown, const char *stem)
{
    fputs("{\"file_name\": ", f);
    st_label_put_json(f, shown->name);
    fputs(", \"map\": ", f);
    st_label_put_json(f, stem);
    fputs(", \"objects\": [", f);
    for (size_t k = 0; k < map->n; k++) {
        const st_label_object *o = st_label_shown_object(shown, map->order[k]);
        fprintf(f, "%s{\"instance\": %zu, \"class_id\": %" PRIu32 ", \"score\": ", k ? ", " : "", k + 1, o->class_id);
        st_label_put_score(f, o->score);
        fputc('}', f);
    }
    fputs("]}\n", f);
}

static st_status put_maps(const st_label_sink *s, const st_label_map *map, const st_label_shown *shown, const char *stem,
                          st_error *err)
{
    const masks *m = s->state;
    char *name = NULL;
    uint16_t *values = calloc(map->n + 1, sizeof *values);
    st_status status = values && asprintf(&name, "instance/%s.png", stem) >= 0
                           ? ST_OK : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    if (status == ST_OK) {
        for (size_t k = 0; k < map->n; k++) values[k + 1] = (uint16_t)(k + 1);
        status = st_label_map_save(map, values, 16, NULL, 0, s->folder, name, err);
        free(name);
    }
    if (status == ST_OK && asprintf(&name, "class/%s.png", stem) < 0)
        status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    if (status == ST_OK) {
        for (size_t k = 0; k < map->n; k++)
            values[k + 1] = (uint16_t)st_label_shown_object(shown, map->order[k])->class_id;
        status = st_label_map_save(map, values, m->class_bits, NULL, 0, s->folder, name, err);
        free(name);
    }
    free(values);
    return status;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    static const char *const every[] = { "instance/", NULL };
    masks *m = s->state;
    st_label_map map;
    char *stem = NULL;
    st_status status = st_label_map_make(&map, s, shown, UINT16_MAX, err);
    if (status != ST_OK) return status;
    status = st_label_free_stem(&stem, s->folder, every, shown->name, ".png", false, err);
    if (status == ST_OK) status = put_maps(s, &map, shown, stem, err);
    if (status == ST_OK) put_line(m->list.f, &map, shown, stem);
    s->losses->images_rotated += shown->picture->orientation > 1;
    free(stem);
    st_label_map_free(&map);
    return status;
}

static st_status end(st_label_sink *s, st_error *err)
{
    masks *m = s->state;
    return st_label_file_close(&m->list, err);
}

static void drop(st_label_sink *s)
{
    masks *m = s->state;
    st_label_file_drop(&m->list);
}

const st_label_format st_label_masks = { "masks", "mask PNGs: class ids, and objects numbered by score", sizeof(masks), true,
                                         begin, picture, end, drop };
