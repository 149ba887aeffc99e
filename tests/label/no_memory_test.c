/* no_memory_test.c: every allocation that writing, reading, merging and exporting labels makes, failing once alone and once with all that follow. What
 * must come of it: an error that speaks of memory, no crash, no leak, and a folder that the next run makes whole.
 */
#include "label/failing_heap.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "label/export.h"
#include "label/job_run.h"
#include "label/label_masks.h"
#include "label/ontology.h"
#include "label/sheet.h"
#include "label/sources.h"
#include "label/store.h"
#include "unit/temp_folder.h"

/* ---- a job of three pictures ---- */

static temp_folder temporary;
static char whole[300], parts[2][300], out[300];
static uint64_t sizes[3];
static char *names[] = { "a/one.png", "b\xE9.png", "turned.jpg" };
static st_label_job job;

static void must(st_status status, const st_error *err)
{
    if (status != ST_OK) fail_msg("%s", err->message);
}

static char *copy(const char *text)
{
    char *s = strdup(text);
    assert_non_null(s);
    return s;
}

static void make_class(st_label_class *c, uint32_t id, const char *name)
{
    *c = (st_label_class){ .id = id, .name = copy(name), .n_phrases = 1, .threshold = 0.5f, .min_area = { 0.01, true } };
    c->phrases = calloc(1, sizeof *c->phrases);
    c->concepts = calloc(1, sizeof *c->concepts);
    c->digests = calloc(1, sizeof *c->digests);
    c->phrases[0] = copy(name);
}

static void make_job(void)
{
    job = (st_label_job){ .stencil = copy("0.1.0"), .model_id = copy("abc"), .model_version = copy("sam3"), .precision = copy("fp32"),
                          .model_size = 224, .shard = 1, .n_shards = 1, .n_all = 3, .n_names = 3, .n_classes = 2, .n_retired = 1 };
    st_label_options_default(&job.options);
    job.classes = calloc(2, sizeof *job.classes);
    make_class(&job.classes[0], 1, "apple");
    make_class(&job.classes[1], 4, "b\"east\xC3\xA9");
    job.classes[1].concepts[0] = copy("some/where/dog.concept");
    job.classes[1].digests[0] = calloc(65, 1);
    memset(job.classes[1].digests[0], 'd', 64);
    job.retired = calloc(1, sizeof *job.retired);
    make_class(&job.retired[0], 2, "old");
    memset(job.all_sha256, '0', 64);
    job.names = calloc(3, sizeof *job.names);
    for (size_t i = 0; i < 3; i++) job.names[i] = copy(names[i]);
    assert_true(st_label_recipe(&job));
}

static void add(st_label_picture *p, uint32_t id, float score, const char *mask, int32_t by)
{
    st_label_object o = { .class_id = id, .score = score, .box = { 0, 0, 7, 5 }, .mask = mask_of_text(mask), .displaced_by = by, .n_pieces = by < 0 ? 3 : 1 };
    o.area = st_rle_area(&o.mask);
    must(st_label_picture_add(p, &o, NULL), NULL);
}

/* A hole, two parts, one that is displaced; the third could not be read. */
static void make_picture(st_label_picture *p, size_t i)
{
    *p = (st_label_picture){ .name = copy(names[i]), .n_bytes = sizes[i] };
    memset(p->sha256, 'a', 64);
    if (i == 1) {
        p->error = copy("no picture");
        return;
    }
    p->width = 8, p->height = 6;
    p->orientation = i == 2 ? 6 : 1;
    p->stretched = i == 0, p->high = 0.5f;
    strcpy(p->format, i == 2 ? "jpeg" : "png");
    p->answers = calloc(2, sizeof *p->answers);
    p->n_answers = 2;
    p->answers[0] = (st_label_answer){ 1, 0, 0.3333333f, ST_WARN_QUERY_LIMIT };
    p->answers[1] = (st_label_answer){ 4, 0, 1.0f, 0 };
    add(p, 1, 0.7f, "####..../#..#..../#..#..../####..../......../........", -1);
    add(p, 4, 0.9f, "##....##/##....##/......../......../......../.##.....", -1);
    if (i == 0) add(p, 4, 0.8f, "##....##/##....##/......../......../......../........", 1);
}

