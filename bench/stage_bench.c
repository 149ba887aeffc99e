/* stage_bench.c: times the stages of the model at the published sizes with random weights, without any weights file: layers of one shape share one buffer.
 *
 *     stage_bench [--threads N] [--runs N] [--only PART] [--json]     PART of the stages' names
 *
 * Prints seconds, GFLOP/s and the share of the machine's matrix rate (medians). The rate is that of one large product, by Stencil and by oneDNN where it is
 * installed, whichever is faster: repeated in turn for a while before and after every run of a stage, medians, so that it is what the machine keeps up, not what it
 * does for a moment. GFLOP/s are of the products that are made, so 3x3 convolutions count with the 16 products per four outputs of tensor/conv.c, not with 36.
 * Outputs are checked for finite values, so that a skipped stage cannot look fast. Part of `make bench`.
 */
#include "engine/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "onednn_rate.h"

typedef struct bench {
    st_dims dims;
    st_vision vision;
    st_text text;
    st_detect detect;
    st_arena arena;
    st_run run;
    float *noise;   /* shared weights */
    size_t n_noise;
    unsigned runs;
    bool json, first;
    const char *only; /* or NULL */
    double own_rate, onednn_rate; /* GFLOP/s of a large product, all threads, just now; 0: not there */
} bench;

static const float *weights_of(bench *b, size_t n)
{
    if (n > b->n_noise) {
        fprintf(stderr, "stage_bench: a layer of %zu weights is larger than the shared buffer\n", n);
        exit(1);
    }
    return b->noise;
}

static void fill_linear(bench *b, st_linear *l)
{
    l->weight = weights_of(b, l->n_in * l->n_out);
    l->bias = weights_of(b, l->n_out);
}

static void fill_norm(bench *b, st_norm *n)
{
    n->gamma = weights_of(b, n->n);
    n->beta = weights_of(b, n->n);
}

static void fill_mha(bench *b, st_mha *m)
{
    fill_linear(b, &m->q), fill_linear(b, &m->k), fill_linear(b, &m->v), fill_linear(b, &m->out);
}

static float *copy_weights(bench *b, size_t n)
{
    float *w = st_malloc(n * sizeof *w);
    if (!w) exit(1);
    for (size_t i = 0; i < n; i++) w[i] = b->noise[i % b->n_noise];
    return w;
}

static void fill_vision(bench *b)
{
    st_vision *v = &b->vision;
    fill_linear(b, &v->patch);
    v->patch.bias = NULL;
    v->pos = weights_of(b, (size_t)b->dims.pos_side * b->dims.pos_side * b->dims.vit_width);
    fill_norm(b, &v->ln_pre);
    for (size_t i = 0; i < b->dims.vit_depth; i++) {
        st_vit_block *k = &v->blocks[i];
        fill_norm(b, &k->norm1), fill_norm(b, &k->norm2);
        fill_linear(b, &k->q), fill_linear(b, &k->k), fill_linear(b, &k->v), fill_linear(b, &k->proj), fill_linear(b, &k->fc1), fill_linear(b, &k->fc2);
    }
    st_conv_up *ups[3] = {&v->neck.up[0][0], &v->neck.up[0][1], &v->neck.up[1][0]};
    for (size_t i = 0; i < 3; i++) {
        ups[i]->cells = copy_weights(b, 4 * ups[i]->n_in * ups[i]->n_out);
        ups[i]->bias = weights_of(b, ups[i]->n_out);
        fill_linear(b, &v->neck.proj1[i]);
        v->neck.proj2[i].filters = copy_weights(b, 16 * v->neck.proj2[i].n_in * v->neck.proj2[i].n_out);
        v->neck.proj2[i].bias = weights_of(b, v->neck.proj2[i].n_out);
    }
}

static void fill_text(bench *b)
{
    b->text.token_embed = b->noise; /* ids stay small */
    b->text.pos = b->noise;
    for (size_t i = 0; i < b->dims.text_depth; i++) {
        st_text_block *k = &b->text.blocks[i];
        fill_norm(b, &k->ln1), fill_norm(b, &k->ln2), fill_mha(b, &k->attn), fill_linear(b, &k->fc1), fill_linear(b, &k->fc2);
    }
    fill_norm(b, &b->text.ln_final);
    fill_linear(b, &b->text.proj);
}

