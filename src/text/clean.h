/* clean.h: what the reference does to a phrase before it is cut into tokens (sam3/model/tokenizer_ve.py, _clean_lower).
 *
 * ftfy.fix_text with its defaults but for mojibake repair (text that was decoded in the wrong encoding stays as it is; docs/text.md), html.unescape twice,
 * runs of white space to one blank, lower case.
 */
#ifndef ST_TEXT_CLEAN_H
#define ST_TEXT_CLEAN_H

#include "text/codepoints.h"
#include <stencil/stencil_base.h>

/* `out` must be zeroed; on failure it stays so. Text that is not UTF-8 is ST_ERR_INVALID_ARG with the position. */
ST_MUSTCHECK st_status st_phrase_clean(st_cps *out, const char *text, size_t n_bytes, st_error *err);
/* White_Space of Unicode, which the reference's `\s` means. */
bool st_phrase_is_space(int32_t c);

#endif
