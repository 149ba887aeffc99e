/* mem.h: the only door to the heap. Counts calls and bytes, and can be told to fail, so that tests reach every out-of-memory path.
 * No other file calls malloc or free (but for what libraries hand us to free). */
#ifndef ST_BASE_MEM_H
#define ST_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

/* All return NULL when out of memory, or when asked for more than 1 TiB; sizes of 0 give a pointer that st_free takes. st_calloc and st_realloc_array check the product. */
void *st_malloc(size_t n_bytes);
void *st_calloc(size_t n, size_t size);
void *st_realloc_array(void *old, size_t n, size_t size);
void *st_aligned(size_t n_bytes, size_t alignment); /* free with st_free */
char *st_strdup(const char *s);
char *st_strndup(const char *s, size_t n);
void st_free(void *p); /* NULL is fine */

/* Test hooks. st_mem_fail_after(k): the k-th allocation from now (1-based) and all later ones fail; 0 turns it off. */
void st_mem_fail_after(uint64_t k);
uint64_t st_mem_n_calls(void); /* allocations so far, process-wide */

#endif
