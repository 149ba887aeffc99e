/* lint.c: what is doubtful about a phrase. The model was trained on singular noun phrases that name one kind of thing;
 * everything else works by luck. These are doubts, not refusals: a rule of thumb may be wrong about a language it does
 * not know.
 */
#include "label/ontology.h"

#include <ctype.h>
#include <string.h>

enum { MAX_WORDS = 64, MAX_TEXT = 1024 };

typedef struct words {
    char text[MAX_TEXT];
    const char *word[MAX_WORDS]; /* [n] small letters, without punctuation at the end */
    size_t n;
    bool list; /* something like a list: "a, b", "a/b", "a & b" */
} words;

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0) return true;
    return false;
}
#define ONE_OF(word, list) is_one_of(word, list, sizeof(list) / sizeof(list)[0])

/* Cuts the phrase into words, in small letters as the model reads them. */
static void split(words *w, const char *phrase)
{
    size_t n = 0;
    w->n = 0;
    w->list = false;
    for (; phrase[n] && n + 1 < MAX_TEXT; n++) w->text[n] = (char)tolower((unsigned char)phrase[n]);
    w->text[n] = '\0';
    for (char *p = w->text; *p && w->n < MAX_WORDS;) {
        p += strspn(p, " \t\r\n");
        if (!*p) break;
        const size_t length = strcspn(p, " \t\r\n,;/&");
        char *end = p + length;
        if (length) w->word[w->n++] = p;
        /* "," at the very end is no list; "/" between digits is a fraction or a size */
        if (w->n && *end && strchr(",;/&", *end) && end[1 + strspn(end + 1, " ")] &&
            !(isdigit((unsigned char)end[1]) && length))
            w->list = true;
        p = *end ? end + 1 : end;
        *end = '\0';
        while (length && end > w->word[w->n - 1] && strchr(".!?", end[-1])) *--end = '\0';
    }
}

static bool names_two(const words *w)
{
    static const char *const joins[] = { "or", "and", "and/or", "plus", "versus", "vs" };
    if (w->list) return true;
    for (size_t i = 1; i + 1 < w->n; i++) {
        if (!ONE_OF(w->word[i], joins)) continue;
        const bool pattern = strcmp(w->word[i - 1], "black") == 0 && strcmp(w->word[i + 1], "white") == 0;
        if (!pattern) return true;
    }
    return false;
}

/* The noun that the phrase is about: the last word before "in", "with", "of" ... */
static const char *head_of(const words *w)
{
    static const char *const links[] = { "in",     "on",   "at",     "with",   "without", "of",  "from",    "by",
                                         "under",  "over", "near",   "that",   "which",   "who", "wearing", "holding",
                                         "behind", "for",  "inside", "beside", "without", "not" };
    for (size_t i = 1; i < w->n; i++)
        if (ONE_OF(w->word[i], links)) return w->word[i - 1];
    return w->n ? w->word[w->n - 1] : "";
}

static bool is_plural(const char *noun)
{
    static const char *const odd[] = { "people", "men", "women", "children", "mice", "geese", "teeth", "feet", "oxen" };
    static const char *const single[] = { /* end in s, and are one thing */
                                          "glasses",  "sunglasses", "eyeglasses", "scissors",   "pants",   "jeans",
                                          "trousers", "shorts",     "leggings",   "tights",     "pajamas", "pyjamas",
                                          "goggles",  "binoculars", "headphones", "earphones",  "pliers",  "tweezers",
                                          "tongs",    "shears",     "stairs",     "lens",       "gas",     "canvas",
                                          "species",  "series",     "news",       "christmas",  "atlas",   "swiss",
                                          "clothes",  "overalls",   "dungarees",  "suspenders", "braces",  "mass",
                                          "yes",      "bias",       "texas",      "alias",      "pancreas"
    };
    const size_t n = strlen(noun);
    if (ONE_OF(noun, odd)) return true;
    if (n < 4 || noun[n - 1] != 's' || ONE_OF(noun, single)) return false;
    return !strchr("sui'", noun[n - 2]); /* glass, bus, tennis, worker's */
}

static bool is_instruction(const words *w)
{
    static const char *const always[] = { "find", "detect", "segment", "identify", "locate",    "please",  "where",
                                          "what", "which",  "how",     "outline",  "highlight", "annotate" };
    static const char *const verbs[] = { "show", "label", "mark", "count", "select",
                                         "get",  "give",  "look", "cut",   "mask" };
    static const char *const after[] = {
        "all", "every", "each", "any", "the", "a", "an", "me", "my", "for", "out", "if"
    };
    static const char *const every[] = { "all", "every", "each", "any" };
    if (w->n < 2) return false;
    if (ONE_OF(w->word[0], always) || ONE_OF(w->word[0], every)) return true;
    return ONE_OF(w->word[0], verbs) && ONE_OF(w->word[1], after);
}

static bool is_negation(const words *w)
{
    static const char *const no[] = { "no", "not", "without", "except", "excluding", "isn't", "aren't", "non" };
    for (size_t i = 0; i < w->n; i++)
        if (ONE_OF(w->word[i], no)) return true;
    return false;
}

static bool is_cut(const char *phrase)
{
    uint32_t ids[256];
    size_t n;
    int cut = 0;
    return st_tokenize(phrase, ids, sizeof ids / sizeof ids[0], &n, &cut, NULL) == ST_OK && cut;
}

uint32_t st_label_lint(const char *phrase)
{
    words w;
    split(&w, phrase);
    uint32_t doubts = 0;
    if (names_two(&w)) doubts |= ST_LABEL_LINT_TWO;
    if (is_plural(head_of(&w))) doubts |= ST_LABEL_LINT_PLURAL;
    if (is_cut(phrase)) doubts |= ST_LABEL_LINT_LONG;
    if (is_instruction(&w)) doubts |= ST_LABEL_LINT_INSTRUCTION;
    if (is_negation(&w)) doubts |= ST_LABEL_LINT_NEGATION;
    return doubts;
}

const char *st_label_lint_reason(uint32_t bit)
{
    switch (bit) {
    case ST_LABEL_LINT_TWO:
        return "names two things at once, and the model looks for one; give each a phrase of its own in the same class";
    case ST_LABEL_LINT_PLURAL: return "is a plural; the model finds every instance of the singular";
    case ST_LABEL_LINT_LONG: return "is longer than the 32 tokens that the model reads; the rest is not seen";
    case ST_LABEL_LINT_INSTRUCTION: return "is an instruction; name the thing alone, all of its kind are found";
    case ST_LABEL_LINT_NEGATION:
        return "says what is not there, which the model does not understand; it finds those things, too";
    default: return NULL;
    }
}
