-- What a thread waited for, followed through the threads that woke it, across machines where packets did.

INCLUDE PERFETTO MODULE machines.network;
INCLUDE PERFETTO MODULE sched.thread_executing_span;

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
        FROM _wakeup_graph AS s
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
FROM _wakeup_graph AS g
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
