/* Tests modules of the library over data that Linux recordings do not have: a small phone, made by hand. */
#include "sql_fixture.h"

#include <fcntl.h>
#include <unistd.h>

static struct sql_fixture f;

/* ---- the phone ---- */

static const struct {
    int64_t pid;
    const char *name;
} processes[] = {{0, "swapper"}, {100, "system_server"}, {200, "com.app"}, {300, "lmkd"}};

static const struct {
    int64_t tid, pid;
    const char *name;
} threads[] = {
    {0, 0, "swapper"},     {100, 100, "system_server"}, {101, 100, "InputDispatcher"}, {110, 100, "binder:100_1"},
    {200, 200, "com.app"}, {201, 200, "RenderThread"},  {202, 200, "HeapTaskDaemon"},  {300, 300, "lmkd"}};

enum { MS = 1000000 };

/* Slices by start; those of one thread nest. */
static const struct {
    int64_t ts, dur, tid;
    const char *name;
} slices[] = {
    {5, 1, 101, "UnwantedInteractionBlocker::notifyMotion(eventTime=3, id=0xabc)"},
    {10, 5, 101, "enqueueDispatchEntryAndStartDispatchCycleLocked(inputChannel=w1 com.app/.A (server), id=0xabc)"},
    {10, 5, 101, "startDispatchCycleLocked"},
    {10, 5, 101, "publishMotionEvent"},
    {11, 1, 101, "sendMessage(inputChannel=w1 com.app/.A (server), seq=0x7, type=0x1)"},
    {20, 2, 200, "receiveMessage(inputChannel=w1 com.app/.A (client), seq=0x7, type=0x1)"},
    {23, 10, 200, "dispatchInputEvent MotionEvent_DOWN"},
    {24, 8, 200, "deliverInputEvent src=0x1002 eventTimeNano=3 id=0xabc"},
    {40, 1, 200, "sendMessage(inputChannel=w1 com.app/.A (client), seq=0x7, type=FINISHED)"},
    {45, 1, 101, "receiveMessage(inputChannel=w1 com.app/.A (server), seq=0x7, type=FINISHED)"},
    {100, 8 * MS, 200, "Choreographer#doFrame 7"},
    {200, 4 * MS, 200, "binder transaction"},
    {1 * MS, 2 * MS, 110, "binder reply"},
    {1 * MS + 1, 1 * MS, 110, "AIDL::java::IActivityManager::getTasks::server"},
    {9 * MS, 3 * MS, 201, "DrawFrame 7"},
    {14 * MS, 1 * MS, 201, "DrawFrame 7"},
    {20 * MS, 10 * MS, 202, "Background young concurrent copying GC"},
    {40 * MS, 1, 100, "Freeze com.app:200"},
    {42 * MS, 0, 200, "requestServiceBinding: bindSeq=5 act=x"},
    {42 * MS + 1, 0, 200, "binder transaction async"},
    {44 * MS, 1 * MS, 100, "serviceBind: token=ServiceRecord{abc act=do.it cmp=com.app/.S flg=0x1 bindSeq=5}"},
    {50 * MS, 1, 100, "Unfreeze com.app:200 6"},
    {60 * MS, 5, 300, "lmk,200,3,900"},
};

static const struct {
    int64_t ts, pid;
    const char *name;
    double value;
} counters[] = {
    {0, 200, "Bitmap Count", 2},
    {0, 200, "Bitmap Memory", 4096},
    {0, 200, "Heap size (KB)", 8000},
    {5 * MS, 200, "Bitmap Count", 3},
    {6 * MS, 200, "Bitmap Memory", 8192},
    {22 * MS, 200, "Heap size (KB)", 9000},
    {31 * MS, 200, "Heap size (KB)", 3000},
};

static strid text(const char *s)
{
    return strpool_intern_str(&f.st.strings, s);
}

static uint32_t find(int64_t tid, bool process)
{
    for (uint32_t i = 0;; i++)
        if (process ? processes[i].pid == tid : threads[i].tid == tid)
            return i;
}

