/* cmd_label.c: `stencil label`: a job, or a verb on a job's folder. A folder of pictures that is called like a verb is
 * given as ./NAME.
 */
#include "cli/label_export.h"
#include "cli/label_sweep.h"
#include "cli/label_verbs.h"

#include <string.h>

static const st_command verbs[] = {
    { "", "", NULL, NULL }, /* so that the table may be empty */
    { "export", "data sets from the results", st_cmd_label_export, st_cmd_label_export_help },
    { "sheet", "contact sheets, least sure first", st_cmd_label_sheet, st_cmd_label_sheet_help },
    { "sweep", "what every threshold would export", st_cmd_label_sweep, st_cmd_label_sweep_help },
};

int st_cmd_label(int argc, char **argv)
{
    for (size_t i = 1; argc > 1 && i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(argv[1], verbs[i].name) == 0) return verbs[i].run(argc - 1, argv + 1);
    st_label_args a;
    int code = st_label_args_read(&a, argc, argv);
    if (code == ST_EXIT_OK) {
        if (a.help) st_cmd_label_help(stdout);
        else code = a.merge ? st_label_merge_parts(&a) : st_label_run_job(&a);
    }
    st_label_args_free(&a);
    return code;
}
