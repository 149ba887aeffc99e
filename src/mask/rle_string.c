/* rle_string.c: COCO's compressed string, `rleToString` and `rleFrString` of pycocotools (`common/maskApi.c`), bit for
 * bit on writing.
 *
 * Run i is written as counts[i] for i <= 2 and as counts[i] - counts[i-2] after that, in groups of five bits, lowest
 * first. A group is the character 48 + bits + 32 if another group follows; bit 4 of the last group is the sign. Reading
 * is stricter than the original, which never looks at the end of the string, takes any character, and lets values wrap.
 */

#include "base/error.h"
#include "base/mem.h"
#include "mask/runs.h"

enum { FIRST_CHAR = 48, MORE = 0x20, SIGN = 0x10 };
/* A difference of two run lengths needs 33 bits and its sign: seven groups. */
enum { MAX_GROUPS = 7 };

/* Writes the groups of `value` to `at`, or only counts them when at is NULL. */
static size_t put_value(char *at, int64_t value)
{
    size_t n = 0;
    bool more = true;
    while (more) {
        int group = (int)(value & 0x1f);
        value = (value - group) / 32; /* exact: a shift that also floors negative values */
        more = value != (group & SIGN ? -1 : 0);
        if (more) group |= MORE;
        if (at) at[n] = (char)(group + FIRST_CHAR);
        n++;
    }
    return n;
}

static int64_t written_value(const st_rle *mask, size_t i)
{
    return i > 2 ? (int64_t)mask->counts[i] - (int64_t)mask->counts[i - 2] : (int64_t)mask->counts[i];
}

st_status st_rle_to_string(char **out, const st_rle *mask, st_error *err)
{
    *out = NULL;
    size_t length = 0;
    for (size_t i = 0; i < mask->n_counts; i++) length += put_value(NULL, written_value(mask, i));
    char *string = st_malloc(length + 1);
    if (!string) return st_fail(err, ST_ERR_NOMEM, "mask as a string: out of memory for %zu bytes", length + 1);
    char *at = string;
    for (size_t i = 0; i < mask->n_counts; i++) at += put_value(at, written_value(mask, i));
    *at = '\0';
    *out = string;
    return ST_OK;
}

void st_string_free(char *string)
{
    st_free(string);
}

/* Reads one value at string[*at] and moves *at behind it. */
static st_status take_value(int64_t *value, size_t *at, const char *string, size_t length, st_error *err)
{
    *value = 0;
    for (unsigned shift = 0; shift < 5 * MAX_GROUPS; shift += 5) {
        if (*at == length)
            return st_fail(err, ST_ERR_FORMAT, "mask string: ends within a run length, at byte %zu", length);
        const int group = (unsigned char)string[*at] - FIRST_CHAR;
        if (group < 0 || group > (MORE | 0x1f)) {
            return st_fail(err, ST_ERR_FORMAT, "mask string: byte %zu is 0x%02x, expected one of '0' to 'o'", *at,
                           (unsigned)(unsigned char)string[*at]);
        }
        ++*at;
        *value += (int64_t)(group & 0x1f) << shift;
        if (group & MORE) continue;
        if (group & SIGN) *value -= INT64_C(32) << shift;
        return ST_OK;
    }
    return st_fail(err, ST_ERR_FORMAT,
                   "mask string: the run length that ends at byte %zu takes more than %d characters", *at, MAX_GROUPS);
}

/* Reads all runs of a picture of `area` pixels. Runs of no pixels, which other writers leave in the middle, join
 * their neighbours. */
static st_status take_runs(st_runs *runs, const char *string, size_t length, uint64_t area, st_error *err)
{
    int64_t before[2] = { 0, 0 }; /* the run lengths one and two places back */
    uint64_t total = 0;
    size_t at = 0;
    for (size_t i = 0; at < length && !runs->failed; i++) {
        int64_t run;
        const st_status status = take_value(&run, &at, string, length, err);
        if (status != ST_OK) return status;
        if (i > 2) run += before[1];
        if (run < 0) return st_fail(err, ST_ERR_FORMAT, "mask string: run %zu has a negative length", i);
        if ((uint64_t)run > area - total) {
            return st_fail(err, ST_ERR_FORMAT, "mask string: run %zu goes past the %llu pixels of the picture", i,
                           (unsigned long long)area);
        }
        total += (uint64_t)run;
        before[1] = before[0];
        before[0] = run;
        st_runs_add(runs, i & 1, (uint32_t)run);
    }
    if (!runs->failed && total != area) {
        return st_fail(err, ST_ERR_FORMAT, "mask string: its runs add up to %llu pixels, the picture has %llu",
                       (unsigned long long)total, (unsigned long long)area);
    }
    return ST_OK;
}

st_status st_rle_from_string(st_rle *out, const char *string, size_t length, uint32_t width, uint32_t height,
                             st_error *err)
{
    *out = (st_rle){ 0 };
    st_status status = st_mask_check_size(width, height, "mask string", err);
    if (status != ST_OK) return status;
    st_runs runs = { 0 };
    status = take_runs(&runs, string, length, (uint64_t)width * height, err);
    if (status != ST_OK) {
        st_runs_free(&runs);
        return status;
    }
    return st_runs_finish(&runs, out, width, height, err);
}
