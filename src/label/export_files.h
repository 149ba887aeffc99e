/* export_files.h: folders that appear complete, the files in them, and text in the escapes of JSON, XML and YAML. Numbers
 * are written from whole numbers: no locale reaches them.
 */
#ifndef ST_LABEL_EXPORT_FILES_H
#define ST_LABEL_EXPORT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stencil/stencil_base.h>

/* ---- folders ---- */

/* Removes a folder with all that is in it; fine when it is not there. */
ST_MUSTCHECK st_status st_label_tree_remove(const char *path, st_error *err);
/* Whether two folders hold the same names and the same bytes. */
ST_MUSTCHECK st_status st_label_tree_same(bool *same, const char *a, const char *b, st_error *err);
/* Makes the folders above folder/name. */
ST_MUSTCHECK st_status st_label_folders_above(const char *folder, const char *name, st_error *err);

/* A folder while it is written. */
typedef struct st_label_draft {
    char *partial, *old, *final;
} st_label_draft;
/* Puts right what a killed run left behind, and begins with an empty partial folder. */
ST_MUSTCHECK st_status st_label_draft_begin(st_label_draft *d, const char *folder, const char *name, st_error *err);
/* Gives it its name. *unchanged: the same was there already. *synced (false before the first of several) says whether all
 * that was written is on the disk. */
ST_MUSTCHECK st_status st_label_draft_commit(st_label_draft *d, bool overwrite, bool *synced, bool *unchanged,
                                             st_error *err);
void st_label_draft_drop(st_label_draft *d); /* removes what was not committed; fine in any state */

/* ---- files ---- */

/* A new text file; errors of writing show when it is closed. */
typedef struct st_label_file {
    FILE *f;
    char *path;
} st_label_file;
/* folder/name; folders in name are made. It must not be there yet. */
ST_MUSTCHECK st_status st_label_file_open(st_label_file *file, const char *folder, const char *name, st_error *err);
ST_MUSTCHECK st_status st_label_file_close(st_label_file *file, st_error *err);
void st_label_file_drop(st_label_file *file); /* fine in any state */
/* Appends all of a closed file and removes it. */
ST_MUSTCHECK st_status st_label_file_append(st_label_file *to, const char *folder, const char *name, st_error *err);
ST_MUSTCHECK st_status st_label_bytes_save(const char *folder, const char *name, const void *bytes, size_t n,
                                           st_error *err);

/* ---- text ---- */

/* With quotes; what is no UTF-8 becomes U+FFFD. YAML reads it, too. */
void st_label_put_json(FILE *to, const char *text);
/* For content and attributes; characters that XML 1.0 cannot hold become U+FFFD. */
void st_label_put_xml(FILE *to, const char *text);
/* As part of an address: what is not a letter, digit, '/', '-', '.', '_' or '~' becomes %XX. */
void st_label_put_url(FILE *to, const char *text);
/* numerator / denominator with `digits` decimals, rounded to the nearest. */
void st_label_put_ratio(FILE *to, uint64_t numerator, uint64_t denominator, unsigned digits);
/* Hundredths as a decimal: 1250 is 12.5. */
void st_label_put_hundredths(FILE *to, int64_t hundredths);
/* The fewest digits that give the float back. */
void st_label_put_score(FILE *to, float score);

/* ---- names ---- */

/* A picture's name as a path of ours: no step leads upwards, and steps too long for a file system are cut and told apart
 * by a hash. Flat: folders become part of the file name. From malloc, without the suffix, for which there is room. */
char *st_label_out_stem(const char *name, bool flat);
/* The name's suffix with its dot, or "". */
const char *st_label_suffix(const char *name);
/* A stem that makes none of folder/prefix + stem + tail, for the prefixes up to a NULL, a name that is there already: with
 * the picture's suffix, then numbers, behind it if need be. *free_stem from malloc. */
ST_MUSTCHECK st_status st_label_free_stem(char **free_stem, const char *folder, const char *const *prefixes,
                                          const char *name, const char *tail, bool flat, st_error *err);

#endif
