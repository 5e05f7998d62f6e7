-- What a thread waited for, followed through the threads that woke it, across machines where packets did.

INCLUDE PERFETTO MODULE machines.network;
INCLUDE PERFETTO MODULE sched.thread_executing_span;

-- Executing spans: from a wake-up, whoever ended it, to the next sleep. id is that of the thread_state that begins it.
CREATE PERFETTO TABLE _machine_executing_span AS
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
      state = 'Running' OR state IN ('R', 'R+') AS active,
      lag(state = 'Running' OR state IN ('R', 'R+'), 1, 0) OVER one AS was_active
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
-- prev_id). A wake-up from an interrupt has no waker: packets do it, of which more below. The module on critical paths within a
-- machine leaves out those whose waker had no state of its own.
CREATE PERFETTO TABLE _machine_thread_wakeups AS
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
      FROM _machine_executing_span AS w
      WHERE w.utid = s.waker_utid AND w.ts < s.ts
      ORDER BY w.ts DESC
      LIMIT 1
    )
  ) AS waker_id,
  lag(s.id) OVER (PARTITION BY s.utid ORDER BY s.ts) AS prev_id
FROM _machine_executing_span AS s
ORDER BY s.id;

-- Spans as _wakeup_graph has them, with messages between machines as spans of their own: who was woken by a message waited for
-- it, and it for the one that sent it. Their ids are negative: - 1 - the message's.
CREATE PERFETTO TABLE _machine_wakeup_graph AS
WITH
  hops AS (
    SELECT
      - 1 - a.id AS id,
      min(a.send_ts, r.wake_ts) AS ts,
      max(r.wake_ts - a.send_ts, 0) AS dur,
      r.state_id,
      (
        SELECT s.id
        FROM _machine_executing_span AS s
        WHERE s.utid = a.sender_utid AND s.ts <= a.send_ts
        ORDER BY s.ts DESC
        LIMIT 1
      ) AS sender_id
    FROM _machine_network_arrivals AS a
    JOIN _machine_network_readers AS r USING (id)
  )
SELECT id, NULL AS utid, ts, dur, NULL AS idle_dur, sender_id AS waker_id, NULL AS prev_id
FROM hops
UNION ALL
SELECT g.id, g.utid, g.ts, g.dur, g.idle_dur, coalesce(h.id, g.waker_id) AS waker_id, g.prev_id
FROM _machine_thread_wakeups AS g
LEFT JOIN hops AS h ON h.state_id = g.id
ORDER BY 1;

-- The critical path of a thread in a window: at each moment the thread that the root waited for, itself where it ran or was
-- about to, or the packet on its way from another machine. Where a packet woke a thread, the path goes on there with the thread
-- that sent it.
CREATE PERFETTO FUNCTION machine_critical_path(
  -- Row of thread.
  root_utid JOINID(thread.id),
  -- Start of the window.
  ts TIMESTAMP,
  -- Duration of the window in nanoseconds.
  dur DURATION
)
RETURNS TABLE(
  -- When the stretch began.
  ts TIMESTAMP,
  -- Duration of the stretch in nanoseconds.
  dur DURATION,
  -- The thread waited for; NULL: a packet between machines.
  utid JOINID(thread.id),
  -- Its name.
  thread_name STRING,
  -- Name of its process.
  process_name STRING,
  -- Its machine.
  machine_id JOINID(machine.id),
  -- The packet on its way: row of machine_network_messages, or of ftrace_event where headers were not recorded. NULL: the
  -- path stands on a thread.
  packet_id LONG
) AS
SELECT
  c.ts,
  c.dur,
  c.utid,
  t.name AS thread_name,
  p.name AS process_name,
  t.machine_id,
  iif(c.id < 0, - 1 - c.id, NULL) AS packet_id
FROM _critical_path_by_intervals!((SELECT $ts AS ts, $dur AS dur, $root_utid AS utid), _machine_wakeup_graph) AS c
LEFT JOIN thread AS t USING (utid)
LEFT JOIN process AS p USING (upid)
WHERE c.dur > 0
ORDER BY c.ts;
