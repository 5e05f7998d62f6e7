-- Counters and their tracks.

CREATE VIEW counter_track AS
SELECT id, name, parent_id, type, dimension_arg_set_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description
FROM __intrinsic_track
WHERE event_type = 'counter';

CREATE TABLE cpu_counter_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS cpu
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'cpu'
WHERE t.event_type = 'counter';

CREATE TABLE gpu_counter_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS ugpu,
  extract_arg(t.dimension_arg_set_id, 'gpu') AS gpu_id
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'ugpu'
WHERE t.event_type = 'counter';

CREATE TABLE process_counter_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS upid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'upid'
WHERE t.event_type = 'counter';

CREATE TABLE thread_counter_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS utid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'utid'
WHERE t.event_type = 'counter';

CREATE TABLE perf_counter_track AS
SELECT id, name, type, parent_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description,
  extract_arg(dimension_arg_set_id, 'perf_session_id') AS perf_session_id,
  extract_arg(dimension_arg_set_id, 'cpu') AS cpu, extract_arg(source_arg_set_id, 'is_timebase') AS is_timebase
FROM __intrinsic_track
WHERE event_type = 'counter' AND type IN ('perf_cpu_counter', 'perf_global_counter');

CREATE VIEW counters AS
SELECT v.id, v.ts, v.track_id, v.value, v.arg_set_id, t.name, t.counter_unit AS unit
FROM __intrinsic_counter AS v
JOIN __intrinsic_track AS t ON t.id = v.track_id
ORDER BY v.ts;
