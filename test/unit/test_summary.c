/* Trace summaries by the public API: what specs come to, and what is wrong with specs. */
#include "gate.h"
#include "summary_fixture.h"

#include "summary/run/cells.h"
#include "wire/pb_writer.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void open_recording(void)
{
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_msg(tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/linux-sched.pftrace") == 0, "%s", tp_error(tp));
    ck_assert_msg(tp_finish(tp) == 0, "%s", tp_error(tp));
}

/* Takes out the specs, which the summary repeats, and blanks. */
static void squeeze(char *text)
{
    char *to = text;
    bool specs = false;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (strncmp(line, "  specs {", 9) == 0)
            specs = true;
        for (char *p = line; p < end && !specs; p++)
            if (*p != ' ' && *p != '\n')
                *to++ = *p;
        if (strncmp(line, "  }", 3) == 0)
            specs = false;
    }
    *to = '\0';
}

/* Metric "m" over rows with a text, an integer, a double and NULLs. */
#define ROWS                                                                                                           \
    SQL("select 'a' as t, 1 as i, 0.5 as d, null as n, 10 as v, 1.5 as w union all select 'b', 2, 1.5, null, null, "   \
        "2.5 union all select 'c', 0, 2.5, null, null, null")

static const struct {
    const char *spec, *want;
} sums[] = {
    {"", ""},
    {"metric_spec { id: 'm' value: 'v' " ROWS "}", "metric_bundles{bundle_id:\"m\"row{values{double_value:10}}}"},
    /* a row without a value is left out; of a bundle, one without any */
    {"metric_spec { id: 'm' value: 'v' bundle_id: 'b' " ROWS "} metric_spec { id: 'k' value: 'w' bundle_id: 'b' " ROWS
     "}",
     "metric_bundles{bundle_id:\"b\"row{values{double_value:10}values{double_value:1.5}}"
     "row{values{null_value{}}values{double_value:2.5}}}"},
    /* dimensions by what the rows hold */
    {"metric_spec { id: 'm' value: 'w' dimensions: ['t', 'i', 'd', 'n'] " ROWS "}",
     "metric_bundles{bundle_id:\"m\""
     "row{dimension{string_value:\"a\"}dimension{int64_value:1}dimension{double_value:0.5}dimension{null_value{}}"
     "values{double_value:1.5}}"
     "row{dimension{string_value:\"b\"}dimension{int64_value:2}dimension{double_value:1.5}dimension{null_value{}}"
     "values{double_value:2.5}}}"},
    /* in the order of the spec, not of the columns; typed; NULL fits every type */
    {"metric_spec { id: 'm' value: 'v' dimensions_specs { name: 'i' type: BOOLEAN } "
     "dimensions_specs { name: 't' type: STRING } dimensions_specs { name: 'd' type: DOUBLE } "
     "dimensions_specs { name: 'n' type: INT64 } " ROWS "}",
     "metric_bundles{bundle_id:\"m\"row{dimension{bool_value:true}dimension{string_value:\"a\"}"
     "dimension{double_value:0.5}dimension{null_value{}}values{double_value:10}}}"},
    /* an empty bundle id is none */
    {"metric_spec { id: 'm' value: 'v' bundle_id: '' " ROWS "}",
     "metric_bundles{bundle_id:\"m\"row{values{double_value:10}}}"},
    {"metric_spec { id: 'm' value: 'n' " ROWS "}", "metric_bundles{bundle_id:\"m\"}"},
    /* rows that are not unique are nobody's business unless one asks */
    {"metric_spec { id: 'm' value: 'v' dimensions: 't' " SQL("select 'a' as t, 1 as v union all select 'a', 2") "}",
     "metric_bundles{bundle_id:\"m\"row{dimension{string_value:\"a\"}values{double_value:1}}"
     "row{dimension{string_value:\"a\"}values{double_value:2}}}"},
    {"metric_spec { id: 'm' value: 'v' dimensions: 't' dimension_uniqueness: UNIQUE " SQL(
         "select 'a' as t, 1 as v union all select 'a ', 2 union all select 1, 3 union all select 1.0, 4 union all "
         "select null, 5") "}",
     "metric_bundles{bundle_id:\"m\"row{dimension{string_value:\"a\"}values{double_value:1}}"
     "row{dimension{string_value:\"a\"}values{double_value:2}}row{dimension{int64_value:1}values{double_value:3}}"
     "row{dimension{double_value:1}values{double_value:4}}row{dimension{null_value{}}values{double_value:5}}}"},
    /* templates: one bundle, or one each */
    {"metric_template_spec { id_prefix: 'p' value_columns: ['v', 'w'] dimensions: 't' " ROWS "}",
     "metric_bundles{bundle_id:\"p\"row{dimension{string_value:\"a\"}values{double_value:10}values{double_value:1.5}}"
     "row{dimension{string_value:\"b\"}values{null_value{}}values{double_value:2.5}}}"},
    {"metric_template_spec { id_prefix: 'p' value_columns: ['v', 'w'] disable_auto_bundling: true " ROWS "}",
     "metric_bundles{bundle_id:\"p_v\"row{values{double_value:10}}}"
     "metric_bundles{bundle_id:\"p_w\"row{values{double_value:1.5}}row{values{double_value:2.5}}}"},
    /* metrics stand before those of templates */
    {"metric_template_spec { id_prefix: 'p' value_columns: 'v' " ROWS "} metric_spec { id: 'm' value: 'v' " ROWS "}",
     "metric_bundles{bundle_id:\"m\"row{values{double_value:10}}}"
     "metric_bundles{bundle_id:\"p\"row{values{double_value:10}}}"},
    /* a query that two metrics use */
    {"query { id: 's' sql { sql: \"select 7 as v, 8 as w\" } } "
     "metric_spec { id: 'a' value: 'v' query { inner_query_id: 's' } } "
     "metric_spec { id: 'b' value: 'w' query { inner_query_id: 's' } }",
     "metric_bundles{bundle_id:\"a\"row{values{double_value:7}}}"
     "metric_bundles{bundle_id:\"b\"row{values{double_value:8}}}"},
    /* one that no table can hold stays a query */
    {"query { id: 's' sql { sql: \"select 1 as k, 7 as v union all select 'x', 8\" } } "
     "metric_spec { id: 'a' value: 'v' dimensions: 'k' query { inner_query_id: 's' } } "
     "metric_spec { id: 'b' value: 'v' query { inner_query_id: 's' } }",
     "metric_bundles{bundle_id:\"a\"row{dimension{int64_value:1}values{double_value:7}}"
     "row{dimension{string_value:\"x\"}values{double_value:8}}}"
     "metric_bundles{bundle_id:\"b\"row{values{double_value:7}}row{values{double_value:8}}}"},
    /* a preamble that two metrics bring runs once */
    {"metric_spec { id: 'a' value: 'v' query { sql { preamble: 'create perfetto table pre as select 3 as v;' "
     "sql: 'select v from pre' } } } "
     "metric_spec { id: 'b' value: 'v' query { sql { preamble: 'create perfetto table pre as select 3 as v;' "
     "sql: 'select v + 1 as v from pre' } } }",
     "metric_bundles{bundle_id:\"a\"row{values{double_value:3}}}"
     "metric_bundles{bundle_id:\"b\"row{values{double_value:4}}}"},
    /* one that makes its table anew runs again when another has been there meanwhile */
    {"metric_spec { id: 'a' value: 'v' query { sql { sql: 'create or replace perfetto table pre as select 1 as v; "
     "select v from pre' } } } "
     "metric_spec { id: 'b' value: 'v' query { sql { sql: 'create or replace perfetto table pre as select 2 as v; "
     "select v from pre' } } } "
     "metric_spec { id: 'c' value: 'v' query { sql { sql: 'create or replace perfetto table pre as select 1 as v; "
     "select v from pre' } } }",
     "metric_bundles{bundle_id:\"a\"row{values{double_value:1}}}"
     "metric_bundles{bundle_id:\"b\"row{values{double_value:2}}}"
     "metric_bundles{bundle_id:\"c\"row{values{double_value:1}}}"},
    /* interned dimensions: only of keys that rows have */
    {"metric_spec { id: 'm' value: 'v' dimensions: ['t', 'i'] " SQL(
         "select 'a' as t, 5 as i, 1 as v union all select 'b', 6, 2 union all select 'a', 7, 3 union all "
         "select 'z', 8, null union all select null, 9, 4") " interned_dimension_specs { key_column_spec { name: "
                                                            "'t' type: STRING } data_column_specs { name: 'size' "
                                                            "type: INT64 } "
                                                            "data_column_specs { name: 'on' type: BOOLEAN } " SQL(
                                                                "select 'a' as t, 100 as size, 1 as \\\"on\\\" "
                                                                "union all select 'q', 1, 1 union all select null, "
                                                                "null, null "
                                                                "union all select 'z', 1, 0 union all select 'z', "
                                                                "1, 0") "} }",
     "metric_bundles{bundle_id:\"m\""
     "row{dimension{string_value:\"a\"}dimension{int64_value:5}values{double_value:1}}"
     "row{dimension{string_value:\"b\"}dimension{int64_value:6}values{double_value:2}}"
     "row{dimension{string_value:\"a\"}dimension{int64_value:7}values{double_value:3}}"
     "row{dimension{null_value{}}dimension{int64_value:9}values{double_value:4}}"
     "interned_dimension_bundles{"
     "interned_dimension_rows{key_dimension_value{string_value:\"a\"}interned_dimension_values{int64_value:100}"
     "interned_dimension_values{bool_value:true}}"
     "interned_dimension_rows{key_dimension_value{null_value{}}interned_dimension_values{null_value{}}"
     "interned_dimension_values{null_value{}}}}}"},
};

