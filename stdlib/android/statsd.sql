-- Events of Android's statistics service.

-- They are slices of a track of its own; the args tell the atom.
CREATE PERFETTO VIEW android_statsd_atoms(
  -- Row of slice.
  id LONG,
  -- When the atom began.
  ts TIMESTAMP,
  -- Duration of the atom in nanoseconds.
  dur DURATION,
  -- Details: the set of args.
  arg_set_id ARGSETID,
  -- Instructions of the thread at the start.
  thread_instruction_count LONG,
  -- Instructions of the thread within it.
  thread_instruction_delta LONG,
  -- Row of track.
  track_id JOINID(track.id),
  -- Category of the slice.
  category STRING,
  -- Name of the atom.
  name STRING,
  -- How many levels stand above it.
  depth LONG,
  -- The slice it lies in; NULL: outermost.
  parent_id LONG,
  -- CPU time of the thread at the start.
  thread_ts TIMESTAMP,
  -- CPU time of the thread within it.
  thread_dur LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.arg_set_id,
  s.thread_instruction_count,
  s.thread_instruction_delta,
  s.track_id,
  s.category,
  s.name,
  s.depth,
  s.parent_id,
  s.thread_ts,
  s.thread_dur
FROM slice AS s
JOIN track AS t ON t.id = s.track_id
WHERE t.name = 'Statsd Atoms';

-- Triggers of recordings that it reports, as the atom perfetto_trigger.
CREATE PERFETTO TABLE _android_statsd_perfetto_triggers(
  -- When it was reported.
  ts TIMESTAMP,
  -- Name of the trigger.
  trigger_name STRING
) AS
SELECT ts, extract_arg(arg_set_id, 'perfetto_trigger.trigger_name') AS trigger_name
FROM android_statsd_atoms
WHERE name = 'perfetto_trigger';
