-- The critical path of threads, with the slices that were open on it.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE sched.thread_executing_span;
INCLUDE PERFETTO MODULE slices.pieces;

-- The critical paths of all threads: (root_id, id, ts, dur, utid, root_utid), utid being the thread that the path stands on.
CREATE PERFETTO VIEW _critical_path_all AS
SELECT root_id, id, ts, dur, utid, root_utid
FROM _critical_path_walk!((SELECT id FROM _wakeup_graph), _wakeup_graph);

-- The critical path cut where the state of the root or of the thread on the path changes: (id, ts, dur, root_state,
-- path_state), rows of thread_state. path_state is NULL where the path stands on the root itself.
CREATE PERFETTO FUNCTION _critical_path_stretches(
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION
)
RETURNS TABLE(
  id LONG,
  ts TIMESTAMP,
  dur DURATION,
  root_state JOINID(thread_state.id),
  path_state JOINID(thread_state.id)
) AS
WITH
  path AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY ts) AS id, ts, dur, utid
    FROM _thread_executing_span_critical_path($root_utid, $ts, $dur)
  ),
  states AS MATERIALIZED (
    SELECT id, ts, iif(dur = -1, trace_end() - ts, dur) AS dur, utid
    FROM thread_state
    WHERE utid = $root_utid OR utid IN (SELECT utid FROM path)
  ),
  root_states AS (SELECT id, ts, dur FROM states WHERE utid = $root_utid AND dur > 0),
  of_root AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY i.ts) AS id, i.ts, i.dur, p.utid, i.id_1 AS root_state
    FROM _interval_intersect!((path, root_states), ()) AS i
    JOIN path AS p ON p.id = i.id_0
  ),
  of_others AS (
    SELECT i.ts, i.dur, r.root_state, i.id_1 AS path_state
    FROM _interval_intersect!(
      ((SELECT * FROM of_root WHERE utid != $root_utid), (SELECT * FROM states WHERE dur > 0)),
      (utid)
    ) AS i
    JOIN of_root AS r ON r.id = i.id_0
  )
SELECT row_number() OVER (ORDER BY ts) AS id, ts, dur, root_state, path_state
FROM (
  SELECT ts, dur, root_state, NULL AS path_state FROM of_root WHERE utid = $root_utid
  UNION ALL
  SELECT ts, dur, root_state, path_state FROM of_others
);

-- The path as a stack at each moment, from the root up: its state, process, thread, what it was blocked in and its
-- slices; then the same of the thread that it waits for; at the top the CPU that one of them runs on. A layer that is
-- not there has no name.
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
  stretches AS MATERIALIZED (SELECT * FROM _critical_path_stretches($root_utid, $ts, $dur)),
  -- both threads of a stretch; the layers of the second lie above those of the first
  threads AS MATERIALIZED (
    SELECT
      x.id AS stretch, x.ts, x.dur, s.id, s.utid, s.state, s.blocked_function, s.io_wait, s.cpu,
      x.path_state IS NULL AS is_last, '' AS prefix, 0 AS blocking, t.name AS thread_name, p.name AS process_name
    FROM stretches AS x
    JOIN thread_state AS s ON s.id = x.root_state
    JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
    UNION ALL
    SELECT
      x.id, x.ts, x.dur, s.id, s.utid, s.state, s.blocked_function, s.io_wait, s.cpu,
      1, 'blocking ', 1, t.name, p.name
    FROM stretches AS x
    JOIN thread_state AS s ON s.id = x.path_state
    JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
  ),
  slices AS (
    SELECT s.id, s.ts, iif(s.dur = -1, trace_end() - s.ts, s.dur) AS dur, k.utid, s.depth, s.name
    FROM thread_track AS k
    JOIN slice AS s ON s.track_id = k.id
    WHERE k.utid IN (SELECT utid FROM threads)
  ),
  open_slices AS MATERIALIZED (
    SELECT t.stretch, i.ts, i.dur, t.blocking, s.id, s.utid, s.depth, s.name
    FROM _interval_intersect!(
      (
        (
          SELECT 2 * stretch + blocking AS id, ts, dur, utid
          FROM threads
          WHERE iif(blocking, $enable_critical_path_slice, $enable_self_slice)
        ),
        (SELECT id, ts, dur, utid FROM slices WHERE dur > 0)
      ),
      (utid)
    ) AS i
    JOIN threads AS t ON t.stretch = i.id_0 / 2 AND t.blocking = i.id_0 % 2
    JOIN slices AS s ON s.id = i.id_1
  ),
  -- place: thread, then the layer of the thread, then the depth of a slice
  layers AS (
    SELECT id, ts, dur, utid, stretch, blocking, 0 AS layer, 0 AS depth, prefix || 'thread_state: ' || state AS name,
      'thread_state' AS table_name
    FROM threads
    UNION ALL
    SELECT id, ts, dur, utid, stretch, blocking, 1, 0, prefix || 'process_name: ' || process_name, 'thread_state'
    FROM threads
    WHERE $enable_process_name
    UNION ALL
    SELECT id, ts, dur, utid, stretch, blocking, 2, 0, prefix || 'thread_name: ' || thread_name, 'thread_state'
    FROM threads
    WHERE $enable_thread_name
    UNION ALL
    SELECT id, ts, dur, utid, stretch, blocking, 3, 0, prefix || 'kernel function: ' || blocked_function, 'thread_state'
    FROM threads
    UNION ALL
    SELECT id, ts, dur, utid, stretch, blocking, 4, 0, prefix || 'io_wait: ' || io_wait, 'thread_state'
    FROM threads
    UNION ALL
    SELECT id, ts, dur, utid, stretch, blocking, 5, depth, name, 'slice'
    FROM open_slices
    UNION ALL
    SELECT id, ts, dur, utid, stretch, 2, 0, 0, 'cpu: ' || cpu, 'thread_state'
    FROM threads
    WHERE is_last AND state = 'Running'
  )
