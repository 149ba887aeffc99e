/* base_cpu_test.c: CPU levels and ST_CPU_MASK. The mask is read once per process, so each case runs in a child of its own; the parent
 * never asks before it has forked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cpu.h"

typedef struct answer {
    st_cpu_level best;
    int supports[ST_CPU_N_LEVELS];
    char error[600]; /* "" = none */
} answer;

/* What a process that was started with this mask (NULL = none) finds. */
static answer ask(const char *mask)
{
    int ends[2];
    answer a;
    memset(&a, 0, sizeof a);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (mask) setenv("ST_CPU_MASK", mask, 1);
        else unsetenv("ST_CPU_MASK");
        a.best = st_cpu_best();
        for (int i = 0; i < ST_CPU_N_LEVELS; i++) a.supports[i] = st_cpu_supports((st_cpu_level)i);
        if (st_cpu_mask_error()) snprintf(a.error, sizeof a.error, "%s", st_cpu_mask_error());
        _exit(write(ends[1], &a, sizeof a) == sizeof a ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &a, sizeof a), sizeof a);
    close(ends[0]);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    return a;
}

/* The flags line of /proc/cpuinfo: the kernel's own view of CPU and saved state. -1 when there is none. */
static int kernel_says(const char *flag)
{
    char line[16384], padded[64];
    int found = -1;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && found < 0 && fgets(line, sizeof line, f)) {
        if (strncmp(line, "flags", 5) != 0) continue;
        line[strcspn(line, "\n")] = ' ';
        snprintf(padded, sizeof padded, " %s ", flag);
        found = strstr(line, padded) != NULL;
    }
    if (f) fclose(f);
    return found;
}

static void levels_agree_with_the_kernel(void **state)
{
    (void)state;
    const answer a = ask(NULL);
    assert_string_equal(a.error, "");
    assert_true(a.supports[ST_CPU_REF]);
    assert_true(a.supports[a.best]);
    if (kernel_says("fpu") < 0) return; /* not an x86 */
    const int avx2 = kernel_says("avx2") && kernel_says("fma") && kernel_says("f16c");
    const int avx512 = avx2 && kernel_says("avx512f") && kernel_says("avx512bw") && kernel_says("avx512dq") &&
                       kernel_says("avx512vl");
    assert_int_equal(a.supports[ST_CPU_AVX2], avx2);
    assert_int_equal(a.supports[ST_CPU_AVX512], avx512);
    const int vnni = avx512 && kernel_says("avx512_vnni"), amx = vnni && kernel_says("amx_tile") && kernel_says("amx_int8");
    const int avx_vnni = avx2 && kernel_says("avx_vnni");
    assert_int_equal(a.supports[ST_CPU_AVX2_VNNI], avx_vnni);
    assert_int_equal(a.supports[ST_CPU_AVX512_VNNI], vnni);
    assert_true(a.supports[ST_CPU_AMX] <= amx); /* the operating system may refuse the tiles */
    assert_int_equal(a.supports[ST_CPU_NEON], 0);
    assert_int_equal(a.supports[ST_CPU_NEON_DOT], 0);
    assert_int_equal(a.best, a.supports[ST_CPU_AMX] ? ST_CPU_AMX : vnni ? ST_CPU_AVX512_VNNI : avx512 ? ST_CPU_AVX512 : avx_vnni ? ST_CPU_AVX2_VNNI : avx2 ? ST_CPU_AVX2 : ST_CPU_REF);
}

static void the_mask_lowers_the_level(void **state)
{
    (void)state;
    const answer plain = ask(NULL);
    for (int level = 0; level < ST_CPU_N_LEVELS; level++) {
        answer a = ask(st_cpu_level_name((st_cpu_level)level));
        if (level != ST_CPU_AMX && plain.supports[level]) assert_false(a.supports[ST_CPU_AMX]); /* its tiles are not asked for */
        a.supports[ST_CPU_AMX] = plain.supports[ST_CPU_AMX];
        assert_memory_equal(a.supports, plain.supports, sizeof a.supports); /* what the CPU can do is not masked */
        if (plain.supports[level]) {
            assert_int_equal(a.best, level);
            assert_string_equal(a.error, "");
        } else {
            assert_int_equal(a.best, plain.best);
            assert_non_null(strstr(a.error, "cannot run"));
            assert_non_null(strstr(a.error, st_cpu_level_name((st_cpu_level)level)));
        }
    }
}

static void a_wrong_mask_is_ignored_and_told(void **state)
{
    (void)state;
    const answer plain = ask(NULL);
    const char *const wrong[] = { "AVX2", "avx", "avx2 ", "ref,avx2", "\x1b[2J", "none" };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const answer a = ask(wrong[i]);
        assert_int_equal(a.best, plain.best);
        assert_non_null(strstr(a.error, "expected ref, avx2, avx2-vnni, avx512, avx512-vnni, amx, neon or neon-dot"));
        assert_null(strchr(a.error, '\x1b'));
    }
    const answer empty = ask("");
    assert_int_equal(empty.best, plain.best);
    assert_string_equal(empty.error, "");
}

static void names_are_what_the_mask_takes(void **state)
{
    (void)state;
    assert_string_equal(st_cpu_level_name(ST_CPU_REF), "ref");
    assert_string_equal(st_cpu_level_name(ST_CPU_AVX2), "avx2");
    assert_string_equal(st_cpu_level_name(ST_CPU_AVX512), "avx512");
    assert_string_equal(st_cpu_level_name(ST_CPU_NEON), "neon");
    assert_string_equal(st_cpu_level_name(ST_CPU_NEON_DOT), "neon-dot");
    assert_string_equal(st_cpu_level_name(ST_CPU_N_LEVELS), "unknown");
    assert_false(st_cpu_supports(ST_CPU_N_LEVELS));
    assert_false(st_cpu_supports((st_cpu_level)-1));
}

static void the_cpu_has_a_name_of_one_line(void **state)
{
    (void)state;
    const char *name = st_cpu_name();
    assert_true(strlen(name) > 0);
    assert_null(strchr(name, '\n'));
    assert_true(name[0] != ' ');
    assert_ptr_equal(name, st_cpu_name());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_agree_with_the_kernel),
        cmocka_unit_test(the_mask_lowers_the_level),
        cmocka_unit_test(a_wrong_mask_is_ignored_and_told),
        cmocka_unit_test(names_are_what_the_mask_takes), /* from here on this process has asked, too */
        cmocka_unit_test(the_cpu_has_a_name_of_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
