-- Tracks of named states.

CREATE VIEW state_track AS
SELECT id, name, parent_id, type, dimension_arg_set_id, source_arg_set_id, machine_id
FROM __intrinsic_track
WHERE event_type = 'state';

CREATE TABLE process_state_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS upid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'upid'
WHERE t.event_type = 'state';

CREATE TABLE thread_state_track AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS utid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'utid'
WHERE t.event_type = 'state';
