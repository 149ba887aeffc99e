/* bpe.c: byte-pair encoding with CLIP's vocabulary.
 *
 * Ids follow from the order of the merge table alone (byte symbols, the same ending a word, merge results), so there is no string table: a symbol is
 * its id, and a pair of ids is looked up in a hash of the 48,894 merges. The reference merges all occurrences of the best pair, left to
 * right, then looks again. A heap ordered by (rank, position) does the same in n log n: a merge result is only part of later
 * merges (the unit test checks that), so while pairs of one rank are left no pair of a lower rank appears.
 */
#include "text/bpe.h"

#include "base/error.h"
#include "base/mem.h"
#include "text/clean.h"
#include "text/merges.h"
#include <stencil/stencil.h>
#include <string.h>
#include <utf8proc.h>

#define HASH_BITS 17
#define HASH_SIZE (1u << HASH_BITS)
#define FIRST_MERGE 512u /* id of the first merge result */
#define WORD_END 256u    /* added to a byte symbol that ends a piece */
#define NO_RANK UINT32_MAX

struct st_bpe {
    uint16_t byte_id[256];    /* byte -> symbol id */
    uint16_t rank[HASH_SIZE]; /* of the pair in `pair` */
    uint32_t pair[HASH_SIZE]; /* left id << 16 | right id; EMPTY */
};
#define EMPTY UINT32_MAX /* 0xFFFF is no id */

static uint32_t hash_pair(uint32_t pair) { return (pair * 0x9E3779B1u) >> (32 - HASH_BITS); }

static uint32_t find_rank(const st_bpe *bpe, uint32_t left, uint32_t right)
{
    const uint32_t pair = left << 16 | right;
    for (uint32_t i = hash_pair(pair);; i = (i + 1) & (HASH_SIZE - 1)) {
        if (bpe->pair[i] == pair) return bpe->rank[i];
        if (bpe->pair[i] == EMPTY) return NO_RANK;
    }
}

/* sam3/model/tokenizer_ve.py, bytes_to_unicode: the bytes that Latin-1 shows as a character first, then the others, each in rising order. */
static void number_bytes(st_bpe *bpe)
{
    uint16_t next = 0;
    for (int shown = 1; shown >= 0; shown--)
        for (unsigned b = 0; b < 256; b++) {
            const int is_shown = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
            if (is_shown == shown) bpe->byte_id[b] = next++;
        }
}

st_status st_bpe_new(st_bpe **out, st_error *err)
{
    *out = NULL;
    st_bpe *bpe = st_malloc(sizeof *bpe);
    if (!bpe) return st_fail(err, ST_ERR_NOMEM, "tokeniser: out of memory (%zu bytes)", sizeof *bpe);
    number_bytes(bpe);
    memset(bpe->pair, 0xFF, sizeof bpe->pair);
    for (uint32_t rank = 0; rank < ST_N_MERGES; rank++) {
        const uint8_t *p = st_merges + 4 * rank;
        const uint32_t pair = (uint32_t)(p[0] | p[1] << 8) << 16 | (uint32_t)(p[2] | p[3] << 8);
        uint32_t i = hash_pair(pair);
        while (bpe->pair[i] != EMPTY) i = (i + 1) & (HASH_SIZE - 1);
        bpe->pair[i] = pair;
        bpe->rank[i] = (uint16_t)rank;
    }
    *out = bpe;
    return ST_OK;
}

void st_bpe_free(st_bpe *bpe) { st_free(bpe); }

/* ---- merging one piece ---- */

#define NONE UINT32_MAX

/* A candidate: rank << 32 | position of the left symbol. Popped in that order. */
struct merger {
    const st_bpe *bpe;
    uint32_t *symbol;     /* [n] */
    uint32_t *next, *prev; /* [n] neighbours that are still there; NONE at the ends */
    uint64_t *heap;
    size_t n_heap, room; /* room in symbols; the heap has three times as many places: n - 1 at first, two more per merge */
};

static bool merger_reserve(struct merger *m, size_t n)
{
    if (n <= m->room) return true;
    st_free(m->symbol);
    st_free(m->heap);
    m->room = 0;
    m->symbol = st_calloc(n, 3 * sizeof *m->symbol);
    m->heap = st_calloc(n, 3 * sizeof *m->heap);
    if (!m->symbol || !m->heap) return false;
    m->next = m->symbol + n;
    m->prev = m->next + n;
    m->room = n;
    return true;
}

static void heap_push(struct merger *m, uint64_t key)
{
    size_t i = m->n_heap++;
    for (; i > 0 && m->heap[(i - 1) / 2] > key; i = (i - 1) / 2) m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = key;
}

static uint64_t heap_pop(struct merger *m)
{
    const uint64_t top = m->heap[0], key = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && m->heap[child + 1] < m->heap[child]) child++;
        if (m->heap[child] >= key) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = key;
    return top;
}

static void offer(struct merger *m, uint32_t left)
{
    const uint32_t right = left == NONE ? NONE : m->next[left];
    if (right == NONE) return;
    const uint32_t rank = find_rank(m->bpe, m->symbol[left], m->symbol[right]);
    if (rank != NO_RANK) heap_push(m, (uint64_t)rank << 32 | left);
}

