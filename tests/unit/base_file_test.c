/* base_file_test.c: files in and out: what is refused, and that nothing half-written is ever left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/file.h"
#include "base/mem.h"
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

/* The whole of folder/name as text, to be freed. */
static char *content(const temp_folder *t, const char *name)
{
    char *path = temp_path(t, name), *text = NULL;
    size_t n;
    st_error err = { 0 };
    if (st_file_read(&text, &n, path, 1 << 20, &err) != ST_OK) fail_msg("%s", err.message);
    free(path);
    return text;
}

static void check_content(const temp_folder *t, const char *name, const char *expected)
{
    char *text = content(t, name);
    assert_string_equal(text, expected);
    st_free(text);
}

/* ---------------------------------------------------------------- in */

static void reads_and_maps_the_bytes(void **state)
{
    temp_folder *t = *state;
    temp_write(t, "bytes", "a\0b", 3);
    char *path = temp_path(t, "bytes"), *data;
    size_t n;
    st_map map;
    assert_int_equal(st_file_read(&data, &n, path, 3, NULL), ST_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(data, "a\0b", 4); /* with a NUL after it */
    st_free(data);
    assert_int_equal(st_map_open(&map, path, NULL), ST_OK);
    assert_int_equal(map.n, 3);
    assert_memory_equal(map.data, "a\0b", 3);
    st_map_close(&map);
    assert_null(map.data);
    st_map_close(&map);
    st_map_close(NULL);
    free(path);
}

static void empty_files_are_fine(void **state)
{
    temp_folder *t = *state;
    temp_write(t, "empty", "", 0);
    char *path = temp_path(t, "empty"), *data;
    size_t n = 7;
    st_map map;
    assert_int_equal(st_file_read(&data, &n, path, 0, NULL), ST_OK);
    assert_int_equal(n, 0);
    assert_string_equal(data, "");
    st_free(data);
    assert_int_equal(st_map_open(&map, path, NULL), ST_OK);
    assert_null(map.data);
    assert_int_equal(map.n, 0);
    st_map_drop(&map, map.data, 0);
    st_map_close(&map);
    free(path);
}

static void the_cap_is_kept(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "long", "12345");
    char *path = temp_path(t, "long"), *data = (char *)1;
    size_t n = 7;
    st_error err = { 0 };
    assert_int_equal(st_file_read(&data, &n, path, 4, &err), ST_ERR_LIMIT);
    assert_null(data);
    assert_int_equal(n, 0);
    assert_non_null(strstr(err.message, "5 bytes"));
    assert_non_null(strstr(err.message, "at most 4"));
    free(path);
}

/* Neither call may accept, crash or wait. */
static void refused(const char *path, const char *why)
{
    char *data = (char *)1;
    size_t n;
    st_map map;
    st_error err = { 0 };
    alarm(20); /* a pipe nobody writes to would wait for ever */
    assert_int_equal(st_file_read(&data, &n, path, 1000, &err), ST_ERR_IO);
    assert_null(data);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, why));
    memset(&err, 0, sizeof err);
    assert_int_equal(st_map_open(&map, path, &err), ST_ERR_IO);
    assert_null(map.data);
    assert_non_null(strstr(err.message, why));
    alarm(0);
}

static void what_is_no_file_is_refused(void **state)
{
    temp_folder *t = *state;
    char *missing = temp_path(t, "missing"), *fifo = temp_path(t, "fifo"), *loop = temp_path(t, "loop");
    assert_int_equal(mkfifo(fifo, 0666), 0);
    assert_int_equal(symlink("loop", loop), 0);
    refused(missing, "No such file");
    refused(t->path, "got a folder");
    refused(fifo, "got a pipe or device");
    refused("/dev/zero", "got a pipe or device");
    refused(loop, "symbolic links");
    refused("", "No such file");
    free(missing);
    free(fifo);
    free(loop);
}

static void existence_is_told_apart(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "here", "x");
    char *here = temp_path(t, "here"), *missing = temp_path(t, "missing");
    assert_true(st_file_exists(here));
    assert_false(st_dir_exists(here));
    assert_false(st_file_exists(t->path));
    assert_true(st_dir_exists(t->path));
    assert_false(st_file_exists(missing));
    assert_false(st_dir_exists(missing));
    free(here);
    free(missing);
}

/* Resident pages of a map, from smaps: mincore would tell of the page cache, not of this process. */
static size_t n_resident(const st_map *map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n_pages = (map->n + page - 1) / page;
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512], start[40];
    size_t kilobytes = SIZE_MAX;
    bool inside = false;
    snprintf(start, sizeof start, "%lx-", (unsigned long)(uintptr_t)map->data);
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, start, strlen(start)) == 0) inside = true;
        if (inside && sscanf(line, "Rss: %zu kB", &kilobytes) == 1) break;
    }
    if (f) fclose(f);
    return kilobytes == SIZE_MAX ? n_pages + 1 : kilobytes * 1024 / page;
}

