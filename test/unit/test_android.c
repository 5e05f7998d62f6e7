/* Tests Android's own packets: lines of its log, and frames with their times and their jank. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

static struct trace_fixture f;
static struct pb_writer *w;

static void setup(void)
{
    trace_fixture_open(&f);
    w = &f.w;
}

static void teardown(void)
{
    trace_fixture_close(&f);
}

#define ROWS(table)              (f.st.t[T_##table].n_rows)
#define GET(table, column, row)  ROW_GET(&f.st, table, column, row)
#define TEXT(table, column, row) fixture_text(&f, GET(table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

/* A packet of sequence 1 at a time, in the notation of pb_text.h. */
#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

START_TEST(lines_of_the_log_have_their_own_times)
{
    PACKET(100, "6{1{1:6 2:100} 1{1:1 2:1000100}}"); /* REALTIME is 1 ms ahead of BOOTTIME */
    PACKET(900, "39{1{2:7 3:8 5:1000300 6'tag' 7:6 8'text'} 1{5:1000200 9{1'i' 2:3} 9{1's' 4'x y'} 9{1'n'} 9{2:9}}"
                "   2{1:5 2:6 3:7}}");
    PACKET(901, "39{1{5:-1 8'no time'}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(logs), 2);
    ck_assert_int_eq(GET(logs, ts, 0), 200);
    ck_assert_int_eq(GET(logs, utid, 0), 0);
    ck_assert_int_eq(GET(logs, prio, 0), 4);
    ck_assert_str_eq(TEXT(logs, tag, 0), "");
    ck_assert_str_eq(TEXT(logs, msg, 0), " i=3 s=\"x y\" n= =9");
    ck_assert_int_eq(GET(logs, ts, 1), 300);
    ck_assert_int_eq(GET(thread, tid, (uint32_t)GET(logs, utid, 1)), 8);
    ck_assert_int_eq(GET(logs, prio, 1), 6);
    ck_assert_str_eq(TEXT(logs, tag, 1), "tag");
    ck_assert_str_eq(TEXT(logs, msg, 1), "text");
    ck_assert_str_eq(TEXT(logs, log_source, 1), "android_logcat");
    ck_assert_int_eq(STAT(android_log_num_total), 5);
    ck_assert_int_eq(STAT(android_log_num_failed), 6);
    ck_assert_int_eq(STAT(android_log_num_skipped), 7);
}
END_TEST

START_TEST(long_values_of_the_log_are_cut)
{
    char text[5001];
    memset(text, 'x', 5000);
    text[5000] = 0;
    PACKET(100, "6{1{1:6 2:100} 1{1:1 2:100}}");
    PACKET(900, "39{1{5:300 8'%s' 9{1'i' 2:3}}}", text);
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(logs), 1);
    ck_assert_uint_eq(strlen(TEXT(logs, msg, 0)), 4096);
}
END_TEST

START_TEST(frames_are_expected_and_come)
{
    PACKET(10, "76{3{1:1 2:40 3:50 4:7 5'top'}}"); /* an app's frame is expected */
    PACKET(11, "76{3{1:2 2:40 3:50 4:7 5'top'}}"); /* told again */
    PACKET(12, "76{1{1:3 2:50 3:8}}");             /* and the display's */
    PACKET(13, "76{4{1:4 2:40 3:50 4:7 5'top' 6:2 7:0 8:1 9:66 10:1 11:1 19:2}}");
    PACKET(14, "76{2{1:5 2:50 3:8 4:1 5:1 7:1 8:1 15:0}}");
    for (int cookie = 1; cookie <= 5; cookie++)
        PACKET(20 + cookie, "76{5{1:%d}}", cookie);
    PACKET(30, "76{5{1:4}}"); /* ended before */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 4);
    ck_assert_str_eq(TEXT(slice, name, 0), "40");
    ck_assert_int_eq(GET(slice, dur, 0), 11);
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, 0)),
                     "Surface frame token=40 Display frame token=50 Layer name=top");
    ck_assert_str_eq(fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, 1)), "Display frame token=50");
    ck_assert_int_eq(GET(slice, dur, 2), 11);
    ck_assert_str_eq(
        fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, 2)),
        "Surface frame token=40 Display frame token=50 Present Delay (ms)=0 Vsync Resynced Jitter (ms)=0 Layer "
        "name=top "
        "Present type=Late Present Present type (experimental)=Unspecified Present On time finish=0 GPU composition=1 "
        "Jank type=SurfaceFlinger Scheduling, App Deadline Missed Jank type (experimental)=Unspecified "
        "Jank severity type=Unknown Jank Severity Score=0 Prediction type=Valid Prediction Jank tag=Self Jank "
        "Jank tag (experimental)=Unspecified Is Buffer?=Yes Jank Metadata (debugging only)=0 "
        "Latched fence state=Latched Unsignaled");
    ck_assert_str_eq(
        fixture_args(&f, ROW_ARGS(&f.st, slice, arg_set_id, 3)),
        "Display frame token=50 Present Delay (ms)=0 Present type=On-time Present Present type "
        "(experimental)=Unspecified Present On time finish=1 GPU composition=0 Jank type=None Jank type "
        "(experimental)=Unspecified Jank severity type=None Jank Severity Score=0 Prediction type=Valid Prediction "
        "Jank "
        "tag=No Jank Jank tag (experimental)=Unspecified Jank Metadata (debugging only)=0 Latched unsignaled count=0");
    ck_assert_uint_eq(ROWS(flow), 1);
    ck_assert_int_eq(GET(flow, slice_out, 0), 2);
    ck_assert_int_eq(GET(flow, slice_in, 0), 3);
    ck_assert_int_eq(GET(flow, trace_id, 0), COL_NULL);
    ck_assert_int_eq(STAT(frame_timeline_unpaired_end_event), 2);
    ck_assert_int_eq(STAT(frame_timeline_event_parser_errors), 0);
}
END_TEST

START_TEST(frames_that_lack_something_are_counted)
{
    PACKET(10, "76{}");
    PACKET(11, "76{1{1:3 2:50}}");             /* of no process */
    PACKET(12, "76{3{1:1 2:40 4:7}}");         /* of no display frame */
    PACKET(13, "76{2{1:5 2:50 3:8 4:9 8:1}}"); /* a present type that is none: counted, yet shown */
    PACKET(14, "76{5{}}");
    PACKET(9223372036854775806, "76{1{1:3 2:50 3:8}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_str_eq(TEXT(slice, name, 0), "50");
    ck_assert_int_eq(STAT(frame_timeline_event_parser_errors), 6);
}
END_TEST

Suite *android_suite(void);

Suite *android_suite(void)
{
    Suite *s = suite_create("android");
    TCase *c = tcase_create("packets");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, lines_of_the_log_have_their_own_times);
    tcase_add_test(c, long_values_of_the_log_are_cut);
    tcase_add_test(c, frames_are_expected_and_come);
    tcase_add_test(c, frames_that_lack_something_are_counted);
    suite_add_tcase(s, c);
    return s;
}
