/* exit_code.c: what a status of the library means for a command that works on one picture. */
#include "cli/cli.h"

int st_exit_of(st_status status)
{
    switch (status) {
    case ST_OK: return ST_EXIT_OK;
    case ST_ERR_CANCELLED: return ST_EXIT_SIGNAL + (st_signals_seen() ? st_signals_seen() : 2);
    case ST_ERR_NONFINITE: return ST_EXIT_MODEL;
    case ST_ERR_NOMEM:
    case ST_ERR_INTERNAL: return ST_EXIT_INTERNAL;
    default: return ST_EXIT_PARTLY;
    }
}
