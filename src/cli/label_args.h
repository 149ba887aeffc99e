/* label_args.h: the command line of `stencil label SOURCE... --class ...` and of `stencil label --merge PART...`. */
#ifndef ST_CLI_LABEL_ARGS_H
#define ST_CLI_LABEL_ARGS_H

#include "cli/cli.h"
#include "label/ontology.h"

typedef struct st_label_args {
    const char **sources; /* [n_sources] with merge: the parts */
    size_t n_sources;
    const char *root, *output, *model, *negatives;
    st_label_ontology ontology; /* thresholds and bounds are set, ids are not */
    st_label_options options;
    st_model_wish wish;
    uint32_t shard, n_shards;
    uint32_t limit; /* 0: all */
    uint32_t formats; /* bits of st_label_formats_read; 0: none */
    bool overwrite, redo, check_pictures, dry_run, merge, json, help;
    int verbosity;
} st_label_args;

/* Reads and checks; ST_EXIT_OK, or an exit code after a message. st_label_args_free in any case. Doubts about phrases
 * are said on the console. */
int st_label_args_read(st_label_args *a, int argc, char **argv);
void st_label_args_free(st_label_args *a);

#endif
