/* label_bench.c: what `stencil label` costs on top of the model: pictures a second of the bare engine (pictures decoded beforehand, encode and phrases,
 * nothing written) against those of the labelling loop (read, decoded, asked, duplicates marked, written), round by round in turn. Seconds of CPU are
 * told beside, and what the loop does beside the model is measured by itself: where a picture takes ten seconds, a ratio of two runs on a machine that
 * does other things, too, is off by more than that work is.
 *
 *     label_bench [--model PATH] [--picture FILE] [--pictures N] [--rounds N] [--threads N] [--floor F]
 *
 * Prints the median ratio of the rounds. Part of `make bench`. A model of random weights answers every phrase with some 200 masks of noise, which no
 * labelling run meets: a floor that leaves it a few instances makes its figure mean something.
 */
#include "label/ahead.h"
#include "label/duplicates.h"
#include "label/job_run.h"
#include "label/ontology.h"
#include "label/store.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "front/options.h"

enum { MAX_ROUNDS = 99 };

typedef struct bench {
    const char *model_path, *picture;
    uint32_t n_pictures, n_rounds, n_threads;
    float floor; /* 0: the default */
    char folder[64], pictures[96], out[96];
    st_model *model;
    st_session *session;
    st_label_job job;
    st_bitmap bitmap;
} bench;

