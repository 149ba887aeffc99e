/* ontology_test.c: classes from words and from files, the ids that stay with names, and doubts about phrases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "label/ontology.h"
#include "unit/temp_folder.h"

static void add(st_label_ontology *o, const char *text)
{
    st_error err = { ST_OK, "" };
    if (st_label_ontology_add(o, text, &err) != ST_OK) fail_msg("%s: %s", text, err.message);
}

/* The word is refused, and the sentence says so. */
static void refuse(st_label_ontology *o, const char *text, const char *said)
{
    st_error err = { ST_OK, "" };
    const size_t n = o->n_phrases;
    assert_int_not_equal(st_label_ontology_add(o, text, &err), ST_OK);
    if (!strstr(err.message, said)) fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, said);
    assert_int_equal(o->n_phrases, n);
}

static void test_words__names_and_phrases(void **state)
{
    (void)state;
    st_label_ontology o = { 0 };
    add(&o, "forklift");
    add(&o, "worker=person in hi-vis vest");
    add(&o, " worker = construction worker ");
    add(&o, "a=b=c");
    assert_int_equal(o.n, 3);
    assert_int_equal(o.n_phrases, 4);
    assert_string_equal(o.classes[0].name, "forklift");
    assert_string_equal(o.classes[0].phrases[0], "forklift");
    assert_string_equal(o.classes[1].name, "worker");
    assert_int_equal(o.classes[1].n_phrases, 2);
    assert_string_equal(o.classes[1].phrases[1], "construction worker");
    assert_string_equal(o.classes[2].phrases[0], "b=c");
    assert_true(o.classes[1].threshold == 0.5f);
    refuse(&o, "worker=construction worker", "twice");
    refuse(&o, "other=forklift", "two classes");
    refuse(&o, "=x", "without a name");
    refuse(&o, "", "without a name");
    refuse(&o, "x=", "empty phrase");
    refuse(&o, "x\ny=z", "control characters");
    refuse(&o, "x\xFF=z", "UTF-8");
    refuse(&o, "x=\xFF", "UTF-8");
    refuse(&o, "@x.concept", "name the class");
    refuse(&o, "x=@/no/such.concept", "/no/such.concept");
    st_label_ontology_free(&o);
}

static void set(st_label_ontology *o, st_label_setting what, const char *text)
{
    st_error err = { ST_OK, "" };
    if (st_label_class_set(o->classes, o->n, what, text, &err) != ST_OK) fail_msg("%s: %s", text, err.message);
}