START_TEST(sums_up)
{
    char *got = summarize(sums[_i].spec);
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    squeeze(got);
    ck_assert_str_eq(got, sums[_i].want);
    tp_free(got);
}
END_TEST

/* The whole of one, as docs/summaries.md shows it. */
START_TEST(repeats_the_spec)
{
    char *got =
        summarize("metric_template_spec { id_prefix: 'boot' dimensions_specs { name: 'who' type: STRING } "
                  "value_column_specs { name: 'ms' unit: TIME_MILLIS polarity: LOWER_IS_BETTER display_name: 'x' } "
                  "value_column_specs { name: 'n' custom_unit: 'boots' } dimension_uniqueness: UNIQUE " SQL(
                      "select 'me' as who, 250 as ms, 2 as n") "}");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    ck_assert_str_eq(got, "metric_bundles {\n"
                          "  bundle_id: \"boot\"\n"
                          "  specs {\n"
                          "    id: \"boot_ms\"\n"
                          "    value: \"ms\"\n"
                          "    query {\n"
                          "      sql {\n"
                          "        sql: \"select \\'me\\' as who, 250 as ms, 2 as n\"\n"
                          "      }\n"
                          "    }\n"
                          "    dimensions_specs {\n"
                          "      name: \"who\"\n"
                          "      type: STRING\n"
                          "    }\n"
                          "    dimension_uniqueness: UNIQUE\n"
                          "    bundle_id: \"boot\"\n"
                          "    unit: TIME_MILLIS\n"
                          "    polarity: LOWER_IS_BETTER\n"
                          "  }\n"
                          "  specs {\n"
                          "    id: \"boot_n\"\n"
                          "    value: \"n\"\n"
                          "    query {\n"
                          "      sql {\n"
                          "        sql: \"select \\'me\\' as who, 250 as ms, 2 as n\"\n"
                          "      }\n"
                          "    }\n"
                          "    dimensions_specs {\n"
                          "      name: \"who\"\n"
                          "      type: STRING\n"
                          "    }\n"
                          "    dimension_uniqueness: UNIQUE\n"
                          "    bundle_id: \"boot\"\n"
                          "    custom_unit: \"boots\"\n"
                          "  }\n"
                          "  row {\n"
                          "    dimension {\n"
                          "      string_value: \"me\"\n"
                          "    }\n"
                          "    values {\n"
                          "      double_value: 250\n"
                          "    }\n"
                          "    values {\n"
                          "      double_value: 2\n"
                          "    }\n"
                          "  }\n"
                          "}\n");
    tp_free(got);
}
END_TEST

