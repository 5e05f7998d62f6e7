/* Tests the engine: statements, errors, prelude, runtime tables, table functions, args, stats, failing allocations. */
#include "sql/engine.h"

#include "base/alloc.h"
#include "base/file.h"
#include "sql/embedded.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct storage st;
static struct engine *e;

static argset set_of(const char *key, int64_t number, const char *text)
{
    struct arg_list list = {0};
    arg_list_int(&st.args, &list, key, number);
    if (text)
        arg_list_str(&st.args, &list, "name", strpool_intern_str(&st.strings, text));
    arg_list_real(&st.args, &list, "share", 0.5);
    arg_list_bool(&st.args, &list, "on", true);
    argset set = args_intern(&st.args, list.p, list.n);
    arg_list_free(&list);
    return set;
}

static void fill(void)
{
    machine_insert(&st, &(struct machine_row){.num_cpus = 2});
    machine_insert(&st, &(struct machine_row){.raw_id = 77, .num_cpus = 2});
    for (int i = 0; i < 3; i++)
        set_of("pid", 10 + i, i == 1 ? "one" : NULL);
    for (int i = 0; i < 20; i++)
        ftrace_event_insert(&st,
                            &(struct ftrace_event_row){.ts = i * 10,
                                                       .utid = i % 4,
                                                       .arg_set_id = argset_of_cell(i % 4 - 1),
                                                       .ucpu = i % 2,
                                                       .name = strpool_intern_str(&st.strings, i % 2 ? "a" : "b")});
    metadata_insert(&st, &(struct metadata_row){.name = strpool_intern_str(&st.strings, "os"),
                                                .int_value = COL_NULL,
                                                .str_value = strpool_intern_str(&st.strings, "Linux"),
                                                .machine_id = 0,
                                                .trace_id = 0});
    metadata_insert(&st,
                    &(struct metadata_row){
                        .name = strpool_intern_str(&st.strings, "os"), .int_value = 5, .machine_id = 1, .trace_id = 0});
    stats_add(&st.stats, 1, STAT_ftrace_setup_errors, 3);
    stats_set_idx(&st.stats, 0, STAT_ftrace_cpu_has_data_loss, 1, 9);
    st.trace_start_ns = 5;
    st.trace_end_ns = 195;
}

static void open_all(void)
{
    struct error err = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    fill();
    ck_assert_msg(engine_open(&e, &st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(e, &err) == 0, "%s", err.text);
}

static void close_all(void)
{
    engine_close(e);
    storage_free(&st);
}

/* The rows of the last statement as text: cells by '|', rows by ' '. */
static const char *ask_text(const char *sql, struct error *err)
{
    static char out[4000];
    struct engine_result r;
    size_t n = 0;
    out[0] = 0;
    int rc = engine_query(e, "test", slice_str(sql), &r, NULL, err);
    while (rc == 0 && (rc = engine_result_next(&r, err)) == 1) {
        rc = 0;
        for (int i = 0; i < r.n_columns && n < sizeof out; i++) {
            const char *cell = (const char *)sqlite3_column_text(r.stmt, i);
            n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? "|" : n ? " " : "", cell ? cell : "NULL");
        }
    }
    if (r.stmt)
        engine_result_close(&r);
    return rc < 0 ? NULL : out;
}

static const char *ask(const char *sql)
{
    struct error err = {0};
    const char *out = ask_text(sql, &err);
    ck_assert_msg(out != NULL, "%s: %s", sql, err.text);
    return out;
}

/* ---- answers ---- */

