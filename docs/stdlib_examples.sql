-- @ linux.cpu.utilization.process linux-sched.pftrace
SELECT process.name, sum(runtime) / 1e6 AS cpu_ms FROM cpu_cycles_per_process JOIN process USING (upid)
GROUP BY process.name ORDER BY cpu_ms DESC LIMIT 5;
-- @ linux.cpu.utilization.thread linux-sched.pftrace
SELECT thread.name, tid, runtime / 1e6 AS cpu_ms FROM cpu_cycles_per_thread JOIN thread USING (utid)
ORDER BY runtime DESC LIMIT 5;
-- @ linux.cpu.utilization.thread_cpu linux-sched.pftrace
SELECT thread.name, ucpu, runtime / 1e6 AS cpu_ms FROM cpu_cycles_per_thread_per_cpu JOIN thread USING (utid)
ORDER BY runtime DESC LIMIT 5;
-- @ linux.cpu.utilization.system linux-sched.pftrace
SELECT runtime / 1e6 AS cpu_ms, avg_freq FROM cpu_cycles;
-- @ linux.cpu.utilization.slice linux-syscalls.pftrace.gz
SELECT thread_name, name, count(*) AS slices FROM cpu_cycles_per_thread_slice GROUP BY 1, 2 ORDER BY slices DESC LIMIT 5;
-- @ linux.irqs linux-sched.pftrace
SELECT name, count(*) AS times, sum(dur) / 1e3 AS us, max(dur) / 1e3 AS longest_us FROM linux_irqs
GROUP BY name ORDER BY us DESC LIMIT 5;
-- @ linux.containers
SELECT group_name, cpu_dur / 1e6 AS cpu_ms, process_count FROM linux_cgroup_cpu LIMIT 5;
-- @ linux.off_cpu
SELECT thread_name, wait_kind, wait_function, dur / 1e6 AS ms FROM linux_off_cpu_by_wait ORDER BY dur DESC LIMIT 10;
SELECT printf('0x%x', lock_address) AS lock, thread_count, wait_count, dur / 1e6 AS ms FROM linux_off_cpu_by_lock LIMIT 10;
-- @ linux.threads linux-sched.pftrace
SELECT thread_name, tid FROM linux_kernel_threads ORDER BY tid LIMIT 5;
-- @ linux.memory.process
SELECT process_name, max(rss) / 1024 AS kib FROM memory_rss_and_swap_per_process GROUP BY upid ORDER BY kib DESC LIMIT 5;
-- @ linux.memory.high_watermark
SELECT process_name, max(rss_high_watermark) / 1024 AS kib FROM memory_rss_high_watermark_per_process
GROUP BY upid ORDER BY kib DESC LIMIT 5;
-- @ linux.cpu.frequency
SELECT cpu, sum(freq * dur) / sum(dur) AS average_khz FROM cpu_frequency_counters GROUP BY cpu;
-- @ linux.cpu.idle_stats
SELECT cpu, state, count, idle_percent FROM cpu_idle_stats ORDER BY cpu, state;
-- @ linux.block_io
SELECT linux_device_major_id(dev) AS major, linux_device_minor_id(dev) AS minor, max(ops_in_queue_or_device) AS longest_queue
FROM linux_active_block_io_operations_by_device GROUP BY dev;
-- @ linux.perf.samples perf/cpu-clock-g.data
SELECT name, mapping_name, self_count, cumulative_count FROM linux_perf_samples_summary_tree ORDER BY self_count DESC LIMIT 5;
-- @ linux.perf.counters
SELECT track_id, count(*) AS samples, max(counter_value) AS value FROM linux_perf_sample_with_counters GROUP BY track_id;
-- @ stacks.cpu_profiling perf/cpu-clock-g.data
SELECT name, self_count, cumulative_count FROM cpu_profiling_summary_tree ORDER BY self_count DESC LIMIT 5;
-- @ sched.latency linux-sched.pftrace
SELECT thread.name, count(*) AS waits, max(latency_dur) / 1e3 AS longest_us, avg(latency_dur) / 1e3 AS average_us
FROM sched_latency_for_running_interval JOIN thread USING (utid) GROUP BY thread.name ORDER BY longest_us DESC LIMIT 5;
-- @ sched.runnable linux-sched.pftrace
SELECT thread.name, count(prev_wakeup_runnable_id) AS woken, count(*) AS ran FROM sched_previous_runnable_on_thread
JOIN thread_state USING (id) JOIN thread USING (utid) GROUP BY thread.name ORDER BY ran DESC LIMIT 5;
-- @ sched.states linux-sched.pftrace
SELECT end_state, sched_state_to_human_readable_string(end_state) AS meaning, count(*) AS times FROM sched
GROUP BY end_state ORDER BY times DESC;
-- @ sched.thread_level_parallelism linux-sched.pftrace
SELECT max(runnable_thread_count) AS longest_queue FROM sched_runnable_thread_count;
-- @ sched.time_in_state linux-sched.pftrace
SELECT thread.name, running, runnable, sleeping, uninterruptible_sleep FROM sched_percentage_of_time_in_state
JOIN thread USING (utid) ORDER BY runnable DESC LIMIT 5;
-- @ sched.with_context linux-sched.pftrace
SELECT process_name, thread_name, cpu, dur FROM sched_with_thread_process ORDER BY dur DESC LIMIT 5;
-- @ slices.with_context linux-syscalls.pftrace.gz
SELECT thread_name, name, dur FROM thread_slice ORDER BY dur DESC LIMIT 5;
-- @ slices.time_in_state linux-syscalls.pftrace.gz
SELECT name, state, sum(dur) / 1e3 AS us FROM thread_slice_time_in_state GROUP BY name, state ORDER BY us DESC LIMIT 5;
-- @ slices.cpu_time linux-syscalls.pftrace.gz
SELECT name, sum(cpu_time) / 1e3 AS cpu_us FROM thread_slice_cpu_time GROUP BY name ORDER BY cpu_us DESC LIMIT 5;
-- @ slices.self_dur sdk.pftrace
SELECT name, sum(self_dur) AS self_ns FROM slice_self_dur JOIN slice USING (id) GROUP BY name ORDER BY self_ns DESC LIMIT 5;
-- @ slices.stack
SELECT name, depth FROM ancestor_slice_by_stack(0) LIMIT 5;
-- @ machines.overview mm-calls.pftrace.gz
SELECT name, release, sched_count, ftrace_event_count, thread_count FROM machine_overview;
-- @ machines.utilization mm-calls.pftrace.gz
SELECT name, utilization FROM machine_cpu_utilization;
-- @ machines.network
SELECT from_machine_id, to_machine_id, count(*) AS packets, avg(one_way_dur) / 1e3 AS average_us FROM machine_network_one_way GROUP BY 1, 2;
-- @ machines.critical_path mm-calls.pftrace.gz
SELECT thread_name, machine_id, sum(dur) / 1e6 AS ms FROM machine_critical_path(
  (SELECT utid FROM thread WHERE name = 'calls' LIMIT 1), trace_start(), trace_dur()) GROUP BY 1, 2 ORDER BY ms DESC LIMIT 5;
