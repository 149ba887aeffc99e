/* label_verbs.h: what can be done with a job's folder: one line in cmd_label.c and one file per verb. */
#ifndef ST_CLI_LABEL_VERBS_H
#define ST_CLI_LABEL_VERBS_H

#include "cli/cli.h"
#include "cli/label_args.h"

/* argv[0] is the verb. */
int st_cmd_label_export(int argc, char **argv);
int st_cmd_label_sheet(int argc, char **argv);
int st_cmd_label_sweep(int argc, char **argv);

/* `stencil label SOURCE...` and `--merge`, after the command line was read. */
int st_label_run_job(st_label_args *a);
int st_label_merge_parts(const st_label_args *a);

#endif
