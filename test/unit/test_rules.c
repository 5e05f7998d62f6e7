/* Rules of packets, functions and modules: each over a small trace of its own, with the answer that follows from it. */
#include "unit/rules.h"

#define CLOCKS    "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:3 2:1000} 1{1:4 2:1000}}}"
#define PROCESSES "1{8:1 10:1 13:1 2{1{1:100 3'app' 5:10005} 2{1:101 2'wrk' 3:100}}}"

/* Call stacks of a heap: app calls fn, which was inlined into by nothing; and the same frames for the sampler. */
#define STRINGS "1{1:1 2'lib.so'} 1{1:2 2'main'} 1{1:3 2'fn'} 1{1:4 2'leaf'}"
#define FRAMES  "4{1:1 7:1} 2{1:1 2:2 3:1 4:100} 2{1:2 2:3 3:1 4:200} 2{1:3 2:4 3:1 4:300}"
#define NATIVE(samples)                                                                                                \
    CLOCKS PROCESSES "1{8:2000 10:2 13:1 37{" STRINGS FRAMES                                                           \
                     "3{1:1 2:1 2:2} 3{1:2 2:1 2:2 2:3} 5{1:100 9:1500 " samples "}}}"

/* A Java heap: a root that keeps an Inner (with native memory) twice, one of them by a weak reference only; a second
 * root of the same class. */
#define JAVA                                                                                                           \
    CLOCKS PROCESSES                                                                                                   \
        "1{8:2000 10:2 13:1 56{1:100 4{1:1 2'Outer.a'} 4{1:2 2'java.lang.ref.Reference.referent'}"                     \
        "  9{1:1 3'Outer' 4:10} 9{1:2 3'Inner' 4:100} 9{1:3 3'Weak' 4:1 7:9}"                                          \
        "  2{1:1 2:1 4:1 4:1 4:1 5:2 5:3 5:6} 2{1:2 2:2} 2{1:3 2:3 4:2 5:4} 2{1:4 2:2} 2{1:5 2:1} 2{1:6 2:1}"          \
        "  7{1:1 1:5 2:1}}}"

/* A sampled stack of one frame for each of the files that the mappings 1 to 4 are made of. */
#define SHORT_NAMES(files)                                                                                             \
    CLOCKS PROCESSES "1{8:10 10:3 13:1 12{" files " 5{1:1 2'a.b.c'} 6{1:1 2:1 3:1 4:1} 6{1:2 2:1 3:2 4:2} 6{1:3 2:1 "  \
                     "3:3 4:3} 6{1:4 2:1 3:4 4:4} 7{1:1 2:1 2:2 2:3 2:4}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}}"
#define LONG_NAME(package, name) "1{10:1 64{" package " 3{1'a.b' 2'" name "' 4{1'c' 2'm'}}}}"
#define LONG_NAMES               "SELECT deobfuscated_name FROM stack_profile_frame"