/* What is wrong is said with the metric and the field. */
static const struct {
    const char *spec, *error;
} faults[] = {
    {"metric_spec { nonsense: 1 }", "spec: 1:"},
    {"metric_spec { value: 'v' " ROWS "}", "spec: metric_spec[0]: id: missing"},
    {"metric_spec { id: 'All' value: 'v' " ROWS "}", "spec: metric 'All': id: reserved"},
    {"metric_spec { id: 'm' " ROWS "}", "spec: metric 'm': value: missing"},
    {"metric_spec { id: 'm' value: 'v' }", "spec: metric 'm': query: missing"},
    {"metric_spec { id: 'm' value: 'x' " ROWS "}", "metric 'm': value: the query has no column 'x'"},
    {"metric_spec { id: 'm' value: 't' " ROWS "}", "metric 'm': value 't': a row has a string"},
    {"metric_spec { id: 'm' value: 'v' " SQL("select x'00' as v") "}", "metric 'm': value 'v': a row has a blob"},
    {"metric_spec { id: 'm' value: 'v' dimensions: 'x' " ROWS "}",
     "metric 'm': dimensions: the query has no column 'x'"},
    {"metric_spec { id: 'm' value: 'v' dimensions: '' " ROWS "}", "spec: metric 'm': dimensions[0]: no name"},
    {"metric_spec { id: 'm' value: 'v' dimensions: 't' dimensions_specs { name: 't' type: STRING } " ROWS "}",
     "spec: metric 'm': dimensions and dimensions_specs exclude each other"},
    {"metric_spec { id: 'm' value: 'v' dimensions_specs { name: 't' } " ROWS "}",
     "spec: metric 'm': dimensions_specs 't': type: missing"},
    {"metric_spec { id: 'm' value: 'v' dimensions_specs { type: STRING } " ROWS "}",
     "spec: metric 'm': dimensions_specs[0]: no name"},
    {"metric_spec { id: 'm' value: 'v' dimensions_specs { name: 't' type: INT64 } " ROWS "}",
     "metric 'm': dimension 't': its type is INT64, and a row has a string"},
    {"metric_spec { id: 'm' value: 'w' dimensions_specs { name: 'i' type: BOOLEAN } " ROWS "}",
     "metric 'm': dimension 'i': its type is BOOLEAN, and a row has 2"},
    {"metric_spec { id: 'm' value: 'v' dimensions: 'b' " SQL("select x'00' as b, 1 as v") "}",
     "metric 'm': dimension 'b': a row has a blob"},
    {"metric_spec { id: 'm' value: 'v' dimensions: 't' dimension_uniqueness: UNIQUE " SQL(
         "select 'a' as t, 1 as v union all select 'a', 2") "}",
     "metric 'm': dimension_uniqueness: UNIQUE"},
    {"metric_spec { id: 'm' value: 'v' dimension_uniqueness: UNIQUE " SQL("select 1 as v union all select 2") "}",
     "metric 'm': dimension_uniqueness: UNIQUE"},
    {"metric_spec { id: 'm' value: 'v' " ROWS "} metric_spec { id: 'm' value: 'w' " ROWS "}",
     "spec: metric 'm': id: defined twice"},
    {"metric_spec { id: 'p_v' value: 'v' " ROWS "} metric_template_spec { id_prefix: 'p' value_columns: 'v' " ROWS "}",
     "spec: metric 'p_v': id: defined twice"},
    {"metric_spec { id: 'm' value: 'v' " SQL("select nope as v") "}", "no such column: nope"},
    {"metric_spec { id: 'm' value: 'v' query { table { table_name: 'nope' } } }", "metric 'm': "},
    {"metric_spec { id: 'm' value: 'v' query { inner_query_id: 'nope' } }", "nope"},
    {"metric_spec { id: 'm' value: 'v' query { sql { sql: 'select 1 as v' column_names: 'u' } } }",
     "no such column: u"},
    {"metric_spec { id: 'm' value: 'v' query { sql { preamble: 'select 2;' sql: 'select 1 as v' } } }",
     "metric 'm': preamble: one of its statements has rows"},
    /* the first failure is told, not that a second try finds half of it done */
    {"query { id: 's' sql { preamble: 'create perfetto table half as select 1 as v; "
     "create perfetto table whole as select nope;' sql: 'select v from half' } } "
     "metric_spec { id: 'a' value: 'v' query { inner_query_id: 's' } } "
     "metric_spec { id: 'b' value: 'v' query { inner_query_id: 's' } }",
     "no such column: nope"},
    {"metric_spec { id: 'm' value: 'v' dimensions: ['t', 'i', 't'] " ROWS "}",
     "spec: metric 'm': dimensions 't': named twice"},
    {"metric_spec { id: 'm\\377' value: 'v' " ROWS "}", "spec: id: not UTF-8"},
    {"metric_template_spec { value_columns: 'v' " ROWS "}", "spec: metric_template_spec[0]: id_prefix: missing"},
    {"metric_template_spec { id_prefix: 'p' " ROWS "}", "spec: template 'p': value_columns: missing"},
    {"metric_template_spec { id_prefix: 'p' value_columns: 'v' value_column_specs { name: 'w' } " ROWS "}",
     "spec: template 'p': value_columns and value_column_specs exclude each other"},
    {"metric_template_spec { id_prefix: 'p' value_column_specs { unit: COUNT } " ROWS "}",
     "spec: template 'p': value_column_specs[0]: no name"},
    /* bundles */
    {"metric_spec { id: 'a' value: 'v' bundle_id: 'b' " ROWS
     "} metric_spec { id: 'c' value: 'v' bundle_id: 'b' " SQL("select 1 as v") "}",
     "metric 'c': query: not that of 'a', the first of the bundle 'b'"},
    {"metric_spec { id: 'a' value: 'v' bundle_id: 'b' query { sql { sql: 'create perfetto table pre as select 1 as v; "
     "select v from pre' } } } "
     "metric_spec { id: 'c' value: 'v' bundle_id: 'b' query { sql { sql: 'create or replace perfetto table pre as "
     "select 2 as v; select v from pre' } } }",
     "metric 'c': query: not that of 'a', the first of the bundle 'b'"},
    {"metric_spec { id: 'a' value: 'v' bundle_id: 'b' dimensions: 't' " ROWS
     "} metric_spec { id: 'c' value: 'v' bundle_id: 'b' dimensions: 'd' " ROWS "}",
     "bundle 'b': metric 'c': dimensions: not those of 'a'"},
    {"metric_spec { id: 'a' value: 'v' bundle_id: 'b' dimension_uniqueness: UNIQUE " ROWS
     "} metric_spec { id: 'c' value: 'v' bundle_id: 'b' " ROWS "}",
     "bundle 'b': metric 'c': dimension_uniqueness: not that of 'a'"},
    {"metric_spec { id: 'a' value: 'v' bundle_id: 'b' " ROWS "} metric_spec { id: 'b' value: 'v' " ROWS "}",
     "bundle 'b': metric 'b': bundle_id: the bundle is also the id"},
/* interned dimensions */
#define INTERNED(rest)                                                                                                 \
    "metric_spec { id: 'm' value: 'v' dimensions: 't' " ROWS " interned_dimension_specs { " rest " } }"
#define KEY "key_column_spec { name: 't' type: STRING } "
    {INTERNED(ROWS), "spec: metric 'm': interned_dimension_specs[0]: key_column_spec: missing"},
    {INTERNED("key_column_spec { name: 't' } " ROWS), "key_column_spec 't': type: missing"},
    {INTERNED("key_column_spec { name: 'd' type: DOUBLE } " ROWS),
     "key_column_spec 'd': not a dimension of the metric"},
    {INTERNED(KEY), "interned_dimension_specs[0]: query: missing"},
    {INTERNED(KEY "data_column_specs { name: 't' type: STRING } " ROWS), "data_column_specs 't': named twice"},
    {INTERNED(KEY ROWS " } interned_dimension_specs { " KEY ROWS),
     "interned_dimension_specs[1]: key_column_spec 't': named twice"},
    {INTERNED(KEY SQL("select 1 as u")), "metric 'm': interned_dimension_specs[0]: the query has no column 't'"},
    {INTERNED(KEY SQL("select 'a' as t union all select 'a'")),
     "metric 'm': interned_dimension_specs[0]: key 't': two rows have the same"},
    {INTERNED(KEY "data_column_specs { name: 's' type: STRING } " SQL("select 'a' as t, 1 as s")),
     "metric 'm': interned_dimension_specs[0]: column 's': its type is STRING, and a row has an integer"},
    {INTERNED(KEY SQL("select nope as t")), "metric 'm': interned_dimension_specs[0]: "},
    /* queries */
    {"query { sql { sql: 'select 1' } }", "spec: query[0]"},
    {"query { id: 'q' sql { sql: 'select 1' } } query { id: 'q' sql { sql: 'select 1' } }", "spec: query[1]"},
};

