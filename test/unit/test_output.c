/* Tests results as text: CSV, tables, JSON, and what stands between two of them. */
#include "shell/output.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct tp *tp;
static struct text_out out;
static struct output o;

static void begin(void)
{
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_int_eq(tp_finish(tp), 0);
    out_init(&out, memfd_create("output", MFD_CLOEXEC));
    ck_assert_int_ge(out.fd, 0);
    o = (struct output){.out = &out};
}

static void end(void)
{
    close(out.fd);
    tp_close(tp);
}

static int64_t show(const char *sql)
{
    struct tp_result *r;
    ck_assert_msg(tp_query(tp, sql, &r) == 0, "%s: %s", sql, tp_error(tp));
    int64_t rows = output_result(&o, r);
    tp_result_close(r);
    return rows;
}

/* All that was written since the last call; valid until the next one. */
static const char *written(void)
{
    static char text[1 << 16];
    struct error err = {0};
    ck_assert_int_eq(out_flush(&out, &err), 0);
    ssize_t n = pread(out.fd, text, sizeof text - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = 0;
    ck_assert_uint_eq(strlen(text), (size_t)n);
    ck_assert_int_eq(ftruncate(out.fd, 0), 0);
    lseek(out.fd, 0, SEEK_SET);
    return text;
}

static const struct {
    enum output_format format;
    const char *sql;
    int64_t rows;
    const char *text;
} shown[] = {
    /* CSV as scripts for Perfetto's shell read it: quotes are not doubled, doubles have six places */
    {OUTPUT_CLASSIC, "SELECT 1 AS a, -5 AS b, 2.5 AS c, NULL AS d", 1,
     "\"a\",\"b\",\"c\",\"d\"\n1,-5,2.500000,\"[NULL]\"\n"},
    {OUTPUT_CLASSIC, "SELECT 'x,y' AS \"n m\", 'say \"hi\"' AS q, x'00ff' AS raw", 1,
     "\"n m\",\"q\",\"raw\"\n\"x,y\",\"say \"hi\"\",\"<raw bytes>\"\n"},
    {OUTPUT_CLASSIC, "SELECT 'a' || char(0) || 'b' AS t", 1, "\"t\"\n\"a\"\n"},
    {OUTPUT_CLASSIC, "SELECT 1 AS a WHERE 0", 0, "\"a\"\n"},
    {OUTPUT_CLASSIC, "SELECT 9223372036854775807 AS a, -9223372036854775807 - 1 AS b", 1,
     "\"a\",\"b\"\n9223372036854775807,-9223372036854775808\n"},
    /* CSV of RFC 4180: quoted only where it must be; nothing at all is NULL */
    {OUTPUT_CSV, "SELECT 1 AS a, 0.1 AS b, NULL AS c, '' AS d, x'00ff' AS e", 1, "a,b,c,d,e\n1,0.1,,\"\",00ff\n"},
    {OUTPUT_CSV, "SELECT 'x,y' AS \"n,m\", 'say \"hi\"' AS q, 'two' || char(10) || 'lines' AS l, ' b' AS s", 1,
     "\"n,m\",q,l,s\n\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\",\" b\"\n"},
    {OUTPUT_CSV, "SELECT 1e300 * 1e300 AS a, -1e300 * 1e300 AS b", 1, "a,b\nInf,-Inf\n"},
    {OUTPUT_CSV, "SELECT 1 AS a WHERE 0", 0, "a\n"},
    /* JSON: the shortest digits that read back, no word for infinity, keys that differ, bytes in hex */
    {OUTPUT_JSON, "SELECT 1 AS a, 'x' AS b UNION ALL SELECT NULL, 'say \"hi\"' || char(10)", 2,
     "[\n {\"a\": 1, \"b\": \"x\"},\n {\"a\": null, \"b\": \"say \\\"hi\\\"\\n\"}\n]\n"},
    {OUTPUT_JSON, "SELECT 0.1 AS a, 1e300 * 1e300 AS b, 0.1 + 0.2 AS c", 1,
     "[\n {\"a\": 0.1, \"b\": null, \"c\": 0.30000000000000004}\n]\n"},
    {OUTPUT_JSON, "SELECT 1 AS a, 2 AS a, 3 AS a", 1, "[\n {\"a\": 1, \"a_2\": 2, \"a_3\": 3}\n]\n"},
    {OUTPUT_JSON, "SELECT x'00ff10' AS raw", 1, "[\n {\"raw\": \"00ff10\"}\n]\n"},
    {OUTPUT_JSON, "SELECT 1 AS a WHERE 0", 0, "[]\n"},
    {OUTPUT_JSONL, "SELECT 1 AS a UNION ALL SELECT 2", 2, "{\"a\": 1}\n{\"a\": 2}\n"},
    {OUTPUT_JSONL, "SELECT 1 AS a WHERE 0", 0, ""},
    {OUTPUT_JSONL, "SELECT CAST(x'61ff62' AS TEXT) AS a", 1, "{\"a\": \"a\\ufffdb\"}\n"},
    /* tables: numbers to the right, text to the left, on one line, nothing that a terminal would obey */
    {OUTPUT_TABLE, "SELECT 1 AS n, 'x' AS name UNION ALL SELECT 12345, 'longer'", 2,
     "n     name   \n----- ------ \n    1 x      \n12345 longer \n"},
    {OUTPUT_TABLE, "SELECT 1.5 AS d UNION ALL SELECT NULL", 2, "d        \n-------- \n1.500000 \n[NULL]   \n"},
    {OUTPUT_TABLE, "SELECT 'a' || char(10, 27) || 'b' AS t", 1, "t    \n---- \na  b \n"},
    {OUTPUT_TABLE, "SELECT CAST(x'61ff62' AS TEXT) AS t, char(0x9b) AS c", 1, "t    c    \n---- ---- \na?b       \n"},
    {OUTPUT_TABLE, "SELECT '\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f!' AS t", 1,
     "t     \n----- \n\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f! \n"},
    {OUTPUT_TABLE, "SELECT x'00' AS raw WHERE 0", 0, ""},
    {OUTPUT_TABLE, "SELECT 1 AS \"a\x1b[2Jb\xff\"", 1, "a [2Jb? \n------- \n      1 \n"},
    {OUTPUT_BOX, "SELECT 1 AS n, 'x' AS name", 1,
     "┌──────┬──────┐\n│ n    │ name │\n├──────┼──────┤\n│    1 │ x    │\n└──────┴──────┘\n"},
    {OUTPUT_MARKDOWN, "SELECT 1 AS n, 'a|b' AS name", 1, "| n    | name |\n| ---- | ---- |\n|    1 | a\\|b |\n"},
    {OUTPUT_LINE, "SELECT 1 AS n, 'x' || char(27) AS name UNION ALL SELECT 2, NULL", 2,
     "   n = 1\nname = x \n\n   n = 2\nname = [NULL]\n"},
    {OUTPUT_LINE, "SELECT 1 AS \"a\x1b[2Jb\"", 1, "a [2Jb = 1\n"},
    /* nothing to show */
    {OUTPUT_CSV, "SELECT 1 AS suppress_query_output", 0, ""},
    {OUTPUT_JSON, "SELECT 1 AS suppress_query_output", 0, ""},
    {OUTPUT_CSV, "CREATE TABLE made (a)", 0, ""},
};

START_TEST(results_as_text)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        o = (struct output){.out = &out, .format = shown[i].format};
        int64_t rows = show(shown[i].sql);
        ck_assert_msg(rows == shown[i].rows, "%s: %lld rows", shown[i].sql, (long long)rows);
        const char *text = written();
        ck_assert_msg(strcmp(text, shown[i].text) == 0, "%s:\n%s\nnot\n%s", shown[i].sql, text, shown[i].text);
    }
}
END_TEST

