/* bench_source.c: what the benchmarks that open a model share: opening it with a picture, and how they say what they ran on. */
#include "cli/bench.h"
#include "front/fault.h"
#include "front/report.h"

#include <commit.h>
#include <stdlib.h>

enum { DRAWN_SIDE = 1008 };

/* Discs on a slope of colours: something to encode when no picture is at hand. */
static uint8_t *draw(uint32_t side)
{
    uint8_t *rgb = malloc((size_t)side * side * 3);
    if (!rgb) return NULL;
    for (uint32_t y = 0; y < side; y++)
        for (uint32_t x = 0; x < side; x++) {
            uint8_t *p = rgb + 3 * ((size_t)y * side + x);
            const uint32_t cell = side / 6, cx = x / cell, cy = y / cell;
            const int32_t dx = (int32_t)(x % cell) - (int32_t)(cell / 2);
            const int32_t dy = (int32_t)(y % cell) - (int32_t)(cell / 2);
            const bool inside = (uint32_t)(dx * dx + dy * dy) < cell * cell / 16 * (1 + (cx + 2 * cy) % 3);
            p[0] = (uint8_t)(inside ? 40 + 35 * cx : 255 * x / side);
            p[1] = (uint8_t)(inside ? 230 - 35 * cy : 255 * y / side);
            p[2] = (uint8_t)(inside ? 60 + 25 * (cx + cy) : 128);
        }
    return rgb;
}

st_status st_bench_source_open(st_bench_source *s, const char *path, st_error *err)
{
    *s = (st_bench_source){ .path = path };
    if (path) {
        const st_status status = st_bitmap_load(&s->bitmap, path, NULL, err);
        if (status != ST_OK) return status;
        const size_t stride = (size_t)s->bitmap.width * 3;
        s->image = (st_image){ s->bitmap.rgb, s->bitmap.width, s->bitmap.height, stride, ST_PIXEL_RGB8 };
        return ST_OK;
    }
    s->drawn = draw(DRAWN_SIDE);
    s->image = (st_image){ s->drawn, DRAWN_SIDE, DRAWN_SIDE, (size_t)DRAWN_SIDE * 3, ST_PIXEL_RGB8 };
    return s->drawn ? ST_OK : st_fault(err, ST_ERR_NOMEM, "out of memory for a drawn picture");
}

void st_bench_source_free(st_bench_source *s)
{
    st_bitmap_free(&s->bitmap);
    free(s->drawn);
    *s = (st_bench_source){ 0 };
}

json_t *st_bench_source_json(const st_bench_source *s)
{
    return json_pack("{s:o,s:I,s:I}", "file", s->path ? st_json_text(s->path) : json_null(), "width",
                     (json_int_t)s->image.width, "height", (json_int_t)s->image.height);
}

const char *st_bench_commit(void)
{
    return ST_COMMIT;
}

json_t *st_bench_model_json(const st_model_info *m)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "id", m->id, "version", m->version, "precision", m->precision,
                     "dtypes", m->dtypes, "container", m->container, "input_size", (json_int_t)m->input_size);
}

static int open_session(st_bench_rig *r, const st_model_wish *wish, bool for_clicks, st_progress_fn *progress, void *progress_user)
{
    st_error err = { ST_OK, "" };
    st_session_options options = ST_SESSION_OPTIONS_INIT;
    options.cancel = st_signals_watch();
    options.progress = progress ? progress : st_console_progress;
    options.progress_user = progress ? progress_user : &r->console;
    const double started = st_bench_now();
    int code = st_model_start(&r->model, &r->console, r->args->model, wish);
    if (code == ST_EXIT_OK && for_clicks) code = st_model_for_clicks(r->model, &r->console);
    if (code != ST_EXIT_OK) return code;
    const st_status status = st_session_new(&r->session, r->model, &options, &err);
    r->open = st_bench_now() - started;
    r->accepted = st_bench_seconds_of_life();
    return status == ST_OK ? ST_EXIT_OK : st_bench_failure(&r->console, status, &err);
}

int st_bench_rig_open(st_bench_rig *r, const st_model_wish *wish, bool for_clicks, st_progress_fn *progress, void *progress_user)
{
    st_error err = { ST_OK, "" };
    st_console_init(&r->console, r->args->verbosity);
    const int code = open_session(r, wish, for_clicks, progress, progress_user);
    if (code != ST_EXIT_OK) return code;
    const st_status status = st_bench_source_open(&r->source, r->args->picture, &err);
    if (status == ST_OK) return ST_EXIT_OK;
    st_console_error(&r->console, "%s", err.message);
    return st_exit_of(status);
}

void st_bench_rig_close(st_bench_rig *r)
{
    st_picture_free(r->picture);
    st_session_free(r->session);
    st_model_free(r->model);
    st_bench_source_free(&r->source);
}

int st_bench_failure(st_console *console, st_status status, const st_error *err)
{
    st_console_clear(console);
    st_console_error(console, "%s", status == ST_ERR_CANCELLED ? "cancelled" : err->message);
    if (status == ST_ERR_CANCELLED) return st_exit_of(status);
    return status == ST_ERR_NOMEM || status == ST_ERR_INTERNAL ? ST_EXIT_INTERNAL : ST_EXIT_MODEL;
}
