/* sources_test.c: which pictures a job has: folders, files, patterns, lists; names below the common root; shards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "label/sources.h"
#include "unit/temp_folder.h"

typedef struct finding {
    temp_folder t;
    st_label_sources s;
    st_error err;
    st_status status;
} finding;

/* Sources are paths below the folder; "@..." is a list in it. */
static void look(finding *f, const char *root, const char *except, const char *a, const char *b)
{
    const char *const given[] = { a, b };
    char *paths[4] = { NULL };
    size_t n = 0;
    for (size_t i = 0; i < 2 && given[i]; i++) {
        char *path = temp_path(&f->t, given[i][0] == '@' ? given[i] + 1 : given[i]);
        if (given[i][0] == '@') {
            char *list = malloc(strlen(path) + 2);
            list[0] = '@';
            memcpy(list + 1, path, strlen(path) + 1);
            free(path);
            path = list;
        }
        paths[n++] = path;
    }
    paths[2] = root ? temp_path(&f->t, root) : NULL;
    paths[3] = except ? temp_path(&f->t, except) : NULL;
    const st_label_source_request request = { (const char *const *)paths, n, paths[2], paths[3] };
    st_label_sources_free(&f->s);
    f->err = (st_error){ ST_OK, "" };
    f->status = st_label_sources_find(&f->s, &request, &f->err);
    for (size_t i = 0; i < 4; i++) free(paths[i]);
}

/* The names, and where they begin. */
static void expect(finding *f, const char *root, const char *const *names, size_t n)
{
    if (f->status != ST_OK) fail_msg("%s", f->err.message);
    char *path = *root ? temp_path(&f->t, root) : strdup(f->t.path), *real = realpath(path, NULL);
    assert_string_equal(f->s.root, real);
    free(path);
    free(real);
    for (size_t i = 0; i < f->s.n && i < n; i++) assert_string_equal(f->s.names[i], names[i]);
    assert_int_equal(f->s.n, n);
}
#define EXPECT(f, root, ...)                                                                                           \
    do {                                                                                                               \
        static const char *const names_[] = { __VA_ARGS__ };                                                           \
        expect(f, root, names_, sizeof names_ / sizeof names_[0]);                                                     \
    } while (0)

static int begin(void **state)
{
    static const char *const files[] = { "a/x.jpg", "a/X.PNG", "a/deep/er/y.tiff", "a/notes.txt", "a/.hidden.jpg", "a/.cache/z.jpg",
                                         "b/x.jpg", "b/noext", "ab/x.jpg", "a/out/p.png" };
    finding *f = calloc(1, sizeof *f);
    temp_folder_make(&f->t);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) temp_write_text(&f->t, files[i], "");
    *state = f;
    return 0;
}

static int end(void **state)
{
    finding *f = *state;
    st_label_sources_free(&f->s);
    temp_folder_remove(&f->t);
    free(f);
    return 0;
}

static void test_folders(void **state)
{
    finding *f = *state;
    look(f, NULL, "a/out", "a", NULL);
    EXPECT(f, "a", "X.PNG", "deep/er/y.tiff", "x.jpg");
    assert_int_equal(f->s.n_ignored, 1);
    assert_true(strstr(f->s.ignored, "/a/notes.txt") != NULL);
    look(f, NULL, "a/out", "a", "b"); /* two x.jpg */
    EXPECT(f, "", "a/X.PNG", "a/deep/er/y.tiff", "a/x.jpg", "b/x.jpg");
    look(f, NULL, "a/out", "a", "ab"); /* a is no folder above ab */
    EXPECT(f, "", "a/X.PNG", "a/deep/er/y.tiff", "a/x.jpg", "ab/x.jpg");
    look(f, NULL, NULL, "a/deep", "a"); /* one within the other: each picture once */
    EXPECT(f, "a", "X.PNG", "deep/er/y.tiff", "out/p.png", "x.jpg");
    look(f, NULL, NULL, "a/deep/", "a/deep/.");
    EXPECT(f, "a/deep", "er/y.tiff");
}

static void test_files_and_patterns(void **state)
{
    finding *f = *state;
    look(f, NULL, NULL, "b/noext", NULL); /* named outright: whatever its name */
    EXPECT(f, "b", "noext");
    look(f, NULL, NULL, "a/x.jpg", "a/deep/er/y.tiff");
    EXPECT(f, "a", "deep/er/y.tiff", "x.jpg");
    look(f, NULL, NULL, "?/x.jpg", NULL);
    EXPECT(f, "", "a/x.jpg", "b/x.jpg");
    look(f, NULL, NULL, "a/d*", NULL); /* a folder */
    EXPECT(f, "a/deep", "er/y.tiff");
    temp_write_text(&f->t, "a/[1].jpg", "");
    look(f, NULL, NULL, "a/[1].jpg", NULL); /* a name that looks like a pattern */
    EXPECT(f, "a", "[1].jpg");
}

static void test_root(void **state)
{
    finding *f = *state;
    look(f, ".", NULL, "b", NULL);
    EXPECT(f, "", "b/x.jpg");
    look(f, "a", NULL, "ab", NULL);
    assert_int_equal(f->status, ST_ERR_INVALID_ARG);
    assert_true(strstr(f->err.message, "outside the root") != NULL);
    assert_int_equal(f->s.n, 0);
    look(f, "none", NULL, "b", NULL);
    assert_int_equal(f->status, ST_ERR_IO);
}

