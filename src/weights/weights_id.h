/* weights_id.h: the name of a set of weights: equal for the same values in any container or layout. */
#ifndef ST_WEIGHTS_ID_H
#define ST_WEIGHTS_ID_H

#include "weights/manifest.h"

#define ST_ID_TEXT 65 /* 64 hex digits and NUL */

/* Over every tensor that some stage can use, by canonical name in byte order:
 *     name, one 0 byte, rank as u8, each side as u64, then values as fp32 (all little-endian):
 *     all of them when n is at most 1,024, else four runs of 256 from floor(k * (n - 256) / 3), k = 0 .. 3.
 * SHA-256 of that, in lower-case hex. Expands deflated storages that it reads. */
ST_MUSTCHECK st_status st_weights_id(char out[ST_ID_TEXT], st_catalog *cat, const st_binding *binding, st_error *err);

#endif