START_TEST(says_what_is_wrong)
{
    char *got = summarize(faults[_i].spec);
    ck_assert_msg(got == NULL, "%s: no error\n%s", faults[_i].spec, got);
    ck_assert_msg(strstr(tp_error(tp), faults[_i].error) != NULL, "%s\nwanted: %s", tp_error(tp), faults[_i].error);
}
END_TEST

/* Bytes of a trace that are no text would make the whole summary unreadable for strict readers. */
START_TEST(texts_are_utf8)
{
    static const char spec[] = "metric_spec { id: 'm' value: 'v' dimensions: 't' " SQL(
        "select cast(x'61ff62' as text) as t, 1 as v") "} query { id: 'meta' sql { sql: \"select cast(x'6bff' as text) "
                                                       "as key, cast(x'c3' as text) as value\" } }";
    const struct tp_spec from = {.bytes = spec, .len = strlen(spec), .format = TP_SPEC_TEXT};
    const struct tp_summary what = {.specs = &from, .n_specs = 1, .all_metrics = true, .metadata_query = "meta"};
    void *bytes;
    size_t len;
    ck_assert_msg(tp_summarize(tp, &what, &bytes, &len) == 0, "%s", tp_error(tp));
    ck_assert_ptr_nonnull(memmem(bytes, len,
                                 "a\xef\xbf\xbd"
                                 "b",
                                 5));
    ck_assert_ptr_nonnull(memmem(bytes, len, "\x0a\x04k\xef\xbf\xbd\x12\x03\xef\xbf\xbd", 11));
    tp_free(bytes);
}
END_TEST

