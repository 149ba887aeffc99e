/* coordinates.h: points, regions and exemplar boxes as words of a command line; the one place that reads them.
 *
 * Numbers are pixels of the picture as shown, whatever their size: fractions of the picture are never guessed. Whether
 * a place lies inside the picture is said by the library, where the picture's size is known; nothing is clamped.
 */
#ifndef ST_FRONT_COORDINATES_H
#define ST_FRONT_COORDINATES_H

#include <stencil/stencil.h>

/* Each returns NULL, or what was expected instead of `text`: the end of a sentence that the caller begins. */
const char *st_read_exemplar(st_exemplar *out, const char *text); /* X0,Y0,X1,Y1[:neg|:pos] */
const char *st_read_region(st_region *out, const char *text);     /* X0,Y0,X1,Y1 */
const char *st_read_point(st_point *out, const char *text);       /* X,Y[:neg|:pos] */

#endif
