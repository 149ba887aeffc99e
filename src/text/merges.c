/* merges.c: puts merges.bin into the read-only data as it is. The assembler does it: no generator to run, also when cross-compiling. */
#include "text/merges.h"

#ifndef ST_MERGES_FILE
#error "cmake/generated.cmake defines ST_MERGES_FILE, the path of merges.bin"
#endif

__asm__(".pushsection .rodata, \"a\"\n"
        ".globl st_merges\n"
        ".hidden st_merges\n"
        ".type st_merges, %object\n"
        ".balign 64\n"
        "st_merges:\n"
        ".incbin \"" ST_MERGES_FILE "\"\n"
        ".size st_merges, . - st_merges\n"
        ".popsection\n");
