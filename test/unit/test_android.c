/* Tests Android's own packets: lines of its log, and frames with their times and their jank. */
#include "unit/pb_text.h"
#include "unit/sql_fixture.h"
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
    PACKET(13, "76{2{1:6 2:51 3:8 4:9 8:9}}"); /* two of them */
    PACKET(14, "76{5{}}");
    PACKET(9223372036854775806, "76{1{1:3 2:50 3:8}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_str_eq(TEXT(slice, name, 0), "50");
    ck_assert_int_eq(STAT(frame_timeline_event_parser_errors), 8);
}
END_TEST

#define ARGS(table, column, row) fixture_args(&f, ROW_ARGS(&f.st, table, column, row))
#define VALUE(row)               column_f64(GET(counter, value, row))

static const char *track_of(uint32_t slice)
{
    return TEXT(track, name, (uint32_t)GET(slice, track_id, slice));
}

START_TEST(settings_of_a_device)
{
    PACKET(10, "127{1{1'ns' 2'flag' 3'pkg' 4'system' 5'true' 7:2 8:1 9:2 10:1} 1{2'other' 3'pkg' 6'staged' 7:77}}");
    PACKET(11, "127{2'no access'}");
    PACKET(12, "83{1{1'game' 2:10001 3:2 4{1:2 2:1} 4{1:9}} 2:1 3:1}");
    PACKET(13, "123{1{1'android.os.usertype.full.SYSTEM' 2:0} 1{1'profile' 2:10}}");
    PACKET(14, "123{1{1'again' 2:10} 2:-1}");
    PACKET(15, "83{2:1}"); /* the last list counts */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(android_aflags), 2);
    ck_assert_str_eq(TEXT(android_aflags, package, 0), "pkg");
    ck_assert_str_eq(TEXT(android_aflags, permission, 0), "read-write");
    ck_assert_str_eq(TEXT(android_aflags, value_picked_from, 0), "default");
    ck_assert_str_eq(TEXT(android_aflags, storage_backend, 0), "aconfigd");
    ck_assert_str_eq(TEXT(android_aflags, type, 0), "boolean");
    ck_assert_int_eq(GET(android_aflags, staged_value, 0), 0);
    ck_assert_str_eq(TEXT(android_aflags, staged_value, 1), "staged");
    ck_assert_str_eq(TEXT(android_aflags, permission, 1), "unspecified");
    ck_assert_int_eq(STAT(android_aflags_errors), 1);
    ck_assert_str_eq(ARGS(trace_import_logs, arg_set_id, 0), "error=no access");
    ck_assert_uint_eq(ROWS(android_game_intervention_list), 1);
    ck_assert_int_eq(GET(android_game_intervention_list, current_mode, 0), 2);
    ck_assert_int_eq(GET(android_game_intervention_list, standard_mode_supported, 0), 0);
    ck_assert_int_eq(GET(android_game_intervention_list, standard_mode_use_angle, 0), COL_NULL);
    ck_assert_int_eq(GET(android_game_intervention_list, perf_mode_use_angle, 0), 1);
    ck_assert_double_eq(column_f64(GET(android_game_intervention_list, perf_mode_fps, 0)), 0);
    ck_assert_int_eq(GET(android_game_intervention_list, battery_mode_fps, 0), COL_NULL_F64);
    ck_assert_int_eq(STAT(game_intervention_has_parse_errors), 1);
    ck_assert_int_eq(STAT(game_intervention_has_read_errors), 0);
    ck_assert_uint_eq(ROWS(android_user_list), 2);
    ck_assert_int_eq(GET(android_user_list, android_user_id, 1), 10);
    ck_assert_str_eq(TEXT(android_user_list, type, 1), "profile");
    ck_assert_int_eq(STAT(user_list_errors), 1);
}
END_TEST

START_TEST(system_properties)
{
    PACKET(10, "86{1{1'debug.tracing.battery_stats.audio' 2'1'} 1{1'debug.tracing.device_state' 2'3:OPEN'}"
               "1{1'debug.tracing.mcc' 2'310'} 1{1'debug.tracing.plug_type' 2'2'} 1{1'debug.tracing.mnc' 2'x'}"
               "1{1'debug.tracing.screen_state' 2'2'} 1{1'other' 2'2'} 1{1'debug.tracing.wallpaper.package_name' 2'p'}"
               "1{1'debug.tracing.profile_system_server' 2'1'} 1{1'debug.tracing.mnc' 2'99999999999'}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(counter), 4);
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 0)), "battery_stats.audio");
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 1)), "mcc");
    ck_assert_str_eq(ARGS(track, dimension_arg_set_id, (uint32_t)GET(counter, track_id, 1)),
                     "sysprop_name=debug.tracing.mcc");
    ck_assert_double_eq(VALUE(1), 310);
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 2)), "PlugType");
    ck_assert_str_eq(TEXT(track, name, (uint32_t)GET(counter, track_id, 3)), "ScreenState");
    ck_assert_uint_eq(ROWS(slice), 1);
    ck_assert_str_eq(TEXT(slice, name, 0), "3:OPEN");
    ck_assert_str_eq(track_of(0), "DeviceStateChanged");
}
END_TEST

