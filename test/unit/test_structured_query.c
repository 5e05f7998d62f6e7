/* Tests structured queries by their rows: specs in text, run over a recording of track events and over rows of their
 * own; and what is refused, by the words of the error. */
#include "structured_query_fixture.h"

#include "base/alloc.h"

/* ---- rows ---- */

/* Spans of two groups, and moments, that cases share. */
#define SPANS                                                                                                          \
    "query { id: 'spans' sql { sql: \"WITH t(id, ts, dur, name, grp) AS (VALUES (1, 0, 10, 'a', 1), (2, 5, 10, 'b', "  \
    "2), (3, 20, 10, 'c', 1), (4, 40, 5, NULL, 2)) SELECT * FROM t\" } }\n"
#define WINDOWS                                                                                                        \
    "query { id: 'windows' sql { sql: \"WITH t(id, ts, dur, grp) AS (VALUES (7, 8, 4, 1), (8, 10, 15, 1), (9, 41, 2, " \
    "2)) SELECT * FROM t\" } }\n"

static const struct row_case {
    const char *name, *spec, *rows;
} row_cases[] = {
    /* sources */
    {"table", Q("table { table_name: 'slice' } select_columns { column_name_or_expression: 'id' } limit: 3"),
     "id;0;1;2"},
    {"table of a module",
     Q("table { table_name: 'thread_slice' module_name: 'slices.with_context' } filters { column_name: 'id' op: EQUAL "
       "int64_rhs: 1 } select_columns { column_name: 'name' } select_columns { column_name: 'dur' alias: 'd' }"),
     "name,d;plan,426"},
    {"sql", Q("sql { sql: 'SELECT 1 AS a, 2 AS b' }"), "a,b;1,2"},
    {"sql, columns", Q("sql { sql: 'SELECT 1 AS a, 2 AS b' column_names: ['b'] }"), "b;2"},
    {"sql, statements before the last",
     Q("sql { sql: ';; CREATE OR REPLACE PERFETTO TABLE sq_test_t AS SELECT 5 AS x; ; SELECT x + 1 AS y FROM "
       "sq_test_t; "
       "-- the end' }"),
     "y;6"},
    {"sql, a preamble",
     Q("sql { sql: 'SELECT f_of_spec() AS y;' preamble: '-- of\\nCREATE OR REPLACE PERFETTO FUNCTION f_of_spec() "
       "RETURNS INT AS SELECT 9; /* open' }"),
     "y;9"},
    {"sql, comments that hide",
     Q("sql { sql: 'SELECT 1 AS x -- ) no /* end' } filters { column_name: 'x' op: EQUAL "
       "int64_rhs: 1 }"),
     "x;1"},
    {"sql, dependencies",
     SPANS Q(
         "sql { sql: \"SELECT a.name, '$spans' AS s FROM $spans AS a JOIN $one USING (id)\" dependencies { alias: "
         "'spans' query { inner_query_id: 'spans' } } dependencies { alias: 'one' query { id: 'one' inner_query_id: "
         "'spans' filters { column_name: 'id' op: LESS_THAN int64_rhs: 2 } } } }"),
     "name,s;a,$spans"},
    {"sql, two dependencies on one table",
     Q("sql { sql: 'SELECT count(*) AS n FROM $a JOIN $b ON $a.parent_id = $b.id' dependencies { alias: 'a' query { "
       "table { "
       "table_name: 'slice' } } } dependencies { alias: 'b' query { table { table_name: 'slice' } } } }"),
     "n;90"},
    {"simple slices",
     Q("simple_slices { slice_name_glob: 'pl*' thread_name_glob: 'worker [1]' } group_by { column_names: "
       "['slice_name', "
       "'thread_name'] aggregates { op: COUNT result_column_name: 'n' } }"),
     "slice_name,thread_name,n;plan,worker 1,23"},
    {"inner query", Q("inner_query { inner_query { sql { sql: 'SELECT 3 AS x' } } }"), "x;3"},
    {"inner query by id", SPANS Q("inner_query_id: 'spans' limit: 1"), "id,ts,dur,name,grp;1,0,10,a,1"},
    {"time range", Q("experimental_time_range { mode: STATIC ts: 5 dur: -1 }"), "id,ts,dur;0,5,-1"},
    {"time range of the trace", Q("experimental_time_range { mode: DYNAMIC }"),
     "id,ts,dur;0,15677422740951,1196465711"},
    {"time range, half of it", Q("experimental_time_range { mode: DYNAMIC ts: 1 }"), "id,ts,dur;0,1,1196465711"},

    /* filters */
    {"operators",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'dur' op: GREATER_THAN_EQUAL double_rhs: 5.5 } filters { "
             "column_name: 'ts' op: LESS_THAN_EQUAL int64_rhs: 5 } filters { column_name: 'name' op: NOT_EQUAL "
             "string_rhs: 'a' } select_columns { column_name_or_expression: 'id' }"),
     "id;2"},
    {"values are alternatives, filters are not",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'name' op: GLOB string_rhs: ['[ab]', 'c*'] } filters { "
             "column_name: 'grp' op: EQUAL int64_rhs: [1, 7] } select_columns { column_name: 'id' }"),
     "id;1;3"},
    {"equal to one of many",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'name' op: EQUAL string_rhs: ['b', "
             "'x', 'a'] } select_columns { column_name: 'id' }"),
     "id;1;2"},
    {"null",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'name' op: IS_NULL } select_columns { column_name: "
             "'id' }"),
     "id;4"},
    {"not null",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'name' op: IS_NOT_NULL } group_by { aggregates "
             "{ op: COUNT result_column_name: 'n' } }"),
     "n;3"},
    {"quotes are text",
     Q("sql { sql: \"SELECT 'it''s' AS x\" } filters { column_name: 'x' op: EQUAL string_rhs: "
       "\"it's\" }"),
     "x;it's"},
    {"no way out of a text",
     Q("sql { sql: \"SELECT 'a' AS x\" } filters { column_name: 'x' op: EQUAL string_rhs: \"' "
       "OR 1 OR x = '\" }"),
     "x"},
    {"keywords as names",
     Q("sql { sql: 'SELECT 1 AS \"order\", 2 AS \"a`b c\"' } filters { column_name: 'order' op: "
       "EQUAL int64_rhs: 1 } order_by { ordering_specs { column_name: 'order' } }"),
     "order,a`b c;1,2"},
    {"an expression for a column",
     SPANS Q(
         "inner_query_id: 'spans' filters { column_name: 'ts + dur' op: GREATER_THAN int64_rhs: 30 } select_columns "
         "{ column_name_or_expression: 'ts * 2 -- twice' alias: 'x' } select_columns { column_name_or_expression: "
         "'NULL' alias: 'y' }"),
     "x,y;80,-"},
    {"filter groups",
     SPANS Q(
         "inner_query_id: 'spans' experimental_filter_group { op: AND groups { op: OR filters { column_name: 'id' "
         "op: EQUAL int64_rhs: 2 } filters { column_name: 'id' op: EQUAL int64_rhs: 3 } sql_expressions: 'id = 4 OR "
         "id = 1' } sql_expressions: 'grp = 2 OR grp = 3' } select_columns { column_name: 'id' }"),
     "id;2;4"},
    {"a filter group goes before filters",
     SPANS Q("inner_query_id: 'spans' filters { column_name: 'id' op: EQUAL int64_rhs: 1 } experimental_filter_group { "
             "op: OR filters { column_name: 'id' op: EQUAL int64_rhs: 2 } } select_columns { column_name: 'id' }"),
     "id;2"},

    /* groups, columns, order */
    {"aggregates",
     SPANS Q(
         "inner_query_id: 'spans' group_by { column_names: 'grp' aggregates { op: COUNT column_name: '' "
         "result_column_name: 'n' } "
         "aggregates { op: COUNT column_name: 'name' result_column_name: 'names' } aggregates { op: SUM column_name: "
         "'dur' result_column_name: 'sum' } aggregates { op: MIN column_name: 'ts' result_column_name: 'min' } "
         "aggregates { op: MAX column_name: 'ts' result_column_name: 'max' } aggregates { op: MEAN column_name: "
         "'dur' result_column_name: 'mean' } } order_by { ordering_specs { column_name: 'grp' } }"),
     "grp,n,names,sum,min,max,mean;1,2,2,20,0,20,10;2,2,1,15,5,40,7.5"},
    {"more aggregates",
     SPANS Q(
         "inner_query_id: 'spans' group_by { aggregates { op: MEDIAN column_name: 'id' result_column_name: 'med' } "
         "aggregates { op: PERCENTILE column_name: 'id' percentile: 25 result_column_name: 'p25' } aggregates { op: "
         "DURATION_WEIGHTED_MEAN column_name: 'ts' result_column_name: 'dwm' } aggregates { op: COUNT_DISTINCT "
         "column_name: 'grp' result_column_name: 'd' } aggregates { op: CUSTOM custom_sql_expression: "
         "'max(dur) - min(dur)' result_column_name: 'c' } }"),
     "med,p25,dwm,d,c;2.5,1.75,12.8571,2,5"},
    {"groups without aggregates", SPANS Q("inner_query_id: 'spans' group_by { column_names: 'grp' }"), "grp;1;2"},
    {"columns of a group are chosen and renamed, not moved",
     SPANS Q("inner_query_id: 'spans' group_by { column_names: ['grp', 'dur'] aggregates { op: COUNT "
             "result_column_name: 'n' } aggregates { op: SUM column_name: 'ts' result_column_name: 's' } } "
             "select_columns { column_name_or_expression: 'n' alias: 'count' } select_columns { column_name: 'grp' } "
             "order_by { ordering_specs { column_name: 'count' direction: DESC } }"),
     "grp,count;1,2;2,1;2,1"},
    {"order and limit",
     SPANS Q("inner_query_id: 'spans' select_columns { column_name: 'id' } order_by { ordering_specs { column_name: "
             "'grp' direction: DESC } ordering_specs { column_name: 'ts' direction: ASC } } limit: 2 offset: 1"),
     "id;4;1"},
    {"an inner order with a limit holds",
     SPANS Q("inner_query { inner_query_id: 'spans' order_by { ordering_specs { column_name: 'ts' direction: DESC } } "
             "limit: 2 } group_by { aggregates { op: SUM column_name: 'id' result_column_name: 's' } }"),
     "s;7"},

    /* several queries */
    {"join",
     SPANS WINDOWS Q("experimental_join { type: INNER left_query { inner_query_id: 'spans' } right_query { "
                     "inner_query_id: 'windows' select_columns { column_name: 'grp' alias: 'g' } select_columns "
                     "{ column_name: 'ts' alias: 'w' } } equality_columns { left_column: 'grp' right_column: 'g' "
                     "} } select_columns { column_name: 'id' } select_columns { column_name: 'w' } order_by { "
                     "ordering_specs { column_name: 'id' } ordering_specs { column_name: 'w' } }"),
     "id,w;1,8;1,10;2,41;3,8;3,10;4,41"},
    {"join of an expression in a table's place",
     Q("experimental_join { left_query { table { table_name: '(SELECT 1 AS x) AS p JOIN (SELECT 2 AS y) AS q' } } "
       "right_query { sql { sql: 'SELECT 1 AS z' } } equality_columns { left_column: 'x' right_column: 'z' } }"),
     "x,y,z;1,2,1"},
    {"join of a query with itself, left",
     SPANS Q("experimental_join { type: LEFT left_query { inner_query_id: 'spans' } right_query { inner_query_id: "
             "'spans' } freeform_condition { left_query_alias: 'a' right_query_alias: 'b' sql_expression: 'b.ts > a.ts "
             "AND b.grp = a.grp' } } select_columns { column_name: 'id' } select_columns { column_name_or_expression: "
             "'\"name:1\" IS NULL' alias: 'x' } order_by { ordering_specs { column_name: 'id' } }"),
     "id,x;1,0;2,1;3,1;4,1"},
    {"union",
     SPANS Q("experimental_union { queries { inner_query_id: 'spans' select_columns { column_name: 'grp' } } "
             "queries { sql { sql: 'SELECT 2 AS grp UNION SELECT 3' } } } order_by { ordering_specs { "
             "column_name: 'grp' } }"),
     "grp;1;2;3"},
    {"union all",
     SPANS Q("experimental_union { use_union_all: true queries { inner_query_id: 'spans' limit: 1 } queries "
             "{ inner_query_id: 'spans' limit: 1 } }"),
     "id,ts,dur,name,grp;1,0,10,a,1;1,0,10,a,1"},
    {"union by name",
     Q("experimental_union { queries { sql { sql: 'SELECT 1 AS a, 2 AS b' } select_columns { "
       "column_name: 'a' } select_columns { column_name: 'b' } } queries { sql { sql: 'SELECT 4 AS x, 3 "
       "AS a' } select_columns { column_name: 'x' alias: 'b' } select_columns { column_name: 'a' } } }"),
     "a,b;1,2;3,4"},
    {"added columns",
     SPANS WINDOWS Q(
         "experimental_add_columns { core_query { inner_query_id: 'spans' select_columns { column_name: 'id' "
         "} select_columns { column_name: 'name' } } input_query { inner_query_id: 'windows' } "
         "input_columns { column_name_or_expression: 'ts' alias: 'w' } input_columns { "
         "column_name_or_expression: 'grp' } freeform_condition { left_query_alias: 'core' "
         "right_query_alias: 'input' sql_expression: 'core.id + 6 = input.id' } }"),
     "id,name,w,grp;1,a,8,1;2,b,10,1;3,c,41,2;4,-,-,-"},
    {"all columns added",
     SPANS Q("experimental_add_columns { core_query { inner_query_id: 'spans' select_columns { "
             "column_name: 'id' } } input_query { sql { sql: 'SELECT 3 AS k, 4 AS v' } } "
             "input_columns { column_name_or_expression: '*' } equality_columns { left_column: 'id' "
             "right_column: 'k' } } filters { column_name: 'v' op: IS_NOT_NULL }"),
     "id,k,v;3,3,4"},
    {"filter in",
     SPANS WINDOWS Q("experimental_filter_in { base { inner_query_id: 'spans' } match_values { "
                     "inner_query_id: 'windows' filters { column_name: 'id' op: EQUAL int64_rhs: 9 } } "
                     "base_column: 'grp' match_column: 'grp' } select_columns { column_name: 'id' }"),
     "id;2;4"},

    /* spans */
    {"intersect",
     SPANS WINDOWS Q(
         "interval_intersect { base { inner_query_id: 'spans' } interval_intersect { inner_query_id: "
         "'windows' } } select_columns { column_name: 'ts' } select_columns { column_name: 'dur' } "
         "select_columns { column_name: 'id_0' } select_columns { column_name: 'id_1' } select_columns { "
         "column_name: 'name' } select_columns { column_name: 'ts_1' } order_by { ordering_specs { "
         "column_name: 'ts' } ordering_specs { column_name: 'id_0' } ordering_specs { column_name: 'id_1' } "
         "}"),
     "ts,dur,id_0,id_1,name,ts_1;8,2,1,7,a,8;8,4,2,7,b,8;10,5,2,8,b,10;20,5,3,8,c,10;41,2,4,9,-,41"},
    {"all columns of an intersection",
     SPANS WINDOWS Q("interval_intersect { base { inner_query_id: 'spans' } interval_intersect { inner_query_id: "
                     "'windows' select_columns { column_name: 'id' } select_columns { column_name: 'ts' } "
                     "select_columns { column_name: 'dur' } } } limit: 0"),
     "ts,dur,id_0,ts_0,dur_0,id,ts:1,dur:1,name,grp,id_1,ts_1,dur_1,id:1,ts:2,dur:2"},
    {"intersect by groups",
     SPANS WINDOWS Q("interval_intersect { base { inner_query_id: 'spans' } interval_intersect { inner_query_id: "
                     "'windows' } partition_columns: 'grp' } select_columns { column_name: 'ts' } select_columns { "
                     "column_name: 'grp' } select_columns { column_name: 'id_0' } order_by { ordering_specs { "
                     "column_name: 'ts' } }"),
     "ts,grp,id_0;8,1,1;20,1,3;41,2,4"},
    {"intersect three",
     SPANS WINDOWS Q("interval_intersect { base { inner_query_id: 'spans' } interval_intersect { inner_query_id: "
                     "'windows' } interval_intersect { experimental_time_range { mode: STATIC ts: 9 dur: 2 } } } "
                     "select_columns { column_name: 'ts' } select_columns { column_name: 'dur' } select_columns { "
                     "column_name: 'id_0' } select_columns { column_name: 'id_2' } order_by { ordering_specs { "
                     "column_name: 'ts' } ordering_specs { column_name: 'dur' } }"),
     "ts,dur,id_0,id_2;9,1,1,0;9,2,2,0;10,1,2,0"},
    {"within intervals, clipped",
     SPANS WINDOWS Q("experimental_filter_to_intervals { base { inner_query_id: 'spans' } intervals { inner_query_id: "
                     "'windows' } select_columns: ['name', 'ts', 'id'] } order_by { ordering_specs { column_name: 'id' "
                     "} }"),
     "ts,dur,name,id,original_ts;8,2,a,1,0;8,7,b,2,5;20,5,c,3,20;41,2,-,4,40"},
    {"within intervals, whole, by groups",
     SPANS WINDOWS Q("experimental_filter_to_intervals { base { inner_query_id: 'spans' } intervals { inner_query_id: "
                     "'windows' } partition_columns: 'grp' clip_to_intervals: false } order_by { ordering_specs { "
                     "column_name: 'id' } }"),
     "id,ts,dur,name,grp;1,0,10,a,1;3,20,10,c,1;4,40,5,-,2"},
    {"within intervals, of tables whose names could be taken",
     SPANS Q(
         "inner_query { experimental_filter_to_intervals { base { table { table_name: 'merged' } } intervals { sql { "
         "sql: 'CREATE OR REPLACE PERFETTO TABLE merged AS SELECT 1 AS id, 5 AS ts, 9 AS dur; CREATE OR REPLACE "
         "PERFETTO TABLE sq_1 AS SELECT 2 AS id, 6 AS ts, 1 AS dur; SELECT * FROM sq_1' } filters { column_name: "
         "'id' op: IS_NOT_NULL } } } select_columns { column_name: 'id' } select_columns { column_name: 'ts' } }"),
     "id,ts;1,6"},
    {"slices from moments",
     SPANS WINDOWS Q(
         "experimental_create_slices { starts_query { inner_query_id: 'spans' } ends_query { inner_query_id: "
         "'windows' select_columns { column_name: 'ts' alias: 'until' } } ends_ts_column: 'until' } order_by "
         "{ ordering_specs { column_name: 'ts' } }"),
     "ts,dur;0,8;5,3;20,21;40,1"},
    {"counters",
     Q("experimental_counter_intervals { input_query { sql { sql: 'WITH t(id, ts, track_id, value) AS (VALUES (0, 10, "
       "1, "
       "5), (1, 20, 1, 5), (2, 30, 1, 7), (3, 40, 2, 1)) SELECT * FROM t' } } } filters { column_name: 'next_value' "
       "op: "
       "IS_NOT_NULL }"),
     "id,ts,dur,track_id,value,next_value,delta_value;0,10,10,1,5,5,-;1,20,10,1,5,7,0"},
};

