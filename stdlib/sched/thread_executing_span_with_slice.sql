-- The critical path of threads, with the slices that were open on it.

INCLUDE PERFETTO MODULE sched.thread_executing_span;
INCLUDE PERFETTO MODULE sched.states;

-- The path as a stack at each moment: what the root was in, whom it waited for, and the slices of that thread.
CREATE PERFETTO FUNCTION _critical_path_stack(
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION,
  enable_process_name LONG,
  enable_thread_name LONG,
  enable_self_slice LONG,
  enable_critical_path_slice LONG
)
RETURNS TABLE(
  id LONG,
  ts TIMESTAMP,
  dur DURATION,
  utid JOINID(thread.id),
  stack_depth LONG,
  name STRING,
  table_name STRING,
  root_utid JOINID(thread.id)
) AS
WITH
  path AS (
    SELECT id, ts, dur, utid
    FROM _thread_executing_span_critical_path($root_utid, $ts, $dur)
  ),
  root_states AS (
    SELECT
      id,
      max(ts, $ts) AS ts,
      min(ts + iif(dur = -1, trace_end() - ts, dur), $ts + $dur) - max(ts, $ts) AS dur,
      state,
      io_wait
    FROM thread_state
    WHERE utid = $root_utid AND ts < $ts + $dur AND ts + iif(dur = -1, trace_end() - ts, dur) > $ts
  )
SELECT
  id,
  ts,
  dur,
  $root_utid AS utid,
  0 AS stack_depth,
  'thread_state: ' || sched_state_io_to_human_readable_string(state, io_wait) AS name,
  'thread_state' AS table_name,
  $root_utid AS root_utid
FROM root_states
UNION ALL
SELECT p.id, p.ts, p.dur, p.utid, 1, 'blocking process_name: ' || coalesce(q.name, ''), 'process_name', $root_utid
FROM path AS p
JOIN thread AS t USING (utid)
LEFT JOIN process AS q USING (upid)
WHERE $enable_process_name AND p.utid != $root_utid
UNION ALL
SELECT p.id, p.ts, p.dur, p.utid, 2, 'blocking thread_name: ' || coalesce(t.name, ''), 'thread_name', $root_utid
FROM path AS p
JOIN thread AS t USING (utid)
WHERE $enable_thread_name AND p.utid != $root_utid
UNION ALL
SELECT
  s.id,
  max(s.ts, p.ts),
  min(s.ts + iif(s.dur = -1, trace_end() - s.ts, s.dur), p.ts + p.dur) - max(s.ts, p.ts),
  p.utid,
  3 + s.depth,
  s.name,
  'slice',
  $root_utid
FROM path AS p
JOIN thread_track AS k USING (utid)
JOIN slice AS s ON s.track_id = k.id
WHERE
  iif(p.utid = $root_utid, $enable_self_slice, $enable_critical_path_slice)
  AND s.ts < p.ts + p.dur
  AND s.ts + iif(s.dur = -1, trace_end() - s.ts, s.dur) > p.ts;

-- The same with everything in it.
CREATE PERFETTO FUNCTION _thread_executing_span_critical_path_stack(
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION
)
RETURNS TABLE(
  id LONG,
  ts TIMESTAMP,
  dur DURATION,
  utid JOINID(thread.id),
  stack_depth LONG,
  name STRING,
  table_name STRING,
  root_utid JOINID(thread.id)
) AS
SELECT id, ts, dur, utid, stack_depth, name, table_name, root_utid
FROM _critical_path_stack($root_utid, $ts, $dur, 1, 1, 1, 1);
