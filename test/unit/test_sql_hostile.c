/* SQL by people who mean harm: what it must not reach, and what must not fall over. */
#include "sql/engine/heap.h"
#include "sql_fixture.h"

#include <pthread.h>

static struct sql_fixture f;

static void open_engine(void)
{
    sql_open(&f);
}

static void close_engine(void)
{
    sql_close(&f);
}

/* Each fails, and the engine goes on. */
static const struct {
    const char *sql, *told;
} refused[] = {
    {"SELECT fts3_tokenizer('x', x'4141414141414141')", "fts3"},
    {"SELECT load_extension('/lib/x86_64-linux-gnu/libc.so.6')", "load_extension"},
    {"PRAGMA writable_schema = ON; DELETE FROM sqlite_master", "writable_schema"},
    {"DELETE FROM sqlite_master", "may not be modified"},
    {"PRAGMA temp_store_directory = '/tmp'", "temp_store_directory"},
    {"PRAGMA data_store_directory", "data_store_directory"},
    {"PRAGMA database_list", "database_list"},
    {"SELECT * FROM pragma_database_list", "database_list"},
    {"PRAGMA trusted_schema = ON", "trusted_schema"},
    {"PRAGMA mmap_size = 1000000", "mmap_size"},
    {"PRAGMA hard_heap_limit = 1", "hard_heap_limit"},
    {"ATTACH '/tmp/x' AS x", "may not open files"},
    {"ATTACH ':memory:' AS x", "may not open files"},
    {"ATTACH '/tmp/' || 'x' AS x", "may not open files"},
    {"VACUUM INTO '/tmp/hostile'", "may not open files"},
    {"DETACH main", "may not open files"},
    {"SELECT __intrinsic_file_write('/tmp/hostile', x'00')", "may not write files"},
    {"CREATE VIRTUAL TABLE f USING fts5(a)", "no such module"},
    {"CREATE VIRTUAL TABLE f USING fts4(a)", "no such module"},
    {"CREATE VIRTUAL TABLE f USING rtree(a, b, c)", "no such module"},
    {"SELECT * FROM dbstat", "dbstat"},
    {"SELECT * FROM sqlite_stmt", "sqlite_stmt"},
    {"SELECT sqlite_log(1, 'x')", "sqlite_log"},
    {"CREATE VIEW v AS SELECT __intrinsic_file_write('/tmp/hostile', x'00'); SELECT * FROM v", "unsafe use"},
    {"CREATE VIEW v AS SELECT import('slices.slices'); SELECT * FROM v", "unsafe use"},
    {"SELECT __intrinsic_ordered_agg('group_concat', n, 'a','b','c','d', 1, 0) FROM (SELECT 4 AS n UNION ALL SELECT 2)",
     "one number of arguments"},
    {"SELECT __intrinsic_ordered_agg()", "expected 2 arguments"},
    {"SELECT __intrinsic_ordered_agg('group_concat', 2147483647, 1, 1, 0)", "too many terms"},
    {"SELECT __intrinsic_ordered_agg('group_concat', -2147483648, 1, 1, 0)", "too many terms"},
    {"SELECT __intrinsic_ordered_agg(NULL, 1, 1, 1, 0)", "argument 1 must be a text"},
    {"SELECT __intrinsic_ordered_agg('x', '1', 1, 1, 0)", "argument 2 must be an integer"},
    {"SELECT __intrinsic_row_dataframe_agg(NULL, NULL)", "argument 1 must be a text"},
    {"SELECT __intrinsic_row_dataframe_agg('a', 1, 2, 2)", "argument 3 must be a text"},
    {"SELECT __intrinsic_row_dataframe_agg('a', 1, 'b')", "groups of 2"},
    {"SELECT __intrinsic_tree_from_table(NULL, NULL)", "argument 1 must be a text"},
    {"SELECT __intrinsic_dfs(1, 2)", "argument 1 must be a pointer"},
    {"SELECT stack_from_stack_profile_callsite(1, 2, 3)", "expected 1 to 2 arguments"},
    {"SELECT * FROM __intrinsic_aggregate('t g:0 *:-1')", "__intrinsic_aggregate"},
    {"CREATE TABLE s(ts BIGINT, dur BIGINT); CREATE TABLE t(ts BIGINT, dur BIGINT); CREATE VIEW v AS SELECT ts, dur "
     "FROM "
     "t; CREATE VIRTUAL TABLE sj USING span_join(v, s); DROP VIEW v; CREATE VIEW v AS SELECT ts, dur FROM sj; INSERT "
     "INTO s VALUES(1, 2); SELECT count(*) FROM sj",
     "of themselves"},
};

START_TEST(what_no_trace_needs_is_refused)
{
    sql_must_fail(&f, refused[_i].sql, refused[_i].told);
    sql_expect(&f, "SELECT count(*) FROM slice", "0");
}
END_TEST

