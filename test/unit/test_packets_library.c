/* Modules of the library over packets: what the importer makes of a packet is what the module looks for. */
#include "unit/pb_text.h"
#include "unit/trace_fixture.h"

#include "sql_fixture.h"

/* Everything that the modules below are asked about, in one recording of a small phone. */
static void put_phone(struct pb_writer *w)
{
    put(w, "1{8:1 10:1 13:1 6{1{1:6 2:1} 1{1:1 2:1000001} 1{1:3 2:1}}}");
    put(w, "1{8:2 10:1 2{1{1:100 2:1 3'system_server' 5:1000} 1{1:200 2:90 3'com.app' 5:10005} 1{1:90 2:1 3'zygote64'}"
           "  1{1:2 2:0 3'kthreadd'} 1{1:5 2:2 3'kworker/1'}}}");
    put(w, "1{8:3 10:1 47{1{1'com.app' 2:10005 5:1 6:7} 1{1'com.app.other' 2:10005} 1{1'com.one' 2:10006}}}");
    put(w, "1{8:4 10:1 123{1{1'full' 2:0}}}");
    put(w, "1{8:5 10:1 127{1{1'ns' 2'flag' 3'p' 4'c' 5'true' 7:1 8:2 9:1 10:1}}}");
    put(w, "1{8:6 10:1 115{1{1:1 2'alarm' 3:1} 2:1 3:5}} 1{8:20000006 10:1 115{2:1 3:7}}");
    put(w, "1{8:7 10:1 119{1:2 2:10005 3:100 3:200}} 1{8:8 10:1 119{2:10005 3:5 3:6}}");
    put(w, "1{8:9 10:1 40{1{1:1 2'S2M_VDD_CPUCL2' 3'cpu' 4:1} 1{1:2 2'OTHER'} 2{1:1 2:1 3:100} 2{1:2 2:1 3:100}}}");
    put(w, "1{8:10 10:1 91{1{1:1 2:2 3'Modem' 4'sleep'} 2{1:1 2:2 3:500 4:6 5:7}}}");
    put(w, "1{8:11 10:1 88{1:2 2'wlan0' 3:100 4:10005 6:6 7:18 8:443 9:555}}");
    put(w,
        "1{8:12 10:1 60{1:7 4{1:200 2:200}}} 1{8:13 10:1 11{9:3 11:7 22'android_screenshot' 23'Screenshot' 50{1'jpg'}}}"
        "1{8:13 10:1 11{9:3 11:7 22'mine' 23'Screenshot' 50{1'jpg'}}}");
    /* Frame 40 of com.app: expected for 100 ns, came 30 ns late, with two layers; frame 41 has no timeline. */
    put(w,
        "1{8:100 10:1 76{3{1:1 2:40 3:50 4:200 5'a#7'}}} 1{8:110 10:1 76{4{1:2 2:40 3:50 4:200 5'a#7' 6:1 8:1 10:1}}}"
        "1{8:110 10:1 76{4{1:3 2:40 3:50 4:200 5'b#8' 6:1 8:1 10:1}}}");
    put(w, "1{8:120 10:1 11{9:1 11:7 23'Choreographer#doFrame 40'}} 1{8:130 10:1 11{9:2 11:7}}"
           "1{8:131 10:1 11{9:1 11:7 23'DrawFrames 40'}} 1{8:140 10:1 11{9:2 11:7}}");
    put(w, "1{8:200 10:1 76{5{1:1}}} 1{8:230 10:1 76{5{1:2}}} 1{8:240 10:1 76{5{1:3}}}"
           "1{8:300 10:1 11{9:1 11:7 23'Choreographer#doFrame 41'}} 1{8:310 10:1 11{9:2 11:7}}"
           "1{8:311 10:1 11{9:1 11:7 23'DrawFrames 41'}} 1{8:320 10:1 11{9:2 11:7}}");
    put(w, "1{8:14 10:1 135{1{2:200 3:200} 3{2:1} 9{2'cycles' 3:2} 11:7}}"
           "1{8:15 10:1 135{1{2:200 3:200} 3{2:2} 5{1{1'main'}} 9{2'cycles' 3:2} 11:9}}");
    /* Two roots of a heap hold one object, equally near. */
    put(w, "1{8:16 10:2 56{1:200 9{1:1 3'RootB'} 9{1:2 3'RootA'} 9{1:3 3'Child'} 7{1:1 2:2} 7{2:2 1:2}"
           "  2{1:1 2:1 3:8 4:3 5:3} 2{1:2 2:2 3:8 4:3 5:3} 2{1:3 2:3 3:8} 6:0}}");
}

