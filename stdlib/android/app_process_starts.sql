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
  start_id LONG,
  id LONG,
  track_id JOINID(track.id),
  process_name STRING,
  pid LONG,
  upid JOINID(process.id),
  intent STRING,
  reason STRING,
  proc_start_ts TIMESTAMP,
  proc_start_dur DURATION,
  bind_app_ts TIMESTAMP,
  bind_app_dur DURATION,
  intent_ts TIMESTAMP,
  intent_dur DURATION,
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
