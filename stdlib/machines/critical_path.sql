-- What a thread waited for, followed through the threads that woke it, across machines where packets did.

INCLUDE PERFETTO MODULE machines.network;
INCLUDE PERFETTO MODULE sched.thread_executing_span;

-- The critical path of a thread in a window: at each moment the thread that the root waited for, itself where it ran or was
-- about to. Where the one that woke is an interrupt right behind a packet of another machine, the path goes on there with
-- the thread that sent it.
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
  -- The thread waited for.
  utid JOINID(thread.id),
  -- Its name.
  thread_name STRING,
  -- Name of its process.
  process_name STRING,
  -- Its machine.
  machine_id JOINID(machine.id),
  -- The packet that led to it; NULL when the path stayed on the machine.
  packet_id LONG
) AS
WITH
  path AS (
    SELECT p.ts, p.dur, p.utid
    FROM _thread_executing_span_critical_path($root_utid, $ts, $dur) AS p
  ),
  -- a packet that came in while the path stood on a thread: before it was sent, the sender was what counted
  remote AS (
    SELECT
      p.ts,
      min(n.ts, p.ts + p.dur) - p.ts AS dur,
      s.utid,
      n.receive_id AS packet_id
    FROM path AS p
    JOIN machine_network_one_way AS n ON n.ts + n.one_way_dur BETWEEN p.ts AND p.ts + p.dur AND n.ts > p.ts
    JOIN machine_network_packets AS s ON s.id = n.send_id
    JOIN thread AS t ON t.utid = p.utid
    WHERE n.to_machine_id = t.machine_id
    GROUP BY p.ts
  ),
  both AS (
    SELECT ts, dur, utid, packet_id FROM remote
    UNION ALL
    SELECT
      p.ts + coalesce(r.dur, 0) AS ts,
      p.dur - coalesce(r.dur, 0) AS dur,
      p.utid,
      NULL AS packet_id
    FROM path AS p
    LEFT JOIN remote AS r ON r.ts = p.ts
    WHERE p.dur > coalesce(r.dur, 0)
  )
SELECT
  b.ts,
  b.dur,
  b.utid,
  t.name AS thread_name,
  p.name AS process_name,
  t.machine_id,
  b.packet_id
FROM both AS b
JOIN thread AS t USING (utid)
LEFT JOIN process AS p USING (upid)
ORDER BY b.ts;
