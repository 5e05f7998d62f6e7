/* The public API: the order of calls, values of every type, errors, stats, modules, the metatrace. */
#include "meridian/tp.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct tp *tp;

static void open_recording(void)
{
    ck_assert_int_eq(tp_open(&tp, NULL), 0);
    ck_assert_msg(tp_load(tp, MERIDIAN_SOURCE_DIR "/test/data/linux-kernel-overrun.pftrace") == 0, "%s", tp_error(tp));
    ck_assert_msg(tp_finish(tp) == 0, "%s", tp_error(tp));
}

static void close_recording(void)
{
    tp_close(tp);
}

START_TEST(calls_out_of_order)
{
    struct tp *t;
    struct tp_result *r;
    ck_assert_int_eq(tp_open(&t, NULL), 0);
    ck_assert_int_eq(tp_query(t, "select 1", &r), TP_INVALID);
    ck_assert_ptr_null(r);
    ck_assert_str_ne(tp_error(t), "");
    ck_assert_int_eq(tp_export_sqlite(t, "/tmp/never"), TP_INVALID);
    ck_assert_int_eq(tp_finish(t), 0);
    ck_assert_str_eq(tp_error(t), "");
    ck_assert_int_eq(tp_finish(t), 0);
    ck_assert_int_eq(tp_load(t, "x"), TP_INVALID);
    ck_assert_int_eq(tp_feed(t, "x", 1), TP_INVALID);
    tp_close(t);
    tp_close(NULL);
    tp_result_close(NULL);
}
END_TEST

START_TEST(values)
{
    struct tp_result *r;
    ck_assert_int_eq(tp_query(tp, "select null, -5, 2.5, 'a' || char(0) || 'b', x'00ff10', '' as \"last one\"", &r), 0);
    ck_assert_int_eq(tp_columns(r), 6);
    ck_assert_str_eq(tp_column_name(r, 5), "last one");
    ck_assert_int_eq(tp_step(r), 1);
    static const enum tp_type types[] = {TP_NULL, TP_INT64, TP_DOUBLE, TP_TEXT, TP_BLOB, TP_TEXT};
    for (int c = 0; c < 6; c++)
        ck_assert_int_eq(tp_column_type(r, c), types[c]);
    size_t len;
    ck_assert_ptr_null(tp_text(r, 0, &len));
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(tp_int64(r, 1), -5);
    ck_assert_double_eq(tp_double(r, 2), 2.5);
    ck_assert_mem_eq(tp_text(r, 3, &len), "a\0b", 3);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(tp_blob(r, 4, &len), "\0\xff\x10", 3);
    ck_assert_uint_eq(len, 3);
    ck_assert_str_eq(tp_text(r, 5, &len), "");
    ck_assert_int_eq(tp_step(r), 0);
    ck_assert_int_eq(tp_step(r), 0);
    tp_result_close(r);
}
END_TEST

START_TEST(statements_one_by_one)
{
    static const char sql[] = "select 1; create table t(x);;  -- nothing\n select 2, 3 where 0; select nope";
    static const int columns[] = {1, 0, 2};
    struct tp_result *r;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(tp_query_next(tp, "file.sql", sql, sizeof sql - 1, &at, &r), 1);
        ck_assert_int_eq(tp_columns(r), columns[i]);
        tp_result_close(r);
    }
    ck_assert_int_eq(tp_query_next(tp, "file.sql", sql, sizeof sql - 1, &at, &r), TP_SQL);
    ck_assert_ptr_nonnull(strstr(tp_error(tp), "no such column: nope"));
    ck_assert_ptr_nonnull(strstr(tp_error(tp), "file.sql"));
    at = 0;
    ck_assert_int_eq(tp_query_next(tp, NULL, " ; -- x", 7, &at, &r), 0);
    ck_assert_ptr_null(r);
}
END_TEST

