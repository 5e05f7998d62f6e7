/* What recordings do out of the ordinary: things told twice and otherwise, parts that are never explained, packets that
 * cannot be used; each over a small trace of its own, with the answer that follows from it. */
#include "unit/rules.h"

#define CLOCKS    "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:3 2:1000} 1{1:4 2:1000}}}"
#define PROCESSES "1{8:1 10:1 13:1 2{1{1:100 3'app' 5:10005} 2{1:101 2'wrk' 3:100}}}"
#define THREAD    "1{8:1 10:1 13:1 60{1:2 4{1:5 2:6 5't'}}}"
#define PROCESS   "1{8:1 10:1 13:1 60{1:2 3{1:5}}}"

#define ARGS_OF(row, column)                                                                                           \
    "(SELECT group_concat(key || '=' || coalesce(display_value, '-')) FROM args AS a WHERE a.arg_set_id = " row        \
    "." column ")"
#define LOGS "SELECT ts, byte_offset, name, " ARGS_OF("l", "arg_set_id") " FROM _trace_import_logs AS l ORDER BY id"
#define STACKS                                                                                                         \
    "SELECT m.name, m.build_id, (SELECT group_concat(f.name) FROM stack_profile_frame AS f WHERE f.mapping = m.id), "  \
    "(SELECT count() FROM heap_profile_allocation) FROM stack_profile_mapping AS m UNION ALL SELECT name, value, 0, "  \
    "0 FROM stats WHERE name GLOB 'stackprofile_*' AND value"