/* Many metrics with many dimensions: the work grows with the spec, not with their product. */
START_TEST(large_templates)
{
    enum { N = 100000 };
    char *text = malloc(64 * N), *at = text;
    at += sprintf(at, "metric_template_spec { id_prefix: 'p' " SQL("select 1 as v"));
    for (int i = 0; i < N; i++)
        at += sprintf(at, "dimensions: 'd%d' value_columns: 'v%d' ", i, i);
    strcpy(at, "}");
    clock_t start = clock();
    ck_assert_ptr_null(summarize(text));
    ck_assert_msg(strstr(tp_error(tp), "spec: metric 'p_v0': dimensions: more than 2000") != NULL, "%s", tp_error(tp));
    ck_assert_int_lt((clock() - start) / CLOCKS_PER_SEC, 20);
    free(text);
}
END_TEST

/* Many metrics of a bundle that say the same long query: it is not made for each of them. */
START_TEST(large_bundles)
{
    enum { N = 5000, LONG = 1 << 20 };
    char *text = malloc(LONG + 256 * N), *at = text;
    at += sprintf(at, "query { id: 's' sql { sql: 'select 1 as v");
    for (int i = 0; i < LONG / 8; i++)
        at += sprintf(at, " + 0 * 1");
    at += sprintf(at, "' } } ");
    for (int i = 0; i < N; i++)
        at += sprintf(at, "metric_spec { id: 'm%d' value: 'v' bundle_id: 'b' query { inner_query_id: 's' } } ", i);
    clock_t start = clock();
    ck_assert_ptr_null(summarize(text)); /* too deep for SQLite */
    ck_assert_int_lt((clock() - start) / CLOCKS_PER_SEC, 20);
    free(text);
}
END_TEST

/* ---- choosing ---- */