START_TEST(stats_are_walked_in_order)
{
    struct tp_stat s;
    size_t it = 0, n = 0, losses = 0;
    char last[128] = "";
    for (; tp_stats_next(tp, &it, &s); n++) {
        ck_assert_int_ne(s.value, 0);
        ck_assert_int_le(strcmp(last, s.name), 0);
        snprintf(last, sizeof last, "%s", s.name);
        if (strcmp(s.name, "ftrace_cpu_has_data_loss") == 0) {
            ck_assert(s.indexed);
            ck_assert_int_eq(s.machine, 0);
            ck_assert_int_eq(s.value, 1);
            ck_assert_int_eq(s.idx, (int64_t)losses);
            ck_assert_str_eq(s.severity, "data_loss");
            ck_assert_str_eq(s.source, "trace");
            losses++;
        }
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_eq(losses, 2);
}
END_TEST

START_TEST(restore_forgets_what_queries_made)
{
    struct tp_result *r;
    static const struct tp_module modules[] = {{"pack.one", "create perfetto table one as select 11 as x", 43}};
    ck_assert_int_eq(tp_add_sql_modules(tp, "pack", modules, 1, false), 0);
    ck_assert_int_lt(tp_add_sql_modules(tp, "pack", modules, 1, false), 0);
    ck_assert_int_eq(tp_add_sql_modules(tp, "pack", modules, 1, true), 0);
    ck_assert_int_eq(tp_query(tp, "include perfetto module pack.one; select x from one", &r), 0);
    ck_assert_int_eq(tp_step(r), 1);
    ck_assert_int_eq(tp_int64(r, 0), 11);
    tp_result_close(r);
    ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    ck_assert_int_eq(tp_query(tp, "select x from one", &r), TP_SQL);
    ck_assert_int_eq(tp_query(tp, "include perfetto module pack.one; select x from one", &r), 0);
    tp_result_close(r);
}
END_TEST

/* Modules that come before the trace are looked at when it is there: what is wrong with them spoils nothing else. */
START_TEST(a_package_that_is_refused_spoils_nothing)
{
    static const struct tp_module bad[] = {{"other.one", "select 1", 8}};
    static const struct tp_module good[] = {{"pack.one", "create perfetto table one as select 11 as x", 43}};
    struct tp_summary summary = {.all_metrics = true};
    struct tp_result *r;
    struct tp *own;
    void *bytes;
    size_t len;
    ck_assert_int_eq(tp_open(&own, NULL), 0);
    ck_assert_int_eq(tp_feed(own, "\n\2@\1", 4), 0);
    ck_assert_int_eq(tp_add_sql_modules(own, "pack2", bad, 1, false), 0);
    ck_assert_int_eq(tp_add_sql_modules(own, "pack", good, 1, false), 0);
    ck_assert_int_lt(tp_summarize(own, &summary, &bytes, &len), 0);
    ck_assert_int_lt(tp_finish(own), 0);
    ck_assert_ptr_nonnull(strstr(tp_error(own), "does not belong"));
    tp_summarize(own, &summary, &bytes, &len);
    tp_free(bytes);
    ck_assert_int_eq(tp_query(own, "include perfetto module pack.one; select x from one", &r), 0);
    tp_result_close(r);
    ck_assert_int_eq(tp_restore_initial_tables(own), 0);
    tp_close(own);
}
END_TEST

static void *interrupt_soon(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) { /* again: the first may come before the statement */
        usleep(10000);
        tp_interrupt(tp);
    }
    return NULL;
}

START_TEST(an_interrupt_ends_only_what_runs)
{
    struct tp_result *open, *r;
    pthread_t thread;
    ck_assert_int_eq(
        tp_query(tp, "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n", &open), 0);
    ck_assert_int_eq(tp_step(open), 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_soon, NULL), 0);
    ck_assert_int_eq(tp_query(tp,
                              "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n "
                              "where i < 0",
                              &r),
                     TP_INTERRUPTED);
    ck_assert_ptr_null(r);
    pthread_join(thread, NULL);
    tp_interrupt_clear(tp); /* those that came too late */
    for (int i = 2; i < 20000; i++) {
        ck_assert_int_eq(tp_step(open), 1);
        ck_assert_int_eq(tp_int64(open, 0), i);
    }
    tp_result_close(open);
    ck_assert_int_eq(tp_query(tp, "select 1", &r), 0);
    tp_result_close(r);
}
END_TEST

static int64_t ask(const char *sql)
{
    struct tp_result *r;
    int64_t value = -1;
    if (tp_query(tp, sql, &r) != 0)
        return -1;
    if (tp_step(r) == 1)
        value = tp_int64(r, 0);
    tp_result_close(r);
    return value;
}

