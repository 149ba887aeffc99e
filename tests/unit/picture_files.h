/* picture_files.h: what the picture tests share: where the files are, reading one, and reading the manifest. */
#ifndef TESTS_PICTURE_FILES_H
#define TESTS_PICTURE_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <stencil/stencil_picture.h>

#define PICTURES ST_SOURCE_DIR "/tests/data/pictures/"

/* A line of tests/data/pictures/manifest.txt, written by tests/reference/make_picture_files.py. */
typedef struct manifest_line {
    char file[80], format[8];
    unsigned width, height;
    int bits, bands, orientation, stretched, tolerance;
    float low, high;
} manifest_line;

static inline int next_line(FILE *f, manifest_line *m)
{
    char line[400];
    if (!fgets(line, sizeof line, f)) return 0;
    memset(m, 0, sizeof *m);
    assert_int_equal(sscanf(line, "%79s %u %u %7s %d %d %d %d %f %f %d", m->file, &m->width, &m->height, m->format,
                            &m->bits, &m->bands, &m->orientation, &m->stretched, &m->low, &m->high, &m->tolerance),
                     11);
    return 1;
}

/* A file of tests/data/pictures in a heap block of exactly its size, so that a sanitizer sees one byte too far. */
static inline uint8_t *read_picture_file(const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", PICTURES, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*n ? *n : 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *n, f), *n);
    fclose(f);
    return data;
}

#endif
