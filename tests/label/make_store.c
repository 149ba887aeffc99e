/* make_store.c FOLDER TREE: a job with known masks, for tests of what comes out of it: FOLDER/photos, FOLDER/out (the job and
 * its store) and FOLDER/truth.jsonl (run lengths as they were put in, with what an export keeps at a threshold of 0.5).
 */
#include "label/label_masks.h"
#include "label/store.h"
#include "unit/temp_folder.h"

#include <inttypes.h>

typedef struct maker {
    const char *tree;
    temp_folder folder;
    FILE *truth;
    st_label_job job;
    uint64_t seed;
} maker;

static void must(st_status status, const st_error *err)
{
    if (status == ST_OK) return;
    fprintf(stderr, "make_store: %s\n", err->message);
    exit(2);
}

/* ---- pictures ---- */

static void write_picture(const maker *m, const char *name, uint32_t width, uint32_t height)
{
    st_error err;
    char path[1024];
    uint8_t *rgb = calloc((size_t)width * height, 3);
    for (size_t i = 0; i < (size_t)width * height * 3; i++) rgb[i] = (uint8_t)(i / 3 % width * 255 / width + 40 * (i % 3));
    snprintf(path, sizeof path, "photos/%s", name);
    temp_write(&m->folder, path, "", 0);
    snprintf(path, sizeof path, "%s/photos/%s", m->folder.path, name);
    must(strstr(name, ".jp") ? st_jpeg_write(path, rgb, width, height, 80, &err)
                             : st_png_write(path, rgb, width, height, 3, &err), &err);
    free(rgb);
}

static void copy_picture(const maker *m, const char *from, const char *name)
{
    char path[1024], *bytes = calloc(1, 1 << 22);
    snprintf(path, sizeof path, "%s/tests/data/pictures/%s", m->tree, from);
    FILE *f = fopen(path, "rb");
    if (!f) temp_die(path);
    const size_t n = fread(bytes, 1, 1 << 22, f);
    fclose(f);
    snprintf(path, sizeof path, "photos/%s", name);
    temp_write(&m->folder, path, bytes, n);
    free(bytes);
}

/* ---- objects ---- */

static void add_object(st_label_picture *p, uint32_t class_id, float score, st_rle mask)
{
    st_error err;
    const st_box_px box = st_rle_box(&mask);
    st_label_object o = { .class_id = class_id, .score = score, .displaced_by = -1, .n_pieces = 1, .mask = mask };
    o.box[0] = (float)box.x0 - 0.25f, o.box[1] = (float)box.y0, o.box[2] = (float)box.x1, o.box[3] = (float)box.y1 + 0.5f;
    o.area = st_rle_area(&mask);
    if (o.area == 0) st_rle_free(&o.mask);
    else must(st_label_picture_add(p, &o, &err), &err);
}

typedef bool inside_fn(uint32_t x, uint32_t y);

static st_rle mask_where(const st_label_picture *p, inside_fn *inside)
{
    st_error err;
    st_rle mask;
    uint8_t *pixels = calloc(p->width, p->height);
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) pixels[(size_t)y * p->width + x] = inside(x, y);
    must(st_rle_from_dense(&mask, pixels, p->width, p->height, p->width, &err), &err);
    free(pixels);
    return mask;
}

static uint32_t away(uint32_t x, uint32_t y, uint32_t u, uint32_t v)
{
    return (x > u ? x - u : u - x) * (x > u ? x - u : u - x) + (y > v ? y - v : v - y) * (y > v ? y - v : v - y);
}

static bool in_disc(uint32_t x, uint32_t y) { return away(x, y, 30, 28) < 400; }
static bool in_ring(uint32_t x, uint32_t y) { return away(x, y, 60, 30) < 600 && away(x, y, 62, 28) > 90; }
static bool in_two(uint32_t x, uint32_t y) { return away(x, y, 12, 12) < 64 || away(x, y, 80, 50) < 49; }
static bool in_corner(uint32_t x, uint32_t y) { return x < 9 && y < 7; }
static bool in_pixel(uint32_t x, uint32_t y) { return x == 50 && y == 17; }
static bool in_row(uint32_t x, uint32_t y) { return x > 20 && x < 70 && y == 40; }
static bool in_column(uint32_t x, uint32_t y) { return x == 33 && y > 2; }
static bool in_slope(uint32_t x, uint32_t y) { return x == y && x < 40; }
static bool everywhere(uint32_t x, uint32_t y) { return x <= UINT32_MAX - y; }
static bool in_last_pixel(uint32_t x, uint32_t y) { return x == 96 && y == 60; }
static bool in_target(uint32_t x, uint32_t y) { return away(x, y, 120, 90) / 900 % 2 == 0 && away(x, y, 120, 90) < 9000; }