static st_status write_job(const char *folder, const st_label_job *j, size_t first, size_t step, st_error *err)
{
    size_t n_failed;
    st_status status = ST_OK;
    for (size_t i = first; status == ST_OK && i < 3; i += step) {
        const uint64_t fails_from = heap.first, fails_to = heap.last, calls = heap.n_calls;
        st_label_picture p;
        heap_heal(); /* making a picture is not what is tested */
        make_picture(&p, i);
        heap.first = fails_from, heap.last = fails_to, heap.n_calls = calls;
        status = st_label_picture_write(&p, folder, j, err);
        st_label_picture_free(&p);
    }
    if (status == ST_OK) status = st_label_errors_write(&n_failed, j, folder, err);
    if (status == ST_OK) status = st_label_root_write(folder, temporary.path, err);
    if (status == ST_OK) status = st_label_job_write(j, folder, err);
    return status;
}

static void make_parts(void)
{
    st_error err;
    for (uint32_t i = 0; i < 2; i++) {
        char *mine[2] = { names[i ? 1 : 0], names[2] };
        st_label_job part = job;
        part.shard = i + 1, part.n_shards = 2;
        part.names = mine, part.n_names = i ? 1 : 2;
        if (mkdir(parts[i], 0777) != 0) temp_die(parts[i]);
        must(write_job(parts[i], &part, i, 2, &err), &err);
    }
}

static int set_up(void **state)
{
    (void)state;
    static const uint8_t gray[8 * 6 * 3] = { 90 };
    st_error err;
    char path[400];
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* thousands of files are synced */
    temp_folder_make(&temporary);
    temp_write(&temporary, "a/there", "", 0);
    snprintf(path, sizeof path, "%s/a/one.png", temporary.path);
    must(st_png_write(path, gray, 8, 6, 3, &err), &err);
    snprintf(path, sizeof path, "%s/turned.jpg", temporary.path);
    must(st_jpeg_write(path, gray, 8, 6, 90, &err), &err); /* the store says that it lies turned: it is written anew */
    snprintf(whole, sizeof whole, "%s/whole", temporary.path);
    snprintf(out, sizeof out, "%s/out", temporary.path);
    for (size_t i = 0; i < 2; i++) snprintf(parts[i], sizeof parts[i], "%s/part%zu", temporary.path, i);
    for (size_t i = 0; i < 3; i++) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", temporary.path, names[i]);
        sizes[i] = stat(path, &st) == 0 ? (uint64_t)st.st_size : 0; /* with another hash: "changed", told by the content */
    }
    temp_write_text(&temporary, "list.jsonl", "{\"file_name\": \"a/one.png\"}\nturned.jpg\n");
    make_job();
    if (mkdir(whole, 0777) != 0) temp_die(whole);
    must(write_job(whole, &job, 0, 1, &err), &err);
    make_parts();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    st_label_job_free(&job);
    temp_folder_remove(&temporary);
    return 0;
}

/* ---- a folder as one number ---- */

static uint64_t fingerprint;
static size_t n_left_over;

static int add_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)ftw;
    const char *name = strrchr(path, '/') + 1;
    if (strcmp(name, ".lock") == 0) return 0; /* empty, and about no result */
    n_left_over += strstr(name, ".tmp") || strstr(name, ".partial") || strstr(name, ".old");
    for (const char *c = path + strlen(out); *c; c++) fingerprint = (fingerprint ^ (uint8_t)*c) * UINT64_C(1099511628211);
    FILE *f = type == FTW_F ? fopen(path, "rb") : NULL;
    for (int c; f && (c = getc(f)) != EOF;) fingerprint = (fingerprint ^ (uint8_t)c) * UINT64_C(1099511628211);
    if (f) fclose(f);
    return 0;
}

