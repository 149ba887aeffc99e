/* neck.c: the feature pyramid on top of the trunk, and the object that holds trunk and neck.
 * Mirrors `sam3/model/necks.py`: levels 4n, 2n, n; no norm and no activation in or after the last two convolutions; the half-size level that some files hold is never used.
 */
#include "vision/vision.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"

/* x [n*n, V] -> out [16 n*n, D] (4n), with a GELU between the two transposed convolutions. */
static void level_4x(const st_run *run, const st_vision *v, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = v->dims->grid, V = v->dims->vit_width, D = v->dims->width;
    float *narrow = st_run_floats(run, 16 * n * n, D);                      /* after the 1x1 */
    const size_t inner = st_arena_mark(run->arena);
    float *fine = st_run_floats(run, 16 * n * n, V / 4), *half = st_run_floats(run, 4 * n * n, V / 2);
    st_conv_up_run(run, &v->up[0][0], x, n, n, half, ST_ACT_GELU);
    st_conv_up_run(run, &v->up[0][1], half, 2 * n, 2 * n, fine, ST_ACT_NONE);
    st_linear_run(run, &v->proj1[0], fine, V / 4, 16 * n * n, narrow, D, ST_ACT_NONE, false);
    st_arena_rewind(run->arena, inner);
    st_conv3x3_run(run, &v->proj2[0], &(st_conv_input){narrow, NULL, 4 * n, 4 * n}, out);
    st_arena_rewind(run->arena, mark);
}

/* x [n*n, V] -> out [4 n*n, D] (2n). */
static void level_2x(const st_run *run, const st_vision *v, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = v->dims->grid, V = v->dims->vit_width, D = v->dims->width;
    float *half = st_run_floats(run, 4 * n * n, V / 2), *narrow = st_run_floats(run, 4 * n * n, D);
    st_conv_up_run(run, &v->up[1][0], x, n, n, half, ST_ACT_NONE);
    st_linear_run(run, &v->proj1[1], half, V / 2, 4 * n * n, narrow, D, ST_ACT_NONE, false);
    st_conv3x3_run(run, &v->proj2[1], &(st_conv_input){narrow, NULL, 2 * n, 2 * n}, out);
    st_arena_rewind(run->arena, mark);
}

/* x [n*n, V] -> out [n*n, D]. */
static void level_1x(const st_run *run, const st_vision *v, const float *x, float *out)
{
    const size_t mark = st_arena_mark(run->arena), n = v->dims->grid, V = v->dims->vit_width, D = v->dims->width;
    float *narrow = st_run_floats(run, n * n, D);
    st_linear_run(run, &v->proj1[2], x, V, n * n, narrow, D, ST_ACT_NONE, false);
    st_conv3x3_run(run, &v->proj2[2], &(st_conv_input){narrow, NULL, n, n}, out);
    st_arena_rewind(run->arena, mark);
}

void st_neck_run(const st_run *run, const st_vision *v, const float *x, const st_features *out)
{
    const size_t n = v->dims->grid, D = v->dims->width;
    level_4x(run, v, x, out->level[0]);
    st_run_probe(run, out->level[0], 16 * n * n, D, "neck.0");
    level_2x(run, v, x, out->level[1]);
    st_run_probe(run, out->level[1], 4 * n * n, D, "neck.1");
    level_1x(run, v, x, out->level[2]);
    st_run_probe(run, out->level[2], n * n, D, "neck.2");
}

st_status st_vision_encode(const st_run *run, const st_vision *v, float *px, const st_features *out, st_error *err)
{
    const size_t mark = st_arena_mark(run->arena), n = v->dims->grid, side = n * v->dims->patch;
    st_run_probe(run, px, side * side, 3, "px");
    float *x = st_run_floats(run, n * n, v->dims->vit_width);
    st_vit_run(run, v, px, x);
    st_neck_run(run, v, x, out);
    st_run_progress(run, "picture", v->dims->vit_depth + 1, v->dims->vit_depth + 1);
    st_arena_rewind(run->arena, mark);
    return st_run_status(run, err);
}

