-- Slices, counters, threads, processes and what hangs on them.

CREATE VIEW counter AS
SELECT id, ts, track_id, value, arg_set_id
FROM __intrinsic_counter;

CREATE VIEW state AS
SELECT id, ts, dur, track_id, category, value, arg_set_id
FROM __intrinsic_state;

CREATE VIEW slice AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur,
  thread_instruction_count, thread_instruction_delta, category AS cat, id AS slice_id
FROM __intrinsic_slice;

CREATE VIEW instant AS
SELECT ts, track_id, name, arg_set_id
FROM __intrinsic_slice
WHERE dur = 0;

CREATE VIEW slices AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur,
  thread_instruction_count, thread_instruction_delta, category AS cat, id AS slice_id
FROM __intrinsic_slice;

CREATE VIEW thread AS
SELECT id AS utid, id, tid, name, start_ts, end_ts, upid, is_main_thread, is_idle, machine_id,
  arg_set_id
FROM __intrinsic_thread;

CREATE VIEW process AS
SELECT id AS upid, id, pid, name, start_ts, end_ts, parent_upid, uid, android_appid,
  android_user_id, cmdline, arg_set_id, machine_id
FROM __intrinsic_process;

CREATE VIEW args AS
SELECT id, arg_set_id, flat_key, key, int_value, string_value, real_value, value_type,
  CASE value_type
    WHEN 'int' THEN CAST(int_value AS TEXT)
    WHEN 'uint' THEN printf('%u', int_value)
    WHEN 'string' THEN string_value
    WHEN 'json' THEN string_value
    WHEN 'real' THEN CAST(real_value AS TEXT)
    WHEN 'pointer' THEN printf('0x%x', int_value)
    WHEN 'bool' THEN iif(int_value, 'true', 'false')
  END AS display_value
FROM __intrinsic_args;

CREATE VIEW perf_session AS
SELECT id, id AS perf_session_id, cmdline
FROM __intrinsic_profiler_session
WHERE source = 'linux.perf';

CREATE VIEW logs AS
SELECT id, ts, utid, prio, log_source, tag, msg, arg_set_id
FROM __intrinsic_logs;

CREATE VIEW android_logs AS
SELECT id, ts, utid, prio, tag, msg
FROM __intrinsic_logs;

CREATE VIEW flow AS
SELECT id, slice_out, slice_in, trace_id, arg_set_id
FROM __intrinsic_flow;

CREATE VIEW android_game_intervention_list AS
SELECT id, package_name, uid, current_mode, standard_mode_supported, standard_mode_downscale,
  standard_mode_use_angle, standard_mode_fps, perf_mode_supported, perf_mode_downscale,
  perf_mode_use_angle, perf_mode_fps, battery_mode_supported, battery_mode_downscale,
  battery_mode_use_angle, battery_mode_fps
FROM __intrinsic_android_game_intervention_list;

CREATE VIEW android_dumpstate AS
SELECT id, section, service, line
FROM __intrinsic_android_dumpstate;

CREATE VIEW profiler_smaps AS
SELECT id, upid, ts, path, path_trimmed, aggregate_count, is_deleted, size_kb, private_dirty_kb,
  swap_kb, file_name, start_address, module_timestamp, module_debugid, module_debug_path,
  protection_flags, private_clean_resident_kb, shared_dirty_resident_kb, shared_clean_resident_kb,
  locked_kb, proportional_resident_kb, rss_kb, anonymous_kb, pss_dirty_kb, swap_pss_kb
FROM __intrinsic_profiler_smaps;

CREATE VIEW process_memory_mappings AS
SELECT id, upid, ts, path, aggregate_count, is_deleted, size_kb, rss_kb, anonymous_kb, swap_kb,
  shared_clean_resident_kb AS shared_clean_kb, shared_dirty_resident_kb AS shared_dirty_kb,
  private_clean_resident_kb AS private_clean_kb, private_dirty_kb, locked_kb,
  proportional_resident_kb AS pss_kb, pss_dirty_kb, swap_pss_kb
FROM __intrinsic_profiler_smaps;

CREATE VIEW package_list AS
SELECT id, package_name, uid, debuggable, profileable_from_shell, version_code
FROM __intrinsic_package_list;

CREATE VIEW stack_profile_mapping AS
SELECT id, build_id, exact_offset, start_offset, start, "end", load_bias, name
FROM __intrinsic_stack_profile_mapping;

CREATE VIEW stack_profile_frame AS
SELECT id, name, mapping, rel_pc, symbol_set_id, deobfuscated_name, type
FROM __intrinsic_stack_profile_frame;

CREATE VIEW stack_profile_callsite AS
SELECT id, depth, parent_id, frame_id
FROM __intrinsic_stack_profile_callsite;

