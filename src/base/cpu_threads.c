/* cpu_threads.c: how many threads are worth starting: the CPUs in this process's affinity mask, lowered by the CPU quota of its
 * control group and of every group above it. In a container the number of CPUs of the machine says nothing: a quota of 2 on a machine
 * of 64 would have 64 threads take turns being stopped. Quotas are rounded up, so that none of the time granted is left unused. */
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cpu.h"
#include "base/mem.h"

#define PATH_ROOM 4096

/* One mounted control group hierarchy that can hold a CPU quota. */
typedef struct hierarchy {
    bool v2;
    char root[PATH_ROOM];  /* the group that the mount shows at its top, "/" outside containers */
    char mount[PATH_ROOM]; /* where it is mounted */
} hierarchy;

/* Whether `word` is one of the comma-separated words of list. */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; *p; p += strcspn(p, ",\n"), p += *p == ',') {
        const size_t length = strcspn(p, ",\n");
        if (length == n && memcmp(p, word, n) == 0) return true;
        if (p[length] == '\n') return false;
    }
    return false;
}

/* Spaces and tabs in mountinfo's paths are octal escapes. */
static void unescape(char *s)
{
    char *to = s;
    for (const char *from = s; *from; to++) {
        unsigned code;
        if (from[0] == '\\' && sscanf(from + 1, "%3o", &code) == 1 && strlen(from) >= 4) {
            *to = (char)code;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Reads one line of /proc/self/mountinfo: id parent major:minor root mount options [tags] - type source super-options. */
static bool parse_mount(hierarchy *h, const char *line)
{
    char type[64], super[512];
    const char *dash = strstr(line, " - ");
    if (!dash || sscanf(dash, " - %63s %*s %511s", type, super) != 2) return false;
    h->v2 = strcmp(type, "cgroup2") == 0;
    if (!h->v2 && (strcmp(type, "cgroup") != 0 || !has_word(super, "cpu"))) return false;
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", h->root, h->mount) != 2) return false;
    unescape(h->root);
    unescape(h->mount);
    return true;
}

/* The process's group in a hierarchy, from /proc/self/cgroup: lines "id:controllers:path", v2 is id 0 without controllers. */
static bool find_group(char *path, const char *cgroup_file, bool v2)
{
    char *line = NULL;
    size_t room = 0;
    bool ok = false;
    FILE *f = fopen(cgroup_file, "re");
    while (f && !ok && getline(&line, &room, f) > 0) {
        const char *controllers = strchr(line, ':');
        char *at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at) continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        const bool match = v2 ? strncmp(line, "0:", 2) == 0 && controllers[1] == '\0' : has_word(controllers + 1, "cpu");
        ok = match && snprintf(path, PATH_ROOM, "%s", at) < PATH_ROOM;
    }
    if (f) fclose(f);
    free(line); /* getline's */
    return ok;
}

/* First line of folder/name. */
static bool read_line(char *line, size_t size, const char *folder, const char *name)
{
    char path[PATH_ROOM + 64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool ok = fgets(line, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* CPUs that the group in `folder` may use; 0 = no limit of its own. */
static double group_quota(const char *folder, bool v2)
{
    char text[128], more[128];
    double quota = 0, period = 0;
    if (v2) {
        if (!read_line(text, sizeof text, folder, "cpu.max") || sscanf(text, "%lf %lf", &quota, &period) != 2) return 0;
    } else {
        if (!read_line(text, sizeof text, folder, "cpu.cfs_quota_us") || sscanf(text, "%lf", &quota) != 1) return 0;
        if (!read_line(more, sizeof more, folder, "cpu.cfs_period_us") || sscanf(more, "%lf", &period) != 1) return 0;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The smallest quota from the process's group up to the top of the mount; 0 = none. */
static double hierarchy_quota(const hierarchy *h, const char *group)
{
    char folder[2 * PATH_ROOM];
    const size_t n_root = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);
    /* The group's path counts from the real top. Where it does not lie below what is mounted, only the mount's top is visible. */
    const bool below = strncmp(group, h->root, n_root) == 0 && (group[n_root] == '/' || group[n_root] == '\0');
    const char *rest = below && strstr(group, "/..") == NULL ? group + n_root : "";
    snprintf(folder, sizeof folder, "%s%s", h->mount, strcmp(rest, "/") == 0 ? "" : rest);
    const size_t n_mount = strlen(h->mount);
    double least = 0;
    for (;;) {
        const double quota = group_quota(folder, h->v2);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= n_mount || !slash) return least;
        *slash = '\0';
    }
}

/* The quota in CPUs over all hierarchies; 0 = none. The files are arguments so that tests can bring their own. */
static double cpu_quota(const char *cgroup_file, const char *mountinfo_file)
{
    double least = 0;
    char *line = NULL;
    size_t room = 0;
    hierarchy *h = st_malloc(sizeof *h);
    char *group = st_malloc(PATH_ROOM);
    FILE *f = h && group ? fopen(mountinfo_file, "re") : NULL;
    while (f && getline(&line, &room, f) > 0) {
        if (!parse_mount(h, line) || !find_group(group, cgroup_file, h->v2)) continue;
        const double quota = hierarchy_quota(h, group);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
    if (f) fclose(f);
    free(line); /* getline's */
    st_free(group);
    st_free(h);
    return least;
}

/* CPUs in the affinity mask; machines may have more than a cpu_set_t holds, so the mask grows until the kernel is content. */
static unsigned affinity_count(void)
{
    for (size_t n_cpus = CPU_SETSIZE; n_cpus <= (size_t)1 << 20; n_cpus *= 2) {
        const size_t n_bytes = CPU_ALLOC_SIZE(n_cpus);
        cpu_set_t *set = st_calloc(1, n_bytes);
        const int count = set && sched_getaffinity(0, n_bytes, set) == 0 ? CPU_COUNT_S(n_bytes, set) : 0;
        st_free(set);
        if (count > 0) return (unsigned)count;
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

static unsigned lowered(unsigned n_cpus, double quota)
{
    if (quota <= 0 || quota >= (double)n_cpus) return n_cpus;
    const unsigned whole = (unsigned)quota;
    return quota > (double)whole ? whole + 1 : whole; /* quota > 0: at least 1 */
}

unsigned st_cpu_default_threads(void)
{
    return lowered(affinity_count(), cpu_quota("/proc/self/cgroup", "/proc/self/mountinfo"));
}
