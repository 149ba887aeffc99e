/* label_export.h: an export with what is said about it, for the verb and for the end of a run. */
#ifndef ST_CLI_LABEL_EXPORT_H
#define ST_CLI_LABEL_EXPORT_H

#include "cli/cli.h"
#include "label/export.h"
#include "label/ontology.h"

void st_cmd_label_export_help(FILE *to);
void st_cmd_label_sheet_help(FILE *to);

/* Writes the formats and says what was written, and what they could not hold. The folder is held already. */
int st_label_export_run(st_console *console, st_label_store *store, const st_label_export_options *options);

/* A bound given on the command line, for one class or for all. */
typedef struct st_label_bound {
    st_label_setting what;
    const char *text;
} st_label_bound;
/* Copies the job's classes and changes the copy; *classes from st_label_classes_copy. Warns of thresholds below the floor. */
ST_MUSTCHECK st_status st_label_bounds_apply(st_label_class **classes, st_console *console, const st_label_job *job,
                                             const st_label_bound *bounds, size_t n, st_error *err);
/* Says why a verb on a job's folder ended early; returns the exit code. */
int st_label_verb_failure(st_console *console, st_status status, const st_error *err);

#endif
