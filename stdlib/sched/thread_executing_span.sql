-- The critical path of threads: what each one waited for, followed through those who woke it.
--
-- A thread that sleeps is woken by another; until then, what that one does is what counts. The path of a span goes from its
-- end backwards: while the thread ran or waited for a CPU, it stands on itself; before that, on its waker, as long as that
-- one did not sleep, and so on.

CREATE PERFETTO MACRO _is_runnable_state(state Expr)
RETURNS Expr AS $state IN ('R', 'R+');

-- Executing spans: from a wake-up to the next sleep. id is that of the thread_state that begins it.
CREATE PERFETTO TABLE _executing_span AS
WITH
  marked AS (
    SELECT
      id,
      utid,
      ts,
      iif(dur = -1, trace_end() - ts, dur) AS dur,
      state,
      waker_utid,
      waker_id,
      irq_context,
      state = 'Running' OR _is_runnable_state!(state) AS active,
      lag(state = 'Running' OR _is_runnable_state!(state), 1, 0) OVER one AS was_active
    FROM thread_state
    WINDOW one AS (PARTITION BY utid ORDER BY ts)
  ),
  numbered AS (
    SELECT *, sum(active AND NOT was_active) OVER (PARTITION BY utid ORDER BY ts ROWS UNBOUNDED PRECEDING) AS span
    FROM marked
  )
SELECT x.id, x.utid, x.ts, x.dur, n.waker_utid, n.waker_id, n.irq_context
FROM (
  SELECT min(id) AS id, utid, min(ts) AS ts, max(ts + dur) - min(ts) AS dur
  FROM numbered
  WHERE active AND span > 0
  GROUP BY utid, span
) AS x
JOIN thread_state AS n USING (id)
ORDER BY x.id;

-- The same with the span that woke each, and how long the thread slept before: (id, utid, ts, dur, idle_dur, waker_id,
-- prev_id). A wake-up from an interrupt has no waker.
CREATE PERFETTO TABLE _wakeup_graph AS
SELECT
  s.id,
  s.utid,
  s.ts,
  s.dur,
  s.ts - (lag(s.ts + s.dur) OVER (PARTITION BY s.utid ORDER BY s.ts)) AS idle_dur,
  iif(
    coalesce(s.irq_context, 0),
    NULL,
    (
      SELECT w.id
      FROM _executing_span AS w
      WHERE w.utid = s.waker_utid AND w.ts < s.ts
      ORDER BY w.ts DESC
      LIMIT 1
    )
  ) AS waker_id,
  lag(s.id) OVER (PARTITION BY s.utid ORDER BY s.ts) AS prev_id
FROM _executing_span AS s
ORDER BY s.id;

