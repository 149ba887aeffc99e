/* overlay.h: a picture with its results drawn on it. */
#ifndef ST_FRONT_OVERLAY_H
#define ST_FRONT_OVERLAY_H

#include "front/report.h"

/* Draws every instance of every prompt onto `bitmap` (in place), lowest score first so that the best lies on top; one
 * prompt: a colour per instance; several: a colour per prompt. Labels say phrase and score. Clicked objects: the best
 * candidate of each, its region as a rectangle, its points as discs. */
void st_overlay_draw(st_bitmap *bitmap, const st_picture_report *report);
/* Writes PNG or JPEG by the suffix of `path`. */
ST_MUSTCHECK st_status st_overlay_save(const st_bitmap *bitmap, const char *path, st_error *err);
/* Whether st_overlay_save knows the suffix. */
bool st_overlay_suffix_known(const char *path);

#endif
