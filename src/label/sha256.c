/* sha256.c: SHA-256 by nettle, for telling files, names and recipes apart. */
#include "label/labels.h"

#include <nettle/sha2.h>
#include <string.h>

void st_label_sha256(char out[65], const void *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&hash);
    sha256_update(&hash, n, bytes);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}
