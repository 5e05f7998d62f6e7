/* Tests the parser of SELECT: what it takes, how it groups, where it says things stand. */
#include "mirror.h"

#include "sql/dialect/ordered.h"
#include "sql/dialect/parse.h"
#include "sql/embedded.h"
#include "sql/frontend/keywords.h"
#include "sql/frontend/select.h"
#include "sql/planner/planner.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parsing {
    struct arena arena;
    struct sql_tokens tokens;
    struct sql_tree tree;
};

static bool parse_text(struct parsing *p, const char *sql)
{
    *p = (struct parsing){0};
    ck_assert(sql_tokens_scan_text(&p->tokens, sql, strlen(sql)));
    return sql_tree_parse(&p->tree, &p->arena, p->tokens.p, p->tokens.n);
}

static void parsing_free(struct parsing *p)
{
    sql_tokens_free(&p->tokens);
    arena_free(&p->arena);
}

/* ---- keywords ---- */

START_TEST(every_keyword_is_found)
{
    for (int w = WORD_NONE + 1; w < WORD_COUNT; w++) {
        char lower[32];
        const char *text = sql_word_text((enum sql_word)w);
        size_t len = strlen(text);
        for (size_t i = 0; i <= len; i++)
            lower[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32) : text[i];
        ck_assert_int_eq(sql_word_find(text, len), w);
        ck_assert_int_eq(sql_word_find(lower, len), w);
        ck_assert_int_ne((int)sql_word_find(lower, len - 1), w);
        int known = sqlite3_keyword_check(text, (int)len);
        ck_assert_msg(known, "%s is no keyword of SQLite", text);
    }
    for (int i = 0; i < sqlite3_keyword_count(); i++) {
        const char *name;
        int len;
        ck_assert_int_eq(sqlite3_keyword_name(i, &name, &len), SQLITE_OK);
        ck_assert_msg(sql_word_find(name, (size_t)len) != WORD_NONE, "%.*s is missing", len, name);
    }
    ck_assert_int_eq(sql_word_find("selects", 7), WORD_NONE);
    ck_assert_int_eq(sql_word_find("_", 1), WORD_NONE);
    ck_assert_int_eq(sql_word_find("SELEC\x14", 6), WORD_NONE);
}
END_TEST

/* ---- how operators group ---- */

static const char *op_text(const struct sql_expr *x)
{
    static const char *const words[SQL_OP_COUNT] = {
        [SQL_IS] = "IS", [SQL_ISNOT] = "IS NOT", [SQL_OR] = "OR", [SQL_AND] = "AND", [SQL_NOT] = "NOT"};
    return words[x->op] ? words[x->op] : sql_op_text((enum sql_op)x->op);
}

static const struct sql_expr *arg(const struct sql_expr *x, int i)
{
    const struct sql_expr *a = x->args;
    while (i-- > 0)
        a = a->next;
    return a;
}