static const struct {
    const char *sql, *answer;
} answers[] = {
    {"select 1; select 2; -- the end\n /* of it */ ;", "2"},
    {"select count(*), min(ts), max(ts) from ftrace_event", "20|0|190"},
    {"select name, count(*) from ftrace_event group by name", "a|10 b|10"},
    {"select start_ts, end_ts from trace_bounds", "5|195"},
    {"select trace_start(), trace_end(), trace_dur()", "5|195|190"},
    /* args: one set, all of them, the same ids either way */
    {"select key, int_value from args where arg_set_id = 1 and value_type = 'int'", "pid|11"},
    {"select display_value from args where arg_set_id = 1 order by key desc", "0.5 11 true one"},
    {"select count(*), count(distinct arg_set_id) from args", "10|3"},
    {"select min(id), max(id) from args where arg_set_id = 2", "7|9"},
    {"select id from args where arg_set_id = 1 and key = 'name'", "4"},
    {"select group_concat(key) from args where arg_set_id = 0", "pid,share,on"},
    {"select count(*) from args where arg_set_id is null", "0"},
    {"select count(*) from args where arg_set_id = 'x'", "0"},
    {"select count(*) from args where arg_set_id = 0.5 or arg_set_id = x'00'", "0"},
    {"select count(*) from args where arg_set_id in (-1, 3, 4294967295, 4294967296)", "0"},
    {"with n(i) as (values (-1), (3), (4294967295), (4294967296), (-9223372036854775808), (9223372036854775807)) "
     "select "
     "count(extract_arg(i, 'pid')), count(__intrinsic_arg_set_to_json(i)), count(key) from n left join args on "
     "arg_set_id = i",
     "0|0|0"},
    {"select __intrinsic_arg_set_to_json(0), __intrinsic_arg_set_to_json(NULL)",
     "{\"pid\":10,\"share\":0.5,\"on\":true}|NULL"},
    {"select count(*) from ftrace_event join args using (arg_set_id) where key = 'pid'", "15"},
    {"select count(*) from args where arg_set_id in (0, 1)", "7"},
    /* extract_arg */
    {"select extract_arg(1, 'pid'), extract_arg(1, 'name'), extract_arg(1, 'share'), extract_arg(1, 'on')",
     "11|one|0.5|1"},
    {"select extract_arg(0, 'name'), extract_arg(-1, 'pid'), extract_arg(NULL, 'pid'), extract_arg(99, 'pid')",
     "NULL|NULL|NULL|NULL"},
    {"select sum(extract_arg(arg_set_id, 'pid')) from ftrace_event", "165"},
    /* metadata */
    {"select extract_metadata('os'), extract_metadata('none'), extract_metadata_for_machine(1, 'os')", "Linux|NULL|5"},
    {"select extract_exact_metadata(1, 0, 'os'), extract_exact_metadata(1, 1, 'os'), extract_metadata_for_trace(0, "
     "'os')",
     "5|NULL|Linux"},
    /* stats */
    {"select value, machine_id from stats where name = 'ftrace_setup_errors' order by machine_id", "0|0 3|1"},
    {"select idx, value, severity from stats where name = 'ftrace_cpu_has_data_loss'", "1|9|data_loss"},
    {"select count(*) from machine where label_index = 1 and raw_id = 77", "1"},
    /* runtime tables keep the types of what came first */
    {"create perfetto table t as select ts, name, ts * 0.5 as h, null as n from ftrace_event; select sum(ts), max(h) "
     "from t",
     "1900|95.0"},
    {"select count(*) from __intrinsic_ftrace_event where id between 3 and 5", "3"},
    {"select _auto_id from (select * from cpu_track limit 0), cpu_track", ""},
};

START_TEST(answers_are_right)
{
    open_all();
    ck_assert_str_eq(ask(answers[_i].sql), answers[_i].answer);
    ck_assert_str_eq(ask("select 1"), "1"); /* nothing is left locked */
    close_all();
}
END_TEST

/* Grouping args is native when there are many; one set is still decoded alone. Both answer as SQLite does when an
 * expression keeps the statement from being native. */
static const struct {
    const char *select, *rest;
    bool native;
} args_groups[] = {
    {"select flat_key, count(*), sum(int_value) from args", "group by flat_key order by 2 desc, 1 limit 3", true},
    {"select value_type, count(string_value), max(real_value) from args", "group by 1", true},
    {"select count(*), min(int_value), max(arg_set_id) from args where arg_set_id = 700", "", false},
    {"select count(*), max(arg_set_id) from args where arg_set_id > 700", "", true},
};

