/* family.c: names the model when a file is some other member of the family, so that a person who took the wrong download reads which one it is. Each entry
 * is a key that only that model's released files have; the more special model stands first. */
#include "weights/manifest.h"

#include <string.h>

static const struct {
    const char *inside; /* part of some tensor's name */
    const char *model;
} marks[] = {
    { "", NULL },
};

const char *st_family_guess(const st_catalog *cat)
{
    for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
        for (size_t i = 0; marks[m].model && i < cat->n; i++)
            if (strstr(cat->entries[i].name, marks[m].inside)) return marks[m].model;
    return NULL;
}
