/* picture_input.c: pictures and saved encodings, opened (see picture_input.h). */
#include "cli/picture_input.h"

#include <stdlib.h>
#include <string.h>
#include "front/fault.h"

static void describe(st_picture_report *p, const st_bitmap *bitmap, st_resize resize)
{
    p->width = bitmap->width;
    p->height = bitmap->height;
    p->orientation = bitmap->orientation;
    memcpy(p->format, bitmap->format, sizeof p->format);
    p->bits = bitmap->bits;
    p->is_float = bitmap->is_float;
    p->bands = bitmap->bands;
    p->stretched = bitmap->stretched;
    p->damaged = bitmap->damaged;
    p->low = bitmap->low;
    p->high = bitmap->high;
    p->resize = resize == ST_RESIZE_CPU ? "cpu" : "gpu";
}

static st_status encode(st_picture_opened *o, const st_picture_report *about, const st_picture_input *in,
                        st_session *session, st_error *err)
{
    const st_image image = { o->bitmap.rgb, o->bitmap.width, o->bitmap.height, (size_t)o->bitmap.width * 3,
                             ST_PIXEL_RGB8 };
    st_encode_options how = in->encode;
    char *source = st_report_source(about);
    if (!source) return st_fault(err, ST_ERR_NOMEM, "%s: out of memory", in->file);
    how.source = source;
    const st_status status = st_picture_encode(&o->picture, session, &image, &how, err);
    free(source);
    return status;
}

static st_status load(st_picture_opened *o, st_picture_report *about, const st_picture_input *in, st_model *model,
                      st_error *err)
{
    const st_status status = st_picture_load(&o->picture, model, in->features, err);
    if (status != ST_OK) return status;
    st_picture_size(o->picture, &about->width, &about->height);
    about->undescribed = !st_report_read_source(about, &o->name, st_picture_source(o->picture));
    if (!in->file || (o->bitmap.width == about->width && o->bitmap.height == about->height)) return ST_OK;
    return st_fault(err, ST_ERR_INVALID_ARG, "%s: made of a picture of %u x %u pixels, %s has %u x %u", in->features,
                    about->width, about->height, in->file, o->bitmap.width, o->bitmap.height);
}

st_status st_picture_input_open(st_picture_opened *out, st_picture_report *about, const st_picture_input *in,
                                st_model *model, st_session *session, st_error *err)
{
    *out = (st_picture_opened){ 0 };
    st_status status = in->file ? st_bitmap_load(&out->bitmap, in->file, &in->bitmap, err) : ST_OK;
    if (status == ST_OK && in->file) describe(about, &out->bitmap, in->encode.resize);
    if (status == ST_OK)
        status = in->features ? load(out, about, in, model, err) : encode(out, about, in, session, err);
    if (status != ST_OK) st_picture_opened_free(out);
    return status;
}

void st_picture_opened_free(st_picture_opened *o)
{
    st_picture_free(o->picture);
    st_bitmap_free(&o->bitmap);
    free(o->name);
    *o = (st_picture_opened){ 0 };
}
