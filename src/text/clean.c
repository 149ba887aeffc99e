/* clean.c: the cleaning of a phrase in front of the tokeniser: ftfy's repairs but mojibake, HTML entities, white space, lower case.
 *
 * ftfy repairs line by line and repeats on each line until nothing changes, because one repair may uncover the next ("&amp;amp;"). The repeats are capped
 * here at MAX_ROUNDS, so that a hostile text costs linear time; nothing written by a person nests that deep.
 */
#include "text/clean.h"

#include "base/error.h"
#include "base/mem.h"
#include "text/entities.h"
#include "text/lower.h"
#include <string.h>
#include <utf8proc.h>

#define MAX_ROUNDS 64

bool st_phrase_is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* ---- ftfy's repairs of single characters ---- */

/* ftfy/fixes.py, fix_c1_controls: a C1 control is read as the Windows-1252 character of the same byte; five bytes have none. */
static int32_t fix_c1(int32_t c)
{
    static const uint16_t windows_1252[32] = {
        0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D, 0x8F,
        0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
    };
    return c >= 0x80 && c <= 0x9F ? windows_1252[c - 0x80] : c;
}

/* ftfy/chardata.py, LIGATURES: typographic ligatures of Latin letters and the digraphs made for old character sets. */
static const struct ligature {
    int32_t c, letters[3];
} ligatures[] = {
    {0x132, {'I', 'J'}},      {0x133, {'i', 'j'}},     {0x149, {0x2BC, 'n'}},    {0x1C4, {'D', 0x17D}},      {0x1C5, {'D', 0x17E}},
    {0x1C6, {'d', 0x17E}},    {0x1C7, {'L', 'J'}},     {0x1C8, {'L', 'j'}},      {0x1C9, {'l', 'j'}},        {0x1CA, {'N', 'J'}},
    {0x1CB, {'N', 'j'}},      {0x1CC, {'n', 'j'}},     {0x1F1, {'D', 'Z'}},      {0x1F2, {'D', 'z'}},        {0x1F3, {'d', 'z'}},
    {0xFB00, {'f', 'f'}},     {0xFB01, {'f', 'i'}},    {0xFB02, {'f', 'l'}},     {0xFB03, {'f', 'f', 'i'}},  {0xFB04, {'f', 'f', 'l'}},
    {0xFB05, {0x17F, 't'}},   {0xFB06, {'s', 't'}},
};

/* Curly quotes to straight ones, other line breaks to '\n' (ftfy/fixes.py, uncurl_quotes and fix_line_breaks). */
static int32_t fix_quote_or_break(int32_t c)
{
    if (c == 0x2BC || (c >= 0x2018 && c <= 0x201B)) return '\'';
    if (c >= 0x201C && c <= 0x201F) return '"';
    if (c == '\r' || c == 0x2028 || c == 0x2029) return '\n';
    return c;
}

/* ftfy/chardata.py, WIDTH_MAP: full-width and half-width forms to the ordinary ones (their compatibility decomposition), then quotes. */
static void add_width_fixed(st_cps *out, int32_t c)
{
    if (c == 0x3000) c = ' ';
    if (c < 0xFF01 || c > 0xFFEF) {
        st_cps_add(out, fix_quote_or_break(c));
        return;
    }
    utf8proc_int32_t parts[8];
    const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 8, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, NULL);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; i++) st_cps_add(out, fix_quote_or_break(parts[i]));
}

static void fix_characters(st_cps *out, const st_cps *in)
{
    for (size_t i = 0; i < in->n; i++) {
        const int32_t c = fix_c1(in->v[i]);
        const struct ligature *found = NULL;
        if (c >= 0x132)
            for (size_t k = 0; k < sizeof ligatures / sizeof ligatures[0] && !found; k++)
                if (ligatures[k].c == c) found = &ligatures[k];
        if (!found) add_width_fixed(out, c);
        else
            for (size_t k = 0; k < 3 && found->letters[k]; k++) add_width_fixed(out, found->letters[k]);
    }
}

/* ---- what ftfy removes ---- */

/* The length of a terminal escape ("\033[31;1m") at `at`, 0 when there is none. */
static size_t terminal_escape(const st_cps *a, size_t at)
{
    if (a->v[at] != 0x1B || at + 1 >= a->n || a->v[at + 1] != '[') return 0;
    size_t i = at + 2;
    while (i < a->n && (a->v[i] == ';' || utf8proc_category(a->v[i]) == UTF8PROC_CATEGORY_ND)) i++;
    if (i == a->n) return 0;
    const int32_t c = a->v[i];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? i + 1 - at : 0;
}

static bool is_removed(int32_t c)
{
    return c <= 0x08 || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || (c >= 0x206A && c <= 0x206F) || c == 0xFEFF ||
           (c >= 0xFFF9 && c <= 0xFFFC);
}

static void remove_controls(st_cps *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n;) {
        const size_t escape = terminal_escape(a, i);
        if (!escape && !is_removed(a->v[i])) a->v[n++] = a->v[i];
        i += escape ? escape : 1;
    }
    a->n = n;
}