START_TEST(args_are_grouped_natively)
{
    struct error err = {0};
    struct engine_result r;
    char sql[300], native[300];
    open_all();
    for (int i = 0; i < 1000; i++)
        set_of(i % 3 ? "pid" : "tid", i, i % 7 ? NULL : "seventh");
    snprintf(sql, sizeof sql, "%s %s", args_groups[_i].select, args_groups[_i].rest);
    snprintf(native, sizeof native, "%s", ask(sql));
    ck_assert_int_eq(engine_query(e, NULL, slice_str(sql), &r, NULL, &err), 0);
    ck_assert_int_eq(strstr(sqlite3_sql(r.stmt), "__intrinsic_aggregate") != NULL, args_groups[_i].native);
    engine_result_close(&r);
    snprintf(sql, sizeof sql, "%s %s id + 0 >= 0 %s", args_groups[_i].select,
             strstr(args_groups[_i].select, "where") ? "and" : "where", args_groups[_i].rest);
    ck_assert_str_eq(native, ask(sql));
    close_all();
}
END_TEST

static const struct {
    const char *sql, *text;
} failures[] = {
    {"select no_column", "no such column: no_column"},
    {"select * from nowhere", "no such table: nowhere"},
    {"select extract_arg('x', 'y')", "EXTRACT_ARG: 1st argument should be arg set id"},
    {"select extract_arg(1, 2)", "EXTRACT_ARG: 2nd argument should be key"},
    {"", "No valid SQL to run"},
    {" -- only a comment", "No valid SQL to run"},
    {"select 1; select no_column; select 2", "no such column: no_column"},
    {"create perfetto table t as select 1 as a union all select 'x'", "Type mismatch"},
    {"create perfetto table t as select x'00' as a", "blob"},
    {"create perfetto table t as select 1 as a, 2 as a", "multiple columns are named: a"},
    {"insert into __intrinsic_slice(ts) values (1)", "may not be modified"},
    {"create virtual table x using __intrinsic_dataframe", "CREATE PERFETTO TABLE"},
    {"insert into sqlite_schema values ('view', 'v', 'v', 0, 'create view v as select 1')", "may not be modified"},
    {"pragma writable_schema = on", "not authorized"},
};

START_TEST(failures_are_told)
{
    struct error err = {0};
    open_all();
    ck_assert_ptr_null(ask_text(failures[_i].sql, &err));
    ck_assert_int_lt(err.code, 0);
    ck_assert_msg(strstr(err.text, failures[_i].text) || strstr(engine_error_text(e), failures[_i].text), "%s: %s",
                  err.text, engine_error_text(e));
    ck_assert_str_eq(ask("select 1"), "1");
    close_all();
}
END_TEST

/* ---- prelude ---- */

/* The names of the columns of a query. */
static void column_names(const char *sql, char *names, size_t size)
{
    struct engine_result r;
    struct error err = {0};
    ck_assert_msg(engine_query(e, NULL, slice_str(sql), &r, NULL, &err) == 0, "%s: %s", sql, err.text);
    names[0] = 0;
    for (int i = 0; i < r.n_columns; i++) {
        size_t n = strlen(names);
        snprintf(names + n, size - n, "%s%s", i ? "," : "", engine_result_column_name(&r, i));
    }
    while (engine_result_next(&r, &err) == 1)
        ;
    engine_result_close(&r);
}

START_TEST(columns_are_called_what_was_written)
{
    static const char *const written[] = {
        "1+ 1",
        "group_concat(x ORDER  BY y)",
        "GROUP_CONCAT( x , ')' order by y desc) || 'a'",
        "group_concat(DISTINCT x ORDER BY x)",
        "json_group_array(x ORDER BY (y)),group_concat(y ORDER BY x),x",
    };
    char sql[300], names[300];
    open_all();
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        snprintf(sql, sizeof sql, "SELECT * FROM (SELECT %s FROM (SELECT 'v' AS x, 1 AS y))", written[i]);
        column_names(sql, names, sizeof names);
        ck_assert_str_eq(names, written[i]);
    }
    column_names("SELECT 1 AS \"__intrinsic_ordered_agg(/*\", 2 AS \"__intrinsic_ordered_agg(/*a*/((\"", names,
                 sizeof names);
    ck_assert_str_eq(names, "__intrinsic_ordered_agg(/*,a");
    close_all();
}
END_TEST

