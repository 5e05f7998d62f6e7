/* Tests which utid and upid a tid and a pid mean over time. */
#include "unit/importer_fixture.h"

static struct importer_fixture f;
static struct process_tracker *t;

static void setup(void)
{
    importer_fixture_open(&f);
    t = f.m.processes;
}

static void teardown(void)
{
    importer_fixture_close(&f);
}

#define THREAD(column, row)  ROW_GET(&f.st, thread, column, row)
#define PROCESS(column, row) ROW_GET(&f.st, process, column, row)

START_TEST(the_idle_thread_is_row_zero)
{
    ck_assert_uint_eq(process_tracker_idle_utid(t), 0);
    ck_assert_uint_eq(process_tracker_thread(t, 0), 0);
    ck_assert_int_eq(THREAD(is_idle, 0), 1);
    ck_assert_int_eq(THREAD(is_main_thread, 0), 1);
    ck_assert_int_eq(THREAD(upid, 0), 0);
    ck_assert_str_eq(strpool_cstr(&f.st.strings, (strid)THREAD(name, 0)), "swapper");
    process_tracker_end_thread(t, 5, 0);
    ck_assert_int_eq(THREAD(end_ts, 0), COL_NULL);
}
END_TEST

START_TEST(a_tid_is_reused)
{
    uint32_t first = process_tracker_start_thread(t, 10, 7);
    ck_assert_uint_eq(process_tracker_thread(t, 7), first);
    process_tracker_end_thread(t, 20, 7);
    ck_assert_int_eq(THREAD(end_ts, first), 20);
    ck_assert_uint_eq(process_tracker_find_thread(t, 7), UTID_NONE);
    uint32_t second = process_tracker_thread(t, 7);
    ck_assert_uint_ne(second, first);
    ck_assert_int_eq(THREAD(start_ts, second), COL_NULL);
    uint32_t far = process_tracker_thread(t, 1 << 30); /* beyond the direct table */
    ck_assert_uint_eq(process_tracker_thread(t, 1 << 30), far);
    ck_assert_uint_eq(process_tracker_find_thread(t, -1), UTID_NONE);
}
END_TEST

START_TEST(ending_a_thread_nobody_knows_makes_none)
{
    uint32_t before = f.st.t[T_thread].n_rows;
    process_tracker_end_thread(t, 20, 99);
    ck_assert_uint_eq(f.st.t[T_thread].n_rows, before);
}
END_TEST

START_TEST(a_process_dies_with_its_main_thread)
{
    uint32_t worker = process_tracker_update_thread(t, 11, 10);
    uint32_t upid = process_tracker_process(t, 10);
    ck_assert_int_eq(THREAD(upid, worker), upid);
    ck_assert_int_eq(THREAD(is_main_thread, worker), 0);
    ck_assert_uint_eq(process_tracker_find_thread(t, 10), UTID_NONE); /* a worker does not bring its main thread */
    uint32_t main_utid = process_tracker_update_thread(t, 10, 10);
    ck_assert_int_eq(THREAD(is_main_thread, main_utid), 1);
    process_tracker_end_thread(t, 50, 10);
    ck_assert_int_eq(PROCESS(end_ts, upid), 50);
    ck_assert_uint_eq(process_tracker_find_process(t, 10), UPID_NONE);
    ck_assert_uint_eq(process_tracker_find_thread(t, 11), UTID_NONE); /* its threads are dead as well */
    ck_assert_uint_ne(process_tracker_process(t, 10), upid);
}
END_TEST

START_TEST(exits_are_ends_when_nothing_else_tells)
{
    uint32_t main_utid = process_tracker_update_thread(t, 10, 10), worker = process_tracker_update_thread(t, 11, 10);
    uint32_t survivor = process_tracker_update_thread(t, 21, 20);
    uint32_t process = process_tracker_process(t, 10), other = process_tracker_process(t, 20);
    process_tracker_exit_thread(t, 40, 10);
    process_tracker_exit_thread(t, 50, 11); /* the main thread may go first */
    process_tracker_exit_thread(t, 60, 20); /* 21 is alive: so is the process */
    process_tracker_exit_thread(t, 60, 0);
    process_tracker_exit_thread(t, 60, 99);
    ck_assert_uint_eq(process_tracker_find_thread(t, 10), main_utid); /* it still runs for a moment */
    process_tracker_finish(t);
    ck_assert_int_eq(THREAD(end_ts, main_utid), 40);
    ck_assert_int_eq(THREAD(end_ts, worker), 50);
    ck_assert_int_eq(PROCESS(end_ts, process), 50);
    ck_assert_int_eq(THREAD(end_ts, survivor), COL_NULL);
    ck_assert_int_eq(PROCESS(end_ts, other), COL_NULL);
    ck_assert_int_eq(THREAD(end_ts, 0), COL_NULL);
    ck_assert_int_eq(PROCESS(end_ts, 0), COL_NULL);
    ck_assert_uint_eq(process_tracker_find_thread(t, 99), UTID_NONE);
}
END_TEST

