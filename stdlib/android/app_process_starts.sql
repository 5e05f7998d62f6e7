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

-- Processes that were started: the system's slice, and the first thing that the new process does.
CREATE PERFETTO VIEW _proc_start AS
SELECT
  p.id AS proc_start_id,
  p.ts AS proc_start_ts,
  p.dur AS proc_start_dur,
  b.id AS bind_app_id,
  b.ts AS bind_app_ts,
  b.dur AS bind_app_dur,
  b.track_id,
  b.upid,
  b.pid,
  b.process_name
FROM thread_slice AS b
JOIN slice AS p ON p.id = (
  SELECT s.id
  FROM slice AS s
  WHERE s.name = 'Start proc: ' || b.process_name AND s.ts < b.ts
  ORDER BY s.ts DESC
  LIMIT 1
)
WHERE b.name = 'bindApplication' AND b.is_main_thread;

-- What each of them was started for, where it says so: the first intent behind it.
CREATE PERFETTO TABLE _cold_start AS
SELECT
  p.bind_app_id, i.id AS intent_id, i.track_id, i.ts AS intent_ts, i.dur AS intent_dur, i.intent, i.reason, p.upid
FROM _proc_start AS p
JOIN _app_first_intents AS i ON i.id = (
  SELECT n.id FROM _app_first_intents AS n WHERE n.upid = p.upid AND n.ts >= p.bind_app_ts + p.bind_app_dur ORDER BY n.ts LIMIT 1
);

-- Those that do nothing of their own behind their start serve as providers.
CREATE PERFETTO TABLE _provider_start AS
SELECT bind_app_id, upid, bind_app_ts AS intent_ts, bind_app_dur AS intent_dur
FROM _proc_start
WHERE bind_app_id NOT IN (SELECT bind_app_id FROM _cold_start);

-- Starts for activities, broadcasts and services with their processes …
CREATE PERFETTO VIEW _cold_proc_start AS
SELECT p.*, c.intent_id, c.track_id AS intent_track_id, c.intent_ts, c.intent_dur, c.intent, c.reason
FROM _proc_start AS p
JOIN _cold_start AS c USING (bind_app_id);

-- … and those for providers.
CREATE PERFETTO VIEW _provider_proc_start AS
SELECT p.*, s.intent_ts, s.intent_dur, 'provider' AS reason
FROM _proc_start AS p
JOIN _provider_start AS s USING (bind_app_id);

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
SELECT
  bind_app_id AS start_id,
  intent_id AS id,
  intent_track_id AS track_id,
  process_name,
  pid,
  upid,
  intent,
  reason,
  proc_start_ts,
  proc_start_dur,
  bind_app_ts,
  bind_app_dur,
  intent_ts,
  intent_dur,
  intent_ts + intent_dur - proc_start_ts AS total_dur
FROM _cold_proc_start
UNION ALL
SELECT
  bind_app_id,
  bind_app_id,
  track_id,
  process_name,
  pid,
  upid,
  NULL,
  reason,
  proc_start_ts,
  proc_start_dur,
  bind_app_ts,
  bind_app_dur,
  intent_ts,
  intent_dur,
  intent_ts + intent_dur - proc_start_ts
FROM _provider_proc_start
ORDER BY 1;