START_TEST(views_have_the_columns_of_the_facts)
{
    char *text;
    size_t len;
    struct error err = {0};
    open_all();
    ck_assert_msg(file_read_all(MERIDIAN_SOURCE_DIR "/test/data/prelude-columns.txt", 1 << 20, &text, &len, &err) == 0,
                  "%s", err.text);
    int views = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), views++) {
        char *colon = strchr(line, ':'), sql[200], names[2000] = "";
        ck_assert_ptr_nonnull(colon);
        snprintf(sql, sizeof sql, "select * from %.*s", (int)(colon - line), line);
        column_names(sql, names, sizeof names);
        ck_assert_msg(strcmp(names, colon + 1) == 0, "%.*s has %s, not %s", (int)(colon - line), line, names,
                      colon + 1);
    }
    ck_assert_int_gt(views, 80);
    mem_free(text);
    close_all();
}
END_TEST

/* Keys of more parts than JSON nests: what lies below the last level keeps its value. */
START_TEST(deep_args_keep_their_values)
{
    struct arg_list list = {0};
    struct error err = {0};
    char key[400] = "", sql[100], want[60];
    open_all();
    for (int i = 0; i < 100; i++)
        strcat(key, "a.");
    for (int i = 0; i < 2; i++) {
        char *at = key + 200;
        snprintf(at, 20, "leaf%d", i);
        arg_list_int(&st.args, &list, key, 700 + i);
    }
    argset set = args_intern(&st.args, list.p, list.n);
    arg_list_free(&list);
    snprintf(sql, sizeof sql, "select __intrinsic_arg_set_to_json(%lld)", (long long)argset_cell(set));
    const char *got = ask_text(sql, &err);
    ck_assert_msg(got != NULL, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        snprintf(want, sizeof want, "a.a.leaf%d\":%d", i, 700 + i);
        ck_assert_msg(strstr(got, want) != NULL, "%s", got);
    }
    ck_assert_ptr_null(strstr(got, "{}"));
    close_all();
}
END_TEST

/* The views of the prelude are not put beside what has their name. */
START_TEST(taken_names_of_views_are_told)
{
    struct error err = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_msg(engine_open(&e, &st, &err) == 0, "%s", err.text);
    ck_assert_int_eq(engine_run(e, "test", "create table counters(a)", &err), 0);
    ck_assert_int_lt(engine_loaded(e, &err), 0);
    ck_assert_msg(strstr(err.text, "counters exists already"), "%s", err.text);
    ck_assert_str_eq(ask("select count(*) from counters"), "0");
    close_all();
}
END_TEST

START_TEST(stats_answer_before_data)
{
    struct error err = {0};
    ck_assert_int_eq(storage_init(&st), 0);
    ck_assert_msg(engine_open(&e, &st, &err) == 0, "%s", err.text);
    ck_assert_int_gt(atoi(ask("select count(*) from stats where machine_id = 0 or machine_id is null")), 100);
    ck_assert_str_eq(ask("select count(*) from metadata"), "0");
    fill();
    ck_assert_int_eq(engine_loaded(e, &err), 0);
    ck_assert_str_eq(ask("select count(*) from ftrace_event"), "20");
    fill(); /* more data later */
    ck_assert_int_eq(engine_loaded(e, &err), 0);
    ck_assert_str_eq(ask("select count(*) from ftrace_event"), "40");
    close_all();
}
END_TEST

