-- The critical path of threads, with the slices that were open on it.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE sched.thread_executing_span;
INCLUDE PERFETTO MODULE slices.flat_slices;

-- The critical paths of all threads: (id, ts, dur, ts_end, utid, root_utid), utid being the thread that the path stands on.
CREATE PERFETTO TABLE _critical_path_all AS
SELECT row_number() OVER (ORDER BY p.ts) AS id, p.ts, p.dur, p.ts + p.dur AS ts_end, g.utid, r.utid AS root_utid
FROM _critical_path_by_roots!((SELECT id AS root_node_id FROM _wakeup_graph), _wakeup_graph) AS p
JOIN _wakeup_graph AS g ON g.id = p.id
JOIN _wakeup_graph AS r ON r.id = p.root_id
ORDER BY p.ts;

-- States of threads.
CREATE PERFETTO VIEW _span_thread_state_view AS
SELECT id AS thread_state_id, ts, dur, utid, state, blocked_function AS function, io_wait, cpu
FROM thread_state;

-- The deepest slices of threads, by their number.
CREATE PERFETTO VIEW _span_slice_view AS
SELECT slice_id, depth AS slice_depth, ts, dur, utid
FROM _slice_flattened;

-- Both at once: states, cut where the deepest slice changes; slice_id is NULL outside of slices.
CREATE VIRTUAL TABLE _span_thread_state_slice_sp
USING SPAN_LEFT_JOIN(_span_thread_state_view PARTITIONED utid, _span_slice_view PARTITIONED utid);

CREATE PERFETTO TABLE _span_thread_state_slice AS
SELECT
  row_number() OVER (ORDER BY ts) AS id,
  ts,
  dur,
  ts + dur AS ts_end,
  utid,
  thread_state_id,
  state,
  function,
  cpu,
  io_wait,
  slice_id,
  slice_depth
FROM _span_thread_state_slice_sp
WHERE dur > 0
ORDER BY ts;

-- The same of the threads whose path is looked at.
CREATE PERFETTO VIEW _self_view AS
SELECT
  thread_state_id AS self_thread_state_id,
  slice_id AS self_slice_id,
  ts,
  dur,
  utid AS root_utid,
  state AS self_state,
  function AS self_function,
  cpu AS self_cpu,
  io_wait AS self_io_wait,
  slice_depth AS self_slice_depth
FROM _span_thread_state_slice;

-- The critical paths of all threads, cut where the state or the slice of the thread on the path changes: rows of
-- _critical_path_all and of _span_thread_state_slice.
CREATE PERFETTO VIEW _critical_path_thread_state_slice_raw AS
SELECT id_0 AS cr_id, id_1 AS th_id, ts, dur
FROM _interval_intersect!((_critical_path_all, _span_thread_state_slice), (utid));

-- The same with what there is of both.
CREATE PERFETTO VIEW _critical_path_thread_state_slice AS
SELECT
  i.ts,
  i.dur,
  p.utid,
  s.thread_state_id,
  s.state,
  s.function,
  s.cpu,
  s.io_wait,
  s.slice_id,
  s.slice_depth,
  p.root_utid
FROM _critical_path_thread_state_slice_raw AS i
JOIN _critical_path_all AS p ON p.id = i.cr_id
JOIN _span_thread_state_slice AS s ON s.id = i.th_id;

-- The critical path of a thread in a window, cut where the state or the deepest slice of the thread or of the one on the path
-- changes: rows of _span_thread_state_slice.
CREATE PERFETTO FUNCTION _critical_path_stretches(
  root_utid JOINID(thread.id),
  ts TIMESTAMP,
  dur DURATION
)
RETURNS TABLE(
  ts TIMESTAMP,
  dur DURATION,
  self_id LONG,
  path_id LONG
) AS
WITH
  path AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY ts) AS id, max(ts, $ts) AS ts, min(ts_end, $ts + $dur) - max(ts, $ts) AS dur, utid
    FROM _critical_path_all
    WHERE root_utid = $root_utid AND ts < $ts + $dur AND ts_end > $ts
  ),
  on_path AS MATERIALIZED (
    SELECT row_number() OVER (ORDER BY i.ts) AS id, i.ts, i.dur, i.id_1 AS path_id
    FROM _interval_intersect!(
      (path, (SELECT id, ts, dur, utid FROM _span_thread_state_slice WHERE utid IN (SELECT utid FROM path))),
      (utid)
    ) AS i
  )
SELECT i.ts, i.dur, i.id_1 AS self_id, p.path_id
FROM _interval_intersect!((on_path, (SELECT id, ts, dur FROM _span_thread_state_slice WHERE utid = $root_utid)), ()) AS i
JOIN on_path AS p ON p.id = i.id_0;