static void dropped_pages_come_back(void **state)
{
    temp_folder *t = *state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 64 * page + 10;
    unsigned char *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i * 7 + i / page);
    temp_write(t, "big", bytes, n);
    char *path = temp_path(t, "big");
    st_map map;
    assert_int_equal(st_map_open(&map, path, NULL), ST_OK);
    assert_memory_equal(map.data, bytes, n);
    assert_int_equal(n_resident(&map), 65);

    st_map_drop(&map, map.data + 1, 2 * page); /* only the page that lies wholly inside */
    assert_int_equal(n_resident(&map), 64);
    st_map_drop(&map, map.data + 1, page - 1); /* none */
    assert_int_equal(n_resident(&map), 64);
    st_map_drop(&map, map.data + 64 * page, 10); /* the last, partial page */
    assert_int_equal(n_resident(&map), 63);
    st_map_drop(&map, map.data, n);
    assert_int_equal(n_resident(&map), 0);
    assert_memory_equal(map.data, bytes, n);

    st_map_drop(&map, map.data + 1, n); /* not inside: nothing is done */
    st_map_drop(&map, bytes, 1);
    assert_int_equal(n_resident(&map), 65);
    st_map_close(&map);
    free(path);
    free(bytes);
}

static void reading_survives_every_failed_allocation(void **state)
{
    temp_folder *t = *state;
    temp_write_text(t, "file", "text");
    char *path = temp_path(t, "file"), *data = NULL;
    size_t n;
    uint64_t k = 1;
    for (st_status status = ST_ERR_NOMEM; status != ST_OK; k++) {
        st_error err = { 0 };
        st_mem_fail_after(k);
        status = st_file_read(&data, &n, path, 10, &err);
        st_mem_fail_after(0);
        if (status == ST_OK) break;
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_null(data);
        assert_non_null(strstr(err.message, path));
        assert_true(k < 10);
    }
    assert_true(k > 1);
    assert_string_equal(data, "text");
    st_free(data);
    free(path);
}

/* ---------------------------------------------------------------- out */

static void a_file_appears_when_committed(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    st_out out;
    assert_int_equal(st_out_open(&out, path, NULL), ST_OK);
    fputs("new", out.f);
    assert_false(st_file_exists(path));
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    check_content(t, "out", "new");
    assert_int_equal(temp_count(t), 1);
    st_out_abort(&out);
    check_content(t, "out", "new");
    free(path);
}

static void an_aborted_file_leaves_the_old_one(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    temp_write_text(t, "out", "old");
    st_out out;
    assert_int_equal(st_out_open(&out, path, NULL), ST_OK);
    fputs("new", out.f);
    fflush(out.f);
    check_content(t, "out", "old");
    st_out_abort(&out);
    check_content(t, "out", "old");
    assert_int_equal(temp_count(t), 1);
    st_out_abort(&out);
    st_out zero = { 0 };
    st_out_abort(&zero);
    st_out_abort(NULL);
    assert_int_equal(st_out_commit(&zero, NULL), ST_ERR_INTERNAL);
    free(path);
}

static void two_writers_do_not_mix(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    st_out a, b;
    assert_int_equal(st_out_open(&a, path, NULL), ST_OK);
    assert_int_equal(st_out_open(&b, path, NULL), ST_OK);
    fputs("first", a.f);
    fputs("second", b.f);
    assert_int_equal(st_out_commit(&a, NULL), ST_OK);
    check_content(t, "out", "first");
    assert_int_equal(st_out_commit(&b, NULL), ST_OK);
    check_content(t, "out", "second");
    assert_int_equal(temp_count(t), 1);
    free(path);
}

static void long_names_and_bare_names_work(void **state)
{
    temp_folder *t = *state;
    char name[256];
    memset(name, 'n', 255); /* as long as a name can be */
    name[255] = '\0';
    char *path = temp_path(t, name), *cwd = getcwd(NULL, 0);
    st_out out;
    assert_int_equal(st_out_open(&out, path, NULL), ST_OK);
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    assert_int_equal(chdir(t->path), 0);
    assert_int_equal(st_out_open(&out, "bare", NULL), ST_OK);
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    assert_int_equal(chdir(cwd), 0);
    assert_int_equal(temp_count(t), 2);
    free(path);
    free(cwd);
}

