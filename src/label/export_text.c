/* export_text.c: text and numbers in the spelling of JSON, XML, YAML and addresses (see export_files.h). */
#include "label/export_files.h"
#include "front/report.h"
#include "label/store.h"

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

void st_label_put_score(FILE *to, float score)
{
    char text[64] = "0";
    json_t *value = st_json_float(score);
    const size_t n = value ? json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : 1;
    json_decref(value);
    fwrite(text, 1, n < sizeof text ? n : 1, to);
}
