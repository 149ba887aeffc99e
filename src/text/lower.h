/* lower.h: Unicode lower-casing of a whole text, as Python's str.lower. */
#ifndef ST_TEXT_LOWER_H
#define ST_TEXT_LOWER_H

#include "text/codepoints.h"

/* Appends the lower-cased text to `out`: full mapping (I with dot above becomes two code points) and the final-sigma rule. */
void st_text_lower(st_cps *out, const st_cps *in);

#endif
