/* store_files_test.c: the results store: what is written is read back, whatever the names; what is broken is refused with a
 * sentence and never taken for a finished picture; and which objects go out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>
#include "label/job_run.h"
#include "label/label_masks.h"
#include "label/store.h"
#include "unit/temp_folder.h"

static temp_folder temporary;
static const char *const folder = temporary.path;

static int make_folder(void **state)
{
    (void)state;
    temp_folder_make(&temporary);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    temp_folder_remove(&temporary);
    return 0;
}

/* ---- a job of two classes and three phrases ---- */

static char *names[] = { "a/one.png", "b\xE9.png", "two.png" };

static void make_class(st_label_class *c, uint32_t id, const char *name, size_t n, const char *const *phrases)
{
    *c = (st_label_class){ .id = id, .name = strdup(name), .n_phrases = n, .threshold = 0.5f };
    c->phrases = calloc(n, sizeof *c->phrases);
    c->concepts = calloc(n, sizeof *c->concepts);
    c->digests = calloc(n, sizeof *c->digests);
    for (size_t i = 0; i < n; i++) c->phrases[i] = strdup(phrases[i]);
}

static void make_job(st_label_job *job)
{
    static const char *const one[] = { "apple" }, *const two[] = { "cat", "dog" };
    *job = (st_label_job){ .stencil = strdup("0.1.0"), .model_id = strdup("abc"), .model_version = strdup("sam3"),
                           .precision = strdup("fp32"), .model_size = 224, .shard = 1, .n_shards = 1, .n_all = 3 };
    st_label_options_default(&job->options);
    job->classes = calloc(2, sizeof *job->classes);
    job->n_classes = 2;
    make_class(&job->classes[0], 1, "apple", 1, one);
    make_class(&job->classes[1], 4, "b\"east\xC3\xA9", 2, two);
    job->classes[1].concepts[1] = strdup("some/where/dog.concept");
    job->classes[1].digests[1] = calloc(65, 1);
    memset(job->classes[1].digests[1], 'd', 64);
    job->classes[0].min_area = (st_label_area){ 0.0004, true };
    job->classes[0].max_area = (st_label_area){ 900, false };
    memset(job->all_sha256, '0', 64);
    job->names = calloc(3, sizeof *job->names);
    for (size_t i = 0; i < 3; i++) job->names[i] = strdup(names[i]);
    job->n_names = 3;
    assert_true(st_label_recipe(job));
}

static void add(st_label_picture *p, uint32_t id, uint32_t phrase, float score, const char *mask, int32_t by)
{
    st_label_object o = { .class_id = id, .phrase = phrase, .score = score, .box = { -0.25f, 0.1f, 3.75f, 2.0f },
                          .mask = mask_of_text(mask), .displaced_by = by, .n_pieces = by < 0 ? 3 : 1 };
    o.area = st_rle_area(&o.mask);
    assert_int_equal(st_label_picture_add(p, &o, NULL), ST_OK);
    assert_null(o.mask.counts);
}

static void make_picture(st_label_picture *p, const char *name)
{
    *p = (st_label_picture){ .name = strdup(name), .width = 4, .height = 2, .orientation = 6, .format = "jpeg",
                             .damaged = true, .stretched = true, .low = 0.1f, .high = 1e-7f, .n_bytes = 77 };
    memset(p->sha256, 'a', 64);
    p->answers = calloc(3, sizeof *p->answers);
    p->n_answers = 3;
    p->answers[0] = (st_label_answer){ 1, 0, 0.3333333f, 0 };
    p->answers[1] = (st_label_answer){ 4, 0, 1.0f, ST_WARN_QUERY_LIMIT | ST_WARN_PROMPT_CUT };
    p->answers[2] = (st_label_answer){ 4, 1, 0.0f, 0 };
    add(p, 1, 0, 0.7f, "##../....", -1);
    add(p, 4, 0, 0.9f, ".##./.##.", -1);
    add(p, 4, 1, 0.8f, ".##./.#..", 1);
}

