-- Tracks of slices by what they belong to.

-- Everything that slices, counters and states lie on: one row a line of the timeline.
CREATE PERFETTO VIEW track(
  -- Number of the row, from 0.
  id ID,
  -- Its name.
  name STRING,
  -- Kind of the track, for instance thread_execution or cpu_frequency.
  type STRING,
  -- What the track is of (a cpu, a thread …): rows of args.
  dimension_arg_set_id ARGSETID,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Tracks that belong together have the same number; NULL: alone.
  track_group_id LONG
)
AS
SELECT id, name, type, dimension_arg_set_id, parent_id, source_arg_set_id, machine_id,
  track_group_id
FROM __intrinsic_track;

-- Tracks of slices of one thread.
CREATE PERFETTO TABLE thread_track(
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
WHERE t.event_type = 'slice';

-- Tracks of slices of one process.
CREATE PERFETTO TABLE process_track(
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
WHERE t.event_type = 'slice';

-- Tracks of slices of one CPU, for instance its interrupts.
CREATE PERFETTO TABLE cpu_track(
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
  -- Number of the CPU on its machine.
  cpu LONG
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, a.int_value AS cpu
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'cpu'
WHERE t.event_type = 'slice';

-- Tracks of slices of GPUs.
CREATE PERFETTO TABLE gpu_track(
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
  -- What the track is of (a cpu, a thread …): rows of args.
  dimension_arg_set_id ARGSETID,
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Its type again.
  scope STRING,
  -- What the recorder says of it.
  description STRING,
  -- Number of the GPU context.
  context_id LONG
)
AS
SELECT id, name, type, parent_id, source_arg_set_id, dimension_arg_set_id, machine_id,
  type AS scope, extract_arg(source_arg_set_id, 'description') AS description,
  extract_arg(dimension_arg_set_id, 'context_id') AS context_id
FROM __intrinsic_track
WHERE type IN (
  'drm_vblank', 'drm_sched_ring', 'drm_fence', 'mali_mcu_state', 'gpu_render_stage', 'vulkan_events', 'gpu_log',
  'graphics_frame_event'
);
