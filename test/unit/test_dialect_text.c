/* Tests what the PerfettoSQL front end does on text alone: tokens, statements, macros, tracebacks. */
#include "memory_gate.h"
#include "sql/dialect/macro.h"
#include "sql/dialect/parse.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *text;
    const char *kinds; /* a letter a token, blanks left out */
} token_cases[] = {
    {"select a from b;", "wwww;"},
    {"'it''s' \"a\"\"b\" `c` [d e]", "sqqq"},
    {"'open", "!"},
    {"\"open", "!"},
    {"x'ab' x'a' X''", "n!n"},
    {"1 1.5 .5 1e3 1e+3 0x1F 12ab 1e", "nnnnnn!!"},
    {"1_000 1_0.2_5e1_0 0xf_f 1__0 1_ 1_a 0x_f", "nnn!!!!"},
    {"$a :b @c ?1 ? #d $a::b", "vvvvvvv"},
    {"$", "!"},
    {"$a(1)", "v(n)"},
    {"-- to the end\na", "w"},
    {"/* open", ""},
    {"/* in */ a /", "wo"},
    {"a->>b->c||d<<e>=f<>g!=h==i", "wowowowowowowowow"},
    {"m!(x, *)", "w'(w,*)"},
    {"a.b", "w.w"},
    {"\xc3\xa9t\xc3\xa9$1", "w"},
    {"\x01", "!"},
    {"", ""},
};

START_TEST(tokens_follow_sqlite)
{
    static const char letters[] = " __wqsnv(),;.*'o!";
    const char *text = token_cases[_i].text;
    char got[64];
    size_t n = 0, at = 0, len = strlen(text);
    while (at < len) {
        enum token_kind kind;
        size_t k = token_next(text + at, len - at, &kind);
        ck_assert_uint_gt(k, 0);
        ck_assert_uint_le(at + k, len);
        if (!token_is_blank(kind))
            got[n++] = letters[kind];
        at += k;
    }
    got[n] = 0;
    ck_assert_str_eq(got, token_cases[_i].kinds);
}
END_TEST

static const struct {
    const char *text;
    size_t first;
} statement_cases[] = {
    {"select 1; select 2", 9},
    {"select ';'; x", 11},
    {"select 1", 8},
    {"-- a;b\n;", 8},
    {"create trigger t begin select 1; end; select 2", 37},
    {"create temp trigger t begin select case when 1 then 2 end; end; x", 63},
    {"create table trigger(a); x", 24},
};

START_TEST(statements_end_where_they_should)
{
    struct sql_frame frame = {.source = sql_source_new(SOURCE_FILE, "test", slice_str(statement_cases[_i].text))};
    struct sql_tokens tokens = {0};
    size_t end = 0;
    ck_assert_ptr_nonnull(frame.source);
    ck_assert(statement_scan(&tokens, &frame, 0, &end));
    ck_assert_uint_eq(end, statement_cases[_i].first);
    sql_tokens_free(&tokens);
    sql_source_unref(frame.source);
}
END_TEST

/* A front end without SQLite: macros, frames, arena. */
struct fixture {
    struct macro_table macros;
    struct arena arena;
    struct sql_frame frame;
    struct sql_tokens in, out;
    struct macro_problem problem;
};

static int expand(struct fixture *f, const char *text)
{
    f->frame.source = sql_source_new(SOURCE_FILE, "stdin", slice_str(text));
    ck_assert(sql_tokens_scan(&f->in, &f->frame));
    return macro_expand(&f->macros, &f->arena, f->in.p, f->in.n, &f->out, &f->problem);
}

static void define(struct fixture *f, const char *name, const char *params, const char *body)
{
    struct slice p[8] = {0};
    size_t n = 0;
    while (*params) {
        size_t len = strcspn(params, ",");
        p[n++] = slice_of(params, len);
        params += len + (params[len] == ',');
    }
    ck_assert(macro_define(&f->macros, name, p, n, slice_str(body)));
}

