/* pickle_names.h: the only names that a pickle may speak of. They are words to this reader: nothing is looked up or
 * called. */
#ifndef ST_WEIGHTS_PICKLE_NAMES_H
#define ST_WEIGHTS_PICKLE_NAMES_H

#include "weights/dtype.h"

typedef enum st_pickle_what {
    ST_PICKLE_DICT,      /* collections OrderedDict */
    ST_PICKLE_TENSOR,    /* torch._utils _rebuild_tensor_v2 */
    ST_PICKLE_PARAMETER, /* torch._utils _rebuild_parameter */
    ST_PICKLE_SIZE,      /* torch Size */
    ST_PICKLE_STORAGE,   /* torch FloatStorage, ... */
    ST_PICKLE_DTYPE      /* torch float32, ... */
} st_pickle_what;

typedef struct st_pickle_name {
    const char *module, *name;
    st_pickle_what what;
    st_dtype dtype;
} st_pickle_name;

/* NULL when it is not one of the allowed names. */
const st_pickle_name *st_pickle_name_find(const char *module, size_t n_module, const char *name, size_t n_name);

#endif
