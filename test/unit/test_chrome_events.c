/* Tests what Chrome and others put into track events beside names and times: the order of args, log messages, what is
 * known of extensions, and what processes say of themselves. */
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
#define ARGS(table, column, row) fixture_args(&f, ROW_ARGS(&f.st, table, column, row))
#define STAT(name)               stats_get(&f.st.stats, 0, STAT_##name)

#define PACKET(ts, ...)                                                                                                \
    do {                                                                                                               \
        packet_begin(&f, ts);                                                                                          \
        put(w, __VA_ARGS__);                                                                                           \
        packet_end(&f);                                                                                                \
    } while (0)

START_TEST(args_have_an_order_of_their_own)
{
    PACKET(1, "13:1 12{4{1:1 2'a.cc' 3'fn' 4:7} 4{1:2 2'b.cc'} 20{1:3 2'disk is full'} 43{1:4 2'text'}}");
    PACKET(2, "60{1:1 4{1:7 2:8}}");
    PACKET(10, "11{9:3 11:1 4{10'd' 4:1} 1064{} 52:5 32{1:1} 21{2:3 1:1 3:6} 5{1:2} 34:1}");
    PACKET(11, "11{9:3 11:1 35{2:2} 54:4}");
    trace_fixture_load(&f);
    ck_assert_str_eq(
        ARGS(slice, arg_set_id, 0),
        "source.file_name=a.cc source.function_name=fn source.line_number=7 "
        "task.posted_from.file_name=b.cc task.posted_from.function_name=(null) task.posted_from.line_number=0 "
        "track_event.log_message.message=disk is full track_event.log_message.file_name=a.cc "
        "track_event.log_message.function_name=fn track_event.log_message.line_number=7 "
        "track_event.priority=6 correlation_id=tp:#5 animation_frame_timing_info=0 "
        "chrome_frame_reporter.state=STATE_PRESENTED_ALL source_location_iid=1 debug.d=1");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 1), "correlation_id=text chrome_message_pump.io_handler_location_iid=2");
}
END_TEST

/* Types of Chrome's processes and threads stand for names, in its own descriptors and in those before. */
START_TEST(types_are_names)
{
    PACKET(1, "13:1 60{1:1 3{1:5} 6{1:9}}");
    PACKET(2, "60{1:2 3{1:6 4:2}}");
    PACKET(3, "60{1:3 3{1:7} 6{1:43}}"); /* not known */
    PACKET(4, "60{1:4 4{1:5 2:8 4:8}}");
    PACKET(5, "60{1:5 4{1:5 2:9} 7{1:15}}");
    PACKET(6, "60{1:6 4{1:5 2:10 4:8 5'own'}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(process, name, 1), "Service: network.mojom.NetworkService");
    ck_assert_str_eq(ARGS(process, arg_set_id, 1), "chrome.process_type=Service: network.mojom.NetworkService");
    ck_assert_str_eq(TEXT(process, name, 2), "Renderer");
    ck_assert_int_eq(GET(process, name, 3), 0);
    static const char *const threads[] = {"Compositor", "CrBrowserMain", "own"};
    for (uint32_t i = 0, row = 0; row < ROWS(thread); row++)
        if (GET(thread, tid, row) >= 8)
            ck_assert_str_eq(TEXT(thread, name, row), threads[i++]);
}
END_TEST

START_TEST(log_messages_are_lines_of_a_thread)
{
    PACKET(1, "13:1 12{4{1:1 2'a.cc' 4:7} 20{1:3 2'disk is full'}}");
    PACKET(2, "60{1:1 4{1:7 2:8}}");
    PACKET(3, "60{1:2 2'nobody'}");
    PACKET(10, "11{9:3 11:1 21{1:1 2:3 3:6}}");
    PACKET(11, "11{9:3 11:1 21{2:3}}");
    PACKET(12, "11{9:3 11:2 21{2:3}}"); /* of no thread */
    PACKET(13, "11{9:3 11:1 21{2:9}}"); /* a text that nothing has defined */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(logs), 2);
    ck_assert_str_eq(TEXT(logs, tag, 0), "a.cc:7");
    ck_assert_str_eq(TEXT(logs, msg, 0), "disk is full");
    ck_assert_str_eq(TEXT(logs, log_source, 0), "android_logcat");
    ck_assert_int_eq(GET(logs, prio, 0), 6);
    ck_assert_int_eq(GET(thread, tid, (uint32_t)GET(logs, utid, 0)), 8);
    ck_assert_int_eq(GET(logs, prio, 1), 4);
    ck_assert_int_eq(GET(logs, tag, 1), 0);
    ck_assert_int_eq(STAT(track_event_parser_errors), 2);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 1), "track_event.log_message.message=disk is full");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 2), "legacy_event.passthrough_utid=2");
}
END_TEST

