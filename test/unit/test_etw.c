/* Events of Windows' kernel. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *const w = &f.w;

static void setup(void)
{
    trace_fixture_open(&f);
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define ARGS(row)                fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, row))

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

static int64_t tid_of(int64_t utid)
{
    return GET(thread, tid, (uint32_t)utid);
}

START_TEST(threads_run_wait_and_are_woken)
{
    /* Thread 7 runs on cpu 1, waits for a page, is woken by 8, and runs again; the last thread is not told. */
    PACKET(1000, "95{1:1 2{1:100 2{1:7 2:8 3:16 8:1}} 2{1:200 2{1:8 2:7 3:20 8:5 6:2}}"
                 "  2{1:300 5:8 3{1:7}} 2{1:400 4:1 2{1:7 2:8 8:4}} 2{1:500 2{2:7 13:14}}}");
    PACKET(1001,
           "95{2{4:1 2{1:7}} 2{1:600 4:4294967295 2{1:7}} 2{1:700 2{1:7}}}"); /* no time; a cpu that is none; none */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(sched_slice), 4);
    ck_assert_int_eq(tid_of(GET(sched_slice, utid, 0)), 7);
    ck_assert_int_eq(GET(sched_slice, ts, 0), 100);
    ck_assert_int_eq(GET(sched_slice, dur, 0), 100);
    ck_assert_int_eq(GET(sched_slice, priority, 0), 8); /* written as zigzag */
    ck_assert_str_eq(TEXT(sched_slice, end_state, 0), "Waiting");
    ck_assert_str_eq(TEXT(sched_slice, end_state, 1), "Terminated");
    ck_assert_str_eq(TEXT(sched_slice, end_state, 2), "DeferredReady");
    ck_assert_int_eq(tid_of(GET(sched_slice, utid, 3)), UINT32_MAX);
    ck_assert_str_eq(TEXT(thread, name, (uint32_t)GET(sched_slice, utid, 3)), "Anonymized Process");
    bool waited = false, woken = false;
    for (uint32_t i = 0; i < ROWS(thread_state); i++) {
        if (tid_of(GET(thread_state, utid, i)) != 7)
            continue;
        if (GET(thread_state, ts, i) == 200) {
            waited = true;
            ck_assert_str_eq(TEXT(thread_state, state, i), "Waiting");
            ck_assert_str_eq(TEXT(thread_state, blocked_function, i), "PageIn");
            ck_assert_int_eq(GET(thread_state, io_wait, i), 1);
        } else if (GET(thread_state, ts, i) == 300) {
            woken = true;
            ck_assert_str_eq(TEXT(thread_state, state, i), "R");
            ck_assert_int_eq(tid_of(GET(thread_state, waker_utid, i)), 8);
        }
    }
    ck_assert(waited && woken);
    ck_assert_int_eq(*stats_get_idx(&f.st.stats, 0, STAT_etw_parse_errors, 0), 2);
}
END_TEST

START_TEST(waits_whose_reason_is_not_told_or_not_known)
{
    PACKET(1000, "95{1:1 2{1:100 2{1:7 2:8}} 2{1:200 2{1:8 2:7 8:5}} 2{1:300 2{1:7 2:8 8:5 6:99}}"
                 "  2{1:400 2{1:9 2:7 8:5 6:35}} 2{1:500 2{1:8 2:9 8:9}}}");
    trace_fixture_load(&f);
    static const struct {
        int64_t ts, tid, io_wait;
        const char *function;
    } waits[] = {{200, 7, 0, "Executive"}, {300, 8, 0, NULL}, {400, 7, 1, "WrGuardedMutex"}};
    unsigned seen = 0;
    for (uint32_t i = 0; i < ROWS(thread_state); i++)
        for (size_t k = 0; k < sizeof waits / sizeof *waits; k++) {
            if (GET(thread_state, ts, i) != waits[k].ts || tid_of(GET(thread_state, utid, i)) != waits[k].tid)
                continue;
            seen++;
            ck_assert_int_eq(GET(thread_state, io_wait, i), waits[k].io_wait);
            if (waits[k].function)
                ck_assert_str_eq(TEXT(thread_state, blocked_function, i), waits[k].function);
            else
                ck_assert_int_eq(GET(thread_state, blocked_function, i), 0);
        }
    ck_assert_uint_eq(seen, sizeof waits / sizeof *waits);
    ck_assert_int_eq(stats_get(&f.st.stats, 0, STAT_task_state_invalid), 1);
}
END_TEST