static void write_picture(const st_label_job *job, const char *name)
{
    st_label_picture p;
    st_error err;
    make_picture(&p, name);
    if (st_label_picture_write(&p, folder, job, &err) != ST_OK) fail_msg("%s", err.message);
    st_label_picture_free(&p);
}

static char *path_of(const char *name)
{
    char *tail = st_label_store_name(name), *path = st_label_path(folder, tail);
    free(tail);
    return path;
}

static void assert_equal_pictures(const st_label_picture *a, const st_label_picture *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->format, b->format);
    assert_string_equal(a->sha256, b->sha256);
    assert_true(a->width == b->width && a->height == b->height && a->orientation == b->orientation);
    assert_true(a->damaged == b->damaged && a->stretched == b->stretched && a->enlarged == b->enlarged);
    assert_true(a->low == b->low && a->high == b->high && a->n_bytes == b->n_bytes);
    assert_true(a->n_answers == b->n_answers && a->n_objects == b->n_objects);
    for (size_t i = 0; i < a->n_answers; i++) assert_memory_equal(&a->answers[i], &b->answers[i], sizeof *a->answers);
    for (size_t i = 0; i < a->n_objects; i++) {
        const st_label_object *x = &a->objects[i], *y = &b->objects[i];
        assert_true(x->class_id == y->class_id && x->phrase == y->phrase && x->score == y->score);
        assert_true(x->area == y->area && x->displaced_by == y->displaced_by && x->n_pieces == y->n_pieces);
        assert_memory_equal(x->box, y->box, sizeof x->box);
        assert_true(st_rle_iou(&x->mask, &y->mask) == 1.0);
    }
}

/* ---- tests ---- */

