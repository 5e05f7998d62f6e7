-- The critical path of threads: what each one waited for, followed through those who woke it.
--
-- An executing span of a thread goes from a wake-up to the next sleep that a thread ended; its id is that of the thread_state
-- that begins it. The path of a span covers the sleep before it and itself: while the thread ran or waited for a CPU, it stands
-- on itself; what it slept goes to the span that woke it, and so on.

INCLUDE PERFETTO MODULE intervals.intersect;
INCLUDE PERFETTO MODULE intervals.overlap;

-- Does the trace come from Fuchsia?
CREATE PERFETTO TABLE _is_fuchsia AS
SELECT EXISTS (SELECT 1 FROM metadata WHERE name = 'trace_type' AND str_value = 'fuchsia') AS is_fuchsia;

-- Does a thread become ready to run with the state? Fuchsia has R only behind a time slice that ran out.
CREATE PERFETTO MACRO _is_runnable_state(state Expr)
RETURNS Expr AS ($state = 'R' OR ($state = 'W' AND (SELECT is_fuchsia FROM _is_fuchsia)));

-- Finished waits for a CPU whose waker is known. is_irq: what woke the thread was an interrupt or a device.
CREATE PERFETTO TABLE _runnable_state AS
SELECT id, ts, dur, state, utid, waker_id, waker_utid, iif(coalesce(irq_context, 0) = 0, coalesce(io_wait, 0), 1) AS is_irq
FROM thread_state
WHERE dur != -1 AND waker_id IS NOT NULL;

-- The first state of each thread, where that is a finished wait for a CPU, whoever woke it.
CREATE PERFETTO TABLE _first_runnable_state AS
SELECT id, ts, dur, state, utid, waker_id, waker_utid, iif(coalesce(irq_context, 0) = 0, coalesce(io_wait, 0), 1) AS is_irq
FROM thread_state
WHERE id IN (SELECT min(id) FROM thread_state GROUP BY utid) AND dur != -1 AND _is_runnable_state!(state);

-- Finished sleeps, interruptible or not.
CREATE PERFETTO TABLE _sleep_state AS
SELECT id, ts, dur, state, blocked_function, utid
FROM thread_state
WHERE dur != -1 AND state IN ('S', 'D', 'I');

-- The end of the last finished state of each thread.
CREATE PERFETTO TABLE _thread_end_ts AS
SELECT utid, max(ts) + dur AS end_ts
FROM thread_state
WHERE dur != -1
GROUP BY utid;

-- The first sleep of each thread that a known waker ended.
CREATE PERFETTO TABLE _first_sleep_state AS
SELECT min(s.id) AS id, s.ts, s.dur, s.state, s.blocked_function, s.utid
FROM _sleep_state AS s
JOIN _runnable_state AS r ON r.utid = s.utid AND r.ts = s.ts + s.dur
GROUP BY s.utid;

-- Wake-ups: each wait for a CPU with the sleep before it (state, blocked_function, prev_end_ts: when it began), and the first
-- waits of threads, of which no sleep is known. thread_end_ts is when the thread was last seen.
CREATE PERFETTO TABLE _wakeup AS
SELECT w.*, e.end_ts AS thread_end_ts
FROM (
  SELECT s.state, s.blocked_function, r.id, r.ts, r.utid, r.waker_id, r.waker_utid, s.ts AS prev_end_ts, r.is_irq
  FROM _runnable_state AS r
  JOIN _sleep_state AS s ON s.utid = r.utid AND s.ts + s.dur = r.ts
  UNION ALL
  SELECT NULL, NULL, id, ts, utid, waker_id, waker_utid, NULL, is_irq
  FROM _first_runnable_state
) AS w
LEFT JOIN _thread_end_ts AS e USING (utid);

-- From a state in which a thread ran (waker_id) to the last wait for a CPU before it that a span may begin with (id).
CREATE PERFETTO TABLE _wakeup_map AS
SELECT id, waker_id
FROM (
  SELECT
    s.id AS waker_id,
    s.state,
    max(iif(_is_runnable_state!(s.state) AND s.is_begin, s.id, NULL)) OVER (PARTITION BY s.utid ORDER BY s.id) AS id
  FROM (
    SELECT id, utid, state, waker_id IS NOT NULL OR row_number() OVER (PARTITION BY utid ORDER BY id) = 1 AS is_begin
    FROM thread_state
    WHERE dur != -1
  ) AS s
)
WHERE state = 'Running'
ORDER BY waker_id;

-- Executing spans with the span that woke each, and how long the thread slept before: (utid, id, waker_id, ts, idle_state,
-- idle_reason, idle_dur, prev_id, dur). Without a waker: an interrupt, or a thread of which no span is known. prev_id is the span
-- before of the same thread.
CREATE PERFETTO TABLE _wakeup_graph AS
SELECT
  w.utid,
  w.id,
  iif(w.is_irq, NULL, m.id) AS waker_id,
  w.ts,
  iif(w.is_irq, 'IRQ', w.state) AS idle_state,
  w.blocked_function AS idle_reason,
  w.ts - w.prev_end_ts AS idle_dur,
  lag(w.id) OVER one AS prev_id,
  coalesce(lead(w.prev_end_ts) OVER one, w.thread_end_ts) - w.ts AS dur
