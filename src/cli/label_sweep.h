/* label_sweep.h: `stencil label sweep FOLDER`: what every threshold would export, and where phrases fire in vain. */
#ifndef ST_CLI_LABEL_SWEEP_H
#define ST_CLI_LABEL_SWEEP_H

#include "cli/cli.h"
#include "label/sweep.h"

void st_cmd_label_sweep_help(FILE *to);

/* What is shown: `negatives` without pictures when none were looked at. */
typedef struct st_sweep_view {
    const st_label_sweep *sweep;
    const st_label_negatives *negatives;
    uint64_t n_missing; /* pictures of the job that are not done */
} st_sweep_view;
void st_sweep_table(const st_sweep_view *view, FILE *to);
char *st_sweep_json(const st_sweep_view *view); /* from malloc; NULL when out of memory */

#endif