-- @ clocks.quality mm-calls.pftrace.gz
SELECT machine_id, clock_name, snapshot_count, longest_gap_dur FROM clock_quality;
-- @ clocks.snapshots linux-sched.pftrace
SELECT clock_name, min(offset_ns), max(offset_ns) FROM clock_offsets GROUP BY clock_name;
-- @ dataloss.summary linux-kernel-overrun.pftrace
SELECT name, value, lost_by, remedy FROM dataloss_summary;
-- @ dataloss.gaps
SELECT ucpu, gap_count, longest_dur / 1e6 AS longest_ms FROM dataloss_sched_gaps_by_cpu;
-- @ counters.intervals linux-sched.pftrace
SELECT track_id, ts, dur, value, next_value FROM counter_leading_intervals!((SELECT id, ts, track_id, value FROM counter)) LIMIT 5;
-- @ intervals.intersect linux-sched.pftrace
SELECT * FROM interval_self_intersect!((SELECT id, ts, dur FROM sched WHERE dur > 0 AND utid != 0 LIMIT 100)) LIMIT 5;
-- @ intervals.overlap linux-sched.pftrace
SELECT value AS running, count(*) AS times FROM intervals_overlap_count!((SELECT ts, dur FROM sched WHERE NOT utid IN
  (SELECT utid FROM thread WHERE is_idle)), ts, dur) GROUP BY running;
