/* neck.c: the feature pyramid on top of the trunk.
 * Mirrors `sam3/model/necks.py`: levels 4n, 2n, n; no norm and no activation in or after the last two convolutions; the half-size level that some files hold is never used.
 */
#include "vision/vision.h"

#include "base/mem.h"

/* x [n*n, V] -> out [16 n*n, D] (4n), with a GELU between the two transposed convolutions. */
static void level_4x(const st_run *run, const st_neck *neck, const st_dims *d, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = d->grid, V = d->vit_width, D = d->width;
    float *narrow = st_run_floats(run, 16 * n * n, D);                      /* after the 1x1 */
    const size_t inner = st_arena_mark(run->arena);
    float *fine = st_run_floats(run, 16 * n * n, V / 4), *half = st_run_floats(run, 4 * n * n, V / 2);
    st_conv_up_run(run, &neck->up[0][0], x, n, n, half, ST_ACT_GELU);
    st_conv_up_run(run, &neck->up[0][1], half, 2 * n, 2 * n, fine, ST_ACT_NONE);
    st_linear_run(run, &neck->proj1[0], fine, V / 4, 16 * n * n, narrow, D, ST_ACT_NONE, false);
    st_arena_rewind(run->arena, inner);
    st_conv3x3_run(run, &neck->proj2[0], &(st_conv_input){narrow, NULL, 4 * n, 4 * n}, out);
    st_arena_rewind(run->arena, mark);
}

/* x [n*n, V] -> out [4 n*n, D] (2n). */
static void level_2x(const st_run *run, const st_neck *neck, const st_dims *d, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = d->grid, V = d->vit_width, D = d->width;
    float *half = st_run_floats(run, 4 * n * n, V / 2), *narrow = st_run_floats(run, 4 * n * n, D);
    st_conv_up_run(run, &neck->up[1][0], x, n, n, half, ST_ACT_NONE);
    st_linear_run(run, &neck->proj1[1], half, V / 2, 4 * n * n, narrow, D, ST_ACT_NONE, false);
    st_conv3x3_run(run, &neck->proj2[1], &(st_conv_input){narrow, NULL, 2 * n, 2 * n}, out);
    st_arena_rewind(run->arena, mark);
}

/* x [n*n, V] -> out [n*n, D]. */
static void level_1x(const st_run *run, const st_neck *neck, const st_dims *d, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = d->grid, V = d->vit_width, D = d->width;
    float *narrow = st_run_floats(run, n * n, D);
    st_linear_run(run, &neck->proj1[2], x, V, n * n, narrow, D, ST_ACT_NONE, false);
    st_conv3x3_run(run, &neck->proj2[2], &(st_conv_input){narrow, NULL, n, n}, out);
    st_arena_rewind(run->arena, mark);
}

void st_neck_run(const st_run *run, const st_neck *neck, const st_dims *dims, const char *name, const float *x, const st_features *out)
{
    const size_t n = dims->grid, D = dims->width;
    level_4x(run, neck, dims, x, out->level[0]);
    st_run_probe(run, out->level[0], 16 * n * n, D, "%s.0", name);
    level_2x(run, neck, dims, x, out->level[1]);
    st_run_probe(run, out->level[1], 4 * n * n, D, "%s.1", name);
    level_1x(run, neck, dims, x, out->level[2]);
    st_run_probe(run, out->level[2], n * n, D, "%s.2", name);
}

void st_neck_bind(st_binder *b, st_neck *neck, const st_dims *d, const char *name)
{
    const size_t V = d->vit_width, D = d->width, narrow[3] = {V / 4, V / 2, V};
    st_bind_conv_up(b, &neck->up[0][0], V, V / 2, "%s.0.up0", name);
    st_bind_conv_up(b, &neck->up[0][1], V / 2, V / 4, "%s.0.up1", name);
    st_bind_conv_up(b, &neck->up[1][0], V, V / 2, "%s.1.up0", name);
    for (size_t l = 0; l < 3; l++) {
        st_bind_linear(b, &neck->proj1[l], narrow[l], D, "%s.%zu.proj1", name, l);
        st_bind_conv3x3(b, &neck->proj2[l], D, D, "%s.%zu.proj2", name, l);
    }
}

void st_neck_free(st_neck *neck)
{
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < 2; i++) st_free(neck->up[l][i].cells);
    for (size_t l = 0; l < 3; l++) st_free(neck->proj2[l].filters);
    *neck = (st_neck){0};
}
