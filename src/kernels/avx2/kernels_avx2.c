/* kernels_avx2.c: the table's AVX2 part: the bodies of tmpl/ in AVX2's vector words. Compiled with this level's
 * instructions, so nothing here may run before the CPU check; only static functions and the one setter.
 */
#include "kernels/kernels.h"

#include "kernels/avx2/simd_avx2.h"
/* the words above first */
#include "kernels/tmpl/gemm_tmpl.h"
#include "kernels/tmpl/rows_tmpl.h"
/* after rows_tmpl.h, whose exponential it uses */
#include "kernels/tmpl/int8_tmpl.h"

void st_kernels_set_avx2(st_kernels *k)
{
    FN(set_rows)(k);
    FN(set_int8)(k);
    k->gemm = FN(gemm);
    k->gemm_name = "built in (avx2)";
}