/* The expression with parentheses wherever the tree has a node. */
static void put_expr(struct text *out, const struct parsing *p, const struct sql_expr *x)
{
    const char *not = x->negated ? " NOT" : "";
    put(out, "(");
    switch (x->kind) {
    case EXPR_UNARY:
        if (x->op == SQL_ISNULL || x->op == SQL_NOTNULL) {
            put_expr(out, p, x->args);
            put(out, " %s", x->op == SQL_ISNULL ? "ISNULL" : "NOTNULL");
        } else {
            put(out, "%s ", op_text(x));
            put_expr(out, p, x->args);
        }
        break;
    case EXPR_BINARY:
        put_expr(out, p, arg(x, 0));
        put(out, " %s ", op_text(x));
        put_expr(out, p, arg(x, 1));
        break;
    case EXPR_BETWEEN:
        put_expr(out, p, arg(x, 0));
        put(out, "%s BETWEEN ", not );
        put_expr(out, p, arg(x, 1));
        put(out, " AND ");
        put_expr(out, p, arg(x, 2));
        break;
    case EXPR_MATCH:
        put_expr(out, p, arg(x, 0));
        put(out, "%s %s ", not, op_text(x));
        put_expr(out, p, arg(x, 1));
        break;
    case EXPR_IN:
        put_expr(out, p, arg(x, 0));
        put(out, "%s IN (", not );
        for (const struct sql_expr *a = x->args->next; a; a = a->next) {
            put_expr(out, p, a);
            put(out, "%s", a->next ? ", " : "");
        }
        put(out, ")");
        break;
    case EXPR_COLLATE:
        put_expr(out, p, x->args);
        put(out, " COLLATE %.*s", (int)x->name.len, x->name.p);
        break;
    case EXPR_CASE:
        put(out, "CASE");
        for (const struct sql_expr *a = x->args; a; a = a->next) {
            int place = (int)x->has_base, n = 0;
            for (const struct sql_expr *b = x->args; b != a; b = b->next)
                n++;
            bool base = x->has_base && n == 0, last = !a->next && x->has_else;
            put(out, "%s", base ? " " : last ? " ELSE " : (n - place) % 2 ? " THEN " : " WHEN ");
            put_expr(out, p, a);
        }
        put(out, " END");
        break;
    default:
        for (uint32_t i = x->at.first; i < x->at.end; i++)
            put(out, "%.*s", (int)p->tokens.p[i].len, p->tokens.p[i].text);
        break;
    }
    put(out, ")");
}

static void random_expr(struct text *out, int depth)
{
    static const char *const binary[] = {"OR",
                                         "AND",
                                         "=",
                                         "==",
                                         "<>",
                                         "!=",
                                         "IS",
                                         "IS NOT",
                                         "<",
                                         "<=",
                                         ">",
                                         ">=",
                                         "&",
                                         "|",
                                         "<<",
                                         ">>",
                                         "+",
                                         "-",
                                         "*",
                                         "/",
                                         "%",
                                         "||",
                                         "LIKE",
                                         "GLOB",
                                         "IS DISTINCT FROM",
                                         "IS NOT DISTINCT FROM",
                                         "NOT LIKE"};
    static const char *const leaves[] = {"1", "2", "0", "NULL", "3.5", "'a'", "'1'", "'abc'", "7", "-1"};
    if (depth <= 0 || pick(5) == 0) {
        put(out, "%s", leaves[pick(10)]);
        return;
    }
    switch (pick(12)) {
    case 0:
        put(out, "%s ", (const char *[]){"-", "+", "~", "NOT"}[pick(4)]);
        random_expr(out, depth - 1);
        return;
    case 1:
        random_expr(out, depth - 1);
        put(out, " %s", (const char *[]){"ISNULL", "NOTNULL", "NOT NULL", "IS NULL", "IS NOT NULL"}[pick(5)]);
        return;
    case 2:
        random_expr(out, depth - 1);
        put(out, "%s BETWEEN ", pick(2) ? "" : " NOT");
        random_expr(out, depth - 2);
        put(out, " AND ");
        random_expr(out, depth - 2);
        return;
    case 3:
        random_expr(out, depth - 1);
        put(out, "%s IN (", pick(2) ? "" : " NOT");
        random_expr(out, depth - 2);
        put(out, ", ");
        random_expr(out, depth - 2);
        put(out, ")");
        return;
    case 4:
        random_expr(out, depth - 1);
        put(out, " COLLATE nocase");
        return;
    case 5:
        put(out, "CASE %s WHEN ", pick(2) ? "" : "1");
        random_expr(out, depth - 2);
        put(out, " THEN ");
        random_expr(out, depth - 2);
        put(out, pick(2) ? " END" : " ELSE 9 END");
        return;
    case 6:
        put(out, "(");
        random_expr(out, depth - 1);
        put(out, ")");
        return;
    default:
        random_expr(out, depth - 1);
        put(out, " %s ", binary[pick(27)]);
        random_expr(out, depth - 1);
    }
}