START_TEST(views_keep_their_tables_apart)
{
    struct tp_view *a, *b;
    struct tp_result *open;
    int64_t n = ask("select count(*) from sched");
    ck_assert_int_eq(tp_view_open(tp, &a), 0);
    ck_assert_int_eq(tp_view_open(tp, &b), 0);
    ck_assert_int_eq(ask("create perfetto table t as select 1 as x; select x from t"), 1);
    tp_view_use(tp, a);
    ck_assert_int_eq(ask("select x from t"), -1);
    ck_assert_ptr_nonnull(strstr(tp_error(tp), "no such table"));
    ck_assert_int_eq(ask("create perfetto table t as select 2 as x; select x from t"), 2);
    ck_assert_int_eq(tp_query(tp, "select ts from sched order by ts", &open), 0);
    ck_assert_int_eq(tp_step(open), 1);
    tp_view_use(tp, b); /* a result goes on where it was opened, whatever is done in other views */
    ck_assert_int_eq(ask("select count(*) from sched"), n);
    ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    tp_view_use(tp, NULL);
    ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    ck_assert_int_eq(ask("select x from t"), -1);
    int64_t rows = 1;
    while (tp_step(open) == 1)
        rows++;
    ck_assert_int_eq(rows, n);
    tp_result_close(open);
    tp_view_close(tp, b);
    tp_view_use(tp, a);
    ck_assert_int_eq(ask("select x from t"), 2);
    tp_view_close(tp, a); /* while it is in use */
    ck_assert_int_eq(ask("select count(*) from sched"), n);
    ck_assert_int_eq(tp_view_open(tp, &a), 0); /* tp_close() closes it */
    tp_view_use(tp, a);
}
END_TEST

static atomic_bool restoring;

static void *interrupt_always(void *unused)
{
    (void)unused;
    while (atomic_load(&restoring))
        tp_interrupt(tp);
    return NULL;
}

/* Ctrl-C while tables are reset: they are all there afterwards, and the next query runs. */
START_TEST(an_interrupt_leaves_the_initial_tables_whole)
{
    struct tp_result *r;
    pthread_t thread;
    atomic_store(&restoring, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, interrupt_always, NULL), 0);
    for (int i = 0; i < 20; i++)
        ck_assert_msg(tp_restore_initial_tables(tp) == 0, "%s", tp_error(tp));
    atomic_store(&restoring, false);
    pthread_join(thread, NULL);
    tp_interrupt_clear(tp);
    tp_interrupt(tp); /* one that comes before is forgotten: what it was to end has ended */
    ck_assert_int_eq(tp_restore_initial_tables(tp), 0);
    ck_assert_msg(tp_query(tp, "select count(*) from sched join thread using (utid)", &r) == 0, "%s", tp_error(tp));
    ck_assert_int_eq(tp_step(r), 1);
    tp_result_close(r);
}
END_TEST

START_TEST(a_result_knows_its_statement)
{
    struct tp_result *r;
    struct tp_statements s;
    static const char sql[] = " select 1 where 0; /* then */\nselect 'a;b' ;\n-- end\n";
    ck_assert_int_eq(tp_query(tp, sql, &r), 0);
    tp_result_statements(r, &s);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_uint_eq(s.with_output, 1);
    ck_assert_uint_eq(s.last_len, strlen("select 'a;b'"));
    ck_assert_mem_eq(sql + s.last_at, "select 'a;b'", s.last_len);
    tp_result_close(r);
}
END_TEST

START_TEST(metatrace_keeps_the_last_records)
{
    struct tp_result *r;
    void *bytes;
    size_t len;
    tp_metatrace_start(tp, TP_META_QUERY, 1);
    ck_assert_int_eq(tp_query(tp, "select 'first one'", &r), 0);
    tp_result_close(r);
    ck_assert_int_eq(tp_query(tp, "select 'second one'", &r), 0);
    tp_result_close(r);
    ck_assert_int_eq(tp_metatrace_stop(tp, &bytes, &len), 0);
    ck_assert_ptr_nonnull(memmem(bytes, len, "second one", 10));
    ck_assert_ptr_null(memmem(bytes, len, "first one", 9));
    tp_free(bytes);
    ck_assert_int_eq(tp_metatrace_stop(tp, &bytes, &len), 0);
    ck_assert_uint_eq(len, 0);
    tp_free(bytes);
}
END_TEST

Suite *tp_suite(void);
Suite *tp_suite(void)
{
    Suite *s = suite_create("tp");
    TCase *t = tcase_create("api");
    tcase_add_checked_fixture(t, open_recording, close_recording);
    tcase_add_test(t, calls_out_of_order);
    tcase_add_test(t, values);
    tcase_add_test(t, statements_one_by_one);
    tcase_add_test(t, stats_are_walked_in_order);
    tcase_add_test(t, restore_forgets_what_queries_made);
    tcase_add_test(t, a_package_that_is_refused_spoils_nothing);
    tcase_add_test(t, an_interrupt_ends_only_what_runs);
    tcase_add_test(t, views_keep_their_tables_apart);
    tcase_add_test(t, an_interrupt_leaves_the_initial_tables_whole);
    tcase_add_test(t, a_result_knows_its_statement);
    tcase_add_test(t, metatrace_keeps_the_last_records);
    suite_add_tcase(s, t);
    return s;
}
