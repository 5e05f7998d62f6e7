-- Slices with the thread and process that they belong to.

-- Slices of thread tracks.
CREATE PERFETTO VIEW thread_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Length; -1 when it did not end.
  dur DURATION,
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- Name of the track.
  track_name STRING,
  -- Name of the thread.
  thread_name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Is it the process's first thread?
  is_main_thread BOOL,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID,
  -- Start on the thread's own clock.
  thread_ts TIMESTAMP,
  -- Length on the thread's own clock.
  thread_dur LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.category,
  s.name,
  s.track_id,
  t.name AS track_name,
  thread.name AS thread_name,
  thread.utid,
  thread.tid,
  thread.is_main_thread,
  process.name AS process_name,
  process.upid,
  process.pid,
  s.depth,
  s.parent_id,
  s.arg_set_id,
  s.thread_ts,
  s.thread_dur
FROM slice AS s
JOIN thread_track AS t ON s.track_id = t.id
JOIN thread USING (utid)
LEFT JOIN process USING (upid);

-- Slices of process tracks.
CREATE PERFETTO VIEW process_slice(
  -- Row of slice.
  id ID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Length; -1 when it did not end.
  dur DURATION,
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- Name of the track.
  track_name STRING,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID,
  -- Start on the thread's own clock.
  thread_ts TIMESTAMP,
  -- Length on the thread's own clock.
  thread_dur LONG
) AS
SELECT
  s.id,
  s.ts,
  s.dur,
  s.category,
  s.name,
  s.track_id,
  t.name AS track_name,
  process.name AS process_name,
  process.upid,
  process.pid,
  s.depth,
  s.parent_id,
  s.arg_set_id,
  s.thread_ts,
  s.thread_dur
FROM slice AS s
JOIN process_track AS t ON s.track_id = t.id
JOIN process USING (upid);

-- Slices of both kinds; those of processes have no thread.
CREATE PERFETTO VIEW thread_or_process_slice(
  -- Row of slice.
  id JOINID(slice.id),
  -- When the slice began.
  ts TIMESTAMP,
  -- Length; -1 when it did not end.
  dur DURATION,
  -- Category of the event.
  category STRING,
  -- Name of the slice.
  name STRING,
  -- Row of track.
  track_id JOINID(track.id),
  -- Name of the track.
  track_name STRING,
  -- Name of the thread.
  thread_name STRING,
  -- Row of thread.
  utid JOINID(thread.id),
  -- The kernel's number of the thread.
  tid LONG,
  -- Name of the process.
  process_name STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- The kernel's number of the process.
  pid LONG,
  -- How many slices stand above it.
  depth LONG,
  -- The slice above it.
  parent_id JOINID(slice.id),
  -- Args of the slice; NULL when it has none.
  arg_set_id ARGSETID
) AS
SELECT
  id, ts, dur, category, name, track_id, track_name, thread_name, utid, tid, process_name, upid, pid, depth, parent_id,
  arg_set_id
FROM thread_slice
UNION ALL
SELECT
  id, ts, dur, category, name, track_id, track_name, NULL AS thread_name, NULL AS utid, NULL AS tid, process_name, upid,
  pid, depth, parent_id, arg_set_id
FROM process_slice;