START_TEST(embedded_texts_are_sorted_and_whole)
{
    size_t n;
    const struct embedded_sql *all = embedded_sql_all(&n);
    ck_assert_uint_gt(n, 10);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(embedded_sql_find(all[i].module), &all[i]);
        ck_assert_uint_eq(strlen(all[i].text), all[i].len);
        ck_assert(i == 0 || strcmp(all[i - 1].module, all[i].module) < 0);
    }
    ck_assert_ptr_null(embedded_sql_find("no.such.module"));
}
END_TEST

/* ---- runtime tables and functions ---- */

static void make_table(const char *name, int rows)
{
    struct table_builder b;
    struct runtime_table *t;
    struct error err = {0};
    const char *names[] = {"id", "text", "half", "late"};
    ck_assert_int_eq(table_builder_init(&b, &st, 4, names, NULL, &err), 0);
    for (int i = 0; i < rows; i++) {
        table_builder_int(&b, 0, i * 3, &err);
        table_builder_text(&b, 1, i % 2 ? "odd" : "even", i % 2 ? 3 : 4, &err);
        table_builder_double(&b, 2, i / 2.0, &err);
        if (i >= rows - 2) /* a column of NULLs finds its type late */
            ck_assert_int_eq(table_builder_text(&b, 3, "end", 3, &err), 0);
        ck_assert_int_eq(table_builder_commit(&b, &err), 0);
    }
    ck_assert_int_eq(table_builder_finish(&b, &t, &err), 0);
    ck_assert_msg(engine_add_table(e, name, t, &err) == 0, "%s", err.text);
}

/* Rows of integers, every seventh NULL, until `v` comes in row 9000. */
static int make_widened(const char *name, const uint8_t *type, int64_t first, struct error *err)
{
    struct table_builder b;
    struct runtime_table *t;
    const char *names[] = {"x"};
    ck_assert_int_eq(table_builder_init(&b, &st, 1, names, type, err), 0);
    for (int i = 0; i < 10000; i++) {
        int rc = i == 9000 ? table_builder_double(&b, 0, 0.5, err)
                 : i % 7   ? table_builder_int(&b, 0, first + i, err)
                           : 0;
        if (rc) {
            table_builder_abort(&b);
            return rc;
        }
        ck_assert_int_eq(table_builder_commit(&b, err), 0);
    }
    ck_assert_int_eq(table_builder_finish(&b, &t, err), 0);
    return engine_add_table(e, name, t, err);
}

START_TEST(integers_become_doubles_when_one_comes)
{
    static const uint8_t declared[] = {RUNTIME_LONG};
    struct error err = {0};
    open_all();
    ck_assert_int_eq(make_widened("found", NULL, 0, &err), 0);
    ck_assert_int_eq(make_widened("declared", declared, 0, &err), 0);
    ck_assert_str_eq(ask("select count(*), count(x), sum(x), typeof(max(x)) from found"), "10000|8571|42843858.5|real");
    ck_assert_str_eq(ask("select count(*), count(x), sum(x), typeof(max(x)) from declared"),
                     "10000|8571|42843858.5|real");
    ck_assert_int_eq(make_widened("large", NULL, INT64_C(1) << 53, &err), -MRD_ESQL);
    ck_assert_str_eq(err.text, "Column 'x': 9007199254740993 at row 1 is not a double, and doubles follow");
    close_all();
}
END_TEST