static void permissions_and_links_are_kept(void **state)
{
    temp_folder *t = *state;
    struct stat st;
    const mode_t mask = umask(027);
    temp_write_text(t, "real/file", "old");
    char *real = temp_path(t, "real/file"), *link = temp_path(t, "link"), *fresh = temp_path(t, "fresh");
    assert_int_equal(chmod(real, 0604), 0);
    assert_int_equal(symlink("real/file", link), 0);
    st_out out;
    assert_int_equal(st_out_open(&out, link, NULL), ST_OK);
    fputs("new", out.f);
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    check_content(t, "real/file", "new");
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
    assert_int_equal(st_out_open(&out, fresh, NULL), ST_OK);
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    assert_int_equal(stat(fresh, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    umask(mask);
    free(real);
    free(link);
    free(fresh);
}

static void not_writable(const char *path, const char *why)
{
    st_out out;
    st_error err = { 0 };
    alarm(20);
    assert_int_equal(st_out_open(&out, path, &err), ST_ERR_IO);
    alarm(0);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, why));
    assert_null(out.f);
    assert_null(out.path);
    assert_null(out.tmp);
}

static void what_cannot_be_written_is_refused(void **state)
{
    temp_folder *t = *state;
    char *lost = temp_path(t, "missing/out"), *fifo = temp_path(t, "fifo");
    temp_write_text(t, "file", "x");
    char *below = temp_path(t, "file/out");
    assert_int_equal(mkfifo(fifo, 0666), 0);
    not_writable(lost, "No such file");
    not_writable(t->path, "got a folder");
    not_writable(below, "Not a directory");
    not_writable(fifo, "No such device"); /* nobody reads from it */
    st_out out;
    assert_int_equal(st_out_open(&out, "", NULL), ST_ERR_INVALID_ARG);
    assert_int_equal(temp_count(t), 2);
    free(lost);
    free(fifo);
    free(below);
}

/* Renaming over /dev/null or /dev/stdout would be a disaster: devices are written to and stay what they are. */
static void devices_are_written_through(void **state)
{
    (void)state;
    st_out out;
    st_error err = { 0 };
    struct stat st;
    assert_int_equal(st_out_open(&out, "/dev/null", NULL), ST_OK);
    fputs("gone", out.f);
    assert_int_equal(st_out_commit(&out, NULL), ST_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(st_out_open(&out, "/dev/full", NULL), ST_OK);
    fputs("no room", out.f);
    assert_int_equal(st_out_commit(&out, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "No space left"));
}

static void a_name_taken_by_a_folder_leaves_nothing(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    st_out out;
    st_error err = { 0 };
    assert_int_equal(st_out_open(&out, path, NULL), ST_OK);
    fputs("new", out.f);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(st_out_commit(&out, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(temp_count(t), 1);
    assert_true(st_dir_exists(path));
    free(path);
}

/* A disk that is full: a child may write 8 KiB per file only. With and without a flush before the commit. */
static void a_full_disk_leaves_nothing(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    temp_write_text(t, "out", "old");
    for (int flush = 0; flush < 2; flush++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const struct rlimit limit = { 8192, 8192 };
            st_out out;
            st_error err = { 0 };
            signal(SIGXFSZ, SIG_IGN);
            if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || st_out_open(&out, path, &err) != ST_OK) _exit(2);
            for (int i = 0; i < 5000; i++) fputs("0123456789", out.f);
            if (flush) fflush(out.f);
            _exit(st_out_commit(&out, &err) == ST_ERR_IO && strstr(err.message, "cannot write") ? 0 : 1);
        }
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
        check_content(t, "out", "old");
        assert_int_equal(temp_count(t), 1);
    }
    free(path);
}

static void writing_survives_every_failed_allocation(void **state)
{
    temp_folder *t = *state;
    char *path = temp_path(t, "out");
    uint64_t k = 1;
    for (st_status status = ST_ERR_NOMEM; status != ST_OK; k++) {
        st_out out;
        st_mem_fail_after(k);
        status = st_out_open(&out, path, NULL);
        if (status == ST_OK) status = st_out_commit(&out, NULL);
        st_mem_fail_after(0);
        assert_int_equal(temp_count(t), status == ST_OK);
        assert_true(k < 20);
    }
    assert_true(k > 3); /* two allocations at least were made to fail */
    free(path);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(reads_and_maps_the_bytes),
        WITH_FOLDER(empty_files_are_fine),
        WITH_FOLDER(the_cap_is_kept),
        WITH_FOLDER(what_is_no_file_is_refused),
        WITH_FOLDER(existence_is_told_apart),
        WITH_FOLDER(dropped_pages_come_back),
        WITH_FOLDER(reading_survives_every_failed_allocation),
        WITH_FOLDER(a_file_appears_when_committed),
        WITH_FOLDER(an_aborted_file_leaves_the_old_one),
        WITH_FOLDER(two_writers_do_not_mix),
        WITH_FOLDER(long_names_and_bare_names_work),
        WITH_FOLDER(permissions_and_links_are_kept),
        WITH_FOLDER(what_cannot_be_written_is_refused),
        WITH_FOLDER(devices_are_written_through),
        WITH_FOLDER(a_name_taken_by_a_folder_leaves_nothing),
        WITH_FOLDER(a_full_disk_leaves_nothing),
        WITH_FOLDER(writing_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
