/* text_bpe_test.c: the tokeniser against the reference's ids, and the promises of bpe.h on bad and huge input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "text/bpe.h"
#include "text/merges.h"
#include <jansson.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencil/stencil.h>

static st_bpe *bpe;

static int set_up(void **state)
{
    (void)state;
    st_error err;
    return st_bpe_new(&bpe, &err) == ST_OK ? 0 : -1;
}
static int tear_down(void **state)
{
    (void)state;
    st_bpe_free(bpe);
    return 0;
}

/* ---- the linked table ---- */

/* Symbol `id` as the published file spells it. */
static void spell(char *out, unsigned id)
{
    static const unsigned first[] = {0x21, 0xA1, 0xAE}, last[] = {0x7E, 0xAC, 0xFF};
    if (id >= 512) {
        const uint8_t *p = st_merges + 4 * (id - 512);
        spell(out, (unsigned)(p[0] | p[1] << 8));
        spell(out + strlen(out), (unsigned)(p[2] | p[3] << 8));
        return;
    }
    unsigned left = id % 256, c = 0;
    for (size_t i = 0; i < 3 && !c; i++) {
        const unsigned n = last[i] - first[i] + 1;
        if (left < n) c = first[i] + left;
        else left -= n;
    }
    if (!c) c = 0x100 + left;
    size_t n = 0;
    if (c < 0x80) out[n++] = (char)c;
    else {
        out[n++] = (char)(0xC0 | c >> 6);
        out[n++] = (char)(0x80 | (c & 0x3F));
    }
    memcpy(out + n, id < 256 ? "" : "</w>", id < 256 ? 1 : 5);
}

/* Spelling the pairs out again gives the merge lines of the published vocabulary, byte for byte (SHA-256 of lines 2 to 48,895 of
 * bpe_simple_vocab_16e6.txt). Also: a merge uses only symbols that exist before it, which the heap in bpe.c relies on. */
static void table_is_the_published_one(void **state)
{
    (void)state;
    static const uint8_t expected[SHA256_DIGEST_SIZE] = {
        0xd3, 0x08, 0xb7, 0x37, 0x7a, 0x8c, 0xea, 0xa9, 0x70, 0x7a, 0x21, 0x61, 0x4f, 0xe8, 0xc8, 0x31,
        0xb9, 0x19, 0x6e, 0x19, 0x7b, 0x7a, 0xeb, 0x69, 0x83, 0x33, 0x59, 0x36, 0x29, 0x07, 0xaf, 0x02};
    struct sha256_ctx sha;
    sha256_init(&sha);
    for (unsigned rank = 0; rank < ST_N_MERGES; rank++) {
        const uint8_t *p = st_merges + 4 * rank;
        const unsigned left = (unsigned)(p[0] | p[1] << 8), right = (unsigned)(p[2] | p[3] << 8);
        assert_true(left < 512 + rank && right < 512 + rank);
        char line[512];
        spell(line, left);
        strcat(line, " ");
        spell(line + strlen(line), right);
        strcat(line, "\n");
        sha256_update(&sha, strlen(line), (const uint8_t *)line);
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&sha, sizeof digest, digest);
    assert_memory_equal(digest, expected, sizeof digest);
}

/* ---- ids ---- */

/* Checks the framed ids of `text` against the list `expected`, which has neither start nor end and ends with -1. */
static void check_ids(const char *text, const int *expected)
{
    uint32_t ids[32];
    size_t n = 0;
    bool cut = true;
    st_error err;
    assert_int_equal(st_bpe_encode(bpe, text, strlen(text), ids, 32, &n, &cut, &err), ST_OK);
    assert_false(cut);
    assert_true(n >= 2);
    assert_int_equal(ids[0], 49406);
    assert_int_equal(ids[n - 1], 49407);
    size_t i = 0;
    for (; expected[i] >= 0; i++) {
        assert_true(i + 1 < n - 1);
        assert_int_equal(ids[i + 1], expected[i]);
    }
    assert_int_equal(n, i + 2);
}
#define IDS(text, ...) check_ids(text, (const int[]){__VA_ARGS__, -1})

