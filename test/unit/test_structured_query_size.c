/* Tests that structured queries stay small: what many share is there once, and what is too deep or too much is refused.
 */
#include "structured_query_fixture.h"

/* Each query of a chain joins the one before with itself: SQLite would unfold 2^n of them. */
START_TEST(test_shared_queries_do_not_multiply)
{
    enum { CHAIN = 20 };
    static char text[CHAIN * 300];
    struct compiled c;
    size_t n = (size_t)snprintf(text, sizeof text, "query { id: 'q0' sql { sql: 'SELECT 1 AS x' } }\n");
    for (int i = 1; i <= CHAIN; i++)
        n +=
            (size_t)snprintf(text + n, sizeof text - n,
                             "query { id: 'q%.0d' experimental_join { left_query { inner_query_id: 'q%d' } right_query "
                             "{ inner_query_id: 'q%d' } equality_columns { left_column: 'x' right_column: 'x' } } }\n",
                             i == CHAIN ? 0 : i, i - 1, i - 1);
    compile(&c, text);
    ck_assert_int_eq(c.rc, -MRD_ELIMIT);
    ck_assert_msg(strstr(c.err.text, "used more than 10000 times") != NULL, "%s", c.err.text);
    compiled_free(&c);
}
END_TEST

/* A query that many read is one WITH clause; that many uses of it are fine. */
START_TEST(test_a_shared_query_is_there_once)
{
    enum { USES = 100 };
    static char text[USES * 60 + 200], rows[USES * 12];
    struct compiled c;
    size_t n = (size_t)snprintf(text, sizeof text,
                                "query { id: 'one' sql { sql: 'SELECT 40 + 2 AS x' } } query { id: 'q' "
                                "experimental_union { use_union_all: true ");
    for (int i = 0; i < USES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "queries { inner_query_id: 'one' } ");
    snprintf(text + n, sizeof text - n,
             "} group_by { aggregates { op: SUM column_name: 'x' result_column_name: 's' } } }");
    compile(&c, text);
    ck_assert_msg(c.rc == 0, "%s", c.err.text);
    const char *first = strstr(c.sql.sql, "40 + 2");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "40 + 2"));
    snprintf(rows, sizeof rows, "s;%d", 42 * USES);
    ck_assert_str_eq(rows_of(c.sql.sql), rows);
    compiled_free(&c);
}
END_TEST

/* All of a table, or of another query, is read where it is: no copy for each place that it is used in. */
START_TEST(test_whole_tables_have_no_clause)
{
    struct compiled c;
    compile(&c, "query { id: 'all' inner_query { table { table_name: 'slice' } } }\n" Q(
                    "experimental_join { left_query { inner_query_id: 'all' } right_query { inner_query_id: 'all' } "
                    "equality_columns { left_column: 'id' right_column: 'id' } } group_by { aggregates { op: COUNT "
                    "result_column_name: 'n' } }"));
    ck_assert_msg(c.rc == 0, "%s", c.err.text);
    ck_assert_ptr_null(strstr(c.sql.sql, "WITH"));
    ck_assert_str_eq(rows_of(c.sql.sql), "n;180");
    compiled_free(&c);
}
END_TEST

/* Inner queries, by themselves and by their ids, are bounded in depth. */
START_TEST(test_depth)
{
    enum { DEEP = STRUCTURED_QUERY_MAX_DEPTH + 1 };
    struct pb_writer w = {0};
    trace_summary_spec *spec;
    struct structured_sql sql = {0};
    struct error err = {0};
    size_t marks[DEEP];
    static char text[DEEP * 60];
    struct compiled c;
    size_t query = pb_begin(&w, 2), n = 0;
    for (int i = 0; i < DEEP; i++)
        marks[i] = pb_begin(&w, 5);
    for (int i = DEEP; i-- > 0;)
        pb_end(&w, marks[i]);
    pb_end(&w, query);
    ck_assert_msg(spec_parse(pb_written(&w), SPEC_BINARY, &spec, &err) == 0, "%s", err.text);
    ck_assert_int_eq(structured_query_sql(NULL, spec->query[0], &sql, &err), -MRD_ELIMIT);
    ck_assert_msg(strstr(err.text, "more than 128 queries inside each other") != NULL, "%s", err.text);
    structured_sql_free(&sql);
    spec_free(spec);
    pb_writer_free(&w);
    for (int i = 0; i < DEEP; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "query { id: 'q%.0d' inner_query_id: 'q%d' }\n", i, i + 1);
    compile(&c, text);
    ck_assert_int_eq(c.rc, -MRD_ELIMIT);
    compiled_free(&c);
}
END_TEST

#define LONG "a name that is written again for each of the values, however many there are"

