/* SQL by people who mean harm: what it must not reach, and what must not fall over. */
#include "sql/engine/heap.h"
#include "sql_fixture.h"

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
    {"PRAGMA writable_schema = ON; DELETE FROM sqlite_master", "may not be modified"},
    {"SELECT __intrinsic_ordered_agg('group_concat', n, 'a','b','c','d', 1, 0) FROM (SELECT 4 AS n UNION ALL SELECT 2)",
     "one number of arguments"},
    {"SELECT __intrinsic_ordered_agg()", "too many terms"},
    {"SELECT __intrinsic_ordered_agg('group_concat', 2147483647, 1, 1, 0)", "too many terms"},
    {"SELECT __intrinsic_ordered_agg('group_concat', -2147483648, 1, 1, 0)", "too many terms"},
    {"SELECT __intrinsic_ordered_agg(NULL, 1, 1, 1, 0)", "too many terms"},
    {"SELECT __intrinsic_row_dataframe_agg(NULL, NULL)", "column name is NULL"},
    {"SELECT __intrinsic_tree_from_table(NULL, NULL)", "column name is NULL"},
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

/* 174 bytes of SQL that want as much memory as there is. */
START_TEST(memory_has_a_limit)
{
    int64_t before = sql_heap_held();
    ck_assert_int_gt(before, 0);
    sql_heap_limit(before + (8 << 20));
    char *got =
        sql_rows(&f, "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 0 FROM n LIMIT 10000000) SELECT "
                     "count(*) FROM (SELECT lead(v) OVER (ORDER BY v), sum(v) OVER (ROWS BETWEEN 3 PRECEDING AND "
                     "CURRENT ROW) FROM n)");
    ck_assert_ptr_null(got);
    ck_assert_int_le(sql_heap_held(), before + (8 << 20));
    sql_heap_limit(INT64_MAX);
    sql_expect(&f, "SELECT count(*) FROM slice", "0");
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
    tcase_add_test(t, no_address_of_the_program_is_told);
    tcase_add_test(t, columns_of_table_pointers_have_32_letters);
    tcase_add_test(t, memory_has_a_limit);
    suite_add_tcase(s, t);
    return s;
}
