/* main.c: `stencil COMMAND ...`: finds the command in the table and runs it. A new command is one line here and one
 * file beside this one. */
#include "cli/cli.h"
#include "front/options.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

const st_command st_commands[] = {
    { "segment", "find every instance of a phrase in pictures", st_cmd_segment, st_cmd_segment_help },
    { "label", "label folders of pictures, to train on", st_cmd_label, st_cmd_label_help },
    { "click", "segment one object by clicks, over a pipe", st_cmd_click, st_cmd_click_help },
    { "concept", "save examples of a picture, to be found in others", st_cmd_concept, st_cmd_concept_help },
    { "everything", "find masks in a picture without a prompt", st_cmd_everything, st_cmd_everything_help },
    { "encode", "save a picture's encoding for later", st_cmd_encode, st_cmd_encode_help },
    { "quantize", "write a model as int8: a third of the size, faster", st_cmd_quantize, st_cmd_quantize_help },
    { "info", "describe a model file: parts, sizes, memory plan", st_cmd_info, st_cmd_info_help },
    { "check", "run a model's self-check on this machine", st_cmd_check, st_cmd_check_help },
    { "bench", "measure masks, phrases or clicks on this machine", st_cmd_bench, st_cmd_bench_help },
    { "version", "print the version and what this build reads", st_cmd_version, st_cmd_version_help },
    { "help", "explain a command", st_cmd_help, st_cmd_help_help },
};
const size_t st_n_commands = sizeof st_commands / sizeof st_commands[0];

static const st_command *find(const char *name)
{
    for (size_t i = 0; i < st_n_commands; i++)
        if (strcmp(st_commands[i].name, name) == 0) return &st_commands[i];
    return NULL;
}

static void overview(FILE *to)
{
    fputs("Stencil finds every instance of a phrase in a picture, with Meta's SAM 3 and SAM 3.1.\n\n"
          "usage: stencil COMMAND [OPTION...] [WORD...]\n\n",
          to);
    for (size_t i = 0; i < st_n_commands; i++) fprintf(to, "  %-10s %s\n", st_commands[i].name, st_commands[i].summary);
    fputs("\nexamples:\n"
          "  stencil segment photo.jpg \"forklift\" -m sam3.safetensors --overlay out.png\n"
          "  stencil info sam3.pt\n"
          "  stencil help segment\n\n"
          "Without -m and STENCIL_MODEL the small demo model is used. More: stencil(1).\n",
          to);
}

static int unknown(const char *name)
{
    const char *names[32];
    for (size_t i = 0; i < st_n_commands && i < 32; i++) names[i] = st_commands[i].name;
    const char *near = st_nearest(name, names, st_n_commands);
    st_console console;
    st_console_init(&console, 0);
    if (near) st_console_error(&console, "unknown command \"%s\"; did you mean \"%s\"?", name, near);
    else st_console_error(&console, "unknown command \"%s\"; `stencil help` lists them", name);
    return ST_EXIT_USAGE;
}

int st_usage_error(const char *command, const char *fmt, ...)
{
    char sentence[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    st_console console;
    st_console_init(&console, 0);
    st_console_error(&console, "%s: %s", command, sentence);
    fprintf(stderr, "usage: `stencil help %s` lists the options\n", command);
    return ST_EXIT_USAGE;
}

int st_cmd_help(int argc, char **argv)
{
    if (argc < 2) {
        overview(stdout);
        return ST_EXIT_OK;
    }
    if (argc > 2) return st_usage_error("help", "explains one command at a time, got %d", argc - 1);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        st_cmd_help_help(stdout);
        return ST_EXIT_OK;
    }
    const st_command *command = find(argv[1]);
    if (!command) return unknown(argv[1]);
    command->help(stdout);
    return ST_EXIT_OK;
}

void st_cmd_help_help(FILE *to)
{
    fputs(
        "usage: stencil help [COMMAND]\n\nExplains a command, or lists them all.\n\nexample:\n  stencil help segment\n",
        to);
}

/* A stream that was closed before the start: no file may get its number, or messages would land in that file. Reading
 * ends at once; writing to standard output fails, and is told. */
static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

/* What a command printed may still wait in the buffer, or have been lost in a full disk or a closed pipe. */
static int finish_output(int code)
{
    const bool whole = fflush(stdout) == 0 && !ferror(stdout);
    if (whole || code != ST_EXIT_OK) return code;
    st_console console;
    st_console_init(&console, 0);
    st_console_error(&console, "standard output: cannot be written");
    return ST_EXIT_OUTPUT;
}

int main(int argc, char **argv)
{
    hold_streams();
    if (argc < 2) {
        overview(stderr);
        return ST_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) name = "version";
    const st_command *command = find(name);
    if (!command) return unknown(name);
    return finish_output(command->run(argc - 1, argv + 1));
}
