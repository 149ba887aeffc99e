/* status.c: the version and the names of statuses. */
#include <stencil/stencil_base.h>

const char *st_version(void)
{
    return ST_VERSION_STRING;
}

const char *st_status_name(st_status status)
{
    switch (status) {
    case ST_OK: return "ok";
    case ST_ERR_INVALID_ARG: return "invalid argument";
    case ST_ERR_NOMEM: return "out of memory";
    case ST_ERR_IO: return "io";
    case ST_ERR_FORMAT: return "format";
    case ST_ERR_UNSUPPORTED: return "unsupported";
    case ST_ERR_LIMIT: return "limit";
    case ST_ERR_CANCELLED: return "cancelled";
    case ST_ERR_NONFINITE: return "non-finite";
    case ST_ERR_INTERNAL: return "internal";
    }
    return "unknown";
}