/* ---- the store ---- */

static void put_truth(maker *m, const st_label_picture *p)
{
    bool first = true, kept[64] = { false };
    st_label_select(kept, m->job.classes, m->job.n_classes, p);
    char *name = st_label_text(p->name);
    json_t *text = json_string(name);
    fputs("{\"name\": ", m->truth);
    json_dumpf(text, m->truth, JSON_ENCODE_ANY);
    json_decref(text);
    fprintf(m->truth, ", \"width\": %" PRIu32 ", \"height\": %" PRIu32 ", \"orientation\": %d, \"objects\": [", p->width,
            p->height, p->orientation);
    for (size_t i = 0; i < p->n_objects; i++) {
        const st_label_object *o = &p->objects[i];
        if (!kept[i]) continue;
        fprintf(m->truth, "%s{\"class_id\": %" PRIu32 ", \"score\": %.9g, \"counts\": [", first ? "" : ", ", o->class_id,
                (double)o->score);
        for (size_t k = 0; k < o->mask.n_counts; k++) fprintf(m->truth, "%s%" PRIu32, k ? ", " : "", o->mask.counts[k]);
        fputs("]}", m->truth);
        first = false;
    }
    fputs("]}\n", m->truth);
    free(name);
}

static void finish(maker *m, st_label_picture *p)
{
    st_error err;
    char folder[512];
    for (size_t i = 0; i < m->job.n_classes; i++) {
        st_label_answer *grown = realloc(p->answers, (p->n_answers + 1) * sizeof *grown);
        if (!grown) temp_die("realloc");
        p->answers = grown;
        p->answers[p->n_answers++] = (st_label_answer){ m->job.classes[i].id, 0, 0.5f, 0 };
    }
    snprintf(folder, sizeof folder, "%s/out", m->folder.path);
    memset(p->sha256, 'a', 64);
    must(st_label_picture_write(p, folder, &m->job, &err), &err);
    if (!p->error) put_truth(m, p);
    st_label_picture_free(p);
}

static st_label_picture begin(const char *name, const char *format, uint32_t width, uint32_t height)
{
    st_label_picture p = { .width = width, .height = height, .orientation = 1, .n_bytes = 1 };
    p.name = strdup(name);
    snprintf(p.format, sizeof p.format, "%s", format);
    return p;
}

static void shapes(maker *m)
{
    st_label_picture p = begin("a.png", "png", 97, 61);
    write_picture(m, p.name, p.width, p.height);
    inside_fn *const all[] = { in_disc, in_ring, in_two, in_corner, in_pixel, in_row, in_column, in_slope, in_last_pixel };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        add_object(&p, 1, 0.99f - 0.01f * (float)i, mask_where(&p, all[i]));
    add_object(&p, 1, 0.4f, mask_where(&p, in_disc)); /* below the threshold */
    add_object(&p, 2, 0.8f, mask_where(&p, everywhere));
    add_object(&p, 2, 0.8f, mask_where(&p, everywhere)); /* twice the same */
    add_object(&p, 2, 0.7f, mask_where(&p, in_disc));
    p.objects[p.n_objects - 1].displaced_by = 0;
    add_object(&p, 2, 0.6f, mask_where(&p, in_ring)); /* displaced by one that is not kept: stands again */
    p.objects[p.n_objects - 1].displaced_by = 9;
    finish(m, &p);
}

static void blobs(maker *m, const char *name, uint32_t width, uint32_t height, unsigned n, uint32_t fill, unsigned smooth)
{
    st_label_picture p = begin(name, "png", width, height);
    write_picture(m, name, width, height);
    for (unsigned i = 0; i < n; i++)
        add_object(&p, 1, 0.95f - 0.01f * (float)i, mask_at_random(&m->seed, width, height, fill, smooth));
    add_object(&p, 5, 0.9f, mask_where(&p, in_disc));
    if (width > 200) add_object(&p, 5, 0.9f, mask_where(&p, in_target));
    finish(m, &p);
}

