-- Broadcasts that the system server hands to processes, from Android 14 on.

INCLUDE PERFETTO MODULE android.freezer;

-- A queue's track has a slice "QUEUE PID:PROCESS/USER running" around the "RECORD ACTION/USER scheduled" ones of that process.
-- The name of the process in the first.
CREATE PERFETTO FUNCTION _extract_broadcast_process_name(
  -- Name of the slice.
  name STRING
)
RETURNS STRING AS
SELECT substr(process, instr(process, ':') + 1)
FROM (SELECT str_split(str_split($name, '/', 0), ' ', 1) AS process);

-- One row for each broadcast and process.
CREATE PERFETTO TABLE _android_broadcasts_minsdk_u(
  -- The broadcast's record, as the slice names it.
  record_id STRING,
  -- What the broadcast tells.
  intent_action STRING,
  -- The process that got it.
  process_name STRING,
  -- Number of that process.
  pid LONG,
  -- The process, where the recording has it.
  upid JOINID(process.id),
  -- The queue of the process, as the slice around names it.
  process_queue_id STRING,
  -- The queue it came from.
  queue_id LONG,
  -- The slice of handing it over.
  id JOINID(slice.id),
  -- When it was handed over.
  ts TIMESTAMP,
  -- How long that took.
  dur DURATION,
  -- The track of the queue.
  track_id JOINID(track.id)
) AS
WITH
  queues AS (
    SELECT t.id AS track_id, cast_int!(replace(str_split(t.name, '[', 1), ']', '')) AS queue_id, t.machine_id
    FROM process_track AS t
    JOIN process AS p USING (upid)
    WHERE t.name GLOB 'BroadcastQueue.mRunning*' AND p.name = 'system_server'
  ),
  receivers AS (
    SELECT
      s.id,
      q.queue_id,
      q.machine_id,
      str_split(s.name, ' ', 0) AS process_queue_id,
      _extract_broadcast_process_name(s.name) AS process_name,
      cast_int!(str_split(str_split(str_split(s.name, '/', 0), ' ', 1), ':', 0)) AS pid
    FROM slice AS s
    JOIN queues AS q USING (track_id)
    WHERE s.name GLOB '* running'
  )
SELECT
  str_split(s.name, ' ', 0) AS record_id,
  str_split(str_split(s.name, '/', 0), ' ', 1) AS intent_action,
  r.process_name,
  r.pid,
  (
    SELECT p.upid
    FROM process AS p
    WHERE
      p.machine_id = r.machine_id
      AND p.pid = r.pid
      AND s.ts BETWEEN coalesce(p.start_ts, s.ts) AND coalesce(p.end_ts, s.ts)
    ORDER BY p.upid DESC
    LIMIT 1
  ) AS upid,
  r.process_queue_id,
  r.queue_id,
  s.id,
  s.ts,
  s.dur,
  s.track_id
FROM receivers AS r
JOIN slice AS s ON s.parent_id = r.id
WHERE s.name GLOB '* scheduled'
ORDER BY s.id;