static void known_phrases(void **state)
{
    (void)state;
    check_ids("", (const int[]){-1});
    IDS("visual", 7195);
    IDS("cat", 2368);
    IDS("a dog", 320, 1929);
    IDS("ear", 8373);
    IDS("dial", 11381);
    IDS("handle", 7245);
    IDS("laptop", 10464);
    IDS("person", 2533);
    IDS("shoe", 7342);
    IDS("yellow school bus", 4481, 1228, 2840);
    IDS("player in white", 2477, 530, 1579);
    IDS("the man's red hat", 518, 786, 568, 736, 3801);
    IDS("the man\u2019s red hat", 518, 786, 568, 736, 3801);
    IDS("2 cats", 273, 3989);
    IDS("1234", 272, 273, 274, 275);
    IDS("x-ray!", 343, 268, 3077, 256);
    IDS("a!b", 320, 256, 321);
    IDS("!!", 748);
    IDS("!\u2603", 0, 1741, 481);
    IDS("a_b", 320, 318, 321);
    IDS("$!5", 3, 256, 276);
    IDS("I'LL", 328, 1342);
    IDS("o'clock", 334, 262, 6716);
    IDS("Caf\u00e9", 15304);
    IDS("Cafe\u0301", 15304);
    IDS("na\u00efve", 1097, 35689, 563);
    IDS("\u65e5\u672c", 39121, 19277, 361);
    IDS("\U0001F642", 14860);
    IDS("\u0130stanbul", 328, 16384, 11231);
    IDS("\uff23\uff21\uff34", 2368);        /* full width */
    IDS("&lt;cat&gt;", 283, 2368, 285);     /* entities */
    IDS("  cat\t\r\n \u00a0", 2368);        /* white space */
}

