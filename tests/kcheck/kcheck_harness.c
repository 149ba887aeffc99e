/* kcheck_harness.c: guarded buffers, random numbers, comparison and counting of kcheck. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kcheck.h"
#include "kcheck_run.h"

kc_options kc_opts;
sigjmp_buf kc_jump;

const size_t kc_sizes[] = { 1,  2,  3,  4,  5,  7,  8,   9,   11,  13,  15,  16,  17,  23,   31,   32,   33,
                            47, 48, 49, 63, 64, 65, 101, 127, 128, 129, 201, 256, 257, 1008, 1024, 1031, 5184 };
const size_t kc_n_sizes = sizeof kc_sizes / sizeof kc_sizes[0];

/* ---------------------------------------------------------------- guarded buffers
 * Slots of SLOT_BYTES between two unreadable pages, made once and used again. The watched bytes reach MARGIN bytes to
 * either side as far as the slot goes. */
enum { N_SLOTS = 24, MARGIN = 512, FILLER = 0x99 };
#define SLOT_BYTES ((size_t)32 << 20)

typedef struct slot {
    unsigned char *base; /* first usable byte */
    unsigned char *at;
    size_t n_bytes; /* of the buffer in use; 0 = free */
    bool sealed;
} slot;
static slot slots[N_SLOTS];
static kc_place place;

static struct {
    char name[96];
    bool failed;
    unsigned n_messages;
    uint64_t random;
} now;

void kc_set_place(kc_place p) { place = p; }

static void die(const char *why)
{
    printf("FAIL kcheck itself: %s in %s\n", why, now.name);
    fflush(stdout);
    _exit(3);
}

static void make_slot(slot *s)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *p = mmap(NULL, SLOT_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p + page, SLOT_BYTES, PROT_READ | PROT_WRITE) != 0)
        die("no memory for a buffer");
    s->base = p + page;
}

static void margins(const slot *s, unsigned char **low, unsigned char **high)
{
    *low = s->at - s->base > MARGIN ? s->at - MARGIN : s->base;
    unsigned char *end = s->at + s->n_bytes, *limit = s->base + SLOT_BYTES;
    *high = limit - end > MARGIN ? end + MARGIN : limit;
}

float *kc_floats(size_t n)
{
    slot *s = slots;
    while (s < slots + N_SLOTS && s->n_bytes != 0)
        s++;
    if (s == slots + N_SLOTS || n > SLOT_BYTES / sizeof(float) / 2)
        die("too many or too large buffers");
    if (!s->base)
        make_slot(s);
    s->n_bytes = n * sizeof(float);
    s->at = place == KC_AT_END ? s->base + SLOT_BYTES - s->n_bytes : s->base + (place == KC_ODD ? sizeof(float) : 0);
    if (n == 0)
        s->n_bytes = 1; /* in use; the byte is never looked at as data */
    if (n == 0 && place == KC_AT_END)
        s->at--;
    unsigned char *low, *high;
    margins(s, &low, &high);
    memset(low, FILLER, (size_t)(high - low));
    return (float *)(void *)s->at;
}

void kc_seal(const float *p)
{
    for (slot *s = slots; s < slots + N_SLOTS; s++) {
        if (s->n_bytes != 0 && s->at == (const unsigned char *)(const void *)p) {
            s->sealed = true;
            if (mprotect(s->base, SLOT_BYTES, PROT_READ) != 0)
                die("mprotect");
            return;
        }
    }
    die("kc_seal of something else");
}

static void check_margins(const slot *s, size_t index)
{
    unsigned char *low, *high;
    margins(s, &low, &high);
    for (unsigned char *p = low; p < high; p++) {
        if (p == s->at)
            p += s->n_bytes;
        if (p < high && *p != FILLER) {
            kc_fail("buffer %zu: a byte %s it was written, at distance %td", index, p < s->at ? "before" : "after",
                    p < s->at ? s->at - p : p - (s->at + s->n_bytes) + 1);
            return;
        }
    }
}

