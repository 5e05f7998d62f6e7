/* Tests regular expressions: a table of patterns, texts and what matches. */
#include "sql/functions/regex.h"

#include "base/alloc.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NONE = -1 };

static const struct {
    const char *pattern, *text;
    int start, end;   /* NONE: no match */
    int start1, end1; /* the first group */
} cases[] = {
    {"", "abc", 0, 0, NONE, NONE},
    {"b", "abc", 1, 2, NONE, NONE},
    {"^b", "abc", NONE, NONE, NONE, NONE},
    {"c$", "abc", 2, 3, NONE, NONE},
    {"a.c", "xabc", 1, 4, NONE, NONE},
    {"a.c", "a\nc", NONE, NONE, NONE, NONE},
    {"a|bc|d", "xbcd", 1, 3, NONE, NONE},
    {"ab|a|abc", "abc", 0, 2, NONE, NONE}, /* the first alternative counts, not the longest */
    {"(a|ab)(c|bcd)", "abcd", 0, 4, 0, 1},
    {"x||y", "zy", 0, 0, NONE, NONE},
    {"|y", "y", 0, 0, NONE, NONE},
    {"a*", "baaa", 0, 0, NONE, NONE},
    {"a+", "baaab", 1, 4, NONE, NONE},
    {"a+?", "aaa", 0, 1, NONE, NONE},
    {"a*?b", "aaab", 0, 4, NONE, NONE},
    {"ab?c", "ac", 0, 2, NONE, NONE},
    {"a{2,3}", "aaaa", 0, 3, NONE, NONE},
    {"a{2,3}?", "aaaa", 0, 2, NONE, NONE},
    {"a{2}", "a", NONE, NONE, NONE, NONE},
    {"a{2,}", "xaaaa", 1, 5, NONE, NONE},
    {"a{,2}", "a{,2}", 0, 5, NONE, NONE}, /* no count: as it is written */
    {"a{0}b", "ab", 1, 2, NONE, NONE},
    {"(ab)*c", "ababc", 0, 5, 2, 4},
    {"(?:ab)+", "xabab", 1, 5, NONE, NONE},
    {"(a)|b", "b", 0, 1, NONE, NONE},
    {"((a*)b)*", "aabab", 0, 5, 3, 5},
    {"[abc]+", "xxbca", 2, 5, NONE, NONE},
    {"[^abc]+", "abxyc", 2, 4, NONE, NONE},
    {"[a-c0-2]+", "zb1d", 1, 3, NONE, NONE},
    {"[]a]+", "x]a", 1, 3, NONE, NONE},
    {"[a-]+", "b-a", 1, 3, NONE, NONE},
    {"[[:digit:]x]+", "ab12x", 2, 5, NONE, NONE},
    {"[\\d\\s]+", "a1 2b", 1, 4, NONE, NONE},
    {"\\w+", "-ab_1-", 1, 5, NONE, NONE},
    {"\\W", "ab c", 2, 3, NONE, NONE},
    {"\\D\\S", "1ab", 1, 3, NONE, NONE},
    {"\\bcat\\b", "concat cat", 7, 10, NONE, NONE},
    {"\\Bcat", "concat", 3, 6, NONE, NONE},
    {"\\x41\\t\\.", "A\t.", 0, 3, NONE, NONE},
    {"(?i)aBc", "xAbC", 1, 4, NONE, NONE},
    {"a\\.b", "axb", NONE, NONE, NONE, NONE},
    {"\xc3\xa9", "caf\xc3\xa9", 3, 5, NONE, NONE},
    {"(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", NONE, NONE, NONE, NONE},
};

START_TEST(patterns_match)
{
    struct regex *r;
    struct regex_match m;
    struct error err = {0};
    const char *pattern = cases[_i].pattern;
    ck_assert_msg(regex_compile(&r, slice_str(pattern), false, &err) == 0, "%s: %s", pattern, err.text);
    int found = regex_search(r, slice_str(cases[_i].text), 0, &m);
    ck_assert_msg(found == (cases[_i].start != NONE), "%s in %s", pattern, cases[_i].text);
    if (found) {
        ck_assert_int_eq(m.group[0].start, cases[_i].start);
        ck_assert_int_eq(m.group[0].end, cases[_i].end);
        if (regex_groups(r)) {
            ck_assert_int_eq(m.group[1].start, cases[_i].start1);
            ck_assert_int_eq(m.group[1].end, cases[_i].end1);
        }
    }
    regex_free(r);
}
END_TEST

static const struct {
    const char *pattern, *why;
} refused[] = {
    {"(", "missing )"},           {"a)", "unmatched )"},     {"[a", "missing ]"},        {"*a", "nothing to repeat"},
    {"a|+", "nothing to repeat"}, {"[z-a]", "out of order"}, {"a{3,2}", "bad count"},    {"a{1001}", "bad count"},
    {"\\q", "unknown escape"},    {"a\\", "\\ at the end"},  {"(?=a)", "not supported"}, {"(?<n>a)", "not supported"},
};

START_TEST(patterns_are_refused)
{
    struct regex *r = NULL;
    struct error err = {0};
    ck_assert_int_eq(regex_compile(&r, slice_str(refused[_i].pattern), false, &err), -MRD_EINVALID);
    ck_assert_msg(strstr(err.text, refused[_i].why) != NULL, "%s: %s", refused[_i].pattern, err.text);
}
END_TEST

