-- How long a car takes to change its user.

INCLUDE PERFETTO MODULE android.startup.startups;

-- From the start of the last user but 10 ("UserController.startUser-11-fg-start-mode-1") to the starts of applications,
-- each told by its package, and the stops of user 10 that ended after it.
CREATE PERFETTO TABLE android_auto_multiuser_timing(
  -- The user that is switched to.
  event_start_user_id STRING,
  -- Start of the switch.
  event_start_time LONG,
  -- End of what followed.
  event_end_time LONG,
  -- What followed.
  event_end_name STRING,
  -- Name of the slice that starts the user.
  event_start_name STRING,
  -- From the start to that end, in nanoseconds.
  duration LONG
) AS
WITH
  switch AS (
    SELECT name, ts, regexp_extract(name, 'startUser-([0-9]+)-') AS user_id
    FROM slice
    WHERE name GLOB 'UserController.startUser-*' AND NOT name GLOB 'UserController.startUser-10-*'
    ORDER BY ts DESC
    LIMIT 1
  ),
  ends AS (
    SELECT package AS name, ts_end AS ts FROM android_startups
    UNION ALL
    SELECT name, ts + dur FROM slice WHERE name GLOB 'finishUserStopped-10-*'
  )
SELECT
  s.user_id AS event_start_user_id,
  s.ts AS event_start_time,
  e.ts AS event_end_time,
  e.name AS event_end_name,
  s.name AS event_start_name,
  e.ts - s.ts AS duration
FROM switch AS s
JOIN ends AS e ON e.ts > s.ts
ORDER BY e.ts;

-- The same with what processes of the user before still used of the processors and memory meanwhile.
CREATE PERFETTO VIEW android_auto_multiuser_timing_with_previous_user_resource_usage(
  -- The user that is switched to.
  event_start_user_id STRING,
  -- Start of the switch.
  event_start_time LONG,
  -- End of what followed.
  event_end_time LONG,
  -- What followed.
  event_end_name STRING,
  -- Name of the slice that starts the user.
  event_start_name STRING,
  -- From the start to that end, in nanoseconds.
  duration LONG,
  -- A user from before, other than the system's.
  user_id LONG,
  -- CPU time of that user's processes meanwhile, in nanoseconds.
  total_cpu_time LONG,
  -- Anonymous memory of those processes, average, in KiB.
  total_memory_usage_kb LONG
) AS
WITH
  -- user 0 is the system: it has no work to hand over
  usage AS (
    SELECT
      t.event_end_name,
      t.event_end_time,
      p.android_user_id AS user_id,
      sum(min(s.ts + s.dur, t.event_end_time) - max(s.ts, t.event_start_time)) AS cpu_time
    FROM android_auto_multiuser_timing AS t
    JOIN sched_slice AS s ON s.ts < t.event_end_time AND s.ts + s.dur > t.event_start_time AND s.dur > 0
    JOIN thread USING (utid)
    JOIN process AS p USING (upid)
    WHERE p.android_user_id NOT IN (0, CAST(t.event_start_user_id AS INT))
    GROUP BY t.event_end_name, t.event_end_time, p.android_user_id
  ),
  memory AS (
    SELECT t.event_end_name, t.event_end_time, p.android_user_id AS user_id, p.upid, avg(c.value) AS bytes
    FROM android_auto_multiuser_timing AS t
    JOIN counter AS c ON c.ts BETWEEN t.event_start_time AND t.event_end_time
    JOIN process_counter_track AS k ON k.id = c.track_id
    JOIN process AS p USING (upid)
    WHERE k.name = 'mem.rss.anon'
    GROUP BY t.event_end_name, t.event_end_time, p.upid
  )
SELECT
  t.event_start_user_id,
  t.event_start_time,
  t.event_end_time,
  t.event_end_name,
  t.event_start_name,
  t.duration,
  u.user_id,
  u.cpu_time AS total_cpu_time,
  (
    SELECT CAST(sum(m.bytes) / 1024 AS INT)
    FROM memory AS m
    WHERE m.event_end_name = t.event_end_name AND m.event_end_time = t.event_end_time AND m.user_id = u.user_id
  ) AS total_memory_usage_kb
FROM android_auto_multiuser_timing AS t
JOIN usage AS u USING (event_end_name, event_end_time);

-- What the user before (10, the first one of a car) still used of the processors …
CREATE PERFETTO VIEW _android_auto_user_10_total_cpu_time AS
SELECT event_end_name, user_id, total_cpu_time
FROM android_auto_multiuser_timing_with_previous_user_resource_usage
WHERE user_id = 10;

-- … and of memory.
CREATE PERFETTO VIEW _android_auto_user_10_total_memory AS
SELECT event_end_name, user_id, total_memory_usage_kb
FROM android_auto_multiuser_timing_with_previous_user_resource_usage
WHERE user_id = 10;
