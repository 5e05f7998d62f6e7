-- Processes of applications that were started, and what for.

INCLUDE PERFETTO MODULE slices.with_context;

-- When the system server started processes: (ts, dur, process_name).
CREATE PERFETTO VIEW _proc_start AS
SELECT ts, dur, trim(substr(name, length('Start proc:') + 1)) AS process_name
FROM thread_slice
WHERE name GLOB 'Start proc:*' AND process_name = 'system_server';

-- What a thread did right behind "bindApplication", where that is an activity, a service or a broadcast: the process was started for
-- it.
CREATE PERFETTO TABLE _cold_start AS
WITH
  steps AS (
    SELECT
      id,
      ts AS intent_ts,
      dur AS intent_dur,
      track_id,
      name,
      upid,
      process_name,
      pid,
      utid,
      CASE
        WHEN name GLOB 'performCreate:*' THEN 'activity'
        WHEN name GLOB 'serviceCreate:*' THEN 'service'
        WHEN name GLOB 'broadcastReceiveComp:*' THEN 'broadcast'
      END AS reason,
      CASE
        WHEN name GLOB 'performCreate:*' THEN str_split(name, 'performCreate:', 1)
        -- "serviceCreate: token=… className=a.b.C packageName=…"
        WHEN name GLOB 'serviceCreate:*' THEN str_split(str_split(name, '=', 2), ' ', 0)
        WHEN name GLOB 'broadcastReceiveComp:*' THEN str_split(name, 'broadcastReceiveComp:', 1)
      END AS intent
    FROM thread_slice
    WHERE
      name = 'bindApplication'
      OR name GLOB 'performCreate:*'
      OR name GLOB 'serviceCreate:*'
      OR name GLOB 'broadcastReceiveComp:*'
  ),
  followed AS (
    SELECT
      *,
      lag(name) OVER by_track AS bind_app_name,
      lag(intent_ts) OVER by_track AS bind_app_ts,
      lag(intent_dur) OVER by_track AS bind_app_dur,
      lag(id) OVER by_track AS bind_app_id
    FROM steps
    WINDOW by_track AS (PARTITION BY track_id ORDER BY intent_ts)
  )
SELECT * FROM followed WHERE bind_app_name = 'bindApplication';

-- The last of them in each process with the last start of a process of that name before it.
CREATE PERFETTO VIEW _cold_proc_start AS
SELECT
  c.*,
  max(p.ts) AS proc_start_ts,
  p.dur AS proc_start_dur,
  c.intent_ts - max(p.ts) + c.intent_dur AS total_dur
FROM _cold_start AS c
JOIN _proc_start AS p ON p.process_name = c.process_name AND c.intent_ts > p.ts
GROUP BY c.upid;

-- Processes that did none of that right behind their "bindApplication" were started for a provider …
CREATE PERFETTO TABLE _provider_start AS
SELECT s.id AS bind_app_id, s.*
FROM thread_slice AS s
WHERE s.name = 'bindApplication' AND s.id NOT IN (SELECT bind_app_id FROM _cold_start);

-- … with their starts.
CREATE PERFETTO VIEW _provider_proc_start AS
SELECT c.*, max(p.ts) AS proc_start_ts, p.dur AS proc_start_dur, c.ts - max(p.ts) + c.dur AS total_dur
FROM _provider_start AS c
JOIN _proc_start AS p ON p.process_name = c.process_name AND c.ts > p.ts
GROUP BY c.upid;

-- The starts.
CREATE PERFETTO TABLE android_app_process_starts(
  -- The slice bindApplication: row of slice.
  start_id LONG,
  -- The slice that it was started for: row of slice; NULL for a provider.
  id LONG,
  -- Track of that slice; NULL for a provider.
  track_id JOINID(track.id),
  -- Name of the process.
  process_name STRING,
  -- The kernel's number of the process.
  pid LONG,
  -- Row of process.
  upid JOINID(process.id),
  -- The activity, the broadcast's receiver or the class of the service; NULL for a provider.
  intent STRING,
  -- What for: activity, broadcast, service or provider.
  reason STRING,
  -- Start of the slice in which the system starts the process.
  proc_start_ts TIMESTAMP,
  -- Length of that slice.
  proc_start_dur DURATION,
  -- Start of bindApplication.
  bind_app_ts TIMESTAMP,
  -- Length of bindApplication.
  bind_app_dur DURATION,
  -- Start of what it was started for; NULL for a provider.
  intent_ts TIMESTAMP,
  -- Length of what it was started for; NULL for a provider.
  intent_dur DURATION,
  -- From the start of the process to the end of what it was started for, or of bindApplication.
  total_dur LONG
) AS
SELECT
  bind_app_id AS start_id,
  id,
  track_id,
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
  total_dur
FROM _cold_proc_start
UNION ALL
SELECT
  bind_app_id,
  NULL,
  NULL,
  process_name,
  pid,
  upid,
  NULL,
  'provider',
  proc_start_ts,
  proc_start_dur,
  ts,
  dur,
  NULL,
  NULL,
  total_dur
FROM _provider_proc_start;
