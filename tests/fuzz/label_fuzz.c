/* label_fuzz.c: files of a labelling job's folder from hostile bytes. The first byte picks one.
 *
 *   p  a picture's file: what is accepted has objects of known classes and phrases, masks of the picture's size and
 *      their areas, and is displaced only by what stands; its choice of objects ends.
 *   j  job.json: what is accepted has names and ids that rise, and is still accepted when it was written again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "label/store.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) abort();                                                                                          \
    } while (0)

/* The job of the corpus: two classes, three phrases, recipe "r". */
static const st_label_job *known(void)
{
    static char *phrases[] = { "cat", "dog" };
    static char *none[] = { NULL, NULL };
    static st_label_class classes[] = {
        { .id = 1, .name = "apple", .phrases = phrases, .concepts = none, .digests = none, .n_phrases = 1, .threshold = 0.5f },
        { .id = 4, .name = "beast", .phrases = phrases, .concepts = none, .digests = none, .n_phrases = 2, .threshold = 0.2f },
    };
    static st_label_job job = { .classes = classes, .n_classes = 2, .recipe = "r" };
    return &job;
}

static void check_objects(const st_label_picture *p, const st_label_job *job)
{
    for (size_t i = 0; i < p->n_objects; i++) {
        const st_label_object *o = &p->objects[i];
        const st_label_class *cls = st_label_class_by_id(job, o->class_id);
        CHECK(cls && o->phrase < cls->n_phrases && o->area > 0 && o->n_pieces > 0);
        CHECK(o->mask.width == p->width && o->mask.height == p->height && st_rle_area(&o->mask) == o->area);
        CHECK(o->displaced_by < (int32_t)p->n_objects);
        CHECK(o->displaced_by < 0 || p->objects[o->displaced_by].displaced_by < 0);
    }
    bool *kept = malloc(p->n_objects + 1);
    if (kept) CHECK(st_label_select(kept, job->classes, job->n_classes, p) <= p->n_objects);
    free(kept);
}

static void try_picture(const unsigned char *data, size_t n)
{
    st_label_picture p;
    bool there;
    FILE *f = n ? fmemopen((void *)(size_t)data, n, "r") : NULL;
    if (!f) return;
    const char *wrong = st_label_picture_parse(&p, &there, f, "a.png", known(), true);
    CHECK(!(wrong && there));
    if (there) {
        CHECK(strcmp(p.name, "a.png") == 0);
        CHECK(p.error ? p.n_objects == 0 : p.width > 0 && p.height > 0 && p.orientation >= 1 && p.orientation <= 8);
        check_objects(&p, known());
        st_label_picture_free(&p);
    }
    fclose(f);
}

static void try_job(const unsigned char *data, size_t n)
{
    st_label_job job, again;
    if (st_label_job_parse(&job, (const char *)data, n)) return;
    for (size_t i = 1; i < job.n_names; i++) CHECK(strcmp(job.names[i - 1], job.names[i]) < 0);
    for (size_t i = 1; i < job.n_classes; i++) CHECK(job.classes[i - 1].id < job.classes[i].id);
    char *text = st_label_job_text(&job);
    if (text) CHECK(st_label_job_parse(&again, text, strlen(text)) == NULL);
    if (text) st_label_job_free(&again);
    free(text);
    st_label_job_free(&job);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    if (n == 0) return 0;
    if (data[0] == 'p') try_picture(data + 1, n - 1);
    if (data[0] == 'j') try_job(data + 1, n - 1);
    return 0;
}
