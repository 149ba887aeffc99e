/* base_cpu_threads_test.c: thread counts from affinity and control group quotas. Includes the source, to give it control group files of our own. */
#include "base/cpu_threads.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>
#include "temp_folder.h"

static int set_up(void **state)
{
    static temp_folder folder;
    temp_folder_make(&folder);
    *state = &folder;
    return 0;
}

static int tear_down(void **state)
{
    temp_folder_remove(*state);
    return 0;
}

/* The quota when /proc/self/cgroup and mountinfo say so; "%s" in mountinfo is the test's folder. */
static double quota(const temp_folder *t, const char *cgroup, const char *mountinfo)
{
    char text[2048] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
    for (const char *p = mountinfo; *p; p++) {
        const size_t n = strlen(text);
        if (*p == '@') snprintf(text + n, sizeof text - n, "%s", t->path);
        else snprintf(text + n, sizeof text - n, "%c", *p);
    }
    temp_write_text(t, "mountinfo", text);
    temp_write_text(t, "cgroup", cgroup);
    char *a = temp_path(t, "cgroup"), *b = temp_path(t, "mountinfo");
    const double result = cpu_quota(a, b);
    free(a);
    free(b);
    return result;
}

#define V2 "30 22 0:27 / @/cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void v2_takes_the_smallest_on_the_way_up(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "cg/a/b/cpu.max", "max 100000\n");
    assert_true(quota(t, "0::/a/b\n", V2) == 0);
    temp_write_text(t, "cg/a/cpu.max", "150000 100000\n");
    assert_true(quota(t, "0::/a/b\n", V2) == 1.5);
    temp_write_text(t, "cg/a/b/cpu.max", "300000 100000\n");
    assert_true(quota(t, "0::/a/b\n", V2) == 1.5);
    temp_write_text(t, "cg/a/b/cpu.max", "20000 40000\n");
    assert_true(quota(t, "0::/a/b\n", V2) == 0.5);
    assert_true(quota(t, "0::/a\n", V2) == 1.5);
    assert_true(quota(t, "0::/\n", V2) == 0);
    temp_write_text(t, "cg/cpu.max", "400000 100000\n"); /* a container's own top */
    assert_true(quota(t, "0::/\n", V2) == 4);
}

static void v1_reads_quota_and_period(void **state)
{
    temp_folder *t = *state;
    const char *mount = "33 22 0:30 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                        "34 22 0:31 / @/set rw - cgroup cgroup rw,cpuset\n";
    const char *groups = "5:cpuset:/other\n4:cpu,cpuacct:/x\n0::/nowhere\n";
    temp_write_text(t, "cpu/x/cpu.cfs_quota_us", "-1\n");
    temp_write_text(t, "cpu/x/cpu.cfs_period_us", "100000\n");
    assert_true(quota(t, groups, mount) == 0);
    temp_write_text(t, "cpu/x/cpu.cfs_quota_us", "250000\n");
    assert_true(quota(t, groups, mount) == 2.5);
    temp_write_text(t, "cpu/x/cpu.cfs_period_us", "0\n");
    assert_true(quota(t, groups, mount) == 0);
    temp_write_text(t, "set/other/cpu.cfs_quota_us", "1\n"); /* not the cpu hierarchy */
    temp_write_text(t, "set/other/cpu.cfs_period_us", "100\n");
    assert_true(quota(t, groups, mount) == 0);
}

static void the_mount_may_show_only_a_part(void **state)
{
    temp_folder *t = *state;
    const char *mount = "33 22 0:30 /docker/id @/cg ro - cgroup2 cgroup2 rw\n";
    temp_write_text(t, "cg/cpu.max", "200000 100000\n");
    temp_write_text(t, "cg/sub/cpu.max", "100000 100000\n");
    assert_true(quota(t, "0::/docker/id\n", mount) == 2);
    assert_true(quota(t, "0::/docker/id/sub\n", mount) == 1);
    assert_true(quota(t, "0::/docker/idle\n", mount) == 2); /* another group: only the top is known */
    assert_true(quota(t, "0::/../sub\n", mount) == 2);
    assert_true(quota(t, "0::/docker/id/../../..\n", mount) == 2);
}

static void mount_paths_are_unescaped(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "a b/g/cpu.max", "300000 100000\n");
    assert_true(quota(t, "0::/g\n", "33 22 0:30 / @/a\\040b rw - cgroup2 cgroup2 rw\n") == 3);
}

static void several_hierarchies_give_the_smallest(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "cg/g/cpu.max", "300000 100000\n");
    temp_write_text(t, "cpu/g/cpu.cfs_quota_us", "200000\n");
    temp_write_text(t, "cpu/g/cpu.cfs_period_us", "100000\n");
    assert_true(quota(t, "1:cpu:/g\n0::/g\n", V2 "33 22 0:30 / @/cpu rw - cgroup cgroup rw,cpu\n") == 2);
}

static void nonsense_is_no_quota(void **state)
{
    temp_folder *t = *state;
    const char *const files[] = { "", "\n", "max", "-5 100000", "5", "a b", "nan nan", "100000 -1" };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        temp_write_text(t, "cg/g/cpu.max", files[i]);
        assert_true(quota(t, "0::/g\n", V2) == 0);
    }
    assert_true(quota(t, "", V2) == 0);
    assert_true(quota(t, "no colons\n:::\n0:\n", V2) == 0);
    assert_true(quota(t, "0::/g\n", " - \n - cgroup2\nx - cgroup2 y z\n") == 0);
    assert_true(cpu_quota("/nonexistent", "/nonexistent") == 0);
}

static void counts_are_rounded_up_and_never_zero(void **state)
{
    (void)state;
    assert_int_equal(lowered(8, 0), 8);
    assert_int_equal(lowered(8, 0.1), 1);
    assert_int_equal(lowered(8, 1), 1);
    assert_int_equal(lowered(8, 1.5), 2);
    assert_int_equal(lowered(8, 7.9), 8);
    assert_int_equal(lowered(8, 100), 8);
    assert_int_equal(lowered(8, 1e300), 8);
    assert_int_equal(lowered(1, 0.5), 1);
}

/* A child bound to one CPU starts one thread. */
static void affinity_is_respected(void **state)
{
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    assert_in_range(st_cpu_default_threads(), 1, CPU_COUNT(&allowed));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        size_t cpu = 0;
        cpu_set_t one;
        while (!CPU_ISSET(cpu, &allowed)) cpu++;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(2);
        _exit(affinity_count() == 1 && st_cpu_default_threads() == 1 ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(v2_takes_the_smallest_on_the_way_up),
        WITH_FOLDER(v1_reads_quota_and_period),
        WITH_FOLDER(the_mount_may_show_only_a_part),
        WITH_FOLDER(mount_paths_are_unescaped),
        WITH_FOLDER(several_hierarchies_give_the_smallest),
        WITH_FOLDER(nonsense_is_no_quota),
        cmocka_unit_test(counts_are_rounded_up_and_never_zero),
        cmocka_unit_test(affinity_is_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
