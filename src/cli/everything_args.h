/* everything_args.h: the command line of `stencil everything`, read and checked before any work is done. */
#ifndef ST_CLI_EVERYTHING_ARGS_H
#define ST_CLI_EVERYTHING_ARGS_H

#include "cli/picture_input.h"
#include "cli/segment_args.h"

typedef struct st_everything_args {
    st_picture_input in;
    const char *model, *output, *overlay;
    st_output_format format;
    st_everything_options options;
    st_model_wish wish;
    int verbosity;
    bool help;
} st_everything_args;

/* ST_EXIT_OK, or ST_EXIT_USAGE after a message. Nothing is to be freed. */
int st_everything_args_read(st_everything_args *a, int argc, char **argv);

#endif
