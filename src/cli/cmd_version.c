/* cmd_version.c: `stencil version`. */
#include "cli/cli.h"

#include <commit.h>
#include <string.h>

void st_cmd_version_help(FILE *to)
{
    fputs("usage: stencil version\n\nPrints the version and the picture formats that this build reads.\n\nexample:\n  stencil version\n", to);
}

int st_cmd_version(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        st_cmd_version_help(stdout);
        return ST_EXIT_OK;
    }
    if (argc > 1) return st_usage_error("version", "takes no words or options, got \"%s\"", argv[1]);
    static const char *const formats[] = {"jpeg", "png", "webp", "tiff", "heif"};
    printf("stencil %s, commit %s\nreads:", st_version(), ST_COMMIT);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (st_bitmap_can_read(formats[i])) printf(" %s", formats[i]);
    printf("\n");
    return ST_EXIT_OK;
}
