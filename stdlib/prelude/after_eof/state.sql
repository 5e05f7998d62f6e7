-- Tracks of named states.

-- Series of named states over time.
CREATE PERFETTO VIEW state_track(
  -- Row of track.
  id ID(track.id),
  -- Its name.
  name STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- Kind of the track.
  type STRING,
  -- What the track is of (a cpu, a thread …): rows of args.
  dimension_arg_set_id ARGSETID,
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id)
)
AS
SELECT id, name, parent_id, type, dimension_arg_set_id, source_arg_set_id, machine_id
FROM __intrinsic_track
WHERE event_type = 'state';

-- Series of named states of one process.
CREATE PERFETTO TABLE process_state_track(
  -- Row of track.
  id ID(track.id),
  -- Its name.
  name STRING,
  -- Kind of the track.
  type STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- The process.
  upid JOINID(process.id)
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS upid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'upid'
WHERE t.event_type = 'state';

-- Series of named states of one thread.
CREATE PERFETTO TABLE thread_state_track(
  -- Row of track.
  id ID(track.id),
  -- Its name.
  name STRING,
  -- Kind of the track.
  type STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- The thread.
  utid JOINID(thread.id)
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS utid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'utid'
WHERE t.event_type = 'state';