static void die(const char *what, const st_error *err)
{
    fprintf(stderr, "label_bench: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Wall and CPU seconds, of all threads. */
typedef struct cost {
    double wall, cpu;
} cost;

static cost reading(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (cost){ now(), (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) };
}

static cost since(cost start)
{
    const cost end = reading();
    return (cost){ end.wall - start.wall, end.cpu - start.cpu };
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* N names for one file: reading and decoding are the same as of N files. */
static void make_pictures(bench *b)
{
    const char *suffix = strrchr(b->picture, '.');
    char *file = realpath(b->picture, NULL);
    snprintf(b->folder, sizeof b->folder, "/tmp/label-bench-XXXXXX");
    if (!file || !mkdtemp(b->folder)) die(b->picture, NULL);
    snprintf(b->pictures, sizeof b->pictures, "%s/pictures", b->folder);
    if (mkdir(b->pictures, 0777) != 0) die(b->pictures, NULL);
    b->job.names = calloc(b->n_pictures, sizeof *b->job.names);
    for (uint32_t i = 0; b->job.names && i < b->n_pictures; i++) {
        char path[160];
        if (asprintf(&b->job.names[i], "p%06u%s", i, suffix ? suffix : "") < 0) die("out of memory", NULL);
        snprintf(path, sizeof path, "%s/%s", b->pictures, b->job.names[i]);
        if (symlink(file, path) != 0) die(path, NULL);
    }
    b->job.n_names = b->n_pictures;
    free(file);
}

static void make_job(bench *b)
{
    static const char *const phrases[] = { "food", "animal", "thing=fruit", "thing=vehicle" };
    st_label_ontology o = { 0 };
    st_model_info info = ST_MODEL_INFO_INIT;
    st_error err;
    size_t n_retired;
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (st_label_ontology_add(&o, phrases[i], &err) != ST_OK) die(phrases[i], &err);
    if (st_label_ontology_number(&o, &b->job.retired, &n_retired, NULL, &err) != ST_OK) die("classes", &err);
    if (st_model_get_info(b->model, &info, &err) != ST_OK) die("model", &err);
    b->job.classes = o.classes;
    b->job.n_classes = o.n;
    b->job.model_id = strdup(info.id);
    b->job.precision = strdup(info.precision);
    b->job.model_size = info.input_size;
    st_label_options_default(&b->job.options);
    if (b->floor > 0) b->job.options.floor = b->floor;
    if (!b->job.model_id || !b->job.precision || !st_label_recipe(&b->job)) die("out of memory", NULL);
}

static st_status count_answer(void *user, const st_label_class *cls, uint32_t phrase, size_t flat, st_result *result, st_error *err)
{
    (void)cls, (void)phrase, (void)flat, (void)err;
    *(size_t *)user += result->n_instances;
    return ST_OK;
}

static cost bare(bench *b, size_t *n_instances)
{
    const st_image image = { b->bitmap.rgb, b->bitmap.width, b->bitmap.height, (size_t)b->bitmap.width * 3, ST_PIXEL_RGB8 };
    const st_label_engine engine = { .session = b->session, .job = &b->job };
    st_error err;
    const cost started = reading();
    for (uint32_t i = 0; i < b->n_pictures; i++)
        if (st_label_ask(&engine, &image, count_answer, n_instances, &err) != ST_OK) die("engine", &err);
    return since(started);
}

/* A folder for each round, with the folders of its store: all pictures of a job share these 256, and a few would seem to pay for them. Nothing is
 * removed between rounds: file systems are slow to give numbers of files that have just gone to new ones. */
static void make_store(bench *b, uint32_t round)
{
    char path[160];
    snprintf(b->out, sizeof b->out, "%s/out%u", b->folder, round);
    if (mkdir(b->out, 0777) != 0) die(b->out, NULL);
    snprintf(path, sizeof path, "%s/store", b->out);
    if (mkdir(path, 0777) != 0) die(path, NULL);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "%s/store/%02x", b->out, i);
        if (mkdir(path, 0777) != 0) die(path, NULL);
    }
}

static cost labelled(bench *b, uint32_t round)
{
    const st_label_engine engine = { .session = b->session, .job = &b->job };
    st_label_run run = { .engine = &engine, .folder = b->out, .root = b->pictures };
    st_label_plan plan = { 0 };
    st_error err;
    make_store(b, round);
    const cost started = reading();
    if (st_label_plan_make(&plan, &b->job, b->out, b->pictures, &(st_label_look){ 0 }, &err) != ST_OK) die("plan", &err);
    if (plan.n_todo != b->n_pictures) die("the folder is not empty", NULL);
    if (st_label_run_plan(&run, &plan, &err) != ST_OK) die("run", &err);
    const cost spent = since(started);
    if (run.n_failed) die("a picture could not be read", NULL);
    st_label_plan_free(&plan);
    return spent;
}

/* The loop's own work on one picture, again and again for a second: milliseconds of CPU each. */
static void own_work(bench *b, double engine_cpu)
{
    const st_label_engine engine = { .session = b->session, .job = &b->job };
    const st_label_run run = { .engine = &engine, .folder = b->out, .root = b->pictures };
    st_label_picture p;
    st_error err;
    double spent[3] = { 0, 0, 0 };
    if (st_label_run_one(&run, 0, &p, &err) != ST_OK) die("picture", &err);
    make_store(b, MAX_ROUNDS);
    char *name = p.name;
    uint32_t n = 0;
    for (const double end = now() + 1; n == 0 || now() < end; n++) {
        st_label_loaded loaded;
        p.name = b->job.names[n % b->n_pictures];
        cost started = reading();
        st_label_load(&loaded, b->pictures, p.name, &b->job.options.bitmap);
        st_bitmap_free(&loaded.bitmap);
        spent[0] += since(started).cpu;
        started = reading();
        if (st_label_mark_duplicates(&p, &b->job.options.duplicates, &err) != ST_OK) die("duplicates", &err);
        spent[1] += since(started).cpu;
        started = reading();
        if (st_label_picture_write(&p, b->out, &b->job, &err) != ST_OK) die("store", &err);
        spent[2] += since(started).cpu;
    }
    p.name = name;
    st_label_picture_free(&p);
    for (size_t k = 0; k < 3; k++) spent[k] /= n;
    printf("beside the engine, ms of CPU a picture: read and decoded %.2f, duplicates %.2f, written %.2f; the engine %.0f: labelling is %.2f %% of it\n",
           1e3 * spent[0], 1e3 * spent[1], 1e3 * spent[2], 1e3 * engine_cpu, 100 * engine_cpu / (engine_cpu + spent[0] + spent[1] + spent[2]));
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

static void compare(bench *b)
{
    double engine[MAX_ROUNDS], loop[MAX_ROUNDS], ratio[MAX_ROUNDS], cpu[MAX_ROUNDS], engine_cpu[MAX_ROUNDS];
    size_t n_instances = 0;
    const uint32_t n = b->n_rounds;
    bare(b, &n_instances); /* warms up */
    n_instances = 0;
    for (uint32_t i = 0; i < n; i++) {
        cost with = { 0, 0 };
        if (i % 2) with = labelled(b, i);
        const cost without = bare(b, &n_instances);
        if (i % 2 == 0) with = labelled(b, i);
        engine[i] = without.wall;
        loop[i] = with.wall;
        ratio[i] = without.wall / with.wall;
        cpu[i] = without.cpu / with.cpu;
        engine_cpu[i] = without.cpu / b->n_pictures;
    }
    if (n_instances == 0) die("nothing was found: no masks were made or written", NULL);
    printf("label_bench: %u pictures of %u x %u, 4 phrases, %.1f instances each above %g, %u rounds in turn\n", b->n_pictures, b->bitmap.width,
           b->bitmap.height, (double)n_instances / b->n_pictures / n, (double)b->job.options.floor, n);
    printf("engine %8.3f pictures/s (median)\n", b->n_pictures / median(engine, n));
    printf("label  %8.3f pictures/s (median), %.1f %% of the engine's (median of the rounds); by CPU seconds %.1f %%\n", b->n_pictures / median(loop, n),
           100 * median(ratio, n), 100 * median(cpu, n));
    own_work(b, median(engine_cpu, n));
}

static bool read_floor(float *out, const char *text)
{
    double floor;
    if (!st_read_number(&floor, text, 0, 1)) return false;
    *out = (float)floor;
    return true;
}

static void read_arguments(bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ok = true;
        if (strcmp(argv[i], "--model") == 0) b->model_path = value;
        else if (strcmp(argv[i], "--picture") == 0) b->picture = value;
        else if (strcmp(argv[i], "--pictures") == 0) ok = st_read_count(&b->n_pictures, value, 1, 1000000);
        else if (strcmp(argv[i], "--rounds") == 0) ok = st_read_count(&b->n_rounds, value, 1, MAX_ROUNDS);
        else if (strcmp(argv[i], "--threads") == 0) ok = st_read_count(&b->n_threads, value, 1, 1024);
        else if (strcmp(argv[i], "--floor") == 0) ok = read_floor(&b->floor, value);
        else ok = false;
        if (!ok) die(argv[i], NULL);
    }
}

int main(int argc, char **argv)
{
    bench b = { .model_path = "models/demo", .picture = "models/demo/scene.png", .n_pictures = 40, .n_rounds = 9 };
    st_model_options how = ST_MODEL_OPTIONS_INIT;
    st_error err;
    read_arguments(&b, argc, argv);
    how.n_threads = b.n_threads;
    if (st_bitmap_load(&b.bitmap, b.picture, NULL, &err) != ST_OK) die("picture", &err);
    if (st_model_open(&b.model, b.model_path, &how, &err) != ST_OK) die("model", &err);
    if (st_session_new(&b.session, b.model, NULL, &err) != ST_OK) die("session", &err);
    make_pictures(&b);
    make_job(&b);
    compare(&b);
    nftw(b.folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    st_label_job_free(&b.job);
    st_bitmap_free(&b.bitmap);
    st_session_free(b.session);
    st_model_free(b.model);
    return 0;
}