static void turned(maker *m)
{
    st_error err;
    char path[512];
    st_bitmap b;
    copy_picture(m, "jpeg_orientation_6.jpg", "turned.jpg");
    snprintf(path, sizeof path, "%s/photos/turned.jpg", m->folder.path);
    must(st_bitmap_load(&b, path, NULL, &err), &err);
    st_label_picture p = begin("turned.jpg", "jpeg", b.width, b.height);
    p.orientation = b.orientation;
    st_bitmap_free(&b);
    add_object(&p, 1, 0.9f, mask_where(&p, in_corner));
    finish(m, &p);
}

static void name_class(st_label_class *c, uint32_t id, const char *name)
{
    *c = (st_label_class){ .id = id, .name = strdup(name), .n_phrases = 1, .threshold = 0.5f };
    c->phrases = calloc(1, sizeof *c->phrases);
    c->concepts = calloc(1, sizeof *c->concepts);
    c->digests = calloc(1, sizeof *c->digests);
    c->phrases[0] = strdup(name);
}

/* In order of bytes. */
static const char *const names[] = { "R\xC3\xA4ume & <Flur>/images/x \"1\".PNG", "a.jpg", "a.png", "a_png.jpg", "big.png",
                                     "broken.jpg", ("b\xFF" "d.png"), "gone.png", "later.jpg", "turned.jpg" };

static void describe(maker *m)
{
    st_error err;
    st_label_job *j = &m->job;
    char folder[512], photos[512];
    *j = (st_label_job){ .stencil = strdup("0.0.0"), .model_version = strdup("sam3"), .precision = strdup("fp32"),
                         .model_size = 1008, .n_classes = 3, .shard = 1, .n_shards = 1, .n_retired = 1 };
    j->model_id = strdup("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
    st_label_options_default(&j->options);
    j->classes = calloc(3, sizeof *j->classes);
    j->retired = calloc(1, sizeof *j->retired);
    name_class(&j->classes[0], 1, "forklift");
    name_class(&j->classes[1], 2, "worker, \"hi-vis\" & <co>: #1");
    name_class(&j->classes[2], 5, "b\xC3\xA4r");
    j->retired[0] = (st_label_class){ .id = 3, .name = strdup("old"), .threshold = 0.5f };
    j->n_names = j->n_all = sizeof names / sizeof *names;
    j->names = calloc(j->n_names, sizeof *j->names);
    for (size_t i = 0; i < j->n_names; i++) j->names[i] = strdup(names[i]);
    memset(j->all_sha256, 'b', 64);
    if (!st_label_recipe(j)) temp_die("recipe");
    snprintf(folder, sizeof folder, "%s/out", m->folder.path);
    snprintf(photos, sizeof photos, "%s/photos", m->folder.path);
    if (mkdir(folder, 0777) != 0 || mkdir(photos, 0777) != 0) temp_die(folder);
    must(st_label_job_write(j, folder, &err), &err);
    must(st_label_root_write(folder, photos, &err), &err);
}

int main(int argc, char **argv)
{
    maker m = { .seed = 2024 };
    char truth[512];
    if (argc != 3) return 2;
    m.tree = argv[2];
    snprintf(m.folder.path, sizeof m.folder.path, "%s", argv[1]);
    snprintf(truth, sizeof truth, "%s/truth.jsonl", argv[1]);
    m.truth = fopen(truth, "w");
    if (!m.truth) temp_die(truth);
    describe(&m);
    blobs(&m, names[0], 100, 70, 4, 140, 2);
    st_label_picture empty = begin("a.jpg", "jpeg", 64, 48);
    write_picture(&m, "a.jpg", 64, 48);
    finish(&m, &empty);
    shapes(&m);
    empty = begin("a_png.jpg", "jpeg", 64, 48);
    write_picture(&m, "a_png.jpg", 64, 48);
    finish(&m, &empty);
    blobs(&m, "big.png", 240, 180, 4, 120, 6);
    st_label_picture broken = { .name = strdup("broken.jpg"), .error = strdup("broken.jpg: no picture") };
    finish(&m, &broken);
    st_label_picture odd = begin(names[6], "png", 33, 44); /* a name that is no UTF-8 */
    write_picture(&m, names[6], 33, 44);
    add_object(&odd, 1, 0.85f, mask_where(&odd, in_slope));
    finish(&m, &odd);
    st_label_picture gone = begin("gone.png", "png", 40, 40); /* no file any more */
    add_object(&gone, 1, 0.75f, mask_where(&gone, in_corner));
    finish(&m, &gone);
    turned(&m); /* later.jpg is not done yet */
    st_label_job_free(&m.job);
    return fclose(m.truth) == 0 ? 0 : 1;
}