START_TEST(kernel_wakelocks_add_up)
{
    PACKET(10, "13:1 115{1{1:1 2'wlan' 3:1} 1{1:2 2'usb' 3:2} 2:1 2:2 3:5 3:7}");
    PACKET(20, "115{2:1 3:1}"); /* usb stays */
    PACKET(30, "115{2:3 3:1}");
    PACKET(40, "115{2:2 3:1 4:5 1{1:1 2'wlan2'}}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(track), 2); /* wlan2 is none: number 1 has a meaning */
    ck_assert_str_eq(ARGS(track, dimension_arg_set_id, 0), "wakelock_name=wlan wakelock_type=kernel");
    ck_assert_str_eq(TEXT(track, counter_unit, 0), "ms");
    /* wlan 5, usb 7, wlan 6; then usb once more and changed */
    ck_assert_uint_eq(ROWS(counter), 5);
    ck_assert_double_eq(VALUE(0), 5e6);
    ck_assert_double_eq(VALUE(1), 7e6);
    ck_assert_double_eq(VALUE(2), 6e6);
    ck_assert_int_eq(STAT(kernel_wakelock_unknown_id), 1);
    ck_assert_int_eq(STAT(kernel_wakelock_reused_id), 1);
    ck_assert_int_eq(STAT(kernel_wakelock_zero_value_reported), 1);
    ck_assert_int_eq(STAT(kernel_wakelock_implausibly_large_value_reported), 1);
    double at_30 = 0;
    for (uint32_t i = 0; i < ROWS(counter); i++)
        if (GET(counter, ts, i) == 30)
            at_30 = VALUE(i);
    ck_assert_double_eq(at_30, 7e6); /* the last repetition before the change */
}
END_TEST

START_TEST(cpu_time_of_user_ids)
{
    PACKET(10, "13:1 119{1:2 2:1000 2:10050 2:50123 3:5 3:6 3:7 3:8 3:9 3:10}");
    PACKET(20, "119{2:1000 3:1 3:0}");
    PACKET(30, "119{2:50123 2:50124 3:4 3:0 3:100 3:1 3:9}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(track, name, 0), "CPU for UID 1000 CL0");
    ck_assert_str_eq(TEXT(track, name, 1), "CPU for System CL0");
    ck_assert_uint_eq(ROWS(android_cpu_per_uid_track), 6);
    ck_assert_int_eq(GET(android_cpu_per_uid_track, uid, 0), 1000);
    ck_assert_int_eq(GET(android_cpu_per_uid_track, total_cpu_millis, 0), 1);
    ck_assert_int_eq(GET(android_cpu_per_uid_track, uid, 4), 50000);
    ck_assert_int_eq(GET(android_cpu_per_uid_track, total_cpu_millis, 4), 4);
    ck_assert_double_eq(VALUE(0), 5);
}
END_TEST

START_TEST(cpu_time_is_told_anew_after_a_state_ends)
{
    PACKET(10, "13:1 119{1:1 2:1000 3:5}");
    PACKET(20, "119{2:1000 3:2}");
    PACKET(30, "13:1 119{1:1 2:1000 3:9}"); /* in all, not on top */
    trace_fixture_load(&f);
    ck_assert_double_eq(last_value(&f, "CPU for UID 1000 CL0"), 9);
    ck_assert_double_eq(last_value(&f, "CPU for System CL0"), 4);
}
END_TEST

START_TEST(buffers_of_frames)
{
    PACKET(10, "57{1{1:0 2:1 3'top' 5:7}}"); /* dequeue: the frame's number is not known yet */
    PACKET(20, "57{1{1:5 2:2 3'top' 5:7}}"); /* queue */
    PACKET(30, "57{1{1:5 2:4 3'top' 5:7}}"); /* acquire fence */
    PACKET(40, "57{1{1:5 2:5 3'top' 5:7}}"); /* latch */
    PACKET(50, "57{1{1:5 2:8 3'top' 5:7}}"); /* present fence */
    PACKET(60, "57{1{1:6 2:8 3'top' 5:7 4:2}}");
    PACKET(70, "57{1{1:6 2:1 3'top'}}"); /* of no buffer */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 11);
    ck_assert_str_eq(TEXT(slice, name, 0), "Dequeue");
    ck_assert_str_eq(track_of(0), "Buffer: 7 top");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0),
                     "frame_number=5 layer_name=top queue_to_acquire_time=0 acquire_to_latch_time=0 "
                     "latch_to_present_time=10");
    ck_assert_str_eq(TEXT(slice, name, 1), "5"); /* was 10, the time */
    ck_assert_str_eq(track_of(1), "APP_7 top");
    ck_assert_int_eq(GET(slice, dur, 1), 10);
    ck_assert_str_eq(track_of(3), "GPU_7 top");
    ck_assert_int_eq(GET(slice, dur, 3), 10);
    ck_assert_str_eq(track_of(6), "SF_7 top");
    ck_assert_int_eq(GET(slice, dur, 6), 10);
    ck_assert_str_eq(track_of(8), "Display_top");
    ck_assert_int_eq(GET(slice, dur, 8), 10);
    ck_assert_int_eq(GET(slice, dur, 9), 2);
    ck_assert_int_eq(GET(slice, dur, 10), -1);
    ck_assert_int_eq(STAT(graphics_frame_event_parser_errors), 3);
}
END_TEST

