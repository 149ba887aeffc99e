/* alone.c: one public header on its own, twice, in whatever language level the compiler is told (also as C++). ST_HEADER names it. */
#include ST_HEADER
#include ST_HEADER

extern int st_header_alone;
int st_header_alone = (int)ST_ERR_INTERNAL;
