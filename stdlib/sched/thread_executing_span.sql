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
WITH RECURSIVE
  -- each step covers (lower, upper] of the root's time by a span, from its start on; what lies before goes to the waker
  walk(root_id, id, utid, lower, start, upper, depth) AS (
    SELECT g.id, g.id, g.utid, g.ts - coalesce(g.idle_dur, 0), g.ts, g.ts + g.dur, 0
    FROM _wakeup_graph AS g
    WHERE g.utid = $root_utid AND g.ts - coalesce(g.idle_dur, 0) < $ts + $dur AND g.ts + g.dur > $ts
    UNION ALL
    SELECT w.root_id, n.id, n.utid, w.lower, max(n.ts, w.lower), w.start, w.depth + 1
    FROM walk AS w
    JOIN _wakeup_graph AS g ON g.id = w.id
    JOIN _wakeup_graph AS n ON n.id = g.waker_id
    WHERE w.start > w.lower AND w.depth < 1000
  ),
  -- where no one is known to have woken it, the thread waited for itself (a timer, a device)
  pieces AS (
    SELECT root_id, id, utid, start AS ts, upper - start AS dur FROM walk
    UNION ALL
    SELECT w.root_id, w.id, w.utid, w.lower, w.start - w.lower
    FROM walk AS w
    JOIN _wakeup_graph AS g ON g.id = w.id
    WHERE w.start > w.lower AND g.waker_id IS NULL
  )
SELECT
  $root_utid AS root_utid,
  root_id,
  id,
  max(ts, $ts) AS ts,
  min(ts + dur, $ts + $dur) - max(ts, $ts) AS dur,
  utid
FROM pieces
WHERE dur > 0 AND ts < $ts + $dur AND ts + dur > $ts
ORDER BY ts;
