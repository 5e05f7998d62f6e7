/* Tests that each table, view and table function of the library answers over recordings: SQL that nothing else asks for
 * may be wrong for rows that an empty trace does not have. */
#include "recording_fixture.h"

#define DATA MERIDIAN_SOURCE_DIR "/test/data/"

static const char *const traces[] = {DATA "linux-sched.pftrace", DATA "linux-syscalls.pftrace.gz", DATA "sdk.pftrace",
                                     DATA "track-events.pftrace"};
enum { TRACES = sizeof traces / sizeof *traces };

/* Reads rows of each source that `list` names; those that cannot be read are counted. */
static unsigned read_each(const char *list, unsigned *n)
{
    char *sources = sql_rows(&f, list);
    ck_assert_msg(sources != NULL, "%s", engine_error_text(f.e));
    unsigned wrong = 0;
    for (char *save, *source = strtok_r(sources, ";", &save); source; source = strtok_r(NULL, ";", &save)) {
        char *sql = sqlite3_mprintf("SELECT * FROM (SELECT * FROM %s LIMIT 200)", source);
        char *got = sql_rows(&f, sql);
        /* a number that no row of this trace has is told */
        if (!got && !strstr(engine_error_text(f.e), "no row with id")) {
            fprintf(stderr, "%s: %s\n", source, engine_error_text(f.e));
            wrong++;
        }
        sqlite3_free(got);
        sqlite3_free(sql);
        ++*n;
    }
    sqlite3_free(sources);
    return wrong;
}

/* One recording and all modules for both: to include them takes most of the time. */
START_TEST(each_source_answers)
{
    /* an argument by its type: a name, a length, the beginning, the number of a row */
    static const char calls[] =
        "SELECT name || '(' || coalesce((SELECT group_concat(CASE WHEN json_extract(value, '$.type') LIKE '%STRING%' "
        "THEN "
        "'''a''' WHEN json_extract(value, '$.type') LIKE '%DURATION%' OR json_extract(value, '$.name') GLOB "
        "'*interval*' "
        "THEN '1000000000' WHEN json_extract(value, '$.type') = 'TIMESTAMP' THEN 'trace_start()' ELSE '1' END) FROM "
        "json_each(args)), '') || ')' FROM __intrinsic_stdlib_objects WHERE object_type = 'TABLE_FUNCTION'";
    unsigned tables = 0, functions = 0;
    import(traces[_i]);
    sql_run(&f, "INCLUDE PERFETTO MODULE *");
    ck_assert_uint_eq(read_each("SELECT DISTINCT name FROM __intrinsic_stdlib_objects WHERE object_type IN ('TABLE', "
                                "'VIEW') AND name NOT GLOB '*!*'",
                                &tables),
                      0);
    ck_assert_uint_gt(tables, 800);
    ck_assert_uint_eq(read_each(calls, &functions), 0);
    ck_assert_uint_gt(functions, 60);
    close_all();
}
END_TEST

Suite *library_sweep_suite(void);

Suite *library_sweep_suite(void)
{
    Suite *s = suite_create("library_sweep");
    TCase *c = tcase_create("library_sweep");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, each_source_answers, 0, TRACES);
    suite_add_tcase(s, c);
    return s;
}
