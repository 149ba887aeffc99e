/* sweep.c: instances, empty pictures, areas and specks for every class and threshold (sweep.h). */
#include "label/sweep.h"

#include <math.h>
#include <stdlib.h>
#include "front/fault.h"

enum { PER_OCTAVE = 64, N_BINS = PER_OCTAVE * 33 }; /* a share is above 2^-33: pictures have at most 2^32 pixels */

struct st_label_sweep_work {
    float *thresholds;     /* [n_thresholds] */
    st_label_class *classes; /* the job's, with the threshold of the moment */
    uint32_t **bins;       /* [n_classes * (n_thresholds + 1)][N_BINS], made when the first instance comes */
    uint64_t *seen;        /* [n_classes] in the picture of the moment */
};

static size_t n_rows(const st_label_sweep *s)
{
    return s->job->n_classes * (s->n_thresholds + 1);
}

/* ---- thresholds ---- */

size_t st_label_sweep_thresholds(float out[20], float floor)
{
    size_t n = 0;
    out[n++] = floor;
    for (int i = 1; i < 20; i++) {
        const float t = (float)i / 20.0f;
        if (t > floor + 1e-6f) out[n++] = t;
    }
    return n;
}

/* ---- one picture ---- */

static size_t bin_of(double share)
{
    const double at = -log2(share) * PER_OCTAVE; /* 0 for the whole picture */
    return at < 0 ? 0 : at < N_BINS - 1 ? (size_t)at : N_BINS - 1;
}

static double share_of(size_t bin)
{
    return bin == 0 ? 1.0 : exp2(-((double)bin + 0.5) / PER_OCTAVE);
}

static st_status count(st_label_sweep *s, size_t row, const st_label_object *o, const st_label_picture *p,
                       st_error *err)
{
    uint32_t **bins = &s->work->bins[row];
    if (!*bins) *bins = calloc(N_BINS, sizeof **bins);
    if (!*bins) return st_fault(err, ST_ERR_NOMEM, "sweep: out of memory");
    (*bins)[bin_of((double)o->area / ((double)p->width * (double)p->height))]++;
    s->rows[row].n_instances++;
    s->rows[row].n_specks += o->area < s->speck;
    return ST_OK;
}

static size_t class_at(const st_label_job *job, uint32_t id)
{
    size_t low = 0, high = job->n_classes; /* ids rise */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (job->classes[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low < job->n_classes && job->classes[low].id == id ? low : SIZE_MAX;
}

/* The picture as an export with the t-th threshold would have it. */
static st_status add_at(st_label_sweep *s, const st_label_picture *p, bool *kept, size_t t, st_error *err)
{
    struct st_label_sweep_work *w = s->work;
    const size_t n = s->job->n_classes, step = s->n_thresholds + 1;
    st_status status = ST_OK;
    for (size_t c = 0; c < n; c++) {
        w->classes[c].threshold = t < s->n_thresholds ? w->thresholds[t] : s->job->classes[c].threshold;
        w->seen[c] = 0;
    }
    st_label_select(kept, w->classes, n, p);
    for (size_t i = 0; status == ST_OK && i < p->n_objects; i++) {
        const size_t c = kept[i] ? class_at(s->job, p->objects[i].class_id) : SIZE_MAX;
        if (c == SIZE_MAX) continue;
        w->seen[c]++;
        status = count(s, c * step + t, &p->objects[i], p, err);
    }
    for (size_t c = 0; c < n; c++) s->rows[c * step + t].n_none += w->seen[c] == 0;
    return status;
}

st_status st_label_sweep_add(st_label_sweep *s, const st_label_picture *p, st_error *err)
{
    if (p->error) {
        s->n_failed++;
        return ST_OK;
    }
    bool *kept = calloc(p->n_objects + 1, sizeof *kept);
    st_status status = kept ? ST_OK : st_fault(err, ST_ERR_NOMEM, "sweep: out of memory");
    s->n_pictures++;
    for (size_t t = 0; status == ST_OK && t <= s->n_thresholds; t++) status = add_at(s, p, kept, t, err);
    free(kept);
    return status;
}

/* ---- begin and end ---- */

st_status st_label_sweep_begin(st_label_sweep *out, const st_label_job *job, const float *thresholds, size_t n,
                               uint64_t speck, st_error *err)
{
    *out = (st_label_sweep){ .job = job, .n_thresholds = n, .speck = speck };
    if (n == 0 || n > ST_LABEL_MAX_THRESHOLDS) {
        *out = (st_label_sweep){ 0 };
        return st_fault(err, ST_ERR_INVALID_ARG, "sweep: %zu thresholds, expected 1 to %d", n, ST_LABEL_MAX_THRESHOLDS);
    }
    struct st_label_sweep_work *w = calloc(1, sizeof *w);
    out->work = w;
    out->rows = calloc(n_rows(out) + 1, sizeof *out->rows);
    if (w) {
        w->thresholds = calloc(n, sizeof *w->thresholds);
        w->classes = st_label_classes_copy(job->classes, job->n_classes);
        w->bins = calloc(n_rows(out) + 1, sizeof *w->bins);
        w->seen = calloc(job->n_classes + 1, sizeof *w->seen);
    }
    if (!w || !out->rows || !w->thresholds || !w->classes || !w->bins || !w->seen) {
        st_label_sweep_free(out);
        return st_fault(err, ST_ERR_NOMEM, "sweep: out of memory");
    }
    for (size_t i = 0; i < n; i++) w->thresholds[i] = thresholds[i];
    for (size_t i = 0; i < n_rows(out); i++) {
        const size_t t = i % (n + 1);
        out->rows[i].threshold = t < n ? thresholds[t] : job->classes[i / (n + 1)].threshold;
    }
    return ST_OK;
}

/* The lower one of the two in the middle; bins go from large to small. */
static double median(const uint32_t *bins, uint64_t n)
{
    uint64_t passed = 0;
    for (size_t i = N_BINS; n > 0 && i-- > 0;) {
        passed += bins[i];
        if (2 * passed >= n) return share_of(i);
    }
    return 0;
}

void st_label_sweep_end(st_label_sweep *s)
{
    for (size_t i = 0; i < n_rows(s); i++)
        if (s->work->bins[i]) s->rows[i].median_share = median(s->work->bins[i], s->rows[i].n_instances);
}

void st_label_sweep_free(st_label_sweep *s)
{
    struct st_label_sweep_work *w = s->work;
    if (w) {
        for (size_t i = 0; w->bins && i < n_rows(s); i++) free(w->bins[i]);
        if (w->classes) st_label_classes_free(w->classes, s->job->n_classes);
        free(w->thresholds);
        free(w->bins);
        free(w->seen);
        free(w);
    }
    free(s->rows);
    *s = (st_label_sweep){ 0 };
}
