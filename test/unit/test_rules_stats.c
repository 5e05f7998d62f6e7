/* What the service, the kernel and producers tell of losses, and what the import counts itself: a small trace for each
 * kind of packet, and every stat that is not 0 then. */
#include "unit/rules.h"

/* Stats by their number; caches of clocks and times of the import are not what the packets tell. */
#define COUNTED                                                                                                        \
    "SELECT group_concat(name || coalesce('[' || idx || ']', '') || '=' || value, ' ') FROM (SELECT * FROM stats "     \
    "WHERE value AND name NOT IN ('guess_trace_type_duration_ns', 'parse_trace_duration_ns', "                         \
    "'clock_sync_cache_miss') "                                                                                        \
    "ORDER BY key, idx)"

#define CLOCKS "1{8:1 10:1 13:1 6{1{1:6 2:1} 1{1:5 2:1} 1{1:3 2:1} 1{1:4 2:1}}}"

static const struct rule rules[] = {
    {"the service tells of its buffers, by number, and of itself",
     "1{10:1 35{1{12:4096 1:10 13:11 14:12 15:13 16:14 2:15 10:16 20:17 3:18 18:19 17:20 11:21 4:22 5:23 6:24 7:25 "
     "8:26 "
     "9:27 19:28} 1{1:5} 2:1 3:2 4:3 5:4 6:5 7:6 8:7 9:8 12:9 13:10 14:11 15:1}}",
     COUNTED,
     "traced_buf_abi_violations[0]=27 traced_buf_buffer_size[0]=4096 traced_buf_bytes_overwritten[0]=11 "
     "traced_buf_bytes_read[0]=12 traced_buf_bytes_written[0]=10 traced_buf_bytes_written[1]=5 "
     "traced_buf_chunks_discarded[0]=19 traced_buf_chunks_overwritten[0]=18 traced_buf_chunks_read[0]=20 "
     "traced_buf_chunks_relocated[0]=17 traced_buf_chunks_rewritten[0]=16 traced_buf_chunks_written[0]=15 "
     "traced_buf_chunks_committed_out_of_order[0]=21 traced_buf_padding_bytes_cleared[0]=14 "
     "traced_buf_padding_bytes_written[0]=13 traced_buf_patches_failed[0]=24 traced_buf_patches_succeeded[0]=23 "
     "traced_buf_readaheads_failed[0]=26 traced_buf_readaheads_succeeded[0]=25 "
     "traced_buf_trace_writer_packet_loss[0]=28 traced_buf_write_wrap_count[0]=22 traced_chunks_discarded=7 "
     "traced_data_sources_registered=3 traced_data_sources_seen=4 traced_final_flush_succeeded=1 "
     "traced_flushes_failed=11 traced_flushes_requested=9 traced_flushes_succeeded=10 traced_patches_discarded=8 "
     "traced_producers_connected=1 traced_producers_seen=2 traced_total_buffers=6 traced_tracing_sessions=5"},
    {"a filter, and what it took from each buffer", "1{10:1 35{11{1:1 2:2 3:3 4:4 5:5 20:7 20:8}}}", COUNTED,
     "filter_input_bytes=2 filter_input_packets=1 filter_output_bytes=3 filter_time_taken_ns=5 filter_errors=4 "
     "traced_buf_bytes_filtered_out[0]=7 traced_buf_bytes_filtered_out[1]=8"},
    {"single ones come first, those of no machine before those of each, then indexed ones by machine",
     "1{10:1 35{1{12:4096}}} 1{10:2 98:7 45{1{1'L'}}} 1{10:2 98:7 34{1:2 2{1:1 3:4}}}",
     "SELECT group_concat(part, ' ') FROM (SELECT coalesce(machine_id, 'none') || iif(idx IS NULL, '', ' indexed') || "
     "iif(max(id) - min(id) = count() - 1, '', ' in pieces') AS part FROM __intrinsic_stats GROUP BY machine_id, "
     "idx IS NULL ORDER BY min(id))",
     "none 0 1 0 indexed 1 indexed"},
    {"a last flush that failed", "1{10:1 35{15:2}}", COUNTED, "traced_final_flush_failed=1"},
    {"streaming into a file from a buffer that keeps what is old, without flushes",
     "1{8:5 10:1 13:1 33{8:1 1{4:1} 1{4:2}}}", COUNTED,
     "config_write_into_file_no_flush=1 config_write_into_file_discard[1]=1"},
    {"kernel buffers at both ends, and by how much they grew",
     "1{8:1 10:1 34{1:1 2{1:2 2:10 3:1 4:2 5:100 8:3 9:4} 10{1:5 2:6}}} 1{8:2 10:1 34{1:2 2{1:2 2:20 3:3 4:5 5:300 8:9 "
     "9:14} 10{1:15 2:17}}}",
     COUNTED,
     "ftrace_cpu_bytes_begin[2]=100 ftrace_cpu_bytes_end[2]=300 ftrace_cpu_bytes_delta[2]=200 "
     "ftrace_cpu_commit_overrun_begin[2]=2 ftrace_cpu_commit_overrun_end[2]=5 ftrace_cpu_commit_overrun_delta[2]=3 "
     "ftrace_cpu_dropped_events_begin[2]=3 ftrace_cpu_dropped_events_end[2]=9 ftrace_cpu_dropped_events_delta[2]=6 "
     "ftrace_cpu_entries_begin[2]=10 ftrace_cpu_entries_end[2]=20 ftrace_cpu_entries_delta[2]=10 "
     "ftrace_cpu_overrun_begin[2]=1 ftrace_cpu_overrun_end[2]=3 ftrace_cpu_overrun_delta[2]=2 "
     "ftrace_cpu_read_events_begin[2]=4 ftrace_cpu_read_events_end[2]=14 ftrace_cpu_read_events_delta[2]=10 "
     "ftrace_kprobe_hits_begin=5 ftrace_kprobe_hits_end=15 ftrace_kprobe_hits_delta=10 ftrace_kprobe_misses_begin=6 "
     "ftrace_kprobe_misses_end=17 ftrace_kprobe_misses_delta=11"},
    {"without a beginning nothing is known to have grown", "1{8:2 10:1 34{1:2 2{1:2 2:20 3:3}}}", COUNTED,
     "ftrace_cpu_entries_end[2]=20 ftrace_cpu_overrun_end[2]=3"},
    {"what needs a sequence and has none",
     "1{8:5 11{9:3 23'a'}} 1{8:5 44{1:2 2:3}} 1{8:5 41:1} 1{8:5 42:1} 1{8:5 59{58:6}} 1{8:5 12{2{1:1 2'x'}}}", COUNTED,
     "track_event_missing_sequence_id=1 thread_descriptor_missing_sequence_id=1 "
     "incremental_state_cleared_missing_sequence_id=1 previous_packet_dropped_missing_sequence_id=1 "
     "trace_packet_defaults_missing_sequence_id=1 interned_data_missing_sequence_id=1"},
    {"what needs the state of a sequence and comes before it",
     "1{8:5 10:1 44{1:2 2:3}} 1{8:5 10:1 12{2{1:1 2'x'}}} 1{8:5 10:1 13:2 11{9:3 23'a'}}", COUNTED,
     "thread_descriptor_skipped_incremental_state_invalid=1 packet_skipped_seq_needs_incremental_state_invalid=1 "
     "interned_data_skipped_incremental_state_invalid=1"},
    {"times that add to those of a thread nobody described", "1{8:5 10:1 13:1} 1{8:6 10:1 11{9:3 1:5 23'a'}}", COUNTED,
     "track_event_skipped_timestamp_delta_without_valid_state=1"},
    {"a range of interest without a start, a state without a track, an arrow without a direction",
     "1{8:5 10:1 13:1 90{}} 1{8:5 10:1 11{9:5}} 1{8:5 10:1 44{1:2 2:3}} 1{8:6 10:1 11{6{2:88 8:5} 23'f'}}", COUNTED,
     "flow_without_direction=1 track_event_range_of_interest_missing_start_us=1 "
     "track_event_state_missing_track_uuid=1"},
    {"why videos ended",
     "1{8:5 10:1 1001{1:0 2:1}} 1{8:5 10:1 1001{2:2}} 1{8:5 10:1 1001{2:3}} 1{8:5 10:1 1001{2:4}} "
     "1{8:5 10:1 1001{2:5}} 1{8:5 10:1 1001{2:6}} 1{8:5 10:1 1001{2:7}} 1{8:5 10:1 1001{2:99}}",
     COUNTED,
     "android_video_size_cap_hit=1 android_video_codec_error=1 android_video_display_gone=1 android_video_no_encoder=1 "
     "android_video_display_not_found=1 android_video_encoder_setup_failed=1 android_video_virtual_display_failed=1"},
    {"energy of consumers, and of users, that lacks who or how much",
     "1{8:5 10:1 13:1 77{1{1{4'x'} 1{1:2 4'ok'}}}} 1{8:6 10:1 77{2:2}} 1{8:6 10:1 77{3:2}} 1{8:6 10:1 77{2:9 3:2}} "
     "1{8:7 10:1 77{2:2 3:5 4{1:1} 4{2:3} 4{1:4 2:5}}}",
     COUNTED, "energy_breakdown_missing_values=3 energy_descriptor_invalid=1 energy_uid_breakdown_missing_values=2"},
    {"residency that lacks its state, or whose state is not known",
     "1{8:5 10:1 91{1{1:1 2:2 3'A'} 1{1:1 4'b'} 1{1:3 2:4 3'E' 4'S'}}} 1{8:6 10:1 91{2{1:3} 2{1:9 2:9 3:5} 2{1:3 2:4 "
     "3:5}}}",
     COUNTED,
     "entity_state_descriptor_invalid=2 entity_state_residency_invalid=1 entity_state_residency_lookup_failed=1"},
    {"processors that can do what has no name, lists of packages that could not be read",
     "1{8:5 10:1 67{1{1'A' 5:3} 1{1'B' 5:4}}} 1{8:6 10:1 47{2:1 3:1}}", COUNTED,
     "cpu_info_unknown_cpu_features=1 packages_list_has_parse_errors=1 packages_list_has_read_errors=1"},
    {"memory of a kind that is not known, below nothing, of nobody",
     "1{8:10 10:1 1{1:0 2{1:10 2:5 313{1:9 2:5 3:1 4:7}} 2{1:11 2:5 313{1:0 2:-5 3:1 4:7}} 2{1:12 2:5 313{1:0 2:5 3:0 "
     "4:77}}}}",
     COUNTED, "rss_stat_unknown_keys=1 rss_stat_negative_size=1 rss_stat_unknown_thread_for_mm_id=1"},
    {"work of a GPU that ends before it begins", CLOCKS "1{8:10 10:1 1{1:0 2{1:10 2:5 488{1:0 2:3 3:20 4:10 5:3}}}}",
     COUNTED, "gpu_work_period_negative_duration=1"},
    {"a heap that could not be followed",
     CLOCKS "1{8:15 10:1 37{5{1:100 3:1 4:1 6:1 7:1 8:1 10:1 12:200 13:100 9:10 5{1:2 2:3 5:4 6:5} 14:1}}}", COUNTED,
     "heapprofd_buffer_corrupted[100]=1 heapprofd_hit_guardrail[100]=1 heapprofd_buffer_overran[100]=1 "
     "heapprofd_client_error[100]=1 heapprofd_client_disconnected[100]=1 heapprofd_rejected_concurrent[100]=1 "
     "heapprofd_sampling_interval_adjusted[100]=100 heapprofd_unwind_time_us[100]=4 heapprofd_unwind_samples[100]=3 "
     "heapprofd_client_spinlock_blocked[100]=5 heapprofd_last_profile_timestamp[100]=15"},
    {"samples that were left out, and the part of all processes that was looked at",
     "1{8:5 10:1 13:1 59{58:6 12{2:4 3:5}}} 1{8:10 10:1 66{1:0 2:1 3:1 18:1}} 1{8:10 10:1 66{18:3}} 1{8:10 10:1 "
     "66{18:4}} 1{8:10 10:1 66{17:5}} 1{8:12 10:1 "
     "66{19{1:1}}}",
     COUNTED,
     "perf_cpu_lost_records[0]=5 perf_process_shard_count[0]=4 perf_chosen_process_shard[0]=5 "
     "perf_guardrail_stop_ts[0]=12 perf_samples_skipped=1 perf_samples_skipped_dataloss=1"},
    {"cpus that there is no room for: a sample, and a frequency of a kernel of any kind",
     "1{8:5 10:1 13:1 59{58:6 12{2:4 3:5}}} 1{8:10 10:1 66{1:4095 2:1 3:1}} 1{8:10 10:1 66{1:4096 2:1 3:1}} 1{8:10 "
     "10:1 "
     "118{1:4096 2:1000}}",
     COUNTED, "perf_process_shard_count[0]=4 perf_chosen_process_shard[0]=5 cpu_number_too_large[4096]=2"},
    {"logs of Android and of systemd", "1{8:5 10:1 39{1{5:1} 2{1:10 2:3 3:2}}} 1{8:5 10:1 132{20:5 21:2}}", COUNTED,
     "android_log_num_failed=3 android_log_num_skipped=2 android_log_num_total=10 systemd_journal_num_failed=2 "
     "systemd_journal_num_total=5"},
    {"wakelocks of applications: numbers without times, names that were not told",
     "1{8:5 10:1 13:1 116{1:1 2:2}} 1{8:5 10:1 12{42{1:1 2'x'}} 116{1:1 1:1 2:2}}", COUNTED,
     "interned_data_tokenizer_errors=1 app_wakelock_parse_error=1 app_wakelock_unknown_id=1"},
    {"code of V8 of nobody, memory of Vulkan whose function is not named",
     "1{8:5 10:1 13:1 100{}} 1{8:5 10:1 62{1:1 2:1 3:5 4:6 7:99}}", COUNTED,
     "interned_data_tokenizer_errors=2 vulkan_allocations_invalid_string_id=1 v8_intern_errors=1"},
};

START_TEST(a_rule_holds)
{
    check_rule(&rules[_i]);
}
END_TEST

Suite *rules_stats_suite(void);

Suite *rules_stats_suite(void)
{
    Suite *s = suite_create("rules_stats");
    TCase *c = tcase_create("rules");
    tcase_add_loop_test(c, a_rule_holds, 0, sizeof rules / sizeof *rules);
    suite_add_tcase(s, c);
    return s;
}
