/* dims_size.c: a picture side other than the one a checkpoint was made for. No tensor's shape depends on it: stored positions are tiled to the new grid, rotary angles of
 * global blocks are computed with window / grid as their scale, and windows are padded where they do not divide the grid, as in `sam3/model/vitdet.py` (get_abs_pos,
 * _setup_rope_freqs, window_partition) and transformers' `Sam3ViTModel` with config.image_size. So only image_size and grid change.
 */
#include "weights/manifest.h"

#include "base/error.h"

enum { MAX_SIDE = 16384 }; /* as st_dims_check_limits has it */

/* Smaller than a window would pad every windowed block with more zeros than tokens; larger than ST_MAX_GRID has no plan that fits a machine. */
static st_status check_range(const st_dims *d, uint32_t side, st_error *err)
{
    const uint32_t least = d->window * d->patch, most = ST_MAX_GRID * d->patch < MAX_SIDE ? ST_MAX_GRID * d->patch : MAX_SIDE;
    if (side >= least && side <= most) return ST_OK;
    return st_fail(err, ST_ERR_INVALID_ARG, "input size %u: expected %u (one attention window) to %u, in steps of %u (the model's patch); its own is %u", side, least, most, d->patch,
                   d->own_size);
}

st_status st_dims_set_input_size(st_dims *d, uint32_t side, st_error *err)
{
    const uint32_t wanted = side ? side : d->own_size;
    const st_status status = wanted == d->own_size ? ST_OK : check_range(d, wanted, err); /* a checkpoint may say what no one can ask for */
    if (status != ST_OK) return status;
    if (wanted % d->patch)
        return st_fail(err, ST_ERR_INVALID_ARG, "input size %u: no multiple of the model's patch of %u pixels; next to it are %u and %u", wanted, d->patch, wanted - wanted % d->patch,
                       wanted - wanted % d->patch + d->patch);
    d->image_size = wanted;
    d->grid = wanted / d->patch;
    return ST_OK;
}
