/* label_export.h: an export with what is said about it, for the verb and for the end of a run. */
#ifndef ST_CLI_LABEL_EXPORT_H
#define ST_CLI_LABEL_EXPORT_H

#include "cli/cli.h"
#include "label/export.h"

void st_cmd_label_export_help(FILE *to);
void st_cmd_label_sheet_help(FILE *to);

/* Writes the formats and says what was written, and what they could not hold. The folder is held already. */
int st_label_export_run(st_console *console, st_label_store *store, const st_label_export_options *options);

#endif