/* Merges the first n entries of m->symbol (n >= 1) as far as the table goes; what is left starts at 0 and is chained by m->next. */
static void merge_piece(struct merger *m, size_t n)
{
    m->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        m->prev[i] = i > 0 ? (uint32_t)(i - 1) : NONE;
        m->next[i] = i + 1 < n ? (uint32_t)(i + 1) : NONE;
    }
    for (size_t i = 0; i + 1 < n; i++) offer(m, (uint32_t)i);
    while (m->n_heap > 0) {
        const uint64_t key = heap_pop(m);
        const uint32_t rank = (uint32_t)(key >> 32), left = (uint32_t)key;
        const uint32_t right = m->symbol[left] == NONE ? NONE : m->next[left];
        if (right == NONE || find_rank(m->bpe, m->symbol[left], m->symbol[right]) != rank) continue; /* one of the two has gone */
        m->symbol[left] = FIRST_MERGE + rank;
        m->symbol[right] = NONE;
        m->next[left] = m->next[right];
        if (m->next[right] != NONE) m->prev[m->next[right]] = left;
        offer(m, m->prev[left]);
        offer(m, left);
    }
}

/* ---- splitting ---- */

enum kind { SKIPPED, LETTER, NUMBER, OTHER };

static enum kind kind_of(int32_t c)
{
    /* U+0345 is a mark whose other case is a letter: in the reference's case-insensitive pattern neither alternative takes it. */
    if (st_phrase_is_space(c) || c == 0x345) return SKIPPED;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return NUMBER;
    default: return OTHER;
    }
}

/* The reference matches without regard to case. In lower-cased text one character other than the ASCII letters still folds to one: the long s. */
static bool starts_with(const st_cps *text, size_t at, const char *literal)
{
    const size_t n = strlen(literal);
    if (n > text->n - at) return false;
    for (size_t i = 0; i < n; i++) {
        const int32_t c = text->v[at + i] == 0x17F ? 's' : text->v[at + i];
        if (c != (unsigned char)literal[i]) return false;
    }
    return true;
}

static const char START_TEXT[] = "<start_of_text>", END_TEXT[] = "<end_of_text>";

/* The length of the piece that starts at `at`, which is not skipped. */
static size_t piece_length(const st_cps *text, size_t at)
{
    static const char *const literals[] = {START_TEXT, END_TEXT, "'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    const int32_t c = text->v[at];
    if (c == '<' || c == '\'')
        for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++)
            if (starts_with(text, at, literals[i])) return strlen(literals[i]);
    const enum kind kind = kind_of(c);
    if (kind == NUMBER) return 1;
    size_t n = 1;
    while (at + n < text->n && kind_of(text->v[at + n]) == kind) n++;
    return n;
}

/* A literal "<start_of_text>" in a phrase becomes the special id: there is no escaping in the reference. */
static uint32_t special_id(const st_cps *text, size_t at, size_t n)
{
    const uint32_t id = n == strlen(START_TEXT) ? ST_BPE_START : ST_BPE_END;
    const char *literal = id == ST_BPE_START ? START_TEXT : END_TEXT;
    if (n != strlen(literal)) return 0;
    for (size_t i = 0; i < n; i++)
        if (text->v[at + i] != (unsigned char)literal[i]) return 0;
    return id;
}

/* ---- the whole ---- */

struct sink {
    uint32_t *ids;
    size_t n, room; /* room without the end */
    bool cut;
};

static void sink_add(struct sink *sink, uint32_t id)
{
    if (sink->n < sink->room) sink->ids[sink->n++] = id;
    else sink->cut = true;
}

static bool encode_piece(struct sink *sink, struct merger *m, const st_cps *text, size_t at, size_t n)
{
    const uint32_t special = special_id(text, at, n);
    if (special) {
        sink_add(sink, special);
        return true;
    }
    if (!merger_reserve(m, 4 * n)) return false;
    size_t n_symbols = 0;
    for (size_t i = 0; i < n; i++) {
        utf8proc_uint8_t bytes[4];
        const utf8proc_ssize_t n_bytes = utf8proc_encode_char(text->v[at + i], bytes);
        for (utf8proc_ssize_t k = 0; k < n_bytes; k++) m->symbol[n_symbols++] = m->bpe->byte_id[bytes[k]];
    }
    m->symbol[n_symbols - 1] += WORD_END;
    merge_piece(m, n_symbols);
    for (uint32_t i = 0; i != NONE && !sink->cut; i = m->next[i]) sink_add(sink, m->symbol[i]);
    return true;
}

st_status st_bpe_encode(const st_bpe *bpe, const char *text, size_t n_bytes, uint32_t *ids, size_t context, size_t *n_ids,
                        bool *cut, st_error *err)
{
    *n_ids = 0;
    if (context < 2) return st_fail(err, ST_ERR_INVALID_ARG, "tokeniser: room for %zu ids, at least 2 are needed", context);
    if (n_bytes > ST_MAX_PHRASE_BYTES)
        return st_fail(err, ST_ERR_LIMIT, "phrase: %zu bytes, at most %d are accepted", n_bytes, ST_MAX_PHRASE_BYTES);
    st_cps clean = {0};
    const st_status status = st_phrase_clean(&clean, text, n_bytes, err);
    if (status != ST_OK) return status;
    struct sink sink = {.ids = ids, .room = context - 1};
    struct merger m = {.bpe = bpe};
    bool ok = true;
    sink_add(&sink, ST_BPE_START);
    for (size_t i = 0; i < clean.n && ok && !sink.cut;) {
        if (kind_of(clean.v[i]) == SKIPPED) {
            i++;
            continue;
        }
        const size_t n = piece_length(&clean, i);
        ok = encode_piece(&sink, &m, &clean, i, n);
        i += n;
    }
    st_free(m.symbol);
    st_free(m.heap);
    st_cps_free(&clean);
    if (!ok) return st_fail(err, ST_ERR_NOMEM, "phrase: out of memory while cutting %zu bytes into tokens", n_bytes);
    ids[sink.n++] = ST_BPE_END;
    *n_ids = sink.n;
    if (cut) *cut = sink.cut;
    return ST_OK;
}