FROM _wakeup AS w
LEFT JOIN _wakeup_map AS m USING (waker_id)
WINDOW one AS (PARTITION BY w.utid ORDER BY w.ts)
ORDER BY w.id;

-- The spans in which threads lead up to what they did in windows: (root_node_id, capacity), one that reaches over the end
-- included; capacity is how far the ids go back to the span before.
CREATE PERFETTO MACRO _intervals_to_roots(
  -- Windows: ts, dur, utid.
  _source_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubQuery AS
(
  WITH
    _its_spans AS (
      SELECT
        id,
        utid,
        prev_id,
        lag(ts) OVER (PARTITION BY utid ORDER BY ts) AS prev_ts,
        lead(ts) OVER (PARTITION BY utid ORDER BY ts) AS next_ts
      FROM $_node_table
    )
  SELECT DISTINCT n.id AS root_node_id, n.id - coalesce(n.prev_id, n.id) AS capacity
  FROM $_source_table AS i
  JOIN _its_spans AS n ON n.utid = i.utid
  WHERE coalesce(n.next_ts > i.ts, 1) AND coalesce(n.prev_ts < i.ts + i.dur, 1)
);

-- The critical paths that lead up to spans, one row a stretch: (root_id, depth, ts, dur, id, parent_id). depth counts the
-- wake-ups between; parent_id is the root.
CREATE PERFETTO MACRO _critical_path_with_depth_by_roots(
  -- Spans: root_node_id.
  _roots_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubQuery AS
(
  SELECT c0 AS root_id, c1 AS depth, c2 AS ts, c3 AS dur, c4 AS id, c5 AS parent_id
  FROM __intrinsic_table_ptr(
    __intrinsic_critical_path_walk(
      (SELECT __intrinsic_wakeup_graph_agg(n.id, n.utid, n.ts, n.dur, n.idle_dur, n.waker_id, n.prev_id) FROM $_node_table AS n),
      (SELECT __intrinsic_array_agg(r.root_node_id) FROM $_roots_table AS r)
    )
  )
  WHERE
    __intrinsic_table_ptr_bind(c0, 'root_id')
    AND __intrinsic_table_ptr_bind(c1, 'depth')
    AND __intrinsic_table_ptr_bind(c2, 'ts')
    AND __intrinsic_table_ptr_bind(c3, 'dur')
    AND __intrinsic_table_ptr_bind(c4, 'blocker_id')
    AND __intrinsic_table_ptr_bind(c5, 'parent_id')
);

-- The same without the depth, and without gaps, which are the root's: (root_id, id, ts, dur).
CREATE PERFETTO MACRO _critical_path_by_roots(
  -- Spans: root_node_id.
  _roots_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubQuery AS
(
  WITH
    _cpr_stretches AS MATERIALIZED (
      SELECT root_id, id, ts, ts + dur AS ts_end FROM _critical_path_with_depth_by_roots!($_roots_table, $_node_table)
    ),
    _cpr_gaps AS (
      SELECT root_id, ts_end AS ts, lead(ts) OVER (PARTITION BY root_id ORDER BY ts) AS ts_end FROM _cpr_stretches
    )
  SELECT root_id, id, ts, ts_end - ts AS dur FROM _cpr_stretches
  UNION ALL
  SELECT root_id, root_id, ts, ts_end - ts FROM _cpr_gaps WHERE ts_end > ts
  ORDER BY root_id, ts
);

-- The critical paths of threads in windows: (root_utid, utid, root_id, id, ts, dur, interval_ts, interval_dur), the last two
-- those of the window.
CREATE PERFETTO MACRO _critical_path_by_intervals(
  -- Windows: ts, dur, utid.
  _intervals_table TableOrSubQuery,
  -- Spans, as _wakeup_graph has them.
  _node_table TableOrSubQuery
)
RETURNS TableOrSubQuery AS
(
  WITH
    _cpi_windows AS (
      SELECT row_number() OVER (ORDER BY ts) AS id, ts, dur, utid AS root_utid FROM $_intervals_table WHERE dur >= 0
    ),
    _cpi_spans AS (SELECT id, utid FROM $_node_table),
    _cpi_path AS MATERIALIZED (
      SELECT row_number() OVER (ORDER BY p.ts) AS id, p.root_id, p.id AS span_id, p.ts, p.dur, r.utid AS root_utid, s.utid
      FROM _critical_path_by_roots!(_intervals_to_roots!($_intervals_table, $_node_table), $_node_table) AS p
      JOIN _cpi_spans AS r ON r.id = p.root_id
      JOIN _cpi_spans AS s ON s.id = p.id
    )
  SELECT DISTINCT
    p.root_utid,
    p.utid,
    p.root_id,
    p.span_id AS id,
    i.ts,
    i.dur,
    w.ts AS interval_ts,
    w.dur AS interval_dur
  FROM _interval_intersect!((_cpi_path, _cpi_windows), (root_utid)) AS i
  JOIN _cpi_path AS p ON p.id = i.id_0
  JOIN _cpi_windows AS w ON w.id = i.id_1
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