START_TEST(a_lost_queue_leaves_the_app_open)
{
    PACKET(10, "57{1{1:4 2:1 5:7}}");
    PACKET(20, "57{1{1:5 2:5 5:7}}");
    trace_fixture_load(&f);
    ck_assert_str_eq(TEXT(slice, name, 1), "0");
    ck_assert_str_eq(track_of(1), "APP_7 no_layer_name");
    ck_assert_int_eq(GET(slice, dur, 1), -1);
}
END_TEST

START_TEST(network_packets)
{
    PACKET(10, "47{1{1'com.app' 2:10001}}");
    PACKET(20, "13:1 12{30{1:1 2{1:1 2'wlan0' 4:1010001 5:16 6:6 7:18 8:80 9:443}}}"
               "88{1:2 2'rmnet' 3:99 6:58 10:3 11:0}");
    PACKET(30, "92{1:1 3:0 3:5 4:100 4:200}");
    PACKET(40, "92{1:1 5:3 6:7 7:1000}");
    PACKET(50, "92{1:9 2{2'eth0'} 5:3 6:7 7:1000}"); /* nothing is known of 9 */
    PACKET(60, "92{1:1 2{2'eth0'} 5:3 6:7 7:1000}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 6);
    ck_assert_str_eq(TEXT(android_network_packets, iface, 4), "eth0");
    ck_assert_str_eq(TEXT(android_network_packets, iface, 5), "wlan0");
    ck_assert_str_eq(TEXT(slice, name, 0), "uid=0");
    ck_assert_str_eq(track_of(0), "rmnet Transmitted");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0),
                     "packet_transport=IPPROTO_ICMPV6 socket_uid=0 socket_tag=0x0 packet_icmp_type=3 "
                     "packet_icmp_code=0 packet_length=99 packet_count=1");
    ck_assert_str_eq(TEXT(slice, name, 1), "com.app");
    ck_assert_int_eq(GET(slice, ts, 2), 35);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 2),
                     "packet_transport=IPPROTO_TCP socket_uid=1010001 socket_tag=0x10 packet_tcp_flags=.s..a... "
                     "local_port=80 remote_port=443 packet_length=200 packet_count=1");
    ck_assert_int_eq(GET(slice, dur, 3), 7);
    ck_assert_uint_eq(ROWS(android_network_packets), 6);
    ck_assert_int_eq(GET(android_network_packets, packet_count, 3), 3);
    ck_assert_str_eq(TEXT(android_network_packets, packet_tcp_flags_str, 3), ".s..a...");
    ck_assert_int_eq(GET(android_network_packets, local_port, 0), COL_NULL);
    ck_assert_str_eq(TEXT(android_network_packets, packet_transport, 4), "IPPROTO (0)");
    ck_assert_int_eq(STAT(network_trace_intern_errors), 1);
}
END_TEST

