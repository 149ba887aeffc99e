/* export_images.h: pictures put where a format wants them. */
#ifndef ST_LABEL_EXPORT_IMAGES_H
#define ST_LABEL_EXPORT_IMAGES_H

#include "label/export_format.h"

/* Puts the picture at folder/prefix + stem + suffix, by the options; a picture that lies turned, or is of a kind that
 * few readers know, is written anew, upright. suffix [16] is the one it got, also where nothing was put. `folder` is
 * the sink's. A picture that is not there is counted and no failure; one that cannot be written is one. */
ST_MUSTCHECK st_status st_label_image_put(char suffix[16], const st_label_sink *s, const st_label_shown *shown,
                                          const char *prefix, const char *stem, st_error *err);

#endif