CREATE VIEW cpu_profile_stack_sample AS
SELECT s.id, s.ts, s.callsite_id, t.utid, x.process_priority
FROM __intrinsic_profiler_sample AS s
JOIN __intrinsic_chrome_stack_sample_extras AS x ON x.profiler_sample_id = s.id
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id;

CREATE VIEW instruments_sample AS
SELECT s.id, s.ts, t.utid, s.callsite_id, c.cpu
FROM __intrinsic_profiler_sample AS s
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
LEFT JOIN __intrinsic_profiler_execution_context AS x ON x.id = s.execution_context_id
LEFT JOIN __intrinsic_cpu AS c ON c.id = x.ucpu
WHERE s.source = 'instruments';

CREATE VIEW stack_profile_symbol AS
SELECT id, symbol_set_id, name, source_file, line_number, inlined
FROM __intrinsic_stack_profile_symbol;

CREATE VIEW heap_profile_allocation AS
SELECT id, ts, upid, heap_name, callsite_id, count, size
FROM __intrinsic_heap_profile_allocation;

CREATE VIEW vulkan_memory_allocations AS
SELECT id, arg_set_id, source, operation, timestamp, upid, device, device_memory, memory_type, heap,
  function_name, object_handle, memory_address, memory_size, scope
FROM __intrinsic_vulkan_memory_allocations;

CREATE VIEW gpu_counter_group AS
SELECT id, group_id, track_id, name, description
FROM __intrinsic_gpu_counter_group;

CREATE VIEW spurious_sched_wakeup AS
SELECT id, ts, thread_state_id, irq_context, utid, waker_utid
FROM __intrinsic_spurious_sched_wakeup;

CREATE VIEW machine AS
SELECT id, raw_id, name, sysname, release, version, arch, num_cpus, android_build_fingerprint,
  android_device_manufacturer, android_sdk_version, system_ram_bytes, system_ram_gb,
  iif(raw_id = 0, 0,
    (SELECT count(*) FROM __intrinsic_machine AS o WHERE o.raw_id != 0 AND o.id <= m.id)) AS label_index
FROM __intrinsic_machine AS m;

CREATE VIEW filedescriptor AS
SELECT id, ufd, fd, ts, upid, path
FROM __intrinsic_filedescriptor;

CREATE VIEW experimental_missing_chrome_processes AS
SELECT id, upid, reliable_from
FROM __intrinsic_experimental_missing_chrome_processes;

CREATE VIEW clock_snapshot AS
SELECT id, ts, clock_id, clock_name, clock_value, snapshot_id, machine_id
FROM __intrinsic_clock_snapshot;

CREATE VIEW surfaceflinger_layers_snapshot AS
SELECT id, ts, arg_set_id, base64_proto_id, sequence_id, has_invalid_elapsed_ts
FROM __intrinsic_surfaceflinger_layers_snapshot;

CREATE VIEW surfaceflinger_layer AS
SELECT id, snapshot_id, arg_set_id, base64_proto_id, layer_id, layer_name, is_visible, parent,
  corner_radius_tl, corner_radius_tr, corner_radius_bl, corner_radius_br, hwc_composition_type,
  is_hidden_by_policy, z_order_relative_of, is_missing_z_parent, layer_rect_id, input_rect_id
FROM __intrinsic_surfaceflinger_layer;

CREATE VIEW surfaceflinger_transactions AS
SELECT id, ts, arg_set_id, base64_proto_id, vsync_id
FROM __intrinsic_surfaceflinger_transactions;

CREATE VIEW window_manager_shell_transitions AS
SELECT id, ts, transition_id, arg_set_id, transition_type, send_time_ns, dispatch_time_ns,
  duration_ns, finish_time_ns, shell_abort_time_ns, wm_abort_time_ns, merge_time_ns, create_time_ns,
  handler, status, flags, start_transaction_id, finish_transaction_id
FROM __intrinsic_window_manager_shell_transitions;

CREATE VIEW window_manager_shell_transition_handlers AS
SELECT id, handler_id, handler_name, base64_proto_id
FROM __intrinsic_window_manager_shell_transition_handlers;

CREATE VIEW protolog AS
SELECT id, ts, level, tag, message, stacktrace, location
FROM __intrinsic_protolog;

CREATE TABLE _stat_key_to_severity_and_name AS
SELECT DISTINCT key, severity, name
FROM __intrinsic_stats;

CREATE VIEW _trace_import_logs AS
SELECT l.id, l.trace_id, l.ts, l.byte_offset, s.severity, s.name, l.arg_set_id
FROM __intrinsic_trace_import_logs AS l
JOIN _stat_key_to_severity_and_name AS s ON s.key = l.stat_key;
