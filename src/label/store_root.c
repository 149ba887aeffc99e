/* store_root.c: root.json, where the pictures of a job lie. Seen from the job's folder, so that both can be moved
 * together; the one file of a job that is about this machine.
 */
#include "label/store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/report.h"
#include "front/save.h"

/* From the real folder `from` to the real path `to`; from malloc. */
static char *relative(const char *from, const char *to)
{
    size_t common = 0, up = 0;
    for (size_t i = 0;; i++) {
        const bool from_ends = from[i] == '/' || !from[i], to_ends = to[i] == '/' || !to[i];
        if (from_ends && to_ends) common = i;
        if (!from[i] || from[i] != to[i]) break;
    }
    const char *rest = to + common + (to[common] == '/');
    for (const char *p = from + common; *p; p++) up += *p == '/' && p[1];
    char *path = malloc(3 * up + strlen(rest) + 2);
    if (!path) return NULL;
    size_t n = 0;
    for (size_t i = 0; i < up; i++, n += 3) memcpy(path + n, "../", 3);
    memcpy(path + n, rest, strlen(rest) + 1);
    if (!*rest && n) path[n - 1] = '\0';
    if (!path[0]) memcpy(path, ".", 2);
    return path;
}

st_status st_label_root_write(const char *folder, const char *root, st_error *err)
{
    char *from = realpath(folder, NULL), *to = realpath(root, NULL);
    char *seen = from && to ? relative(from, to) : strdup(root);
    char *text = seen ? st_json_line(json_pack("{so}", "root", st_label_name_to_json(seen))) : NULL;
    char *path = st_label_path(folder, "root.json");
    const st_status status = path && text ? st_save_text(path, text, strlen(text), err)
                                          : st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder);
    free(from);
    free(to);
    free(seen);
    free(text);
    free(path);
    return status;
}

char *st_label_root_read(const char *folder)
{
    char *path = st_label_path(folder, "root.json"), *root = NULL;
    json_t *doc = path ? json_load_file(path, 0, NULL) : NULL;
    char *seen = st_label_name_from_json(json_object_get(doc, "root"));
    if (seen) root = seen[0] == '/' ? strdup(seen) : st_label_path(folder, seen);
    free(seen);
    json_decref(doc);
    free(path);
    return root;
}
