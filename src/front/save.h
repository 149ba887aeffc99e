/* save.h: text files that appear complete or not at all (a temporary name in the same folder, then a rename), and paths made for outputs. */
#ifndef ST_FRONT_SAVE_H
#define ST_FRONT_SAVE_H

#include <stdbool.h>
#include <stdio.h>
#include <stencil/stencil_base.h>

/* Writes n bytes to `path`; NULL or "-" is standard output. */
ST_MUSTCHECK st_status st_save_text(const char *path, const char *text, size_t n, st_error *err);

/* Whether a file could be made at `path` now: its folder is there and writable. Asked before hours of work. */
ST_MUSTCHECK st_status st_save_possible(const char *path, st_error *err);
/* Makes `path` a folder if nothing is there; fine when it is one already. The folder above must be there. */
ST_MUSTCHECK st_status st_save_folder(const char *path, st_error *err);

/* The folder that `path` lies in, "." for a bare name. From malloc; NULL when out of memory. */
char *st_folder_of(const char *path);
bool st_is_folder(const char *path);
bool st_exists(const char *path);
bool st_same_file(const char *a, const char *b); /* both there, and one file, under whatever name */

/* Names for outputs that are made from input names, without collisions. */
typedef struct st_names {
    char **used;
    size_t n, room;
} st_names;
void st_names_free(st_names *names);
/* FOLDER/STEM<tail> with the file name of `source` without its suffix as STEM; "-2", "-3" ... before the tail when that was given out before (case does not count:
 * some file systems ignore it). From malloc; NULL when out of memory. */
char *st_names_make(st_names *names, const char *folder, const char *source, const char *tail);
/* A phrase as a part of a file name: letters and digits kept, the rest '-'; at most 40 bytes; never empty. */
void st_phrase_slug(char out[48], const char *phrase);

#endif