/* Where one result ends and the next begins. */
START_TEST(results_behind_each_other)
{
    static const char *const texts[OUTPUT_FORMATS] = {
        [OUTPUT_CLASSIC] = "\"a\"\n1\n\n\"b\"\n2\n",
        [OUTPUT_CSV] = "a\n1\n\nb\n2\n",
        [OUTPUT_TABLE] = "a    \n---- \n   1 \n\nb    \n---- \n   2 \n",
        [OUTPUT_BOX] = "┌──────┐\n│ a    │\n├──────┤\n│    1 │\n└──────┘\n\n"
                       "┌──────┐\n│ b    │\n├──────┤\n│    2 │\n└──────┘\n",
        [OUTPUT_MARKDOWN] = "| a    |\n| ---- |\n|    1 |\n\n| b    |\n| ---- |\n|    2 |\n",
        [OUTPUT_LINE] = "a = 1\n\nb = 2\n",
        [OUTPUT_JSON] = "[\n {\"a\": 1}\n]\n[\n {\"b\": 2}\n]\n",
        [OUTPUT_JSONL] = "{\"a\": 1}\n{\"b\": 2}\n",
    };
    for (int f = 0; f < OUTPUT_FORMATS; f++) {
        o = (struct output){.out = &out, .format = (enum output_format)f};
        show("SELECT 1 AS a");
        show("CREATE TEMP TABLE IF NOT EXISTS t (a)"); /* is none */
        show("SELECT 2 AS b");
        ck_assert_str_eq(written(), texts[f]);
    }
}
END_TEST

