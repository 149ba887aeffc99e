/* picture_exif.c: which way is up. EXIF through libexif, told not to "repair" anything; XMP by looking for one
 * attribute, as Pillow does (PIL/Image.py, getexif). A broken block never stops a picture: it means "upright".
 */
#include <libexif/exif-data.h>
#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "picture/picture_internal.h"

/* The first directory is at the front; what lies further is thumbnails. libexif copies each entry's data, and a
 * hostile block lets hundreds of entries share the same bytes. */
#define MAX_EXIF (128u << 10)

/* -1: the tag is not there. */
static int orientation_of(ExifData *data)
{
    const ExifEntry *e = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
    if (!e) return -1;
    const ExifByteOrder order = exif_data_get_byte_order(data);
    if (e->components != 1 || !e->data) return 0;
    if (e->format == EXIF_FORMAT_SHORT && e->size >= 2) return exif_get_short(e->data, order);
    if (e->format == EXIF_FORMAT_LONG && e->size >= 4) {
        const ExifLong v = exif_get_long(e->data, order);
        return v <= 8 ? (int)v : 0;
    }
    return 0;
}

static st_status from_exif(int *value, const uint8_t *exif, size_t n, const char *name, st_error *err)
{
    static const uint8_t prefix[6] = { 'E', 'x', 'i', 'f', 0, 0 }; /* without it libexif looks for a JPEG */
    const bool has_prefix = n >= sizeof prefix && memcmp(exif, prefix, sizeof prefix) == 0;
    const size_t skip = has_prefix ? sizeof prefix : 0;
    const size_t rest = n - skip < MAX_EXIF ? n - skip : MAX_EXIF;
    uint8_t *block = st_malloc(sizeof prefix + rest);
    ExifData *data = block ? exif_data_new() : NULL;
    if (!data) {
        st_free(block);
        return st_fail(err, ST_ERR_NOMEM, "%s: no memory for the EXIF block of %zu bytes", name, n);
    }
    memcpy(block, prefix, sizeof prefix);
    memcpy(block + sizeof prefix, exif + skip, rest);
    exif_data_unset_option(data, EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
    exif_data_load_data(data, block, (unsigned)(sizeof prefix + rest));
    *value = orientation_of(data);
    exif_data_unref(data);
    st_free(block);
    return ST_OK;
}

/* The first tiff:Orientation="N" or tiff:Orientation>N; -1 when there is none. */
static int from_xmp(const uint8_t *xmp, size_t n)
{
    static const char key[] = "tiff:Orientation";
    const size_t n_key = sizeof key - 1;
    const uint8_t *end = xmp + n;
    for (const uint8_t *p = xmp; (p = memmem(p, (size_t)(end - p), key, n_key)) != NULL;) {
        p += n_key;
        const size_t n_mark = end - p >= 2 && memcmp(p, "=\"", 2) == 0 ? 2 : end - p >= 1 && *p == '>' ? 1 : 0;
        if (n_mark && (size_t)(end - p) > n_mark && p[n_mark] >= '0' && p[n_mark] <= '9') return p[n_mark] - '0';
    }
    return -1;
}

st_status st_exif_orientation(int *orientation, const uint8_t *exif, size_t n_exif, const uint8_t *xmp, size_t n_xmp,
                              const char *name, st_error *err)
{
    int value = -1;
    *orientation = 1;
    if (exif && n_exif) {
        const st_status status = from_exif(&value, exif, n_exif, name, err);
        if (status != ST_OK) return status;
    }
    if (value < 0 && xmp && n_xmp) value = from_xmp(xmp, n_xmp);
    if (value >= 2 && value <= 8) *orientation = value;
    return ST_OK;
}
