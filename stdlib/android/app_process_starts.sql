-- Processes of applications that were started, and what for.

INCLUDE PERFETTO MODULE slices.with_context;

-- What the first thing that a new process did tells about the reason; the intent is in the name.
CREATE PERFETTO TABLE _app_first_intents AS
WITH
  kinds(pattern, expression, reason) AS (
    VALUES
      ('performCreate:*', 'performCreate:(.*)', 'activity'),
      ('performResume:*', 'performResume:(.*)', 'activity'),
      ('broadcastReceiveReg:*', 'act=([^ }]*)', 'broadcast'),
      ('broadcastReceiveComp:*', 'act=([^ }]*)', 'broadcast'),
      ('serviceStart:*', 'cmp=([^ }]*)', 'service'),
      ('serviceCreate:*', 'className=([^ }]*)', 'service'),
      ('serviceBind:*', 'cmp=([^ }]*)', 'service')
  )
SELECT s.id, s.upid, s.track_id, s.ts, s.dur, regexp_extract(s.name, k.expression) AS intent, k.reason
FROM kinds AS k
JOIN thread_slice AS s ON s.name GLOB k.pattern;

-- The starts. A process that does nothing of its own behind its start serves as a provider.
CREATE PERFETTO TABLE android_app_process_starts(
  -- The slice bindApplication: row of slice.
  start_id LONG,
  -- The slice that it was started for, or bindApplication: row of slice.
  id LONG,
  -- Track of that slice.
  track_id JOINID(track.id),
  -- Name of the process.
  process_name STRING,
  -- The kernel's number of the process.
  pid LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- Name of the activity, action of the broadcast or component of the service; NULL: none was seen.
  intent STRING,
  -- What for: activity, broadcast or service; provider where the process did nothing of its own.
  reason STRING,
  -- Start of the slice in which the system starts the process.
  proc_start_ts TIMESTAMP,
  -- Length of that slice.
  proc_start_dur DURATION,
  -- Start of bindApplication.
  bind_app_ts TIMESTAMP,
  -- Length of bindApplication.
  bind_app_dur DURATION,
  -- Start of what it was started for.
  intent_ts TIMESTAMP,
  -- Length of what it was started for.
  intent_dur DURATION,
  -- From the first of the three to the end of the last.
  total_dur LONG
) AS
WITH
  binds AS (
    SELECT
      b.*,
      (
        SELECT p.id
        FROM slice AS p
        WHERE p.name = 'Start proc: ' || b.process_name AND p.ts < b.ts
        ORDER BY p.ts DESC
        LIMIT 1
      ) AS proc_start_id,
      (SELECT i.id FROM _app_first_intents AS i WHERE i.upid = b.upid AND i.ts >= b.ts + b.dur ORDER BY i.ts LIMIT 1)
        AS intent_id
    FROM thread_slice AS b
    WHERE b.name = 'bindApplication' AND b.is_main_thread
  )
SELECT
  b.id AS start_id,
  coalesce(i.id, b.id) AS id,
  coalesce(i.track_id, b.track_id) AS track_id,
  b.process_name,
  b.pid,
  b.upid,
  i.intent,
  coalesce(i.reason, 'provider') AS reason,
  p.ts AS proc_start_ts,
  p.dur AS proc_start_dur,
  b.ts AS bind_app_ts,
  b.dur AS bind_app_dur,
  coalesce(i.ts, b.ts) AS intent_ts,
  coalesce(i.dur, b.dur) AS intent_dur,
  coalesce(i.ts + i.dur, b.ts + b.dur) - p.ts AS total_dur
FROM binds AS b
JOIN slice AS p ON p.id = b.proc_start_id
LEFT JOIN _app_first_intents AS i ON i.id = b.intent_id;
