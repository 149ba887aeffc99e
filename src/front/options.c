/* options.c: command lines and strict numbers (see options.h). */
#include "front/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void st_options_begin(st_options *o, const st_option *table, size_t n, int argc, char **argv)
{
    *o = (st_options){.table = table, .n = n, .argc = argc, .argv = argv, .at = 1};
}

static const st_option *find_long(const st_options *o, const char *name, size_t length)
{
    for (size_t i = 0; i < o->n; i++)
        if (strlen(o->table[i].name) == length && memcmp(o->table[i].name, name, length) == 0) return &o->table[i];
    return NULL;
}

static const st_option *find_short(const st_options *o, char letter)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->table[i].letter == letter) return &o->table[i];
    return NULL;
}

static int unknown_long(st_options *o, const char *name, size_t length)
{
    char word[64];
    const char *names[128];
    const size_t n = o->n < 128 ? o->n : 128;
    for (size_t i = 0; i < n; i++) names[i] = o->table[i].name;
    snprintf(word, sizeof word, "%.*s", (int)(length < 63 ? length : 63), name);
    const char *near = st_nearest(word, names, n);
    if (near) snprintf(o->problem, sizeof o->problem, "unknown option --%s; did you mean --%s?", word, near);
    else snprintf(o->problem, sizeof o->problem, "unknown option --%s", word);
    return ST_OPTION_WRONG;
}

/* Takes the next argument as the value of `option`. */
static int take_value(st_options *o, const st_option *option, const char **value)
{
    if (o->at >= o->argc) {
        snprintf(o->problem, sizeof o->problem, "--%s needs a value: --%s %s", option->name, option->name, option->value);
        return ST_OPTION_WRONG;
    }
    *value = o->argv[o->at++];
    return option->id;
}

static int next_long(st_options *o, const char *text, const char **value)
{
    const char *equals = strchr(text, '=');
    const size_t length = equals ? (size_t)(equals - text) : strlen(text);
    const st_option *option = find_long(o, text, length);
    if (!option) return unknown_long(o, text, length);
    if (option->value && !equals) return take_value(o, option, value);
    if (option->value) *value = equals + 1;
    else if (equals) {
        snprintf(o->problem, sizeof o->problem, "--%s takes no value, got \"%s\"", option->name, equals + 1);
        return ST_OPTION_WRONG;
    }
    return option->id;
}

static int next_short(st_options *o, const char **value)
{
    const char letter = *o->bundle++;
    const st_option *option = find_short(o, letter);
    const char *rest = *o->bundle ? o->bundle : NULL;
    o->bundle = rest;
    if (!option) {
        snprintf(o->problem, sizeof o->problem, "unknown option -%c", letter);
        return ST_OPTION_WRONG;
    }
    if (!option->value) return option->id;
    o->bundle = NULL;
    if (!rest) return take_value(o, option, value);
    *value = rest;
    return option->id;
}

int st_options_next(st_options *o, const char **value)
{
    *value = NULL;
    if (o->bundle) return next_short(o, value);
    if (o->at >= o->argc) return ST_OPTION_END;
    const char *argument = o->argv[o->at++];
    if (o->words_only || argument[0] != '-' || argument[1] == '\0') {
        *value = argument;
        return ST_OPTION_WORD;
    }
    if (strcmp(argument, "--") == 0) {
        o->words_only = true;
        return st_options_next(o, value);
    }
    if (argument[1] == '-') return next_long(o, argument + 2, value);
    o->bundle = argument + 1;
    return next_short(o, value);
}

void st_options_print(const st_option *table, size_t n, FILE *to)
{
    for (size_t i = 0; i < n; i++) {
        const st_option *o = &table[i];
        char left[64];
        const int used = o->letter ? snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name) : snprintf(left, sizeof left, "    --%s", o->name);
        if (o->value && used > 0 && (size_t)used < sizeof left) snprintf(left + used, sizeof left - (size_t)used, " %s", o->value);
        fprintf(to, "  %-32s %s\n", left, o->help);
    }
}

bool st_read_number(double *out, const char *text, double low, double high)
{
    /* strtod also takes blanks, hexadecimal, "inf" and "nan": only what a person writes as a number passes */
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text)) return false;
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || !(value >= low && value <= high)) return false;
    *out = value;
    return true;
}

bool st_read_count(uint32_t *out, const char *text, uint32_t low, uint32_t high)
{
    if (!*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) return false;
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*end || value < low || value > high) return false;
    *out = (uint32_t)value;
    return true;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b; lengths above 39 count as far away. */
static size_t edits(const char *a, const char *b)
{
    enum { MAX = 40 };
    const size_t n = strlen(a), m = strlen(b);
    size_t d[MAX + 1][MAX + 1];
    if (n >= MAX || m >= MAX) return MAX;
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t j = 0; j <= m; j++) d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best) best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best) best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best) best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

const char *st_nearest(const char *word, const char *const *candidates, size_t n)
{
    const size_t length = strlen(word);
    const size_t limit = length <= 2 ? 1 : length <= 4 ? 2 : 3;
    const char *best = NULL;
    size_t best_edits = limit + 1;
    for (size_t i = 0; i < n; i++) {
        const size_t e = edits(word, candidates[i]);
        if (e < best_edits) best = candidates[i], best_edits = e;
    }
    for (size_t i = 0; i < n && !best && length >= 3; i++)
        if (strncmp(candidates[i], word, length) == 0) best = candidates[i];
    return best;
}