/* The track of a thread or the counter of a process; made when it is first asked for. */
static uint32_t track(const char *dimension, uint32_t id, const char *name, const char *event_type)
{
    struct arg_list dims = {0};
    arg_list_int(&f.st.args, &dims, dimension, id);
    argset set = args_intern(&f.st.args, dims.p, dims.n);
    arg_list_free(&dims);
    const struct table *t = &f.st.t[T_track];
    for (uint32_t i = 0; i < t->n_rows; i++)
        if (argset_eq(ROW_ARGS(&f.st, track, dimension_arg_set_id, i), set) &&
            column_get(&t->columns[track_c_name], i) == text(name))
            return i;
    return track_insert(&f.st, &(struct track_row){.name = text(name),
                                                   .type = text(event_type),
                                                   .event_type = text(event_type),
                                                   .parent_id = COL_NULL,
                                                   .dimension_arg_set_id = set,
                                                   .track_group_id = COL_NULL,
                                                   .utid = COL_NULL,
                                                   .upid = COL_NULL});
}

static void insert_slices(void)
{
    int64_t open[64][16]; /* [track] ids of the open slices */
    uint32_t depth[64] = {0};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        uint32_t t = track("utid", find(slices[i].tid, false), "", "slice");
        while (depth[t] && slices[open[t][depth[t] - 1]].ts + slices[open[t][depth[t] - 1]].dur <= slices[i].ts)
            depth[t]--;
        slice_insert(&f.st, &(struct slice_row){.ts = slices[i].ts,
                                                .dur = slices[i].dur,
                                                .track_id = t,
                                                .name = text(slices[i].name),
                                                .depth = depth[t],
                                                .parent_id = depth[t] ? open[t][depth[t] - 1] : COL_NULL,
                                                .thread_ts = COL_NULL,
                                                .thread_dur = COL_NULL,
                                                .thread_instruction_count = COL_NULL,
                                                .thread_instruction_delta = COL_NULL});
        open[t][depth[t]++] = (int64_t)i;
    }
}

/* A frame on the timeline: without any of them the frames are those of Android up to 9. */
static void insert_frame(void)
{
    uint32_t t = track("upid", find(200, true), "Actual Timeline", "slice");
    column_set(&f.st.t[T_track].columns[track_c_type], t, text("android_actual_frame_timeline"));
    slice_insert(&f.st, &(struct slice_row){.ts = 99 * MS,
                                            .track_id = t,
                                            .name = text("99"),
                                            .parent_id = COL_NULL,
                                            .thread_ts = COL_NULL,
                                            .thread_dur = COL_NULL,
                                            .thread_instruction_count = COL_NULL,
                                            .thread_instruction_delta = COL_NULL});
}

static uint32_t slice_named(const char *name)
{
    for (uint32_t i = 0;; i++)
        if (strcmp(slices[i].name, name) == 0)
            return i;
}

/* Objects 0 (root) -> 1 -> 2, 0 -> 2, 3 (unreachable); class Node is a subclass of Base. */
static void insert_heap(void)
{
    static const struct {
        uint32_t size, type;
        bool reachable;
        const char *root;
    } objects[] = {{8, 0, true, "ROOT_JNI_GLOBAL"}, {16, 1, true, NULL}, {100, 1, true, NULL}, {50, 1, false, NULL}};
    static const uint32_t references[][2] = {{0, 1}, {0, 2}, {1, 2}};
    static const char *const classes[] = {"Base", "Node"};
    for (uint32_t i = 0; i < 2; i++)
        heap_graph_class_insert(&f.st, &(struct heap_graph_class_row){.name = text(classes[i]),
                                                                      .superclass_id = i ? 0 : COL_NULL,
                                                                      .classloader_id = COL_NULL,
                                                                      .kind = text("KIND_NORMAL")});
    for (uint32_t i = 0; i < 4; i++)
        heap_graph_object_insert(
            &f.st, &(struct heap_graph_object_row){.upid = 2,
                                                   .graph_sample_ts = 50,
                                                   .self_size = objects[i].size,
                                                   .reference_set_id = i < 2 ? i : COL_NULL,
                                                   .reachable = objects[i].reachable,
                                                   .type_id = objects[i].type,
                                                   .root_type = objects[i].root ? text(objects[i].root) : 0,
                                                   .object_data_id = COL_NULL});
    for (uint32_t i = 0; i < 3; i++)
        heap_graph_reference_insert(&f.st, &(struct heap_graph_reference_row){.reference_set_id = references[i][0],
                                                                              .owner_id = references[i][0],
                                                                              .owned_id = references[i][1],
                                                                              .field_name = text("Node.next"),
                                                                              .field_type_name = text("Node")});
}