static void done(struct fixture *f)
{
    macro_table_free(&f->macros);
    sql_tokens_free(&f->in);
    sql_tokens_free(&f->out);
    sql_source_unref(f->frame.source);
    arena_free(&f->arena);
}

static const struct {
    const char *text, *expanded;
} macro_cases[] = {
    {"select one!()", "select 1"},
    {"select one ! ( )", "select 1"},
    {"select add!(1, 2)", "select 1 + 2"},
    {"select add!(add!(1,2), f(3, 4))", "select 1 + 2 + f(3, 4)"},
    {"select twice!(x)", "select x + x"},
    {"select ADD!('a,b', [c,d])", "select 'a,b' + [c,d]"},
    {"select a != (b)", "select a != (b)"},
    {"select __intrinsic_stringify!( a.b  )", "select 'a.b'"},
    {"select __intrinsic_stringify!(it's)", NULL},
    {"select __intrinsic_stringify!('a')", "select '''a'''"},
    {"__intrinsic_token_apply!(q, (a, b))", "<a> , <b>"},
    {"__intrinsic_token_apply!(q, ())", ""},
    {"__intrinsic_token_apply_prefix!(q, (a, b))", " , <a> , <b>"},
    {"__intrinsic_token_apply_prefix!(q, ())", ""},
    {"__intrinsic_token_apply!(add, (a, b), (c, d, e))", "a + c , b + d"},
    {"__intrinsic_token_apply_and!(add, (a, b), (c, d))", "a + c AND b + d"},
    {"__intrinsic_token_apply_and_prefix!(add, (a), (c))", " AND a + c"},
    {"via!(add)", "7 + 8"},
    {"select $x", "select $x"},
    {"nothing!(1)", NULL},
    {"add!(1)", NULL},
    {"add!(1,)", NULL},
    {"add!(1, 2", NULL},
    {"add!", NULL},
    {"loop!()", NULL},
    {"bomb!(bomb!(bomb!(x)))", "x x x x x x x x"},
};

START_TEST(macros_expand)
{
    struct fixture f = {0};
    define(&f, "one", "", "1");
    define(&f, "add", "a,b", "$a + $B");
    define(&f, "twice", "a", "add!($a, $a)");
    define(&f, "q", "x", "<$x>");
    define(&f, "via", "m", "$m!(7, 8)");
    define(&f, "loop", "", "loop!()");
    define(&f, "bomb", "x", "$x $x");
    int rc = expand(&f, macro_cases[_i].text);
    if (macro_cases[_i].expanded) {
        size_t len;
        ck_assert_msg(rc == 0, "%s", f.problem.text);
        ck_assert_str_eq(sql_tokens_join(&f.arena, f.out.p, f.out.n, &len), macro_cases[_i].expanded);
    } else {
        ck_assert_int_eq(rc, -MRD_ESQL);
        ck_assert_uint_gt(strlen(f.problem.text), 0);
        ck_assert_ptr_nonnull(f.problem.token.frame);
    }
    done(&f);
}
END_TEST

START_TEST(deep_and_huge_expansions_end)
{
    struct fixture f = {0};
    char name[16], body[64];
    define(&f, "m0", "", "");
    for (int i = 1; i < 60; i++) { /* 2^60 calls that yield nothing */
        snprintf(name, sizeof name, "m%d", i);
        snprintf(body, sizeof body, "m%d!() m%d!()", i - 1, i - 1);
        define(&f, name, "", body);
    }
    ck_assert_int_eq(expand(&f, "m59!()"), -MRD_ESQL);
    done(&f);
    f = (struct fixture){0};
    char *deep = malloc(500001);
    for (int i = 0; i < 100000; i++)
        memcpy(deep + 3 * i, "m!(", 3);
    deep[300000] = 0;
    define(&f, "m", "x", "$x");
    ck_assert_int_eq(expand(&f, deep), -MRD_ESQL);
    done(&f);
    free(deep);
}
END_TEST