START_TEST(runtime_tables_are_tables)
{
    struct error err = {0};
    open_all();
    make_table("mine", 9000);
    ck_assert_str_eq(ask("select count(*), sum(id), sum(half), count(late) from mine"), "9000|121486500|20247750.0|2");
    ck_assert_str_eq(ask("select text from mine where id = 9"), "odd");
    ck_assert_str_eq(ask("select _auto_id, late from mine where late = 'end'"), "8998|end 8999|end");
    ck_assert_str_eq(ask("select count(*) from mine where _auto_id < 10"), "10");
    ck_assert_ptr_nonnull(engine_find_table(e, "MINE"));
    ck_assert_ptr_nonnull(engine_find_table(e, "__intrinsic_slice"));
    ck_assert_ptr_null(engine_find_table(e, "other"));
    static const char *const columns[] = {"text", "id"}, *const unknown[] = {"text", "nothing"},
                             *const doubles[] = {"half"};
    ck_assert_int_eq(engine_add_index(e, "i", "mine", columns, 2, &err), 0);
    ck_assert_int_lt(engine_add_index(e, "j", "mine", unknown, 2, &err), 0);
    ck_assert_int_lt(engine_add_index(e, "j", "mine", doubles, 1, &err), 0);
    ck_assert_int_lt(engine_add_index(e, "j", "other", columns, 2, &err), 0);
    ck_assert_str_eq(ask("select count(*), min(id) from mine where text = 'odd' and id between 100 and 200"), "16|105");
    ck_assert_str_eq(ask("select count(*) from mine where text = 'odd'"), "4500");
    ask("drop table mine");
    ck_assert_ptr_null(engine_find_table(e, "mine"));
    make_table("mine", 4);
    ck_assert_str_eq(ask("select count(*) from mine"), "4");
    close_all();
}
END_TEST

static int squares(struct engine *engine, sqlite3_value **args, struct table *out, struct error *err)
{
    (void)engine;
    sqlite3_int64 n = sqlite3_value_int64(args[0]);
    if (n < 0)
        return error_set(err, -MRD_ESQL, "squares: no negative numbers");
    for (sqlite3_int64 i = 0; i < n; i++) {
        int64_t words[] = {i, i * i};
        table_append(out, words);
    }
    return 0;
}

static const struct column_def square_columns[] = {{"n", COL_I64, 0, ""}, {"square", COL_I64, 0, ""}};
static const struct table_def square_def = {"squares", square_columns, 2, ""};
static const struct engine_table_function square_function = {
    .name = "squares", .def = &square_def, .n_args = 1, .compute = squares};

START_TEST(table_functions_compute_rows)
{
    struct error err = {0};
    open_all();
    ck_assert_int_eq(engine_register_table_functions(e, &square_function, 1, &err), 0);
    ck_assert_str_eq(ask("select sum(square) from squares(5)"), "30");
    ck_assert_str_eq(ask("select n from squares(100) where square in (4, 49, 50) order by n desc"), "7 2");
    ck_assert_str_eq(ask("select m.id, s.square from machine m, squares(m.id + 2) s where s.n > 0"), "0|1 1|1 1|4");
    ck_assert_str_eq(ask("select _fn_arg0, _auto_id from squares(1)"), "1|0");
    ck_assert_ptr_null(ask_text("select * from squares(-1)", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "no negative numbers"));
    ck_assert_ptr_null(ask_text("select * from squares", &err));
    ck_assert_ptr_nonnull(strstr(err.text, "argument 1 is missing"));
    close_all();
}
END_TEST

static void interrupting(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    engine_interrupt(function_engine(ctx));
}

START_TEST(interrupts_end_the_query)
{
    static const struct engine_function stop = {.name = "stop_now", .scalar = interrupting};
    struct error err = {0};
    open_all();
    ck_assert_int_eq(engine_register_functions(e, &stop, 1, &err), 0);
    ck_assert_ptr_null(ask_text("with recursive n(i) as (select 0 union all select i + 1 from n) "
                                "select max(iif(i = 1000, stop_now(), i)) from n",
                                &err));
    ck_assert_int_eq(err.code, -MRD_ECANCELLED);
    /* also one that comes just before a table is opened: no rows would look like an answer */
    ck_assert_ptr_null(ask_text("select count(*) from ftrace_event where name > coalesce(stop_now(), '')", &err));
    ck_assert_int_eq(err.code, -MRD_ECANCELLED);
    ck_assert_str_eq(ask("select count(*) from ftrace_event"), "20");
    close_all();
}
END_TEST