/* "" when SQLite does not take the text. */
static void value_of(sqlite3 *db, const char *expr, struct text *out)
{
    char sql[9000];
    sqlite3_stmt *stmt = NULL;
    snprintf(sql, sizeof sql, "SELECT quote(%s)", expr);
    out->n = 0;
    out->p[0] = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        put(out, "%s", (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
}

/* What SQLite computes from a text is what it computes from the tree of the text. */
START_TEST(operators_group_as_in_sqlite)
{
    sqlite3 *db;
    struct mirror m;
    int taken = 0;
    mirror_open(&m, 4711 + (uint64_t)_i, 10);
    ck_assert_int_eq(sqlite3_open(":memory:", &db), SQLITE_OK);
    for (int i = 0; i < 2000; i++) {
        struct text expr = {.n = 0}, grouped = {.n = 0}, a, b;
        struct parsing p;
        char sql[4100];
        random_expr(&expr, 5);
        value_of(db, expr.p, &a);
        snprintf(sql, sizeof sql, "SELECT %s", expr.p);
        if (expr.n < 1000 && parse_text(&p, sql)) {
            taken++;
            put_expr(&grouped, &p, p.tree.query->selects->items->expr);
            value_of(db, grouped.p, &b);
            ck_assert_msg(grouped.n > 3900 || strcmp(a.p, b.p) == 0, "%s\n= %s\n%s\n= %s", expr.p, a.p, grouped.p, b.p);
        }
        if (expr.n < 1000)
            parsing_free(&p);
    }
    ck_assert_int_gt(taken, 1200);
    sqlite3_close(db);
    mirror_close(&m);
}
END_TEST

/* ---- statements ---- */

static const char *const taken[] = {
    "SELECT 1",
    "select 1;",
    " -- a comment\n SELECT /* another */ 1 -- and one\n",
    "SELECT *, t.*, a AS b, c d, \"e\"\"f\" AS 'g', [h], `i` FROM t",
    "SELECT DISTINCT a FROM t AS x, main.u y JOIN v ON x.a = v.a LEFT OUTER JOIN w USING (a, b) NATURAL JOIN z",
    "SELECT ALL a FROM (SELECT 1 AS a) CROSS JOIN (t JOIN u) FULL JOIN f(1, 'x') AS g ON 1",
    "SELECT a FROM t INDEXED BY i WHERE a > 1 GROUP BY a, 2 HAVING count(*) > 1",
    "SELECT a FROM t NOT INDEXED ORDER BY a DESC NULLS LAST, 2 ASC LIMIT 5 OFFSET 2",
    "SELECT a FROM t LIMIT 2, 5",
    "SELECT 1 UNION ALL SELECT 2 UNION VALUES (3) INTERSECT SELECT 4 EXCEPT SELECT 5 ORDER BY 1",
    "VALUES (1, 2), (3, 4)",
    "WITH a AS (SELECT 1), b(x, y) AS NOT MATERIALIZED (SELECT 1, 2), c AS MATERIALIZED (VALUES (1)) SELECT * FROM a",
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n",
    "WITH recursive AS (SELECT 1) SELECT * FROM recursive",
    "SELECT count(*), count(DISTINCT a), sum(a) FILTER (WHERE a > 2), f(), f(ALL a, b)",
    "SELECT sum(a) FILTER (WHERE a) OVER (PARTITION BY b, c ORDER BY d DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "SELECT rank() OVER w, lag(a, 1, 0) OVER (w RANGE UNBOUNDED PRECEDING EXCLUDE TIES) FROM t WINDOW w AS (ORDER BY "
    "a)",
    "SELECT sum(a) OVER (GROUPS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING EXCLUDE NO OTHERS)",
    "SELECT CASE a WHEN 1 THEN 2 ELSE 3 END, CASE WHEN a THEN b END, CAST(a AS VARCHAR (10, -2)), CAST(a AS int)",
    "SELECT a IN (1, 2), a NOT IN (SELECT b FROM t), a IN t, a IN main.t, a IN f(1), a IN ()",
    "SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1), (SELECT 2), (1, 2) = (3, 4), ((1))",
    "SELECT a LIKE 'b' ESCAPE '!', a NOT GLOB 'c', a REGEXP b, a MATCH b, a COLLATE nocase",
    "SELECT ?, ?1, :a, @b, $c, x'0aff', 0x1F, 1e5, .5, 5., 'it''s', CURRENT_TIMESTAMP",
    "SELECT a -> '$.b' ->> 'c' || d, ~a, - - 1, a ISNULL, a NOT NULL, a IS NOT DISTINCT FROM b",
    "SELECT key, \"select\", replace(a, b, c), like(a, b), over, filter, window FROM current, row",
    "SELECT ((SELECT 1) + 2), ((SELECT 1 UNION SELECT 2))",
    "SELECT t.a b FROM main.t AS t, ((SELECT 1)) WHERE t.desc = 1",
};

static const char *const left_out[] = {
    "",
    ";",
    "SELECT",
    "SELECT 1; SELECT 2",
    "SELECT 1 2",
    "SELECT FROM t",
    "SELECT 1 FROM",
    "SELECT a FROM t WHERE",
    "SELECT (1",
    "SELECT 1)",
    "SELECT a BETWEEN 1",
    "SELECT CASE END",
    "SELECT 'open",
    "SELECT \"\" FROM t",
    "SELECT a IS NOT NOT b",
    "SELECT f!(1)",
    "SELECT a FROM t GROUP a",
    "SELECT a FROM t ORDER BY",
    "VALUES (2), (1) ORDER BY 1",
    "SELECT a FROM t INTERSECT VALUES (1) LIMIT 1",
    "SELECT * FROM t INNER LEFT JOIN u",
    "SELECT * FROM t OUTER JOIN u",
    "SELECT 12ab",
    "INSERT INTO t SELECT 1",
    "CREATE TABLE t AS SELECT 1",
    "EXPLAIN SELECT 1",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "SELECT raise(ignore)",
    "SELECT select",
    "SELECT sum(a ORDER BY b)",
};

START_TEST(statements_are_taken)
{
    struct parsing p;
    ck_assert_msg(parse_text(&p, taken[_i]), "%s", taken[_i]);
    parsing_free(&p);
}
END_TEST

START_TEST(statements_are_left_out)
{
    struct parsing p;
    ck_assert_msg(!parse_text(&p, left_out[_i]), "%s", left_out[_i]);
    parsing_free(&p);
}
END_TEST

/* Each token dropped, doubled or changed for another: what SQLite refuses may be taken, but no harm is done, and what
 * is taken has its places right. */
static void check_spans(const struct sql_expr *x, struct sql_span outer)
{
    ck_assert_uint_ge(x->at.first, outer.first);
    ck_assert_uint_le(x->at.end, outer.end);
    ck_assert_uint_lt(x->at.first, x->at.end);
    for (const struct sql_expr *a = x->args; a; a = a->next) {
        check_spans(a, x->at);
        ck_assert_uint_lt(a->height, x->height);
    }
}

START_TEST(places_hold_what_they_name)
{
    struct parsing p;
    ck_assert(parse_text(&p, taken[_i]));
    for (const struct sql_select *s = p.tree.cores; s; s = s->next_core) {
        ck_assert_uint_le(s->at.end, p.tokens.n);
        for (const struct sql_item *i = s->items; i; i = i->next)
            if (i->expr)
                check_spans(i->expr, i->at);
        if (s->where)
            check_spans(s->where, s->at);
    }
    parsing_free(&p);
}
END_TEST

/* Every SELECT of the standard library is in the grammar. */
START_TEST(the_standard_library_is_in_the_grammar)
{
    size_t n, selects = 0;
    const struct embedded_sql *all = embedded_sql_all(&n);
    for (size_t i = 0; i < n; i++) {
        struct sql_frame frame = {.source =
                                      sql_source_new(SOURCE_MODULE, all[i].module, slice_of(all[i].text, all[i].len))};
        for (size_t at = 0; at < frame.source->len;) {
            struct sql_tokens t = {0};
            struct parsed parsed = {0};
            struct parse_problem problem;
            struct arena arena = {0};
            struct sql_tree tree;
            bool macros = false;
            size_t from = at;
            ck_assert(statement_scan(&t, &frame, at, &at));
            ck_assert(ordered_rewrite(&t, &arena));
            ck_assert_int_eq(statement_parse(t.p, t.n, &parsed, &problem), 0);
            for (size_t k = 0; k < t.n; k++)
                macros |= t.p[k].kind == TOKEN_BANG;
            bool body = parsed.kind == STATEMENT_TABLE || parsed.kind == STATEMENT_VIEW ||
                        (parsed.kind == STATEMENT_FUNCTION && parsed.n_body);
            if (body && !macros) {
                ck_assert_msg(sql_tree_parse(&tree, &arena, parsed.body, parsed.n_body), "%s: %.*s", all[i].module,
                              (int)(at - from), frame.source->text + from);
                selects++;
            }
            parsed_free(&parsed);
            sql_tokens_free(&t);
            arena_free(&arena);
        }
        sql_source_unref(frame.source);
    }
    ck_assert_uint_gt(selects, 300);
}
END_TEST

START_TEST(nesting_is_bounded)
{
    static const struct {
        const char *open, *middle, *close;
        size_t most; /* levels that are taken; 0: none of these */
    } shapes[] = {{"(", "1", ")", 90},
                  {"NOT ", "1", "", 180},
                  {"- ", "1", "", 180},
                  {"(SELECT ", "1", ")", 40},
                  {"CASE WHEN ", "1", " THEN 1 END", 150},
                  {"f(", "1", ")", 150}};
    enum { DEEP = 200000 };
    size_t n = (size_t)DEEP * 30;
    char *sql = malloc(n);
    ck_assert_ptr_nonnull(sql);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int pass = 0; pass < 2; pass++) {
            size_t levels = pass ? DEEP : shapes[s].most, at = (size_t)sprintf(sql, "SELECT ");
            struct parsing p;
            for (size_t i = 0; i < levels; i++)
                at += (size_t)sprintf(sql + at, "%s", shapes[s].open);
            at += (size_t)sprintf(sql + at, "%s", shapes[s].middle);
            for (size_t i = 0; i < levels; i++)
                at += (size_t)sprintf(sql + at, "%s", shapes[s].close);
            ck_assert_msg(parse_text(&p, sql) == !pass, "%s%zu", shapes[s].open, levels);
            parsing_free(&p);
        }
    for (int pass = 0; pass < 2; pass++) { /* a long chain makes a high tree without nesting */
        struct parsing p;
        size_t at = (size_t)sprintf(sql, "SELECT 1");
        for (int i = 0; i < (pass ? DEEP : 900); i++)
            at += (size_t)sprintf(sql + at, "+1");
        ck_assert_int_eq(parse_text(&p, sql), !pass);
        parsing_free(&p);
    }
    free(sql);
}
END_TEST

static size_t allowed;

static bool gate(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return allowed && allowed--;
}

START_TEST(parsing_survives_failing_allocations)
{
    struct sql_tokens t = {0};
    struct sql_tree tree;
    bool ok = false;
    const char *sql = taken[_i];
    ck_assert(sql_tokens_scan_text(&t, sql, strlen(sql)));
    for (size_t k = 0; !ok && k < 50; k++) {
        struct arena arena = {0};
        allowed = k;
        alloc_set_gate(gate, NULL);
        ok = sql_tree_parse(&tree, &arena, t.p, t.n);
        alloc_set_gate(NULL, NULL);
        arena_free(&arena);
    }
    ck_assert(ok);
    sql_tokens_free(&t);
}
END_TEST

Suite *sql_frontend_suite(void);
Suite *sql_frontend_suite(void)
{
    Suite *s = suite_create("sql_frontend");
    TCase *t = tcase_create("parser");
    int n = (int)(sizeof taken / sizeof *taken);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_keyword_is_found);
    tcase_add_loop_test(t, operators_group_as_in_sqlite, 0, 3);
    tcase_add_loop_test(t, statements_are_taken, 0, n);
    tcase_add_loop_test(t, places_hold_what_they_name, 0, n);
    tcase_add_loop_test(t, parsing_survives_failing_allocations, 0, n);
    tcase_add_loop_test(t, statements_are_left_out, 0, (int)(sizeof left_out / sizeof *left_out));
    tcase_add_test(t, the_standard_library_is_in_the_grammar);
    tcase_add_test(t, nesting_is_bounded);
    suite_add_tcase(s, t);
    return s;
}
