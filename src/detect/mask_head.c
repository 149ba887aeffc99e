/* mask_head.c: pixel features in the light of the prompt, and a mask per query. Mirrors `sam3/model/maskformer_segmentation.py` (UniversalSegmentationHead, PixelDecoder).
 * The two parts are separate so that masks are computed only for queries that survive the score cut.
 */
#include "detect/detect.h"

#include <string.h>

/* x = fused + MHA(LN(fused), prompt): [N, D]. */
static void attend_prompt(const st_run *run, const st_detect *d, const float *fused, const float *prompt, size_t n_prompt, float *x)
{
    const size_t mark = st_arena_mark(run->arena), N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width;
    float *y = st_run_floats(run, N, D);
    st_norm_run(run, &d->mask.prompt_norm, fused, N, y);
    if (!st_run_idle(run)) memcpy(x, fused, N * D * sizeof *x);
    st_mha_run(run, &d->mask.prompt, y, N, prompt, prompt, n_prompt, x, NULL);
    st_run_probe(run, x, N, D, "mask.prompt");
    st_arena_rewind(run->arena, mark);
}

/* out [4 rows, D] = ReLU(GN(conv(up2(low) + skip))), side = of the output. */
static void upsample_stage(const st_run *run, const st_detect *d, size_t stage, const float *low, const float *skip, size_t side, float *out)
{
    st_conv3x3_run(run, &d->mask.conv[stage], &(st_conv_input){low, skip, side, side}, out);
    st_group_norm_relu_run(run, &d->mask.gn[stage], ST_GROUP_NORM_GROUPS, out, side * side);
    st_run_probe(run, out, side * side, d->dims->width, "mask.pix.%zu", stage);
}

void st_mask_pixels(const st_run *run, const st_detect *d, const float *fused, const float *prompt, size_t n_prompt, const float *level_2n,
                    const float *level_4n, float *pixels)
{
    const size_t mark = st_arena_mark(run->arena), n = d->dims->grid, D = d->dims->width;
    float *x = st_run_floats(run, n * n, D), *half = st_run_floats(run, 4 * n * n, D);
    attend_prompt(run, d, fused, prompt, n_prompt, x);
    upsample_stage(run, d, 0, x, level_2n, 2 * n, half);
    upsample_stage(run, d, 1, half, level_4n, 4 * n, pixels);
    st_arena_rewind(run->arena, mark);
}

enum { PIXELS_PER_ITEM = 4096 };

typedef struct dot_job {
    const st_run *run;
    const float *folded, *offset, *pixels; /* [n, D], [n], [n_pixels, D] */
    float *logits;                         /* [n, n_pixels] */
    size_t n, D, n_pixels;
} dot_job;

static void dot_item(void *arg, size_t item, unsigned slot)
{
    (void)slot;
    const dot_job *job = arg;
    const size_t first = item * PIXELS_PER_ITEM, left = job->n_pixels - first, count = left < PIXELS_PER_ITEM ? left : PIXELS_PER_ITEM;
    job->run->k->gemm(true, job->n, count, job->D, job->folded, job->D, job->pixels + first * job->D, job->D, false, job->logits + first, job->n_pixels);
    for (size_t i = 0; i < job->n; i++) {
        float *row = job->logits + i * job->n_pixels + first;
        for (size_t p = 0; p < count; p++) row[p] += job->offset[i];
    }
}

/* mask = m · (W x + b) = (m W) · x + m · b: the instance projection is folded into the n mask embeddings instead of running over every pixel. */
void st_mask_logits(const st_run *run, const st_detect *d, const float *pixels, const float *states, size_t n, float *logits)
{
    const size_t mark = st_arena_mark(run->arena), D = d->dims->width, n_pixels = 16 * (size_t)d->dims->grid * d->dims->grid;
    /* Never few rows, which would be added up in another order: a mask's bits do not hang on how many others are kept. */
    const size_t rows = n > ST_GEMM_FEW_ROWS ? n : ST_GEMM_FEW_ROWS + 1;
    float *padded = st_run_floats(run, rows, D), *embed = st_run_floats(run, rows, D);
    float *folded = st_run_floats(run, n, D), *offset = st_run_floats(run, n, 1);
    if (!st_run_idle(run) && n > 0) {
        memcpy(padded, states, n * D * sizeof *padded);
        memset(padded + n * D, 0, (rows - n) * D * sizeof *padded);
    }
    st_mlp_run(run, d->mask.embed, 3, padded, rows, embed);
    st_run_probe(run, embed, n, D, "mask.embed");
    st_run_count(run, n, n_pixels, D);
    if (!st_run_idle(run) && n > 0) {
        run->k->gemm(false, n, D, D, embed, D, d->mask.instance.weight, D, false, folded, D);
        run->k->gemm(true, n, 1, D, embed, D, d->mask.instance.bias, D, false, offset, 1);
        dot_job job = {run, folded, offset, pixels, logits, n, D, n_pixels};
        st_run_parallel(run, (n_pixels + PIXELS_PER_ITEM - 1) / PIXELS_PER_ITEM, dot_item, &job);
    }
    st_run_probe(run, logits, n, n_pixels, "mask.logits");
    st_arena_rewind(run->arena, mark);
}