START_TEST(test_rows)
{
    const struct row_case *k = &row_cases[_i];
    struct compiled c;
    compile(&c, k->spec);
    ck_assert_msg(c.rc == 0, "%s: %s", k->name, c.err.text);
    const char *sql = structured_sql_standalone(&c.sql), *rows = rows_of(sql);
    ck_assert_msg(strcmp(rows, k->rows) == 0, "%s\ngot      %s\nexpected %s\n%s", k->name, rows, k->rows, sql);
    compiled_free(&c);
}
END_TEST

/* ---- errors ---- */

#define TWO  "left_query { table { table_name: 'slice' } } right_query { table { table_name: 'slice' } } "
#define CORE "core_query { table { table_name: 'slice' } } input_query { table { table_name: 'slice' } } "

static const struct error_case {
    const char *spec, *text;
} error_cases[] = {
    {Q(""), "query 'q': no source"},
    {Q("table { }"), "query 'q': table.table_name: is missing"},
    {Q("table { table_name: 'slice) --' }"), "query 'q': table.table_name: at byte 6: ')' without '('"},
    {Q("table { table_name: 'slice; DROP TABLE x' }"), "query 'q': table.table_name: at byte 6: ';'"},
    {Q("sql { }"), "query 'q': sql.sql: has no statement"},
    {Q("sql { sql: ' ; -- nothing' }"), "query 'q': sql.sql: has no statement"},
    {Q("sql { sql: 'SELECT 1) UNION (SELECT 2' }"), "query 'q': sql.sql: at byte 9: ')' without '('"},
    {Q("sql { sql: 'SELECT (1' }"), "query 'q': sql.sql: '(' without ')'"},
    {Q("sql { sql: \"SELECT 'a\" }"), "query 'q': sql.sql: at byte 8: invalid SQL: 'a"},
    {Q("sql { sql: 'SELECT 1; SELECT 2' preamble: 'SELECT 3' }"), "query 'q': sql.preamble: goes with one statement"},
    {Q("sql { sql: 'SELECT 1' dependencies { query { " TABLE "} } }"),
     "query 'q': sql.dependencies[0].alias: is missing"},
    {Q("sql { sql: 'SELECT 1' dependencies { alias: 'a' } }"), "query 'q': sql.dependencies[0].query: is missing"},
    {Q("sql { sql: 'SELECT 1' dependencies { alias: 'a' query { " TABLE "} } dependencies { alias: 'a' query { " TABLE
       "} } }"),
     "query 'q': sql.dependencies[1].alias: 'a' is given twice"},
    {Q("inner_query { inner_query { table { table_name: 'a' } limit: -1 } }"),
     "query 'q': inner_query.inner_query.limit: -1 is negative"},
    {Q("inner_query { id: 'named' inner_query { table { table_name: 'a' } offset: 2 } }"),
     "query 'named': inner_query.offset: needs a limit"},
    {Q(TABLE "limit: 1 offset: -3"), "query 'q': offset: -3 is negative"},
    {Q("inner_query_id: 'nobody'"), "query 'q': inner_query_id: there is no query 'nobody'"},
    {Q("inner_query_id: 'q'"), "query 'q': inner_query_id: a cycle: 'q' depends on itself"},
    {"query { id: 'a' inner_query_id: 'q' } " Q("inner_query { inner_query_id: 'a' }"),
     "query 'a': inner_query_id: a cycle: 'q' depends on itself"},
    {Q(TABLE) " " Q(TABLE), "query 'q': two queries have this id"},
    {Q(TABLE) " query { " TABLE "}", "a shared query needs an id"},
    {Q(TABLE "filters { }"), "query 'q': filters[0].op: is missing"},
    {Q(TABLE "filters { column_name: 'a' op: UNKNOWN }"), "query 'q': filters[0].op: 0 is not an operator"},
    {Q(TABLE "filters { column_name: 'a' op: 77 int64_rhs: 1 }"), "query 'q': filters[0].op: 77 is not an operator"},
    {Q(TABLE "filters { op: EQUAL int64_rhs: 1 }"), "query 'q': filters[0].column_name: is missing"},
    {Q(TABLE "filters { column_name: 'a' op: IS_NULL } filters { column_name: 'a' op: EQUAL }"),
     "query 'q': filters[1]: no value"},
    {Q(TABLE "filters { column_name: 'a' op: EQUAL double_rhs: nan }"), "query 'q': filters[0].double_rhs: "},
    {Q(TABLE "experimental_filter_group { }"), "query 'q': experimental_filter_group.op: must be AND or OR"},
    {Q(TABLE "experimental_filter_group { op: OR }"), "query 'q': experimental_filter_group: has nothing in it"},
    {Q(TABLE "experimental_filter_group { op: OR groups { op: AND sql_expressions: '' } }"),
     "query 'q': experimental_filter_group.groups[0].sql_expressions: is empty"},
    {Q(TABLE "experimental_filter_group { op: OR sql_expressions: '1) OR (1' }"), "')' without '('"},
    {Q(TABLE "group_by { }"), "query 'q': group_by: has no columns"},
    {Q(TABLE "group_by { column_names: 'a' } select_columns { column_name: 'b' }"),
     "query 'q': group_by: none of the select_columns exist"},
    {Q(TABLE "group_by { aggregates { column_name: 'a' } }"), "query 'q': group_by.aggregates[0].op: is missing"},
    {Q(TABLE "group_by { aggregates { op: 55 column_name: 'a' } }"),
     "group_by.aggregates[0].op: 55 is not an aggregate"},
    {Q(TABLE "group_by { aggregates { op: SUM result_column_name: 'a' } }"),
     "query 'q': group_by.aggregates[0].column_name: is missing"},
    {Q(TABLE "group_by { aggregates { op: PERCENTILE column_name: 'a' } }"), "aggregates[0].percentile: is missing"},
    {Q(TABLE "group_by { aggregates { op: PERCENTILE column_name: 'a' percentile: 101 } }"),
     "aggregates[0].percentile: 101 is not between 0 and 100"},
    {Q(TABLE "group_by { aggregates { op: CUSTOM } }"), "aggregates[0].custom_sql_expression: is missing"},
    {Q(TABLE "select_columns { alias: 'x' }"), "query 'q': select_columns[0].column_name: is missing"},
    {Q(TABLE "select_columns { column_name: 'a' alias: '' }"), "query 'q': select_columns[0].alias: is missing"},
    {Q(TABLE "select_columns { column_name: 'a' alias: 'b\\nc' }"), "select_columns[0].alias: a control character"},
    {Q(TABLE "order_by { }"), "query 'q': order_by: has no ordering_specs"},
    {Q(TABLE "order_by { ordering_specs { } }"), "query 'q': order_by.ordering_specs[0].column_name: is missing"},
    {Q(TABLE "order_by { ordering_specs { column_name: 'a' direction: 9 } }"), "direction: 9 is not a direction"},
    {Q("experimental_time_range { ts: 1 }"), "query 'q': experimental_time_range.mode: must be"},
    {Q("experimental_time_range { mode: STATIC dur: 1 }"), "experimental_time_range.ts: is missing"},
    {Q("experimental_time_range { mode: STATIC ts: 1 }"), "experimental_time_range.dur: is missing"},
    {Q("interval_intersect { base { " TABLE "} }"), "interval_intersect.interval_intersect: is empty"},
    {Q("interval_intersect { interval_intersect { " TABLE "} }"), "interval_intersect.base: is missing"},
    {Q("interval_intersect { base { " TABLE "} interval_intersect { " TABLE "} partition_columns: 'Dur' }"),
     "interval_intersect.partition_columns: intervals cannot be partitioned by 'Dur'"},
    {Q("interval_intersect { base { " TABLE "} interval_intersect { " TABLE "} partition_columns: ['a', 'A'] }"),
     "partition_columns: 'A' is given twice"},
    {Q("interval_intersect { base { " TABLE "} interval_intersect { " TABLE "} partition_columns: 'a b' }"),
     "partition_columns: 'a b' is not a column name"},
    {Q("interval_intersect { base { " TABLE "} interval_intersect { id: 'i' " TABLE "filters { } } }"),
     "query 'i': filters[0].op: is missing"},
    {Q("experimental_filter_to_intervals { base { " TABLE "} }"), "experimental_filter_to_intervals.intervals: is "},
    {Q("experimental_filter_to_intervals { intervals { " TABLE "} }"), "experimental_filter_to_intervals.base: is "},
    {Q("experimental_join { type: INNER left_query { " TABLE "} }"), "experimental_join.right_query: is missing"},
    {Q("experimental_join { type: INNER right_query { " TABLE "} }"), "experimental_join.left_query: is missing"},
    {Q("experimental_join { " TWO "}"), "experimental_join: equality_columns or freeform_condition is needed"},
    {Q("experimental_join { type: 8 " TWO "equality_columns { left_column: 'a' right_column: 'b' } }"),
     "experimental_join.type: 8 is not a type of join"},
    {Q("experimental_join { " TWO "equality_columns { left_column: 'a' } }"), "equality_columns.right_column: is miss"},
    {Q("experimental_join { " TWO "freeform_condition { left_query_alias: 'a' sql_expression: '1' } }"),
     "freeform_condition.right_query_alias: is missing"},
    {Q("experimental_join { " TWO "freeform_condition { left_query_alias: 'a' right_query_alias: 'b' } }"),
     "freeform_condition.sql_expression: is missing"},
    {Q("experimental_union { queries { " TABLE "} }"), "experimental_union.queries: a union needs two or more"},
    {Q("experimental_union { queries { " TABLE "select_columns { column_name: 'a' } } queries { " TABLE
       "select_columns { column_name: 'b' } } }"),
     "experimental_union.queries[1].select_columns: lacks 'a' of queries[0]"},
    {Q("experimental_union { queries { " TABLE "select_columns { column_name: 'a' } } queries { " TABLE
       "select_columns { column_name: 'a' } select_columns { column_name: 'b' } } }"),
     "experimental_union.queries[1].select_columns: has 2 columns, those of queries[0] 1"},
    {Q("experimental_add_columns { " CORE "}"), "experimental_add_columns.input_columns: is empty"},
    {Q("experimental_add_columns { " CORE "input_columns { column_name_or_expression: 'a' } }"),
     "experimental_add_columns: equality_columns or freeform_condition is needed"},
    {Q("experimental_add_columns { " CORE "input_columns { column_name: 'a' } equality_columns { left_column: 'a' "
       "right_column: 'b' } }"),
     "experimental_add_columns.input_columns[0].column_name_or_expression: is missing"},
    {Q("experimental_add_columns { " CORE "input_columns { column_name_or_expression: 'a' } freeform_condition { "
       "left_query_alias: 'x' right_query_alias: 'input' sql_expression: '1' } }"),
     "freeform_condition.left_query_alias: must be 'core', is 'x'"},
    {Q("experimental_add_columns { " CORE "input_columns { column_name_or_expression: 'a' } freeform_condition { "
       "left_query_alias: 'core' right_query_alias: 'y' sql_expression: '1' } }"),
     "freeform_condition.right_query_alias: must be 'input', is 'y'"},
    {Q("experimental_create_slices { ends_query { " TABLE "} }"),
     "experimental_create_slices.starts_query: is missing"},
    {Q("experimental_create_slices { starts_query { " TABLE "} }"),
     "experimental_create_slices.ends_query: is missing"},
    {Q("experimental_counter_intervals { }"), "experimental_counter_intervals.input_query: is missing"},
    {Q("experimental_filter_in { base { " TABLE "} base_column: 'a' match_column: 'b' }"),
     "experimental_filter_in.match_values: is missing"},
    {Q("experimental_filter_in { base { " TABLE "} match_values { " TABLE "} match_column: 'b' }"),
     "experimental_filter_in.base_column: is missing"},
    {Q("experimental_filter_in { base { " TABLE "} match_values { " TABLE "} base_column: 'b' }"),
     "experimental_filter_in.match_column: is missing"},
    {Q("table { table_name: 'a' } inner_query_id: 'b'"), "1:43: table and inner_query_id exclude each other"},
    {Q("sql { sql: 'a\\000b' }"), "sql: a NUL byte in a text"},
    {Q(TABLE "referenced_modules: 'a; SELECT 1'"), "query 'q': referenced_modules: 'a; SELECT 1' is not a module name"},
    {Q("table { table_name: 'a' module_name: 'b c' }"), "query 'q': table.module_name: 'b c' is not a module name"},
    {Q(TABLE "nothing: 1"), "has no field \"nothing\""},
};