static void test_settings__of_all_and_of_one(void **state)
{
    (void)state;
    static const char *const wrong[] = { "a=2", "a=", "none=0.5", "x", "-1", "a=nan", "0.5=a" };
    st_label_ontology o = { 0 };
    add(&o, "a");
    add(&o, "b");
    set(&o, ST_LABEL_THRESHOLD, "0.25");
    set(&o, ST_LABEL_THRESHOLD, "b=0.75");
    set(&o, ST_LABEL_MIN_AREA, "0.0004");
    set(&o, ST_LABEL_MAX_AREA, "b=900");
    assert_true(o.classes[0].threshold == 0.25f && o.classes[1].threshold == 0.75f);
    assert_true(o.classes[0].min_area.is_share && o.classes[0].min_area.value == 0.0004);
    assert_true(o.classes[0].max_area.value == 0.0);
    assert_true(!o.classes[1].max_area.is_share && o.classes[1].max_area.value == 900.0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(st_label_class_set(o.classes, o.n, ST_LABEL_THRESHOLD, wrong[i], NULL), ST_ERR_INVALID_ARG);
    st_label_ontology_free(&o);
}

/* ---- files ---- */

static st_status read_text(st_label_ontology *o, const char *text, st_error *err)
{
    temp_folder t;
    temp_folder_make(&t);
    temp_write_text(&t, "classes.json", text);
    char *path = temp_path(&t, "classes.json");
    const st_status status = st_label_ontology_read(o, path, err);
    free(path);
    temp_folder_remove(&t);
    return status;
}

static void test_file__everything(void **state)
{
    (void)state;
    st_label_ontology o = { 0 };
    st_error err = { ST_OK, "" };
    assert_int_equal(read_text(&o,
                               "{\"classes\": [{\"name\": \"forklift\"}, {\"name\": \"worker\", \"phrases\": [\"person in vest\", "
                               "\"builder\"], \"threshold\": 0.4, \"min_area\": 0.001, \"max_area\": 5000, \"id\": 7}]}",
                               &err),
                     ST_OK);
    assert_int_equal(o.n, 2);
    assert_string_equal(o.classes[0].phrases[0], "forklift");
    assert_int_equal(o.classes[0].id, 0);
    assert_int_equal(o.classes[1].n_phrases, 2);
    assert_int_equal(o.classes[1].id, 7);
    assert_true(o.classes[1].threshold == 0.4f);
    assert_true(o.classes[1].min_area.is_share && !o.classes[1].max_area.is_share);
    st_label_ontology_free(&o);
}

static void test_file__what_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        { "", "line" },
        { "{", "line" },
        { "[]", "at least one class" },
        { "3", "line" },
        { "{\"classes\": []}", "at least one class" },
        { "{\"classes\": [{\"name\": \"a\"}], \"more\": 1}", "at least one class" },
        { "[3]", "expected an object" },
        { "[{}]", "\"name\"" },
        { "[{\"name\": 3}]", "\"name\"" },
        { "[{\"name\": \"a=b\"}]", "\"name\"" },
        { "[{\"name\": \" \"}]", "without a name" },
        { "[{\"name\": \"a\", \"treshold\": 0.4}]", "did you mean \"threshold\"" },
        { "[{\"name\": \"a\", \"threshold\": 1.5}]", "from 0 to 1" },
        { "[{\"name\": \"a\", \"threshold\": \"0.5\"}]", "from 0 to 1" },
        { "[{\"name\": \"a\", \"id\": 0}]", "from 1" },
        { "[{\"name\": \"a\", \"id\": 3000000000}]", "from 1" },
        { "[{\"name\": \"a\", \"min_area\": -1}]", "min_area" },
        { "[{\"name\": \"a\", \"phrases\": []}]", "at least one phrase" },
        { "[{\"name\": \"a\", \"phrases\": [3]}]", "phrases" },
        { "[{\"name\": \"a\", \"phrases\": [\"\"]}]", "empty phrase" },
        { "[{\"name\": \"a\", \"phrases\": [\"@x\"]}]", "concept" },
        { "[{\"name\": \"a\", \"phrases\": [\"x\\u0000y\"]}]", "line" },
        { "[{\"name\": \"a\"}, {\"name\": \"a\", \"phrases\": [\"b\"]}]", "already" },
        { "[{\"name\": \"a\", \"name\": \"b\"}]", "line" },
        { "[{\"name\": \"a\", \"phrases\": [{\"concept\": \"none.concept\"}]}]", "none.concept" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        st_label_ontology o = { 0 };
        st_error err = { ST_OK, "" };
        if (read_text(&o, cases[i][0], &err) == ST_OK) fail_msg("%s: accepted", cases[i][0]);
        if (!strstr(err.message, cases[i][1])) fail_msg("%s: \"%s\"", cases[i][0], err.message);
        st_label_ontology_free(&o);
    }
}

/* ---- ids ---- */

static void number(st_label_ontology *o, const st_label_job *old, size_t n_retired)
{
    st_label_class *retired;
    size_t n;
    st_error err = { ST_OK, "" };
    if (st_label_ontology_number(o, &retired, &n, old, &err) != ST_OK) fail_msg("%s", err.message);
    assert_int_equal(n, n_retired);
    st_label_classes_free(retired, n);
}

static void test_ids__stay_with_names(void **state)
{
    (void)state;
    st_label_ontology first = { 0 }, second = { 0 };
    add(&first, "zebra");
    add(&first, "ant");
    number(&first, NULL, 0);
    assert_string_equal(first.classes[0].name, "zebra"); /* as named, not by the alphabet */
    assert_int_equal(first.classes[1].id, 2);
    st_label_class gone = { .id = 5, .name = (char[]){ "old" } };
    const st_label_job job = { .classes = first.classes, .n_classes = 2, .retired = &gone, .n_retired = 1 };
    add(&second, "new");
    add(&second, "ant");
    number(&second, &job, 2); /* zebra and old */
    assert_string_equal(second.classes[0].name, "ant");
    assert_int_equal(second.classes[0].id, 2);
    assert_string_equal(second.classes[1].name, "new");
    assert_int_equal(second.classes[1].id, 6); /* 5 stays taken */
    st_label_ontology_free(&second);
    add(&second, "old"); /* comes back */
    number(&second, &job, 2);
    assert_int_equal(second.classes[0].id, 5);
    st_label_ontology_free(&second);
    st_label_ontology_free(&first);
}

