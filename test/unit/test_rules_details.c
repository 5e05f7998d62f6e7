/* Rules of details that viewers tell apart: absent and empty texts, scopes, bounds, kernels that are not Linux; each
 * over a small trace of its own, with the answer that follows from it. */
#include "unit/rules.h"

#define CLOCKS    "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:3 2:1000} 1{1:4 2:1000}}}"
#define PROCESSES "1{8:1 10:1 13:1 2{1{1:100 3'app' 5:10005} 2{1:101 2'wrk' 3:100}}}"
#define THREAD    "1{8:1 10:1 13:1 60{1:2 4{1:5 2:6 5't'}}}"
#define EARLIER   "1{8:1 10:1 13:1 44{1:5 2:6}}"

#define ARGS_OF(row, column)                                                                                           \
    "(SELECT group_concat(key || '=' || coalesce(display_value, '-')) FROM args AS a WHERE a.arg_set_id = " row        \
    "." column ")"
#define SLICES_OF_TRACKS                                                                                               \
    "SELECT t.type, t.name, " ARGS_OF("t", "dimension_arg_set_id") ", s.ts, s.dur, s.name, " ARGS_OF(                  \
        "s", "arg_set_id") " FROM slice AS s JOIN track AS t ON t.id = s.track_id"
#define COUNTERS                                                                                                       \
    "SELECT t.type, t.name, t.unit, " ARGS_OF("t", "dimension_arg_set_id") ", c.ts, CAST(c.value AS INT), " ARGS_OF(   \
        "c", "arg_set_id") " FROM counter AS c JOIN counter_track AS t ON t.id = c.track_id"
#define TASK_STATES                                                                                                    \
    "SELECT tid, ts, dur, state, cpu FROM thread_state JOIN thread USING (utid) ORDER BY thread_state.id"

