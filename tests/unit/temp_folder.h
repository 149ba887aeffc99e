/* temp_folder.h: a folder of its own for each test that touches files, gone afterwards. Failures here end the test program: they are the
 * machine's, not the product's. */
#ifndef TEMP_FOLDER_H
#define TEMP_FOLDER_H

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct temp_folder {
    char path[256];
} temp_folder;

_Noreturn static inline void temp_die(const char *what)
{
    perror(what);
    exit(2);
}

static inline void temp_folder_make(temp_folder *t)
{
    const char *root = getenv("TMPDIR");
    snprintf(t->path, sizeof t->path, "%s/stencil-test-XXXXXX", root && strlen(root) < 200 ? root : "/tmp");
    if (!mkdtemp(t->path)) temp_die(t->path);
}

static inline int temp_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void temp_folder_remove(temp_folder *t)
{
    if (nftw(t->path, temp_remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0) temp_die(t->path);
}

/* folder/name; the caller frees it. */
static inline char *temp_path(const temp_folder *t, const char *name)
{
    const size_t n_folder = strlen(t->path), n_name = strlen(name);
    char *path = malloc(n_folder + n_name + 2);
    if (!path) temp_die("malloc");
    memcpy(path, t->path, n_folder);
    path[n_folder] = '/';
    memcpy(path + n_folder + 1, name, n_name + 1);
    return path;
}

/* Writes folder/name; folders in name are made. */
static inline void temp_write(const temp_folder *t, const char *name, const void *bytes, size_t n)
{
    char *path = temp_path(t, name);
    for (char *slash = strchr(path + strlen(t->path) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) temp_die(path);
    free(path);
}

static inline void temp_write_text(const temp_folder *t, const char *name, const char *text)
{
    temp_write(t, name, text, strlen(text));
}

/* Entries of the folder, hidden ones too, without "." and "..". */
static inline unsigned temp_count(const temp_folder *t)
{
    unsigned n = 0;
    DIR *dir = opendir(t->path);
    if (!dir) temp_die(t->path);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

#endif