static void give_back(slot *s)
{
    if (s->sealed && mprotect(s->base, SLOT_BYTES, PROT_READ | PROT_WRITE) != 0)
        die("mprotect");
    s->sealed = false;
    s->n_bytes = 0;
}

/* ---------------------------------------------------------------- checks */

bool kc_begin(const char *fmt, ...)
{
    static const char *const place_names[KC_N_PLACES] = { "end", "start", "odd" };
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(now.name, sizeof now.name, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof now.name)
        snprintf(now.name + n, sizeof now.name - (size_t)n, " @%s", place_names[place]);
    if (kc_opts.only && !strstr(now.name, kc_opts.only))
        return false;
    memcpy(kc_result->running, now.name, sizeof kc_result->running);
    now.failed = false;
    now.n_messages = 0;
    now.random = kc_opts.seed;
    for (const char *p = now.name; *p; p++)
        now.random = (now.random ^ (unsigned char)*p) * 0x100000001B3u; /* FNV-1a, started from the seed */
    return true;
}

void kc_end(void)
{
    for (size_t i = 0; i < N_SLOTS; i++) {
        if (slots[i].n_bytes != 0)
            check_margins(&slots[i], i);
    }
    for (size_t i = 0; i < N_SLOTS; i++) {
        if (slots[i].n_bytes != 0)
            give_back(&slots[i]);
    }
    if (now.failed)
        kc_result->n_failed++;
    else
        kc_result->n_passed++;
    if (kc_opts.verbose)
        printf("%s %s\n", now.failed ? "failed" : "passed", now.name);
}

void kc_fail(const char *fmt, ...)
{
    now.failed = true;
    if (++now.n_messages > 3)
        return;
    printf("FAIL %s: ", now.name);
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf(" (seed %llu)\n", (unsigned long long)kc_opts.seed);
}

bool kc_failed(void) { return now.failed; }
void kc_left_out(void) { kc_result->n_left_out++; }

/* ---------------------------------------------------------------- signals */

static volatile sig_atomic_t armed, caught;
void kc_arm(bool on) { armed = on; }

static void on_signal(int number)
{
    if (!armed) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    caught = number;
    armed = 0;
    siglongjmp(kc_jump, 1);
}

void kc_crashed(void)
{
    const int s = caught;
    kc_fail("%s", s == SIGSEGV  ? "read or write outside the buffers (SIGSEGV)"
                  : s == SIGBUS ? "bus error"
                  : s == SIGILL ? "illegal instruction"
                                : "arithmetic signal");
}

void kc_catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigemptyset(&action.sa_mask);
    const int numbers[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

/* ---------------------------------------------------------------- numbers */

static uint64_t next_random(void) /* splitmix64 */
{
    uint64_t z = now.random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double kc_uniform(double low, double high) { return low + (high - low) * (double)(next_random() >> 11) * 0x1p-53; }
int kc_int(int low, int high) { return low + (int)(next_random() % (uint64_t)(high - low + 1)); }

void kc_fill(float *p, size_t n, bool exact)
{
    for (size_t i = 0; i < n; i++)
        p[i] = exact ? (float)kc_int(-8, 8) : (float)kc_uniform(-2.0, 2.0);
}

bool kc_near(size_t at, double got, double want, double tol)
{
    if ((isnan(got) && isnan(want)) || (isinf(want) && got == want) || fabs(got - want) <= tol)
        return true;
    kc_fail("element %zu: got %.9g, want %.9g, off by %.3g, allowed %.3g", at, got, want, fabs(got - want), tol);
    return false;
}

bool kc_same(size_t at, float got, float want)
{
    if (got == want || (isnan(got) && isnan(want)))
        return true;
    kc_fail("element %zu: got %a, want %a", at, (double)got, (double)want);
    return false;
}