START_TEST(bluetooth_and_atoms)
{
    PACKET(10, "114{1:1 2:3 3:40 4:5 5:8}");
    PACKET(20, "84{1{83{1:7 2'x' 3{}}} 1{100001{1:1}} 1{} 2:15}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 4);
    ck_assert_str_eq(TEXT(slice, name, 0), "BluetoothTraceEvent");
    ck_assert_int_eq(GET(slice, dur, 0), 5);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0), "TracePacketType=HCI_CMD Count=3 Length=40 Op Code=8");
    ck_assert_int_eq(GET(slice, ts, 1), 15);
    ck_assert_str_eq(TEXT(slice, name, 1), "atom_83");
    ck_assert_str_eq(ARGS(slice, arg_set_id, 1), "field_1=7 field_2=eA== field_3=");
    ck_assert_str_eq(TEXT(slice, name, 2), "atom_100001");
    ck_assert_str_eq(TEXT(slice, name, 3), "atom_0"); /* an atom without a field */
    ck_assert_int_eq(STAT(atom_unknown), 2);
    ck_assert_int_eq(STAT(atom_timestamp_missing), 2);
}
END_TEST

START_TEST(wakelocks_of_apps)
{
    PACKET(10, "13:1 12{42{1:1 2'sync' 3:1 4:7 5:10001 6:2} 42{1:2 2'mail' 5:0}} 116{1:1 1:1 1:5 2:11 2:30 2:1}");
    PACKET(40, "116{1:1 2:0 1:2 2:1}"); /* the first is released, though it is not held */
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(slice), 2);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 1), "flags=0 owner_uid=0");
    ck_assert_str_eq(TEXT(slice, name, 0), "sync");
    ck_assert_int_eq(GET(slice, ts, 0), 15);
    ck_assert_int_eq(GET(slice, dur, 0), 10);
    ck_assert_str_eq(ARGS(slice, arg_set_id, 0), "flags=1 owner_pid=7 owner_uid=10001 work_uid=2");
    ck_assert_int_eq(STAT(app_wakelock_unknown_id), 1);
}
END_TEST

START_TEST(videos_of_displays)
{
    PACKET(5, "6{1{1:6 2:10} 1{1:3 2:10}}");
    PACKET(10, "1000{1:2 3:1 4'config' 8'inner' 9'avc1'}");
    PACKET(20, "1000{1:2 2:1 5'data' 6:1 7:1}");
    PACKET(30, "1000{1:2 2:2}"); /* neither data nor a setup */
    PACKET(40, "1001{1:3 2:4}");
    trace_fixture_load(&f);
    ck_assert_uint_eq(ROWS(video_frames), 2);
    ck_assert_int_eq(GET(video_frames, is_config, 0), 1);
    ck_assert_int_eq(GET(video_frames, ts, 1), 1000);
    ck_assert_str_eq(TEXT(video_frames, display_name, 1), "inner");
    ck_assert_str_eq(TEXT(video_frames, codec_string, 1), "avc1");
    ck_assert_int_eq(GET(video_frames, is_key_frame, 1), 1);
    ck_assert_int_eq(GET(video_frames, is_config, 1), COL_NULL);
    ck_assert_int_eq(STAT(android_video_no_encoder), 1);
    ck_assert_uint_eq(f.st.video_data.n, 2);
    struct sql_fixture sql = {.e = NULL};
    struct error err = {0};
    ck_assert_msg(engine_open(&sql.e, &f.st, &err) == 0 && engine_loaded(sql.e, &err) == 0, "%s", err.text);
    char *rows =
        sql_rows(&sql, "SELECT id, typeof(__intrinsic_video_frame_au_data(id)), "
                       "CAST(__intrinsic_video_frame_au_data(id) AS TEXT) FROM __intrinsic_video_frames UNION ALL "
                       "SELECT 2, __intrinsic_video_frame_au_data(2), __intrinsic_video_frame_au_data(NULL)");
    ck_assert_str_eq(rows, "0,blob,config;1,blob,data;2,-,-");
    sqlite3_free(rows);
    engine_close(sql.e);
    ck_assert_str_eq(ARGS(trace_import_logs, arg_set_id, 0), "display_id=3");
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
    tcase_add_test(c, settings_of_a_device);
    tcase_add_test(c, system_properties);
    tcase_add_test(c, kernel_wakelocks_add_up);
    tcase_add_test(c, cpu_time_of_user_ids);
    tcase_add_test(c, cpu_time_is_told_anew_after_a_state_ends);
    tcase_add_test(c, buffers_of_frames);
    tcase_add_test(c, a_lost_queue_leaves_the_app_open);
    tcase_add_test(c, network_packets);
    tcase_add_test(c, bluetooth_and_atoms);
    tcase_add_test(c, wakelocks_of_apps);
    tcase_add_test(c, videos_of_displays);
    suite_add_tcase(s, c);
    return s;
}
