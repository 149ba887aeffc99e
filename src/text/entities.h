/* entities.h: HTML character references ("&amp;", "&#233;", "&eacute"), decoded in the two ways that the reference's cleaning does. */
#ifndef ST_TEXT_ENTITIES_H
#define ST_TEXT_ENTITIES_H

#include "text/codepoints.h"

/* As ftfy/fixes.py, unescape_html: only references that end in ';', names in capitals too. Appends the decoded text to `out`. */
void st_entities_ftfy(st_cps *out, const st_cps *in);
/* As Python's html.unescape: HTML5's own rules, the ';' optional for old names. Appends the decoded text to `out`. */
void st_entities_html(st_cps *out, const st_cps *in);

#endif
