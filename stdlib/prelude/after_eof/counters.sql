-- Counters and their tracks.

-- Series of values over time.
CREATE PERFETTO VIEW counter_track(
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
  machine_id JOINID(machine.id),
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING
)
AS
SELECT id, name, parent_id, type, dimension_arg_set_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description
FROM __intrinsic_track
WHERE event_type = 'counter';

-- Series of values of one CPU.
CREATE PERFETTO TABLE cpu_counter_track(
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
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- Number of the CPU on its machine.
  cpu LONG
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS cpu
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'cpu'
WHERE t.event_type = 'counter';

-- Series of values of one GPU.
CREATE PERFETTO TABLE gpu_counter_track(
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
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- Row of gpu: a GPU of one machine.
  ugpu LONG,
  -- Number of the GPU on its machine.
  gpu_id LONG
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS ugpu,
  extract_arg(t.dimension_arg_set_id, 'gpu') AS gpu_id
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'ugpu'
WHERE t.event_type = 'counter';

-- Series of values of one process.
CREATE PERFETTO TABLE process_counter_track(
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
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- The process.
  upid LONG
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS upid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'upid'
WHERE t.event_type = 'counter';

-- Series of values of one thread.
CREATE PERFETTO TABLE thread_counter_track(
  -- Row of track.
  id ID(track.id),
  -- Its name.
  name STRING,
  -- Kind of the track.
  type STRING,
  -- The one it belongs to; NULL: none.
  parent_id JOINID(track.id),
  -- What the recorder said of it: rows of args; NULL: nothing.
  source_arg_set_id JOINID(track.id),
  -- The machine it was recorded on.
  machine_id JOINID(machine.id),
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- The thread.
  utid LONG
)
AS
SELECT t.id, t.name, t.type, t.parent_id, t.source_arg_set_id, t.machine_id, t.counter_unit AS unit,
  extract_arg(t.source_arg_set_id, 'description') AS description, a.int_value AS utid
FROM __intrinsic_track AS t
JOIN __intrinsic_args AS a ON a.arg_set_id = t.dimension_arg_set_id AND a.key = 'utid'
WHERE t.event_type = 'counter';

-- Hardware and software counters that perf sampled.
CREATE PERFETTO TABLE perf_counter_track(
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
  -- Unit of the values, as the recorder gives it.
  unit STRING,
  -- What the recorder says of it.
  description STRING,
  -- Row of perf_session.
  perf_session_id LONG,
  -- Number of the CPU on its machine.
  cpu LONG,
  -- Whether samples are taken each time this counter has moved on so far.
  is_timebase BOOL
)
AS
SELECT id, name, type, parent_id, source_arg_set_id, machine_id, counter_unit AS unit,
  extract_arg(source_arg_set_id, 'description') AS description,
  extract_arg(dimension_arg_set_id, 'perf_session_id') AS perf_session_id,
  extract_arg(dimension_arg_set_id, 'cpu') AS cpu, extract_arg(source_arg_set_id, 'is_timebase') AS is_timebase
FROM __intrinsic_track
WHERE event_type = 'counter' AND type IN ('perf_cpu_counter', 'perf_global_counter');

-- Values of all counters with the name and unit of their track, in order of time. For a look at the prompt; filter
-- counter by track_id where speed matters.
CREATE PERFETTO VIEW counters(
  -- Number of the row, from 0.
  id ID,
  -- From when the value holds.
  ts TIMESTAMP,
  -- The track it is drawn on.
  track_id JOINID(track.id),
  -- The value.
  value DOUBLE,
  -- Its details: rows of args with this number; NULL: none.
  arg_set_id LONG,
  -- Name of the track.
  name STRING,
  -- Unit of the values, as the recorder gives it.
  unit STRING
)
AS
SELECT v.id, v.ts, v.track_id, v.value, v.arg_set_id, t.name, t.counter_unit AS unit
FROM __intrinsic_counter AS v
JOIN __intrinsic_track AS t ON t.id = v.track_id
ORDER BY v.ts;