/* '!' inside a punctuation run is id 0, which callers take for padding: the tokeniser must hand it out as it is. */
static void id_zero_is_a_token(void **state)
{
    (void)state;
    uint32_t ids[32];
    size_t n;
    assert_int_equal(st_bpe_encode(bpe, "!=", 2, ids, 32, &n, NULL, NULL), ST_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(ids, ((uint32_t[]){49406, 0, 284, 49407}), 4 * sizeof *ids);
}

static void long_text_is_cut(void **state)
{
    (void)state;
    char text[400] = "";
    uint32_t ids[32];
    size_t n;
    bool cut;
    for (int words = 1; words <= 40; words++) {
        strcat(text, "cat ");
        assert_int_equal(st_bpe_encode(bpe, text, strlen(text), ids, 32, &n, &cut, NULL), ST_OK);
        assert_int_equal(cut, words > 30);
        assert_int_equal(n, words > 30 ? 32 : words + 2);
        assert_int_equal(ids[0], ST_BPE_START);
        for (size_t i = 1; i + 1 < n; i++) assert_int_equal(ids[i], 2368);
        assert_int_equal(ids[n - 1], ST_BPE_END);
    }
    /* one word of many tokens is cut in its middle */
    assert_int_equal(st_bpe_encode(bpe, "1234567890123456789012345678901234567890", 40, ids, 32, &n, &cut, NULL), ST_OK);
    assert_true(cut);
    assert_int_equal(n, 32);
    assert_int_equal(ids[31], ST_BPE_END);
    assert_int_equal(st_bpe_encode(bpe, "cat", 3, ids, 2, &n, &cut, NULL), ST_OK);
    assert_true(cut);
    assert_int_equal(n, 2);
    assert_int_equal(ids[1], ST_BPE_END);
}

/* ---- the committed file of the reference's answers ---- */

static void check_vector(const json_t *line, size_t number)
{
    const json_t *text = json_array_get(line, 1), *expected = json_array_get(line, 3);
    const size_t context = (size_t)json_integer_value(json_array_get(line, 2));
    uint32_t *ids = calloc(context, sizeof *ids);
    size_t n = 0;
    bool cut = false;
    st_error err = {ST_OK, ""};
    assert_non_null(ids);
    if (st_bpe_encode(bpe, json_string_value(text), json_string_length(text), ids, context, &n, &cut, &err) != ST_OK)
        fail_msg("line %zu: %s", number, err.message);
    if (n != json_array_size(expected)) fail_msg("line %zu: %zu ids, expected %zu", number, n, json_array_size(expected));
    for (size_t i = 0; i < n; i++) {
        const long long want = json_integer_value(json_array_get(expected, i));
        if (ids[i] != want) fail_msg("line %zu: id %zu is %u, expected %lld", number, i, ids[i], want);
    }
    assert_true(!cut || n == context);
    free(ids);
}

static void reference_vectors(void **state)
{
    (void)state;
    FILE *f = fopen(ST_SOURCE_DIR "/tests/data/token_vectors.jsonl", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0, number = 0, n_deviations = 0;
    json_t *head = NULL;
    while (getline(&line, &room, f) > 0) {
        json_error_t error;
        json_t *json = json_loads(line, JSON_ALLOW_NUL, &error);
        if (!json) fail_msg("line %zu: %s", number + 1, error.text);
        if (number++ == 0) {
            head = json;
            continue;
        }
        check_vector(json, number);
        n_deviations += strcmp(json_string_value(json_array_get(json, 0)), "deviation") == 0;
        json_decref(json);
    }
    fclose(f);
    free(line);
    assert_non_null(head);
    assert_int_equal(number - 1, json_integer_value(json_object_get(head, "n")));
    assert_int_equal(n_deviations, json_integer_value(json_object_get(head, "n_deviations")));
    assert_true(number > 2000 && n_deviations > 10);
    json_decref(head);
}

/* ---- bad and huge input ---- */

static void refuses(const char *text, size_t n_bytes, size_t context, st_status status, const char *part)
{
    uint32_t ids[32];
    size_t n = 7;
    st_error err = {ST_OK, ""};
    assert_int_equal(st_bpe_encode(bpe, text, n_bytes, ids, context, &n, NULL, &err), status);
    assert_int_equal(n, 0);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, part)) fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void bad_input_is_refused(void **state)
{
    (void)state;
    refuses("ab\xff", 3, 32, ST_ERR_INVALID_ARG, "byte 2");
    refuses("\x80", 1, 32, ST_ERR_INVALID_ARG, "byte 0");             /* a continuation alone */
    refuses("a\xc3", 2, 32, ST_ERR_INVALID_ARG, "byte 1");            /* cut off */
    refuses("\xc0\xaf", 2, 32, ST_ERR_INVALID_ARG, "byte 0");         /* overlong */
    refuses("\xed\xa0\x80", 3, 32, ST_ERR_INVALID_ARG, "byte 0");     /* surrogate */
    refuses("\xf4\x90\x80\x80", 4, 32, ST_ERR_INVALID_ARG, "byte 0"); /* above U+10FFFF */
    refuses("cat", 3, 1, ST_ERR_INVALID_ARG, "at least 2");
    char *big = calloc(ST_MAX_PHRASE_BYTES + 1, 1);
    assert_non_null(big);
    memset(big, 'a', ST_MAX_PHRASE_BYTES + 1);
    refuses(big, ST_MAX_PHRASE_BYTES + 1, 32, ST_ERR_LIMIT, "65537 bytes");
    free(big);
}

/* A text as long as the cap made of `unit`s: done in a time that a quadratic method would miss by far, even under a sanitizer. */
static void check_huge(const char *unit)
{
    char *text = malloc(ST_MAX_PHRASE_BYTES);
    assert_non_null(text);
    const size_t unit_n = strlen(unit), n_bytes = ST_MAX_PHRASE_BYTES / unit_n * unit_n;
    for (size_t i = 0; i < n_bytes; i++) text[i] = unit[i % unit_n];
    const size_t room = 2 * (size_t)ST_MAX_PHRASE_BYTES;
    uint32_t *ids = calloc(room, sizeof *ids);
    assert_non_null(ids);
    size_t n;
    bool cut;
    const double start = st_clock_seconds();
    assert_int_equal(st_bpe_encode(bpe, text, n_bytes, ids, room, &n, &cut, NULL), ST_OK);
    assert_true(st_clock_seconds() - start < 5.0);
    assert_false(cut);
    assert_true(n > 2);
    assert_int_equal(st_bpe_encode(bpe, text, n_bytes, ids, 32, &n, &cut, NULL), ST_OK);
    assert_true(n <= 32 && ids[n - 1] == ST_BPE_END);
    free(ids);
    free(text);
}

static void huge_input_is_quick(void **state)
{
    (void)state;
    check_huge("a");
    check_huge("thequickbrownfoxjumps");
    check_huge("!");
    check_huge("\u65e5");
    check_huge("\u0316\u0301\u0327");  /* one run of marks whose classes are out of order */
    check_huge("&am");
    check_huge("&semi");
    check_huge("amp;");
    check_huge("\x1b[3;");
    check_huge("\u03a3\u0301");
    check_huge("'s ");
    char nested[60001] = "&";
    for (size_t i = 1; i + 4 < sizeof nested; i += 4) memcpy(nested + i, "amp;", 5);
    uint32_t ids[32];
    size_t n;
    const double start = st_clock_seconds();
    assert_int_equal(st_bpe_encode(bpe, nested, strlen(nested), ids, 32, &n, NULL, NULL), ST_OK);
    assert_true(st_clock_seconds() - start < 5.0);
    assert_int_equal(n, 32);
}

static void out_of_memory_is_an_error(void **state)
{
    (void)state;
    const char text[] = "the man\u2019s r\u00e9sum\u00e9 &amp; a very long supercalifragilisticexpialidocious word e\u0327\u0301\u0316";
    for (uint64_t k = 1;; k++) {
        uint32_t ids[64];
        size_t n;
        st_error err;
        st_mem_fail_after(k);
        const st_status status = st_bpe_encode(bpe, text, strlen(text), ids, 64, &n, NULL, &err);
        st_mem_fail_after(0);
        if (status == ST_OK) {
            assert_true(k > 5);
            break;
        }
        assert_int_equal(status, ST_ERR_NOMEM);
        assert_true(k < 1000);
    }
    st_bpe *none = bpe;
    st_mem_fail_after(1);
    assert_int_equal(st_bpe_new(&none, NULL), ST_ERR_NOMEM);
    st_mem_fail_after(0);
    assert_null(none);
    st_bpe_free(NULL);
}

/* One table, several threads. */
static void *encode_often(void *arg)
{
    size_t *wrong = arg;
    for (int i = 0; i < 200; i++) {
        uint32_t ids[32];
        size_t n = 0;
        if (st_bpe_encode(bpe, "yellow school bus", 17, ids, 32, &n, NULL, NULL) != ST_OK || n != 5 || ids[3] != 2840) ++*wrong;
    }
    return NULL;
}

static void threads_share_the_table(void **state)
{
    (void)state;
    pthread_t threads[3];
    size_t wrong[3] = {0};
    for (size_t i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_often, &wrong[i]), 0);
    for (size_t i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 3; i++) assert_int_equal(wrong[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_the_published_one), cmocka_unit_test(known_phrases),
        cmocka_unit_test(id_zero_is_a_token),         cmocka_unit_test(long_text_is_cut),
        cmocka_unit_test(reference_vectors),          cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(huge_input_is_quick),        cmocka_unit_test(out_of_memory_is_an_error),
        cmocka_unit_test(threads_share_the_table),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