/* before, piece again and again, behind */
static const struct limit_case {
    const char *before, *piece;
    int times;
    const char *behind, *text;
} limit_cases[] = {
    {"query { id: 'q' " TABLE, "select_columns { column_name: 'a' } ", 2001, "}",
     "query 'q': select_columns: more than 2000 columns"},
    {"query { id: 'q' " TABLE "group_by { ", "column_names: 'a' ", 2001, "} }",
     "query 'q': group_by: more than 2000 columns"},
    {"query { id: 'q' interval_intersect { base { " TABLE "} interval_intersect { " TABLE "} ",
     "partition_columns: 'a' ", 5, "} }", "query 'q': interval_intersect.partition_columns: more than 4"},
    {"query { id: 'q' interval_intersect { base { " TABLE "} ", "interval_intersect { " TABLE "} ", 15, "} }",
     "query 'q': interval_intersect.interval_intersect: more than 14"},
    {"query { id: 'q' experimental_union { ", "queries { " TABLE "} ", 501, "} }",
     "query 'q': experimental_union.queries: more than 500"},
    {"query { id: 'q' " TABLE "filters { column_name: '" LONG LONG LONG LONG LONG LONG "' op: GLOB ",
     "string_rhs: 'x' ", 50000, "} }", "query 'q': filters[0]: the SQL would be longer than 16777216 bytes"},
    {"query { id: 'q' " TABLE "filters { column_name: 'a' op: EQUAL ", "int64_rhs: 1 ", 1000001, "} }",
     "more than 1000000 fields"},
    {"query { id: 'q' " TABLE "} #", "0123456789abcdef", 1 << 20, "", "are more than the 16777216 of a spec"},
};

START_TEST(test_limits)
{
    const struct limit_case *k = &limit_cases[_i];
    size_t before = strlen(k->before), piece = strlen(k->piece);
    char *text = malloc(before + piece * (size_t)k->times + strlen(k->behind) + 1);
    struct compiled c;
    ck_assert_ptr_nonnull(text);
    strcpy(text, k->before);
    for (int i = 0; i < k->times; i++)
        memcpy(text + before + piece * (size_t)i, k->piece, piece);
    strcpy(text + before + piece * (size_t)k->times, k->behind);
    compile(&c, text);
    ck_assert_int_eq(c.rc, -MRD_ELIMIT);
    ck_assert_msg(strstr(c.err.text, k->text) != NULL, "%s\nshould tell %s", c.err.text, k->text);
    compiled_free(&c);
    free(text);
}
END_TEST

/* Messages without end in each other are refused before protobuf-c recurses into them. */
START_TEST(test_binary_is_looked_over)
{
    struct pb_writer w = {0};
    struct error err = {0};
    trace_summary_spec *spec;
    static size_t marks[20000];
    size_t query = pb_begin(&w, 2);
    for (size_t i = 0; i < 20000; i++)
        marks[i] = pb_begin(&w, 5);
    for (size_t i = 20000; i-- > 0;)
        pb_end(&w, marks[i]);
    pb_end(&w, query);
    ck_assert_int_eq(spec_parse(pb_written(&w), SPEC_BINARY, &spec, &err), -MRD_ELIMIT);
    ck_assert_ptr_null(spec);
    pb_writer_clear(&w);
    for (int i = 0; i <= SPEC_MAX_MESSAGES; i++)
        pb_put_bytes(&w, 2, "", 0);
    ck_assert_int_eq(spec_parse(pb_written(&w), SPEC_BINARY, &spec, &err), -MRD_ELIMIT);
    ck_assert_int_eq(spec_parse(slice_str("\x12\x05zz"), SPEC_BINARY, &spec, &err), -MRD_EFORMAT);
    pb_writer_clear(&w);
    size_t metric = pb_begin(&w, 1);
    pb_put_bytes(&w, 4, "", 0);
    pb_put_bytes(&w, 4, "", 0);
    pb_end(&w, metric);
    ck_assert_int_eq(spec_parse(pb_written(&w), SPEC_BINARY, &spec, &err), -MRD_EFORMAT);
    ck_assert_msg(strstr(err.text, "query is given twice") != NULL, "%s", err.text);
    pb_writer_clear(&w);
    query = pb_begin(&w, 2); /* what is not known is left alone; two sources are not */
    pb_put_str(&w, 5000, "from another time");
    pb_put_bytes(&w, 2, "", 0);
    pb_put_str(&w, 6, "a");
    pb_end(&w, query);
    ck_assert_int_eq(spec_parse(pb_written(&w), SPEC_BINARY, &spec, &err), -MRD_EFORMAT);
    ck_assert_msg(strstr(err.text, "table and inner_query_id exclude each other") != NULL, "%s", err.text);
    pb_writer_free(&w);
}
END_TEST

Suite *structured_query_size_suite(void);
Suite *structured_query_size_suite(void)
{
    Suite *s = suite_create("structured_query_size");
    TCase *rows = tcase_create("rows"), *texts = tcase_create("texts");
    tcase_add_unchecked_fixture(rows, setup, teardown);
    tcase_add_test(rows, test_a_shared_query_is_there_once);
    tcase_add_test(rows, test_whole_tables_have_no_clause);
    suite_add_tcase(s, rows);
    tcase_add_test(texts, test_shared_queries_do_not_multiply);
    tcase_add_test(texts, test_depth);
    tcase_add_loop_test(texts, test_limits, 0, (int)(sizeof limit_cases / sizeof *limit_cases));
    tcase_add_test(texts, test_binary_is_looked_over);
    suite_add_tcase(s, texts);
    return s;
}