SELECT
  id,
  ts,
  dur,
  utid,
  row_number() OVER (PARTITION BY stretch, ts ORDER BY blocking, layer, depth) - 1 AS stack_depth,
  name,
  table_name,
  $root_utid AS root_utid
FROM layers
ORDER BY stretch, ts, stack_depth;

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

-- The stacks added up, as a profile in the format of pprof: a title, then the layers; the value of each is the time in
-- which it was the top.
CREATE PERFETTO FUNCTION _critical_path_graph(
  graph_title STRING,
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION,
  enable_process_name LONG,
  enable_thread_name LONG,
  enable_self_slice LONG,
  enable_critical_path_slice LONG
)
RETURNS TABLE(
  pprof BYTES
) AS
WITH RECURSIVE
  layers AS MATERIALIZED (
    SELECT
      ts,
      dur,
      name,
      row_number() OVER one AS place,
      lead(name) OVER one IS NULL AS is_top
    FROM _critical_path_stack(
      $root_utid, $ts, $dur, $enable_process_name, $enable_thread_name, $enable_self_slice, $enable_critical_path_slice
    )
    WHERE name IS NOT NULL
    WINDOW one AS (PARTITION BY ts ORDER BY stack_depth)
  ),
  stacks(ts, place, dur, is_top, stack) AS (
    SELECT ts, place, dur, is_top, cat_stacks($graph_title, name) FROM layers WHERE place = 1
    UNION ALL
    SELECT l.ts, l.place, l.dur, l.is_top, cat_stacks(s.stack, l.name)
    FROM stacks AS s
    JOIN layers AS l ON l.ts = s.ts AND l.place = s.place + 1
  )
SELECT experimental_profile(stack, 'duration', 'ns', iif(is_top, dur, 0)) AS pprof
FROM stacks;

-- The same with everything in it.
CREATE PERFETTO FUNCTION _thread_executing_span_critical_path_graph(
  graph_title STRING,
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION
)
RETURNS TABLE(
  pprof BYTES
) AS
SELECT pprof
FROM _critical_path_graph($graph_title, $root_utid, $ts, $dur, 1, 1, 1, 1);

-- What follows are the parts that the path with slices is made of, over all threads.

-- States of threads that last.
CREATE PERFETTO VIEW _span_thread_state_view AS
SELECT id AS thread_state_id, ts, iif(dur = -1, trace_end() - ts, dur) AS dur, utid, state, blocked_function AS function, io_wait, cpu
FROM thread_state
WHERE dur != 0;

-- The deepest slices of threads, by their number.
CREATE PERFETTO VIEW _span_slice_view AS
SELECT f.slice_id, s.depth AS slice_depth, f.ts, f.dur, t.utid
FROM _slice_pieces!(slice) AS f
JOIN slice AS s ON s.id = f.slice_id
JOIN thread_track AS t ON t.id = f.track_id
WHERE f.dur > 0;

-- Both at once: states, cut where the deepest slice changes; slice_id is NULL outside of slices.
CREATE VIRTUAL TABLE _span_thread_state_slice_sp
USING SPAN_LEFT_JOIN(_span_thread_state_view PARTITIONED utid, _span_slice_view PARTITIONED utid);

CREATE PERFETTO VIEW _span_thread_state_slice AS
SELECT row_number() OVER (ORDER BY utid, ts) AS id, ts, dur, utid, thread_state_id, state, function, io_wait, cpu, slice_id, slice_depth
FROM _span_thread_state_slice_sp;

-- The same of the threads whose path is looked at.
CREATE PERFETTO VIEW _self_view AS
SELECT id, ts, dur, utid AS root_utid, thread_state_id AS self_thread_state_id, slice_id AS self_slice_id, slice_depth AS self_slice_depth
FROM _span_thread_state_slice;

-- The critical paths of all threads, cut where the state or the slice of the thread on the path changes.
CREATE PERFETTO VIEW _critical_path_thread_state_slice_raw AS
WITH
  path AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY root_utid, ts) AS id, root_id, root_utid, ts, dur, utid
    FROM _critical_path_all
    WHERE dur > 0
  ),
  layers AS MATERIALIZED (SELECT * FROM _span_thread_state_slice)
SELECT i.ts, i.dur, p.root_id, p.root_utid, p.utid, s.thread_state_id, s.slice_id, s.slice_depth
FROM _interval_intersect!((path, layers), (utid)) AS i
JOIN path AS p ON p.id = i.id_0
JOIN layers AS s ON s.id = i.id_1;

-- The same, numbered, with what the path says of the thread beside the root.
CREATE PERFETTO VIEW _critical_path_thread_state_slice AS
SELECT row_number() OVER (ORDER BY root_utid, ts) AS id, ts, dur, root_id, root_utid, utid, thread_state_id, slice_id, slice_depth
FROM _critical_path_thread_state_slice_raw;