START_TEST(pages_are_counted_by_list)
{
    PACKET(1000, "95{1:0 2{1:100 6{2:5 13:6 7:1 7:2 8:3}}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 13); /* lists that are not told are empty */
    ck_assert_double_eq(last_value(&f, "Free Page Count"), 0);
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, track, dimension_arg_set_id, 0)), "counter_type=Zero");
    ck_assert_double_eq(last_value(&f, "Zero Page Count"), 5);
    ck_assert_double_eq(last_value(&f, "Commit Page Count"), 6);
    ck_assert_double_eq(last_value(&f, "Standby Pri-1 Page Count"), 2);
    ck_assert_double_eq(last_value(&f, "Repurposed Pri-0 Page Count"), 3);
    ck_assert_str_eq(TEXT(track, type, 0), "etw_meminfo");
    ck_assert_str_eq(TEXT(track, counter_unit, 0), "pages");
}
END_TEST

START_TEST(operations_on_files_end_with_their_request)
{
    PACKET(1000, "95{1:0 2{1:100 5:7 7{1:11 2:12 4:1 7'C:/x'}} 2{1:110 5:7 10{2:22 1:4096 6:512 8:67}}"
                 "  2{1:150 5:7 12{1:22 2:512 3:0}} 2{1:160 5:8 12{1:11 3:5}}"
                 "  2{1:170 5:7 9{1:33 4:9 6:20 7:69}} 2{1:180 5:7 11{5:66}} 2{1:190 5:7 12{1:99}}"
                 "  2{1:200 5:7 14{1:33 6:90 7'y' 8:78}} 2{1:210 5:7 8{1:44 6:1 8'*.c' 9:72}}"
                 "  2{1:220 5:7 12{2:1}} 2{1:230 5:7 9{6:65}} 2{1:240 5:7 10{3:8 7:3}}}");
    trace_fixture_load(&f);
    static const struct {
        int64_t ts, dur;
        const char *name, *args;
    } expected[] = {
        {100, 60, "CreateFile", "I/O Request Packet=11 File Object=12 Create Options=1 Open Path=C:/x NT Status=5"},
        {110, 40, "ReadFile", "I/O Request Packet=22 Offset=4096 I/O Size=512 Extra Info=512 NT Status=0"},
        {170, 0, "SetInformation",
         "I/O Request Packet=33 File Size=9 Info Class=FileEndOfFileInformation Missing Event=End"},
        {180, 0, "Close", ""},
        {190, 0, "EndOperation", "Missing Event=Start"},
        {200, 0, "PathOperation", "I/O Request Packet=33 Info Class=90 File Name=y Missing Event=End"},
        {210, 0, "DirectoryEnumeration",
         "I/O Request Packet=44 Info Class=FileDirectoryInformation Enumeration Path=*.c Missing Event=End"},
        {220, 0, "EndOperation", "Extra Info=1"},
        {230, 0, "Info", "Info Class=FileRenameInformationEx"},
        {240, 0, "ReadOrWrite", "File Object=8 I/O Flags=3"},
    };
    ck_assert_uint_eq(ROWS(slice), sizeof expected / sizeof *expected);
    for (uint32_t i = 0; i < ROWS(slice); i++) {
        ck_assert_int_eq(GET(slice, ts, i), expected[i].ts);
        ck_assert_int_eq(GET(slice, dur, i), expected[i].dur);
        ck_assert_str_eq(TEXT(slice, name, i), expected[i].name);
        ck_assert_str_eq(ARGS(i), expected[i].args);
        ck_assert_int_eq(GET(slice, depth, i), 0);
        uint32_t track = (uint32_t)GET(slice, track_id, i);
        ck_assert_str_eq(TEXT(track, type, track), "etw_fileio");
        ck_assert_str_eq(TEXT(track, name, track), "File I/O (7)");
        ck_assert_int_eq(tid_of(GET(track, utid, track)), 7);
    }
}
END_TEST

Suite *etw_suite(void);

Suite *etw_suite(void)
{
    Suite *s = suite_create("etw");
    TCase *c = tcase_create("events");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, threads_run_wait_and_are_woken);
    tcase_add_test(c, waits_whose_reason_is_not_told_or_not_known);
    tcase_add_test(c, pages_are_counted_by_list);
    tcase_add_test(c, operations_on_files_end_with_their_request);
    suite_add_tcase(s, c);
    return s;
}
