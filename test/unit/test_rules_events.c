/* Rules of track events: each over a small trace of its own, with the answer that follows from it. */
#include "unit/rules.h"

#define SOURCE_ARGS                                                                                                    \
    "(SELECT group_concat(key || '=' || coalesce(display_value, '-')) FROM args AS a WHERE a.arg_set_id = "            \
    "t.source_arg_set_id)"
#define SLICE_ARGS                                                                                                     \
    "(SELECT group_concat(key || '=' || coalesce(display_value, '-')) FROM args AS a WHERE a.arg_set_id = "            \
    "s.arg_set_id)"
#define DIMENSIONS                                                                                                     \
    "(SELECT group_concat(key || '=' || display_value) FROM args AS a WHERE a.arg_set_id = t.dimension_arg_set_id)"

/* Thread 6 of process 5 is track 2; the sequence has a thread of its own. */
#define THREAD  "1{8:1 10:1 13:1 60{1:2 4{1:5 2:6 5't'}}}"
#define EARLIER "1{8:1 10:1 13:1 44{1:5 2:6}}"

static const struct rule rules[] = {
    {"android_logs has no lines of systemd",
     "1{8:1 10:1 6{1{1:6 2:1} 1{1:1 2:1}}} 1{8:5 10:1 39{1{5:5 6'T' 8'from Android'}}} 1{8:6 10:1 132{1:42 2:42 5:6 "
     "6'T' "
     "7'from systemd'}}",
     "SELECT (SELECT group_concat(msg) FROM android_logs) || ';' || (SELECT group_concat(msg) FROM (SELECT msg FROM "
     "logs "
     "ORDER BY id))",
     "from Android;from Android,from systemd"},
    {"args of an event: picture and correlation, then its other fields as they come",
     THREAD "1{8:6 10:1 11{9:3 11:2 26{1'k'} 52:7 28{1:5 3:6} 50{1'abc'}}}",
     "SELECT group_concat(key) FROM args JOIN slice USING (arg_set_id)",
     "screenshot.jpg_image,correlation_id,chrome_keyed_service.name,chrome_histogram_sample.name_hash,chrome_histogram_"
     "sample.sample"},
    {"an event is the same whatever its packet says beside it, and in which order",
     "1{8:1 10:300 6{1{1:6 2:100} 1{1:3 2:50}}} 1{8:101 10:300 13:1 60{1:5 2'x'}} "
     "1{8:102 10:300 13:2 11{9:3 11:5 22'cat' 23'a'}} "
     "1{8:103 13:2 11{9:3 11:5 22'cat' 23'b'} 3:1000 10:300 79:70000} "
     "1{8:54 13:2 58:3 11{22'cat' 9:3 23'c' 11:5} 3:1000 10:300 79:70000} "
     "1{8:105 13:2 11{22'cat' 23'd' 9:3 11:5} 3:1000 10:300 79:70000 900:1} "
     "1{8:106 13:2 11{22'cat' 23'e' 9:3 11:5} 10:301}",
     "SELECT group_concat(ts || name || category), (SELECT value FROM stats WHERE name = "
     "'packet_skipped_seq_needs_incremental_state_invalid') FROM slice",
     "102acat,103bcat,104ccat,105dcat,1"},
    {"further counters: too few tracks for the values, and too many of both",
     "1{8:1 10:1 13:1 60{1:6 2'c' 8{}}} 1{8:2 10:1 11{9:3 31:6 12:5 12:6}} 1{8:3 10:1 11{9:3 31:6 31:6 31:6 31:6 31:6 "
     "31:6 31:6 31:6 31:6 12:1 12:2 12:3 12:4 12:5 12:6 12:7 12:8 12:9}}",
     "SELECT name, value FROM stats WHERE name GLOB 'track_event_extra_counter_*' AND value ORDER BY name",
     "track_event_extra_counter_exceeds_max,1;track_event_extra_counter_track_uuid_mismatch,1"},
    {"each sequence adds up a counter's deltas by itself",
     "1{8:1 10:1 13:1 60{1:5 2'c' 8{5:1}}} 1{8:1 10:2 13:1 60{1:5 2'c' 8{5:1}}} "
     "1{8:10 10:1 11{9:4 11:5 30:3}} 1{8:11 10:2 11{9:4 11:5 30:10}} "
     "1{8:12 10:1 11{9:4 11:5 30:4}} 1{8:13 10:1 13:1} "
     "1{8:14 10:1 11{9:4 11:5 30:1}}",
     "SELECT ts, CAST(value AS INT) FROM counter", "10,3;11,10;12,7;14,1"},
    {"threads and processes are no parents of tracks",
     "1{8:1 10:1 13:1 60{1:1 3{1:5}}} 1{8:1 10:1 60{1:3 5:1 2'a'}} 1{8:1 10:1 60{1:4 5:3 2'b'}} 1{8:1 10:1 60{1:6 5:3 "
     "2'c' 8{}}} 1{8:2 10:1 11{9:3 11:4}} 1{8:3 10:1 11{9:4 11:6 30:1}}",
     "SELECT t.name, p.name FROM track AS t LEFT JOIN track AS p ON p.id = t.parent_id WHERE t.name IS NOT NULL",
     "a,-;b,a;c,a"},
    {"tracks tell whether the beginning of the sequence that used them first was recorded",
     "1{8:1 10:1 13:1 87:1} 1{8:1 10:2 13:1 60{1:3 2'a'}} 1{8:1 10:2 60{1:4 2'b'}} 1{8:1 10:1 11{9:3 11:3}} 1{8:2 10:2 "
     "11{9:3 11:4}} 1{8:3 10:2 11{9:3 11:3}}",
     "SELECT name, extract_arg(source_arg_set_id, 'has_first_packet_on_sequence') FROM track", "a,1;b,-"},
    {"log messages without a text are errors, and no args",
     THREAD "1{8:6 10:1 11{9:3 11:2 21{1:7 2:8}}} 1{8:7 10:1 11{9:3 21{2:8}}}",
     "SELECT (SELECT count() FROM args WHERE key GLOB 'track_event.*'), (SELECT count() FROM android_logs), (SELECT "
     "value FROM stats WHERE name = 'track_event_parser_errors')",
     "0,0,2"},
    {"categories: those of a counter stand together; several that nothing has named are none",
     "1{8:1 10:1 13:1 12{1{1:1 2'x'}} 60{1:3 2'c' 8{2'a' 2'b'}}} 1{8:2 10:1 11{9:4 11:3 30:1}} 1{8:3 10:1 11{9:3 3:1 "
     "3:9 "
     "22'y' 22'z'}} 1{8:4 10:1 11{9:3 3:8 3:9}} 1{8:5 10:1 11{9:3 3:8}}",
     "SELECT extract_arg(source_arg_set_id, 'category') FROM counter_track UNION ALL SELECT category FROM slice",
     "a,b;x,y,z;-;unknown(8)"},
    {"an order of children that there is not counts once", "1{8:1 10:1 13:1 60{1:3 2'c' 11:9}}",
     "SELECT value FROM stats WHERE name = 'track_descriptor_invalid_child_ordering'", "1"},
    {"annotations without a name, or with a number that stands for nothing, are left out, and what follows them in "
     "theirs",
     THREAD
     "1{8:6 10:1 11{9:3 11:2 4{2:1} 4{1:9 2:1} 4{10'v' 17:9} 4{10'p' 16'Nope' 14{2:6}} 4{10'd' 11{10'a' 4:1} 11{4:2} "
     "11{10'b' 4:3}} 4{10'l' 12{4:1} 12{17:9} 12{4:2}} 4{10'' 4:4}}} 1{8:7 10:1 11{9:3 11:2 4{4:1} 54:9}}",
     "SELECT " SLICE_ARGS " FROM slice AS s", "debug.d.a=1,debug.l[0]=1,debug.=4;-"},
    {"places in the source, by number: what is not told is empty",
     "1{8:1 10:1 13:1 12{4{1:1 2'a\\b.cc'} 4{1:2 3'fn' 4:7} 20{1:3 2'text'}} 60{1:2 4{1:5 2:6}}} 1{8:6 10:1 11{9:3 "
     "11:2 "
     "34:1 5{1:2} 21{1:2 2:3 3:5}}}",
     "SELECT key || '=' || coalesce(display_value, '-') || ':' || value_type FROM slice JOIN args USING (arg_set_id)",
     "source.file_name=a/"
     "b.cc:string;source.function_name=-:string;source.line_number=0:uint;task.posted_from.file_name="
     ":string;task.posted_from.function_name=fn:string;task.posted_from.line_number=7:uint;track_event.log_message."
     "message=text:string;track_event.log_message.file_name=-:string;track_event.log_message.function_name=fn:string;"
     "track_event.log_message.line_number=7:int;track_event.priority=5:int;source_location_iid=1:uint"},
    {"asynchronous events: an id keeps the name it was first told by",
     EARLIER
     "1{8:6 10:1 11{6{2:83 6:7} 22'c' 23'x'}} 1{8:7 10:1 11{6{2:84 6:7} 22'c' 23'y'}} 1{8:8 10:1 11{6{2:98 10:7 "
     "7's'} 22'c' 23'z'}}",
     "SELECT t.name, " DIMENSIONS ", " SOURCE_ARGS " FROM track AS t WHERE type GLOB 'legacy*'",
     "x,scope=x,name=x,track_compressor_idx=0,source=chrome,trace_id_is_process_scoped=false,upid=1,source_scope=x;y,"
     "scope=y,name=x,track_compressor_idx=0,source=chrome,trace_id_is_process_scoped=false,upid=1,source_scope=y;z,"
     "upid="
     "1,scope=c:s,name=z,track_compressor_idx=0,source=chrome,trace_id_is_process_scoped=true,upid=1,source_scope=c:s"},
    {"asynchronous events: the track that one names is made first",
     THREAD "1{8:6 10:1 11{6{2:98 6:7} 11:2 22'c' 23'x'}}", "SELECT type FROM track",
     "thread_execution;legacy_async_global_slice"},
    {"asynchronous events: args", EARLIER "1{8:6 10:1 11{6{2:98 10:7} 4{10'd' 4:1} 22'c' 23'x'}}",
     "SELECT " SLICE_ARGS " FROM slice AS s", "legacy_trace_source_id=7,debug.d=1,legacy_event.passthrough_utid=1"},
    {"instants that belong to no thread",
     EARLIER "1{8:6 10:1 11{6{2:73 14:1} 23'g'}} 1{8:6 10:1 11{6{2:73 14:2} 23'p'}}",
     "SELECT t.type, " SOURCE_ARGS " FROM slice JOIN track AS t ON t.id = track_id",
     "legacy_chrome_global_instants,source=chrome;chrome_process_instant,source=chrome"},
    {"arrows of the first kind have an id without a scope",
     EARLIER "1{8:6 10:1 11{6{2:66} 23'a'}} 1{8:7 10:1 11{6{2:115 11:3} 23'f'}} 1{8:8 10:1 11{6{2:115} 23'f'}}",
     "SELECT name, value FROM stats WHERE name IN ('flow_invalid_id', 'track_event_parser_errors') ORDER BY 1",
     "flow_invalid_id,2;track_event_parser_errors,2"},
    {"an arrow that did not begin does not end", THREAD "1{8:6 10:1 11{9:3 11:2 42:9}}",
     "SELECT (SELECT count() FROM flow), (SELECT sum(value) FROM stats WHERE name GLOB 'flow*')", "0,0"},
    {"steps have no arrows", EARLIER "1{8:6 10:1 11{6{2:84 6:7} 23'a' 36:1}} 1{8:7 10:1 11{6{2:105} 23'b' 36:1}}",
     "SELECT count() FROM flow", "0"},
    {"the time of a thread in a whole event counts with the time at its beginning",
     EARLIER "1{8:6 10:1 11{6{2:88 3:5 4:4} 23'a'}} 1{8:9000 10:1 11{6{2:88 3:5 4:4} 17:7 23'b'}} 1{8:18000 10:1 "
             "11{6{2:88 3:5} 17:8 23'c'}}",
     "SELECT name, thread_ts, thread_dur FROM slice", "a,-,-;b,7000,4000;c,8000,0"},
    {"the time of a thread in what is not on a thread", EARLIER "1{8:6 10:1 11{6{2:98 6:3 9:1} 17:7 23'b'}}",
     "SELECT thread_ts FROM slice", "-"},
    {"a thread that ran for no time at all", EARLIER "1{8:6 10:1 11{6{2:66} 17:7 23'b'}} 1{8:9 10:1 11{6{2:69} 17:7}}",
     "SELECT dur, thread_ts, thread_dur FROM slice", "3,7000,-"},
    {"slices of threads need one", "1{8:6 10:1 13:1 11{6{2:66} 23'b'}}",
     "SELECT (SELECT count() FROM slice), (SELECT value FROM stats WHERE name = 'track_event_parser_errors')", "0,1"},
    {"nothing happens on the idle thread", EARLIER "1{8:6 10:1 11{6{2:66 19:0} 23'b'}}",
     "SELECT (SELECT count() FROM slice), (SELECT value FROM stats WHERE name = 'track_event_parser_errors')", "0,1"},
    {"a thread of another process, which has no number", EARLIER "1{8:6 10:1 11{6{2:66 18:9} 23'b'}}",
     "SELECT tid, pid FROM slice JOIN thread_track AS t ON t.id = track_id JOIN thread USING (utid) JOIN process USING "
     "(upid)",
     "42949672959,9"},
    {"names of threads and processes, and what else there is to tell",
     EARLIER "1{8:6 10:1 11{6{2:77} 23'thread_name' 4{10'x' 6'new'}}} 1{8:6 10:1 11{6{2:77} 23'process_name' 4{10'y' "
             "6'app'}}} 1{8:7 10:1 11{6{2:77} 23'other' 4{10'z' 6'q'}}} 1{8:7 10:1 11{6{2:77} 23'thread_name'}}",
     "SELECT (SELECT name FROM thread WHERE tid = 6), (SELECT name FROM process WHERE pid = 5), (SELECT value FROM "
     "stats WHERE name = 'track_event_parser_errors'), (SELECT group_concat(key || '=' || display_value) FROM "
     "__intrinsic_chrome_raw JOIN args USING (arg_set_id))",
     "new,app,1,legacy_event.name=other,legacy_event.phase=M,debug.z=q"},
    {"events that are kept as they are",
     EARLIER "1{8:6 10:1 11{6{2:78 3:2 4:3 11:4 7's' 9:1 15:6} 17:7 20:8 22'c' 23'o' 4{10'z' 6'q'}}}",
     "SELECT group_concat(key || '=' || display_value) FROM __intrinsic_chrome_raw JOIN args USING (arg_set_id)",
     "legacy_event.category=c,legacy_event.name=o,legacy_event.phase=N,legacy_event.duration_ns=2000,legacy_event."
     "thread_timestamp_ns=7000,legacy_event.thread_duration_ns=3000,legacy_event.thread_instruction_count=8,legacy_"
     "event.thread_instruction_delta=6,legacy_event.use_async_tts=true,legacy_event.global_id=4,legacy_event.id_scope="
     "s,"
     "debug.z=q"},
    {"histograms: a name by number stands first; the trace's table tells those of hashes",
     "1{8:1 10:1 13:1 12{25{1:1 2'H'}} 60{1:2 4{1:5 2:6}}} 1{8:6 10:1 11{9:3 11:2 28{1:10 3:5 4:1}}} 1{8:7 10:1 11{9:3 "
     "11:2 28{1:11 2'x' 3:5}}} 1{8:8 10:1 82{1{1{1:11 2'known'}}}}",
     "SELECT " SLICE_ARGS " FROM slice AS s",
     "chrome_histogram_sample.name=H,chrome_histogram_sample.name_hash=10,chrome_histogram_sample.sample=5,chrome_"
     "histogram_sample.name_iid=1;chrome_histogram_sample.name_hash=11,chrome_histogram_sample.name=x,chrome_histogram_"
     "sample.sample=5"},
    {"histograms: names that are told twice or not at all",
     THREAD "1{8:6 10:1 11{9:3 11:2 28{2'x' 4:1}}} 1{8:6 10:1 "
            "11{9:3 11:2 28{4:9}}}",
     "SELECT value FROM stats WHERE name = 'track_event_parser_errors'", "2"},
    {"marks of web pages, by the trace's table",
     THREAD "1{8:6 10:1 11{9:3 11:2 1011{1:5 3:6}}} 1{8:8 10:1 82{3{1{1:5 2'site'} 2{1:6 2'mark'}}}}",
     "SELECT " SLICE_ARGS " FROM slice AS s",
     "chrome_hashed_performance_mark.site_hash=5,chrome_hashed_performance_mark.site=site,chrome_hashed_performance_"
     "mark."
     "mark_hash=6,chrome_hashed_performance_mark.mark=mark"},
    {"messages without fields are args without a value: of events, of layers and of what Chrome annotates",
     THREAD "1{8:6 10:1 11{9:3 11:2 29{} 29{4{} 4{2:3}}}} 1{8:7 10:1 93{1:7 7{} 7{1:1 4{}}}}",
     "SELECT group_concat(key || iif(value_type = 'null', '', '=' || display_value)) FROM args WHERE arg_set_id IN "
     "(SELECT arg_set_id FROM slice UNION ALL SELECT arg_set_id FROM surfaceflinger_layers_snapshot)",
     "chrome_latency_info,chrome_latency_info.component_info[0],chrome_latency_info.component_info[1].time_us=3,"
     "elapsed_"
     "realtime_nanos=7,displays[0],displays[1].id=1,displays[1].size"},
    {"a value that is told again stands where it stood",
     THREAD "1{8:6 10:1 11{9:3 11:2 4{10'a' 4:1} 4{10'b' 4:2} 4{10'a' 6'x'}}}", "SELECT " SLICE_ARGS " FROM slice AS s",
     "debug.a=x,debug.b=2"},
    {"what Chrome tells of itself",
     "1{8:1 10:1 51{2:101 4{1:1 2:2} 4{1:3 2:4} 4{1:5 2:6} 1{}}} 1{8:1 10:1 51{5'com.c'}}",
     "SELECT name, int_value, str_value FROM metadata WHERE name GLOB 'cr-*'",
     "cr-a-playstore_version_code,101,-;cr-background_tracing_metadata,-,;cr-a-field_trial_hashes,-,{ name: 1, group: "
     "2 "
     "} { name: 3, group: 4 } \n{ name: 5, group: 6 } ;cr-b-package-name,-,com.c"},
    {"pieces of work of Android's compositor",
     THREAD "1{8:6 10:1 11{9:3 11:2 2007{1:1 2'in' 3:7 4{1{1{2:40} 4{2:5}} 2{2:3}}}}} 1{8:7 10:1 11{9:1 11:2 23'a' "
            "2007{3:8}}} 1{8:8 10:1 11{9:2 11:2}}",
     "INCLUDE PERFETTO MODULE android.surfaceflinger; SELECT ts, source, output_name, sf_vsync, sf_cpu_commit_nanos, "
     "skia_submit_nanos, gpu_composited_layers, dpu_composited_layers FROM android_surfaceflinger_workloads",
     "6,FRAME_SIGNAL,in,7,40,5,-,3"},
    {"fields that nothing describes are counted", THREAD "1{8:6 10:1 11{9:3 11:2 9999:3 9998{1:1}}}",
     "SELECT value FROM stats WHERE name = 'unknown_extension_fields'", "2"},
    {"tracks whose parent nothing describes have no place, until it does",
     "1{8:1 10:1 13:1 60{1:3 5:2 2'a'}} 1{8:2 10:1 11{9:3 11:3 23'lost'}} 1{8:3 10:1 11{9:1 11:3 23'lost'}}",
     "SELECT (SELECT count() FROM slice), (SELECT group_concat(name || '=' || value) FROM stats WHERE name IN "
     "('track_hierarchy_missing_uuid', 'track_event_parser_errors')), (SELECT group_concat(name || ':' || "
     "extract_arg(arg_set_id, 'track_uuid')) FROM _trace_import_logs)",
     "0,track_event_parser_errors=2,track_hierarchy_missing_uuid=2,track_hierarchy_missing_uuid:3,track_hierarchy_"
     "missing_uuid:3"},
    {"threads and processes have their names though their track has no place",
     "1{8:1 10:1 13:1 60{1:3 5:9 4{1:5 2:6 5't'}}} 1{8:1 10:1 60{1:4 5:9 3{1:7 6'p'}}}",
     "SELECT t.name, (SELECT name FROM process WHERE pid = 7) FROM thread AS t WHERE tid = 6", "t,p"},
    {"what a track is called does not tell it apart; whose child it is does, and the first word holds",
     "1{8:1 10:1 13:1 60{1:3 2'a'}} 1{8:1 10:1 60{1:4 2'p'}} 1{8:1 10:1 60{1:3 2'b'}} 1{8:1 10:1 60{1:3 5:4 2'c'}} "
     "1{8:1 10:1 60{1:0 5:4}} 1{8:2 10:1 11{9:3 11:3 23'x'}}",
     "SELECT t.name, t.parent_id, (SELECT group_concat(l.name || ':' || (SELECT key || '=' || display_value FROM args "
     "AS a WHERE a.arg_set_id = l.arg_set_id)) FROM _trace_import_logs AS l) FROM slice JOIN track AS t ON t.id = "
     "track_id",
     "a,-,track_descriptor_conflicting_reservation:track_uuid=3,track_descriptor_default_track_with_parent:parent_uuid="
     "4"},
    {"what is open inside a slice that has ended goes on until a later time, and is cut then",
     THREAD
     "1{8:10 10:1 11{9:1 11:2 23'a'}} 1{8:20 10:1 11{9:1 11:2 23'b'}} 1{8:30 10:1 11{9:2 11:2 23'a'}} 1{8:30 10:1 "
     "11{9:3 11:2 23'same'}} 1{8:31 10:1 11{9:3 11:2 23'later'}}",
     "SELECT name, dur, depth, (SELECT value FROM stats WHERE name = 'misplaced_end_event') FROM slice",
     "a,20,0,1;b,10,1,1;same,0,2,1;later,0,0,1"},
    {"names of slices, by the trace's table: of all slices, but not of their tracks, nor of states",
     "1{8:1 10:1 13:1 60{1:3 18{}}} 1{8:2 10:1 82{4{1{1'raw' 2'told'}}}} 1{8:10 10:1 11{9:1 11:4 23'raw'}} 1{8:12 10:1 "
     "11{9:2 11:4 23'raw'}} 1{8:13 10:1 11{9:5 11:3 23'raw'}} 1{1{1:0 2{1:14 2:7 3{2'B|7|raw'}} 2{1:15 2:7 "
     "3{2'E|7'}}}}",
     "SELECT s.name, s.dur, t.name FROM slice AS s JOIN track AS t ON t.id = s.track_id UNION ALL SELECT value, 0, "
     "'state' "
     "FROM state",
     "told,2,raw;told,1,-;raw,0,state"},
    {"names of tracks of processes, by the trace's table: also where older events make them",
     EARLIER
     "1{8:2 10:1 82{5{1{1'raw' 2'told'}}}} 1{8:6 10:1 11{6{2:98 10:7} 22'c' 23'raw'}} 1{8:7 10:1 11{6{2:98 11:7} 22'c' "
     "23'raw'}} 1{8:8 10:1 60{1:3 3{1:5}}} 1{8:8 10:1 60{1:4 5:3 2'raw'}} 1{8:9 10:1 11{9:3 11:4 23'x'}}",
     "SELECT s.name, t.name, " DIMENSIONS " FROM slice AS s JOIN track AS t ON t.id = s.track_id",
     "raw,told,upid=1,scope=c,name=told,track_compressor_idx=0;raw,raw,scope=c,name=raw,track_compressor_idx=0;x,told,"
     "upid=1,parent_track_uuid=3,merge_key_type=0,merge_key_value=told,track_compressor_idx=0"},
    {"siblings are one track by name, by a key in words or in numbers, or not at all",
     "1{8:1 10:1 13:1 60{1:2 3{1:5}}} 1{8:1 10:1 60{1:20 5:2 2'a'}} 1{8:1 10:1 60{1:21 5:2 2'a' 15:1}} 1{8:1 10:1 "
     "60{1:22 5:2 2'a' 15:2}} 1{8:1 10:1 60{1:23 5:2 2'b' 15:3 16'k'}} 1{8:1 10:1 60{1:24 5:2 2'c' 15:3 16'k'}} 1{8:1 "
     "10:1 60{1:25 5:2 2'd' 15:3 17:7}} 1{8:1 10:1 60{1:26 5:2 2'e' 15:3 17:7}} 1{8:1 10:1 60{1:27 5:2 2'f' 16'k'}} "
     "1{8:2 10:1 11{9:3 11:20}} 1{8:3 10:1 11{9:3 11:21}} 1{8:4 10:1 11{9:3 11:22}} 1{8:5 10:1 11{9:3 11:23}} 1{8:6 "
     "10:1 11{9:3 11:24}} 1{8:7 10:1 11{9:3 11:25}} 1{8:8 10:1 11{9:3 11:26}} 1{8:9 10:1 11{9:3 11:27}}",
     "SELECT s.ts, t.type, t.name, " DIMENSIONS " FROM slice AS s JOIN track AS t ON t.id = s.track_id",
     "2,process_merged_track_event,a,upid=1,parent_track_uuid=2,merge_key_type=0,merge_key_value=a,track_compressor_"
     "idx=0;3,process_merged_track_event,a,upid=1,parent_track_uuid=2,merge_key_type=0,merge_key_value=a,track_"
     "compressor_idx=0;4,process_track_event,a,upid=1,track_uuid=22;5,process_merged_track_event,b,upid=1,parent_track_"
     "uuid=2,merge_key_type=2,merge_key_value=k,track_compressor_idx=0;6,process_merged_track_event,b,upid=1,parent_"
     "track_uuid=2,merge_key_type=2,merge_key_value=k,track_compressor_idx=0;7,process_merged_track_event,d,upid=1,"
     "parent_track_uuid=2,merge_key_type=2,merge_key_value=sibling_merge_key_int:7,track_compressor_idx=0;8,process_"
     "merged_track_event,d,"
     "upid="
     "1,parent_track_uuid=2,merge_key_type=2,merge_key_value=sibling_merge_key_int:7,track_compressor_idx=0;9,process_"
     "merged_track_event,f,"
     "upid=1,parent_track_uuid=2,merge_key_type=0,merge_key_value=f,track_compressor_idx=0"},
    {"what events leave out, the sequence's defaults say: the track, and those of further counters",
     THREAD
     "1{8:2 10:1 60{1:7 5:2 8{1:1 4:1000 5:1}}} 1{8:2 10:1 60{1:8 5:2 8{1:2}}} 1{8:3 10:1 59{11{11:2 31:7 31:8}}} "
     "1{8:10 10:1 11{9:1 23'a' 12:5 12:50}} 1{8:20 10:1 11{9:2 12:7 12:80}} 1{8:30 10:1 11{9:3 23'i' 12:1}}",
     "SELECT ts, dur, name, thread_ts, thread_dur, thread_instruction_count, thread_instruction_delta FROM slice UNION "
     "ALL SELECT c.ts, CAST(c.value AS INT), t.name, t.unit, extract_arg(t.source_arg_set_id, 'builtin_counter_type'), "
     "0, 0 FROM counter AS c JOIN counter_track AS t ON t.id = c.track_id",
     "10,10,a,5000,7000,50,30;30,0,i,13000,0,-,-;10,5000,thread_time,ns,thread_time,0,0;10,50,thread_instruction_count,"
     "count,thread_instruction_count,0,0;20,12000,thread_time,ns,thread_time,0,0;20,80,thread_instruction_count,"
     "count,thread_instruction_count,0,0;30,13000,thread_time,ns,thread_time,0,0"},
    {"call stacks that events spell out lie in a mapping of their own",
     THREAD "1{8:6 10:1 11{9:1 11:2 55{1{1'f' 2's.c' 3:7} 1{1'g'}}}} 1{8:9 10:1 11{9:2 11:2 55{1{1'f' 2's.c' 3:8}}}}",
     "SELECT callsite_id, end_callsite_id, f.name, m.name, (SELECT source_file || ':' || line_number FROM "
     "stack_profile_symbol AS s WHERE s.symbol_set_id = f.symbol_set_id) FROM __intrinsic_track_event_callstacks AS e "
     "JOIN stack_profile_callsite AS c ON c.id = coalesce(callsite_id, end_callsite_id) JOIN stack_profile_frame AS f "
     "ON f.id = c.frame_id JOIN stack_profile_mapping AS m ON m.id = f.mapping",
     "1,-,g,track_event_inline,-;-,2,f,track_event_inline,s.c:8"},
    {"Chrome's bundles are of the clock MONOTONIC, whether they say so or not",
     "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:3 2:500}}} 1{8:510 10:1 5{2{1'a' 4:1}}} 1{8:520 10:1 58:3 5{2{1'b' 4:1}}} "
     "1{8:530 10:1 58:6 5{2{1'c' 4:1}}}",
     "SELECT ts FROM __intrinsic_chrome_raw ORDER BY id", "530;1010;1020"},
    {"Chrome's bundles whose clock nothing relates are kept as they stand, and counted",
     "1{8:510 10:1 5{2{1'a' 4:1}}} 1{8:511 10:1 58:3 5{2{1'b' 4:1}}} 1{8:512 10:1 58:3 45{3:1}}",
     "SELECT ts, (SELECT value FROM stats WHERE name = 'clock_sync_failure_unknown_source_clock') FROM "
     "__intrinsic_chrome_raw",
     "510,3;511,3"},
};

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

