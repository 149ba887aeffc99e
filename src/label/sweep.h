/* sweep.h: what every threshold would export, class by class, and how often phrases fire on pictures that hold nothing
 * of the kind: the evidence by which thresholds are chosen.
 *
 * Pictures are added one at a time and not kept. Medians come from a histogram whose bins are a hundredth wide, so that
 * memory does not grow with the pictures.
 */
#ifndef ST_LABEL_SWEEP_H
#define ST_LABEL_SWEEP_H

#include "label/labels.h"

/* One class at one threshold, which holds for all classes at once; in the last row of a class, all have their own. */
typedef struct st_label_sweep_row {
    float threshold;
    uint64_t n_instances; /* that an export would write: area bounds and duplicates count */
    uint64_t n_none;      /* pictures without any */
    uint64_t n_specks;    /* instances of fewer pixels than `speck` */
    double median_share;  /* of the picture's pixels, to a hundredth of its value; 0 when there are no instances */
} st_label_sweep_row;

typedef struct st_label_sweep {
    const st_label_job *job;  /* borrowed */
    st_label_sweep_row *rows; /* [job->n_classes][n_thresholds + 1] */
    size_t n_thresholds;
    uint64_t speck;           /* pixels */
    uint64_t n_pictures;      /* that could be read */
    uint64_t n_failed;        /* that could not */
    struct st_label_sweep_work *work;
} st_label_sweep;
#define ST_LABEL_SPECK 64
#define ST_LABEL_MAX_THRESHOLDS 100

/* thresholds [n] rise. On failure *out is zeroed. */
ST_MUSTCHECK st_status st_label_sweep_begin(st_label_sweep *out, const st_label_job *job, const float *thresholds,
                                            size_t n, uint64_t speck, st_error *err);
ST_MUSTCHECK st_status st_label_sweep_add(st_label_sweep *sweep, const st_label_picture *picture, st_error *err);
void st_label_sweep_end(st_label_sweep *sweep); /* fills the medians */
void st_label_sweep_free(st_label_sweep *sweep);
/* The thresholds that are swept when none are given: the floor, then every twentieth above it below 1. Returns how many
 * (at most 20). */
size_t st_label_sweep_thresholds(float out[20], float floor);

/* ---- pictures known to hold none of it ---- */

/* A phrase fires on a picture when it finds something within the area bounds of its class, duplicate or not. */
typedef struct st_label_negatives {
    const st_label_job *job; /* borrowed */
    uint64_t *fired;         /* pictures: [phrases of all classes][n_thresholds + 1], the last at the class's own */
    float *thresholds;       /* [n_thresholds] */
    size_t n_phrases, n_thresholds;
    uint64_t n_pictures, n_failed;
} st_label_negatives;
/* More than this share of empty pictures is too often. */
#define ST_LABEL_MAX_FALSE 0.02
/* Below the output folder of a job: the job of its negatives. */
#define ST_LABEL_NEGATIVES_FOLDER "negatives"

ST_MUSTCHECK st_status st_label_negatives_begin(st_label_negatives *out, const st_label_job *job,
                                                const float *thresholds, size_t n, st_error *err);
void st_label_negatives_add(st_label_negatives *negatives, const st_label_picture *picture);
void st_label_negatives_free(st_label_negatives *negatives);
/* Share of the pictures that phrase `flat`, counted over all classes, fires on. `at` n_thresholds: at its class's own.
 * 0 when there are no pictures. */
double st_label_false_rate(const st_label_negatives *negatives, size_t flat, size_t at);
/* The class of phrase `flat`, and the phrase's place in it. */
const st_label_class *st_label_phrase_at(size_t *phrase, const st_label_job *job, size_t flat);

#endif