-- The path as a stack at each moment, from the root up: its state, what it was blocked in, its process, thread and slices; then
-- the state, process and thread of the one that it waits for, what that is blocked in, and its slices; at the top the CPU that
-- one of them runs on. A layer that is not there has no name.
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
  selves AS MATERIALIZED (
    SELECT
      x.ts, x.dur, s.thread_state_id AS id, s.utid, s.state, iif(s.state GLOB 'R*', NULL, s.function) AS function,
      iif(s.state GLOB 'R*', NULL, s.io_wait) AS io_wait, s.slice_id, s.slice_depth, t.name AS thread_name, t.upid,
      p.name AS process_name
    FROM stretches AS x
    JOIN _span_thread_state_slice AS s ON s.id = x.self_id
    JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
  ),
  self_layers AS MATERIALIZED (
    SELECT id, ts, dur, utid, 0 AS stack_depth, 'thread_state: ' || state AS name, 'thread_state' AS table_name FROM selves
    UNION ALL
    SELECT id, ts, dur, utid, 1, 'kernel function: ' || function, 'thread_state' FROM selves
    UNION ALL
    SELECT id, ts, dur, utid, 2, 'io_wait: ' || io_wait, 'thread_state' FROM selves
    UNION ALL
    SELECT id, ts, dur, utid, 3, iif($enable_process_name, 'process_name: ' || process_name, NULL), 'thread_state' FROM selves
    UNION ALL
    SELECT id, ts, dur, utid, 4, iif($enable_thread_name, 'thread_name: ' || thread_name, NULL), 'thread_state'
    FROM selves
    WHERE upid IS NOT NULL
    UNION ALL
    SELECT a.id, x.ts, x.dur, x.utid, a.depth + 5, iif($enable_self_slice, a.name, NULL), 'slice'
    FROM selves AS x
    JOIN ancestor_slice(x.slice_id) AS a
    WHERE x.slice_id IS NOT NULL AND a.dur != -1
    UNION ALL
    SELECT x.slice_id, x.ts, x.dur, x.utid, x.slice_depth + 5, iif($enable_self_slice, s.name, NULL), 'slice'
    FROM selves AS x
    JOIN slice AS s ON s.id = x.slice_id
  ),
  self_tops AS MATERIALIZED (SELECT ts, max(stack_depth) + 1 AS base FROM self_layers GROUP BY ts),
  others AS MATERIALIZED (
    SELECT
      x.ts, x.dur, s.thread_state_id AS id, s.utid, s.state, s.function, s.io_wait, s.slice_id, s.slice_depth,
      t.name AS thread_name, p.name AS process_name, b.base
    FROM stretches AS x
    -- in this order: else SQLite goes through all threads for each stretch
    CROSS JOIN _span_thread_state_slice AS s ON s.id = x.path_id
    CROSS JOIN self_tops AS b ON b.ts = x.ts
    CROSS JOIN thread AS t USING (utid)
    LEFT JOIN process AS p USING (upid)
    WHERE s.utid != $root_utid
  ),
  other_layers AS MATERIALIZED (
    SELECT id, ts, dur, utid, base AS stack_depth, 'blocking thread_state: ' || state AS name, 'thread_state' AS table_name FROM others
    UNION ALL
    SELECT id, ts, dur, utid, base + 1, 'blocking process_name: ' || process_name, 'thread_state' FROM others
    UNION ALL
    SELECT id, ts, dur, utid, base + 2, 'blocking thread_name: ' || thread_name, 'thread_state' FROM others
    UNION ALL
    SELECT id, ts, dur, utid, base + 3, 'blocking kernel_function: ' || function, 'thread_state' FROM others
    UNION ALL
    SELECT id, ts, dur, utid, base + 4, 'blocking io_wait: ' || io_wait, 'thread_state' FROM others
    UNION ALL
    SELECT a.id, x.ts, x.dur, x.utid, a.depth + x.base + 5, iif($enable_critical_path_slice, a.name, NULL), 'slice'
    FROM others AS x
    JOIN ancestor_slice(x.slice_id) AS a
    WHERE x.slice_id IS NOT NULL AND a.dur != -1
    UNION ALL
    SELECT x.slice_id, x.ts, x.dur, x.utid, x.slice_depth + x.base + 5, iif($enable_critical_path_slice, s.name, NULL), 'slice'
    FROM others AS x
    JOIN slice AS s ON s.id = x.slice_id
  ),
  tops AS (
    SELECT ts, max(base) AS base
    FROM (SELECT ts, base FROM self_tops UNION ALL SELECT ts, stack_depth + 1 FROM other_layers)
    GROUP BY ts
  ),
  layers AS (
    SELECT * FROM self_layers
    UNION ALL
    SELECT * FROM other_layers
    UNION ALL
    SELECT s.thread_state_id, x.ts, x.dur, s.utid, b.base, 'cpu: ' || s.cpu, 'thread_state'
    FROM stretches AS x
    JOIN _span_thread_state_slice AS s ON s.id = x.path_id
    JOIN _span_thread_state_slice AS r ON r.id = x.self_id
    JOIN tops AS b ON b.ts = x.ts
    WHERE s.state = 'Running' OR r.state = 'Running'
  )
SELECT id, ts, dur, utid, stack_depth, name, table_name, $root_utid AS root_utid
FROM layers;

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
