-- Slices, counters, threads, processes and what hangs on them.

-- Values of counters; a value holds until the next of its track.
CREATE PERFETTO VIEW counter(
  -- Number of the row, from 0.
  id ID,
  -- From when the value holds.
  ts TIMESTAMP,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- The value.
  value DOUBLE,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, ts, track_id, value, arg_set_id
FROM __intrinsic_counter;

-- Named states, one after another on their track.
CREATE PERFETTO VIEW state(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- Name of the state.
  value STRING,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, ts, dur, track_id, category, value, arg_set_id
FROM __intrinsic_state;

-- What was done from when to when: track events, interrupts, system calls, functions … Slices of a track lie in each
-- other.
CREATE PERFETTO VIEW slice(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- What was done.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The slice it lies in; NULL: outermost.
  parent_id JOINID(slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- CPU time that the thread had used at the start; NULL: not recorded.
  thread_ts TIMESTAMP,
  -- CPU time that the thread used within it.
  thread_dur DURATION,
  -- Instructions that the thread had executed at the start.
  thread_instruction_count LONG,
  -- Instructions that the thread executed within it.
  thread_instruction_delta LONG,
  -- The same as category.
  cat STRING,
  -- The same as id.
  slice_id JOINID(slice.id)
)
AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur,
  thread_instruction_count, thread_instruction_delta, category AS cat, id AS slice_id
FROM __intrinsic_slice;

-- Slices without a duration.
CREATE PERFETTO VIEW instant(
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its name.
  name STRING,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT ts, track_id, name, arg_set_id
FROM __intrinsic_slice
WHERE dur = 0;

-- The same as slice, under its old name.
CREATE PERFETTO VIEW slices(
  -- Number of the row, from 0.
  id JOINID(slice.id),
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- How long, in nanoseconds; -1 when the end was not recorded.
  dur DURATION,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its categories, separated by commas.
  category STRING,
  -- What was done.
  name STRING,
  -- How many slices of the track it lies in; 0 is outermost.
  depth LONG,
  -- The slice it lies in; NULL: outermost.
  parent_id JOINID(slice.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- CPU time that the thread had used at the start; NULL: not recorded.
  thread_ts TIMESTAMP,
  -- CPU time that the thread used within it.
  thread_dur DURATION,
  -- Instructions that the thread had executed at the start.
  thread_instruction_count LONG,
  -- Instructions that the thread executed within it.
  thread_instruction_delta LONG,
  -- The same as category.
  cat STRING,
  -- The same as id.
  slice_id JOINID(slice.id)
)
AS
SELECT id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur,
  thread_instruction_count, thread_instruction_delta, category AS cat, id AS slice_id
FROM __intrinsic_slice;

-- Threads of all machines, once for each time that a tid was given.
CREATE PERFETTO VIEW thread(
  -- Number of the thread, unique over all machines and the whole trace.
  utid ID,
  -- The same as utid.
  id ID,
  -- Its number in the kernel of its machine; numbers come back, so join with utid.
  tid LONG,
  -- Its name, the last one when it changed.
  name STRING,
  -- When it began; NULL: before the trace, or unknown.
  start_ts TIMESTAMP,
  -- When it ended; NULL: after the trace, or unknown.
  end_ts TIMESTAMP,
  -- Its process; NULL: not known.
  upid JOINID(process.id),
  -- Whether it is the first of its process: tid = pid.
  is_main_thread BOOL,
  -- Whether it is an idle thread of the kernel (tid 0).
  is_idle BOOL,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id AS utid, id, tid, name, start_ts, end_ts, upid, is_main_thread, is_idle, machine_id,
  arg_set_id
FROM __intrinsic_thread;

-- Processes of all machines, once for each time that a pid was given.
CREATE PERFETTO VIEW process(
  -- Number of the process, unique over all machines and the whole trace.
  upid JOINID(process.id),
  -- The same as upid.
  id ID,
  -- Its number in the kernel of its machine; numbers come back, so join with upid.
  pid LONG,
  -- Its name: that of its executable or of its first thread.
  name STRING,
  -- When it began; NULL: before the trace, or unknown.
  start_ts TIMESTAMP,
  -- When it ended; NULL: after the trace, or unknown.
  end_ts TIMESTAMP,
  -- The process that started it; NULL: not known.
  parent_upid JOINID(process.id),
  -- User that it belongs to.
  uid LONG,
  -- The app that its user id stands for.
  android_appid LONG,
  -- The Android user that its user id stands for.
  android_user_id LONG,
  -- Command line.
  cmdline STRING,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id)
)
AS
SELECT id AS upid, id, pid, name, start_ts, end_ts, parent_upid, uid, android_appid,
  android_user_id, cmdline, arg_set_id, machine_id
FROM __intrinsic_process;

-- Details of events, slices, tracks …: named values in sets. extract_arg(arg_set_id, key) reads one.
CREATE PERFETTO VIEW args(
  -- Number of the row; not of the set.
  id ID,
  -- Number of the set it is part of.
  arg_set_id ARGSETID,
  -- Name of the value without places in arrays: a.b.c.
  flat_key STRING,
  -- Name of the value, with the places in arrays: a.b[0].c.
  key STRING,
  -- The value, when it is an integer.
  int_value LONG,
  -- The value, when it is text.
  string_value STRING,
  -- The value, when it is a floating point number.
  real_value DOUBLE,
  -- int, uint, bool, pointer, string, real, json or null: tells which column has the value.
  value_type STRING,
  -- The value as text, whatever its type.
  display_value STRING
)
AS
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

-- Recordings of linux.perf.
CREATE PERFETTO VIEW perf_session(
  -- Number of the session.
  id LONG,
  -- The same as id.
  perf_session_id LONG,
  -- Command line.
  cmdline STRING
)
AS
SELECT id, id AS perf_session_id, cmdline
FROM __intrinsic_profiler_session
WHERE source = 'linux.perf';

-- Log lines of all sources.
CREATE PERFETTO VIEW logs(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The thread.
  utid JOINID(thread.id),
  -- Priority: 2 verbose, 3 debug, 4 info, 5 warning, 6 error, 7 fatal.
  prio LONG,
  -- Where the line comes from, for instance android_logcat or systemd_journald.
  log_source STRING,
  -- Tag that the writer chose.
  tag STRING,
  -- The text.
  msg STRING,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, ts, utid, prio, log_source, tag, msg, arg_set_id
FROM __intrinsic_logs;

-- Logs without the lines of systemd's journal: what Android traces had first.
CREATE PERFETTO VIEW android_logs(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The thread.
  utid JOINID(thread.id),
  -- Priority: 2 verbose, 3 debug, 4 info, 5 warning, 6 error, 7 fatal.
  prio LONG,
  -- Tag that the writer chose.
  tag STRING,
  -- The text.
  msg STRING
)
AS
SELECT id, ts, utid, prio, tag, msg
FROM __intrinsic_logs
WHERE log_source IS NOT 'systemd_journald';

-- Arrows from slice to slice: what was caused by what.
CREATE PERFETTO VIEW flow(
  -- Number of the row, from 0.
  id ID,
  -- The slice where the arrow starts.
  slice_out JOINID(slice.id),
  -- The slice where it ends.
  slice_in JOINID(slice.id),
  -- Number of the arrow in the file.
  trace_id LONG,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID
)
AS
SELECT id, slice_out, slice_in, trace_id, arg_set_id
FROM __intrinsic_flow;

-- What Android changes for games.
CREATE PERFETTO VIEW android_game_intervention_list(
  -- Number of the row, from 0.
  id ID,
  -- Name of the package.
  package_name STRING,
  -- User that it belongs to.
  uid LONG,
  -- Mode of the game: 1 standard, 2 performance, 3 battery.
  current_mode LONG,
  -- Whether the standard mode can be chosen.
  standard_mode_supported LONG,
  -- Factor of the resolution in the standard mode.
  standard_mode_downscale DOUBLE,
  -- Whether OpenGL goes through ANGLE in the standard mode.
  standard_mode_use_angle LONG,
  -- Frames per second that the standard mode allows.
  standard_mode_fps DOUBLE,
  -- Whether the performance mode can be chosen.
  perf_mode_supported LONG,
  -- Factor of the resolution in the performance mode.
  perf_mode_downscale DOUBLE,
  -- Whether OpenGL goes through ANGLE in the performance mode.
  perf_mode_use_angle LONG,
  -- Frames per second that the performance mode allows.
  perf_mode_fps DOUBLE,
  -- Whether the battery mode can be chosen.
  battery_mode_supported LONG,
  -- Factor of the resolution in the battery mode.
  battery_mode_downscale DOUBLE,
  -- Whether OpenGL goes through ANGLE in the battery mode.
  battery_mode_use_angle LONG,
  -- Frames per second that the battery mode allows.
  battery_mode_fps DOUBLE
)
AS
SELECT id, package_name, uid, current_mode, standard_mode_supported, standard_mode_downscale,
  standard_mode_use_angle, standard_mode_fps, perf_mode_supported, perf_mode_downscale,
  perf_mode_use_angle, perf_mode_fps, battery_mode_supported, battery_mode_downscale,
  battery_mode_use_angle, battery_mode_fps
FROM __intrinsic_android_game_intervention_list;

-- Lines of a bug report.
CREATE PERFETTO VIEW android_dumpstate(
  -- Number of the row, from 0.
  id ID,
  -- Section of the report.
  section STRING,
  -- Service that wrote it.
  service STRING,
  -- The line.
  line STRING
)
AS
SELECT id, section, service, line
FROM __intrinsic_android_dumpstate;

-- Memory of processes by mapping, from /proc/PID/smaps.
CREATE PERFETTO VIEW profiler_smaps(
  -- Number of the row, from 0.
  id ID,
  -- The process.
  upid LONG,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Path of the file.
  path STRING,
  -- The path without what tells that the file was deleted.
  path_trimmed STRING,
  -- How many mappings of this path are added up in the row.
  aggregate_count LONG,
  -- Whether the file had been deleted.
  is_deleted LONG,
  -- Size of the address range, in KiB.
  size_kb LONG,
  -- Changed pages that no other process maps, in KiB.
  private_dirty_kb LONG,
  -- Part that is swapped out, in KiB.
  swap_kb LONG,
  -- Name of the file.
  file_name STRING,
  -- Where the range begins.
  start_address LONG,
  -- Build time of the module.
  module_timestamp LONG,
  -- Id that its debug symbols are found by.
  module_debugid STRING,
  -- Path of its debug symbols.
  module_debug_path STRING,
  -- What is allowed: 1 read, 2 write, 4 execute.
  protection_flags LONG,
  -- Unchanged pages that no other process maps, in KiB.
  private_clean_resident_kb LONG,
  -- Changed pages that other processes map as well, in KiB.
  shared_dirty_resident_kb LONG,
  -- Unchanged pages that other processes map as well, in KiB.
  shared_clean_resident_kb LONG,
  -- Part that is locked in memory, in KiB.
  locked_kb LONG,
  -- Memory, with shared pages divided among those that map them, in KiB.
  proportional_resident_kb LONG,
  -- Part of it that is in memory, in KiB.
  rss_kb LONG,
  -- Part that belongs to no file, in KiB.
  anonymous_kb LONG,
  -- The changed part of the proportional size, in KiB.
  pss_dirty_kb LONG,
  -- Swapped out, with shared pages divided among those that map them, in KiB.
  swap_pss_kb LONG
)
AS
SELECT id, upid, ts, path, path_trimmed, aggregate_count, is_deleted, size_kb, private_dirty_kb,
  swap_kb, file_name, start_address, module_timestamp, module_debugid, module_debug_path,
  protection_flags, private_clean_resident_kb, shared_dirty_resident_kb, shared_clean_resident_kb,
  locked_kb, proportional_resident_kb, rss_kb, anonymous_kb, pss_dirty_kb, swap_pss_kb
FROM __intrinsic_profiler_smaps;

-- Memory of processes by mapping, from /proc/PID/smaps.
CREATE PERFETTO VIEW process_memory_mappings(
  -- Number of the row, from 0.
  id ID,
  -- The process.
  upid LONG,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Path of the file, without what tells that it was deleted.
  path STRING,
  -- How many mappings of this path are added up in the row.
  aggregate_count LONG,
  -- Whether the file had been deleted.
  is_deleted LONG,
  -- Size of the address range, in KiB.
  size_kb LONG,
  -- Part of it that is in memory, in KiB.
  rss_kb LONG,
  -- Part that belongs to no file, in KiB.
  anonymous_kb LONG,
  -- Part that is swapped out, in KiB.
  swap_kb LONG,
  -- Unchanged pages that other processes map as well, in KiB.
  shared_clean_kb LONG,
  -- Changed pages that other processes map as well, in KiB.
  shared_dirty_kb LONG,
  -- Unchanged pages that no other process maps, in KiB.
  private_clean_kb LONG,
  -- Changed pages that no other process maps, in KiB.
  private_dirty_kb LONG,
  -- Part that is locked in memory, in KiB.
  locked_kb LONG,
  -- Memory, with shared pages divided among those that map them, in KiB.
  pss_kb LONG,
  -- The changed part of the proportional size, in KiB.
  pss_dirty_kb LONG,
  -- Swapped out, with shared pages divided among those that map them, in KiB.
  swap_pss_kb LONG
)
AS
SELECT id, upid, ts, path_trimmed AS path, aggregate_count, is_deleted, size_kb, rss_kb, anonymous_kb,
  swap_kb, shared_clean_resident_kb AS shared_clean_kb, shared_dirty_resident_kb AS shared_dirty_kb,
  private_clean_resident_kb AS private_clean_kb, private_dirty_kb, locked_kb,
  proportional_resident_kb AS pss_kb, pss_dirty_kb, swap_pss_kb
FROM __intrinsic_profiler_smaps;

-- Packages that were installed.
CREATE PERFETTO VIEW package_list(
  -- Number of the row, from 0.
  id ID,
  -- Name of the package.
  package_name STRING,
  -- User that it belongs to.
  uid LONG,
  -- Whether the package may be debugged.
  debuggable LONG,
  -- Whether the shell may profile it.
  profileable_from_shell LONG,
  -- Version of the package.
  version_code LONG
)
AS
SELECT id, package_name, uid, debuggable, profileable_from_shell, version_code
FROM __intrinsic_package_list;

-- Files that code was mapped from.
CREATE PERFETTO VIEW stack_profile_mapping(
  -- Number of the row, from 0.
  id ID,
  -- Build id of the file, in hex.
  build_id STRING,
  -- Offset in the file of the mapped range.
  exact_offset LONG,
  -- Offset in the file of the segment that holds it.
  start_offset LONG,
  -- First address.
  start LONG,
  -- Address after the last.
  end LONG,
  -- Added to addresses of the file to get those of its symbols.
  load_bias LONG,
  -- Path of the file.
  name STRING
)
AS
SELECT id, build_id, exact_offset, start_offset, start, "end", load_bias, name
FROM __intrinsic_stack_profile_mapping;

-- Functions that were met in stacks.
CREATE PERFETTO VIEW stack_profile_frame(
  -- Number of the row, from 0.
  id ID,
  -- Its name.
  name STRING,
  -- File it lies in.
  mapping JOINID(stack_profile_mapping.id),
  -- Address within the file.
  rel_pc LONG,
  -- Its source lines: rows of stack_profile_symbol with this number; NULL: none.
  symbol_set_id LONG,
  -- The name in the sources, when it was obfuscated and a map was given.
  deobfuscated_name STRING,
  -- Language or kind of code.
  type STRING
)
AS
SELECT id, name, mapping, rel_pc, symbol_set_id, deobfuscated_name, type
FROM __intrinsic_stack_profile_frame;

-- Call stacks as a tree: a row is a function called from its parent.
CREATE PERFETTO VIEW stack_profile_callsite(
  -- Number of the row, from 0.
  id ID,
  -- Frames above it; 0 is outermost.
  depth LONG,
  -- The caller; NULL: outermost.
  parent_id JOINID(stack_profile_callsite.id),
  -- The function.
  frame_id JOINID(stack_profile_frame.id)
)
AS
SELECT id, depth, parent_id, frame_id
FROM __intrinsic_stack_profile_callsite;

-- Stacks that Chrome sampled.
CREATE PERFETTO VIEW cpu_profile_stack_sample(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The innermost frame of its call stack; NULL: none.
  callsite_id JOINID(stack_profile_callsite.id),
  -- The thread.
  utid LONG,
  -- Priority of the process.
  process_priority LONG
)
AS
SELECT s.id, s.ts, s.callsite_id, t.utid, coalesce(x.process_priority, 0) AS process_priority
FROM __intrinsic_profiler_sample AS s
LEFT JOIN __intrinsic_chrome_stack_sample_extras AS x ON x.profiler_sample_id = s.id
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
WHERE s.source IN ('chrome', 'legacy_v8', 'gecko', 'simpleperf', 'perf_text');

-- Stacks that Instruments sampled.
CREATE PERFETTO VIEW instruments_sample(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The thread.
  utid LONG,
  -- The innermost frame of its call stack; NULL: none.
  callsite_id JOINID(stack_profile_callsite.id),
  -- Number of the CPU; the same as ucpu, so that it is unique over all machines.
  cpu LONG
)
AS
SELECT s.id, s.ts, t.utid, s.callsite_id, c.cpu
FROM __intrinsic_profiler_sample AS s
LEFT JOIN __intrinsic_profiler_task_context AS t ON t.id = s.task_context_id
LEFT JOIN __intrinsic_profiler_execution_context AS x ON x.id = s.execution_context_id
LEFT JOIN __intrinsic_cpu AS c ON c.id = x.ucpu
WHERE s.source = 'instruments';

-- Source lines of functions.
CREATE PERFETTO VIEW stack_profile_symbol(
  -- Number of the row, from 0.
  id ID,
  -- Its source lines: rows of stack_profile_symbol with this number; NULL: none.
  symbol_set_id LONG,
  -- Its name.
  name STRING,
  -- File of the sources.
  source_file STRING,
  -- Line in it.
  line_number LONG,
  -- Whether the call was inlined into the next.
  inlined LONG
)
AS
SELECT id, symbol_set_id, name, source_file, line_number, inlined
FROM __intrinsic_stack_profile_symbol;

-- What was allocated and freed, by call stack.
CREATE PERFETTO VIEW heap_profile_allocation(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The process.
  upid LONG,
  -- Name of the heap, for instance libc.malloc.
  heap_name STRING,
  -- The innermost frame of its call stack; NULL: none.
  callsite_id JOINID(stack_profile_callsite.id),
  -- Allocations, or frees when it is negative.
  count LONG,
  -- Bytes allocated, or freed when it is negative.
  size LONG
)
AS
SELECT id, ts, upid, heap_name, callsite_id, count, size
FROM __intrinsic_heap_profile_allocation;

-- Memory that Vulkan gave out.
CREATE PERFETTO VIEW vulkan_memory_allocations(
  -- Number of the row, from 0.
  id ID,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- What is counted: driver, device or image memory.
  source STRING,
  -- What was done.
  operation STRING,
  -- When, in nanoseconds of the trace clock.
  timestamp LONG,
  -- The process.
  upid LONG,
  -- Handle of the device.
  device LONG,
  -- Handle of the memory.
  device_memory LONG,
  -- Number of the memory type.
  memory_type LONG,
  -- Number of the heap.
  heap LONG,
  -- Function that was called.
  function_name STRING,
  -- Handle of the object.
  object_handle LONG,
  -- Where it lies.
  memory_address LONG,
  -- Bytes of the memory.
  memory_size LONG,
  -- What it belongs to.
  scope STRING
)
AS
SELECT id, arg_set_id, source, operation, timestamp, upid, device, device_memory, memory_type, heap,
  function_name, object_handle, memory_address, memory_size, scope
FROM __intrinsic_vulkan_memory_allocations;

-- Groups of GPU counters.
CREATE PERFETTO VIEW gpu_counter_group(
  -- Number of the row, from 0.
  id ID,
  -- Number of the group.
  group_id LONG,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- Its name.
  name STRING,
  -- What the recorder says of it.
  description STRING
)
AS
SELECT id, group_id, track_id, name, description
FROM __intrinsic_gpu_counter_group;

-- Wakeups of threads that were awake.
CREATE PERFETTO VIEW spurious_sched_wakeup(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The row of thread_state in which the thread was awake already.
  thread_state_id LONG,
  -- Whether an interrupt did it, and not the thread that was running.
  irq_context LONG,
  -- The thread.
  utid LONG,
  -- The thread that woke it up.
  waker_utid LONG
)
AS
SELECT id, ts, thread_state_id, irq_context, utid, waker_utid
FROM __intrinsic_spurious_sched_wakeup;

-- Machines of the trace; the host is the one whose clock is the trace clock.
CREATE PERFETTO VIEW machine(
  -- Number of the row, from 0.
  id ID,
  -- Id of the machine in the file; 0 is the host.
  raw_id LONG,
  -- Name of the machine, as the recorder or --machine says.
  name STRING,
  -- Name of the system, for instance Linux.
  sysname STRING,
  -- Release of the kernel.
  release STRING,
  -- Version of the kernel.
  version STRING,
  -- Architecture, for instance x86_64.
  arch STRING,
  -- How many CPUs it has.
  num_cpus LONG,
  -- Build of Android; NULL elsewhere.
  android_build_fingerprint STRING,
  -- Maker of the device; NULL elsewhere.
  android_device_manufacturer STRING,
  -- Version of the Android API; NULL elsewhere.
  android_sdk_version LONG,
  -- Memory of the machine in bytes.
  system_ram_bytes LONG,
  -- The same in GB, rounded as it is sold.
  system_ram_gb LONG,
  -- Tells machines with the same name apart.
  label_index LONG
)
AS
SELECT id, raw_id, name, sysname, release, version, arch, num_cpus, android_build_fingerprint,
  android_device_manufacturer, android_sdk_version, system_ram_bytes, system_ram_gb,
  iif(raw_id = 0, 0,
    (SELECT count(*) FROM __intrinsic_machine AS o WHERE o.raw_id != 0 AND o.id <= m.id)) AS label_index
FROM __intrinsic_machine AS m;

-- Open files of processes.
CREATE PERFETTO VIEW filedescriptor(
  -- Number of the row, from 0.
  id ID,
  -- Always 0: recorders do not tell which descriptors are one open file.
  ufd LONG,
  -- Number of the descriptor in its process.
  fd LONG,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- The process.
  upid LONG,
  -- Path of the file.
  path STRING
)
AS
SELECT id, ufd, fd, ts, upid, path
FROM __intrinsic_filedescriptor;

-- Chrome processes that the trace does not show from the start.
CREATE PERFETTO VIEW experimental_missing_chrome_processes(
  -- Number of the row, from 0.
  id ID,
  -- The process.
  upid LONG,
  -- From here on it is known which of its processes were running.
  reliable_from LONG
)
AS
SELECT id, upid, reliable_from
FROM __intrinsic_experimental_missing_chrome_processes;

-- Clocks that the recorders read together: what relates them.
CREATE PERFETTO VIEW clock_snapshot(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Number of the clock; 1 to 6 are those of Linux, from 64 clocks of one writer.
  clock_id LONG,
  -- Name of a clock of Linux, for instance BOOTTIME.
  clock_name STRING,
  -- What the clock showed, in nanoseconds.
  clock_value LONG,
  -- Clocks that were read together have the same number.
  snapshot_id LONG,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id)
)
AS
SELECT id, ts, clock_id, clock_name, clock_value, snapshot_id, machine_id
FROM __intrinsic_clock_snapshot;

-- States of all layers of the Android compositor.
CREATE PERFETTO VIEW surfaceflinger_layers_snapshot(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Where the message is kept as it was recorded.
  base64_proto_id LONG,
  -- Number of the writer.
  sequence_id LONG,
  -- Whether the recorder could not tell the time of it.
  has_invalid_elapsed_ts LONG
)
AS
SELECT id, ts, arg_set_id, base64_proto_id, sequence_id, has_invalid_elapsed_ts
FROM __intrinsic_surfaceflinger_layers_snapshot;

-- Layers within such a state.
CREATE PERFETTO VIEW surfaceflinger_layer(
  -- Number of the row, from 0.
  id ID,
  -- The snapshot it is part of.
  snapshot_id JOINID(surfaceflinger_layers_snapshot.id),
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Where the message is kept as it was recorded.
  base64_proto_id LONG,
  -- Number of the layer.
  layer_id LONG,
  -- Name of the layer.
  layer_name STRING,
  -- Whether it can be seen.
  is_visible LONG,
  -- The layer it lies in.
  parent LONG,
  -- Radius of the corner at the top left.
  corner_radius_tl DOUBLE,
  -- Radius of the corner at the top right.
  corner_radius_tr DOUBLE,
  -- Radius of the corner at the bottom left.
  corner_radius_bl DOUBLE,
  -- Radius of the corner at the bottom right.
  corner_radius_br DOUBLE,
  -- How the hardware composer draws it.
  hwc_composition_type LONG,
  -- Whether a rule hides it.
  is_hidden_by_policy LONG,
  -- The layer whose height counts for it.
  z_order_relative_of LONG,
  -- Whether that layer is missing.
  is_missing_z_parent LONG,
  -- Where it is drawn.
  layer_rect_id LONG,
  -- Where it takes input.
  input_rect_id LONG
)
AS
SELECT id, snapshot_id, arg_set_id, base64_proto_id, layer_id, layer_name, is_visible, parent,
  corner_radius_tl, corner_radius_tr, corner_radius_bl, corner_radius_br, hwc_composition_type,
  is_hidden_by_policy, z_order_relative_of, is_missing_z_parent, layer_rect_id, input_rect_id
FROM __intrinsic_surfaceflinger_layer;

-- Changes that the Android compositor was asked for.
CREATE PERFETTO VIEW surfaceflinger_transactions(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Where the message is kept as it was recorded.
  base64_proto_id LONG,
  -- Number of the vertical sync.
  vsync_id LONG
)
AS
SELECT id, ts, arg_set_id, base64_proto_id, vsync_id
FROM __intrinsic_surfaceflinger_transactions;

-- Transitions between windows of Android.
CREATE PERFETTO VIEW window_manager_shell_transitions(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Number of the transition.
  transition_id LONG,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id ARGSETID,
  -- Kind of the transition.
  transition_type LONG,
  -- When it was sent.
  send_time_ns LONG,
  -- When a handler got it.
  dispatch_time_ns LONG,
  -- How long it took.
  duration_ns LONG,
  -- When it finished.
  finish_time_ns LONG,
  -- When the shell broke it off.
  shell_abort_time_ns LONG,
  -- When the window manager broke it off.
  wm_abort_time_ns LONG,
  -- When it was merged into another.
  merge_time_ns LONG,
  -- When it was made.
  create_time_ns LONG,
  -- Number of the handler.
  handler LONG,
  -- How it ended.
  status STRING,
  -- Flags of the transition.
  flags LONG,
  -- Transaction that starts it.
  start_transaction_id LONG,
  -- Transaction that ends it.
  finish_transaction_id LONG
)
AS
SELECT id, ts, transition_id, arg_set_id, transition_type, send_time_ns, dispatch_time_ns,
  duration_ns, finish_time_ns, shell_abort_time_ns, wm_abort_time_ns, merge_time_ns, create_time_ns,
  handler, status, flags, start_transaction_id, finish_transaction_id
FROM __intrinsic_window_manager_shell_transitions;

-- Who carries out such transitions.
CREATE PERFETTO VIEW window_manager_shell_transition_handlers(
  -- Number of the row, from 0.
  id ID,
  -- Number of the handler.
  handler_id LONG,
  -- Its name.
  handler_name STRING,
  -- Where the message is kept as it was recorded.
  base64_proto_id LONG
)
AS
SELECT id, handler_id, handler_name, base64_proto_id
FROM __intrinsic_window_manager_shell_transition_handlers;

-- Lines of ProtoLog.
CREATE PERFETTO VIEW protolog(
  -- Number of the row, from 0.
  id ID,
  -- When, in nanoseconds of the trace clock.
  ts TIMESTAMP,
  -- Level: VERBOSE to WTF.
  level STRING,
  -- Tag that the writer chose.
  tag STRING,
  -- The text.
  message STRING,
  -- Stack at that place; NULL: not recorded.
  stacktrace STRING,
  -- Place in the sources.
  location STRING
)
AS
SELECT id, ts, level, tag, message, stacktrace, location
FROM __intrinsic_protolog;

CREATE PERFETTO TABLE _stat_key_to_severity_and_name AS
SELECT DISTINCT key, severity, name
FROM __intrinsic_stats;

CREATE PERFETTO VIEW _trace_import_logs AS
SELECT l.id, l.trace_id, l.ts, l.byte_offset, s.severity, s.name, l.arg_set_id
FROM __intrinsic_trace_import_logs AS l
JOIN _stat_key_to_severity_and_name AS s ON s.key = l.stat_key;
