/* export_draft.c: a folder that appears complete or not at all (see export_files.h).
 *
 * It is written beside its place under a fixed hidden name, so that the next run finds and removes what a killed one
 * left. Replacing a folder takes two renames; between them the old one is under its own hidden name, from where it is
 * put back should nobody have finished.
 */
#include "front/fault.h"
#include "front/save.h"
#include "label/export_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders inside folders; our own are far less deep, and a hostile tree must end somewhere. */
enum { DEPTH_MAX = 128 };

static st_status failed(const char *path, const char *what, st_error *err)
{
    return st_fault(err, ST_ERR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

static char *inside(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static int not_dots(const struct dirent *e)
{
    return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_names(struct dirent **names, int n)
{
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* ---- removing ---- */

static st_status remove_tree(const char *path, int depth, st_error *err)
{
    struct dirent **names = NULL;
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? ST_OK : failed(path, "be looked at", err);
    if (!S_ISDIR(st.st_mode)) return unlink(path) == 0 ? ST_OK : failed(path, "be removed", err);
    if (depth == DEPTH_MAX) return st_fault(err, ST_ERR_LIMIT, "%s: folders more than %d deep", path, DEPTH_MAX);
    const int n = scandir(path, &names, not_dots, NULL);
    if (n < 0) return failed(path, "be listed", err);
    st_status status = ST_OK;
    for (int i = 0; status == ST_OK && i < n; i++) {
        char *child = inside(path, names[i]->d_name);
        status = child ? remove_tree(child, depth + 1, err) : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", path);
        free(child);
    }
    free_names(names, n);
    if (status != ST_OK) return status;
    return rmdir(path) == 0 ? ST_OK : failed(path, "be removed", err);
}

st_status st_label_tree_remove(const char *path, st_error *err)
{
    return remove_tree(path, 0, err);
}

/* ---- comparing ---- */

static bool same_bytes(FILE *a, FILE *b)
{
    char x[16384], y[sizeof x];
    for (;;) {
        const size_t n = fread(x, 1, sizeof x, a), m = fread(y, 1, sizeof y, b);
        if (n != m || memcmp(x, y, n) != 0 || ferror(a) || ferror(b)) return false;
        if (n < sizeof x) return true;
    }
}

/* What cannot be read is not the same. */
static bool same_file(const char *a, const char *b)
{
    FILE *x = fopen(a, "rbe"), *y = x ? fopen(b, "rbe") : NULL;
    const bool same = y && same_bytes(x, y);
    if (y) fclose(y);
    if (x) fclose(x);
    return same;
}

static bool same_link(const char *a, const char *b)
{
    char x[4096], y[sizeof x];
    const ssize_t n = readlink(a, x, sizeof x), m = readlink(b, y, sizeof y);
    return n >= 0 && n == m && memcmp(x, y, (size_t)n) == 0;
}

static st_status compare(bool *same, const char *a, const char *b, int depth, st_error *err);

static st_status compare_folders(bool *same, const char *a, const char *b, int depth, st_error *err)
{
    struct dirent **x = NULL, **y = NULL;
    const int n = scandir(a, &x, not_dots, by_bytes), m = scandir(b, &y, not_dots, by_bytes);
    st_status status = n < 0 || m < 0 ? failed(n < 0 ? a : b, "be listed", err) : ST_OK;
    *same = n == m;
    for (int i = 0; status == ST_OK && *same && i < n; i++) {
        if ((*same = strcmp(x[i]->d_name, y[i]->d_name) == 0) == false) break;
        char *p = inside(a, x[i]->d_name), *q = inside(b, x[i]->d_name);
        status = p && q ? compare(same, p, q, depth + 1, err) : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", a);
        free(p);
        free(q);
    }
    free_names(x, n < 0 ? 0 : n);
    free_names(y, m < 0 ? 0 : m);
    return status;
}

static st_status compare(bool *same, const char *a, const char *b, int depth, st_error *err)
{
    struct stat x, y;
    *same = false;
    if (lstat(a, &x) != 0) return failed(a, "be looked at", err);
    if (lstat(b, &y) != 0) return failed(b, "be looked at", err);
    if ((x.st_mode & S_IFMT) != (y.st_mode & S_IFMT)) return ST_OK;
    if (S_ISDIR(x.st_mode)) {
        if (depth < DEPTH_MAX) return compare_folders(same, a, b, depth, err);
        return st_fault(err, ST_ERR_LIMIT, "%s: folders more than %d deep", a, DEPTH_MAX);
    }
    if (S_ISLNK(x.st_mode)) *same = same_link(a, b);
    else if (x.st_dev == y.st_dev && x.st_ino == y.st_ino) *same = true;
    else if (S_ISREG(x.st_mode) && x.st_size == y.st_size) *same = same_file(a, b);
    return ST_OK;
}

st_status st_label_tree_same(bool *same, const char *a, const char *b, st_error *err)
{
    return compare(same, a, b, 0, err);
}

/* ---- drafts ---- */

st_status st_label_draft_begin(st_label_draft *d, const char *folder, const char *name, st_error *err)
{
    *d = (st_label_draft){ 0 };
    if (asprintf(&d->partial, "%s/.%s.partial", folder, name) < 0) d->partial = NULL;
    if (asprintf(&d->old, "%s/.%s.old", folder, name) < 0) d->old = NULL;
    if (asprintf(&d->final, "%s/%s", folder, name) < 0) d->final = NULL;
    if (!d->partial || !d->old || !d->final) {
        st_label_draft_drop(d);
        return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", name);
    }
    st_status status = ST_OK;
    if (st_exists(d->old) && !st_exists(d->final)) {
        if (rename(d->old, d->final) != 0) status = failed(d->old, "be put back", err);
    } else status = st_label_tree_remove(d->old, err);
    if (status == ST_OK) status = st_label_tree_remove(d->partial, err);
    if (status == ST_OK) status = st_save_folder(d->partial, err);
    if (status != ST_OK) st_label_draft_drop(d);
    return status;
}

/* Once for all files of all drafts: a power cut must not leave a folder of empty ones under the final name. */
static st_status to_disk(const char *folder, st_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return failed(folder, "be opened", err);
    const bool ok = syncfs(fd) == 0;
    const st_status status = ok ? ST_OK : failed(folder, "be written", err);
    close(fd);
    return status;
}

static st_status swap_in(const st_label_draft *d, bool replaces, st_error *err)
{
    if (replaces && rename(d->final, d->old) != 0) return failed(d->final, "be moved away", err);
    if (rename(d->partial, d->final) == 0) return replaces ? st_label_tree_remove(d->old, err) : ST_OK;
    const st_status status = failed(d->partial, "be given its name", err);
    if (replaces && rename(d->old, d->final) != 0) return failed(d->old, "be put back", err);
    return status;
}

st_status st_label_draft_commit(st_label_draft *d, bool overwrite, bool *synced, bool *unchanged, st_error *err)
{
    const bool there = st_exists(d->final);
    *unchanged = false;
    st_status status = there ? st_label_tree_same(unchanged, d->partial, d->final, err) : ST_OK;
    if (status != ST_OK || *unchanged) return status;
    if (there && !overwrite)
        return st_fault(err, ST_ERR_IO,
                        "%s: there already, with other labels; --overwrite replaces them, a different output folder "
                        "keeps both", d->final);
    if (!*synced) status = to_disk(d->partial, err);
    *synced = status == ST_OK;
    if (status == ST_OK) status = swap_in(d, there, err);
    return status;
}

void st_label_draft_drop(st_label_draft *d)
{
    st_error err;
    if (d->partial && st_label_tree_remove(d->partial, &err) != ST_OK) errno = 0; /* the next run tries again */
    free(d->partial);
    free(d->old);
    free(d->final);
    *d = (st_label_draft){ 0 };
}