START_TEST(test_errors)
{
    const struct error_case *k = &error_cases[_i];
    struct compiled c;
    compile(&c, k->spec);
    ck_assert_msg(c.rc < 0, "%s\nis taken: %s", k->spec, c.sql.sql);
    ck_assert_int_eq(c.rc, c.err.code);
    ck_assert_msg(strstr(c.err.text, k->text) != NULL, "%s\nsays      %s\nshould tell %s", k->spec, c.err.text,
                  k->text);
    compiled_free(&c);
}
END_TEST

/* ---- the rest ---- */

START_TEST(test_formats)
{
    static const struct {
        const char *path, *bytes;
        enum spec_format format;
    } cases[] = {
        {"a.pb", "query {}", SPEC_BINARY},
        {"a.textproto", "\x12\x00", SPEC_TEXT},
        {"a", "query {}\n\t# x", SPEC_TEXT},
        {"a.txt", "\x12\x02\x0a", SPEC_BINARY},
        {NULL, "", SPEC_TEXT},
        {"pb", "metric_spec { id: '\xc3\xa4' }", SPEC_BINARY},
        {"x.pb.gz", "query", SPEC_TEXT},
    };
    char late[200];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(spec_format_of(cases[i].path, slice_str(cases[i].bytes)) == cases[i].format, "case %zu", i);
    memset(late, ' ', sizeof late);
    late[128] = '\x01'; /* behind what is looked at */
    ck_assert_int_eq(spec_format_of(NULL, slice_of(late, sizeof late)), SPEC_TEXT);
    late[127] = '\x01';
    ck_assert_int_eq(spec_format_of(NULL, slice_of(late, sizeof late)), SPEC_BINARY);
}
END_TEST