st_status st_vision_init(st_vision *v, const st_dims *dims, st_error *err)
{
    *v = (st_vision){.dims = dims};
    const size_t head = dims->vit_width / dims->vit_heads, window = dims->window, n = dims->grid;
    v->blocks = st_calloc(dims->vit_depth, sizeof *v->blocks);
    v->rope_window = st_realloc_array(NULL, window * window, head * sizeof(float));
    v->rope_global = st_realloc_array(NULL, n * n, head * sizeof(float));
    if (!v->blocks || !v->rope_window || !v->rope_global) {
        st_vision_free(v);
        return st_fail(err, ST_ERR_NOMEM, "out of memory for the picture encoder's tables");
    }
    st_vit_rope_table(v->rope_window, window, head, dims->rope_theta, 1.0f);
    st_vit_rope_table(v->rope_global, n, head, dims->rope_theta, (float)window / (float)n);
    return st_vision_bind(v, NULL, err);
}

static void bind_block(st_binder *b, const st_dims *d, st_vit_block *block, size_t i)
{
    const size_t V = d->vit_width;
    st_bind_norm(b, &block->norm1, V, d->vit_eps, "vit.blocks.%zu.norm1", i);
    st_bind_norm(b, &block->norm2, V, d->vit_eps, "vit.blocks.%zu.norm2", i);
    st_bind_linear(b, &block->q, V, V, "vit.blocks.%zu.attn.q", i);
    st_bind_linear(b, &block->k, V, V, "vit.blocks.%zu.attn.k", i);
    st_bind_linear(b, &block->v, V, V, "vit.blocks.%zu.attn.v", i);
    st_bind_linear(b, &block->proj, V, V, "vit.blocks.%zu.attn.proj", i);
    st_bind_linear(b, &block->fc1, V, d->vit_mlp, "vit.blocks.%zu.mlp.fc1", i);
    st_bind_linear(b, &block->fc2, d->vit_mlp, V, "vit.blocks.%zu.mlp.fc2", i);
}

st_status st_vision_bind(st_vision *v, st_weights *weights, st_error *err)
{
    if (v->bound) return ST_OK;
    const st_dims *d = v->dims;
    const size_t V = d->vit_width, D = d->width, n_in = 3 * (size_t)d->patch * d->patch;
    st_binder b = {weights, err, ST_OK};
    v->patch = (st_linear){st_bind_f32(&b, V * n_in, "vit.patch.weight"), NULL, n_in, V};
    v->pos = st_bind_f32(&b, (size_t)d->pos_side * d->pos_side * V, "vit.pos");
    st_bind_norm(&b, &v->ln_pre, V, d->vit_eps, "vit.ln_pre");
    for (size_t i = 0; i < d->vit_depth; i++) bind_block(&b, d, &v->blocks[i], i);
    st_bind_conv_up(&b, &v->up[0][0], V, V / 2, "neck.0.up0");
    st_bind_conv_up(&b, &v->up[0][1], V / 2, V / 4, "neck.0.up1");
    st_bind_conv_up(&b, &v->up[1][0], V, V / 2, "neck.1.up0");
    const size_t narrow[3] = {V / 4, V / 2, V};
    for (size_t l = 0; l < 3; l++) {
        st_bind_linear(&b, &v->proj1[l], narrow[l], D, "neck.%zu.proj1", l);
        st_bind_conv3x3(&b, &v->proj2[l], D, D, "neck.%zu.proj2", l);
    }
    v->bound = weights && b.status == ST_OK;
    return b.status;
}

void st_vision_free(st_vision *v)
{
    st_free(v->blocks);
    st_free(v->rope_window);
    st_free(v->rope_global);
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < 2; i++) st_free(v->up[l][i].cells);
    for (size_t l = 0; l < 3; l++) st_free(v->proj2[l].taps);
    *v = (st_vision){0};
}