START_TEST(a_traceback_leads_through_macros)
{
    struct fixture f = {0};
    struct sql_message m = {0};
    define(&f, "outer", "x", "(SELECT\n  inner!($x))");
    define(&f, "inner", "y", "wrong $y");
    ck_assert_int_eq(expand(&f, "SELECT 1,\n\touter!(b)"), 0);
    size_t len;
    const char *text = sql_tokens_join(&f.arena, f.out.p, f.out.n, &len);
    sql_traceback(&m, f.out.p, f.out.n, strstr(text, "wrong") + 2 - text, "no such column");
    ck_assert_str_eq(m.p, "Fully expanded statement\n"
                          "SELECT 1,\n\t(SELECT\n  wrong b)\n"
                          "Traceback (most recent call last):\n"
                          "  File \"stdin\" line 2 col 2\n    \touter!(b)\n    \t^\n"
                          "  Macro \"outer\" line 2 col 3\n      inner!($x))\n      ^\n"
                          "  Macro \"inner\" line 1 col 3\n    wrong $y\n      ^\n"
                          "no such column");
    m.n = 0; /* an argument is the user's own text */
    sql_traceback(&m, f.out.p, f.out.n, strstr(text, " b)") + 1 - text, "no such column");
    ck_assert_ptr_nonnull(
        strstr(m.p, "  File \"stdin\" line 2 col 9\n    \touter!(b)\n    \t       ^\nno such column"));
    m.n = 0; /* beyond the end: the last that was written */
    sql_traceback(&m, f.out.p, f.out.n, 10000, "incomplete input");
    ck_assert_ptr_nonnull(strstr(m.p, "incomplete input"));
    vec_free(&m);
    done(&f);
}
END_TEST

START_TEST(an_excerpt_of_a_long_line_is_cut)
{
    struct fixture f = {0};
    struct sql_message m = {0};
    char text[1001];
    memset(text, 'x', 1000);
    text[1000] = 0;
    ck_assert_int_eq(expand(&f, text), 0);
    sql_traceback(&m, f.out.p, f.out.n, 500, "bad");
    ck_assert_uint_lt(m.n, 560);
    ck_assert_ptr_nonnull(strstr(m.p, "line 1 col 501\n"));
    vec_free(&m);
    done(&f);
}
END_TEST

/* What a message has is always a text, whichever part found no memory. */
START_TEST(a_message_without_memory_has_an_end)
{
    for (unsigned fail_at = 1; fail_at < 6; fail_at++) {
        struct gate g = {.fail_at = fail_at};
        struct sql_message m = {0};
        alloc_set_gate(gate_open, &g);
        for (int i = 0; i < 20; i++)
            sql_message_add(&m, "%d ", 7 * i);
        alloc_set_gate(NULL, NULL);
        ck_assert(m.failed || fail_at > g.calls);
        ck_assert(m.p ? m.p[m.n] == 0 : m.n == 0);
        vec_free(&m);
    }
}
END_TEST

