/* error.c: makes the one sentence of a failure. Names, paths and tensor names inside it come from files that may be hostile, and the
 * sentence ends up on terminals and in logs: so only printable UTF-8 gets through, byte by byte, whatever the format asked for. */
#include "base/error.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), 0 when there is none. *code is its code point. */
static size_t utf8_sequence(const unsigned char *s, uint32_t *code)
{
    static const uint32_t smallest[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = 1;
    *code = s[0];
    if (s[0] < 0x80) return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF) n = 2;
    else if ((s[0] & 0xF0) == 0xE0) n = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4) n = 4;
    else return 0;
    *code = s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) { /* the terminating NUL is no continuation byte, so this stays inside */
        if ((s[i] & 0xC0) != 0x80) return 0;
        *code = *code << 6 | (s[i] & 0x3Fu);
    }
    const bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
    return *code < smallest[n] || *code > 0x10FFFF || surrogate ? 0 : n;
}

/* Controls, and the invisible characters that reorder or break the line they stand in. */
static bool is_unprintable(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069) || code == 0xFEFF ||
           (code >= 0xE0000 && code <= 0xE007F) || (code & 0xFFFE) == 0xFFFE;
}

void st_text_clean(char *text)
{
    unsigned char *s = (unsigned char *)text;
    while (*s) {
        uint32_t code;
        const size_t n = utf8_sequence(s, &code);
        if (n && !is_unprintable(code)) {
            s += n;
            continue;
        }
        for (size_t i = 0; i < (n ? n : 1); i++) s[i] = '?';
        s += n ? n : 1;
    }
}

/* Ends a text that did not fit with "...", without cutting a character in two. */
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80) end--;
    memcpy(text + end, "...", 4);
}

void st_text_format(char *text, size_t size, const char *fmt, va_list args)
{
    const int n = vsnprintf(text, size, fmt, args);
    if (n < 0) snprintf(text, size, "(a message that could not be formatted)");
    st_text_clean(text);
    if (n >= 0 && (size_t)n >= size) mark_cut(text, size);
}

st_status st_fail(st_error *err, st_status status, const char *fmt, ...)
{
    if (!err) return status;
    char text[sizeof err->message]; /* the arguments may point into err->message */
    va_list args;
    va_start(args, fmt);
    st_text_format(text, sizeof text, fmt, args);
    va_end(args);
    err->status = status;
    memcpy(err->message, text, sizeof text);
    return status;
}

/* Fills err with "text: tail", cut to what it holds; both are clean. */
static void join(st_error *err, const char *text, const char *tail)
{
    char both[2 * sizeof err->message + 2];
    const int n = snprintf(both, sizeof both, "%s: %s", text, tail);
    if ((size_t)n >= sizeof err->message) mark_cut(both, sizeof err->message);
    memcpy(err->message, both, strlen(both) + 1);
}

st_status st_fail_errno(st_error *err, st_status status, const char *fmt, ...)
{
    const int number = errno;
    if (!err) return status;
    char text[sizeof err->message], reason[128];
    va_list args;
    va_start(args, fmt);
    st_text_format(text, sizeof text, fmt, args);
    va_end(args);
    err->status = status;
    join(err, text, strerror_r(number, reason, sizeof reason)); /* GNU's: returns the text, wherever it is */
    return status;
}

void st_error_prefix(st_error *err, const char *fmt, ...)
{
    if (!err) return;
    char text[sizeof err->message];
    va_list args;
    va_start(args, fmt);
    st_text_format(text, sizeof text, fmt, args);
    va_end(args);
    join(err, text, err->message);
}
