/* json_read.c: JSON read, with lack of memory told from what is no JSON. Jansson's lexer does not look whether memory was there while it collects a text
 * (2.14, load.c, lex_save): it loses characters, and steps back over what it never had. So room for the whole document is asked for before it begins.
 */
#include "label/store.h"

#include <stdlib.h>

const char st_label_no_memory[] = "out of memory";

/* What jansson makes of a text: strings take two bytes for one, numbers in lists up to eight. */
#define ROOM_PER_BYTE 8
#define ROOM_BESIDES ((size_t)1 << 16)

json_t *st_label_json_read(bool *no_memory, const char *text, size_t n, size_t flags, json_error_t *why)
{
    void *volatile room = n < SIZE_MAX / ROOM_PER_BYTE - ROOM_BESIDES ? malloc(n * ROOM_PER_BYTE + ROOM_BESIDES) : NULL;
    *no_memory = !room;
    if (!room) return NULL;
    free(room);
    return json_loadb(text, n, flags, why);
}