/* One result for several queries: modules and preambles once each, in the order of their first use. */
START_TEST(test_several_queries_share_a_result)
{
    struct compiled c;
    compile(&c, "query { id: 'q' simple_slices { } referenced_modules: ['b', 'a', 'b'] }\n"
                "query { id: 'r' sql { sql: 'CREATE TABLE x(y); SELECT 1' } referenced_modules: 'a' }\n");
    ck_assert_msg(c.rc == 0, "%s", c.err.text);
    const char *before = c.sql.sql;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(structured_query_sql(c.shared, structured_queries_find(c.shared, "r"), &c.sql, &c.err), 0);
    ck_assert_ptr_ne(before, c.sql.sql);
    ck_assert_ptr_nonnull(strstr(before, "thread_or_process_slice"));
    ck_assert_uint_eq(c.sql.modules.n, 3);
    ck_assert_str_eq(strpool_cstr(&c.sql.modules, 1), "b");
    ck_assert_str_eq(strpool_cstr(&c.sql.modules, 2), "a");
    ck_assert_str_eq(strpool_cstr(&c.sql.modules, 3), "slices.with_context");
    ck_assert_uint_eq(c.sql.preambles.n, 1);
    compiled_free(&c);
}
END_TEST

/* A caller that has stored the rows of a shared query gives the table, and takes it back. */
START_TEST(test_stored_rows)
{
    struct compiled c;
    struct error err;
    compile(&c, SPANS Q("inner_query_id: 'spans'"));
    const structured_query *q = structured_queries_find(c.shared, "q");
    ck_assert_int_eq(structured_queries_set_table(c.shared, "spans", "my_table", &err), 0);
    ck_assert_int_eq(structured_query_sql(c.shared, q, &c.sql, &err), 0);
    ck_assert_ptr_nonnull(strstr(c.sql.sql, "`my_table`"));
    ck_assert_ptr_null(strstr(c.sql.sql, "VALUES"));
    ck_assert_int_eq(structured_queries_set_table(c.shared, "spans", NULL, &err), 0);
    ck_assert_int_eq(structured_query_sql(c.shared, q, &c.sql, &err), 0);
    ck_assert_ptr_nonnull(strstr(c.sql.sql, "VALUES"));
    ck_assert_int_eq(structured_queries_set_table(c.shared, "nobody", "t", &err), -MRD_ENOTFOUND);
    compiled_free(&c);
}
END_TEST

