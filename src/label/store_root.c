/* store_root.c: root.json, where the pictures of a job lie. Seen from the job's folder, so that both can be moved
 * together; the one file of a job that is about this machine.
 */
#include "label/store.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "front/fault.h"
#include "front/report.h"
#include "front/save.h"
#include "label/bytes.h"

#define MAX_ROOT_BYTES ((uint64_t)1 << 20)

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

static char *real(bool *no_memory, const char *path)
{
    char *found = realpath(path, NULL);
    *no_memory |= !found && errno == ENOMEM;
    return found;
}

st_status st_label_root_write(const char *folder, const char *root, st_error *err)
{
    bool no_memory = false;
    char *from = real(&no_memory, folder), *to = real(&no_memory, root);
    char *seen = from && to ? relative(from, to) : no_memory ? NULL : strdup(root);
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

/* A root that cannot be read is one that is not known. */
st_status st_label_root_read(char **root, const char *folder, st_error *err)
{
    unsigned char *text = NULL;
    size_t n = 0;
    bool no_memory = false;
    st_error why;
    char *path = st_label_path(folder, "root.json"), *seen = NULL;
    *root = NULL;
    if (path) no_memory = st_label_bytes_read(&text, &n, path, path, MAX_ROOT_BYTES, &why) == ST_ERR_NOMEM;
    json_t *doc = text ? st_label_json_read(&no_memory, (const char *)text, n, 0, NULL) : NULL;
    errno = 0;
    if (doc) seen = st_label_name_from_json(json_object_get(doc, "root"));
    if (seen) *root = seen[0] == '/' ? strdup(seen) : st_label_path(folder, seen);
    no_memory |= !path || (doc && !*root && errno == ENOMEM);
    free(seen);
    json_decref(doc);
    free(text);
    free(path);
    return no_memory ? st_fault(err, ST_ERR_NOMEM, "%s: out of memory", folder) : ST_OK;
}
