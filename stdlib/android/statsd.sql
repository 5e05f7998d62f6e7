-- Events of Android's statistics service.

-- They are slices of a track of its own; the args tell the atom.
CREATE PERFETTO VIEW android_statsd_atoms(
  id LONG,
  ts TIMESTAMP,
  dur DURATION,
  arg_set_id ARGSETID,
  thread_instruction_count LONG,
  thread_instruction_delta LONG,
  track_id JOINID(track.id),
  category STRING,
  name STRING,
  depth LONG,
  parent_id LONG,
  thread_ts TIMESTAMP,
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