static const struct rule rules[] = {
    {"jobs of GPU schedulers, told by number",
     PROCESSES "1{10:2 13:1 1{1:0 2{1:200 2:100 411{2:9 4:7 6'gfx'}} 2{1:210 2:101 412{2:9 4:7 6'gfx'}} 2{1:240 2:101 "
               "413{1:9}}}}",
     "SELECT name, dur, (SELECT group_concat(key || '=' || display_value) FROM args AS a WHERE a.arg_set_id = "
     "s.arg_set_id) FROM slice AS s",
     "drm_sched_job_queue,0,gpu sched ring=gfx,gpu sched job=7;job,30,gpu sched job=7"},
    {"jobs of GPU schedulers, told by fence",
     PROCESSES
     "1{10:2 13:1 1{1:0 2{1:200 2:100 593{1'gfx' 5:9 6:1}} 2{1:210 2:101 594{1'gfx' 5:9 6:1}} 2{1:215 2:101 594{1'gfx' "
     "5:8 6:1}} 2{1:220 2:101 592{1:9 2:1}} 2{1:240 2:101 592{1:8 2:1}}}}",
     "SELECT name, ts, dur, (SELECT group_concat(key || '=' || display_value) FROM args AS a WHERE a.arg_set_id = "
     "s.arg_set_id) FROM slice AS s",
     "drm_sched_job_queue,200,0,gpu sched ring=gfx,fence context=9,fence seqno=1;job,210,10,fence context=9,fence "
     "seqno=1;job,220,20,fence context=8,fence seqno=1"},
    {"a job's slice comes from the one that queued it",
     PROCESSES "1{10:2 13:1 1{1:0 2{1:200 2:100 593{1'gfx' 5:9 6:1}} 2{1:210 2:101 594{1'gfx' 5:8 6:1}} 2{1:211 2:101 "
               "592{1:8 2:1}}"
               "2{1:212 2:101 594{1'gfx' 5:9 6:1}}}}",
     "SELECT i.ts, o.ts FROM flow AS f JOIN slice AS i ON i.id = f.slice_in JOIN slice AS o ON o.id = f.slice_out",
     "212,200"},
    {"why the hypervisor was entered",
     PROCESSES
     "1{10:2 13:1 1{1:0 2{1:620 2:0 476{}} 2{1:630 2:0 477{}} 2{1:640 2:0 476{}} 2{1:641 2:0 479{1:1}} 2{1:650 2:0 "
     "477{}}}}",
     "INCLUDE PERFETTO MODULE pkvm.hypervisor; SELECT ts, dur, reason FROM pkvm_hypervisor_events",
     "620,10,-;640,10,host_smc"},
    {"native heaps: what was asked for and given back", NATIVE("2{1:1 2:1000 3:400 5:10 6:4} 11'libc.malloc'"),
     "SELECT count, size FROM heap_profile_allocation", "10,1000;-4,-400"},
    {"native heaps: garbage collectors do not tell when", NATIVE("2{1:1 2:1000 3:400 5:10 6:4} 11'com.android.art'"),
     "SELECT count, size FROM heap_profile_allocation", "10,1000"},
    {"native heaps: the largest, counted", NATIVE("2{1:1 8:999 9:7} 13:4096 11'h'"),
     "SELECT count, size FROM heap_profile_allocation", "7,999"},
    {"native heaps: the largest, by recorders that do not count", NATIVE("2{1:1 8:999 9:7} 11'h'"),
     "SELECT count, size FROM heap_profile_allocation", "0,999"},
    {"native heaps: the error is told by its number, and a wait that was too long is a full buffer",
     NATIVE("14:1 2{1:1 2:1 5:1}"),
     "SELECT name, idx, value FROM stats WHERE name IN ('heapprofd_client_error', 'heapprofd_buffer_overran') ORDER BY "
     "1",
     "heapprofd_buffer_overran,100,1;heapprofd_client_error,100,1"},
    {"flame graph of a native heap", NATIVE("2{1:1 2:1000 3:400 5:10 6:4} 2{1:2 2:50 5:1} 11'libc.malloc'"),
     "SELECT depth, name, map_name, count, cumulative_count, size, cumulative_size, cumulative_alloc_size, parent_id "
     "FROM "
     "experimental_flamegraph('native', 1500, NULL, 1, NULL, NULL)",
     "0,main,/lib.so,0,7,0,650,1050,-;1,fn,/lib.so,6,7,600,650,1050,0;2,leaf,/lib.so,1,1,50,50,50,1"},
    {"flame graph of a native heap before its dump", NATIVE("2{1:1 2:1000 5:10}"),
     "SELECT sum(size) FROM experimental_flamegraph('native', 1499, NULL, 1, NULL, NULL)", "0"},
    {"flame graph of another process", NATIVE("2{1:1 2:1000 5:10}"),
     "SELECT (SELECT sum(size) FROM experimental_flamegraph('native', 1500, NULL, NULL, '2,3', NULL)), (SELECT "
     "sum(size) "
     "FROM experimental_flamegraph('native', 1500, NULL, NULL, '7,1', NULL))",
     "0,1000"},
    {"flame graph in focus: any case, with all above and below", NATIVE("2{1:1 2:1000 5:10} 2{1:2 2:50 5:1}"),
     "SELECT depth, name, cumulative_size, parent_id FROM experimental_flamegraph('native', 1500, NULL, 1, NULL, 'EA')",
     "0,main,1050,-;1,fn,1050,0;2,leaf,50,1"},
    {"flame graph in focus: a pattern is no pattern", NATIVE("2{1:1 2:1000 5:10}"),
     "SELECT count() FROM experimental_flamegraph('native', 1500, NULL, 1, NULL, 'm%n')", "0"},
    {"flame graph of samples",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{17{1:1 2'lib.so'} 5{1:1 2'main'} 5{1:2 2'fn'} 19{1:1 7:1} 6{1:1 2:1 3:1 4:1} 6{1:2 2:2 3:1 "
     "4:2} "
     "7{1:1 2:1} 7{1:2 2:1 2:2}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}} 1{8:200 10:3 66{1:0 2:100 3:101 4:2}} 1{8:300 "
     "10:3 66{1:0 2:100 3:101 4:2}}",
     "SELECT ts, depth, name, count, cumulative_count FROM experimental_flamegraph('perf', NULL, '>=200', 1, NULL, "
     "NULL) "
     "UNION ALL SELECT ts, depth, name, count, cumulative_count FROM experimental_flamegraph('perf', NULL, "
     "'<300,>100', "
     "NULL, '1', NULL)",
     "200,0,main,0,2;200,1,fn,2,2;299,0,main,0,1;299,1,fn,1,1"},
    {"flame graph of samples of one moment, and what was asked for",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{5{1:1 2'main'} 6{1:1 2:1 3:1 4:1} 19{1:1} 7{1:1 2:1}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}} "
     "1{8:200 10:3 66{1:0 2:100 3:101 4:1}}",
     "SELECT id, ts, count, profile_type, ts_in, ts_constraint, upid, upid_group, focus_str FROM "
     "experimental_flamegraph('perf', NULL, '=200', 1, NULL, NULL)",
     "0,200,1,perf,-,=200,1,-,-"},
    {"flame graph of a Java heap: what is kept by weak references is not", JAVA,
     "SELECT depth, name, map_name, count, cumulative_count, size, cumulative_size, parent_id FROM "
     "experimental_flamegraph('graph', 2000, NULL, 1, NULL, NULL)",
     "0,Outer [ROOT_JNI_GLOBAL],JAVA,2,5,20,131,-;1,Inner,JAVA,1,1,100,100,0;1,Weak,JAVA,1,1,1,1,0;1,Outer,JAVA,1,1,10,"
     "10,0"},
    {"flame graph of a Java heap without roots that lost its end",
     CLOCKS PROCESSES "1{8:2000 10:2 13:1 56{1:100 9{1:1 3'Outer'} 2{1:1 2:1 3:5} 6:7}}",
     "SELECT name, count, size FROM experimental_flamegraph('graph', 2000, NULL, 1, NULL, NULL)",
     "ERROR: INCOMPLETE GRAPH (try increasing buffer size),1,1"},
    {"annotated call stacks: the runtime behind managed code",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{17{1:1 2'a.oat'} 17{1:2 2'libart.so'} 17{1:3 2'libc.so'} 17{1:4 2'x.vdex'} 5{1:1 2'f'} 5{1:2 "
     "2'nterp_x'} 5{1:3 2'art_jni_trampoline'} 19{1:1 7:1} 19{1:2 7:2} 19{1:3 7:3} 19{1:4 7:4} 6{1:1 2:1 3:2 4:1} "
     "6{1:2 "
     "2:1 3:1 4:2} 6{1:3 2:2 3:2 4:3} 6{1:4 2:3 3:1 4:4} 6{1:5 2:1 3:3 4:5} 6{1:6 2:1 3:4 4:6} 7{1:1 2:1 2:2 2:1 2:3 "
     "2:5 "
     "2:4 2:1 2:1 2:6}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}}",
     "SELECT depth, annotation FROM experimental_annotated_callstack((SELECT callsite_id FROM perf_sample))",
     "0,-;1,aot;2,common-frame;3,common-frame-interp;4,-;5,common-frame;6,-;7,common-frame;8,interp"},
    {"ids of stacks of slices are hashes that SQL can make",
     "1{8:1 10:1 13:1 60{1:7 2't'}} 1{8:2 10:1 11{9:1 11:7 22'c' 23'a'}} 1{8:3 10:1 11{9:1 11:7 23'b'}} 1{8:4 10:1 "
     "11{9:2 11:7}} 1{8:5 10:1 11{9:2 11:7}}",
     "INCLUDE PERFETTO MODULE slices.stack; SELECT name, stack_id = CASE name WHEN 'a' THEN hash('' || hash('c|a')) "
     "ELSE "
     "hash(hash('|b') || '|' || hash('c|a')) END, parent_stack_id = iif(name = 'a', 0, hash('' || hash('c|a'))) FROM "
     "slice_with_stack_id",
     "a,1,1;b,1,1"},
    {"slices of a stack, with what is above and inside",
     "1{8:1 10:1 13:1 60{1:7 2't'}} 1{8:2 10:1 11{9:1 11:7 23'a'}} 1{8:3 10:1 11{9:1 11:7 23'b'}} 1{8:4 10:1 11{9:3 "
     "11:7 "
     "23'c'}} 1{8:5 10:1 11{9:2 11:7}} 1{8:6 10:1 11{9:2 11:7}} 1{8:7 10:1 11{9:1 11:7 23'b'}}",
     "INCLUDE PERFETTO MODULE slices.stack; SELECT (SELECT group_concat(id) FROM ancestor_slice_by_stack(stack_id)), "
     "(SELECT group_concat(id) FROM descendant_slice_by_stack(stack_id)) FROM slice_with_stack_id WHERE id IN (1, 3)",
     "0,1,1,2;3,3"},
    {"columns of tables that SQL made", "",
     "CREATE PERFETTO TABLE t AS SELECT 0 AS i, 3 AS k, 'b' AS s, 5 AS c, NULL AS n, 0 AS d, -1 AS m, 1.5 AS r, 1 AS o "
     "UNION ALL SELECT 1, 5, 'a', 5, 7, 0, 2, 2.5, 1 UNION ALL SELECT 2, 1, 'c', 5, 8, 2, 4294967295, 2.5, 2; "
     "SELECT id, name, col_type, nullable, sorted FROM perfetto_table_info('t')",
     "0,i,id,0,0;1,k,uint32,0,3;2,s,string,0,3;3,c,uint32,0,2;4,n,uint32,1,3;5,d,uint32,0,1;6,m,int64,0,2;7,r,double,0,"
     "2;8,o,uint32,0,2;9,_auto_id,id,0,0"},
    {"columns of tables without rows", "",
     "CREATE PERFETTO TABLE t(x LONG, s STRING, d DOUBLE) AS SELECT 1 AS x, 's' AS s, 1.0 AS d WHERE 0; "
     "SELECT name, col_type, nullable, sorted FROM perfetto_table_info('t')",
     "x,id,0,0;s,string,0,2;d,double,0,2;_auto_id,id,0,0"},
    {"columns that tables of functions have beside the answer",
     "1{8:1 10:1 13:1 60{1:7 2't'}} 1{8:2 10:1 11{9:1 11:7 23'a'}} 1{8:5 10:1 11{9:2 11:7}}",
     "SELECT id, _auto_id, start_bound, end_bound FROM experimental_flat_slice(0, 9)", "0,0,0,9;1,1,0,9;2,2,0,9"},
    {"gaps that are longer than a number",
     "1{8:1 10:1 13:1 60{1:7 2't'}} 1{8:2 10:1 11{9:1 11:7 23'a'}} 1{8:5 10:1 11{9:2 11:7}}",
     "SELECT ts, dur FROM experimental_flat_slice(-9223372036854775807, 9223372036854775807)",
     "-9223372036854775807,9223372036854775807;2,3;5,9223372036854775802"},
    {"the table that columns are of", "",
     "SELECT DISTINCT table_name FROM perfetto_table_info('__intrinsic_counter') WHERE id = _auto_id",
     "__intrinsic_counter"},
    {"bounds have no types, as in the tables of SQLite", "",
     "SELECT group_concat(name || '=' || type) FROM pragma_table_xinfo('_trace_bounds')", "start_ts=,end_ts="},
    {"columns of tables that are built in", "",
     "SELECT name, col_type, nullable, sorted FROM perfetto_table_info('__intrinsic_counter')",
     "id,id,0,0;ts,int64,0,2;track_id,uint32,0,3;value,double,0,3;arg_set_id,uint32,4,3;_auto_id,id,0,0"},
    {"what modules define: the module, tables and views, functions, macros", "",
     "SELECT object_type, qualified_name, exposed FROM __intrinsic_stdlib_objects WHERE module = "
     "'android.package_lookup'",
     "MODULE,android.package_lookup,1;TABLE,android.package_lookup._android_system_uids,0;FUNCTION,"
     "android.package_lookup.android_package_lookup,1"},
    {"what modules define: by module, in tables of their own", "",
     "SELECT (SELECT package FROM __intrinsic_stdlib_modules() WHERE module = 'time.conversion'), name, "
     "is_table_function, return_type, exposed, args ->> '$[0].name', cols FROM "
     "__intrinsic_stdlib_functions('time.conversion') WHERE name = 'time_from_us'",
     "time,time_from_us,0,LONG,1,micros,[]"},
    {"what modules define: tables, views and table functions", "",
     "SELECT name, type, exposed, cols ->> '$[0].type' FROM __intrinsic_stdlib_tables('slices.self_dur') WHERE exposed "
     "UNION ALL SELECT name, type, exposed, cols FROM __intrinsic_stdlib_tables('slices.flat_slices') UNION ALL "
     "SELECT name, is_table_function, return_type, exposed FROM __intrinsic_stdlib_functions('slices.hierarchy') WHERE "
     "name = '_slice_ancestor_and_self'",
     "slice_self_dur,TABLE,1,ID(slice.id);_slice_flattened,TABLE,0,[];_slice_ancestor_and_self,1,TABLE,0"},
    {"what modules define: macros; no module is called NULL", "",
     "SELECT name, return_type, exposed, args ->> '$[1].name' FROM __intrinsic_stdlib_macros('intervals.intersect') "
     "WHERE name = '_ii_df_agg' UNION ALL SELECT 'none', count(), 0, 0 FROM __intrinsic_stdlib_macros(NULL) UNION ALL "
     "SELECT 'none', count(), 0, 0 FROM __intrinsic_stdlib_tables('no.such')",
     "_ii_df_agg,_ProjectionFragment,0,y;none,0,0,0;none,0,0,0"},
    {"what modules define: no group comes twice", "",
     "SELECT count() FROM (SELECT object_type IN ('FUNCTION', 'TABLE_FUNCTION') AS f, object_type = 'MACRO' AS m, "
     "lag(object_type = 'MACRO') OVER (PARTITION BY module ORDER BY rowid) AS was_m, lag(object_type IN ('FUNCTION', "
     "'TABLE_FUNCTION')) OVER (PARTITION BY module ORDER BY rowid) AS was_f FROM __intrinsic_stdlib_objects) WHERE "
     "(was_m "
     "AND NOT m) OR (was_f AND NOT f AND NOT m)",
     "0"},
    {"what modules define: a summary of all, a description of little", "",
     "SELECT summary, (SELECT max(length(short_description)) <= 160 FROM __intrinsic_stdlib_objects) FROM "
     "__intrinsic_stdlib_objects WHERE name = 'android_package_lookup'",
     "Package: android\nModule: android.package_lookup\nName: android_package_lookup\nQualified name: "
     "android.package_lookup.android_package_lookup\nSearch aliases: android, android package lookup, android package "
     "lookup\nKind: public FUNCTION\nDescription: The package of a uid. Of several the one that its processes are best "
     "known by; one of the system's own users by its name there.\nArguments:\n- uid (LONG): A user id.\nReturns: "
     "STRING: "
     "Name of the package or user; uid=N for one that nothing has described. NULL for no uid.,1"},
    {"kernel events as text: bytes, and names where there were numbers",
     PROCESSES
     "1{10:2 13:1 1{1:3 2{1:1001 2:101 28{1:1 2:2 3:80 4:1 5:2 7'ab'}} 2{1:1002 2:101 59{1:255 4:1 5:2 6'wq'}}}}",
     "SELECT substr(to_ftrace(id), 53) FROM ftrace_event",
     "i2c_write: i2c-1 #2 a=050 f=0001 l=2 [61-62];workqueue_queue_work: work struct=ff function= workqueue=wq12"},
    {"tokens as text", "", "SELECT __intrinsic_stringify!(a''), __intrinsic_stringify!(x + 'q')", "a',x + 'q'"},
    {"times on other clocks do not pass what the next snapshot shows",
     "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:1 2:5000} 1{1:3 2:900}}} 1{8:1 10:1 6{1{1:6 2:2000} 1{1:1 2:6500} 1{1:3 "
     "2:1800}}}",
     "SELECT to_realtime(500), to_realtime(1000), to_realtime(1999), to_realtime(2600), to_monotonic(1950), "
     "to_monotonic(0), abs_time_str(500)",
     "5000,5000,5999,7100,1800,900,1970-01-01T00:00:00.000005000"},
    {"kernel events as text: control groups by the name of viewers",
     PROCESSES "1{10:2 13:1 1{1:3 2{1:1001 2:101 67{1:1 2:2 3:3 4'c' 5'cg' 6:6}}}}",
     "SELECT substr(to_ftrace(id), 53) FROM ftrace_event",
     "cgroup_attach_task: dst_root=1 dst_id=2 cgroup=cg dst_level=6 pid=3 comm=c"},
    {"kernel workers go without the queue they served, their threads too",
     "1{8:1 10:1 13:1 2{1{1:50 2:2 3'kworker/0:1-mm'} 2{1:50 3:50 2'kworker/0:1+mm'} 2{1:51 3:51 2'kworker/u:2-x'}}}",
     "SELECT p.name, cmdline, t.name FROM thread AS t LEFT JOIN process AS p USING (upid) WHERE tid >= 50",
     "kworker/0:1,kworker/0:1,kworker/0:1;-,-,kworker/u:2-x"},
    {"who began a process stays its parent", "1{8:1 10:1 13:1 2{1{1:60 2:50 3'a'}}} 1{8:2 10:1 2{1{1:60 2:1 3'a'}}}",
     "SELECT p.pid, (SELECT count() FROM _trace_import_logs WHERE name = 'process_tracker_parent_pid_changed') FROM "
     "process "
     "AS c JOIN process AS p ON p.upid = c.parent_upid WHERE c.pid = 60",
     "50,1"},
    {"a package is told once, as it was first",
     "1{8:1 10:1 13:1 47{1{1'a' 2:10001} 1{1'b' 2:10001}}} 1{8:2 10:1 47{1{1'a' 2:10002 3:1}}}",
     "SELECT package_name, uid, debuggable FROM package_list", "a,10001,0;b,10001,0"},
    {"disks: what changed since the sample before",
     "1{8:5 10:1 13:1 7{13{1'sda' 2:2048 3:10 8:3}}} 1{8:9 10:1 7{13{1'sda' 2:6144 3:30 4:1024 8:5 9:2}}}",
     "SELECT name, unit, CAST(value * 10 AS INT) FROM counter JOIN counter_track AS t ON t.id = track_id",
     "diskstat.[sda].read_amount,MB,20;diskstat.[sda].read_throughput,MB/s,1000;diskstat.[sda].write_amount,MB,5;"
     "diskstat.[sda].write_throughput,MB/s,0;diskstat.[sda].discard_amount,MB,0;diskstat.[sda].discard_throughput,MB/"
     "s,0;"
     "diskstat.[sda].flush_amount,count,20;diskstat.[sda].flush_time,ms,20"},
    {"samplers have all tracks of a cpu from its first packet on",
     "1{8:10 10:3 13:1 59{12{4{1:8}}}} 1{8:100 10:3 66{1:1 2:100 3:101}}", "SELECT name, cpu FROM perf_counter_track",
     "cpu-clock,1;alignment-faults,1"},
    {"waits in front of what ran",
     PROCESSES "1{10:2 13:1 1{1:0 2{1:90 2:0 4{1'idle' 2:0 5'wrk' 6:101}} 2{1:100 2:101 4{1'wrk' 2:101 4:1 5'app' "
               "6:100}} 2{1:110 "
               "2:100 20{1'wrk' 2:101 5:0}} 2{1:120 2:100 4{1'app' 2:100 4:0 5'wrk' 6:101}} 2{1:130 2:101 4{1'wrk' "
               "2:101 4:2 5'app' "
               "6:100}}}}",
     "INCLUDE PERFETTO MODULE sched.thread_executing_span; SELECT r.ts, w.ts, w.state FROM _wakeup_map AS m JOIN "
     "thread_state AS r ON r.id = m.waker_id JOIN thread_state AS w ON w.id = m.id ORDER BY 1",
     "120,110,R"},
    {"files of the system's own packages",
     SHORT_NAMES("17{1:1 2'product'} 17{1:2 2'priv-app'} 17{1:3 2'PrebuiltGmsCore'} 17{1:4 2'PrebuiltGmsCoreSc.apk'} "
                 "17{1:5 2'x.MatchMaker'} 17{1:6 2'app'} 17{1:7 2'Maps'} 17{1:8 2'Maps.apk'} 19{1:1 7:1 7:2 7:3 7:4} "
                 "19{1:2 7:5} 19{1:3 7:1 7:6 7:7 7:8} 19{1:4 7:6 7:1 7:6 7:7 7:8}")
         LONG_NAME("1'com.google.android.gms'", "Gms") LONG_NAME("1'com.google.android.as'", "As")
             LONG_NAME("1'com.google.android.apps.maps'", "Maps"),
     LONG_NAMES, "Gms.m;As.m;Maps.m;-"},
    {"code that was unpacked into memory tells the file it comes from",
     SHORT_NAMES("17{1:1 2'[anon:dalvik-classes2.dex extracted in memory from /data/app/~~q==/com.a-x==/base.apk]'} "
                 "17{1:2 2'classes.dex extracted in memory from /data/local/com.a-x/base.apk'} 19{1:1 7:1} 19{1:2 7:2} "
                 "19{1:3 7:2} 19{1:4 7:2}") LONG_NAME("1'com.a'", "A"),
     LONG_NAMES, "A.m;-;-;-"},
    {"code in memory is anybody's, as the last packet that has a package tells",
     SHORT_NAMES("17{1:1 2'memfd:jit'} 17{1:2 2'x'} 19{1:1 7:1} 19{1:2 7:2} 19{1:3 7:2} 19{1:4 7:2}")
         LONG_NAME("1'com.a'", "A") LONG_NAME("1'com.b'", "B") LONG_NAME("", "C"),
     LONG_NAMES, "B.m;-;-;-"},
    {"several packages of a uid: the first",
     "1{8:1 10:1 13:1 47{1{1'com.a' 2:10005} 1{1'com.b' 2:10005}}}" SHORT_NAMES(
         "17{1:1 2'x'} 19{1:1 7:1} 19{1:2 7:1} 19{1:3 7:1} 19{1:4 7:1}") LONG_NAME("1'com.a'", "A")
         LONG_NAME("1'app'", "B"),
     LONG_NAMES, "A.m;A.m;A.m;A.m"},
    {"the name of a process tells no package",
     SHORT_NAMES("17{1:1 2'x'} 19{1:1 7:1} 19{1:2 7:1} 19{1:3 7:1} 19{1:4 7:1}") LONG_NAME("1'app'", "B"), LONG_NAMES,
     "-;-;-;-"},
    {"tracks of GPUs are told by their types; counters of GPUs are none",
     CLOCKS "1{8:10 10:1 63{1:1 2'tag'}} 1{8:11 10:1 57{1{1:7 2:1 3'layer' 5:5}}} 1{8:12 10:1 71{1:2 2:0 3:5}}",
     "SELECT name, type, scope FROM gpu_track",
     "GPU Log,gpu_log,gpu_log;Buffer: 5 layer,graphics_frame_event,graphics_frame_event;APP_5 "
     "layer,graphics_frame_event,graphics_frame_event"},
    {"columns of the prelude's tables keep their types when they have no value", "",
     "SELECT name, col_type, nullable, sorted FROM perfetto_table_info('gpu_track') WHERE name IN ('id', 'name', "
     "'scope', 'context_id') UNION ALL SELECT name, type, 0, 0 FROM pragma_table_xinfo('actual_frame_timeline_slice') "
     "WHERE name IN ('layer_name', 'jank_score')",
     "id,id,0,0;name,string,0,2;scope,string,0,2;context_id,id,0,0;layer_name,TEXT,0,0;jank_score,DOUBLE,0,0"},
    {"the score of a late frame", CLOCKS "1{8:10 10:1 76{4{1:4 2:40 3:50 4:7 5'top' 6:1 9:1 11:1}}}",
     "SELECT jank_score FROM actual_frame_timeline_slice", "0.0"},
};

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

/* Questions that have no answer: what the message must say. */
static const struct rule refusals[] = {
    {"graph of no process", JAVA, "SELECT * FROM experimental_flamegraph('graph', 2000, NULL, 9, NULL, NULL)",
     "no heap graph with roots"},
    {"a profile that is none", JAVA, "SELECT * FROM experimental_flamegraph('x', 2000, NULL, 9, NULL, NULL)",
     "known are graph, native, perf"},
    {"whose profile?", JAVA, "SELECT * FROM experimental_flamegraph('native', 2000, NULL, NULL, NULL, NULL)",
     "needs a upid or a upid_group"},
    {"times that are none", JAVA, "SELECT * FROM experimental_flamegraph('perf', NULL, '>=1,~2', 1, NULL, NULL)",
     "is no list of times"},
};

START_TEST(a_refusal_says_why)
{
    const struct rule *rule = &refusals[_i];
    struct trace_fixture t;
    struct sql_fixture f = {0};
    struct error err = {0};
    trace_fixture_open(&t);
    put(&t.w, "%s", rule->trace);
    trace_fixture_load(&t);
    ck_assert_msg(engine_open(&f.e, &t.st, &err) == 0, "%s", err.text);
    ck_assert_msg(engine_loaded(f.e, &err) == 0, "%s", err.text);
    char *rows = sql_rows(&f, rule->query);
    ck_assert_msg(!rows, "%s: %s", rule->name, rows);
    ck_assert_msg(strstr(engine_error_text(f.e), rule->rows), "%s: %s", rule->name, engine_error_text(f.e));
    engine_close(f.e);
    trace_fixture_close(&t);
}
END_TEST

Suite *rules_suite(void);

Suite *rules_suite(void)
{
    Suite *s = suite_create("rules");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    tcase_add_loop_test(c, a_refusal_says_why, 0, sizeof refusals / sizeof *refusals);
    suite_add_tcase(s, c);
    return s;
}