static void fill_detect(bench *b)
{
    st_detect *d = &b->detect;
    st_norm *norms[] = {&d->geo.norm, &d->geo.img_norm, &d->geo.out_norm, &d->dec.norm, &d->dec.presence_norm, &d->score.norm, &d->mask.prompt_norm,
                        &d->mask.gn[0], &d->mask.gn[1]};
    st_linear *linears[] = {&d->geo.box_direct, &d->geo.box_pool, &d->geo.box_pos, &d->geo.proj, &d->dec.box_head[0], &d->dec.box_head[1], &d->dec.box_head[2],
                            &d->dec.presence_head[0], &d->dec.presence_head[1], &d->dec.presence_head[2], &d->dec.ref_head[0], &d->dec.ref_head[1],
                            &d->dec.rpb_x[0], &d->dec.rpb_x[1], &d->dec.rpb_y[0], &d->dec.rpb_y[1], &d->score.mlp[0], &d->score.mlp[1],
                            &d->score.prompt_proj, &d->score.query_proj, &d->mask.embed[0], &d->mask.embed[1], &d->mask.embed[2], &d->mask.instance};
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) fill_norm(b, norms[i]);
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) fill_linear(b, linears[i]);
    d->geo.label_embed = d->geo.cls = d->dec.query_embed = d->dec.ref_points = d->dec.presence_token = b->noise;
    for (size_t i = 0; i < b->dims.geo_layers; i++) {
        st_geo_layer *l = &d->geo.layers[i];
        fill_norm(b, &l->norm1), fill_norm(b, &l->norm2), fill_norm(b, &l->norm3), fill_mha(b, &l->self), fill_mha(b, &l->image);
        fill_linear(b, &l->ffn1), fill_linear(b, &l->ffn2);
    }
    for (size_t i = 0; i < b->dims.fusion_layers; i++) {
        st_fusion_layer *l = &d->fusion[i];
        fill_norm(b, &l->norm1), fill_norm(b, &l->norm2), fill_norm(b, &l->norm3), fill_mha(b, &l->self), fill_mha(b, &l->prompt);
        fill_linear(b, &l->ffn1), fill_linear(b, &l->ffn2);
    }
    for (size_t i = 0; i < b->dims.dec_layers; i++) {
        st_dec_layer *l = &d->dec.layers[i];
        fill_norm(b, &l->norm_self), fill_norm(b, &l->norm_text), fill_norm(b, &l->norm_image), fill_norm(b, &l->norm_ffn);
        fill_mha(b, &l->self), fill_mha(b, &l->text), fill_mha(b, &l->image), fill_linear(b, &l->ffn1), fill_linear(b, &l->ffn2);
    }
    fill_mha(b, &d->mask.prompt);
    for (size_t i = 0; i < 2; i++) {
        d->mask.conv[i].filters = copy_weights(b, 16 * d->mask.conv[i].n_in * d->mask.conv[i].n_out);
        d->mask.conv[i].bias = weights_of(b, d->mask.conv[i].n_out);
    }
}