START_TEST(where_ends_are_told_exits_are_none)
{
    uint32_t first = process_tracker_update_thread(t, 10, 10), second = process_tracker_update_thread(t, 20, 20);
    process_tracker_exit_thread(t, 40, 10);
    process_tracker_free_thread(t, 45, 10);
    process_tracker_exit_thread(t, 50, 20); /* a zombie at the end */
    process_tracker_finish(t);
    ck_assert_int_eq(THREAD(end_ts, first), 45);
    ck_assert_int_eq(THREAD(end_ts, second), COL_NULL);
}
END_TEST

START_TEST(fork_makes_a_process_and_remembers_the_parent)
{
    strid sh = fixture_str(&f, "sh");
    uint32_t parent_thread = process_tracker_thread(t, 20); /* its process is not known yet */
    uint32_t child = process_tracker_start_process(t, 100, 20, 30, sh, THREAD_NAME_FTRACE);
    uint32_t child_upid = process_tracker_process(t, 30);
    ck_assert_int_eq(THREAD(start_ts, child), 100);
    ck_assert_int_eq(PROCESS(start_ts, child_upid), 100);
    ck_assert_int_eq(PROCESS(name, child_upid), sh);
    ck_assert_int_eq(PROCESS(parent_upid, child_upid), COL_NULL);
    ck_assert_uint_eq(process_tracker_update_thread(t, 20, 20), parent_thread);
    ck_assert_int_eq(PROCESS(parent_upid, child_upid), process_tracker_find_process(t, 20));
    /* the pid comes again */
    uint32_t again = process_tracker_start_process(t, 200, 20, 30, sh, THREAD_NAME_FTRACE);
    ck_assert_uint_ne(again, child);
    ck_assert_uint_ne(process_tracker_find_process(t, 30), child_upid);
    ck_assert_uint_eq(process_tracker_thread(t, 30), again);
}
END_TEST

START_TEST(threads_of_one_unknown_process_follow_each_other)
{
    uint32_t a = process_tracker_thread(t, 1001), b = process_tracker_start_thread(t, 1, 1002),
             c = process_tracker_start_thread(t, 2, 1003);
    process_tracker_associate_threads(t, b, a);
    process_tracker_associate_threads(t, c, b);
    ck_assert_int_eq(THREAD(upid, c), COL_NULL);
    process_tracker_update_thread(t, 1001, 1000);
    uint32_t upid = process_tracker_find_process(t, 1000);
    ck_assert_int_eq(THREAD(upid, b), upid);
    ck_assert_int_eq(THREAD(upid, c), upid);
    uint32_t other = process_tracker_update_thread(t, 2001, 2000);
    process_tracker_associate_threads(t, other, a);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_process_tracker_errors), 1);
}
END_TEST

START_TEST(a_name_gives_way_to_the_same_or_a_higher_priority)
{
    uint32_t utid = process_tracker_thread(t, 5);
    strid comm = fixture_str(&f, "comm"), tree = fixture_str(&f, "tree"), next = fixture_str(&f, "next");
    process_tracker_thread_name(t, utid, comm, THREAD_NAME_FTRACE);
    process_tracker_thread_name(t, utid, tree, THREAD_NAME_PROCESS_TREE);
    process_tracker_thread_name(t, utid, comm, THREAD_NAME_FTRACE);
    ck_assert_int_eq(THREAD(name, utid), tree);
    process_tracker_thread_name(t, utid, next, THREAD_NAME_PROCESS_TREE);
    ck_assert_int_eq(THREAD(name, utid), next);
    process_tracker_thread_name(t, utid, 0, THREAD_NAME_CONSTANT);
    ck_assert_int_eq(THREAD(name, utid), next);
}
END_TEST

START_TEST(process_tree_sets_what_it_knows)
{
    strid name = fixture_str(&f, "app"), cmdline = fixture_str(&f, "app --flag");
    uint32_t upid = process_tracker_set_metadata(t, 100, 1, name, cmdline);
    ck_assert_int_eq(PROCESS(pid, upid), 100);
    ck_assert_int_eq(PROCESS(parent_upid, upid), process_tracker_find_process(t, 1));
    process_tracker_set_uid(t, upid, 1010123);
    ck_assert_int_eq(PROCESS(android_appid, upid), 10123);
    ck_assert_int_eq(PROCESS(android_user_id, upid), 10);
    process_tracker_set_start_ts(t, upid, 7);
    process_tracker_set_start_ts(t, upid, 8);
    ck_assert_int_eq(PROCESS(start_ts, upid), 7);
}
END_TEST

