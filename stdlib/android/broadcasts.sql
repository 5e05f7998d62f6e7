-- Broadcasts that the system server hands to processes, from Android 14 on.

INCLUDE PERFETTO MODULE android.freezer;

-- A queue's track has a slice "PID:PROCESS/USER running" around the "ACTION/USER scheduled" ones of that process.
-- The name of the process in the first.
CREATE PERFETTO FUNCTION _extract_broadcast_process_name(
  -- Name of the slice.
  name STRING
)
RETURNS STRING AS
SELECT regexp_extract($name, '^[^ ]* ?[0-9]+:([^/ ]+)');

-- One row for each broadcast and process.
CREATE PERFETTO TABLE _android_broadcasts_minsdk_u(
  -- Number of the broadcast's record, where the slice tells it: "#5 ACTION scheduled".
  record_id STRING,
  -- What the broadcast tells.
  intent_action STRING,
  -- The process that got it.
  process_name STRING,
  -- Number of that process.
  pid LONG,
  -- The process, where the recording has it.
  upid JOINID(process.id),
  -- The queue of the process, where the slice around tells it: "#5 PID:PROCESS/USER running".
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
    SELECT t.id AS track_id, cast_int!(regexp_extract(t.name, '\[([0-9]+)')) AS queue_id, t.machine_id
    FROM process_track AS t
    JOIN process AS p USING (upid)
    WHERE t.name GLOB 'BroadcastQueue.mRunning*' AND p.name = 'system_server'
  ),
  receivers AS (
    SELECT
      s.id,
      q.queue_id,
      q.machine_id,
      regexp_extract(s.name, '^#?([0-9a-f]+) ') AS process_queue_id,
      _extract_broadcast_process_name(s.name) AS process_name,
      cast_int!(regexp_extract(s.name, '([0-9]+):')) AS pid
    FROM slice AS s
    JOIN queues AS q USING (track_id)
    WHERE s.name GLOB '* running'
  )
SELECT
  regexp_extract(s.name, '^#?([0-9a-f]+) ') AS record_id,
  regexp_extract(s.name, '([^ /]+)(?:/[^ ]*)? scheduled$') AS intent_action,
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
ORDER BY s.ts;