/* Each allocation fails once: an error, and nothing is lost (ASan). */
static bool fails_once(void *ctx, size_t size)
{
    unsigned *left = ctx;
    (void)size;
    return --*left != 0;
}

START_TEST(test_no_memory)
{
    bool done = false;
    for (unsigned k = 1; !done; k++) {
        unsigned left = k;
        struct compiled c;
        struct error err;
        compile(&c, SPANS WINDOWS Q("interval_intersect { base { inner_query_id: 'spans' } interval_intersect { sql { "
                                    "sql: 'SELECT 1; SELECT * FROM $w' dependencies { alias: 'w' query { "
                                    "inner_query_id: 'windows' } } } } } referenced_modules: 'a'"));
        ck_assert_int_eq(c.rc, 0);
        struct structured_sql sql = {0};
        struct structured_queries *shared;
        trace_summary_spec *spec = NULL;
        alloc_set_gate(fails_once, &left);
        int rc = spec_parse(slice_str("query { id: 'x' sql { sql: 'SELECT 1' } }"), SPEC_TEXT, &spec, &err);
        shared = structured_queries_open();
        for (size_t i = 0; shared && i < c.spec->n_query && rc == 0; i++)
            rc = structured_queries_add(shared, c.spec->query[i], &err);
        if (rc == 0 && shared)
            rc = structured_query_sql(shared, structured_queries_find(shared, "q"), &sql, &err);
        alloc_set_gate(NULL, NULL);
        done = left > 0 && left <= k; /* not reached: all went well with fewer */
        ck_assert_msg(!done || (rc == 0 && shared), "%u: %s", k, err.text);
        ck_assert_msg(done || rc != 0 || !shared, "call %u failed and nobody said so", k);
        spec_free(spec);
        structured_sql_free(&sql);
        structured_queries_close(shared);
        compiled_free(&c);
        ck_assert_uint_lt(k, 10000);
    }
}
END_TEST

Suite *structured_query_suite(void);
Suite *structured_query_suite(void)
{
    Suite *s = suite_create("structured_query");
    TCase *rows = tcase_create("rows"), *texts = tcase_create("texts");
    tcase_add_unchecked_fixture(rows, setup, teardown);
    tcase_add_loop_test(rows, test_rows, 0, (int)(sizeof row_cases / sizeof *row_cases));
    suite_add_tcase(s, rows);
    tcase_add_loop_test(texts, test_errors, 0, (int)(sizeof error_cases / sizeof *error_cases));
    tcase_add_test(texts, test_formats);
    tcase_add_test(texts, test_several_queries_share_a_result);
    tcase_add_test(texts, test_stored_rows);
    tcase_add_test(texts, test_no_memory);
    suite_add_tcase(s, texts);
    return s;
}
