/* golden_set.h: one folder of goldens made by the reference modules (tests/reference): a model, cases, and the tensors of every stage. */
#ifndef GOLDEN_SET_H
#define GOLDEN_SET_H

#include <jansson.h>
#include "engine/engine.h"
#include "weights/catalog.h"

typedef struct golden_set {
    char folder[1024];
    char weights[1200]; /* path of the model */
    uint32_t input_size; /* other than the model's own; 0: its own */
    json_t *root;       /* cases.json */
    st_catalog tensors; /* golden.safetensors */
} golden_set;

/* Exits with a message when the folder is not a golden set: a missing golden is a failure, never a skip. weights may be NULL. */
void golden_open(golden_set *set, const char *folder, const char *weights);
void golden_close(golden_set *set);
/* "<case>/<stage>" as fp32, from malloc; NULL when the set has no such tensor. */
float *golden_tensor(const golden_set *set, const char *case_name, const char *stage, size_t *rows, size_t *cols);

/* One case's fields. */
typedef struct golden_case {
    const char *name, *picture, *picture_case, *phrase; /* phrase NULL: boxes only */
    uint32_t width, height;
    bool hf_text_only, cpu_resize;
    float threshold;
    st_exemplar boxes[8];
    size_t n_boxes;
    json_t *json;
} golden_case;
void golden_read_case(golden_case *out, json_t *json);

/* Logit at pixel (x, y) of a map of rows x cols enlarged to width x height, as the reference resizes. */
float golden_resized(const float *logits, size_t rows, size_t cols, uint32_t width, uint32_t height, uint32_t x, uint32_t y);

#endif
