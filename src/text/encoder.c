/* encoder.c: CLIP's text transformer: pre-norm, causal, exact GELU, eps from the model (1e-5), all positions kept; then one linear layer to the detector's width.
 * Mirrors `sam3/model/text_encoder_ve.py` (class TextTransformer, VETextEncoder). CLIP's own pooled projection is not part of SAM 3.
 */
#include "text/encoder.h"

#include <string.h>
#include "base/error.h"
#include "base/mem.h"
#include "text/bpe.h"

static void block_run(const st_run *run, const st_text_block *b, float *x, size_t n, size_t W)
{
    const size_t mark = st_arena_mark(run->arena);
    float *y = st_run_floats(run, n, W);
    st_norm_run(run, &b->ln1, x, n, y);
    st_mha_run(run, &b->attn, y, n, y, y, n, x, &(st_attention){.causal = true});
    st_norm_run(run, &b->ln2, x, n, y);
    st_feed_forward(run, &b->fc1, &b->fc2, ST_ACT_GELU, y, n, x);
    st_arena_rewind(run->arena, mark);
}

st_status st_text_encode(const st_run *run, const st_text *t, const uint32_t *ids, size_t n, float *out, st_error *err)
{
    const size_t mark = st_arena_mark(run->arena), W = t->dims->text_width, D = t->dims->width;
    float *x = st_run_floats(run, n, W); /* [n, W] */
    if (!st_run_idle(run))
        for (size_t i = 0; i < n; i++) {
            if (t->token_embed) memcpy(x + i * W, t->token_embed + ids[i] * W, W * sizeof *x);
            else st_weights_read(t->weights, "text.token_embed", ids[i] * W, W, x + i * W);
            run->k->add(x + i * W, t->pos + i * W, W);
        }
    for (size_t i = 0; i < t->dims->text_depth; i++) {
        block_run(run, &t->blocks[i], x, n, W);
        st_run_probe(run, x, n, W, "text.block.%zu", i);
        st_run_let_go(run, "text.blocks.%zu.", i);
    }
    st_norm_run(run, &t->ln_final, x, n, x);
    st_linear_run(run, &t->proj, x, W, n, out, D, ST_ACT_NONE, false);
    st_run_probe(run, out, n, D, "text.out");
    st_arena_rewind(run->arena, mark);
    return st_run_status(run, err);
}

st_status st_text_init(st_text *t, const st_dims *dims, st_error *err)
{
    *t = (st_text){.dims = dims};
    if (dims->vocab < ST_BPE_VOCAB) /* any of the tokeniser's ids may index the table */
        return st_fail(err, ST_ERR_UNSUPPORTED, "text encoder: a vocabulary of %u tokens, expected at least %u", dims->vocab, ST_BPE_VOCAB);
    t->blocks = st_calloc(dims->text_depth, sizeof *t->blocks);
    return t->blocks ? st_text_bind(t, NULL, err) : st_fail(err, ST_ERR_NOMEM, "out of memory for the text encoder");
}

st_status st_text_bind(st_text *t, st_weights *weights, st_error *err)
{
    if (t->bound) return ST_OK;
    const st_dims *d = t->dims;
    const size_t W = d->text_width;
    st_binder b = {weights, err, ST_OK};
    st_status status = ST_OK;
    if (!weights || st_weights_in_place(weights, "text.token_embed")) {
        t->token_embed = st_bind_f32(&b, (size_t)d->vocab * W, "text.token_embed");
        if (weights) st_weights_drop(weights, "text.token_embed"); /* looked through for NaN; a phrase touches a few rows of 49,408 */
    } else {
        t->token_embed = NULL;
        t->weights = weights;
        status = st_weights_look_through(weights, "text.token_embed", err);
    }
    if (status != ST_OK) return status;
    t->pos = st_bind_f32(&b, (size_t)d->context * W, "text.pos");
    for (size_t i = 0; i < d->text_depth; i++) {
        st_text_block *block = &t->blocks[i];
        st_bind_norm(&b, &block->ln1, W, d->text_eps, "text.blocks.%zu.ln1", i);
        st_bind_norm(&b, &block->ln2, W, d->text_eps, "text.blocks.%zu.ln2", i);
        st_bind_mha(&b, &block->attn, W, W, d->text_heads, "text.blocks.%zu.attn", i);
        st_bind_linear(&b, &block->fc1, W, d->text_mlp, "text.blocks.%zu.mlp.fc1", i);
        st_bind_linear(&b, &block->fc2, d->text_mlp, W, "text.blocks.%zu.mlp.fc2", i);
    }
    st_bind_norm(&b, &t->ln_final, W, d->text_eps, "text.ln_final");
    st_bind_linear(&b, &t->proj, W, d->width, "text.proj");
    t->bound = weights && b.status == ST_OK;
    return b.status;
}

void st_text_free(st_text *t)
{
    st_free(t->blocks);
    *t = (st_text){0};
}