#define MANY "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70) SELECT i FROM n"

static unsigned lines(const char *text, const char *line)
{
    unsigned n = 0;
    for (const char *p = text; (p = strstr(p, line)) != NULL; p += strlen(line))
        n++;
    return n;
}

/* At the prompt, where the width is given, each page of 32 rows has its head; elsewhere there is one. */
START_TEST(pages)
{
    o = (struct output){.out = &out, .format = OUTPUT_TABLE};
    ck_assert_int_eq(show(MANY), 70);
    const char *text = written();
    ck_assert_uint_eq(lines(text, "----"), 1);
    ck_assert_uint_eq(lines(text, "\n"), 72);
    o = (struct output){.out = &out, .format = OUTPUT_TABLE, .width = 6};
    ck_assert_int_eq(show(MANY), 70);
    text = written();
    ck_assert_uint_eq(lines(text, "i      \n------ \n"), 3);
    ck_assert_uint_eq(lines(text, "\n"), 76);
}
END_TEST

static unsigned asked;

static bool more_once(void *ctx)
{
    ck_assert_ptr_eq(ctx, &asked);
    return ++asked < 2;
}

START_TEST(who_has_seen_enough)
{
    o = (struct output){.out = &out, .format = OUTPUT_TABLE, .width = 6, .more = more_once, .more_ctx = &asked};
    ck_assert_int_eq(show(MANY), 64);
    ck_assert_uint_eq(asked, 2);
    ck_assert_uint_eq(lines(written(), "\n"), 64 + 4);
    asked = 0;
    ck_assert_int_eq(show("SELECT 1"), 1); /* one page: nothing to ask */
    ck_assert_uint_eq(asked, 0);
}
END_TEST

/* What is too wide is cut, and shows it where nobody has set the width. */
START_TEST(wide_cells)
{
    char wide[128], sql[512];
    memset(wide, 'w', 100);
    wide[100] = 0;
    snprintf(sql, sizeof sql, "SELECT '%s' AS t, 1 AS n", wide);
    o = (struct output){.out = &out, .format = OUTPUT_TABLE};
    show(sql);
    const char *text = written();
    ck_assert_uint_eq(lines(text, "w"), 59);
    ck_assert_ptr_nonnull(strstr(text, "w\xe2\x80\xa6    1 \n"));
    o = (struct output){.out = &out, .format = OUTPUT_TABLE, .width = 5};
    show("SELECT 1234567 AS n, 'abcdefg' AS t");
    ck_assert_str_eq(written(), "n     t     \n----- ----- \n1234567 abcde \n"); /* never another number */
    /* on a screen the widest give way; where none could be read, a column is a line */
    o = (struct output){.out = &out, .format = OUTPUT_TABLE, .screen = 30};
    show(sql);
    text = written();
    ck_assert_uint_eq(lines(text, "w"), 30 - 4 - 1 - 1 - 1);
    o = (struct output){.out = &out, .format = OUTPUT_TABLE, .screen = 10};
    show("SELECT 1 AS a, 2 AS b, 3 AS c");
    ck_assert_str_eq(written(), "a = 1\nb = 2\nc = 3\n");
}
END_TEST

/* What came before a failure is out, and the code says that more was to come. */
START_TEST(a_query_that_fails)
{
    for (int f = 0; f < OUTPUT_FORMATS; f++) {
        o = (struct output){.out = &out, .format = (enum output_format)f};
        int64_t rc = show("SELECT i, abs(CASE WHEN i = 40 THEN -9223372036854775808 ELSE i END) AS x FROM (" MANY ")");
        ck_assert_int_lt(rc, 0);
        const char *text = written();
        ck_assert_msg(strstr(text, "39") != NULL, "%s", output_format_names[f]);
        ck_assert_msg(!strstr(text, "41"), "%s", output_format_names[f]);
    }
}
END_TEST

START_TEST(formats_have_names)
{
    for (int f = 0; f < OUTPUT_FORMATS; f++)
        ck_assert_int_eq(output_format_find(output_format_names[f]), f);
    ck_assert_int_eq(output_format_find("CSV"), -1);
    ck_assert_int_eq(output_format_find(""), -1);
}
END_TEST

Suite *output_suite(void);

Suite *output_suite(void)
{
    Suite *s = suite_create("output");
    TCase *t = tcase_create("core");
    tcase_add_checked_fixture(t, begin, end);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, results_as_text);
    tcase_add_test(t, results_behind_each_other);
    tcase_add_test(t, pages);
    tcase_add_test(t, who_has_seen_enough);
    tcase_add_test(t, wide_cells);
    tcase_add_test(t, a_query_that_fails);
    tcase_add_test(t, formats_have_names);
    suite_add_tcase(s, t);
    return s;
}