static void test_ids__given_ones_must_agree(void **state)
{
    (void)state;
    st_label_class known[2] = { { .id = 1, .name = (char[]){ "a" } }, { .id = 2, .name = (char[]){ "b" } } };
    const st_label_job job = { .classes = known, .n_classes = 2 };
    static const struct {
        const char *name[2];
        uint32_t id[2];
        const char *said;
    } cases[] = { { { "a", "c" }, { 3, 0 }, "knows it as 1" },
                  { { "c", "d" }, { 2, 0 }, "belongs to \"b\"" },
                  { { "c", "d" }, { 9, 9 }, "one id, 9" },
                  { { "c", "d" }, { INT32_MAX, 0 }, "no id is left" } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        st_label_ontology o = { 0 };
        st_label_class *retired;
        size_t n;
        st_error err = { ST_OK, "" };
        for (size_t k = 0; k < 2; k++) {
            add(&o, cases[i].name[k]);
            o.classes[k].id = cases[i].id[k];
        }
        assert_int_not_equal(st_label_ontology_number(&o, &retired, &n, &job, &err), ST_OK);
        if (!strstr(err.message, cases[i].said)) fail_msg("%s", err.message);
        assert_null(retired);
        st_label_ontology_free(&o);
    }
}

/* ---- doubts ---- */

static void test_lint__each_doubt(void **state)
{
    (void)state;
    static const struct {
        const char *phrase;
        uint32_t doubts;
    } cases[] = {
        { "car", 0 },
        { "person in hi-vis vest", 0 },
        { "black and white cat", 0 },
        { "glass of water", 0 },
        { "school bus", 0 },
        { "safety glasses", 0 },
        { "worker's helmet", 0 },
        { "traffic light", 0 },
        { "label printer", 0 },
        { "3/4 inch bolt", 0 },
        { "orchid", 0 },
        { "android phone", 0 },
        { "car or truck", ST_LABEL_LINT_TWO },
        { "Car AND truck", ST_LABEL_LINT_TWO },
        { "cat, dog", ST_LABEL_LINT_TWO },
        { "cat/dog", ST_LABEL_LINT_TWO },
        { "cat & dog", ST_LABEL_LINT_TWO },
        { "forklifts", ST_LABEL_LINT_PLURAL },
        { "people", ST_LABEL_LINT_PLURAL },
        { "men in suits", ST_LABEL_LINT_PLURAL },
        { "man in trousers", 0 },
        { "find the car", ST_LABEL_LINT_INSTRUCTION },
        { "show me a car", ST_LABEL_LINT_INSTRUCTION },
        { "all cars", ST_LABEL_LINT_INSTRUCTION | ST_LABEL_LINT_PLURAL },
        { "person without helmet", ST_LABEL_LINT_NEGATION },
        { "a b c d e f g h i j k l m n o p q r t u v w x y z a b c d e f g h", ST_LABEL_LINT_LONG },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t got = st_label_lint(cases[i].phrase);
        if (got != cases[i].doubts) fail_msg("\"%s\": expected %u, got %u", cases[i].phrase, cases[i].doubts, got);
    }
    for (uint32_t bit = 1; bit <= ST_LABEL_LINT_NEGATION; bit <<= 1) assert_non_null(st_label_lint_reason(bit));
    assert_null(st_label_lint_reason(0));
    assert_null(st_label_lint_reason(32));
}

static void test_lint__odd_texts(void **state)
{
    (void)state;
    char *text = malloc(10001);
    memset(text, 'x', 10000);
    text[10000] = '\0';
    assert_int_equal(st_label_lint(text) & ~ST_LABEL_LINT_LONG, 0);
    for (size_t i = 1; i < 10000; i += 2) text[i] = ' ';
    assert_int_equal(st_label_lint(text), ST_LABEL_LINT_LONG);
    memset(text, ',', 10000);
    (void)st_label_lint(text);
    memset(text, '.', 10000);
    (void)st_label_lint(text);
    free(text);
    assert_int_equal(st_label_lint(""), 0);
    assert_int_equal(st_label_lint(" ,/& "), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words__names_and_phrases), cmocka_unit_test(test_settings__of_all_and_of_one),
        cmocka_unit_test(test_file__everything),         cmocka_unit_test(test_file__what_is_refused),
        cmocka_unit_test(test_ids__stay_with_names),     cmocka_unit_test(test_ids__given_ones_must_agree),
        cmocka_unit_test(test_lint__each_doubt),         cmocka_unit_test(test_lint__odd_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
