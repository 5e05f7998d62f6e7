-- What a request waited for: its critical path through services, and through the threads and kernels below them.

INCLUDE PERFETTO MODULE sched.thread_executing_span;

-- Spans with an end.
CREATE PERFETTO TABLE _otel_bounds AS
SELECT id, parent_id, ts, ts + iif(dur = -1, max(trace_end() - ts, 0), dur) AS te
FROM otel_span
ORDER BY id;

-- Children of one parent beside each other.
CREATE PERFETTO TABLE _otel_child AS
SELECT parent_id, id, ts, te
FROM _otel_bounds
WHERE parent_id IS NOT NULL AND te > ts
ORDER BY parent_id, ts, id;

-- The child of a span that ended last in a window.
CREATE PERFETTO MACRO _otel_last_child(
  -- Row of otel_span.
  span Expr,
  -- Start of the window.
  lower Expr,
  -- End of the window.
  upper Expr
)
RETURNS Expr AS
(
  SELECT last.id
  FROM (
    SELECT k.id, k.ts, min(k.te, $upper) AS te
    FROM _otel_child AS k
    WHERE k.parent_id = $span AND k.ts < $upper AND k.te > $lower
  ) AS last
  ORDER BY last.te DESC, last.ts, last.id
  LIMIT 1
);

-- The critical path of a span: at each moment the innermost span that it waited for, found from its end backwards. The
-- child that ended last is what it waited for; before that child began, the one that had ended last by then; where no
-- child was under way the time is the span's own. The rows follow each other without gaps.
CREATE PERFETTO FUNCTION otel_critical_path(
  -- Row of otel_span, mostly the first one of a request.
  span_id LONG
)
RETURNS TABLE(
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- Row of otel_span: what was waited for.
  span_id LONG,
  -- How many spans lie around that one, from the argument on.
  depth LONG,
  -- Name of the span.
  name STRING,
  -- Service that it ran in.
  service STRING,
  -- Row of process.
  upid JOINID(process.id),
  -- Row of thread; NULL when it is not known.
  utid JOINID(thread.id),
  -- Machine that it ran on.
  machine_id JOINID(machine.id)
) AS
WITH RECURSIVE
  -- windows of spans, each with the child that ended last in it
  walk(id, lower, upper, depth, child) AS (
    SELECT b.id, b.ts, b.te, 0, _otel_last_child!(b.id, b.ts, b.te)
    FROM _otel_bounds AS b
    WHERE b.id = $span_id
    UNION ALL
    -- that child
    SELECT
      c.id,
      max(w.lower, c.ts),
      min(w.upper, c.te),
      w.depth + 1,
      iif(w.depth < 127, _otel_last_child!(c.id, max(w.lower, c.ts), min(w.upper, c.te)), NULL)
    FROM walk AS w
    JOIN _otel_bounds AS c ON c.id = w.child
    UNION ALL
    -- and what lies before it
    SELECT w.id, w.lower, c.ts, w.depth, _otel_last_child!(w.id, w.lower, c.ts)
    FROM walk AS w
    JOIN _otel_bounds AS c ON c.id = w.child
    WHERE c.ts > w.lower
  ),
  own AS (
    SELECT w.id, w.depth, coalesce(min(c.te, w.upper), w.lower) AS ts, w.upper AS te
    FROM walk AS w
    LEFT JOIN _otel_bounds AS c ON c.id = w.child
  )
SELECT
  o.ts,
  o.te - o.ts AS dur,
  o.id AS span_id,
  o.depth,
  s.name,
  s.service,
  s.upid,
  s.utid,
  s.machine_id
FROM own AS o
JOIN otel_span AS s ON s.id = o.id
WHERE o.te > o.ts
ORDER BY o.ts;

