/* picture_fuzz.c: any bytes as a picture file. Property: a picture that is accepted lies within the caps, has width *
 * height * 3 bytes (all are read), plausible metadata, and decodes to the same pixels a second time, also when only its
 * size is left to spare; what is refused leaves nothing and says why. The first byte chooses the stretch, so that the
 * wide paths are reached from 8-bit seeds too.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stencil/stencil_picture.h>

#define MAX_PIXELS 300000u

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);

static void require(int fact, const char *what)
{
    if (fact) return;
    fprintf(stderr, "property broken: %s\n", what);
    abort();
}

static uint64_t checksum(const st_bitmap *b)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < (size_t)b->width * b->height * 3; i++) sum = (sum ^ b->rgb[i]) * 1099511628211u;
    return sum;
}

static void check_refused(const st_bitmap *b, st_status status, const st_error *err)
{
    require(!b->rgb && !b->width && !b->height, "a refused picture leaves nothing");
    require(err->status == status && strncmp(err->message, "fuzz: ", 6) == 0 && err->message[6],
            "a refusal names the file and says why");
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    st_bitmap first, second;
    st_error err = { 0 };
    st_bitmap_options options = ST_BITMAP_OPTIONS_INIT;
    if (n < 1) return 0;
    options.stretch = (st_stretch)(data[0] % 3);
    options.max_pixels = MAX_PIXELS;
    st_status status = st_bitmap_decode(&first, data + 1, n - 1, "fuzz", &options, &err);
    if (status != ST_OK) {
        check_refused(&first, status, &err);
        return 0;
    }
    const uint64_t n_pixels = (uint64_t)first.width * first.height, sum = checksum(&first);
    require(n_pixels >= 1 && n_pixels <= MAX_PIXELS, "an accepted picture lies within the cap");
    require(first.orientation >= 1 && first.orientation <= 8, "orientation is 1..8");
    require(first.bits >= 1 && first.bits <= 64 && first.bands >= 1, "bits and bands are plausible");
    require(st_bitmap_can_read(first.format), "the format is one that this build reads");
    require(first.low < first.high, "the range is one");
    /* A HEIF header may promise more pixels than its codec then gives; the promise counts too. */
    if (strcmp(first.format, "heif") != 0) options.max_pixels = n_pixels;
    status = st_bitmap_decode(&second, data + 1, n - 1, "fuzz", &options, &err);
    require(status == ST_OK, "a picture of exactly the cap is accepted");
    require(second.width == first.width && second.height == first.height && checksum(&second) == sum, "twice the same");
    st_bitmap_free(&first);
    options.max_pixels = n_pixels - 1;
    status = st_bitmap_decode(&first, data + 1, n - 1, "fuzz", &options, &err);
    require(status == ST_ERR_LIMIT, "one pixel more than the cap is refused");
    check_refused(&first, status, &err);
    st_bitmap_free(&second);
    return 0;
}
