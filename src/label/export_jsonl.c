/* export_jsonl.c: JSON Lines, labels.jsonl: one picture a line with all that is known of its objects: masks as run lengths,
 * phrase, score and the number of pieces. Nothing is lost. */
#include "label/export_files.h"
#include "label/export_format.h"

#include <inttypes.h>

typedef struct jsonl {
    st_label_file file;
} jsonl;

static st_status begin(st_label_sink *s, st_error *err)
{
    jsonl *j = s->state;
    return st_label_file_open(&j->file, s->folder, "labels.jsonl", err);
}

static st_status put_object(FILE *f, const st_label_sink *s, const st_label_object *o, const int64_t box[4],
                            st_error *err)
{
    const st_label_class *cls = st_label_class_shown(s, o);
    char *counts = NULL;
    const st_status status = st_label_as_box(s, o) ? ST_OK : st_rle_to_string(&counts, &o->mask, err);
    if (status != ST_OK) return status;
    fprintf(f, "{\"class_id\": %" PRIu32 ", \"class\": ", o->class_id);
    st_label_put_json(f, cls->name);
    fputs(", \"phrase\": ", f);
    st_label_put_json(f, o->phrase < cls->n_phrases && cls->phrases[o->phrase] ? cls->phrases[o->phrase] : "");
    fputs(", \"score\": ", f);
    st_label_put_score(f, o->score);
    fputs(", \"bbox\": [", f);
    for (int i = 0; i < 4; i++) {
        if (i) fputs(", ", f);
        st_label_put_hundredths(f, i < 2 ? box[i] : box[i] - box[i - 2]);
    }
    fprintf(f, "], \"area\": %" PRIu64 ", \"pieces\": %" PRIu32, o->area, o->n_pieces);
    if (counts) {
        fprintf(f, ", \"segmentation\": {\"size\": [%" PRIu32 ", %" PRIu32 "], \"counts\": ", o->mask.height,
                o->mask.width);
        st_label_put_json(f, counts);
        fputc('}', f);
    }
    fputc('}', f);
    st_string_free(counts);
    return ST_OK;
}

static st_status picture(st_label_sink *s, const st_label_shown *shown, st_error *err)
{
    FILE *f = ((jsonl *)s->state)->file.f;
    const st_label_picture *p = shown->picture;
    fputs("{\"file_name\": ", f);
    st_label_put_json(f, shown->name);
    fprintf(f, ", \"width\": %" PRIu32 ", \"height\": %" PRIu32 ", \"orientation\": %d, \"objects\": [", p->width,
            p->height, p->orientation);
    bool first = true;
    for (size_t i = 0; i < shown->n; i++) {
        int64_t box[4];
        const st_label_object *o = st_label_shown_object(shown, i);
        if (!st_label_tight_box(box, s, shown, o)) continue;
        if (!first) fputs(", ", f);
        first = false;
        const st_status status = put_object(f, s, o, box, err);
        if (status != ST_OK) return status;
    }
    fputs("]}\n", f);
    s->losses->images_rotated += p->orientation > 1;
    return ST_OK;
}

static st_status end(st_label_sink *s, st_error *err)
{
    jsonl *j = s->state;
    return st_label_file_close(&j->file, err);
}

static void drop(st_label_sink *s)
{
    jsonl *j = s->state;
    st_label_file_drop(&j->file);
}

const st_label_format st_label_jsonl = { "jsonl", "JSON Lines: a picture a line, with run lengths and phrases",
                                         sizeof(jsonl), false, begin, picture, end, drop };
