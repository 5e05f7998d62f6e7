-- Stack samples of any profiler.

CREATE TABLE stack_sample_session AS
SELECT id, source, timebase_unit, cmdline
FROM __intrinsic_profiler_session;

CREATE TABLE stack_sample_async_context AS
SELECT id, name, kind, parent_id
FROM __intrinsic_profiler_async_context;

CREATE TABLE stack_sample_task_context AS
SELECT id, upid, utid, async_context_id
FROM __intrinsic_profiler_task_context;

CREATE TABLE stack_sample_execution_context AS
SELECT id, ucpu, cpu_mode
FROM __intrinsic_profiler_execution_context;

CREATE VIEW stack_sample AS
SELECT id, ts, source, task_context_id, execution_context_id, callsite_id, session_id
FROM __intrinsic_profiler_sample;

CREATE TABLE stack_sample_counter_track AS
SELECT id, name, type, parent_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description,
  extract_arg(dimension_arg_set_id, 'perf_session_id') AS session_id,
  extract_arg(dimension_arg_set_id, 'cpu') AS cpu, extract_arg(source_arg_set_id, 'is_timebase') AS is_timebase
FROM __intrinsic_track
WHERE event_type = 'counter' AND type IN ('perf_cpu_counter', 'perf_global_counter');

CREATE VIEW stack_sample_counter AS
SELECT c.id, s.id AS stack_sample_id, c.track_id, c.value
FROM __intrinsic_profiler_sample AS s
JOIN __intrinsic_profiler_counter_set AS k ON k.counter_set_id = s.counter_set_id
JOIN __intrinsic_counter AS c ON c.id = k.counter_id;
