/* entities.c: HTML character references, decoded as ftfy and as Python's html module do.
 *
 * The two differ: ftfy wants the ';', also takes names in capitals, and leaves alone what would keep a ';'; html.unescape follows HTML5, where
 * 106 old names need no ';' and match as the longest prefix ("&notit;" is "not" + "it;"). The reference's tokeniser runs the
 * first inside ftfy and the second twice after it, so both are here.
 */
#include "text/entities.h"

#include <string.h>
#include <utf8proc.h>

#define ENTITY_BARE 1u  /* known without ';' too */
#define ENTITY_UPPER 2u /* ftfy also takes the name in capitals, for the value in capitals */

static const struct entity {
    char name[32];
    int32_t value[2]; /* the second is 0 when there is one */
    unsigned flags;
} entities[] = {
#include "text/entities.inc"
};
#define N_ENTITIES (sizeof entities / sizeof entities[0])
#define MAX_NAME 31

static const struct entity *find(const char *name)
{
    size_t lo = 0, hi = N_ENTITIES;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = strcmp(name, entities[mid].name);
        if (order == 0) return &entities[mid];
        if (order < 0) hi = mid;
        else lo = mid + 1;
    }
    return NULL;
}

static void add_value(st_cps *out, const struct entity *e)
{
    st_cps_add(out, e->value[0]);
    if (e->value[1]) st_cps_add(out, e->value[1]);
}

/* Python's str.upper of one code point, as far as entity values need it. */
static void add_upper(st_cps *out, int32_t c)
{
    static const struct { int32_t c; const char *upper; } several[] = {
        {0xDF, "SS"}, {0xFB00, "FF"}, {0xFB01, "FI"}, {0xFB02, "FL"}, {0xFB03, "FFI"}, {0xFB04, "FFL"},
    };
    for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
        if (several[i].c != c) continue;
        for (const char *p = several[i].upper; *p; p++) st_cps_add(out, *p);
        return;
    }
    if (c == 0x149) { /* n preceded by an apostrophe */
        st_cps_add(out, 0x2BC);
        st_cps_add(out, 'N');
        return;
    }
    st_cps_add(out, utf8proc_toupper(c));
}

static bool is_alnum(int32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static int digit_value(int32_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

/* What a numeric reference stands for; -1: nothing (HTML5 drops controls and non-characters). Python's html/__init__.py, _replace_charref. */
static int32_t numeric_value(int32_t number)
{
    static const uint16_t windows_1252[32] = {
        0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D, 0x8F,
        0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
    };
    if (number == 0) return 0xFFFD;
    if (number == 0x0D) return 0x0D;
    if (number >= 0x80 && number <= 0x9F) return windows_1252[number - 0x80];
    if ((number >= 0xD800 && number <= 0xDFFF) || number > 0x10FFFF) return 0xFFFD;
    if (number <= 0x08 || number == 0x0B || (number >= 0x0E && number <= 0x1F) || number == 0x7F) return -1;
    if ((number >= 0xFDD0 && number <= 0xFDEF) || (number & 0xFFFE) == 0xFFFE) return -1;
    return number;
}

/* Reads "#123", "#x1F" at `at`, without a ';'. Returns how many code points it took, 0 when it is no number. */
static size_t read_number(int32_t *number, const st_cps *in, size_t at)
{
    size_t i = at + 1;
    int base = 10;
    if (i < in->n && (in->v[i] == 'x' || in->v[i] == 'X')) {
        base = 16;
        i++;
    }
    const size_t first = i;
    int32_t value = 0;
    for (; i < in->n && digit_value(in->v[i]) < base; i++) {
        value = value * base + digit_value(in->v[i]);
        if (value > 0x10FFFF) value = 0x110000; /* stays too large, cannot overflow */
    }
    *number = value;
    return i > first ? i - at : 0;
}

/* The ASCII name [at, at + n) as a string; false when it holds anything else. */
static bool copy_name(char name[MAX_NAME + 1], const st_cps *in, size_t at, size_t n)
{
    if (n > MAX_NAME) return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(in->v[at + i])) return false;
        name[i] = (char)in->v[at + i];
    }
    name[n] = '\0';
    return true;
}

