/* Tests that every set of args which a table names is one, and has for extract_arg() what `args` lists. */
#include "recording_fixture.h"

#define DATA MERIDIAN_SOURCE_DIR "/test/data/"

static const char *const traces[] = {
    DATA "linux-sched.pftrace", DATA "linux-syscalls.pftrace.gz",  DATA "linux-generic-events.pftrace.gz",
    DATA "sdk.pftrace",         DATA "mm-two-machines.pftrace.gz", DATA "track-events.pftrace"};
enum { TRACES = sizeof traces / sizeof *traces };

static int64_t number(const char *sql)
{
    char *got = sql_rows(&f, sql);
    ck_assert_msg(got != NULL, "%s\n%s", sql, engine_error_text(f.e));
    int64_t n = strcmp(got, "-") == 0 ? -1 : atoll(got);
    sqlite3_free(got);
    return n;
}

static bool names_sets(const char *column)
{
    size_t len = strlen(column), tail = strlen("arg_set_id");
    return len >= tail && strcmp(column + len - tail, "arg_set_id") == 0;
}

/* A raw argset in a cell would be one too high: the first set would be nowhere, the last one out of range. */
START_TEST(cells_are_numbers_of_sets_from_0_on)
{
    import(traces[_i]);
    int64_t n_sets = args_count(&f.st.args), lowest = INT64_MAX, highest = -1;
    int columns = 0;
    for (int t = 0; t < T_COUNT; t++)
        for (uint32_t c = 0; c < table_defs[t].n_columns; c++) {
            if (t == T_args || !names_sets(table_defs[t].columns[c].name))
                continue;
            columns++;
            for (uint32_t row = 0; row < f.st.t[t].n_rows; row++) {
                int64_t cell = table_get(&f.st.t[t], c, row);
                if (cell == COL_NULL)
                    continue;
                ck_assert_msg(cell >= 0 && cell < n_sets, "%s.%s of row %u: %lld, there are %lld sets",
                              table_defs[t].name, table_defs[t].columns[c].name, row, (long long)cell,
                              (long long)n_sets);
                lowest = cell < lowest ? cell : lowest;
                highest = cell > highest ? cell : highest;
            }
        }
    ck_assert_int_ge(columns, 30);
    ck_assert_int_eq(lowest, 0);
    ck_assert_int_eq(highest, n_sets - 1);
    ck_assert_int_eq(number("select min(arg_set_id) from args"), 0);
    ck_assert_int_lt(number("select max(arg_set_id) from args"), n_sets);
    close_all();
}
END_TEST

/* Keys that a set has once, of the sets that a column names: the value is the same by both ways, and some are there. */
START_TEST(extract_arg_gives_what_args_lists)
{
    import(traces[_i]);
    for (int t = 0; t < T_COUNT; t++)
        for (uint32_t c = 0; c < table_defs[t].n_columns; c++) {
            const char *table = table_defs[t].name, *column = table_defs[t].columns[c].name;
            if (t == T_args || !names_sets(column))
                continue;
            char *sql = sqlite3_mprintf(
                "select count(*) from (select a.arg_set_id as s, a.key as k, extract_arg(a.arg_set_id, a.key) as v, "
                "coalesce(a.int_value, a.string_value, a.real_value) as w from __intrinsic_args a where a.arg_set_id "
                "in (select %s from %s) group by 1, 2 having count(*) = 1) where v is not w",
                column, table);
            ck_assert_msg(number(sql) == 0, "%s.%s", table, column);
            sqlite3_free(sql);
            sql = sqlite3_mprintf("select count(*) from (select distinct %s as s from %s where s is not null) where s "
                                  "in (select arg_set_id from __intrinsic_args)",
                                  column, table);
            int64_t with_args = number(sql);
            sqlite3_free(sql);
            sql = sqlite3_mprintf("select count(distinct %s) from %s where json_type(__intrinsic_arg_set_to_json(%s)) "
                                  "= 'object'",
                                  column, table, column);
            ck_assert_msg(number(sql) == with_args, "%s.%s", table, column);
            sqlite3_free(sql);
        }
    close_all();
}
END_TEST

/* Sets say what the row itself says, where it does: a row's number is that of its own set, not of a neighbour's. */
START_TEST(sets_belong_to_their_rows)
{
    import(traces[_i]);
    ck_assert_int_eq(
        number("select count(*) from __intrinsic_track where utid is not "
               "extract_arg(dimension_arg_set_id, 'utid') or upid is not extract_arg(dimension_arg_set_id, "
               "'upid')"),
        0);
    ck_assert_int_eq(number("select count(*) from ftrace_event where name = 'sched_switch' and "
                            "extract_arg(arg_set_id, 'next_pid') is null"),
                     0);
    ck_assert_int_eq(number("select count(*) from ftrace_event where name = 'irq_handler_entry' and "
                            "extract_arg(arg_set_id, 'irq') is null"),
                     0);
    ck_assert_int_eq(number("select count(*) from ftrace_event where name = 'sched_switch' and not to_ftrace(id) glob "
                            "'* next_pid=' || extract_arg(arg_set_id, 'next_pid') || ' *'"),
                     0);
    close_all();
}
END_TEST

Suite *args_suite(void);
Suite *args_suite(void)
{
    Suite *s = suite_create("args");
    TCase *c = tcase_create("sets");
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, cells_are_numbers_of_sets_from_0_on, 0, TRACES);
    tcase_add_loop_test(c, extract_arg_gives_what_args_lists, 0, TRACES);
    tcase_add_loop_test(c, sets_belong_to_their_rows, 0, TRACES);
    suite_add_tcase(s, c);
    return s;
}
