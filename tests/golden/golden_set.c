/* golden_set.c: reads a golden set. */
#include "golden/golden_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "weights/safetensors.h"

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "golden: %s: %s\n", what, why);
    exit(1);
}

void golden_open(golden_set *set, const char *folder, const char *weights)
{
    char path[1200];
    json_error_t bad;
    st_error err;
    st_map map;
    uint32_t index;
    memset(set, 0, sizeof *set);
    snprintf(set->folder, sizeof set->folder, "%s", folder);
    snprintf(path, sizeof path, "%s/cases.json", folder);
    set->root = json_load_file(path, JSON_REJECT_DUPLICATES, &bad);
    if (!set->root) die(path, bad.text);
    set->input_size = (uint32_t)json_integer_value(json_object_get(set->root, "input_size"));
    if (weights) snprintf(set->weights, sizeof set->weights, "%s", weights);
    else snprintf(set->weights, sizeof set->weights, "%s/%s", folder, json_string_value(json_object_get(set->root, "weights")));
    snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_object_get(set->root, "golden")));
    if (st_map_open(&map, path, &err) != ST_OK || st_catalog_add_map(&set->tensors, map, path, &index, &err) != ST_OK ||
        st_safetensors_read(&set->tensors, index, &err) != ST_OK || st_catalog_finish(&set->tensors, &err) != ST_OK)
        die(path, err.message);
}

void golden_close(golden_set *set)
{
    st_catalog_free(&set->tensors);
    json_decref(set->root);
}

float *golden_tensor(const golden_set *set, const char *case_name, const char *stage, size_t *rows, size_t *cols)
{
    char name[256];
    snprintf(name, sizeof name, "%s/%s", case_name, stage);
    const st_entry *e = st_catalog_find(&set->tensors, name);
    if (!e) return NULL;
    float *values = malloc((size_t)e->n_elements * sizeof *values + 1);
    if (!values) die(name, "out of memory");
    if (e->dtype == ST_DTYPE_I64) { /* token ids: small numbers, exact in fp32 */
        for (size_t i = 0; i < e->n_elements; i++) {
            int64_t id;
            memcpy(&id, set->tensors.blobs[e->blob].data + e->offset + 8 * i, sizeof id);
            values[i] = (float)id;
        }
    } else if (st_entry_read(&set->tensors, e, 0, (size_t)e->n_elements, values) != e->n_elements) die(name, "the golden is not finite");
    *cols = e->rank > 1 ? (size_t)e->shape[1] : 1;
    *rows = e->rank > 0 ? (size_t)e->shape[0] : 1;
    return values;
}

void golden_read_case(golden_case *out, json_t *json)
{
    *out = (golden_case){.json = json};
    out->name = json_string_value(json_object_get(json, "name"));
    out->picture_case = json_string_value(json_object_get(json, "picture_stages"));
    out->picture = json_string_value(json_object_get(json, "picture"));
    out->cpu_resize = strcmp(json_string_value(json_object_get(json, "resize")), "cpu") == 0;
    out->phrase = json_string_value(json_object_get(json, "phrase"));
    out->width = (uint32_t)json_integer_value(json_object_get(json, "width"));
    out->height = (uint32_t)json_integer_value(json_object_get(json, "height"));
    out->hf_text_only = json_is_true(json_object_get(json, "hf_text_only"));
    out->threshold = (float)json_number_value(json_object_get(json, "threshold"));
    json_t *boxes = json_object_get(json, "boxes");
    out->n_boxes = json_array_size(boxes);
    if (out->n_boxes > 8) die(out->name, "more than 8 boxes");
    for (size_t i = 0; i < out->n_boxes; i++) {
        json_t *box = json_array_get(boxes, i), *xyxy = json_object_get(box, "xyxy");
        float v[4];
        for (size_t c = 0; c < 4; c++) v[c] = (float)json_number_value(json_array_get(xyxy, c));
        out->boxes[i] = (st_exemplar){v[0], v[1], v[2], v[3], !json_is_true(json_object_get(box, "positive"))};
    }
}

static void axis_at(uint32_t i, size_t n_in, uint32_t n_out, size_t *i0, size_t *i1, float *lambda)
{
    const float src = fmaxf(((float)i + 0.5f) * ((float)n_in / (float)n_out) - 0.5f, 0.0f);
    *i0 = (size_t)src;
    if (*i0 > n_in - 1) *i0 = n_in - 1;
    *i1 = *i0 + 1 < n_in ? *i0 + 1 : n_in - 1;
    *lambda = src - (float)*i0;
}

float golden_resized(const float *logits, size_t rows, size_t cols, uint32_t width, uint32_t height, uint32_t x, uint32_t y)
{
    size_t r0, r1, c0, c1;
    float ly, lx;
    axis_at(y, rows, height, &r0, &r1, &ly);
    axis_at(x, cols, width, &c0, &c1, &lx);
    const float *a = logits + r0 * cols, *b = logits + r1 * cols;
    return (1.0f - ly) * ((1.0f - lx) * a[c0] + lx * a[c1]) + ly * ((1.0f - lx) * b[c0] + lx * b[c1]);
}