START_TEST(searches_begin_where_they_are_told)
{
    struct regex *r;
    struct regex_match m;
    struct slice text = slice_str("abcabc");
    ck_assert_int_eq(regex_compile(&r, slice_str("B"), true, NULL), 0);
    ck_assert_int_eq(regex_search(r, text, 2, &m), 1);
    ck_assert_int_eq(m.group[0].start, 4);
    ck_assert_int_eq(regex_search(r, text, 5, &m), 0);
    ck_assert_int_eq(regex_search(r, text, 6, &m), 0);
    regex_free(r);
    ck_assert_int_eq(regex_compile(&r, slice_str("^c"), false, NULL), 0);
    ck_assert_int_eq(regex_search(r, text, 2, &m), 0); /* ^ is the beginning of the text */
    regex_free(r);
}
END_TEST

/* Long and deep patterns are refused, or compiled without recursion. */
START_TEST(large_patterns_do_no_harm)
{
    static const struct {
        const char *part;
        size_t times;
        int rc;
    } shapes[] = {{"a", 900000, -MRD_EINVALID},    {"a", 20000, 0},
                  {"a|", 900000, -MRD_EINVALID},   {"a|", 10000, 0},
                  {"a*", 900000, -MRD_EINVALID},   {"*", 100000, -MRD_EINVALID},
                  {"(", 900000, -MRD_EINVALID},    {"(?:", 150, -MRD_EINVALID},
                  {"[ab]", 900000, -MRD_EINVALID}, {"a{999}", 900, -MRD_EINVALID}};
    char *text = malloc(4u << 20);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct regex *r = NULL;
        struct error err = {0};
        size_t n = 0, len = strlen(shapes[i].part);
        text[n++] = 'a';
        for (size_t k = 0; k < shapes[i].times; k++, n += len)
            memcpy(text + n, shapes[i].part, len);
        int rc = regex_compile(&r, slice_of(text, n), false, &err);
        ck_assert_msg(rc == shapes[i].rc, "%zu times %s: %d %s", shapes[i].times, shapes[i].part, rc, err.text);
        struct regex_match m;
        if (rc == 0) {
            ck_assert_int_eq(regex_search(r, slice_of(text, shapes[i].part[1] ? 1 : n), 0, &m), 1);
            regex_free(r);
        }
    }
    free(text);
}
END_TEST

/* A match costs what it looks at, not the length of the text; what costs more ends when it is told to. */
START_TEST(long_texts_are_searched_bit_by_bit)
{
    enum { LONG = 1 << 20 };
    struct regex *r;
    struct regex_match m;
    char *text = malloc(LONG);
    memset(text, 'a', LONG);
    struct slice t = slice_of(text, LONG);
    ck_assert_int_eq(regex_compile(&r, slice_str("a"), false, NULL), 0);
    clock_t before = clock();
    for (size_t at = 0; at < LONG; at++) {
        ck_assert_int_eq(regex_search(r, t, at, &m), 1);
        ck_assert_int_eq(m.group[0].start, (int64_t)at);
    }
    ck_assert_int_lt((clock() - before) / CLOCKS_PER_SEC, 10);
    regex_free(r);
    stop_flag stop = true;
    ck_assert_int_eq(regex_compile(&r, slice_str("a+b|a"), false, NULL), 0);
    ck_assert_int_eq(regex_search(r, t, 0, &m), 1);
    regex_set_stop(r, &stop);
    ck_assert_int_eq(regex_search(r, t, 0, &m), -MRD_ECANCELLED);
    regex_set_stop(r, NULL);
    ck_assert_int_eq(regex_search(r, t, LONG - 3, &m), 1); /* nothing is left of the one that was stopped */
    ck_assert_int_eq(m.group[0].start, LONG - 3);
    regex_free(r);
    free(text);
}
END_TEST

static size_t allowed;

static bool gate(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return allowed && allowed--;
}

START_TEST(failing_allocations_are_told)
{
    int rc = -1;
    for (size_t k = 0; rc && k < 200; k++) {
        struct regex *r = NULL;
        struct regex_match m;
        allowed = k;
        alloc_set_gate(gate, NULL);
        rc = regex_compile(&r, slice_str("(a|b)*[c-e]{2,5}|f+?"), false, NULL);
        if (rc == 0) {
            rc = regex_search(r, slice_str("xxabacde"), 0, &m) == 1 ? 0 : -MRD_ENOMEM;
            regex_free(r);
        }
        alloc_set_gate(NULL, NULL);
        ck_assert(rc == 0 || rc == -MRD_ENOMEM);
    }
    ck_assert_int_eq(rc, 0);
}
END_TEST

Suite *regex_suite(void);
Suite *regex_suite(void)
{
    Suite *s = suite_create("regex");
    TCase *t = tcase_create("regex");
    tcase_add_loop_test(t, patterns_match, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(t, patterns_are_refused, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(t, searches_begin_where_they_are_told);
    tcase_add_test(t, large_patterns_do_no_harm);
    tcase_add_test(t, long_texts_are_searched_bit_by_bit);
    tcase_add_test(t, failing_allocations_are_told);
    suite_add_tcase(s, t);
    return s;
}
