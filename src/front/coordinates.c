/* coordinates.c: points, regions and exemplar boxes as words (see coordinates.h). */
#include "front/coordinates.h"

#include <string.h>
#include "front/options.h"

enum { MAX_TEXT = 128 };
static const double MAX_PIXEL = 1e9;

/* n numbers between commas, and then nothing. */
static bool read_numbers(float *out, size_t n, char *text)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        char *comma = strchr(text, ',');
        if (!comma != (i + 1 == n)) return false;
        if (comma) *comma = '\0';
        if (!st_read_number(&v, text, 0.0, MAX_PIXEL)) return false;
        out[i] = (float)v;
        if (comma) text = comma + 1;
    }
    return true;
}

/* Copies text up to its colon; *negative says what stands behind that. False when that is anything but neg or pos. */
static bool split_sign(char copy[MAX_TEXT], int *negative, const char *text)
{
    const char *colon = strchr(text, ':');
    const size_t n = colon ? (size_t)(colon - text) : strlen(text);
    *negative = colon && strcmp(colon, ":neg") == 0;
    if (colon && !*negative && strcmp(colon, ":pos") != 0) return false;
    if (n >= MAX_TEXT) copy[0] = '\0'; /* no four numbers are that long */
    else {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return true;
}

static const char *read_corners(float v[4], char *text)
{
    if (!read_numbers(v, 4, text)) return "four numbers X0,Y0,X1,Y1 in pixels, none negative";
    return v[0] < v[2] && v[1] < v[3] ? NULL : "X0 < X1 and Y0 < Y1";
}

const char *st_read_exemplar(st_exemplar *out, const char *text)
{
    char copy[MAX_TEXT];
    float v[4];
    int negative;
    if (!split_sign(copy, &negative, text)) return ":neg or :pos behind the numbers";
    const char *expected = read_corners(v, copy);
    if (!expected) *out = (st_exemplar){ v[0], v[1], v[2], v[3], negative };
    return expected;
}

const char *st_read_region(st_region *out, const char *text)
{
    char copy[MAX_TEXT];
    float v[4];
    int none;
    if (strchr(text, ':'))
        return "four numbers and nothing behind them: a region is the object itself, :neg belongs to --point and --box";
    split_sign(copy, &none, text);
    const char *expected = read_corners(v, copy);
    if (!expected) *out = (st_region){ v[0], v[1], v[2], v[3] };
    return expected;
}

const char *st_read_point(st_point *out, const char *text)
{
    char copy[MAX_TEXT];
    float v[2];
    int negative;
    if (!split_sign(copy, &negative, text)) return ":neg or :pos behind the numbers";
    if (!read_numbers(v, 2, copy)) return "two numbers X,Y in pixels, none negative";
    *out = (st_point){ v[0], v[1], !negative };
    return NULL;
}