/* The published sizes: the one place outside the weights room that knows them, because there is no file to read them from. */
static st_dims published(void)
{
    st_dims d = {.image_size = 1008, .patch = 14, .grid = 72, .vit_width = 1024, .vit_heads = 16, .vit_depth = 32, .vit_mlp = 4736, .window = 24, .pos_side = 24,
                 .vit_eps = 1e-5f, .rope_theta = 10000.0f, .vocab = 49408, .context = 32, .text_width = 1024, .text_heads = 16, .text_depth = 24, .text_mlp = 4096,
                 .text_eps = 1e-5f, .width = 256, .geo_layers = 3, .geo_heads = 8, .geo_ffn = 2048, .roi_size = 7, .fusion_layers = 6, .fusion_heads = 8,
                 .fusion_ffn = 2048, .dec_layers = 6, .dec_heads = 8, .dec_ffn = 2048, .n_queries = 200, .rpb_hidden = 256, .score_ffn = 2048, .mask_heads = 8};
    for (size_t i = 7; i < 32; i += 8) d.vit_global[i] = true;
    return d;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

/* The medians of products repeated in turn for about a second. */
static void measure_rates(bench *b)
{
    enum { REPEATS = 15 };
    const size_t rows = 5184, n = 1024, mark = st_arena_mark(&b->arena);
    const double gflop = 2e-9 * (double)rows * (double)n * (double)n;
    const st_linear l = {.weight = b->noise, .n_in = n, .n_out = n};
    float *x = st_run_floats(&b->run, rows, n), *y = st_run_floats(&b->run, rows, n);
    double own[REPEATS], onednn[REPEATS];
    for (size_t i = 0; i < rows * n; i++) x[i] = b->noise[i % b->n_noise];
    for (int i = 0; i < REPEATS; i++) {
        const double t = st_clock_seconds();
        st_linear_run(&b->run, &l, x, n, rows, y, n, ST_ACT_NONE, false);
        own[i] = gflop / (st_clock_seconds() - t);
        const double library = onednn_seconds(b->run.pool, rows, n, n, x, b->noise, y);
        onednn[i] = library > 0.0 ? gflop / library : 0.0;
    }
    b->own_rate = median(own, REPEATS);
    b->onednn_rate = median(onednn, REPEATS);
    st_arena_rewind(&b->arena, mark);
}

typedef struct timing {
    double seconds[64], share[64], own[64], onednn[64];
} timing;

static void report(bench *b, const char *name, timing *t, double gflop, const float *out, size_t n)
{
    if (b->arena.overflowed) {
        fprintf(stderr, "stage_bench: %s: scratch memory is too small, so the stage was skipped\n", name);
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        if (!isfinite(out[i])) {
            fprintf(stderr, "stage_bench: %s: output %zu is not finite\n", name, i);
            exit(1);
        }
    const double seconds = median(t->seconds, b->runs), share = median(t->share, b->runs), own = median(t->own, b->runs), onednn = median(t->onednn, b->runs);
    if (b->json) printf("%s{\"stage\": \"%s\", \"seconds\": %.6f, \"gflop\": %.3f, \"gflops\": %.1f, \"gemm_share\": %.3f, \"gemm_gflops\": %.1f, \"onednn_gflops\": %.1f}",
                        b->first ? "" : ",\n  ", name, seconds, gflop, gflop / seconds, share, own, onednn);
    else printf("%-28s %9.4f s  %7.1f GFLOP/s  %5.1f %% of the matrix rate (%.0f; oneDNN %.0f)\n", name, seconds, gflop / seconds, 100.0 * share, own, onednn);
    fflush(stdout);
    b->first = false;
}

#define TIMED(b, name, gflop, out, n_out, ...)                                                \
    do {                                                                                      \
        if ((b)->only && !strstr(name, (b)->only)) break;                                     \
        timing t_;                                                                            \
        for (unsigned r_ = 0; r_ < (b)->runs; r_++) {                                         \
            st_arena_rewind(&(b)->arena, base);                                               \
            measure_rates(b);                                                                 \
            const double own_ = (b)->own_rate, onednn_ = (b)->onednn_rate;                    \
            const double start_ = st_clock_seconds();                                         \
            __VA_ARGS__;                                                                      \
            t_.seconds[r_] = st_clock_seconds() - start_;                                     \
            measure_rates(b);                                                                 \
            t_.own[r_] = (own_ + (b)->own_rate) / 2.0;                                        \
            t_.onednn[r_] = (onednn_ + (b)->onednn_rate) / 2.0;                               \
            t_.share[r_] = (gflop) / t_.seconds[r_] / fmax(t_.own[r_], t_.onednn[r_]);        \
        }                                                                                     \
        report(b, name, &t_, gflop, out, n_out);                                              \
    } while (0)

static void run_stages(bench *b)
{
    const st_dims *d = &b->dims;
    const size_t N = (size_t)d->grid * d->grid, D = d->width, V = d->vit_width;
    st_error err;
    float *px = st_run_floats(&b->run, (size_t)d->image_size * d->image_size, 3), *x = st_run_floats(&b->run, N, V);
    for (size_t i = 0; i < (size_t)d->image_size * d->image_size * 3; i++) px[i] = sinf((float)i * 0.37f);
    st_features f = {{st_run_floats(&b->run, 16 * N, D), st_run_floats(&b->run, 4 * N, D), st_run_floats(&b->run, N, D)}};
    float *tokens = st_run_floats(&b->run, d->context, D);
    for (size_t l = 0; b->only && l < 3; l++) /* stages that are left out leave nothing for the next */
        for (size_t i = 0; i < (size_t)(l == 0 ? 16 : l == 1 ? 4 : 1) * N * D; i++) f.level[l][i] = b->noise[i % b->n_noise];
    size_t base = st_arena_mark(&b->arena);
    TIMED(b, "ViT trunk", 5398.57, x, N * V, st_vit_run(&b->run, &b->vision, px, x));
    TIMED(b, "neck", 141.34, f.level[0], 16 * N * D, st_neck_run(&b->run, &b->vision.neck, d, "neck", x, &f));
    TIMED(b, "picture encode: both", 5398.57 + 141.34, f.level[0], 16 * N * D, st_vit_run(&b->run, &b->vision, px, x); st_neck_run(&b->run, &b->vision.neck, d, "neck", x, &f));
    const uint32_t ids[5] = {1, 2, 3, 4, 5};
    TIMED(b, "text encoder, 5 tokens", 3.04, tokens, 5 * D, if (st_text_encode(&b->run, &b->text, ids, 5, tokens, &err) != ST_OK) exit(1));
    float *geo = st_run_floats(&b->run, 1, D), *fused = st_run_floats(&b->run, N, D), *shared = st_run_floats(&b->run, N, D), *prompt = st_run_floats(&b->run, 6, D);
    st_queries q = {st_run_floats(&b->run, d->n_queries, D), st_run_floats(&b->run, d->n_queries, 4), st_run_floats(&b->run, d->n_queries, 1), 0.0f};
    float *pixels = st_run_floats(&b->run, 16 * N, D), *logits = st_run_floats(&b->run, 20, 16 * N);
    memcpy(prompt, b->noise, 6 * D * sizeof *prompt);
    for (size_t i = 0; b->only && i < N * D; i++) shared[i] = fused[i] = b->noise[i];
    base = st_arena_mark(&b->arena);
    TIMED(b, "exemplar encoder, CLS", 4.10, geo, D, st_geo_run(&b->run, &b->detect, f.level[2], NULL, 0, geo));
    TIMED(b, "fusion, shared by prompts", 30.2, shared, N * D, st_fusion_share(&b->run, &b->detect, f.level[2], shared));
    TIMED(b, "fusion encoder, the rest", 223.8, fused, N * D, st_fusion_run(&b->run, &b->detect, shared, prompt, 6, fused));
    TIMED(b, "decoder and scores", 20.4, q.state, d->n_queries * D, st_decoder_run(&b->run, &b->detect, fused, prompt, 6, &q));
    TIMED(b, "mask head, pixels", 55.7, pixels, 16 * N * D, st_mask_pixels(&b->run, &b->detect, fused, prompt, 6, f.level[1], f.level[0], pixels));
    TIMED(b, "mask head, 20 masks", 0.85, logits, 20 * 16 * N, st_mask_logits(&b->run, &b->detect, pixels, q.state, 20, logits));
}

int main(int argc, char **argv)
{
    static bench b;
    st_error err;
    unsigned threads = st_cpu_default_threads();
    b.runs = 3;
    b.first = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) threads = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) b.runs = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) b.only = argv[++i];
        else if (strcmp(argv[i], "--json") == 0) b.json = true;
        else {
            fprintf(stderr, "usage: stage_bench [--threads N] [--runs N] [--only PART] [--json]\n");
            return 2;
        }
    }
    if (b.runs < 1 || b.runs > 64 || threads < 1) return 2;
    b.dims = published();
    b.n_noise = 13000000; /* the largest layer: box pooling, 256 x 256 x 49 */
    b.noise = st_malloc(b.n_noise * sizeof *b.noise);
    st_pool *pool = NULL;
    if (!b.noise || st_pool_new(&pool, threads, &err) != ST_OK || st_vision_init(&b.vision, &b.dims, &err) != ST_OK ||
        st_text_init(&b.text, &b.dims, &err) != ST_OK || st_detect_init(&b.detect, &b.dims, &err) != ST_OK ||
        st_arena_init(&b.arena, (size_t)1500 << 20, &err) != ST_OK) {
        fprintf(stderr, "stage_bench: out of memory\n");
        return 1;
    }
    uint32_t seed = 1;
    for (size_t i = 0; i < b.n_noise; i++) {
        seed = seed * 1664525u + 1013904223u;
        b.noise[i] = ((float)(seed >> 8) / 8388608.0f - 1.0f) * 0.03f;
    }
    b.run = (st_run){.k = st_kernels_best(), .pool = pool, .arena = &b.arena};
    fill_vision(&b), fill_text(&b), fill_detect(&b);
    if (b.json) printf("{\"cpu\": \"%s\", \"level\": \"%s\", \"gemm\": \"%s\", \"threads\": %u, \"stages\": [\n  ", st_cpu_name(), b.run.k->level, b.run.k->gemm_name, threads);
    else printf("%s, %s, %s, %u threads\n", st_cpu_name(), b.run.k->level, b.run.k->gemm_name, threads);
    run_stages(&b);
    if (b.json) printf("\n]}\n");
    return 0;
}