static void test_lists(void **state)
{
    static const char nul[] = "a/x.jpg\0b/x.jpg\0a/new\nline.jpg";
    finding *f = *state;
    temp_write_text(&f->t, "list", "a/x.jpg\n\nb/x.jpg\r\na/x.jpg\na/not there.jpg");
    look(f, NULL, NULL, "@list", NULL); /* what is not there is told when it is read */
    EXPECT(f, "", "a/not there.jpg", "a/x.jpg", "b/x.jpg");
    temp_write_text(&f->t, "list", "{\"path\": \"b/x.jpg\"}\n{\"file_name\": \"a/x.jpg\", \"id\": 3}\n");
    look(f, NULL, NULL, "@list", NULL);
    EXPECT(f, "", "a/x.jpg", "b/x.jpg");
    temp_write(&f->t, "list", nul, sizeof nul - 1);
    look(f, NULL, NULL, "@list", NULL);
    EXPECT(f, "", "a/new\nline.jpg", "a/x.jpg", "b/x.jpg");
    temp_write_text(&f->t, "b/list", "x.jpg\n../a/x.jpg\n");
    look(f, NULL, NULL, "@b/list", NULL);
    EXPECT(f, "", "a/x.jpg", "b/x.jpg");
}

static void test_refused(void **state)
{
    static const struct {
        const char *list, *said;
    } lists[] = { { "", "no picture found" },
                  { "none/x.jpg\n", "its folder is not there" },
                  { "a/x.jpg\n{\"id\": 3}\n", "line 2" },
                  { "{broken\n", "line 1" },
                  { "a/..\n", "expected the name of a picture" },
                  { "a/\n", "expected the name of a picture" } };
    static const char *const sources[][2] = {
        { "none", "no such file" }, { "a/*.gif", "nothing matches" }, { "@none", "none" }, { "a/none/x.jpg", "no such file" }
    };
    finding *f = *state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        temp_write_text(&f->t, "list", lists[i].list);
        look(f, NULL, NULL, "@list", NULL);
        assert_int_not_equal(f->status, ST_OK);
        if (!strstr(f->err.message, lists[i].said)) fail_msg("\"%s\": %s", lists[i].list, f->err.message);
    }
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        look(f, NULL, NULL, sources[i][0], NULL);
        assert_int_not_equal(f->status, ST_OK);
        if (!strstr(f->err.message, sources[i][1])) fail_msg("%s: %s", sources[i][0], f->err.message);
        assert_null(f->s.names);
    }
    temp_write_text(&f->t, "texts/only.txt", "");
    look(f, NULL, NULL, "texts", NULL);
    assert_true(strstr(f->err.message, "only.txt") != NULL);
}

static void test_links(void **state)
{
    finding *f = *state;
    char *loop = temp_path(&f->t, "b/loop"), *there = temp_path(&f->t, "b/there"), *lost = temp_path(&f->t, "b/lost.jpg");
    assert_int_equal(symlink("..", loop), 0); /* the folder that holds a, ab, and b itself */
    assert_int_equal(symlink("../ab", there), 0);
    assert_int_equal(symlink("nothing", lost), 0);
    look(f, NULL, "a", "b", NULL); /* b is found again inside itself, and passed over; `loop` is not above b's walk */
    EXPECT(f, "b", "loop/ab/x.jpg", "lost.jpg", "there/x.jpg", "x.jpg");
    free(loop);
    free(there);
    free(lost);
}

/* Deeper than a path may be long. */
static void test_very_deep(void **state)
{
    finding *f = *state;
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    char *start = temp_path(&f->t, "b"), *here = getcwd(NULL, 0);
    assert_int_equal(chdir(start), 0);
    for (size_t i = 0; i < 30; i++) assert_true(mkdir(name, 0777) == 0 && chdir(name) == 0);
    FILE *file = fopen("bottom.jpg", "w");
    assert_non_null(file);
    fclose(file);
    look(f, NULL, NULL, "b", NULL);
    assert_int_equal(f->status, ST_OK);
    assert_int_equal(f->s.n, 2);
    assert_int_equal(strlen(f->s.names[0]), 30 * 201 + 10);
    assert_int_equal(remove("bottom.jpg"), 0);
    for (size_t i = 0; i < 30; i++) assert_true(chdir("..") == 0 && rmdir(name) == 0);
    assert_int_equal(chdir(here), 0);
    free(start);
    free(here);
}

static void test_shards(void **state)
{
    finding *f = *state;
    size_t total = 0, largest = 0;
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "many/%03d.jpg", i);
        temp_write_text(&f->t, name, "");
    }
    for (uint32_t shard = 1; shard <= 7; shard++) {
        look(f, NULL, NULL, "many", NULL);
        st_label_sources_shard(&f->s, shard, 7);
        for (size_t i = 1; i < f->s.n; i++) assert_true(strcmp(f->s.names[i - 1], f->s.names[i]) < 0);
        total += f->s.n;
        if (f->s.n > largest) largest = f->s.n;
    }
    assert_int_equal(total, 200);
    assert_in_range(largest, 29, 60);
    look(f, NULL, NULL, "many", NULL);
    st_label_sources_shard(&f->s, 1, 1);
    assert_int_equal(f->s.n, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folders, begin, end), cmocka_unit_test_setup_teardown(test_files_and_patterns, begin, end),
        cmocka_unit_test_setup_teardown(test_root, begin, end),    cmocka_unit_test_setup_teardown(test_lists, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end), cmocka_unit_test_setup_teardown(test_links, begin, end),
        cmocka_unit_test_setup_teardown(test_very_deep, begin, end), cmocka_unit_test_setup_teardown(test_shards, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
