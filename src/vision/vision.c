/* vision.c: the picture encoder as one object: its tables, its weights, and the pass from pixels to features. */
#include "vision/vision.h"

#include "base/error.h"
#include "base/mem.h"

st_status st_vision_encode(const st_run *run, const st_vision *v, float *px, float *x, const st_features *out, st_error *err)
{
    const size_t n = v->dims->grid, side = n * v->dims->patch;
    st_run_probe(run, px, side * side, 3, "px");
    st_vit_run(run, v, px, x);
    st_neck_run(run, &v->neck, v->dims, "neck", x, out);
    st_run_progress(run, "picture", v->dims->vit_depth + 1, v->dims->vit_depth + 1);
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
    const size_t V = d->vit_width, n_in = 3 * (size_t)d->patch * d->patch;
    st_binder b = {weights, err, ST_OK};
    v->patch = (st_linear){.weight = st_bind_f32(&b, V * n_in, "vit.patch.weight"), .n_in = n_in, .n_out = V};
    v->pos = st_bind_f32(&b, (size_t)d->pos_side * d->pos_side * V, "vit.pos");
    st_bind_norm(&b, &v->ln_pre, V, d->vit_eps, "vit.ln_pre");
    for (size_t i = 0; i < d->vit_depth; i++) bind_block(&b, d, &v->blocks[i], i);
    st_neck_bind(&b, &v->neck, d, "neck");
    v->bound = weights && b.status == ST_OK;
    return b.status;
}

void st_vision_free(st_vision *v)
{
    st_free(v->blocks);
    st_free(v->rope_window);
    st_free(v->rope_global);
    st_neck_free(&v->neck);
    *v = (st_vision){0};
}
