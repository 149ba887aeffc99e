/* label_args.h: the command line of `stencil label SOURCE... --class ...`. */
#ifndef ST_CLI_LABEL_ARGS_H
#define ST_CLI_LABEL_ARGS_H

#include "cli/cli.h"
#include "label/ontology.h"
#include "label/sources.h"

typedef struct st_label_args {
    const char **sources; /* [n_sources]; with merge: the parts */
    size_t n_sources;
    const char *root, *output, *model, *formats, *negatives;
    st_label_ontology ontology;
    st_label_options options;
    uint32_t n_threads, shard, n_shards;
    uint32_t limit; /* 0: all */
    bool redo, dry_run, merge, prune, json, help;
    int verbosity;
    /* What belongs to exports, passed on to them as written: [n_export] words of `stencil label export`. */
    char **export_words;
    size_t n_export_words;
} st_label_args;

/* Reads and checks; returns ST_EXIT_OK, or an exit code after a message. st_label_args_free in any case. */
int st_label_args_read(st_label_args *a, int argc, char **argv);
void st_label_args_free(st_label_args *a);

#endif
