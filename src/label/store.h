/* store.h: the files of a job's folder, for the parts of this room that write them. A file of the store is JSON Lines: a
 * first line on the picture, then one line per object; whether a picture is done shows in the first line alone.
 */
#ifndef ST_LABEL_STORE_H
#define ST_LABEL_STORE_H

#include <jansson.h>
#include <stdio.h>
#include "label/labels.h"

/* ---- names ---- */

/* FOLDER/tail from malloc; NULL when out of memory. */
char *st_label_path(const char *folder, const char *tail);
/* Bytes of the UTF-8 character at `s`, 0 when it is none. */
size_t st_label_utf8(const unsigned char *s);
/* store/xx/HASH-TAIL.jsonl for a picture's name, from malloc: the hash tells names apart, the tail is for people. */
char *st_label_store_name(const char *name);
/* JSON from the text, or NULL: what it lacked was memory, or `why` (may be NULL) says where it is no JSON. */
json_t *st_label_json_read(bool *no_memory, const char *text, size_t n, size_t flags, json_error_t *why);
/* What functions that say what is wrong with a text say when nothing is, but memory is out: this very pointer. */
extern const char st_label_no_memory[];
/* A name as JSON, UTF-8 or not, and back (from malloc; NULL when it is none or memory is out). */
json_t *st_label_name_to_json(const char *name);
char *st_label_name_from_json(const json_t *value);

/* ---- job.json ---- */

json_t *st_label_options_to_json(const st_label_options *o);
/* Fills job->recipe from the rest; false when out of memory. */
bool st_label_recipe(st_label_job *job);
ST_MUSTCHECK st_status st_label_job_write(const st_label_job *job, const char *folder, st_error *err);
char *st_label_job_text(const st_label_job *job); /* its content, from malloc; NULL when out of memory */
/* *there is false, and *job zeroed, when the folder holds no job. */
ST_MUSTCHECK st_status st_label_job_read(st_label_job *job, bool *there, const char *folder, st_error *err);
/* The same from the text of one: what is wrong, or NULL. On failure *job is zeroed. */
const char *st_label_job_parse(st_label_job *job, const char *text, size_t n);
/* One sentence on the first thing that makes results of the two jobs differ; from malloc, NULL when out of memory. */
char *st_label_job_difference(const st_label_job *old, const st_label_job *now);

/* Where pictures lie: a path, made to be seen from the folder when both are real. */
ST_MUSTCHECK st_status st_label_root_write(const char *folder, const char *root, st_error *err);
/* *root is from malloc, NULL when it is not known. */
ST_MUSTCHECK st_status st_label_root_read(char **root, const char *folder, st_error *err);

/* ---- pictures ---- */

/* Appears complete or not at all. */
ST_MUSTCHECK st_status st_label_picture_write(const st_label_picture *p, const char *folder, const st_label_job *job,
                                              st_error *err);
/* *there is false when the picture is not done, or was done by another recipe. `whole`: objects, too; else only the first
 * line, and n_objects is 0. */
ST_MUSTCHECK st_status st_label_picture_read(st_label_picture *p, bool *there, const char *name, const char *folder,
                                             const st_label_job *job, bool whole, st_error *err);
/* The same from an open file: what is wrong, or NULL. */
const char *st_label_picture_parse(st_label_picture *p, bool *there, FILE *f, const char *name, const st_label_job *job,
                                   bool whole);

#endif
