/* merges.h: CLIP's merge table, linked into the library (tools/make_text_tables.py wrote it; MIT licence, see NOTICE). */
#ifndef ST_TEXT_MERGES_H
#define ST_TEXT_MERGES_H

#include <stdint.h>

#define ST_N_MERGES 48894u

/* Pair number `rank` is two token ids as little-endian uint16 at bytes 4*rank and 4*rank + 2. */
extern const uint8_t st_merges[4 * ST_N_MERGES];

#endif
