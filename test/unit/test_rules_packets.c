/* Rules of packets that few recordings have, field by field: each over a small trace of its own, with the answer that
 * follows from it. */
#include "unit/rules.h"

#define CLOCKS    "1{8:1 10:1 13:1 6{1{1:6 2:1000} 1{1:3 2:1000} 1{1:4 2:1000}}}"
#define PROCESSES "1{8:1 10:1 13:1 2{1{1:100 3'app' 5:10005} 2{1:101 2'wrk' 3:100}}}"

#define MAPPINGS                                                                                                       \
    "SELECT path, path_trimmed, is_deleted, aggregate_count, size_kb, (SELECT value FROM stats WHERE name = "          \
    "'smaps_parser_errors') FROM profiler_smaps"

static const struct rule rules[] = {
    {"perf: the first packet of a sequence from a cpu makes that cpu's counters, whatever later defaults say",
     CLOCKS PROCESSES
     "1{10:7 13:1 59{58:6 12{1{10'one'} 4{4'f1'}}}} 1{8:10 10:7 66{1:0 2:100 3:101 6:5 7:6}} 1{10:7 13:1 59{58:6 "
     "12{1{10'two'} 4{4'f2'} 4{4'f3'}}}} 1{8:11 10:7 66{1:0 2:100 3:101 6:7 7:8 7:9}} 1{8:12 10:7 66{1:1 2:100 3:101 "
     "6:1 7:2 7:3}}",
     "SELECT c.ts, c.value, t.name, t.cpu FROM counter AS c JOIN perf_counter_track AS t ON t.id = track_id ORDER BY "
     "c.id",
     "10,5.0,one,0;10,6.0,f1,0;11,7.0,one,0;11,8.0,f1,0;12,1.0,two,1;12,2.0,f2,1;12,3.0,f3,1"},
    {"perf: the shard is told when processes were shared out, by the first packet of any cpu",
     CLOCKS PROCESSES
     "1{10:7 13:1 59{58:6 12{2:0 3:0}}} 1{8:10 10:7 66{1:0}} 1{10:8 13:1 59{58:6 12{2:4}}} 1{8:11 10:8 66{1:0}} "
     "1{10:9 13:1 59{58:6}} 1{8:12 10:9 66{1:0}} 1{10:9 13:1 59{58:6 12{2:5 3:3}}} 1{8:13 10:9 66{1:1}}",
     "SELECT name, idx, value FROM stats WHERE name GLOB 'perf_*shard*' ORDER BY idx, name",
     "perf_chosen_process_shard,1,0;perf_process_shard_count,1,4;perf_chosen_process_shard,2,3;"
     "perf_process_shard_count,2,5"},
    {"perf: a recorder that stopped for another reason than its limits is no sample, and no limit",
     CLOCKS "1{8:10 10:7 13:1 66{19{}}} 1{8:11 10:7 66{19{1:7}}}",
     "SELECT (SELECT count() FROM perf_sample), (SELECT count() FROM stats WHERE name = 'perf_guardrail_stop_ts')",
     "0,0"},
    {"mappings of files that are gone, one by one",
     CLOCKS PROCESSES "1{8:77 10:1 68{1:100 2{1'/x (deleted)' 2:5} 2{2:6}}}", MAPPINGS,
     "/x (deleted),/x,1,1,5,0;-,-,0,1,6,0"},
    {"mappings of processes go by paths without what tells that the file is gone",
     CLOCKS PROCESSES "1{8:77 10:1 68{1:100 2{1'/x (deleted)' 2:5} 2{1'/y' 2:6}}}",
     "SELECT path, is_deleted, size_kb FROM process_memory_mappings", "/x,1,5;/y,0,6"},
    {"mappings that were added up by path: the table of paths has their order",
     CLOCKS PROCESSES "1{8:77 10:1 68{1:100 2{1'/no'} 3{1'' 1'/a' 1'/b (deleted)' 3'\x01\x02\x03' 4'\x07\x08\x09'}}}",
     MAPPINGS, ",,0,1,7,0;/a,/a,0,2,8,0;/b (deleted),/b,1,3,9,0"},
    {"mappings in columns: rows end with the shortest column, and with a path that is not there",
     CLOCKS PROCESSES "1{8:77 10:1 68{1:100 3{1'a' 1'b' 3'\x01\x02' 4'\x07'}}} 1{8:78 10:1 68{1:100 3{1'c' "
                      "2'\x01' 4'\x08'}}} 1{8:79 10:1 68{1:100 3{1'd' 1'e' 3'\x04' 4'\x09'}}}",
     MAPPINGS, "a,a,0,1,7,3;d,d,0,4,9,3"},
    {"clusters: of one capacity where each cpu tells its own; frequencies come in the order of the capacities",
     "1{8:11 10:1 67{1{1'A' 2:10 2:20 3:5} 1{2:30 3:0} 1{2:1 3:5}}}",
     "SELECT cpu, cluster_id, capacity FROM cpu UNION ALL SELECT * FROM (SELECT 'f', cpu, freq FROM "
     "cpu_available_frequencies ORDER BY id)",
     "0,1,5;1,0,0;2,1,5;f,1,30;f,0,10;f,0,20;f,2,1"},
    {"clusters: of one highest frequency where each cpu has some, else all cpus are one",
     "1{8:11 10:1 67{1{2:30 3:5} 1{2:5 2:10} 1{2:10}}} 1{8:12 10:1 98:7 67{1{2:10 3:5} 1{}}}",
     "SELECT machine_id, cpu, cluster_id FROM cpu", "0,0,1;0,1,0;0,2,0;1,0,0;1,1,0"},
    {"counters of the system come by their kind, wherever they stand in the packet",
     "1{8:11 10:1 7{16{1:1 2{1'C1' 2:7}} 14{1:2 2:6} 4:5 14{2:5} 11:100 1{1:1 2:4}}}",
     "SELECT c.id, t.name, c.value, (SELECT group_concat(key || '=' || display_value, ' ') FROM args AS a WHERE "
     "a.arg_set_id = t.dimension_arg_set_id) FROM counter AS c JOIN counter_track AS t ON t.id = c.track_id ORDER BY 1",
     "0,MemTotal,4096.0,meminfo_key=MemTotal;1,cpufreq,100.0,cpu=0;2,num_forks,5.0,-;3,psi.cpu.full,6.0,"
     "psi_resource=cpu.full;4,psi.resource.unspecified,5.0,psi_resource=resource.unspecified;5,cpuidle1.C1,7.0,cpu=1 "
     "state=C1"},
    {"the API level of a release of Android is told by a fingerprint that is whole, of releases that are known",
     "1{10:1 98:1 45{2'g/c/c:11/R/7:u/k'}} 1{10:1 98:2 45{2'c:8.1/R/8:u'}} 1{10:1 98:3 45{2'g/c/c:S/R/9:u/k'}} "
     "1{10:1 98:4 45{2'g/c/c:13/R/10:u/k'}} 1{10:1 98:5 45{2'g/c/c:10/R/'}} 1{10:1 98:6 45{5:40 2'g/c/c:10/R/11:u'}}",
     "SELECT raw_id, android_sdk_version, extract_metadata_for_machine(id, 'android_sdk_version'), "
     "extract_metadata_for_machine(id, 'android_incremental_build') FROM machine WHERE raw_id",
     "1,30,30,7;2,27,27,8;3,31,31,9;4,-,-,10;5,-,-,-;6,40,40,11"},
    {"what Chrome tells of processes comes before what the system tells of any; whether a peak can be reset is an arg",
     PROCESSES "1{8:10 10:1 9{1{1:100 3:5 14:7 12:1 13:6} 1{1:200 10:-3 13:8}}}",
     "SELECT c.id, pid, t.name, c.value, (SELECT group_concat(key || '=' || display_value) FROM args AS a WHERE "
     "a.arg_set_id = p.arg_set_id) FROM counter AS c JOIN process_counter_track AS t ON t.id = c.track_id JOIN process "
     "AS p USING (upid) ORDER BY 1",
     "0,100,chrome.peak_resident_set_kb,7168.0,is_peak_rss_resettable=true;1,100,chrome.private_footprint_kb,6144.0,"
     "is_peak_rss_resettable=true;2,200,chrome.private_footprint_kb,8192.0,-;3,100,mem.rss,5120.0,"
     "is_peak_rss_resettable=true;4,200,oom_score_adj,-3.0,-"},
    {"threads of the kernel's workers are called without the queue that they last served",
     "1{8:11 10:1 2{1{1:7 2:2 3'kworker/0:1-mm'} 1{1:8 2:2 3'rcu'} 1{1:9 2:1 3'kworker/1:1-mm'} 2{1:7 "
     "2'kworker/0:1-mm' "
     "3:7} 2{1:8 2'kworker/2:2+mm' 3:8} 2{1:9 2'kworker/1:1-mm' 3:9}}}",
     "SELECT tid, t.name, p.name, p.cmdline FROM thread AS t JOIN process AS p USING (upid) WHERE tid > 2",
     "7,kworker/0:1,kworker/0:1,kworker/0:1;8,kworker/2:2,rcu,rcu;9,kworker/1:1-mm,kworker/1:1-mm,kworker/1:1-mm"},
    {"lists of packages: the last one says whether something went wrong",
     "1{8:5 10:1 47{2:1 3:1}} 1{8:6 10:1 47{2:1 1{1'a' 2:5}}}",
     "SELECT name, value FROM stats WHERE name GLOB 'packages_list*'",
     "packages_list_has_parse_errors,1;packages_list_has_read_errors,0"},
    {"stacks that Chrome samples without saying which thread it is are of the idle thread",
     CLOCKS
     "1{8:5 10:3 13:1 12{17{1:1 2'l'} 5{1:1 2'f'} 19{1:1 7:1} 6{1:1 2:1 3:1 4:1} 7{1:1 2:1}}} 1{8:10 10:3 54{1:1 "
     "2:3}}",
     "SELECT utid, (SELECT upid FROM __intrinsic_profiler_task_context) FROM cpu_profile_stack_sample", "0,0"},
    {"damaged states of input methods and events of input have a row, and count",
     CLOCKS "1{8:5 10:1 112{1'\x09'}} 1{8:6 10:1 112{2'\x0a\x05x'}} 1{8:7 10:1 112{3'\x08'}} 1{8:8 10:1 "
            "112{5{1'\x08\x07\x12'}}}",
     "SELECT (SELECT count() FROM __intrinsic_inputmethod_clients) + (SELECT count() FROM "
     "__intrinsic_inputmethod_manager_service) + (SELECT count() FROM __intrinsic_inputmethod_service), (SELECT "
     "count() FROM __intrinsic_android_motion_events), (SELECT sum(value) FROM stats WHERE name GLOB "
     "'winscope_inputmethod*'), (SELECT value FROM stats WHERE name = 'android_input_event_parse_errors')",
     "3,1,3,1"},
    {"entries of the journal: of a process, with args in one order",
     CLOCKS
     "1{8:5 10:1 132{12'journal' 8'c' 3:7 9'/x' 4:8 1:42 6'T' 7'm'}} 1{8:6 10:1 132{2:9}} 1{8:7 10:1 132{1:42 2:43 "
     "21:0}}",
     "SELECT ts, tid, pid, prio, log_source, tag, msg, (SELECT group_concat(key || '=' || display_value || ':' || "
     "value_type, ' ') FROM args AS a WHERE a.arg_set_id = l.arg_set_id) FROM logs AS l LEFT JOIN thread USING (utid) "
     "LEFT JOIN process USING (upid)",
     "5,42,42,0,systemd_journald,T,m,uid=7:int comm=c:string transport=journal:string gid=8:int exe=/x:string;6,-,-,0,"
     "systemd_journald,-,,-"},
    {"counters of samples: each has a track, also without values or with a multiplier of 0; a descriptor that is not "
     "known leaves its value out",
     "1{8:1 10:1 13:1 12{50{1:7 2'a' 3:1 5:0} 50{1:9 2'b' 3:4}}} 1{8:10 10:1 135{10:7 13:9 13:8 13:9}} 1{8:20 10:1 "
     "135{10:7 11:1 13:8 13:9 14:5 14:6}}",
     "SELECT t.name, extract_arg(source_arg_set_id, 'unit_multiplier'), group_concat(c.ts || '=' || c.value) FROM "
     "counter_track AS t LEFT JOIN counter AS c ON c.track_id = t.id GROUP BY t.id",
     "a,0,20=1.0;b,-,20=6.0"},
    {"samples whose defaults tell no source have none; a session is of the unit that the first sample with one tells",
     "1{8:1 10:1 13:1 12{50{1:7 2'a' 3:2}}} 1{8:10 10:1 135{2{3:5}}} 1{8:20 10:1 135{10:7}}",
     "SELECT x.source, s.source, timebase_unit, count() FROM __intrinsic_profiler_sample AS x JOIN "
     "__intrinsic_profiler_session AS s ON s.id = session_id",
     "-,-,cycles,2"},
};

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

START_TEST(paths_of_fields_are_stacks)
{
    struct import_options options = {.analyze_proto_content = true};
    static const struct rule rule = {
        "paths of fields", "1{8:1 10:1 11{9:3 11:7 22'cat' 23'n'}}",
        "INCLUDE PERFETTO MODULE proto_path.proto_path; SELECT hex(_proto_path_to_stack(id)) = hex(cat_stacks("
        "'event.name:n', 'event.category:cat', 'TracePacket', '#track_event', 'TrackEvent', '#type', 'enum')), "
        "_proto_path_to_stack(NULL) FROM experimental_proto_path WHERE field_name = '#type'",
        "1,-"};
    check_rule_with(&rule, &options);
}
END_TEST

Suite *rules_packets_suite(void);

Suite *rules_packets_suite(void)
{
    Suite *s = suite_create("rules_packets");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    tcase_add_test(c, paths_of_fields_are_stacks);
    suite_add_tcase(s, c);
    return s;
}
