/* fault.c: a failing call's sentence (see fault.h). */
#include "front/fault.h"

#include <stdarg.h>
#include <stdio.h>

st_status st_fault(st_error *err, st_status status, const char *fmt, ...)
{
    if (!err) return status;
    va_list args;
    err->status = status;
    va_start(args, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return status;
}