static const struct {
    const char *text;
    int kind;         /* enum statement_kind, or -1: an error */
    const char *what; /* the body, or what the error speaks of */
} parse_cases[] = {
    {"  -- nothing\n", STATEMENT_BLANK, ""},
    {"select 1", STATEMENT_SQLITE, "select 1"},
    {"create perfetto table t as select 1", STATEMENT_TABLE, "select 1"},
    {"CREATE OR REPLACE PERFETTO TABLE t(a JOINID(thread.id), b LONG) AS SELECT 1", STATEMENT_TABLE, "SELECT 1"},
    {"create perfetto table t using DataFrame as select 1", STATEMENT_TABLE, "select 1"},
    {"create perfetto view v as select 1", STATEMENT_VIEW, "select 1"},
    {"create perfetto function f() returns int as select 1", STATEMENT_FUNCTION, "select 1"},
    {"create perfetto function f(a long, b string) returns table(x long) as select 1", STATEMENT_FUNCTION, "select 1"},
    {"create perfetto function f(a any...) returns long delegates to g", STATEMENT_FUNCTION, ""},
    {"create perfetto macro m(a Expr) returns TableOrSubquery as (select $a)", STATEMENT_MACRO, "(select $a)"},
    {"create perfetto index i on t(a, b)", STATEMENT_INDEX, ""},
    {"drop perfetto index i on t", STATEMENT_DROP_INDEX, ""},
    {"include perfetto module a.b.*", STATEMENT_INCLUDE, "a.b.*"},
    {"create table perfetto(a)", STATEMENT_SQLITE, "create table perfetto(a)"},
    {"create perfetto table t using btree as select 1", -1, "btree"},
    {"create perfetto table t select 1", -1, "select"},
    {"create perfetto table t() as select 1", -1, ")"},
    {"create perfetto table t as", -1, "as"},
    {"create perfetto thing t", -1, "thing"},
    {"create perfetto function f(a) returns int as select 1", -1, ")"},
    {"create perfetto function f(a int as select 1", -1, "as"},
    {"create perfetto function f(a int) as select 1", -1, "as"},
    {"create perfetto macro m(a Thing) returns Expr as 1", -1, "Thing"},
    {"create perfetto macro m() returns Nothing as 1", -1, "Nothing"},
    {"include perfetto module", -1, "module"},
    {"include perfetto module a..b", -1, "."},
    {"include perfetto module a b", -1, "b"},
    {"drop perfetto index i", -1, "i"},
};

START_TEST(extensions_parse)
{
    struct arena arena = {0};
    struct sql_tokens t = {0};
    struct parsed p;
    struct parse_problem problem = {0};
    const char *text = parse_cases[_i].text;
    struct sql_frame frame = {.source = sql_source_new(SOURCE_FILE, "stdin", slice_str(text))};
    ck_assert(sql_tokens_scan(&t, &frame));
    int rc = statement_parse(t.p, t.n, &p, &problem);
    if (parse_cases[_i].kind < 0) {
        ck_assert_int_eq(rc, -MRD_ESQL);
        ck_assert_ptr_nonnull(problem.token);
        ck_assert_int_eq((int)problem.token->len, (int)strlen(parse_cases[_i].what));
        ck_assert_int_eq(memcmp(problem.token->text, parse_cases[_i].what, problem.token->len), 0);
    } else {
        size_t len;
        ck_assert_msg(rc == 0, "%s", problem.text);
        ck_assert_int_eq((int)p.kind, parse_cases[_i].kind);
        ck_assert_str_eq(sql_tokens_join(&arena, p.body, p.n_body, &len), parse_cases[_i].what);
        parsed_free(&p);
    }
    sql_tokens_free(&t);
    sql_source_unref(frame.source);
    arena_free(&arena);
}
END_TEST

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))

Suite *dialect_text_suite(void);
Suite *dialect_text_suite(void)
{
    Suite *s = suite_create("dialect_text");
    TCase *t = tcase_create("text");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, tokens_follow_sqlite, 0, COUNT(token_cases));
    tcase_add_loop_test(t, statements_end_where_they_should, 0, COUNT(statement_cases));
    tcase_add_loop_test(t, macros_expand, 0, COUNT(macro_cases));
    tcase_add_test(t, deep_and_huge_expansions_end);
    tcase_add_test(t, a_traceback_leads_through_macros);
    tcase_add_test(t, an_excerpt_of_a_long_line_is_cut);
    tcase_add_test(t, a_message_without_memory_has_an_end);
    tcase_add_loop_test(t, extensions_parse, 0, COUNT(parse_cases));
    suite_add_tcase(s, t);
    return s;
}
