/* A handle without a trace, and the summary of one text by it: for tests of summaries and of summarizers. */
#ifndef MERIDIAN_TEST_SUMMARY_FIXTURE_H
#define MERIDIAN_TEST_SUMMARY_FIXTURE_H

#include "meridian/tp.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tp *tp;

/* No trace is needed for SQL that makes its rows itself. */
static inline void open_empty(void)
{
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_msg(tp_finish(tp) == 0, "%s", tp_error(tp));
}

static inline void close_it(void)
{
    tp_close(tp);
}

/* The summary of all metrics of one text; NULL: it fails. */
static inline char *summarize(const char *text)
{
    const struct tp_spec spec = {.bytes = text, .len = strlen(text), .format = TP_SPEC_TEXT, .name = "spec"};
    const struct tp_summary what = {.specs = &spec, .n_specs = 1, .all_metrics = true, .text = true};
    void *bytes;
    size_t len;
    int rc = tp_summarize(tp, &what, &bytes, &len);
    ck_assert_int_eq(rc == 0, bytes != NULL);
    if (rc == 0)
        ck_assert_uint_eq(len, strlen(bytes));
    return bytes;
}

static inline int64_t count(const char *sql)
{
    struct tp_result *r;
    ck_assert_msg(tp_query(tp, sql, &r) == 0, "%s", tp_error(tp));
    ck_assert_int_eq(tp_step(r), 1);
    int64_t n = tp_int64(r, 0);
    tp_result_close(r);
    return n;
}

#define OUR_TABLES "select count(*) from sqlite_master where name glob '_meridian_summary_*' or name glob '_exp_mat_*'"

#define SQL(text) "query { sql { sql: \"" text "\" } } "

/* A spec of everything at once: shared queries, a template, interned dimensions. */
#define SHARED                                                                                                         \
    "query { id: 's' sql { sql: \"select 'a' as t, 7 as v union all select 'b', 8\" } } "                              \
    "query { id: 'u' inner_query_id: 's' filters { column_name: 'v' op: GREATER_THAN int64_rhs: 7 } } "                \
    "metric_template_spec { id_prefix: 'p' value_columns: ['v', 't2'] dimensions: 't' dimension_uniqueness: UNIQUE "   \
    "query { sql { dependencies { alias: 's' query { inner_query_id: 's' } } sql: 'select t, v, v + 1 as t2 from $s' " \
    "} } "                                                                                                             \
    "interned_dimension_specs { key_column_spec { name: 't' type: STRING } data_column_specs { name: 'v' type: INT64 " \
    "} "                                                                                                               \
    "query { inner_query_id: 's' } } } "                                                                               \
    "metric_spec { id: 'b' value: 'v' query { inner_query_id: 's' } }"

#endif
