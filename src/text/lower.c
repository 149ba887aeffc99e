/* lower.c: Unicode lower-casing with the two things a per-character mapping misses: U+0130 and the final sigma.
 *
 * A capital sigma becomes the final form when a cased letter stands before it and none after it, case-ignorable characters in between not counted
 * (Unicode 3.13, Final_Sigma). "Cased" and "case-ignorable" are derived from general categories plus the few ranges below.
 */
#include "text/lower.h"

#include <utf8proc.h>

static bool is_case_ignorable(int32_t c)
{
    /* Word_Break = MidLetter, MidNumLet, Single_Quote */
    static const int32_t extra[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                    0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
    for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++)
        if (extra[i] == c) return true;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return false;
    }
}

static bool is_cased(int32_t c)
{
    /* Other_Lowercase and Other_Uppercase, as far as they are not case-ignorable */
    static const int32_t extra[][2] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},   {0x24B6, 0x24E9},
                                       {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
    for (size_t i = 0; i < sizeof extra / sizeof extra[0]; i++)
        if (c >= extra[i][0] && c <= extra[i][1]) return true;
    const utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/* Whether the first character after `at` that is not case-ignorable is cased. A sigma is cased itself, so all calls together are linear. */
static bool cased_after(const st_cps *in, size_t at)
{
    for (size_t i = at + 1; i < in->n; i++)
        if (!is_case_ignorable(in->v[i])) return is_cased(in->v[i]);
    return false;
}

void st_text_lower(st_cps *out, const st_cps *in)
{
    bool cased_before = false; /* about the last character that is not case-ignorable */
    for (size_t i = 0; i < in->n; i++) {
        const int32_t c = in->v[i];
        if (c == 0x3A3 && cased_before) {
            st_cps_add(out, cased_after(in, i) ? 0x3C3 : 0x3C2);
        } else if (c == 0x130) {
            st_cps_add(out, 'i');
            st_cps_add(out, 0x307);
        } else {
            st_cps_add(out, utf8proc_tolower(c));
        }
        if (!is_case_ignorable(c)) cased_before = is_cased(c);
    }
}