/* As deep or wide as nobody writes: an answer at once, whichever. */
START_TEST(statements_have_limits)
{
    static const struct {
        const char *before, *again, *after, *told;
        int times;
    } wide[] = {
        {"SELECT ", "(", "1", "", 100000},
        {"SELECT 1", "+1", "", "too large", 100000},
        {"SELECT 1", " UNION ALL SELECT 1", "", "too many terms", 100000},
        {"SELECT 1", ",1", "", "too many columns", 100000},
        {"SELECT concat(1", ",1", ")", "too many arguments", 1000},
        {"SELECT 'a' LIKE '", "%_", "'", "too complex", 50000},
        {"SELECT 1 IN (1", ",(SELECT 1)", ")", "", 20000},
        {"SELECT 1 IN (1", ",2", ")", "", 300000},
        {"SELECT 1 IN (1", ",2", ")", "too long", 1700000},
        {"CREATE PERFETTO MACRO m(a Expr", ",a Expr", ") RETURNS Expr AS 1", "more than 2000 arguments", 100000},
    };
    const size_t n = sizeof wide / sizeof *wide;
    for (size_t i = 0; i < n; i++) {
        sqlite3_str *s = sqlite3_str_new(NULL);
        sqlite3_str_appendall(s, wide[i].before);
        for (int k = 0; k < wide[i].times; k++)
            sqlite3_str_appendall(s, wide[i].again);
        sqlite3_str_appendall(s, wide[i].after);
        char *sql = sqlite3_str_finish(s);
        char *got = sql_rows(&f, sql);
        if (*wide[i].told) {
            ck_assert_msg(!got, "%s%s... gave %.40s", wide[i].before, wide[i].again, got);
            ck_assert_msg(strstr(engine_error_text(f.e), wide[i].told) != NULL, "%.500s", engine_error_text(f.e));
        }
        sqlite3_free(got);
        sqlite3_free(sql);
    }
    sql_expect(&f, "SELECT count(*) FROM slice", "0");
}
END_TEST

/* What a trace needs. */
START_TEST(what_traces_need_stays)
{
    static const struct {
        const char *sql, *rows;
    } allowed[] = {
        {"SELECT name FROM pragma_table_info('slice') LIMIT 1", "id"},
        {"PRAGMA user_version", "0"},
        {"SELECT value FROM json_each('[3]')", "3"},
        {"CREATE VIEW v AS SELECT id, extract_arg(arg_set_id, 'x') FROM slice; SELECT count(*) FROM v", "0"},
        {"CREATE PERFETTO FUNCTION g(a INT) RETURNS INT AS SELECT $a + 1; CREATE VIEW v AS SELECT g(1) AS x; SELECT x "
         "FROM v",
         "2"},
        {"CREATE PERFETTO FUNCTION h(a INT) RETURNS TABLE(b INT) AS SELECT $a AS b; CREATE VIEW v AS SELECT b FROM "
         "h(4); SELECT b FROM v",
         "4"},
        {"CREATE TABLE t(a); INSERT INTO t VALUES(1); CREATE INDEX i ON t(a); UPDATE t SET a = 2; ALTER TABLE t RENAME "
         "TO u; SELECT a FROM u",
         "2"},
    };
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        sql_expect(&f, allowed[i].sql, allowed[i].rows);
        sqlite3_free(sql_rows(&f, "DROP VIEW IF EXISTS v"));
    }
}
END_TEST

START_TEST(files_are_opened_where_the_owner_says_so)
{
    engine_allow_files(f.e, true);
    sql_expect(&f, "ATTACH ':memory:' AS x; CREATE TABLE x.t(a); SELECT count(*) FROM x.t", "0");
    engine_allow_files(f.e, false);
    sql_must_fail(&f, "DETACH x", "may not open files");
}
END_TEST

START_TEST(no_address_of_the_program_is_told)
{
    char *got = sql_rows(&f, "SELECT hex(fts3_tokenizer('simple'))");
    ck_assert_msg(!got || !*got, "%s", got);
    sqlite3_free(got);
}
END_TEST

START_TEST(columns_of_table_pointers_have_32_letters)
{
    sql_expect(&f,
               "SELECT c31 FROM __intrinsic_table_ptr((SELECT __intrinsic_row_dataframe_agg('id', 1, 'b', 5))) WHERE "
               "__intrinsic_table_ptr_bind(c31, 'b')",
               "5");
}
END_TEST