/* ---- NFC ---- */

static unsigned combining_class(int32_t c) { return (unsigned)utf8proc_get_property(c)->combining_class; }

/* Stable sort of one run of combining marks by class. Done here because utf8proc's own is quadratic in the length of the run. */
static bool sort_marks(int32_t *v, size_t n)
{
    if (n < 2) return true;
    int32_t *sorted = st_malloc(n * sizeof *sorted);
    if (!sorted) return false;
    size_t used = 0;
    for (unsigned class = 1; class < 256 && used < n; class++)
        for (size_t i = 0; i < n; i++)
            if (combining_class(v[i]) == class) sorted[used++] = v[i];
    memcpy(v, sorted, n * sizeof *sorted);
    st_free(sorted);
    return true;
}

/* Appends NFC(in) to the empty `out`. */
static void normalise(st_cps *out, const st_cps *in)
{
    for (size_t i = 0; i < in->n; i++) {
        utf8proc_int32_t parts[16];
        const utf8proc_ssize_t n = utf8proc_decompose_char(in->v[i], parts, 16, UTF8PROC_STABLE | UTF8PROC_COMPOSE, NULL);
        for (utf8proc_ssize_t k = 0; k < n && k < 16; k++) st_cps_add(out, parts[k]);
    }
    if (out->failed) return;
    for (size_t i = 0; i < out->n;) {
        size_t end = i;
        while (end < out->n && combining_class(out->v[end]) != 0) end++;
        if (!sort_marks(out->v + i, end - i)) out->failed = true;
        i = end + 1;
    }
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(out->v, (utf8proc_ssize_t)out->n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n >= 0) out->n = (size_t)n;
}

/* ---- the whole ---- */

/* ftfy/__init__.py, fix_and_explain: the repairs of one line, repeated until nothing changes. `line` is replaced; `work` is scratch. */
static void fix_line(st_cps *line, st_cps *work, bool entities)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        st_cps *a = &work[0], *b = &work[1];
        a->n = b->n = 0;
        if (entities) st_entities_ftfy(b, line);
        fix_characters(a, entities ? b : line);
        remove_controls(a);
        b->n = 0;
        normalise(b, a);
        if (a->failed || b->failed) line->failed = true;
        if (line->failed || st_cps_equal(b, line)) return;
        const st_cps old = *line;
        *line = *b;
        *b = old;
    }
}

/* ftfy/__init__.py, fix_text: line by line; the first line that holds a '<' ends the decoding of entities for itself and all that follow. */
static void fix_text(st_cps *out, const st_cps *in)
{
    st_cps line = {0}, work[2] = {{0}, {0}};
    bool entities = true;
    for (size_t i = 0; i < in->n && !out->failed;) {
        line.n = 0;
        do {
            if (in->v[i] == '<') entities = false;
            st_cps_add(&line, in->v[i]);
        } while (in->v[i++] != '\n' && i < in->n);
        fix_line(&line, work, entities);
        for (size_t k = 0; k < line.n; k++) st_cps_add(out, line.v[k]);
        if (line.failed) out->failed = true;
    }
    st_cps_free(&line);
    st_cps_free(&work[0]);
    st_cps_free(&work[1]);
}

static void collapse_spaces(st_cps *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (!st_phrase_is_space(a->v[i])) a->v[n++] = a->v[i];
        else if (n > 0 && a->v[n - 1] != ' ') a->v[n++] = ' ';
    }
    if (n > 0 && a->v[n - 1] == ' ') n--;
    a->n = n;
}

static st_status decode_utf8(st_cps *out, const char *text, size_t n_bytes, st_error *err)
{
    for (size_t i = 0; i < n_bytes;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(n_bytes - i), &c);
        if (n <= 0) return st_fail(err, ST_ERR_INVALID_ARG, "phrase: not UTF-8 at byte %zu (0x%02X)", i, (unsigned)(unsigned char)text[i]);
        st_cps_add(out, c);
        i += (size_t)n;
    }
    return ST_OK;
}

st_status st_phrase_clean(st_cps *out, const char *text, size_t n_bytes, st_error *err)
{
    st_cps a = {0}, b = {0}, c = {0};
    st_status status = decode_utf8(&a, text, n_bytes, err);
    if (status != ST_OK) goto done;
    fix_text(&b, &a);
    a.n = 0;
    st_entities_html(&a, &b);
    st_entities_html(&c, &a);
    collapse_spaces(&c);
    b.n = 0;
    st_text_lower(&b, &c);
    if (a.failed || b.failed || c.failed) {
        status = st_fail(err, ST_ERR_NOMEM, "phrase: out of memory while cleaning %zu bytes", n_bytes);
        goto done;
    }
    *out = b;
    b = (st_cps){0};
done:
    st_cps_free(&a);
    st_cps_free(&b);
    st_cps_free(&c);
    return status;
}