START_TEST(extensions_are_known_without_descriptors)
{
    PACKET(1, "13:1 60{1:1 2'track'}");
    PACKET(10, "11{9:3 11:1 1000:2 2008{1:3} 1002{1:5}}");
    trace_fixture_load(&f);
    const char *args = ARGS(slice, arg_set_id, 0);
    ck_assert_ptr_nonnull(strstr(args, "chrome_app_state=APP_STATE_BACKGROUND"));
    ck_assert_ptr_nonnull(strstr(args, "broadcast_event.receiver_uid=3"));
    ck_assert_ptr_nonnull(strstr(args, "chrome_task_annotator."));
    ck_assert_int_eq(STAT(unknown_extension_fields), 0);
}
END_TEST

START_TEST(counters_on_other_tracks_are_counted)
{
    PACKET(1, "13:1 60{1:1 2'track'}");
    PACKET(10, "11{9:4 11:1 30:5}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 0);
    ck_assert_int_eq(STAT(track_event_counter_invalid_track_uuid), 1);
    ck_assert_int_eq(STAT(track_event_parser_errors), 0);
}
END_TEST

START_TEST(processes_tell_of_themselves)
{
    PACKET(1, "13:1 60{1:1 3{1:7 8'first' 8'second'} 6{1:2 4'com.host' 5:99}}");
    PACKET(2, "60{1:2 3{1:8} 6{}}");
    PACKET(3, "60{1:3 4{1:9 2:1} 7{3:1}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(ARGS(process, arg_set_id, 1),
                     "chrome.process_type=Renderer chrome.host_app_package_name=com.host chrome.crash_trace_id=99 "
                     "chrome.process_label[0]=first chrome.process_label[1]=second");
    ck_assert_str_eq(ARGS(process, arg_set_id, 2), "chrome.process_type=(null)");
    int64_t tid = (int64_t)9 << 32 | 1;
    bool found = false;
    for (uint32_t i = 0; i < ROWS(thread); i++)
        found |= GET(thread, tid, i) == tid;
    ck_assert(found);
}
END_TEST

START_TEST(processes_that_lost_data)
{
    PACKET(100, "13:1 60{1:1 2'browser'}");
    PACKET(1000000000, "60{1:10 3{1:10}}");                /* in time */
    PACKET(1000000001, "11{9:3 11:1 49{1:10 1:11 1:12}}"); /* 11 describes itself late, 12 never does */
    PACKET(2000000000, "60{1:11 3{1:11}}");
    PACKET(3000000000, "11{9:3 11:1 1042{1:10}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(experimental_missing_chrome_processes), 3);
    for (uint32_t i = 0; i < 3; i++) {
        int64_t pid = GET(process, pid, (uint32_t)GET(experimental_missing_chrome_processes, upid, i)),
                from = GET(experimental_missing_chrome_processes, reliable_from, i);
        ck_assert_int_eq(from, pid == 10 ? COL_NULL : pid == 11 ? 2000000000 : 3000000000);
    }
}
END_TEST

START_TEST(processes_that_android_started)
{
    PACKET(1, "13:1 60{1:1 2'framework'}");
    PACKET(5, "2{1{1:42 2:1 3'init'}}");
    PACKET(10, "11{9:3 11:1 2010{1:10001 2:42 3'com.app' 4:7 5:8 6'com.app/.Main' 7:1 8:999 10:3 11:10001}}");
    PACKET(20, "11{9:3 11:1 2010{2:42 12:1000}}");
    PACKET(30, "11{9:3 11:1 2013{2:42}}");
    PACKET(40, "11{9:3 11:1 2013{2:77}}"); /* of no process that is known */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(android_track_event_process), 1);
    ck_assert_int_eq(GET(android_track_event_process, fw_start_ts, 0), 10);
    ck_assert_int_eq(GET(android_track_event_process, fw_end_ts, 0), 30);
    ck_assert_int_eq(GET(android_track_event_process, start_seq_id, 0), 3);
    ck_assert_int_eq(GET(android_track_event_process, caller_uid, 0), 1000);
    ck_assert_int_eq(GET(android_track_event_process, defining_uid, 0), COL_NULL);
    ck_assert_str_eq(TEXT(android_track_event_process, hosting_name, 0), "com.app/.Main");
    ck_assert_str_eq(TEXT(android_track_event_process, trigger_type, 0), "999");
    ck_assert_int_ne(TEXT(android_track_event_process, hosting_type, 0)[0], '1'); /* its name */
}
END_TEST

/* The value of a metadata row by name: the text, or "(null)". */
static const char *metadata_text(const char *name, int64_t *number)
{
    for (uint32_t i = 0; i < ROWS(metadata); i++)
        if (strcmp(TEXT(metadata, name, i), name) == 0) {
            *number = GET(metadata, int_value, i);
            return TEXT(metadata, str_value, i);
        }
    return "none";
}

START_TEST(metadata_of_older_recordings)
{
    int64_t number;
    PACKET(10, "5{2{1'os' 2'Linux'} 2{1'cpus' 4:8} 4'one,' 4'two' 5{2'[]'} 5{1:1 2'no'}}");
    PACKET(20, "5{2{1'os' 2'other'}}");
    PACKET(30, "48{1:5 3'speed' 7'a' 7'b' 9:1}");
    trace_fixture_load(&f);
    ck_assert_str_eq(metadata_text("cr-os", &number), "Linux");
    ck_assert_str_eq(metadata_text("cr-2-os", &number), "other");
    metadata_text("cr-cpus", &number);
    ck_assert_int_eq(number, 8);
    ck_assert_str_eq(metadata_text("benchmark_name", &number), "speed");
    ck_assert_str_eq(metadata_text("benchmark_story_tags", &number), "a");
    metadata_text("benchmark_had_failures", &number);
    ck_assert_int_eq(number, 1);
    ck_assert_uint_eq(ROWS(chrome_raw), 4);
    ck_assert_str_eq(ARGS(chrome_raw, arg_set_id, 0), "os=Linux cpus=8");
    ck_assert_str_eq(ARGS(chrome_raw, arg_set_id, 1), "data=one,two");
    ck_assert_str_eq(TEXT(chrome_raw, name, 2), "chrome_event.legacy_user_trace");
    ck_assert_str_eq(ARGS(chrome_raw, arg_set_id, 2), "data=[]");
}
END_TEST

Suite *chrome_events_suite(void);

Suite *chrome_events_suite(void)
{
    Suite *s = suite_create("chrome_events");
    TCase *c = tcase_create("packets");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, args_have_an_order_of_their_own);
    tcase_add_test(c, types_are_names);
    tcase_add_test(c, log_messages_are_lines_of_a_thread);
    tcase_add_test(c, extensions_are_known_without_descriptors);
    tcase_add_test(c, counters_on_other_tracks_are_counted);
    tcase_add_test(c, processes_tell_of_themselves);
    tcase_add_test(c, processes_that_lost_data);
    tcase_add_test(c, processes_that_android_started);
    tcase_add_test(c, metadata_of_older_recordings);
    suite_add_tcase(s, c);
    return s;
}
