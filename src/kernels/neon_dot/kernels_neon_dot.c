/* kernels_neon_dot.c: the int8 products by Arm's dot product, which adds four products of bytes to a 32-bit sum. All else is as in the
 * level below. Compiled with this level's instructions, so nothing here may run before the CPU check.
 */
#include "kernels/kernels.h"

#include "kernels/neon/simd_neon.h"
/* the words above first */
#include "kernels/tmpl/pack_tmpl.h"
/* after pack_tmpl.h, whose panels it multiplies */
#define GEMM_INT8
#include "kernels/tmpl/gemm_tmpl.h"

void st_kernels_set_neon_dot(st_kernels *k) { FN(set_gemm_u8s8)(k, "SDOT, 7-bit activations", 127); }
