/* export_map.h: a picture of masks: one number per pixel, 0 where there is none. */
#ifndef ST_LABEL_EXPORT_MAP_H
#define ST_LABEL_EXPORT_MAP_H

#include "label/export_format.h"

/* Objects of a picture by falling score; where two lie on one pixel, the better one has it. */
typedef struct st_label_map {
    size_t *order;    /* [n] places in shown->kept: number k + 1 in the map is order[k] */
    size_t n;         /* at most `most`: the worst are left out */
    uint16_t *pixels; /* [height][width] */
    uint32_t width, height;
} st_label_map;
/* Counts what was lost: objects covered by others, objects left out. */
ST_MUSTCHECK st_status st_label_map_make(st_label_map *out, const st_label_sink *s, const st_label_shown *shown,
                                         size_t most, st_error *err);
void st_label_map_free(st_label_map *map); /* fine in any state */

/* Written as folder/name: by the number each pixel's number stands for, values[0] for none. bits 8 or 16; palette
 * [n_palette][3] or NULL. */
ST_MUSTCHECK st_status st_label_map_save(const st_label_map *map, const uint16_t *values, int bits,
                                         const uint8_t *palette, uint32_t n_palette, const char *folder,
                                         const char *name, st_error *err);

#endif