-- The spans in which threads lead up to what they did in windows: (id).
CREATE PERFETTO MACRO _intervals_to_roots(
  -- Windows: ts, dur, utid.
  _source_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubquery AS
(
  SELECT DISTINCT n.id
  FROM $_source_table AS i
  JOIN $_node_table AS n ON n.utid = i.utid
  WHERE n.ts - coalesce(n.idle_dur, 0) < i.ts + i.dur AND n.ts + n.dur > i.ts
);

-- The critical paths that lead up to spans, one row a stretch, with the threads of both: (root_id, root_utid, depth, ts, dur, id,
-- utid, parent_id).
CREATE PERFETTO MACRO _critical_path_walk(
  -- Spans: id.
  _roots_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubquery AS
(
  WITH RECURSIVE
    -- each step covers (lower, upper] of the root's time by a span, from its start on; what lies before goes to the waker
    _cp_walk(root_id, root_utid, id, utid, parent_id, waker_id, lower, start, upper, depth) AS (
      SELECT g.id, g.utid, g.id, g.utid, NULL, g.waker_id, g.ts - coalesce(g.idle_dur, 0), g.ts, g.ts + g.dur, 0
      FROM $_roots_table AS r
      JOIN $_node_table AS g USING (id)
      UNION ALL
      SELECT w.root_id, w.root_utid, n.id, n.utid, w.id, n.waker_id, w.lower, max(n.ts, w.lower), w.start, w.depth + 1
      FROM _cp_walk AS w
      JOIN $_node_table AS n ON n.id = w.waker_id
      WHERE w.start > w.lower AND w.depth < 1000
    )
  SELECT root_id, root_utid, depth, start AS ts, upper - start AS dur, id, utid, parent_id
  FROM _cp_walk
  WHERE upper > start
  UNION ALL
  -- where no one is known to have woken it, the thread waited for itself (a timer, a device)
  SELECT root_id, root_utid, depth, lower AS ts, start - lower AS dur, id, utid, parent_id
  FROM _cp_walk
  WHERE start > lower AND waker_id IS NULL
);

-- The same without the threads: (root_id, depth, ts, dur, id, parent_id). depth counts the wake-ups between; parent_id is the span
-- woken, NULL at depth 0.
CREATE PERFETTO MACRO _critical_path_with_depth_by_roots(
  -- Spans: id.
  _roots_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubquery AS
(
  SELECT root_id, depth, ts, dur, id, parent_id FROM _critical_path_walk!($_roots_table, $_node_table)
);

-- The same without the depth: (root_id, id, ts, dur).
CREATE PERFETTO MACRO _critical_path_by_roots(
  -- Spans: id.
  _roots_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubquery AS
(
  SELECT root_id, id, ts, dur FROM _critical_path_walk!($_roots_table, $_node_table)
);

-- The critical paths of threads in windows: (root_utid, root_id, id, ts, dur, utid).
CREATE PERFETTO MACRO _critical_path_by_intervals(
  -- Windows: ts, dur, utid.
  _intervals_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubquery AS
(
  SELECT
    p.root_utid,
    p.root_id,
    p.id,
    max(p.ts, i.ts) AS ts,
    min(p.ts + p.dur, i.ts + i.dur) - max(p.ts, i.ts) AS dur,
    p.utid
  FROM _critical_path_walk!(_intervals_to_roots!($_intervals_table, $_node_table), $_node_table) AS p
  JOIN $_intervals_table AS i ON i.utid = p.root_utid
  WHERE p.ts < i.ts + i.dur AND p.ts + p.dur > i.ts
  ORDER BY 4
);

-- The critical path of a thread in a window, one row a stretch.
CREATE PERFETTO FUNCTION _thread_executing_span_critical_path(
  -- Row of thread.
  root_utid JOINID(thread.id),
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION
)
RETURNS TABLE(
  -- Row of thread.
  root_utid JOINID(thread.id),
  -- The span of the root that the stretch leads up to.
  root_id LONG,
  -- The span that the path stands on.
  id LONG,
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- Thread of the span.
  utid JOINID(thread.id)
) AS
SELECT root_utid, root_id, id, ts, dur, utid
FROM _critical_path_by_intervals!((SELECT $ts AS ts, $dur AS dur, $root_utid AS utid), _wakeup_graph);

-- Does the trace come from Fuchsia?
CREATE PERFETTO TABLE _is_fuchsia AS
SELECT EXISTS (SELECT 1 FROM metadata WHERE name = 'trace_type' AND str_value = 'fuchsia') AS is_fuchsia;

-- What follows are the states that the spans are made of, for queries that look at single wake-ups.

-- Waits for a CPU after a wake-up by a thread, not by an interrupt.
CREATE PERFETTO VIEW _runnable_state AS
SELECT id, ts, dur, utid, state, waker_id, waker_utid, irq_context
FROM thread_state
WHERE _is_runnable_state!(state) AND waker_utid IS NOT NULL AND NOT coalesce(irq_context, 0);

-- The first wait of each thread for a CPU, whoever woke it.
CREATE PERFETTO VIEW _first_runnable_state AS
SELECT id, min(ts) AS ts, dur, utid, state, waker_id, waker_utid, irq_context
FROM thread_state
WHERE _is_runnable_state!(state)
GROUP BY utid;

-- Sleeps, interruptible or not.
CREATE PERFETTO VIEW _sleep_state AS
SELECT id, ts, dur, utid, state, blocked_function
FROM thread_state
WHERE state IN ('S', 'D', 'I');

-- The first sleep of each thread.
CREATE PERFETTO VIEW _first_sleep_state AS
SELECT id, min(ts) AS ts, dur, utid, state, blocked_function
FROM _sleep_state
GROUP BY utid;

-- When each thread was last seen to run.
CREATE PERFETTO VIEW _thread_end_ts AS
SELECT utid, max(ts + iif(dur = -1, trace_end() - ts, dur)) AS end_ts
FROM thread_state
WHERE state = 'Running'
GROUP BY utid;

-- Wake-ups: a sleep, and the wait for a CPU that a thread ended it with. dur reaches to the next sleep, or to the end of the
-- thread; prev_id is the sleep, idle_dur its duration.
CREATE PERFETTO VIEW _wakeup AS
WITH
  -- the states of a thread stand one behind the other
  states AS (
    SELECT
      *,
      lag(id) OVER one AS prev_id,
      lag(state) OVER one AS prev_state,
      lag(blocked_function) OVER one AS prev_blocked_function,
      lag(dur) OVER one AS idle_dur,
      lag(ts + dur) OVER one AS prev_end,
      sum(state IN ('S', 'D', 'I')) OVER (PARTITION BY utid ORDER BY ts, id ROWS UNBOUNDED PRECEDING) AS sleeps
    FROM thread_state
    WINDOW one AS (PARTITION BY utid ORDER BY ts, id)
  ),
  sleeps AS MATERIALIZED (
    SELECT utid, sleeps, ts FROM states WHERE state IN ('S', 'D', 'I')
  )
SELECT
  r.id,
  r.utid,
  r.ts,
  coalesce(n.ts, e.end_ts) - r.ts AS dur,
  r.prev_id,
  r.prev_state,
  r.prev_blocked_function AS blocked_function,
  r.idle_dur,
  r.waker_id,
  r.waker_utid
FROM states AS r
LEFT JOIN sleeps AS n ON n.utid = r.utid AND n.sleeps = r.sleeps + 1
LEFT JOIN _thread_end_ts AS e ON e.utid = r.utid
WHERE
  _is_runnable_state!(r.state)
  AND r.waker_utid IS NOT NULL
  AND NOT coalesce(r.irq_context, 0)
  AND r.prev_state IN ('S', 'D', 'I')
  AND r.prev_end = r.ts;

-- From a state in which a thread ran to the wait for a CPU in front of it.
CREATE PERFETTO VIEW _wakeup_map AS
WITH
  -- the states of a thread stand one behind the other
  pairs AS (
    SELECT id, ts, state, lag(id) OVER one AS wakeup_id, lag(state) OVER one AS was, lag(ts + dur) OVER one AS ended
    FROM thread_state
    WINDOW one AS (PARTITION BY utid ORDER BY ts, id)
  )
SELECT id, wakeup_id FROM pairs WHERE state = 'Running' AND _is_runnable_state!(was) AND ended = ts;
