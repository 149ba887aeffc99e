/* kernels_avx512.c: the table's AVX-512 part: the bodies of tmpl/ in AVX-512's vector words. Compiled with this level's
 * instructions, so nothing here may run before the CPU check; only static functions and the one setter.
 */
#include "kernels/kernels.h"

#include "kernels/avx512/simd_avx512.h"
/* the words above first */
#include "kernels/tmpl/pack_tmpl.h"
/* after pack_tmpl.h, whose panels they multiply: floats, then bytes */
#include "kernels/tmpl/gemm_tmpl.h"
#define GEMM_INT8
#include "kernels/tmpl/gemm_tmpl.h"
#include "kernels/tmpl/rows_tmpl.h"
/* after rows_tmpl.h, whose exponential it uses */
#include "kernels/tmpl/int8_tmpl.h"

void st_kernels_set_avx512(st_kernels *k)
{
    FN(set_rows)(k);
    FN(set_int8)(k);
    FN(set_gemm)(k, "FMA tiles 12x32");
    FN(set_gemm_u8s8)(k, "7-bit activations", 127);
}