static const struct rule rules[] = {
    {"what a heap profile explains is there, whether its dump can be placed or not, or uses it at all",
     "1{8:10 10:9 37{1{1:1 2'f'} 1{1:2 2'lib.so'} 4{1:1 7:2} 4{1:2} 2{1:1 2:1 3:1 4:5} 2{1:2 3:2} 3{1:1 2:1} 5{1:5 9:7 "
     "2{1:1 2:100 5:2}}}}",
     STACKS, "/lib.so,,f,0;,,,0"},
    {"a dump after the first explains all of it again, the empty string too",
     CLOCKS "1{8:10 10:9 37{1{1:1 2'f'} 1{1:3 2'lib'} 4{1:1 7:3} 2{1:1 2:1 3:1 4:1} 3{1:1 2:1} 5{1:5 9:2000 2{1:1 "
            "2:100 5:2}}}} 1{8:20 10:9 37{7:1 1{1:2 2'g'} 4{1:1 7:3} 2{1:1 2:2 3:1} 3{1:1 2:1} 5{1:5 9:3000 2{1:1 "
            "2:100 5:2}}}}",
     STACKS,
     "/lib,,f,1;stackprofile_invalid_string_id,2,0,0;stackprofile_invalid_mapping_id,1,0,0;"
     "stackprofile_invalid_frame_id,1,0,0;stackprofile_invalid_callstack_id,1,0,0"},
    {"of two explanations of one number the first stays",
     CLOCKS "1{8:10 10:9 37{1{1:1 2'f'} 1{1:1 2'g'} 1{1:3 2'lib'} 4{1:1 7:3} 2{1:1 2:1 3:1 4:1} 3{1:1 2:1} 5{1:5 "
            "9:2000 2{1:1 2:100 5:2}}}}",
     STACKS, "/lib,,f,1"},
    {"a sample whose stack has a frame without the name it means has no stack; each use counts",
     CLOCKS PROCESSES
     "1{8:10 10:3 13:1 12{17{1:1 2'l'} 19{1:1 7:1 7:9 7:1} 19{1:2 2:7} 6{1:1 2:5 3:1 4:1} 6{1:2 3:2} 6{1:3 3:1 4:3} "
     "7{1:1 2:1} 7{1:2 2:2} 7{1:3 2:3}}} 1{8:100 10:3 66{1:0 2:100 3:101 4:1}} 1{8:200 10:3 66{1:0 2:100 3:101 4:1}} "
     "1{8:300 10:3 66{1:0 2:100 3:101 4:2}} 1{8:400 10:3 66{1:0 2:100 3:101 4:3}}",
     "SELECT ts, callsite_id FROM perf_sample UNION ALL SELECT name, rel_pc FROM stack_profile_frame UNION ALL SELECT "
     "name, start FROM stack_profile_mapping UNION ALL SELECT name, value FROM stats WHERE name GLOB 'stackprofile_*' "
     "AND value",
     "100,-;200,-;300,-;400,0;-,3;/l,0;stackprofile_invalid_string_id,4"},
    {"packets that cannot be used are noted with where they are and of whom",
     "1{8:5 11{9:3 23'x'}} 1{8:5 10:1 13:2 11{9:3 23'x'}} 1{8:5 10:1 12{2{1:1 2'z'}}} 1{8:5 10:2 13:1} 1{8:5 10:2 "
     "11{9:3 1:4}} 1{10:2 11{9:3}} 1{8:6 10:2 11{9:4 30:4}} 1{8:6 10:2 11{9:4 11:77}} 1{8:6 10:2 11{9:4 11:77 30:5}} "
     "1{8:6 10:2 11{9:3 12:5}} 1{8:6 10:2 60{2'no'}} 1{8:6 10:2 60{1:80 4{1:5}}} 1{8:6 10:2 60{1:81 3{}}}",
     LOGS,
     "-,5,track_event_missing_sequence_id,-;-,23,packet_skipped_seq_needs_incremental_state_invalid,packet_sequence_id="
     "1;-,54,interned_data_skipped_incremental_state_invalid,packet_sequence_id=1;-,80,track_event_skipped_timestamp_"
     "delta_without_valid_state,packet_sequence_id=2;-,98,track_event_missing_timestamp,-;-,112,track_event_counter_"
     "missing_track_uuid,-;-,131,track_event_counter_missing_value,track_uuid=77;-,149,track_event_counter_invalid_"
     "track_"
     "uuid,track_uuid=77;-,170,track_event_extra_counter_missing_track_uuids,packet_sequence_id=2;-,188,track_"
     "descriptor_missing_uuid,-;-,207,track_descriptor_thread_missing_pid_tid,track_uuid=80;-,231,track_descriptor_"
     "process_missing_pid,track_uuid=81"},
    {"a descriptor whose children are in an order that there is not tells nothing",
     PROCESS "1{8:1 10:1 60{1:3 5:2 2'told' 11:9}} 1{8:5 10:1 11{9:3 11:3 23'x'}}",
     "SELECT t.type, t.name FROM slice AS s JOIN track AS t ON t.id = s.track_id UNION ALL SELECT name, " ARGS_OF(
         "l", "arg_set_id") " FROM _trace_import_logs AS l",
     "global_merged_track_event,x;track_descriptor_invalid_child_ordering,track_uuid=3,child_order=9"},
    {"a track told again keeps what it was told first, and takes a name where it had none",
     PROCESS
     "1{8:1 10:1 60{1:3 5:2 12:4 14'd' 11:1}} 1{8:1 10:1 60{1:3 5:2 2'late' 12:5 14'e' 11:2}} 1{8:5 10:1 11{9:3 "
     "11:3 23'x'}}",
     "SELECT t.name, " ARGS_OF("t", "source_arg_set_id") " FROM slice AS s JOIN track AS t ON t.id = s.track_id",
     "late,source=descriptor,trace_id=3,is_root_in_scope=false,child_ordering=lexicographic,sibling_order_rank=4,"
     "description=d"},
    {"counters of other categories or axes, siblings that merge otherwise, are other tracks",
     PROCESS
     "1{8:1 10:1 60{1:3 2'c' 8{2'a' 3:2}}} 1{8:1 10:1 60{1:3 2'c' 8{2'a' 3:3}}} 1{8:1 10:1 60{1:3 2'c' 8{2'b'}}} "
     "1{8:1 10:1 60{1:3 2'c' 8{2'a' 7'y'}}} 1{8:1 10:1 60{1:4 2'm' 15:2}} 1{8:1 10:1 60{1:4 2'm'}} 1{8:1 10:1 "
     "60{1:5 2'n' 15:3 16'k'}} 1{8:1 10:1 60{1:5 2'n' 15:3 16'l'}} 1{8:1 10:1 60{1:5 2'n' 15:3 16'k'}} 1{8:5 "
     "10:1 11{9:4 11:3 30:1}}",
     "SELECT unit FROM counter_track UNION ALL SELECT group_concat(" ARGS_OF(
         "l",
         "arg_set_id") ", ' ') FROM _trace_import_logs AS l WHERE name = 'track_descriptor_conflicting_reservation'",
     "count;track_uuid=3 track_uuid=3 track_uuid=4 track_uuid=5"},
    {"the unit of a counter: what its kind says, else one of the list, else the one it names",
     "1{8:1 10:1 13:1 60{1:3 2'a' 8{1:1 3:3 6'x'}}} 1{8:1 10:1 60{1:4 2'b' 8{1:2}}} 1{8:1 10:1 60{1:5 2'c' 8{3:3 "
     "6'x'}}} "
     "1{8:1 10:1 60{1:6 2'd' 8{6'x'}}} 1{8:1 10:1 60{1:7 2'e' 8{3:9 6'x'}}} 1{8:5 10:1 11{9:4 11:3 30:1}} 1{8:5 10:1 "
     "11{9:4 11:4 30:1}} 1{8:5 10:1 11{9:4 11:5 30:1}} 1{8:5 10:1 11{9:4 11:6 30:1}} 1{8:5 10:1 11{9:4 11:7 30:1}}",
     "SELECT name, unit FROM counter_track", "a,ns;b,count;c,bytes;d,x;e,x"},
    {"memory by mapping, as processes and the kernel's slabs tell it",
     "1{8:5 10:1 9{1{1:5 3:1 17:2 20:3 23:4}}} 1{8:6 10:1 7{18{1'dentry' 2:2 3:5}}}",
     "SELECT t.type, t.name, c.value / 1024, " ARGS_OF("t", "dimension_arg_set_id") ", " ARGS_OF(
         "c", "arg_set_id") " FROM counter AS c JOIN counter_track AS t ON t.id = c.track_id",
     "process_memory,mem.rss,1.0,upid=1,process_memory_key=rss,-;smaps,mem.smaps.pss,2.0,upid=1,smaps_key=pss,-;smaps,"
     "mem.smaps.pss.smem,3.0,upid=1,smaps_key=pss.smem,-;smaps,mem.smaps.swap.pss,4.0,upid=1,smaps_key=swap.pss,-;"
     "slabinfo,mem.slab.dentry,40.0,slab_name=dentry,pages_per_slab=2,num_slabs=5"},
    {"a process told anew is of the kernel or not, as said last; the name of its thread may have blanks",
     "1{8:5 10:1 13:1 2{1{1:5 2:2 3'a thread' 9:1 8:1}}} 1{8:6 10:1 13:1 2{1{1:5 2:2 3'a thread' 9:1 8:0}}}",
     "SELECT p.name, t.name, " ARGS_OF("p",
                                       "arg_set_id") " FROM process AS p JOIN thread AS t USING (upid) WHERE pid = 5",
     "a,a thread,is_kthread=false"},
    {"threads of a name space whose process is not known", "1{8:5 10:1 13:1 2{2{1:7 3:5 4:2}}}", LOGS,
     "5,-,namespaced_thread_missing_process,-"},
    {"threads of a sandbox: what their sequence writes without naming a track, and what it says of others of them",
     "1{8:1 10:1 13:1 60{1:1 4{1:5 2:6} 7{3:1}}} 1{8:1 10:1 60{1:2 3{1:5}}} 1{8:1 10:1 60{1:3 5:2 2'p'}} 1{8:2 10:1 "
     "11{6{2:88 3:5 19:7} 23'a'}} 1{8:3 10:1 11{6{2:88 3:5 18:9} 23'b'}} 1{8:4 10:1 11{6{2:88 3:5} 23'c'}} 1{8:5 10:1 "
     "11{6{2:88 3:5 19:-1} 23'd'}} 1{8:6 10:1 11{9:3 11:3 23'e'}}",
     "SELECT s.name, tid - 21474836480, pid FROM slice AS s JOIN thread_track AS t ON t.id = s.track_id JOIN thread "
     "USING "
     "(utid) JOIN process USING (upid) UNION ALL SELECT s.name, tid - 21474836480, 0 FROM slice AS s JOIN thread AS t "
     "ON "
     "t.utid = extract_arg(s.arg_set_id, 'legacy_event.passthrough_utid')",
     "a,7,5;b,21474836479,9;c,6,5;d,4294967295,5;e,6,0"},
    {"threads of a sandbox whose numbers outside are known have those",
     "1{8:1 10:2 13:1 2{1{1:5 2:1 3'r' 6:1} 2{1:5 3:5 4:1} 2{1:70 3:5 2't' 4:2}}} 1{8:2 10:1 13:1 79:5 60{1:1 4{1:1 "
     "2:2} 7{3:1}}} 1{8:2 10:1 79:5 60{1:3 4{1:1 2:3} 7{3:1}}} 1{8:3 10:1 11{9:3 11:1 23'a'}} 1{8:4 10:1 11{9:3 11:3 "
     "23'b'}}",
     "SELECT s.name, tid - 21474836480 * (tid > 21474836480), pid FROM slice AS s JOIN thread_track AS t ON t.id = "
     "s.track_id JOIN thread USING (utid) JOIN process USING (upid)",
     "a,70,5;b,3,5"},
    {"a thread's descriptor that comes when the sequence has lost its state is not that of the sequence",
     "1{8:1 10:1 60{1:1 4{1:5 2:6}}} 1{8:2 10:1 13:1} 1{8:3 10:1 11{9:3 23'a'}}",
     "SELECT s.name, t.type FROM slice AS s JOIN track AS t ON t.id = s.track_id", "a,global_merged_track_event"},
    {"what an event is, its phase says before its type",
     THREAD "1{8:2 10:1 11{9:3 11:2 6{2:66} 23'a'}} 1{8:5 10:1 11{9:3 11:2 6{2:69}}}",
     "SELECT ts, dur, name FROM slice", "2,3,a"},
    {"of an event's flows the newer field counts",
     THREAD "1{8:6 10:1 11{9:3 11:2 23'x' 47:5 36:6}} 1{8:7 10:1 11{9:3 11:2 23'y' 47:5 48:6}} 1{8:8 10:1 11{9:3 11:2 "
            "23'z' 36:6}} 1{8:9 10:1 11{9:3 11:2 23'w' 36:6 48:5}}",
     "SELECT o.name, i.name FROM flow AS f JOIN slice AS o ON o.id = slice_out JOIN slice AS i ON i.id = slice_in",
     "x,y;z,w;y,w"},
    {"counters that come along with a counter; one is the thread's time by its name",
     THREAD "1{8:1 10:1 60{1:3 2'thread_time' 8{}}} 1{8:1 10:1 60{1:4 2'c' 8{}}} 1{8:2 10:1 11{9:4 11:4 30:5 12:3 "
            "31:3}} 1{8:3 10:1 11{9:3 11:2 23'i' 12:9 31:3}}",
     "SELECT c.ts, t.name, c.value FROM counter AS c JOIN track AS t ON t.id = c.track_id UNION ALL SELECT ts, name, "
     "thread_ts FROM slice",
     "2,thread_time,3.0;2,c,5.0;3,thread_time,9.0;3,i,9"},
    {"an end that ends nothing writes no line of a log",
     THREAD "1{8:1 10:1 12{20{1:1 2'm'}}} 1{8:5 10:1 11{9:2 11:2 23'n' 21{2:1}}} 1{8:6 10:1 11{9:1 11:2 23'd'}} 1{8:7 "
            "10:1 11{9:2 11:2 21{2:1}}}",
     "SELECT ts, msg FROM android_logs", "7,m"},
    {"the trigger of a trace: that of a clone, the first of them, whenever others came",
     CLOCKS
     "1{8:2 10:1 46{1'a'}} 1{8:3 10:1 46{1'b'}} 1{8:4 10:1 113{1'c'}} 1{8:5 10:1 113{1'd'}} 1{8:6 10:1 46{1'e'}}",
     "SELECT str_value, 0 FROM metadata WHERE name = 'trace_trigger' UNION ALL SELECT name, value FROM stats WHERE "
     "name "
     "= 'traced_clone_trigger_timestamp_ns' UNION ALL SELECT name, ts FROM slice",
     "c,0;traced_clone_trigger_timestamp_ns,4;a,2;b,3;c,4;d,5;e,6"},
    {"a trigger of a trace that is no clone: the first", CLOCKS "1{8:2 10:1 46{1'a'}} 1{8:3 10:1 46{1'b'}}",
     "SELECT str_value FROM metadata WHERE name = 'trace_trigger'", "a"},
    {"a trigger of Chrome's is called what it says, and has a number even if it says none",
     CLOCKS "1{8:2 10:1 109{1'a'}} 1{8:3 10:1 109{}}",
     "SELECT ts, name, " ARGS_OF("s",
                                 "arg_set_id") " FROM slice AS s UNION ALL SELECT int_value, name, 0 FROM metadata "
                                               "WHERE name = 'cr-triggered_rule_name_hash'",
     "2,a,chrome_trigger.name_hash=0,chrome_trigger.name=a;3,chrome_trigger,chrome_trigger.name_hash=0;0,cr-triggered_"
     "rule_name_hash,0;0,cr-triggered_rule_name_hash,0"},
    {"the state of the user interface", "1{8:2 10:1 78{1:5 2:300}}",
     "SELECT str_value FROM metadata WHERE name = 'ui_state'", "CAUQrAI="},
    {"classes of a managed heap: each dump has its own, in the order in which its objects mention them",
     "1{8:10 10:9 56{1:30 2{1:1 2:2 3:8} 9{1:1 3'A'} 9{1:2 3'B'}}} 1{8:20 10:9 56{1:30 2{1:1 2:1 3:8} 9{1:2 3'B'} "
     "9{1:1 3'A'} 9{1:3 3'Z'} 9{1:3 3'C'}}}",
     "SELECT id, name FROM heap_graph_class", "0,B;1,A;2,A;3,B;4,C"},
    {"a class's loader is an object, told or not",
     "1{8:10 10:9 56{1:30 2{1:7 2:1 3:8} 2{1:9 2:1 3:8} 9{1:1 3'A' 8:9} 9{1:2 3'B' 8:11} 9{1:3 3'C'}}}",
     "SELECT name, classloader_id FROM heap_graph_class UNION ALL SELECT self_size, type_id FROM heap_graph_object",
     "A,1;B,2;C,-;8,0;8,0;-1,0"},
    {"classes that nothing was told of have rows without a name; that they would have told more counts once",
     "1{8:10 10:9 56{1:30 2{1:1 2:7 3:8} 2{1:2 2:8} 2{1:3 2:8 5:1}}}",
     "SELECT name, kind, 0 FROM heap_graph_class UNION ALL SELECT self_size, reference_set_id, type_id FROM "
     "heap_graph_object UNION ALL SELECT name, value, idx FROM stats WHERE name GLOB 'heap_graph_*' AND value",
     "-,-,0;-,-,0;8,-,0;0,-,1;0,0,1;heap_graph_malformed_packet,1,1"},
    {"what weak references mean they do not hold; soft ones do",
     "1{8:10 10:9 56{1:30 2{1:1 2:1 3:8 5:11 5:12} 2{1:2 2:2 3:8 5:13} 2{1:3 2:3 3:8 5:14} 2{1:4 2:4 3:8 5:15} 7{1:1 "
     "1:2 1:3 1:4} 4{1:1 2'X java.lang.ref.Reference.referent'} 4{1:2 2'Y java.lang.ref.Reference.queue'} 9{1:1 3'W' "
     "7:9 5:5} 9{1:2 3'S' 7:8 5:5} 9{1:3 3'F' 7:10 5:5} 9{1:4 3'P' 7:11 5:5} 9{1:5 3'R' 6:1 6:2}}}",
     "SELECT group_concat(reachable, '') FROM (SELECT reachable FROM heap_graph_object ORDER BY id)", "101111010"},
    {"a field that nothing was told of counts and has no name, those of superclasses after it have theirs",
     "1{8:10 10:9 56{1:30 2{1:1 2:1 3:8 5:1 5:1 5:1} 2{1:2 2:1 3:8 4:77 5:1} 4{1:1 2'a'} 4{1:2 2'b'} 9{1:1 3'S' 5:2 "
     "6:1 "
     "6:9} 9{1:2 3'B' 6:2}}}",
     "SELECT field_name, 0 FROM heap_graph_reference UNION ALL SELECT name, value FROM stats WHERE name GLOB "
     "'heap_graph_*' AND value",
     "a,0;-,0;b,0;-,0;heap_graph_malformed_packet,1"},
    {"heaps whose end is missing count once", "1{8:10 10:9 56{1:30 5:1 2{1:1}}} 1{8:10 10:8 56{1:31 5:1 2{1:1}}}",
     "SELECT count(), (SELECT value FROM stats WHERE name = 'heap_graph_non_finalized_graph') FROM heap_graph", "2,1"},
    {"wake locks: slices and tracks have names of 31 bytes at most, and yet are told apart",
     "1{8:1 10:1 1{1:0 2{1:100 2:5 404{1'twenty_one_characters'}} 2{1:110 2:5 404{1'a_lock_of_a_long_name_1'}} 2{1:120 "
     "2:5 404{1'a_lock_of_a_long_name_2'}} 2{1:130 2:5 405{1'a_lock_of_a_long_name_1'}}}}",
     "SELECT s.ts, dur, s.name, t.name FROM slice AS s JOIN track AS t ON t.id = track_id",
     "100,-1,Wakelock(twenty_one_characters),Wakelock(twenty_one_characters);110,20,Wakelock(a_lock_of_a_long_name_,"
     "Wakelock(a_lock_of_a_long_name_;120,-1,Wakelock(a_lock_of_a_long_name_,Wakelock(a_lock_of_a_long_name_"},
    {"kernel wakelocks of one name add up, whatever their numbers; the type is that of the one told last",
     "1{8:10 10:1 13:1 115{1{1:1 2'a' 3:1} 1{1:2 2'a' 3:2} 1{1:3 2'b' 3:1} 2:1 2:2 3:5 3:7}} 1{8:20 10:1 115{2:1 3:1}} "
     "1{8:30 10:1 13:1 115{1{1:1 2'a' 3:1} 2:1 3:50}}",
     "SELECT ts, name, value / 1e6, extract_arg(dimension_arg_set_id, 'wakelock_type') FROM counter JOIN counter_track "
     "AS t ON t.id = track_id",
     "10,a,12.0,native;20,a,13.0,kernel;30,a,50.0,kernel"},
    {"processor time of user ids: each packet says of all known ones that they did not grow, until the state is lost",
     "1{8:10 10:1 13:1 119{1:1 2:5 2:10007 3:100 3:200}} 1{8:20 10:1 119{2:5 3:1}} 1{8:30 10:1 119{2:5 2:10007 3:1 "
     "3:1}} 1{8:40 10:1 13:1 119{1:1 2:5 3:103}} 1{8:50 10:1 119{2:10007 3:300}}",
     "SELECT name, group_concat(ts || '=' || value, ' ') FROM (SELECT * FROM counter ORDER BY ts) JOIN counter_track "
     "AS t "
     "ON t.id = track_id GROUP BY name",
     "CPU for Apps CL0,10=0.0 20=0.0 30=1.0 40=1.0 50=100.0;CPU for System CL0,10=0.0 20=1.0 30=2.0 40=3.0;CPU for UID "
     "10007 CL0,10=200.0 20=200.0 30=201.0 50=300.0;CPU for UID 5 CL0,10=100.0 20=101.0 30=102.0 40=103.0"},
};

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

Suite *rules_recordings_suite(void);

Suite *rules_recordings_suite(void)
{
    Suite *s = suite_create("rules_recordings");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    suite_add_tcase(s, c);
    return s;
}
