/* click_prompt.c: points, regions and a mask as tokens. Mirrors `sam3/sam/prompt_encoder.py` (PromptEncoder, PositionEmbeddingRandom). */
#include "click/click.h"

#include <math.h>
#include <string.h>

/* Random Fourier code of a position in fractions: [sin(a), cos(a)], a = 2 pi ((2u - 1) G0 + (2v - 1) G1). */
static void fourier(const float *matrix, size_t half, float u, float v, float *out)
{
    const float x = 2.0f * u - 1.0f, y = 2.0f * v - 1.0f;
    for (size_t i = 0; i < half; i++) {
        const float a = 6.283185307179586f * (x * matrix[i] + y * matrix[half + i]);
        out[i] = sinf(a);
        out[half + i] = cosf(a);
    }
}

void st_click_embed_points(const st_run *run, const st_click_head *c, const st_click_point *points, size_t n_points, float *tokens)
{
    if (st_run_idle(run)) return;
    const size_t D = c->dims->width;
    for (size_t i = 0; i < n_points; i++) {
        float *token = tokens + i * D;
        const st_click_point *p = &points[i];
        if (p->kind == ST_CLICK_NOT_A_POINT) memcpy(token, c->prompt.not_a_point, D * sizeof *token); /* replaces the code */
        else {
            fourier(c->prompt.point_fourier, D / 2, p->u, p->v, token);
            run->k->add(token, c->prompt.kinds[p->kind], D);
        }
    }
}

/* One 2x2 stride 2 convolution as a matrix over its cells: [side*side, C] -> rows [(side/2)^2, 4*C] in the weights' order (channel, row, column). */
static void gather_cells(const float *x, size_t side, size_t channels, float *rows)
{
    const size_t half = side / 2;
    for (size_t r = 0; r < half; r++)
        for (size_t col = 0; col < half; col++)
            for (size_t ch = 0; ch < channels; ch++)
                for (size_t cell = 0; cell < 4; cell++)
                    rows[((r * half + col) * channels + ch) * 4 + cell] = x[((2 * r + cell / 2) * side + 2 * col + cell % 2) * channels + ch];
}

static void gelu_rows(const st_run *run, float *x, size_t n)
{
    if (!st_run_idle(run)) run->k->gelu(x, n);
}

void st_click_embed_mask(const st_run *run, const st_click_head *c, const float *mask, float *dense)
{
    const st_click_prompt_weights *p = &c->prompt;
    const size_t mark = st_arena_mark(run->arena), n = c->dims->grid, m4 = p->mask_in[0].n_out, m = p->mask_in[1].n_out, D = c->dims->width;
    float *rows1 = st_run_floats(run, 4 * n * n, 4), *x1 = st_run_floats(run, 4 * n * n, m4);
    float *rows2 = st_run_floats(run, n * n, 4 * m4), *x2 = st_run_floats(run, n * n, m);
    if (!st_run_idle(run)) gather_cells(mask, 4 * n, 1, rows1);
    st_linear_run(run, &p->mask_in[0], rows1, 4, 4 * n * n, x1, m4, ST_ACT_NONE, false);
    st_norm_run(run, &p->mask_norm[0], x1, 4 * n * n, x1); /* over channels, eps 1e-6 */
    gelu_rows(run, x1, 4 * n * n * m4);
    if (!st_run_idle(run)) gather_cells(x1, 2 * n, m4, rows2);
    st_linear_run(run, &p->mask_in[1], rows2, 4 * m4, n * n, x2, m, ST_ACT_NONE, false);
    st_norm_run(run, &p->mask_norm[1], x2, n * n, x2);
    gelu_rows(run, x2, n * n * m);
    st_linear_run(run, &p->mask_in[2], x2, m, n * n, dense, D, ST_ACT_NONE, false);
    st_arena_rewind(run->arena, mark);
}

/* Codes of the token centres; a constant of the checkpoint. */
void st_click_grid_code(st_click_head *c)
{
    const size_t n = c->dims->grid, D = c->dims->width;
    for (size_t t = 0; t < n * n; t++)
        fourier(c->prompt.grid_fourier, D / 2, ((float)(t % n) + 0.5f) / (float)n, ((float)(t / n) + 0.5f) / (float)n, c->grid_code + t * D);
}
