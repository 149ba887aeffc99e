/* save.c: outputs that are complete or absent, and their names (see save.h). */
#include "front/save.h"
#include "front/fault.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

bool st_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool st_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool st_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *st_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

st_status st_save_possible(const char *path, st_error *err)
{
    if (!path[0]) return st_fault(err, ST_ERR_INVALID_ARG, "output: an empty file name");
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return st_fault(err, ST_ERR_IO, "%s: is a folder, expected a file name", path);
    if (exists && !S_ISREG(st.st_mode)) { /* a pipe or device is written as it is: its folder does not matter */
        if (access(path, W_OK) == 0) return ST_OK;
        return st_fault(err, ST_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    char *folder = st_folder_of(path);
    if (!folder) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
    st_status status = ST_OK;
    if (!st_is_folder(folder)) status = st_fault(err, ST_ERR_IO, "%s: the folder %s is not there", path, folder);
    else if (access(folder, W_OK | X_OK) != 0)
        status = st_fault(err, ST_ERR_IO, "%s: cannot write into %s: %s", path, folder, strerror(errno));
    free(folder);
    return status;
}

st_status st_save_folder(const char *path, st_error *err)
{
    if (mkdir(path, 0777) == 0) return ST_OK;
    if (errno == EEXIST && st_is_folder(path)) {
        if (access(path, W_OK | X_OK) == 0) return ST_OK;
        return st_fault(err, ST_ERR_IO, "%s: cannot write into this folder: %s", path, strerror(errno));
    }
    if (errno == EEXIST) return st_fault(err, ST_ERR_IO, "%s: is a file, expected a folder", path);
    return st_fault(err, ST_ERR_IO, "%s: cannot make this folder: %s", path, strerror(errno));
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t written = write(fd, text, n);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        text += written;
        n -= (size_t)written;
    }
    return true;
}

st_status st_save_text(const char *path, const char *text, size_t n, st_error *err)
{
    if (!path || strcmp(path, "-") == 0) {
        if (write_all(STDOUT_FILENO, text, n)) return ST_OK;
        return st_fault(err, ST_ERR_IO, "standard output: cannot be written: %s", strerror(errno));
    }
    return st_file_write(path, text, n, err);
}

/* ---- names ---- */

void st_names_free(st_names *names)
{
    for (size_t i = 0; i < names->n; i++) free(names->used[i]);
    free(names->used);
    *names = (st_names){ 0 };
}

static bool is_used(const st_names *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++)
        if (strcasecmp(names->used[i], name) == 0) return true;
    return false;
}

static bool remember(st_names *names, const char *name)
{
    if (names->n == names->room) {
        const size_t room = names->room ? 2 * names->room : 16;
        char **used = reallocarray(names->used, room, sizeof *used);
        if (!used) return false;
        names->used = used;
        names->room = room;
    }
    names->used[names->n] = strdup(name);
    if (!names->used[names->n]) return false;
    names->n++;
    return true;
}

char *st_names_make(st_names *names, const char *folder, const char *source, const char *tail)
{
    const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source;
    const char *dot = strrchr(base, '.');
    const int stem = (int)(dot && dot != base ? (size_t)(dot - base) : strlen(base));
    const size_t folder_n = strlen(folder);
    const char *separator = folder_n && folder[folder_n - 1] == '/' ? "" : "/";
    char *name = NULL;
    for (unsigned i = 1;; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%u", i);
        if (asprintf(&name, "%s%s%.*s%s%s", folder, separator, stem, base, number, tail) < 0) return NULL;
        if (!is_used(names, name)) break;
        free(name);
    }
    if (remember(names, name)) return name;
    free(name);
    return NULL;
}

void st_phrase_slug(char out[48], const char *phrase)
{
    size_t n = 0;
    for (const unsigned char *p = (const unsigned char *)phrase; *p && n < 40; p++) {
        if (isalnum(*p) || *p >= 0x80) out[n++] = (char)*p;
        else if (n > 0 && out[n - 1] != '-') out[n++] = '-';
    }
    if (n == 40) /* not inside a UTF-8 character */
        while (n > 0 && ((unsigned char)out[n - 1] & 0xC0) == 0x80) n--;
    if (n > 0 && (unsigned char)out[n - 1] >= 0xC0) n--;
    while (n > 0 && out[n - 1] == '-') n--;
    if (n == 0) out[n++] = '_';
    out[n] = '\0';
}
