/* export_images.c: pictures linked, copied or turned upright (see export_images.h). */
#include "label/export_images.h"
#include "front/fault.h"
#include "label/export_files.h"
#include "label/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { JPEG_QUALITY = 95, JPEG_SIDE = 65500 };

/* Kinds that OpenCV, Pillow and browsers all read; TIFF is left as it is: it may hold more than 8 bits. */
static bool must_be_written_anew(const st_label_picture *p)
{
    return p->orientation > 1 || strcmp(p->format, "heif") == 0;
}

static st_status failed(const char *path, int why, st_error *err)
{
    return st_fault(err, ST_ERR_IO, "%s: cannot be written: %s", path, strerror(why));
}

static st_status copy_stream(FILE *from, const char *source, const char *path, st_error *err)
{
    char block[65536];
    FILE *to = fopen(path, "wbxe");
    if (!to) return failed(path, errno, err);
    bool ok = true;
    for (size_t n = 1; ok && n > 0;) {
        n = fread(block, 1, sizeof block, from);
        ok = fwrite(block, 1, n, to) == n;
    }
    const int why = errno;
    if (ferror(from)) {
        fclose(to);
        return st_fault(err, ST_ERR_IO, "%s: cannot be read", source);
    }
    const bool closed = fclose(to) == 0;
    return ok && closed ? ST_OK : failed(path, ok ? errno : why, err);
}

static st_status copy(const st_label_sink *s, const char *source, const char *path, st_error *err)
{
    FILE *from = fopen(source, "rbe");
    if (!from) {
        s->losses->images_absent++;
        return ST_OK;
    }
    const st_status status = copy_stream(from, source, path, err);
    fclose(from);
    return status;
}

/* A symbolic link stays right when all of it moves along: it says the way from its own folder, not from the root. */
static char *way_from(const char *folder, const char *file)
{
    char *from = realpath(folder, NULL), *to = realpath(file, NULL), *way = NULL;
    if (from && to) {
        size_t shared = 0, i = 0, up = 1;
        for (; from[i] && from[i] == to[i]; i++)
            if (from[i] == '/') shared = i + 1;
        if (!from[i] && to[i] == '/') shared = i + 1; /* the file lies below the folder */
        if (!from[i] && to[i] == '/') up = 0;
        else
            for (const char *p = from + shared; *p; p++) up += *p == '/';
        const size_t rest = strlen(to + shared);
        way = malloc(3 * up + rest + 1);
        for (size_t k = 0; way && k < up; k++) memcpy(way + 3 * k, "../", 3);
        if (way) memcpy(way + 3 * up, to + shared, rest + 1);
    }
    free(from);
    free(to);
    return way;
}

static st_status link_softly(const st_label_sink *s, const char *source, const char *path, st_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = strndup(path, (size_t)(slash - path)), *way = folder ? way_from(folder, source) : NULL;
    st_status status = ST_OK;
    if (!way) s->losses->images_absent++;
    else if (symlink(way, path) != 0) status = failed(path, errno, err);
    free(folder);
    free(way);
    return status;
}

static st_status put_as_it_is(const st_label_sink *s, const char *source, const char *path, st_error *err)
{
    if (s->options->images == ST_LABEL_IMAGES_SYMLINK) return link_softly(s, source, path, err);
    if (s->options->images == ST_LABEL_IMAGES_COPY) return copy(s, source, path, err);
    if (linkat(AT_FDCWD, source, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) return ST_OK;
    if (errno == ENOENT || errno == ENOTDIR || access(source, R_OK) != 0) {
        s->losses->images_absent++;
        return ST_OK;
    }
    const uint64_t absent = s->losses->images_absent;
    const st_status status = copy(s, source, path, err);
    if (status == ST_OK && s->losses->images_absent == absent) s->losses->images_copied++;
    return status;
}

static st_status put_upright(const st_label_sink *s, const st_label_picture *p, const char *path, bool jpeg, st_error *err)
{
    const st_bitmap_options how = s->job->options.bitmap;
    st_bitmap b = { 0 };
    st_error why = { ST_OK, "" };
    uint8_t *bytes = NULL;
    size_t n = 0;
    if (st_bitmap_load(&b, p->file, &how, &why) != ST_OK || b.width != p->width || b.height != p->height) {
        st_bitmap_free(&b);
        if (why.status == ST_ERR_NOMEM) return st_fault(err, ST_ERR_NOMEM, "%s", why.message);
        s->losses->images_absent++;
        return ST_OK;
    }
    const st_png_picture png = { sizeof png, b.rgb, b.width, b.height, 3, 8, NULL, 0 };
    st_status status = jpeg ? st_jpeg_encode(&bytes, &n, b.rgb, b.width, b.height, JPEG_QUALITY, err)
                            : st_png_encode(&bytes, &n, &png, err);
    st_bitmap_free(&b);
    const char *slash = strrchr(path, '/') + 1;
    char *folder = strndup(path, (size_t)(slash - path));
    if (status == ST_OK && !folder) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
    if (status == ST_OK) status = st_label_bytes_save(folder, slash, bytes, n, err);
    if (status == ST_OK) s->losses->images_turned++;
    free(folder);
    st_bytes_free(bytes);
    return status;
}

st_status st_label_image_put(char suffix[16], const st_label_sink *s, const st_label_shown *shown, const char *prefix,
                             const char *stem, st_error *err)
{
    const st_label_picture *p = shown->picture;
    const bool anew = s->options->images != ST_LABEL_IMAGES_NONE && must_be_written_anew(p);
    const bool lossy = strcmp(p->format, "jpeg") == 0 || strcmp(p->format, "heif") == 0;
    const bool jpeg = lossy && p->width <= JPEG_SIDE && p->height <= JPEG_SIDE;
    const char *own = st_label_suffix(shown->name);
    const bool named_so = jpeg ? !strcasecmp(own, ".jpg") || !strcasecmp(own, ".jpeg") : !strcasecmp(own, ".png");
    snprintf(suffix, 16, "%s", !anew || named_so ? own : jpeg ? ".jpg" : ".png");
    if (s->options->images == ST_LABEL_IMAGES_NONE) {
        s->losses->images_rotated += p->orientation > 1;
        return ST_OK;
    }
    if (!p->file) {
        s->losses->images_absent++;
        return ST_OK;
    }
    char *name = NULL;
    if (asprintf(&name, "%s%s%s", prefix, stem, suffix) < 0)
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    st_status status = st_label_folders_above(s->folder, name, err);
    char *path = status == ST_OK ? st_label_path(s->folder, name) : NULL;
    if (status == ST_OK && !path) status = st_fault(err, ST_ERR_NOMEM, "%s: out of memory", p->name);
    if (status == ST_OK)
        status = anew ? put_upright(s, p, path, jpeg, err) : put_as_it_is(s, p->file, path, err);
    free(path);
    free(name);
    return status;
}
