/* pytorch.c: PyTorch archives. */
#include "weights/pytorch.h"

#include "base/error.h"

st_status st_pytorch_read(st_catalog *cat, uint32_t map, st_error *err)
{
    (void)cat;
    (void)map;
    return st_fail(err, ST_ERR_UNSUPPORTED, "PyTorch archives are not read yet");
}

st_status st_pytorch_refuse_legacy(const st_map *map, st_error *err)
{
    (void)map;
    return st_fail(err, ST_ERR_UNSUPPORTED, "bare pickles are not read");
}