-- The critical path of a span, split by the states of the threads that its spans ran on. Where a thread is not known, or
-- no kernel trace has its states, the state is NULL.
CREATE PERFETTO FUNCTION otel_critical_path_states(
  -- Row of otel_span.
  span_id LONG
)
RETURNS TABLE(
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- Row of otel_span: what was waited for.
  span_id LONG,
  -- Name of the span.
  name STRING,
  -- Service that it ran in.
  service STRING,
  -- Machine that it ran on.
  machine_id JOINID(machine.id),
  -- Row of thread; NULL when it is not known.
  utid JOINID(thread.id),
  -- State of the thread, as in thread_state; NULL when it is not known.
  state STRING,
  -- CPU that it ran on; NULL when it did not run.
  cpu LONG,
  -- Kernel function that it was blocked in.
  blocked_function STRING
) AS
SELECT
  max(p.ts, coalesce(st.ts, p.ts)) AS ts,
  min(p.ts + p.dur, coalesce(st.ts + iif(st.dur = -1, trace_end() - st.ts, st.dur), p.ts + p.dur))
  - max(p.ts, coalesce(st.ts, p.ts)) AS dur,
  p.span_id,
  p.name,
  p.service,
  p.machine_id,
  p.utid,
  st.state,
  st.cpu,
  st.blocked_function
FROM otel_critical_path($span_id) AS p
LEFT JOIN thread_state AS st
  ON
    st.utid = p.utid
    AND st.ts < p.ts + p.dur
    AND st.ts + iif(st.dur = -1, trace_end() - st.ts, st.dur) > p.ts
ORDER BY 1;

-- The critical path of a span through services and kernels: while a span on it ran on a thread that a kernel trace has
-- seen, the thread that this one waited for, found by who woke whom. Where that is not known, the span's own thread.
CREATE PERFETTO FUNCTION otel_critical_path_threads(
  -- Row of otel_span.
  span_id LONG
)
RETURNS TABLE(
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- Row of otel_span: what was waited for.
  span_id LONG,
  -- Name of the span.
  name STRING,
  -- Service that it ran in.
  service STRING,
  -- Machine that it ran on.
  machine_id JOINID(machine.id),
  -- Thread of the span; NULL when it is not known.
  span_utid JOINID(thread.id),
  -- Thread that this one waited for, itself where it ran or was about to; NULL when it is not known.
  utid JOINID(thread.id),
  -- Name of that thread.
  thread_name STRING,
  -- Name of its process.
  process_name STRING
) AS
WITH
  path AS (
    SELECT * FROM otel_critical_path($span_id)
  ),
  woken AS (
    SELECT root_utid, ts, dur, utid
    FROM _critical_path_by_intervals!((SELECT ts, dur, utid FROM path WHERE utid IS NOT NULL), _wakeup_graph)
    WHERE dur > 0
  ),
  -- up to where each stretch of a thread's path leaves its span
  pieces AS (
    SELECT
      max(p.ts, w.ts) AS ts,
      min(p.ts + p.dur, w.ts + w.dur) AS te,
      p.ts AS path_ts,
      w.utid
    FROM path AS p
    JOIN woken AS w ON w.root_utid = p.utid AND w.ts < p.ts + p.dur AND w.ts + w.dur > p.ts
    GROUP BY 1, 2, 3
  ),
  -- what they leave of the path: in front of each, and behind the last
  all_pieces AS (
    SELECT path_ts, ts, te, utid FROM pieces
    UNION ALL
    SELECT path_ts, reached AS ts, ts AS te, NULL
    FROM (
      SELECT
        path_ts,
        ts,
        coalesce(max(te) OVER (PARTITION BY path_ts ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), path_ts)
          AS reached
      FROM pieces
    )
    WHERE ts > reached
    UNION ALL
    SELECT p.ts, coalesce(max(c.te), p.ts), p.ts + p.dur, NULL
    FROM path AS p
    LEFT JOIN pieces AS c ON c.path_ts = p.ts
    GROUP BY p.ts
    HAVING coalesce(max(c.te), p.ts) < p.ts + p.dur
  )
SELECT
  a.ts,
  a.te - a.ts AS dur,
  p.span_id,
  p.name,
  p.service,
  p.machine_id,
  p.utid AS span_utid,
  coalesce(a.utid, p.utid) AS utid,
  t.name AS thread_name,
  pr.name AS process_name
FROM all_pieces AS a
JOIN path AS p ON p.ts = a.path_ts
LEFT JOIN thread AS t ON t.utid = coalesce(a.utid, p.utid)
LEFT JOIN process AS pr ON pr.upid = t.upid
ORDER BY a.ts;