static char *choose(const struct tp_spec *specs, size_t n_specs, const char *const *metrics, size_t n,
                    const char *metadata_query)
{
    const struct tp_summary what = {.specs = specs,
                                    .n_specs = n_specs,
                                    .metrics = metrics,
                                    .n_metrics = n,
                                    .metadata_query = metadata_query,
                                    .text = true};
    void *bytes;
    size_t len;
    if (tp_summarize(tp, &what, &bytes, &len) == 0)
        squeeze(bytes);
    return bytes;
}

#define TEXT_SPEC(text)                                                                                                \
    {                                                                                                                  \
        .bytes = (text), .len = strlen(text)                                                                           \
    }

START_TEST(chooses_from_several_specs)
{
    const struct tp_spec specs[] = {
        TEXT_SPEC("metric_spec { id: 'a' value: 'v' query { inner_query_id: 'q' } } metric_spec { id: 'broken' }"),
        TEXT_SPEC(
            "query { id: 'q' sql { sql: 'select 5 as v' } } "
            "metric_template_spec { id_prefix: 'b' value_columns: ['v', 'no_such'] query { inner_query_id: 'q' } } "
            "query { id: 'meta' sql { sql: \"select 'x' as key, 'y' as value union all select 'z', null\" } } "
            "query { id: 'other' sql { sql: 'select 1 as key, 2 as value' } } "
            "query { id: 'three' sql { sql: 'select 1 as key, 2 as value, 3 as more' } }"),
    };
    static const char *const ids[] = {"b_v", "a", "b_v"}, *const all[] = {"a", "all"}, *const none[] = {"a", "nobody"};
    char *got = choose(specs, 2, ids, 3, "meta");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    ck_assert_str_eq(got, "metric_bundles{bundle_id:\"b\"row{values{double_value:5}}}"
                          "metric_bundles{bundle_id:\"a\"row{values{double_value:5}}}metadata{key:\"x\"value:\"y\"}");
    tp_free(got);
    got = choose(specs, 2, NULL, 0, NULL);
    ck_assert_str_eq(got, "");
    tp_free(got);
    ck_assert_ptr_null(choose(specs, 2, all, 2, NULL));
    ck_assert_str_eq(tp_error(tp), "'all' selects all metrics; pass it alone");
    ck_assert_ptr_null(choose(specs, 2, none, 2, NULL));
    ck_assert_str_eq(tp_error(tp), "metric 'nobody': no spec has it");
    ck_assert_ptr_null(choose(specs, 2, NULL, 0, "nobody"));
    ck_assert_str_eq(tp_error(tp), "metadata query 'nobody': no spec has it");
    ck_assert_ptr_null(choose(specs, 2, NULL, 0, "other"));
    ck_assert_str_eq(tp_error(tp), "metadata query 'other': the key of a row is not a string");
    ck_assert_ptr_null(choose(specs, 2, NULL, 0, "three"));
    ck_assert_str_eq(tp_error(tp),
                     "metadata query 'three': the query has 3 columns; metadata are the columns key and value");
}
END_TEST

START_TEST(leaves_no_table_behind)
{
    char *got = summarize("query { id: 's' sql { sql: 'select 7 as v' } } "
                          "metric_spec { id: 'a' value: 'v' query { inner_query_id: 's' } } "
                          "metric_spec { id: 'b' value: 'v' query { inner_query_id: 's' } }");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    tp_free(got);
    ck_assert_int_eq(count(OUR_TABLES), 0);
    ck_assert_ptr_null(summarize("query { id: 's' sql { sql: 'select 7 as v' } } "
                                 "metric_spec { id: 'a' value: 'v' query { inner_query_id: 's' } } "
                                 "metric_spec { id: 'b' value: 'w' query { inner_query_id: 's' } }"));
    ck_assert_str_eq(tp_error(tp), "metric 'b': value: the query has no column 'w'");
    ck_assert_int_eq(count(OUR_TABLES), 0);
}
END_TEST

/* A query runs once for all metrics of a bundle, and once for all that use it by its id. */
START_TEST(runs_a_query_once)
{
    size_t n = 0;
    /* Each run would give another number. */
    char *got = summarize("query { id: 'dice' sql { sql: 'select random() as v' } } "
                          "metric_template_spec { id_prefix: 'p' value_columns: ['v', 'u'] query { sql { "
                          "sql: 'select x as v, x as u from (select random() as x limit 1)' } } } "
                          "metric_spec { id: 'a' value: 'v' query { inner_query_id: 'dice' } } "
                          "metric_spec { id: 'b' value: 'v' query { inner_query_id: 'dice' } }");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    squeeze(got);
    char value[4][64];
    for (char *p = got; (p = strstr(p, "double_value:")) && n < 4; n++) {
        p += strlen("double_value:");
        snprintf(value[n], sizeof value[n], "%.*s", (int)strcspn(p, "}"), p);
    }
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(value[0], value[1]);
    ck_assert_str_eq(value[2], value[3]);
    tp_free(got);
}
END_TEST

