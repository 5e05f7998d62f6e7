-- Tracks of slices by what they belong to.

CREATE VIEW track AS
SELECT id, name, type, dimension_arg_set_id, parent_id, source_arg_set_id, machine_id,
  track_group_id
FROM __intrinsic_track;

CREATE TABLE thread_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS utid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'utid'
WHERE t.event_type = 'slice';

CREATE TABLE process_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS upid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'upid'
WHERE t.event_type = 'slice';

CREATE TABLE cpu_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS cpu
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'cpu'
WHERE t.event_type = 'slice';

CREATE TABLE gpu_track AS
SELECT id, name, type, parent_id, source_arg_set_id, dimension_arg_set_id, machine_id,
  extract_arg(source_arg_set_id, 'scope') AS scope, extract_arg(source_arg_set_id, 'description') AS description,
  extract_arg(dimension_arg_set_id, 'context_id') AS context_id
FROM __intrinsic_track
WHERE type GLOB '*gpu*' AND event_type = 'slice';