static void setup(void)
{
    struct error err = {0};
    sql_open(&f);
    machine_insert(&f.st, &(struct machine_row){.num_cpus = 1});
    for (size_t i = 0; i < sizeof processes / sizeof *processes; i++)
        process_insert(&f.st, &(struct process_row){.pid = processes[i].pid,
                                                    .name = text(processes[i].name),
                                                    .start_ts = COL_NULL,
                                                    .end_ts = COL_NULL,
                                                    .parent_upid = COL_NULL,
                                                    .uid = COL_NULL,
                                                    .android_appid = COL_NULL,
                                                    .android_user_id = COL_NULL});
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        thread_insert(&f.st, &(struct thread_row){.tid = threads[i].tid,
                                                  .name = text(threads[i].name),
                                                  .start_ts = COL_NULL,
                                                  .end_ts = COL_NULL,
                                                  .upid = find(threads[i].pid, true),
                                                  .is_main_thread = threads[i].tid == threads[i].pid});
    insert_slices();
    insert_frame();
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        counter_insert(&f.st, &(struct counter_row){
                                  .ts = counters[i].ts,
                                  .track_id = track("upid", find(counters[i].pid, true), counters[i].name, "counter"),
                                  .value = counters[i].value});
    flow_insert(&f.st, &(struct flow_row){.slice_out = slice_named("binder transaction"),
                                          .slice_in = slice_named("binder reply"),
                                          .trace_id = COL_NULL});
    insert_heap();
    /* the application's thread waits for the answer, with a disk in between */
    static const struct {
        int64_t ts, dur;
        const char *state;
        int64_t io_wait;
    } states[] = {{0, 3 * MS, "S", COL_NULL}, {3 * MS, 1 * MS, "D", 1}, {4 * MS, 96 * MS, "Running", COL_NULL}};
    for (size_t i = 0; i < 3; i++)
        thread_state_insert(&f.st, &(struct thread_state_row){.ts = states[i].ts,
                                                              .dur = states[i].dur,
                                                              .utid = find(200, false),
                                                              .state = text(states[i].state),
                                                              .io_wait = states[i].io_wait,
                                                              .waker_utid = COL_NULL,
                                                              .waker_id = COL_NULL,
                                                              .irq_context = COL_NULL,
                                                              .ucpu = COL_NULL});
    f.st.trace_end_ns = 100 * MS;
    ck_assert_msg(engine_loaded(f.e, &err) == 0, "%s", err.text);
}

static void teardown(void)
{
    sql_close(&f);
}