/* "&NTILDE;": names that ftfy also knows in capitals. */
static bool add_capital(st_cps *out, const char *name)
{
    char lower[MAX_NAME + 1];
    size_t i = 0;
    for (; name[i]; i++) {
        if (name[i] >= 'a' && name[i] <= 'z') return false;
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
    }
    lower[i] = '\0';
    const struct entity *e = find(lower);
    if (!e || !(e->flags & ENTITY_UPPER)) return false;
    add_upper(out, e->value[0]);
    if (e->value[1]) add_upper(out, e->value[1]);
    return true;
}

/* One reference at in->v[at] == '&', which must match "&#?[0-9A-Za-z]{1,24};". Returns how many code points were replaced, 0 for none. */
static size_t ftfy_one(st_cps *out, const st_cps *in, size_t at)
{
    const bool numeric = at + 1 < in->n && in->v[at + 1] == '#';
    const size_t first = at + 1 + numeric;
    size_t end = first;
    while (end < in->n && end - first < 25 && is_alnum(in->v[end])) end++;
    if (end == first || end - first > 24 || end == in->n || in->v[end] != ';') return 0;
    const size_t length = end + 1 - at;
    if (numeric) {
        int32_t number;
        if (read_number(&number, in, at + 1) != end - (at + 1)) return 0;
        const int32_t c = numeric_value(number);
        if (c == ';') return 0; /* ftfy takes a ';' in the result as a sign that only a part was decoded */
        if (c >= 0) st_cps_add(out, c);
        return length;
    }
    char name[MAX_NAME + 1];
    if (!copy_name(name, in, first, end - first)) return 0;
    const struct entity *e = find(name);
    if (e) add_value(out, e);
    else if (!add_capital(out, name)) return 0;
    return length;
}

void st_entities_ftfy(st_cps *out, const st_cps *in)
{
    for (size_t i = 0; i < in->n;) {
        const size_t used = in->v[i] == '&' ? ftfy_one(out, in, i) : 0;
        if (!used) st_cps_add(out, in->v[i]);
        i += used ? used : 1;
    }
}

/* A named reference by HTML5's rules; `first` is behind the '&'. Returns how many code points behind the '&' were replaced. */
static size_t html_named(st_cps *out, const st_cps *in, size_t first)
{
    size_t end = first;
    while (end < in->n && end - first < 32) {
        const int32_t c = in->v[end];
        if (c == '\t' || c == '\n' || c == '\f' || c == ' ' || c == '<' || c == '&' || c == '#' || c == ';') break;
        end++;
    }
    char name[MAX_NAME + 1];
    const size_t n = end - first;
    const struct entity *e = n && copy_name(name, in, first, n) ? find(name) : NULL;
    const bool closed = end < in->n && in->v[end] == ';';
    if (e && (closed || (e->flags & ENTITY_BARE))) {
        add_value(out, e);
        return n + closed;
    }
    for (size_t k = n < MAX_NAME ? n : MAX_NAME; k >= 2; k--) { /* the longest old name that the text starts with */
        e = copy_name(name, in, first, k) ? find(name) : NULL;
        if (!e || !(e->flags & ENTITY_BARE)) continue;
        add_value(out, e);
        return k;
    }
    return 0;
}

static size_t html_one(st_cps *out, const st_cps *in, size_t at)
{
    if (at + 1 >= in->n) return 0;
    if (in->v[at + 1] != '#') {
        const size_t n = html_named(out, in, at + 1);
        return n ? n + 1 : 0;
    }
    int32_t number;
    const size_t n = read_number(&number, in, at + 1);
    if (!n) return 0;
    const int32_t c = numeric_value(number);
    if (c >= 0) st_cps_add(out, c);
    const size_t end = at + 1 + n;
    return 1 + n + (end < in->n && in->v[end] == ';');
}

void st_entities_html(st_cps *out, const st_cps *in)
{
    for (size_t i = 0; i < in->n;) {
        const size_t used = in->v[i] == '&' ? html_one(out, in, i) : 0;
        if (!used) st_cps_add(out, in->v[i]);
        i += used ? used : 1;
    }
}
