/* choices.c: option values that several commands share (see choices.h). */
#include "cli/choices.h"

#include <string.h>
#include "cli/cli.h"
#include "front/options.h"

/* The index of text among n names, or n. */
static size_t choose(const char *const *names, size_t n, const char *text)
{
    size_t i = 0;
    while (i < n && strcmp(names[i], text) != 0) i++;
    return i;
}

const char *st_read_stretch(st_stretch *out, const char *text)
{
    static const char *const names[] = { "auto", "never", "always" };
    static const st_stretch values[] = { ST_STRETCH_AUTO, ST_STRETCH_NEVER, ST_STRETCH_ALWAYS };
    const size_t i = choose(names, 3, text);
    if (i == 3) return "auto, never or always";
    *out = values[i];
    return NULL;
}

const char *st_read_format(st_output_format *out, const char *text)
{
    static const char *const names[] = { "json", "coco", "png", "table" };
    static const st_output_format values[] = { ST_FORMAT_JSON, ST_FORMAT_COCO, ST_FORMAT_PNG, ST_FORMAT_TABLE };
    const size_t i = choose(names, 4, text);
    if (i == 4) return "json, coco, png or table";
    *out = values[i];
    return NULL;
}

const char *st_read_resize(st_resize *out, const char *text)
{
    static const char *const names[] = { "gpu", "cpu" };
    static const st_resize values[] = { ST_RESIZE_GPU, ST_RESIZE_CPU };
    const size_t i = choose(names, 2, text);
    if (i == 2) return "gpu or cpu";
    *out = values[i];
    return NULL;
}

const char *st_read_multimask(st_multimask *out, const char *text)
{
    static const char *const names[] = { "auto", "on", "off" };
    static const st_multimask values[] = { ST_MULTIMASK_AUTO, ST_MULTIMASK_ON, ST_MULTIMASK_OFF };
    const size_t i = choose(names, 3, text);
    if (i == 3) return "auto, on or off";
    *out = values[i];
    return NULL;
}

const char *st_read_max_pixels(uint64_t *out, const char *text)
{
    uint32_t n;
    if (!st_read_count(&n, text, 1, UINT32_MAX)) return "a whole number from 1 to 4294967295";
    *out = n;
    return NULL;
}

const char *st_read_threads(uint32_t *out, const char *text)
{
    return st_read_count(out, text, 1, 1024) ? NULL : "a whole number from 1 to 1024";
}

const char *st_read_input_size(uint32_t *out, const char *text)
{
    return st_read_count(out, text, 1, 65536) ? NULL : "a side in pixels such as 504, 672 or 1344";
}

const char *st_read_memory(uint64_t *out, const char *text)
{
    static const char *const expected = "an amount of memory such as 800M or 2.5G";
    char digits[24];
    double value;
    const size_t n = strlen(text);
    if (n < 2 || n >= sizeof digits) return expected;
    static const char units[] = "KMGT";
    const char *unit = strchr(units, text[n - 1] & ~0x20); /* upper case */
    if (!unit || !*unit) return expected;
    memcpy(digits, text, n - 1);
    digits[n - 1] = '\0';
    if (!st_read_number(&value, digits, 0, 1048576)) return expected;
    const double bytes = value * (double)(UINT64_C(1024) << 10 * (unit - units));
    if (bytes < 1) return expected;
    *out = (uint64_t)bytes;
    return NULL;
}

const char *st_read_hole_area(int32_t *out, const char *text)
{
    uint32_t n;
    if (!st_read_count(&n, text, 0, INT32_MAX)) return "a whole number of mask cells, 0 for none";
    *out = (int32_t)n;
    return NULL;
}

int st_wrong_value(const char *command, const char *option, const char *got, const char *expected)
{
    return expected ? st_usage_error(command, "--%s: expected %s, got \"%s\"", option, expected, got) : ST_EXIT_OK;
}