START_TEST(again_and_after_a_reset)
{
    static const char spec[] =
        "metric_spec { id: 'a' value: 'v' query { sql { preamble: 'create perfetto table again as select 3 as v;' "
        "sql: 'select v from again' } } }";
    for (int i = 0; i < 3; i++) {
        char *got = summarize(spec);
        ck_assert_msg(got != NULL, "%s", tp_error(tp));
        tp_free(got);
        if (i == 1)
            ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    }
}
END_TEST

START_TEST(binary_in_binary_out)
{
    struct pb_writer w = {0};
    size_t metric = pb_begin(&w, 1);
    pb_put_str(&w, 1, "m");
    pb_put_str(&w, 3, "v");
    size_t query = pb_begin(&w, 4), sql = pb_begin(&w, 3);
    pb_put_str(&w, 1, "select 2 as v");
    pb_end(&w, sql);
    pb_end(&w, query);
    pb_end(&w, metric);
    const struct tp_spec spec = {.bytes = w.p, .len = w.n}; /* found to be binary */
    const struct tp_summary what = {.specs = &spec, .n_specs = 1, .all_metrics = true};
    static const uint8_t row[] = {0x12, 0x8f, 0x80, 0x80, 0, 0x0a, 0x89, 0x80, 0x80, 0,
                                  0x11, 0,    0,    0,    0, 0,    0,    0,    0x40};
    void *bytes;
    size_t len;
    ck_assert_msg(tp_summarize(tp, &what, &bytes, &len) == 0, "%s", tp_error(tp));
    ck_assert_uint_gt(len, sizeof row);
    ck_assert_mem_eq((uint8_t *)bytes + len - 14, row + sizeof row - 14, 14);
    tp_free(bytes);
    for (size_t cut = 0; cut < w.n; cut++) { /* damage is told, or is a smaller spec */
        const struct tp_spec part = {.bytes = w.p, .len = cut, .format = TP_SPEC_BINARY};
        const struct tp_summary some = {.specs = &part, .n_specs = 1, .all_metrics = true};
        if (tp_summarize(tp, &some, &bytes, &len) < 0)
            ck_assert_str_ne(tp_error(tp), "");
        tp_free(bytes);
    }
    pb_writer_free(&w);
}
END_TEST

/* The numbers written row by row are those of the schema. */
START_TEST(field_numbers)
{
    static const struct {
        const ProtobufCMessageDescriptor *message;
        const char *field;
        unsigned number;
    } fields[] = {
        {&mrd__trace_summary__descriptor, "metadata", SUMMARY_METADATA},
        {&mrd__trace_summary__descriptor, "metric_bundles", SUMMARY_BUNDLES},
        {&mrd__trace_summary__metadata__descriptor, "key", METADATA_KEY},
        {&mrd__trace_summary__metadata__descriptor, "value", METADATA_VALUE},
        {&mrd__trace_metric_v2_bundle__descriptor, "bundle_id", BUNDLE_ID},
        {&mrd__trace_metric_v2_bundle__descriptor, "row", BUNDLE_ROW},
        {&mrd__trace_metric_v2_bundle__descriptor, "specs", BUNDLE_SPECS},
        {&mrd__trace_metric_v2_bundle__descriptor, "interned_dimension_bundles", BUNDLE_INTERNED},
        {&mrd__trace_metric_v2_bundle__row__descriptor, "values", ROW_VALUES},
        {&mrd__trace_metric_v2_bundle__row__descriptor, "dimension", ROW_DIMENSION},
        {&mrd__trace_metric_v2_bundle__row__value__descriptor, "null_value", VALUE_NULL},
        {&mrd__trace_metric_v2_bundle__row__value__descriptor, "double_value", VALUE_DOUBLE},
        {&mrd__trace_metric_v2_bundle__row__dimension__descriptor, "string_value", DIMENSION_STRING},
        {&mrd__trace_metric_v2_bundle__row__dimension__descriptor, "int64_value", DIMENSION_INT64},
        {&mrd__trace_metric_v2_bundle__row__dimension__descriptor, "double_value", DIMENSION_DOUBLE},
        {&mrd__trace_metric_v2_bundle__row__dimension__descriptor, "null_value", DIMENSION_NULL},
        {&mrd__trace_metric_v2_bundle__row__dimension__descriptor, "bool_value", DIMENSION_BOOL},
        {&mrd__trace_metric_v2_bundle__interned_dimension_bundle__descriptor, "interned_dimension_rows", INTERNED_ROWS},
        {&mrd__trace_metric_v2_bundle__interned_dimension_bundle__interned_dimension_row__descriptor,
         "key_dimension_value", INTERNED_KEY},
        {&mrd__trace_metric_v2_bundle__interned_dimension_bundle__interned_dimension_row__descriptor,
         "interned_dimension_values", INTERNED_VALUES},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const ProtobufCFieldDescriptor *f =
            protobuf_c_message_descriptor_get_field_by_name(fields[i].message, fields[i].field);
        ck_assert_msg(f && f->id == fields[i].number, "%s", fields[i].field);
    }
}
END_TEST