static const struct {
    const char *module, *sql, *rows;
} cases[] = {
    {"android.input",
     "SELECT dispatch_latency_dur, handling_latency_dur, ack_latency_dur, total_latency_dur, tid, process_name, "
     "event_type, event_action, event_channel, input_event_id, frame_id FROM android_input_events",
     "9,20,5,34,200,com.app,0x1,DOWN,w1 com.app/.A (server),0xabc,7"},
    {"android.input",
     "SELECT l.input_id, l.channel, l.ts_receive - l.ts_dispatch, l.id_dispatch = s.id, l.id_consume IS NOT NULL FROM "
     "slice AS s JOIN _android_input_lifecycle_by_slice_id(s.id) AS l WHERE s.name GLOB 'sendMessage*'",
     "0xabc,w1 com.app/.A (server),9,1,0"},
    {"android.frames.timeline",
     "SELECT frame_id, ts, dur, do_frame_id, draw_frame_id, render_thread_utid, ui_thread_utid, process_name FROM "
     "android_frames ORDER BY draw_frame_id",
     "7,100,14999900,10,14,5,4,com.app"},
    {"android.frames.timeline", "SELECT frame_id, do_frame_id FROM android_first_frame_after(50)", "7,10"},
    {"android.frames.per_frame_metrics", "SELECT * FROM android_frames_ui_time", "7,8000000"},
    {"android.frames.jank_type",
     "SELECT android_is_app_jank_type('App Deadline Missed, Buffer Stuffing'), android_is_sf_jank_type('Prediction "
     "Error'), android_is_missed_frame_type('Buffer Stuffing'), android_is_missed_frame_type('Dropped Frame')",
     "1,1,0,1"},
    {"android.binder",
     "SELECT interface, method_name, client_process, client_tid, server_process, server_thread, client_dur, "
     "server_dur, is_sync, is_main_thread FROM android_binder_txns",
     "IActivityManager,getTasks,com.app,200,system_server,binder:100_1,4000000,2000000,1,1"},
    {"android.binder",
     "SELECT thread_state_type, thread_state, thread_state_dur FROM android_sync_binder_thread_state_by_txn ORDER BY "
     "2",
     "binder_txn,D,1000000;binder_txn,Running,200;binder_txn,S,2999800"},
    {"android.binder_breakdown", "SELECT ts, dur, reason FROM android_binder_client_breakdown",
     "200,2999800,S;3000000,1000000,io;4000000,200,Running"},
    {"android.binder",
     "SELECT length(pprof) > 0 FROM android_binder_outgoing_graph(2) UNION ALL SELECT length(pprof) > 0 FROM "
     "android_binder_incoming_graph(1) UNION ALL SELECT length(pprof) > 0 FROM android_binder_incoming_graph(NULL)",
     "1;1;1"},
    {"chrome.android_input",
     "SELECT android_input_id, deliver_input_event_start_ts, deliver_input_event_end_ts, deliver_input_event_utid FROM "
     "chrome_android_input",
     "0xabc,24,32,4"},
    {"android.binder", "SELECT * FROM android_binder_metrics_by_process ORDER BY 1",
     "com.app,200,binder transaction,1;com.app,200,binder transaction async,1;system_server,100,binder reply,1"},
    {"android.garbage_collection",
     "SELECT tid, gc_type, is_mark_compact, reclaimed_mb, min_heap_mb, max_heap_mb, gc_dur FROM "
     "android_garbage_collection_events",
     "202,young,0,6.0,3.0,9.0,10000000"},
    {"android.freezer", "SELECT pid, ts, dur, unfreeze_reason_int, unfreeze_reason_str FROM android_freezer_events",
     "200,40000000,10000000,6,start_service"},
    {"android.memory.lmk", "SELECT ts, pid, process_name, oom_score_adj, kill_reason FROM android_lmk_events",
     "60000000,200,com.app,900,LOW_MEM_AND_SWAP"},
    {"android.services",
     "SELECT client_process, client_ts, server_process, server_ts, token, act, cmp, flg, bind_seq FROM "
     "android_service_bindings",
     "-,-,-,44000000,abc,do.it,com.app/.S,0x1,5"},
    {"android.bitmaps",
     "SELECT ts, dur, bitmap_memory, bitmap_count FROM android_bitmap_counters_per_process ORDER BY ts",
     "0,5000000,4096.0,2.0;5000000,1000000,4096.0,3.0;6000000,94000000,8192.0,3.0"},
    {"android.memory.memory_breakdown",
     "SELECT ts, dur, memory_track_name, value, bucket FROM android_process_memory_intervals_by_oom_bucket ORDER BY ts",
     "0,22000000,mem.heap,8192000,unknown;22000000,9000000,mem.heap,9216000,unknown;31000000,69000000,mem.heap,3072000,"
     "unknown"},
    {"android.thread",
     "SELECT android_standardize_thread_name('binder:5543_E'), android_standardize_thread_name('pool-3-thread-5'), "
     "android_standardize_thread_name('RenderThread'), android_standardize_thread_name('kworker/u8:1')",
     "binder,pool,RenderThread,kworker"},
    {"android.slices",
     "SELECT android_standardize_slice_name('Choreographer#doFrame 7'), android_standardize_slice_name('inflate'), "
     "android_standardize_slice_name('GC: Wait For Completion Alloc')",
     "Choreographer#doFrame,inflate,Garbage Collector"},
    {"android.slices",
     "SELECT android_standardize_slice_name('android.os.Handler: com.a.B$1'), "
     "android_standardize_slice_name('a.b.C$Inner: #12'), android_standardize_slice_name('Transaction (x-y, 474)'), "
     "android_standardize_slice_name('InputConsumer processing on ClientState{e1 mPid=1} (0xb4)'), "
     "android_standardize_slice_name('JIT compiling int a.b()')",
     "Handler: com.a.B,Handler: a.b.C,Transaction (x-y, <...>),InputConsumer processing on ClientState<...>,JIT "
     "compiling"},
    {"android.package_lookup",
     "SELECT android_package_lookup(0), android_package_lookup(101001), android_package_lookup(1093), "
     "android_package_lookup(2002), android_package_lookup(9999), android_package_lookup(51234), "
     "android_package_lookup(99001), android_package_lookup(1000555), android_package_lookup(NULL)",
     "AID_ROOT,AID_RADIO,AID_UPROBESTATS,AID_DIAG,AID_NOBODY,SHARED_GID,ISOLATED_UID,uid=1000555,-"},
    {"android.anrs",
     "SELECT _extract_anr_type(NULL, 'a'), _extract_anr_type('x', 'a'), _extract_anr_type('x', 'system_server'), "
     "_extract_anr_type('App requested: Buffer processing hung up due to stuck fence. Indicates GPU hang', 'a'), "
     "_extract_anr_type('App requested: own check', 'a'), "
     "_extract_anr_type('A foreground service of type x did not stop within a timeout: ComponentInfo{a/b}', 'a'), "
     "_extract_anr_type('required notification not provided', 'a'), "
     "_default_anr_dur('BROADCAST_OF_INTENT', 'Broadcast of Intent { act=x }'), "
     "_default_anr_dur('BROADCAST_OF_INTENT', 'Broadcast of Intent { act=x flg=0x10 }'), "
     "_default_anr_dur('JOB_SERVICE_BIND', ''), "
     "_get_component('EXECUTING_SERVICE', 'executing service com.a/.S, 1'), "
     "_get_component('START_FOREGROUND_SERVICE', 'Context.x ServiceRecord{12 u0 com.a/.F c:com.a}'), "
     "_get_component('FOREGROUND_SERVICE_TIMEOUT', 'did not stop within a timeout: ComponentInfo{com.a/com.a.T}'), "
     "_get_component('INPUT_DISPATCHING_TIMEOUT', 'Input dispatching timed out (1a com.a/com.a.M is not responding)'), "
     "_extract_anr_duration_from_subject('Blocked in handler for 12s'), "
     "_extract_anr_duration_from_subject('Waited 5001ms')",
     "-,UNKNOWN_ANR_TYPE,SYSTEM_SERVER_WATCHDOG_TIMEOUT,GPU_HANG,APP_TRIGGERED,FOREGROUND_SERVICE_TIMEOUT,"
     "JOB_SERVICE_NOTIFICATION_NOT_PROVIDED,10000,60000,8000,com.a/.S,com.a/.F,com.a/com.a.T,com.a/com.a.M,12000,-"},
    {"android.battery_stats",
     "SELECT android_battery_stats_counter_to_string('battery_stats.wifi', 1), "
     "android_battery_stats_counter_to_string('battery_stats.audio', 7), "
     "android_battery_stats_counter_to_string('battery_stats.phone_state', 2)",
     "on,unknown,emergency"},
    {"android.network_packets",
     "WITH p(iface, ts, dur, packet_count, packet_length) AS (VALUES ('a', 0, 0, 1, 10), ('a', 5, 0, 1, 20), ('a', "
     "30, 2, 3, 30), ('b', 4, 0, 1, 40)) SELECT iface, ts, dur, packet_count, packet_length FROM "
     "android_network_uptime_spans!(p, (iface), 10) ORDER BY iface, ts",
     "a,0,15,2,30;a,30,12,3,30;b,4,10,1,40"},
    {"android.network_packets",
     "WITH p(id, iface, ts, dur, packet_count) AS (VALUES (1, 'a', 0, 0, 1), (2, 'a', 5, 8, 1), (3, 'a', 10, 6, 3), "
     "(4, 'a', 30, 2, 1)) SELECT id, uptime_cost FROM android_network_uptime_cost!(p, (iface), 10) ORDER BY id",
     "1,10;2,7;3,8;4,12"},
    {"android.memory.heap_graph.dominator_tree",
     "SELECT id, idom_id, dominated_obj_count, dominated_size_bytes, depth FROM heap_graph_dominator_tree",
     "0,-,3,124,1;1,0,1,16,2;2,0,1,100,2"},
    {"android.memory.heap_graph.class_summary_tree",
     "SELECT id, parent_id, name, root_type, self_count, self_size, cumulative_count, cumulative_size FROM "
     "android_heap_graph_class_summary_tree",
     "0,-,Base,ROOT_JNI_GLOBAL,1,8,3,124;1,0,Node,-,2,116,2,116"},
    {"android.memory.heap_graph.heap_graph_class_aggregation",
     "SELECT type_name, obj_count, size_bytes, reachable_obj_count, reachable_size_bytes, dominated_obj_count, "
     "dominated_size_bytes FROM android_heap_graph_class_aggregation",
     "Base,1,8,1,8,3,124;Node,3,166,2,116,2,116"},
    {"android.memory.heap_graph.heap_graph_stats",
     "SELECT upid, total_heap_size, total_obj_count, reachable_heap_size, reachable_obj_count FROM "
     "android_heap_graph_stats",
     "2,174,4,124,3"},
    {"android.memory.heap_graph.class_relationship",
     "SELECT id, ancestor_class_name FROM android_heap_graph_class_find_descendants!((SELECT 0 AS id)) ORDER BY id",
     "0,Base;1,Base"},
};

