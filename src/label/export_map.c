/* export_map.c: objects painted on one picture, worst first (see export_map.h). */
#include "label/export_map.h"
#include "front/fault.h"
#include "label/export_files.h"

#include <stdlib.h>
#include <string.h>

typedef struct ranked {
    float score;
    size_t place;
} ranked;

static int by_score(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static void paint(st_label_map *map, const st_rle *mask, uint16_t number)
{
    uint64_t at = 0;
    for (size_t i = 0; i < mask->n_counts; i++) {
        const uint64_t end = at + mask->counts[i];
        for (uint64_t p = at; (i & 1) && p < end; p++)
            map->pixels[(size_t)(p % mask->height) * map->width + (size_t)(p / mask->height)] = number;
        at = end;
    }
}

static st_status rank(st_label_map *map, const st_label_sink *s, const st_label_shown *shown, size_t most, st_error *err)
{
    ranked *all = calloc(shown->n ? shown->n : 1, sizeof *all);
    map->order = calloc(shown->n ? shown->n : 1, sizeof *map->order);
    if (!all || !map->order) {
        free(all);
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", shown->name);
    }
    for (size_t i = 0; i < shown->n; i++) all[i] = (ranked){ st_label_shown_object(shown, i)->score, i };
    qsort(all, shown->n, sizeof *all, by_score);
    map->n = shown->n < most ? shown->n : most;
    s->losses->left_out += shown->n - map->n;
    for (size_t i = 0; i < map->n; i++) map->order[i] = all[i].place;
    free(all);
    return ST_OK;
}

/* seen [n + 1] starts at zero. */
static void count_covered(const st_label_map *map, const st_label_sink *s, const st_label_shown *shown, uint64_t *seen)
{
    for (size_t i = 0; i < (size_t)map->width * map->height; i++) seen[map->pixels[i]]++;
    for (size_t k = 0; k < map->n; k++)
        s->losses->overlapped += seen[k + 1] < st_rle_area(&st_label_shown_object(shown, map->order[k])->mask);
}

st_status st_label_map_make(st_label_map *out, const st_label_sink *s, const st_label_shown *shown, size_t most,
                            st_error *err)
{
    *out = (st_label_map){ .width = shown->picture->width, .height = shown->picture->height };
    st_status status = rank(out, s, shown, most, err);
    uint64_t *seen = calloc(out->n + 1, sizeof *seen);
    if (status == ST_OK) out->pixels = calloc((size_t)out->width * out->height, sizeof *out->pixels);
    if (status == ST_OK && (!seen || !out->pixels))
        status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory for a map of %u x %u pixels", shown->name, out->width,
                          out->height);
    if (status == ST_OK) {
        for (size_t k = out->n; k-- > 0;)
            paint(out, &st_label_shown_object(shown, out->order[k])->mask, (uint16_t)(k + 1));
        count_covered(out, s, shown, seen);
    } else st_label_map_free(out);
    free(seen);
    return status;
}

void st_label_map_free(st_label_map *map)
{
    free(map->order);
    free(map->pixels);
    *map = (st_label_map){ 0 };
}

st_status st_label_map_save(const st_label_map *map, const uint16_t *values, int bits, const uint8_t *palette,
                            uint32_t n_palette, const char *folder, const char *name, st_error *err)
{
    const size_t n = (size_t)map->width * map->height;
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    void *samples = malloc(n * (size_t)(bits / 8));
    if (!samples) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    for (size_t i = 0; i < n; i++) {
        const uint16_t value = values[map->pixels[i]];
        if (bits == 8) ((uint8_t *)samples)[i] = (uint8_t)value;
        else ((uint16_t *)samples)[i] = value;
    }
    const st_png_picture png = { sizeof png, samples, map->width, map->height, 1, bits, palette, n_palette };
    st_status status = st_png_encode(&bytes, &n_bytes, &png, err);
    if (status == ST_OK) status = st_label_bytes_save(folder, name, bytes, n_bytes, err);
    st_bytes_free(bytes);
    free(samples);
    return status;
}