START_TEST(every_result_of_a_script_is_handed_out)
{
    open_all();
    const char *sql = "select 1 as a; create view v as select 2; select * from v; select 3 as suppress_query_output;";
    struct engine_script s = {.engine = e, .text = slice_str(sql)};
    struct engine_result r;
    struct error err = {0};
    int columns[8] = {0}, n = 0, rc;
    while ((rc = engine_script_next(&s, &r, &err)) == 1) {
        columns[n++] = r.n_columns;
        while (engine_result_next(&r, &err) == 1)
            ;
        engine_result_close(&r);
    }
    ck_assert_int_eq(rc, 0);
    ck_assert_int_eq(n, 4);
    ck_assert_int_eq(columns[1], 0);
    ck_assert_uint_eq(s.n_statements, 4);
    ck_assert_uint_eq(s.n_statements_with_output, 2);
    close_all();
}
END_TEST

/* ---- memory runs out ---- */

static size_t calls_left;

static bool gate(void *ctx, size_t size)
{
    (void)ctx;
    (void)size;
    return calls_left && calls_left--;
}

static const char *const hungry[] = {
    "select count(*) from ftrace_event where name = 'a' and ts > 5",
    "select name, count(*) from ftrace_event where utid in (1, 2) group by name order by name desc",
    "select count(*) from ftrace_event a join ftrace_event b on a.utid = b.ucpu",
    "select count(*) from args where value_type glob 'i*'",
    "select extract_arg(arg_set_id, 'pid') from ftrace_event",
    "select count(*) from stats",
    "create perfetto table t as select ts, name from ftrace_event; select count(*) from t; drop table t",
    "select count(*) from cpu_track",
};

START_TEST(failing_allocations_are_errors)
{
    bool failed = true;
    size_t step = _i == 6 ? 7 : 1;
    for (size_t k = 0; failed && k < 3000; k += step) {
        struct error err = {0};
        open_all();
        calls_left = k;
        alloc_set_gate(gate, NULL);
        failed = ask_text(hungry[_i], &err) == NULL;
        alloc_set_gate(NULL, NULL);
        ck_assert(!failed || err.code < 0);
        close_all();
    }
    ck_assert(!failed);
}
END_TEST

START_TEST(opening_survives_failing_allocations)
{
    int rc = -1;
    for (size_t k = 0; rc && k < 40000; k += k < 50 ? 1 : 37) {
        struct error err = {0};
        ck_assert_int_eq(storage_init(&st), 0);
        fill();
        calls_left = k;
        alloc_set_gate(gate, NULL);
        rc = engine_open(&e, &st, &err);
        if (rc == 0)
            rc = engine_loaded(e, &err);
        alloc_set_gate(NULL, NULL);
        ck_assert(rc == 0 || err.code < 0);
        engine_close(e);
        storage_free(&st);
    }
    ck_assert_int_eq(rc, 0);
}
END_TEST

Suite *sql_engine_suite(void);
Suite *sql_engine_suite(void)
{
    Suite *s = suite_create("sql_engine");
    TCase *t = tcase_create("engine");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, answers_are_right, 0, (int)(sizeof answers / sizeof *answers));
    tcase_add_loop_test(t, args_are_grouped_natively, 0, (int)(sizeof args_groups / sizeof *args_groups));
    tcase_add_loop_test(t, failures_are_told, 0, (int)(sizeof failures / sizeof *failures));
    tcase_add_test(t, columns_are_called_what_was_written);
    tcase_add_test(t, views_have_the_columns_of_the_facts);
    tcase_add_test(t, deep_args_keep_their_values);
    tcase_add_test(t, taken_names_of_views_are_told);
    tcase_add_test(t, stats_answer_before_data);
    tcase_add_test(t, embedded_texts_are_sorted_and_whole);
    tcase_add_test(t, integers_become_doubles_when_one_comes);
    tcase_add_test(t, runtime_tables_are_tables);
    tcase_add_test(t, table_functions_compute_rows);
    tcase_add_test(t, interrupts_end_the_query);
    tcase_add_test(t, every_result_of_a_script_is_handed_out);
    tcase_add_loop_test(t, failing_allocations_are_errors, 0, (int)(sizeof hungry / sizeof *hungry));
    tcase_add_test(t, opening_survives_failing_allocations);
    suite_add_tcase(s, t);
    return s;
}