static void test_sha256__known(void **state)
{
    (void)state;
    char sha[65], text[200];
    st_label_sha256(sha, "", 0);
    assert_string_equal(sha, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    st_label_sha256(sha, "abc", 3);
    assert_string_equal(sha, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    st_label_sha256(sha, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    assert_string_equal(sha, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    memset(text, 'a', sizeof text);
    st_label_sha256(sha, text, 64);
    assert_string_equal(sha, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    st_label_sha256(sha, text, 119);
    assert_string_equal(sha, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
}

static void test_names__any_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } cases[] = { { "a/b.png", "a/b.png" },         { "\xC3\xA4", "\xC3\xA4" },         { "\xE9.png", "%E9.png" },
                  { "\xC0\xAF", "%C0%AF" },         { "\xED\xA0\x80", "%ED%A0%80" },    { "\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80" },
                  { "\xF4\x90\x80\x80", "%F4%90%80%80" }, { "x\xE2\x82", "x%E2%82" },   { "a\nb", "a\nb" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = st_label_text(cases[i].name), *store = st_label_store_name(cases[i].name);
        json_t *json = st_label_name_to_json(cases[i].name);
        char *back = st_label_name_from_json(json);
        assert_string_equal(text, cases[i].text);
        assert_string_equal(back, cases[i].name);
        for (const char *p = store; *p; p++) assert_true(*p > ' ' && *p < 0x7F);
        json_decref(json);
        free(text);
        free(store);
        free(back);
    }
    static const char *const none[] = { "3", "null", "{\"bytes\": \"6\"}", "{\"bytes\": \"6g\"}", "{\"bytes\": \"00\"}",
                                        "{\"bytes\": 3}", "[]", "{}" };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        json_t *json = json_loads(none[i], JSON_DECODE_ANY, NULL);
        assert_null(st_label_name_from_json(json));
        json_decref(json);
    }
}

static void test_job__comes_back(void **state)
{
    (void)state;
    st_label_job job, back;
    st_error err;
    bool there;
    assert_int_equal(st_label_job_read(&back, &there, folder, &err), ST_OK);
    assert_false(there);
    make_job(&job);
    assert_int_equal(st_label_job_write(&job, folder, &err), ST_OK);
    assert_int_equal(st_label_job_read(&back, &there, folder, &err), ST_OK);
    assert_true(there);
    assert_string_equal(back.recipe, job.recipe);
    assert_string_equal(back.classes[1].name, job.classes[1].name);
    assert_string_equal(back.classes[1].concepts[1], "dog.concept"); /* where it lay is not stored */
    assert_true(back.classes[0].min_area.is_share && back.classes[0].min_area.value == 0.0004);
    assert_true(!back.classes[0].max_area.is_share && back.classes[0].max_area.value == 900);
    for (size_t i = 0; i < 3; i++) assert_string_equal(back.names[i], names[i]);
    assert_true(st_label_recipe(&back));
    assert_string_equal(back.recipe, job.recipe);
    st_label_job_free(&back);
    st_label_job_free(&job);
}

static void test_job__recipe_is_what_decides_results(void **state)
{
    (void)state;
    st_label_job job, other;
    make_job(&job);
    make_job(&other);
    other.classes[0].threshold = 0.9f;
    other.classes[0].min_area.value = 0;
    assert_true(st_label_recipe(&other));
    assert_string_equal(other.recipe, job.recipe);
    other.options.floor = 0.2f;
    assert_true(st_label_recipe(&other));
    assert_string_not_equal(other.recipe, job.recipe);
    char *why = st_label_job_difference(&job, &other);
    assert_non_null(strstr(why, "floor was 0.15 and is now 0.2"));
    free(why);
    other.options.floor = job.options.floor;
    other.classes[1].digests[1][0] = 'e'; /* the file of examples holds others now */
    assert_true(st_label_recipe(&other));
    assert_string_not_equal(other.recipe, job.recipe);
    st_label_job_free(&other);
    st_label_job_free(&job);
}

/* Every cut of the file ends in a sentence. */
static void test_job__cut(void **state)
{
    (void)state;
    st_label_job job, back;
    st_error err;
    bool there;
    make_job(&job);
    assert_int_equal(st_label_job_write(&job, folder, &err), ST_OK);
    char *path = st_label_path(folder, "job.json");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    for (off_t n = st.st_size - 2; n >= 0; n -= 7) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(st_label_job_read(&back, &there, folder, &err), ST_ERR_FORMAT);
        assert_false(there);
    }
    free(path);
    st_label_job_free(&job);
}

static void test_picture__comes_back(void **state)
{
    (void)state;
    st_label_job job;
    st_label_picture p, back;
    st_error err;
    bool there;
    make_job(&job);
    for (size_t i = 0; i < 3; i++) {
        make_picture(&p, names[i]);
        assert_int_equal(st_label_picture_read(&back, &there, names[i], folder, &job, true, &err), ST_OK);
        assert_false(there);
        assert_int_equal(st_label_picture_write(&p, folder, &job, &err), ST_OK);
        if (st_label_picture_read(&back, &there, names[i], folder, &job, true, &err) != ST_OK) fail_msg("%s", err.message);
        assert_true(there);
        assert_equal_pictures(&p, &back);
        st_label_picture_free(&back);
        st_label_picture_free(&p);
    }
    job.recipe[0] ^= 1; /* another recipe: not done */
    assert_int_equal(st_label_picture_read(&back, &there, names[0], folder, &job, true, &err), ST_OK);
    assert_false(there);
    st_label_job_free(&job);
}

static void test_picture__every_cut_is_told(void **state)
{
    (void)state;
    st_label_job job;
    st_label_picture back;
    st_error err;
    bool there;
    struct stat st;
    make_job(&job);
    char *path = path_of(names[0]);
    write_picture(&job, names[0]);
    assert_int_equal(stat(path, &st), 0);
    for (off_t n = st.st_size - 2; n >= 0; n--) { /* -1 takes the last line's end, which nothing needs */
        assert_int_equal(truncate(path, n), 0);
        const st_status status = st_label_picture_read(&back, &there, names[0], folder, &job, true, &err);
        if (status != ST_ERR_FORMAT || there) fail_msg("cut to %ld bytes: status %d", (long)n, (int)status);
        assert_non_null(strstr(err.message, "remove this file"));
    }
    free(path);
    st_label_job_free(&job);
}

/* One byte wrong: refused, or another valid picture, but never a crash; what comes back is within bounds. */
static void test_picture__any_byte_wrong(void **state)
{
    (void)state;
    st_label_job job;
    make_job(&job);
    char *path = path_of(names[0]), text[4096];
    write_picture(&job, names[0]);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    uint64_t random = 11;
    for (unsigned k = 0; k < 3000; k++) {
        const size_t at = (size_t)(ref_random(&random) % n);
        const char was = text[at];
        text[at] = "0129\"{}[],:-.eE \n\\anP"[ref_random(&random) % 21];
        f = fopen(path, "wb");
        fwrite(text, 1, n, f);
        fclose(f);
        text[at] = was;
        st_label_picture p;
        bool there;
        st_error err = { ST_OK, "" };
        const st_status status = st_label_picture_read(&p, &there, names[0], folder, &job, true, &err);
        assert_true(status == ST_OK || status == ST_ERR_FORMAT);
        assert_true((status == ST_OK) == (err.message[0] == '\0'));
        for (size_t i = 0; there && i < p.n_objects; i++) {
            const st_label_object *o = &p.objects[i];
            assert_true(o->displaced_by < (int32_t)p.n_objects && st_rle_area(&o->mask) == o->area);
            assert_non_null(st_label_class_by_id(&job, o->class_id));
        }
        if (there) st_label_picture_free(&p);
    }
    free(path);
    st_label_job_free(&job);
}

static void test_picture__displaced_in_a_circle(void **state)
{
    (void)state;
    st_label_job job;
    st_label_picture p;
    st_error err;
    bool there;
    make_job(&job);
    make_picture(&p, names[0]);
    p.objects[1].displaced_by = 2;
    assert_int_equal(st_label_picture_write(&p, folder, &job, &err), ST_OK);
    st_label_picture_free(&p);
    assert_int_equal(st_label_picture_read(&p, &there, names[0], folder, &job, true, &err), ST_ERR_FORMAT);
    assert_non_null(strstr(err.message, "displaced by one that is displaced itself"));
    st_label_job_free(&job);
}

static void test_reader__in_order_and_what_is_missing(void **state)
{
    (void)state;
    st_label_job job;
    st_label_store *store;
    st_error err;
    bool more;
    assert_int_equal(st_label_store_open(&store, folder, &err), ST_ERR_IO);
    assert_null(store);
    make_job(&job);
    st_label_picture p = { .name = strdup(names[0]), .error = strdup("a/one.png: broken"), .n_bytes = 5 };
    assert_int_equal(st_label_picture_write(&p, folder, &job, &err), ST_OK);
    st_label_picture_free(&p);
    write_picture(&job, names[2]);
    assert_int_equal(st_label_job_write(&job, folder, &err), ST_OK);
    assert_int_equal(st_label_root_write(folder, folder, &err), ST_OK);
    assert_int_equal(st_label_store_open(&store, folder, &err), ST_OK);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(st_label_store_next(store, &p, &more, &err), ST_OK);
        assert_true(more);
        assert_string_equal(p.error, "a/one.png: broken");
        assert_true(p.width == 0 && p.n_objects == 0 && p.n_bytes == 5);
        assert_non_null(strstr(p.file, "/a/one.png"));
        st_label_picture_free(&p);
        assert_int_equal(st_label_store_next(store, &p, &more, &err), ST_OK);
        assert_true(more);
        assert_string_equal(p.name, names[2]);
        st_label_picture_free(&p);
        assert_int_equal(st_label_store_next(store, &p, &more, &err), ST_OK);
        assert_false(more);
        assert_int_equal(st_label_store_missing(store), 1);
        st_label_store_rewind(store);
        assert_int_equal(st_label_store_missing(store), 0);
    }
    st_label_store_close(store);
    st_label_job_free(&job);
}

static void test_plan__what_is_left(void **state)
{
    (void)state;
    st_label_job job;
    st_label_plan plan = { 0 };
    st_error err;
    make_job(&job);
    write_picture(&job, names[0]);
    char *path = path_of(names[2]);
    write_picture(&job, names[2]);
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(st_label_plan_make(&plan, &job, folder, "/nowhere", &(st_label_look){ 0 }, &err), ST_OK);
    assert_true(plan.n_done == 1 && plan.n_todo == 2 && plan.n_broken == 1 && plan.n_retried == 0);
    assert_true(plan.todo[0] == 1 && plan.todo[1] == 2);
    assert_int_equal(st_label_plan_make(&plan, &job, folder, "/nowhere", &(st_label_look){ .limit = 1 }, &err), ST_OK);
    assert_true(plan.n_done == 1 && plan.n_todo == 0);
    st_label_plan_free(&plan);
    free(path);
    st_label_job_free(&job);
}

static void test_lock__one_at_a_time(void **state)
{
    (void)state;
    int first, second;
    st_error err;
    assert_int_equal(st_label_lock(&first, folder, &err), ST_OK);
    assert_int_equal(st_label_lock(&second, folder, &err), ST_ERR_IO);
    assert_non_null(strstr(err.message, "another run"));
    st_label_unlock(first);
    assert_int_equal(st_label_lock(&second, folder, &err), ST_OK);
    st_label_unlock(second);
}

static void test_select__who_stands_again(void **state)
{
    (void)state;
    st_label_job job;
    st_label_picture p;
    bool kept[3];
    make_job(&job);
    make_picture(&p, names[0]);
    p.width = p.height = 100; /* so that areas are small shares */
    job.classes[0].min_area = (st_label_area){ 0 };
    assert_int_equal(st_label_select(kept, job.classes, 2, &p), 2);
    assert_true(kept[0] && kept[1] && !kept[2]);
    job.classes[0].min_area = (st_label_area){ 0.0004, true }; /* 4 pixels, the apple has 2 */
    assert_int_equal(st_label_select(kept, job.classes, 2, &p), 1);
    job.classes[1].max_area = (st_label_area){ 3, false }; /* the better one is too large: the other stands again */
    assert_int_equal(st_label_select(kept, job.classes, 2, &p), 1);
    assert_true(!kept[1] && kept[2]);
    job.classes[1].max_area = (st_label_area){ 0 };
    job.classes[1].threshold = 0.9f; /* not more than */
    assert_int_equal(st_label_select(kept, job.classes, 2, &p), 0);
    p.objects[0].displaced_by = 2; /* a chain: 0 by 2 by 1 */
    job.classes[0].min_area = (st_label_area){ 0 };
    job.classes[1].threshold = 0.85f;
    assert_int_equal(st_label_select(kept, job.classes, 2, &p), 1);
    assert_true(!kept[0] && kept[1]);
    st_label_picture_free(&p);
    st_label_job_free(&job);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256__known),
        cmocka_unit_test(test_names__any_bytes),
        TEST(test_job__comes_back),
        TEST(test_job__recipe_is_what_decides_results),
        TEST(test_job__cut),
        TEST(test_picture__comes_back),
        TEST(test_picture__every_cut_is_told),
        TEST(test_picture__any_byte_wrong),
        TEST(test_picture__displaced_in_a_circle),
        TEST(test_reader__in_order_and_what_is_missing),
        TEST(test_plan__what_is_left),
        TEST(test_lock__one_at_a_time),
        cmocka_unit_test(test_select__who_stands_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