-- @ graphs.search linux-sched.pftrace
SELECT * FROM graph_reachable_dfs!((SELECT parent_upid AS source_node_id, upid AS dest_node_id FROM process WHERE parent_upid IS NOT NULL),
  (SELECT min(parent_upid) AS node_id FROM process)) LIMIT 5;
-- @ graphs.dominator_tree linux-sched.pftrace
SELECT * FROM graph_dominator_tree!((SELECT column1 AS source_node_id, column2 AS dest_node_id FROM (VALUES (0, 1), (0, 2), (1, 3), (2, 3))), 0);
-- @ graphs.partition linux-sched.pftrace
SELECT * FROM tree_structural_partition_by_group!((SELECT column1 AS id, column2 AS parent_id, column3 AS group_key
  FROM (VALUES (1, NULL, 1), (2, 1, 2), (3, 2, 1))));
-- @ time.conversion linux-sched.pftrace
SELECT count(*) AS longer_than_a_millisecond FROM sched WHERE dur > time_from_ms(1);
-- @ std.metasql.unparenthesize linux-sched.pftrace
SELECT metasql_unparenthesize_exprlist!((1, 2));
-- @ export.to_svg linux-sched.pftrace
SELECT length(export_to_svg(trace_start(), 1000000)) AS bytes;
-- @ export.to_firefox_profile perf/cpu-clock-g.data
SELECT length(export_to_firefox_profile()) AS bytes;
-- @ android.frames.jank_type linux-sched.pftrace
SELECT android_is_app_jank_type('App Deadline Missed');
-- @ android.package_lookup
SELECT android_package_lookup(10001);
-- @ android.slices linux-sched.pftrace
SELECT android_standardize_slice_name('Lock contention on a monitor lock (owner tid: 12)');
-- @ android.thread linux-sched.pftrace
SELECT android_standardize_thread_name('binder:1234_5');
-- @ chrome.metadata
SELECT chrome_hardware_class();
-- @ chrome.scroll_jank.utils
SELECT * FROM chrome_select_long_task_slices('ThreadControllerImpl::RunTask') LIMIT 5;
-- @ chrome.scroll_jank.scroll_jank_cause_utils
SELECT * FROM chrome_select_scroll_jank_cause_thread(1, 'Renderer', 'CrRendererMain');
-- @ chrome.scroll_jank.scroll_jank_v3_cause
SELECT chrome_get_v3_jank_cause_id(1, 2);
-- @ android.memory.heap_graph.class_relationship
SELECT * FROM android_heap_graph_class_find_descendants!((SELECT id FROM heap_graph_class WHERE name = 'java.lang.Object')) LIMIT 5;
-- @ otel.spans otlp/basket.jsonl
SELECT name, service, span_count, service_count, error_count, dur / 1e6 AS ms FROM otel_request ORDER BY dur DESC LIMIT 5;
-- @ otel.span_states
SELECT service, name, state, dur / 1e6 AS ms, part FROM otel_span_states ORDER BY dur DESC LIMIT 5;
-- @ otel.critical_path otlp/basket.jsonl
SELECT path.service, path.name, sum(path.dur) / 1e6 AS ms FROM otel_critical_path((SELECT id FROM otel_span ORDER BY dur DESC LIMIT 1)) AS path
GROUP BY path.span_id ORDER BY ms DESC LIMIT 5;