START_TEST(modules_answer_over_a_phone)
{
    char *sql = sqlite3_mprintf("INCLUDE PERFETTO MODULE %s; %s", cases[_i].module, cases[_i].sql);
    sql_expect(&f, sql, cases[_i].rows);
    sqlite3_free(sql);
}
END_TEST

/* Other viewers read the phone too: slices, the call between two processes, counters, names. */
START_TEST(the_phone_is_exported_as_json)
{
    char path[] = "/tmp/meridian-export-XXXXXX", text[32768];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    counter_insert(&f.st, &(struct counter_row){.ts = -1500,
                                                .track_id = track("upid", 1, "early", "counter"),
                                                .value = 7}); /* before the boot */
    engine_allow_files(f.e, true);
    char *sql = sqlite3_mprintf("SELECT export_json(%Q)", path);
    sql_run(&f, sql);
    sqlite3_free(sql);
    close(fd); /* another file has that name now */
    fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    ck_assert_int_gt(n, 0);
    text[n] = 0;
    sql = sqlite3_mprintf("CREATE TABLE events AS SELECT value AS e FROM json_each(%Q, '$.traceEvents')", text);
    sql_run(&f, sql);
    sqlite3_free(sql);
    sql_expect(&f, "SELECT e ->> 'ph' AS ph, count(*) FROM events GROUP BY 1 ORDER BY 1",
               "C,8;M,12;X,21;f,1;i,2;n,1;s,1");
    sql_expect(&f, "SELECT e -> 'ts' FROM events WHERE e ->> 'ph' = 'C' ORDER BY e ->> 'ts' LIMIT 1", "-1.500");
    sql_expect(
        &f,
        "SELECT e -> 'ts', e -> 'dur', e ->> 'pid', e ->> 'tid' FROM events WHERE e ->> 'name' = 'binder transaction'",
        "0.200,4000.000,200,200");
    sql_must_fail(&f, "SELECT export_json('/nowhere/at/all')", "No such file or directory");
    close(fd);
    unlink(path);
}
END_TEST

Suite *stdlib_suite(void);
Suite *stdlib_suite(void)
{
    Suite *s = suite_create("stdlib");
    TCase *c = tcase_create("phone");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_phone_is_exported_as_json);
    tcase_add_loop_test(c, modules_answer_over_a_phone, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, c);
    return s;
}