START_TEST(namespaced_tids_are_resolved)
{
    process_tracker_set_namespaced_process(t, 1001, 1, 1);
    ck_assert(process_tracker_set_namespaced_thread(t, 1001, 1002, 2, 1));
    ck_assert(!process_tracker_set_namespaced_thread(t, 77, 78, 2, 1));
    ck_assert_int_eq(process_tracker_resolve_namespaced(t, 1001, 2), 1002);
    ck_assert_int_eq(process_tracker_resolve_namespaced(t, 1001, 3), -1);
    ck_assert_int_eq(process_tracker_resolve_namespaced(t, 0, 2), -1);
}
END_TEST

START_TEST(a_tid_of_many_processes_is_a_thread_of_each)
{
    enum { PROCESSES = 200 };
    uint32_t utids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++)
        utids[i] = process_tracker_update_thread(t, 1, 1000 + i);
    uint32_t n = f.st.t[T_thread].n_rows;
    for (int i = 0; i < PROCESSES; i++)
        ck_assert_uint_eq(process_tracker_update_thread(t, 1, 1000 + i), utids[i]);
    ck_assert_uint_eq(f.st.t[T_thread].n_rows, n);
    /* A pid that begins anew has threads of its own. */
    process_tracker_start_process(t, 5, COL_NULL, 1000, 0, 0);
    ck_assert_uint_ne(process_tracker_update_thread(t, 1, 1000), utids[0]);
}
END_TEST

/* Look-ups are remembered: what ends or begins in between is seen by the next one. */
START_TEST(a_look_up_does_not_outlive_its_thread)
{
    uint32_t first = process_tracker_update_thread(t, 11, 10);
    ck_assert_uint_eq(process_tracker_update_thread(t, 11, 10), first);
    ck_assert_uint_eq(process_tracker_thread(t, 11), first);
    uint32_t second = process_tracker_update_thread(t, 11, 20);
    ck_assert_uint_ne(second, first);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(process_tracker_update_thread(t, 11, 10), first);
        ck_assert_uint_eq(process_tracker_update_thread(t, 11, 20), second);
        ck_assert_uint_eq(process_tracker_thread(t, 11), second);
    }
    process_tracker_end_thread(t, 50, 11);
    uint32_t third = process_tracker_update_thread(t, 11, 20);
    ck_assert_uint_ne(third, second);
    ck_assert_uint_ne(third, first);
    ck_assert_uint_eq(process_tracker_thread(t, 11), third);
    ck_assert_uint_eq(process_tracker_update_thread(t, 11, 10), first);
    /* A thread that waits to be told its process follows one that was looked up lately. */
    uint32_t waits = process_tracker_thread(t, 12);
    ck_assert_uint_eq(process_tracker_update_thread(t, 11, 20), third);
    process_tracker_associate_threads(t, waits, process_tracker_thread(t, 13));
    process_tracker_update_thread(t, 13, 30);
    process_tracker_update_thread(t, 13, 30);
    ck_assert_int_eq(THREAD(upid, waits), process_tracker_process(t, 30));
}
END_TEST

Suite *process_tracker_suite(void);

Suite *process_tracker_suite(void)
{
    Suite *s = suite_create("process_tracker");
    TCase *c = tcase_create("core");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_idle_thread_is_row_zero);
    tcase_add_test(c, a_tid_is_reused);
    tcase_add_test(c, a_tid_of_many_processes_is_a_thread_of_each);
    tcase_add_test(c, a_look_up_does_not_outlive_its_thread);
    tcase_add_test(c, ending_a_thread_nobody_knows_makes_none);
    tcase_add_test(c, a_process_dies_with_its_main_thread);
    tcase_add_test(c, exits_are_ends_when_nothing_else_tells);
    tcase_add_test(c, where_ends_are_told_exits_are_none);
    tcase_add_test(c, fork_makes_a_process_and_remembers_the_parent);
    tcase_add_test(c, threads_of_one_unknown_process_follow_each_other);
    tcase_add_test(c, a_name_gives_way_to_the_same_or_a_higher_priority);
    tcase_add_test(c, process_tree_sets_what_it_knows);
    tcase_add_test(c, namespaced_tids_are_resolved);
    suite_add_tcase(s, c);
    return s;
}