/* What the bytes of packets are spent on: events apart by what they are, the rest together. Lengths of messages take
 * four bytes here. */
static const struct rule analyses[] = {
    {"the size of a field is that of its values, of a message what is in none of its fields",
     "1{8:1 10:1 13:1 60{1:300 2'tt'}} 1{8:2 10:1 60{1:7}}",
     "SELECT path, size, count, parent_id FROM experimental_proto_content AS c JOIN experimental_proto_path AS p ON "
     "p.id "
     "= c.path_id",
     "TracePacket,17,2,-;TracePacket.#timestamp.uint64,2,2,0;TracePacket.#trusted_packet_sequence_id.uint32,2,2,0;"
     "TracePacket.#sequence_flags.uint32,1,1,0;TracePacket.#track_descriptor.TrackDescriptor,4,2,0;TracePacket.#track_"
     "descriptor.TrackDescriptor.#uuid.uint64,3,2,4;TracePacket.#track_descriptor.TrackDescriptor.#name.string,2,1,4"},
    {"events of one name are one kind",
     "1{8:1 10:1 13:1 11{9:3 11:1 22'c' 23'a'}} 1{8:2 10:1 11{9:3 11:1 23'b'}} "
     "1{8:3 10:1 11{9:3 11:1 22'c' 23'a'}}",
     "SELECT p.id, group_concat(key || '=' || coalesce(string_value, '-')), (SELECT count FROM "
     "experimental_proto_content WHERE path_id = p.id) FROM experimental_proto_path AS p JOIN args USING (arg_set_id) "
     "GROUP BY 1",
     "0,event.category=c,event.name=a,2;9,event.category=-,event.name=b,1"},
    {"extensions have names, and what has none is summed up",
     "1{8:1 10:1 13:1 11{9:3 11:1 1002{1:5} 9999:1} 9997'abc'}",
     "SELECT path, size FROM experimental_proto_content WHERE path GLOB '*annotator*' OR path GLOB '*unknown*'",
     "TracePacket.#track_event.TrackEvent.#chrome_task_annotator.ChromeTaskAnnotator,1;TracePacket.#track_event."
     "TrackEvent.#chrome_task_annotator.ChromeTaskAnnotator.#ipc_hash.uint32,1;TracePacket.#track_event.TrackEvent.#"
     "unknown.,1;TracePacket.#unknown.,3"},
    {"packets that come too early", "1{8:1 10:1 13:2 60{1:7}}",
     "SELECT key, string_value FROM experimental_proto_path JOIN args USING (arg_set_id)",
     "skipped_packet,invalid_incremental_state"},
};

START_TEST(bytes_are_summed_up)
{
    struct import_options options = {.analyze_proto_content = true};
    check_rule_with(&analyses[_i], &options);
}
END_TEST

START_TEST(bytes_are_not_looked_at_unasked)
{
    static const struct rule rule = {
        "", THREAD,
        "SELECT (SELECT count() FROM experimental_proto_path), (SELECT count() FROM experimental_proto_content)",
        "0,0"};
    check_rule(&rule);
}
END_TEST

Suite *rules_events_suite(void);

Suite *rules_events_suite(void)
{
    Suite *s = suite_create("rules_events");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    tcase_add_loop_test(c, bytes_are_summed_up, 0, sizeof analyses / sizeof *analyses);
    tcase_add_test(c, bytes_are_not_looked_at_unasked);
    suite_add_tcase(s, c);
    return s;
}