static const struct {
    const char *module, *query, *rows;
} cases[] = {
    {"android.aflags", "SELECT package, name, value, permission, type FROM android_aflags",
     "p,flag,true,read-only,boolean"},
    {"android.kernel_wakelocks", "SELECT name, dur, awake_dur, held_dur, held_ratio FROM android_kernel_wakelocks",
     "alarm,20000000,20000000,7000000,0.35"},
    {"android.cpu.cpu_per_uid", "SELECT uid, cluster, total_cpu_millis, package_name FROM android_cpu_per_uid_track",
     "10005,0,5,com.app;10005,1,6,com.app"},
    {"android.power_rails",
     "SELECT power_rail_name, raw_power_rail_name, friendly_name FROM android_power_rails_metadata",
     "power.rails.cpu.big,S2M_VDD_CPUCL2,cpu.big;power.OTHER_uws,OTHER,-"},
    {"android.entity_state_residency",
     "SELECT entity_name, state_name, state_time_since_boot FROM "
     "android_entity_state_residency",
     "Modem,sleep,500000000"},
    {"android.network_packets", "SELECT iface, package_name, packet_length FROM android_network_packets",
     "wlan0,com.app,100"},
    {"android.screenshots", "SELECT ts, name FROM android_screenshots", "13,Screenshot"},
    {"android.process_metadata",
     "SELECT process_name, uid, shared_uid, user_type, package_name, is_kernel_task FROM android_process_metadata "
     "WHERE pid IN (5, 100, 200) ORDER BY pid",
     "kworker/1,-,-,-,-,1;system_server,1000,-,full,-,0;com.app,10005,1,full,com.app,0"},
    {"android.frames.timeline",
     "SELECT frame_id, ts, dur, actual_frame_timeline_count, expected_frame_timeline_count, draw_frame_count FROM "
     "android_frames",
     "40,110,130,2,1,1;41,300,20,0,1,1"},
    {"android.frames.timeline", "SELECT frame_id, ts, dur, layer_id FROM android_frames_layers ORDER BY 1, 4",
     "40,110,120,7;40,110,130,8;41,300,20,-"},
    {"android.frames.per_frame_metrics",
     "SELECT s.frame_id, s.overrun, c.app_vsync_delay, c.do_frame_dur, c.draw_frame_dur, c.cpu_time, s.was_jank, "
     "s.was_big_jank FROM android_frame_stats AS s JOIN android_cpu_time_per_frame AS c USING (frame_id)",
     "40,30,10,10,9,29,1,-"},
    {"android.memory.heap_graph.class_tree",
     "SELECT p.name FROM _heap_graph_class_tree AS c JOIN _heap_graph_class_tree AS p ON p.id = c.parent_id WHERE "
     "c.name = "
     "'Child'",
     "RootA"},
    {"stacks.cpu_profiling", "SELECT tid, cpu, source FROM cpu_profiling_samples", "200,2,-"},
    {"prelude.after_eof.stack_samples",
     "SELECT (SELECT count() FROM stack_sample), (SELECT count() FROM stack_sample_execution_context), (SELECT count() "
     "FROM stack_sample_counter), (SELECT group_concat(name || ' ' || type) FROM stack_sample_counter_track)",
     "1,1,1,cycles stack_sample_session_counter"},
};

START_TEST(modules_find_what_packets_became)
{
    struct trace_fixture t;
    struct sql_fixture f = {0};
    struct error err = {0};
    char sql[2048];
    trace_fixture_open(&t);
    put_phone(&t.w);
    trace_fixture_load(&t);
    ck_assert_msg(engine_open(&f.e, &t.st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(f.e, &err) == 0, "%s", err.text);
    snprintf(sql, sizeof sql, "INCLUDE PERFETTO MODULE %s; %s", cases[_i].module, cases[_i].query);
    char *rows = sql_rows(&f, sql);
    ck_assert_msg(rows, "%s: %s", cases[_i].module, engine_error_text(f.e));
    ck_assert_str_eq(rows, cases[_i].rows);
    sqlite3_free(rows);
    engine_close(f.e);
    trace_fixture_close(&t);
}
END_TEST

Suite *packets_library_suite(void);

Suite *packets_library_suite(void)
{
    Suite *s = suite_create("packets_library");
    TCase *c = tcase_create("modules");
    tcase_add_loop_test(c, modules_find_what_packets_became, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, c);
    return s;
}
