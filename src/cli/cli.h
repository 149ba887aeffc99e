/* cli.h: the program's commands as one table, and the exit codes they share. */
#ifndef ST_CLI_H
#define ST_CLI_H

#include "front/console.h"
#include <stddef.h>
#include <stdio.h>
#include <stencil/stencil.h>

/* How the program ends. Documented in docs/cli.md and stencil(1); values never change meaning. */
enum {
    ST_EXIT_OK = 0,
    ST_EXIT_PARTLY = 1,   /* at least one picture failed, or a check did not pass; the rest was done */
    ST_EXIT_USAGE = 2,    /* the command line makes no sense; nothing was done */
    ST_EXIT_MODEL = 3,    /* the model could not be opened, or its weights are broken */
    ST_EXIT_OUTPUT = 4,   /* a result could not be written */
    ST_EXIT_INTERNAL = 5, /* out of memory, or a fault of Stencil itself */
    ST_EXIT_SIGNAL = 128  /* + the signal's number: 130 after Ctrl-C, 143 after SIGTERM */
};

/* argv[0] is the command's name. */
typedef int st_command_fn(int argc, char **argv);

typedef struct st_command {
    const char *name, *summary;
    st_command_fn *run;
    void (*help)(FILE *to);
} st_command;

extern const st_command st_commands[];
extern const size_t st_n_commands;

int st_cmd_segment(int argc, char **argv);
void st_cmd_segment_help(FILE *to);
int st_cmd_info(int argc, char **argv);
void st_cmd_info_help(FILE *to);
int st_cmd_check(int argc, char **argv);
void st_cmd_check_help(FILE *to);
int st_cmd_bench(int argc, char **argv);
void st_cmd_bench_help(FILE *to);
int st_cmd_version(int argc, char **argv);
void st_cmd_version_help(FILE *to);
int st_cmd_click(int argc, char **argv);
void st_cmd_click_help(FILE *to);
int st_cmd_encode(int argc, char **argv);
void st_cmd_encode_help(FILE *to);
int st_cmd_quantize(int argc, char **argv);
void st_cmd_quantize_help(FILE *to);
int st_cmd_concept(int argc, char **argv);
void st_cmd_concept_help(FILE *to);
int st_cmd_everything(int argc, char **argv);
void st_cmd_everything_help(FILE *to);
int st_cmd_label(int argc, char **argv);
void st_cmd_label_help(FILE *to);
int st_cmd_help(int argc, char **argv);
void st_cmd_help_help(FILE *to);

/* "stencil COMMAND: <sentence>" and where to read more; returns ST_EXIT_USAGE. */
int st_usage_error(const char *command, const char *fmt, ...) ST_PRINTF(2, 3);

/* The exit code of a command that works on one picture, after a call of the library ended with this status. */
int st_exit_of(st_status status);

/* ---- choosing and opening the model ---- */

/* The path given with -m, else STENCIL_MODEL, else the demo model that lies beside the program (with a line on stderr).
 * From malloc; NULL, after a message, when there
 * is none. */
char *st_model_choice(st_console *console, const char *given);
/* ST_EXIT_OK when none of the n outputs (NULL entries are fine) is a file of the model that would be chosen; else says
 * so and returns ST_EXIT_USAGE. Asked before the work. */
int st_model_spared(st_console *console, const char *given, const char *const *outputs, size_t n);
/* How it is to be run; all zeros: as the library likes. */
typedef struct st_model_wish {
    uint32_t n_threads;
    uint64_t memory_limit; /* bytes */
    uint32_t input_size;   /* pixels */
} st_model_wish;
/* Opens it; on failure says why and returns ST_EXIT_MODEL, or ST_EXIT_USAGE when the model has no such input size. */
int st_model_start(st_model **out, st_console *console, const char *given, const st_model_wish *wish);
/* ST_EXIT_OK when it holds the interactive part; else says so and returns ST_EXIT_MODEL. */
int st_model_for_clicks(const st_model *model, st_console *console);

/* ---- cancelling ---- */

/* From here on the first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the program at once. NULL when out of
 * memory. One flag per program. */
st_cancel *st_signals_watch(void);
/* The signal that came, or 0. */
int st_signals_seen(void);

#endif
