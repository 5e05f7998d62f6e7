/* Tests what Tab offers at the prompt. */
#include "base/alloc.h"
#include "shell/repl/repl.h"

#include <check.h>
#include <string.h>

static struct shell sh;
static struct repl repl;

static void begin(void)
{
    struct tp_result *r;
    ck_assert_int_eq(tp_open(&sh.tp, NULL), 0);
    ck_assert_int_eq(tp_finish(sh.tp), 0);
    ck_assert_int_eq(tp_query(sh.tp, "CREATE TABLE zebra (stripes INT, stride INT, legs INT)", &r), 0);
    while (tp_step(r) == 1)
        ;
    tp_result_close(r);
    repl = (struct repl){.sh = &sh};
}

static void end(void)
{
    vec_free(&repl.statement);
    tp_close(sh.tp);
}

/* The text before the cursor, where its last word begins, and what is offered (all of it, or with a '+' at the end what
 * must be among it; '-' what must not be). */
static const struct {
    const char *statement, *before, *after;
    size_t at;
    const char *offers;
} rows[] = {
    {"", "SELE", "", 0, "SELECT"},
    {"", "sele", "", 0, "SELECT"},
    {"", "SELECT * FROM zeb", "", 14, "zebra"},
    {"", "SELECT st", "", 7, "-stripes -legs"},
    {"", "SELECT st", " FROM zebra", 7, "+stripes +stride -legs"}, /* … or behind the cursor */
    {"", "SELECT stack_prof", "", 7, "+stack_profile_callsite"},
    {"", "SELECT subst", "", 7, "+substr("},
    {"", "INCLUDE PERFETTO MODULE slices.wi", "", 24, "slices.with_context"},
    {"", ".mode js", "", 6, "json jsonl"},
    {"", "SELECT legs FROM zebra WHERE stri", "", 29,
     "+stride +stripes -legs"}, /* columns of tables that stand before it */
    {"", "SELECT legs FROM zebra z WHERE z.stri", "", 33, "stride stripes"},
    {"", "SELECT zebra.l", "", 13, "legs"},                                 /* no keyword, no table behind a dot */
    {"SELECT legs\nFROM zebra\n", "WHERE stri", "", 6, "+stride +stripes"}, /* … in lines before */
    {"", ".qui", "", 0, ".quit"},
    {"", "  .qui", "", 2, ".quit"},
    {"SELECT 1\n", ".qui", "", 1, ""}, /* within a statement a line is no command */
    {"", "SELECT x.qui", "", 9, ""},
    {"", "xyzzy", "", 0, ""},
    {"", "SELECT 'zebra' || sli", "", 18, "+slice"},
};

static bool offered(const struct candidates *c, const char *word, size_t len)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcspn(c->p[i], CANDIDATE_NOTE) == len && memcmp(c->p[i], word, len) == 0)
            return true;
    return false;
}

static void check_offers(const struct candidates *c, const char *offers, const char *before)
{
    size_t words = 0, found = 0;
    bool exact = true;
    for (const char *p = offers; *p;) {
        size_t len = strcspn(p, " ");
        bool must = *p != '-';
        exact &= *p != '+' && *p != '-';
        size_t sign = *p == '+' || *p == '-';
        bool is = offered(c, p + sign, len - sign);
        ck_assert_msg(is == must, "'%s': %.*s is %soffered", before, (int)len, p, is ? "" : "not ");
        words++;
        found += is;
        p += len;
        p += *p == ' ';
    }
    if (exact)
        ck_assert_msg(c->n == words && found == words, "'%s': %zu offers, among them %s", before, c->n,
                      c->n ? c->p[0] : "none");
}

START_TEST(words)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct candidates c = {0};
        size_t at = 999;
        vec_clear(&repl.statement);
        for (const char *p = rows[i].statement; *p; p++)
            ck_assert(vec_push(&repl.statement, *p));
        complete_word(&repl, rows[i].before, rows[i].after, strlen(rows[i].after), &at, &c);
        ck_assert_msg(at == rows[i].at, "'%s': %zu", rows[i].before, at);
        check_offers(&c, rows[i].offers, rows[i].before);
        candidates_free(&c);
        ck_assert_uint_eq(c.n, 0);
    }
}
END_TEST

/* Sorted, each once, although a table and its column may have one name. */
START_TEST(a_sorted_list)
{
    struct candidates c = {0};
    size_t at;
    const char *line = "SELECT stripes, legs FROM zebra, zebra AS z WHERE ";
    complete_word(&repl, line, "", 0, &at, &c);
    ck_assert_uint_eq(at, strlen(line));
    ck_assert(offered(&c, "stripes", 7));
    ck_assert_uint_gt(c.n, 50);
    for (size_t i = 1; i < c.n; i++)
        ck_assert_msg(strcmp(c.p[i - 1], c.p[i]) < 0, "%s, %s", c.p[i - 1], c.p[i]);
    ck_assert(!offered(&c, "SELECT", 6)); /* keywords only once a letter is there */
    candidates_free(&c);
}
END_TEST

/* Words that cannot be names, or are too long for one, and quotes: nothing breaks. */
START_TEST(odd_lines)
{
    static const char *const lines[] = {"",    " ",      ".",       "..", "'", "zebra'); DROP TABLE zebra; --",
                                        "123", "a.b.c.", ".load x'"};
    static char longest[5000];
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i <= sizeof lines / sizeof *lines; i++) {
        struct candidates c = {0};
        size_t at = 999999;
        const char *line = i < sizeof lines / sizeof *lines ? lines[i] : longest;
        complete_word(&repl, line, "", 0, &at, &c);
        ck_assert_uint_le(at, strlen(line));
        candidates_free(&c);
    }
    struct candidates c = {0};
    size_t at;
    complete_word(&repl, "zeb", "", 0, &at, &c); /* it is still there */
    ck_assert_uint_eq(c.n, 1);
    candidates_free(&c);
}
END_TEST

/* Every dot command is offered behind a dot. */
START_TEST(dot_commands)
{
    struct candidates c = {0};
    size_t at, n = 0;
    complete_word(&repl, ".", "", 0, &at, &c);
    for (const char *name; (name = repl_meta_name(n)) != NULL; n++)
        ck_assert_msg(offered(&c, name, strlen(name)), "%s", name);
    ck_assert_uint_eq(c.n, n);
    ck_assert_uint_gt(n, 5);
    candidates_free(&c);
}
END_TEST

Suite *complete_suite(void);

Suite *complete_suite(void)
{
    Suite *s = suite_create("complete");
    TCase *t = tcase_create("core");
    tcase_add_checked_fixture(t, begin, end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, words);
    tcase_add_test(t, a_sorted_list);
    tcase_add_test(t, odd_lines);
    tcase_add_test(t, dot_commands);
    suite_add_tcase(s, t);
    return s;
}