/* What a few rows can make of themselves is bounded in all. */
static const struct {
    uint64_t bytes;
    const char *sql, *error;
} products[] = {
    /* each of forty forks doubles the ways through a graph */
    {64 << 20,
     "INCLUDE PERFETTO MODULE graphs.scan; CREATE PERFETTO TABLE forks AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
     "SELECT i + 3 FROM n WHERE i < 120) SELECT i + a AS source_node_id, i + b AS dest_node_id FROM n, (SELECT 0 AS a, "
     "1 AS b UNION ALL SELECT 0, 2 UNION ALL SELECT 1, 3 UNION ALL SELECT 2, 3); SELECT count(*) FROM "
     "_graph_scan!(forks, (SELECT 0 AS id, 0 AS d), (d), (SELECT id, d + 1 AS d FROM $table))",
     "too many ways through the graph"},
    /* two thousand spans that all meet two thousand others */
    {64 << 20,
     "INCLUDE PERFETTO MODULE intervals.intersect; CREATE PERFETTO TABLE spans AS WITH RECURSIVE n(i) AS (SELECT 0 "
     "UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i AS id, i AS ts, 5000 AS dur FROM n; SELECT count(*) FROM "
     "_interval_intersect!((spans, spans), ())",
     "too many spans meet: they are more than 64 MiB"},
    /* each node of a chain reaches all behind it: half a million rows of a thousand */
    {4 << 20,
     "INCLUDE PERFETTO MODULE graphs.search; CREATE PERFETTO TABLE chain AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
     "SELECT i + 1 FROM n WHERE i < 1000) SELECT i AS source_node_id, i + 1 AS dest_node_id, 1 AS edge_weight FROM n; "
     "SELECT count(*) FROM graph_reachable_weight_bounded_dfs!(chain, (SELECT source_node_id AS root_node_id, 2000 AS "
     "root_target_weight FROM chain), 0)",
     "more than 174762 rows: start from fewer roots"},
};

START_TEST(products_have_a_limit)
{
    engine_limit_memory(f.e, products[_i].bytes);
    sql_must_fail(&f, products[_i].sql, products[_i].error);
    engine_limit_memory(f.e, INT64_MAX);
}
END_TEST

/* Less than 200 bytes of SQL that want as much memory as there is. What rows are sorted in goes to a disk; a text
 * cannot. */
START_TEST(memory_has_a_limit)
{
    int64_t before = sql_heap_held();
    ck_assert_int_gt(before, 0);
    sql_heap_limit(before + (8 << 20));
    char *got = sql_rows(&f, "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 0 FROM n LIMIT 10000000) SELECT "
                             "length(group_concat(printf('%0100d', v))) FROM n");
    ck_assert_ptr_null(got);
    ck_assert_int_le(sql_heap_held(), before + (8 << 20));
    sql_expect(&f,
               "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 0 FROM n LIMIT 500000) SELECT count(*) FROM "
               "(SELECT lead(v) OVER (ORDER BY v), sum(v) OVER (ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM n)",
               "500000");
    ck_assert_int_le(sql_heap_held(), before + (8 << 20));
    sql_heap_limit(INT64_MAX);
    sql_expect(&f, "SELECT count(*) FROM slice", "0");
}
END_TEST

/* Parts of WITH, each made of the one before twice. (Of views SQLite counts the uses.) */
static char *doubling(unsigned levels)
{
    char *sql = calloc(1, levels * 100 + 200), *at = sql;
    at += sprintf(at, "WITH a0 AS (SELECT 1 AS x)");
    for (unsigned i = 1; i < levels; i++)
        at += sprintf(at, ", a%u AS (SELECT * FROM a%u UNION ALL SELECT * FROM a%u)", i, i - 1, i - 1);
    sprintf(at, " SELECT count(*) FROM a%u", levels - 1);
    return sql;
}

START_TEST(what_a_statement_becomes_has_a_limit)
{
    int64_t before = sql_heap_held();
    char *sql = doubling(40);
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    sql_must_fail(&f, sql, "the statement becomes too large");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    ck_assert_int_lt(to.tv_sec - from.tv_sec, 20); /* it was minutes, and all of the memory */
    ck_assert_int_le(sql_heap_held(), before + (8 << 20));
    free(sql);
    sql = doubling(10);
    sql_expect(&f, sql, "512");
    free(sql);
}
END_TEST

static void *ask_to_stop(void *of)
{
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    engine_interrupt(of);
    return NULL;
}

/* A stop is heeded while a statement is compiled, and the next one runs. */
START_TEST(compiling_can_be_interrupted)
{
    char *sql = doubling(40);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_to_stop, f.e), 0);
    sql_must_fail(&f, sql, "interrupted");
    pthread_join(thread, NULL);
    sql_expect(&f, "SELECT 1", "1");
    free(sql);
}
END_TEST

Suite *sql_hostile_suite(void);
Suite *sql_hostile_suite(void)
{
    Suite *s = suite_create("sql_hostile");
    TCase *t = tcase_create("refused");
    tcase_add_checked_fixture(t, open_engine, close_engine);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, what_no_trace_needs_is_refused, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(t, statements_have_limits);
    tcase_add_test(t, what_traces_need_stays);
    tcase_add_test(t, files_are_opened_where_the_owner_says_so);
    tcase_add_test(t, no_address_of_the_program_is_told);
    tcase_add_test(t, columns_of_table_pointers_have_32_letters);
    tcase_add_loop_test(t, products_have_a_limit, 0, sizeof products / sizeof *products);
    tcase_add_test(t, memory_has_a_limit);
    tcase_add_test(t, what_a_statement_becomes_has_a_limit);
    tcase_add_test(t, compiling_can_be_interrupted);
    suite_add_tcase(s, t);
    return s;
}
