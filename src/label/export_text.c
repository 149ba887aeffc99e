/* export_text.c: text and numbers in the spelling of JSON, XML, YAML and addresses (see export_files.h). */
#include "label/export_files.h"
#include "label/store.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

void st_label_put_json(FILE *to, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', to);
    while (*p) {
        const size_t n = st_label_utf8(p);
        if (n == 0) fputs(REPLACEMENT, to);
        else if (*p == '"' || *p == '\\') fprintf(to, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7F) fprintf(to, "\\u%04x", *p);
        else fwrite(p, 1, n, to);
        p += n ? n : 1;
    }
    fputc('"', to);
}

/* U+FFFE and U+FFFF, which XML cannot hold. */
static bool is_no_character(const unsigned char *p)
{
    return p[0] == 0xEF && p[1] == 0xBF && p[2] >= 0xBE;
}

void st_label_put_xml(FILE *to, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        const size_t n = st_label_utf8(p);
        if (n == 0 || *p < 0x20 || *p == 0x7F || (n == 3 && is_no_character(p))) fputs(REPLACEMENT, to);
        else if (*p == '&') fputs("&amp;", to);
        else if (*p == '<') fputs("&lt;", to);
        else if (*p == '>') fputs("&gt;", to);
        else if (*p == '"') fputs("&quot;", to);
        else fwrite(p, 1, n, to);
        p += n ? n : 1;
    }
}

void st_label_put_url(FILE *to, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        const bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        if (plain || strchr("/-._~", *p)) fputc(*p, to);
        else fprintf(to, "%%%02X", *p);
    }
}

void st_label_put_ratio(FILE *to, uint64_t numerator, uint64_t denominator, unsigned digits)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++) scale *= 10;
    const uint64_t rest = numerator % denominator;
    uint64_t whole = numerator / denominator, part = (rest * scale + denominator / 2) / denominator;
    if (part == scale) whole++, part = 0;
    if (digits) fprintf(to, "%llu.%0*llu", (unsigned long long)whole, (int)digits, (unsigned long long)part);
    else fprintf(to, "%llu", (unsigned long long)whole);
}

void st_label_put_hundredths(FILE *to, int64_t hundredths)
{
    const uint64_t n = (uint64_t)(hundredths < 0 ? -hundredths : hundredths);
    fprintf(to, "%s%llu", hundredths < 0 ? "-" : "", (unsigned long long)(n / 100));
    if (n % 10) fprintf(to, ".%02llu", (unsigned long long)(n % 100));
    else if (n % 100) fprintf(to, ".%llu", (unsigned long long)(n % 100 / 10));
}

/* As st_json_line writes a st_json_float, but without memory: lines of an export must not lack a number. */
void st_label_put_score(FILE *to, float score)
{
    char text[40];
    if (!isfinite(score)) {
        fputs("null", to);
        return;
    }
    char *end;
    for (int digits = 6; digits <= 9; digits++) { /* as few as tell it from every other float */
        snprintf(text, sizeof text, "%.*g", digits, (double)score);
        if (strtof(text, &end) == score) break;
    }
    snprintf(text, sizeof text, "%.9g", strtod(text, &end));
    char *point = strchr(text, *localeconv()->decimal_point), *e = strchr(text, 'e');
    if (point) *point = '.';
    if (e) { /* 1e-07 is 1e-7, and 1e+20 is 1e20 */
        const char *kept = e + 2 + strspn(e + 2, "0");
        memmove(e + 1 + (e[1] == '-'), kept, strlen(kept) + 1);
    }
    fputs(text, to);
    if (!point && !e) fputs(".0", to);
}
