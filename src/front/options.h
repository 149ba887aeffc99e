/* options.h: command lines, read from a table of options. Used by every program room; knows nothing of any command.
 *
 * Long options take their value as `--name VALUE` or `--name=VALUE`, short ones as `-nVALUE` or `-n VALUE`; switches may be bundled (`-vq`). Options and words
 * may be mixed; behind `--` all are words. Names are not abbreviated: a script that works today works when an option is added.
 */
#ifndef ST_FRONT_OPTIONS_H
#define ST_FRONT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct st_option {
    const char *name;  /* long name without dashes */
    char letter;       /* short name, or 0 */
    const char *value; /* what to call its value in the help; NULL: a switch */
    int id;            /* > 0, the caller's own */
    const char *help;  /* one line */
} st_option;

typedef struct st_options {
    const st_option *table; /* [n] */
    size_t n;
    int argc;
    char **argv;
    int at;              /* next argument */
    const char *bundle;  /* rest of a bundle of short options, or NULL */
    bool words_only;     /* a `--` was seen */
    char problem[512];   /* what was wrong, when the last call said so */
} st_options;

enum { ST_OPTION_END = 0, ST_OPTION_WORD = -1, ST_OPTION_WRONG = -2 };

/* argv[0] is not looked at. */
void st_options_begin(st_options *o, const st_option *table, size_t n, int argc, char **argv);
/* The id of the next option, with *value its value (NULL for a switch); ST_OPTION_WORD with the word; ST_OPTION_END; or ST_OPTION_WRONG with `problem`. */
int st_options_next(st_options *o, const char **value);
/* Prints the table for a help text: one option a line, aligned. */

void st_options_print(const st_option *table, size_t n, FILE *to);

/* Strict numbers: the whole text, decimal, in [low, high]; false otherwise. */
bool st_read_number(double *out, const char *text, double low, double high);
bool st_read_count(uint32_t *out, const char *text, uint32_t low, uint32_t high);

/* The candidate that `word` was probably meant to be, or NULL when none is near. */
const char *st_nearest(const char *word, const char *const *candidates, size_t n);

#endif
