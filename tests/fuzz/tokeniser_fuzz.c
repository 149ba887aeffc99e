/* tokeniser_fuzz.c: any bytes as a phrase. UTF-8 gives framed ids inside the vocabulary, the same twice; a smaller context gives the same
 * beginning; anything else is refused with a position. */
#include "text/bpe.h"

#include <stencil/stencil.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define REQUIRE(x) \
    do { if (!(x)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static int is_utf8(const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t c;
        const utf8proc_ssize_t used = utf8proc_iterate(data + i, (utf8proc_ssize_t)(n - i), &c);
        if (used <= 0) return 0;
        i += (size_t)used;
    }
    return 1;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static st_bpe *bpe;
    if (!bpe) REQUIRE(st_bpe_new(&bpe, NULL) == ST_OK);

    enum { LARGE = 512, SMALL = 32 };
    uint32_t a[LARGE], b[LARGE], c[SMALL];
    size_t n_a = 0, n_b = 0, n_c = 0;
    bool cut_a = false, cut_b = false, cut_c = false;
    st_error err = {ST_OK, ""};
    const st_status status = st_bpe_encode(bpe, (const char *)data, n, a, LARGE, &n_a, &cut_a, &err);
    if (n > ST_MAX_PHRASE_BYTES || !is_utf8(data, n)) {
        REQUIRE(status == ST_ERR_LIMIT || status == ST_ERR_INVALID_ARG);
        REQUIRE(err.status == status && err.message[0] && n_a == 0);
        return 0;
    }
    REQUIRE(status == ST_OK);
    REQUIRE(n_a >= 2 && n_a <= LARGE && a[0] == ST_BPE_START && a[n_a - 1] == ST_BPE_END);
    REQUIRE(!cut_a || n_a == LARGE);
    for (size_t i = 0; i < n_a; i++) REQUIRE(a[i] < ST_BPE_VOCAB);

    REQUIRE(st_bpe_encode(bpe, (const char *)data, n, b, LARGE, &n_b, &cut_b, NULL) == ST_OK);
    REQUIRE(n_a == n_b && cut_a == cut_b && memcmp(a, b, n_a * sizeof *a) == 0);

    REQUIRE(st_bpe_encode(bpe, (const char *)data, n, c, SMALL, &n_c, &cut_c, NULL) == ST_OK);
    REQUIRE(cut_c == (n_a > SMALL) && n_c == (cut_c ? SMALL : n_a));
    REQUIRE(memcmp(a, c, (n_c - 1) * sizeof *a) == 0 && c[n_c - 1] == ST_BPE_END);
    return 0;
}
