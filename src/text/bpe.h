/* bpe.h: CLIP's byte-pair tokeniser as the reference calls it (sam3/model/tokenizer_ve.py, clean = "lower").
 *
 * A phrase becomes [start] + tokens + [end]. Ids are not padded. Id 0 is both the padding and the token of a '!' inside a punctuation run; the
 * reference takes such a token for padding everywhere behind the text encoder, and so must callers: valid = (id != 0).
 */
#ifndef ST_TEXT_BPE_H
#define ST_TEXT_BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stencil/stencil_base.h>

#define ST_BPE_START 49406u
#define ST_BPE_END 49407u
#define ST_BPE_VOCAB 49408u

/* The merge table, indexed. Immutable once made: shared by any number of threads. */
typedef struct st_bpe st_bpe;
ST_MUSTCHECK st_status st_bpe_new(st_bpe **out, st_error *err);
void st_bpe_free(st_bpe *bpe); /* NULL is fine */

/* Writes at most `context` (>= 2) ids; *n_ids is how many. *cut (may be NULL) is true when the text had more: then the first context - 1 are kept
 * and the last is the end. Fails on text that is not UTF-8 and on more than ST_MAX_PHRASE_BYTES. */
ST_MUSTCHECK st_status st_bpe_encode(const st_bpe *bpe, const char *text, size_t n_bytes, uint32_t *ids, size_t context,
                                     size_t *n_ids, bool *cut, st_error *err);

#endif