static const struct rule rules[] = {
    {"a uuid that was computed is of no machine and no trace; sizes and types are of the trace",
     "1{8:1 10:1 13:1 33{1{1:100}}}",
     "SELECT name, machine_id, trace_id FROM metadata WHERE name IN ('trace_uuid', 'trace_type', 'trace_size_bytes') "
     "ORDER BY name",
     "trace_size_bytes,-,0;trace_type,-,0;trace_uuid,-,-"},
    {"a uuid that the trace tells is of the trace", "1{8:1 10:1 13:1 89{1:1 2:2}}",
     "SELECT str_value, machine_id, trace_id FROM metadata WHERE name = 'trace_uuid'",
     "00000000-0000-0001-0000-000000000002,-,0"},
    {"configs as text have no newline at their end", "1{8:1 10:1 13:1 33{1{1:100}}}",
     "SELECT str_value FROM metadata WHERE name = 'trace_config_pbtxt'", "buffers {\n  size_kb: 100\n}"},
    {"stats are of all, or of a machine and a trace", PROCESSES,
     "SELECT name, machine_id, trace_id FROM stats WHERE name IN ('guess_trace_type_duration_ns', "
     "'parse_trace_duration_ns', 'track_event_parser_errors') UNION ALL SELECT 'others', count(), 0 FROM stats WHERE "
     "(machine_id IS NULL) <> (trace_id IS NULL)",
     "guess_trace_type_duration_ns,-,-;parse_trace_duration_ns,-,-;track_event_parser_errors,0,0;others,0,0"},
    {"call trees of samples that are one frame deep",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{17{1:1 2'l'} 5{1:1 2'main'} 5{1:2 2'fn'} 19{1:1 7:1} 6{1:1 2:1 3:1 4:1} 6{1:2 "
     "2:2 3:1 4:2} 7{1:1 2:1} 7{1:2 2:2}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}} 1{8:200 10:3 66{1:0 "
     "2:100 3:101 4:2}} 1{8:300 10:3 66{1:0 2:100 3:101 4:2}}",
     "INCLUDE PERFETTO MODULE linux.perf.samples; INCLUDE PERFETTO MODULE stacks.cpu_profiling; SELECT name, "
     "self_count, "
     "cumulative_count FROM linux_perf_samples_summary_tree UNION ALL SELECT name, self_count, cumulative_count FROM "
     "cpu_profiling_summary_tree",
     "main,1,1;fn,2,2;main,1,1;fn,2,2"},
    {"columns that are never NULL, as tables declare them", "",
     "SELECT table_name, name FROM (SELECT * FROM perfetto_table_info('__intrinsic_memory_snapshot_node') UNION ALL "
     "SELECT * FROM perfetto_table_info('__intrinsic_chrome_raw') UNION ALL SELECT * FROM "
     "perfetto_table_info('__intrinsic_ftrace_event') UNION ALL SELECT * FROM "
     "perfetto_table_info('__intrinsic_process')) WHERE nullable <> 0 AND name IN ('size', 'effective_size', "
     "'arg_set_id', 'pid')",
     "__intrinsic_memory_snapshot_node,arg_set_id;__intrinsic_process,arg_set_id"},
    {"columns of stats; an id that is a row of another table", "",
     "SELECT group_concat(name || ' ' || col_type || ' ' || nullable, '; ') FROM "
     "perfetto_table_info('__intrinsic_stats') "
     "UNION ALL SELECT group_concat(name || ' ' || col_type || ' ' || sorted, '; ') FROM "
     "(SELECT * FROM perfetto_table_info('__intrinsic_android_network_packets') LIMIT 2)",
     "id id 0; name string 0; key int64 0; idx int64 4; severity string 0; source string 0; value int64 0; description "
     "string 0; machine_id uint32 4; trace_id uint32 4; _auto_id id 0;id uint32 2; iface string 3"},
    {"what a processor can do comes behind what it is",
     "1{8:10 10:1 13:1 67{1{1'A' 5:3 4{1:65 2:8}} 1{5:4} 1{1''} 1{5:2}}}",
     "SELECT cpu, processor, (SELECT group_concat(key || '=' || display_value || ':' || value_type) FROM args AS a "
     "WHERE "
     "a.arg_set_id = c.arg_set_id) FROM cpu AS c",
     "0,A,arm_cpu_implementer=65:uint,arm_cpu_architecture=8:uint,arm_cpu_variant=0:uint,arm_cpu_part=0:uint,"
     "arm_cpu_revision=0:uint,cpu_features.mte=true:bool,cpu_features.mte3=true:bool,cpu_features.raw_bitmap=3:uint;1,-"
     ",cpu_features.raw_bitmap=4:uint;2,,-;3,-,cpu_features.mte3=true:bool,cpu_"
     "features.raw_bitmap=2:uint"},
    {"GPUs: texts that are absent are NULL, others may be empty", "1{8:10 10:1 13:1 128{1{1'' 2'v'} 1{1'g' 3''}}}",
     "SELECT name, vendor, model, architecture, pci_bdf FROM gpu", ",v,-,-,-;g,-,,-,-"},
    {"mappings of memory and interrupts: likewise",
     CLOCKS PROCESSES
     "1{8:77 10:1 68{1:100 2{1'p' 2:5} 2{5'' 8'id'}}} 1{8:78 10:1 130{1{1:5 2'eth'} 1{1:6} 1{1:7 2''}}}",
     "SELECT path, file_name, module_debugid FROM profiler_smaps UNION ALL SELECT irq_id, name, name IS NULL FROM "
     "_linux_interrupt_mapping",
     "p,-,-;-,,id;5,eth,0;6,-,1;7,,0"},
    {"open files: likewise", PROCESSES "1{8:10 10:1 9{1{1:100 15{1:3 2'/x'} 15{1:4} 15{1:5 2''}}}}",
     "SELECT fd, path, path IS NULL FROM filedescriptor", "3,/x,0;4,-,1;5,,0"},
    {"mappings of memory that are told in columns: what columns do not tell is NULL",
     CLOCKS PROCESSES "1{8:77 10:1 68{1:100 3{1'' 1'/a' 2'\x01'}}}",
     "SELECT path, aggregate_count, file_name IS NULL, module_debugid IS NULL, module_debug_path IS NULL FROM "
     "profiler_smaps",
     "/a,1,1,1,1"},
    {"classes: likewise",
     CLOCKS PROCESSES "1{8:2000 10:2 13:1 56{1:100 9{1:1 4:10} 9{1:2 3'' 4:10} 2{1:1 2:1} 2{1:2 2:2}}}",
     "SELECT name, name IS NULL FROM heap_graph_class", "-,1;,0"},
    {"frames without a name: of a heap's own table they have an empty one, of a sequence's none",
     CLOCKS PROCESSES "1{8:2000 10:2 13:1 37{1{1:1 2'lib.so'} 4{1:1 7:1} 2{1:1 3:1 4:100} 3{1:1 2:1} 5{1:100 9:1500 "
                      "2{1:1 2:1000 5:10}}}} 1{8:10 10:3 13:1 12{17{1:1 2'l'} 19{1:1 7:1} 6{1:1 3:1 4:1} 7{1:1 2:1}}} "
                      "1{8:100 10:3 66{1:0 2:100 3:101 4:1}}",
     "SELECT rel_pc, name, name IS NULL FROM stack_profile_frame ORDER BY 1", "1,-,1;100,,0"},
    {"what begins or ends with a slice is inside it if its parents say so",
     THREAD "1{8:5 10:1 11{9:1 11:2 23'a'}} 1{8:5 10:1 11{9:1 11:2 23'b'}} 1{8:6 10:1 11{9:2 11:2}} 1{8:10 10:1 "
            "11{9:3 11:2 23'in'}} 1{8:10 10:1 11{9:2 11:2}} 1{8:10 10:1 11{9:3 11:2 23'beside'}} 1{8:10 10:1 11{9:1 "
            "11:2 23'c'}} 1{8:11 10:1 11{9:3 11:2 23'cc'}} 1{8:12 10:1 11{9:2 11:2}}",
     "SELECT s.name, group_concat(d.name) FROM slice AS s LEFT JOIN descendant_slice(s.id) AS d GROUP BY s.id",
     "a,b,in;b,-;in,-;beside,-;c,cc;cc,-"},
    {"args of a slice: a key that comes again has the later value in its place, arrays grow",
     THREAD "1{8:6 10:1 11{9:1 11:2 23'a' 4{10'x' 4:1} 4{10'arr' 12{4:1} 12{4:2}}}} 1{8:7 10:1 11{9:2 11:2 4{10'x' "
            "4:9} 4{10'arr' 12{4:5}} 4{10'z' 4:1}}}",
     "SELECT " ARGS_OF("s", "arg_set_id") " FROM slice AS s",
     "debug.x=9,debug.arr[0]=1,debug.arr[1]=2,debug.arr[2]=5,debug.z=1"},
    {"arrows go from the slice that began first",
     THREAD "1{8:5 10:1 11{9:1 11:2 23'a' 36:1}} 1{8:6 10:1 11{9:2 11:2}} 1{8:7 10:1 11{9:1 11:2 23'b' 36:1}} 1{8:8 "
            "10:1 11{9:2 11:2}} 1{8:9 10:1 11{9:3 11:2 23'c' 42:1}} 1{8:11 10:1 11{9:3 11:2 23'd' 36:1}}",
     "SELECT o.name, i.name, f.arg_set_id FROM flow AS f JOIN slice AS o ON o.id = slice_out JOIN slice AS i ON i.id = "
     "slice_in",
     "a,b,-;b,c,-"},
    {"arrows of the first kind tell their name and category",
     EARLIER "1{8:6 10:1 11{6{2:66} 23'a'}} 1{8:7 10:1 11{6{2:115 6:3} 22'fc' 23'f'}} 1{8:8 10:1 11{6{2:69}}} 1{8:12 "
             "10:1 11{6{2:102 6:3} 22'fc' 23'f'}} 1{8:13 10:1 11{6{2:66} 23'd'}}",
     "SELECT o.name, i.name, " ARGS_OF(
         "f", "arg_set_id") " FROM flow AS f JOIN slice AS o ON o.id = slice_out JOIN slice AS i ON i.id = slice_in",
     "a,d,name=f,cat=fc"},
    {"tasks of other kernels: made, run, ended; what cannot follow is dropped and counted",
     "1{8:10 10:1 13:1 117{2'a' 3:7 4:1 5:1}} 1{8:11 10:1 117{2'a' 3:7 4:1 5:1}} 1{8:12 10:1 117{1:1 2'a' 3:7 4:2}} "
     "1{8:15 10:1 117{1:1 2'a' 3:7 4:7}} 1{8:16 10:1 117{1:1 2'a' 3:7 4:2}} 1{8:17 10:1 117{1:1 2'a' 3:7 4:8}} 1{8:18 "
     "10:1 117{1:1 2'b' 3:9 4:8}} 1{8:19 10:1 117{1:1 3:10 4:0}} 1{8:19 10:1 117{1:1 3:10 4:9}}",
     TASK_STATES "; SELECT tid, name, start_ts, end_ts FROM thread WHERE tid; SELECT name, value FROM stats WHERE name "
                 "IN ('task_state_invalid', 'generic_task_state_invalid_order') ORDER BY 1",
     "generic_task_state_invalid_order,2;task_state_invalid,2"},
    {"tasks of other kernels: their states",
     "1{8:10 10:1 13:1 117{2'a' 3:7 4:1 5:1}} 1{8:12 10:1 117{1:1 2'a' 3:7 4:2}} 1{8:15 10:1 117{1:1 2'a' 3:7 4:7}} "
     "1{8:16 10:1 117{1:1 2'a' 3:7 4:2}} 1{8:17 10:1 117{1:1 2'a' 3:7 4:8}} 1{8:18 10:1 117{1:1 2'b' 3:9 4:8}}",
     TASK_STATES, "7,10,2,Created,-;7,12,3,R,-;7,15,2,Z,-;7,17,-1,X,-;9,18,-1,X,-"},
    {"tasks of other kernels: one that is told to have left at the moment the next one came",
     "1{8:10 10:1 13:1 117{1:1 2'a' 3:7 4:3 5:1}} 1{8:20 10:1 117{1:1 2'b' 3:8 4:3 5:2}} 1{8:20 10:1 117{1:1 2'a' 3:7 "
     "4:5 5:1}} 1{8:30 10:1 117{1:1 2'b' 3:8 4:4}} 1{8:30 10:1 117{1:1 2'b' 3:8 4:2}}",
     TASK_STATES, "7,10,10,Running,1;7,20,-1,D,-;8,20,10,Running,1;8,30,0,S,-;8,30,-1,R,-"},
    {"tasks of other kernels: and the slices of that cpu",
     "1{8:10 10:1 13:1 117{1:1 2'a' 3:7 4:3 5:1}} 1{8:20 10:1 117{1:1 2'b' 3:8 4:3 5:2}} 1{8:20 10:1 117{1:1 2'a' 3:7 "
     "4:5 5:1}} 1{8:30 10:1 117{1:1 2'b' 3:8 4:4}} 1{8:40 10:1 117{1:1 2'a' 3:7 4:3}} 1{8:50 10:1 117{1:1 2'b' 3:8 "
     "4:3}} 1{8:51 10:1 117{1:1 2'a' 3:7 4:5}}",
     "SELECT ts, dur, cpu, end_state, priority, tid FROM sched JOIN thread USING (utid)",
     "10,10,1,D,1,7;20,10,1,S,2,8;40,10,1,-,0,7;50,-1,1,-,0,8"},
    {"process trees of other kernels: the name is the command up to its blank, main threads are those that are told",
     "1{8:11 10:1 13:1 122{1{1:5 2:1 3'cmd line'} 2{1:5 2:5 3'main' 4:1} 2{1:6 2:5 3'w'} 1{1:9 2:5 3'alone'}}}",
     "SELECT pid, p.name, cmdline, tid, t.name, is_main_thread FROM process AS p LEFT JOIN thread AS t USING (upid) "
     "WHERE "
     "pid > 1",
     "5,cmd,cmd line,5,main,1;5,cmd,cmd line,6,w,0;9,alone,alone,-,-,-"},
    {"frequencies of other kernels are told in Hz", "1{8:10 10:1 13:1 118{1:1 2:1234000}}", COUNTERS,
     "cpu_frequency,cpufreq,-,cpu=1,10,1234,-"},
    {"displays: signals and their delivery",
     PROCESSES "1{10:2 13:1 1{1:0 2{1:200 2:101 409{1:3 2:1 3:44 4:5}} 2{1:205 2:101 410{1:3 2:9 3:44}}}}",
     SLICES_OF_TRACKS,
     "drm_vblank,vblank-3,drm_crtc=3,200,0,signal,vblank seqno=44;drm_vblank,vblank-3,drm_crtc=3,205,0,deliver,vblank "
     "seqno=44"},
    {"fences: one at a time, the next begins where one was signalled; no timeline, no fence",
     PROCESSES
     "1{10:2 13:1 1{1:0 2{1:210 2:100 414{1:5 2'd' 3:1 4'tl'}} 2{1:220 2:100 415{1:5 2'd' 3:1 4'tl'}} 2{1:225 "
     "2:100 415{1:5 2'd' 3:2 4'tl'}} 2{1:230 2:100 416{1:5 2'd' 3:1 4'tl'}} 2{1:235 2:100 416{1:5 2'd' 3:2 "
     "4'tl'}} 2{1:240 2:100 414{1:5 2'd' 3:3 4'tl'}} 2{1:250 2:100 415{1:6 3:3 4'unbound'}} 2{1:260 2:100 "
     "417{1:6 3:3}} 2{1:270 2:100 418{1:6 3:3}}}}",
     SLICES_OF_TRACKS,
     "drm_fence,fence-tl-5,name=tl,context=5,210,10,fence,fence "
     "seqno=1;drm_fence,fence-tl-5,name=tl,context=5,220,10,fence,fence "
     "seqno=1;drm_fence,fence-tl-5,name=tl,context=5,230,5,fence,fence "
     "seqno=2;thread_execution,-,utid=1,260,10,dma_fence_wait,fence context=6,fence seqno=3"},
    {"memory of GPUs: by event and by packet; of all, and of a process",
     PROCESSES
     "1{10:2 13:1 1{1:0 2{1:280 2:0 340{1:0 2:0 3:50}} 2{1:281 2:0 340{1:1 2:100 3:60}}}} 1{8:300 10:2 71{1:0 "
     "2:100 3:70}}",
     COUNTERS,
     "gpu_memory,GPU Memory,bytes,ugpu=0,gpu=0,280,50,-;process_gpu_memory,GPU "
     "Memory,bytes,ugpu=1,gpu=1,upid=1,281,60,-;process_gpu_memory,GPU Memory,bytes,ugpu=0,gpu=0,upid=1,300,70,-"},
    {"power rails: packets without values are logged, for the host and by their place", "1{8:10 10:1 13:1 40{}}",
     "SELECT name, ts, byte_offset > 0, machine_id, value FROM _trace_import_logs JOIN stats USING (name)",
     "power_rail_empty_packet,-,1,0,1"},
    {"shortened names: lines go on as in the source where both ranges have one length",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{17{1:1 2'data'} 17{1:2 2'app'} 17{1:3 2'com.foo-1'} 17{1:4 2'base.apk'} 5{1:1 2'a.b'} 19{1:1 "
     "7:1 7:2 7:3 7:4} 6{1:1 2:1 3:1 4:1} 7{1:1 2:1}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}} 1{8:150 10:3 61{1'/data/"
     "app/com.foo-1/base.apk' 3{1:1 2{1'a.b' 2'F' 3:5}}}} 1{8:200 10:3 64{1'com.foo' 3{1'a' 2'com.foo.Real' 4{1'b' "
     "2'in' 3:1 4:9 5:101 6:109} 4{1'b' 2'out' 3:1 4:9 5:301 6:301}}}}",
     "SELECT name, line_number, inlined FROM stack_profile_symbol WHERE id > 0",
     "com.foo.Real.in,105,1;com.foo.Real.out,301,0"},
    {"heaps of buffers: which buffer it was", PROCESSES "1{10:2 13:1 1{1:0 2{1:290 2:100 351{1:77 2:-5 3:500}}}}",
     "SELECT t.name, " ARGS_OF("c", "arg_set_id") " FROM counter AS c JOIN counter_track AS t ON t.id = c.track_id",
     "mem.dma_heap,-;mem.dma_heap_change,inode=77"},
    {"lines of kernel events: who, where, when",
     "1{8:1 10:1 13:1 2{1{1:100 2:1 3'my-app'} 2{1:101 2'wr-k' 3:100}}} 1{10:2 13:1 1{1:3 2{1:1001000 2:101 26{1:3}} "
     "2{1:1002000 2:0 26{1:3}} 2{1:1003000 2:999999 26{1:3}}}}",
     "SELECT to_ftrace(id) FROM ftrace_event",
     "            wr_k-101   (  100) [003] .... 0.001001: softirq_raise: vec=3;          <idle>-0     (-----) [003] "
     ".... 0.001002: softirq_raise: vec=3;       <unknown>-999999 (-----) [003] .... 0.001003: softirq_raise: vec=3"},
    {"how long buffers took to be copied into a clone: those of which both ends are known",
     CLOCKS "1{8:10 10:1 13:1 69{10:1}} 1{8:30 10:1 69{11:2}} 1{8:40 10:1 69{11:0}}",
     "INCLUDE PERFETTO MODULE traced.stats; SELECT * FROM traced_clone_flush_latency", "0,30,0,0;2,20,0,0"},
    {"a clone whose beginning is not known", CLOCKS "1{8:30 10:1 69{11:2}}",
     "INCLUDE PERFETTO MODULE traced.stats; SELECT count() FROM traced_clone_flush_latency", "0"},
    {"why a layer is not seen is no field of its message", "1{8:100 10:1 93{1:100 5:1 3{1{1:1 2'bare'}}}}",
     "SELECT count() > 50, sum(key GLOB 'visib*') FROM __intrinsic_winscope_proto_to_args_with_defaults("
     "'surfaceflinger_layer')",
     "1,1"}, /* visible_region */
    {"layers that are not seen say why, behind their fields, also where other sets of args are gone",
     CLOCKS THREAD "1{8:5 10:1 11{9:1 23's' 4{10'q' 4:1}}} 1{8:6 10:1 11{9:2 4{10'r' 4:2}}} "
                   "1{8:100 10:1 93{1:100 5:1 3{1{1:1 2'bare'} 1{1:2 3:1}}}}",
     "SELECT layer_id, " ARGS_OF("l",
                                 "arg_set_id") " FROM __intrinsic_surfaceflinger_layer AS l UNION ALL SELECT name, "
                                               "" ARGS_OF("s", "arg_set_id") " FROM slice AS s",
     "1,id=1,name=bare,visibility_reason[0]=buffer is empty,visibility_reason[1]=alpha is "
     "0,visibility_reason[2]=bounds "
     "is 0x0,visibility_reason[3]=crop is 0x0,visibility_reason[4]=does not have color fill, shadow or blur;2,id=2,"
     "children[0]=1,visibility_reason[0]=buffer is empty,visibility_reason[1]=alpha is 0,visibility_reason[2]=bounds "
     "is "
     "0x0,visibility_reason[3]=crop is 0x0,visibility_reason[4]=does not have color fill, shadow or blur;s,debug.q=1,"
     "debug.r=2"},
    {"messages of the window system have their number, also where other sets of args are gone",
     CLOCKS THREAD "1{8:5 10:1 11{9:1 23's' 4{10'q' 4:1}}} 1{8:6 10:1 11{9:2 4{10'r' 4:2}}} "
                   "1{8:50 10:1 96{1:1 2:5 3:10}} 1{8:60 10:1 96{1:1 4:20}}",
     "SELECT p.transition_id, x.key, x.int_value FROM __intrinsic_window_manager_shell_transition_protos AS p JOIN "
     "__intrinsic_winscope_proto_to_args_with_defaults('window_manager_shell_transition_protos') AS x USING "
     "(base64_proto_id) WHERE x.int_value > 0",
     "1,create_time_ns,5;1,send_time_ns,10;1,id,1;1,dispatch_time_ns,20"},
    {"atoms of statsd", CLOCKS "1{8:7 10:1 84{1{29{1:2}} 2:77 1{100001{1:5}}}}",
     "SELECT ts, name, " ARGS_OF("s", "arg_set_id") " FROM slice AS s",
     "7,atom_100001,field_1=5;77,screen_state_changed,screen_state_changed.state=DISPLAY_STATE_ON"},
    {"atoms of statsd: parts in lists, numbers below 0, fields that are not known, atoms known by name alone",
     CLOCKS "1{8:7 10:1 84{1{8{1{1:10001 2't'} 1{1:5} 2'job' 3:1 4:-1 6:9 7:1 999:1}} 2:8 1{48{1:5}} 2:9 1{99999{1:5}} "
            "2:10}}",
     "SELECT name, " ARGS_OF("s", "arg_set_id") " FROM slice AS s UNION ALL SELECT name, value FROM stats WHERE name = "
                                                "'atom_unknown'",
     "scheduled_job_state_changed,scheduled_job_state_changed.attribution_node[0].uid=10001,scheduled_job_state_"
     "changed."
     "attribution_node[0].tag=t,scheduled_job_state_changed.attribution_node[1].uid=5,scheduled_job_state_changed.job_"
     "name=job,scheduled_job_state_changed.state=STARTED,scheduled_job_state_changed.internal_stop_reason=INTERNAL_"
     "STOP_"
     "REASON_UNKNOWN,scheduled_job_state_changed.job_id=9,scheduled_job_state_changed.has_charging_constraint=true;app_"
     "start_occurred,field_1=5;atom_99999,field_1=5;atom_unknown,1"},
    {"runs of jobs, by the atoms of statsd",
     CLOCKS
     "1{8:7 10:1 84{1{8{1{1:10001} 2'a.b/.C' 3:1 6:9 5:1}} 2:100 1{8{1{1:10001} 2'a.b/.C' 3:0 6:9 4:10}} 2:150}}",
     "INCLUDE PERFETTO MODULE android.job_scheduler_states; SELECT ts, dur, job_name, uid, job_id, package_name, "
     "standby_bucket, internal_stop_reason FROM android_job_scheduler_states",
     "100,50,a.b/.C,10001,9,a.b,WORKING_SET,INTERNAL_STOP_REASON_SUCCESSFUL_FINISH"},
    {"windows of the desktop mode, by the atoms of statsd",
     CLOCKS "1{8:7 10:1 84{1{819{1:1 2:3 3:10 8:7}} 2:100 1{819{1:2 2:3 3:10 8:7}} 2:150}}",
     "INCLUDE PERFETTO MODULE android.desktop_mode; SELECT ts, dur, instance_id, uid FROM android_desktop_mode_windows",
     "100,50,3,10"},
    {"the hypervisor's work is on the cpus' tracks",
     PROCESSES "1{10:2 13:1 1{1:3 2{1:620 2:0 476{}} 2{1:630 2:0 477{}}}}", SLICES_OF_TRACKS,
     "pkvm_hypervisor,pkVM Hypervisor CPU 3,cpu=3,620,10,hyp,-"},
};

/* An event of the kernel, and its line of text behind the head. */
static const struct text_line {
    const char *event, *line;
} text_lines[] = {
    {"4{1'a' 2:101 3:120 4:3 5'b-c' 6:0 7:120}",
     "sched_switch: prev_comm=a prev_pid=101 prev_prio=120 prev_state=S|D ==> next_comm=b-c next_pid=0 next_prio=120"},
    {"17{1'w' 2:101 3:120 5:3}", "sched_wakeup: comm=w pid=101 prio=120 target_cpu=003"},
    {"20{1'w' 2:101 3:120 5:3}", "sched_waking: comm=w pid=101 prio=120 target_cpu=3"},
    {"16{1'cl' 2:5 3:6}", "clock_set_rate: cl state=5 cpu_id=6"},
    {"322{1'cl' 2:7}", "clk_set_rate: cl 7"},
    {"14{1'ce' 2:1 3:2}", "clock_enable:ce state=1 cpu_id=2"},
    {"50{1:1 2:2 3:3 4:4 5:0 6:31 7:18}",
     "binder_transaction: transaction=1 dest_node=2 dest_proc=3 dest_thread=4 reply=0 flags=0x12 code=0x1f"},
    {"323{1:10 2:1 3:20}", "binder_transaction_alloc_buf: transaction=1 data_size=10 offsets_size=20"},
    {"51{1:7}", "binder_transaction_received: transaction=7"},
    {"97{1:1 2:255 3:2 4:271581186}",
     "mm_filemap_add_to_page_cache: dev 259:2 ino ff page=0000000000000000 pfn=1 ofs=8192"},
    {"18{1:5 2:255 3:1}", "sched_blocked_reason: pid=5 iowait=1 caller=ff"},
    {"56{1:255}", "workqueue_activate_work: work struct ff"},
    {"58{1:255 2:16}", "workqueue_execute_start: work struct ff: function 10"},
    {"36{1:5 2'irqn'}", "irq_handler_entry: irq=5 name=irqn"},
    {"37{1:5 2:1}", "irq_handler_exit: irq=5 ret=handled"},
    {"24{1:3}", "softirq_entry: vec=3 [action=NET_RX]"},
    {"26{1:3}", "softirq_raise: vec=3"},
    {"553{1:255 2:7 3:16}", "hrtimer_expire_entry: function=16"},
    {"27{1:1 2:2 3:80 4:1 5:2}", "i2c_read: i2c-1 #2 a=050 f=0001 l=2"},
    {"29{1:1 2:2 3:-5}", "i2c_result: i2c-1 n=2 ret=-5"},
    {"299{1:16 2:20 3:3264 4:37748928 5:6}",
     "kmalloc: bytes_alloc=16 bytes_req=20 call_site=3264 gfp_flags=GFP_KERNEL ptr=6"},
    {"299{1:16 2:20 3:3264 4:37749441 5:6}",
     "kmalloc: bytes_alloc=16 bytes_req=20 call_site=3264 gfp_flags=GFP_KERNEL|GFP_NOWARN|0x1 ptr=6"},
    {"299{1:16 2:20 3:3264 4:0 5:6}", "kmalloc: bytes_alloc=16 bytes_req=20 call_site=3264 gfp_flags=GFP_NOWAIT ptr=6"},
    {"477{}", "hyp_exit:"},
    {"80{1:5 2'tm' 3:1}", "tracing_mark_write:B|5|tm"},
    {"80{1:5 2'tm' 3:0}", "tracing_mark_write:E|5|tm"},
    {"348{1:5 2'tm' 3:1 4'n' 5:67 6:3}", "tracing_mark_write:C|5|n|3"},
    {"349{1:5 4'n' 5:66 6:3}", "tracing_mark_write:B|5|n|3"},
    {"484{1:5 2'tm' 3:1 4:69 5:3}", "samsung_tracing_mark_write:E|5|tm|3"},
    {"490{1:5 2'tm' 3:1 4'n' 5:67 6:3}", "panel_write_generic:C|5|n|3"},
};

START_TEST(kernel_events_have_their_lines)
{
    char trace[1024];
    snprintf(trace, sizeof trace, PROCESSES "1{10:2 13:1 1{1:3 2{1:1001000 2:101 %s}}}", text_lines[_i].event);
    const struct rule rule = {text_lines[_i].event, trace,
                              "SELECT substr(to_ftrace(id), instr(to_ftrace(id), '0.001001: ') + 10) FROM ftrace_event",
                              text_lines[_i].line};
    check_rule(&rule);
}
END_TEST

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

Suite *rules_details_suite(void);

Suite *rules_details_suite(void)
{
    Suite *s = suite_create("rules_details");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    tcase_add_loop_test(c, kernel_events_have_their_lines, 0, sizeof text_lines / sizeof *text_lines);
    suite_add_tcase(s, c);
    return s;
}