/* nftw goes through a folder in the order of the disk: names are added up one by one instead. */
static uint64_t print_of(const char *path);

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void walk(const char *path)
{
    struct dirent **entries = NULL;
    struct stat st;
    const int n = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char below[1024];
        snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name);
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0 && lstat(below, &st) == 0) {
            add_entry(below, &st, S_ISREG(st.st_mode) ? FTW_F : FTW_D, NULL);
            if (S_ISDIR(st.st_mode)) walk(below);
        }
        free(entries[i]);
    }
    free(entries);
}

static uint64_t print_of(const char *path)
{
    fingerprint = UINT64_C(14695981039346656037);
    n_left_over = 0;
    walk(path);
    return fingerprint;
}

/* ---- every allocation fails ---- */

/* Linked in place of jansson's, which is not safe without memory: json_read.c asks for it before, and it is that request that fails here. */
json_t *__real_json_loadb(const char *text, size_t n, size_t flags, json_error_t *err);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *err);
json_t *__wrap_json_loadb(const char *text, size_t n, size_t flags, json_error_t *err)
{
    heap.n_spared++;
    json_t *doc = __real_json_loadb(text, n, flags, err);
    heap.n_spared--;
    return doc;
}

typedef st_status work_fn(st_error *err);

static void clear(void)
{
    nftw(out, temp_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (mkdir(out, 0777) != 0) temp_die(out);
}

static int n_open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void fails_well(const char *what, work_fn *work, uint64_t k, uint64_t last, uint64_t want)
{
    st_error err = { 0 };
    clear();
    const int64_t alive = heap_alive();
    const int files = n_open_files();
    heap_fail(k, last);
    const st_status status = work(&err);
    const bool failed = heap.n_failed > 0;
    heap_heal();
    if (heap_alive() != alive) fail_msg("%s, allocation %u: %d blocks leak (%s)", what, (unsigned)k, (int)(heap_alive() - alive), err.message);
    if (n_open_files() != files) fail_msg("%s, allocation %u: a file stays open (%s)", what, (unsigned)k, err.message);
    assert_true(failed);
    if (status == ST_OK) { /* done without it */
        if (print_of(out) != want || n_left_over) fail_msg("%s, allocation %u: success, but the result is another", what, (unsigned)k);
        return;
    }
    if (status != ST_ERR_NOMEM && !strstr(err.message, "memory")) fail_msg("%s, allocation %u: \"%s\"", what, (unsigned)k, err.message);
    if (!err.message[0]) fail_msg("%s, allocation %u: no sentence", what, (unsigned)k);
    must(work(&err), &err); /* the same again, where the first one stopped */
    if (print_of(out) != want || n_left_over) fail_msg("%s, allocation %u: the next run leaves another result", what, (unsigned)k);
}

static void every_allocation_fails(const char *what, work_fn *work)
{
    st_error err;
    clear();
    must(work(&err), &err); /* what libraries allocate once and keep */
    clear();
    const int64_t alive = heap_alive();
    heap_fail(0, 0);
    must(work(&err), &err);
    const uint64_t n = heap.n_calls, want = print_of(out);
    assert_int_equal(heap_alive(), alive);
    assert_int_equal(n_left_over, 0);
    for (uint64_t k = 1; k <= n; k++) {
        fails_well(what, work, k, k, want);
        fails_well(what, work, k, UINT64_MAX, want);
    }
    print_message("%s: %u allocations\n", what, (unsigned)n);
    assert_true(n > 10);
}

/* ---- the work ---- */

static st_status write_store(st_error *err)
{
    return write_job(out, &job, 0, 1, err);
}

static st_status read_store(st_error *err)
{
    st_label_store *store;
    st_label_picture p = { 0 };
    size_t n = 0, n_objects = 0, n_files = 0;
    bool more = true;
    st_status status = st_label_store_open(&store, whole, err);
    while (status == ST_OK && more) {
        status = st_label_store_next(store, &p, &more, err);
        n += more;
        n_objects += p.n_objects;
        n_files += p.file != NULL;
        st_label_picture_free(&p);
    }
    if (status == ST_OK && (n != 3 || n_objects != 5 || n_files != 3 || st_label_store_missing(store))) fail_msg("read: not what was written, but success");
    st_label_store_close(store);
    return status;
}

static st_status merge(st_error *err)
{
    const char *const from[] = { parts[0], parts[1] };
    return st_label_merge(out, from, 2, err);
}

/* What a run does before its first picture: classes, names, and what is left to do. */
static st_status begin(st_error *err)
{
    static const char text[] = "{\"classes\": [{\"name\": \"apple\"}, {\"name\": \"pet\", \"phrases\": [\"cat\", \"dog\"], \"threshold\": 0.4}]}";
    char list[310], pattern[310];
    snprintf(list, sizeof list, "@%s/list.jsonl", temporary.path);
    snprintf(pattern, sizeof pattern, "%s/turn*.jpg", temporary.path);
    const char *const given[] = { temporary.path, list, pattern };
    const st_label_source_request request = { given, 3, NULL, out };
    st_label_ontology classes = { 0 };
    st_label_sources sources = { 0 };
    st_label_plan plan = { 0 };
    const st_label_look look = { .content = true };
    st_status status = st_label_ontology_parse(&classes, text, sizeof text - 1, "classes.json", err);
    if (status == ST_OK) status = st_label_sources_find(&sources, &request, err);
    if (status == ST_OK) status = st_label_plan_make(&plan, &job, whole, temporary.path, &look, err);
    const bool right = classes.n == 2 && classes.classes[1].n_phrases == 2 && sources.n == 2 && strcmp(sources.names[1], names[2]) == 0 &&
                       strcmp(sources.root, temporary.path) == 0 && plan.n_todo == 3 && plan.n_retried == 1 && plan.n_changed == 2;
    if (status == ST_OK && !right) fail_msg("begin: not what is there, but success");
    st_label_plan_free(&plan);
    st_label_sources_free(&sources);
    st_label_ontology_free(&classes);
    return status;
}

static uint32_t formats;
static bool runs, with_overlays;

static st_status export(st_error *err)
{
    st_label_store *store;
    st_label_export_report report;
    st_label_export_options how;
    st_label_export_options_init(&how);
    how.formats = formats;
    how.folder = out;
    how.rle = how.labelme_masks = runs;
    st_status status = st_label_store_open(&store, whole, err);
    if (status == ST_OK) status = st_label_export(&report, store, &how, err);
    st_label_store_close(store);
    return status;
}

static st_status sheets(st_error *err)
{
    st_label_store *store;
    st_label_sheet_report report;
    st_label_sheet_options how;
    st_label_sheet_options_init(&how);
    how.folder = out;
    how.side = 64;
    how.overlays = with_overlays;
    st_status status = st_label_store_open(&store, whole, err);
    if (status == ST_OK) status = st_label_sheets(&report, store, &how, err);
    st_label_store_close(store);
    return status;
}

static void test_no_memory__beginning(void **state)
{
    (void)state;
    every_allocation_fails("begin", begin);
}

static void test_no_memory__writing(void **state)
{
    (void)state;
    every_allocation_fails("write", write_store);
}

static void test_no_memory__reading(void **state)
{
    (void)state;
    every_allocation_fails("read", read_store);
}

static void test_no_memory__merging(void **state)
{
    (void)state;
    every_allocation_fails("merge", merge);
}

static void test_no_memory__exporting(void **state)
{
    (void)state;
    for (size_t i = 0; i < ST_LABEL_N_FORMATS; i++) {
        formats = 1u << i;
        every_allocation_fails(st_label_format_name(i), export);
        runs = true;
        if (strcmp(st_label_format_name(i), "coco") == 0 || strcmp(st_label_format_name(i), "labelme") == 0) every_allocation_fails("the same, as runs", export);
        runs = false;
    }
}

static void test_no_memory__sheets(void **state)
{
    (void)state;
    every_allocation_fails("sheets", sheets);
    with_overlays = true;
    every_allocation_fails("overlays", sheets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory__beginning), cmocka_unit_test(test_no_memory__writing),   cmocka_unit_test(test_no_memory__reading), cmocka_unit_test(test_no_memory__merging),
        cmocka_unit_test(test_no_memory__exporting), cmocka_unit_test(test_no_memory__sheets),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
