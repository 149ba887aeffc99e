/* prompt.c: a prompt on encoded features, from its tokens to the scores of all queries; and what the prompts of one picture share. Mirrors `sam3/model/sam3_image.py`
 * (forward_grounding).
 */
#include "engine/engine.h"

#include <string.h>

st_status st_picture_share(const st_picture *p, const st_run *run, st_error *err)
{
    st_shared *s = p->shared;
    const st_detect *d = &p->model->detect;
    st_status status = ST_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->made) {
        st_geo_run(run, d, p->features.level[2], NULL, 0, s->cls);
        st_fusion_share(run, d, p->features.level[2], s->fusion);
        status = st_run_status(run, err);
        s->made = status == ST_OK;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void st_detect_prompt(const st_run *run, const st_detect *d, const st_features *features, const st_shared *shared, const float *tokens, size_t n_tokens,
                      const st_geo_box *boxes, size_t n_boxes, bool with_geo, st_detection *out)
{
    const size_t N = (size_t)d->dims->grid * d->dims->grid, D = d->dims->width, Q = d->dims->n_queries, n_geo = with_geo ? n_boxes + 1 : 0;
    out->n_prompt = n_tokens + n_geo;
    out->prompt = st_run_floats(run, out->n_prompt, D);
    out->fused = st_run_floats(run, N, D);
    out->queries.state = st_run_floats(run, Q, D);
    out->queries.boxes = st_run_floats(run, Q, 4);
    out->queries.logits = st_run_floats(run, Q, 1);
    float *first = shared ? NULL : st_run_floats(run, N, D);
    if (!st_run_idle(run)) memcpy(out->prompt, tokens, n_tokens * D * sizeof *tokens);
    st_run_probe(run, d->pos, N, D, "pos");
    float *geo = st_run_idle(run) ? NULL : out->prompt + n_tokens * D;
    const bool cls_is_made = shared && n_boxes == 0;
    if (with_geo && !cls_is_made) st_geo_run(run, d, features->level[2], boxes, n_boxes, geo);
    if (with_geo && cls_is_made && geo) memcpy(geo, shared->cls, D * sizeof *geo);
    st_run_probe(run, out->prompt, out->n_prompt, D, "prompt");
    st_run_progress(run, "phrase", 1, 4);
    if (!shared) st_fusion_share(run, d, features->level[2], first);
    st_fusion_run(run, d, shared ? shared->fusion : first, out->prompt, out->n_prompt, out->fused);
    st_run_progress(run, "phrase", 2, 4);
    st_decoder_run(run, d, out->fused, out->prompt, out->n_prompt, &out->queries);
    st_run_progress(run, "phrase", 3, 4);
}
