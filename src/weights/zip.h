/* zip.h: the list of a zip archive's entries, from a mapped file. The central directory is trusted only where local
 * headers agree, entries must not overlap, and nothing is expanded here. Stored and deflated entries, zip64; no
 * encryption, no split archives.
 */
#ifndef ST_WEIGHTS_ZIP_H
#define ST_WEIGHTS_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stencil/stencil_base.h>

#define ST_MAX_ZIP_ENTRIES 131072
#define ST_MAX_DEFLATE_RATIO 1032 /* one deflated byte never expands to more */

typedef struct st_zip_entry {
    const char *name; /* n_name bytes in the map, not terminated */
    uint32_t n_name;
    uint32_t crc;
    bool deflated;
    uint64_t header;           /* offset of the local header */
    const unsigned char *data; /* n_packed bytes in the map */
    uint64_t n_packed;
    uint64_t
        n; /* expanded; n_packed when stored, at most ST_MAX_DEFLATE_RATIO times that (and a little) when deflated */
} st_zip_entry;

typedef struct st_zip {
    st_zip_entry *entries; /* sorted by name */
    size_t n;
} st_zip;

/* On failure *out is zeroed. Names point into `bytes`. */
ST_MUSTCHECK st_status st_zip_read(st_zip *out, const unsigned char *bytes, size_t n, st_error *err);
void st_zip_free(st_zip *zip);
/* NULL when absent. */
const st_zip_entry *st_zip_find(const st_zip *zip, const char *name, size_t n_name);

#endif
