/* names.c: names of pictures as text, as JSON, and as names in the store. A name may hold any byte but NUL; what leaves
 * the program is UTF-8.
 */
#include "label/store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAIL_MAX = 60 };

char *st_label_path(const char *folder, const char *tail)
{
    char *path = NULL;
    const size_t n = strlen(folder);
    return asprintf(&path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/", tail) < 0 ? NULL : path;
}

size_t st_label_utf8(const unsigned char *s)
{
    if (s[0] < 0x80) return s[0] ? 1 : 0;
    const size_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0; /* a NUL ends it here */
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0; /* overlong */
    if (s[0] == 0xED && s[1] > 0x9F) return 0; /* surrogates */
    if (s[0] == 0xF0 && s[1] < 0x90) return 0;
    return s[0] == 0xF4 && s[1] > 0x8F ? 0 : n;
}

char *st_label_text(const char *name)
{
    const size_t length = strlen(name);
    char *text = length < SIZE_MAX / 3 ? malloc(3 * length + 1) : NULL;
    if (!text) return NULL;
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p;) {
        const size_t bytes = st_label_utf8(p);
        if (bytes) memcpy(text + n, p, bytes), n += bytes, p += bytes;
        else n += (size_t)snprintf(text + n, 4, "%%%02X", *p++);
    }
    text[n] = '\0';
    return text;
}

char *st_label_store_name(const char *name)
{
    char sha[65], tail[TAIL_MAX + 1], *path = NULL;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const size_t length = strlen(base);
    if (length > TAIL_MAX) base += length - TAIL_MAX;
    size_t n = 0;
    for (; base[n]; n++)
        tail[n] = isalnum((unsigned char)base[n]) || strchr("._-", base[n]) ? base[n] : '_'; /* in the C locale */
    tail[n] = '\0';
    st_label_sha256(sha, name, strlen(name));
    return asprintf(&path, "store/%.2s/%.16s-%s.jsonl", sha, sha, tail) < 0 ? NULL : path;
}

static bool is_utf8(const char *name)
{
    const unsigned char *p = (const unsigned char *)name;
    for (size_t n; (n = st_label_utf8(p)) != 0;) p += n;
    return *p == 0;
}

json_t *st_label_name_to_json(const char *name)
{
    if (is_utf8(name)) return json_string(name);
    const size_t length = strlen(name);
    char *hex = malloc(2 * length + 1);
    if (!hex) return NULL;
    for (size_t i = 0; i < length; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)name[i]);
    json_t *value = json_pack("{ss}", "bytes", hex);
    free(hex);
    return value;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *st_label_name_from_json(const json_t *value)
{
    if (json_is_string(value)) /* a NUL inside is no name */
        return strlen(json_string_value(value)) == json_string_length(value) ? strdup(json_string_value(value)) : NULL;
    const char *hex = json_string_value(json_object_get(value, "bytes"));
    const size_t n = hex ? strlen(hex) : 1;
    char *name = n % 2 == 0 ? malloc(n / 2 + 1) : NULL;
    for (size_t i = 0; name && i < n / 2; i++) {
        const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
        if (high < 0 || low < 0 || high + low == 0) {
            free(name);
            return NULL;
        }
        name[i] = (char)(high * 16 + low);
    }
    if (name) name[n / 2] = '\0';
    return name;
}
