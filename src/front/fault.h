/* fault.h: a failing call's sentence, for the program's rooms, which do not see the library's own helper. */
#ifndef ST_FRONT_FAULT_H
#define ST_FRONT_FAULT_H

#include <stencil/stencil_base.h>

/* Fills err, which may be NULL, and returns the status. */
st_status st_fault(st_error *err, st_status status, const char *fmt, ...) ST_PRINTF(3, 4);

#endif