/* ---- memory ---- */

/* With every call of the allocator failing once: an error, and nothing is left behind. */
START_TEST(without_memory_summaries)
{
    char *want = summarize(SHARED);
    ck_assert_msg(want != NULL, "%s", tp_error(tp));
    for (unsigned k = 1;; k += 1 + k / 100) {
        struct gate g = {.fail_at = k};
        alloc_set_gate(gate_open, &g);
        char *got = summarize(SHARED);
        alloc_set_gate(NULL, NULL);
        if (got)
            ck_assert_str_eq(got, want); /* what failed was not needed */
        tp_free(got);
        if (g.calls < k)
            break;
    }
    char *got = summarize(SHARED);
    ck_assert_str_eq(got, want);
    tp_free(got);
    tp_free(want);
    ck_assert_int_eq(count(OUR_TABLES), 0);
}
END_TEST

/* ---- over a recording ---- */

START_TEST(of_a_recording)
{
    char *got =
        summarize("metric_spec { id: 'ran' value: 'n' dimensions_specs { name: 'thread' type: STRING } "
                  "dimension_uniqueness: UNIQUE query { table { table_name: 'sched_with_thread_process' "
                  "module_name: 'sched.with_context' } filters { column_name: 'thread_name' op: EQUAL "
                  "string_rhs: 'rcu_preempt' string_rhs: 'nobody' } group_by { column_names: 'thread_name' "
                  "aggregates { op: COUNT result_column_name: 'n' } } select_columns { column_name: 'thread_name' "
                  "alias: 'thread' } select_columns { column_name: 'n' } } }");
    ck_assert_msg(got != NULL, "%s", tp_error(tp));
    squeeze(got);
    char want[256];
    snprintf(want, sizeof want,
             "metric_bundles{bundle_id:\"ran\"row{dimension{string_value:\"rcu_preempt\"}values{double_value:%lld}}}",
             (long long)count("select count(*) from sched join thread using (utid) where name = 'rcu_preempt'"));
    ck_assert_str_eq(got, want);
    tp_free(got);
}
END_TEST

static void *interrupt_it(void *ctx)
{
    for (int i = 0; i < 200; i++) {
        usleep(10000);
        tp_interrupt(ctx);
    }
    return NULL;
}

START_TEST(can_be_interrupted)
{
    pthread_t t;
    ck_assert_int_eq(pthread_create(&t, NULL, interrupt_it, tp), 0);
    ck_assert_ptr_null(
        summarize("metric_spec { id: 'm' value: 'v' " SQL("with recursive n(i) as (select 1 union all select i + 1 "
                                                          "from n) select count(*) as v from n where i < 0") "}"));
    ck_assert_msg(strstr(tp_error(tp), "interrupted") != NULL, "%s", tp_error(tp));
    ck_assert_int_eq(pthread_cancel(t), 0);
    pthread_join(t, NULL);
    tp_interrupt_clear(tp);
    ck_assert_int_eq(count("select 5"), 5);
}
END_TEST

START_TEST(out_of_order)
{
    const struct tp_summary nothing = {0};
    struct tp_summarizer *s;
    struct tp *t;
    void *bytes;
    size_t len;
    ck_assert_int_eq(tp_open(&t, NULL), 0);
    ck_assert_int_eq(tp_summarize(t, &nothing, &bytes, &len), TP_INVALID);
    ck_assert_ptr_null(bytes);
    ck_assert_int_eq(tp_summarizer_open(t, &s), TP_INVALID);
    ck_assert_ptr_null(s);
    tp_close(t);
}
END_TEST

Suite *summary_suite(void);
Suite *summary_suite(void)
{
    Suite *s = suite_create("summary");
    TCase *t = tcase_create("specs");
    tcase_add_checked_fixture(t, open_empty, close_it);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, sums_up, 0, sizeof sums / sizeof *sums);
    tcase_add_loop_test(t, says_what_is_wrong, 0, sizeof faults / sizeof *faults);
    tcase_add_test(t, repeats_the_spec);
    tcase_add_test(t, texts_are_utf8);
    tcase_add_test(t, large_templates);
    tcase_add_test(t, large_bundles);
    tcase_add_test(t, chooses_from_several_specs);
    tcase_add_test(t, leaves_no_table_behind);
    tcase_add_test(t, runs_a_query_once);
    tcase_add_test(t, again_and_after_a_reset);
    tcase_add_test(t, binary_in_binary_out);
    tcase_add_test(t, field_numbers);
    tcase_add_test(t, can_be_interrupted);
    tcase_add_test(t, out_of_order);
    tcase_add_test(t, without_memory_summaries);
    suite_add_tcase(s, t);
    t = tcase_create("recording");
    tcase_add_checked_fixture(t, open_recording, close_it);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, of_a_recording);
    suite_add_tcase(s, t);
    return s;
}
